//! The `AgentRC` schema: entities, actions, and the context of each.
//!
//! Owns what policies are type-checked against. Invariant: a context's members are required, so that a policy may use them without
//! asking for them first; where a request lacks one, a policy that uses it errs, and that denies (R5). Specification: §11.

use std::sync::LazyLock;

use cedar_policy::Schema;

/// The schema in Cedar's own language, as `writ agentfile schema` prints it.
pub const TEXT: &str = r#"namespace AgentRC {
  // Who asks: the agent, a caller, an agent that it delegates to.
  entity Agent in [Agent];
  entity Tool, Function, Skill, Credential, Memory, Server;
  // `api.x.com` is in `*.x.com`.
  entity Host in [Host];
  // `/workspace/src` is in `/workspace`.
  entity Path in [Path];

  // What is known of a call: the path, address and host that it is about, its input as JSON text.
  type Call = {
    caller: String, path: String, url: String, host: String, mode: String, input: String,
    count: Long, rate_bucket: String, rate_exceeded: Bool,
  };
  type Egress = {
    caller: String, host: String, url: String, scheme: String, port: Long, path: String, method: String,
    rate_bucket: String, rate_exceeded: Bool,
  };
  type Secret = { caller: String, host: String, url: String, inject: String };
  type File = { caller: String, path: String, mode: String };
  type State = { caller: String, mode: String, key: String };
  type Message = {
    caller: String, method: String, tool: String, url: String, host: String,
    rate_bucket: String, rate_exceeded: Bool,
  };
  type Delegation = { caller: String, depth: Long };

  action "tool.invoke" appliesTo { principal: Agent, resource: Tool, context: Call };
  action "function.invoke" appliesTo { principal: Agent, resource: Function, context: Call };
  action "skill.invoke" appliesTo { principal: Agent, resource: Skill, context: Call };
  action "cred.resolve" appliesTo { principal: Agent, resource: Credential, context: Secret };
  action "network.egress" appliesTo { principal: Agent, resource: Host, context: Egress };
  action "filesystem.read" appliesTo { principal: Agent, resource: Path, context: File };
  action "filesystem.write" appliesTo { principal: Agent, resource: Path, context: File };
  action "memory.read" appliesTo { principal: Agent, resource: Memory, context: State };
  action "memory.write" appliesTo { principal: Agent, resource: Memory, context: State };
  action "mcp.request" appliesTo { principal: Agent, resource: Server, context: Message };
  action "agent.delegate" appliesTo { principal: Agent, resource: Agent, context: Delegation };
}
"#;

/// An action: its name, the type of its resources, the members of its context.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Action {
    /// `tool.invoke`.
    pub name: &'static str,
    /// `Tool`.
    pub resource: &'static str,
    /// Its context's members and their types.
    pub context: &'static [(&'static str, Kind)],
}

/// The type of a context's member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Text.
    Text,
    /// A whole number.
    Number,
    /// True or false.
    Truth,
}

use Kind::{Number, Text, Truth};

const CALL: &[(&str, Kind)] = &[
    ("caller", Text),
    ("path", Text),
    ("url", Text),
    ("host", Text),
    ("mode", Text),
    ("input", Text),
    ("count", Number),
    ("rate_bucket", Text),
    ("rate_exceeded", Truth),
];
const EGRESS: &[(&str, Kind)] = &[
    ("caller", Text),
    ("host", Text),
    ("url", Text),
    ("scheme", Text),
    ("port", Number),
    ("path", Text),
    ("method", Text),
    ("rate_bucket", Text),
    ("rate_exceeded", Truth),
];
const SECRET: &[(&str, Kind)] = &[("caller", Text), ("host", Text), ("url", Text), ("inject", Text)];
const FILE: &[(&str, Kind)] = &[("caller", Text), ("path", Text), ("mode", Text)];
const STATE: &[(&str, Kind)] = &[("caller", Text), ("mode", Text), ("key", Text)];
const MESSAGE: &[(&str, Kind)] = &[
    ("caller", Text),
    ("method", Text),
    ("tool", Text),
    ("url", Text),
    ("host", Text),
    ("rate_bucket", Text),
    ("rate_exceeded", Truth),
];
const DELEGATION: &[(&str, Kind)] = &[("caller", Text), ("depth", Number)];

const fn action(name: &'static str, resource: &'static str, context: &'static [(&'static str, Kind)]) -> Action {
    Action { name, resource, context }
}

/// Every action.
pub const ACTIONS: [Action; 11] = [
    action("tool.invoke", "Tool", CALL),
    action("function.invoke", "Function", CALL),
    action("skill.invoke", "Skill", CALL),
    action("cred.resolve", "Credential", SECRET),
    action("network.egress", "Host", EGRESS),
    action("filesystem.read", "Path", FILE),
    action("filesystem.write", "Path", FILE),
    action("memory.read", "Memory", STATE),
    action("memory.write", "Memory", STATE),
    action("mcp.request", "Server", MESSAGE),
    action("agent.delegate", "Agent", DELEGATION),
];

/// An action by its name.
pub fn known_action(name: &str) -> Option<&'static Action> {
    ACTIONS.iter().find(|action| action.name == name)
}

static SCHEMA: LazyLock<Option<Schema>> =
    LazyLock::new(|| Schema::from_cedarschema_str(TEXT).ok().map(|(schema, _warnings)| schema));

/// The schema. A test holds that the text is one.
pub fn schema() -> Option<&'static Schema> {
    SCHEMA.as_ref()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_is_a_schema_with_these_actions() {
        let schema = schema().expect("the schema parses");
        let mut actions: Vec<String> = schema.actions().map(|uid| uid.id().unescaped().to_owned()).collect();
        actions.sort();
        let mut known: Vec<String> = ACTIONS.iter().map(|action| action.name.to_owned()).collect();
        known.sort();
        assert_eq!(actions, known);
        for action in &ACTIONS {
            for (member, _) in action.context {
                assert!(TEXT.contains(&format!("{member}: ")), "{member}");
            }
        }
    }
}
