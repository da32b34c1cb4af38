//! The page.

use writ_core::Timestamp;
use writ_engine::verify::Report;
use writ_engine::view::{Became, Entry, Kind, View};

use super::chart::{chart, duration};
use super::html::{push, text};

/// Rows of a list of files or hosts that are shown; the others are counted.
const MOST: usize = 200;

/// How it looks: light, dark, on paper.
const STYLE: &str = include_str!("style.css");

/// A session as one page.
pub fn page(view: &View, report: Option<&Report>) -> String {
    let mut out = String::with_capacity(1 << 16);
    push(
        &mut out,
        format_args!(
            "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
             <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; img-src data:\">\n\
             <meta name=\"color-scheme\" content=\"light dark\">\n<meta name=\"referrer\" content=\"no-referrer\">\n<title>Session {}</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n",
            text(&view.session)
        ),
    );
    head(&mut out, view, report);
    push(&mut out, format_args!("<section><h2>Over time</h2>\n{}{LEGEND}</section>\n", chart(view)));
    stopped(&mut out, view);
    timeline(&mut out, view);
    files(&mut out, view);
    hosts(&mut out, view);
    limits(&mut out, view);
    claims(&mut out, view);
    if let Some(report) = report {
        verification(&mut out, report);
    }
    out.push_str("</body>\n</html>\n");
    out
}

const LEGEND: &str = "<p class=\"legend\"><span class=\"allow\">allowed</span> <span class=\"fail\">failed</span> \
                      <span class=\"ask\">asked</span> <span class=\"deny\">denied</span> <span class=\"quiet\">other</span></p>\n";

fn head(out: &mut String, view: &View, report: Option<&Report>) {
    let verdict = report.map(|report| (report.verified(), report.verdict()));
    let badge = match &verdict {
        Some((true, words)) => format!("<p class=\"badge good\">{}</p>", text(words)),
        Some((false, words)) => format!("<p class=\"badge bad\">{}</p>", text(words)),
        None => "<p class=\"badge\">not verified here: `writ verify` checks the record</p>".to_owned(),
    };
    push(out, format_args!("<header><h1>Session <code>{}</code></h1>\n{badge}\n<dl>", text(&view.session)));
    let moment = |at: Option<Timestamp>| at.map(|at| at.to_string()).unwrap_or_default();
    let lasted = view.began.zip(view.last).map(|(began, last)| duration(last.millis() - began.millis()));
    let state = if view.ended { "ended" } else { "open" };
    for (name, value) in [
        ("client", view.client.clone()),
        ("policy", view.policy.clone().unwrap_or_else(|| "not at hand".to_owned())),
        ("folder", view.cwd.clone()),
        ("began", moment(view.began)),
        ("lasted", format!("{} ({state})", lasted.unwrap_or_default())),
    ] {
        push(out, format_args!("<div><dt>{name}</dt><dd>{}</dd></div>", text(&value)));
    }
    out.push_str("</dl>\n<ul class=\"counts\">");
    let counts = view.counts;
    for (class, count, name) in [
        ("allow", counts.allowed, "allowed"),
        ("ask", counts.asked, "asked"),
        ("deny", counts.denied, "denied"),
        ("fail", counts.failed, "failed"),
        ("quiet", counts.prompts, "prompts"),
        ("quiet", counts.rows, "rows"),
    ] {
        push(out, format_args!("<li class=\"{class}\"><b>{count}</b> {name}</li>"));
    }
    out.push_str("</ul></header>\n");
}

/// What was stopped, with its reasons, before everything else.
fn stopped(out: &mut String, view: &View) {
    let stops = |entry: &&Entry| !entry.reasons.is_empty();
    let count = view.entries.iter().filter(stops).count();
    if count == 0 {
        out.push_str("<section><h2>Stopped</h2><p>Nothing was asked about or denied.</p></section>\n");
        return;
    }
    push(out, format_args!("<section><h2>Stopped ({count})</h2>\n<ul class=\"stopped\">\n"));
    for entry in view.entries.iter().filter(stops).take(MOST) {
        push(
            out,
            format_args!(
                "<li><a href=\"#r{}\">row {}</a> {} <code>{}</code> {}",
                entry.row,
                entry.row,
                word(entry),
                text(&entry.name),
                text(&entry.what)
            ),
        );
        for told in &entry.reasons {
            let rule = told.text.as_ref().map_or_else(String::new, |rule| format!("{rule}, "));
            push(
                out,
                format_args!("<p><code>{}</code> {}</p>", text(&format!("{rule}{}", told.rule)), text(&told.message)),
            );
        }
        out.push_str("</li>\n");
    }
    push(out, format_args!("</ul>{}</section>\n", more(count)));
}

fn more(count: usize) -> String {
    let more = count.saturating_sub(MOST);
    if more == 0 { String::new() } else { format!("<p>and {more} more</p>") }
}

/// The word for what became of it, in its colour.
fn word(entry: &Entry) -> &'static str {
    match (entry.became, entry.failed) {
        (Became::Allowed, Some(true)) => "<i class=\"fail\">failed</i>",
        (Became::Allowed, _) => "<i class=\"allow\">allowed</i>",
        (Became::Asked, _) => "<i class=\"ask\">asked</i>",
        (Became::Denied, _) => "<i class=\"deny\">denied</i>",
        (Became::NoTool, _) => "<i class=\"deny\">no such tool</i>",
        (Became::Nothing, _) => "",
    }
}

fn class(entry: &Entry) -> &'static str {
    match (entry.kind, entry.became) {
        (Kind::Call | Kind::Connection, Became::Allowed) => "a",
        (_, Became::Asked) => "k",
        (_, Became::Denied | Became::NoTool) => "d",
        (Kind::Prompt, _) => "p",
        _ => "o",
    }
}

/// All of it. Which rows are shown is the choice of five buttons that need no script.
fn timeline(out: &mut String, view: &View) {
    out.push_str("<section class=\"timeline\"><h2>Timeline</h2>\n<p class=\"filter\">");
    for (id, name) in [("all", "all"), ("fa", "allowed"), ("fk", "asked"), ("fd", "denied"), ("fp", "prompts")] {
        let checked = if id == "all" { " checked" } else { "" };
        push(out, format_args!("<label><input type=\"radio\" name=\"f\" id=\"{id}\"{checked}> {name}</label> "));
    }
    out.push_str("</p>\n<table><thead><tr><th>row<th>time<th>what<th>about<th>came to<th>took</tr></thead><tbody>\n");
    let began = view.began.map_or(0, Timestamp::millis);
    for entry in &view.entries {
        let agent = entry.agent.as_ref().map_or_else(String::new, |agent| format!(" <small>{}</small>", text(agent)));
        let took = entry.took.map(duration).unwrap_or_default();
        let sandbox = if entry.sandboxed { " <small>sandbox</small>" } else { "" };
        push(
            out,
            format_args!(
                "<tr class=\"{}\" id=\"r{}\"><td>{}<td>{}<td>{}{agent}<td>{}<td>{}{sandbox}<td>{took}\n",
                class(entry),
                entry.row,
                entry.row,
                duration(entry.at.millis() - began),
                text(&entry.name),
                text(&entry.what),
                word(entry)
            ),
        );
    }
    out.push_str("</tbody></table></section>\n");
}

fn files(out: &mut String, view: &View) {
    if view.files.is_empty() {
        return;
    }
    let mut files: Vec<_> = view.files.iter().collect();
    files.sort_by_key(|(path, seen)| (std::cmp::Reverse((seen.stopped, seen.writes, seen.reads)), *path));
    push(
        out,
        format_args!(
            "<section><h2>Files ({})</h2>\n<table><thead><tr><th>path<th>written<th>read<th>stopped</tr></thead><tbody>\n",
            files.len()
        ),
    );
    for (path, seen) in files.iter().take(MOST) {
        let shown = path.strip_prefix(&format!("{}/", view.cwd)).unwrap_or(path);
        push(
            out,
            format_args!(
                "<tr><td>{}<td>{}<td>{}<td>{}\n",
                text(shown),
                count(seen.writes),
                count(seen.reads),
                count(seen.stopped)
            ),
        );
    }
    push(out, format_args!("</tbody></table>{}</section>\n", more(files.len())));
}

fn count(count: u64) -> String {
    if count == 0 { String::new() } else { count.to_string() }
}

fn hosts(out: &mut String, view: &View) {
    if view.hosts.is_empty() {
        return;
    }
    push(
        out,
        format_args!(
            "<section><h2>Hosts ({})</h2>\n<table><thead><tr><th>host<th>calls<th>connections<th>stopped</tr></thead><tbody>\n",
            view.hosts.len()
        ),
    );
    for (host, seen) in view.hosts.iter().take(MOST) {
        push(
            out,
            format_args!(
                "<tr><td>{}<td>{}<td>{}<td>{}\n",
                text(host),
                count(seen.calls),
                count(seen.connections),
                count(seen.stopped)
            ),
        );
    }
    push(out, format_args!("</tbody></table>{}</section>\n", more(view.hosts.len())));
}

fn limits(out: &mut String, view: &View) {
    let Some(standing) = &view.limits else { return };
    out.push_str("<section><h2>Spend and limits</h2>\n<table><tbody>\n");
    for limit in &standing.limits {
        let whose = limit.agent.as_ref().map_or_else(String::new, |agent| format!(" ({})", text(agent)));
        push(out, format_args!("<tr><td>{}{whose}<td>{}\n", limit.limit.name(), text(&limit.text())));
    }
    for agent in &standing.agents {
        let spend = agent.spend.map_or_else(|| "no price".to_owned(), |spend| spend.to_string());
        let models = agent.models.join(", ");
        push(out, format_args!("<tr><td>{}<td>{} {}\n", text(&agent.agent), text(&spend), text(&models)));
    }
    out.push_str("</tbody></table></section>\n");
}

fn claims(out: &mut String, view: &View) {
    if view.claims.is_empty() {
        return;
    }
    push(out, format_args!("<section><h2>Claims ({})</h2>\n<ul>\n", view.claims.len()));
    for claim in &view.claims {
        let class = if claim.is_false { "deny" } else { "quiet" };
        push(out, format_args!("<li><i class=\"{class}\">{}</i></li>\n", text(&claim.text)));
    }
    out.push_str("</ul></section>\n");
}

fn verification(out: &mut String, report: &Report) {
    out.push_str("<section><h2>Verification</h2>\n<table><thead><tr><th>phase<th>outcome<th>known by<th>summary</tr></thead><tbody>\n");
    for phase in &report.phases {
        let (outcome, standing) = (writ_core::json::word(&phase.outcome), writ_core::json::word(&phase.standing));
        push(out, format_args!("<tr><td>{}<td>{outcome}<td>{standing}<td>{}", text(phase.name), text(&phase.summary)));
        phase.findings.iter().for_each(|finding| push(out, format_args!("<p class=\"finding\">{}</p>", text(finding))));
        out.push('\n');
    }
    push(out, format_args!("</tbody></table>\n<p>{}</p></section>\n", text(&report.verdict())));
}
