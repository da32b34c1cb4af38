//! What is relayed is what came: byte for byte, in both directions.

use std::fmt::Write as _;
use std::fs;

use serde_json::json;

use crate::place::Place;

/// Numbers that are the same on every run.
struct Random(u64);

impl Random {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap() % end
    }

    fn space(&mut self) -> &'static str {
        ["", "", " ", "\t", "  ", " \t "][self.below(6)]
    }

    /// A JSON value as nobody's library writes it.
    fn value(&mut self, depth: usize) -> String {
        let atoms = [
            "1E+2",
            "-0",
            "0.10",
            "1e-7",
            "123456789012345678901234567890",
            "1.0000000000000000001",
            "null",
            "true",
            r#""\u00e9é\/ \ud83d\ude00 😀""#,
            r#""\u0000\b\f""#,
            "\"\u{2028}\u{7f}\u{feff}\"",
            r#""""#,
            "-1.5e300",
            "[]",
            "{}",
        ];
        match self.below(if depth > 4 { 3 } else { 5 }) {
            3 => {
                let items: Vec<String> = (0..self.below(4)).map(|_| self.padded(depth)).collect();
                format!("[{}]", items.join(","))
            }
            4 => self.object(depth, &[]),
            _ => atoms[self.below(atoms.len())].to_owned(),
        }
    }

    fn padded(&mut self, depth: usize) -> String {
        format!("{}{}{}", self.space(), self.value(depth + 1), self.space())
    }

    /// An object with these members among others, in any order.
    fn object(&mut self, depth: usize, wanted: &[(&str, String)]) -> String {
        let mut members: Vec<String> =
            wanted.iter().map(|(name, value)| format!("{}\"{name}\"{}:{value}", self.space(), self.space())).collect();
        for number in 0..self.below(4) {
            members.push(format!("{}\"z\\u0062{number}é\"{}:{}", self.space(), self.space(), self.padded(depth)));
        }
        for at in (1..members.len()).rev() {
            members.swap(at, self.below(at + 1));
        }
        format!("{{{}{}}}", members.join(","), self.space())
    }

    fn message(&mut self, number: usize, calls: bool) -> String {
        let text = |text: &str| format!("\"{text}\"");
        let version = ("jsonrpc", text("2.0"));
        let wanted = if calls && number.is_multiple_of(2) {
            let arguments = self.object(1, &[]);
            let params = self.object(0, &[("name", text("tool")), ("arguments", arguments)]);
            vec![version, ("id", number.to_string()), ("method", text("tools/call")), ("params", params)]
        } else {
            let params = self.object(0, &[]);
            vec![version, ("method", text("notifications/x")), ("params", params)]
        };
        format!("{}{}{}", self.space(), self.object(0, &wanted), self.space())
    }
}

#[test]
fn lines_go_on_as_they_came() {
    // A policy that judges, and forbids nothing that is said here.
    let place = Place::new("bytes", &json!({ "version": "1.0", "name": "p", "files": { "deny": ["secrets/**"] } }));
    let mut random = Random(14);
    let (mut to, mut from) = (String::new(), String::new());
    for number in 0..400 {
        writeln!(to, "{}", random.message(number, true)).unwrap();
        writeln!(from, "{}", random.message(number, false)).unwrap();
    }
    fs::write(place.folder.join("from"), &from).unwrap();
    let line = format!("cat '{0}/from'; cat > '{0}/to'", place.folder.display());
    let mut client = place.proxy(&["--name", "s", "--", "sh", "-c", &line]);
    let mut got = String::new();
    for _ in 0..400 {
        got.push_str(&client.line());
    }
    assert_eq!(got, from);
    let input = client.input.as_mut().unwrap();
    std::io::Write::write_all(input, to.as_bytes()).unwrap();
    assert_eq!(client.end(), Some(0));
    let got = fs::read_to_string(place.folder.join("to")).unwrap();
    let (got, to): (Vec<&str>, Vec<&str>) = (got.lines().collect(), to.lines().collect());
    assert_eq!(got.len(), to.len());
    for (got, sent) in got.iter().zip(&to) {
        assert_eq!(got, sent);
    }
    assert_eq!(place.rows().iter().filter(|(decision, _)| decision == "APPROVED").count(), 200);
}
