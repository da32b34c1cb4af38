//! The entries of programs for people, as JSON, and as the page `spec/programs.md`.

use writ_core::json::{Object, Value};

use crate::options::Spec;
use crate::programs::entries::words::{Effect, List, Operands, Prints, Role, Run, Stdin, Variable, Word};
use crate::programs::entries::{self, Entry, Runs, Sends, entry};

/// What the page says of the other tables.
const LANGUAGES: &str = "\
What code in a language may name and stay harmless stands in `crates/shell/data/languages`, a file a
language: words by list, and the members of modules, objects and classes, each by what a call does.
[shell.md](shell.md) says what follows.
";

/// Widest line of the page and of what people get.
const WIDTH: usize = 100;

/// What Writ knows of a program, or of several whose entry is the same.
#[derive(Clone, Copy, Debug)]
pub struct Described(&'static Entry);

/// What is known of a program or, with a blank, of a subcommand.
pub fn program(name: &str) -> Option<Described> {
    entry(name).map(Described)
}

/// Everything that is known, family by family.
pub fn programs() -> impl Iterator<Item = Described> {
    entries::all().map(Described)
}

/// One line of a table: a word, what it holds, and what the word means.
struct Row {
    word: &'static str,
    holds: String,
    meaning: &'static str,
}

impl Row {
    fn of(word: &'static str, meaning: &'static str) -> Self {
        Self { word, holds: String::new(), meaning }
    }

    fn to_text(&self) -> String {
        let rest = if self.holds.is_empty() { self.meaning } else { &self.holds };
        let lines = wrapped(rest, WIDTH - 24);
        let mut out = format!("  {:<20}  {}\n", self.word, lines.first().map_or("", String::as_str));
        lines.iter().skip(1).for_each(|line| out.push_str(&format!("{:<24}{line}\n", "")));
        out
    }
}

impl Described {
    /// The program's names, or the subcommand's.
    pub fn names(self) -> &'static [&'static str] {
        self.0.names
    }

    /// The file its entry stands in, without its ending.
    pub fn family(self) -> &'static str {
        self.0.family
    }

    /// Its names, with commas between them.
    pub fn title(self) -> String {
        if self.names().is_empty() { "(more than one program)".to_owned() } else { self.names().join(", ") }
    }

    /// In one line: what the operands are, and where what it runs stands.
    pub fn summary(self) -> String {
        let uses = self.0.uses.as_ref().map(|uses| uses.operands.iter().map(|word| word.word()).collect::<Vec<_>>());
        let runs = self.0.runs.as_ref().map(|runs| runs.operands.iter().map(|word| word.word()).collect::<Vec<_>>());
        let mut out: Vec<String> = uses.into_iter().map(|words| words.join(", ")).collect();
        out.extend(runs.map(|words| format!("runs: {}", words.join(", "))));
        out.extend(self.0.runs_like.map(|like| format!("runs: like {like}")));
        let files = self.0.project_files.split_whitespace().collect::<Vec<_>>();
        out.extend((!files.is_empty()).then(|| format!("runs files: {}", files.join(", "))));
        out.extend(self.0.sends.iter().map(|sends| format!("sends: {}", sent(sends))));
        out.join("; ")
    }

    /// An item of the page: what has an effect, without the options whose values are mere text.
    fn to_item(self) -> String {
        let mut text = format!("`{}`", self.names().join("`, `"));
        if self.names().is_empty() {
            text = "Variables that steer more than one program".to_owned();
        }
        let summary = self.summary();
        if !summary.is_empty() {
            text.push_str(&format!(": {summary}"));
        }
        let specs = [self.0.uses.as_ref().map(|uses| &uses.options), self.0.runs.as_ref().map(|runs| &runs.options)];
        let mut shown: Vec<(Role, &str)> = Vec::new();
        for spec in specs.into_iter().flatten() {
            let rows = spec.values.iter().chain(spec.glued).chain(spec.last);
            for (role, names) in
                rows.filter(|(role, _)| !matches!(role, Role::Text | Role::TwoWords | Role::ThreeWords))
            {
                for name in names.split(' ').filter(|name| !shown.contains(&(*role, name))).collect::<Vec<_>>() {
                    shown.push((*role, name));
                }
            }
        }
        shown.sort_by_key(|(role, _)| *role);
        for roles in shown.chunk_by(|(one, _), (other, _)| one == other) {
            let names: Vec<&str> = roles.iter().map(|(_, name)| *name).collect();
            let role = roles.first().map_or("", |(role, _)| role.word());
            text.push_str(&format!("; {role} `{}`", names.join("` `")));
        }
        let mut out = String::new();
        item(&mut out, &text);
        out
    }

    /// The groups of words of its entry, each with its title.
    fn tables(self) -> Vec<(&'static str, Vec<Row>)> {
        let mut out: Vec<(&'static str, Vec<Row>)> = Vec::new();
        if let Some(uses) = &self.0.uses {
            out.push(("operands", uses.operands.iter().map(|kind| Row::of(kind.word(), kind.meaning())).collect()));
            let mut rows = options(&uses.options);
            let recursive = (!uses.recursive.is_empty()).then(|| uses.recursive.to_owned());
            rows.extend(recursive.map(|holds| Row { word: "recursive", holds, meaning: "" }));
            out.push(("options", rows));
            let mut notes = Vec::new();
            notes.extend(uses.reads_input.then(|| Row::of("reads-input", "it may hold commands and names of files")));
            notes.extend(uses.dash_words.then(|| Row::of("dash-words", "options are words behind one dash")));
            out.push(("also", notes));
        }
        if let Some(runs) = &self.0.runs {
            let mut rows: Vec<Row> = runs.operands.iter().map(|kind| Row::of(kind.word(), kind.meaning())).collect();
            rows.extend(runs.after.map(|after| Row { word: "after", holds: after.to_string(), meaning: "" }));
            rows.extend(runs.remote.then(|| Row::of("remote", "on another machine")));
            rows.extend(runs.unsure.then(|| Row::of("unsure", "options that are not listed may take a value")));
            rows.extend(runs.input.map(|input| Row { word: "input", holds: input.meaning().to_owned(), meaning: "" }));
            out.push(("runs", rows));
            out.push(("options in front of what runs", options(&runs.options)));
        }
        if let Some(like) = self.0.runs_like {
            out.push(("runs", vec![Row { word: "like", holds: like.to_owned(), meaning: "" }]));
        }
        out.extend(self.0.own.as_ref().map(|own| ("options for a reader of its own", options(own))));
        let prints = self.0.prints.iter();
        let row = |(pattern, kind): &(&str, Prints)| Row {
            word: kind.word(),
            holds: (*pattern).to_owned(),
            meaning: kind.meaning(),
        };
        out.push(("prints", prints.map(row).collect()));
        let kinds = self.0.project_files.split_whitespace();
        let row = |kind: &'static str| Row { word: kind, holds: entries::file_kind(kind).to_owned(), meaning: "" };
        out.push(("files of a project that it runs", kinds.map(row).collect()));
        let row = |sends: &Sends| Row { word: "sends", holds: sent(sends), meaning: "" };
        out.push(("sent although no word is a host", self.0.sends.iter().map(row).collect()));
        let variables = self.0.variables.iter().map(|(holds, names, texts)| Row {
            word: holds.word(),
            holds: if texts.is_empty() { (*names).to_owned() } else { format!("{names}, with one of: {texts}") },
            meaning: holds.meaning(),
        });
        out.push(("variables", variables.collect()));
        out.retain(|(_, rows)| !rows.is_empty());
        out
    }

    /// For people: every word of the entry.
    pub fn to_text(self) -> String {
        let title = wrapped(&self.title(), WIDTH).join("\n");
        let mut out = format!("{title}\ncrates/shell/data/programs/{}.toml\n", self.family());
        for (title, rows) in self.tables() {
            out.push_str(&format!("\n{title}\n"));
            rows.iter().for_each(|row| out.push_str(&row.to_text()));
        }
        let subs = self.subcommands();
        if !subs.is_empty() {
            out.push_str("\nsubcommands with an entry of their own\n");
            wrapped(&subs.join(", "), WIDTH - 2).iter().for_each(|line| out.push_str(&format!("  {line}\n")));
        }
        out.trim_end().to_owned()
    }

    /// The names of subcommands with an entry of their own.
    pub fn subcommands(self) -> Vec<&'static str> {
        let own = |name: &&'static str| {
            self.names().iter().any(|first| name.strip_prefix(first).is_some_and(|rest| rest.starts_with(' ')))
        };
        entries::all().flat_map(|entry| entry.names).copied().filter(own).collect()
    }

    /// The entry, as `data/programs` has it.
    pub fn to_json(self) -> Value {
        let entry = self.0;
        let (uses, runs) = (entry.uses.as_ref(), entry.runs.as_ref());
        let [options, glued, _, _] = spec(uses.map(|uses| &uses.options));
        let [runs_options, runs_glued, last, flags] = spec(runs.map(|runs| &runs.options));
        let [own_options, own_glued, _, own_flags] = spec(entry.own.as_ref());
        let prints = |(kind, _): (&'static str, _)| {
            let own = entry.prints.iter().filter(move |(_, own)| own.word() == kind);
            (kind, texts(own.map(|(pattern, _)| *pattern)))
        };
        let variables = entry.variables.iter().map(|(holds, names, marks)| {
            object([
                ("holds", text(holds.word())),
                ("names", texts(names.split_whitespace())),
                ("texts", texts(marks.split_whitespace())),
            ])
        });
        object([
            ("names", texts(entry.names.iter().copied())),
            ("family", text(entry.family)),
            ("operands", texts(uses.iter().flat_map(|uses| uses.operands).map(|kind| kind.word()))),
            ("options", options),
            ("glued", glued),
            ("recursive", texts(uses.iter().flat_map(|uses| uses.recursive.split_whitespace()))),
            ("readsInput", Value::Bool(uses.is_some_and(|uses| uses.reads_input))),
            ("dashWords", Value::Bool(uses.is_some_and(|uses| uses.dash_words))),
            (
                "runs",
                object([
                    ("like", text(entry.runs_like.unwrap_or_default())),
                    ("operands", texts(runs.iter().flat_map(|runs| runs.operands).map(|kind| kind.word()))),
                    ("after", text(&after(runs))),
                    ("remote", Value::Bool(runs.is_some_and(|runs| runs.remote))),
                    ("unsure", Value::Bool(runs.is_some_and(|runs| runs.unsure))),
                    ("options", runs_options),
                    ("glued", runs_glued),
                    ("last", last),
                    ("flags", flags),
                    ("input", text(runs.and_then(|runs| runs.input).map_or("", Word::word))),
                ]),
            ),
            ("own", object([("options", own_options), ("glued", own_glued), ("flags", own_flags)])),
            ("prints", object(Prints::WORDS.iter().map(|(word, kind, _)| prints((word, kind))))),
            ("projectFiles", texts(entry.project_files.split_whitespace())),
            ("sends", Value::Array(entry.sends.iter().map(sends).collect())),
            ("variables", Value::Array(variables.collect())),
        ])
    }
}

/// What is sent, and where, on one line.
fn sent(sends: &Sends) -> String {
    let words: Vec<&str> = sends.words.iter().map(|words| if words.is_empty() { "anything" } else { words }).collect();
    let to = if sends.to.is_empty() { "where settings say" } else { sends.to };
    let but = |sign: &str, words: &str| if words.is_empty() { String::new() } else { format!(", {sign} {words}") };
    let named = but("or as named by", sends.named_by);
    format!(
        "{} ({to}{named}{}{}{})",
        words.join(", "),
        but("with one of", sends.given),
        but("unless", sends.unless),
        but("standard input with", sends.input)
    )
}

fn sends(sends: &Sends) -> Value {
    object([
        ("words", texts(sends.words.iter().copied())),
        ("to", text(sends.to)),
        ("namedBy", texts(sends.named_by.split_whitespace())),
        ("unless", texts(sends.unless.split_whitespace())),
        ("given", texts(sends.given.split_whitespace())),
        ("input", texts(sends.input.split_whitespace())),
    ])
}

/// Behind how many operands, as text.
fn after(runs: Option<&Runs>) -> String {
    runs.and_then(|runs| runs.after).map(|after| after.to_string()).unwrap_or_default()
}

/// The four tables of a program's options.
fn spec(spec: Option<&Spec>) -> [Value; 4] {
    let spec = spec.unwrap_or(&Spec::NONE);
    let by_role = |table: &'static [(Role, &'static str)]| {
        object(table.iter().map(|(role, names)| (role.word(), texts(names.split_whitespace()))))
    };
    [by_role(spec.values), by_role(spec.glued), by_role(spec.last), texts(spec.flags.split_whitespace())]
}

fn text(text: &str) -> Value {
    Value::String(text.to_owned())
}

fn texts<'t>(all: impl Iterator<Item = &'t str>) -> Value {
    Value::Array(all.map(text).collect())
}

/// An object without the members that say nothing.
fn object<'n>(members: impl IntoIterator<Item = (&'n str, Value)>) -> Value {
    let mut out = Object::new();
    for (name, value) in members {
        let empty = match &value {
            Value::Null => true,
            Value::Bool(is) => !is,
            Value::Number(_) => false,
            Value::String(text) => text.is_empty(),
            Value::Array(all) => all.is_empty(),
            Value::Object(all) => all.is_empty(),
        };
        if !empty {
            out.push(name, value);
        }
    }
    Value::Object(out)
}

/// The options of a table as rows: by what their values are.
fn options(spec: &'static Spec) -> Vec<Row> {
    let of = |table: &'static [(Role, &'static str)], how: &'static str| {
        table.iter().map(move |(role, names)| Row {
            word: role.word(),
            holds: format!("{names}{how}"),
            meaning: role.meaning(),
        })
    };
    let rows = of(spec.values, "").chain(of(spec.glued, " (glued)")).chain(of(spec.last, " (the last option)"));
    rows.chain((!spec.flags.is_empty()).then(|| Row { word: "flags", holds: spec.flags.to_owned(), meaning: "" }))
        .collect()
}

/// Lines of at most so many columns, broken at blanks.
fn wrapped(text: &str, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split_whitespace() {
        if let Some(line) = lines.last_mut() {
            if line.is_empty() {
                line.push_str(word);
            } else if line.chars().count() + 1 + word.chars().count() <= width {
                line.push(' ');
                line.push_str(word);
            } else {
                lines.push(word.to_owned());
            }
        }
    }
    lines
}

/// The page: how an entry is written, what its words mean, and what the entries say.
pub fn page() -> String {
    let mut out = include_str!("../../../data/programs.md").to_owned();
    section(&mut out, "What the operands are (`operands`)", Operands::WORDS);
    section(&mut out, "What the value of an option is (`options`, `glued`, `last`)", Role::WORDS);
    section(&mut out, "Where among the operands stands what runs (`runs.operands`)", Run::WORDS);
    section(&mut out, "What is on standard input (`runs.input`)", Stdin::WORDS);
    section(&mut out, "What is printed (`prints`)", Prints::WORDS);
    section(&mut out, "What a variable holds (`variables`)", Variable::WORDS);
    out.push_str("\n## Languages\n\n");
    out.push_str(LANGUAGES);
    section(&mut out, "Lists (`[lists.…]`)", List::WORDS);
    section(&mut out, "What a call does (in `[lists.…]` and `[members.…]`)", Effect::WORDS);
    let mut family = "";
    for entry in programs() {
        if entry.family() != family {
            family = entry.family();
            out.push_str(&format!("\n## {family}\n\n"));
        }
        out.push_str(&entry.to_item());
    }
    out
}

/// The words of one kind.
fn section<T>(out: &mut String, title: &str, words: &[(&str, T, &str)]) {
    out.push_str(&format!("\n### {title}\n\n"));
    for (word, _, meaning) in words {
        item(out, &format!("`{word}`: {meaning}"));
    }
}

/// An item of a list.
fn item(out: &mut String, text: &str) {
    for (at, line) in wrapped(text, WIDTH - 2).iter().enumerate() {
        out.push_str(&format!("{} {line}\n", if at == 0 { "-" } else { " " }));
    }
}
