//! For every client installing hooks twice is installing them once, and what was installed can be taken out again.

#![no_main]

use std::path::Path;

use libfuzzer_sys::fuzz_target;
use writ_clients::CLIENTS;
use writ_clients::settings::HookSpec;

fuzz_target!(|text: &str| {
    let spec = HookSpec { command: "writ".to_owned(), on_failure_block: true };
    for settings in CLIENTS.into_iter().filter_map(|client| client.settings()) {
        drop(settings.switches(text));
        if let Ok(once) = settings.install(Some(text), &spec) {
            let twice = settings.install(Some(&once.text), &spec).expect("what Writ writes can be edited");
            assert!(twice.changed.is_empty() && twice.text == once.text);
            let removed = settings.remove(&once.text).expect("what Writ writes can be edited");
            assert!(settings.remove(&removed.text).expect("still settings").changed.is_empty());
        }
        let Some(companion) = settings.companion() else { continue };
        let installed = settings.install(None, &spec).expect("a file of its own").text;
        let path = Path::new("/h/hooks.json");
        let Ok(once) = companion.install(Some(text), path, &installed) else { continue };
        assert!(companion.missing(Some(&once.text), path, &installed).is_empty());
        drop(companion.remove(&once.text, path).expect("what Writ writes can be edited"));
    }
});
