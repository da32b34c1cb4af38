//! The document that evaluators are shown: each pattern of any policy has its list, and every statement is shown where it belongs.

#![no_main]

use libfuzzer_sys::fuzz_target;
use writ_core::json::{self, Value};
use writ_evaluators::input::{self, Statement};
use writ_evaluators::named::Named;

fuzz_target!(|bytes: &[u8]| {
    let Ok(policy) = json::parse(bytes) else { return };
    drop(Named::of(&policy));
    let statement = |name: &str| Statement {
        name: name.to_owned(),
        also: name.strip_prefix("research-").map(str::to_owned),
        document: Value::String(name.to_owned()),
    };
    let statements = ["turn-10", "turn-9", "research-turn-1", "quality"].map(statement);
    let shown = input::build(&policy, &statements);
    let document = json::parse(shown.text.as_bytes()).expect("what is shown is JSON");
    let from = document.get("attestationsFrom").and_then(Value::as_object).expect("its lists");
    assert_eq!(from.iter().count(), shown.patterns.len());
    for (pattern, list) in from.iter() {
        let list = list.as_array().expect("a list");
        assert_eq!(list.is_empty(), shown.empty.iter().any(|empty| empty == pattern));
        let at = |name: &str| list.iter().position(|one| one.as_str() == Some(name));
        if let (Some(nine), Some(ten)) = (at("turn-9"), at("turn-10")) {
            assert!(nine < ten);
        }
    }
    assert_eq!(json::canonical(&document), shown.text);
});
