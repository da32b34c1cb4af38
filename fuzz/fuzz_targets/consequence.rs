//! Any line, any document and any call are evaluated without panic.

#![no_main]

use libfuzzer_sys::fuzz_target;
use writ_consequence::{NoProbe, mcp, shell, sql, terraform};
use writ_core::json::{Limits, parse_with, to_value};
use writ_shell::Env;

fuzz_target!(|text: &str| {
    let env = Env { home: Some("/home/a".to_owned()), cwd: Some("/work".to_owned()), ..Env::default() };
    drop(to_value(&shell::evaluate(text, &env, &NoProbe)));
    drop(sql::evaluate(text));
    if let Ok(value) = parse_with(text.as_bytes(), Limits::FOREIGN) {
        drop(terraform::evaluate(&value, None));
        let call = mcp::Call { tool: text, server: None, arguments: &value, annotations: Some(&value) };
        drop(mcp::evaluate(&call, &env, &NoProbe));
    }
});
