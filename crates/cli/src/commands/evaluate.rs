//! `writ evaluate`: what an action would do; `writ consequences`: the rules behind that.

use std::fs::File;
use std::io::{BufRead, Read};
use std::path::Path;

use writ_consequence::{Mutation, Report, Verdict, mcp, rules, shell, terraform};
use writ_core::json::{self, Limits, Object, Value};
use writ_engine::Sight;
use writ_shell::Env;

use crate::args::{ConsequencesCommand, EvaluateArgs, EvaluateCommand, FailOn, ReportFormat};
use crate::environment;
use crate::exit::Failure;
use crate::output;

/// Longest input: a plan of a large estate.
const MAX_BYTES: u64 = 256 << 20;
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
    let report = match command {
        EvaluateCommand::Shell { line, cwd, .. } => {
            let line = if line == "-" { text(Path::new("-"))? } else { line.clone() };
            shell_report(&line, cwd.as_deref())?
        }
        EvaluateCommand::Terraform { file, state, .. } => {
            let plan = document(Path::new(file))?;
            let state = state.as_deref().map(document).transpose()?;
            terraform::evaluate(&plan, state.as_ref()).map_err(Failure::malformed)?
        }
        EvaluateCommand::Mcp { file, .. } => mcp_report(&document(Path::new(file))?).map_err(Failure::malformed)?,
    };
    match how.format {
        ReportFormat::Json => output::print_json(&report.to_json()),
        ReportFormat::Sarif => output::print_json(&sarif(&report)),
        ReportFormat::Human => human(&report, how.explain),
    }
    if fails(report.verdict(), how.fail_on) { Err(Failure::No) } else { Ok(()) }
}

fn batch(command: &EvaluateCommand, how: &EvaluateArgs) -> Result<(), Failure> {
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
            .map_err(|error| error.to_string())
            .and_then(|value| one(command, &value));
        match report {
            Ok(report) => {
                worst = worst.max(report.verdict());
                output::print_json_line(&report.to_json());
            }
            Err(why) => {
                wrong += 1;
                let mut out = Object::new();
                out.push("error", Value::from(why));
                output::print_json_line(&Value::Object(out));
            }
        }
    }
    match (wrong, fails(worst, how.fail_on)) {
        (0, false) => Ok(()),
        (0, true) => Err(Failure::No),
        _ => Err(Failure::malformed(format!("{wrong} lines could not be evaluated"))),
    }
}

fn one(command: &EvaluateCommand, value: &Value) -> Result<Report, String> {
    match command {
        EvaluateCommand::Shell { cwd, .. } => {
            let line = value.as_str().or_else(|| value.get("command").and_then(Value::as_str));
            let line = line.ok_or("no member `command` with a shell line")?;
            let own = value.get("cwd").and_then(Value::as_str).map(Path::new);
            shell_report(line, own.or(cwd.as_deref())).map_err(|_why| "the folder cannot be told".to_owned())
        }
        EvaluateCommand::Terraform { .. } => terraform::evaluate(value, None).map_err(|error| error.to_string()),
        EvaluateCommand::Mcp { .. } => mcp_report(value),
    }
}

fn shell_report(line: &str, cwd: Option<&Path>) -> Result<Report, Failure> {
    let cwd = match cwd {
        Some(cwd) => std::path::absolute(cwd)?,
        None => environment::cwd()?,
    };
    let env = Env { home: environment::home().user_text(), cwd: Some(cwd.to_string_lossy().into_owned()) };
    Ok(shell::evaluate(line, &env, &Sight::default()))
}

fn mcp_report(value: &Value) -> Result<Report, String> {
    let tool = value.get("tool").or_else(|| value.get("name")).and_then(Value::as_str);
    let nothing = Value::Null;
    let call = mcp::Call {
        tool: tool.ok_or("no member `tool` with a tool's name")?,
        server: value.get("server").and_then(Value::as_str),
        arguments: value.get("arguments").or_else(|| value.get("input")).unwrap_or(&nothing),
        annotations: value.get("annotations"),
    };
    let cwd = environment::cwd().ok().map(|cwd| cwd.to_string_lossy().into_owned());
    let env = Env { home: environment::home().user_text(), cwd };
    Ok(mcp::evaluate(&call, &env, &Sight::default()))
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
    let Some(worst) = report.worst() else {
        return output::line(format!("{word}  nothing is changed that could be lost"));
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
    for risk in risks.filter_map(|risk| risk.get("reason").and_then(Value::as_str)).take(MOST) {
        output::line(format!("  risk  {}", output::plain(risk)));
    }
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

fn target(mutation: &Mutation) -> String {
    let target = &mutation.intent.target;
    let kind = target.kind.as_deref().unwrap_or("something");
    output::plain(&target.id.as_deref().map_or_else(|| kind.to_owned(), |id| format!("{kind} {id}")))
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
    let meta = |name: &str| mutation.intent.metadata.get(name);
    if let Some(rule) = meta("rule").and_then(Value::as_str) {
        shown("rule", rule.to_owned());
    }
    if let Some(span) = meta("span") {
        shown("span", json::compact(span));
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

/// SARIF 2.1.0: a result for each finding above `allow`.
fn sarif(report: &Report) -> Value {
    let object = |members: Vec<(&str, Value)>| {
        Value::Object(members.into_iter().map(|(name, value)| (name.to_owned(), value)).collect())
    };
    let result = |mutation: &Mutation| {
        let verdict = mutation.recoverability.tier.verdict();
        let level = match verdict {
            Verdict::Allow => "none",
            Verdict::Warn => "warning",
            Verdict::Escalate | Verdict::Block => "error",
        };
        let rule = mutation.intent.metadata.get("rule").and_then(Value::as_str).unwrap_or("writ/consequence");
        let text = format!("{} {}: {}", mutation.intent.action, target(mutation), mutation.recoverability.reasoning);
        object(vec![
            ("ruleId", Value::from(rule)),
            ("level", Value::from(level)),
            ("message", object(vec![("text", Value::from(text))])),
        ])
    };
    let found = report.mutations.iter().filter(|mutation| mutation.recoverability.tier.verdict() > Verdict::Allow);
    let driver = object(vec![("name", Value::from("writ")), ("version", Value::from(env!("CARGO_PKG_VERSION")))]);
    let run = object(vec![
        ("tool", object(vec![("driver", driver)])),
        ("results", Value::Array(found.map(result).collect())),
    ]);
    object(vec![
        ("$schema", Value::from("https://json.schemastore.org/sarif-2.1.0.json")),
        ("version", Value::from("2.1.0")),
        ("runs", Value::Array(vec![run])),
    ])
}

/// Lists and shows rules.
pub fn rules(command: &ConsequencesCommand) -> Result<(), Failure> {
    match command {
        ConsequencesCommand::List => {
            for rule in rules::families().iter().flat_map(|family| &family.rules) {
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
    }
}

fn document(file: &Path) -> Result<Value, Failure> {
    let text = decoded(&read(file)?);
    json::parse_with(text.as_bytes(), Limits::FOREIGN)
        .map_err(|error| Failure::malformed(format!("{}: {error}", file.display())))
}

fn text(file: &Path) -> Result<String, Failure> {
    Ok(String::from_utf8_lossy(&read(file)?).into_owned())
}

fn read(file: &Path) -> Result<Vec<u8>, Failure> {
    let failed = |error: std::io::Error| Failure::could_not(format!("{}: {error}", file.display()));
    let mut bytes = Vec::new();
    if file == Path::new("-") {
        std::io::stdin().take(MAX_BYTES).read_to_end(&mut bytes).map_err(failed)?;
    } else {
        File::open(file).and_then(|file| file.take(MAX_BYTES).read_to_end(&mut bytes)).map_err(failed)?;
    }
    Ok(bytes)
}

/// UTF-8, or what a Windows shell makes of it: UTF-16 with its mark.
fn decoded(bytes: &[u8]) -> String {
    let units = |rest: &[u8], read: fn([u8; 2]) -> u16| {
        let units: Vec<u16> = rest.as_chunks().0.iter().map(|pair| read(*pair)).collect();
        String::from_utf16_lossy(&units)
    };
    match bytes {
        [0xff, 0xfe, rest @ ..] => units(rest, u16::from_le_bytes),
        [0xfe, 0xff, rest @ ..] => units(rest, u16::from_be_bytes),
        [0xef, 0xbb, 0xbf, rest @ ..] => String::from_utf8_lossy(rest).into_owned(),
        _ => String::from_utf8_lossy(bytes).into_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::decoded;

    #[test]
    fn a_plan_from_a_windows_shell_is_read() {
        let text = "{\"a\":\"é\"}";
        let units = |to: fn(u16) -> [u8; 2]| text.encode_utf16().flat_map(to).collect::<Vec<u8>>();
        let marked = |mark: &[u8], rest: &[u8]| [mark, rest].concat();
        assert_eq!(decoded(text.as_bytes()), text);
        assert_eq!(decoded(&marked(&[0xef, 0xbb, 0xbf], text.as_bytes())), text);
        assert_eq!(decoded(&marked(&[0xff, 0xfe], &units(u16::to_le_bytes))), text);
        assert_eq!(decoded(&marked(&[0xfe, 0xff], &units(u16::to_be_bytes))), text);
        assert_eq!(decoded(&[0xff, 0xfe, b'{']), "");
    }
}
