//! Packages that another builder wrote: what none may hold is refused, what is form alone is told.
#![expect(clippy::unwrap_used, reason = "a step that fails fails the test")]

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use tempfile::TempDir;
use writ_agentfile::lock::{Found, Shown, Sources, resolve};
use writ_agentfile::reference::OciRef;
use writ_agentfile::{Options, lint};
use writ_core::Digest;
use writ_package::build::{Input, Labels, SKILL_LAYER, SOURCE_LAYER, TITLE, TOOL_LAYER, build};
use writ_package::check::{CheckError, check};
use writ_package::layer::{gzip, header};
use writ_package::{Descriptor, Document, Layout, form};

const AGENTFILE: &str = "AGENT a\nFROM scratch\nCMD run\nAUDIT all\nTOOL utcp:x\nALLOW invoke x\nSKILL ./skills/review\nFUNCTION ./f.py:f\n";

/// The folder that an Agentfile lies in.
struct Beside<'a>(&'a Path);

impl Sources for Beside<'_> {
    fn file(&self, path: &str) -> Result<Option<Vec<u8>>, String> {
        Ok(fs::read(self.0.join(path)).ok())
    }

    fn tree(&self, path: &str) -> Result<Option<BTreeMap<String, Digest>>, String> {
        let Ok(entries) = fs::read_dir(self.0.join(path)) else { return Ok(None) };
        let file = |entry: std::io::Result<fs::DirEntry>| {
            let path = entry.unwrap().path();
            (path.file_name().unwrap().to_str().unwrap().to_owned(), Digest::of(&fs::read(&path).unwrap()))
        };
        Ok(Some(entries.map(file).collect()))
    }

    fn registry(&self, reference: &OciRef) -> Result<Found, String> {
        Err(format!("no {reference}"))
    }

    fn server(&self, _name: &str, _address: Option<&str>) -> Result<Option<Shown>, String> {
        Ok(None)
    }
}

struct Built {
    _folder: TempDir,
    layout: Layout,
    descriptor: Descriptor,
}

/// A file of a layer: its path, its text, and what is done to its header.
type Put<'a> = (&'a str, &'a str, fn(&mut tar::Header));

const PLAIN: fn(&mut tar::Header) = |_| ();

impl Built {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("agent");
        fs::create_dir_all(root.join("skills/review")).unwrap();
        fs::create_dir_all(root.join("tools")).unwrap();
        for (path, text) in [
            ("Agentfile", AGENTFILE),
            (SKILL.0, SKILL.1),
            (X.0, X.1),
            (DESCRIBED.0, DESCRIBED.1),
            (FUNCTION.0, FUNCTION.1),
        ] {
            fs::write(root.join(path), text).unwrap();
        }
        let linted = lint(AGENTFILE.as_bytes(), "Agentfile", &Options::default());
        let lock = resolve(&linted.agent, &linted.rules, &Beside(&root)).unwrap();
        let layout = Layout::create(&folder.path().join("layout")).unwrap();
        let labels = Labels::default();
        let input = Input { root: &root, linted: &linted, lock: &lock, sources: &[], known: &[], labels: &labels };
        let descriptor = build(&layout, &input).unwrap().descriptor;
        Self { _folder: folder, layout, descriptor }
    }

    /// The same package with another layer of a type.
    fn with(&self, media_type: &str, title: &str, files: &[Put<'_>]) -> Descriptor {
        let mut tar = tar::Builder::new(gzip(self.layout.writer().unwrap()));
        for (path, text, change) in files {
            let mut header = header(path.trim_end_matches('/'), text.len() as u64, false).unwrap();
            if path.ends_with('/') {
                header.set_entry_type(tar::EntryType::Directory);
            }
            change(&mut header);
            header.set_cksum();
            tar.append(&header, text.as_bytes()).unwrap();
        }
        let layer = tar.into_inner().unwrap().finish().unwrap().finish(media_type).unwrap().with(TITLE, title);
        let Document::Manifest(mut manifest) = self.layout.document(&self.descriptor).unwrap() else {
            unreachable!("a package is a manifest")
        };
        *manifest.layers.iter_mut().find(|one| one.media_type == media_type).unwrap() = layer;
        self.layout.write_manifest(&manifest).unwrap()
    }

    fn findings(&self, descriptor: &Descriptor) -> Result<Vec<String>, String> {
        let told = |error: CheckError| format!("{}: {error}", error.code());
        let package = check(&self.layout, descriptor).map_err(told)?;
        Ok(form::findings(&self.layout, &package).unwrap())
    }
}

const X: Put<'_> = ("tools/x", "#!/bin/sh\n", PLAIN);
const DESCRIBED: Put<'_> = ("tools/x.json", "{}", PLAIN);
const SKILL: Put<'_> = ("skills/review/SKILL.md", "# Review\n", PLAIN);
const FUNCTION: Put<'_> = ("f.py", "def f(): pass\n", PLAIN);

#[test]
fn a_layer_holds_what_the_lock_pins_and_nothing_beside_it() {
    let built = Built::new();
    assert_eq!(built.findings(&built.descriptor), Ok(Vec::new()));
    let (tools, skill, source) = ("tools.tar.gz", "skills/review.tar.gz", "source.tar.gz");
    assert_eq!(built.findings(&built.with(TOOL_LAYER, tools, &[X, DESCRIBED])), Ok(Vec::new()));
    // What people add as source is pinned by the manifest alone.
    let more = built.with(SOURCE_LAYER, source, &[FUNCTION, ("notes/a.md", "hi\n", PLAIN)]);
    assert_eq!(built.findings(&more), Ok(Vec::new()));
    for (media_type, title, files) in [
        (TOOL_LAYER, tools, vec![X, DESCRIBED, ("tools/y", "#!/bin/sh\n", PLAIN)]),
        (TOOL_LAYER, tools, vec![("bin/sh", "x", PLAIN), X, DESCRIBED]),
        (SKILL_LAYER, skill, vec![("skills/other/SKILL.md", "# Other\n", PLAIN), SKILL]),
        (SKILL_LAYER, skill, vec![("skills/review.sh", "x", PLAIN), SKILL]),
        (SKILL_LAYER, skill, vec![SKILL, ("skills/review/more.md", "x", PLAIN)]),
    ] {
        let why = built.findings(&built.with(media_type, title, &files)).unwrap_err();
        assert!(why.starts_with("content-mismatch: "), "{title}: {why}");
    }
    // A folder of the name that the Agentfile is unpacked under.
    let why = built.with(SOURCE_LAYER, source, &[("Agentfile/x", "x", PLAIN), FUNCTION]);
    assert!(built.findings(&why).unwrap_err().starts_with("content-mismatch: "));
    let why = built.findings(&built.with(TOOL_LAYER, tools, &[X, X, DESCRIBED])).unwrap_err();
    assert!(why.starts_with("layer-unsafe: "), "{why}");
    let out: [fn(&mut tar::Header); 3] = [
        |header| name(header, b"../out/"),
        |header| name(header, b"/tmp/out/"),
        |header| name(header, b"a/../../out/"),
    ];
    for (at, named) in out.into_iter().enumerate() {
        let why = built.findings(&built.with(TOOL_LAYER, tools, &[X, DESCRIBED, ("out/", "", named)])).unwrap_err();
        assert!(why.starts_with("layer-unsafe: "), "{at}: {why}");
    }
}

/// Another name than the library writes.
fn name(header: &mut tar::Header, name: &[u8]) {
    let field = &mut header.as_old_mut().name;
    field.fill(0);
    field.iter_mut().zip(name).for_each(|(to, from)| *to = *from);
}

#[test]
fn what_is_form_alone_is_told() {
    let built = Built::new();
    let told = |files: &[Put<'_>]| {
        let found = built.findings(&built.with(TOOL_LAYER, "tools.tar.gz", files)).unwrap();
        assert_eq!(found.len(), 1, "{found:?}");
        found.concat()
    };
    let odd = |what: &str| format!("`tools.tar.gz` is not packed as `writ build` packs it: {what}");
    assert_eq!(told(&[DESCRIBED, X]), odd("files are not in order"));
    assert_eq!(told(&[("tools/", "", PLAIN), X, DESCRIBED]), odd("folders have entries"));
    assert_eq!(told(&[(X.0, X.1, |header| header.set_mtime(1)), DESCRIBED]), odd("entries have times"));
    assert_eq!(told(&[(X.0, X.1, |header| header.set_gid(7)), DESCRIBED]), odd("entries have owners"));
    for (path, text, line) in [("source/.netrc", "machine h\n", 1), ("a.pem", "\n-----BEGIN PRIVATE KEY-----\n", 2)] {
        let mut files = vec![FUNCTION, (path, text, PLAIN)];
        files.sort_by_key(|(path, ..)| *path);
        let found = built.findings(&built.with(SOURCE_LAYER, "source.tar.gz", &files)).unwrap();
        assert_eq!(found, [format!("`{path}` in `source.tar.gz`, line {line}: this looks like a secret's value")]);
    }
}
