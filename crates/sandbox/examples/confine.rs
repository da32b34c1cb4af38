//! Runs a command below `.`: `confine [writable|closed|net] -- CMD …`.
#![expect(clippy::print_stderr, clippy::unwrap_used, clippy::exit, reason = "an example")]

use writ_sandbox::*;

fn main() {
    let mut words = std::env::args_os().skip(1).peekable();
    if words.next_if(|word| word == "attack").is_some() {
        std::process::exit(i32::from(!attack(&words.collect::<Vec<_>>())));
    }
    let folder = HostPath::new(std::env::current_dir().unwrap()).unwrap();
    let mut confinement = Confinement::reading(folder.clone());
    let mut level = Level::Full;
    for word in words.by_ref() {
        match word.to_str() {
            Some("writable") => confinement.writable.push(folder.clone()),
            Some("closed") => {
                confinement.reading = Reading::Closed;
                confinement.readable =
                    ["/usr", "/bin", "/lib", "/lib64", "/etc"].map(|path| HostPath::new(path).unwrap()).into();
            }
            Some("level3") => level = Level::Namespaces,
            Some("level2") => level = Level::Landlock,
            Some("unix") => confinement.unix_sockets = UnixSockets::Open,
            Some(word) if word.starts_with("read=") => confinement.readable.push(HostPath::new(&word[5..]).unwrap()),
            Some("limits") => {
                confinement.limits.processes = Some(200);
                confinement.limits.file_size = Some(100 << 20);
                confinement.limits.wall_time = Some(20_000);
            }
            Some("env") => confinement.environment.drop.push("CANARY*".into()),
            Some("terminal") => confinement.session = Session::Terminal,
            Some("hostnet") => confinement.network = Network::Open,
            Some("proxied") => confinement.network = Network::Proxied(Ports::default()),
            Some(word) if word.starts_with("mask=") => confinement.masked.push(HostPath::new(&word[5..]).unwrap()),
            Some(word) if word.starts_with("hold=") => confinement.read_only.push(HostPath::new(&word[5..]).unwrap()),
            _ => break,
        }
    }
    let program = words.next().unwrap();
    let command = Command::new(program.clone(), words);
    let features = Features::probe().unwrap().at_most(level);
    let state = std::path::PathBuf::from(std::env::var_os("WRIT_STATE").unwrap_or("/tmp/sandbox/state".into()));
    let host = Host { features: &features, state: &state };
    if program == "self-test" {
        let start = std::time::Instant::now();
        let test = self_test(&confinement, &["attack".into()], host).unwrap();
        eprintln!("{test:#?} {:?}", start.elapsed());
        return;
    }
    match run(&confinement, command, host, |listeners| Ok(listeners)) {
        Ok(Outcome { end: End::Exited(code), .. }) => std::process::exit(code),
        Ok(outcome) => eprintln!("{outcome:?}"),
        Err(error) => {
            eprintln!("confine: {error}");
            std::process::exit(error.exit_code().into());
        }
    }
}
