//! Which files of a record nobody names: a row has to, or a file that is named itself. Those are in no bundle, and in one they break it.

use std::collections::{BTreeSet, HashMap};
use std::fs::File;
use std::io::{self, BufReader, Read, Take};
use std::path::Path;

use writ_core::{Digest, regular_file};

use super::Entry;
use super::places::{SINGLE, is_transcript};

/// Hexadecimal digits of a digest.
const DIGITS: usize = 64;

/// The paths of files that neither the ledger nor a file that it leads to names by digest.
pub fn unnamed<'a>(folder: &Path, files: &'a [Entry]) -> io::Result<Vec<&'a str>> {
    // Files that are checked as a whole need no naming.
    let whole = |path: &str| SINGLE.contains(&path) || is_transcript(path);
    let others = files.iter().filter(|file| !whole(&file.path));
    // By their digests, of which several files may have one; there may be a hundred thousand.
    let mut left: Vec<Wanted<'_>> = others.map(|file| (file.sha256.0, file.path.as_str(), false)).collect();
    left.sort_unstable();
    // What was written since is not in the bundle.
    let sizes: HashMap<&str, u64> = files.iter().map(|file| (file.path.as_str(), file.size)).collect();
    let mut to_read = vec!["ledger.jsonl"];
    while let Some(path) = to_read.pop() {
        let mut found = BTreeSet::new();
        let file = regular_file::open(&folder.join(path))?.take(sizes.get(path).copied().unwrap_or_default());
        each_digest(file, &mut |digest| {
            let at = left.partition_point(|(known, ..)| *known < digest);
            if left.get(at).is_some_and(|(known, _, named)| *known == digest && !named) {
                found.insert(at);
            }
        })?;
        for at in found {
            let named = left.get(at).map(|(digest, ..)| *digest);
            let same = left.iter_mut().skip(at).take_while(|(digest, ..)| Some(*digest) == named);
            to_read.extend(same.map(|(_, path, named)| {
                *named = true;
                *path
            }));
        }
    }
    let mut left: Vec<&str> = left.into_iter().filter(|(.., named)| !named).map(|(_, path, _)| path).collect();
    left.sort_unstable();
    Ok(left)
}

/// A file's digest and path, and whether something names it.
type Wanted<'a> = (Digest, &'a str, bool);

/// Gives every run of exactly so many hexadecimal digits.
fn each_digest(file: Take<File>, take: &mut dyn FnMut(Digest)) -> io::Result<()> {
    let mut run = String::with_capacity(DIGITS + 1);
    let mut end = |run: &mut String| {
        if run.len() == DIGITS {
            Digest::from_hex(run).into_iter().for_each(&mut *take);
        }
        run.clear();
    };
    let (mut reader, mut piece) = (BufReader::new(file), vec![0; 1 << 16]);
    loop {
        let length = reader.read(&mut piece)?;
        for byte in piece.get(..length).unwrap_or_default() {
            match byte {
                b'0'..=b'9' | b'a'..=b'f' if run.len() <= DIGITS => run.push(char::from(*byte)),
                b'0'..=b'9' | b'a'..=b'f' => {}
                _ => end(&mut run),
            }
        }
        if length == 0 {
            end(&mut run);
            return Ok(());
        }
    }
}
