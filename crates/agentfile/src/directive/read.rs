//! The words of a line → a [`Directive`].
//!
//! Owns the arity and the words of each directive that stands on one line. Refuses a line that is not whole; opens no block. Invariant:
//! what it returns is checked word by word, and what is wrong is told at the word.

use super::argument::{
    Bad, SECRET_HELP, address, bundle, count, cred_host, duration, is_reference, path, rate, secret_in, shown, source,
    unit,
};
use super::{Audit, Base, BindMode, Cred, Directive, Function, Inject, Mcp, Mode, Shell, Sop, Toolset, known};
use crate::diagnostic::Diagnostic;
use crate::lines::Token;
use crate::reference::{OciRef, ToolRef, absolute_path, is_digest, is_name};

/// What is wrong, and with which word; without one, with the whole line.
type Failure<'a> = (Option<&'a Token>, Bad);

trait At<'a, T> {
    fn at(self, token: &'a Token) -> Result<T, Failure<'a>>;
}

impl<'a, T> At<'a, T> for Result<T, Bad> {
    fn at(self, token: &'a Token) -> Result<T, Failure<'a>> {
        self.map_err(|bad| (Some(token), bad))
    }
}

/// Reads a line whose first word is `name`. `POLICY` and the block form of `SOP` are the caller's.
pub(crate) fn read(name: &Token, words: &[Token]) -> Result<Directive, Diagnostic> {
    directive(&name.text, words).map_err(|(token, Bad(code, message, help))| {
        let token = token.unwrap_or(name);
        let message = if token == name && !message.contains(&name.text) {
            format!("`{}`: {message}", name.text)
        } else {
            message
        };
        Diagnostic::error(code, token.place, message, help)
    })
}

fn directive<'a>(name: &str, words: &'a [Token]) -> Result<Directive, Failure<'a>> {
    match name {
        "AGENT" => one(name, words, agent),
        "FROM" => one(name, words, from),
        "SHELL" => one(name, words, shell),
        "CMD" => command(name, words).map(Directive::Cmd),
        "TOOL" => one(name, words, |text| tool(text).map(Directive::Tool)),
        "TOOLSET" => one(name, words, toolset),
        "FUNCTION" => one(name, words, function),
        "SKILL" => one(name, words, |text| bundle(text).map(Directive::Skill)),
        "SERVER" => server(name, words),
        "MCP" => one(name, words, mcp),
        "URL" => one(name, words, |text| address(text).map(Directive::Url)),
        "CRED" => cred(name, words),
        "BIND" => bind(name, words),
        "MOUNT" => mount(name, words),
        "PLUGIN" => one(name, words, |text| plain(text).map(Directive::Plugin)),
        "BROKER" => one(name, words, |text| choice(text, &["vault", "local"]).map(Directive::Broker)),
        "ALLOW" => invoke(name, words).map(Directive::Allow),
        "DENY" => invoke(name, words).map(Directive::Deny),
        "RATELIMIT" => {
            let [tool, each] = two(name, words)?;
            Ok(Directive::RateLimit { tool: tool.text.clone(), rate: rate(&each.text).at(each)? })
        }
        "LIMIT" => limit(name, words),
        "TIMEOUT" => one(name, words, |text| {
            let bad = || {
                Bad::new(
                    "bad-number",
                    format!("`{}` is no number of seconds", shown(text)),
                    "a whole number of seconds without a unit: `TIMEOUT 30`",
                )
            };
            count(text).filter(|seconds| *seconds > 0).map(Directive::Timeout).ok_or_else(bad)
        }),
        "SLICE" => slice(name, words),
        "AUDIT" => one(name, words, audit),
        "TRACE" => one(name, words, trace),
        "IMAGE" => one(name, words, |text| reference(text).map(Directive::Image)),
        "BACKEND" => one(name, words, backend),
        "ISOLATION" => {
            one(name, words, |text| choice(text, &["local", "container", "microvm", "ssh"]).map(Directive::Isolation))
        }
        "OPTIMIZER" => one(name, words, |text| plain(text).map(Directive::Optimizer)),
        "MEMORY" => memory(name, words),
        "HEALTHCHECK" => healthcheck(name, words),
        "SOP" => one(name, words, |text| bundle(text).map(|bundle| Directive::Sop(Sop::Reference { bundle }))),
        other => Err((
            None,
            Bad::new("unknown-directive", format!("unknown directive `{other}`"), "see `spec/agentfile.md`"),
        )),
    }
}

/// Whether the word behind `SOP` names a file or a reference rather than opening a block.
pub(crate) fn sop_is_reference(text: &str) -> bool {
    is_reference(text)
}

fn arity<'a>(name: &str) -> Failure<'a> {
    let usage = known(name).map_or(name, |known| known.usage);
    (None, Bad::new("wrong-arity", format!("wrong number of words behind `{name}`"), format!("write `{usage}`")))
}

fn one<'a>(
    name: &str,
    words: &'a [Token],
    read: impl Fn(&str) -> Result<Directive, Bad>,
) -> Result<Directive, Failure<'a>> {
    let [word] = words else { return Err(too_many(name, words, 1)) };
    read(&word.text).at(word)
}

fn two<'a>(name: &str, words: &'a [Token]) -> Result<[&'a Token; 2], Failure<'a>> {
    match words {
        [first, second] => Ok([first, second]),
        _ => Err(too_many(name, words, 2)),
    }
}

/// The first word too many, or the line where words are missing.
fn too_many<'a>(name: &str, words: &'a [Token], most: usize) -> Failure<'a> {
    let (_, bad) = arity(name);
    (words.get(most), bad)
}

fn plain(text: &str) -> Result<String, Bad> {
    let bad = || Bad::new("bad-name", format!("`{}` is no name", shown(text)), "letters, digits, `_`, `.`, `-`");
    if is_name(text) { Ok(text.to_owned()) } else { Err(bad()) }
}

fn choice(text: &str, words: &[&str]) -> Result<String, Bad> {
    let bad = || {
        Bad::new(
            "bad-mode",
            format!("`{}` is none of the words that may stand here", shown(text)),
            format!("one of `{}`", words.join("`, `")),
        )
    };
    if words.contains(&text) { Ok(text.to_owned()) } else { Err(bad()) }
}

fn agent(text: &str) -> Result<Directive, Bad> {
    plain(text).map(Directive::Agent)
}

fn reference(text: &str) -> Result<OciRef, Bad> {
    OciRef::parse(text).map_err(|why| {
        Bad::new(
            "bad-reference",
            format!("`{}` is no reference: {why}", shown(text)),
            "`ghcr.io/org/name:1.2` or `…@sha256:<64 digits>`",
        )
    })
}

fn from(text: &str) -> Result<Directive, Bad> {
    Ok(Directive::From(if text == "scratch" { Base::Scratch } else { Base::Reference(reference(text)?) }))
}

fn shell(text: &str) -> Result<Directive, Bad> {
    let (rest, version) = text.split_once('@').map_or((text, None), |(rest, version)| (rest, Some(version)));
    let (name, variant) = rest.split_once(':').map_or((rest, None), |(name, variant)| (name, Some(variant)));
    let whole = is_name(name) && variant.is_none_or(is_name) && version.is_none_or(is_name);
    if !whole {
        return Err(Bad::new(
            "bad-name",
            format!("`{}` is no shell", shown(text)),
            "`strands`, `strands:shell@2026.5`",
        ));
    }
    Ok(Directive::Shell(Shell {
        name: name.to_owned(),
        variant: variant.map(str::to_owned),
        version: version.map(str::to_owned),
    }))
}

fn command<'a>(name: &str, words: &'a [Token]) -> Result<Vec<String>, Failure<'a>> {
    if words.is_empty() { Err(arity(name)) } else { Ok(words.iter().map(|word| word.text.clone()).collect()) }
}

fn tool(text: &str) -> Result<ToolRef, Bad> {
    ToolRef::parse(text).ok_or_else(|| {
        Bad::new(
            "bad-tool",
            format!("`{}` is no tool", shown(text)),
            "a namespace and a name: `utcp:file_read`, `mcp:github.get_issue`",
        )
    })
}

fn toolset(text: &str) -> Result<Directive, Bad> {
    let Some(rest) = text.strip_prefix("registry://") else {
        return tool(text).map(|tool| Directive::Toolset(Toolset::Named(tool)));
    };
    let help = "`registry://tools.example.com/name@sha256:<64 digits>`: a set of tools is pinned";
    let bad = || Bad::new("bad-reference", format!("`{}` is no pinned set of tools", shown(text)), help);
    let (path, digest) = rest.split_once('@').ok_or_else(bad)?;
    if path.is_empty() || !is_digest(digest) || OciRef::parse(path).is_err() {
        return Err(bad());
    }
    Ok(Directive::Toolset(Toolset::Registry { path: path.to_owned(), digest: digest.to_owned() }))
}

fn function(text: &str) -> Result<Directive, Bad> {
    let help = "`./functions/review.py:summarize_diff`, or a name";
    let bad = || Bad::new("bad-name", format!("`{}` is no function", shown(text)), help);
    Ok(Directive::Function(match text.rsplit_once(':') {
        Some((file, symbol)) if is_name(symbol) && !file.is_empty() => {
            Function::Local { path: path(file)?, symbol: symbol.to_owned() }
        }
        None if is_name(text) => Function::Named { name: text.to_owned() },
        _ => return Err(bad()),
    }))
}

fn server<'a>(name: &str, words: &'a [Token]) -> Result<Directive, Failure<'a>> {
    let [called, url] = two(name, words)?;
    Ok(Directive::Server { name: plain(&called.text).at(called)?, address: address(&url.text).at(url)? })
}

fn mcp(text: &str) -> Result<Directive, Bad> {
    let Some(rest) = text.strip_prefix("registry://") else {
        return plain(text).map(|name| Directive::Mcp(Mcp::Named { name }));
    };
    let bad = || {
        Bad::new(
            "bad-reference",
            format!("`{}` is no MCP server in a registry", shown(text)),
            "`registry://modelcontextprotocol/filesystem@1.0.2`",
        )
    };
    let (path, version) = rest.rsplit_once('@').ok_or_else(bad)?;
    let whole = !path.is_empty() && path.split('/').all(is_name) && is_name(version);
    if whole {
        Ok(Directive::Mcp(Mcp::Registry { path: path.to_owned(), version: version.to_owned() }))
    } else {
        Err(bad())
    }
}

fn cred<'a>(name: &str, words: &'a [Token]) -> Result<Directive, Failure<'a>> {
    let [called, from, rest @ ..] = words else { return Err(arity(name)) };
    let (called, source) = (plain(&called.text).at(called)?, source(&from.text).at(from)?);
    let (mut hosts, mut inject) = (Vec::new(), None);
    for word in rest {
        if let Some(host) = word.text.strip_prefix("host:") {
            let host = cred_host(host).at(word)?;
            if !hosts.contains(&host) {
                hosts.push(host);
            }
        } else if let Some(place) = word.text.strip_prefix("inject:") {
            let bad = || {
                Bad::new(
                    "bad-mode",
                    format!("`inject:{}` is not known", shown(place)),
                    "`inject:header` or `inject:query`",
                )
            };
            let place = match place {
                "header" => Ok(Inject::Header),
                "query" => Ok(Inject::Query),
                _ => Err(bad()),
            };
            if inject.replace(place.at(word)?).is_some() {
                return Err((
                    Some(word),
                    Bad::new("wrong-arity", "a second `inject:`", "once, or not at all: a header is meant then"),
                ));
            }
        } else {
            let help = "behind the source stand `host:<host>` and `inject:header|query`";
            return Err((
                Some(word),
                Bad::new("wrong-arity", format!("`{}` is not known here", shown(&word.text)), help),
            ));
        }
    }
    Ok(Directive::Cred(Cred { name: called, source, hosts, inject: inject.unwrap_or(Inject::Header) }))
}

fn place(text: &str) -> Result<String, Bad> {
    absolute_path(text)
        .map_err(|why| Bad::new("bad-path", format!("`{}`: {why}", shown(text)), "an absolute path: `/workspace`"))
}

fn bind<'a>(name: &str, words: &'a [Token]) -> Result<Directive, Failure<'a>> {
    let (from, to, mode) = match words {
        [from, to] => (from, to, None),
        [from, to, mode] => (from, to, Some(mode)),
        _ => return Err(too_many(name, words, 3)),
    };
    let source = if from.text.starts_with('/') { place(&from.text) } else { path(&from.text) };
    let mode = mode.map(|word| {
        let mode = match word.text.as_str() {
            "copy" => Ok(BindMode::Copy),
            "direct" => Ok(BindMode::Direct),
            "ro" => Ok(BindMode::Ro),
            "rw" => Ok(BindMode::Rw),
            other => {
                Err(Bad::new("bad-mode", format!("`{}` is no mode", shown(other)), "`copy`, `direct`, `ro` or `rw`"))
            }
        };
        mode.at(word)
    });
    Ok(Directive::Bind { source: source.at(from)?, target: place(&to.text).at(to)?, mode: mode.transpose()? })
}

fn mount<'a>(name: &str, words: &'a [Token]) -> Result<Directive, Failure<'a>> {
    let [at, word] = two(name, words)?;
    let mode = match word.text.as_str() {
        "ro" => Ok(Mode::Ro),
        "rw" => Ok(Mode::Rw),
        other => Err(Bad::new("bad-mode", format!("`{}` is no mode", shown(other)), "`ro` or `rw`")),
    };
    Ok(Directive::Mount { path: place(&at.text).at(at)?, mode: mode.at(word)? })
}

fn invoke<'a>(name: &str, words: &'a [Token]) -> Result<String, Failure<'a>> {
    let [verb, tool] = two(name, words)?;
    choice(&verb.text, &["invoke"]).at(verb)?;
    Ok(tool.text.clone())
}

fn limit<'a>(name: &str, words: &'a [Token]) -> Result<Directive, Failure<'a>> {
    let [called, amount] = two(name, words)?;
    let bad = || {
        Bad::new(
            "bad-number",
            format!("`{}` is no limit", shown(&amount.text)),
            "a whole number, or a rate: `100`, `50/min`",
        )
    };
    let read = match amount.text.split_once('/') {
        Some((number, time)) => count(number).zip(unit(time)).map(|(count, unit)| (count, Some(unit))),
        None => count(&amount.text).map(|count| (count, None)),
    };
    let (count, unit) = read.ok_or_else(bad).at(amount)?;
    Ok(Directive::Limit { name: plain(&called.text).at(called)?, count, unit })
}

fn slice<'a>(name: &str, words: &'a [Token]) -> Result<Directive, Failure<'a>> {
    let mut pairs: Vec<(String, String)> = Vec::new();
    for word in words {
        let whole = |(key, value): &(&str, &str)| is_name(key) && is_name(value);
        let bad =
            || Bad::new("bad-pair", format!("`{}` is no pair", shown(&word.text)), "`cpu=2 mem=2048`, each key once");
        let pair =
            word.text.split_once('=').filter(whole).filter(|(key, _)| pairs.iter().all(|(known, _)| known != key));
        let (key, value) = pair.ok_or_else(bad).at(word)?;
        pairs.push((key.to_owned(), value.to_owned()));
    }
    if pairs.is_empty() { Err(arity(name)) } else { Ok(Directive::Slice(pairs)) }
}

fn audit(text: &str) -> Result<Directive, Bad> {
    let word =
        [Audit::Off, Audit::Basic, Audit::All, Audit::Compliance].into_iter().find(|audit| audit.as_str() == text);
    let bad =
        || Bad::new("bad-mode", format!("`{}` is no audit", shown(text)), "`off`, `basic`, `all` or `compliance`");
    word.map(Directive::Audit).ok_or_else(bad)
}

fn uri(text: &str, user_is_secret: bool) -> Result<url::Url, Bad> {
    let bad = || {
        Bad::new(
            "bad-url",
            format!("`{}` is no address", shown(text)),
            "an address with scheme and host: `otlp://collector.internal:4317`",
        )
    };
    let url = url::Url::parse(text).map_err(|_error| bad())?;
    if url.host_str().is_none_or(str::is_empty) {
        return Err(bad());
    }
    match secret_in(&url, user_is_secret) {
        Some(place) => Err(Bad::new("plaintext-secret", format!("the address holds a secret {place}"), SECRET_HELP)),
        None => Ok(url),
    }
}

fn trace(text: &str) -> Result<Directive, Bad> {
    if text == "on" {
        return Ok(Directive::Trace(None));
    }
    if !["otlp://", "otlps://", "http://", "https://"].iter().any(|scheme| text.starts_with(scheme)) {
        return Err(Bad::new(
            "bad-mode",
            format!("`{}` is no place for traces", shown(text)),
            "`on`, or an OTLP address: `otlp://collector.internal:4317`",
        ));
    }
    uri(text, true).map(|_url| Directive::Trace(Some(text.to_owned())))
}

fn backend(text: &str) -> Result<Directive, Bad> {
    uri(text, false).map(|_url| Directive::Backend(text.to_owned()))
}

fn memory<'a>(name: &str, words: &'a [Token]) -> Result<Directive, Failure<'a>> {
    let [called, file, schema, mode] = words else { return Err(too_many(name, words, 4)) };
    let typed = schema.text.strip_prefix("schema:").filter(|word| is_name(word));
    let bad = || Bad::new("bad-name", format!("`{}` names no type", shown(&schema.text)), "`schema:<Type>`");
    let typed = typed.ok_or_else(bad).at(schema)?;
    let bad =
        || Bad::new("bad-mode", format!("`{}` is no mode", shown(&mode.text)), "`mode:ro`, `mode:rw` or `mode:append`");
    let word = mode.text.strip_prefix("mode:").filter(|word| ["ro", "rw", "append"].contains(word));
    Ok(Directive::Memory {
        name: plain(&called.text).at(called)?,
        schema_path: path(&file.text).at(file)?,
        schema: typed.to_owned(),
        mode: word.ok_or_else(bad).at(mode)?.to_owned(),
    })
}

fn healthcheck<'a>(name: &str, words: &'a [Token]) -> Result<Directive, Failure<'a>> {
    let (mut interval, mut timeout) = (None, None);
    for (at, word) in words.iter().enumerate() {
        if word.text == "CMD" {
            let command = command(name, words.get(at + 1..).unwrap_or_default())?;
            return Ok(Directive::Healthcheck { interval, timeout, command });
        }
        let (slot, value) = match word.text.split_once('=') {
            Some(("--interval", value)) => (&mut interval, value),
            Some(("--timeout", value)) => (&mut timeout, value),
            _ => {
                let help = "`--interval=30s`, `--timeout=5s`, then `CMD` and the probe";
                return Err((
                    Some(word),
                    Bad::new("bad-option", format!("`{}` is not known here", shown(&word.text)), help),
                ));
            }
        };
        let bad = || Bad::new("bad-number", format!("`{}` is no duration", shown(value)), "`30s`, `500ms`, `5m`");
        if slot.replace(duration(value).ok_or_else(bad).at(word)?).is_some() {
            return Err((Some(word), Bad::new("bad-option", "an option twice", "once")));
        }
    }
    Err(arity(name))
}

#[cfg(test)]
mod tests {
    use super::super::{Bundle, DIRECTIVES};
    use super::*;
    use crate::lines::lines;

    #[test]
    fn every_directive_of_the_table_is_read() {
        for known in &DIRECTIVES {
            let line = format!("{} ", known.name);
            let tokens = lines(&line).next().unwrap().tokens();
            let read = read(&tokens[0], &[]);
            assert_ne!(
                read.unwrap_err().code,
                if known.name == "POLICY" { "" } else { "unknown-directive" },
                "{}",
                known.name
            );
        }
    }

    #[test]
    fn unused_bundle_names() {
        assert_eq!(
            bundle("./skills/incident-sop").ok().unwrap(),
            Bundle::Local { path: "skills/incident-sop".to_owned() }
        );
        assert!(matches!(bundle("ghcr.io/org/skills/pii-review:1.2").ok().unwrap(), Bundle::Registry(_)));
        assert!(bundle("../x").is_err() && bundle("https://x/y").is_err());
    }
}
