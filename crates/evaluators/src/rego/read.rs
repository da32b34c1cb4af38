//! What a module reads of its input, as its syntax tree tells without running it.
//!
//! Owns the following of names: imports, assignments, what `some … in` binds, and what a function is called with. Refuses to prove
//! anything: what is read by a name that is made at run time is not seen. Invariant: where two things may be meant, both count as read.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use regorus::unstable::{Expr, Literal, Module, Query, Rule, RuleBody, RuleHead, Span};
use serde::{Deserialize, Serialize};
use writ_core::json::Value;

/// The member that holds the statements, by pattern.
const STATEMENTS: &str = "attestationsFrom";
/// Longest path that is followed, in steps.
const LONGEST: usize = 16;
/// Most paths that one name may stand for.
const MOST: usize = 64;
/// How often a module is gone through to follow its names.
const ROUNDS: usize = 8;

/// One step into a document.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Step {
    /// The member of this name.
    Name(String),
    /// Whatever is inside.
    Any,
}

/// A place in the input.
pub type Path = Vec<Step>;
/// What an expression may stand for.
type Places = BTreeSet<Path>;

/// A place that a module reads.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Read {
    /// The line, from 1.
    pub line: u32,
    /// From the input on.
    pub path: Path,
}

impl Read {
    /// The pattern whose statements are read.
    pub fn pattern(&self) -> Option<&str> {
        match self.path.as_slice() {
            [Step::Name(first), Step::Name(pattern), ..] if first == STATEMENTS => Some(pattern),
            _ => None,
        }
    }

    /// The place, as far as the input has none such.
    pub fn missing(&self, input: &Value) -> Option<String> {
        let depth = missing(&self.path, input, 0)?;
        Some(self.path.get(..=depth)?.iter().fold("input".to_owned(), |text, step| format!("{text}{step}")))
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(name) if name.chars().all(|c| c.is_alphanumeric() || c == '_') => write!(f, ".{name}"),
            Self::Name(name) => write!(f, "[{name:?}]"),
            Self::Any => f.write_str("[_]"),
        }
    }
}

/// The step of a path that leads nowhere; `None` where one does, and where what is inside is not known.
fn missing(path: &[Step], value: &Value, depth: usize) -> Option<usize> {
    let (step, rest) = path.split_first()?;
    match (step, value) {
        (Step::Name(name), Value::Object(members)) => match members.get(name) {
            Some(inside) => missing(rest, inside, depth + 1),
            None => Some(depth),
        },
        (Step::Any, Value::Object(members)) => {
            nowhere(members.iter().map(|(_, inside)| missing(rest, inside, depth + 1)))
        }
        (Step::Any, Value::Array(items)) => nowhere(items.iter().map(|inside| missing(rest, inside, depth + 1))),
        _ => None,
    }
}

/// The deepest of all, where each leads nowhere.
fn nowhere(each: impl Iterator<Item = Option<usize>>) -> Option<usize> {
    each.collect::<Option<Vec<usize>>>()?.into_iter().max()
}

/// What a module's tree tells.
#[derive(Debug, Default)]
pub struct Seen {
    /// What it reads.
    pub reads: BTreeSet<Read>,
    /// The functions it calls by name, each with the first line.
    pub calls: BTreeMap<String, u32>,
    /// The first line where `walk` is not told what to take its pairs apart into.
    pub walks: Option<u32>,
    /// Whether it has a rule `deny`, which is not a function.
    pub denies: bool,
}

/// Goes through a module.
pub fn seen(module: &Module) -> Seen {
    let mut walk = Walk::default();
    for import in &module.imports {
        let places = walk.chain(&import.refr);
        let name = import.r#as.as_ref().map(|name| name.text().to_owned()).or_else(|| last(&import.refr));
        walk.bind_all(name, &places);
    }
    for _ in 0..ROUNDS {
        let before = walk.of_module.clone();
        for rule in &module.policy {
            walk.rule(rule);
        }
        if walk.of_module == before {
            break;
        }
    }
    walk.seen
}

#[derive(Default)]
struct Walk {
    seen: Seen,
    /// Names of the module: imports, rules, and `f/0` for the first argument of a function.
    of_module: BTreeMap<String, Places>,
    /// Names of the rule that is gone through.
    of_rule: BTreeMap<String, Places>,
}

impl Walk {
    fn rule(&mut self, rule: &Rule) {
        self.of_rule.clear();
        // What a line uses may be bound by one below it.
        for _ in 0..ROUNDS {
            let before = self.of_rule.clone();
            self.rule_once(rule);
            if self.of_rule == before {
                break;
            }
        }
    }

    fn rule_once(&mut self, rule: &Rule) {
        let (head, bodies) = match rule {
            Rule::Spec { head, bodies, .. } => (head, bodies),
            Rule::Default { refr, value, .. } => {
                self.seen.denies |= first(refr) == Some("deny");
                self.value(value);
                return;
            }
        };
        let (refr, assign) = match head {
            RuleHead::Compr { refr, assign, .. } => (refr, assign.as_ref()),
            RuleHead::Set { refr, key, .. } => {
                key.iter().for_each(|key| drop(self.value(key)));
                (refr, None)
            }
            RuleHead::Func { refr, args, assign, .. } => {
                for (index, arg) in args.iter().enumerate() {
                    let places = self.of_module.get(&argument(&dotted(refr), index)).cloned().unwrap_or_default();
                    self.bind(arg, &places);
                }
                (refr, assign.as_ref())
            }
        };
        self.seen.denies |= first(refr) == Some("deny") && !matches!(head, RuleHead::Func { .. });
        let mut places = assign.map(|assign| self.value(&assign.value)).unwrap_or_default();
        for RuleBody { assign, query, .. } in bodies {
            self.query(query);
            places.extend(assign.iter().flat_map(|assign| self.value(&assign.value)));
        }
        self.bind_all(first(refr).map(str::to_owned), &places);
    }

    fn query(&mut self, query: &Query) {
        for statement in &query.stmts {
            for with in &statement.with_mods {
                self.value(&with.r#as);
            }
            match &statement.literal {
                Literal::SomeVars { .. } => {}
                Literal::SomeIn { value, collection, .. } => {
                    let places = inside(self.value(collection));
                    self.bind(value, &places);
                }
                Literal::Expr { expr, .. } | Literal::NotExpr { expr, .. } => drop(self.value(expr)),
                Literal::Every { value, domain, query, .. } => {
                    let places = inside(self.value(domain));
                    self.bind_local(value.text(), &places);
                    self.query(query);
                }
            }
        }
    }

    /// What an expression may stand for; it counts as read.
    fn value(&mut self, expr: &Expr) -> Places {
        let places = self.chain(expr);
        if matches!(expr, Expr::Var { .. } | Expr::RefDot { .. } | Expr::RefBrack { .. }) {
            let line = expr.span().line;
            let read = places.iter().filter(|path| !path.is_empty());
            self.seen.reads.extend(read.map(|path| Read { line, path: path.clone() }));
        }
        places
    }

    /// What an expression may stand for; only what it asks on the way counts as read.
    fn chain(&mut self, expr: &Expr) -> Places {
        match expr {
            Expr::Var { span, .. } if span.text() == "input" => Places::from([Path::new()]),
            Expr::Var { span, .. } => {
                let name = span.text();
                self.of_rule.get(name).or_else(|| self.of_module.get(name)).cloned().unwrap_or_default()
            }
            Expr::RefDot { refr, field, .. } => {
                let base = self.chain(refr);
                further(&base, &Step::Name(field.0.text().to_owned()))
            }
            Expr::RefBrack { refr, index, .. } => {
                let base = self.chain(refr);
                let inside_literal = matches!(**refr, Expr::Array { .. } | Expr::Object { .. } | Expr::Set { .. });
                let step = text(index).map_or(Step::Any, Step::Name);
                drop(self.value(index));
                if inside_literal { base } else { further(&base, &step) }
            }
            Expr::Call { fcn, params, .. } => self.call(fcn, params),
            Expr::Array { items, .. } | Expr::Set { items, .. } => self.values(items.iter().map(|item| &**item)),
            Expr::Object { fields, .. } => self.values(fields.iter().flat_map(|(_, name, value)| [&**name, &**value])),
            Expr::ArrayCompr { term, query, .. } | Expr::SetCompr { term, query, .. } => {
                self.query(query);
                drop(self.value(term));
                Places::new()
            }
            Expr::ObjectCompr { key, value, query, .. } => {
                self.query(query);
                drop(self.values([&**key, &**value].into_iter()));
                Places::new()
            }
            Expr::UnaryExpr { expr, .. } => self.value(expr),
            Expr::BinExpr { lhs, rhs, .. } | Expr::BoolExpr { lhs, rhs, .. } | Expr::ArithExpr { lhs, rhs, .. } => {
                self.values([&**lhs, &**rhs].into_iter())
            }
            Expr::AssignExpr { lhs, rhs, .. } => {
                let (left, right) = (self.value(lhs), self.value(rhs));
                self.bind(lhs, &right);
                self.bind(rhs, &left);
                Places::new()
            }
            Expr::Membership { key, value, collection, .. } => {
                key.iter().for_each(|key| drop(self.value(key)));
                drop(self.values([&**value, &**collection].into_iter()));
                Places::new()
            }
            Expr::String { .. }
            | Expr::RawString { .. }
            | Expr::Number { .. }
            | Expr::Bool { .. }
            | Expr::Null { .. } => Places::new(),
        }
    }

    fn values<'m>(&mut self, all: impl Iterator<Item = &'m Expr>) -> Places {
        all.flat_map(|expr| self.value(expr)).take(MOST).collect()
    }

    fn call(&mut self, fcn: &Expr, params: &[regorus::unstable::Ref<Expr>]) -> Places {
        let name = dotted(fcn);
        self.seen.calls.entry(name.clone()).or_insert(fcn.span().line);
        if name == "walk" && params.len() == 1 {
            self.seen.walks.get_or_insert(fcn.span().line);
        }
        if let ("object.get", [object, key, default]) = (name.as_str(), params) {
            let base = self.chain(object);
            let steps = match &**key {
                Expr::Array { items, .. } => {
                    items.iter().map(|item| text(item).map_or(Step::Any, Step::Name)).collect()
                }
                key => vec![text(key).map_or(Step::Any, Step::Name)],
            };
            drop(self.value(default));
            let places = steps.iter().fold(base, |places, step| further(&places, step));
            // What has a default is not missed; a pattern that is not there is.
            let line = fcn.span().line;
            let patterns =
                places.iter().filter_map(|path| path.get(..2)).map(|path| Read { line, path: path.to_vec() });
            self.seen.reads.extend(patterns.filter(|read| read.pattern().is_some()));
            return places;
        }
        let mut places = Places::new();
        for (index, param) in params.iter().enumerate() {
            let of_param = self.value(param);
            self.bind_all(Some(argument(&name, index)), &of_param);
            places.extend(of_param);
        }
        // What a function of the module gives, and what a built-in one may hand on.
        places.extend(self.of_module.get(&name).cloned().unwrap_or_default());
        places
    }

    /// Binds the names of a term, in a pattern such as `[a, b]` too.
    fn bind(&mut self, term: &Expr, places: &Places) {
        match term {
            Expr::Var { span, .. } => self.bind_local(span.text(), places),
            Expr::Array { items, .. } => items.iter().for_each(|item| self.bind(item, &inside(places.clone()))),
            _ => {}
        }
    }

    fn bind_local(&mut self, name: &str, places: &Places) {
        if name != "input" && !places.is_empty() {
            extend(self.of_rule.entry(name.to_owned()).or_default(), places);
        }
    }

    fn bind_all(&mut self, name: Option<String>, places: &Places) {
        if let Some(name) = name.filter(|_| !places.is_empty()) {
            extend(self.of_module.entry(name).or_default(), places);
        }
    }
}

fn extend(all: &mut Places, more: &Places) {
    let room = MOST.saturating_sub(all.len());
    all.extend(more.iter().take(room).cloned());
}

/// Each place a step further in.
fn further(places: &Places, step: &Step) -> Places {
    let longer = |path: &Path| path.iter().chain([step]).cloned().collect();
    places.iter().filter(|path| path.len() < LONGEST).map(longer).collect()
}

fn inside(places: Places) -> Places {
    further(&places, &Step::Any)
}

/// A text that stands there as it is.
fn text(expr: &Expr) -> Option<String> {
    match expr {
        Expr::String { value, .. } | Expr::RawString { value, .. } => {
            value.as_string().ok().map(|text| text.to_string())
        }
        _ => None,
    }
}

/// `a.b.c`, however it is written.
fn dotted(expr: &Expr) -> String {
    match expr {
        Expr::Var { span, .. } => span.text().to_owned(),
        Expr::RefDot { refr, field, .. } => format!("{}.{}", dotted(refr), field.0.text()),
        Expr::RefBrack { refr, index, .. } => format!("{}.{}", dotted(refr), text(index).unwrap_or_default()),
        _ => String::new(),
    }
}

fn first(expr: &Expr) -> Option<&str> {
    match expr {
        Expr::Var { span, .. } => Some(Span::text(span)),
        Expr::RefDot { refr, .. } | Expr::RefBrack { refr, .. } => first(refr),
        _ => None,
    }
}

fn last(expr: &Expr) -> Option<String> {
    match expr {
        Expr::Var { span, .. } => Some(span.text().to_owned()),
        Expr::RefDot { field, .. } => Some(field.0.text().to_owned()),
        Expr::RefBrack { index, .. } => text(index),
        _ => None,
    }
}

fn argument(function: &str, index: usize) -> String {
    format!("{function}/{index}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use regorus::Engine;
    use writ_core::json;

    fn of(rules: &str) -> Seen {
        let mut engine = Engine::new();
        engine.add_policy("p".to_owned(), format!("package p\nimport rego.v1\n{rules}")).unwrap();
        seen(&engine.get_modules()[0])
    }

    fn patterns(rules: &str) -> Vec<(u32, String)> {
        let reads = of(rules).reads;
        let found: BTreeSet<_> =
            reads.iter().filter_map(|read| Some((read.line, read.pattern()?.to_owned()))).collect();
        found.into_iter().collect()
    }

    #[test]
    fn a_pattern_is_read_however_it_is_written() {
        let turns = |line| vec![(line, "turn-*".to_owned())];
        for rules in [
            r#"x := [t | some t in input.attestationsFrom["turn-*"]]"#,
            r#"x := [t | some t in input.attestationsFrom[ "turn-*" ]]"#,
            r#"x := input["attestationsFrom"]["turn-*"][0].predicate"#,
            r#"x := [t | some t in input.attestationsFrom["turn\u002d*"]]"#,
            r#"x := object.get(input.attestationsFrom, "turn-*", [])"#,
            r#"x := object.get(input, ["attestationsFrom", `turn-*`], [])"#,
            r#"x := [input.attestationsFrom][0]["turn-*"]"#,
            r#"deny contains "x" if { a := input; b := a.attestationsFrom; every t in b["turn-*"] { t.q } }"#,
            r#"deny contains "x" if { not input.attestationsFrom["turn-*"] }"#,
            r#"deny contains "x" if { count(input.attestationsFrom["turn-*"]) > 1 }"#,
        ] {
            assert_eq!(patterns(rules).first(), turns(3).first(), "{rules}");
        }
        for (line, rules) in [
            (4, "af := input.attestationsFrom\nx := af[\"turn-*\"]"),
            (3, "import input.attestationsFrom as af\ndeny contains 1 if { af[\"turn-*\"] }"),
            (3, "import input.attestationsFrom\ndeny contains 1 if { attestationsFrom[\"turn-*\"] }"),
            (3, "f(a) := a[\"turn-*\"]\nx := f(input.attestationsFrom)"),
            (4, "f(a) := g(a)\ng(b) := b.attestationsFrom[\"turn-*\"]\nx := f(input)"),
            (4, "f(a) := input.attestationsFrom\nx := f(1)[\"turn-*\"]"),
        ] {
            let found = patterns(rules);
            assert!(found.iter().any(|(_, pattern)| pattern == "turn-*"), "{rules}: {found:?}");
            let line = if rules.starts_with("import") { line + 1 } else { line };
            assert!(found.iter().any(|(at, _)| *at == line), "{rules}: {found:?}");
        }
        for rules in [
            "# input.attestationsFrom[\"turn-*\"]\nx := 1",
            "x := \"input.attestationsFrom[\\\"turn-*\\\"]\"",
            "deny contains 1 if { some name, all in input.attestationsFrom; count(all) > 1; name == \"turn-*\" }",
            "x := input.policy.attestationsFrom[\"turn-*\"]",
        ] {
            assert_eq!(patterns(rules), [], "{rules}");
        }
    }

    #[test]
    fn what_is_not_there_is_told_with_its_place() {
        let input = r#"{"attestationsFrom":{"turn-*":[{"predicate":{"metrics":{"costUSD":1}}},{"predicate":{}}]},"policy":{"name":"x"}}"#;
        let input = json::parse(input.as_bytes()).unwrap();
        let told = |rules: &str| {
            let reads = of(rules).reads;
            reads.iter().filter_map(|read| read.missing(&input)).collect::<Vec<_>>()
        };
        let turn = r#"deny contains 1 if { some t in input.attestationsFrom["turn-*"]; t.predicate.metrics."#;
        assert_eq!(told(&format!("{turn}costUSD > 1 }}")), Vec::<String>::new());
        let missed = [r#"input.attestationsFrom["turn-*"][_].predicate.metrics.costUsd"#];
        assert_eq!(told(&format!("{turn}costUsd > 1 }}")), missed);
        assert_eq!(told("x := input.policy.expected.more"), ["input.policy.expected"]);
        assert_eq!(told("x := input.policy[\"na me\"]"), ["input.policy[\"na me\"]"]);
        assert_eq!(told("x := input.policy.name.more"), Vec::<String>::new());
    }

    #[test]
    fn calls_are_known_by_name_and_a_function_is_no_rule() {
        for call in [r#"rand.intn("a", 5)"#, r#"rand["intn"]("a", 5)"#] {
            assert_eq!(of(&format!("x := {call}")).calls.get("rand.intn"), Some(&3), "{call}");
        }
        assert!(of("x := \"rand.intn\"").calls.is_empty());
        for (line, rules) in [
            (Some(3), "deny contains v if { [_, v] := walk(input) }"),
            (Some(3), "deny contains v if { [_, v] = walk(input.policy) }"),
            (Some(3), "deny contains v if { some [_, v] in walk(input) }"),
            (Some(3), "x := count([v | [_, v] := walk(input)])"),
            (None, "deny contains v if { walk(input, [_, v]) }"),
        ] {
            assert_eq!(of(rules).walks, line, "{rules}");
        }
        for (denies, rules) in [
            (true, "deny contains 1 if false"),
            (true, "default deny := false"),
            (true, "deny.spend contains 1 if false"),
            (true, "deny := false"),
            (false, "deny(x) := true"),
            (false, "denied := true"),
        ] {
            assert_eq!(of(rules).denies, denies, "{rules}");
        }
    }
}
