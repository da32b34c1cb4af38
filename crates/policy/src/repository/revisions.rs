//! Names of commits and other objects: gitrevisions(7).

use std::collections::{HashMap, HashSet, VecDeque};

use super::objects::EMPTY;
use super::{Id, Kind, Repository};

/// Most commits that are walked through.
const MAX_COMMITS: usize = 2_000;
/// Most names of references that are read.
const MAX_REFERENCES: usize = 256;

impl Repository<'_> {
    /// The object that a name stands for; `None` where there is none, or it cannot be told.
    pub fn resolve(&self, name: &str) -> Option<Id> {
        let (base, mut steps) = parts(name);
        let mut id = self.base(base)?;
        while let Some(sign) = steps.chars().next() {
            let rest = steps.get(1..)?;
            if sign == '^' && rest.starts_with('{') {
                let (kind, more) = rest.get(1..)?.split_once('}')?;
                id = self.peeled(id, kind)?;
                steps = more;
                continue;
            }
            let digits = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
            let count: usize = if digits == 0 { 1 } else { rest.get(..digits)?.parse().ok()? };
            id = self.peeled(id, "commit")?;
            match sign {
                '^' if count == 0 => {}
                '^' => id = *self.commit(id)?.parents.get(count - 1)?,
                '~' => {
                    for _ in 0..count.min(MAX_COMMITS) {
                        id = *self.commit(id)?.parents.first()?;
                    }
                }
                _ => return None,
            }
            steps = rest.get(digits..)?;
        }
        Some(id)
    }

    /// `x^{commit}`, `x^{tree}`, `x^{}`
    fn peeled(&self, mut id: Id, kind: &str) -> Option<Id> {
        for _ in 0..8 {
            if Id::hex(EMPTY) == Some(id) {
                return Some(id);
            }
            let (own, bytes) = self.object(id)?;
            match (own, kind) {
                (Kind::Tag, _) => {
                    let text = String::from_utf8_lossy(&bytes).into_owned();
                    id = Id::hex(text.lines().next()?.strip_prefix("object ")?)?;
                }
                (Kind::Commit, "tree") => return Some(self.commit(id)?.tree),
                (Kind::Commit, "commit" | "" | "object") | (Kind::Tree, "tree" | "" | "object") => return Some(id),
                (Kind::Blob, "blob" | "" | "object") => return Some(id),
                _ => return None,
            }
        }
        None
    }

    /// The tree of a commit, a tag or a tree.
    pub fn tree_of(&self, id: Id) -> Option<Id> {
        self.peeled(id, "tree")
    }

    fn base(&self, name: &str) -> Option<Id> {
        let name = match name {
            "" | "@" => "HEAD",
            other => other,
        };
        if let Some((branch, inside)) = name.split_once("@{") {
            return self.logged(branch, inside.strip_suffix('}')?);
        }
        if name == "-" {
            return self.base(&self.left_branch(1)?);
        }
        let full = |prefix: &str| format!("{prefix}{name}");
        let places = ["", "refs/", "refs/tags/", "refs/heads/", "refs/remotes/"].map(full);
        let found = places.iter().find_map(|place| self.reference(place, 0));
        let found = found.or_else(|| self.reference(&format!("refs/remotes/{name}/HEAD"), 0));
        let hex = |text: &str| (4..=40).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        let described = name.rsplit_once("-g").map(|(_, digits)| digits).filter(|digits| hex(digits));
        found.or_else(|| match described.unwrap_or(name) {
            full if full.len() == 40 => Id::hex(full),
            short if hex(short) => self.beginning(short),
            _ => None,
        })
    }

    /// `branch@{1}`, `@{upstream}`, `@{-1}`
    fn logged(&self, branch: &str, inside: &str) -> Option<Id> {
        let current = || self.branch();
        if matches!(inside, "u" | "upstream" | "push") {
            let branch = if branch.is_empty() { current()? } else { branch.to_owned() };
            let config = self.config();
            let remote = config.last(&format!("branch.{branch}.remote"))?.to_owned();
            let merge = config.last(&format!("branch.{branch}.merge"))?.strip_prefix("refs/heads/")?.to_owned();
            let place =
                if remote == "." { format!("refs/heads/{merge}") } else { format!("refs/remotes/{remote}/{merge}") };
            return self.reference(&place, 0);
        }
        if let Some(back) = inside.strip_prefix('-') {
            return self.base(&self.left_branch(back.parse().ok()?)?);
        }
        let back: usize = inside.parse().ok()?;
        let name = if branch.is_empty() { current()? } else { branch.to_owned() };
        let logs = [format!("logs/refs/heads/{name}"), format!("logs/refs/{name}"), format!("logs/{name}")];
        let text = logs.iter().find_map(|log| self.own(log))?;
        let line = text.lines().rev().nth(back)?;
        Id::hex(line.split(' ').nth(1)?)
    }

    /// The branch that was left so many checkouts ago.
    fn left_branch(&self, back: usize) -> Option<String> {
        let text = self.text(&format!("{}/logs/HEAD", self.git))?;
        let moves = text.lines().rev().filter_map(|line| line.split_once("checkout: moving from ").map(|(_, to)| to));
        moves.into_iter().nth(back.checked_sub(1)?)?.split_once(" to ").map(|(from, _)| from.to_owned())
    }

    /// The branch that is checked out.
    pub fn branch(&self) -> Option<String> {
        let head = self.text(&format!("{}/HEAD", self.git))?;
        head.trim().strip_prefix("ref: refs/heads/").map(str::to_owned)
    }

    /// Whether there is a branch or a tag of a full name.
    pub fn has_reference(&self, name: &str) -> bool {
        self.reference(name, 0).is_some()
    }

    fn reference(&self, name: &str, depth: usize) -> Option<Id> {
        if depth > 5 || name.contains("..") || name.is_empty() {
            return None;
        }
        let own = |folder: &str| self.text(&format!("{folder}/{name}"));
        match own(&self.git).or_else(|| own(&self.common)) {
            Some(text) => match text.trim().strip_prefix("ref: ") {
                Some(next) => self.reference(next.trim(), depth + 1),
                None => Id::hex(text.split_whitespace().next()?),
            },
            None => {
                let packed = self.own("packed-refs")?;
                let line = packed.lines().find(|line| line.split(' ').nth(1) == Some(name))?;
                Id::hex(line.split(' ').next()?)
            }
        }
    }

    /// Every reference's object; `None` where there are too many.
    pub fn references(&self) -> Option<Vec<Id>> {
        let packed = self.own("packed-refs").unwrap_or_default();
        let mut out: Vec<Id> = packed.lines().filter_map(|line| Id::hex(line.split(' ').next()?)).collect();
        let mut todo = vec![format!("{}/refs", self.common)];
        while let Some(folder) = todo.pop() {
            for entry in self.world.list(&folder).unwrap_or_default() {
                let path = format!("{folder}/{}", entry.name);
                if entry.is_dir {
                    todo.push(path);
                } else {
                    out.extend(self.text(&path).and_then(|text| Id::hex(text.trim())));
                }
                if out.len() + todo.len() > MAX_REFERENCES {
                    return None;
                }
            }
        }
        out.extend(self.resolve("HEAD"));
        Some(out)
    }

    /// The newest commit that both have behind them; `None` where it is too far, or there is none.
    pub fn merge_base(&self, one: Id, other: Id) -> Option<Id> {
        let mut sides: HashMap<Id, u8> = HashMap::new();
        let mut todo = VecDeque::from([(one, 1u8), (other, 2u8)]);
        while let Some((id, side)) = todo.pop_front() {
            let known = sides.entry(id).or_default();
            if *known & side == side {
                continue;
            }
            *known |= side;
            if *known == 3 {
                return Some(id);
            }
            if sides.len() > MAX_COMMITS {
                return None;
            }
            todo.extend(self.commit(id)?.parents.into_iter().map(|parent| (parent, side)));
        }
        None
    }

    /// Calls `found` with every commit behind `from`, those behind `without` left out, until it says that it is enough.
    /// `None` where there are too many, or one cannot be read.
    pub fn history(
        &self,
        from: &[Id],
        without: &[Id],
        most: Option<u32>,
        found: &mut dyn FnMut(Id) -> Option<bool>,
    ) -> Option<bool> {
        let mut hidden: HashSet<Id> = HashSet::new();
        let mut todo: Vec<Id> = without.to_vec();
        while let Some(id) = todo.pop() {
            if hidden.len() > MAX_COMMITS {
                return None;
            }
            if hidden.insert(id) {
                todo.extend(self.commit(id)?.parents);
            }
        }
        let most = most.and_then(|most| usize::try_from(most).ok()).unwrap_or(usize::MAX);
        let mut seen: HashSet<Id> = HashSet::new();
        let mut todo: VecDeque<Id> = from.iter().copied().collect();
        while let Some(id) = todo.pop_front() {
            if hidden.contains(&id) || !seen.insert(id) {
                continue;
            }
            if seen.len() > most {
                return Some(false);
            }
            if seen.len() > MAX_COMMITS {
                return None;
            }
            if found(id)? {
                return Some(true);
            }
            todo.extend(self.commit(id)?.parents);
        }
        Some(false)
    }
}

/// A name, and the steps back behind it.
fn parts(name: &str) -> (&str, &str) {
    // What stands in `@{…}` belongs to the name.
    let from = name.find("@{").and_then(|at| name.get(at..)?.find('}').map(|end| at + end)).unwrap_or(0);
    let cut = name.get(from..).and_then(|rest| rest.find(['~', '^'])).map_or(name.len(), |at| from + at);
    name.split_at_checked(cut).unwrap_or((name, ""))
}
