use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use flate2::Compression;
use flate2::write::GzEncoder;
use writ_policy::HostRule;

use super::*;
use crate::secret::{Inject, SecretRule, SecretValue, placeholder};

const VALUE: &str = "hunter2-0123456789";

fn secrets() -> (Arc<Secrets>, String) {
    let rule = SecretRule {
        name: "token".to_owned(),
        placeholder: placeholder().unwrap(),
        hosts: vec![HostRule::parse(String::new(), "x.com").unwrap()],
        inject: Inject::Header,
        headers: vec![],
    };
    let mark = rule.placeholder.clone();
    let value = SecretValue::new("token".to_owned(), VALUE.as_bytes().to_vec()).unwrap();
    (Arc::new(Secrets::new(&[rule], vec![value]).unwrap()), mark)
}

fn scrubbed(text: &[u8], size: usize) -> Vec<u8> {
    let mut scrubber = Scrubber::new(secrets().0);
    let mut out = Vec::new();
    for piece in text.chunks(size) {
        let mut piece = piece.to_vec();
        scrubber.next(&mut piece, false);
        out.extend(piece);
    }
    let mut rest = Vec::new();
    scrubber.next(&mut rest, true);
    out.extend(rest);
    out
}

#[test]
fn values_do_not_pass_wherever_the_pieces_end() {
    let encoded = STANDARD.encode(format!("u:{VALUE}"));
    let text = format!("a hunter2-hunter2-{VALUE}{VALUE} b {encoded} c hunter2-012345678");
    let whole = scrubbed(text.as_bytes(), text.len());
    for size in 1..40 {
        let out = scrubbed(text.as_bytes(), size);
        assert_eq!(out, whole, "{size}");
    }
    let out = String::from_utf8(whole).unwrap();
    assert_eq!(out.len(), text.len());
    assert!(!out.contains(VALUE) && !out.contains(encoded.get(4..20).unwrap()), "{out}");
    assert!(out.starts_with("a hunter2-hunter2-****") && out.ends_with("c hunter2-012345678"), "{out}");
}

#[test]
fn other_texts_pass_as_they_are_and_at_once() {
    let mut scrubber = Scrubber::new(secrets().0);
    let mut piece = b"data: nothing to hide\n\n".to_vec();
    scrubber.next(&mut piece, false);
    assert_eq!(piece, b"data: nothing to hide\n\n");
}

fn watched(host: &str, packed: Option<&str>, bytes: &[u8], size: usize) -> Result<(), Refusal> {
    let (secrets, _) = MARKED.with(Clone::clone);
    let mut watcher = Watcher::new(secrets, HostName::read(host.as_bytes()).unwrap(), packed);
    bytes.chunks(size).try_for_each(|piece| watcher.next(piece))
}

thread_local! {
    static MARKED: (Arc<Secrets>, String) = secrets();
}

#[test]
fn placeholders_are_seen_wherever_the_pieces_end() {
    let mark = MARKED.with(|(_, mark)| mark.clone());
    let plain = format!("xx{mark}yy");
    let encoded = STANDARD.encode(format!("u:{mark}"));
    let mut packer = GzEncoder::new(Vec::new(), Compression::fast());
    std::io::Write::write_all(&mut packer, plain.as_bytes()).unwrap();
    let packed = packer.finish().unwrap();
    for size in 1..60 {
        assert!(watched("y.com", None, plain.as_bytes(), size).is_err(), "{size}");
        assert!(watched("y.com", None, encoded.as_bytes(), size).is_err(), "{size}");
        assert!(watched("y.com", Some("gzip"), &packed, size).is_err(), "{size}");
        // A host that it is bound to may see it: it is worth nothing.
        assert!(watched("x.com", None, plain.as_bytes(), size).is_ok());
        assert!(watched("y.com", None, &plain.as_bytes()[..mark.len()], size).is_ok());
    }
}
