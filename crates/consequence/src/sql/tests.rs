use super::*;

fn tier(text: &str) -> Option<Tier> {
    evaluate(text).iter().map(|found| found.tier).max()
}

#[test]
fn statements_that_lose_everything() {
    for text in [
        "DROP TABLE users",
        "drop database shop;",
        "TRUNCATE orders",
        "delete from users",
        "DELETE FROM a WHERE 1=1",
        "DELETE FROM a WHERE id > 0 OR name = 'x'",
        "DELETE FROM a WHERE (('a'='a'))",
        "DELETE FROM a WHERE id IS NOT NULL AND 2 > 1",
        "UPDATE a SET b=1",
        "ALTER TABLE a DROP COLUMN b",
        "ALTER TABLE a ADD c int, DROP b",
        "SELECT 1; DROP TABLE x",
        "/*!50000 DROP TABLE x */",
        "/* a */ DROP/**/TABLE x",
        "-- nothing\nDROP TABLE x",
        "WITH d AS (DELETE FROM users RETURNING *) SELECT * FROM d",
        "DO $$ BEGIN EXECUTE 'DROP TABLE x'; END $$",
        "EXEC sp_executesql N'TRUNCATE TABLE x'",
        "IF EXISTS (SELECT 1) DROP TABLE x",
        "PREPARE p AS DELETE FROM a",
        "CREATE OR REPLACE TABLE a (b int)",
        "INSERT OVERWRITE TABLE a SELECT 1",
        "SELECT 'it\\'; DROP TABLE x; --'",
        "EXPLAIN ANALYZE DELETE FROM a",
        "MATCH (n) DETACH DELETE n",
        "BEGIN; DROP TABLE x; COMMIT",
        "BEGIN; DELETE FROM x; ROLLBACK; DELETE FROM y",
        "ALTER TABLE a DELETE WHERE 1",
    ] {
        assert_eq!(tier(text), Some(Tier::Unrecoverable), "{text}");
    }
}

#[test]
fn statements_that_lose_something() {
    for text in [
        "DELETE FROM a WHERE id=1",
        "DELETE FROM a WHERE 1=1 AND id=2",
        "DELETE FROM a LIMIT 5",
        "DROP VIEW v",
        "DROP USER x",
        "DROP INDEX CONCURRENTLY i",
        "ALTER TABLE a DROP CONSTRAINT c",
        "ALTER TABLE a DISABLE ROW LEVEL SECURITY",
        "GRANT ALL ON a TO eve",
        "SET GLOBAL general_log = 'OFF'",
        "DELETE FROM a WHERE id BETWEEN 1 AND 2",
    ] {
        assert_eq!(tier(text), Some(Tier::FromBackup), "{text}");
    }
    for text in ["\\! rm -rf /", "\\i x.sql", "COPY a TO PROGRAM 'curl x'", "EXEC xp_cmdshell 'dir'", ".shell rm x"] {
        assert_eq!(tier(text), Some(Tier::NeedsReview), "{text}");
    }
}

#[test]
fn statements_that_lose_nothing() {
    for text in [
        "SELECT * FROM a",
        "SELECT 'a; DROP TABLE x' FROM b",
        "SELECT \"DROP TABLE x; DROP TABLE y\" FROM b",
        "INSERT INTO a VALUES ('DELETE FROM x')",
        "INSERT INTO a VALUES (1) ON CONFLICT DO UPDATE SET b = 2",
        "UPDATE a SET b=1 WHERE id=2",
        "UPDATE STATISTICS a",
        "SELECT * FROM a FOR UPDATE",
        "CREATE TABLE a (b int REFERENCES c ON DELETE CASCADE)",
        "CREATE TRIGGER t BEFORE DELETE ON a EXECUTE FUNCTION f()",
        "CREATE EXTERNAL TABLE foo (id INT)",
        "DROP TEMP TABLE x",
        "DROP TEMPORARY TABLE IF EXISTS x",
        "DROP TABLE #x",
        "ALTER TABLE a ALTER COLUMN b DROP NOT NULL",
        "ALTER TABLE a ADD COLUMN b int",
        "BEGIN; DELETE FROM x; ROLLBACK",
        "FLUSH PRIVILEGES",
        "-- DROP TABLE x",
        "/* DROP TABLE x */ SELECT 1",
        "",
        "select 'drop table x'",
        "EXPLAIN DELETE FROM a",
        "VACUUM",
        "\\dt",
    ] {
        assert_eq!(tier(text), None, "{text}");
    }
}

#[test]
fn long_and_deep_texts_end() {
    for text in [
        "(".repeat(200_000),
        format!("SELECT {}1", "1+".repeat(100_000)),
        format!("DELETE FROM a WHERE {}1", "1 OR ".repeat(40_000)),
        format!("DELETE FROM a WHERE {}1{}", "(".repeat(100_000), ")".repeat(100_000)),
        "$".repeat(200_000),
        "'".repeat(200_001),
        "/*".repeat(100_000),
        "WITH a AS (DELETE ".repeat(10_000),
        "EXEC ".repeat(40_000),
    ] {
        evaluate(&text);
    }
}

proptest::proptest! {
    #[test]
    fn never_panics(text in "[A-Za-z (),;'*=.$\\\\/\n-]{0,80}") {
        evaluate(&text);
    }
}

/// Statements of nine dialects, written without a look at the reader.
#[test]
fn statements_of_every_dialect() {
    let mut wrong = Vec::new();
    for line in include_str!("statements.txt").lines().filter(|line| !line.starts_with('#')) {
        let mut parts = line.splitn(3, ' ');
        let (Some(expected), Some(dialect), Some(statement)) = (parts.next(), parts.next(), parts.next()) else {
            continue;
        };
        // The worst verdict, block before escalate (R34).
        let found = evaluate(&statement.replace("\\n", "\n"));
        let has = |tier| found.iter().any(|found| found.tier == tier);
        let verdict = match () {
            () if has(Tier::Unrecoverable) => "block",
            () if has(Tier::NeedsReview) => "escalate",
            () if has(Tier::FromBackup) => "warn",
            () => "allow",
        };
        let fits = match expected {
            "lose" => verdict != "allow",
            "keep" => verdict == "allow",
            other => verdict == other,
        };
        if !fits {
            wrong.push(format!("{dialect}: {verdict} for `{statement}`, not {expected}"));
        }
    }
    assert!(wrong.is_empty(), "{} wrong\n{}", wrong.len(), wrong.join("\n"));
}
