//! The claim of a session in the many ways in which agents write one.

use super::{Deed, Rng};

/// The last words of an agent that did `deeds`.
pub fn claim(rng: &mut Rng, deeds: &[Deed], root: &str) -> String {
    let items: Vec<String> = deeds.iter().map(|deed| entry(rng, deed, root)).collect();
    let list = listed(rng, &items);
    let status = rng.pick(&["DONE", "DONE", "done", "Done"]);
    let mut lines: Vec<String> = Vec::new();
    if rng.chance(50) {
        lines.push(rng.pick(PROSE).to_owned());
        lines.push(String::new());
    }
    if rng.chance(50) {
        lines.push("## Handoff".to_owned());
        let key = rng.pick(&["status", "Status", "STATUS", "- status", "**status**"]);
        lines.push(format!("{key}: {status}"));
        lines.push(format!("{}:{list}", rng.pick(&["files_changed", "Files_Changed", "FILES_CHANGED"])));
        lines.push("blockers: none".to_owned());
    } else {
        let key = rng.pick(&["Status", "status", "STATUS", "**Status**"]);
        lines.push(format!("{key}: {status}"));
        let keys =
            ["Files changed", "files_changed", "FILES CHANGED", "Changed files", "Modified files", "Files modified"];
        lines.push(format!("{}:{list}", rng.pick(&keys)));
    }
    if rng.chance(40) {
        lines.push(String::new());
        lines.push(rng.pick(PROSE).to_owned());
    }
    lines.join(rng.pick(&["\n", "\n", "\r\n"]))
}

const PROSE: &[&str] = &[
    "All is in place; the tests in tests/never_there.py were not needed.",
    "I looked at docs/nowhere.md first, and left it alone.",
    "Summary: the change is small, see also https://example.org/a/b.py.",
    "```\nStatus: DONE\nFiles changed: in/a/fence.py\n```",
    "> Files changed: quoted/by/me.py",
    "Nothing else was touched, e.g. no config/prod.yaml and no secrets.",
];

fn listed(rng: &mut Rng, items: &[String]) -> String {
    match rng.below(7) {
        _ if items.is_empty() => " none".to_owned(),
        0 | 1 => format!(" {}", items.join(", ")),
        2 => match items.split_last() {
            Some((last, rest)) if !rest.is_empty() => format!(" {} and {last}", rest.join(", ")),
            _ => format!(" {}", items.join(", ")),
        },
        3 => format!(" [{}]", items.join(", ")),
        bullets => {
            let bullet = if bullets == 4 { "- " } else { rng.pick(&["* ", "  - ", "1. ", "• "]) };
            items.iter().map(|item| format!("\n{bullet}{item}")).collect()
        }
    }
}

fn entry(rng: &mut Rng, deed: &Deed, root: &str) -> String {
    match deed {
        Deed::File(name) => remarked(rng, name, root),
        Deed::Renamed(old, new) => {
            let arrow = rng.pick(&[" -> ", " → ", " => "]);
            match rng.below(3) {
                0 => format!("{}{arrow}{}", quoted(rng, old), quoted(rng, new)),
                1 => format!("`{old}`{arrow}`{new}`"),
                _ => format!("{}, {}", quoted(rng, old), quoted(rng, new)),
            }
        }
        Deed::Never(name) if rng.chance(20) && !name.starts_with('/') => quoted(rng, &format!("{root}/{name}")),
        Deed::Never(name) => place(rng, name),
    }
}

fn remarked(rng: &mut Rng, name: &str, root: &str) -> String {
    if name.starts_with('/') {
        return quoted(rng, name);
    }
    let base = name.rsplit('/').next().unwrap_or(name);
    match rng.below(12) {
        0 => quoted(rng, &format!("{root}/{name}")),
        1 => quoted(rng, &format!("./{name}")),
        2 => quoted(rng, base),
        3 if name.contains('/') && !name.contains(' ') => {
            format!("{}/", name.rsplit_once('/').map_or("", |(folder, _)| folder))
        }
        4 if !name.contains(' ') => format!("[{base}]({name})"),
        5 => format!("`{name}` ({})", rng.pick(&["new", "modified", "deleted", "+3 -1", "added tests"])),
        6 => format!("`{name}` — {}", rng.pick(&["added a test", "new file", "the fix for the parser"])),
        _ => place(rng, name),
    }
}

fn place(rng: &mut Rng, name: &str) -> String {
    if name.contains(' ') {
        return quoted(rng, name);
    }
    match rng.below(8) {
        0 => format!("{name}:12"),
        1 => format!("`{name}:3-40`"),
        2 => format!("{name}#L10-L20"),
        _ => quoted(rng, name),
    }
}

fn quoted(rng: &mut Rng, name: &str) -> String {
    match rng.below(5) {
        0 => format!("`{name}`"),
        1 => format!("\"{name}\""),
        _ if name.contains(' ') => format!("`{name}`"),
        2 => format!("**{name}**"),
        _ => name.to_owned(),
    }
}
