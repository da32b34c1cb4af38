//! Statements of databases: what each would lose.
//!
//! Owns the reading of statements in any dialect by their words (`tokens.rs`), linear in the text and without recursion in the
//! depth of an expression. The crate that was looked at is `sqlparser`: 0.53 panics on texts that somebody else writes; 0.63 reads
//! 255 of 354 statements of nine dialects (procedures, `GO`, `/*! … */`, client commands, server administration it does not),
//! and what this reader got wrong among them was never how a text is read, but what a statement loses, which a tree does not
//! say. So there would be two readers, and the second would decide. Invariant: what is not known to lose anything is not made
//! up to.

mod statement;
mod tautology;
mod tokens;

use crate::report::Tier;

use statement::{functions, has, judge};
use tokens::{Backslash, Token, statements, tokens};

/// Longest text that is read.
const MAX_BYTES: usize = 256 << 10;
/// Deepest text within text that is read: `DO $$ … EXECUTE '…' … $$`.
const MAX_DEPTH: usize = 4;
/// Most statements within statements that are read.
const MAX_INNER: usize = 256;

/// One statement's finding.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Found {
    /// What could bring it back.
    pub tier: Tier,
    /// `drop`, `truncate`, `delete`, …
    pub action: &'static str,
    /// Why.
    pub why: String,
    /// What it acts on.
    pub name: String,
    /// How to undo it.
    pub undo: &'static str,
}

/// What the statements of a text would lose; nothing where they only read or add.
pub fn evaluate(text: &str) -> Vec<Found> {
    if text.len() > MAX_BYTES {
        return vec![found(Tier::NeedsReview, "run", "too long to be read", "", "")];
    }
    let mut out = read(text, Backslash::IsText);
    // What a backslash means depends on the server: what either reading loses counts.
    if text.contains("\\'") {
        let other = read(text, Backslash::Escapes);
        out.extend(other.into_iter().filter(|found| !out.contains(found)).collect::<Vec<_>>());
    }
    out
}

/// A reading: what it found, and how many more statements within statements it follows.
struct Reader {
    backslash: Backslash,
    left: usize,
    out: Vec<Found>,
}

fn read(text: &str, backslash: Backslash) -> Vec<Found> {
    let mut reader = Reader { backslash, left: MAX_INNER, out: Vec::new() };
    reader.text(text, 0);
    if reader.left == 0 {
        reader.out.push(found(Tier::NeedsReview, "run", "holds more statements in statements than are read", "", ""));
    }
    reader.out
}

/// What a client does itself: `\! …`, `\i file`, `.shell …`, `source file`.
fn client_command(line: &str) -> Option<Found> {
    let (first, rest) = line.trim().split_once(char::is_whitespace).unwrap_or((line.trim(), ""));
    let shell = matches!(first, "\\!" | ".shell" | ".system") || first.starts_with("\\!") && first.len() > 2;
    let harmless = matches!(rest.split_whitespace().next(), Some("clear" | "ls" | "pwd" | "date" | "echo"));
    let more = rest.contains([';', '&', '|', '$', '`', '>']);
    if shell && (more || !harmless) {
        return Some(found(Tier::NeedsReview, "run", "is a shell command that the client runs", rest, ""));
    }
    let file = matches!(first, "\\i" | "\\ir" | "\\include" | ".read" | "\\." | "source" | "@" | "SOURCE");
    (file && !rest.is_empty())
        .then(|| found(Tier::NeedsReview, "run", "holds statements that were not looked into", rest, ""))
}

impl Reader {
    fn text(&mut self, text: &str, depth: usize) {
        self.out.extend(text.lines().filter_map(client_command));
        let all = tokens(text, self.backslash);
        let mut open = None;
        for statement in statements(&all) {
            let [first, rest @ ..] = statement else { continue };
            if first.is("BEGIN") || first.is("START") && !rest.is_empty() {
                open = Some(self.out.len());
            }
            // What is rolled back is not lost; what defines tables is, in some databases.
            let whole = rest.iter().all(|token| ["TRAN", "TRANSACTION", "WORK"].iter().any(|word| token.is(word)));
            if let Some(since) = open.filter(|_| first.is("ROLLBACK") && whole) {
                let rolled = self.out.split_off(since);
                self.out.extend(rolled.into_iter().filter(|found| !matches!(found.action, "delete" | "overwrite")));
            }
            if ["ROLLBACK", "COMMIT", "END"].iter().any(|word| first.is(word)) {
                open = None;
            }
            self.statement(statement, depth);
        }
        self.run_later(&all, depth);
    }

    /// What is defined, or put into a variable, and run by the same text.
    fn run_later(&mut self, all: &[Token], depth: usize) {
        if depth >= MAX_DEPTH {
            return;
        }
        for (at, statement) in statements(all).enumerate().take(MAX_INNER) {
            let [first, rest @ ..] = statement else { continue };
            let others = || statements(all).skip(at + 1).take(MAX_INNER);
            let named = |word: &Token| others().any(|other| runs(other, &word.text()));
            if first.is("CREATE") {
                let kind = rest.iter().position(|token| token.is("FUNCTION") || token.is("PROCEDURE"));
                let Some(rest) = kind.and_then(|kind| rest.get(kind + 1..)) else { continue };
                if rest.iter().find(|token| matches!(token, Token::Word(_) | Token::Name(_))).is_some_and(named) {
                    self.called(rest, depth);
                    self.inner(rest, depth);
                }
            } else if (first.is("SET") || first.is("DECLARE")) && rest.first().is_some_and(named) {
                self.called(rest, depth);
            }
        }
    }

    fn statement(&mut self, tokens: &[Token], depth: usize) {
        if depth > MAX_DEPTH || self.left == 0 {
            self.left = 0;
            return;
        }
        let tokens = tokens.iter().position(|token| *token != Token::Sign('(')).and_then(|at| tokens.get(at..));
        let Some([first @ Token::Word(verb), rest @ ..]) = tokens else { return };
        match verb.to_ascii_uppercase().as_str() {
            "EXPLAIN" | "DESC" | "DESCRIBE" => {
                let runs = has(rest, "ANALYZE") || has(rest, "ANALYSE");
                if runs && let Some(at) = rest.iter().position(is_verb) {
                    self.statement(rest.get(at..).unwrap_or_default(), depth + 1);
                }
            }
            "WITH" | "IF" | "BEGIN" | "ELSE" | "THEN" | "WHILE" | "DECLARE" | "LOOP" | "FOR" | "END" => {
                self.inner(rest, depth);
            }
            "DO" | "EXECUTE" | "EXEC" | "PREPARE" | "CALL" | "PERFORM" => {
                self.called(rest, depth);
                self.out.extend(judge(&first.text(), rest));
            }
            "SELECT" | "VALUES" | "TABLE" => functions(rest, &mut self.out),
            _ => self.out.extend(judge(&first.text(), rest)),
        }
    }

    /// Statements inside a statement: behind a parenthesis, `THEN`, `AS`, or the end of a condition.
    fn inner(&mut self, tokens: &[Token], depth: usize) {
        for (at, token) in tokens.iter().enumerate().filter(|(_, token)| is_verb(token)) {
            let before = at.checked_sub(1).and_then(|before| tokens.get(before));
            let starts = match before {
                Some(Token::Sign(sign)) => matches!(sign, '(' | ')'),
                // `FOR UPDATE`, `ON DELETE`, `DO UPDATE` are parts of something else.
                Some(word) => !["FOR", "ON", "DO", "AND", "OR", "BEFORE", "AFTER"].iter().any(|part| word.is(part)),
                None => true,
            };
            if !starts || token.is("INSERT") {
                continue;
            }
            if self.left == 0 {
                return;
            }
            self.left -= 1;
            let body = tokens.get(at..).unwrap_or_default();
            let end = closing(body).unwrap_or(body.len());
            self.statement(body.get(..end).unwrap_or_default(), depth + 1);
        }
    }

    /// What a text that is run holds, and procedures that reach beyond the database.
    fn called(&mut self, tokens: &[Token], depth: usize) {
        for token in tokens {
            if let Token::Text(text) = token {
                if depth >= MAX_DEPTH {
                    self.left = 0;
                    return;
                }
                self.text(text, depth + 1);
            }
        }
        functions(tokens, &mut self.out);
        // `PREPARE p AS DELETE …`
        if let Some(at) = tokens.iter().position(|token| token.is("AS") || token.is("BEGIN")) {
            self.inner(tokens.get(at + 1..).unwrap_or_default(), depth);
        }
    }
}

/// Whether a statement runs what has this name.
fn runs(statement: &[Token], name: &str) -> bool {
    let runs = ["SELECT", "CALL", "EXEC", "EXECUTE", "PREPARE", "PERFORM"];
    statement.first().is_some_and(|first| runs.iter().any(|verb| first.is(verb)))
        && statement.iter().skip(1).any(|token| token.text().eq_ignore_ascii_case(name))
}

fn is_verb(token: &Token) -> bool {
    const VERBS: [&str; 9] = ["DELETE", "UPDATE", "TRUNCATE", "MERGE", "DROP", "ALTER", "EXEC", "EXECUTE", "INSERT"];
    VERBS.iter().any(|verb| token.is(verb))
}

/// Where the parenthesis closes that a statement stands in.
fn closing(tokens: &[Token]) -> Option<usize> {
    let mut depth = 0_usize;
    tokens.iter().position(|token| match token {
        Token::Sign('(') => {
            depth += 1;
            false
        }
        Token::Sign(')') if depth == 0 => true,
        Token::Sign(')') => {
            depth -= 1;
            false
        }
        Token::Word(_) | Token::Name(_) | Token::Text(_) | Token::Sign(_) => false,
    })
}

fn found(tier: Tier, action: &'static str, why: &str, name: &str, undo: &'static str) -> Found {
    let what = if name.is_empty() { "what it names" } else { name };
    Found { tier, action, why: format!("`{what}` {why}"), name: what.to_owned(), undo }
}

#[cfg(test)]
mod tests;
