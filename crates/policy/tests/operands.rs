//! Paths that are not fully known, against a disk as it is: listings, globs, searches, patterns (R70).

#![expect(clippy::unwrap_used, reason = "a step that fails fails the test")]

mod made;

use made::{Disk, decided};

const POLICY: &str =
    r#"{"version":"1.0","name":"x","files":{"deny":["**/.env","secrets/**"],"readOnly":["Cargo.lock"]}}"#;

fn disk() -> Disk {
    Disk::of(&[
        ("/w/.git/HEAD", ""),
        ("/w/.env", ""),
        ("/w/Cargo.lock", ""),
        ("/w/README.md", ""),
        ("/w/docs/a.md", ""),
        ("/w/src/main.rs", ""),
        ("/w/src/x.py", ""),
        ("/w/secrets/prod.txt", ""),
        ("/w/notes.txt", ""),
        ("/w/plain/.keep", ""),
        ("/h/.writ/keys/ledger.pem", ""),
    ])
}

/// The same where git leaves `.env` out.
fn ignoring() -> Disk {
    Disk::of(&[
        ("/w/.git/HEAD", ""),
        ("/w/.gitignore", ".env\nbuild/\n*.log\n!keep.log\n"),
        ("/w/.env", ""),
        ("/w/src/main.rs", ""),
        ("/w/build/.env", ""),
    ])
}

fn check(disk: &Disk, lines: &str, expected: &[&str]) {
    let mut wrong = Vec::new();
    let mut count = 0;
    for line in lines.lines().filter(|line| !line.is_empty()) {
        let verdict = decided(POLICY, disk, line);
        if !expected.contains(&verdict.as_str()) {
            wrong.push(format!("{verdict}: {line}"));
        }
        count += 1;
    }
    assert!(wrong.is_empty(), "{} of {count}:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn what_reaches_a_ruled_file_is_stopped() {
    check(&disk(), include_str!("operands/stopped.txt"), &["ask", "deny"]);
}

#[test]
fn what_surely_reaches_one_is_denied() {
    check(&disk(), include_str!("operands/denied.txt"), &["deny"]);
}

#[test]
fn everyday_lines_pass() {
    check(&disk(), include_str!("operands/allowed.txt"), &["allow"]);
}

#[test]
fn searches_leave_out_what_is_ignored() {
    check(
        &ignoring(),
        "rg foo\nrg -n foo src\nrg --hidden foo\nrg -l foo | xargs sed -n 1p\nrg -g '!.env' --hidden foo\nfd env\n\
         rg -t rust foo\ncat $(git ls-files)\ngrep -r --exclude=.env foo .\ngrep -r --include='*.rs' foo .\n\
         grep -r foo src\ngrep -rn --exclude-dir=build --exclude='.e*' foo .\nag foo",
        &["allow"],
    );
    check(
        &ignoring(),
        "rg --hidden --no-ignore foo\nrg -uu foo\nrg -g .env foo\nrg foo .env\nrg -uuu foo build\ngrep -r foo .\n\
         grep -r --include='.e*' foo .\ngrep -r --exclude=x foo .\ngrep -r foo build\nfd -HI env -x cat\nag -u foo",
        &["deny"],
    );
}

#[test]
fn a_tracked_file_is_listed_though_ignored() {
    let mut files = vec![("/w/.git/HEAD", ""), ("/w/.gitignore", ".env\n"), ("/w/.env", ""), ("/w/a.md", "")];
    check(&Disk::of(&files), "cat $(git ls-files)", &["allow"]);
    files.push(("/w/.git/index", "DIRC\0\0\0\u{2}\0\0\0\u{1}....env\0"));
    check(&Disk::of(&files), "cat $(git ls-files)", &["deny"]);
    check(&Disk::of(&files), "cat $(git ls-files '*.md')\nrg foo", &["allow"]);
}

#[test]
fn the_client_searches_as_ripgrep_does() {
    for (input, ignored, expected) in [
        (r#"{"pattern":"x"}"#, true, "allow"),
        (r#"{"pattern":"x"}"#, false, "deny"),
        (r#"{"pattern":"x","glob":".env"}"#, true, "deny"),
        (r#"{"pattern":"x","glob":"*.rs"}"#, false, "allow"),
        (r#"{"pattern":"x","type":"rust"}"#, false, "allow"),
        (r#"{"pattern":"x","path":"src"}"#, false, "allow"),
        (r#"{"pattern":"x","path":"secrets"}"#, false, "deny"),
    ] {
        let disk = if ignored { ignoring() } else { disk() };
        assert_eq!(made::grep(POLICY, &disk, input).as_str(), expected, "{input} {ignored}");
    }
}

#[test]
fn huge_folders_end_in_a_question() {
    let many: Vec<(String, &str)> = (0..120_000).map(|n| (format!("/w/many/f{n}"), "")).collect();
    let many: Vec<(&str, &str)> = many.iter().map(|(path, text)| (path.as_str(), *text)).collect();
    let disk = Disk::of(&many);
    let started = std::time::Instant::now();
    check(&disk, "find many -type f | xargs cat\ncat $(ls many)\nfor f in $(ls many); do cat many/$f; done", &["ask"]);
    check(&disk, "find . -maxdepth 1 -name '*.md' | xargs cat", &["allow"]);
    assert!(started.elapsed().as_secs() < 30, "{:?}", started.elapsed());
}
