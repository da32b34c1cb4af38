//! `tar czf archive paths…`: the first word may be flags without a dash.

use writ_core::Span;

use crate::action::{Access, Part, Word};
use crate::command::text_word;
use crate::eval::Eval;

/// What an invocation says.
#[derive(Default)]
struct Said<'a> {
    modes: String,
    archive: Option<&'a Word>,
    dir: Option<&'a Word>,
    /// Lists of names to read.
    lists: Vec<&'a Word>,
    operands: Vec<Word>,
}

/// Puts the archive and the files of a `tar` on record.
pub fn run(eval: &mut Eval<'_>, arguments: &[Word], span: Span) {
    let said = read(arguments);
    said.lists.into_iter().for_each(|file| eval.file(file.clone(), Access::Read, false));
    let creates = said.modes.contains(['c', 'r', 'u']);
    if let Some(archive) = said.archive.filter(|archive| archive.literal().as_deref() != Some("-")) {
        eval.file(archive.clone(), if creates { Access::Write } else { Access::Read }, false);
    }
    if creates {
        eval.in_dir(said.dir, |eval| said.operands.into_iter().for_each(|word| eval.file(word, Access::Read, true)));
    } else if said.modes.contains('x') {
        let target = said.dir.cloned().unwrap_or_else(|| text_word(".", span));
        let inside = [target.parts, vec![Part::Text("/.".to_owned())]].concat();
        eval.file(Word { parts: inside, span: target.span }, Access::List, false);
        eval.in_dir(said.dir, |eval| said.operands.into_iter().for_each(|word| eval.file(word, Access::Write, true)));
    }
}

fn read(arguments: &[Word]) -> Said<'_> {
    let mut said = Said::default();
    let mut words = arguments.iter();
    let first = arguments.first().and_then(Word::literal).unwrap_or_default();
    if !first.is_empty() && first.chars().all(|c| c.is_ascii_alphabetic()) {
        words.next();
        said.modes.push_str(&first);
        if first.contains('f') {
            said.archive = words.next();
        }
    }
    while let Some(word) = words.next() {
        match word.literal().unwrap_or_default().as_str() {
            "-C" | "--directory" => said.dir = words.next(),
            "-f" | "--file" => said.archive = words.next(),
            "-T" | "--files-from" | "-X" | "--exclude-from" => said.lists.extend(words.next()),
            "--exclude"
            | "--transform"
            | "--strip-components"
            | "-I"
            | "--use-compress-program"
            | "--to-command"
            | "--owner"
            | "--group" => drop(words.next()),
            "--extract" | "--get" => said.modes.push('x'),
            "--create" => said.modes.push('c'),
            "--append" | "--update" => said.modes.push('r'),
            long if long.starts_with("--") => {}
            cluster if cluster.starts_with('-') && cluster.len() > 1 => {
                said.modes.push_str(cluster.get(1..).unwrap_or_default());
                if cluster.ends_with('f') {
                    said.archive = words.next();
                } else if cluster.ends_with('C') {
                    said.dir = words.next();
                }
            }
            _ => said.operands.push(word.clone()),
        }
    }
    said
}
