//! Bytes that read as a cache file are exactly what is written for what they say. The second half of the input puts the check sum right, which
//! fuzzing would never find.

#![no_main]

use libfuzzer_sys::fuzz_target;
use writ_core::json::{self, Object, Value};
use writ_core::{Digest, Timestamp};
use writ_evidence::registry::Registry;
use writ_verifier::{Entry, Instance};

fuzz_target!(|input: (&[u8], bool)| {
    let (bytes, complete) = input;
    let completed = if complete { completed(bytes) } else { None };
    if let Ok(entry) = Entry::parse(completed.as_deref().unwrap_or(bytes)) {
        assert_eq!(entry.to_bytes(), completed.as_deref().unwrap_or(bytes));
        assert_eq!(Entry::parse(&entry.to_bytes()).as_ref(), Ok(&entry));
        let next = entry.followed_by(entry.registry(), entry.fetched_at());
        assert!(
            next.is_ok_and(|next| next == entry)
                || entry.gone().iter().any(|gone| entry.registry().key(&gone.id).is_some())
        );
    }
    // A registry of any form that is taken reads back from the cache.
    if let Ok(registry) = Registry::parse(bytes) {
        let instance = Instance::parse("https://writ.example").unwrap();
        let entry = Entry::first(instance, registry, Timestamp::from_millis(1_800_000_000_000));
        assert_eq!(Entry::parse(&entry.to_bytes()).as_ref(), Ok(&entry));
    }
});

fn completed(bytes: &[u8]) -> Option<Vec<u8>> {
    let Ok(Value::Object(members)) = json::parse(bytes) else { return None };
    let kept = members.iter().filter(|(name, _)| *name != "sha256");
    let mut out: Object = kept.map(|(name, value)| (name.to_owned(), value.clone())).collect();
    let sum = Digest::of(json::canonical(&Value::Object(out.clone())).as_bytes());
    out.push("sha256", Value::from(sum.hex()));
    Some(format!("{}\n", json::canonical(&Value::Object(out))).into_bytes())
}
