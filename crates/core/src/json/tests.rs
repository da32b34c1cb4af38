//! The parser and the data format: what is written is read, what the parser refuses is refused, errors name the place.

use std::collections::BTreeMap;

use proptest::prelude::{Strategy, any, prop_oneof};
use serde::{Deserialize, Serialize, de};

use super::{
    FormatError, JsonError, Limits, Object, Value, canonical, compact, from_slice, from_slice_with, from_value, parse,
    parse_with, to_canonical, to_value, word,
};
use crate::{Digest, Timestamp};

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Format {
    count: u64,
    below: i32,
    share: f64,
    is_on: bool,
    name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    alias: Option<char>,
    kinds: Vec<Kind>,
    pair: (u8, String),
    byname: BTreeMap<String, Option<u32>>,
    any: Value,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Kind {
    NothingInIt,
    One(String),
    Two(u8, u8),
    Named { deep: Box<Option<Kind>> },
}

fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        proptest::strategy::Just(Value::Null),
        any::<bool>().prop_map(Value::Bool),
        (-1e15..1e15).prop_map(|number: f64| Value::Number(number.round())),
        proptest::num::f64::NORMAL.prop_map(Value::Number),
        any::<String>().prop_map(Value::String),
    ];
    leaf.prop_recursive(4, 24, 5, |inner| {
        let members = proptest::collection::btree_map(any::<String>(), inner.clone(), 0..5);
        prop_oneof![
            proptest::collection::vec(inner, 0..5).prop_map(Value::Array),
            members.prop_map(|members| Value::Object(members.into_iter().collect::<Object>())),
        ]
    })
}

fn kind() -> impl Strategy<Value = Kind> {
    let leaf = prop_oneof![
        proptest::strategy::Just(Kind::NothingInIt),
        any::<String>().prop_map(Kind::One),
        any::<(u8, u8)>().prop_map(|(a, b)| Kind::Two(a, b)),
    ];
    leaf.prop_recursive(4, 8, 1, |inner| {
        proptest::option::of(inner).prop_map(|deep| Kind::Named { deep: Box::new(deep) })
    })
}

fn format() -> impl Strategy<Value = Format> {
    let numbers = (0..1_u64 << 53, any::<i32>(), proptest::num::f64::NORMAL, any::<bool>(), any::<(u8, String)>());
    let texts = (any::<String>(), any::<Option<char>>(), proptest::collection::vec(kind(), 0..4));
    let byname = proptest::collection::btree_map(any::<String>(), any::<Option<u32>>(), 0..20);
    (numbers, texts, byname, value()).prop_map(
        |((count, below, share, is_on, pair), (name, alias, kinds), byname, any)| Format {
            count,
            below,
            share,
            is_on,
            name,
            alias,
            kinds,
            pair,
            byname,
            any,
        },
    )
}

proptest::proptest! {
    /// What is written is read, from bytes and from a value, and is written the same again.
    #[test]
    fn what_is_written_is_read(format in format()) {
        let written = compact(&to_value(&format));
        let value = parse_with(written.as_bytes(), Limits::FOREIGN).unwrap();
        let read: Format = from_slice_with(written.as_bytes(), Limits::FOREIGN).unwrap();
        proptest::prop_assert_eq!(&read, &format);
        proptest::prop_assert_eq!(from_value::<Format>(&value).unwrap(), format);
        proptest::prop_assert_eq!(to_canonical(&read), canonical(&value));
    }

    /// What the parser takes and refuses, a format takes and refuses, in what it reads and in what it skips.
    #[test]
    fn a_format_is_as_strict_as_the_parser(text in r#"(\[|\{|"[ab]":|[1-9.-]|true|null|"a"|,|\]|\}| ){0,12}"#) {
        let parsed = parse_with(text.as_bytes(), Limits::OURS);
        proptest::prop_assert_eq!(from_slice::<Value>(text.as_bytes()), parsed.clone().map_err(FormatError::Json));
        let skipped = from_slice::<de::IgnoredAny>(text.as_bytes()).map(drop);
        proptest::prop_assert_eq!(skipped, parsed.map(drop).map_err(FormatError::Json));
    }
}

#[test]
fn errors_name_the_place() {
    let told = |text: &str| from_slice::<Vec<Format>>(text.as_bytes()).unwrap_err().to_string();
    assert_eq!(told("[{\n  \"count\": -1}]"), "`/0/count`: expected u64, found -1 (line 2, column 12)");
    assert_eq!(told("[{\"a/b\":0}]").split(',').next(), Some("`/0/a~1b`: unknown member `a/b`"));
    assert_eq!(told("[{}]"), "`/0`: missing member `count` (line 1, column 2)");
    assert_eq!(
        told("[{\"kinds\":[{\"named\":{\"deep\":7}}]}]"),
        "`/0/kinds/0/named/deep`: expected a text or an object of one member (line 1, column 29)"
    );
    assert_eq!(told("[{\"count\":null}]"), "`/0/count`: expected u64, found null (line 1, column 11)");
    assert_eq!(told("[{\"count\":0,"), "expected a member name in double quotes at byte 12");
    // Whatever a text should have been, it may be a secret.
    let place = "(line 1, column 2)";
    let one = |wrong: Option<FormatError>| wrong.map(|error| error.to_string());
    for (told, expected) in [
        (one(from_slice::<[u64; 1]>(b"[\"hunter2\"]").err()), "expected u64, found a string"),
        (one(from_slice::<[Kind; 1]>(b"[\"hunter2\"]").err()), "expected one of nothing-in-it, one, two, named"),
        (one(from_slice::<[Digest; 1]>(b"[\"hunter2\"]").err()), "expected a SHA-256 digest in lower-case hexadecimal"),
        (
            one(from_slice::<[Timestamp; 1]>(b"[\"hunter2\"]").err()),
            "expected an RFC 3339 date and time such as 2026-01-18T10:30:00Z",
        ),
    ] {
        assert_eq!(told, Some(format!("`/0`: {expected} {place}")));
    }
}

/// serde's derives read a struct from an array, too. No format of ours has two spellings.
#[test]
fn what_is_written_with_names_is_not_read_without_them() {
    #[derive(Debug, PartialEq, Deserialize)]
    struct Pair {
        a: u8,
        b: u8,
    }
    #[derive(Debug, PartialEq, Deserialize)]
    enum Either {
        Pair { a: u8, b: u8 },
        Neither,
    }
    assert_eq!(from_slice::<Either>(br#""Neither""#), Ok(Either::Neither));
    assert_eq!(from_slice::<Pair>(br#"{"a":1,"b":2}"#), Ok(Pair { a: 1, b: 2 }));
    assert_eq!(from_slice::<Either>(br#"{"Pair":{"a":1,"b":2}}"#), Ok(Either::Pair { a: 1, b: 2 }));
    for bad in ["[1,2]", r#"{"Pair":[1,2]}"#, r#"{"Neither":null}"#] {
        assert!(from_slice::<Pair>(bad.as_bytes()).is_err() && from_slice::<Either>(bad.as_bytes()).is_err(), "{bad}");
        let value = parse(bad.as_bytes()).unwrap();
        assert!(from_value::<Pair>(&value).is_err() && from_value::<Either>(&value).is_err(), "{bad}");
    }
}

#[test]
fn what_the_parser_refuses_no_format_takes() {
    let refused = |text: &str| from_slice::<BTreeMap<String, de::IgnoredAny>>(text.as_bytes()).is_err();
    for bad in ["{\"a\":1,\"a\":2}", "{\"a\":{\"b\":1,\"\\u0062\":2}}", "{\"a\":1e999}", "{} {}", "{\"a\":\"\\ud800\"}"]
    {
        assert!(refused(bad), "{bad}");
    }
    assert!(refused(&("{\"a\":".to_owned() + &"[".repeat(64) + &"]".repeat(64) + "}")));
    assert!(!refused(&("{\"a\":".to_owned() + &"[".repeat(63) + &"]".repeat(63) + "}")));
    assert!(from_slice::<(u8, u8)>(b"[1,2]").is_ok());
    assert!(from_slice::<(u8, u8)>(b"[1,2,3]").is_err());
    assert!(from_slice::<u64>(b"9007199254740992").is_err());
    assert_eq!(from_slice::<u64>(b"1.0"), Ok(1));
    assert!(from_slice::<u64>(b"1.5").is_err());
}

#[test]
fn limits_hold_whatever_the_type() {
    #[derive(Debug, Deserialize)]
    struct Nested {
        #[expect(dead_code, reason = "read to be refused")]
        a: Option<Box<Nested>>,
    }
    #[derive(Debug, Deserialize)]
    struct Flat {
        #[serde(flatten)]
        _rest: BTreeMap<String, Value>,
    }
    #[derive(Debug, Deserialize)]
    #[serde(untagged)]
    enum Any {
        Nested { _a: u8 },
        Other(de::IgnoredAny),
    }
    for text in ["{\"a\":null,\"a\":null}", "{\"a\":null,\"\\u0061\":null}", "{\"b\":0,\"a\":null,\"b\":0}"] {
        assert!(from_slice::<Nested>(text.as_bytes()).is_err(), "{text}");
        assert!(from_slice::<Flat>(text.as_bytes()).is_err(), "{text}");
        assert!(from_slice::<Any>(text.as_bytes()).is_err(), "{text}");
    }
    let deep = |levels: usize| "{\"a\":".repeat(levels) + "null" + &"}".repeat(levels);
    assert!(from_slice::<Nested>(deep(64).as_bytes()).is_ok());
    let error = from_slice::<Nested>(deep(65).as_bytes()).unwrap_err();
    assert_eq!(error, FormatError::Json(JsonError::TooDeep { at: 320, limit: 64 }));
    let error = from_slice_with::<Nested>(b"{\"a\":null}", Limits { bytes: 9, ..Limits::OURS }).unwrap_err();
    assert_eq!(error, FormatError::Json(JsonError::TooLarge { len: 10, limit: 9 }));
}

#[test]
fn words_are_what_the_derive_says() {
    assert_eq!(word(&Kind::NothingInIt), "nothing-in-it");
    assert_eq!(word(&Kind::One(String::new())), "");
}

#[test]
fn accepts_json() {
    for good in ["null", " [1, -0, 2.5e3 ] ", "{\"a\":{\"b\":[]}}", "\"\\ud83d\\ude00\"", "1e308"] {
        assert!(parse(good.as_bytes()).is_ok(), "{good}");
    }
}

#[test]
fn refuses_what_is_ambiguous() {
    let deep = "[".repeat(70) + &"]".repeat(70);
    for bad in [
        "",
        "{",
        "[1,]",
        "{\"a\":1,\"a\":2}",
        "{\"a\":1,\"\\u0061\":2}",
        "\"\\ud800\"",
        "\"\\udc00\\ud800\"",
        "NaN",
        "Infinity",
        "1e999",
        "01",
        "1.",
        "+1",
        ".5",
        "9007199254740993",
        "222002002200216E6",
        "-1e20",
        "9007199254740993.0",
        "1 2",
        "'a'",
        "\"\t\"",
        "{a:1}",
        "\u{feff}1",
        "\"\\x\"",
        "tru",
        &deep,
    ] {
        assert!(parse(bad.as_bytes()).is_err(), "{bad}");
    }
    assert!(parse(b"\"\xff\"").is_err());
    let many: String = (0..40).map(|n| format!("\"k{n}\":0,")).collect();
    assert!(parse(format!("{{{many}\"k7\":1}}").as_bytes()).is_err());
    assert!(parse(format!("{{{many}\"x\":1}}").as_bytes()).is_ok());
}

#[test]
fn foreign_documents_may_hold_large_integers() {
    assert!(parse_with(b"9007199254740993", Limits::FOREIGN).is_ok());
}

#[test]
fn signed_documents_may_hold_large_integers_in_one_form() {
    for good in ["9007199254740992", "-9007199254740994", "12345678901234567000", "1e+21"] {
        assert!(parse_with(good.as_bytes(), Limits::SIGNED).is_ok(), "{good}");
    }
    for bad in ["9007199254740993", "12345678901234567168", "1000000000000000000000"] {
        assert!(parse_with(bad.as_bytes(), Limits::SIGNED).is_err(), "{bad}");
    }
}
