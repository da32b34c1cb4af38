//! Evidence that somebody changed does not verify: every byte, every row.

#[cfg(test)]
#[expect(dead_code, reason = "other tests need more of it")]
mod workplace;

use std::fs;
use std::path::{Path, PathBuf};
use std::thread;

use workplace::{SESSION, Workplace};

/// A session with an allowed call, a denied one and a checkpoint.
fn recorded(name: &str) -> Workplace {
    let place = Workplace::new(name);
    place.start();
    place.answer(&place.payload("UserPromptSubmit", r#","prompt":"write""#));
    place.allowed("one");
    let denied = place.answer(&place.write_call("two", ".env"));
    assert!(denied.contains(r#""permissionDecision":"deny""#), "{denied}");
    place.answer(&place.payload("Stop", r#","stop_hook_active":false"#));
    assert_eq!(place.approved(), ["one"]);
    assert!(place.writ(&["verify", SESSION]).status.success());
    place
}

/// Copies the session's evidence to a folder called `name`.
fn copy(place: &Workplace, name: &str) -> PathBuf {
    let to = place.folder.join(name);
    let copied = std::process::Command::new("cp").arg("-r").arg(place.session()).arg(&to).status();
    assert!(copied.unwrap().success());
    to
}

fn verifies(place: &Workplace, folder: &Path) -> bool {
    let output = place.writ(&["verify", folder.to_str().unwrap()]);
    let code = output.status.code();
    assert!(
        matches!(code, Some(0 | 3 | 4)),
        "`writ verify` ended with {code:?}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    code == Some(0)
}

/// The one file in the folder of kept policies.
fn policy_of(folder: &Path) -> PathBuf {
    fs::read_dir(folder.join("policies")).unwrap().next().unwrap().unwrap().path()
}

#[test]
fn every_flipped_byte_is_noticed() {
    let place = recorded("flipped");
    let name = |path: PathBuf| path.file_name().unwrap().to_str().unwrap().to_owned();
    let policy = format!("policies/{}", name(policy_of(&place.session())));
    let files = ["ledger.jsonl", "checkpoints", "ledger.pub", &policy];
    let threads = 4;
    thread::scope(|scope| {
        for share in 0..threads {
            let (place, files) = (&place, &files);
            scope.spawn(move || {
                let folder = copy(place, &format!("copy-{share}"));
                assert!(verifies(place, &folder), "the copy does not verify before it is touched");
                for file in files {
                    flip_each(place, &folder, &folder.join(file), share, threads);
                }
                assert!(verifies(place, &folder), "the copy does not verify after it was put back");
            });
        }
    });
}

/// Flips one bit in every byte of `file` whose place is `share` modulo `shares`, one at a time.
fn flip_each(place: &Workplace, folder: &Path, file: &Path, share: usize, shares: usize) {
    let good = fs::read(file).unwrap();
    for at in (share..good.len()).step_by(shares) {
        let mut bad = good.clone();
        bad[at] ^= 1 << (at % 7);
        fs::write(file, &bad).unwrap();
        assert!(!verifies(place, folder), "byte {at} of {} was flipped and nothing was said", file.display());
    }
    fs::write(file, good).unwrap();
}

#[test]
fn rows_that_are_gone_doubled_or_swapped_are_noticed() {
    let place = recorded("rows");
    let folder = copy(&place, "copy");
    let ledger = folder.join("ledger.jsonl");
    let text = fs::read_to_string(&ledger).unwrap();
    let rows: Vec<&str> = text.split_inclusive('\n').collect();
    let mut changed: Vec<(String, String)> = Vec::new();
    for at in 0..rows.len() {
        let without = [&rows[..at], &rows[at + 1..]].concat().concat();
        changed.push((format!("row {at} is gone"), without));
        let doubled = [&rows[..=at], &rows[at..]].concat().concat();
        changed.push((format!("row {at} is doubled"), doubled));
        changed.push((format!("cut before row {at}"), rows[..at].concat()));
        changed.push((
            format!("cut inside row {at}"),
            format!("{}{}", rows[..at].concat(), &rows[at][..rows[at].len() / 2]),
        ));
        for other in at + 1..rows.len() {
            let mut swapped = rows.clone();
            swapped.swap(at, other);
            changed.push((format!("rows {at} and {other} are swapped"), swapped.concat()));
        }
    }
    for (what, bad) in changed {
        fs::write(&ledger, bad).unwrap();
        assert!(!verifies(&place, &folder), "{what}, and nothing was said");
    }
    fs::write(&ledger, text).unwrap();
    assert!(verifies(&place, &folder));
}
