//! An HTTP request of a tool, sent.
//!
//! Owns where the values of secrets are put in, and that they do not come back. Follows no redirect. Invariant: a value goes to the host of
//! the request that was decided, and no further.

use std::io::Read;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE};
use ureq::http;
use writ_agentfile::tool::{Field, Request, Text};
use writ_core::json::{self, Limits, Value};
use zeroize::Zeroizing;

use super::{Bounds, QUOTED, too_long};
use crate::network::{agent, authorities};

/// The values of a request's variables.
type Values = [(String, Zeroizing<String>)];

/// Sends it; gives what came back, as JSON where that is what it is.
pub fn send(request: &Request, values: &Values, bounds: Bounds) -> Result<Value, String> {
    let scrub = |text: String| scrubbed(text, request, values);
    sent(request, values, bounds).map_err(scrub).and_then(|(kind, text)| {
        let text = scrub(text);
        if is_json(&kind) {
            let told = |error| format!("it says that it answers with JSON, and does not: {error}");
            return json::parse_with(text.as_bytes(), Limits::FOREIGN).map_err(told);
        }
        Ok(Value::from(text))
    })
}

fn filled(text: &Text, values: &Values) -> Zeroizing<String> {
    let value = |name: &str| {
        let known = values.iter().find(|(own, _)| own == name);
        known.map(|(_, value)| value.to_string()).unwrap_or_default()
    };
    Zeroizing::new(text.filled(&value))
}

/// The content type of an answer, and its text.
fn sent(request: &Request, values: &Values, bounds: Bounds) -> Result<(String, String), String> {
    let mut url = url::Url::parse(&request.url).map_err(|error| error.to_string())?;
    for (name, text) in &request.query {
        url.query_pairs_mut().append_pair(name, &filled(text, values));
    }
    let mut asked = http::Request::builder().method(request.method.as_str()).uri(url.as_str());
    for (name, field) in &request.headers {
        let value = match field {
            Field::Text(text) => filled(text, values),
            Field::Basic(user, password) => {
                let pair = Zeroizing::new(format!("{}:{}", *filled(user, values), *filled(password, values)));
                Zeroizing::new(format!("Basic {}", STANDARD.encode(pair.as_bytes())))
            }
        };
        asked = asked.header(name.as_str(), value.as_str());
    }
    let agent = agent(authorities(), bounds.time);
    let told = |error: ureq::Error| format!("it cannot be asked: {error}");
    let bad = |error: http::Error| format!("it is no request: {error}");
    let mut answer = match &request.body {
        Some(body) => agent.run(asked.body(body.clone()).map_err(bad)?).map_err(told)?,
        None => agent.run(asked.body(()).map_err(bad)?).map_err(told)?,
    };
    let status = answer.status().as_u16();
    let kind = answer.headers().get("content-type").and_then(|kind| kind.to_str().ok()).unwrap_or_default().to_owned();
    let mut body = Vec::new();
    let reader = answer.body_mut().as_reader();
    reader.take(bounds.output + 1).read_to_end(&mut body).map_err(|error| format!("its answer ended: {error}"))?;
    if body.len() as u64 > bounds.output {
        return Err(too_long(bounds));
    }
    if (300..400).contains(&status) {
        return Err(format!("it answers {status}, which leads elsewhere: a redirect is not followed"));
    }
    let text = String::from_utf8_lossy(&body);
    if !(200..300).contains(&status) {
        let quoted: String = text.chars().take(QUOTED).collect();
        return Err(format!("it answers {status}: {}", quoted.trim()));
    }
    match text {
        std::borrow::Cow::Borrowed(text) => Ok((kind, text.to_owned())),
        std::borrow::Cow::Owned(_) => Err("its answer is no text in UTF-8".to_owned()),
    }
}

fn is_json(kind: &str) -> bool {
    let kind = kind.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    kind == "application/json" || kind.ends_with("+json")
}

/// Shortest piece of Base64 that is taken for a value's.
const MIN_CODE: usize = 8;

/// A text without the values of the request's secrets, however it came by them.
fn scrubbed(mut text: String, request: &Request, values: &Values) -> String {
    let mut gone = |value: &str, name: &str| {
        if !value.is_empty() {
            text = text.replace(value, &format!("[secret {name}]"));
        }
    };
    for (_, field) in &request.headers {
        if let Field::Basic(user, password) = field
            && let Some(name) = user.variables().chain(password.variables()).next()
        {
            let pair = Zeroizing::new(format!("{}:{}", *filled(user, values), *filled(password, values)));
            gone(&STANDARD.encode(pair.as_bytes()), name);
        }
    }
    for (name, value) in values {
        gone(value, name);
        let escaped = json::compact(&Value::from(value.as_str()));
        gone(escaped.trim_matches('"'), name);
        let encoded: String = url::form_urlencoded::byte_serialize(value.as_bytes()).collect();
        gone(&encoded, name);
        gone(&STANDARD.encode(value.as_bytes()), name);
    }
    values.iter().fold(text, |text, (name, value)| without_base64(text, value, name))
}

/// A text without what holds a value in Base64, wherever in that it stands.
fn without_base64(text: String, value: &str, name: &str) -> String {
    let mut codes: Vec<Zeroizing<String>> = Vec::new();
    for before in 0..3 {
        let bytes = Zeroizing::new([vec![0; before], value.as_bytes().to_vec()].concat());
        let whole = bytes.get(..bytes.len() / 3 * 3).unwrap_or_default();
        for code in [STANDARD.encode(whole), URL_SAFE.encode(whole)].map(Zeroizing::new) {
            // What stands before it and behind it is in the first letters and the last.
            let own = code.get(if before > 0 { 4 } else { 0 }..).unwrap_or_default();
            if own.len() >= MIN_CODE {
                codes.push(Zeroizing::new(own.to_owned()));
            }
        }
    }
    if !codes.iter().any(|code| text.contains(code.as_str())) {
        return text;
    }
    let is_other = |c: char| !(c.is_ascii_alphanumeric() || "+/=_-".contains(c));
    let pieces = text.split_inclusive(is_other).map(|piece| {
        let run = piece.trim_end_matches(is_other);
        let rest = piece.get(run.len()..).unwrap_or_default();
        match codes.iter().any(|code| run.contains(code.as_str())) {
            true => format!("[secret {name}]{rest}"),
            false => piece.to_owned(),
        }
    });
    pieces.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_in_base64_is_found_wherever_it_stands() {
        let value = "sekrit1234567890";
        for before in ["", "a", "ab", "Bearer ", "me:"] {
            for after in ["", "x", "yz"] {
                for code in [STANDARD, URL_SAFE] {
                    let code = code.encode(format!("{before}{value}{after}"));
                    let shown = without_base64(format!("a {code}\n{code}, b"), value, "tok");
                    assert_eq!(shown, "a [secret tok]\n[secret tok], b", "{before} {after}");
                }
            }
        }
        let plain = "nothing of it: c2VrcmV0, ü";
        assert_eq!(without_base64(plain.to_owned(), value, "tok"), plain);
        assert_eq!(without_base64(plain.to_owned(), "", "tok"), plain);
    }
}
