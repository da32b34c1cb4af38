//! `writ agentfile lint`: findings for people, as JSON, and as SARIF.

use miette::{LabeledSpan, MietteDiagnostic, NamedSource, Report, Severity as Shade};
use serde::Serialize;
use writ_agentfile::{Diagnostic, Linted, Options, Severity, ceiling};
use writ_core::json::Value;
use writ_core::visible;

use super::levels::inherited;
use super::{base, read, unreadable};
use crate::args::{LintArgs, LintFormat};
use crate::commands::sarif::{document, object};
use crate::commands::tool::brought;
use crate::exit::Failure;
use crate::output;

/// The findings as one document.
#[derive(Serialize)]
struct Document<'a> {
    file: &'a str,
    valid: bool,
    errors: usize,
    warnings: usize,
    diagnostics: &'a [Diagnostic],
}

/// Prints the findings; errors are a no.
pub fn run(args: &LintArgs) -> Result<(), Failure> {
    let options = Options { extensions: args.extension.clone() };
    let mut linted = read(&args.file, &options)?;
    if let Some(why) = unreadable(&linted) {
        // Whoever reads the findings as a document gets one in any case.
        if !matches!(args.format, LintFormat::Human) {
            print(&linted, args.format);
        }
        return Err(why);
    }
    let unknown = args.base.is_empty() && base::is_named(&linted.agent) && base::lock(&args.file)?.is_none();
    if unknown {
        output::note(format!(
            "{}: what FROM leads to is not looked at before `writ lock` has said it",
            args.file.display()
        ));
    }
    let chain = if unknown { Vec::new() } else { inherited(&args.file, &linted.agent, &args.base)? };
    let lock = if chain.is_empty() { None } else { base::lock_of(&args.file, &linted.agent) };
    // What its sets bring is held to the base by the lock alone.
    let lists = if lock.is_some() { brought(&linted, &args.file).map(drop) } else { Ok(()) };
    let beyond = ceiling::chain_violations(&linted.agent, lock.as_ref(), &chain);
    linted.found.extend(beyond.iter().map(|found| found.diagnostic(&linted.agent)));
    for level in &chain {
        linted.found.extend(ceiling::taken(&linted.agent, lock.as_ref(), level));
    }
    // Whoever reads the findings as a document gets one in any case.
    print(&linted, args.format);
    lists?;
    if linted.has_errors() { Err(Failure::No) } else { Ok(()) }
}

fn print(linted: &Linted, format: LintFormat) {
    let (errors, warnings) = linted.counts();
    match format {
        LintFormat::Human => {
            tell(linted, false);
            if errors + warnings == 0 {
                output::line(format!("{} {}: nothing to say", output::good("✓"), linted.agent.file));
            }
        }
        LintFormat::Json => output::print_json(&Document {
            file: &linted.agent.file,
            valid: errors == 0,
            errors,
            warnings,
            diagnostics: &linted.found,
        }),
        LintFormat::Sarif => output::print_json(&sarif(linted)),
    }
}

/// Findings as a person wants them: each with its line of the file.
pub fn tell(linted: &Linted, errors_alone: bool) {
    let text = visible::in_place(&linted.agent.text);
    for found in linted.found.iter().filter(|found| !errors_alone || found.is_error()) {
        let place = found.place;
        let title =
            format!("{}:{}:{}: {} [{}]", linted.agent.file, place.line, place.column, found.message, found.code);
        let length = place.span.end.saturating_sub(place.span.start);
        let label = LabeledSpan::new(None, place.span.start, length);
        let shade = if found.severity == Severity::Error { Shade::Error } else { Shade::Warning };
        let diagnostic = MietteDiagnostic::new(output::plain(&title)).with_label(label).with_severity(shade);
        let diagnostic =
            if found.help.is_empty() { diagnostic } else { diagnostic.with_help(output::plain(&found.help)) };
        let source = NamedSource::new(output::plain(&linted.agent.file), text.clone());
        output::report(&format!("{:?}", Report::new(diagnostic).with_source_code(source)));
    }
}

fn sarif(linted: &Linted) -> Value {
    let mut codes: Vec<&str> = linted.found.iter().map(|found| found.code).collect();
    codes.sort_unstable();
    codes.dedup();
    let rules = codes.iter().map(|code| {
        object([
            ("id", Value::from(*code)),
            ("helpUri", Value::from(format!("{}/blob/main/spec/agentfile.md", env!("CARGO_PKG_REPOSITORY")))),
        ])
    });
    let results = linted.found.iter().map(|found| {
        let index = codes.iter().position(|code| *code == found.code).unwrap_or_default();
        let text = linted.agent.text.get(found.place.span.start..found.place.span.end).unwrap_or_default();
        let line = text.lines().next().unwrap_or_default();
        let region = object([
            ("startLine", Value::from(found.place.line)),
            ("startColumn", Value::from(found.place.column)),
            ("endColumn", Value::from(found.place.column + line.chars().count())),
        ]);
        let physical = object([
            ("artifactLocation", object([("uri", Value::from(linted.agent.file.as_str()))])),
            ("region", region),
        ]);
        let message =
            if found.help.is_empty() { found.message.clone() } else { format!("{}; {}", found.message, found.help) };
        object([
            ("ruleId", Value::from(found.code)),
            ("ruleIndex", Value::from(index)),
            ("level", Value::from(found.severity.as_str())),
            ("message", object([("text", Value::from(message))])),
            ("locations", Value::Array(vec![object([("physicalLocation", physical)])])),
        ])
    });
    document(rules.collect(), results.collect())
}
