//! The three tools that evaluate.

use std::path::Path;

use writ_consequence::{Blind, Eyes};
use writ_core::json::{self, Limits, Object, Value};
use writ_core::secret::hide;
use writ_engine::Sight;
use writ_engine::matter::{self, Detail, Subject};

use super::server::{Refusal, World, text, text_of};
use super::signer::Instance;

/// Where a tool is asked, and how much its attestations show.
pub struct At<'a> {
    /// Whose disk it is.
    pub world: &'a World,
    /// What this process is to attestations.
    pub instance: &'a Instance,
    /// How much is shown when the call does not say.
    pub detail: Detail,
}

impl At<'_> {
    /// How much the attestation of a call shows. A caller can only ask for less.
    fn detail(&self, arguments: &Object) -> Result<Detail, Refusal> {
        match arguments.get("hash_only") {
            None | Some(Value::Null) => Ok(self.detail),
            Some(Value::Bool(only)) => Ok(if *only { Detail::HashOnly } else { self.detail }),
            Some(other) => Err(Refusal(format!("`hash_only` is of type {}, not a boolean", other.kind()))),
        }
    }
}

/// A shell line.
pub fn shell(arguments: &Object, at: &At<'_>) -> Result<Value, Refusal> {
    let line = text(arguments, "command")?;
    let cwd = match (text_of(arguments, "cwd")?, at.world) {
        (None, World::Here { cwd, .. }) => cwd.clone(),
        (Some(cwd), World::Here { cwd: Some(here), .. }) => {
            Some(Path::new(here).join(cwd).to_string_lossy().into_owned())
        }
        (Some(cwd), _) if !cwd.starts_with('/') => return Err(Refusal("`cwd` is not an absolute path".to_owned())),
        (cwd, _) => cwd.map(str::to_owned),
    };
    let home = text_of(arguments, "home")?.filter(|home| home.starts_with('/'));
    judge(&Subject::Shell { line, cwd: cwd.as_deref() }, home, at.detail(arguments)?, at)
}

/// A Terraform plan, as an object or as its text.
pub fn terraform(arguments: &Object, at: &At<'_>) -> Result<Value, Refusal> {
    let given = arguments.get("plan").ok_or_else(|| Refusal("`plan` is missing".to_owned()))?;
    let (plan, hash) = match given {
        Value::String(text) => (document("plan", text)?, matter::document_hash(text.as_bytes())),
        plan => (plan.clone(), matter::document_hash(json::canonical(plan).as_bytes())),
    };
    let state = match arguments.get("state") {
        None | Some(Value::Null) => None,
        Some(Value::String(text)) => Some(document("state", text)?),
        Some(state) => Some(state.clone()),
    };
    let detail = at.detail(arguments)?;
    judge(&Subject::Terraform { plan: &plan, state: state.as_ref(), hash, plan_file: None }, None, detail, at)
}

/// A call to a tool on a server.
pub fn mcp_call(arguments: &Object, at: &At<'_>) -> Result<Value, Refusal> {
    let call = writ_consequence::mcp::Call {
        tool: text(arguments, "tool")?,
        server: text_of(arguments, "server")?,
        arguments: arguments.get("arguments").unwrap_or(&Value::Null),
        annotations: None,
    };
    let cwd = if let World::Here { cwd, .. } = at.world { cwd.as_deref() } else { None };
    judge(&Subject::Mcp { call, cwd }, None, at.detail(arguments)?, at)
}

fn document(name: &str, text: &str) -> Result<Value, Refusal> {
    json::parse_with(text.as_bytes(), Limits::FOREIGN)
        .map_err(|error| Refusal(hide(&format!("`{name}` is no JSON document: {error}"))))
}

/// The report, its secrets hidden; with attestation on, never without one.
fn judge(subject: &Subject<'_>, home: Option<&str>, detail: Detail, at: &At<'_>) -> Result<Value, Refusal> {
    let (home, eyes): (_, Box<dyn Eyes>) = match at.world {
        World::Here { home: own, .. } => (own.as_deref().or(home), Box::new(Sight::default())),
        World::Elsewhere => (home, Box::new(Blind)),
    };
    let report = subject.evaluate(home, eyes.as_ref()).map_err(|error| Refusal(hide(&error.to_string())))?;
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

    #[test]
    fn the_embedded_copy_is_the_kept_one() {
        let state = tempfile::tempdir().unwrap();
        let instance = Instance::open(state.path(), None, true, None).unwrap();
        let mut arguments = Object::new();
        arguments.push("command", Value::from("rm -rf /srv/\u{e9}"));
        let at = At { world: &World::Elsewhere, instance: &instance, detail: Detail::Hidden };
        let report = shell(&arguments, &at).unwrap();
        let embedded = report.get("attestation").unwrap();
        let (_, id) = split_uri(embedded.get("attestation_uri").and_then(Value::as_str).unwrap()).unwrap();
        let Instance::Here { signer, .. } = &instance else { unreachable!() };
        assert_eq!(signer.find(id).unwrap().unwrap(), json::canonical(embedded));
    }

    #[test]
    fn a_caller_can_ask_for_digests_alone_and_not_for_more() {
        let state = tempfile::tempdir().unwrap();
        let instance = Instance::open(state.path(), None, true, None).unwrap();
        let mut arguments = Object::new();
        arguments.push("command", Value::from("rm -rf /srv/hunter2"));
        let told = |detail, arguments: &Object| {
            let at = At { world: &World::Elsewhere, instance: &instance, detail };
            json::compact(&shell(arguments, &at).unwrap())
        };
        assert!(told(Detail::Hidden, &arguments).contains("hunter2"));
        assert!(!told(Detail::HashOnly, &arguments).contains("hunter2"));
        arguments.push("hash_only", Value::Bool(true));
        assert!(!told(Detail::Hidden, &arguments).contains("hunter2"));
        let mut less = Object::new();
        less.push("command", Value::from("rm -rf /srv/hunter2"));
        less.push("hash_only", Value::Bool(false));
        assert!(!told(Detail::HashOnly, &less).contains("hunter2"));
    }
}
