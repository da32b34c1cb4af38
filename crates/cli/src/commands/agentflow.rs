//! `writ agentflow`: a run of a workflow, begun and verified.

use std::path::{Path, PathBuf};

use serde::Serialize;
use writ_core::{Digest, Timestamp};
use writ_engine::governing::{self, Governing};
use writ_engine::verify::agentflow::{self, AgentflowError, Checked, Held, Run, Subject};
use writ_store::Store;

use crate::args::{AgentflowCommand, Format, StartArgs, StartFormat, VerifyRunArgs};
use crate::commands::policy;
use crate::commands::session_lookup::{self, store};
use crate::environment;
use crate::exit::Failure;
use crate::human_check;
use crate::output;

/// Begins or verifies.
pub fn run(command: &AgentflowCommand) -> Result<(), Failure> {
    match command {
        AgentflowCommand::Start(args) => start(args),
        AgentflowCommand::Verify(args) => verify(args),
    }
}

fn failure(error: AgentflowError) -> Failure {
    match error {
        AgentflowError::Verify(error) => session_lookup::failure(error),
        AgentflowError::Unreadable { .. } => Failure::malformed(error),
        AgentflowError::Unknown(_) | AgentflowError::Store(_) => Failure::could_not(error),
    }
}

/// What a run begins with.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Started<'a> {
    run_id: &'a str,
    policy: &'a str,
    file: Digest,
    /// Where sessions leave their record.
    evidence: String,
    /// Where the policy wants attestations.
    #[serde(skip_serializing_if = "Option::is_none")]
    attestation_dir: Option<String>,
    limits: Vec<String>,
}

fn start(args: &StartArgs) -> Result<(), Failure> {
    human_check::not_agent("begin a run")?;
    let path = std::path::absolute(policy::given_or_found(args.policy.clone())?)?;
    let governing = policy::open(&path, None)?;
    let cwd = environment::cwd()?;
    let store = store(&environment::home())?;
    let run = agentflow::start(&store, &repository(&cwd), &governing, Timestamp::now()).map_err(failure)?;
    let directory = governing.policy.document().get("attestationDir").and_then(|text| text.as_str());
    let folder = path.parent().unwrap_or(&cwd);
    let started = Started {
        run_id: &run.id,
        policy: &run.policy,
        file: run.file,
        evidence: store.root().join("sessions").display().to_string(),
        attestation_dir: directory.map(|directory| folder.join(directory).display().to_string()),
        limits: limits(&governing),
    };
    match args.format {
        StartFormat::Json => output::print_json(&started),
        StartFormat::Id => output::line(&run.id),
        StartFormat::Human => begun(&run, &started, &governing, &cwd),
    }
    Ok(())
}

fn limits(governing: &Governing) -> Vec<String> {
    let shown = |limit: &writ_policy::Limit| {
        let when = if limit.post_hoc { "post-hoc" } else { "fail-fast" };
        format!("{} {} ({when})", limit.measure, limit.measure.shown(limit.value))
    };
    governing.limits().iter().map(shown).collect()
}

fn begun(run: &Run, started: &Started<'_>, governing: &Governing, cwd: &std::path::Path) {
    output::line(format!("run       {}", output::bold(&run.id)));
    output::line(format!(
        "policy    `{}`  {}  {}",
        output::plain(&run.policy),
        output::path(&governing.path),
        run.file
    ));
    output::line(format!("evidence  {}", output::plain(&started.evidence)));
    if let Some(directory) = &started.attestation_dir {
        output::line(format!(
            "          {} (`attestationDir`: each turn leaves a statement there)",
            output::plain(directory)
        ));
    }
    match started.limits.as_slice() {
        [] => output::line("limits    none"),
        limits => output::line(format!("limits    {}", limits.join(", "))),
    }
    let here = governing::find(cwd);
    if here.as_deref() != Some(governing.path.as_path()) {
        let path = output::path(&governing.path);
        output::line(format!(
            "\nSessions here begin under another policy, or none: `writ run --policy {path} -- claude` begins one under this."
        ));
    }
    output::line(format!("\nNext: `export CURRENT_RUN={}`; at the end `writ agentflow verify`.", run.id));
}

/// The repository: which one git is at, it tells its hooks; else the one around the folder.
fn repository(cwd: &Path) -> PathBuf {
    match environment::home().variable("GIT_DIR").filter(|folder| !folder.is_empty()) {
        Some(folder) => cwd.join(folder),
        None => governing::repository(cwd).to_owned(),
    }
}

/// What a verification comes to.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Outcome<'a> {
    /// `null` where there is nothing to verify.
    pass: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    run: Option<&'a Run>,
    #[serde(skip_serializing_if = "Option::is_none")]
    policy: Option<Digest>,
    sessions: &'a [Checked],
    #[serde(skip_serializing_if = "Vec::is_empty")]
    wrong: Vec<String>,
}

fn verify(args: &VerifyRunArgs) -> Result<(), Failure> {
    let cwd = environment::cwd()?;
    let store = store(&environment::home())?;
    let named = args.run_id.as_deref();
    if named == Some("") {
        let why = "`--run-id`, or `CURRENT_RUN`, is empty and names no run: did `writ agentflow start` fail? Without both, the last run counts";
        return Err(Failure::Usage(why.to_owned()));
    }
    let subject = agentflow::subject(&store, &repository(&cwd), named).map_err(failure)?;
    let human = args.format.format == Format::Human;
    let (run, sessions, mut wrong) = match subject {
        Subject::Nothing => {
            if human {
                output::line("nothing to verify: no agent has worked in this repository under a policy");
            } else {
                output::print_json(&Outcome { pass: None, run: None, policy: None, sessions: &[], wrong: Vec::new() });
            }
            return Ok(());
        }
        Subject::Session(id) => (None, vec![id], Vec::new()),
        Subject::Run(run, sessions, lost) => {
            let lost = lost.iter().map(|name| format!("the record of session {name} is gone, although it began here"));
            let mut wrong: Vec<String> = lost.collect();
            if sessions.is_empty() && wrong.is_empty() {
                wrong.push("no session of this run is on record".to_owned());
            }
            (Some(run), sessions, wrong)
        }
    };
    let held = wanted(args, run.as_ref(), &mut wrong)?;
    let checked = checked(&store, &sessions, &held, args.allow_absent)?;
    let pass = wrong.is_empty() && checked.iter().all(|checked| checked.pass);
    if human {
        report(run.as_ref(), &checked, &wrong, pass);
    } else {
        output::print_json(&Outcome {
            pass: Some(pass),
            run: run.as_ref(),
            policy: Some(held.file),
            sessions: &checked,
            wrong,
        });
    }
    if pass { Ok(()) } else { Err(Failure::No) }
}

/// What sessions have to have run under.
fn wanted(args: &VerifyRunArgs, run: Option<&Run>, wrong: &mut Vec<String>) -> Result<Held, Failure> {
    let path = match (&args.policy, run) {
        (Some(path), _) => path.clone(),
        // It is the run's own, wherever it lies.
        (None, Some(run)) => return Ok(Held::by(run)),
        (None, None) => policy::given_or_found(None)?,
    };
    let held = Held::under(&policy::open(&path, None)?);
    let Some(run) = run else { return Ok(held) };
    if (run.file, run.layers) != (held.file, held.layers) {
        wrong.push(format!(
            "{} is not the policy that the run began under, or another one that it leads to",
            path.display()
        ));
    }
    Ok(Held { since: Some(run.started), ..held })
}

fn checked(
    store: &Store,
    sessions: &[writ_core::SessionId],
    held: &Held,
    allow_absent: bool,
) -> Result<Vec<Checked>, Failure> {
    let home = environment::home();
    let check = |id| agentflow::check(store, id, held, &home, allow_absent).map_err(session_lookup::failure);
    sessions.iter().map(check).collect()
}

fn report(run: Option<&Run>, checked: &[Checked], wrong: &[String], pass: bool) {
    if let Some(run) = run {
        output::line(format!(
            "run {}  `{}`  since {}\n",
            output::bold(&run.id),
            output::plain(&run.policy),
            run.started
        ));
    }
    for Checked { session, pass, verdict } in checked {
        let mark = if *pass { output::good("✓") } else { output::bad("✗") };
        output::line(format!("{mark} session {}  {}", output::plain(session), output::plain(verdict)));
    }
    wrong.iter().for_each(|wrong| output::line(format!("{} {}", output::bad("✗"), output::plain(wrong))));
    output::line(if pass { output::good("\nPASS") } else { output::bad("\nFAIL: `writ verify SESSION` says more") });
}
