//! A session over time, as a picture: one lane for each kind of thing, a mark for each, and how many calls were made so far.
//!
//! Marks of one colour are one path, so that thousands of them stay a few kilobytes. Colours are the page's variables: the picture is dark
//! where the page is.

use writ_engine::view::{Became, Entry, Kind, View};

use super::html::{push, text};

const WIDTH: f64 = 960.0;
const LEFT: f64 = 150.0;
const TOP: f64 = 14.0;
const LANE: f64 = 26.0;
/// Most lanes; what is left shares the last.
const LANES: usize = 10;

/// A lane: its name and its marks' heights.
struct Lane {
    name: String,
    entries: Vec<usize>,
}

/// The picture as inline SVG; nothing where there is nothing to draw.
pub fn chart(view: &View) -> String {
    let (Some(began), Some(last)) = (view.began, view.last) else { return String::new() };
    let lanes = lanes(view);
    if lanes.is_empty() {
        return String::new();
    }
    let span = (last.millis() - began.millis()).max(1);
    let x = |entry: &Entry| LEFT + (WIDTH - LEFT - 12.0) * ratio(entry.at.millis() - began.millis(), span);
    let bottom = TOP + LANE * ratio(lanes.len() as i64, 1);
    let height = bottom + 30.0;
    let mut out = String::new();
    push(
        &mut out,
        format_args!(
            "<svg class=\"chart\" viewBox=\"0 0 {WIDTH} {height}\" role=\"img\" aria-label=\"the session over time\">\n"
        ),
    );
    for (at, lane) in lanes.iter().enumerate() {
        let y = TOP + LANE * (ratio(at as i64, 1) + 0.5);
        push(
            &mut out,
            format_args!(
                "<line class=\"lane\" x1=\"{LEFT}\" x2=\"{}\" y1=\"{y}\" y2=\"{y}\"/><text class=\"name\" x=\"{}\" y=\"{}\">{}<title>{}</title></text>\n",
                WIDTH - 12.0,
                LEFT - 10.0,
                y + 4.0,
                text(&short(&lane.name)),
                text(&lane.name)
            ),
        );
        for (class, wanted) in CLASSES {
            let marks: Vec<String> = lane
                .entries
                .iter()
                .filter_map(|at| view.entries.get(*at))
                .filter(|entry| mark(entry) == wanted)
                .map(|entry| format!("M{:.1} {y}v0", x(entry)))
                .collect();
            if !marks.is_empty() {
                push(&mut out, format_args!("<path class=\"mark {class}\" d=\"{}\"/>\n", once(&marks)));
            }
        }
    }
    axis(&mut out, span, bottom);
    out.push_str("</svg>\n");
    out
}

/// Colours, and the marks that have them; what stops is drawn last.
const CLASSES: [(&str, Mark); 5] = [
    ("quiet", Mark::Quiet),
    ("allow", Mark::Allowed),
    ("fail", Mark::Failed),
    ("ask", Mark::Asked),
    ("deny", Mark::Denied),
];

#[derive(Clone, Copy, PartialEq, Eq)]
enum Mark {
    Quiet,
    Allowed,
    Failed,
    Asked,
    Denied,
}

fn mark(entry: &Entry) -> Mark {
    match entry.became {
        Became::Denied | Became::NoTool => Mark::Denied,
        Became::Asked => Mark::Asked,
        Became::Allowed if entry.failed == Some(true) => Mark::Failed,
        Became::Allowed => Mark::Allowed,
        Became::Nothing => Mark::Quiet,
    }
}

/// Marks at the same place are one.
fn once(marks: &[String]) -> String {
    let mut out: Vec<&str> = Vec::with_capacity(marks.len());
    for mark in marks {
        if out.last() != Some(&mark.as_str()) {
            out.push(mark);
        }
    }
    out.concat()
}

fn lanes(view: &View) -> Vec<Lane> {
    let mut out: Vec<Lane> = Vec::new();
    let mut counts: std::collections::BTreeMap<&str, usize> = std::collections::BTreeMap::new();
    for entry in view.entries.iter().filter(|entry| entry.kind == Kind::Call) {
        *counts.entry(&entry.name).or_default() += 1;
    }
    let mut tools: Vec<(&str, usize)> = counts.into_iter().collect();
    tools.sort_by_key(|(name, count)| (std::cmp::Reverse(*count), *name));
    let kept: Vec<&str> = tools.iter().take(LANES).map(|(name, _)| *name).collect();
    let of = |entry: &Entry| match entry.kind {
        Kind::Prompt => "prompts".to_owned(),
        Kind::Claim => "claims".to_owned(),
        Kind::Connection => "network".to_owned(),
        Kind::Event => "session".to_owned(),
        Kind::Call if kept.contains(&entry.name.as_str()) => entry.name.clone(),
        Kind::Call => "other tools".to_owned(),
    };
    for (at, entry) in view.entries.iter().enumerate() {
        let name = of(entry);
        match out.iter_mut().find(|lane| lane.name == name) {
            Some(lane) => lane.entries.push(at),
            None => out.push(Lane { name, entries: vec![at] }),
        }
    }
    let order = |lane: &Lane| match lane.name.as_str() {
        "prompts" => 0,
        "session" => 5,
        "claims" => 4,
        "network" => 3,
        "other tools" => 2,
        _ => 1,
    };
    out.sort_by_key(|lane| (order(lane), std::cmp::Reverse(lane.entries.len()), lane.name.clone()));
    out
}

/// Moments below the lanes.
fn axis(out: &mut String, span: i64, bottom: f64) {
    for part in 0..=4 {
        let x = LEFT + (WIDTH - LEFT - 12.0) * ratio(part, 4);
        let anchor = match part {
            0 => "start",
            4 => "end",
            _ => "middle",
        };
        push(
            out,
            format_args!(
                "<line class=\"tick\" x1=\"{x:.1}\" x2=\"{x:.1}\" y1=\"{TOP}\" y2=\"{bottom}\"/><text class=\"time\" text-anchor=\"{anchor}\" x=\"{x:.1}\" y=\"{}\">{}</text>\n",
                bottom + 18.0,
                duration(span * part / 4)
            ),
        );
    }
}

/// A time since the beginning.
pub fn duration(millis: i64) -> String {
    match millis {
        ..1_000 => format!("{millis} ms"),
        1_000..60_000 => format!("{}.{} s", millis / 1000, millis % 1000 / 100),
        60_000..3_600_000 => format!("{} min {} s", millis / 60_000, millis / 1000 % 60),
        _ => format!("{} h {} min", millis / 3_600_000, millis / 60_000 % 60),
    }
}

fn ratio(part: i64, whole: i64) -> f64 {
    part as f64 / whole as f64
}

/// A name that fits. What tells two of one server's tools apart stands at their ends.
fn short(name: &str) -> String {
    let letters: Vec<char> = name.chars().collect();
    match letters.len().checked_sub(10) {
        Some(last) if letters.len() > 16 => {
            letters.iter().take(5).chain(&['…']).chain(letters.iter().skip(last)).collect()
        }
        _ => name.to_owned(),
    }
}
