//! What a policy may not say although its shape is right: names twice, digests that are none, references that lead nowhere, Rego
//! that does not read.
//!
//! Owns what one document says of itself, and what the files that it names have to be. Reads no file itself: the caller brings
//! their bytes. Page: `spec/policy.md`.

use std::collections::HashSet;

use writ_core::Digest;
use writ_core::json::{self, Object, Value};

use crate::error::{Found, PolicyError};
use crate::glob::Glob;
use crate::rego;
use crate::schema::join;

/// Digest algorithms and how many hexadecimal digits each has.
const ALGORITHMS: [(&str, usize); 5] = [("sha1", 40), ("sha256", 64), ("sha384", 96), ("sha512", 128), ("gitoid", 64)];

/// Checks a whole document; `base` is the pointer of the policy it is.
pub fn check(document: &Value, base: &str, out: &mut Vec<Found>) {
    for list in ["sublayouts", "evaluators/rego", "evaluators/ai", "evaluators/grpc", "materialsFrom/artifacts"] {
        names(member(document, list), &format!("{base}/{list}"), out);
    }
    for (at, rule) in items(member(document, "evaluators/rego")).enumerate() {
        let Some(text) = rule.get("policy").and_then(Value::as_str) else { continue };
        if !is_file(text)
            && let Err(why) = rego::check(text)
        {
            out.push(bad_rego(&format!("{base}/evaluators/rego/{at}/policy"), &why));
        }
    }
    references(document, base, out);
    for (at, child) in items(document.get("sublayouts")).enumerate() {
        let place = format!("{base}/sublayouts/{at}");
        digests(child.get("policyDigest"), &format!("{place}/policyDigest"), out);
        if let Some(inline) = child.get("policy").filter(|policy| policy.as_object().is_some()) {
            check(inline, &format!("{place}/policy"), out);
        }
    }
    materials(document.get("materialsFrom"), &format!("{base}/materialsFrom"), out);
    amounts(document, base, out);
}

/// What a file that a document names is for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Named {
    Policy,
    Rego,
}

/// The files that a policy names beside itself, with their pointers; `base` is the pointer of the policy it is.
fn files(document: &Value, base: &str) -> Vec<(String, String, Named)> {
    let text = |value: Option<&Value>| value.and_then(Value::as_str).map(str::to_owned);
    let is_path = |text: &str| {
        !text.contains("://") && (text.starts_with(['.', '/']) || text.ends_with(".aflock") || text.ends_with(".json"))
    };
    let parent = text(document.get("extends")).filter(|text| is_path(text));
    let mut out: Vec<_> = parent.map(|text| (format!("{base}/extends"), text, Named::Policy)).into_iter().collect();
    for (at, rule) in items(member(document, "evaluators/rego")).enumerate() {
        let file = text(rule.get("policy")).filter(|text| is_file(text));
        out.extend(file.map(|file| (format!("{base}/evaluators/rego/{at}/policy"), file, Named::Rego)));
    }
    for (at, child) in items(document.get("sublayouts")).enumerate() {
        let place = format!("{base}/sublayouts/{at}/policy");
        match child.get("policy") {
            Some(Value::String(text)) if inline(text).is_none() => out.push((place, text.clone(), Named::Policy)),
            Some(policy) => out.extend(files(policy, &place)),
            None => {}
        }
    }
    out
}

/// A sublayout's policy that is written out in the text itself, as the specification allows.
pub fn inline(text: &str) -> Option<&str> {
    Some(text.trim()).filter(|text| text.starts_with('{'))
}

/// Whether the files that a document names are there and are what they have to be; `text` is the document itself, `read` gives
/// a file's bytes, `parse` reads them as a policy.
pub fn check_files(
    document: &Value,
    text: &[u8],
    read: impl Fn(&str) -> Option<Vec<u8>>,
    parse: impl Fn(&[u8]) -> Result<(), PolicyError>,
) -> Vec<Found> {
    let mut out = Vec::new();
    for (pointer, file, named) in files(document, "") {
        let Some(bytes) = read(&file) else {
            let help = "a path from the policy's own folder";
            out.push(Found::value(&pointer, format!("there is no file `{file}`"), help).rule("missing-file"));
            continue;
        };
        match named {
            Named::Rego => {
                let wrong = rego::check(&String::from_utf8_lossy(&bytes)).err();
                out.extend(wrong.map(|why| bad_rego(&pointer, &format!("`{file}`: {why}"))));
            }
            Named::Policy if bytes == text => {
                let help = "another policy, that does not lead back here";
                out.push(Found::value(&pointer, format!("`{file}` is this policy itself"), help).rule("bad-reference"));
            }
            Named::Policy if in_envelope(&bytes) => {}
            Named::Policy => {
                out.extend(parse(&bytes).err().map(|error| bad_policy(&pointer, &file, &error)));
                out.extend(other_digest(document, &pointer, &file, &bytes));
            }
        }
    }
    out
}

/// What is inside an envelope is its reader's to check.
fn in_envelope(bytes: &[u8]) -> bool {
    json::parse(bytes).is_ok_and(|value| value.get("payloadType").is_some())
}

fn bad_policy(pointer: &str, file: &str, error: &PolicyError) -> Found {
    let help = format!("`writ policy check {file}` shows the places");
    Found::value(pointer, format!("`{file}` is no valid policy: {error}"), help).rule("bad-policy")
}

/// A sublayout's file that is not the one its `policyDigest` pins.
fn other_digest(document: &Value, pointer: &str, file: &str, bytes: &[u8]) -> Option<Found> {
    let place = format!("{}/policyDigest/sha256", pointer.strip_suffix("/policy")?);
    let pinned = member(document, place.trim_start_matches('/'))?.as_str()?;
    let found = Digest::of(bytes);
    let same = pinned.rsplit(':').next()?.eq_ignore_ascii_case(&found.hex());
    let help = format!("`{file}` has {found}: look at what changed, then pin that");
    (!same).then(|| Found::value(&place, format!("`{file}` is not the file that is pinned"), help).rule("other-digest"))
}

fn bad_rego(pointer: &str, why: &str) -> Found {
    let help = "Rego begins with `package NAME`; a text that ends in `.rego` is the path of a file";
    Found::value(pointer, format!("not readable as Rego: {why}"), help).rule("bad-rego")
}

fn member<'a>(document: &'a Value, path: &str) -> Option<&'a Value> {
    path.split('/').try_fold(document, |value, name| match value.as_array() {
        Some(items) => items.get(name.parse::<usize>().ok()?),
        None => value.get(name),
    })
}

fn items(list: Option<&Value>) -> impl Iterator<Item = &Value> {
    list.and_then(Value::as_array).unwrap_or_default().iter()
}

/// Names of a list's items: none twice.
fn names(list: Option<&Value>, place: &str, out: &mut Vec<Found>) {
    let mut seen = HashSet::new();
    for (at, item) in items(list).enumerate() {
        let Some(name) = item.get("name").and_then(Value::as_str) else { continue };
        let pointer = format!("{place}/{at}/name");
        if !seen.insert(name) {
            out.push(twice(&pointer, name));
        }
    }
}

fn twice(pointer: &str, name: &str) -> Found {
    Found::value(pointer, format!("the name `{name}` is there twice"), "a name of its own").rule("duplicate-name")
}

/// Steps, patterns and places that are written as plain text.
fn references(document: &Value, base: &str, out: &mut Vec<Found>) {
    let mut seen = HashSet::new();
    for (at, step) in items(document.get("requiredAttestations")).enumerate() {
        if let Some(name) = step.as_str().filter(|name| !seen.insert(*name)) {
            out.push(twice(&format!("{base}/requiredAttestations/{at}"), name));
        }
    }
    let patterns = [
        "attestationsFrom",
        "identity/allowedModels",
        "identity/allowedEnvironments",
        "grants/secrets/allow",
        "grants/secrets/deny",
        "grants/apis/allow",
        "grants/apis/deny",
        "grants/storage/allow",
        "grants/storage/deny",
    ];
    for place in patterns {
        for (at, item) in items(member(document, place)).enumerate() {
            let Some(text) = item.as_str().filter(|text| !text.is_empty()) else { continue };
            if let Err(error) = Glob::parse(text) {
                let pointer = format!("{base}/{place}/{at}");
                out.push(Found::value(&pointer, format!("bad glob `{text}`: {error}"), GLOB_HELP).rule("bad-glob"));
            }
        }
    }
    if let Some(text) = document.get("extends").and_then(Value::as_str)
        && let Some((scheme, place)) = text.split_once("://")
        && (!["https", "oci", "agentrc"].contains(&scheme) || place.is_empty())
    {
        let help = "a path, an `https://` address, or an OCI reference (R24)";
        let message = format!("a policy is not taken from `{text}`");
        out.push(Found::value(&format!("{base}/extends"), message, help).rule("bad-reference"));
    }
    for (at, service) in items(member(document, "evaluators/grpc")).enumerate() {
        let Some(text) = service.get("endpoint").and_then(Value::as_str) else { continue };
        let port = text.rsplit(':').next().filter(|_| text.contains(':')).filter(|port| digits(port));
        if port.is_some_and(|port| port.parse::<u16>().is_err()) {
            let pointer = format!("{base}/evaluators/grpc/{at}/endpoint");
            out.push(Found::value(&pointer, format!("`{text}` has no port"), "host:port").rule("bad-reference"));
        }
    }
    keys(document.get("functionaries"), &format!("{base}/functionaries"), out);
    approvers(member(document, "approvals/keys"), &format!("{base}/approvals/keys"), out);
    for (at, child) in items(document.get("sublayouts")).enumerate() {
        keys(child.get("functionaries"), &format!("{base}/sublayouts/{at}/functionaries"), out);
    }
}

/// How a pattern is written.
pub const GLOB_HELP: &str = "`*`, `**`, `?`, `[a-z]` and `{a,b}` are patterns; `\\` before a sign takes it as it is";

fn digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// Key ids that say that they are digests, by their prefix or their length, have to be some.
fn keys(list: Option<&Value>, place: &str, out: &mut Vec<Found>) {
    for (at, one) in items(list).enumerate() {
        let Some(id) = one.get("publickeyid").and_then(Value::as_str) else { continue };
        let pointer = format!("{place}/{at}/publickeyid");
        match id.split_once(':') {
            Some(("sha256", _)) => digest(id, &[64], &pointer, out),
            None if id.len() == 64 => digest(id, &[64], &pointer, out),
            _ => {}
        }
    }
}

/// The keys whose yes counts have ids that are digests.
fn approvers(list: Option<&Value>, place: &str, out: &mut Vec<Found>) {
    for (at, id) in items(list).enumerate() {
        digest(id.as_str().unwrap_or_default(), &[64], &format!("{place}/{at}"), out);
    }
}

/// A map of digests by algorithm.
fn digests(map: Option<&Value>, place: &str, out: &mut Vec<Found>) {
    if map.and_then(Value::as_object).is_some_and(|map| map.iter().next().is_none()) {
        out.push(Found::value(place, "no digest at all", "as in `{\"sha256\": …}`").rule("bad-digest"));
    }
    for (algorithm, value) in map.and_then(Value::as_object).into_iter().flat_map(Object::iter) {
        let pointer = join(place, algorithm);
        match ALGORITHMS.iter().find(|(name, _)| *name == algorithm) {
            Some((_, digits)) => digest(value.as_str().unwrap_or_default(), &[*digits], &pointer, out),
            None => {
                let known = ALGORITHMS.map(|(name, _)| name).join(", ");
                let message = format!("unknown digest algorithm `{algorithm}`");
                out.push(Found::name(&pointer, message, format!("one of {known}")).rule("bad-digest"));
            }
        }
    }
}

fn digest(text: &str, digits: &[usize], pointer: &str, out: &mut Vec<Found>) {
    // A prefix has to be the name of an algorithm whose digests have this length.
    let (named, bare) = text.split_once(':').map_or((None, text), |(name, bare)| (Some(name), bare));
    let known = |name: &str| ALGORITHMS.iter().any(|(known, digits)| *known == name && *digits == bare.len());
    let hex = bare.chars().all(|c| c.is_ascii_hexdigit());
    if !digits.contains(&bare.len()) || !hex || !named.is_none_or(known) {
        let lengths = digits.iter().map(ToString::to_string).collect::<Vec<_>>().join(" or ");
        let message = format!("`{text}` is no digest");
        out.push(Found::value(pointer, message, format!("{lengths} hexadecimal digits")).rule("bad-digest"));
    }
}

fn materials(materials: Option<&Value>, place: &str, out: &mut Vec<Found>) {
    let Some(materials) = materials else { return };
    let session = materials.get("session");
    let wide = session.and_then(|session| session.get("algorithm")).and_then(Value::as_str) == Some("sha512");
    if let Some(root) = session.and_then(|session| session.get("merkleRoot")).and_then(Value::as_str) {
        digest(root, if wide { &[128] } else { &[64] }, &format!("{place}/session/merkleRoot"), out);
    }
    if let Some(tree) = member(materials, "git/treeHash").and_then(Value::as_str) {
        digest(tree, &[40, 64], &format!("{place}/git/treeHash"), out);
    }
    for (at, artifact) in items(materials.get("artifacts")).enumerate() {
        digests(artifact.get("digest"), &format!("{place}/artifacts/{at}/digest"), out);
    }
    let sessions = materials.get("sublayoutSessions").and_then(Value::as_object);
    for (name, session) in sessions.into_iter().flat_map(Object::iter) {
        if let Some(root) = session.get("merkleRoot").and_then(Value::as_str) {
            digest(root, &[64, 128], &format!("{}/merkleRoot", join(&format!("{place}/sublayoutSessions"), name)), out);
        }
    }
}

/// Money is counted in micro-dollars (R26): a finer amount would be another one.
fn amounts(document: &Value, base: &str, out: &mut Vec<Found>) {
    let mut check = |limit: Option<&Value>, pointer: String| {
        let plain = limit.filter(|limit| limit.as_object().is_none());
        let nested = limit.and_then(|limit| limit.get("value"));
        let (Some(amount), pointer) =
            (plain.or(nested).and_then(Value::as_f64), if nested.is_some() { pointer + "/value" } else { pointer })
        else {
            return;
        };
        let micros = amount * 1e6;
        // Above 2^53 not every whole number is a number of JSON's.
        if micros > 9e15 {
            let message = format!("{amount:e} is more than can be counted in micro-dollars");
            out.push(Found::value(&pointer, message, "at most nine thousand million").rule("bad-amount"));
        } else if (micros - micros.round()).abs() > 1e-6 + micros * 1e-15 {
            let message = format!("{amount} is finer than a micro-dollar");
            out.push(Found::value(&pointer, message, "at most six digits behind the point").rule("bad-amount"));
        }
    };
    check(member(document, "limits/maxSpendUSD"), format!("{base}/limits/maxSpendUSD"));
    for (at, child) in items(document.get("sublayouts")).enumerate() {
        check(member(child, "limits/maxSpendUSD"), format!("{base}/sublayouts/{at}/limits/maxSpendUSD"));
    }
}

/// Whether a Rego rule is the path of a file rather than the rule itself.
fn is_file(text: &str) -> bool {
    let text = text.trim();
    !text.contains('\n') && text.ends_with(".rego")
}
