//! The picture of a session: head, panes, the entry one stands on, and what keys do.

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Borders, Paragraph, Wrap};
use writ_core::visible;
use writ_engine::view::{Became, Entry, View};

use super::state::{Pane, State};

const KEYS: &str = " ↑↓ move  n next stopped  f filter  / search  Tab pane  q quit ";
/// Lines of the entry one stands on.
const DETAIL: u16 = 9;

/// Draws everything.
pub fn draw(frame: &mut Frame<'_>, state: &mut State) {
    let detail = if state.pane == Pane::Timeline { DETAIL.min(frame.area().height / 2) } else { 0 };
    let rows = [
        Constraint::Length(2),
        Constraint::Length(1),
        Constraint::Min(1),
        Constraint::Length(detail),
        Constraint::Length(1),
    ];
    let areas = Layout::vertical(rows).split(frame.area());
    let [head, panes, list, below, keys] = &*areas else { return };
    frame.render_widget(Paragraph::new(self::head(&state.view)), *head);
    frame.render_widget(Paragraph::new(self::panes(state)), *panes);
    body(frame, state, *list);
    if detail > 0 {
        let block = Block::new().borders(Borders::TOP).border_style(faint());
        let lines = state.entry().map(|entry| about(entry, &state.view)).unwrap_or_default();
        frame.render_widget(Paragraph::new(lines).wrap(Wrap { trim: false }).block(block), *below);
    }
    frame.render_widget(Paragraph::new(bottom(state)), *keys);
}

/// A foreign text, as everything of the record is on its way here.
fn plain(text: &str) -> String {
    visible::line(text).into_owned()
}

fn faint() -> Style {
    Style::new().fg(Color::DarkGray)
}

fn head(view: &View) -> Vec<Line<'static>> {
    let counts = view.counts;
    let state = if view.ended { "ended" } else { "open" };
    let policy = view.policy.as_deref().unwrap_or("no policy at hand");
    let part = |count: u64, name: &str, color: Color| Span::styled(format!("{count} {name}  "), Style::new().fg(color));
    vec![
        Line::from(vec![
            Span::styled(format!("session {}  ", plain(&view.session)), Style::new().add_modifier(Modifier::BOLD)),
            Span::styled(format!("{} · {} · {state}", plain(&view.client), plain(policy)), faint()),
        ]),
        Line::from(vec![
            part(counts.allowed, "allowed", Color::Green),
            part(counts.asked, "asked", Color::Yellow),
            part(counts.denied, "denied", Color::Red),
            part(counts.failed, "failed", Color::Magenta),
            part(counts.prompts, "prompts", Color::Blue),
            Span::styled(plain(&view.cwd), faint()),
        ]),
    ]
}

fn panes(state: &State) -> Line<'static> {
    let mut spans = Vec::new();
    for (at, pane) in Pane::ALL.into_iter().enumerate() {
        let style = if pane == state.pane { Style::new().add_modifier(Modifier::REVERSED) } else { faint() };
        spans.push(Span::styled(format!(" {} {} ", at + 1, pane.name()), style));
    }
    if state.pane == Pane::Timeline {
        spans.push(Span::raw(format!("  filter: {}", state.filter.name())));
    }
    if state.typing || !state.search.is_empty() {
        let cursor = if state.typing { "▏" } else { "" };
        spans.push(Span::styled(format!("  /{}{cursor}", plain(&state.search)), Style::new().fg(Color::Cyan)));
    }
    Line::from(spans)
}

fn body(frame: &mut Frame<'_>, state: &mut State, area: Rect) {
    let height = usize::from(area.height).max(1);
    // What one stands on is always there.
    if state.at < state.top {
        state.top = state.at;
    } else if state.at >= state.top + height {
        state.top = state.at + 1 - height;
    }
    let shown = state.shown.iter().enumerate().skip(state.top).take(height);
    let lines: Vec<Line<'static>> = match state.pane {
        Pane::Timeline => shown
            .filter_map(|(at, entry)| Some(line(state.view.entries.get(*entry)?, at == state.at, &state.view)))
            .collect(),
        Pane::Files => shown
            .filter_map(|(at, file)| {
                let (path, seen) = state.view.files.iter().nth(*file)?;
                let text = format!("{:>6} {:>6} {:>7}  {}", seen.writes, seen.reads, seen.stopped, plain(path));
                Some(row(text, at == state.at, seen.stopped > 0))
            })
            .collect(),
        Pane::Hosts => shown
            .filter_map(|(at, host)| {
                let (host, seen) = state.view.hosts.iter().nth(*host)?;
                let text = format!("{:>6} {:>6} {:>7}  {}", seen.calls, seen.connections, seen.stopped, plain(host));
                Some(row(text, at == state.at, seen.stopped > 0))
            })
            .collect(),
        Pane::Claims => shown
            .filter_map(|(at, claim)| {
                let claim = state.view.claims.get(*claim)?;
                Some(row(plain(&claim.text), at == state.at, claim.is_false))
            })
            .collect(),
        Pane::Spend => spend(&state.view),
    };
    let head = match state.pane {
        Pane::Files => Some("written   read stopped  path"),
        Pane::Hosts => Some(" calls connec. stopped  host"),
        Pane::Timeline | Pane::Spend | Pane::Claims => None,
    };
    let empty = lines.is_empty().then(|| Line::styled("nothing", faint()));
    let head = head.map(|head| Line::styled(head, faint()));
    frame.render_widget(Paragraph::new(head.into_iter().chain(lines).chain(empty).collect::<Vec<_>>()), area);
}

fn row(text: String, chosen: bool, wrong: bool) -> Line<'static> {
    let style = if wrong { Style::new().fg(Color::Red) } else { Style::new() };
    Line::styled(text, if chosen { style.add_modifier(Modifier::REVERSED) } else { style })
}

fn word(entry: &Entry) -> (&'static str, Color) {
    match (entry.became, entry.failed) {
        (Became::Allowed, Some(true)) => ("failed ", Color::Magenta),
        (Became::Allowed, _) => ("allowed", Color::Green),
        (Became::Asked, _) => ("asked  ", Color::Yellow),
        (Became::Denied, _) => ("denied ", Color::Red),
        (Became::NoTool, _) => ("no tool", Color::Red),
        (Became::Nothing, _) => ("·      ", Color::DarkGray),
    }
}

fn line(entry: &Entry, chosen: bool, view: &View) -> Line<'static> {
    let (word, color) = word(entry);
    let since = view.began.map_or(0, |began| entry.at.millis() - began.millis()) / 1000;
    let agent = entry.agent.as_ref().map_or_else(String::new, |agent| format!("[{}] ", plain(agent)));
    let line = Line::from(vec![
        Span::styled(format!("{:>6} {:>4}:{:02} ", entry.row, since / 60, since % 60), faint()),
        Span::styled(format!("{word} "), Style::new().fg(color)),
        Span::raw(format!("{agent}{} ", plain(&entry.name))),
        Span::styled(plain(&entry.what), if chosen { Style::new() } else { faint() }),
    ]);
    if chosen { line.style(Style::new().add_modifier(Modifier::REVERSED)) } else { line }
}

/// Everything of the entry one stands on.
fn about(entry: &Entry, view: &View) -> Vec<Line<'static>> {
    let (word, color) = word(entry);
    let mut facts = vec![format!("row {}", entry.row), entry.at.to_string()];
    facts.extend(entry.took.map(|took| format!("took {took} ms")));
    facts.extend(entry.sandboxed.then(|| "in a sandbox".to_owned()));
    facts.extend(entry.agent.as_ref().map(|agent| format!("by {}", plain(agent))));
    let mut out = vec![
        Line::from(vec![
            Span::styled(word.trim_end().to_owned(), Style::new().fg(color).add_modifier(Modifier::BOLD)),
            Span::raw(format!("  {}  ", plain(&entry.name))),
            Span::styled(facts.join(" · "), faint()),
        ]),
        Line::raw(plain(&entry.what)),
    ];
    for told in &entry.reasons {
        let text = told.text.as_ref().map_or_else(String::new, |text| format!("`{text}`, "));
        out.push(Line::from(vec![
            Span::styled(plain(&format!("{text}{} ", told.rule)), Style::new().fg(Color::Cyan)),
            Span::raw(plain(&told.message)),
        ]));
        if !told.instead.is_empty() {
            out.push(Line::styled(plain(&format!("  to allow it: {}", told.instead)), faint()));
        }
    }
    if let Some(rule) = &entry.allowed_by {
        out.push(Line::styled(plain(&format!("allowed by {rule}")), faint()));
    }
    if entry.reasons.is_empty() && entry.became == Became::Nothing && view.policy.is_none() {
        out.push(Line::styled("the policy is not at hand, so that rules have no text", faint()));
    }
    out
}

fn spend(view: &View) -> Vec<Line<'static>> {
    let Some(standing) = &view.limits else {
        return vec![Line::styled("its policy limits nothing, so that nothing was counted", faint())];
    };
    let mut out = Vec::new();
    for limit in &standing.limits {
        let whose = limit.agent.as_ref().map_or_else(String::new, |agent| format!(" ({agent})"));
        out.push(row(plain(&format!("{:<18}{whose} {}", limit.limit.name(), limit.text())), false, limit.is_used_up()));
    }
    for agent in &standing.agents {
        let spend = agent.spend.map_or_else(|| "no price".to_owned(), |spend| spend.to_string());
        out.push(Line::raw(plain(&format!("{:<18} {spend}  {}", agent.agent, agent.models.join(", ")))));
    }
    out
}

fn bottom(state: &State) -> Line<'static> {
    let place =
        if state.shown.is_empty() { String::new() } else { format!(" {}/{} ", state.at + 1, state.shown.len()) };
    Line::from(vec![
        Span::styled(place, Style::new().add_modifier(Modifier::BOLD)),
        Span::styled(
            if state.typing { " Enter keeps the search, Esc drops it ".to_owned() } else { KEYS.to_owned() },
            faint(),
        ),
    ])
}
