//! Variables, arrays, positional parameters and functions: what each may hold, and how far a change reaches.
//!
//! A change is kept in a journal, so that what happens in a subshell or a branch can be taken back or compared without a copy
//! of everything.

use std::rc::Rc;

use writ_core::Span;

use crate::eval::Eval;
use crate::eval::budget::{MAX_DEPTH, MAX_FIELDS};
use crate::eval::input::Input;
use crate::eval::words::expand::MAX_VALUES;
use crate::parser::syntax::Node;
use crate::text::{Fields, Text, literal, stood_for};
use crate::word::{Part, Source, Word};

/// How many names are followed that stand for one another.
const MAX_REFERENCES: usize = 8;

/// What a name stood for before.
pub enum Change {
    Var(String, Option<Vec<Fields>>),
    Function(String, Option<Function>),
}

/// A function: every body it may have.
#[derive(Clone)]
pub struct Function {
    bodies: Vec<Rc<Node>>,
    /// It is certainly defined.
    sure: bool,
}

/// Positional parameters, `$0` first.
#[derive(Clone)]
pub struct Arguments {
    pub words: Rc<Vec<Word>>,
    /// Some of the first may be gone (`shift` in a branch).
    pub loose: bool,
}

impl Arguments {
    pub fn of(words: Vec<Word>) -> Self {
        Self { words: Rc::new(words), loose: false }
    }

    pub fn last(&self) -> Option<&Word> {
        self.words.last().filter(|_| self.words.len() > 1)
    }
}

impl Eval<'_> {
    /// Runs where changes of directory, variables and functions stay inside.
    pub(crate) fn scoped(&mut self, run: impl FnOnce(&mut Self)) {
        let (mark, arguments) = (self.changes.len(), self.arguments.clone());
        let dirs = (self.dirs.clone(), self.unlikely.clone());
        let (traps, keyed) = (self.traps.len(), self.keyed.len());
        run(self);
        self.keyed.truncate(keyed);
        for code in self.traps.split_off(traps.min(self.traps.len())) {
            self.code(&code, None, "trap");
        }
        self.undo(mark);
        self.arguments = arguments;
        (self.dirs, self.unlikely) = dirs;
    }

    /// Runs what may not happen: values add.
    pub(crate) fn conditionally(&mut self, run: impl FnOnce(&mut Self)) {
        self.conditional += 1;
        let keyed = self.keyed.len();
        run(self);
        self.keyed.truncate(keyed);
        self.conditional -= 1;
    }

    /// What changed since `mark` may also be as it was: `local`, or a `return` before.
    fn keep_old(&mut self, mark: usize) {
        for name in self.changed(mark) {
            let Some(old) = self.before(mark, &name) else { continue };
            let new = self.vars.get(&name).cloned().unwrap_or_default();
            self.put(&name, old);
            self.conditionally(|eval| eval.set_all(&name, new, None, eval.here));
        }
    }

    /// What a variable held before the changes since `mark`.
    pub(crate) fn before(&self, mark: usize, name: &str) -> Option<Vec<Fields>> {
        self.changes.iter().skip(mark).find_map(|change| match change {
            Change::Var(own, old) if own == name => Some(old.clone()),
            Change::Var(..) | Change::Function(..) => None,
        })?
    }

    /// Takes back every change since `mark`.
    pub(crate) fn undo(&mut self, mark: usize) {
        while self.changes.len() > mark {
            match self.changes.pop() {
                Some(Change::Var(name, Some(old))) => drop(self.vars.insert(name, old)),
                Some(Change::Var(name, None)) => drop(self.vars.remove(&name)),
                Some(Change::Function(name, Some(old))) => drop(self.functions.insert(name, old)),
                Some(Change::Function(name, None)) => drop(self.functions.remove(&name)),
                None => return,
            }
        }
    }

    pub(crate) fn put(&mut self, name: &str, values: Vec<Fields>) {
        let old = self.vars.insert(name.to_owned(), values);
        self.changes.push(Change::Var(name.to_owned(), old));
    }

    /// The variables changed since `mark`.
    pub(crate) fn changed(&self, mark: usize) -> Vec<String> {
        let mut names: Vec<String> = self
            .changes
            .iter()
            .skip(mark)
            .filter_map(|change| if let Change::Var(name, _) = change { Some(name.clone()) } else { None })
            .collect();
        names.sort_unstable();
        names.dedup();
        names
    }

    /// `name=value`, `name[key]=value`.
    pub(crate) fn set(&mut self, name: &str, values: Vec<Fields>, adds: bool, span: Span) {
        match name.strip_suffix(']').and_then(|name| name.split_once('[')) {
            Some((name, key)) => self.set_element(name, &vec![Part::Text(key.to_owned())], values, span),
            None => self.set_all(name, values, adds.then_some(false), span),
        }
    }

    /// Gives a variable values; `adds` appends: to an array with `true`, else to the text.
    pub(crate) fn set_all(&mut self, name: &str, mut values: Vec<Fields>, adds: Option<bool>, span: Span) {
        self.variable_set(name, &values, span);
        if self.integers.contains(name) {
            values.iter().flatten().for_each(|value| self.computed(value));
        }
        if self.shaped.contains(name) {
            values.iter().flatten().for_each(|value| self.number(value, 0));
            values.push(vec![vec![Part::Unknown(Source::Any)]]);
        }
        if let Some(target) = self.references.remove(name) {
            if let Some(target) = &target {
                self.conditionally(|eval| eval.set_all(target, values.clone(), adds, span));
            }
            self.references.insert(name.to_owned(), target);
        }
        let mut old = self.vars.get(name).cloned().unwrap_or_default();
        if old.is_empty() && (self.conditional > 0 || adds.is_some()) {
            self.unsure.insert(name.to_owned());
        }
        if name == "IFS" && old.is_empty() {
            old.push(vec![vec![Part::Text(" \t\n".to_owned())]]);
        }
        if let (Some(array), false) = (adds, old.is_empty()) {
            let mut joined = Vec::new();
            for before in &old {
                for value in values.iter().take(MAX_VALUES + 1 - joined.len().min(MAX_VALUES)) {
                    joined.push(appended(before, value, array));
                }
            }
            values = joined;
        }
        if self.conditional > 0 || self.frozen.contains(name) {
            values.extend(old);
        }
        let mut unique: Vec<Fields> = Vec::new();
        for value in values {
            if !unique.contains(&value) {
                unique.push(value);
            }
            if unique.len() > MAX_VALUES {
                unique = vec![vec![vec![Part::Unknown(Source::Any)]]];
                self.limit("a variable that may be too many things");
                break;
            }
        }
        self.bounded(&mut unique);
        self.put(name, unique);
    }

    /// `name[key]=value`: an element of its own, and one more of the array.
    pub(crate) fn set_element(&mut self, name: &str, key: &Text, values: Vec<Fields>, span: Span) {
        let own = literal(key).map_or_else(|| format!("{name}[?]"), |key| format!("{name}[{key}]"));
        self.set_all(&own, values.clone(), None, span);
        if self.vars.contains_key(name) {
            self.conditionally(|eval| eval.set_all(name, values, Some(true), span));
        } else {
            self.set_all(name, values, None, span);
        }
    }

    /// `unset`: perhaps it has no value any more.
    pub(crate) fn unset(&mut self, name: &str) {
        if let Some(function) = self.functions.get(name) {
            let unsure = Function { sure: false, ..function.clone() };
            let old = self.functions.insert(name.to_owned(), unsure);
            self.changes.push(Change::Function(name.to_owned(), old));
        }
        if let Some(mut values) = self.vars.get(name).cloned() {
            values.push(Vec::new());
            self.put(name, values);
        }
    }

    /// What a parameter may hold; `None` when nobody assigned it.
    pub(crate) fn lookup(&mut self, name: &str, key: Option<&Text>) -> Option<Vec<Fields>> {
        let base = name.strip_suffix("[@]").or_else(|| name.strip_suffix("[*]")).unwrap_or(name);
        if self.references.contains_key(base) {
            let target = self.stands_for(base);
            let held = target.as_ref().and_then(|target| self.lookup(target, key));
            match target {
                Some(target) => self.outside_read(&target, held.is_some()),
                None => self.variable_read(""),
            }
            return held.or_else(|| Some(vec![vec![vec![Part::Unknown(Source::Any)]]]));
        }
        let values = match key {
            Some(key) => self.element(base, key),
            None if base == name && self.vars.contains_key(name) => {
                // `$a` of an array is its first element.
                let first = |fields: &Fields| fields.first().cloned().into_iter().collect();
                self.vars.get(name).map(|values| values.iter().map(first).collect())
            }
            None => self.values(base),
        };
        let size = |fields: &Fields| 1 + fields.iter().map(|text| 1 + crate::text::size(text) / 16).sum::<usize>();
        let cost = values.iter().flatten().map(size).sum();
        if self.spend(cost) { values } else { Some(vec![vec![vec![Part::Unknown(Source::Any)]]]) }
    }

    /// What a name stands for in the end, by `declare -n`; `None` where that is not known.
    fn stands_for(&self, name: &str) -> Option<String> {
        let mut target = self.references.get(name)?.clone()?;
        for _ in 0..MAX_REFERENCES {
            match self.references.get(&target) {
                None => return Some(target),
                Some(next) => target = next.clone()?,
            }
        }
        None
    }

    /// `${name[key]}`
    fn element(&self, name: &str, key: &Text) -> Option<Vec<Fields>> {
        let arrays = self.vars.get(name)?;
        let Some(key) = literal(key) else { return Some(each(arrays)) };
        let own = self.vars.get(&format!("{name}[{key}]"));
        let mut out: Vec<Fields> = own.into_iter().flatten().cloned().collect();
        out.extend(self.vars.get(&format!("{name}[?]")).into_iter().flatten().cloned());
        match key.trim().parse::<i64>() {
            Ok(at) => out.extend(arrays.iter().map(|fields| at_index(fields, at))),
            Err(_) if own.is_none() => out.extend(each(arrays)),
            Err(_) => {}
        }
        Some(out)
    }

    fn values(&self, name: &str) -> Option<Vec<Fields>> {
        let text = |text: String| vec![vec![vec![Part::Text(text)]]];
        if let Some(values) = self.vars.get(name) {
            return Some(values.clone());
        }
        let fields = |words: &[Word]| words.iter().map(|word| word.parts.clone()).collect::<Fields>();
        if let Some(source) = stood_for(name) {
            return Some(vec![vec![vec![Part::Unknown(source)]]]);
        }
        match name {
            "HOME" => self.home().map(text),
            // Where it is set, it names a folder like this one.
            "TMPDIR" => Some(text("/tmp".to_owned())),
            "_" => self.last.clone().filter(|last| !last.is_empty()),
            "PWD" => self.cwd().or_else(|| self.only_folder()).map(text),
            "IFS" => Some(text(" ".to_owned())),
            "@" | "*" => {
                let arguments = self.arguments.as_ref()?;
                let all = arguments.words.get(1..).unwrap_or_default();
                if !arguments.loose {
                    return Some(vec![fields(all)]);
                }
                let suffixes = (0..=all.len().min(24)).map(|from| fields(all.get(from..).unwrap_or_default()));
                Some(suffixes.chain((all.len() > 24).then(|| vec![vec![Part::Unknown(Source::Any)]])).collect())
            }
            _ => {
                let index: usize = name.parse().ok()?;
                let arguments = self.arguments.as_ref()?;
                let rest = arguments.words.get(index..).unwrap_or_default();
                if arguments.loose && index > 0 {
                    let some = rest.iter().take(24).map(|word| vec![word.parts.clone()]);
                    let more = (rest.len() > 24).then(|| vec![vec![Part::Unknown(Source::Any)]]);
                    return Some(some.chain([Vec::new()]).chain(more).collect());
                }
                Some(vec![fields(rest.get(..1).unwrap_or_default())])
            }
        }
    }

    /// What words are split at; `None` when that is not known.
    pub(crate) fn separators(&self) -> Option<Vec<char>> {
        match self.vars.get("IFS").map(Vec::as_slice) {
            None => Some(vec![' ', '\t', '\n']),
            Some([only]) => Some(literal(&only.concat())?.chars().collect()),
            Some(_) => None,
        }
    }

    pub(crate) fn set_arguments(&mut self, words: Vec<Word>) {
        if words.len() > MAX_FIELDS {
            self.arguments = None;
            return self.limit("too many parameters");
        }
        let mut arguments = Arguments::of(words);
        if self.conditional > 0
            && let Some(old) = &self.arguments
        {
            let new = arguments.words.iter().skip(1).cloned();
            arguments = Arguments { words: Rc::new(old.words.iter().cloned().chain(new).collect()), loose: true };
        }
        self.arguments = Some(arguments);
    }

    /// `shift`
    pub(crate) fn shift(&mut self, count: Option<usize>) {
        let Some(arguments) = &mut self.arguments else { return };
        match count {
            Some(count) if self.conditional == 0 && !arguments.loose => {
                let kept = arguments.words.iter().skip(1 + count).cloned();
                arguments.words = Rc::new(arguments.words.iter().take(1).cloned().chain(kept).collect());
            }
            _ => arguments.loose = true,
        }
    }

    /// `name () { … }`
    pub(crate) fn define(&mut self, name: &str, body: &Rc<Node>) {
        let old = self.functions.get(name);
        let conditional = self.conditional > 0 || self.depth > 0;
        let mut bodies = old.filter(|_| conditional).map(|old| old.bodies.clone()).unwrap_or_default();
        bodies.push(Rc::clone(body));
        let sure = !conditional || old.is_some_and(|old| old.sure);
        let old = self.functions.insert(name.to_owned(), Function { bodies, sure });
        self.changes.push(Change::Function(name.to_owned(), old));
    }

    /// Calls a function defined in this line. True when nothing else can have that name.
    pub(crate) fn call(&mut self, name: &str, words: &[Word], input: &Input) -> bool {
        let Some(Function { bodies, sure }) = self.functions.get(name).cloned() else { return false };
        if self.depth >= MAX_DEPTH {
            self.limit("calls nested too deep");
            return true;
        }
        if !self.spend(words.len()) {
            return true;
        }
        self.depth += 1;
        self.uncalled.retain(|(own, ..)| own != name);
        let mark = self.changes.len();
        let before = self.arguments.replace(Arguments::of(words.to_vec()));
        self.conditional += usize::from(!sure || bodies.len() > 1);
        for body in &bodies {
            self.node(body, input);
        }
        self.conditional -= usize::from(!sure || bodies.len() > 1);
        self.arguments = before;
        self.depth -= 1;
        self.keep_old(mark);
        let certain = sure && self.other_shell == 0;
        if certain {
            self.out.functions.insert(name.to_owned());
        }
        certain
    }
}

fn each(arrays: &[Fields]) -> Vec<Fields> {
    let mut out: Vec<Fields> = arrays.iter().flatten().take(MAX_VALUES).map(|text| vec![text.clone()]).collect();
    if arrays.iter().map(Vec::len).sum::<usize>() > MAX_VALUES {
        out.push(vec![vec![Part::Unknown(Source::Any)]]);
    }
    out.push(Vec::new());
    out
}

fn at_index(fields: &Fields, at: i64) -> Fields {
    let len = i64::try_from(fields.len()).unwrap_or(i64::MAX);
    let at = usize::try_from(if at < 0 { len + at } else { at }).ok();
    at.and_then(|at| fields.get(at)).cloned().into_iter().collect()
}

fn appended(before: &Fields, value: &Fields, array: bool) -> Fields {
    let mut out = before.clone();
    if array {
        out.extend(value.iter().cloned());
        return out;
    }
    if out.is_empty() {
        out.push(Text::new());
    }
    out.iter_mut().take(1).for_each(|first| first.extend(value.iter().flatten().cloned()));
    out
}
