//! The lines in which two texts differ.
//!
//! Owns the unified form. Refuses texts that are too large or differ in too much: there is none then. Invariant: bounded work.

use std::fmt::Write;

/// Largest text.
pub const MAX_BYTES: u64 = 256 << 10;
/// Most lines in which they may differ: work and memory grow with its square.
const MOST: usize = 1000;
/// Lines shown around a difference.
const AROUND: usize = 3;

/// A line of both, or of one.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Line<'a> {
    Same(&'a str),
    Old(&'a str),
    New(&'a str),
}

/// What leads from one to the other; none where they differ in too much.
pub fn unified(old: &str, new: &str) -> Option<String> {
    let (old, new): (Vec<&str>, Vec<&str>) = (old.lines().collect(), new.lines().collect());
    let lines = lines(&old, &new)?;
    let near = |at: usize| {
        let range = lines.get(at.saturating_sub(AROUND)..(at + AROUND + 1).min(lines.len())).unwrap_or_default();
        range.iter().any(|line| !matches!(line, Line::Same(_)))
    };
    let (mut out, mut from, mut to, mut at) = (String::new(), 1, 1, 0);
    while at < lines.len() {
        let length = (at..lines.len()).take_while(|at| near(*at)).count();
        let hunk = lines.get(at..at + length).unwrap_or_default();
        let of_old = hunk.iter().filter(|line| !matches!(line, Line::New(_))).count();
        let of_new = hunk.iter().filter(|line| !matches!(line, Line::Old(_))).count();
        if !hunk.is_empty() {
            let start = |line: usize, count: usize| if count == 0 { line - 1 } else { line };
            let (old, new) = (start(from, of_old), start(to, of_new));
            writeln!(out, "@@ -{old},{of_old} +{new},{of_new} @@").ok()?;
        }
        for line in hunk {
            let (sign, text) = match line {
                Line::Same(text) => (' ', text),
                Line::Old(text) => ('-', text),
                Line::New(text) => ('+', text),
            };
            writeln!(out, "{sign}{text}").ok()?;
        }
        (from, to, at) = (from + of_old, to + of_new, at + length);
        // A line that both have and that is not shown.
        if length == 0 {
            (from, to, at) = (from + 1, to + 1, at + 1);
        }
    }
    Some(out)
}

/// The shortest way, as Myers finds it.
fn lines<'a>(old: &[&'a str], new: &[&'a str]) -> Option<Vec<Line<'a>>> {
    let front = old.iter().zip(new).take_while(|(one, other)| one == other).count();
    let (old_rest, new_rest) = (old.get(front..)?, new.get(front..)?);
    let back = old_rest.iter().rev().zip(new_rest.iter().rev()).take_while(|(one, other)| one == other).count();
    let (a, b) = (old_rest.get(..old_rest.len() - back)?, new_rest.get(..new_rest.len() - back)?);
    let mut out: Vec<Line<'a>> = old.iter().take(front).map(|line| Line::Same(line)).collect();
    out.extend(middle(a, b)?);
    out.extend(old_rest.iter().skip(a.len()).map(|line| Line::Same(line)));
    Some(out)
}

fn middle<'a>(a: &[&'a str], b: &[&'a str]) -> Option<Vec<Line<'a>>> {
    if a.is_empty() || b.is_empty() {
        let (old, new) = (a.iter().map(|line| Line::Old(line)), b.iter().map(|line| Line::New(line)));
        return Some(old.chain(new).collect());
    }
    // How far into `a` a way with `d` differences comes, by `k`: on the diagonal `k - d`.
    let mut reached: Vec<Vec<Option<usize>>> = Vec::new();
    for d in 0..=MOST {
        let mut row = vec![None; 2 * d + 1];
        for k in (0..=2 * d).step_by(2) {
            let Some((mut x, _)) = step(reached.last(), k, d, (a.len(), b.len())) else { continue };
            while let (Some(one), Some(other)) = (a.get(x), (x + d).checked_sub(k).and_then(|y| b.get(y))) {
                if one != other {
                    break;
                }
                x += 1;
            }
            *row.get_mut(k)? = Some(x);
            if x == a.len() && x + d == b.len() + k {
                return back(a, b, &reached);
            }
        }
        reached.push(row);
    }
    None
}

/// Where a way comes by its next difference, and whether that is a line of the old text.
fn step(before: Option<&Vec<Option<usize>>>, k: usize, d: usize, (old, new): (usize, usize)) -> Option<(usize, bool)> {
    let Some(before) = before else { return Some((0, false)) };
    let at = |k: usize| before.get(k).copied().flatten();
    let down = at(k).filter(|x| x + d <= new + k);
    let right = k.checked_sub(2).and_then(at).map(|x| x + 1).filter(|x| *x <= old);
    match (down, right) {
        (Some(down), Some(right)) if right > down => Some((right, true)),
        (Some(down), _) => Some((down, false)),
        (None, right) => right.map(|x| (x, true)),
    }
}

/// The way back from the end.
fn back<'a>(a: &[&'a str], b: &[&'a str], reached: &[Vec<Option<usize>>]) -> Option<Vec<Line<'a>>> {
    let (mut x, mut y) = (a.len(), b.len());
    let mut out = Vec::new();
    for d in (1..=reached.len()).rev() {
        let k = (x + d).checked_sub(y)?;
        let (start, is_old) = step(reached.get(d - 1), k, d, (a.len(), b.len()))?;
        while x > start {
            (x, y) = (x - 1, y.checked_sub(1)?);
            out.push(Line::Same(a.get(x)?));
        }
        if is_old {
            x = x.checked_sub(1)?;
            out.push(Line::Old(a.get(x)?));
        } else {
            y = y.checked_sub(1)?;
            out.push(Line::New(b.get(y)?));
        }
    }
    out.extend(a.iter().take(x).rev().map(|line| Line::Same(line)));
    out.reverse();
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hunks_have_their_places() {
        let old = "1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n11\n12\n";
        let new = "1\n2\nx\n4\n5\n6\n7\n8\n9\n10\n12\n13\n";
        let text = unified(old, new).unwrap();
        assert_eq!(text, "@@ -1,6 +1,6 @@\n 1\n 2\n-3\n+x\n 4\n 5\n 6\n@@ -8,5 +8,5 @@\n 8\n 9\n 10\n-11\n 12\n+13\n");
        assert_eq!(unified("", "a\n").unwrap(), "@@ -0,0 +1,1 @@\n+a\n");
        assert_eq!(unified("a\n", "").unwrap(), "@@ -1,1 +0,0 @@\n-a\n");
    }

    proptest::proptest! {
        #[test]
        fn every_line_is_there(old in proptest::collection::vec(0..4_u8, 0..30), new in proptest::collection::vec(0..4_u8, 0..30)) {
            let text = |lines: &[u8]| lines.iter().map(u8::to_string).collect::<Vec<_>>();
            let (old, new) = (text(&old), text(&new));
            let (old, new): (Vec<&str>, Vec<&str>) = (old.iter().map(String::as_str).collect(), new.iter().map(String::as_str).collect());
            let all = lines(&old, &new).unwrap();
            let of = |wanted: fn(&Line<'_>) -> bool| all.iter().filter(|line| wanted(line)).map(|line| match line {
                Line::Same(text) | Line::Old(text) | Line::New(text) => *text,
            }).collect::<Vec<_>>();
            assert_eq!(of(|line| !matches!(line, Line::New(_))), old);
            assert_eq!(of(|line| !matches!(line, Line::Old(_))), new);
        }
    }
}
