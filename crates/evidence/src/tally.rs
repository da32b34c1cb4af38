//! Findings about rows: equal ones are told once, with how many there are.
//!
//! Owns the wording of such lists. Invariant: a tally's memory does not grow with the number of findings.

/// Most findings of one kind in a report.
pub const MOST: usize = 20;

/// Findings in the order in which they were first made.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    kinds: Vec<Kind>,
    /// Findings of kinds that found no room.
    more: u64,
    total: u64,
}

#[derive(Clone, Debug)]
struct Kind {
    text: String,
    /// The first row and the last, and how many there are; none for a finding that stands by itself.
    rows: Option<(u64, u64, u64)>,
}

impl Tally {
    /// No findings.
    pub const fn new() -> Self {
        Self { kinds: Vec::new(), more: 0, total: 0 }
    }

    /// Adds what is wrong with a row.
    pub fn add(&mut self, row: u64, why: &str) {
        self.total += 1;
        let known = self.kinds.iter_mut().find(|kind| kind.rows.is_some() && kind.text == why);
        if let Some((_, last, count)) = known.and_then(|kind| kind.rows.as_mut()) {
            (*last, *count) = (row, *count + 1);
        } else {
            self.push(Kind { text: why.to_owned(), rows: Some((row, row, 1)) });
        }
    }

    /// Adds a finding that no other is equal to.
    pub fn apart(&mut self, text: String) {
        self.total += 1;
        self.push(Kind { text, rows: None });
    }

    /// How many findings there are.
    pub const fn total(&self) -> u64 {
        self.total
    }

    /// One line a kind.
    pub fn texts(&self) -> Vec<String> {
        let told = self.kinds.iter().map(|kind| match kind.rows {
            None => kind.text.clone(),
            Some((row, _, 1)) => format!("row {row}: {}", kind.text),
            Some((first, last, count)) => {
                format!("row {first} and {} more up to row {last}: {}", count - 1, kind.text)
            }
        });
        told.chain((self.more > 0).then(|| format!("and {} more findings", self.more))).collect()
    }

    fn push(&mut self, kind: Kind) {
        if self.kinds.len() < MOST { self.kinds.push(kind) } else { self.more += 1 }
    }
}

/// The first of a list, and how many of it are left out.
pub fn listed(mut first: Vec<String>, all: u64) -> Vec<String> {
    let more = all.saturating_sub(first.len() as u64);
    first.extend((more > 0).then(|| format!("and {more} more")));
    first
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_findings_are_one_line_and_others_are_not() {
        let mut tally = Tally::default();
        tally.add(3, "bent");
        assert_eq!(tally.texts(), ["row 3: bent"]);
        (4..500_000).for_each(|row| tally.add(row, "bent"));
        tally.add(7, "torn");
        tally.apart("line 9: swapped".to_owned());
        let told = ["row 3 and 499996 more up to row 499999: bent", "row 7: torn", "line 9: swapped"];
        assert_eq!((tally.texts(), tally.total()), (told.map(str::to_owned).to_vec(), 499_999));
        (0..100).for_each(|number| tally.apart(format!("{number}")));
        assert_eq!((tally.texts().len(), tally.texts().pop()), (MOST + 1, Some("and 83 more findings".to_owned())));
    }
}
