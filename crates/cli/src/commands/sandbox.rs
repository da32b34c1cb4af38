//! `writ sandbox`: what the kernel would hold here, and whether it does.

use std::ffi::OsString;
use std::path::Path;

use serde::Serialize;
use writ_core::Timestamp;
use writ_core::json;
use writ_egress::{Limit, LoopbackPort, PortRule, PrivateRange, SecretRule};
use writ_engine::confine::order::{Order, compose};
use writ_engine::confine::plan::{Ground, Said, plan};
use writ_engine::confine::secrets::{self, Source};
use writ_engine::confine::{exec, limits, strength};
use writ_engine::governing::layers::Caller;
use writ_engine::governing::{self, Trust, protect};
use writ_policy::HostRule;
use writ_policy::sandbox::Secret;
use writ_sandbox::{AttackResult, BEYOND_A_KERNEL, Host, Network, SelfTest, Suite, attack, attacks, self_test};

use crate::args::{Format, SandboxCommand, TestArgs};
use crate::commands::copies;
use crate::environment;
use crate::exit::Failure;
use crate::output;

/// The hidden words by which this program attacks itself.
const ATTACK: [&str; 2] = ["sandbox", "attack"];

/// Shows a plan, or tests it.
pub fn run(command: &SandboxCommand) -> Result<(), Failure> {
    match command {
        SandboxCommand::Plan(args) => with_ground(None, |ground| {
            let bound = secrets::bound(ground.layers);
            // Each session makes its own.
            let placeholder =
                |(number, secret): (usize, &Secret)| (secret.name.clone(), format!("writ_secret_{number:032x}"));
            let placeholders = bound.iter().enumerate().map(placeholder).collect();
            let (order, said) = compose(ground, &bound, &placeholders).map_err(Failure::could_not)?;
            match args.format {
                Format::Json => output::print_json(&order),
                Format::Human => show(&order, &said),
            }
            Ok(())
        }),
        SandboxCommand::Test(args) => test(args),
        SandboxCommand::Diff(args) => copies::diff(args),
        SandboxCommand::Apply(args) => copies::apply(args),
        SandboxCommand::Attack { world } => {
            if attack(&[OsString::from(world)]) {
                Ok(())
            } else {
                Err(Failure::No)
            }
        }
    }
}

/// Works with what a policy, or else the one that governs here, has the kernel hold around a call.
fn with_ground<T>(policy: Option<&Path>, work: impl FnOnce(&Ground<'_>) -> Result<T, Failure>) -> Result<T, Failure> {
    let (home, mut cwd) = (environment::home(), environment::cwd()?);
    let found = match policy {
        Some(policy) => Some(
            policy.canonicalize().map_err(|error| Failure::could_not(format!("`{}`: {error}", policy.display())))?,
        ),
        None => governing::find(&cwd),
    };
    let path = found.ok_or_else(|| Failure::could_not("no policy governs here: `writ init` makes one"))?;
    // A policy is about its own folder; a call starts there or below.
    if let Some(folder) = path.parent().filter(|folder| !cwd.starts_with(folder)) {
        cwd = folder.to_owned();
    }
    let governing = governing::open(&path, None, &Trust::open(home.state.as_deref())).map_err(Failure::could_not)?;
    let setting = protect::setting(&home, &path, Timestamp::now());
    let setting = protect::with_layers(setting, &governing.list());
    work(&Ground {
        layers: &governing.policies(Caller::Main),
        setting: &setting,
        root: path.parent().unwrap_or(&cwd),
        folder: &cwd,
        state: home.state.as_deref(),
        search: &home.search,
        approved: false,
        begun: None,
    })
}

fn show(order: &Order, said: &Said) {
    let confinement = &order.confinement;
    output::line(format!("digest     {}", order.digest()));
    output::line(format!("reading    {}", json::word(&confinement.reading)));
    let lists = [
        ("writable", &confinement.writable),
        ("readable", &confinement.readable),
        ("read-only", &confinement.read_only),
        ("masked", &confinement.masked),
        ("hollow", &confinement.hollow),
    ];
    for (name, paths) in lists {
        several(name, paths.iter().map(|path| path.as_path().to_string_lossy().into_owned()));
    }
    network(order);
    several("secret", order.egress.secrets.iter().map(|secret| in_words(order, secret)));
    several("limit", limits::words(&confinement.limits));
    let refused = order.refused_variables.iter().filter_map(|rule| rule.pattern().strip_prefix("env:"));
    let dropped = confinement.environment.drop.iter().map(String::as_str).chain(refused);
    several("dropped", dropped.map(|name| format!("the variable {name}")));
    several("hidden", said.hidden.iter().cloned());
    several("advised", said.advised.iter().cloned());
}

/// Lines under one name.
fn several(name: &str, texts: impl IntoIterator<Item = String>) {
    for (at, text) in texts.into_iter().enumerate() {
        let head = if at == 0 { name } else { "" };
        output::line(format!("{head:<9}  {}", output::plain(&text)));
    }
}

fn network(order: &Order) {
    let rules = &order.egress;
    let text = match &order.confinement.network {
        Network::Open => "the host's: no `domains` closes it".to_owned(),
        Network::Closed => "none".to_owned(),
        Network::Proxied(ports) => format!("a proxy on 127.0.0.1:{} asks `domains`", ports.http),
    };
    let hosts = |hosts: &[HostRule]| hosts.iter().map(|host| host.pattern.as_str()).collect::<Vec<_>>().join(", ");
    let port =
        |rule: &PortRule| format!("port {} ({}) of {}", rule.port, json::word(&rule.protocol), hosts(&rule.hosts));
    let range = |rule: &PrivateRange| format!("{} may lead to {}", hosts(&rule.hosts), String::from(rule.range));
    let limit = |rule: &Limit| {
        let amounts = [
            (rule.per_minute.map(|count| u64::from(count.get())), "requests a minute"),
            (rule.bytes_up, "bytes up"),
            (rule.bytes_down, "bytes down"),
        ];
        let amounts = amounts.into_iter().filter_map(|(amount, words)| Some(format!("{} {words}", amount?)));
        format!("at most {} for {}", amounts.collect::<Vec<_>>().join(", "), hosts(&rule.hosts))
    };
    let loopback = |rule: &LoopbackPort| format!("127.0.0.1:{} is the host's", rule.port);
    let lines = rules.ports.iter().map(port).chain(rules.private.iter().map(range));
    let lines = lines.chain(rules.limits.iter().map(limit)).chain(rules.loopback.iter().map(loopback));
    several("network", [text].into_iter().chain(lines));
}

/// A secret, its source and hosts, and whether it has a value here.
fn in_words(order: &Order, secret: &SecretRule) -> String {
    let only = |(name, source): (&String, &Source)| (name.clone(), source.clone());
    let source = order.sources.get_key_value(&secret.name).map(only);
    let from = match source.as_ref().map(|(_, source)| source) {
        Some(Source::Variable(name)) => format!("env:{name}"),
        Some(Source::File(path)) => format!("file:{path}"),
        None => String::new(),
    };
    let hosts: Vec<&str> = secret.hosts.iter().map(|host| host.pattern.as_str()).collect();
    let missing = secrets::values(&source.into_iter().collect(), &environment::home()).err();
    let missing = missing.map_or_else(String::new, |error| format!("; {error}"));
    format!("{} from {from} for {}{missing}", secret.name, hosts.join(", "))
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

fn test(args: &TestArgs) -> Result<(), Failure> {
    let home = environment::home();
    let features = exec::features(&home).map_err(Failure::could_not)?;
    let level = features.level().ok_or_else(|| Failure::could_not("nothing can be held here"))?;
    let state = home.state().map_err(Failure::could_not)?;
    let plan = |ground: &Ground<'_>| Ok(plan(ground).map_err(Failure::could_not)?.confinement);
    let mut confinement = with_ground(args.policy.as_deref(), plan)?;
    // As for a call of a session.
    confinement.environment.drop.extend(home.secret_variables.iter().cloned());
    let arguments = ATTACK.map(OsString::from);
    let suite = if args.quick { Suite::Quick } else { Suite::Whole };
    let host = Host { features: &features, state };
    let test = self_test(&confinement, suite, &arguments, host).map_err(Failure::could_not)?;
    let escaped: Vec<&str> = test.escaped().collect();
    if args.format.format == Format::Json {
        output::print_json(&Tested {
            level: strength::word(level),
            held: test.held(),
            escaped: escaped.clone(),
            test: &test,
        });
    } else {
        output::line(format!("level  {} ({} of 4)", strength::word(level), level.number()));
        let beyond = BEYOND_A_KERNEL.iter().copied().filter(|_| suite == Suite::Whole);
        attacks(suite).chain(beyond).for_each(|(id, words)| line(&test, id, words));
        output::line(format!("{} held, {} escaped, of {}", test.held(), escaped.len(), test.results.len()));
    }
    if escaped.is_empty() { Ok(()) } else { Err(Failure::No) }
}

fn line(test: &SelfTest, id: &str, words: &str) {
    let result = match test.results.get(id) {
        Some(AttackResult::Held) => output::good("held"),
        Some(AttackResult::Granted) => output::dim("granted"),
        Some(AttackResult::Escaped) => output::bad("escaped"),
        Some(AttackResult::Named) => output::dim("named"),
        Some(AttackResult::NotTestable) | None => output::dim("not testable"),
    };
    let why = test.why.get(id).map_or_else(String::new, |why| format!(" ({why})"));
    output::line(format!("{id}  {result}  {words}{why}"));
}
