//! What a layer changes of the folder below it, as both are now.
//!
//! Owns the walk over the layer. Refuses layers too large or too deep, and what no overlay writes. Invariant: what is the same in both is no
//! change, whether or not the layer holds it.

use std::io;
use std::path::{Path, PathBuf};

use writ_sandbox::CHANGES;

use super::begun::{DEEPEST, MOST};
use super::tree::{Kind, Node, Tree};
use crate::confine::copy::Place;

/// One place and its layer, both open.
#[derive(Debug)]
pub struct Pair {
    /// The folder, or that of a single file.
    pub below: Tree,
    /// The layer.
    pub layer: Tree,
    /// The single file's names in both.
    single: Option<(PathBuf, PathBuf)>,
}

/// A change.
#[derive(Debug)]
pub struct Change {
    /// Which pair it is in.
    pub pair: usize,
    /// Its name in the folder.
    pub name: PathBuf,
    /// Its name in the layer.
    pub in_layer: PathBuf,
    /// What is there.
    pub before: Option<Node>,
    /// What the layer puts there.
    pub after: Option<Node>,
    /// The folder above it that git takes for a repository's own.
    pub git: Option<PathBuf>,
}

impl Pair {
    /// Opens both. A layer that nothing was written to may have no changes.
    pub fn open(place: &Place) -> io::Result<Self> {
        if place.folder {
            let (below, layer) = (Tree::open(&place.path)?, Tree::open(&place.layer.join(CHANGES))?);
            return Ok(Self { below, layer, single: None });
        }
        let parts = |path: &Path| -> io::Result<(Tree, PathBuf)> {
            let (parent, name) = path.parent().zip(path.file_name()).ok_or(io::ErrorKind::InvalidInput)?;
            Ok((Tree::open(parent)?, PathBuf::from(name)))
        };
        let ((below, name), (layer, copy)) = (parts(&place.path)?, parts(&place.layer)?);
        Ok(Self { below, layer, single: Some((name, copy)) })
    }
}

/// All changes, by their names.
pub fn changes(pairs: &[Pair]) -> io::Result<Vec<Change>> {
    let mut walk = Walk { pairs, changes: Vec::new(), seen: 0 };
    for (number, pair) in pairs.iter().enumerate() {
        match &pair.single {
            None => walk.folder(number, Path::new(""), true, None, 0)?,
            Some((name, copy)) => walk.one(number, name, copy, true, None)?,
        }
    }
    let path = |change: &Change| pairs.get(change.pair).map(|pair| pair.below.path.join(&change.name));
    let mut changes = walk.changes;
    changes.sort_by_key(path);
    Ok(changes)
}

struct Walk<'a> {
    pairs: &'a [Pair],
    changes: Vec<Change>,
    seen: usize,
}

impl Walk<'_> {
    fn pair(&self, number: usize) -> io::Result<&Pair> {
        self.pairs.get(number).ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    /// A folder of the layer; `merged` where one of the same name lies below it.
    fn folder(&mut self, number: usize, name: &Path, merged: bool, git: Option<&Path>, depth: usize) -> io::Result<()> {
        if depth > DEEPEST {
            return Err(io::Error::other(format!("its folders lie more than {DEEPEST} deep")));
        }
        let pair = self.pair(number)?;
        let names = pair.layer.names(name, MOST)?;
        let own = merged && is_git(&pair.below, name)? || is_git(&pair.layer, name)?;
        let git = git.or_else(|| own.then_some(name));
        if merged && pair.layer.is_opaque(name)? {
            for hidden in pair.below.names(name, MOST)?.into_iter().filter(|hidden| !names.contains(hidden)) {
                let path = name.join(hidden);
                let before = self.pair(number)?.below.find(&path)?;
                self.add(number, &path, &path, before, None, git)?;
            }
        }
        for entry in names {
            let path = name.join(entry);
            self.one(number, &path, &path, merged, git)?;
            let layer = self.pair(number)?.layer.find(&path)?;
            if layer.is_some_and(|node| node.kind == Kind::Folder) {
                let below = if merged { self.pair(number)?.below.find(&path)? } else { None };
                self.folder(number, &path, below.is_some_and(|node| node.kind == Kind::Folder), git, depth + 1)?;
            }
        }
        Ok(())
    }

    fn one(&mut self, number: usize, name: &Path, in_layer: &Path, merged: bool, git: Option<&Path>) -> io::Result<()> {
        let pair = self.pair(number)?;
        let before = if merged { pair.below.find(name)? } else { None };
        let after = pair.layer.find(in_layer)?.filter(|node| node.kind != Kind::Whiteout);
        if !is_alike(pair, name, in_layer, before.as_ref(), after.as_ref())? {
            self.add(number, name, in_layer, before, after, git)?;
        }
        Ok(())
    }

    fn add(
        &mut self,
        pair: usize,
        name: &Path,
        in_layer: &Path,
        before: Option<Node>,
        after: Option<Node>,
        git: Option<&Path>,
    ) -> io::Result<()> {
        self.seen += 1;
        if self.seen > MOST {
            return Err(io::Error::other(format!("it holds more than {MOST} changes")));
        }
        let (name, in_layer) = (name.to_owned(), in_layer.to_owned());
        self.changes.push(Change { pair, name, in_layer, before, after, git: git.map(Path::to_owned) });
        Ok(())
    }
}

/// Whether git would take a folder for a repository's own, by what it holds.
fn is_git(tree: &Tree, folder: &Path) -> io::Result<bool> {
    if folder.file_name().is_some_and(|name| name.eq_ignore_ascii_case(".git")) {
        return Ok(true);
    }
    let has = |name: &str| Ok::<bool, io::Error>(tree.find(&folder.join(name))?.is_some());
    Ok(has("HEAD")? && (has("objects")? || has("commondir")? || has("config")?))
}

fn is_alike(
    pair: &Pair,
    name: &Path,
    in_layer: &Path,
    before: Option<&Node>,
    after: Option<&Node>,
) -> io::Result<bool> {
    let (Some(before), Some(after)) = (before, after) else { return Ok(before.is_none() && after.is_none()) };
    if before.kind != after.kind || after.kind != Kind::Link && before.mode() != after.mode() {
        return Ok(false);
    }
    match after.kind {
        Kind::Folder => Ok(true),
        Kind::File if before.size() != after.size() => Ok(false),
        Kind::File | Kind::Link => Ok(pair.below.digest(name, after.kind)? == pair.layer.digest(in_layer, after.kind)?),
        Kind::Whiteout | Kind::Other => Ok(false),
    }
}
