//! `git status --porcelain=v2 -z`, read.

/// The work tree beside HEAD.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Status {
    /// The commit HEAD is at; `None` before the first.
    pub head: Option<String>,
    /// What differs.
    pub entries: Vec<Entry>,
}

/// One path that differs from HEAD.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Entry {
    /// Its bytes, relative to the top.
    pub path: Vec<u8>,
    /// What it is.
    pub kind: Kind,
}

/// What a path is to git.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Kind {
    /// In HEAD or in the index, or both.
    Tracked {
        /// What the index holds, when neither HEAD nor the work tree hold the same.
        staged: Option<String>,
    },
    /// A repository inside, with the commit that HEAD wants of it.
    Submodule {
        /// That commit.
        wanted: String,
    },
    /// In neither.
    Untracked,
    /// A repository inside that HEAD knows nothing of.
    Nested,
}

/// Reads what git printed; `None` when it is something else.
pub fn read(bytes: &[u8]) -> Option<Status> {
    let mut status = Status::default();
    let mut records = bytes.split(|byte| *byte == 0).filter(|record| !record.is_empty());
    while let Some(record) = records.next() {
        let (mark, rest) = record.split_at_checked(2)?;
        match mark {
            b"# " => {
                if let Some(oid) = rest.strip_prefix(b"branch.oid ") {
                    status.head = (oid != b"(initial)").then(|| text(oid));
                }
            }
            b"1 " => status.entries.push(changed(rest, 7)?),
            b"2 " => {
                status.entries.push(changed(rest, 8)?);
                records.next()?;
            }
            b"u " => {
                status.entries.push(Entry { path: field(rest, 9)?.to_owned(), kind: Kind::Tracked { staged: None } })
            }
            b"? " => {
                let nested = rest.ends_with(b"/");
                let path = if nested { rest.get(..rest.len() - 1)? } else { rest };
                let kind = if nested { Kind::Nested } else { Kind::Untracked };
                status.entries.push(Entry { path: path.to_owned(), kind });
            }
            _ => return None,
        }
    }
    Some(status)
}

/// `XY sub mH mI mW hH hI … path`; the path is behind `before` fields.
fn changed(rest: &[u8], before: usize) -> Option<Entry> {
    let mut fields = rest.split(|byte| *byte == b' ');
    let xy = fields.next()?;
    let submodule = fields.next()?.first() == Some(&b'S');
    let (head, index) = (fields.nth(3)?, fields.next()?);
    let both = xy.first() != Some(&b'.') && xy.get(1) != Some(&b'.');
    let kind = if submodule {
        Kind::Submodule { wanted: text(head) }
    } else {
        Kind::Tracked { staged: both.then(|| text(index)) }
    };
    Some(Entry { path: field(rest, before)?.to_owned(), kind })
}

/// What is behind `before` fields.
fn field(rest: &[u8], before: usize) -> Option<&[u8]> {
    rest.splitn(before + 1, |byte| *byte == b' ').nth(before)
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_git_prints() {
        let bytes = b"# branch.oid 8f1\0# branch.head main\0\
            1 .M N... 100644 100644 100644 aaa bbb a b.txt\0\
            1 MM N... 100644 100644 100644 aaa ccc c\0\
            1 .M S.M. 160000 160000 160000 ddd ddd sub\0\
            u UU N... 100644 100644 100644 100644 a b c d\0\
            ? new\0? inner/\0";
        let status = read(bytes).unwrap();
        assert_eq!(status.head.as_deref(), Some("8f1"));
        let kinds: Vec<(String, Kind)> =
            status.entries.into_iter().map(|entry| (text(&entry.path), entry.kind)).collect();
        let staged = |staged: Option<&str>| Kind::Tracked { staged: staged.map(str::to_owned) };
        assert_eq!(
            kinds,
            [
                ("a b.txt".to_owned(), staged(None)),
                ("c".to_owned(), staged(Some("ccc"))),
                ("sub".to_owned(), Kind::Submodule { wanted: "ddd".to_owned() }),
                ("d".to_owned(), staged(None)),
                ("new".to_owned(), Kind::Untracked),
                ("inner".to_owned(), Kind::Nested),
            ]
        );
        assert_eq!(read(b"# branch.oid (initial)\0").unwrap().head, None);
        for bad in [&b"1 .M\0"[..], b"x", b"7 x\0", b"2 R. N... 1 1 1 a b R100 new\0"] {
            assert_eq!(read(bad), None, "{}", text(bad));
        }
    }

    proptest::proptest! {
        #[test]
        fn never_panics(bytes in proptest::collection::vec(0u8..128, 0..80)) {
            read(&bytes);
        }
    }
}
