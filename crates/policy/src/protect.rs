//! The circumstances of a decision, and what no policy can permit the agent to touch (R19).

use serde::{Deserialize, Serialize};
use writ_core::Timestamp;
use writ_shell::Access;

use crate::command::Candidate;
use crate::facts::{PathFact, PathKind};
use crate::glob::Glob;

/// Circumstances that are neither policy nor call.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Setting {
    /// The moment of the decision; the epoch in a setting that was read, until a row's moment is put in.
    #[serde(skip, default = "epoch")]
    pub now: Timestamp,
    /// The home directory, for `~`.
    pub home: Option<String>,
    /// Paths the agent may not change.
    pub protected: Vec<Protected>,
}

const fn epoch() -> Timestamp {
    Timestamp::from_millis(0)
}

impl Protected {
    /// Whether it is Writ's program. A copy under another name would do for the agent what only a human may.
    fn is_program(&self) -> bool {
        self.what == PROGRAM
    }

    /// Whether it is this path, or one above it.
    fn covers(&self, path: &str) -> bool {
        match self.path.split_once("/**/*") {
            Some((folder, ending)) => is_below(path, folder) && path.ends_with(ending),
            None => is_below(path, &self.path),
        }
    }
}

/// A path the agent may not change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Protected {
    /// Absolute; everything below it is protected too. One that ends in `/**/*.x` is each file of that ending below its folder.
    pub path: String,
    /// What it is, for the message.
    pub what: String,
    /// It may not be read either.
    pub secret: bool,
}

/// Names a policy is found under, in order (R10).
pub const POLICY_NAMES: [&str; 6] =
    [".aflock.signed", "policy.aflock.signed", ".aflock.json.signed", ".aflock", "policy.aflock", ".aflock.json"];

/// What Writ's own program is called among the protected paths.
pub const PROGRAM: &str = "Writ itself";

/// The rule's name in reasons.
pub const RULE: &str = "writ:self-protection";

impl Setting {
    /// The protected thing that a use of a path would touch.
    pub(crate) fn violated(&self, fact: &PathFact) -> Option<&Protected> {
        self.protected.iter().find(|protected| {
            let copied = protected.is_program() && fact.access == Access::Read && !fact.tree;
            let guarded = (copied || is_guarded(protected, fact.access)) && fact.kind != PathKind::Listing;
            let whole = fact.tree && fact.kind != PathKind::Into;
            let named = |path: &String| {
                protected.covers(path)
                    || (whole && is_below(&protected.path, path))
                    || is_policy_below(path, &protected.path)
                    || (protected.is_program() && is_program_name(path))
            };
            guarded && ([&fact.written, &fact.resolved].into_iter().any(named) || may_name(fact, &protected.path))
        })
    }

    /// The protected folders that a pattern may reach into.
    pub(crate) fn may_hold(&self, pattern: &Glob, access: Access) -> impl Iterator<Item = String> {
        let guarded = self.protected.iter().filter(move |protected| is_guarded(protected, access));
        let below = |protected: &&Protected| {
            Glob::below(&protected.path, "**").is_ok_and(|below| below.overlaps(pattern, false))
        };
        guarded.filter(below).map(|protected| protected.path.clone())
    }

    /// Whether a path that is not fully known may be a protected one. What the line makes may also lie below one.
    pub(crate) fn may_violate(&self, fact: &PathFact) -> bool {
        let made = fact.kind == PathKind::Any;
        self.protected.iter().filter(|protected| is_guarded(protected, fact.access)).any(|protected| {
            [&fact.written, &fact.resolved].into_iter().any(|pattern| {
                let Ok(pattern) = Glob::parse(pattern) else { return true };
                let own = Glob::plain(&protected.path);
                let below = made.then(|| Glob::below(&protected.path, "**").ok()).flatten();
                let above = fact.tree.then(|| pattern.and_below());
                let policy = protected.path.rsplit_once('/').filter(|(_, name)| POLICY_NAMES.contains(name));
                let named = policy.and_then(|(folder, name)| Glob::below(folder, &format!("**/{name}")).ok());
                own.overlaps(&pattern, false)
                    || below.is_some_and(|below| below.overlaps(&pattern, false))
                    || above.is_some_and(|above| own.overlaps(&above, false))
                    || named.is_some_and(|named| named.overlaps(&pattern, false))
            })
        })
    }

    /// The protected thing that lies below a folder.
    pub(crate) fn protected_below(&self, folder: &str) -> Option<&Protected> {
        self.protected.iter().find(|protected| is_below(&protected.path, folder))
    }
}

const fn is_guarded(protected: &Protected, access: Access) -> bool {
    match access {
        Access::Write => true,
        Access::Read | Access::Exec => protected.secret,
        Access::List => false,
    }
}

/// Whether a path is where a shell would find Writ: hooks name it without a folder.
fn is_program_name(path: &str) -> bool {
    let folder = path.strip_suffix("/writ");
    folder.is_some_and(|folder| matches!(folder.rsplit('/').next(), Some("bin" | "sbin" | ".bin")))
}

/// Whether a path has a protected policy's name, somewhere below where that one would be: sessions that start there would
/// obey it.
fn is_policy_below(path: &str, protected: &str) -> bool {
    let (Some((_, own)), Some((folder, name))) = (path.rsplit_once('/'), protected.rsplit_once('/')) else {
        return false;
    };
    own == name && POLICY_NAMES.contains(&name) && is_below(path, folder)
}

/// Whether a shell glob is made for a protected path or, for a tree, for a folder above it.
fn may_name(fact: &PathFact, protected: &str) -> bool {
    if !matches!(fact.kind, PathKind::Glob | PathKind::ExpandedGlob) {
        return false;
    }
    let Ok(word) = Glob::parse(&fact.written) else { return true };
    let depth = fact.written.split('/').filter(|part| !part.is_empty()).count();
    let parts: Vec<&str> = protected.split('/').filter(|part| !part.is_empty()).collect();
    let above = if fact.tree { parts.get(..depth) } else { None }.unwrap_or(&parts);
    Glob::plain(&above.join("/")).meets(&word, true)
}

/// Whether `path` is `folder` or lies in it.
pub fn is_below(path: &str, folder: &str) -> bool {
    let folder = folder.trim_end_matches('/');
    path.strip_prefix(folder).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// Programs and packages that are clients of their own, which need not load the hooks that bind this one.
const CLIENTS: [&str; 18] = [
    "aider-chat",
    "claude",
    "claude-code",
    "claude-agent-acp",
    "codex",
    "gemini",
    "gemini-cli",
    "copilot",
    "opencode",
    "opencode-ai",
    "qwen",
    "qwen-code",
    "cursor-agent",
    "amp",
    "crush",
    "droid",
    "goose",
    "aider",
];

/// Whether a program, or a package, is a client.
pub fn is_client(name: &str) -> bool {
    let name = name.split('@').find(|part| !part.is_empty()).unwrap_or_default();
    CLIENTS.contains(&name)
}

/// Whether a path leads to a client's own script.
fn is_client_script(path: &str) -> bool {
    let script = path.ends_with(".js") || path.ends_with(".mjs") || path.ends_with(".cjs") || !path.contains('.');
    let mut folders = path.split('/').rev().skip(1);
    script && path.contains('/') && folders.any(|folder| is_client(folder) && folder != "goose" && folder != "amp")
}

/// Whether a client only tells about itself.
fn only_informs(operands: &[Option<String>], flags: &[String]) -> bool {
    const FLAGS: [&str; 5] = ["--version", "--help", "-v", "-V", "-h"];
    let words: Vec<&str> = operands.iter().map(|word| word.as_deref().unwrap_or("…")).collect();
    let asks = !flags.is_empty() && flags.iter().all(|flag| FLAGS.contains(&flag.as_str()));
    let subcommand = matches!(
        words.as_slice(),
        ["help" | "version" | "doctor", ..]
            | ["mcp", "list" | "get", ..]
            | ["config", "list" | "get", ..]
            | ["plugin", "list", ..]
            | ["auth" | "login", "status", ..]
    );
    (asks && words.len() < 2)
        || (subcommand && flags.iter().all(|flag| FLAGS.contains(&flag.as_str()) || flag == "--json"))
}

/// Commands that only a human may run: those that change what binds the agent, and those that end the binding.
pub fn is_reserved(command: &Candidate) -> bool {
    is_reserved_as(command.program(), command)
}

/// The same for a program that is known to be another than its name says.
pub fn is_reserved_as(program: &str, command: &Candidate) -> bool {
    const OTHERS: [&str; 6] = ["writ", "node", "nodejs", "bun", "deno", "tsx"];
    if !OTHERS.contains(&program) && !is_client(program) {
        return false;
    }
    let operands: Vec<Option<String>> = command.operands().collect();
    match program {
        "writ" => {
            // The value of `--color` may stand in front of the subcommand.
            let mut words =
                operands.iter().skip_while(|word| matches!(word.as_deref(), Some("auto" | "always" | "never")));
            let mut next = || words.next().map_or(Some(""), Option::as_deref);
            // An option may stand in what is not known.
            let given = |signs: &[&str]| signs.iter().any(|sign| command.text().contains(sign));
            match next() {
                Some("policy") => {
                    !matches!(next(), Some("" | "check" | "show" | "verify" | "schema" | "test" | "diff"))
                }
                Some("keys") => !matches!(next(), Some("" | "list" | "registry")),
                // Which sessions a check before a push is about.
                Some("agentflow") => !matches!(next(), Some("" | "verify")),
                // What a session may use, and what that costs.
                Some("limits" | "prices") => !matches!(next(), Some("" | "show")),
                // What signs for the record.
                Some("token") => matches!(next(), Some("revoke") | None),
                Some("notary") => !matches!(next(), Some("" | "status")),
                Some("mcp") => match next() {
                    Some("pins") => !matches!(next(), Some("" | "list")),
                    // What a server runs that an agent starts by itself is a session of its own, which has read nothing, used nothing and
                    // is no sub-agent's.
                    Some("serve") => given(&["--guarded", "…"]),
                    Some("") => false,
                    // What a proxy lets through is on record as asked for by a client.
                    Some(_) | None => true,
                },
                // The first two take a protection away from those who rely on attestations, the others talk to a store.
                Some("attestation") => {
                    matches!(next(), Some("refresh" | "prune" | "push" | "fetch" | "search") | None)
                }
                // What a copy kept from the folder.
                Some("sandbox") => !matches!(next(), Some("" | "plan" | "test" | "diff" | "attack")),
                // What an agent has a program of its choice say of a plan is not attested.
                Some("evaluate") => {
                    let plan = operands.iter().any(|word| word.as_deref().is_none_or(|word| word == "terraform"));
                    plan && given(&["--attest", "…"])
                }
                // What an agent runs as a whole is held by a policy of its choice.
                Some("approve" | "deny" | "init" | "hook" | "run") | None => true,
                Some(_) => false,
            }
        }
        // Another client need not load the hooks that bind this one.
        name if is_client(name) => !only_informs(&operands, command.flags()),
        "node" | "nodejs" | "bun" | "deno" | "tsx" => {
            let script = operands.iter().position(|word| word.as_deref().is_some_and(is_client_script));
            script.is_some_and(|at| !only_informs(operands.get(at + 1..).unwrap_or_default(), command.flags()))
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use writ_shell::{Env, analyze};

    fn reserved(line: &str) -> bool {
        analyze(line, &Env::default()).commands.iter().any(|command| is_reserved(&Candidate::of(command)))
    }

    #[test]
    fn what_binds_the_agent_is_for_humans() {
        for line in [
            "writ approve 3f9a",
            "writ deny 3f9a --for session",
            "/usr/local/bin/writ policy accept",
            "writ --color never approve x",
            "writ --color=never policy sign .aflock --key k",
            "writ $X",
            "writ policy $X",
            "writ keys new",
            "writ run --policy mine.aflock -- git push",
            "writ run -- make",
            "writ run --copy -- make",
            "writ policy add --last --yes",
            "writ policy learn -o .aflock",
            "writ limits raise maxSpendUSD 10",
            "writ agentflow start --policy .aflock",
            "writ agentflow $X",
            "writ prices set m --input 0 --output 0",
            "writ prices $X",
            "writ notary stop",
            "writ notary run",
            "writ sandbox apply",
            "writ sandbox --color always apply --yes",
            "writ sandbox $X",
            "writ keys rotate",
            "writ attestation refresh https://writ.example",
            "writ attestation prune --ended 1s",
            "writ attestation $X",
            "writ attestation push --to https://store.example",
            "setsid writ attestation fetch 2cf8 --from https://store.example -o x",
            "writ attestation search 9f86 --at https://store.example",
            "writ evaluate terraform tfplan --attest --expires 7d",
            "CLAUDECODE= setsid -f writ evaluate --attest-to=x terraform tfplan",
            "sudo writ init --undo",
            "echo '{}' | writ hook",
            "writ mcp serve --guarded < calls",
            "CLAUDE_CODE_SESSION_ID= setsid writ --color never mcp serve --attest --guarded",
            "writ mcp serve $X",
            "writ mcp $X",
            "claude --bare -p hi",
            "claude --settings=x.json -p hi",
        ] {
            assert!(reserved(line), "{line}");
        }
        for line in [
            "writ",
            "claude --version",
            "writ status",
            "writ why 'writ approve x'",
            "writ approvals --format json",
            "writ policy check",
            "writ policy test",
            "writ policy diff a b",
            "writ replay",
            "writ policy",
            "writ keys list",
            "writ evaluate terraform tfplan",
            "writ evaluate shell 'rm -r x' --attest",
            "writ keys registry",
            "writ attestation list",
            "writ attestation verify a.json",
            "writ attestation import a.json --key k.pem",
            "writ attestation export --to proof",
            "writ shell explain 'writ init'",
            "writ limits show",
            "writ agentflow verify --run-id x",
            "writ prices show m",
            "writ sandbox diff",
            "writ mcp serve",
            "writ mcp serve --attest",
            "writ mcp pins list",
            "writ sandbox plan --format json",
            "writ --color always verify",
            "kill 12",
            "echo writ approve",
        ] {
            assert!(!reserved(line), "{line}");
        }
    }
}
