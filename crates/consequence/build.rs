//! Which family of `data/shell` knows which program, as a table sorted by program: a hook finds the families of a command in it
//! without reading them all first.

use std::error::Error;
use std::fmt::Write;
use std::path::Path;
use std::{env, fs};

/// The families, in the order in which they are asked.
const FAMILIES: [&str; 23] = [
    "git",
    "files",
    "disks",
    "system",
    "network",
    "containers",
    "kubernetes",
    "infrastructure",
    "databases",
    "redis",
    "aws",
    "google",
    "azure",
    "publishing",
    "interpreters",
    "services",
    "windows",
    "macos",
    "protection",
    "secrets",
    "registries",
    "vcs",
    "unseen",
];

fn main() -> Result<(), Box<dyn Error>> {
    let folder = Path::new(&env::var("CARGO_MANIFEST_DIR")?).join("data/shell");
    println!("cargo::rerun-if-changed={}", folder.display());
    for entry in fs::read_dir(&folder)? {
        let path = entry?.path();
        let name = path.file_stem().and_then(|name| name.to_str()).unwrap_or_default();
        if !FAMILIES.contains(&name) {
            return Err(format!("{}: no family of this name is listed in `build.rs`", path.display()).into());
        }
    }
    let (mut files, mut heads) = (String::from("["), Vec::new());
    for (at, name) in FAMILIES.iter().enumerate() {
        let path = folder.join(name).with_extension("txt");
        let text = fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        write!(files, "({name:?}, include_str!({path:?})), ")?;
        let head = text.lines().take_while(|line| !line.starts_with('['));
        for programs in head.filter_map(|line| line.strip_prefix("programs: ")) {
            heads.extend(programs.split_whitespace().map(|program| (program.to_owned(), at)));
        }
    }
    heads.sort();
    let out = env::var("OUT_DIR")?;
    fs::write(Path::new(&out).join("families.rs"), format!("{files}]"))?;
    fs::write(Path::new(&out).join("heads.rs"), format!("&{heads:?}"))?;
    Ok(())
}
