//! `tar czf archive paths…`: the first word may be flags without a dash.

use writ_core::Span;

use crate::action::Access;
use crate::eval::Eval;
use crate::programs::operands::{net, unpack};
use crate::shape::text_word;
use crate::word::Word;

/// What an invocation says.
#[derive(Default)]
struct Said {
    modes: String,
    /// The parts of the archive: each `-f` is one more.
    archives: Vec<Word>,
    /// An archive's name with a colon is no other machine's.
    local: bool,
    dir: Option<Word>,
    /// Lists of names to read.
    lists: Vec<Word>,
    operands: Vec<Word>,
}

/// Puts the archive and the files of a `tar` on record.
pub fn run(eval: &mut Eval<'_>, base: &str, arguments: &[Word], span: Span) {
    let said = read(arguments);
    for list in said.lists.iter().filter(|list| list.literal().as_deref() != Some("-")) {
        eval.file(list.clone(), Access::Read, false);
    }
    let creates = said.modes.contains(['c', 'r', 'u']);
    for archive in said.archives.iter().filter(|archive| archive.literal().as_deref() != Some("-")) {
        let far = if said.local || base == "bsdtar" { Vec::new() } else { net::archived(archive) };
        if far.is_empty() || archive.literal().is_none() {
            eval.file(archive.clone(), if creates { Access::Write } else { Access::Read }, false);
        }
        far.into_iter().for_each(|used| eval.net(used.target, used.span));
    }
    if creates {
        // A list names files that nobody sees here.
        let listed: Vec<Word> = said.lists.iter().flat_map(|list| eval.listed_names(list)).collect();
        let read: Vec<Word> = said.operands.into_iter().chain(listed).collect();
        eval.in_dir(said.dir.as_ref(), |eval| read.into_iter().for_each(|word| eval.file(word, Access::Read, true)));
    } else if said.modes.contains('x') {
        let target = said.dir.clone().unwrap_or_else(|| text_word(".", span));
        if said.operands.is_empty() {
            unpack(eval, &target);
        } else {
            eval.file(target, Access::List, false);
        }
        eval.in_dir(said.dir.as_ref(), |eval| {
            said.operands.into_iter().for_each(|word| eval.file(word, Access::Write, true))
        });
    }
}

impl Said {
    /// `-xf archive`, `-C/etc`: the first letter with a value takes the rest, or the next word.
    fn cluster<'w>(&mut self, cluster: &str, word: &Word, words: &mut impl Iterator<Item = &'w Word>) {
        for (at, letter) in cluster.char_indices().skip(1) {
            if !"fCTXbHIKNLgFV".contains(letter) {
                self.modes.push(letter);
                continue;
            }
            let rest = cluster.get(at + letter.len_utf8()..).unwrap_or_default();
            let value = if rest.is_empty() { words.next().cloned() } else { Some(text_word(rest, word.span)) };
            match letter {
                'f' => self.archives.extend(value),
                'C' => self.dir = value,
                'T' | 'X' => self.lists.extend(value),
                _ => {}
            }
            return;
        }
    }
}

fn read(arguments: &[Word]) -> Said {
    let mut said = Said::default();
    let mut words = arguments.iter();
    let first = arguments.first().and_then(Word::literal).unwrap_or_default();
    if !first.is_empty() && first.chars().all(|c| c.is_ascii_alphabetic()) {
        words.next();
        said.modes.push_str(&first);
        for letter in first.chars() {
            match letter {
                'f' => said.archives.extend(words.next().cloned()),
                'C' => said.dir = words.next().cloned(),
                'T' | 'X' => said.lists.extend(words.next().cloned()),
                'b' | 'I' | 'H' | 'N' | 'K' | 'L' | 'g' | 'F' | 'V' => drop(words.next()),
                _ => {}
            }
        }
    }
    while let Some(word) = words.next() {
        match word.literal().unwrap_or_default().as_str() {
            "-C" | "--directory" => said.dir = words.next().cloned(),
            "-f" | "--file" => said.archives.extend(words.next().cloned()),
            "-T" | "--files-from" | "-X" | "--exclude-from" => said.lists.extend(words.next().cloned()),
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
            "--force-local" => said.local = true,
            long if long.starts_with("--") => match long.split_once('=') {
                Some(("--directory", dir)) => said.dir = Some(text_word(dir, word.span)),
                Some(("--file", file)) => said.archives.push(text_word(file, word.span)),
                Some(("--files-from" | "--exclude-from", file)) => said.lists.push(text_word(file, word.span)),
                _ => {}
            },
            cluster if cluster.starts_with('-') && cluster.len() > 1 => said.cluster(cluster, word, &mut words),
            _ => said.operands.push(word.clone()),
        }
    }
    said
}
