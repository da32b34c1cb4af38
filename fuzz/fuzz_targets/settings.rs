//! Installing hooks twice is installing them once, and what was installed can be taken out again.

#![no_main]

use libfuzzer_sys::fuzz_target;
use writ_clients::claude_code::settings::{install, remove};
use writ_clients::settings::HookSpec;

fuzz_target!(|text: &str| {
    let spec = HookSpec { command: "writ".to_owned(), on_failure_block: true };
    let Ok(once) = install(Some(text), &spec) else { return };
    let twice = install(Some(&once.text), &spec).expect("what Writ writes can be edited");
    assert!(twice.changed.is_empty() && twice.text == once.text);
    let removed = remove(&once.text).expect("what Writ writes can be edited");
    assert!(remove(&removed.text).expect("still settings").changed.is_empty());
});
