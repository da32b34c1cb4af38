//! `writ mcp proxy`: between a client and any MCP server.

use std::io;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;

use writ_engine::mcp::Gate;
use writ_service::mcp::proxy::{self, Header, Relay};

use crate::args::McpProxyArgs;
use crate::environment;
use crate::exit::Failure;
use crate::output;

/// Relays until one of the two ends.
pub fn run(args: &McpProxyArgs) -> Result<(), Failure> {
    let url = match args.server.as_slice() {
        [only] => only.to_str().filter(|text| text.starts_with("http://") || text.starts_with("https://")),
        _ => None,
    };
    if url.is_none() && !args.header.is_empty() {
        return Err(Failure::Usage("`--header` is for a server behind a URL".to_owned()));
    }
    let headers = args.header.iter().map(|text| header(text)).collect::<Result<Vec<_>, _>>()?;
    let name =
        args.name.clone().or_else(|| name(args, url)).ok_or_else(|| Failure::Usage("give `--name`".to_owned()))?;
    let gate = gate(&as_in_tools(&name))?;
    if !gate.is_governed() {
        tell("no policy governs this folder: calls are relayed and not recorded");
    }
    let relay = Relay::new(gate);
    if let Some(url) = url {
        return proxy::run_http(relay, url, headers, io::stdin(), io::stdout(), tell).map_err(Failure::could_not);
    }
    let status = proxy::run_child(relay, &args.server, io::stdin(), io::stdout(), tell).map_err(|error| {
        let program = args.server.first().map(|word| word.to_string_lossy().into_owned()).unwrap_or_default();
        Failure::could_not(format!("cannot run the server `{program}`: {error}"))
    })?;
    match status.code() {
        Some(0) => Ok(()),
        // It was told to end when its client had.
        None if matches!(status.signal(), Some(9 | 15)) => Ok(()),
        code => Err(Failure::Said(code.and_then(|code| u8::try_from(code).ok()).unwrap_or(1))),
    }
}

/// Between this process's client and a server of this name.
pub fn gate(server: &str) -> Result<Gate, Failure> {
    let (home, cwd) = (environment::home(), environment::cwd()?);
    Gate::new(home, &cwd, server, environment::client_session()).map_err(Failure::could_not)
}

fn tell(text: &str) {
    output::note(format!("writ: {text}"));
}

fn header(text: &str) -> Result<Header, Failure> {
    let (name, value) =
        text.split_once(':').ok_or_else(|| Failure::Usage("`--header` takes `Name: value`".to_owned()))?;
    Ok((name.trim().to_owned(), environment::with_variables(value.trim())?))
}

/// The name of the server that its client's user did not give.
fn name(args: &McpProxyArgs, url: Option<&str>) -> Option<String> {
    let name = match url {
        Some(url) => url.split("://").nth(1)?.split(['/', '?', '#']).next()?.rsplit('@').next()?.to_owned(),
        None => Path::new(args.server.first()?).file_stem()?.to_string_lossy().into_owned(),
    };
    Some(name).filter(|name| !name.is_empty())
}

/// Clients write `_` for whatever a tool's name may not hold.
fn as_in_tools(name: &str) -> String {
    let fits = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '_' | '-');
    name.chars().map(|letter| if fits(letter) { letter } else { '_' }).collect()
}
