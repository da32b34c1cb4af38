//! The tree of its own, apart from the run that it is for.
//!
//! Owns what a plan says of it: what is made there, devices, terminals and folders of its own below `/dev`, and how that is said to whoever
//! makes one while nobody waits. Refuses a plan whose overlays need places in it. Its invariant: what was said gives the same steps again, so
//! that equal words mean an equal tree.

use std::ffi::{CStr, CString};

use super::{Made, MadeKind, Placed, Plan, What};

/// Where the devices are, for the command and in the tree.
const DEVICES: [&[u8]; 2] = [b"/dev/", b"dev/"];

impl Plan {
    /// The steps to the tree alone, with places that are relative to it; nothing where overlays are made in it.
    pub fn tree(&self) -> Option<Self> {
        if !self.layers.is_empty() {
            return None;
        }
        let mut tree = Self { temporary: self.temporary.clone(), made: self.made.clone(), ..Self::default() };
        let shown = self.shown_below();
        for placed in self.placed.iter().filter(|placed| in_tree(placed, &shown)) {
            let mut what = placed.what.clone();
            if let What::Taken { slot, .. } = &mut what {
                tree.taken.push(self.taken.get(*slot)?.clone());
                *slot = tree.taken.len() - 1;
            }
            tree.placed.push(Placed { target: in_tree_at(&placed.target)?, what });
        }
        Some(tree)
    }

    /// The tree is there, so nothing of it is to be made.
    pub fn without_tree(&mut self) {
        self.made.clear();
        let shown = self.shown_below();
        for placed in self.placed.extract_if(.., |placed| in_tree(placed, &shown)) {
            if let What::Taken { slot, .. } = placed.what
                && let Some(taken) = self.taken.get_mut(slot)
            {
                *taken = None;
            }
        }
    }

    /// What else is mounted among the devices: what lies below that comes after it, and so not with the tree.
    fn shown_below(&self) -> Vec<CString> {
        let all = self.placed.iter().filter(|placed| !is_fixed(placed)).map(|placed| &placed.target);
        all.filter(|target| target.as_bytes().starts_with(DEVICES[0])).cloned().collect()
    }

    /// The steps to a tree in bytes.
    pub fn to_words(&self) -> Vec<u8> {
        let mut words = Words(Vec::new());
        for (name, value) in &self.temporary {
            words.say(b'o', &[name.as_bytes(), value.as_bytes()]);
        }
        for made in &self.made {
            let path = made.path.as_bytes();
            match &made.kind {
                MadeKind::Folder(mode) => words.say(b'd', &[path, &mode.to_le_bytes()]),
                MadeKind::File(mode) => words.say(b'f', &[path, &mode.to_le_bytes()]),
                MadeKind::Text(text) => words.say(b't', &[path, text]),
                MadeKind::Link(target) => words.say(b'l', &[path, target.as_bytes()]),
            }
        }
        for placed in &self.placed {
            let target = placed.target.as_bytes();
            match &placed.what {
                What::Taken { slot, .. } => {
                    let taken = self.taken.get(*slot).and_then(Option::as_deref).map(CStr::to_bytes);
                    words.say(b'c', &[target, taken.unwrap_or_default()]);
                }
                What::Own { path, writable } => {
                    words.say(if *writable { b'w' } else { b'r' }, &[target, path.as_bytes()]);
                }
                // There is nothing else in a tree.
                What::Terminals | What::Layer(_) | What::Itself { .. } | What::Cover { .. } | What::Processes => {
                    words.say(b'p', &[target, b""]);
                }
            }
        }
        words.0
    }

    /// The same steps again; nothing where the words are others.
    pub fn of_words(words: &[u8]) -> Option<Self> {
        let text = |bytes: &[u8]| CString::new(bytes).ok();
        let mode = |bytes: &[u8]| bytes.try_into().ok().map(u32::from_le_bytes);
        let (mut tree, mut words) = (Self::default(), words);
        while let Some((kind, rest)) = words.split_first() {
            let (first, rest) = heard(rest)?;
            let (second, rest) = heard(rest)?;
            words = rest;
            let path = text(first)?;
            match kind {
                b'o' => tree.temporary.push((path, text(second)?)),
                b'd' => tree.made.push(Made { path, kind: MadeKind::Folder(mode(second)?) }),
                b'f' => tree.made.push(Made { path, kind: MadeKind::File(mode(second)?) }),
                b't' => tree.made.push(Made { path, kind: MadeKind::Text(second.to_vec()) }),
                b'l' => tree.made.push(Made { path, kind: MadeKind::Link(text(second)?) }),
                b'c' => {
                    tree.taken.push(Some(text(second)?));
                    let slot = tree.taken.len() - 1;
                    let what = What::Taken { slot, writable: true, owned: false, device: true };
                    tree.placed.push(Placed { target: path, what });
                }
                b'w' | b'r' => {
                    let what = What::Own { path: text(second)?, writable: *kind == b'w' };
                    tree.placed.push(Placed { target: path, what });
                }
                b'p' => tree.placed.push(Placed { target: path, what: What::Terminals }),
                _ => return None,
            }
        }
        Some(tree)
    }
}

/// Whether it is mounted in the tree, whatever the run.
fn in_tree(placed: &Placed, shown: &[CString]) -> bool {
    let target = placed.target.as_bytes();
    let is_below = |above: &CString| target.strip_prefix(above.as_bytes()).is_some_and(|rest| rest.starts_with(b"/"));
    is_fixed(placed) && target.starts_with(DEVICES[0]) && !shown.iter().any(is_below)
}

fn is_fixed(placed: &Placed) -> bool {
    match placed.what {
        What::Taken { device, writable, owned, .. } => device && writable && !owned,
        What::Own { .. } | What::Terminals => true,
        What::Layer(_) | What::Itself { .. } | What::Cover { .. } | What::Processes => false,
    }
}

fn in_tree_at(target: &CStr) -> Option<CString> {
    let rest = target.to_bytes().strip_prefix(DEVICES[0])?;
    CString::new([DEVICES[1], rest].concat()).ok()
}

/// What is said, each with its length before it.
struct Words(Vec<u8>);

impl Words {
    fn say(&mut self, kind: u8, parts: &[&[u8]; 2]) {
        self.0.push(kind);
        for part in parts {
            self.0.extend_from_slice(&(part.len() as u64).to_le_bytes());
            self.0.extend_from_slice(part);
        }
    }
}

/// One part, and what follows it.
fn heard(words: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, rest) = words.split_first_chunk()?;
    rest.split_at_checked(usize::try_from(u64::from_le_bytes(*length)).ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan() -> Plan {
        let text = |text: &str| CString::new(text).unwrap();
        let made = [
            ("dev", MadeKind::Folder(0o755)),
            ("dev/null", MadeKind::File(0o644)),
            ("dev/fd", MadeKind::Link(text("/proc/self/fd"))),
            ("hosts", MadeKind::Text(b"a\0b\xff\n".to_vec())),
        ];
        let device = |slot| What::Taken { slot, writable: true, owned: false, device: true };
        let grant = What::Taken { slot: 0, writable: true, owned: false, device: false };
        let own = |path, writable| What::Own { path: text(path), writable };
        let placed = [
            ("/dev", own("dev", false)),
            ("/dev/null", device(1)),
            ("/dev/pts", What::Terminals),
            ("/dev/shm", own("shm", true)),
            ("/dev/shm/home", grant),
            ("/dev/shm/home/null", device(2)),
            ("/etc/hosts", own("hosts", false)),
        ];
        Plan {
            temporary: vec![(text("size"), text("4096"))],
            made: made.into_iter().map(|(path, kind)| Made { path: text(path), kind }).collect(),
            taken: ["/dev/shm/home", "/dev/null", "/dev/shm/home/null"].map(|path| Some(text(path))).into(),
            placed: placed.into_iter().map(|(target, what)| Placed { target: text(target), what }).collect(),
            ..Plan::default()
        }
    }

    #[test]
    fn what_is_said_is_heard() {
        let tree = plan().tree().unwrap();
        let places: Vec<_> = tree.placed.iter().map(|placed| placed.target.to_str().unwrap()).collect();
        assert_eq!(places, ["dev/null", "dev/pts", "dev/shm"]);
        let words = tree.to_words();
        let again = Plan::of_words(&words).unwrap();
        assert_eq!(
            (&again.temporary, &again.made, &again.taken, &again.placed),
            (&tree.temporary, &tree.made, &tree.taken, &tree.placed)
        );
        for length in 1..words.len() {
            // A shorter one is another tree, or none.
            assert_ne!(Plan::of_words(&words[..length]).map(|tree| tree.to_words()), Some(words.clone()));
        }
        assert!(Plan::of_words(b"z").is_none());
    }

    #[test]
    fn what_is_there_is_not_made_again() {
        let mut plan = plan();
        plan.without_tree();
        let places: Vec<_> = plan.placed.iter().map(|placed| placed.target.to_str().unwrap()).collect();
        assert_eq!(places, ["/dev", "/dev/shm/home", "/dev/shm/home/null", "/etc/hosts"]);
        assert!(plan.made.is_empty());
        assert_eq!(
            plan.taken,
            [Some(c"/dev/shm/home"), None, Some(c"/dev/shm/home/null")].map(|path| path.map(Into::into))
        );
    }
}
