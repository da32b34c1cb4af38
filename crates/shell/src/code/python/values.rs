//! What an expression of Python surely is, as far as it is a text, a path, or a list of them.

use crate::code::python::Reader;
use crate::code::python::bind::Binding;
use crate::code::token::{Kind, MAX_NESTING, Piece, Token, arguments, inside, past_bracket, split};
use crate::code::{MAX_VALUES, Value, concat, joined, known, text_of};
use crate::word::Part;

impl<'t> Reader<'t> {
    /// Every text or path that an expression may be; `None` where that is not known.
    pub(super) fn values(&self, tokens: &'t [Token], depth: usize) -> Option<Vec<Value>> {
        let left = self.steps.get().checked_sub(1 + tokens.len())?;
        self.steps.set(left);
        if depth > MAX_NESTING {
            return None;
        }
        let tokens = trimmed(tokens);
        for (sign, between) in [("+", ""), ("/", "/")] {
            let sides = split(tokens, sign);
            if sides.len() > 1 {
                let mut out = vec![Value::new()];
                for side in sides {
                    let side = self.values(side, depth + 1)?;
                    out = if between.is_empty() { joined(&out, &side)? } else { below(&out, &side)? };
                }
                return Some(out);
            }
        }
        self.primary(tokens, depth)
    }

    fn primary(&self, tokens: &'t [Token], depth: usize) -> Option<Vec<Value>> {
        let first = tokens.first()?;
        if tokens.iter().all(|token| matches!(token.kind, Kind::Text | Kind::Mixed(_))) {
            let mut out = vec![Value::new()];
            for token in tokens {
                out = joined(&out, &self.text(token, depth)?)?;
            }
            return Some(out);
        }
        if first.is("(") {
            let end = past_bracket(tokens, 0)?;
            let inner = self.values(inside(tokens, 0)?, depth + 1)?;
            return self.behind(tokens.get(end..)?, inner);
        }
        let name = first.name()?;
        if let Some(path) = self.path_of(tokens) {
            return self.called(&path, tokens, depth);
        }
        let bindings = self.bindings.names.get(name)?;
        let mut out: Vec<Value> = Vec::new();
        for binding in bindings {
            let more = match binding {
                Binding::Is(value) => self.values(value, depth + 1)?,
                Binding::Each(values) => self.elements(values, depth + 1)?,
                Binding::Other => return None,
            };
            out.extend(more);
            if out.len() > MAX_VALUES {
                return None;
            }
        }
        self.behind(tokens.get(1..)?, out)
    }

    fn text(&self, token: &'t Token, depth: usize) -> Option<Vec<Value>> {
        match &token.kind {
            Kind::Text => Some(vec![known(&token.text)]),
            Kind::Mixed(pieces) => {
                let mut out = vec![Value::new()];
                for piece in pieces {
                    let here = match piece {
                        Piece::Text(text) => vec![known(text)],
                        Piece::Code(code) => self.values(code, depth + 1)?,
                    };
                    out = joined(&out, &here)?;
                }
                Some(out)
            }
            Kind::Name | Kind::Value | Kind::Sign | Kind::Line => None,
        }
    }

    /// Members that leave a path what it is.
    fn behind(&self, rest: &'t [Token], values: Vec<Value>) -> Option<Vec<Value>> {
        let mut rest = rest;
        let mut values = values;
        while let [dot, name, more @ ..] = rest {
            if !dot.is(".") {
                return None;
            }
            match name.name()? {
                "resolve" | "absolute" | "expanduser" | "as_posix" if more.first().is_some_and(|open| open.is("(")) => {
                    if name.text == "expanduser" {
                        values = values.into_iter().map(|value| self.expanded(value)).collect();
                    }
                    rest = rest.get(2 + past_bracket(more, 0)?..)?;
                }
                "joinpath" if more.first().is_some_and(|open| open.is("(")) => {
                    for argument in arguments(inside(more, 0)?) {
                        values = below(&values, &self.values(argument, 1)?)?;
                    }
                    rest = rest.get(2 + past_bracket(more, 0)?..)?;
                }
                _ => return None,
            }
        }
        rest.is_empty().then_some(values)
    }

    /// `~` at the front, where it is known.
    fn expanded(&self, value: Value) -> Value {
        match (value.first(), &self.around.home) {
            (Some(Part::Text(text)), Some(home)) if text == "~" || text.starts_with("~/") => {
                let rest = text.strip_prefix('~').unwrap_or_default();
                let mut out = known(&format!("{home}{rest}"));
                out.extend(value.iter().skip(1).cloned());
                out
            }
            _ => value,
        }
    }

    /// What a function of a module gives.
    fn called(&self, path: &(String, usize), tokens: &'t [Token], depth: usize) -> Option<Vec<Value>> {
        let (name, end) = (path.0.as_str(), path.1);
        let rest = tokens.get(end..)?;
        if name == "sys.argv" {
            return self.argument(rest);
        }
        if name == "os.sep" {
            return self.behind(rest, vec![known("/")]);
        }
        if !rest.first()?.is("(") {
            let (cls, call) = (name.strip_suffix("Path").is_some(), rest.get(2)?);
            // `Path.home()`
            let folder = match rest.get(1)?.name()? {
                "cwd" => ".".to_owned(),
                "home" => self.around.home.clone()?,
                _ => return None,
            };
            return (cls && call.is("(")).then(|| self.behind(rest.get(4..)?, vec![known(&folder)]))?;
        }
        let given = arguments(inside(rest, 0)?);
        let after = rest.get(past_bracket(rest, 0)?..)?;
        let mut all = Vec::new();
        for argument in &given {
            all.push(self.values(argument, depth + 1)?);
        }
        let values = match (name, all.as_slice()) {
            ("os.getcwd", []) | ("pathlib.Path", []) => vec![known(".")],
            ("os.path.join" | "pathlib.Path" | "pathlib.PurePath" | "pathlib.PosixPath", [first, more @ ..]) => {
                let mut out = first.clone();
                for next in more {
                    out = below(&out, next)?;
                }
                out
            }
            ("str" | "os.path.abspath" | "os.path.realpath" | "os.path.normpath" | "os.fspath", [only]) => only.clone(),
            ("os.path.expanduser", [only]) => only.iter().cloned().map(|value| self.expanded(value)).collect(),
            _ => return None,
        };
        self.behind(after, values)
    }

    /// `sys.argv[1]`
    fn argument(&self, rest: &[Token]) -> Option<Vec<Value>> {
        let [open, place, close] = rest else { return None };
        if !(open.is("[") && close.is("]") && place.kind == Kind::Value) {
            return None;
        }
        let place: usize = place.text.parse().ok()?;
        let word = self.around.arguments.get(place.checked_sub(1)?)?;
        Some(vec![word.parts.clone()])
    }

    /// The elements of what is iterated over.
    pub(super) fn elements(&self, tokens: &'t [Token], depth: usize) -> Option<Vec<Value>> {
        if depth > MAX_NESTING {
            return None;
        }
        let tokens = trimmed(tokens);
        let first = tokens.first()?;
        let whole = past_bracket(tokens, 0) == Some(tokens.len());
        if (first.is("[") || first.is("(") || first.is("{")) && whole {
            let mut out = Vec::new();
            for element in arguments(inside(tokens, 0)?) {
                out.extend(self.values(element, depth + 1)?);
            }
            return (out.len() <= MAX_VALUES).then_some(out);
        }
        let name = first.name()?;
        if let [_, open, ..] = tokens
            && open.is("(")
            && matches!(name, "sorted" | "list" | "reversed" | "set" | "tuple")
        {
            let given = arguments(inside(tokens, 1)?);
            return self.elements(given.first()?, depth + 1).filter(|_| past_bracket(tokens, 1) == Some(tokens.len()));
        }
        if let Some(found) = self.listed(tokens, depth) {
            return Some(found);
        }
        // A list by its name, if nothing can have changed it.
        let [Binding::Is(value)] = self.bindings.names.get(name)?.as_slice() else { return None };
        let used = |at: usize| self.tokens.get(at + 1).is_some_and(|next| next.is(".") || next.is("["));
        let changed = self.tokens.iter().enumerate().any(|(at, token)| token.named(name) && used(at));
        (tokens.len() == 1 && !changed).then(|| self.elements(value, depth + 1))?
    }

    /// What a listing of known folders gives: `glob.glob('*.py')`, `Path('src').rglob('*')`, `os.listdir('.')`.
    fn listed(&self, tokens: &'t [Token], depth: usize) -> Option<Vec<Value>> {
        if let Some((path, end)) = self.path_of(tokens) {
            let rest = tokens.get(end..)?;
            if matches!(path.as_str(), "glob.glob" | "glob.iglob") {
                let given = arguments(inside(rest, 0)?);
                let whole = past_bracket(rest, 0) == Some(rest.len());
                let patterns = self.values(given.first()?, depth + 1).filter(|_| whole)?;
                let named = |words: &&[Token]| words.first().is_some_and(|name| name.named("recursive"));
                let known = given.iter().skip(1).all(named);
                return patterns
                    .iter()
                    .map(|pattern| pattern_of("", &text_of(pattern)?))
                    .collect::<Option<_>>()
                    .filter(|_| known);
            }
            if path == "os.listdir" && past_bracket(rest, 0) == Some(rest.len()) {
                return Some(vec![vec![Part::Glob("*".to_owned())], vec![Part::Glob(".*".to_owned())]]);
            }
        }
        let mut depth_now = 0i32;
        let dots = tokens.iter().enumerate().filter(|(_, token)| {
            match token.text.as_str() {
                "(" | "[" | "{" if token.kind == Kind::Sign => depth_now += 1,
                ")" | "]" | "}" if token.kind == Kind::Sign => depth_now -= 1,
                _ => {}
            }
            depth_now == 0 && token.is(".")
        });
        let open_at = dots.map(|(at, _)| at).last()?;
        let [method, open, ..] = tokens.get(open_at + 1..)? else { return None };
        if !open.is("(") || past_bracket(tokens, open_at + 2) != Some(tokens.len()) {
            return None;
        }
        let folders = self.values(tokens.get(..open_at)?, depth + 1)?;
        let given = arguments(inside(tokens, open_at + 2)?);
        let mut out = Vec::new();
        for folder in folders {
            let folder = text_of(&folder)?;
            match (method.name()?, given.as_slice()) {
                ("iterdir", []) => out.extend([pattern_of(&folder, "*")?, pattern_of(&folder, ".*")?]),
                ("glob" | "rglob", [pattern]) => {
                    let deep = if method.text == "rglob" { "**/" } else { "" };
                    for pattern in self.values(pattern, depth + 1)? {
                        let pattern = text_of(&pattern)?;
                        out.push(pattern_of(&folder, &format!("{deep}{pattern}"))?);
                        // Here a star matches a leading dot.
                        if pattern.starts_with('*') {
                            out.push(pattern_of(&folder, &format!("{deep}.{pattern}"))?);
                        }
                    }
                }
                _ => return None,
            }
        }
        Some(out)
    }
}

/// A pattern below a folder.
fn pattern_of(folder: &str, pattern: &str) -> Option<Value> {
    let mut out = if folder.is_empty() { Value::new() } else { known(&format!("{folder}/")) };
    out.push(if pattern.contains(['*', '?', '[']) {
        Part::Glob(pattern.to_owned())
    } else {
        Part::Text(pattern.to_owned())
    });
    Some(out)
}

/// Paths below folders; an absolute one stands alone, and so does one whose beginning is not known.
pub(crate) fn below(folders: &[Value], paths: &[Value]) -> Option<Vec<Value>> {
    let one = |folder: &Value, path: &Value| match path.first() {
        Some(Part::Text(text)) if text.starts_with('/') => path.clone(),
        _ if folder.is_empty() => path.clone(),
        Some(Part::Text(_) | Part::Glob(_)) => concat(&concat(folder, &known("/")), path),
        _ => path.clone(),
    };
    let all = folders.len().checked_mul(paths.len()).filter(|count| *count <= MAX_VALUES);
    all.map(|_| folders.iter().flat_map(|folder| paths.iter().map(move |path| one(folder, path))).collect())
}

/// Without line ends around.
fn trimmed(tokens: &[Token]) -> &[Token] {
    let line = |token: &Token| token.kind == Kind::Line;
    let start = tokens.iter().position(|token| !line(token)).unwrap_or(tokens.len());
    let end = tokens.iter().rposition(|token| !line(token)).map_or(start, |at| at + 1);
    tokens.get(start..end).unwrap_or_default()
}
