//! A document that reads as a registry is written back as the same registry, may follow itself, and follows no later one.

#![no_main]

use libfuzzer_sys::fuzz_target;
use writ_core::Timestamp;
use writ_core::json;
use writ_evidence::registry::{Change, KeyState, Registry};

fuzz_target!(|bytes: &[u8]| {
    let Ok(registry) = Registry::parse(bytes) else { return };
    let printed = json::to_compact(&registry);
    assert_eq!(Registry::parse(printed.as_bytes()).as_ref(), Ok(&registry));
    assert!(registry.may_follow(&registry).is_ok());
    assert!(registry.keys().iter().filter(|key| key.state == KeyState::Active).count() <= 1);
    let now = Timestamp::from_millis(1_800_000_000_000);
    for key in registry.keys() {
        let id = || key.id.clone();
        let changes = [
            Change::Activate { id: id() },
            Change::Deprecate { id: id() },
            Change::Retire { id: id() },
            Change::Compromise { id: id() },
        ];
        for change in changes {
            let Ok(next) = registry.changed(&change, now) else { continue };
            assert!(next.may_follow(&registry).is_ok() && registry.may_follow(&next).is_err());
            let printed = json::to_compact(&next);
            assert_eq!(Registry::parse(printed.as_bytes()).as_ref(), Ok(&next));
        }
    }
});
