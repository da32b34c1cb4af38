//! The predicate of a turn, and the row that names one: what parses is written again as the same, and its binding is checked without harm.

#![no_main]

use libfuzzer_sys::fuzz_target;
use writ_core::json;
use writ_engine::turns::name;
use writ_engine::turns::named::Named;
use writ_engine::turns::predicate::Turn;

fuzz_target!(|bytes: &[u8]| {
    if let Ok(turn) = json::from_slice::<Turn>(bytes) {
        let written = json::to_canonical(&turn);
        assert_eq!(json::from_slice::<Turn>(written.as_bytes()).expect("what Writ writes parses"), turn);
        if let Some(binding) = &turn.session_binding {
            drop(binding.check());
        }
    }
    if let Ok(named) = json::from_slice::<Named>(bytes) {
        let written = json::to_canonical(&named);
        let again: Named = json::from_slice(written.as_bytes()).expect("what Writ writes parses");
        assert_eq!(json::to_canonical(&again), written);
        let own = name::stem(named.turn, named.part) + ".json";
        assert!(name::is_of(&own, None, None, named.turn, named.part));
        drop(name::is_of(&named.name, Some("a1"), Some("research-"), named.turn, named.part));
    }
});
