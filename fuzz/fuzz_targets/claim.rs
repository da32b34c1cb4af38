//! Any text gives a claim within the limits, each file once, and nothing in a fence or a quote claims anything.

#![no_main]

use std::collections::HashSet;

use libfuzzer_sys::fuzz_target;
use writ_claims::{Claim, Source};
use writ_core::json::to_value;

fuzz_target!(|text: &str| {
    let claim = Claim::parse(text);
    let names: HashSet<&String> = claim.files.iter().collect();
    assert_eq!(names.len(), claim.files.len());
    assert!(claim.files.len() <= 1000 && claim.unparsed.len() <= 1000);
    assert!(claim.files.iter().all(|name| !name.is_empty() && !name.contains(['\n', '*', '?'])));
    assert!(claim.source != Source::None || (claim.status.is_none() && claim.files.is_empty()));
    drop(to_value(&claim));
    let quoted = format!("> {}", text.replace(['\n', '\r'], "\n> "));
    assert_eq!(Claim::parse(&quoted).source, Source::None);
    if !text.contains(['`', '~']) {
        assert_eq!(Claim::parse(&format!("```\n{text}")).source, Source::None);
    }
});
