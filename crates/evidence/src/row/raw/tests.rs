use super::*;
use crate::row::{Draft, Row, RowDecision};
use proptest::prelude::*;
use writ_core::Timestamp;
use writ_core::json::{Object, Value};

fn line(text: &str, number: f64) -> String {
    let mut inner = Object::new();
    inner.push(text, Value::Number(number));
    inner.push(format!("{text}z"), Value::Array(vec![Value::from(text), Value::Bool(true)]));
    let draft = Draft {
        timestamp: Timestamp::from_millis(1),
        call_id: Some(text.to_owned()),
        tool_name: None,
        decision: RowDecision::Denied,
        denial_reason: Some(text.to_owned()),
        result_hash: Some(Digest::of(b"r")),
        detail: Value::Object(inner),
    };
    Row::seal(None, draft).unwrap().to_line()
}

proptest! {
    #[test]
    fn scans_what_rows_write(text in ".{0,12}", number in -9.0e15..9.0e15f64) {
        let line = line(&text, number);
        let row = RawRow::scan(line.as_bytes()).unwrap();
        prop_assert!(row.is_sealed(&mut Vec::new()));
    }

    #[test]
    fn finds_the_end_of_plain_text(text in "[ -~é\\n\\t\u{7f}\"\\\\]{0,40}") {
        let special = |byte: u8| byte == b'"' || byte == b'\\' || byte < 0x20;
        let expected = text.bytes().position(special).unwrap_or(text.len());
        prop_assert_eq!(plain_text(text.as_bytes()), expected);
    }

    /// The oracle: parse, write canonically, compare.
    #[test]
    fn takes_exactly_canonical_values(value in r#"[\[\]{}a-c0-3:,."\\eE+\-n]{1,12}|\{"[a-c]":[0-9.e+\-]{1,6},"[a-c]":(null|true|"[a-b\\]{0,3}")\}"#) {
        let parsed = json::parse(value.as_bytes());
        let expected = parsed.is_ok_and(|parsed| json::canonical(&parsed) == value);
        let mut scan = Scan { line: value.as_bytes(), at: 0 };
        let taken = scan.value(0).is_some() && scan.at == value.len();
        prop_assert_eq!(taken, expected);
    }

    #[test]
    fn agrees_with_the_parser_on_changed_lines(text in "[a-z\\\\\"é\n]{0,6}", at in 0usize..300, byte in any::<u8>()) {
        let mut bent = line(&text, 2.5).into_bytes();
        let at = at % bent.len();
        prop_assume!(bent[at] != byte);
        bent[at] = byte;
        let scanned = RawRow::scan(&bent).is_some_and(|row| row.is_sealed(&mut Vec::new()));
        prop_assert!(!scanned && Row::parse(&bent).is_err());
    }
}

/// The seal, computed the long way from R40's words.
#[test]
fn seals_the_array_of_the_ruling() {
    let text = line("é\"\n", 2.5);
    let row = Row::parse(text.as_bytes()).unwrap();
    let detail = Digest::of(json::canonical(&row.detail).as_bytes());
    let array = Value::Array(vec![
        Value::from(row.prev_hash.hex()),
        Value::from(row.sequence),
        Value::from(row.call_id.as_deref()),
        Value::from(row.tool_name.as_deref()),
        Value::from(row.decision.as_str()),
        Value::from(row.denial_reason.as_deref()),
        Value::from(row.result_hash.map(|digest| digest.hex())),
        Value::from(row.timestamp.to_string()),
        Value::from(detail.hex()),
    ]);
    assert_eq!(row.entry_hash, Digest::of(json::canonical(&array).as_bytes()));
}

#[test]
fn refuses_words_and_days_that_are_none() {
    let line = line("a", 1.0);
    for (from, to) in [
        ("DENIED", "denied"),
        ("DENIED", "REFUSED"),
        ("1970-01-01", "1970-02-29"),
        ("1970-01-01", "1970-13-01"),
        ("1970-01-01", "1970-00-01"),
        ("T00:00", "T24:00"),
        ("00:00.001Z", "00:60.001Z"),
        (".001Z", ".001z"),
        ("\"resultHash\":\"", "\"resultHash\":\"x"),
        ("\"sequence\":0", "\"sequence\":00"),
        ("\"sequence\":0", "\"sequence\":-0"),
    ] {
        let other = line.replacen(from, to, 1);
        assert!(other != line && RawRow::scan(other.as_bytes()).is_none(), "{other}");
    }
    let leap = line.replacen("1970-01-01", "1972-02-29", 1);
    assert!(RawRow::scan(leap.as_bytes()).is_some());
}

#[test]
fn refuses_other_spellings() {
    let line = line("a", 1.0);
    for (from, to) in [("\"a\"", "\"\\u0061\""), (":1,", ":1.0,"), (":1,", ":1e0,"), ("{\"a\"", "{ \"a\"")] {
        let other = line.replacen(from, to, 1);
        assert!(
            other != line && RawRow::scan(other.as_bytes()).is_none_or(|row| !row.is_sealed(&mut Vec::new())),
            "{other}"
        );
    }
}
