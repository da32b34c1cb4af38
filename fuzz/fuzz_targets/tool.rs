//! Any bytes are a tool's description or none; what arguments make of one is a line of one shell, or a request to the host that it names.

#![no_main]

use libfuzzer_sys::fuzz_target;
use writ_agentfile::tool::{Description, How, LIMITS};
use writ_core::json::{self, Object};

fuzz_target!(|bytes: &[u8]| {
    let cut = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
    let (description, rest) = bytes.split_at(cut);
    let Ok(tool) = Description::read(description) else { return };
    let given = json::parse_with(rest.strip_prefix(b"\0").unwrap_or(rest), LIMITS).ok();
    let given = given.as_ref().and_then(|value| value.as_object()).cloned().unwrap_or_else(Object::new);
    let Ok(arguments) = tool.arguments(&given) else { return };
    match &tool.how {
        How::Cli(cli) => drop(cli.line(&arguments)),
        How::Http(http) => {
            let none = http.request(&Object::new()).map(|request| request.host);
            let with = http.request(&arguments).map(|request| request.host);
            if let (Ok(none), Ok(with)) = (none, with) {
                assert_eq!(none, with);
            }
        }
        How::Program | How::Server => {}
    }
});
