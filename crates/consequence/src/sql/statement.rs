//! What one statement loses, by its first words.

use super::tautology::is_tautology;
use super::tokens::Token;
use super::{Found, found};
use crate::report::Tier;

const DUMP: &str = "From a dump or a backup of the database.";
const AGAIN: &str = "Create it again from the schema's migrations or a dump of the schema.";
const GRANTS: &str = "The opposite GRANT or REVOKE; what was done meanwhile stays.";
const SETTING: &str = "Set the old value again.";

/// The position of the first of some keywords outside of parentheses.
fn outside(tokens: &[Token], keywords: &[&str]) -> Option<usize> {
    let mut depth = 0_usize;
    tokens.iter().position(|token| {
        match token {
            Token::Sign('(') => depth += 1,
            Token::Sign(')') => depth = depth.saturating_sub(1),
            Token::Word(_) | Token::Name(_) | Token::Text(_) | Token::Sign(_) => {}
        }
        depth == 0 && keywords.iter().any(|keyword| token.is(keyword))
    })
}

pub(super) fn has(tokens: &[Token], keyword: &str) -> bool {
    tokens.iter().any(|token| token.is(keyword))
}

fn follows(tokens: &[Token], [before, after]: [&str; 2]) -> bool {
    tokens.windows(2).any(|two| matches!(two, [one, other] if one.is(before) && other.is(after)))
}

/// The condition of a statement.
fn condition(tokens: &[Token]) -> Option<&[Token]> {
    outside(tokens, &["WHERE"]).and_then(|at| tokens.get(at + 1..))
}

/// The name that the words up to here lead to: `IF EXISTS`, `ONLY` and their like skipped, `a.b` joined.
fn name(tokens: &[Token]) -> String {
    const SKIPPED: [&str; 8] = ["IF", "EXISTS", "ONLY", "TABLE", "CONCURRENTLY", "FROM", "IGNORE", "LOW_PRIORITY"];
    let mut out = String::new();
    for token in tokens.iter().skip_while(|token| SKIPPED.iter().any(|word| token.is(word))) {
        match token {
            Token::Sign('.') => out.push('.'),
            Token::Word(word) | Token::Name(word) if out.is_empty() || out.ends_with('.') => out.push_str(word),
            Token::Word(_) | Token::Name(_) | Token::Text(_) | Token::Sign(_) => break,
        }
    }
    out
}

/// Tables that end with the session.
fn is_temporary(name: &str) -> bool {
    let lower = name.to_ascii_lowercase();
    lower.starts_with('#') || ["pg_temp.", "temp.", "tempdb."].iter().any(|schema| lower.starts_with(schema))
}

/// Functions and procedures that do more than read: name, tier, action, reason.
const FUNCTIONS: [(&str, Tier, &str, &str); 22] = [
    ("lo_export", Tier::FromBackup, "disclose", "writes a file of the server"),
    ("pg_read_file", Tier::FromBackup, "disclose", "reads a file of the server"),
    ("pg_read_binary_file", Tier::FromBackup, "disclose", "reads a file of the server"),
    ("load_file", Tier::FromBackup, "disclose", "reads a file of the server"),
    ("pg_file_unlink", Tier::Unrecoverable, "delete", "deletes a file of the server"),
    ("pg_cancel_backend", Tier::FromBackup, "stop", "ends what another runs"),
    ("sp_addsrvrolemember", Tier::FromBackup, "escalate", "lets somebody do more"),
    ("sp_oacreate", Tier::NeedsReview, "run", "runs a program on the server"),
    ("xp_cmdshell", Tier::NeedsReview, "run", "runs a program on the server"),
    ("sys_exec", Tier::NeedsReview, "run", "runs a program on the server"),
    ("sys_eval", Tier::NeedsReview, "run", "runs a program on the server"),
    ("load_extension", Tier::NeedsReview, "run", "loads code into the server"),
    ("dblink_exec", Tier::NeedsReview, "run", "runs statements in another database"),
    ("lo_unlink", Tier::Unrecoverable, "delete", "deletes a large object"),
    ("drop_chunks", Tier::Unrecoverable, "delete", "deletes everything of a time"),
    ("pg_drop_replication_slot", Tier::FromBackup, "drop", "has to be made again"),
    ("pg_terminate_backend", Tier::FromBackup, "stop", "ends connections of others"),
    ("pg_promote", Tier::FromBackup, "change", "makes a replica the primary"),
    ("sp_detach_db", Tier::FromBackup, "stop", "takes the database away"),
    ("sp_dropuser", Tier::FromBackup, "drop", "has to be made again"),
    ("sp_droplogin", Tier::FromBackup, "drop", "has to be made again"),
    ("sp_delete_backuphistory", Tier::Unrecoverable, "delete", "deletes the backups' history"),
];

pub(super) fn functions(tokens: &[Token], out: &mut Vec<Found>) {
    for token in tokens {
        let Token::Word(word) = token else { continue };
        let known = FUNCTIONS.iter().find(|(name, ..)| word.eq_ignore_ascii_case(name));
        out.extend(known.map(|(name, tier, action, why)| found(*tier, action, why, name, DUMP)));
    }
    if has(tokens, "OUTFILE") || has(tokens, "DUMPFILE") {
        out.push(found(
            Tier::FromBackup,
            "disclose",
            "is written to a file of the server",
            "the result",
            "Delete the file.",
        ));
    }
}

/// A statement that does what its first word says.
pub(super) fn judge(verb: &str, rest: &[Token]) -> Option<Found> {
    let all = |why: &str, action| Some(found(Tier::Unrecoverable, action, why, &name(rest), DUMP));
    let some = |why: &str, action, undo| Some(found(Tier::FromBackup, action, why, &name(rest), undo));
    let second = |words: &[&str]| rest.first().is_some_and(|token| words.iter().any(|word| token.is(word)));
    match verb.to_ascii_uppercase().as_str() {
        "DROP" => dropped(rest),
        "TRUNCATE" if !is_temporary(&name(rest)) => all("loses every row", "truncate"),
        "DELETE" if is_temporary(&name(rest)) => None,
        "DELETE" if is_tautology(condition(rest)) && !has(rest, "LIMIT") && !has(rest, "TOP") => {
            all("loses every row", "delete")
        }
        "DELETE" => some("loses the rows that match", "delete", DUMP),
        "UPDATE" if second(&["STATISTICS"]) || is_temporary(&name(rest)) => None,
        "UPDATE" if has(rest, "SET") && is_tautology(condition(rest)) && !has(rest, "LIMIT") && !has(rest, "JOIN") => {
            all("is changed in every row", "overwrite")
        }
        "MATCH" if has(rest, "DELETE") && !has(rest, "WHERE") => all("loses every node that fits", "delete"),
        "MATCH" if has(rest, "DELETE") => some("loses the nodes that match", "delete", DUMP),
        "MERGE" if follows(rest, ["THEN", "DELETE"]) => some("loses the rows that match", "delete", DUMP),
        "INSERT" if second(&["OVERWRITE"]) => all("is replaced by what is inserted", "overwrite"),
        "CREATE"
            if follows(rest, ["OR", "REPLACE"])
                && rest
                    .get(2)
                    .is_some_and(|token| ["TABLE", "DATABASE", "SCHEMA"].iter().any(|kind| token.is(kind))) =>
        {
            Some(found(Tier::Unrecoverable, "overwrite", "is replaced with what it held", &name(rest.get(2..)?), DUMP))
        }
        "ALTER" => altered(rest),
        "COPY" if matches!(rest, [into, Token::Text(url), ..] if into.is("INTO") && url.contains("://")) => {
            Some(found(Tier::FromBackup, "disclose", "is written outside", "what is copied", "Delete the copy."))
        }
        "COPY" if has(rest, "PROGRAM") => {
            Some(found(Tier::NeedsReview, "run", "is handed to a program", &name(rest), ""))
        }
        "RESTORE" if has(rest, "REPLACE") => all("is replaced by a backup", "overwrite"),
        "REVOKE" if second(&["ALL"]) => some("works in another way", "change", GRANTS),
        "GRANT"
            if second(&["ALL", "SUPER", "SYSADMIN", "DBA", "ACCOUNTADMIN"])
                || ["ACCOUNTADMIN", "SECURITYADMIN", "ORGADMIN"].iter().any(|role| follows(rest, ["ROLE", role]))
                || follows(rest, ["TO", "PUBLIC"]) =>
        {
            some("may be changed by somebody else", "expose", GRANTS)
        }
        "FLUSHALL" | "FLUSHDB" => Some(found(
            Tier::Unrecoverable,
            "delete",
            "loses every key",
            "database",
            "From a snapshot (`dump.rdb`) or a replica.",
        )),
        "SET" => unset(rest),
        "PRAGMA" if has(rest, "writable_schema") => some("lets its schema be broken", "unprotect", SETTING),
        "DBCC" if has(rest, "REPAIR_ALLOW_DATA_LOSS") => all("loses what cannot be repaired", "delete"),
        _ => administered(verb, rest),
    }
}

/// What an administrator does to the server, its logs and those who use it.
fn administered(verb: &str, rest: &[Token]) -> Option<Found> {
    let all = |why: &str, action| Some(found(Tier::Unrecoverable, action, why, &name(rest), DUMP));
    let some = |why: &str, action, undo| Some(found(Tier::FromBackup, action, why, &name(rest), undo));
    let second = |words: &[&str]| rest.first().is_some_and(|token| words.iter().any(|word| token.is(word)));
    match verb.to_ascii_uppercase().as_str() {
        "KILL" => Some(found(Tier::FromBackup, "stop", "ends what another runs", "KILL", "")),
        "STOP" if second(&["SLAVE", "REPLICA", "GROUP_REPLICATION"]) => {
            Some(found(Tier::FromBackup, "stop", "no longer follows its source", "the replica", SETTING))
        }
        "UNINSTALL" | "NOAUDIT" => {
            Some(found(Tier::FromBackup, "unprotect", "is switched off", "what it names", SETTING))
        }
        "DISABLE" if second(&["TRIGGER"]) => some("is no longer protected by its rules", "unprotect", SETTING),
        "REMOVE" | "RM" if has_stage(rest) => {
            Some(found(Tier::Unrecoverable, "delete", "loses its files", "the stage", ""))
        }
        "DETACH" if has(rest, "PERMANENTLY") => some("is no longer there for others", "change", AGAIN),
        "FLASHBACK" if second(&["DATABASE", "TABLE"]) => all("loses what came later", "overwrite"),
        "SP_CONFIGURE" | "EXEC" if rest.iter().any(|token| token.text().eq_ignore_ascii_case("xp_cmdshell")) => {
            Some(found(Tier::NeedsReview, "run", "lets the server run programs", "xp_cmdshell", SETTING))
        }
        "SP_DETACH_DB" | "SP_DROPUSER" | "SP_DROPLOGIN" => some("is taken away", "drop", AGAIN),
        "RESET" if second(&["MASTER", "BINARY", "SLAVE", "REPLICA"]) => {
            some("loses the log that replicas and point-in-time recovery need", "delete", DUMP)
        }
        "PURGE" => some("is emptied", "delete", DUMP),
        "SHUTDOWN" => Some(found(Tier::FromBackup, "stop", "stops for everybody", "database", "Start it again.")),
        "SYSTEM" if second(&["DROP", "STOP"]) => some("works in another way", "change", SETTING),
        _ => None,
    }
}

fn has_stage(rest: &[Token]) -> bool {
    rest.first().is_some_and(|token| token.text().starts_with('@') || *token == Token::Sign('@'))
}

/// Logs, audits and checks that are switched off.
fn unset(rest: &[Token]) -> Option<Found> {
    let log = rest.iter().find(|token| {
        let name = token.text().to_ascii_lowercase();
        ["general_log", "log_bin", "audit", "log_statement", "slow_query_log"].iter().any(|part| name.contains(part))
    })?;
    let off =
        rest.iter().any(|token| ["0", "off", "none", "false"].contains(&token.text().to_ascii_lowercase().as_str()));
    off.then(|| found(Tier::FromBackup, "unprotect", "is no longer written", &log.text(), SETTING))
}

fn dropped(rest: &[Token]) -> Option<Found> {
    const AGAIN_KINDS: [&str; 34] = [
        "VIEW",
        "INDEX",
        "ROLE",
        "USER",
        "FUNCTION",
        "PROCEDURE",
        "PROC",
        "ROUTINE",
        "TRIGGER",
        "SEQUENCE",
        "TYPE",
        "DOMAIN",
        "EXTENSION",
        "POLICY",
        "RULE",
        "AGGREGATE",
        "OPERATOR",
        "CAST",
        "COLLATION",
        "SERVER",
        "PUBLICATION",
        "SUBSCRIPTION",
        "CONSTRAINT",
        "LOGIN",
        "SYNONYM",
        "EVENT",
        "MATERIALIZED",
        "STAGE",
        "PIPE",
        "TASK",
        "WAREHOUSE",
        "STATISTICS",
        "EXTERNAL",
        "UNIQUE",
    ];
    let kind = rest.first()?;
    if kind.is("TEMPORARY") || kind.is("TEMP") || kind.is("PREPARE") {
        return None;
    }
    let what = name(rest.get(1..).unwrap_or_default());
    if is_temporary(&what) {
        return None;
    }
    if AGAIN_KINDS.iter().any(|word| kind.is(word)) && !follows(rest, ["USER", "CASCADE"]) {
        return Some(found(Tier::FromBackup, "drop", "has to be made again", &what, AGAIN));
    }
    Some(found(Tier::Unrecoverable, "drop", "is gone with everything in it", &what, DUMP))
}

fn altered(rest: &[Token]) -> Option<Found> {
    let kind = rest.first()?;
    let what = name(rest.get(1..).unwrap_or_default());
    let some = |action, why: &str, undo| Some(found(Tier::FromBackup, action, why, &what, undo));
    let all = |action, why: &str| Some(found(Tier::Unrecoverable, action, why, &what, DUMP));
    if kind.is("SYSTEM") {
        return Some(found(Tier::FromBackup, "change", "works in another way", "the server", SETTING));
    }
    if kind.is("ROLE") || kind.is("USER") || kind.is("LOGIN") {
        let rises = ["SUPERUSER", "BYPASSRLS", "CREATEROLE"].iter().any(|word| has(rest, word));
        return if rises { some("escalate", "may do everything", SETTING) } else { None };
    }
    if kind.is("ACCOUNT") || kind.is("SERVER") && has(rest, "MEMBER") {
        return some("escalate", "may be used by others, or in another way", SETTING);
    }
    if kind.is("DATABASE") {
        let stops = ["OFFLINE", "SINGLE_USER", "SIMPLE", "EMERGENCY", "RESETLOGS", "RENAME", "MOUNT", "NOARCHIVELOG"]
            .iter()
            .any(|word| has(rest, word));
        return if stops { some("change", "works in another way", SETTING) } else { None };
    }
    if follows(rest, ["DELETE", "WHERE"]) {
        return if is_tautology(condition(rest)) {
            all("delete", "loses every row")
        } else {
            some("delete", "loses the rows that match", DUMP)
        };
    }
    if let Some(at) = rest.iter().skip(2).position(|token| token.is("UPDATE"))
        && rest.get(at + 2..).is_some_and(|rest| has(rest, "WHERE") && is_tautology(condition(rest)))
    {
        return all("overwrite", "is changed in every row");
    }
    if follows(rest, ["CLEAR", "COLUMN"]) || follows(rest, ["MODIFY", "TTL"]) {
        return all("delete", "loses a part with what it held");
    }
    if has(rest, "DATA_RETENTION_TIME_IN_DAYS") && rest.last().is_some_and(|token| token.is("0")) {
        return some("unprotect", "keeps no earlier versions", SETTING);
    }
    if follows(rest, ["TRUNCATE", "PARTITION"]) || follows(rest, ["DISCARD", "TABLESPACE"]) {
        return all("truncate", "loses what a part of it held");
    }
    if has(rest, "DISABLE") && (has(rest, "SECURITY") || has(rest, "TRIGGER")) || follows(rest, ["NO", "FORCE"]) {
        return some("unprotect", "is no longer protected by its rules", SETTING);
    }
    let mut loss = None;
    for at in rest.iter().enumerate().filter(|(_, token)| token.is("DROP")).map(|(at, _)| at) {
        let Some(next) = rest.get(at + 1) else { continue };
        if ["DEFAULT", "NOT", "IDENTITY", "EXPRESSION"].iter().any(|word| next.is(word)) {
            continue;
        }
        if ["CONSTRAINT", "INDEX", "KEY", "PRIMARY", "FOREIGN", "CHECK"].iter().any(|word| next.is(word)) {
            loss = loss.or_else(|| some("drop", "loses a constraint or an index, to be made again", AGAIN));
            continue;
        }
        return all("drop", "loses a part with what it held");
    }
    loss
}
