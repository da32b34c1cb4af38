//! Numbers in canonical JSON are written as ECMAScript writes them (RFC 8785 §3.2.2.3): a million doubles, and the table of
//! RFC 8785 appendix B, compared with what Node prints. Node is required; without it this fails.

#![expect(clippy::unwrap_used, reason = "a test, also where it makes its numbers")]

use std::io::{BufRead, BufReader, BufWriter, Write};
use std::process::{Command, Stdio};
use std::thread;

use writ_core::json::{Value, canonical};

const COUNT: usize = 1_000_000;

/// Reads little-endian doubles, prints one number a line.
const ORACLE: &str = r#"
let rest = Buffer.alloc(0);
process.stdin.on("data", (chunk) => {
  rest = Buffer.concat([rest, chunk]);
  const whole = rest.length - (rest.length % 8);
  let text = "";
  for (let at = 0; at < whole; at += 8) text += JSON.stringify(rest.readDoubleLE(at)) + "\n";
  rest = rest.subarray(whole);
  process.stdout.write(text);
});
"#;

/// RFC 8785, appendix B, without its two rows that are errors (NaN and Infinity).
const TABLE: [(u64, &str); 24] = [
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
];

/// xorshift64*: the same doubles on every run.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }

    /// Any bit pattern, an integer, a short decimal, or a neighbour of a power of ten or two: where shortest forms and the
    /// changes between notations are hard.
    fn double(&mut self) -> f64 {
        let number = match self.below(5) {
            0 | 1 => f64::from_bits(self.next()),
            2 => {
                let shift = self.below(64);
                (self.next() as i64 >> shift) as f64
            }
            3 => {
                let exponent = self.below(45) as i64 - 25;
                format!("{}e{exponent}", self.below(1_000_000)).parse().unwrap()
            }
            _ => self.near_power(),
        };
        if number.is_finite() { number } else { self.double() }
    }

    fn near_power(&mut self) -> f64 {
        let power: f64 = if self.below(2) == 0 {
            format!("1e{}", self.below(632) as i64 - 323).parse().unwrap()
        } else {
            2f64.powi(self.below(2098) as i32 - 1074)
        };
        let step = self.below(5) as i64 - 2;
        let sign = self.below(2) << 63;
        f64::from_bits(power.to_bits().saturating_add_signed(step) | sign)
    }
}

fn doubles() -> impl Iterator<Item = f64> {
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    let table = TABLE.into_iter().map(|(bits, _)| f64::from_bits(bits));
    table.chain(std::iter::from_fn(move || Some(random.double())).take(COUNT))
}

#[test]
fn the_table_of_the_rfc() {
    for (bits, text) in TABLE {
        assert_eq!(canonical(&Value::Number(f64::from_bits(bits))), text, "{bits:016x}");
    }
}

#[test]
fn a_million_doubles_as_node_writes_them() {
    let mut node = Command::new("node")
        .args(["-e", ORACLE])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("this test compares with Node: install `nodejs`");
    let mut input = BufWriter::new(node.stdin.take().unwrap());
    // On a thread of its own: with both pipes full, one thread would wait for ever.
    let writer = thread::spawn(move || {
        for number in doubles() {
            input.write_all(&number.to_le_bytes()).unwrap();
        }
        input.flush().unwrap();
    });
    let mut lines = BufReader::new(node.stdout.take().unwrap()).lines();
    let mut compared = 0;
    for number in doubles() {
        let theirs = lines.next().unwrap_or_else(|| panic!("Node stopped after {compared} numbers")).unwrap();
        assert_eq!(canonical(&Value::Number(number)), theirs, "{:016x}", number.to_bits());
        compared += 1;
    }
    assert!(lines.next().is_none(), "Node wrote more numbers than it was given");
    writer.join().unwrap();
    assert!(node.wait().unwrap().success());
    assert_eq!(compared, COUNT + TABLE.len());
}
