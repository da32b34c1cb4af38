//! `writ conformance`: which profiles of the specification hold, by cases that are data.
//!
//! Owns the driver: each case goes through the code that the commands use, and what comes out is held against what is expected. Knows no
//! case. Invariant: a case that cannot be read has not held. Page: `conformance/README.md`.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use serde::{Deserialize, Serialize};
use writ_agentfile::cedar::Request;
use writ_agentfile::ceiling::{self, Level, chain_violations};
use writ_agentfile::lock::resolve;
use writ_agentfile::{Linted, Options, lint};
use writ_core::Digest;
use writ_core::json::{self, Object, Value};
use writ_package::build::{Input, Labels, build};
use writ_package::check::check;
use writ_package::{Descriptor, Layout};

use super::lock::Here;
use super::tool;
use crate::args::FormatArgs;
use crate::exit::Failure;
use crate::output;

/// The cases, by profile.
const CASES: [(&str, &str, &str); 4] = [
    ("core", "Core Agentfile", include_str!("../../../../conformance/core.jsonl")),
    ("cedar", "Cedar Policy", include_str!("../../../../conformance/cedar.jsonl")),
    ("package", "OCI Package", include_str!("../../../../conformance/package.jsonl")),
    ("tools", "Tool Projection", include_str!("../../../../conformance/tools.jsonl")),
];
/// The title of a layer.
const TITLE: &str = "org.opencontainers.image.title";

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    id: String,
    profile: String,
    section: String,
    input: Given,
    expected: Expected,
    #[serde(default, rename = "note")]
    _note: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Given {
    agentfile: String,
    #[serde(default)]
    request: Option<Value>,
    #[serde(default)]
    bases: Vec<String>,
    #[serde(default)]
    files: BTreeMap<String, String>,
    #[serde(default)]
    source: Vec<String>,
    #[serde(default)]
    flip: Option<String>,
    #[serde(default)]
    remove: Option<String>,
    #[serde(default)]
    tool: Option<String>,
    #[serde(default)]
    description: Option<Value>,
    #[serde(default)]
    arguments: Option<Object>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Expected {
    #[serde(default)]
    result: Option<String>,
    #[serde(default)]
    codes: Vec<String>,
    #[serde(default)]
    line: Option<usize>,
    #[serde(default)]
    decision: Option<String>,
    #[serde(default)]
    lines: Option<Vec<usize>>,
    #[serde(default)]
    violations: Option<Vec<String>>,
    #[serde(default)]
    code: Option<String>,
    #[serde(default)]
    same: Option<bool>,
    #[serde(default)]
    same_as: Option<String>,
    #[serde(default)]
    not_same_as: Option<String>,
    #[serde(default)]
    command: Option<String>,
    #[serde(default)]
    url: Option<String>,
    #[serde(default)]
    pointer: Option<String>,
}

/// What came of a profile.
#[derive(Serialize)]
struct Profile<'a> {
    profile: &'a str,
    name: &'a str,
    held: bool,
    cases: usize,
    failed: Vec<Failed>,
}

#[derive(Serialize)]
struct Failed {
    id: String,
    section: String,
    why: String,
}

/// Runs every case.
pub fn run(args: &FormatArgs) -> Result<(), Failure> {
    let mut told = Vec::new();
    for (profile, name, text) in CASES {
        let (mut failed, mut cases, mut digests) = (Vec::new(), 0, BTreeMap::new());
        for (at, line) in text.lines().enumerate() {
            cases += 1;
            let (id, section, found) = match json::from_slice::<Case>(line.as_bytes()) {
                Ok(case) if case.profile == profile => {
                    let found = held(&case, &mut digests);
                    (case.id, case.section, found)
                }
                Ok(case) => (case.id, case.section, Err("it is of another profile".to_owned())),
                Err(error) => (format!("line {}", at + 1), String::new(), Err(error.to_string())),
            };
            failed.extend(found.err().map(|why| Failed { id, section, why }));
        }
        told.push(Profile { profile, name, held: failed.is_empty() && cases > 0, cases, failed });
    }
    if args.is_json() {
        output::print_json(&told);
    } else {
        told.iter().for_each(human);
    }
    if told.iter().all(|profile| profile.held) { Ok(()) } else { Err(Failure::No) }
}

fn human(profile: &Profile<'_>) {
    let mark = if profile.held { output::good("✓") } else { output::bad("✗") };
    let passed = profile.cases - profile.failed.len();
    output::line(format!("{mark} {:<15} {passed} of {} cases", profile.name, profile.cases));
    for Failed { id, section, why } in &profile.failed {
        output::line(format!("    {id} {section}: {}", output::plain(why)));
    }
}

fn held(case: &Case, digests: &mut BTreeMap<String, Digest>) -> Result<(), String> {
    match case.profile.as_str() {
        "core" => core(&case.input, &case.expected),
        "cedar" => cedar(&case.input, &case.expected),
        "tools" => tools(&case.input, &case.expected),
        _ => package(case, digests),
    }
}

/// What was found, held against what was expected, where that says something.
fn same<T: PartialEq + std::fmt::Debug>(what: &str, expected: Option<&T>, found: &T) -> Result<(), String> {
    match expected {
        Some(expected) if expected != found => Err(format!("{what} is {found:?}, expected {expected:?}")),
        Some(_) | None => Ok(()),
    }
}

fn core(input: &Given, expected: &Expected) -> Result<(), String> {
    let linted = lint(input.agentfile.as_bytes(), "Agentfile", &Options::default());
    let result = match linted.counts() {
        (0, 0) => "ok",
        (0, _) => "warn",
        _ => "error",
    };
    same("result", expected.result.as_ref(), &result.to_owned())?;
    if let Some(code) = expected.codes.iter().find(|code| linted.found.iter().all(|found| found.code != **code)) {
        return Err(format!(
            "`{code}` is not among {:?}",
            linted.found.iter().map(|found| found.code).collect::<Vec<_>>()
        ));
    }
    let first = linted.found.iter().find(|found| expected.codes.iter().any(|code| code == found.code));
    match (expected.line, first) {
        (Some(line), Some(first)) => same("line", Some(&line), &first.place.line),
        (Some(_), None) => Err("nothing is found on any line".to_owned()),
        (None, _) => Ok(()),
    }
}

fn level(text: &str, file: &str) -> Result<Level, String> {
    let Linted { agent, rules, found } = lint(text.as_bytes(), file, &Options::default());
    match found.iter().find(|found| found.is_error()) {
        Some(error) => Err(format!("{file}:{}: {}", error.place.line, error.message)),
        None => Ok(Level { agent, rules, lock: None }),
    }
}

fn cedar(input: &Given, expected: &Expected) -> Result<(), String> {
    let own = level(&input.agentfile, "Agentfile")?;
    let chain = input.bases.iter().map(|text| level(text, "base")).collect::<Result<Vec<_>, _>>()?;
    if let Some(wanted) = &expected.violations {
        let found: Vec<&str> = chain_violations(&own.agent, None, &chain).iter().map(|one| one.rule.code()).collect();
        let missing = wanted.iter().find(|code| !found.contains(&code.as_str()));
        if missing.is_some() || wanted.is_empty() != found.is_empty() {
            return Err(format!("violations are {found:?}, expected {wanted:?}"));
        }
    }
    let Some(request) = &input.request else { return Ok(()) };
    let Ok(request) = Request::parse(json::canonical(request).as_bytes()) else {
        return same("decision", expected.decision.as_ref(), &"refused".to_owned());
    };
    let (decided, _) = ceiling::decide(&own, &chain, &request);
    same("decision", expected.decision.as_ref(), &decided.decision.to_owned())?;
    same("lines", expected.lines.as_ref(), &decided.rules.iter().map(|said| said.line).collect())
}

/// A call of a tool, as `writ tool call` has it decided, and what it would run or send.
fn tools(input: &Given, expected: &Expected) -> Result<(), String> {
    let wanted = |name: &str| format!("the case has no `{name}`");
    let (name, description) = (input.tool.as_deref(), input.description.as_ref());
    let (name, description) = (name.ok_or_else(|| wanted("tool"))?, description.ok_or_else(|| wanted("description"))?);
    let called = tool::offline(&input.agentfile, name, description, &input.arguments.clone().unwrap_or_default())?;
    same("result", expected.result.as_ref(), &called.result.to_owned())?;
    same("pointer", expected.pointer.as_ref(), &called.pointer.unwrap_or_default())?;
    same("command", expected.command.as_ref(), &called.command.unwrap_or_default())?;
    same("url", expected.url.as_ref(), &called.url.unwrap_or_default())?;
    match (expected.line, called.line) {
        (Some(line), found) => same("line", Some(&line), &found.unwrap_or_default()),
        (None, _) => Ok(()),
    }
}

fn package(case: &Case, digests: &mut BTreeMap<String, Digest>) -> Result<(), String> {
    let room = tempfile::tempdir().map_err(|error| error.to_string())?;
    let (input, expected) = (&case.input, &case.expected);
    let built = packed(input, &room.path().join("one"));
    let (layout, descriptor) = match built {
        Ok(built) => built,
        Err(why) if expected.result.as_deref() == Some("refused") && expected.code.is_none() => {
            drop(why);
            return Ok(());
        }
        Err(why) => return Err(format!("it is not built: {why}")),
    };
    digests.insert(case.id.clone(), descriptor.digest);
    if expected.same == Some(true) {
        let (_, again) = packed(input, &room.path().join("two"))?;
        same("digest", Some(&descriptor.digest), &again.digest)?;
    }
    for (other, equal) in [(&expected.same_as, true), (&expected.not_same_as, false)] {
        let Some(other) = other else { continue };
        let known = digests.get(other).ok_or_else(|| format!("there is no case `{other}` before"))?;
        if (*known == descriptor.digest) != equal {
            return Err(format!("its digest is {}, that of `{other}` {known}", descriptor.digest));
        }
    }
    for (title, gone) in [(&input.flip, false), (&input.remove, true)] {
        if let Some(title) = title {
            damage(&layout, &descriptor, title, gone)?;
        }
    }
    let checked = check(&layout, &descriptor);
    let result = if checked.is_ok() { "ok" } else { "refused" };
    same("result", expected.result.as_ref(), &result.to_owned())?;
    let code = checked.err().map_or_else(String::new, |error| error.code().to_owned());
    same("code", expected.code.as_ref(), &code)
}

/// Builds a package into a layout of its own, from files in a folder of their own.
fn packed(input: &Given, room: &Path) -> Result<(Layout, Descriptor), String> {
    let told = |error: &dyn std::fmt::Display| error.to_string();
    let root = room.join("agent");
    for (path, text) in &input.files {
        let to = root.join(path);
        fs::create_dir_all(to.parent().unwrap_or(&root)).map_err(|error| told(&error))?;
        fs::write(to, text).map_err(|error| told(&error))?;
    }
    let linted = lint(input.agentfile.as_bytes(), "Agentfile", &Options::default());
    let lock = resolve(&linted.agent, &linted.rules, &Here::at(&root)).map_err(|found| {
        let first = found.into_iter().next();
        first.map_or_else(String::new, |one| one.message)
    })?;
    let labels = Labels { version: None, licenses: None, source: None, revision: None, created: None };
    let sources: Vec<_> = input.source.iter().map(Into::into).collect();
    let input = Input { root: &root, linted: &linted, lock: &lock, sources: &sources, known: &[], labels: &labels };
    let layout = Layout::create(&room.join("layout")).map_err(|error| told(&error))?;
    let built = build(&layout, &input).map_err(|error| told(&error))?;
    Ok((layout, built.descriptor))
}

/// Changes one bit of a layer, or takes it away.
fn damage(layout: &Layout, descriptor: &Descriptor, title: &str, gone: bool) -> Result<(), String> {
    let manifest = writ_package::check::manifest(layout, descriptor).map_err(|error| error.to_string())?;
    let layer = manifest.layers.iter().find(|layer| layer.annotation(TITLE) == Some(title));
    let path = layout.path(layer.ok_or_else(|| format!("there is no layer `{title}`"))?.digest);
    if gone {
        return fs::remove_file(&path).map_err(|error| error.to_string());
    }
    let mut bytes = fs::read(&path).map_err(|error| error.to_string())?;
    if let Some(last) = bytes.last_mut() {
        *last ^= 1;
    }
    fs::write(&path, bytes).map_err(|error| error.to_string())
}
