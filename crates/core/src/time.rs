//! Moments, in milliseconds, written as RFC 3339 in UTC.

use std::fmt;

use jiff::{SignedDuration, civil::DateTime};
use serde::{Deserialize, Serialize};

use crate::json;

/// A moment with millisecond precision. Prints as `2026-01-18T10:30:00.000Z`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Timestamp(i64);

/// Text that is no RFC 3339 date and time with an offset.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is not an RFC 3339 date and time such as 2026-01-18T10:30:00Z")]
pub struct TimeError {
    text: String,
}

/// 1970-01-01T00:00:00, from which milliseconds are counted.
const EPOCH: DateTime = DateTime::constant(1970, 1, 1, 0, 0, 0, 0);

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

    /// Reads RFC 3339 (section 5.6) with any offset, in the years 0000 to 9999 of UTC; more precise fractions are cut to milliseconds
    /// and a leap second counts as the second before it.
    pub fn parse(text: &str) -> Result<Self, TimeError> {
        rfc3339(text.as_bytes()).ok_or_else(|| TimeError { text: text.chars().take(80).collect() })
    }

    /// The moment in UTC, where four digits can write its year.
    fn civil(self) -> Option<DateTime> {
        EPOCH.checked_add(SignedDuration::from_millis(self.0)).ok().filter(|moment| moment.year() >= 0)
    }
}

/// The grammar is checked here, because date libraries read more of ISO 8601 than RFC 3339 has; the calendar is the library's.
fn rfc3339(text: &[u8]) -> Option<Timestamp> {
    let (stem, rest) = text.split_first_chunk::<19>()?;
    let [date @ .., _, _, _, _, _, _, _, _, _] = stem;
    let [y1, y2, y3, y4, b'-', m1, m2, b'-', d1, d2] = date else { return None };
    let [.., b'T' | b't', h1, h2, b':', n1, n2, b':', s1, s2] = stem else { return None };
    let year = i16::from(pair(*y1, *y2)?) * 100 + i16::from(pair(*y3, *y4)?);
    let (month, day) = (pair(*m1, *m2)?, pair(*d1, *d2)?);
    let (hour, minute, second) = (pair(*h1, *h2)?, pair(*n1, *n2)?, pair(*s1, *s2)?);
    let second = if second == 60 { 59 } else { second };
    let moment = DateTime::new(year, month, day, hour, minute, second, 0).ok()?;
    let (millis, zone) = match rest.strip_prefix(b".") {
        None => (0, rest),
        Some(fraction) => {
            let digits = fraction.iter().take_while(|byte| byte.is_ascii_digit()).count();
            let (digits, zone) = fraction.split_at_checked(digits).filter(|(digits, _)| !digits.is_empty())?;
            let first = digits.iter().copied().chain(*b"00").take(3);
            (first.fold(0, |sum, digit| sum * 10 + i64::from(digit - b'0')), zone)
        }
    };
    let offset = match zone {
        [b'Z' | b'z'] => 0,
        [sign @ (b'+' | b'-'), h1, h2, b':', m1, m2] => {
            let (hours, minutes) = (i64::from(pair(*h1, *h2)?), i64::from(pair(*m1, *m2)?));
            let offset = (hours < 24 && minutes < 60).then_some(hours * 60 + minutes)?;
            if *sign == b'-' { -offset } else { offset }
        }
        _ => return None,
    };
    let local = i64::try_from(moment.duration_since(EPOCH).as_millis()).ok()?;
    let moment = Timestamp(local + millis - offset * 60_000);
    moment.civil().map(|_| moment)
}

fn pair(tens: u8, ones: u8) -> Option<i8> {
    let digit = |byte: u8| byte.is_ascii_digit().then(|| byte.wrapping_sub(b'0').cast_signed());
    Some(digit(tens)? * 10 + digit(ones)?)
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.civil() {
            Some(moment) => write!(f, "{moment:.3}Z"),
            None => write!(f, "+{}ms", self.0),
        }
    }
}

impl Serialize for Timestamp {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Timestamp {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        json::read_text(deserializer, |text| {
            Self::parse(text).map_err(|_text| "expected an RFC 3339 date and time such as 2026-01-18T10:30:00Z")
        })
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

    #[test]
    fn reads_rfc_3339_and_nothing_else() {
        for (good, millis) in [
            ("1970-01-01T00:00:00Z", 0),
            ("1970-01-01t00:00:00z", 0),
            ("1970-01-01T00:00:00.0019999Z", 1),
            ("1969-12-31T23:59:59.5Z", -500),
            ("1970-01-01T00:30:00-00:00", 1_800_000),
            ("1970-01-01T00:00:00+23:59", -86_340_000),
            ("2016-12-31T23:59:60Z", 1_483_228_799_000),
            ("0000-01-01T00:00:00Z", -62_167_219_200_000),
            ("9999-12-31T23:59:59.999Z", 253_402_300_799_999),
        ] {
            assert_eq!(Timestamp::parse(good).map(Timestamp::millis), Ok(millis), "{good}");
        }
        assert_eq!(Timestamp::parse("9999-12-31T23:59:59.999Z").unwrap().to_string(), "9999-12-31T23:59:59.999Z");
        assert_eq!(Timestamp::parse("0001-01-01T00:00:00Z").unwrap().to_string(), "0001-01-01T00:00:00.000Z");
        for bad in [
            "2026-01-18 10:30:00Z",
            "2026-01-18T10:30Z",
            "20260118T103000Z",
            "2026-01-18T10:30:00,5Z",
            "2026-01-18T10:30:00.Z",
            "2026-01-18T10:30:00+01",
            "2026-01-18T10:30:00+0100",
            "2026-01-18T10:30:00+24:00",
            "2026-01-18T10:30:00+01:60",
            "2026-01-18T10:30:00Z[UTC]",
            "2026-01-18T10:30:00 Z",
            " 2026-01-18T10:30:00Z",
            "2026-01-18T24:00:00Z",
            "2026-01-18T10:60:00Z",
            "2026-01-18T10:30:61Z",
            "2026-02-29T10:30:00Z",
            "+002026-01-18T10:30:00Z",
            "2026-01-1\u{0663}T10:30:00Z",
            "0000-01-01T00:00:00+00:01",
            "9999-12-31T23:59:59-00:01",
        ] {
            assert!(Timestamp::parse(bad).is_err(), "{bad}");
        }
    }
}
