//! A network and a log that do as they are told.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::fs;
use std::path::PathBuf;

use writ_verifier::{Event, Fetch, Fetched, Log, NetworkError, StateError, What};

use crate::reference::Web;

/// The network. Every address answers from a list, then not at all.
#[derive(Default)]
pub struct Net {
    pub answers: RefCell<HashMap<String, Vec<Result<Fetched, NetworkError>>>>,
    pub requests: Cell<usize>,
}

impl Fetch for &Net {
    fn get(&self, url: &str, _limit: usize) -> Result<Fetched, NetworkError> {
        self.requests.set(self.requests.get() + 1);
        let mut answers = self.answers.borrow_mut();
        let answers = answers.get_mut(url).unwrap_or_else(|| panic!("nobody may ask for {url}"));
        if answers.len() > 1 { answers.remove(0) } else { answers[0].clone() }
    }
}

/// The log. Told to, it fails; at a forced refresh it looks whether the cache is still as it was.
#[derive(Default)]
pub struct Notes {
    pub events: RefCell<Vec<Event>>,
    pub fails: Cell<bool>,
    pub unchanged: RefCell<Option<(PathBuf, Option<Vec<u8>>)>>,
}

impl Log for &Notes {
    fn record(&self, event: &Event) -> Result<(), StateError> {
        if let (What::ForceRefresh { .. }, Some((path, bytes))) = (&event.what, &*self.unchanged.borrow()) {
            assert_eq!(fs::read(path).ok(), *bytes, "the refresh took effect before it was recorded");
        }
        if self.fails.get() {
            return Err(StateError::Log("the disk is full".to_owned()));
        }
        self.events.borrow_mut().push(event.clone());
        Ok(())
    }
}

/// What an address answers, one after the other.
pub fn answers<T>(web: &Web<T>, body: impl Fn(&T) -> Vec<u8>, garbage: Vec<u8>) -> Vec<Result<Fetched, NetworkError>> {
    let serves = |body: Vec<u8>| Ok(Fetched { status: 200, body });
    match web {
        Web::Status(status) => vec![Ok(Fetched { status: *status, body: b"{}".to_vec() })],
        Web::Garbage => vec![serves(garbage)],
        Web::Serves(it) => vec![serves(body(it))],
        Web::Flaky(fails, it) => {
            let down = |number: u8| match number % 2 {
                0 => Err(NetworkError("timed out".to_owned())),
                _ => Ok(Fetched { status: 503, body: Vec::new() }),
            };
            (0..*fails).map(down).chain([serves(body(it))]).collect()
        }
    }
}
