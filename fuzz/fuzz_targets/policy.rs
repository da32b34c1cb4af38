//! Any bytes are a policy or an error with problems, each at a place in the document.

#![no_main]

use libfuzzer_sys::fuzz_target;
use writ_policy::Policy;

fuzz_target!(|bytes: &[u8]| match Policy::parse(bytes, "/work") {
    Ok(policy) => drop(policy.not_enforced()),
    Err(error) => {
        assert!(!error.problems().is_empty());
        // What is not UTF-8 is shown with replacement characters, so its places count from that text.
        let len = String::from_utf8_lossy(bytes).len();
        for problem in error.problems() {
            assert!(problem.span.start <= problem.span.end && problem.span.end <= len, "{problem:?}");
            assert!(problem.line > 0 && problem.column > 0, "{problem:?}");
        }
    }
});
