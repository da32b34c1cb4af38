//! A call to a tool on a server: by its name's verb, the server's own hints, and what its arguments would do.
//!
//! Hints only ever raise a tier: they are the server's word (R35).

mod shell_equivalents;

use writ_core::json::{Object, Value};
use writ_shell::{Env, analyze};

use crate::paths::{PathOperation, Place, Probe, Seen, judge};
use crate::report::{Confidence, Intent, Mutation, Origin, Recoverability, Report, Target, Tier, Unseen};
use crate::{shell, sql};

/// Verbs, what they do, and the tier where nothing better is known.
const VERBS: &str = include_str!("../../data/mcp/verbs.txt");
/// What arguments mean by their names.
const ARGUMENTS: &str = include_str!("../../data/mcp/arguments.txt");
/// Deepest nesting of arguments, and most of them, that are looked at.
const MAX_DEPTH: usize = 16;
const MAX_ARGUMENTS: usize = 2000;

/// A call.
#[derive(Clone, Debug)]
pub struct Call<'a> {
    /// The tool: `delete_file`, `mcp__fs__delete_file`.
    pub tool: &'a str,
    /// The server, when the name does not say.
    pub server: Option<&'a str>,
    /// Its arguments.
    pub arguments: &'a Value,
    /// What the server says of the tool: `destructiveHint`, `readOnlyHint`.
    pub annotations: Option<&'a Value>,
}

/// Evaluates a call.
pub fn evaluate(call: &Call<'_>, env: &Env, probe: &dyn Probe) -> Report {
    let name = call.tool.rsplit("__").next().unwrap_or(call.tool);
    let words = words(name);
    let verb = words.iter().find_map(|word| verb(word));
    let mut report = Report::default();
    let doing = match verb {
        Some((_, "delete" | "destroy", _)) => Some(PathOperation::Delete),
        Some((_, "change", _)) => Some(PathOperation::Overwrite),
        _ => None,
    };
    let money = words.iter().any(|word| is("money", word)) && verb.is_none_or(|(_, action, _)| action != "read");
    // What a browser shows or records is its own, and what git does is judged as git's line.
    let verb = match verb {
        Some((_, "stop" | "spend", _)) if words.iter().any(|word| is("own", word)) => {
            Some((Tier::Reversible, "change", "only the tool's own session ends"))
        }
        Some((_, "stop" | "spend", _)) if words.first().is_some_and(|word| word == "git") => None,
        other => other,
    };
    let verb = match verb {
        // `schedule_key_deletion`: what is asked for is what counts.
        Some((_, "change" | "run", _)) | None if words.iter().any(|word| is("deletion", word)) => {
            Some((Tier::FromBackup, "delete", "a deletion is asked for, and done later"))
        }
        Some((Tier::FromBackup, "delete", _)) if words.iter().any(|word| is("whole", word)) => {
            Some((Tier::Unrecoverable, "delete", "it is deleted with everything in it"))
        }
        other => other,
    };
    let searches = words.iter().any(|word| matches!(word.as_str(), "search" | "grep" | "find" | "lookup"));
    let mut found = Arguments {
        env,
        probe,
        doing,
        money,
        searches,
        mutations: Vec::new(),
        unseen: Vec::new(),
        left: MAX_ARGUMENTS,
    };
    found.value(None, call.arguments, 0);
    let reads = matches!(verb, Some((_, "read", _)));
    for line in shell_equivalents::lines(call, &words, reads) {
        found.line(&line);
    }
    report.mutations.append(&mut found.mutations);
    report.unseen.append(&mut found.unseen);
    let hint = |name: &str| call.annotations.and_then(|hints| hints.get(name)).and_then(Value::as_bool);
    let known = report.mutations.iter().any(|mutation| mutation.recoverability.tier > Tier::WithEffort);
    match verb {
        Some((tier, action, why)) if tier > Tier::WithEffort && !known => {
            report.mutations.push(own(call, tier, action, why, Confidence::Medium));
        }
        _ if hint("destructiveHint") == Some(true) && !known => {
            let why = "the server says that this destroys something";
            report.mutations.push(own(call, Tier::NeedsReview, "destroy", why, Confidence::Medium));
        }
        Some(_) => {}
        None if report.mutations.is_empty() => {
            let mut mutation = own(call, Tier::Reversible, "call", "the tool is not known here", Confidence::Low);
            mutation.recoverability.source = Origin::Default;
            report.mutations.push(mutation);
            report.unseen.push(Unseen { what: call.tool.to_owned(), why: "the tool is not known here".to_owned() });
        }
        None => {}
    }
    report
}

fn own(call: &Call<'_>, tier: Tier, action: &str, why: &str, confidence: Confidence) -> Mutation {
    let server = call.server.or_else(|| call.tool.strip_prefix("mcp__")?.split("__").next());
    Mutation {
        intent: Intent {
            source: "mcp",
            action: action.to_owned(),
            target: Target {
                provider: server.map(str::to_owned),
                kind: Some("tool".to_owned()),
                id: Some(call.tool.to_owned()),
                ..Target::default()
            },
            ..Intent::default()
        },
        recoverability: Recoverability {
            tier,
            reasoning: why.to_owned(),
            source: Origin::Rules,
            confidence,
            suggestions: Vec::new(),
        },
        evidence: Vec::new(),
        missing: Vec::new(),
        dependencies: Vec::new(),
    }
}

/// The first line of the table that knows a word.
fn verb(word: &str) -> Option<(Tier, &'static str, &'static str)> {
    VERBS.lines().filter(|line| !line.starts_with('#')).find_map(|line| {
        let mut columns = line.splitn(4, '|').map(str::trim);
        let (names, tier, action, why) = (columns.next()?, columns.next()?, columns.next()?, columns.next()?);
        names.split_whitespace().any(|name| name == word).then_some(())?;
        Some((Tier::of(tier.parse().ok()?)?, action, why))
    })
}

/// Whether the table has `name` as one of a kind.
fn is(kind: &str, name: &str) -> bool {
    let names = ARGUMENTS.lines().find_map(|line| line.strip_prefix(kind)?.strip_prefix(':'));
    let plain: String = name.chars().filter(|c| !matches!(c, '_' | '-')).flat_map(char::to_lowercase).collect();
    names.is_some_and(|names| names.split_whitespace().any(|known| known == plain))
}

/// `deleteFile`, `delete_file`, `delete-file`, `DELETEFile` as words in lower case.
fn words(name: &str) -> Vec<String> {
    let mut out: Vec<String> = vec![String::new()];
    let letters: Vec<char> = name.chars().collect();
    for (at, c) in letters.iter().enumerate() {
        let before = at.checked_sub(1).and_then(|at| letters.get(at));
        let starts = c.is_uppercase()
            && (before.is_some_and(|before| before.is_lowercase() || before.is_numeric())
                || (before.is_some() && letters.get(at + 1).is_some_and(|next| next.is_lowercase())));
        if !c.is_alphanumeric() || starts {
            out.push(String::new());
        }
        if c.is_alphanumeric()
            && let Some(last) = out.last_mut()
        {
            last.extend(c.to_lowercase());
        }
    }
    out.retain(|word| !word.is_empty());
    out
}

struct Arguments<'a> {
    env: &'a Env,
    probe: &'a dyn Probe,
    /// What the tool's verb does to paths.
    doing: Option<PathOperation>,
    /// The tool's name speaks of money, and it does not only read.
    money: bool,
    /// The tool looks for a text, which may be a statement's.
    searches: bool,
    mutations: Vec<Mutation>,
    unseen: Vec<Unseen>,
    left: usize,
}

impl Arguments<'_> {
    fn value(&mut self, name: Option<&str>, value: &Value, depth: usize) {
        if depth > MAX_DEPTH || self.left == 0 {
            return;
        }
        self.left -= 1;
        match value {
            Value::Object(members) => {
                self.request(members);
                members.iter().for_each(|(name, member)| self.value(Some(name), member, depth + 1));
            }
            Value::Array(items) => items.iter().for_each(|item| self.value(name, item, depth + 1)),
            Value::String(text) => self.text(name.unwrap_or_default(), text),
            Value::Number(number) => self.amount(name.unwrap_or_default(), *number),
            Value::Null | Value::Bool(_) => {}
        }
    }

    fn text(&mut self, name: &str, text: &str) {
        if is("sql", name) && !(self.searches && name.eq_ignore_ascii_case("query")) {
            for found in sql::evaluate(text) {
                self.add(found.tier, found.action, &found.why, found.name);
            }
        } else if is("code", name) {
            self.code(text);
        } else if is("shell", name) {
            self.line(text);
        } else if is("path", name) {
            self.path(text);
        } else if let Ok(number) = text.parse() {
            self.amount(name, number);
        }
    }

    /// A shell line, as it would be judged by itself.
    fn line(&mut self, line: &str) {
        let report = shell::evaluate(line, self.env, self.probe);
        let known = report.mutations.into_iter().filter(|it| it.recoverability.source == Origin::Rules);
        for mutation in known.filter(|it| it.recoverability.tier > Tier::WithEffort) {
            let same = |other: &Mutation| other.recoverability == mutation.recoverability;
            if !self.mutations.iter().any(same) {
                self.mutations.push(mutation);
            }
        }
        let new = report.unseen.into_iter().filter(|unseen| !self.unseen.contains(unseen)).collect::<Vec<_>>();
        self.unseen.extend(new);
    }

    /// Code of a language that nobody names: as a shell's where it is one, and as an interpreter's.
    fn code(&mut self, code: &str) {
        let analysis = analyze(code, self.env);
        let shell = analysis.syntax_error.is_none() && !code.contains("import ") && !code.contains("require(");
        if shell {
            self.line(code);
        }
        let quoted = code.replace('\'', "'\\''");
        for interpreter in ["python3", "node"] {
            self.line(&format!("{interpreter} -c '{quoted}'"));
        }
        self.unseen.retain(|unseen| !unseen.what.contains(" -c"));
        let unseen =
            Unseen { what: "code".to_owned(), why: "the code is looked at for signs of danger only".to_owned() };
        if !self.unseen.contains(&unseen) {
            self.unseen.push(unseen);
        }
    }

    /// A path counts by where it lies and what it is called: whose disk it is on, nobody knows.
    fn path(&mut self, path: &str) {
        let Some(doing) = self.doing else { return };
        let (cwd, home) = (self.env.cwd.as_deref(), self.env.home.as_deref());
        let place = Place { path, tree: true, glob: path.contains('*'), cwd, home };
        let found = judge(doing, &place, Seen::default());
        let (least, action) = match doing {
            PathOperation::Delete => (Tier::Unrecoverable, "delete"),
            PathOperation::Overwrite | PathOperation::Move | PathOperation::Permit => (Tier::FromBackup, "overwrite"),
        };
        if found.tier == Tier::Unrecoverable || found.tier == least {
            self.add(found.tier, action, &found.why, path.to_owned());
        }
    }

    fn amount(&mut self, name: &str, number: f64) {
        if self.money && number != 0.0 && is("amount", name) {
            let why = format!("an amount of {number} is moved or promised; nothing takes it back");
            self.add(Tier::NeedsReview, "spend", &why, format!("{name} {number}"));
        }
    }

    /// `{method: DELETE, url: …}`
    fn request(&mut self, members: &Object) {
        let text = |name: &str| members.get(name).and_then(Value::as_str);
        if text("method").or(text("http_method")).is_some_and(|method| method.eq_ignore_ascii_case("DELETE")) {
            let url = text("url").or(text("path")).or(text("endpoint")).unwrap_or_default().to_owned();
            self.add(Tier::FromBackup, "delete", "the server is asked to delete something", url);
        }
    }

    fn add(&mut self, tier: Tier, action: &str, why: &str, id: String) {
        let nothing = Value::Null;
        let call = Call { tool: "", server: None, arguments: &nothing, annotations: None };
        let mut mutation = own(&call, tier, action, why, Confidence::High);
        mutation.intent.target = Target { id: Some(id), kind: Some("argument".to_owned()), ..Target::default() };
        self.mutations.push(mutation);
    }
}

#[cfg(test)]
mod tests;
