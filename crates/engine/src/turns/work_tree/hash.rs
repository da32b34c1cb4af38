//! git's objects as names: a file's content, a link's target, a folder.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use ring::digest::{Algorithm, Context, SHA1_FOR_LEGACY_USE_ONLY, SHA256};
use writ_core::regular_file;

use super::TreeError;

/// How a repository's objects are named.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Function {
    /// By SHA-1.
    Sha1,
    /// By SHA-256.
    Sha256,
}

impl Function {
    /// As digests are called in statements.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Sha1 => "sha1",
            Self::Sha256 => "sha256",
        }
    }

    /// How many bytes a name has.
    pub const fn length(self) -> usize {
        match self {
            Self::Sha1 => 20,
            Self::Sha256 => 32,
        }
    }

    const fn algorithm(self) -> &'static Algorithm {
        match self {
            Self::Sha1 => &SHA1_FOR_LEGACY_USE_ONLY,
            Self::Sha256 => &SHA256,
        }
    }

    fn begin(self, kind: &str, length: u64) -> Context {
        let mut hash = Context::new(self.algorithm());
        hash.update(format!("{kind} {length}\0").as_bytes());
        hash
    }

    /// The object of these bytes.
    pub fn blob(self, bytes: &[u8]) -> Vec<u8> {
        let mut hash = self.begin("blob", bytes.len() as u64);
        hash.update(bytes);
        hash.finish().as_ref().to_vec()
    }

    /// The object of a file, which has that length.
    pub fn file(self, path: &Path, length: u64) -> Result<Vec<u8>, TreeError> {
        let failed = |source| TreeError::Io { path: path.to_owned(), source };
        let file: File = regular_file::open(path).map_err(failed)?;
        let mut file = file.take(length + 1);
        let (mut hash, mut piece, mut read) = (self.begin("blob", length), vec![0; 1 << 16], 0);
        loop {
            match file.read(&mut piece).map_err(failed)? {
                0 => break,
                some => {
                    read += some as u64;
                    hash.update(piece.get(..some).unwrap_or_default());
                }
            }
        }
        if read == length { Ok(hash.finish().as_ref().to_vec()) } else { Err(TreeError::Changed(path.to_owned())) }
    }
}

/// Something with a name in a folder.
#[derive(Clone, Debug)]
pub struct Node {
    /// Its name.
    pub name: Vec<u8>,
    /// 0o100644, 0o100755, 0o120000, 0o160000, or 0o40000 for a folder.
    pub mode: u32,
    /// Its object.
    pub id: Vec<u8>,
}

/// A folder's mode.
pub const FOLDER: u32 = 0o40000;

/// The object of a folder.
pub fn tree(function: Function, mut nodes: Vec<Node>) -> Vec<u8> {
    // A folder is sorted as if a slash stood behind its name.
    let key = |node: &Node| {
        let mut key = node.name.clone();
        key.extend((node.mode == FOLDER).then_some(b'/'));
        key
    };
    nodes.sort_by_cached_key(key);
    let mut content = Vec::new();
    for node in &nodes {
        content.extend_from_slice(format!("{:o} ", node.mode).as_bytes());
        content.extend_from_slice(&node.name);
        content.push(0);
        content.extend_from_slice(&node.id);
    }
    let mut hash = function.begin("tree", content.len() as u64);
    hash.update(&content);
    hash.finish().as_ref().to_vec()
}
