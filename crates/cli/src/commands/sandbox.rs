//! `writ sandbox`: what the kernel would hold here, and whether it does.

use std::ffi::OsString;

use serde::Serialize;
use writ_core::Timestamp;
use writ_core::json;
use writ_engine::confine::plan::{Ground, plan};
use writ_engine::confine::{exec, strength};
use writ_engine::governing::{self, Trust, protect};
use writ_sandbox::{AttackResult, Host, SelfTest, attack, attacks, self_test};

use crate::args::{Format, FormatArgs, SandboxCommand};
use crate::environment;
use crate::exit::Failure;
use crate::output;

/// The hidden words by which this program attacks itself.
const ATTACK: [&str; 2] = ["sandbox", "attack"];

/// Shows a plan, or tests it.
pub fn run(command: &SandboxCommand) -> Result<(), Failure> {
    match command {
        SandboxCommand::Plan(args) => {
            let planned = planned()?;
            match args.format {
                Format::Json => output::print_json(&planned.confinement),
                Format::Human => show(&planned),
            }
            Ok(())
        }
        SandboxCommand::Test(args) => test(args),
        SandboxCommand::Attack { world } => {
            if attack(&[OsString::from(world)]) {
                Ok(())
            } else {
                Err(Failure::No)
            }
        }
    }
}

/// What the policy that governs here has the kernel hold around a call.
fn planned() -> Result<writ_engine::confine::plan::Planned, Failure> {
    let (home, cwd) = (environment::home(), environment::cwd()?);
    let path =
        governing::find(&cwd).ok_or_else(|| Failure::could_not("no policy governs here: `writ init` makes one"))?;
    let governing = governing::open(&path, None, &Trust::open(home.state.as_deref())).map_err(Failure::could_not)?;
    let setting = protect::setting(&home, &path, Timestamp::now());
    let ground = Ground {
        layers: &[&governing.policy],
        setting: &setting,
        root: path.parent().unwrap_or(&cwd),
        folder: &cwd,
        state: home.state.as_deref(),
        search: &home.search,
        approved: false,
    };
    plan(&ground).map_err(Failure::could_not)
}

fn show(planned: &writ_engine::confine::plan::Planned) {
    let confinement = &planned.confinement;
    output::line(format!("digest     {}", confinement.digest()));
    output::line(format!("reading    {}", json::word(&confinement.reading)));
    let lists = [
        ("writable", &confinement.writable),
        ("readable", &confinement.readable),
        ("read-only", &confinement.read_only),
        ("masked", &confinement.masked),
    ];
    for (name, paths) in lists {
        for (at, path) in paths.iter().enumerate() {
            let head = if at == 0 { name } else { "" };
            let path = output::plain(&path.as_path().to_string_lossy());
            output::line(format!("{head:<9}  {path}"));
        }
    }
    for text in &planned.advised {
        output::line(format!("advised    {}", output::plain(text)));
    }
}

/// What a test says.
#[derive(Serialize)]
struct Tested<'a> {
    level: &'static str,
    held: usize,
    escaped: Vec<&'a str>,
    #[serde(flatten)]
    test: &'a SelfTest,
}

fn test(args: &FormatArgs) -> Result<(), Failure> {
    let home = environment::home();
    let features = exec::features(&home).map_err(Failure::could_not)?;
    let level = features.level().ok_or_else(|| Failure::could_not("nothing can be held here"))?;
    let state = home.state().map_err(Failure::could_not)?;
    let confinement = planned()?.confinement;
    let arguments = ATTACK.map(OsString::from);
    let test = self_test(&confinement, &arguments, Host { features: &features, state }).map_err(Failure::could_not)?;
    let escaped: Vec<&str> = test.escaped().collect();
    if args.format == Format::Json {
        output::print_json(&Tested {
            level: strength::word(level),
            held: test.held(),
            escaped: escaped.clone(),
            test: &test,
        });
    } else {
        output::line(format!("level  {} ({} of 4)", strength::word(level), level.number()));
        for (id, words) in attacks() {
            let result = match test.results.get(id) {
                Some(AttackResult::Held) => output::good("held"),
                Some(AttackResult::Granted) => output::dim("granted"),
                Some(AttackResult::Escaped) => output::bad("escaped"),
                Some(AttackResult::NotTestable) | None => output::dim("not testable"),
            };
            output::line(format!("{id}  {result}  {words}"));
        }
    }
    if escaped.is_empty() { Ok(()) } else { Err(Failure::No) }
}
