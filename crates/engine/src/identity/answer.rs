//! What a container engine answers: one plain answer over HTTP, and what it says of a container.
//!
//! Pure. Refuses whatever is not one good answer with its whole body, and one about another container. Invariant: what is given back is
//! printable and has a bound. Page: `spec/identity.md`.

use writ_core::Digest;
use writ_core::json::{self, Limits, Value};

/// Longest name of an image.
const LONGEST: usize = 512;

/// What a container was made from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Made {
    /// The image's name.
    pub image: Option<String>,
    /// Its id, which is a digest.
    pub digest: Option<Digest>,
}

/// The body of a good answer that ends with its connection.
pub fn body(bytes: &[u8]) -> Option<&[u8]> {
    let at = bytes.windows(4).position(|end| end == b"\r\n\r\n")?;
    let (head, body) = (std::str::from_utf8(bytes.get(..at)?).ok()?, bytes.get(at + 4..)?);
    let mut lines = head.split("\r\n");
    let first = lines.next()?;
    let is_good = first.starts_with("HTTP/1.0 200") || first.starts_with("HTTP/1.1 200");
    let is_plain = !head.to_ascii_lowercase().contains("\r\ntransfer-encoding:");
    let length = lines.find_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("content-length").then(|| value.trim().parse::<usize>().ok())
    });
    let is_whole = length.is_none_or(|length| length == Some(body.len()));
    (is_good && is_plain && is_whole).then_some(body)
}

/// What an answer says of a container.
pub fn made(body: &[u8], container: &str) -> Option<Made> {
    let answer = json::parse_with(body, Limits::FOREIGN).ok()?;
    let text = |value: Option<&Value>| value.and_then(Value::as_str).map(str::to_owned);
    if text(answer.get("Id")).as_deref() != Some(container) {
        return None;
    }
    let plain = |name: &String| name.len() <= LONGEST && name.chars().all(|c| c.is_ascii_graphic());
    let image = text(answer.get("Config").and_then(|config| config.get("Image"))).filter(plain);
    let digest = text(answer.get("Image")).and_then(|id| {
        let id = if id.starts_with("sha256:") { id } else { format!("sha256:{id}") };
        Digest::parse(&id).ok()
    });
    Some(Made { image, digest })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_plain_answer_is_read_and_no_other() {
        let id = "3f9a1c02".repeat(8);
        let json = format!(r#"{{"Id":"{id}","Image":"sha256:{id}","Config":{{"Image":"ghcr.io/org/agent:1"}}}}"#);
        let whole = format!("HTTP/1.0 200 OK\r\nContent-Length: {}\r\n\r\n{json}", json.len());
        assert_eq!(body(whole.as_bytes()), Some(json.as_bytes()));
        for bad in [
            whole.replace("200 OK", "404 Not Found"),
            whole.replace("Content-Length: ", "Content-Length: 1"),
            whole.replace("\r\n\r\n", "\r\nTransfer-Encoding: chunked\r\n\r\n"),
            json.clone(),
            String::new(),
        ] {
            assert_eq!(body(bad.as_bytes()), None, "{bad}");
        }
        let told = made(json.as_bytes(), &id).unwrap();
        assert_eq!(told.image.as_deref(), Some("ghcr.io/org/agent:1"));
        assert_eq!(told.digest, Digest::parse(&format!("sha256:{id}")).ok());
        assert_eq!(made(json.as_bytes(), &"0".repeat(64)), None, "of another container");
        let odd = json.replace("ghcr.io/org/agent:1", "a b").replace(&format!("sha256:{id}"), "latest");
        assert_eq!(made(odd.as_bytes(), &id), Some(Made { image: None, digest: None }));
    }
}
