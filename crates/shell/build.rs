//! Turns `data/programs/*.toml` and `data/languages/*.toml` into tables that are sorted by name, so that a hook finds a program in them without reading them
//! first. An entry that does not read fails the build, with its file and line and what is allowed there.

#[path = "build/format.rs"]
mod format;
#[path = "src/programs/entries/words.rs"]
#[expect(dead_code, reason = "shared with the crate")]
mod words;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::error::Error;
use std::path::{Path, PathBuf};
use std::{env, fmt, fs};

use format::{File, Language, Options, Program, Runs, Sends, Several, Spelled, Variables};
use toml::Spanned;
use words::Variable;

/// What is wrong, and where.
struct Failure(String);

impl fmt::Debug for Failure {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}

impl<E: Error> From<E> for Failure {
    fn from(error: E) -> Self {
        Self(error.to_string())
    }
}

/// A file that was read.
struct Source {
    path: PathBuf,
    text: String,
}

impl Source {
    fn failure(&self, at: usize, what: &str) -> Failure {
        let line = self.text.bytes().take(at).filter(|byte| *byte == b'\n').count() + 1;
        Failure(format!("{}:{line}: {what}", self.path.display()))
    }

    fn read<T: serde::de::DeserializeOwned>(&self) -> Result<T, Failure> {
        toml::from_str(&self.text)
            .map_err(|error| self.failure(error.span().map_or(0, |span| span.start), error.message()))
    }

    /// The options of one table, as code; each stands in it once.
    fn spec(&self, tables: [&Options; 3], flags: &str) -> Result<String, Failure> {
        let mut known = BTreeSet::new();
        for list in tables.iter().flat_map(|table| &table.0).map(|(_, list)| list) {
            for name in list.get_ref().split_ascii_whitespace() {
                if !name.starts_with(['-', '+']) {
                    return Err(self.failure(list.span().start, &format!("`{name}` is no option: they begin with `-`")));
                }
                if !known.insert(name) {
                    return Err(self.failure(list.span().start, &format!("the option `{name}` stands here twice")));
                }
            }
        }
        let [values, glued, last] = tables.map(|table| {
            let rows = table.0.iter().map(|(role, names)| format!("({}, {:?})", role.code(), tidy(names.get_ref())));
            rows.collect::<Vec<_>>().join(", ")
        });
        Ok(format!("Spec {{ values: &[{values}], glued: &[{glued}], last: &[{last}], flags: {:?} }}", tidy(flags)))
    }
}

/// One blank between two words.
fn tidy(words: &str) -> String {
    words.split_ascii_whitespace().collect::<Vec<_>>().join(" ")
}

fn codes<T: Spelled>(words: &[T]) -> String {
    words.iter().map(|word| word.code()).collect::<Vec<_>>().join(", ")
}

/// The code of a value that may be missing.
fn optional(code: Option<String>) -> String {
    code.map_or("None".to_owned(), |code| format!("Some({code})"))
}

fn sends_code(sends: &Sends) -> String {
    let words: Vec<String> = sends.words.iter().map(|words| tidy(words)).collect();
    let (to, named_by) = (&sends.to, tidy(&sends.named_by));
    let (unless, given, input) = (tidy(&sends.unless), tidy(&sends.given), tidy(&sends.input));
    format!(
        "Sends {{ words: &{words:?}, to: {to:?}, named_by: {named_by:?}, unless: {unless:?}, \
         given: {given:?}, input: {input:?} }}, "
    )
}

/// All entries, as the code of the tables.
#[derive(Default)]
struct Tables {
    /// The code of each entry's constant.
    entries: Vec<String>,
    /// Each name with the entry it leads to.
    names: BTreeMap<String, usize>,
    /// The code of what the operands and options of a name are, for entries that are like it.
    uses: BTreeMap<String, String>,
    /// The code of where a name sends, for entries that are like it.
    sends: BTreeMap<String, String>,
    /// Kinds of a project's own files.
    file_kinds: BTreeMap<String, String>,
    /// Variables by name, and what they hold.
    variables: BTreeMap<String, String>,
}

impl Tables {
    fn uses(&self, source: &Source, program: &Program, at: usize) -> Result<Option<String>, Failure> {
        if let Some(like) = &program.like {
            let known = self.uses.get(like.get_ref()).cloned();
            let what = format!("no entry above says what the operands of `{}` are", like.get_ref());
            return known.map(Some).ok_or_else(|| source.failure(like.span().start, &what));
        }
        let Some(Several(operands)) = &program.operands else {
            let needless = program.options.0.is_empty() && program.glued.0.is_empty();
            return if needless { Ok(None) } else { Err(source.failure(at, "options, but no `operands`")) };
        };
        let spec = source.spec([&program.options, &program.glued, &Options::default()], "")?;
        let (recursive, reads_input, dash_words) = (tidy(&program.recursive), program.reads_input, program.dash_words);
        Ok(Some(format!(
            "Uses {{ operands: &[{}], options: {spec}, recursive: {recursive:?}, reads_input: {reads_input}, \
             dash_words: {dash_words} }}",
            codes(operands)
        )))
    }

    fn entry(&mut self, source: &Source, family: &str, program: &Spanned<Program>) -> Result<(), Failure> {
        let at = program.span().start;
        let program = program.get_ref();
        for name in &program.names {
            if self.names.insert(name.get_ref().clone(), self.entries.len()).is_some() {
                let what = format!("`{}` has an entry already", name.get_ref());
                return Err(source.failure(name.span().start, &what));
            }
        }
        let names: Vec<&String> = program.names.iter().map(Spanned::get_ref).collect();
        let uses = self.uses(source, program, at)?;
        for name in names.iter().filter(|_| uses.is_some()) {
            self.uses.insert((*name).clone(), uses.clone().unwrap_or_default());
        }
        let runs = program.runs.as_ref().map(|runs| runs_code(source, runs, at)).transpose()?.flatten();
        let like =
            program.runs.as_ref().and_then(|runs| runs.like.as_ref()).map(|like| format!("{:?}", like.get_ref()));
        let own =
            program.own.as_ref().map(|own| source.spec([&own.options, &own.glued, &Options::default()], &own.flags));
        let prints = program.prints.iter().flat_map(|(kind, patterns)| patterns.iter().map(move |one| (one, kind)));
        let prints: String = prints.map(|(pattern, kind)| format!("({pattern:?}, {}), ", kind.code())).collect();
        let variables =
            self.variables(source, &program.variables, names.first().map_or("", |name| name.as_str()), at)?;
        let sends = match &program.like {
            Some(like) if program.sends.is_empty() => self.sends.get(like.get_ref()).cloned().unwrap_or_default(),
            _ => program.sends.iter().map(sends_code).collect(),
        };
        if uses.is_none() && !program.sends.is_empty() {
            return Err(source.failure(at, "`sends`, but no `operands`"));
        }
        self.sends.extend(names.iter().map(|name| ((*name).clone(), sends.clone())));
        let project_files = program.project_files.as_ref().map_or("", |kinds| kinds.get_ref());
        if let (Some(unknown), Some(place)) = (
            project_files.split_ascii_whitespace().find(|kind| !self.file_kinds.contains_key(*kind)),
            &program.project_files,
        ) {
            let known: Vec<&str> = self.file_kinds.keys().map(String::as_str).collect();
            let what = format!("`{unknown}` is no kind of files; these are: {}", known.join(", "));
            return Err(source.failure(place.span().start, &what));
        }
        self.entries.push(format!(
            "Entry {{ family: {family:?}, names: &{names:?}, uses: {}, runs: {}, runs_like: {}, own: {}, \
             prints: &[{prints}], project_files: {:?}, sends: &[{sends}], variables: &[{variables}] }}",
            optional(uses),
            optional(runs),
            optional(like),
            optional(own.transpose()?),
            tidy(project_files)
        ));
        Ok(())
    }

    /// Variables that steer more than one program: an entry without a name.
    fn environment(&mut self, source: &Source, family: &str, given: &Variables) -> Result<(), Failure> {
        let variables = self.variables(source, given, "", 0)?;
        self.entries.push(format!(
            "Entry {{ family: {family:?}, names: &[], uses: None, runs: None, runs_like: None, own: None, prints: &[], \
             project_files: \"\", sends: &[], variables: &[{variables}] }}"
        ));
        Ok(())
    }

    /// The code of the variables of an entry, which are kept by name too.
    fn variables(&mut self, source: &Source, given: &Variables, program: &str, at: usize) -> Result<String, Failure> {
        for (holds, names, texts) in &given.0 {
            for name in names.split_ascii_whitespace() {
                let detail = if *holds == Variable::Options { program.to_owned() } else { tidy(texts) };
                let code = format!("ProgramVariable {{ name: {name:?}, holds: {}, detail: {detail:?} }}", holds.code());
                if self.variables.insert(name.to_owned(), code).is_some() {
                    return Err(source.failure(at, &format!("the variable `{name}` stands somewhere already")));
                }
            }
        }
        let rows = given.0.iter();
        Ok(rows
            .map(|(holds, names, texts)| format!("({}, {:?}, {:?}), ", holds.code(), tidy(names), tidy(texts)))
            .collect())
    }

    fn code(&self) -> String {
        let mut out = String::new();
        for (at, entry) in self.entries.iter().enumerate() {
            out.push_str(&format!("static E{at}: Entry = {entry};\n"));
        }
        let names: String = self.names.iter().map(|(name, at)| format!("({name:?}, &E{at}), ")).collect();
        let order: String = (0..self.entries.len()).map(|at| format!("&E{at}, ")).collect();
        let (patterns, exact): (Vec<_>, Vec<_>) = self.variables.iter().partition(|(name, _)| name.contains('*'));
        let mut patterns = patterns;
        // What says more goes first.
        patterns.sort_by_key(|(name, _)| (name.starts_with('*'), Reverse(name.len())));
        let rows = |rows: Vec<(&String, &String)>| rows.iter().map(|(_, code)| format!("{code}, ")).collect::<String>();
        out.push_str(&format!(
            "static ENTRIES: &[(&str, &Entry)] = &[{names}];\nstatic IN_ORDER: &[&Entry] = &[{order}];\n\
             static FILE_KINDS: &[(&str, &str)] = &{:?};\nstatic VARIABLES: &[ProgramVariable] = &[{}];\n\
             static PATTERNS: &[ProgramVariable] = &[{}];\n",
            self.file_kinds.iter().collect::<Vec<_>>(),
            rows(exact),
            rows(patterns)
        ));
        out
    }
}

fn runs_code(source: &Source, runs: &Runs, at: usize) -> Result<Option<String>, Failure> {
    let Some(Several(operands)) = &runs.operands else {
        let like = runs.like.is_some();
        return if like { Ok(None) } else { Err(source.failure(at, "`runs` has neither `operands` nor `like`")) };
    };
    let spec = source.spec([&runs.options, &runs.glued, &runs.last], &runs.flags)?;
    let after = optional(runs.after.map(|after| after.to_string()));
    let input = optional(runs.input.map(Spelled::code));
    Ok(Some(format!(
        "Runs {{ operands: &[{}], options: {spec}, after: {after}, remote: {}, unsure: {}, input: {input} }}",
        codes(operands),
        runs.remote,
        runs.unsure
    )))
}

/// The lists of a language as rows: words by list or by module, and by what a call of them does.
fn languages() -> Result<String, Failure> {
    let (mut lists, mut members) = (String::new(), String::new());
    for path in toml_files("data/languages")? {
        let source = Source { text: fs::read_to_string(&path)?, path };
        let name = source.path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let language: Language = source.read()?;
        for (list, words) in &language.lists {
            for (effect, words) in words {
                lists.push_str(&format!("({name:?}, {}, {}, {:?}), ", list.code(), effect.code(), tidy(words)));
            }
        }
        for (of, words) in &language.members {
            for (effect, words) in words {
                members.push_str(&format!("({name:?}, {of:?}, {}, {:?}), ", effect.code(), tidy(words)));
            }
        }
    }
    Ok(format!(
        "static LISTS: &[(&str, List, Effect, &str)] = &[{lists}];\n\
         static MEMBERS: &[(&str, &str, Effect, &str)] = &[{members}];\n"
    ))
}

fn toml_files(folder: &str) -> Result<Vec<PathBuf>, Failure> {
    println!("cargo::rerun-if-changed={folder}");
    let files = fs::read_dir(folder)?.map(|file| Ok(file?.path())).collect::<Result<Vec<PathBuf>, Failure>>();
    let mut files = files?;
    files.sort_unstable();
    Ok(files)
}

fn main() -> Result<(), Failure> {
    let out = env::var_os("OUT_DIR").ok_or_else(|| Failure("no OUT_DIR".to_owned()))?;
    println!("cargo::rerun-if-changed=build");
    println!("cargo::rerun-if-changed=src/programs/entries/words.rs");
    let mut tables = Tables::default();
    let mut sources = Vec::new();
    for path in toml_files("data/programs")? {
        let source = Source { text: fs::read_to_string(&path)?, path };
        let file: File = source.read()?;
        tables.file_kinds.extend(file.file_kinds.iter().map(|(kind, files)| (kind.clone(), tidy(files))));
        sources.push((source, file));
    }
    for (source, file) in &sources {
        let family = source.path.file_stem().unwrap_or_default().to_string_lossy();
        for program in &file.program {
            tables.entry(source, &family, program)?;
        }
        if !file.variables.0.is_empty() {
            tables.environment(source, &family, &file.variables)?;
        }
    }
    fs::write(Path::new(&out).join("entries.rs"), tables.code())?;
    fs::write(Path::new(&out).join("languages.rs"), languages()?)?;
    Ok(())
}
