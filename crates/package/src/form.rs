//! In what a package that holds is not as `writ build` writes it, and what in it looks like a secret.
//!
//! Owns what is told beside a package and does not break it: other builders pack in other ways, and `--known-token` may have said that a
//! word is no secret. Refuses nothing. Invariant: a package of `writ build` without such a word has no findings. Page: `spec/package.md`,
//! "Verification".

use std::io::{BufReader, Read};

use flate2::bufread::MultiGzDecoder;
use writ_core::visible;

use crate::build::TITLE;
use crate::check::Package;
use crate::layer::{MAX_BYTES, is_plain};
use crate::layout::{Layout, LayoutError};
use crate::manifest::Descriptor;
use crate::secrets::{MAX_TEXT, secret_line};

/// Most files of a layer that are told.
const TOLD: usize = 8;

/// What is told of a package, layer by layer.
pub fn findings(layout: &Layout, package: &Package) -> Result<Vec<String>, LayoutError> {
    let mut out = Vec::new();
    for layer in &package.layers {
        let title = visible::line(layer.annotation(TITLE).unwrap_or_default()).into_owned();
        // It was read to its end before: one that cannot be read now was changed meanwhile, and whoever unpacks it finds that.
        let Ok(form) = Form::of(layout, layer)? else { continue };
        let odd = form.odd();
        if !odd.is_empty() {
            out.push(format!("`{title}` is not packed as `writ build` packs it: {}", odd.join(", ")));
        }
        let more = form.secrets.len().saturating_sub(TOLD);
        let secrets = form.secrets.into_iter().take(TOLD);
        out.extend(
            secrets.map(|(path, line)| format!("`{path}` in `{title}`, line {line}: this looks like a secret's value")),
        );
        if more > 0 {
            out.push(format!("{more} more files of `{title}` look like that"));
        }
    }
    Ok(out)
}

/// How a layer is packed.
#[derive(Default)]
struct Form {
    folders: bool,
    unsorted: bool,
    times: bool,
    owners: bool,
    secrets: Vec<(String, usize)>,
}

impl Form {
    fn of(layout: &Layout, layer: &Descriptor) -> Result<std::io::Result<Self>, LayoutError> {
        let packed = BufReader::with_capacity(1 << 18, layout.blob(layer.digest)?);
        Ok(Self::read(MultiGzDecoder::new(packed).take(MAX_BYTES)))
    }

    fn read(unzipped: impl Read) -> std::io::Result<Self> {
        let (mut out, mut last) = (Self::default(), String::new());
        for entry in tar::Archive::new(unzipped).entries()? {
            let mut entry = entry?;
            let header = entry.header();
            out.times |= header.mtime()? != 0;
            out.owners |= header.uid()? != 0 || header.gid()? != 0;
            if header.entry_type().is_dir() {
                out.folders = true;
                continue;
            }
            let Some(path) = entry.path()?.to_str().filter(|path| is_plain(path)).map(str::to_owned) else { continue };
            out.unsorted |= path < last;
            let mut bytes = Vec::new();
            if entry.size() <= MAX_TEXT {
                entry.read_to_end(&mut bytes)?;
            }
            out.secrets.extend(secret_line(&path, &bytes).map(|line| (path.clone(), line)));
            last = path;
        }
        Ok(out)
    }

    fn odd(&self) -> Vec<&'static str> {
        let all = [
            (self.folders, "folders have entries"),
            (self.unsorted, "files are not in order"),
            (self.times, "entries have times"),
            (self.owners, "entries have owners"),
        ];
        all.into_iter().filter(|(is, _)| *is).map(|(_, what)| what).collect()
    }
}
