//! Any bytes are an Agentfile with findings, each at a place in the file; one without errors formats to one that says the same.

#![no_main]

use libfuzzer_sys::fuzz_target;
use writ_agentfile::{Options, format, lint, parse};

fuzz_target!(|bytes: &[u8]| {
    let linted = lint(bytes, "Agentfile", &Options::default());
    for found in &linted.found {
        let span = found.place.span;
        assert!(span.start <= span.end && found.place.line > 0 && found.place.column > 0, "{found:?}");
        assert!(span.end <= bytes.len() + 1, "{found:?}");
    }
    if linted.has_errors() {
        return;
    }
    let formatted = format(&linted.agent.text).expect("a file without errors has a form");
    assert_eq!(format(&formatted).as_deref(), Some(formatted.as_str()));
    let (again, found) = parse(formatted.as_bytes(), "Agentfile");
    assert!(!found.iter().any(writ_agentfile::Diagnostic::is_error), "{found:?}");
    let words =
        |agent: &writ_agentfile::Agent| agent.entries.iter().map(writ_agentfile::Entry::quoted).collect::<Vec<_>>();
    assert_eq!(words(&linted.agent), words(&again));
});
