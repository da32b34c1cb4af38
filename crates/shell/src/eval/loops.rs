//! Loops: word by word where the words are known, else until nothing changes any more.

use crate::eval::Eval;
use crate::eval::input::Input;
use crate::eval::words::arithmetic;
use crate::eval::words::expand::MAX_VALUES;
use crate::parser::syntax::{Node, RawWord};
use crate::text::{Fields, literal};
use crate::word::{Dir, Part, Source};

/// Most words of a loop that is followed word by word.
const STEPWISE: usize = 24;
/// Most numbers that a loop counts through before they all are alike.
const COUNTED: usize = 64;

impl Eval<'_> {
    /// `while`, `until`, `for ((…))`.
    pub(crate) fn looped(&mut self, nodes: &[Node], input: &Input) {
        let counters = self.counters.len();
        self.counters.extend(arithmetic::counters(nodes));
        let mark = self.changes.len();
        let dirs = self.dirs.clone();
        let run = |eval: &mut Self| {
            eval.conditionally(|eval| nodes.iter().for_each(|node| eval.node(node, input)));
            eval.add_dirs(dirs.clone());
        };
        run(self);
        self.run_to_fixpoint(mark, &dirs, run);
        self.counters.truncate(counters);
    }

    pub(crate) fn for_loop(&mut self, name: &str, words: Option<&[RawWord]>, body: &Node, input: &Input) {
        let values = self.loop_values(words);
        let mark = self.changes.len();
        let dirs = self.dirs.clone();
        self.put(name, values.clone());
        self.variable_set(name, &values, self.here);
        let first = self.changes.len();
        let run = |eval: &mut Self| {
            eval.conditionally(|eval| eval.node(body, input));
            eval.add_dirs(dirs.clone());
        };
        run(self);
        let known = values.iter().flatten().all(|text| literal(text).is_some());
        if !known || values.len() > STEPWISE || self.stepping {
            return self.run_to_fixpoint(first, &dirs, run);
        }
        let names = self.changed(first);
        if names.is_empty() && self.dirs == dirs {
            return;
        }
        self.undo(mark);
        // A `continue` may leave all as it was.
        let old = |name: String| (name.clone(), self.vars.get(&name).cloned().unwrap_or_default());
        let mut seen: Vec<(String, Vec<Fields>)> = names.into_iter().map(old).collect();
        (self.stepping, self.repeats) = (true, self.repeats + 1);
        for value in &values {
            self.put(name, vec![value.clone()]);
            self.node(body, input);
            for (name, seen) in &mut seen {
                for value in self.vars.get(name.as_str()).into_iter().flatten() {
                    if !seen.contains(value) {
                        seen.push(value.clone());
                    }
                }
            }
            self.add_dirs(dirs.clone());
        }
        (self.stepping, self.repeats) = (false, self.repeats - 1);
        // A `break` may end it after any round.
        self.conditionally(|eval| seen.into_iter().for_each(|(name, seen)| eval.set_all(&name, seen, None, eval.here)));
    }

    /// Repeats a loop's body until it changes nothing more; what keeps changing is not known.
    fn run_to_fixpoint(&mut self, mark: usize, dirs: &[Dir], run: impl Fn(&mut Self)) {
        let mut names = self.changed(mark);
        if names.is_empty() && self.dirs == dirs {
            return;
        }
        self.repeats += 1;
        for round in 0..4 {
            let before: Vec<Option<Vec<Fields>>> = names.iter().map(|name| self.vars.get(name).cloned()).collect();
            let (more, places) = (self.changes.len(), self.dirs.clone());
            run(self);
            let grown = |(name, before): &(&String, Option<Vec<Fields>>)| self.vars.get(*name) != before.as_ref();
            let mut grown: Vec<String> = names.iter().zip(before).filter(grown).map(|(name, _)| name.clone()).collect();
            grown.extend(self.changed(more).into_iter().filter(|name| !names.contains(name)));
            if self.dirs.len() > places.len() && !self.dirs.contains(&Dir::Unknown) && round > 0 {
                self.dirs.push(Dir::Unknown);
            }
            if grown.is_empty() && self.dirs == places {
                break;
            }
            for name in grown {
                self.put(&name, vec![vec![vec![Part::Unknown(Source::Any)]]]);
                if !names.contains(&name) {
                    names.push(name);
                }
            }
        }
        self.repeats -= 1;
    }

    /// What a loop runs through; without words, the positional parameters.
    fn loop_values(&mut self, words: Option<&[RawWord]>) -> Vec<Fields> {
        let unknown = || vec![vec![Part::Unknown(Source::Any)]];
        let mut values: Vec<Fields> = Vec::new();
        match words {
            None => {
                let all = self.lookup("@", None).unwrap_or_else(|| vec![unknown()]);
                values.extend(all.into_iter().flatten().map(|text| vec![text]));
            }
            Some(words) => {
                for word in words {
                    for fields in self.expand(word) {
                        values.extend(fields.into_iter().map(|word| vec![word.parts]));
                    }
                }
            }
        }
        let number = |fields: &Fields| literal(&fields.concat()).is_none_or(|text| text.parse::<i64>().is_ok());
        if values.len() > COUNTED && values.iter().all(number) {
            values.truncate(COUNTED);
            values.push(unknown());
        }
        if values.len() > MAX_VALUES {
            values.truncate(MAX_VALUES);
            values.push(unknown());
            self.limit("a loop through too many words");
        }
        values
    }
}
