//! `writ evaluate`: what an action would do; `writ consequences`: the rules behind that.

use std::io::{BufRead, Read};
use std::path::Path;

use serde::Serialize;
use writ_consequence::{Mutation, NoProbe, Probe, Report, Verdict, rules, terraform};
use writ_core::json::{self, Limits, Object, Value};
use writ_engine::attest::subject::{self, NoSubject, Subject};
use writ_engine::decide::DiskProbe;

use super::attest::{self, Attester};
use super::sarif::{self, Place, target};
use crate::args::{ConsequencesCommand, EvaluateArgs, EvaluateCommand, FailOn, ReportFormat};
use crate::exit::Failure;
use crate::{environment, human_check, input, output};

/// Longest line of a batch.
const MAX_LINE: u64 = 64 << 20;

/// Evaluates one action, or one a line.
pub fn run(command: &EvaluateCommand) -> Result<(), Failure> {
    let how = match command {
        EvaluateCommand::Shell { how, .. }
        | EvaluateCommand::Terraform { how, .. }
        | EvaluateCommand::Mcp { how, .. } => how,
    };
    if how.batch {
        return batch(command, how);
    }
    let user = environment::home().user_text();
    let mut attester = Attester::wanted(&how.attest)?;
    let mut seal = |subject: &Subject<'_>| -> Result<(Report, Option<Value>), Failure> {
        let report = subject.evaluate(user.as_deref(), &DiskProbe::default()).map_err(Failure::malformed)?;
        let response = attester.as_mut().map(|attester| attester.attest(subject, &report)).transpose();
        let response = response.map_err(Failure::could_not)?;
        Ok((report, response))
    };
    let (mut beside, mut said) = (None, None);
    let (report, response) = match command {
        EvaluateCommand::Shell { line, cwd, .. } => {
            let line = &*said.insert(if line == "-" { input::text(Path::new("-"))? } else { line.clone() });
            let cwd = folder(cwd.as_deref())?;
            seal(&Subject::Shell { line, cwd: Some(&cwd) })?
        }
        EvaluateCommand::Terraform { file, state, .. } => {
            let file = Path::new(file);
            let mut bytes = input::bytes(file)?;
            let mut plan_file = None;
            if attest::is_plan_file(&bytes) {
                if how.attest.attest && human_check::below_agent() {
                    return Err(Failure::could_not(
                        "an agent's client runs this: a plan file is attested from a terminal of your own, or in CI",
                    ));
                }
                let shown = attest::show(file, &bytes)?;
                (bytes, plan_file, beside) = (shown.document, Some(shown.digest), Some(attest::beside(file)));
            }
            let hash = subject::document_hash(&bytes);
            let plan = parsed(file, &bytes)?;
            let state = state.as_deref().map(document).transpose()?;
            seal(&Subject::Terraform { plan: &plan, state: state.as_ref(), hash, plan_file })?
        }
        EvaluateCommand::Mcp { file, .. } => {
            let call = document(Path::new(file))?;
            let options = Value::Object([("cwd", Value::from(folder(None)?))].into());
            seal(&Subject::read("mcp", &call, Some(&options)).map_err(Failure::malformed)?)?
        }
    };
    let written = how.attest.attest_to.as_deref().or(beside.as_deref()).filter(|_| response.is_some());
    if let (Some(to), Some(response)) = (written, &response) {
        attest::write(response, to)?;
    }
    let place = Place { uri: uri(command), text: said.as_deref() };
    match how.format {
        ReportFormat::Json => output::print_json(response.as_ref().unwrap_or(&json::to_value(&report))),
        ReportFormat::Sarif => output::print_json(&sarif::log(&report, &place)),
        ReportFormat::Human => {
            human(&report, how.explain);
            if let Some(attestation) = response.as_ref().and_then(|response| response.get("attestation")) {
                let text = |name: &str| attestation.get(name).and_then(Value::as_str).unwrap_or_default();
                let file = written.map(|to| format!("  {}", to.display())).unwrap_or_default();
                output::line(format!("  proof {} until {}{file}", text("attestation_uri"), text("expires_at")));
            }
        }
    }
    if fails(report.verdict(), how.fail_on) { Err(Failure::No) } else { Ok(()) }
}

/// Where a finding is, for a log.
fn uri(command: &EvaluateCommand) -> &str {
    match command {
        EvaluateCommand::Shell { line, .. } if line != "-" => "command-line",
        EvaluateCommand::Terraform { file, .. } | EvaluateCommand::Mcp { file, .. } if file != "-" => file,
        EvaluateCommand::Shell { .. } | EvaluateCommand::Terraform { .. } | EvaluateCommand::Mcp { .. } => "stdin",
    }
}

fn batch(command: &EvaluateCommand, how: &EvaluateArgs) -> Result<(), Failure> {
    let mut attester = Attester::wanted(&how.attest)?;
    let mut stdin = std::io::stdin().lock();
    let (mut worst, mut wrong) = (Verdict::Allow, 0);
    loop {
        let mut line = Vec::new();
        if stdin.by_ref().take(MAX_LINE).read_until(b'\n', &mut line)? == 0 {
            break;
        }
        if line.trim_ascii().is_empty() {
            continue;
        }
        let report = json::parse_with(&line, Limits::FOREIGN)
            .map_err(|error| input::told(&line, &error))
            .and_then(|value| one(command, &value, attester.as_mut()));
        match report {
            Ok((verdict, report)) => {
                worst = worst.max(verdict);
                output::print_json_line(&report);
            }
            Err(why) => {
                wrong += 1;
                output::print_json_line(&Wrong { error: why });
            }
        }
    }
    match (wrong, fails(worst, how.fail_on)) {
        (0, false) => Ok(()),
        (0, true) => Err(Failure::No),
        _ => Err(Failure::malformed(format!("{wrong} lines could not be evaluated"))),
    }
}

/// A line of a batch that cannot be evaluated.
#[derive(Serialize)]
struct Wrong {
    error: String,
}

fn one(command: &EvaluateCommand, value: &Value, attester: Option<&mut Attester>) -> Result<(Verdict, Value), String> {
    let (source, cwd) = match command {
        EvaluateCommand::Shell { cwd, .. } => ("shell", cwd.as_deref()),
        EvaluateCommand::Terraform { .. } => ("terraform", None),
        EvaluateCommand::Mcp { .. } => ("mcp", None),
    };
    let cwd = cwd.map(|cwd| folder(Some(cwd))).transpose().map_err(|_why| "the folder cannot be told")?;
    let options = cwd.map_or_else(Object::new, |cwd| [("cwd", Value::from(cwd))].into());
    let options = Value::Object(options);
    let failed = |error: NoSubject| error.to_string();
    let subject = Subject::read(source, value, Some(&options)).map_err(failed)?;
    // A line of a batch that names no folder runs nobody knows where: the disk here says nothing of it.
    let placeless = matches!(subject, Subject::Shell { cwd: None, .. });
    let probe: &dyn Probe = if placeless { &NoProbe } else { &DiskProbe::default() };
    let report = subject.evaluate(environment::home().user_text().as_deref(), probe).map_err(failed)?;
    let shown = match attester {
        Some(attester) => attester.attest(&subject, &report).map_err(|error| error.to_string())?,
        None => json::to_value(&report),
    };
    Ok((report.verdict(), shown))
}

/// The folder an action would run in, absolute.
fn folder(cwd: Option<&Path>) -> Result<String, Failure> {
    let cwd = cwd.map_or_else(environment::cwd, |cwd| Ok(std::path::absolute(cwd)?))?;
    // One name for a folder, where it is there: a gate compares names.
    let cwd = cwd.canonicalize().unwrap_or(cwd);
    Ok(cwd.to_string_lossy().into_owned())
}

fn fails(verdict: Verdict, from: FailOn) -> bool {
    verdict
        >= match from {
            FailOn::Warn => Verdict::Warn,
            FailOn::Escalate => Verdict::Escalate,
            FailOn::Block => Verdict::Block,
        }
}

/// Verdict, the one worst thing, why, how to undo it, what would change the answer.
/// Most further findings, and most risks, that are shown without `--explain`.
const MOST: usize = 8;

fn human(report: &Report, explain: bool) {
    let verdict = report.verdict();
    let word = verdict.as_str();
    let word = match verdict {
        Verdict::Allow => output::good(word),
        Verdict::Warn => output::warn(word),
        Verdict::Escalate | Verdict::Block => output::bad(word),
    };
    let unseen = |most: usize| {
        for unseen in report.unseen.iter().take(most) {
            let text = format!("`{}`: {}", unseen.what, unseen.why);
            output::line(format!("  blind {}", output::plain(&text)));
        }
    };
    let known = report
        .worst()
        .filter(|worst| report.unseen.is_empty() || worst.recoverability.tier > writ_consequence::Tier::Reversible);
    let Some(worst) = known else {
        let what = if report.unseen.is_empty() { "nothing is changed that could be lost" } else { "not looked into" };
        output::line(format!("{word}  {what}"));
        return unseen(MOST);
    };
    let more = report.mutations.len() - 1;
    let beside = if more > 0 { format!("  (and {more} more)") } else { String::new() };
    output::line(format!("{word}  {} {}{beside}", worst.intent.action, target(worst)));
    output::line(format!("  why   {}", output::plain(&worst.recoverability.reasoning)));
    for suggestion in worst.recoverability.suggestions.iter().take(2) {
        output::line(format!("  undo  {}", output::plain(suggestion)));
    }
    for missing in worst.missing.iter().take(2) {
        output::line(format!("  ask   {}", output::plain(&missing.description)));
    }
    if explain {
        report.mutations.iter().for_each(details);
    } else {
        others(report, worst);
    }
    let risks = report.cross_action_risks.iter().flatten();
    for risk in risks.take(MOST) {
        output::line(format!("  risk  {}", output::plain(&risk.reason)));
    }
    unseen(2);
}

/// What else is not allowed, the worst verdicts first.
fn others(report: &Report, worst: &Mutation) {
    let verdict = |mutation: &Mutation| mutation.recoverability.tier.verdict();
    let bad = |mutation: &&Mutation| !std::ptr::eq(*mutation, worst) && verdict(mutation) > Verdict::Allow;
    let mut others: Vec<&Mutation> = report.mutations.iter().filter(bad).collect();
    others.sort_by_key(|mutation| std::cmp::Reverse(verdict(mutation)));
    for other in others.iter().take(MOST) {
        let why = output::plain(&other.recoverability.reasoning);
        output::line(format!("  also  {} {}: {why}", verdict(other).as_str(), other.intent.action));
    }
    if others.len() > MOST {
        output::line(format!("  also  {} more: `--explain` shows them", others.len() - MOST));
    }
}

fn details(mutation: &Mutation) {
    let tier = mutation.recoverability.tier;
    output::line(format!(
        "\n  tier {} {}  {} {}",
        tier.number(),
        tier.label(),
        mutation.intent.action,
        target(mutation)
    ));
    let shown = |name: &str, text: String| output::line(format!("    {name:<11} {}", output::plain(&text)));
    if let Some(rule) = &mutation.intent.metadata.rule {
        shown("rule", rule.clone());
    }
    if let Some(span) = mutation.intent.metadata.span {
        shown("span", format!("[{},{}]", span.start, span.end));
    }
    shown("why", mutation.recoverability.reasoning.clone());
    shown("confidence", mutation.recoverability.confidence.as_str().to_owned());
    for evidence in &mutation.evidence {
        shown("evidence", format!("{} = {}: {}", evidence.key, json::compact(&evidence.value), evidence.description));
    }
    for missing in &mutation.missing {
        shown("missing", format!("{}: {} ({})", missing.key, missing.description, missing.effect.as_str()));
    }
}

/// Lists and shows rules.
pub fn rules(command: &ConsequencesCommand) -> Result<(), Failure> {
    match command {
        ConsequencesCommand::List => {
            for rule in rules::families().flat_map(|family| &family.rules) {
                output::line(format!("{:<34} {:<5} {} {}", rule.id, tier_of(rule), rule.action, rule.target));
            }
            for known in terraform::supported() {
                output::line(format!("{:<34} {:<5} delete {}", known.kind, known.tier.number(), known.service));
            }
            Ok(())
        }
        ConsequencesCommand::Pages { folder } => {
            std::fs::create_dir_all(folder)?;
            for family in rules::families() {
                std::fs::write(folder.join(format!("{}.md", family.name)), page(family))?;
            }
            Ok(())
        }
        ConsequencesCommand::Show { rule: id } => {
            if let Some(rule) = rules::find(id) {
                output::line(format!(
                    "{}  tier {}  {} {}",
                    output::bold(&rule.id),
                    tier_of(rule),
                    rule.action,
                    rule.target
                ));
                let shown = [("why", rule.why), ("undo", rule.undo), ("need", rule.need)];
                for (name, text) in shown.into_iter().filter(|(_, text)| !text.is_empty()) {
                    output::line(format!("  {name:<5} {text}"));
                }
                rule.bad.iter().for_each(|line| output::line(format!("  hits  {line}")));
                rule.ok.iter().for_each(|line| output::line(format!("  not   {line}")));
                return Ok(());
            }
            let Some(known) = terraform::supported().find(|known| known.kind == id) else {
                return Err(Failure::could_not(format!("no rule `{id}`; `writ consequences list` shows them")));
            };
            output::line(format!(
                "{}  a delete is tier {} ({})",
                output::bold(known.kind),
                known.tier.number(),
                known.tier.label()
            ));
            output::line(format!("  why   {}", known.reason));
            Ok(())
        }
    }
}

/// A family's page.
fn page(family: &rules::Family) -> String {
    let mut out = format!("# {}\n\n{}\n\nPrograms: `{}`.\n", family.name, family.about, family.programs.join("` `"));
    for rule in &family.rules {
        out.push_str(&format!(
            "\n## {}\n\nTier {}: {} {}. {}\n",
            rule.id,
            tier_of(rule),
            rule.action,
            rule.target,
            rule.why
        ));
        for (name, text) in
            [("Undo", rule.undo), ("To know", rule.need)].into_iter().filter(|(_, text)| !text.is_empty())
        {
            out.push_str(&format!("\n{name}: {text}\n"));
        }
        let lines = |lines: &[&str]| lines.iter().map(|line| format!("\n    {line}")).collect::<String>();
        if !rule.bad.is_empty() {
            out.push_str(&format!("\nHit by:\n{}\n", lines(&rule.bad)));
        }
        if !rule.ok.is_empty() {
            out.push_str(&format!("\nNot by:\n{}\n", lines(&rule.ok)));
        }
    }
    out
}

fn tier_of(rule: &rules::Rule) -> String {
    match rule.tier {
        rules::Judged::As(tier) => tier.number().to_string(),
        rules::Judged::ByPath => "path".to_owned(),
        rules::Judged::BySql => "sql".to_owned(),
        rules::Judged::Unseen => "unseen".to_owned(),
    }
}

fn document(file: &Path) -> Result<Value, Failure> {
    parsed(file, &input::bytes(file)?)
}

fn parsed(file: &Path, bytes: &[u8]) -> Result<Value, Failure> {
    input::json(&file.to_string_lossy(), input::decoded(bytes).as_bytes(), Limits::FOREIGN)
}
