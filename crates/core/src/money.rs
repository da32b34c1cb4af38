//! Money, counted in whole micro-dollars (R26).

use std::fmt;
use std::iter::Sum;

use serde::{Deserialize, Serialize};

/// Micro-dollars in a dollar.
const DOLLAR: u64 = 1_000_000;

/// An amount of US dollars. In JSON it is the number of its micro-dollars; people see `$1.25`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Money(u64);

impl Money {
    /// So many micro-dollars.
    pub const fn from_micros(micros: u64) -> Self {
        Self(micros)
    }

    /// How many micro-dollars it is.
    pub const fn micros(self) -> u64 {
        self.0
    }

    /// Reads dollars as people write them: `5`, `5.00`, `0.000125`. At most six digits stand behind the point.
    pub fn parse(text: &str) -> Option<Self> {
        let (whole, part) = text.split_once('.').map_or((text, None), |(whole, part)| (whole, Some(part)));
        let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        if !digits(whole) || part.is_some_and(|part| !digits(part) || part.len() > 6) {
            return None;
        }
        let part = part.unwrap_or_default();
        let micros: u64 = format!("{part:0<6}").parse().ok()?;
        whole.parse::<u64>().ok()?.checked_mul(DOLLAR)?.checked_add(micros).map(Self)
    }
}

impl Sum for Money {
    fn sum<I: Iterator<Item = Self>>(amounts: I) -> Self {
        Self(amounts.fold(0, |sum, amount| sum.saturating_add(amount.0)))
    }
}

impl fmt::Display for Money {
    /// Two digits behind the point, and as many more as it needs.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let part = format!("{:06}", self.0 % DOLLAR);
        let needed = part.trim_end_matches('0').len().max(2);
        write!(f, "${}.{}", self.0 / DOLLAR, part.get(..needed).unwrap_or(&part))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dollars_are_read_and_shown_exactly() {
        for (text, micros, shown) in [
            ("5", 5_000_000, "$5.00"),
            ("5.5", 5_500_000, "$5.50"),
            ("0.000125", 125, "$0.000125"),
            ("12.345", 12_345_000, "$12.345"),
            ("0", 0, "$0.00"),
        ] {
            assert_eq!(Money::parse(text), Some(Money::from_micros(micros)), "{text}");
            assert_eq!(Money::from_micros(micros).to_string(), shown);
        }
        for bad in ["", ".5", "5.", "-1", "1e3", "1.0000001", "$5", "1,5", "99999999999999999999"] {
            assert_eq!(Money::parse(bad), None, "{bad}");
        }
    }
}
