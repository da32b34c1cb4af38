//! A large bundle is verified in the memory of a small one: its files are laid out and read piece by piece.
//!
//! `WRIT_BUNDLE_MEGABYTES=1000 cargo nextest run -p writ-tests --test long_bundle --no-capture` measures one of a gigabyte.

#[cfg(test)]
mod measured;
#[cfg(test)]
#[expect(dead_code, reason = "other tests need more of it")]
mod parcel;
#[cfg(test)]
#[expect(dead_code, reason = "other tests need more of it")]
mod talk;
#[cfg(test)]
#[expect(dead_code, reason = "other tests need more of it")]
mod workplace;

use std::fs::{self, OpenOptions};
use std::io::{BufWriter, Write};

use measured::measured;
use parcel::{export, files, key, packed};
use serde_json::json;
use talk::Talk;
use workplace::SESSION;

/// Most memory that verifying may take, in kilobytes, however large the bundle.
const MOST_KILOBYTES: u64 = 64 << 10;
/// Bytes of a line of the transcript.
const LINE: usize = 16 << 10;

/// Files of a bundle, with their paths.
type Files = Vec<(String, Vec<u8>)>;

#[test]
fn a_large_bundle_needs_no_more_memory_than_a_small_one() {
    let megabytes: usize = std::env::var("WRIT_BUNDLE_MEGABYTES").map_or(100, |text| text.parse().unwrap());
    let talk = Talk::new("long-bundle", &json!({}));
    talk.asks("prompt 1");
    let mut transcript = BufWriter::new(OpenOptions::new().append(true).open(talk.main()).unwrap());
    let filler = "a line of what the model said, and it said much ".repeat(LINE / 48);
    for number in 0..megabytes * 1_000_000 / LINE {
        let content = json!([{"type": "text", "text": format!("{number} {filler}")}]);
        let usage = json!({"input_tokens": 3, "output_tokens": 5});
        let message = json!({"id": format!("f-{number}"), "model": talk::MODEL, "role": "assistant", "content": content, "usage": usage});
        writeln!(transcript, "{}", json!({"type": "assistant", "message": message})).unwrap();
    }
    transcript.flush().unwrap();
    drop(transcript);
    talk.stops();
    let bundle = talk.place.folder.join("large.tar");
    let (path, key) = (bundle.to_str().unwrap().to_owned(), talk.place.session().join("ledger.pub"));
    let (code, said, took, most) = measured(&talk.place, &["export", SESSION, "-o", &path, "--transcripts"]);
    println!("export: {took:?}, {most} kB");
    assert_eq!(code, Some(0), "{said}");
    let bytes = fs::metadata(&bundle).unwrap().len();
    assert!(bytes as usize >= megabytes * 1_000_000, "{bytes}");
    let (code, said, took, most) = measured(&talk.place, &["verify", &path, "--trust", key.to_str().unwrap()]);
    println!("verify of {bytes} bytes: {took:?}, {most} kB");
    assert!(code == Some(0) && said.contains("1 statements are where the transcripts have their turns"), "{said}");
    assert!(most < MOST_KILOBYTES, "{most} kB: {said}");
}

/// Whatever somebody puts into a bundle, telling that it is broken takes no more than telling that it is not.
#[test]
fn a_hostile_bundle_takes_no_more_room() {
    let talk = Talk::new("hostile-bundle", &json!({}));
    talk.turn(1);
    let whole = files(&export(&talk.place, "whole.tar", &["--transcripts"]));
    let key = key(&talk.place);
    let feeds = || vec![b'\n'; 10_000_000];
    let many = (0..60_000).map(|number| (format!("claims/{number:064x}.json"), number.to_string().into_bytes()));
    let rows: Vec<u8> = whole["ledger.jsonl"].split_inclusive(|byte| *byte == b'\n').next().unwrap().to_vec();
    let hostile: [(&str, Files); 4] = [
        ("feeds", vec![("ledger.jsonl".to_owned(), feeds())]),
        ("row-then-feeds", vec![("ledger.jsonl".to_owned(), [rows, feeds()].concat())]),
        ("notes", vec![("checkpoints".to_owned(), feeds())]),
        ("entries", many.collect()),
    ];
    for (name, more) in hostile {
        let mut files = whole.clone();
        files.extend(more);
        let bundle = packed(&talk.place, &format!("{name}.tar"), files);
        let args = ["verify", bundle.to_str().unwrap(), "--trust", key.to_str().unwrap()];
        let (code, said, took, most) = measured(&talk.place, &args);
        println!("{name}: {took:?}, {most} kB");
        assert!(code == Some(3) && said.contains("NOT VERIFIED"), "{name}: {code:?} {said}");
        assert!(most < MOST_KILOBYTES, "{name}: {most} kB");
    }
}
