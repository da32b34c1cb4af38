//! What an endpoint answers is a judgement or none: a PASS only of an answer that says so, and never a word of the key.

#![no_main]

use libfuzzer_sys::fuzz_target;
use writ_evaluators::ai::{self, Endpoint, Form};
use writ_evaluators::input::Input;
use writ_evaluators::named::Ai;
use writ_evaluators::Status;

const KEY: &str = "k-3f9c";

fuzz_target!(|bytes: &[u8]| {
    let input = Input { text: "{}".to_owned(), empty: Vec::new(), patterns: Vec::new() };
    let ai = Ai { name: "quality".to_owned(), prompt: "PASS if done.".to_owned(), model: "m-1".to_owned() };
    for form in [Form::Messages, Form::ChatCompletions] {
        let endpoint = Endpoint { url: "http://localhost/".to_owned(), form, key: Some(KEY.to_owned()) };
        let judged = ai::judge(&endpoint, &ai, &input, &|_| Ok(bytes.to_vec())).expect("it was asked");
        assert!(judged.reasons.iter().chain(&judged.notes).all(|text| !text.contains(KEY)));
        if judged.status == Status::Pass {
            assert!(bytes.windows(4).any(|word| word == b"PASS") || bytes.contains(&b'\\'));
        }
    }
});
