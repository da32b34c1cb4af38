//! The documents under `vectors/policy`: `accept-NAME` is `reject-NAME` put right.
//!
//! A file is `name: value` lines, an empty line, and the document. `expect` is `accept` or `reject <part of the message>`;
//! `pointer` and `place` (line:column) say what the first problem is about.

use std::collections::HashMap;
use std::fs;
use std::path::Path;

use writ_policy::Policy;

struct Vector {
    name: String,
    head: HashMap<String, String>,
    body: String,
}

#[expect(clippy::unwrap_used, reason = "without its vectors the test must fail")]
fn vectors() -> Vec<Vector> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../vectors/policy");
    let read = |path: &Path| {
        let text = fs::read_to_string(path).ok()?;
        let (head, body) = text.split_once("\n\n")?;
        let pair = |line: &str| line.split_once(": ").map(|(name, value)| (name.to_owned(), value.to_owned()));
        Some(Vector {
            name: path.file_name()?.to_string_lossy().into_owned(),
            head: head.lines().map(pair).collect::<Option<_>>()?,
            body: body.to_owned(),
        })
    };
    let entries = fs::read_dir(folder).unwrap();
    entries.map(|entry| read(&entry.unwrap().path()).unwrap()).collect()
}

#[test]
fn documents_are_taken_and_refused_as_they_say() {
    let (mut taken, mut refused) = (0, 0);
    for Vector { name, head, body } in vectors() {
        let outcome = Policy::parse(body.as_bytes(), "/w");
        if head["expect"] == "accept" {
            assert!(name.starts_with("accept-"), "{name}");
            assert!(outcome.is_ok(), "{name}: {}", outcome.unwrap_err());
            taken += 1;
            continue;
        }
        let word = head["expect"].strip_prefix("reject ").expect("accept or reject");
        let error = outcome.err().unwrap_or_else(|| panic!("{name} is taken"));
        let problem = &error.problems()[0];
        let pointer = if problem.pointer.is_empty() { "(document)" } else { &problem.pointer };
        let place = format!("{}:{}", problem.line, problem.column);
        assert_eq!((pointer, place.as_str()), (head["pointer"].as_str(), head["place"].as_str()), "{name}: {error}");
        assert!(problem.message.contains(word), "{name}: {error}");
        assert_eq!(error.problems().len(), 1, "{name}: {error}");
        refused += 1;
    }
    assert!(taken == refused && refused > 40, "{taken} taken, {refused} refused");
}
