//! Moments, in milliseconds, written as RFC 3339 in UTC.

use std::fmt;

/// A moment with millisecond precision. Prints as `2026-01-18T10:30:00.000Z`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Timestamp(i64);

/// Text that is no RFC 3339 date and time with an offset.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is not an RFC 3339 date and time such as 2026-01-18T10:30:00Z: {cause}")]
pub struct TimeError {
    text: String,
    cause: String,
}

impl Timestamp {
    /// The machine's clock, which the agent may have moved: order comes from the ledger's chain, not from this.
    pub fn now() -> Self {
        Self(jiff::Timestamp::now().as_millisecond())
    }

    /// The machine's clock to the nanosecond, as text, and later than `last`, which it moves on: no two are alike.
    pub fn distinct(last: &mut i128) -> (Self, String) {
        let now = jiff::Timestamp::now();
        let nanos = now.as_nanosecond().max(last.saturating_add(1));
        *last = nanos;
        let moment = jiff::Timestamp::from_nanosecond(nanos).unwrap_or(now);
        (Self(moment.as_millisecond()), format!("{moment:.9}"))
    }

    /// Milliseconds since 1970-01-01T00:00:00Z.
    pub const fn from_millis(millis: i64) -> Self {
        Self(millis)
    }

    /// Milliseconds since 1970-01-01T00:00:00Z.
    pub const fn millis(self) -> i64 {
        self.0
    }

    /// Reads RFC 3339 with any offset; more precise fractions are cut to milliseconds.
    pub fn parse(text: &str) -> Result<Self, TimeError> {
        text.parse::<jiff::Timestamp>()
            .map(|moment| Self(moment.as_millisecond()))
            .map_err(|error| TimeError { text: text.chars().take(80).collect(), cause: error.to_string() })
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match jiff::Timestamp::from_millisecond(self.0) {
            Ok(moment) => write!(f, "{moment:.3}"),
            Err(_) => write!(f, "+{}ms", self.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distinct_moments_only_rise() {
        let mut last = 0;
        let moments: Vec<String> = (0..1000).map(|_| Timestamp::distinct(&mut last).1).collect();
        assert!(moments.windows(2).all(|pair| pair[0] < pair[1]));
        assert_eq!(moments[0].len(), "2026-01-18T10:30:00.000000000Z".len());
    }

    #[test]
    fn prints_milliseconds_in_utc() {
        let moment = Timestamp::parse("2026-01-18T11:30:00+01:00").unwrap();
        assert_eq!(moment.to_string(), "2026-01-18T10:30:00.000Z");
        assert_eq!(Timestamp::parse(&moment.to_string()), Ok(moment));
        for bad in ["", "2026-01-18", "2026-13-01T00:00:00Z", "2026-01-18T10:30:00", "tomorrow"] {
            assert!(Timestamp::parse(bad).is_err(), "{bad}");
        }
    }
}
