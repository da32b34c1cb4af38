//! Changes carried out in the folder.
//!
//! Owns every write there: below the folder's descriptor, without links, each file whole under another name first. Refuses what is not any more
//! what it was compared with, looked at once more just before. Invariant: a name holds what was there or what the layer has, never a part.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{
    AtFlags, Gid, Mode, OFlags, Timespec, Timestamps, Uid, fchmod, fchown, fsync, futimens, mkdirat, openat, renameat,
    symlinkat, unlinkat,
};
use rustix::io::Errno;
use rustix::process::geteuid;
use writ_evidence::keys::random;

use super::begun::{DEEPEST, MOST, mark};
use super::changes::{Change, Pair};
use super::tree::{Kind, Node, Tree};

type Failed = (PathBuf, io::Error);

/// Carries all of them out; parents come before what they hold.
pub fn apply(pairs: &[Pair], changes: &[Change]) -> Result<(), Failed> {
    let pair = |change: &Change| pairs.get(change.pair).ok_or_else(|| io::Error::from(io::ErrorKind::NotFound));
    let failed = |change: &Change| {
        let name = change.name.clone();
        move |error| (name, error)
    };
    for change in changes {
        pair(change).and_then(|pair| one(pair, change)).map_err(failed(change))?;
    }
    // What closes a folder comes after what was put in it.
    for change in changes.iter().rev() {
        let Some(after) = change.after.as_ref().filter(|after| after.kind == Kind::Folder) else { continue };
        let close = |pair: &Pair| pair.below.set_mode(&change.name, after.mode());
        pair(change).and_then(close).map_err(failed(change))?;
    }
    Ok(())
}

fn one(pair: &Pair, change: &Change) -> io::Result<()> {
    let (below, name) = (&pair.below, change.name.as_path());
    let now = below.find(name)?;
    if now.as_ref().map(mark) != change.before.as_ref().map(mark) {
        return Err(io::Error::other("it changed outside just now; what was applied before it stays"));
    }
    let was = now.as_ref().map(|node| node.kind);
    let (parent, last) = below.parent(name)?;
    match &change.after {
        None => return now.map_or(Ok(()), |node| remove(below, name, node.kind, 0)),
        Some(after) if after.kind == Kind::Folder => {
            if was == Some(Kind::Folder) {
                return Ok(());
            }
            if let Some(kind) = was {
                remove(below, name, kind, 0)?;
            }
            mkdirat(&parent, last, Mode::from_raw_mode(0o700))?;
            let folder = openat(
                &parent,
                last,
                OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC,
                Mode::empty(),
            )?;
            own(folder.as_fd(), after)?;
            return Ok(fchmod(&folder, Mode::from_raw_mode(after.mode() | 0o700))?);
        }
        Some(_) => {}
    }
    let Some(after) = &change.after else { return Ok(()) };
    let aside = format!(".writ-{:032x}", random().map_err(io::Error::other)?);
    let made = make(pair, change, after, now.as_ref(), parent.as_fd(), &aside);
    let placed = made.and_then(|()| {
        if was == Some(Kind::Folder) {
            remove(below, name, Kind::Folder, 0)?;
        }
        Ok(renameat(&parent, aside.as_str(), &parent, last)?)
    });
    if placed.is_err() {
        // It may not have been made at all.
        unlinkat(&parent, aside.as_str(), AtFlags::empty()).unwrap_or_default();
    }
    placed
}

/// The file or link, under another name.
fn make(
    pair: &Pair,
    change: &Change,
    after: &Node,
    before: Option<&Node>,
    parent: BorrowedFd<'_>,
    aside: &str,
) -> io::Result<()> {
    if after.kind == Kind::Link {
        return Ok(symlinkat(pair.layer.link(&change.in_layer)?, parent, aside)?);
    }
    let mut from = pair.layer.file(&change.in_layer)?;
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let mut to = File::from(openat(parent, aside, flags, Mode::from_raw_mode(0o600))?);
    io::copy(&mut from, &mut to)?;
    own(to.as_fd(), before.filter(|before| before.kind == Kind::File).unwrap_or(after))?;
    fchmod(&to, Mode::from_raw_mode(after.mode()))?;
    let written = Timespec { tv_sec: after.stat.st_mtime, tv_nsec: nanoseconds(after) };
    futimens(&to, &Timestamps { last_access: written, last_modification: written })?;
    Ok(fsync(&to)?)
}

fn nanoseconds(node: &Node) -> i64 {
    i64::try_from(node.stat.st_mtime_nsec).unwrap_or_default()
}

/// Only root may give something to somebody else.
fn own(to: BorrowedFd<'_>, like: &Node) -> io::Result<()> {
    if geteuid().is_root() {
        fchown(to, Some(Uid::from_raw(like.stat.st_uid)), Some(Gid::from_raw(like.stat.st_gid)))?;
    }
    Ok(())
}

/// Removes what is at a name, with all that it holds.
fn remove(tree: &Tree, name: &Path, kind: Kind, depth: usize) -> io::Result<()> {
    if depth > DEEPEST {
        return Err(io::Error::other("its folders lie too deep"));
    }
    let (parent, last) = tree.parent(name)?;
    if kind != Kind::Folder {
        return match unlinkat(&parent, last, AtFlags::empty()) {
            Err(Errno::NOENT) => Ok(()),
            removed => Ok(removed?),
        };
    }
    for entry in tree.names(name, MOST)? {
        let path = name.join(entry);
        if let Some(node) = tree.find(&path)? {
            remove(tree, &path, node.kind, depth + 1)?;
        }
    }
    Ok(unlinkat(&parent, last, AtFlags::REMOVEDIR)?)
}

impl Tree {
    /// Sets a folder's rights.
    fn set_mode(&self, name: &Path, mode: u32) -> io::Result<()> {
        let (parent, last) = self.parent(name)?;
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let folder = openat(&parent, last, flags, Mode::empty())?;
        Ok(fchmod(&folder, Mode::from_raw_mode(mode))?)
    }
}
