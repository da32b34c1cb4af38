//! `writ why`: one decision in prose, the matched part underlined.

use std::path::Path;

use serde::Serialize;
use writ_core::json::{self, Value};
use writ_core::{Decision, Digest, Reason, Span, ToolCall, Verdict, visible};
use writ_engine::governing::layers::Caller;
use writ_engine::governing::{self, Governing};
use writ_engine::past::denied;
use writ_engine::session::shown::cite;
use writ_policy::Enforce;

use crate::args::{Format, WhyArgs};
use crate::commands::decide::{decide, folder, input_value};
use crate::commands::policy::{given_or_found, open};
use crate::commands::session_lookup::store;
use crate::environment;
use crate::exit::Failure;
use crate::output;

/// Explains one call. Exit code 0 for allow, 3 for ask or deny.
pub fn run(args: &WhyArgs) -> Result<(), Failure> {
    if args.last {
        return last(args.format.format);
    }
    let governing = open(&given_or_found(args.policy.clone())?, args.root.as_deref())?;
    let cwd = folder(&governing, args.root.as_deref())?;
    let (tool, input) = match (&args.line, &args.tool, &args.input) {
        (_, Some(tool), Some(input)) => (tool.clone(), input_value(input)?),
        (line, _, _) => ("Bash".to_owned(), bash(line.as_deref().unwrap_or_default())),
    };
    let call = ToolCall::new(tool, input, cwd);
    let caller = args.agent.as_deref().map_or(Caller::Main, Caller::SubAgent);
    let decision = decide(&governing, &call, caller);
    match args.format.format {
        Format::Json => output::print_json(&explained(&call, &decision, &governing)),
        Format::Human => output::line(prose(&call, &decision, &governing)),
    }
    if decision.verdict == Verdict::Allow { Ok(()) } else { Err(Failure::No) }
}

/// Explains the last call that was denied here. Exit code 0, or 3 where none was.
fn last(format: Format) -> Result<(), Failure> {
    let store = store(&environment::home())?;
    let here = environment::cwd()?;
    let found = denied::last(&store, governing::repository(&here), false).map_err(Failure::could_not)?;
    let Some(stopped) = found else {
        if format == Format::Json {
            output::print_json(&None::<()>);
        }
        output::note("no call was denied in this repository");
        return Err(Failure::No);
    };
    if format == Format::Json {
        output::print_json(&stopped);
        return Ok(());
    }
    output::line(format!(
        "{}  {}\n{}",
        output::bad("deny"),
        output::plain(&stopped.call.summary()),
        output::dim(format!("{}, row {} of session {}", stopped.at, stopped.row, output::plain(&stopped.session)))
    ));
    for told in &stopped.reasons {
        let text = told.text.as_ref().map_or_else(String::new, |text| format!("`{text}`, "));
        let rule = output::bold(output::plain(&format!("{text}{}", told.rule)));
        output::line(format!("\n{} {rule}: {}", output::dim("rule"), output::plain(&told.message)));
        if !told.instead.is_empty() {
            output::line(format!("  {} {}", output::dim("to allow it:"), output::plain(&told.instead)));
        }
    }
    output::line(output::dim(
        "\n`writ policy add --last` makes the change that is suggested, `writ approvals` lists what waits",
    ));
    Ok(())
}

/// The decision with what it is about.
#[derive(Serialize)]
struct Explained<'a> {
    tool: &'a str,
    input: &'a Value,
    policy: PolicySource<'a>,
    #[serde(flatten)]
    decision: &'a Decision,
}

#[derive(Serialize)]
struct PolicySource<'a> {
    name: &'a str,
    #[serde(serialize_with = "json::path::serialize")]
    path: &'a Path,
    digest: Digest,
}

fn explained<'a>(call: &'a ToolCall, decision: &'a Decision, governing: &'a Governing) -> Explained<'a> {
    let policy = &governing.policy;
    let under = PolicySource { name: policy.name(), path: &governing.path, digest: policy.digest() };
    Explained { tool: &call.tool, input: &call.input, policy: under, decision }
}

fn bash(line: &str) -> Value {
    Value::Object([("command", Value::from(line))].into())
}

/// The whole answer.
fn prose(call: &ToolCall, decision: &Decision, governing: &Governing) -> String {
    let verdict = match decision.verdict {
        Verdict::Allow => output::good("allow"),
        Verdict::Ask => output::warn("ask"),
        Verdict::Deny => output::bad("deny"),
    };
    let mut out =
        format!("{verdict}  {} under policy `{}`", output::plain(&call.tool), output::plain(governing.policy.name()));
    if governing.enforce() == Enforce::Observe && decision.verdict > Verdict::Allow {
        out.push_str("\n\nThe policy observes: only what would touch the policy, the record or the hooks is stopped.");
    }
    if decision.reasons.is_empty() {
        out.push_str("\n\nNo rule speaks against it.");
    }
    for reason in &decision.reasons {
        out.push_str("\n\n");
        out.push_str(&explain(call, reason, governing));
    }
    out
}

fn explain(call: &ToolCall, reason: &Reason, governing: &Governing) -> String {
    let mut out = format!(
        "{} {}: {}",
        output::dim("rule"),
        output::bold(output::plain(&cite(Some(governing), &reason.rule))),
        output::plain(&reason.message)
    );
    if let (Some(line), Some(span)) = (call.text("command"), reason.matched.span) {
        out.push_str(&underlined(line, span));
    }
    if !reason.instead.is_empty() {
        out.push_str(&format!("\n  {} {}", output::dim("to allow it:"), output::plain(&reason.instead)));
    }
    out
}

/// Those lines of `text` that `span` touches, with carets below the touched characters.
fn underlined(text: &str, span: Span) -> String {
    let mut out = String::new();
    let mut start = 0;
    for line in text.split_inclusive('\n') {
        let end = start + line.len();
        if span.start < end && span.end > start {
            // Made visible in place: the marks below stand where they should.
            let shown = visible::in_place(line.trim_end_matches('\n'));
            let marks: String = shown
                .char_indices()
                .map(|(at, _)| if (span.start..span.end).contains(&(start + at)) { '^' } else { ' ' })
                .collect();
            out.push_str(&format!("\n    {shown}\n    {}", output::bad(marks.trim_end())));
        }
        start = end;
    }
    out
}
