//! The data files: families of programs, each rule with tier, reason, undo and examples.
//!
//! Owns the files' grammar, which stands at the head of `data/shell/git.txt`. A file that does not read is a defect that the
//! tests find; at run time its family knows nothing.

use std::sync::OnceLock;

use writ_shell::{Command, Normal, Part, Word, normal};

use crate::report::Tier;

/// The families, by file name, in the order in which they are asked.
const FILES: &[(&str, &str)] = &include!(concat!(env!("OUT_DIR"), "/families.rs"));

/// Each program with a family that knows it, by its place in [`FILES`]; sorted by the build script.
static HEADS: &[(&str, usize)] = include!(concat!(env!("OUT_DIR"), "/heads.rs"));

/// Stands in a word for what is not known of it.
pub const UNKNOWN: &str = "\u{1}";

/// What a rule's tier is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Judged {
    /// Always this.
    As(Tier),
    /// As the paths it writes are judged.
    ByPath,
    /// As the statements it runs are judged.
    BySql,
    /// Not at all: what it does stands where nobody looked.
    Unseen,
}

/// One rule.
#[derive(Clone, Debug)]
pub struct Rule {
    /// `git/force-push`.
    pub id: String,
    /// Its tier.
    pub tier: Judged,
    /// `delete`, `overwrite`, `publish`, …
    pub action: &'static str,
    /// What it acts on.
    pub target: &'static str,
    /// Why this tier.
    pub why: &'static str,
    /// How to undo it.
    pub undo: &'static str,
    /// What would have to be known for a better answer.
    pub need: &'static str,
    /// Lines the rule is about.
    pub bad: Vec<&'static str>,
    /// Lines like them that it is not about.
    pub ok: Vec<&'static str>,
    when: Vec<Vec<Term>>,
}

/// A family of programs.
#[derive(Clone, Debug, Default)]
pub struct Family {
    /// Its file's name.
    pub name: &'static str,
    /// The programs it is about.
    pub programs: Vec<&'static str>,
    /// What the family is, for people.
    pub about: &'static str,
    /// Options with a value that may stand before the subcommand.
    globals: &'static str,
    /// Its rules.
    pub rules: Vec<Rule>,
}

#[derive(Clone, Debug)]
enum Term {
    /// The next word of the subcommand, one of these.
    Sub(Vec<&'static str>),
    /// One of these is there, or none.
    Any(bool, Vec<Mark>),
    /// At least so many operands in all.
    Operands(usize),
}

#[derive(Clone, Debug)]
enum Mark {
    Flag(&'static str),
    /// An operand that fits a pattern.
    Operand(&'static str),
    /// A word of any kind, or an option with its value (`--replicas=0`), that fits a pattern.
    Raw(&'static str),
    /// An operand that nobody knows before the line runs.
    Unknown,
}

/// Every family.
pub fn families() -> impl Iterator<Item = &'static Family> {
    (0..FILES.len()).filter_map(family)
}

/// One family, read when it is first asked for: a hook needs few of them.
fn family(at: usize) -> Option<&'static Family> {
    static FAMILIES: [OnceLock<Family>; FILES.len()] = [const { OnceLock::new() }; FILES.len()];
    let (name, text) = FILES.get(at)?;
    Some(FAMILIES.get(at)?.get_or_init(|| read(name, text).unwrap_or_default()))
}

/// The families that know a program, in the order of the files.
pub fn of(program: &str) -> impl Iterator<Item = &'static Family> {
    let first = HEADS.partition_point(|(name, _)| *name < program);
    let end = HEADS.partition_point(|(name, _)| *name <= program);
    HEADS.get(first..end).unwrap_or_default().iter().filter_map(|(_, at)| family(*at))
}

/// A program's name as the families write it: `C:/Git/bin/Git.exe` is `git`, and `wrangler@3` is `wrangler`.
pub fn name_of(program: &str) -> String {
    let base = program.rsplit(['/', '\\']).next().unwrap_or_default();
    let base = base.split_once('@').map_or(base, |(name, _)| if name.is_empty() { base } else { name });
    let lower = base.to_lowercase();
    lower.strip_suffix(".exe").map_or(lower.clone(), str::to_owned)
}

/// A rule by its id.
pub fn find(id: &str) -> Option<&'static Rule> {
    families().flat_map(|family| &family.rules).find(|rule| rule.id == id)
}

/// A command made ready for the rules.
pub struct Subject {
    /// It only prints its help, or what it would do.
    pub idle: bool,
    normal: Normal,
    operands: Vec<String>,
    raw: Vec<String>,
}

impl Subject {
    /// Reads a command once, for any number of rules.
    pub fn of(command: &Command, family: &Family) -> Self {
        let mut texts: Vec<String> = command.words.iter().map(text).collect();
        let normal = normal(&command.words);
        let idle = idle(&texts, family);
        // `/usr/sbin/userdel` is `userdel`.
        if let Some(program) = texts.first_mut() {
            *program = name_of(program);
        }
        // Windows and Redis make no difference between the cases.
        if matches!(family.name, "windows" | "redis") {
            texts.iter_mut().for_each(|text| *text = text.to_lowercase());
        }
        let operands = if family.globals.is_empty() {
            normal.operands.iter().map(text).collect()
        } else {
            without_values(texts.get(1..).unwrap_or_default(), family.globals)
        };
        let mut raw = texts.clone();
        raw.extend(texts.windows(2).filter_map(|pair| match pair {
            [option, value] if option.starts_with('-') && !value.starts_with('-') => Some(format!("{option}={value}")),
            _ => None,
        }));
        Self { idle, normal, operands, raw }
    }

    /// The program's base name.
    pub fn program(&self) -> &str {
        &self.normal.program
    }

    /// Whether a word of the command contains a text.
    pub fn says(&self, text: &str) -> bool {
        self.raw.iter().any(|word| word.contains(text))
    }

    /// What is no option, after `skip` words of subcommand.
    pub fn targets(&self, skip: usize) -> Vec<String> {
        self.operands.iter().skip(skip).cloned().collect()
    }

    fn has(&self, mark: &Mark) -> bool {
        match mark {
            Mark::Flag(flag) => {
                self.normal.flags.iter().any(|own| own == flag) || self.raw.iter().any(|own| own == flag)
            }
            Mark::Operand(pattern) => self.operands.iter().any(|own| fits(pattern, own)),
            Mark::Raw(pattern) => self.raw.iter().any(|own| fits(pattern, own)),
            Mark::Unknown => self.operands.iter().any(|own| own.contains(UNKNOWN)),
        }
    }
}

/// Whether a command only prints its help, or what it would do.
fn idle(words: &[String], family: &Family) -> bool {
    const NO_TRIAL: [&str; 4] = ["files", "disks", "system", "interpreters"];
    // Options of any program whose value might be spelt like that.
    const VALUED: [&str; 20] = [
        "--exclude",
        "--include",
        "--description",
        "--namespace",
        "--context",
        "--kube-context",
        "--selector",
        "--pod-selector",
        "-l",
        "-t",
        "-m",
        "--timeout",
        "--revision",
        "--region",
        "--profile",
        "--project",
        "--message",
        "--instance-ids",
        "--user-name",
        "--cri-socket",
    ];
    let program = words.first().map_or("", String::as_str);
    let words: Vec<&str> = words.iter().map(String::as_str).take_while(|word| *word != "--").collect();
    let subcommands = !["databases", "files", "system", "disks"].contains(&family.name) && words.len() > 2;
    let help =
        words.contains(&"--help") || subcommands && (words.get(1) == Some(&"help") || words.last() == Some(&"-h"));
    let trial = |pair: &[&str]| {
        let &[before, word] = pair else { return None };
        let word = word.to_lowercase();
        let (name, value) = word.split_once('=').unwrap_or((&word, "true"));
        match name {
            _ if VALUED.contains(&before) || family.globals.split(' ').any(|global| global == before) => None,
            "--dry-run" | "--dryrun" | "-dry-run" => Some(!matches!(value, "false" | "none")),
            "-whatif" => Some(program.contains('-')),
            "--no-dry-run" => Some(false),
            _ => None,
        }
    };
    let tried = words.windows(2).rev().find_map(trial).unwrap_or_default();
    family.name != "interpreters" && help || !NO_TRIAL.contains(&family.name) && tried
}

/// The words that are neither options nor their values.
fn without_values(words: &[String], globals: &str) -> Vec<String> {
    let mut out = Vec::new();
    let mut words = words.iter();
    while let Some(word) = words.next() {
        // Behind a verb that removes, `-f` is force.
        let forces = word == "-f" && matches!(out.last().map(String::as_str), Some("rm" | "rmi" | "remove" | "prune"));
        if !forces && globals.split(' ').any(|global| global == word) {
            words.next();
        } else if !word.starts_with('-') {
            out.push(word.clone());
        }
    }
    out
}

/// A word's text, with [`UNKNOWN`] for what is not known of it.
fn text(word: &Word) -> String {
    let part = |part: &Part| match part {
        Part::Text(text) | Part::Glob(text) => text.clone(),
        Part::Unknown(_) => UNKNOWN.to_owned(),
    };
    word.parts.iter().map(part).collect()
}

impl Rule {
    /// Whether the rule is about a command; how many words of subcommand it named.
    pub fn applies(&self, subject: &Subject) -> Option<usize> {
        if subject.idle && self.tier != Judged::BySql {
            return None;
        }
        self.when.iter().find_map(|terms| {
            let mut subcommand = 0;
            let holds = terms.iter().all(|term| match term {
                Term::Sub(words) => {
                    subcommand += 1;
                    subject.operands.get(subcommand - 1).is_some_and(|own| words.iter().any(|word| fits(word, own)))
                }
                Term::Any(wanted, marks) => marks.iter().any(|mark| subject.has(mark)) == *wanted,
                Term::Operands(least) => subject.operands.len() >= *least,
            });
            holds.then_some(subcommand)
        })
    }
}

/// Whether `*` for any text makes a pattern a text; `\*` is the letter.
fn fits(pattern: &str, text: &str) -> bool {
    if pattern.contains("\\*") {
        return fits(&pattern.replace("\\*", "\u{2}"), &text.replace('*', "\u{2}"));
    }
    let Some((first, rest)) = pattern.split_once('*') else { return pattern == text };
    let Some(mut left) = text.strip_prefix(first) else { return false };
    let mut pieces = rest.split('*').peekable();
    while let Some(piece) = pieces.next() {
        if pieces.peek().is_none() {
            return left.ends_with(piece);
        }
        let Some(at) = left.find(piece) else { return false };
        left = left.get(at + piece.len()..).unwrap_or_default();
    }
    true
}

/// Reads a data file; the error names the line.
pub fn read(name: &'static str, text: &'static str) -> Result<Family, String> {
    let mut family = Family { name, ..Family::default() };
    for (at, line) in text.lines().enumerate().filter(|(_, line)| !line.is_empty() && !line.starts_with('#')) {
        let wrong = |what: &str| format!("{name}.txt:{}: {what}: {line}", at + 1);
        if let Some(head) = line.strip_prefix('[') {
            family.rules.push(head_of(name, head).ok_or_else(|| wrong("[id] tier action target"))?);
            continue;
        }
        let (key, value) = line.split_once(": ").ok_or_else(|| wrong("key: value"))?;
        match (key, family.rules.last_mut()) {
            ("about", None) => family.about = value,
            ("programs", None) => family.programs.extend(value.split_whitespace()),
            ("globals", None) => family.globals = value,
            ("when", Some(rule)) => rule.when.push(value.split_whitespace().map(term).collect()),
            ("why", Some(rule)) => rule.why = value,
            ("undo", Some(rule)) => rule.undo = value,
            ("need", Some(rule)) => rule.need = value,
            ("bad", Some(rule)) => rule.bad.push(value),
            ("ok", Some(rule)) => rule.ok.push(value),
            _ => return Err(wrong("a key that is not known here")),
        }
    }
    Ok(family)
}

fn head_of(family: &str, head: &'static str) -> Option<Rule> {
    let (id, rest) = head.split_once("] ")?;
    let mut words = rest.split_whitespace();
    let tier = match words.next()? {
        "path" => Judged::ByPath,
        "sql" => Judged::BySql,
        "unseen" => Judged::Unseen,
        number => Judged::As(Tier::of(number.parse().ok()?)?),
    };
    Some(Rule {
        id: format!("{family}/{id}"),
        tier,
        action: words.next()?,
        target: words.next()?,
        why: "",
        undo: "",
        need: "",
        bad: Vec::new(),
        ok: Vec::new(),
        when: Vec::new(),
    })
}

fn term(token: &'static str) -> Term {
    if let Some(least) = token.strip_prefix('#').and_then(|number| number.parse().ok()) {
        return Term::Operands(least);
    }
    let (wanted, body) = token.strip_prefix('!').map_or((true, token), |body| (false, body));
    let marked = |word: &str| word.starts_with(['-', '@', '~']);
    if wanted && !body.split('|').any(marked) {
        return Term::Sub(body.split('|').collect());
    }
    let mark = |word: &'static str| match word.split_at_checked(1) {
        Some(("@", "?")) => Mark::Unknown,
        Some(("~", pattern)) => Mark::Raw(pattern),
        Some(("@", pattern)) => Mark::Operand(pattern),
        Some(("-", _)) => Mark::Flag(word),
        _ => Mark::Operand(word),
    };
    Term::Any(wanted, body.split('|').map(mark).collect())
}
