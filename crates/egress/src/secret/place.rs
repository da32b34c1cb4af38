//! Placeholders in a request's head: put in where the rule allows it, refused everywhere else.
//!
//! Owns the walk through target and fields. Refuses a placeholder in a field that no rule names, in the path, or on its way to
//! another host. Invariant: after [`Secrets::place`] no placeholder is left in the head that is sent.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use zeroize::{Zeroize, Zeroizing};

use super::{Inject, Secret, Secrets, basic, find};
use crate::host::{HostName, any};
use crate::refusal::Refusal;

/// A request's target and fields, zeroed when dropped.
#[derive(Default)]
pub struct Fields {
    /// Path and query.
    pub target: Vec<u8>,
    /// Names, lower case, and values.
    pub fields: Vec<(String, Vec<u8>)>,
}

impl Drop for Fields {
    fn drop(&mut self) {
        self.target.zeroize();
        self.fields.iter_mut().for_each(|(_, value)| value.zeroize());
    }
}

impl Secrets {
    /// Puts values in for the placeholders of a request to `host` over TLS that was verified (`secure`): the names of those put in.
    pub fn place(&self, host: &HostName, secure: bool, head: &mut Fields) -> Result<Vec<String>, Refusal> {
        let mut used = Vec::new();
        for secret in &self.0 {
            let name = || secret.rule.name.clone();
            let bound = secure && any(&secret.rule.hosts, host);
            let mut placed = secret.place_in_target(bound, host, &mut head.target)?;
            for (field, value) in &mut head.fields {
                let allowed = bound && secret.rule.stands_in(field);
                let refused = || match bound {
                    true => Refusal::Place { secret: name(), place: "a field that no rule names" },
                    false => Refusal::Placeholder { secret: name(), host: host.to_string() },
                };
                if secret.is_in(field.as_bytes()) {
                    return Err(refused());
                }
                if let Some(credentials) = basic(value).filter(|credentials| secret.is_in(credentials)) {
                    if !allowed || field != "authorization" {
                        return Err(refused());
                    }
                    let filled = secret.fill(&credentials, &secret.value);
                    let encoded = Zeroizing::new(STANDARD.encode(&*filled));
                    value.zeroize();
                    *value = [b"Basic ", encoded.as_bytes()].concat();
                    placed = true;
                } else if secret.is_in(value) {
                    if !allowed || !find::holds(value, secret.rule.placeholder.as_bytes()) {
                        return Err(refused());
                    }
                    let filled = secret.fill(value, &secret.value);
                    value.zeroize();
                    value.extend_from_slice(&filled);
                    placed = true;
                }
            }
            used.extend(placed.then(name));
        }
        Ok(used)
    }
}

impl Secret {
    /// Whether the placeholder is in there, in any spelling.
    fn is_in(&self, bytes: &[u8]) -> bool {
        self.marks.iter().any(|mark| find::holds(bytes, mark))
    }

    /// A copy with the value for each placeholder.
    fn fill(&self, bytes: &[u8], value: &[u8]) -> Zeroizing<Vec<u8>> {
        let placeholder = self.rule.placeholder.as_bytes();
        let mut out = Zeroizing::new(Vec::with_capacity(bytes.len() + value.len() * 4));
        let mut rest = bytes;
        while let Some(start) = find::position(rest, placeholder) {
            let (before, after) = rest.split_at(start);
            out.extend_from_slice(before);
            out.extend_from_slice(value);
            rest = after.get(placeholder.len()..).unwrap_or_default();
        }
        out.extend_from_slice(rest);
        out
    }

    fn place_in_target(&self, bound: bool, host: &HostName, target: &mut Vec<u8>) -> Result<bool, Refusal> {
        if !self.is_in(target) && !self.is_in(&percent_decoded(target)) {
            return Ok(false);
        }
        let secret = self.rule.name.clone();
        if !bound {
            return Err(Refusal::Placeholder { secret, host: host.to_string() });
        }
        let query = target.iter().position(|byte| *byte == b'?').unwrap_or(target.len());
        let (path, rest) = target.split_at(query);
        let plain = find::holds(rest, self.rule.placeholder.as_bytes());
        if self.rule.inject != Inject::Query || !plain || self.is_in(&percent_decoded(path)) {
            return Err(Refusal::Place { secret, place: "the URL" });
        }
        let value = find::percent_encoded(&self.value, b"-_.~", b"0123456789ABCDEF");
        let filled = self.fill(rest, &value);
        let whole = [path, filled.as_slice()].concat();
        target.zeroize();
        *target = whole;
        Ok(true)
    }
}

fn percent_decoded(text: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((first, more)) = rest.split_first() {
        let digit = |place: usize| more.get(place).and_then(|byte| char::from(*byte).to_digit(16));
        match (first, digit(0), digit(1)) {
            (b'%', Some(high), Some(low)) => {
                out.push(u8::try_from(high * 16 + low).unwrap_or_default());
                rest = more.get(2..).unwrap_or_default();
            }
            _ => {
                out.push(*first);
                rest = more;
            }
        }
    }
    out
}

#[cfg(test)]
mod tests;
