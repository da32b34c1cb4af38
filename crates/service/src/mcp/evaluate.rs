//! The three tools that evaluate.

use std::path::Path;

use writ_consequence::{Blind, Eyes};
use writ_core::json::{self, Limits, Object, Value};
use writ_core::secret::hide;
use writ_engine::Sight;
use writ_engine::matter::{self, Detail, Subject};

use super::desk::Instance;
use super::server::{Refusal, World, text, text_of};

/// A shell line.
pub fn shell(arguments: &Object, world: &World, instance: &Instance) -> Result<Value, Refusal> {
    let line = text(arguments, "command")?;
    let cwd = match (text_of(arguments, "cwd")?, world) {
        (None, World::Here { cwd, .. }) => cwd.clone(),
        (Some(cwd), World::Here { cwd: Some(here), .. }) => {
            Some(Path::new(here).join(cwd).to_string_lossy().into_owned())
        }
        (Some(cwd), _) if !cwd.starts_with('/') => return Err(Refusal("`cwd` is not an absolute path".to_owned())),
        (cwd, _) => cwd.map(str::to_owned),
    };
    let home = text_of(arguments, "home")?.filter(|home| home.starts_with('/'));
    judge(&Subject::Shell { line, cwd: cwd.as_deref() }, home, world, instance)
}

/// A Terraform plan, as an object or as its text.
pub fn terraform(arguments: &Object, world: &World, instance: &Instance) -> Result<Value, Refusal> {
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
    judge(&Subject::Terraform { plan: &plan, state: state.as_ref(), hash, plan_file: None }, None, world, instance)
}

/// A call to a tool on a server.
pub fn mcp_call(arguments: &Object, world: &World, instance: &Instance) -> Result<Value, Refusal> {
    let call = writ_consequence::mcp::Call {
        tool: text(arguments, "tool")?,
        server: text_of(arguments, "server")?,
        arguments: arguments.get("arguments").unwrap_or(&Value::Null),
        annotations: None,
    };
    let cwd = if let World::Here { cwd, .. } = world { cwd.as_deref() } else { None };
    judge(&Subject::Mcp { call, cwd }, None, world, instance)
}

fn document(name: &str, text: &str) -> Result<Value, Refusal> {
    json::parse_with(text.as_bytes(), Limits::FOREIGN)
        .map_err(|error| Refusal(hide(&format!("`{name}` is no JSON document: {error}"))))
}

/// The report, its secrets hidden; with attestation on, never without one.
fn judge(subject: &Subject<'_>, home: Option<&str>, world: &World, instance: &Instance) -> Result<Value, Refusal> {
    let (home, eyes): (_, Box<dyn Eyes>) = match world {
        World::Here { home: own, .. } => (own.as_deref().or(home), Box::new(Sight::default())),
        World::Elsewhere => (home, Box::new(Blind)),
    };
    let report = subject.evaluate(home, eyes.as_ref()).map_err(|error| Refusal(hide(&error.to_string())))?;
    let output = matter::output(&report, Detail::Hidden);
    match instance {
        Instance::Here { desk, attests: true } => desk
            .attest(subject.attested(Detail::Hidden), output)
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
        let report = shell(&arguments, &World::Elsewhere, &instance).unwrap();
        let embedded = report.get("attestation").unwrap();
        let (_, id) = split_uri(embedded.get("attestation_uri").and_then(Value::as_str).unwrap()).unwrap();
        let Instance::Here { desk, .. } = &instance else { unreachable!() };
        assert_eq!(desk.find(id).unwrap().unwrap(), json::canonical(embedded));
    }
}
