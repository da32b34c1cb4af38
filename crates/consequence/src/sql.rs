//! SQL statements: what each would lose.

use sqlparser::ast::{AlterTableOperation, FromTable, ObjectType, Statement};
use sqlparser::dialect::GenericDialect;
use sqlparser::parser::Parser;

use crate::report::Tier;

/// Longest text that is parsed.
const MAX_BYTES: usize = 256 << 10;
/// Deepest nesting that is parsed.
const MAX_DEPTH: usize = 60;

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
}

/// What the statements of a text would lose; nothing where they only read or add.
pub fn evaluate(text: &str) -> Vec<Found> {
    if text.len() > MAX_BYTES {
        return vec![found(Tier::NeedsReview, "run", "too long to be read", "")];
    }
    text.split_inclusive(';').flat_map(|statement| one(statement.trim().trim_end_matches(';').trim())).collect()
}

fn one(text: &str) -> Vec<Found> {
    if text.is_empty() {
        return Vec::new();
    }
    let dialect = GenericDialect {};
    let parsed = Parser::new(&dialect).with_recursion_limit(MAX_DEPTH).try_with_sql(text);
    match parsed.and_then(|mut parser| parser.parse_statements()) {
        Ok(statements) => statements.iter().flat_map(statement).collect(),
        Err(_) => by_words(text).into_iter().collect(),
    }
}

fn statement(statement: &Statement) -> Vec<Found> {
    let gone = |action, name: String| vec![found(Tier::Unrecoverable, action, "is gone with everything in it", &name)];
    #[expect(clippy::wildcard_enum_match_arm, reason = "statements that lose nothing; new ones come with the parser")]
    match statement {
        Statement::Drop { object_type, names, .. } => {
            let name = names.first().map(ToString::to_string).unwrap_or_default();
            match object_type {
                ObjectType::Table | ObjectType::Schema | ObjectType::Database => gone("drop", name),
                ObjectType::View
                | ObjectType::Index
                | ObjectType::Role
                | ObjectType::Sequence
                | ObjectType::Stage
                | ObjectType::Type => {
                    vec![found(Tier::FromBackup, "drop", "has to be made again", &name)]
                }
            }
        }
        Statement::Truncate { table_names, .. } => {
            gone("truncate", table_names.first().map(ToString::to_string).unwrap_or_default())
        }
        Statement::Delete(delete) => {
            let (FromTable::WithFromKeyword(tables) | FromTable::WithoutKeyword(tables)) = &delete.from;
            let name = tables.first().map(|table| table.relation.to_string()).unwrap_or_default();
            match always(delete.selection.as_ref().map(ToString::to_string).as_deref()) {
                true => vec![found(Tier::Unrecoverable, "delete", "loses every row", &name)],
                false => vec![found(Tier::FromBackup, "delete", "loses the rows that match", &name)],
            }
        }
        Statement::Update { table, selection, .. }
            if always(selection.as_ref().map(ToString::to_string).as_deref()) =>
        {
            vec![found(Tier::Unrecoverable, "overwrite", "is changed in every row", &table.to_string())]
        }
        Statement::AlterTable { name, operations, .. } => operations
            .iter()
            .filter(|operation| {
                matches!(operation, AlterTableOperation::DropColumn { .. } | AlterTableOperation::DropPartitions { .. })
            })
            .map(|_| found(Tier::Unrecoverable, "drop", "loses a column with what it held", &name.to_string()))
            .chain(by_words(&statement.to_string()).filter(|found| found.tier == Tier::FromBackup))
            .collect(),
        Statement::Explain { analyze: true, statement: inner, .. } => self::statement(inner),
        Statement::Query(_) | Statement::Insert(_) | Statement::Update { .. } => Vec::new(),
        other => by_words(&other.to_string()).into_iter().collect(),
    }
}

/// Whether a condition leaves nothing out.
fn always(condition: Option<&str>) -> bool {
    condition.is_none_or(|text| {
        matches!(text.replace(' ', "").to_lowercase().as_str(), "true" | "1" | "1=1" | "'1'='1'" | "(1=1)")
    })
}

/// What the parser does not read, by its first words.
fn by_words(text: &str) -> Option<Found> {
    let plain = without_comments(text);
    let upper = plain.to_uppercase();
    let words: Vec<&str> = upper.split_whitespace().collect();
    let name = plain.split_whitespace().nth(2).unwrap_or_default();
    Some(match words.as_slice() {
        [
            "DROP",
            "USER" | "ROLE" | "FUNCTION" | "PROCEDURE" | "TRIGGER" | "VIEW" | "INDEX" | "EXTENSION" | "POLICY",
            ..,
        ] => found(Tier::FromBackup, "drop", "has to be made again", name),
        ["DROP" | "TRUNCATE", ..] => found(Tier::Unrecoverable, "drop", "is gone with everything in it", name),
        ["DELETE", ..] if !upper.contains("WHERE") => found(Tier::Unrecoverable, "delete", "loses every row", name),
        ["DELETE", ..] => found(Tier::FromBackup, "delete", "loses the rows that match", name),
        ["MERGE", ..] if upper.contains("THEN DELETE") => {
            found(Tier::FromBackup, "delete", "loses the rows that match", name)
        }
        ["COPY", ..] if words.contains(&"PROGRAM") => found(Tier::NeedsReview, "run", "is handed to a program", name),
        ["REVOKE", "ALL", ..] | ["ALTER", "SYSTEM", ..] => {
            found(Tier::FromBackup, "change", "works in another way", name)
        }
        ["ALTER", "TABLE", _, "DROP", "INDEX" | "KEY" | "PRIMARY" | "FOREIGN" | "CONSTRAINT", ..] => {
            found(Tier::FromBackup, "drop", "has to be made again", name)
        }
        ["GRANT", "ALL", ..] => found(Tier::FromBackup, "expose", "may be changed by somebody else", name),
        ["ALTER", ..] if upper.contains(" DELETE WHERE ") => {
            let all = always(upper.split_once(" WHERE ").map(|(_, condition)| condition));
            let tier = if all { Tier::Unrecoverable } else { Tier::FromBackup };
            found(tier, "delete", "loses the rows that match", name)
        }
        ["ALTER", ..] if upper.contains("DROP NOT NULL") || upper.contains("DROP DEFAULT") => return None,
        ["ALTER", ..] if upper.contains(" DROP ") => {
            found(Tier::Unrecoverable, "drop", "loses a part with what it held", name)
        }
        ["FLUSHALL" | "FLUSHDB", ..] => found(Tier::Unrecoverable, "delete", "loses every key", "database"),
        ["PREPARE", _, "AS", ..] => {
            return by_words(plain.split_once(" AS ").or(plain.split_once(" as ")).map_or("", |(_, rest)| rest));
        }
        ["FLUSH" | "RESET" | "PURGE", ..] => found(Tier::FromBackup, "delete", "is emptied", name),
        _ => return None,
    })
}

/// A statement without `/* … */`.
pub fn without_comments(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("/*") {
        out.push_str(before);
        rest = after.split_once("*/").map_or("", |(_, rest)| rest);
    }
    out.push_str(rest);
    out
}

fn found(tier: Tier, action: &'static str, why: &str, name: &str) -> Found {
    Found { tier, action, why: format!("`{name}` {why}"), name: name.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements_by_what_they_lose() {
        let tier = |text: &str| evaluate(text).iter().map(|found| found.tier).max();
        for text in [
            "DROP TABLE users",
            "drop database shop;",
            "TRUNCATE orders",
            "delete from users",
            "DELETE FROM a WHERE 1=1",
            "UPDATE a SET b=1",
            "ALTER TABLE a DROP COLUMN b",
            "SELECT 1; DROP TABLE x",
        ] {
            assert_eq!(tier(text), Some(Tier::Unrecoverable), "{text}");
        }
        for text in ["DELETE FROM a WHERE id=1", "DROP VIEW v", "DROP USER x"] {
            assert_eq!(tier(text), Some(Tier::FromBackup), "{text}");
        }
        for text in [
            "SELECT * FROM a",
            "INSERT INTO a VALUES (1)",
            "UPDATE a SET b=1 WHERE id=2",
            "CREATE TABLE a (b int)",
            "",
            "select 'drop table x'",
            "VACUUM",
            "\\dt",
        ] {
            assert_eq!(tier(text), None, "{text}");
        }
    }

    proptest::proptest! {
        #[test]
        fn never_panics(text in "[A-Za-z (),;'*=.]{0,80}") {
            evaluate(&text);
        }
    }
}
