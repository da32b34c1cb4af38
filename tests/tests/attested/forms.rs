//! One document in its many forms, and what goes wrong with it.

use writ_core::json::{Value, canonical};

use super::{Dice, LETTERS, value};

/// Changes one member: a letter of its text, the whole value, or its being there.
pub fn bend(dice: &mut Dice, members: &mut Vec<(String, Value)>) {
    if members.is_empty() {
        return;
    }
    let at = dice.below(members.len());
    match &mut members[at].1 {
        Value::String(text) if !dice.one_in(5) => *text = edited(dice, text),
        Value::Array(items) if !items.is_empty() && !dice.one_in(5) => {
            let item = dice.below(items.len());
            if let Value::Object(inside) = &items[item] {
                let mut inside: Vec<_> = inside.iter().map(|(name, value)| (name.to_owned(), value.clone())).collect();
                bend(dice, &mut inside);
                items[item] = Value::Object(inside.into_iter().collect());
            }
        }
        _ if dice.one_in(3) => drop(members.remove(at)),
        other => *other = value(dice, 2),
    }
}

fn edited(dice: &mut Dice, text: &str) -> String {
    let mut letters: Vec<String> = text.chars().map(String::from).collect();
    let (at, letter) = (dice.below(letters.len() + 1), dice.pick(&LETTERS).to_owned());
    match dice.below(3) {
        0 => letters.insert(at, letter),
        1 if at < letters.len() => drop(letters.remove(at)),
        _ if at < letters.len() => letters[at] = letter,
        _ => letters.push(letter),
    }
    letters.concat()
}

/// Changes bytes without a thought of what they mean.
pub fn scratch(dice: &mut Dice, bytes: &mut Vec<u8>) {
    let at = dice.below(bytes.len());
    match dice.below(5) {
        0 => bytes[at] ^= 1 << dice.below(8),
        1 => drop(bytes.remove(at)),
        2 => bytes.insert(at, dice.pick(b"\"\\{}[],:0 \xff\xed\x00\n")),
        3 => bytes.truncate(at),
        _ => {
            let end = (at + dice.below(40)).min(bytes.len());
            let copy: Vec<u8> = bytes[at..end].to_vec();
            bytes.splice(end..end, copy);
        }
    }
}

/// The same value in one of its many forms.
pub fn styled(dice: &mut Dice, value: &Value) -> String {
    match dice.below(3) {
        0 => canonical(value),
        _ => {
            let mut out = String::new();
            loose(dice, value, &mut out);
            out
        }
    }
}

fn loose(dice: &mut Dice, value: &Value, out: &mut String) {
    let space = |dice: &mut Dice, out: &mut String| out.push_str(dice.pick(&["", "", "", " ", "\n\t", "\r"]));
    space(dice, out);
    match value {
        Value::Array(items) => {
            out.push('[');
            for (index, item) in items.iter().enumerate() {
                out.push_str(if index > 0 { "," } else { "" });
                loose(dice, item, out);
            }
            out.push(']');
        }
        Value::Object(members) => {
            let mut members: Vec<_> = members.iter().collect();
            let turn = dice.below(members.len() + 1);
            members.rotate_left(turn);
            out.push('{');
            for (index, (name, member)) in members.into_iter().enumerate() {
                out.push_str(if index > 0 { "," } else { "" });
                space(dice, out);
                quoted(dice, name, out);
                space(dice, out);
                out.push(':');
                loose(dice, member, out);
            }
            out.push('}');
        }
        Value::String(text) => quoted(dice, text, out),
        Value::Number(number) if dice.one_in(3) => out.push_str(&format!("{number:e}")),
        plain => out.push_str(&canonical(plain)),
    }
    space(dice, out);
}

fn quoted(dice: &mut Dice, text: &str, out: &mut String) {
    out.push('"');
    for letter in text.chars() {
        if letter < ' ' || letter == '"' || letter == '\\' || dice.one_in(8) {
            for unit in letter.encode_utf16(&mut [0; 2]) {
                out.push_str(&if dice.one_in(2) { format!("\\u{unit:04x}") } else { format!("\\u{unit:04X}") });
            }
        } else {
            out.push(letter);
        }
    }
    out.push('"');
}
