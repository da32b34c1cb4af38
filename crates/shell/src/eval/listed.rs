//! Listings: commands whose output is the names of files on the disk.

use crate::action::{Dir, Part, Word};
use crate::eval::Eval;
use crate::eval::command::{is_flag, text_word};
use crate::eval::expand::{Text, tidy};
use crate::listing::{Ignores, Listing, Printed, Source, Test};
use crate::programs::operands::table;
use crate::programs::{find, searches};

/// Most listings of a line.
const MOST: usize = 256;

impl Eval<'_> {
    /// Puts a listing on record; what stands for each of its names.
    pub(crate) fn listing(&mut self, mut listing: Listing) -> Part {
        if let [Part::Unknown(Source::Listed(at))] = listing.folder.parts.as_slice()
            && let Some(outer) = self.out.listings.get(usize::from(*at))
        {
            let outer = outer.clone();
            let rough = outer.rough().0.into_iter().next();
            (listing.folder, listing.dirs) = (rough.unwrap_or(outer.folder), outer.dirs);
        }
        for part in &mut listing.folder.parts {
            match part {
                Part::Unknown(Source::Number | Source::Fresh | Source::Name) => *part = Part::Glob("*".to_owned()),
                Part::Unknown(source) if source.is_made() => return Part::Unknown(Source::Any),
                Part::Unknown(_) => return Part::Unknown(Source::Outside),
                Part::Text(_) | Part::Glob(_) => {}
            }
        }
        if listing.dirs.contains(&Dir::Unknown) && !listing.folder.literal().is_some_and(|text| text.starts_with('/')) {
            return Part::Unknown(Source::Any);
        }
        let known = self.out.listings.iter().position(|own| *own == listing);
        let at = known.unwrap_or(self.out.listings.len());
        let Some(index) = u16::try_from(at).ok().filter(|_| at < MOST) else {
            self.limit("too many listings");
            return Part::Unknown(Source::Any);
        };
        if known.is_none() {
            self.out.listings.push(listing);
        }
        Part::Unknown(Source::Listed(index))
    }

    /// Some of these lines: those whose names a search's pattern asks for, or for a reason that is not known.
    pub(crate) fn narrowed(&mut self, lines: &Text, asked: Option<&Test>) -> Text {
        let mut out = Text::new();
        for (at, part) in lines.iter().enumerate() {
            let before = at.checked_sub(1).and_then(|at| lines.get(at));
            let starts = before.is_none_or(|part| matches!(part, Part::Text(text) if text.ends_with('\n')));
            let behind = lines.get(at + 1);
            let ends = behind.is_none_or(|part| matches!(part, Part::Text(text) if text.starts_with('\n')));
            // What else stands in a line may be what was asked for.
            let test = asked.filter(|_| starts && ends).cloned().unwrap_or(Test::Maybe);
            out.push(match part {
                Part::Unknown(Source::Listed(index)) => match self.out.listings.get(usize::from(*index)).cloned() {
                    Some(listing) => self.listing(Listing { test: test.and(listing.test.clone()), ..listing }),
                    None => Part::Unknown(Source::Any),
                },
                other => other.clone(),
            });
        }
        out
    }

    /// What a command prints that lists files.
    pub(crate) fn listed(&mut self, base: &str, arguments: &[Word]) -> Option<Text> {
        let span = self.here;
        match base {
            "ls" | "dir" | "vdir" | "ll" | "la" => self.ls(base, arguments),
            "find" | "gfind" => find::printed(self, arguments, span),
            "fd" | "fdfind" => find::printed_fd(self, arguments, span),
            "grep" | "egrep" | "fgrep" | "zgrep" | "rg" | "ag" | "ack" => {
                let split = table::split(table::lookup(base)?, arguments);
                let given = split.has(&['e', 'f'], "--regexp") || split.has(&[], "--file") || split.has(&[], "--files");
                let roots: Vec<Word> =
                    split.operands.iter().skip(usize::from(!given)).map(|word| (*word).clone()).collect();
                searches::printed(self, base, arguments, &roots, searches::here(span))
            }
            "git" => self.git_names(arguments),
            _ => None,
        }
    }

    fn ls(&mut self, base: &str, arguments: &[Word]) -> Option<Text> {
        let flags: Vec<String> = arguments.iter().filter(|word| is_flag(word)).filter_map(Word::literal).collect();
        let has = |letter: char| flags.iter().any(|flag| !flag.starts_with("--") && flag.contains(letter));
        if has('Q') || has('i') || has('s') || has('m') || has('x') {
            return None;
        }
        let hidden = base == "la" || has('a') || has('A') || has('f') || flags.iter().any(|flag| flag.contains("all"));
        let mut folders: Vec<Word> = arguments.iter().filter(|word| !is_flag(word)).cloned().collect();
        if folders.is_empty() {
            folders.push(text_word(".", self.here));
        }
        let mut out = Text::new();
        for folder in folders {
            if has('l') || base == "ll" {
                for _ in 0..8 {
                    out.extend([Part::Unknown(Source::Name), Part::Text(" ".to_owned())]);
                }
            }
            if has('d') {
                out.extend(folder.parts);
            } else {
                let (dirs, test) = (self.dirs.clone(), Test::Here);
                let (tree, printed) = (has('R'), Printed::Name);
                out.push(self.listing(Listing {
                    folder,
                    dirs,
                    test,
                    tree,
                    hidden,
                    ignores: Ignores::Nothing,
                    printed,
                }));
            }
            out.push(Part::Text("\n".to_owned()));
        }
        Some(tidy(out))
    }

    /// `git ls-files`, `git diff --name-only`, `git status --short`, `git grep -l`.
    fn git_names(&mut self, arguments: &[Word]) -> Option<Text> {
        let (sub, rest) = arguments.split_first()?;
        let sub = sub.literal()?;
        let texts: Vec<String> = rest.iter().map(|word| word.literal().unwrap_or_default()).collect();
        let has = |flag: &str| texts.iter().any(|text| text == flag);
        let columns = |letters: &str| {
            texts
                .iter()
                .any(|text| text.starts_with('-') && !text.starts_with("--") && text.contains(|c| letters.contains(c)))
        };
        let behind = texts.iter().position(|text| text == "--").map_or(rest.len(), |at| at + 1);
        let plain = |words: &[Word]| words.iter().filter(|word| !is_flag(word)).cloned().collect::<Vec<Word>>();
        let (paths, maybe, front, ignores) = match sub.as_str() {
            "ls-files" if !columns("stvfz") || has("-z") => {
                let others = columns("oi") || has("--others") || has("--ignored");
                (plain(rest), false, false, !others || has("--exclude-standard"))
            }
            "diff" | "diff-tree" | "diff-index" | "diff-files" | "show" | "log" if has("--name-only") => {
                (plain(rest.get(behind..).unwrap_or_default()), true, false, true)
            }
            "diff" | "diff-tree" | "diff-index" | "show" if has("--name-status") => {
                (plain(rest.get(behind..).unwrap_or_default()), true, true, true)
            }
            "status" if has("-s") || has("--short") || texts.iter().any(|text| text.starts_with("--porcelain")) => {
                (Vec::new(), true, true, !has("--ignored"))
            }
            "grep" if columns("lL") || has("--name-only") || has("--files-with-matches") => {
                (plain(rest.get(behind..).unwrap_or_default()), true, false, true)
            }
            _ => return None,
        };
        let relative = sub == "ls-files" || sub == "grep" || has("--relative");
        let folder = if relative { None } else { self.toplevel() };
        let folder = text_word(folder.as_deref().unwrap_or("."), self.here);
        let mut tests = vec![pathspecs(&paths), Test::Here];
        if maybe {
            tests.insert(0, Test::Maybe);
        }
        let (dirs, test) = (self.dirs.clone(), Test::All(tests));
        let ignores = if ignores { Ignores::Git } else { Ignores::Nothing };
        let listing = Listing { folder, dirs, test, tree: true, hidden: true, ignores, printed: Printed::Relative };
        let mut out = Text::new();
        if front {
            out.extend([Part::Unknown(Source::Number), Part::Text(" ".to_owned())]);
        }
        out.extend([self.listing(listing), Part::Text("\n".to_owned())]);
        Some(out)
    }
}

/// Git's pathspecs: a path and everything below it, or a pattern whose `*` matches a slash.
fn pathspecs(paths: &[Word]) -> Test {
    let known: Option<Vec<String>> = paths.iter().map(Word::literal).collect();
    let Some(known) = known.filter(|paths| !paths.iter().any(|path| path.starts_with(':'))) else { return Test::Maybe };
    if known.iter().all(|path| matches!(path.as_str(), "." | "./")) {
        return Test::Always;
    }
    let test = |path: &String| {
        let path = path.trim_start_matches("./").trim_end_matches('/');
        let name = |pattern: String| Test::Name { pattern, path: true, folded: false };
        Test::Either(vec![name(path.to_owned()), name(format!("{path}/*"))])
    };
    Test::Either(known.iter().map(test).collect())
}
