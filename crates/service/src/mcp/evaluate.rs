//! The three tools that evaluate.

use std::borrow::Cow;
use std::path::Path;

use writ_consequence::{NoProbe, Probe};
use writ_core::json::{self, Limits, Object, Value};
use writ_core::secret::hide;
use writ_engine::attest::subject::{self, Detail, Subject};
use writ_engine::decide::DiskProbe;

use super::arguments::{Refusal, text, text_of};
use super::signer::Instance;

/// Where the actions that are asked about would run.
#[derive(Clone, Debug)]
pub enum World {
    /// Here, by the user that this process is.
    Here {
        /// The user's home directory.
        home: Option<String>,
        /// The folder this process runs in, absolute.
        cwd: Option<String>,
    },
    /// Anywhere.
    Elsewhere,
}

/// Where a tool is asked, and how much its attestations show.
pub struct CallContext<'a> {
    /// Whose disk it is.
    pub world: &'a World,
    /// What this process is to attestations.
    pub instance: &'a Instance,
    /// How much is shown when the call does not say.
    pub detail: Detail,
}

/// A shell line.
pub fn shell(arguments: &Object, at: &CallContext<'_>) -> Result<Value, Refusal> {
    let line = text(arguments, "command")?;
    let cwd = match (text_of(arguments, "cwd")?, at.world) {
        (None, World::Here { cwd, .. }) => cwd.clone(),
        (Some(cwd), World::Here { cwd: Some(here), .. }) => {
            Some(Path::new(here).join(cwd).to_string_lossy().into_owned())
        }
        (Some(cwd), _) if !cwd.starts_with('/') => return Err(Refusal("`cwd` is not an absolute path".to_owned())),
        (cwd, _) => cwd.map(str::to_owned),
    };
    report(&Subject::Shell { line, cwd: cwd.as_deref() }, arguments, at)
}

/// A Terraform plan, as an object or as its text.
pub fn terraform(arguments: &Object, at: &CallContext<'_>) -> Result<Value, Refusal> {
    let plan = document(arguments, "plan")?.ok_or_else(|| Refusal("`plan` is missing".to_owned()))?;
    let hash = match arguments.get("plan") {
        Some(Value::String(text)) => subject::document_hash(text.as_bytes()),
        _ => subject::document_hash(json::canonical(&plan).as_bytes()),
    };
    let state = document(arguments, "state")?;
    report(&Subject::Terraform { plan: &plan, state: state.as_deref(), hash, plan_file: None }, arguments, at)
}

/// A call to a tool on a server.
pub fn mcp_call(arguments: &Object, at: &CallContext<'_>) -> Result<Value, Refusal> {
    let call = writ_consequence::mcp::Call {
        tool: text(arguments, "tool")?,
        server: text_of(arguments, "server")?,
        arguments: arguments.get("arguments").unwrap_or(&Value::Null),
        annotations: None,
    };
    let cwd = if let World::Here { cwd, .. } = at.world { cwd.as_deref() } else { None };
    report(&Subject::Mcp { call, cwd }, arguments, at)
}

/// A document, as an object or as its text.
fn document<'a>(arguments: &'a Object, name: &str) -> Result<Option<Cow<'a, Value>>, Refusal> {
    match arguments.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => match json::parse_with(text.as_bytes(), Limits::FOREIGN) {
            Ok(document) => Ok(Some(Cow::Owned(document))),
            Err(error) => Err(Refusal(hide(&format!("`{name}` is no JSON document: {error}")))),
        },
        Some(document) => Ok(Some(Cow::Borrowed(document))),
    }
}

/// The report, its secrets hidden; with attestation on, never without one.
fn report(subject: &Subject<'_>, arguments: &Object, at: &CallContext<'_>) -> Result<Value, Refusal> {
    let detail = match arguments.get("hash_only") {
        None | Some(Value::Null | Value::Bool(false)) => at.detail,
        // A caller can only ask for less.
        Some(Value::Bool(true)) => Detail::HashOnly,
        Some(other) => return Err(Refusal(format!("`hash_only` is of type {}, not a boolean", other.kind()))),
    };
    let home = text_of(arguments, "home")?.filter(|home| home.starts_with('/'));
    let (home, probe): (_, Box<dyn Probe>) = match at.world {
        World::Here { home: own, .. } => (own.as_deref().or(home), Box::new(DiskProbe::default())),
        World::Elsewhere => (home, Box::new(NoProbe)),
    };
    let report = subject.evaluate(home, probe.as_ref()).map_err(|error| Refusal(hide(&error.to_string())))?;
    let output = subject.output(&report, detail);
    match at.instance {
        Instance::Here { signer, attests: true } => signer
            .attest(subject.attested(detail), output)
            .map_err(|error| Refusal(format!("no attestation could be made, so there is no report: {error}"))),
        Instance::Here { attests: false, .. } | Instance::None | Instance::Broken(_) => Ok(output),
    }
}

#[cfg(test)]
mod tests {
    use writ_evidence::attestation::split_uri;

    use super::*;

    /// The report of a shell line, from an instance that attests.
    fn asked(instance: &Instance, detail: Detail, line: &str, hash_only: Option<bool>) -> Value {
        let mut arguments = Object::new();
        arguments.push("command", Value::from(line));
        if let Some(hash_only) = hash_only {
            arguments.push("hash_only", Value::Bool(hash_only));
        }
        shell(&arguments, &CallContext { world: &World::Elsewhere, instance, detail }).unwrap()
    }

    #[test]
    fn the_embedded_copy_is_the_kept_one() {
        let state = tempfile::tempdir().unwrap();
        let instance = Instance::open(state.path(), None, true, None).unwrap();
        let report = asked(&instance, Detail::Hidden, "rm -rf /srv/\u{e9}", None);
        let embedded = report.get("attestation").unwrap();
        let (_, id) = split_uri(embedded.get("attestation_uri").and_then(Value::as_str).unwrap()).unwrap();
        let Instance::Here { signer, .. } = &instance else { unreachable!() };
        assert_eq!(signer.find(id).unwrap().unwrap(), json::canonical(embedded));
    }

    #[test]
    fn a_caller_can_ask_for_digests_alone_and_not_for_more() {
        let state = tempfile::tempdir().unwrap();
        let instance = Instance::open(state.path(), None, true, None).unwrap();
        for (detail, hash_only, shown) in [
            (Detail::Hidden, None, true),
            (Detail::HashOnly, None, false),
            (Detail::Hidden, Some(true), false),
            (Detail::HashOnly, Some(false), false),
        ] {
            let report = json::compact(&asked(&instance, detail, "rm -rf /srv/hunter2", hash_only));
            assert_eq!(report.contains("hunter2"), shown, "{detail:?} {hash_only:?}");
        }
    }
}
