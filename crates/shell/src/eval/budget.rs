//! How much of a line is followed: steps for the whole analysis, and what happens when they are spent.

use crate::action::UnresolvedKind;
use crate::eval::Eval;
use crate::text::{Fields, size};
use crate::word::{Part, Source};

/// Steps for one line. A step is about a word copied, or sixteen bytes of text.
pub const MAX_STEPS: usize = 400_000;
/// Deepest nesting of code in code and of calls.
pub const MAX_DEPTH: usize = 12;
/// Longest value of a variable, in bytes.
const MAX_VALUE: usize = 64 << 10;
/// Most elements of an array, and most positional parameters.
pub const MAX_FIELDS: usize = 16 << 10;

impl Eval<'_> {
    /// Takes steps; false when none are left, and then the line is on record as too large.
    pub(crate) fn spend(&mut self, steps: usize) -> bool {
        self.steps = self.steps.saturating_sub(steps);
        if self.steps == 0 {
            self.limit("more than is followed");
        }
        self.steps > 0
    }

    /// Says once that something was left out.
    pub(crate) fn limit(&mut self, what: &str) {
        if !self.limited {
            self.limited = true;
            self.unresolved(UnresolvedKind::Limit, what, self.here);
        }
    }

    /// A variable's values, none of them too long.
    pub(crate) fn bounded(&mut self, values: &mut [Fields]) {
        for fields in values {
            let bytes: usize = fields.iter().map(size).sum();
            if bytes > MAX_VALUE || fields.len() > MAX_FIELDS {
                *fields = vec![vec![Part::Unknown(Source::Any)]];
                self.limit("a value that is too long");
            }
            self.spend(1 + fields.len() + bytes / 16);
        }
    }
}
