//! What of an Agentfile a run cannot hold: then it does not begin (§10, §18).
//!
//! Owns the answer for every directive, each with its line. Looks at no disk: what the machine gives is told. Invariant: a directive that
//! bounds an agent, or asks for something, is either held by what [`crate::policy`] makes of it or named here. Page:
//! `spec/agentfile.md`, "A run".

use crate::agent::{Agent, Entry};
use crate::directive::{Audit, Base, Cred, Directive, Source};
use crate::placed::{PACKAGE, vault_variable};
use crate::reference::path_within;
use crate::session::places;

/// What the machine, and whoever runs it, give.
#[derive(Clone, Copy)]
pub struct Machine<'a> {
    /// Whether folders can be shown under other names and hidden.
    pub namespaces: bool,
    /// Whether what is written to a folder can go to a copy.
    pub overlays: bool,
    /// Whether the memory of all processes together can be limited.
    pub control_groups: bool,
    /// Of a command that is a client, whether its hooks are installed, which tell of calls and turns.
    pub client: Option<bool>,
    /// Whether the base is an agent's package.
    pub base_is_package: bool,
    /// Whether a variable is set.
    pub variable: &'a dyn Fn(&str) -> bool,
    /// Whether there is something at a path.
    pub there: &'a dyn Fn(&str) -> bool,
    /// Whether a path is itself what lies there, and no symbolic link on the way leads elsewhere.
    pub itself: &'a dyn Fn(&str) -> bool,
    /// The folder that relative paths hang off.
    pub root: &'a str,
}

/// Something that cannot be held.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unmet {
    /// The line.
    pub line: usize,
    /// The directive as it stands there.
    pub directive: String,
    /// Why not, and what to do.
    pub why: String,
}

/// Everything of an agent that a run here cannot hold, in the order of the file.
pub fn unmet(agent: &Agent, machine: &Machine<'_>) -> Vec<Unmet> {
    let asked = Asked { agent, machine };
    let told = |entry: &Entry| {
        let why = asked.why(entry)?;
        Some(Unmet { line: entry.line(), directive: entry.quoted(), why })
    };
    agent.entries.iter().filter_map(told).collect()
}

/// Names of limits that are held, and whether they need a control group.
const LIMITS: [(&str, bool); 8] = [
    ("tool_calls", false),
    ("turns", false),
    ("memory", true),
    ("process_memory", false),
    ("processes", false),
    ("file_size", false),
    ("open_files", false),
    ("cpu_time", false),
];

const NO_GROUP: &str = "no control group can be made here, so the memory of all processes together cannot be limited: \
                        `LIMIT process_memory` limits each process";

const NO_VAULT: &str = "no vault can be asked: VAULT_ADDR and VAULT_TOKEN are not set here";

struct Asked<'a> {
    agent: &'a Agent,
    machine: &'a Machine<'a>,
}

impl Asked<'_> {
    fn why(&self, entry: &Entry) -> Option<String> {
        let no = |text: &str| Some(text.to_owned());
        match &entry.directive {
            // These bound nothing, or are what policies are made from.
            Directive::Agent(_)
            | Directive::Cmd(_)
            | Directive::Tool(_)
            | Directive::Toolset(_)
            | Directive::Function(_)
            | Directive::Skill(_)
            | Directive::Mcp(_)
            | Directive::Server { .. }
            | Directive::Url(_)
            | Directive::Policy(_)
            | Directive::Sop(_)
            | Directive::Allow(_)
            | Directive::Deny(_)
            | Directive::Timeout(_)
            | Directive::Trace(None) => None,
            Directive::RateLimit { .. } => self.counted(),
            Directive::Shell(_) => {
                no("unsupported-shell: no framework's adapter is here; leave it out where CMD needs none")
            }
            Directive::Audit(audit) => self.audit(*audit),
            Directive::From(base) => self.base(base),
            Directive::Cred(cred) => self.cred(cred),
            Directive::Mount { path, .. } => self.mount(path),
            Directive::Bind { source, target, .. } => self.bind(source, target),
            Directive::Limit { name, unit, .. } => self.limit(name, unit.is_some()),
            Directive::Slice(pairs) => self.slice(pairs),
            Directive::Isolation(word) if word == "local" => None,
            Directive::Isolation(word) => Some(format!(
                "nothing here runs agents in `{word}`: a run manifest with `ISOLATION local` has this machine's kernel hold it"
            )),
            Directive::Broker(word) if word == "local" => None,
            Directive::Broker(_) => self.broker(),
            Directive::Trace(Some(_)) => {
                no("traces are not sent anywhere; the session's ledger has what they would tell")
            }
            Directive::Plugin(_) => no("there are no plug-ins here"),
            Directive::Image(_) => {
                no("no image is run here: leave it out of the run manifest to use this machine's programs")
            }
            Directive::Backend(_) => no("no remote end runs it from here"),
            Directive::Optimizer(_) => no("there are no optimizers here"),
            Directive::Memory { .. } => no("nothing holds a memory to its schema here"),
            Directive::Healthcheck { .. } => no("nothing probes an agent while it runs here"),
            Directive::Extension { .. } => no("nobody here knows this vendor's directives"),
        }
    }

    /// Whatever is asked for, more is recorded, as far as calls are told of.
    fn audit(&self, audit: Audit) -> Option<String> {
        (audit > Audit::Off && self.machine.client == Some(false)).then(|| {
            "CMD is a client whose hooks are not installed, so its calls are on no record: `writ init`".to_owned()
        })
    }

    fn base(&self, base: &Base) -> Option<String> {
        let local =
            |directive: &Directive| matches!(directive, Directive::Isolation(word) if word == "local").then_some(());
        match base {
            Base::Scratch => None,
            Base::Reference(_) if self.machine.base_is_package || self.agent.each(local).next().is_some() => None,
            Base::Reference(_) => Some(
                "no image is run here: `ISOLATION local` says that this machine's own programs are to do".to_owned(),
            ),
        }
    }

    fn cred(&self, cred: &Cred) -> Option<String> {
        let named = |c: char| c.is_ascii_alphanumeric() || c == '_';
        if !cred.name.chars().all(named) || cred.name.starts_with(|c: char| c.is_ascii_digit()) {
            return Some(
                "no variable can have this name, and its placeholder is in one: letters, digits and `_`".to_owned(),
            );
        }
        let reached = |host: &String| self.agent.destinations().any(|(_, to)| to.host == *host);
        if let Some(host) = cred.hosts.iter().find(|host| !reached(host)) {
            return Some(format!("no URL reaches `{host}`, so nothing could carry it there"));
        }
        if cred.hosts.is_empty() {
            return Some("it names no host that may receive it".to_owned());
        }
        match &cred.source {
            Source::Env { variable } if (self.machine.variable)(variable) => None,
            Source::Env { variable } => Some(format!("the variable `{variable}` is not set here")),
            // It is fetched before.
            Source::Vault { .. } if (self.machine.variable)(&vault_variable(&cred.name)) => None,
            Source::Vault { .. } => Some(NO_VAULT.to_owned()),
            Source::Keyring { .. } => Some("no keyring is asked here: bind it to `env:` or `vault://`".to_owned()),
        }
    }

    fn mount(&self, path: &str) -> Option<String> {
        let own = places(self.agent, self.machine.root);
        let place = own.iter().find(|place| place.mount == path)?;
        if path_within(path, PACKAGE) || path_within(PACKAGE, path) && path != "/" {
            return Some(format!("`{PACKAGE}` is where a package is shown"));
        }
        let moved = place.host != place.mount;
        if !(self.machine.there)(&place.host) {
            let what =
                if moved { "what BIND names is not there" } else { "it is not there, and no BIND says what it is" };
            return Some(format!("{what}: `{}`", place.host));
        }
        if moved && !(self.machine.itself)(&place.host) {
            return Some(format!("`{}` leads elsewhere through a symbolic link: name what it leads to", place.host));
        }
        if moved && (self.machine.there)(path) {
            return Some(format!(
                "`{path}` is there on this machine, and cannot be a name of `{}`: BIND it elsewhere",
                place.host
            ));
        }
        if moved && !self.machine.namespaces {
            return Some("folders cannot be shown under another name here: BIND it to its own path".to_owned());
        }
        (place.copied && !self.machine.overlays).then(|| {
            "what is written to it cannot go to a copy here: say `direct`, `rw` or `ro` in its BIND".to_owned()
        })
    }

    fn bind(&self, source: &str, target: &str) -> Option<String> {
        let mounted = self.agent.mounts().any(|(_, (path, _))| path == target);
        (!mounted).then(|| format!("no MOUNT has `{target}`, so the agent was never to see `{source}`"))
    }

    fn limit(&self, name: &str, rate: bool) -> Option<String> {
        let known = LIMITS.iter().find(|(known, _)| *known == name);
        match known {
            None => {
                let names: Vec<&str> = LIMITS.iter().map(|(name, _)| *name).collect();
                Some(format!("nothing holds a limit of this name: known are {}", names.join(", ")))
            }
            Some(_) if rate => Some("it is held as a number for the whole run, and not as a rate".to_owned()),
            Some(("turns", _)) if self.machine.client != Some(true) => {
                Some("nobody tells of its turns: CMD is no client whose hooks are installed".to_owned())
            }
            Some(("tool_calls", _)) => self.counted(),
            Some((_, true)) if !self.machine.control_groups => Some(NO_GROUP.to_owned()),
            Some(_) => None,
        }
    }

    /// What is counted where a call is decided.
    fn counted(&self) -> Option<String> {
        (self.machine.client != Some(true))
            .then(|| "nobody asks about its calls: CMD is no client whose hooks are installed".to_owned())
    }

    fn slice(&self, pairs: &[(String, String)]) -> Option<String> {
        if let Some((key, _)) = pairs.iter().find(|(key, _)| key != "mem") {
            return Some(format!("`{key}` is not held here: `mem=MiB` alone is"));
        }
        let number = |text: &str| text.parse::<u64>().is_ok_and(|number| number > 0);
        if let Some((_, value)) = pairs.iter().find(|(_, value)| !number(value)) {
            return Some(format!("`{value}` is no number of MiB"));
        }
        (!self.machine.control_groups).then(|| NO_GROUP.to_owned())
    }

    fn broker(&self) -> Option<String> {
        let other = self.agent.creds().find(|(_, cred)| !matches!(cred.source, Source::Vault { .. }));
        match other {
            Some((entry, _)) => Some(format!("`{}` does not come from a vault", entry.quoted())),
            None if self.agent.creds().all(|(_, cred)| (self.machine.variable)(&vault_variable(&cred.name))) => None,
            None => Some(NO_VAULT.to_owned()),
        }
    }
}
