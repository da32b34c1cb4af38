//! Writers: canonical (RFC 8785), compact and indented.

use serde::Serialize;

use super::to_value::to_value;
use super::value::{Object, Value};

/// The canonical form of RFC 8785: members sorted by the UTF-16 code units of their names, ECMAScript numbers, the
/// shortest escapes, no white space.
pub fn canonical(value: &Value) -> String {
    let mut out = String::new();
    write(value, Style::Canonical, 0, &mut out);
    out
}

/// The canonical form of `format`'s document.
pub fn to_canonical<T: Serialize + ?Sized>(format: &T) -> String {
    canonical(&to_value(format))
}

/// `format`'s document, its members in the order of its fields, no white space.
pub fn to_compact<T: Serialize + ?Sized>(format: &T) -> String {
    compact(&to_value(format))
}

/// Members in the order they came, no white space.
pub fn compact(value: &Value) -> String {
    let mut out = String::new();
    write(value, Style::Compact, 0, &mut out);
    out
}

/// Members in the order they came, two spaces an indent.
pub fn pretty(value: &Value) -> String {
    let mut out = String::new();
    write(value, Style::Pretty, 0, &mut out);
    out
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Style {
    Canonical,
    Compact,
    Pretty,
}

fn write(value: &Value, style: Style, depth: usize, out: &mut String) {
    match value {
        Value::Null => out.push_str("null"),
        Value::Bool(true) => out.push_str("true"),
        Value::Bool(false) => out.push_str("false"),
        Value::Number(number) => out.push_str(ryu_js::Buffer::new().format(*number)),
        Value::String(text) => write_string(text, out),
        Value::Array(items) => {
            let items = items.iter().map(|item| (None, item));
            write_items(('[', ']'), items, style, depth, out);
        }
        Value::Object(object) if style == Style::Canonical => write_sorted(object, out),
        Value::Object(object) => {
            let members = object.iter().map(|(name, member)| (Some(name), member));
            write_items(('{', '}'), members, style, depth, out);
        }
    }
}

fn write_items<'a>(
    (open, close): (char, char),
    items: impl ExactSizeIterator<Item = (Option<&'a str>, &'a Value)>,
    style: Style,
    depth: usize,
    out: &mut String,
) {
    out.push(open);
    let filled = items.len() > 0;
    for (index, (name, item)) in items.enumerate() {
        if index > 0 {
            out.push(',');
        }
        if style == Style::Pretty {
            new_line(depth + 1, out);
        }
        if let Some(name) = name {
            write_string(name, out);
            out.push_str(if style == Style::Pretty { ": " } else { ":" });
        }
        write(item, style, depth + 1, out);
    }
    if filled && style == Style::Pretty {
        new_line(depth, out);
    }
    out.push(close);
}

fn write_sorted(object: &Object, out: &mut String) {
    let mut members: Vec<(&str, &Value)> = object.iter().collect();
    members.sort_by(|(a, _), (b, _)| utf16_order(a, b));
    let members = members.into_iter().map(|(name, member)| (Some(name), member));
    write_items(('{', '}'), members, Style::Canonical, 0, out);
}

/// UTF-8 order differs from UTF-16 order only where a name holds characters beyond the basic plane.
fn utf16_order(a: &str, b: &str) -> std::cmp::Ordering {
    if a.is_ascii() && b.is_ascii() { a.cmp(b) } else { a.encode_utf16().cmp(b.encode_utf16()) }
}

fn new_line(depth: usize, out: &mut String) {
    out.push('\n');
    for _ in 0..depth {
        out.push_str("  ");
    }
}

/// Writes `text` as a JSON string with the escapes of RFC 8785 §3.2.2.2.
pub fn write_string(text: &str, out: &mut String) {
    out.push('"');
    let mut rest = text;
    while let Some(at) = rest.bytes().position(|byte| byte < 0x20 || byte == b'"' || byte == b'\\') {
        let (plain, tail) = rest.split_at(at);
        out.push_str(plain);
        let mut chars = tail.chars();
        match chars.next() {
            Some('"') => out.push_str("\\\""),
            Some('\\') => out.push_str("\\\\"),
            Some('\u{8}') => out.push_str("\\b"),
            Some('\t') => out.push_str("\\t"),
            Some('\n') => out.push_str("\\n"),
            Some('\u{c}') => out.push_str("\\f"),
            Some('\r') => out.push_str("\\r"),
            Some(other) => out.push_str(&format!("\\u{:04x}", u32::from(other))),
            None => {}
        }
        rest = chars.as_str();
    }
    out.push_str(rest);
    out.push('"');
}

#[cfg(test)]
mod tests {
    use super::super::{Limits, parse, parse_with};
    use super::*;

    /// RFC 8785, section 3.2.2 and 3.2.3: the worked examples.
    #[test]
    fn rfc_examples() {
        let numbers = r#"{"numbers":[333333333.33333329,1E30,4.50,2e-3,0.000000000000000000000000001],
            "string":"\u20ac$\u000F\u000aA'\u0042\u0022\u005c\\\"\/","literals":[null,true,false]}"#;
        let value = parse_with(numbers.as_bytes(), Limits::FOREIGN).unwrap();
        assert_eq!(
            canonical(&value),
            "{\"literals\":[null,true,false],\"numbers\":[333333333.3333333,1e+30,4.5,0.002,1e-27],\
             \"string\":\"€$\\u000f\\nA'B\\\"\\\\\\\\\\\"/\"}"
        );
        let order = r#"{"\u20ac":"Euro Sign","\r":"Carriage Return","\ufb33":"Hebrew Letter Dalet With Dagesh",
            "1":"One","\ud83d\ude00":"Emoji: Grinning Face","\u0080":"Control","\u00f6":"Latin Small Letter O With Diaeresis"}"#;
        let written = canonical(&parse(order.as_bytes()).unwrap());
        let places: Vec<usize> = ["Carriage", "One", "Control", "Latin", "Euro", "Emoji", "Hebrew"]
            .iter()
            .map(|n| written.find(n).unwrap())
            .collect();
        assert!(places.is_sorted(), "{written}");
    }

    /// RFC 8785, appendix B: IEEE 754 bits and their text.
    #[test]
    fn rfc_number_table() {
        for (bits, text) in [
            (0x0000_0000_0000_0000, "0"),
            (0x8000_0000_0000_0000, "0"),
            (0x0000_0000_0000_0001, "5e-324"),
            (0x8000_0000_0000_0001, "-5e-324"),
            (0x7fef_ffff_ffff_ffff, "1.7976931348623157e+308"),
            (0xffef_ffff_ffff_ffff, "-1.7976931348623157e+308"),
            (0x4340_0000_0000_0000, "9007199254740992"),
            (0xc340_0000_0000_0000, "-9007199254740992"),
            (0x4430_0000_0000_0000, "295147905179352830000"),
            (0x44b5_2d02_c7e1_4af5, "9.999999999999997e+22"),
            (0x44b5_2d02_c7e1_4af6, "1e+23"),
            (0x44b5_2d02_c7e1_4af7, "1.0000000000000001e+23"),
            (0x444b_1ae4_d6e2_ef4e, "999999999999999700000"),
            (0x444b_1ae4_d6e2_ef4f, "999999999999999900000"),
            (0x444b_1ae4_d6e2_ef50, "1e+21"),
            (0x3eb0_c6f7_a0b5_ed8c, "9.999999999999997e-7"),
            (0x3eb0_c6f7_a0b5_ed8d, "0.000001"),
            (0x41b3_de43_5555_5553, "333333333.3333332"),
            (0x41b3_de43_5555_5554, "333333333.33333325"),
            (0x41b3_de43_5555_5555, "333333333.3333333"),
            (0x41b3_de43_5555_5556, "333333333.3333334"),
            (0x41b3_de43_5555_5557, "333333333.33333343"),
            (0xbecb_f647_612f_3696, "-0.0000033333333333333333"),
            (0x4314_3ff3_c1cb_0959, "1424953923781206.2"),
        ] {
            assert_eq!(canonical(&Value::Number(f64::from_bits(bits))), text, "{bits:016x}");
        }
    }

    #[test]
    fn writers_agree_on_content() {
        let value = parse(br#"{"b":[1,{}],"a":"x\u0001"}"#).unwrap();
        assert_eq!(compact(&value), "{\"b\":[1,{}],\"a\":\"x\\u0001\"}");
        assert_eq!(parse(pretty(&value).as_bytes()).unwrap(), value);
    }

    proptest::proptest! {
        #[test]
        fn canonical_form_is_a_fixed_point(text in ".{0,40}", number in proptest::num::f64::NORMAL) {
            let value = Value::Array(vec![Value::String(text), Value::Number(number)]);
            let once = canonical(&value);
            let again = canonical(&parse_with(once.as_bytes(), Limits::FOREIGN).unwrap());
            proptest::prop_assert_eq!(once, again);
        }
    }
}
