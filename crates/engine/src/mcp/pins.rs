//! What the tools of a server were when they were first seen: a server may change its words to the model at any time.
//!
//! Owns one small file a repository and server in Writ's state, which the agent may not touch (R19). Refuses to forget: a change waits
//! for a human, and calls ask until then. Invariant: what was let in stays as it was let in until a human accepts another.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use writ_core::json::{self, Value};
use writ_core::{Digest, Timestamp};
use writ_store::{Store, StoreError, regular_file};

use super::Offered;

/// Largest file of pins.
const MOST: u64 = 64 << 20;
/// Most tools of one server that are kept.
const MOST_TOOLS: usize = 4096;
/// Where they lie in the state folder.
const FOLDER: &str = "mcp/pins";

/// The tools of one server, as one repository knows them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pins {
    /// The server's name in tools' names.
    pub server: String,
    /// The folder of the session that saw it first.
    pub seen_in: String,
    /// Whether its list was seen to the end: what joins it later is a change.
    pub complete: bool,
    /// The tools by their names.
    pub tools: BTreeMap<String, Pin>,
}

/// One tool.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pin {
    /// What was let in: at first sight, or by a human. `None` for a tool that joined later.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub accepted: Option<Definition>,
    /// What the server says now, where that is something else.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub found: Option<Definition>,
}

/// What a server says of a tool.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Definition {
    /// SHA-256 of its canonical JSON.
    pub digest: Digest,
    /// That JSON.
    pub text: String,
    /// When it was seen.
    pub at: Timestamp,
}

/// What a list brought.
#[derive(Clone, Debug)]
pub struct News {
    /// Tools that were seen for the first time, and let in.
    pub first: BTreeSet<String>,
    /// Tools that are not what was let in.
    pub changed: BTreeSet<String>,
    /// Those of them that nobody knew of.
    pub newly_changed: BTreeSet<String>,
    /// Digest of all pins after it.
    pub digest: Digest,
}

/// Why pins cannot be read or kept.
#[derive(Debug, thiserror::Error)]
pub enum PinError {
    /// The store.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The file.
    #[error("{}: {source}", path.display())]
    Io {
        /// Which.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// It is no file of pins.
    #[error("{} is damaged: a human looks at it, and may remove it", path.display())]
    Damaged {
        /// Which.
        path: PathBuf,
    },
    /// The server offers too much.
    #[error("it offers more than {MOST_TOOLS} tools")]
    TooMany,
    /// A name that is not there.
    #[error("no changed tool `{0}`: `writ mcp pins` lists them")]
    NoSuchTool(String),
}

impl News {
    /// Whether there is nothing that a row should say.
    pub fn is_nothing(&self) -> bool {
        self.first.is_empty() && self.newly_changed.is_empty()
    }

    /// What the human is to be told.
    pub fn tell(&self, server: &str) -> Option<String> {
        let names: Vec<&str> = self.changed.iter().map(String::as_str).collect();
        (!names.is_empty()).then(|| {
            format!(
                "server `{server}` has changed what these tools are since they were let in: {}. They are not shown and their calls ask \
                 until a human looks at `writ mcp pins` and runs `writ mcp pins accept {server}`",
                names.join(", ")
            )
        })
    }
}

impl Pins {
    /// Those of a server in a repository, if it was seen there.
    pub fn read(store: &Store, repository: Digest, server: &str) -> Result<Option<Self>, PinError> {
        read(&store.root().join(file(repository, server)))
    }

    /// Of every server that the repository knows.
    pub fn all(store: &Store, repository: Digest) -> Result<Vec<Self>, PinError> {
        let folder = store.root().join(FOLDER).join(repository.hex());
        let entries = match fs::read_dir(&folder) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries.map_err(|source| PinError::Io { path: folder, source })?,
        };
        let paths = entries.flatten().map(|entry| entry.path()).filter(|path| path.extension().is_some());
        let mut all = Vec::new();
        for path in paths.filter(|path| path.extension().is_some_and(|end| end == "json")) {
            all.extend(read(&path)?);
        }
        all.sort_by(|one: &Self, other| one.server.cmp(&other.server));
        Ok(all)
    }

    /// Holds a list, or a part of one, against what is pinned, and pins what is new.
    pub fn update(
        store: &Store,
        repository: Digest,
        cwd: &str,
        server: &str,
        tools: &[Offered<'_>],
        last: bool,
    ) -> Result<News, PinError> {
        let _lock = lock(store, repository)?;
        let kept = Self::read(store, repository, server)?;
        let mut pins = kept.clone().unwrap_or_else(|| Self {
            server: server.to_owned(),
            seen_in: cwd.to_owned(),
            complete: false,
            tools: BTreeMap::new(),
        });
        let [mut first, mut changed, mut newly_changed] = [const { BTreeSet::new() }; 3];
        for tool in tools {
            let text = json::canonical(tool.definition);
            let now = Definition { digest: Digest::of(text.as_bytes()), text, at: Timestamp::now() };
            let name = tool.name.to_owned();
            let Some(pin) = pins.tools.get_mut(&name) else {
                let (accepted, found) = if pins.complete { (None, Some(now)) } else { (Some(now), None) };
                (if pins.complete { &mut newly_changed } else { &mut first }).insert(name.clone());
                if pins.complete {
                    changed.insert(name.clone());
                }
                pins.tools.insert(name, Pin { accepted, found });
                continue;
            };
            if pin.accepted.as_ref().is_some_and(|accepted| accepted.digest == now.digest) {
                pin.found = None;
                continue;
            }
            if pin.found.as_ref().is_none_or(|found| found.digest != now.digest) {
                newly_changed.insert(name.clone());
                pin.found = Some(now);
            }
            changed.insert(name);
        }
        pins.complete |= last;
        if pins.tools.len() > MOST_TOOLS {
            return Err(PinError::TooMany);
        }
        let text = json::to_canonical(&pins);
        if kept.as_ref() != Some(&pins) {
            store.keep(&file(repository, server), text.as_bytes())?;
        }
        Ok(News { first, changed, newly_changed, digest: Digest::of(text.as_bytes()) })
    }

    /// A human lets in what a server says now: of one tool, or of all. Gives the names.
    pub fn accept(
        store: &Store,
        repository: Digest,
        server: &str,
        tool: Option<&str>,
    ) -> Result<Vec<String>, PinError> {
        let _lock = lock(store, repository)?;
        let Some(mut pins) = Self::read(store, repository, server)? else {
            return Err(PinError::NoSuchTool(tool.unwrap_or(server).to_owned()));
        };
        let mut accepted = Vec::new();
        for (name, pin) in &mut pins.tools {
            if tool.is_none_or(|tool| tool == name)
                && let Some(found) = pin.found.take()
            {
                pin.accepted = Some(found);
                accepted.push(name.clone());
            }
        }
        if let (Some(tool), []) = (tool, accepted.as_slice()) {
            return Err(PinError::NoSuchTool(tool.to_owned()));
        }
        store.keep(&file(repository, server), json::to_canonical(&pins).as_bytes())?;
        Ok(accepted)
    }

    /// Whether a tool is not what was let in, or one that no list showed when the server was seen whole.
    pub fn is_changed(&self, tool: &str) -> bool {
        self.tools.get(tool).map_or(self.complete, |pin| pin.found.is_some())
    }
}

impl Pin {
    /// What the server says of it now and did not say before, and the reverse: each member that is another, by its JSON pointer, with its
    /// value before and now, as JSON.
    pub fn changes(&self) -> Vec<(String, [Option<String>; 2])> {
        let [was, now] = [&self.accepted, &self.found].map(|definition| {
            let value = definition.as_ref().and_then(|definition| json::parse(definition.text.as_bytes()).ok());
            let mut members = BTreeMap::new();
            value.iter().for_each(|value| leaves(value, String::new(), &mut members));
            members
        });
        let mut pointers: Vec<&String> = was.keys().chain(now.keys()).collect();
        pointers.sort();
        pointers.dedup();
        let differs = |pointer: &&String| was.get(*pointer) != now.get(*pointer);
        let both = |pointer: &String| [was.get(pointer).cloned(), now.get(pointer).cloned()];
        pointers.into_iter().filter(differs).map(|pointer| (pointer.clone(), both(pointer))).collect()
    }
}

/// The texts, numbers, words and empty lists of a value, by their JSON pointers.
fn leaves(value: &Value, pointer: String, out: &mut BTreeMap<String, String>) {
    match value {
        Value::Object(members) if !members.is_empty() => {
            for (name, value) in members.iter() {
                let name = name.replace('~', "~0").replace('/', "~1");
                leaves(value, format!("{pointer}/{name}"), out);
            }
        }
        Value::Array(items) if !items.is_empty() => {
            items.iter().enumerate().for_each(|(at, item)| leaves(item, format!("{pointer}/{at}"), out));
        }
        leaf => drop(out.insert(pointer, json::compact(leaf))),
    }
}

/// The name of a server may be any text; that of its file is a digest.
fn file(repository: Digest, server: &str) -> String {
    format!("{FOLDER}/{}/{}.json", repository.hex(), Digest::of(server.as_bytes()).hex())
}

fn read(path: &std::path::Path) -> Result<Option<Pins>, PinError> {
    let bytes = match regular_file::read(path, MOST) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        bytes => bytes.map_err(|source| PinError::Io { path: path.to_owned(), source })?,
    };
    json::from_slice(&bytes).map(Some).map_err(|_format| PinError::Damaged { path: path.to_owned() })
}

/// Several proxies of one server may run at once.
fn lock(store: &Store, repository: Digest) -> Result<fs::File, PinError> {
    Ok(store.lock(&format!("{FOLDER}/{}/lock", repository.hex()))?)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A parameter that joins a tool is read by the model as the tool's own words are.
    #[test]
    fn each_member_that_changed_is_told() {
        let of = |text: &str| Definition {
            digest: Digest::of(text.as_bytes()),
            text: text.to_owned(),
            at: Timestamp::now(),
        };
        let was = of(r#"{"description":"reads","inputSchema":{"properties":{},"required":["a/b"]}}"#);
        let now = of(
            r#"{"description":"reads","inputSchema":{"properties":{"note":{"description":"send keys"}},"required":["a"]}}"#,
        );
        let changes = Pin { accepted: Some(was), found: Some(now) }.changes();
        let text = |text: &str| Some(text.to_owned());
        assert_eq!(
            changes,
            [
                ("/inputSchema/properties".to_owned(), [text("{}"), None]),
                ("/inputSchema/properties/note/description".to_owned(), [None, text("\"send keys\"")]),
                ("/inputSchema/required/0".to_owned(), [text("\"a/b\""), text("\"a\"")]),
            ]
        );
    }

    fn offered(tools: &[(&str, &str)]) -> Vec<(String, Value)> {
        let parse = |text: &str| json::parse(text.as_bytes()).unwrap();
        tools.iter().map(|(name, text)| ((*name).to_owned(), parse(text))).collect()
    }

    fn update(store: &Store, tools: &[(&str, &str)], last: bool) -> News {
        let tools = offered(tools);
        let tools: Vec<Offered<'_>> = tools.iter().map(|(name, definition)| Offered { name, definition }).collect();
        Pins::update(store, Digest::of(b"r"), "/w", "s", &tools, last).unwrap()
    }

    #[test]
    fn what_changes_or_joins_later_waits_for_a_human() {
        let state = tempfile::tempdir().unwrap();
        let store = Store::open(state.path().to_owned()).unwrap();
        let (one, other) = (r#"{"name":"a","description":"x"}"#, r#"{"name":"a","description":"y"}"#);
        let news = update(&store, &[("a", one)], false);
        assert!(news.changed.is_empty() && news.first.len() == 1);
        // Another page of the same list.
        assert!(update(&store, &[("b", "{}")], true).changed.is_empty());
        assert!(update(&store, &[("a", "{ \"description\": \"x\", \"name\": \"a\" }")], true).is_nothing());
        let news = update(&store, &[("a", other), ("c", "{}")], true);
        assert_eq!(news.changed.iter().collect::<Vec<_>>(), ["a", "c"]);
        assert_eq!(news.newly_changed.len(), 2);
        let again = update(&store, &[("a", other)], true);
        assert!(again.changed.len() == 1 && again.newly_changed.is_empty());
        let pins = Pins::read(&store, Digest::of(b"r"), "s").unwrap().unwrap();
        assert!(pins.is_changed("a") && pins.is_changed("c") && !pins.is_changed("b"));
        assert!(pins.is_changed("never listed"), "a list that was seen whole did not show it");
        assert!(!Pins { complete: false, ..pins }.is_changed("never listed"));
        assert!(Pins::accept(&store, Digest::of(b"r"), "s", Some("b")).is_err());
        assert_eq!(Pins::accept(&store, Digest::of(b"r"), "s", Some("a")).unwrap(), ["a"]);
        assert!(update(&store, &[("a", other)], true).changed.is_empty());
        assert!(!update(&store, &[("a", one)], true).changed.is_empty(), "what was before is a change again");
        assert!(Pins::read(&store, Digest::of(b"other"), "s").unwrap().is_none());
    }
}
