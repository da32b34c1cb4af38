//! A listing's entries, met one by one on the disk as it is.

use writ_shell::{Listing, Printed, Test};

use crate::glob::name::Patterns;
use crate::ignore::Ignored;
use crate::world::{MAX_ENTRIES, Search, World};

/// An entry that a listing prints, surely or perhaps.
pub struct ListedEntry<'e> {
    /// Absolute.
    pub path: &'e str,
    /// As it is printed.
    pub printed: String,
    /// Nothing that is not known keeps it out.
    pub sure: bool,
    pub is_dir: bool,
    pub is_link: bool,
}

/// No, perhaps, yes.
type Truth = u8;
const NO: Truth = 0;
const MAYBE: Truth = 1;
const YES: Truth = 2;

/// One entry while it is tested.
struct Entry<'e> {
    name: &'e str,
    printed: &'e str,
    depth: u16,
    is_dir: bool,
    is_link: bool,
}

/// What an expression did with an entry.
#[derive(Default)]
struct Outcome {
    reached: Truth,
    pruned: bool,
}

/// A folder that is still to be looked into.
struct Open {
    path: String,
    below: String,
    depth: u16,
    /// It was printed itself, and stands for everything below it.
    covered: Truth,
}

pub struct Walk<'a> {
    world: &'a dyn World,
    listing: &'a Listing,
    /// A folder that is printed stands for everything below it (`rm -r`).
    whole: bool,
    patterns: Patterns,
    ignored: Ignored<'a>,
    left: usize,
    /// It met what it was to stop at.
    pub stopped: bool,
}

impl<'a> Walk<'a> {
    pub fn of(world: &'a dyn World, listing: &'a Listing, whole: bool, root: &str) -> Self {
        let ignored = Ignored::of(world, listing.ignores, root);
        Self { world, listing, whole, patterns: Patterns::default(), ignored, left: MAX_ENTRIES, stopped: false }
    }

    /// Meets the entries of a folder until `stop` says so; `None` where the folder cannot be listed.
    pub fn run(
        &mut self,
        root: &str,
        shown: &str,
        stop: &mut dyn FnMut(&ListedEntry<'_>) -> bool,
    ) -> Option<Search<()>> {
        let root = root.trim_end_matches('/');
        self.world.list(if root.is_empty() { "/" } else { root })?;
        let name = root.rsplit('/').next().unwrap_or_default();
        let mut open = Open { path: root.to_owned(), below: String::new(), depth: 0, covered: NO };
        if self.listing.tree && self.listing.printed == Printed::Path {
            let (entry, mut outcome) =
                (Entry { name, printed: shown, depth: 0, is_dir: true, is_link: false }, Outcome::default());
            self.test(&self.listing.test, YES, &entry, &mut outcome);
            if self.whole {
                open.covered = outcome.reached;
            }
        }
        let mut todo = vec![open];
        while let Some(folder) = todo.pop() {
            for entry in self.world.list(if folder.path.is_empty() { "/" } else { &folder.path }).unwrap_or_default() {
                self.left = self.left.saturating_sub(1);
                if self.left == 0 {
                    return Some(Search::TooLarge);
                }
                if entry.name.starts_with('.') && !self.listing.hidden && folder.covered == NO {
                    continue;
                }
                let (stops, next) = self.meet(&folder, &entry, shown, stop);
                if stops {
                    self.stopped = true;
                    return Some(Search::Done(()));
                }
                todo.extend(next);
            }
        }
        Some(Search::Done(()))
    }

    /// One entry: whether it ends the walk, and the folder that it is.
    fn meet(
        &mut self,
        folder: &Open,
        entry: &crate::world::Entry,
        shown: &str,
        stop: &mut dyn FnMut(&ListedEntry<'_>) -> bool,
    ) -> (bool, Option<Open>) {
        let (path, depth) = (format!("{}/{}", folder.path, entry.name), folder.depth.saturating_add(1));
        let below =
            if folder.below.is_empty() { entry.name.clone() } else { format!("{}/{}", folder.below, entry.name) };
        let whole = match shown {
            "" => below.clone(),
            _ if shown.ends_with('/') => format!("{shown}{below}"),
            _ => format!("{shown}/{below}"),
        };
        let mut outcome = Outcome::default();
        if entry.is_dir && self.ignored.ignores(&path, true) && folder.covered == NO {
            return (false, None);
        }
        let own = Entry { name: &entry.name, printed: &whole, depth, is_dir: entry.is_dir, is_link: entry.is_link };
        self.test(&self.listing.test, YES, &own, &mut outcome);
        let reached = outcome.reached.max(folder.covered);
        if reached > NO {
            let printed = match self.listing.printed {
                Printed::Path => whole,
                Printed::Relative => below.clone(),
                Printed::Name => entry.name.clone(),
            };
            let sure = reached == YES;
            let met = ListedEntry { path: &path, printed, sure, is_dir: entry.is_dir, is_link: entry.is_link };
            if stop(&met) && (entry.is_dir || folder.covered > NO || !self.ignored.ignores(&path, false)) {
                return (true, None);
            }
        }
        let covered = if self.whole && entry.is_dir { reached } else { folder.covered };
        let enters = entry.is_dir && !path.ends_with("/.git/objects") && (self.listing.tree || covered > NO);
        let enters = enters && (covered > NO || !(outcome.pruned || depth >= deepest(&self.listing.test)));
        (false, enters.then_some(Open { path, below, depth, covered }))
    }

    fn test(&mut self, test: &Test, given: Truth, entry: &Entry<'_>, outcome: &mut Outcome) -> Truth {
        let yes = |holds: bool| if holds { YES } else { NO };
        match test {
            Test::Always => YES,
            Test::Maybe => MAYBE,
            Test::Name { pattern, path, folded } => {
                yes(self.patterns.matches(pattern, *folded, if *path { entry.printed } else { entry.name }))
            }
            Test::Folder => yes(entry.is_dir),
            Test::Link => yes(entry.is_link),
            Test::Depth(least, most) => yes((*least..=*most).contains(&entry.depth)),
            Test::All(tests) => {
                let mut value = YES;
                for test in tests {
                    value = value.min(self.test(test, given.min(value), entry, outcome));
                    if value == NO {
                        break;
                    }
                }
                value
            }
            Test::Either(tests) => {
                let mut value = NO;
                for test in tests {
                    value = value.max(self.test(test, given.min(YES - value), entry, outcome));
                    if value == YES {
                        break;
                    }
                }
                value
            }
            Test::Not(inner) => YES - self.test(inner, given, entry, outcome),
            Test::Prune => {
                outcome.pruned |= given == YES;
                YES
            }
            Test::Here => {
                outcome.reached = outcome.reached.max(given);
                YES
            }
        }
    }
}

/// How deep a search goes at most.
fn deepest(test: &Test) -> u16 {
    match test {
        Test::Depth(_, most) => *most,
        Test::All(tests) => tests.iter().map(deepest).min().unwrap_or(u16::MAX),
        _ => u16::MAX,
    }
}
