//! References print as they read; manifests, indexes, layouts' archives and layers are read or refused, and nothing leaves its folder.

#![no_main]

use libfuzzer_sys::fuzz_target;
use writ_package::layer::{Budget, list};
use writ_package::manifest::{Document, INDEX, MANIFEST};
use writ_package::{Layout, Reference, archive};

fuzz_target!(|input: (u8, &[u8])| {
    let (which, bytes) = input;
    match which % 4 {
        0 => {
            let Ok(text) = std::str::from_utf8(bytes) else { return };
            if let Ok(reference) = Reference::parse_short(text) {
                assert_eq!(Reference::parse(&reference.to_string()), Ok(reference));
            }
        }
        1 => {
            if let Ok(Document::Manifest(manifest)) = Document::parse(MANIFEST, bytes) {
                let again = Document::parse(MANIFEST, &manifest.to_bytes()).unwrap();
                assert_eq!(again, Document::Manifest(manifest));
            }
            if let Ok(Document::Index(index)) = Document::parse(INDEX, bytes) {
                assert_eq!(Document::parse(INDEX, &index.to_bytes()).unwrap(), Document::Index(index));
            }
        }
        2 => {
            let room = tempfile::tempdir().unwrap();
            let layout = Layout::create(&room.path().join("layout")).unwrap();
            // As a tar, and as the gzip of one.
            let packed = layout.write("x", bytes).unwrap();
            let _listed = list(&layout, &packed, &mut Budget::default());
            let mut gzip = writ_package::layer::gzip(Vec::new());
            std::io::Write::write_all(&mut gzip, bytes).unwrap();
            let packed = layout.write("x", &gzip.finish().unwrap()).unwrap();
            let _listed = list(&layout, &packed, &mut Budget::default());
        }
        _ => {
            let room = tempfile::tempdir().unwrap();
            std::fs::write(room.path().join("a.tar"), bytes).unwrap();
            let _opened = archive::open(&room.path().join("a.tar"), &room.path().join("out"));
            assert_eq!(std::fs::read_dir(room.path()).unwrap().count(), 2);
        }
    }
});
