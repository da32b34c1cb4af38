//! Attestations and registries at random, right and wrong ones, and what the Rust verifier says of them.

pub mod browser;
mod forms;
pub mod library;

use forms::{bend, scratch, styled};
use writ_core::json::{Object, Value, canonical, to_canonical};
use writ_core::{Digest, Timestamp};
use writ_evidence::attestation::{Draft, FOLDER, Terms, verify};
use writ_evidence::b64url;
use writ_evidence::keys::{Algorithm, SigningKey};
use writ_evidence::registry::{Change, Registry};

/// SplitMix64: the same cases on every run.
pub struct Dice(pub u64);

impl Dice {
    pub fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        usize::try_from((mixed ^ (mixed >> 31)) % limit as u64).unwrap()
    }

    pub fn one_in(&mut self, times: usize) -> bool {
        self.below(times) == 0
    }

    pub fn pick<T: Copy>(&mut self, list: &[T]) -> T {
        list[self.below(list.len())]
    }
}

/// Who signs: keys that are the same on every run.
pub struct Issuer {
    keys: Vec<SigningKey>,
}

const INSTANCES: [&str; 5] = [
    "https://writ.example",
    "https://writ.example:443",
    "http://writ.example",
    "http://127.0.0.1:8080",
    "http://[::1]",
];
const MOMENTS: [&str; 9] = [
    "2026-05-01T14:30:00Z",
    "2026-05-01T14:30:00.123456789Z",
    "2026-06-01T12:00:00Z",
    "2026-06-01T14:00:00+02:00",
    "2026-06-01t11:59:59.999z",
    "2016-12-31T23:59:60Z",
    "1969-12-31T23:59:59.5-23:59",
    "0000-01-01T00:00:00Z",
    "9999-12-31T23:59:59Z",
];
const LETTERS: [&str; 44] = [
    "0", "1", "2", "5", "6", "9", "a", "e", "f", "g", "A", "F", "Z", "T", "t", "z", ":", "+", "-", "_", ".", ",", "/",
    "[", "]", "@", "?", "#", "%", " ", "=", "\\", "\"", "\n", "\0", "\u{7f}", "é", "e\u{301}", "\u{2028}", "\u{fb33}",
    "😀", "\u{ffff}", "~", "!",
];
const NUMBERS: [f64; 14] = [
    0.0,
    -0.0,
    1.0,
    -1.5,
    1e21,
    1e20,
    1e-7,
    5e-324,
    f64::MAX,
    9_007_199_254_740_991.0,
    9_007_199_254_740_992.0,
    123_456_789_012_345_680_000.0,
    0.1,
    333_333_333.333_333_3,
];
const STATES: [&str; 6] = ["active", "active", "deprecated", "retired", "pending", "compromised"];

/// One verification.
pub struct Case {
    pub attestation: Vec<u8>,
    pub registry: Vec<u8>,
    pub trusted: Vec<String>,
    pub now: Timestamp,
}

impl Case {
    /// The outcome as `lines.mjs` writes it.
    pub fn outcome(&self) -> String {
        let terms = Terms { trusted: &self.trusted, now: self.now };
        match verify(&self.attestation, &self.registry, &terms) {
            Ok((attestation, state)) => format!("valid {state} {} {}", attestation.id(), attestation.digest().hex()),
            Err(failure) => failure.code.to_string(),
        }
    }
}

/// What a verifier that knows one registry does with another, as `lines.mjs` writes it.
pub fn succession(known: &[u8], fetched: &[u8]) -> String {
    let (Ok(known), Ok(fetched)) = (Registry::parse(known), Registry::parse(fetched)) else {
        return "invalid".to_owned();
    };
    match fetched.may_follow(&known) {
        Err(failure) => failure.code.to_string(),
        Ok(()) if fetched.version() == known.version() => "keep".to_owned(),
        Ok(()) => "take".to_owned(),
    }
}

/// An attestation and the registry it verifies with, as an instance would make them.
pub fn issued(instance: &str, output: &Value) -> (String, String) {
    let issuer = Issuer::new();
    let now = Timestamp::from_millis(1_780_000_000_000);
    let public = issuer.public(0);
    let registry = Registry::empty("writ", now).changed(&Change::Publish { public }, now).unwrap();
    let registry = registry.changed(&Change::Activate { id: "writ-1".to_owned() }, now).unwrap();
    let input = object([("source", Value::from("shell"))]);
    let mut draft = Draft::new(&input, output, "writ:consequence:0.1.0", now.to_string());
    draft.nonce = Some(7);
    let pending = draft.pend("writ-1", instance);
    let signature = issuer.keys[0].sign(pending.payload().as_bytes()).unwrap();
    (pending.signed(&signature.try_into().unwrap()), to_canonical(&registry))
}

pub fn object<const N: usize>(members: [(&str, Value); N]) -> Value {
    Value::Object(members.into_iter().map(|(name, value)| (name.to_owned(), value)).collect())
}

impl Issuer {
    pub fn new() -> Self {
        use base64::Engine as _;
        let key = |seed: u8| {
            let der =
                [b"\x30\x2e\x02\x01\x00\x30\x05\x06\x03\x2b\x65\x70\x04\x22\x04\x20".as_slice(), &[seed; 32]].concat();
            let body = base64::engine::general_purpose::STANDARD.encode(der);
            SigningKey::from_pem(&format!("-----BEGIN PRIVATE KEY-----\n{body}\n-----END PRIVATE KEY-----\n")).unwrap()
        };
        let keys: Vec<SigningKey> = (1..=5).map(key).collect();
        assert_eq!(keys[0].public().algorithm(), Algorithm::Ed25519);
        Self { keys }
    }

    pub fn public(&self, index: usize) -> [u8; 32] {
        self.keys[index].public().raw().try_into().unwrap()
    }

    pub fn case(&self, dice: &mut Dice) -> Case {
        let signer = dice.below(4);
        let registry = self.registry(dice);
        let mut members = content(dice, signer);
        let (mut early, late, raw) = (dice.one_in(4), dice.one_in(8), dice.one_in(10));
        if early && dice.one_in(2) {
            bend(dice, &mut members);
            early = false;
        }
        let five = ["input", "output", "evaluator", "timestamp", "key_id"];
        let five = members.iter().filter(|(name, _)| five.contains(&name.as_str())).cloned().collect::<Object>();
        let id = Digest::of(canonical(&Value::Object(five)).as_bytes()).hex();
        let uri = format!("{}{FOLDER}{}.json", dice.pick(&INSTANCES), id.get(..32).unwrap());
        members.push(("attestation_uri".to_owned(), Value::from(uri)));
        if early {
            bend(dice, &mut members);
        }
        members.retain(|(name, _)| name != "signature");
        let payload = canonical(&Value::Object(members.iter().cloned().collect()));
        let signature = self.keys[signer].sign(payload.as_bytes()).unwrap();
        members.push(("signature".to_owned(), Value::from(b64url::encode(&signature))));
        if late {
            bend(dice, &mut members);
        }
        let mut attestation = styled(dice, &Value::Object(members.into_iter().collect())).into_bytes();
        if raw {
            scratch(dice, &mut attestation);
        }
        let trusted = match dice.below(10) {
            0 => vec![dice.pick(&INSTANCES).to_owned()],
            1 => INSTANCES.iter().take(3).map(|&entry| entry.to_owned()).collect(),
            _ => Vec::new(),
        };
        let now = Timestamp::parse("2026-06-01T12:00:00Z").unwrap().millis() - 1;
        let now = Timestamp::from_millis(now + i64::try_from(dice.below(3)).unwrap());
        Case { attestation, registry, trusted, now }
    }

    /// A registry's document, most often a right one.
    pub fn registry(&self, dice: &mut Dice) -> Vec<u8> {
        let mut members = self.registry_members(dice);
        if dice.one_in(12) {
            bend(dice, &mut members);
        }
        let mut text = styled(dice, &Value::Object(members.into_iter().collect())).into_bytes();
        if dice.one_in(16) {
            scratch(dice, &mut text);
        }
        text
    }

    /// A registry and one that is like it.
    pub fn pair(&self, dice: &mut Dice) -> (Vec<u8>, Vec<u8>) {
        let known = self.registry_members(dice);
        let mut fetched = known.clone();
        for (name, value) in &mut fetched {
            match value {
                Value::Number(version) if name == "registry_version" => {
                    *version += dice.pick(&[-1.0, 0.0, 0.0, 1.0, 1.0, 7.0])
                }
                Value::Array(keys) if !keys.is_empty() && dice.one_in(2) => match dice.below(4) {
                    0 => drop(keys.pop()),
                    1 => {
                        // A new key, or the last one under a new id.
                        let key = if dice.one_in(4) { keys.pop().map_or(4, |_last| keys.len()) } else { 4 };
                        keys.push(self.entry(dice, key, "writ-5", "pending"));
                    }
                    _ => {
                        let at = dice.below(keys.len());
                        let name = format!("writ-{}", at + 1);
                        let key = if dice.one_in(4) { dice.below(4) } else { at };
                        let state = dice.pick(&["deprecated", "retired", "pending", "compromised"]);
                        keys[at] = self.entry(dice, key, &name, state);
                    }
                },
                _ => {}
            }
        }
        if dice.one_in(16) {
            bend(dice, &mut fetched);
        }
        let text = |dice: &mut Dice, members: Vec<(String, Value)>| {
            styled(dice, &Value::Object(members.into_iter().collect())).into_bytes()
        };
        (text(dice, known), text(dice, fetched))
    }

    /// A registry with so many keys.
    pub fn many(&self, count: usize) -> Vec<u8> {
        let mut members = self.registry_members(&mut Dice(0));
        let keys = (0..count).map(|at| {
            let mut public = [0x11; 32];
            public[..8].copy_from_slice(&(at as u64).to_le_bytes());
            named(&mut Dice(0), &public, &format!("writ-{at}"), "pending")
        });
        let keys = keys.collect();
        members[1].1 = Value::Array(keys);
        canonical(&Value::Object(members.into_iter().collect())).into_bytes()
    }

    fn registry_members(&self, dice: &mut Dice) -> Vec<(String, Value)> {
        let mut active = false;
        let count = if dice.one_in(4) { 1 + dice.below(4) } else { 4 };
        let keys = (0..count).map(|index| {
            let state = match dice.pick(&STATES) {
                "active" if active && !dice.one_in(20) => "deprecated",
                state => state,
            };
            active |= state == "active";
            // Now and then an id that names another key than the signer's.
            let key = if dice.one_in(16) { dice.below(4) } else { index };
            self.entry(dice, key, &format!("writ-{}", index + 1), state)
        });
        let keys: Vec<Value> = keys.collect();
        let mut members = vec![
            ("instance_id".to_owned(), Value::from("writ")),
            ("keys".to_owned(), Value::Array(keys)),
            ("registry_version".to_owned(), Value::Number(dice.pick(&[1.0, 2.0, 3.0, 9_007_199_254_740_991.0]))),
            ("updated_at".to_owned(), Value::from(dice.pick(&MOMENTS))),
        ];
        if dice.one_in(8) {
            members.push(("note".to_owned(), value(dice, 2)));
        }
        members
    }

    fn entry(&self, dice: &mut Dice, key: usize, name: &str, state: &str) -> Value {
        named(dice, &self.public(key), name, state)
    }
}

fn named(dice: &mut Dice, public: &[u8; 32], name: &str, state: &str) -> Value {
    let mut members = vec![
        ("key_id".to_owned(), Value::from(name)),
        ("algorithm".to_owned(), Value::from("Ed25519")),
        ("public_key".to_owned(), Value::from(b64url::encode(public))),
        ("state".to_owned(), Value::from(state)),
    ];
    let over = matches!(state, "deprecated" | "retired");
    if over || state == "active" || dice.one_in(4) {
        members.push(("valid_from".to_owned(), Value::from(dice.pick(&MOMENTS))));
    }
    if over || dice.one_in(8) {
        members.push(("deprecated_at".to_owned(), Value::from(dice.pick(&MOMENTS))));
    }
    if dice.one_in(3) {
        let end = if state == "active" && dice.one_in(2) { Value::Null } else { Value::from(dice.pick(&MOMENTS)) };
        members.push(("valid_until".to_owned(), end));
    }
    Value::Object(members.into_iter().collect())
}

fn content(dice: &mut Dice, signer: usize) -> Vec<(String, Value)> {
    let evaluator = if dice.one_in(8) { wrapped(dice) } else { Value::from("writ:consequence:0.1.0") };
    // Now and then the key of another, or one that nobody has.
    let key = if dice.one_in(12) { dice.below(6) } else { signer } + 1;
    let mut members = vec![
        ("input".to_owned(), wrapped(dice)),
        ("output".to_owned(), wrapped(dice)),
        ("evaluator".to_owned(), evaluator),
        ("timestamp".to_owned(), Value::from(dice.pick(&MOMENTS))),
        ("key_id".to_owned(), Value::from(format!("writ-{key}"))),
    ];
    let optional = [
        ("version", "recourse.attestation.v1"),
        ("nonce", "000102030405060708090a0b0c0d0e0f"),
        ("chain_id", "chain"),
        ("parent_attestation", "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"),
    ];
    for (name, value) in optional {
        if dice.one_in(4) {
            members.push((name.to_owned(), Value::from(value)));
        }
    }
    if dice.one_in(3) {
        members.push(("expires_at".to_owned(), Value::from(dice.pick(&MOMENTS))));
    }
    if dice.one_in(4) {
        let name = dice.pick(&["note", "__proto__", "", "😀", "\u{fb33}", "Signature"]);
        members.push((name.to_owned(), value(dice, 2)));
    }
    members
}

fn wrapped(dice: &mut Dice) -> Value {
    let members = (0..dice.below(5)).map(|index| (format!("{}{index}", text(dice)), value(dice, 3)));
    Value::Object(members.collect())
}

fn text(dice: &mut Dice) -> String {
    (0..dice.below(6)).map(|_| dice.pick(&LETTERS)).collect()
}

fn value(dice: &mut Dice, depth: usize) -> Value {
    match dice.below(if depth == 0 { 5 } else { 7 }) {
        0 => Value::Null,
        1 => Value::Bool(dice.one_in(2)),
        2 => Value::Number(dice.pick(&NUMBERS)),
        3 => Value::Number(f64::from_bits((dice.below(usize::MAX) as u64) & 0xBFFF_FFFF_FFFF_FFFF)),
        4 => Value::String(text(dice)),
        5 => Value::Array((0..dice.below(4)).map(|_| value(dice, depth - 1)).collect()),
        _ => Value::Object(
            (0..dice.below(4)).map(|index| (format!("{}{index}", text(dice)), value(dice, depth - 1))).collect(),
        ),
    }
}
