//! git's patterns: gitignore(5), "PATTERN FORMAT", down to the cases that it leaves open.
//!
//! Owns which name a pattern matches. Refuses to be slow: a match takes at most the pattern's length times the name's, where trying one
//! way after the other, as git does, can take exponentially long. Invariant: it matches what git matches; `gix-glob` was looked at, which
//! differs at `foo**/bar`, gives up behind 64 stars and has no such bound, and `globset` has braces and other brackets. Page:
//! `spec/turns.md`.

/// One step of a pattern.
enum Step {
    /// This byte.
    Byte(u8),
    /// Any but a slash.
    One,
    /// One of these bytes.
    Set(Box<[bool; 256]>),
    /// Any number of bytes that are no slash.
    Star,
    /// Any number of bytes.
    Deep,
    /// The two steps behind it, or none of them.
    Maybe,
    /// What never matches: brackets that nothing closes, a class that is unknown.
    Never,
}

/// A pattern that can be matched.
pub struct Wild {
    steps: Vec<Step>,
    /// Fewest bytes that match.
    least: usize,
    fold: bool,
}

/// What matching remembers, used again for the next.
#[derive(Default)]
pub struct Scratch {
    now: Vec<u64>,
    next: Vec<u64>,
}

impl Wild {
    /// Reads a pattern. Where `slashes`, a slash is matched by a slash and `**` alone; where `fold`, letters of ASCII are matched in either
    /// case, as far as git does that.
    pub fn new(pattern: &[u8], slashes: bool, fold: bool) -> Self {
        let mut steps = Vec::new();
        let mut rest = pattern;
        while let Some((first, after)) = rest.split_first() {
            rest = after;
            match first {
                b'\\' => match rest.split_first() {
                    // Not folded by git.
                    Some((escaped, after)) => {
                        steps.push(Step::Byte(*escaped));
                        rest = after;
                    }
                    None => steps.push(Step::Never),
                },
                b'?' if slashes => steps.push(Step::One),
                b'?' => steps.push(Step::Set(Box::new([true; 256]))),
                b'*' => {
                    let before = pattern.len().checked_sub(rest.len() + 2).and_then(|at| pattern.get(at));
                    let several = rest.first() == Some(&b'*');
                    while let Some(after) = rest.strip_prefix(b"*") {
                        rest = after;
                    }
                    let bounded = before.is_none_or(|byte| *byte == b'/')
                        && (rest.is_empty() || rest.starts_with(b"/") || rest.starts_with(b"\\/"));
                    if slashes && several && bounded && rest.starts_with(b"/") {
                        steps.push(Step::Maybe);
                    }
                    steps.push(if !slashes || several && bounded { Step::Deep } else { Step::Star });
                }
                b'[' => match set(rest, slashes, fold) {
                    Some((set, after)) => {
                        steps.push(Step::Set(set));
                        rest = after;
                    }
                    None => {
                        steps.push(Step::Never);
                        break;
                    }
                },
                byte => steps.push(Step::Byte(if fold { byte.to_ascii_lowercase() } else { *byte })),
            }
        }
        let single = |step: &Step| matches!(step, Step::Byte(_) | Step::One | Step::Set(_) | Step::Never);
        let optional = steps.iter().filter(|step| matches!(step, Step::Maybe)).count();
        let least = steps.iter().filter(|step| single(step)).count().saturating_sub(optional);
        Self { steps, least, fold }
    }

    /// Whether a name matches, and what it cost to find out.
    pub fn matches(&self, name: &[u8], scratch: &mut Scratch) -> (bool, usize) {
        if name.len() < self.least || !self.begins_and_ends_like(name) {
            return (false, 1);
        }
        let words = self.steps.len() / 64 + 1;
        for set in [&mut scratch.now, &mut scratch.next] {
            set.clear();
            set.resize(words, 0);
        }
        put(&mut scratch.now, 0);
        let mut cost = 0;
        for byte in name {
            let byte = if self.fold { byte.to_ascii_lowercase() } else { *byte };
            cost += self.step(Some(byte), scratch);
            std::mem::swap(&mut scratch.now, &mut scratch.next);
            scratch.next.fill(0);
            if scratch.now.iter().all(|word| *word == 0) {
                return (false, cost);
            }
        }
        cost += self.step(None, scratch);
        (scratch.now.get(self.steps.len() / 64).is_some_and(|word| word >> (self.steps.len() % 64) & 1 == 1), cost)
    }

    /// Whether the ends could match, which is all that most patterns need.
    fn begins_and_ends_like(&self, name: &[u8]) -> bool {
        let could = |step: Option<&Step>, byte: Option<&u8>| match (step, byte) {
            (Some(Step::Byte(own)), Some(byte)) => *own == if self.fold { byte.to_ascii_lowercase() } else { *byte },
            (Some(Step::Never), _) => false,
            _ => true,
        };
        could(self.steps.first(), name.first()) && could(self.steps.last(), name.last())
    }

    /// From where the pattern may be now to where it may be behind one more byte.
    fn step(&self, byte: Option<u8>, scratch: &mut Scratch) -> usize {
        let mut cost = 1;
        for word in 0..scratch.now.len() {
            let mut done = 0_u64;
            loop {
                let open = scratch.now.get(word).copied().unwrap_or_default() & !done;
                if open == 0 {
                    break;
                }
                let bit = open.trailing_zeros();
                done |= 1 << bit;
                cost += 1;
                let at = word * 64 + bit as usize;
                let Some(step) = self.steps.get(at) else { continue };
                match step {
                    Step::Star | Step::Deep => {
                        put(&mut scratch.now, at + 1);
                        if byte.is_some_and(|byte| matches!(step, Step::Deep) || byte != b'/') {
                            put(&mut scratch.next, at);
                        }
                    }
                    Step::Maybe => {
                        put(&mut scratch.now, at + 1);
                        put(&mut scratch.now, at + 3);
                    }
                    Step::Byte(own) if byte == Some(*own) => put(&mut scratch.next, at + 1),
                    Step::One if byte.is_some_and(|byte| byte != b'/') => put(&mut scratch.next, at + 1),
                    Step::Set(set) if byte.is_some_and(|byte| set.get(usize::from(byte)) == Some(&true)) => {
                        put(&mut scratch.next, at + 1);
                    }
                    Step::Byte(_) | Step::One | Step::Set(_) | Step::Never => {}
                }
            }
        }
        cost
    }
}

fn put(set: &mut [u64], at: usize) {
    if let Some(word) = set.get_mut(at / 64) {
        *word |= 1 << (at % 64);
    }
}

/// What brackets hold, read from behind the first, and what follows them.
fn set(rest: &[u8], slashes: bool, fold: bool) -> Option<(Box<[bool; 256]>, &[u8])> {
    let mut set = Box::new([false; 256]);
    let negated = matches!(rest.first(), Some(b'!' | b'^'));
    let mut at = usize::from(negated);
    // What a range would begin with; zero where none can begin.
    let mut before = 0;
    loop {
        let byte = *rest.get(at)?;
        match byte {
            b'\\' => {
                at += 1;
                before = *rest.get(at)?;
                add(&mut set, before..=before);
            }
            b'-' if before != 0 && rest.get(at + 1).is_some_and(|next| *next != b']') => {
                at += 1;
                if rest.get(at) == Some(&b'\\') {
                    at += 1;
                }
                range(&mut set, before, *rest.get(at)?, fold);
                before = 0;
            }
            b'[' if rest.get(at + 1) == Some(&b':') => {
                let length = rest.get(at + 2..)?.iter().position(|byte| *byte == b']')?;
                match rest.get(at + 2..at + 2 + length)?.strip_suffix(b":") {
                    Some(class) => {
                        named(&mut set, class, fold)?;
                        at += 2 + length;
                        before = 0;
                    }
                    // No class: a bracket like any other byte.
                    None => {
                        add(&mut set, byte..=byte);
                        before = byte;
                    }
                }
            }
            byte => {
                add(&mut set, byte..=byte);
                before = byte;
            }
        }
        at += 1;
        if *rest.get(at)? == b']' {
            break;
        }
    }
    for has in set.iter_mut() {
        *has ^= negated;
    }
    if slashes && let Some(slash) = set.get_mut(usize::from(b'/')) {
        *slash = false;
    }
    Some((set, rest.get(at + 1..).unwrap_or_default()))
}

fn add(set: &mut [bool; 256], bytes: std::ops::RangeInclusive<u8>) {
    for byte in bytes {
        if let Some(has) = set.get_mut(usize::from(byte)) {
            *has = true;
        }
    }
}

/// A range; folded, a small letter is in it as its capital too. Names are folded before, so a capital is never asked for.
fn range(set: &mut [bool; 256], from: u8, to: u8, fold: bool) {
    add(set, from..=to);
    for letter in b'a'..=b'z' {
        if fold && (from..=to).contains(&letter.to_ascii_uppercase()) {
            add(set, letter..=letter);
        }
    }
}

/// A class of POSIX, as git has it: ASCII alone. `None` where it is unknown.
fn named(set: &mut [bool; 256], class: &[u8], fold: bool) -> Option<()> {
    let holds: fn(&u8) -> bool = match class {
        b"alnum" => u8::is_ascii_alphanumeric,
        b"alpha" => u8::is_ascii_alphabetic,
        b"blank" => |byte| matches!(byte, b' ' | b'\t'),
        b"cntrl" => u8::is_ascii_control,
        b"digit" => u8::is_ascii_digit,
        b"graph" => u8::is_ascii_graphic,
        b"lower" => u8::is_ascii_lowercase,
        b"print" => |byte| matches!(byte, b' '..=b'~'),
        b"punct" => u8::is_ascii_punctuation,
        b"space" => |byte| matches!(byte, b' ' | b'\t' | b'\n' | b'\r'),
        b"upper" if fold => u8::is_ascii_alphabetic,
        b"upper" => u8::is_ascii_uppercase,
        b"xdigit" => u8::is_ascii_hexdigit,
        _ => return None,
    };
    for byte in (0..=255).filter(holds) {
        add(set, byte..=byte);
    }
    Some(())
}
