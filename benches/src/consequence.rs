//! Evaluations: a shell line of ten commands, and a plan of a thousand deletes with the state before.

use std::hint::black_box;
use std::time::Duration;

use anyhow::{Result, ensure};
use writ_consequence::{NoProbe, Verdict, shell, terraform};
use writ_core::json::parse;
use writ_shell::Env;

use crate::measure::{Bar, Figure, per_call};
use crate::shell::{TEN_COMMANDS, analyzed};

/// Measures both.
pub fn run() -> Result<Vec<Figure>> {
    let env = Env { home: Some("/home/agent".to_owned()), cwd: Some("/work".to_owned()), ..Env::default() };
    ensure!(
        shell::evaluate(TEN_COMMANDS, &env, &NoProbe).verdict() == Verdict::Allow,
        "an everyday line is not allowed"
    );
    let line = per_call(|| shell::evaluate(black_box(TEN_COMMANDS), &env, &NoProbe));
    let text = plan(1000);
    let document = parse(text.as_bytes())?;
    let report = terraform::evaluate(&document, None)?;
    ensure!(report.mutations.len() == 1000, "{} of 1000 changes", report.mutations.len());
    let judged = per_call(|| terraform::evaluate(black_box(&document), None).map(|report| report.mutations.len()));
    let read = per_call(|| parse(black_box(text.as_bytes())));
    let (short, long) = (Bar::AtMost(Duration::from_micros(100)), Bar::AtMost(Duration::from_millis(20)));
    Ok(vec![
        Figure::time("consequence: ten commands", line, ("their analysis alone", analyzed(TEN_COMMANDS, 10)?), short),
        Figure::time("consequence: plan, 1000 changes", judged, ("reading its JSON", read), long),
    ])
}

/// A plan that deletes `count` databases, each with its state before.
fn plan(count: usize) -> String {
    let name = |number: usize| format!("aws_db_instance.db{number}");
    let before =
        r#"{"identifier":"x","backup_retention_period":7,"deletion_protection":false,"skip_final_snapshot":true}"#;
    let changes: Vec<String> = (0..count)
        .map(|number| {
            format!(
                r#"{{"address":"{0}","mode":"managed","type":"aws_db_instance","name":"db{number}","provider_name":"registry/aws","change":{{"actions":["delete"],"before":{before},"after":null,"after_unknown":{{}}}}}}"#,
                name(number)
            )
        })
        .collect();
    let state: Vec<String> = (0..count)
        .map(|number| {
            format!(
                r#"{{"address":"{}","mode":"managed","type":"aws_db_instance","name":"db{number}","values":{before}}}"#,
                name(number)
            )
        })
        .collect();
    format!(
        r#"{{"format_version":"1.2","terraform_version":"1.9.0","resource_changes":[{}],"prior_state":{{"format_version":"1.0","values":{{"root_module":{{"resources":[{}]}}}}}}}}"#,
        changes.join(","),
        state.join(",")
    )
}
