//! The names of the directives: which class each is of, how often it may stand, how it is written.
//!
//! Owns the table that parsing, completion, hover and the pages are made from. Reads no file. Invariant: each directive of §9 is in
//! it once.

use serde::Serialize;

/// Which part of the specification a directive belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Class {
    /// Every implementation acts on it.
    Core,
    /// A profile of its own.
    Optional,
    /// Where and how it runs: stays out of the package's digest (R63).
    Placement,
    /// May change.
    Experimental,
}

/// A directive's line in the table.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Known {
    /// Its name.
    pub name: &'static str,
    /// Its class.
    pub class: Class,
    /// Whether it may stand once alone.
    pub single: bool,
    /// How it is written.
    pub usage: &'static str,
    /// What it declares.
    pub about: &'static str,
}

const fn row(name: &'static str, class: Class, single: bool, usage: &'static str, about: &'static str) -> Known {
    Known { name, class, single, usage, about }
}

use Class::{Core, Experimental, Optional, Placement};

/// Every directive, in the order of §9.
pub const DIRECTIVES: [Known; 32] = [
    row("AGENT", Core, true, "AGENT <name>", "the agent's name, stable across versions"),
    row(
        "FROM",
        Core,
        true,
        "FROM <oci-reference>|scratch",
        "the package or image it is built on; a package is a ceiling",
    ),
    row("SHELL", Optional, true, "SHELL <name>[:<variant>][@<version>]", "the framework that its entry point expects"),
    row("CMD", Core, true, "CMD <word>…", "the command that starts it"),
    row("TOOL", Core, false, "TOOL <namespace>:<name>", "a tool it may ask for; a policy has to permit it, too"),
    row(
        "TOOLSET",
        Optional,
        false,
        "TOOLSET <namespace>:<name>|registry://…@sha256:…",
        "several tools, resolved by the lock",
    ),
    row("FUNCTION", Optional, false, "FUNCTION <path>:<symbol>|<name>", "a typed function it may ask for"),
    row("SKILL", Optional, false, "SKILL <name>|<path>|<oci-reference>", "a skill: a folder with a SKILL.md"),
    row("SERVER", Optional, false, "SERVER <name> <url>", "a server that tools are on"),
    row(
        "MCP",
        Optional,
        false,
        "MCP <name>|registry://…@<version>",
        "an MCP server it depends on; grants nothing by itself",
    ),
    row("URL", Core, false, "URL <http-or-https-url>", "a host that it asks to reach"),
    row(
        "CRED",
        Core,
        false,
        "CRED <name> env:<VAR>|vault://<path>#<key>|keyring:<key> host:<host>… [inject:header|query]",
        "a secret, by its source and the hosts it may be sent to; never its value",
    ),
    row("BIND", Placement, false, "BIND <source> <target> copy|direct|ro|rw", "a path of the host in the environment"),
    row("MOUNT", Core, false, "MOUNT <absolute-path> ro|rw", "a path it sees, and whether it may write there"),
    row("PLUGIN", Placement, false, "PLUGIN <name>", "a capability asked of the runner"),
    row("POLICY", Core, false, "POLICY\n…\nEND", "Cedar policies"),
    row("ALLOW", Optional, false, "ALLOW invoke <tool>", "short for a permit of `tool.invoke`"),
    row("DENY", Optional, false, "DENY invoke <tool>", "short for a forbid of `tool.invoke`; wins over every permit"),
    row("RATELIMIT", Optional, false, "RATELIMIT <tool> <count>/sec|min|hour|day", "at most so many calls of a tool"),
    row("AUDIT", Core, true, "AUDIT off|basic|all|compliance", "what has to be recorded"),
    row("TIMEOUT", Optional, true, "TIMEOUT <seconds>", "longest run"),
    row(
        "LIMIT",
        Optional,
        false,
        "LIMIT <name> <count>[/sec|min|hour|day]",
        "a named limit: tool_calls, max_output, …",
    ),
    row("SLICE", Placement, true, "SLICE <key>=<value>…", "resources asked for: cpu=2 mem=2048"),
    row("IMAGE", Placement, true, "IMAGE <oci-reference>", "the image a runner may use"),
    row("ISOLATION", Placement, true, "ISOLATION local|container|microvm|ssh", "how it is kept apart"),
    row("BROKER", Placement, true, "BROKER vault|local", "who resolves secrets"),
    row("BACKEND", Placement, true, "BACKEND <uri>", "a remote end that runs it"),
    row("TRACE", Optional, true, "TRACE on|<otlp-url>", "where traces go"),
    row(
        "MEMORY",
        Experimental,
        false,
        "MEMORY <name> <schema-path> schema:<Type> mode:ro|rw|append",
        "a state the agent keeps",
    ),
    row("OPTIMIZER", Experimental, false, "OPTIMIZER <name>", "an optimizer; never changes what is allowed"),
    row(
        "HEALTHCHECK",
        Optional,
        true,
        "HEALTHCHECK [--interval=30s] [--timeout=5s] CMD <word>…",
        "a probe that tells whether it is well",
    ),
    row("SOP", Optional, false, "SOP <path|oci-reference>\nSOP <name>\n…\nEND", "instructions, never authority"),
];

/// A directive by its name.
pub fn known(name: &str) -> Option<&'static Known> {
    DIRECTIVES.iter().find(|known| known.name == name)
}
