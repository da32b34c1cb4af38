//! Changing a registry: every change is legal, raises the version, and keeps every key that ever was.

use writ_core::Timestamp;

use super::{Key, KeyState, Registry};

/// One change.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Change {
    /// Publishes a new key, pending.
    Publish {
        /// The raw public key.
        public: [u8; 32],
    },
    /// Plans the active key's end (§5.4 step 2).
    Plan {
        /// When the rotation is due.
        at: Timestamp,
    },
    /// Lets a pending key sign; the one that signed until now is deprecated in the same version (§5.4 step 3).
    Activate {
        /// Which.
        id: String,
    },
    /// Takes a key out of signing.
    Deprecate {
        /// Which.
        id: String,
    },
    /// Takes a deprecated key out of rotation for good.
    Retire {
        /// Which.
        id: String,
    },
    /// Takes back everything a key ever signed.
    Compromise {
        /// Which.
        id: String,
    },
}

/// Why a registry cannot be changed like that.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum ChangeError {
    /// No such key.
    #[error("no key `{0}` is in the registry; `writ keys list` shows them")]
    NoSuchKey(String),
    /// Not a legal transition.
    #[error("`{id}` is {from}: a key never goes from {from} to {to}")]
    Illegal {
        /// The key.
        id: String,
        /// Its state.
        from: KeyState,
        /// What was wanted.
        to: KeyState,
    },
    /// A key that has an id already.
    #[error(
        "the file of the new key `{id}` holds a key that is published already: remove that file from the keys folder"
    )]
    Published {
        /// The new key.
        id: String,
    },
    /// Nothing to plan the end of.
    #[error("no key is active, so none can be planned to follow it: run `writ keys rotate` without `--at`")]
    NoneActive,
    /// A rotation in the past.
    #[error("{at} is in the past: give a time in the future")]
    Past {
        /// The moment.
        at: Timestamp,
    },
}

impl Registry {
    /// A registry without keys, whose first change makes version 1.
    pub fn empty(instance: impl Into<String>, now: Timestamp) -> Self {
        Self { instance: instance.into(), keys: Vec::new(), version: 0, updated_at: now }
    }

    /// The id that the next key gets: `{instance}-{n}`, one above all that ever were.
    pub fn next_id(&self) -> String {
        let number = |key: &Key| key.id.strip_prefix(&self.instance)?.strip_prefix('-')?.parse::<u64>().ok();
        let last = self.keys.iter().filter_map(number).max().unwrap_or(0);
        format!("{}-{}", self.instance, last.saturating_add(1))
    }

    /// The pending key that the next rotation activates: the oldest.
    pub fn next_in_line(&self) -> Option<&Key> {
        self.keys.iter().find(|key| key.state == KeyState::Pending)
    }

    /// The rotation that is due at `now`, if one was planned (§5.4 step 3).
    pub fn due(&self, now: Timestamp) -> Option<Change> {
        let end = self.active()?.valid_until?;
        let next = self.next_in_line().filter(|_| now >= end)?;
        Some(Change::Activate { id: next.id.clone() })
    }

    /// The registry after a change.
    pub fn changed(&self, change: &Change, now: Timestamp) -> Result<Self, ChangeError> {
        let mut next = self.clone();
        match change {
            Change::Publish { public } if self.keys.iter().any(|key| key.public == *public) => {
                return Err(ChangeError::Published { id: self.next_id() });
            }
            Change::Publish { public } => next.keys.push(Key {
                id: self.next_id(),
                public: *public,
                state: KeyState::Pending,
                valid_from: None,
                valid_until: None,
                deprecated_at: None,
            }),
            Change::Plan { at } if *at <= now => return Err(ChangeError::Past { at: *at }),
            Change::Plan { at } => {
                let active = next.keys.iter_mut().find(|key| key.state == KeyState::Active);
                active.ok_or(ChangeError::NoneActive)?.valid_until = Some(*at);
            }
            Change::Activate { id } => {
                let old = self.active().filter(|old| old.id != *id);
                // A planned rotation happens when it was planned, however late somebody looks: nothing signed since.
                let at = old.and_then(|old| old.valid_until).filter(|planned| *planned <= now).unwrap_or(now);
                next.step(id, KeyState::Active, at)?;
                if let Some(old) = old {
                    next.step(&old.id, KeyState::Deprecated, at)?;
                }
            }
            Change::Deprecate { id } => next.withdraw(id, KeyState::Deprecated, now)?,
            Change::Retire { id } => next.step(id, KeyState::Retired, now)?,
            Change::Compromise { id } => next.withdraw(id, KeyState::Compromised, now)?,
        }
        next.version = self.version.saturating_add(1);
        // A clock that was set back does not take the registry with it.
        next.updated_at = now.max(self.updated_at);
        Ok(next)
    }

    /// Takes a key out. A planned rotation does not get lost with it: without the active key its successor takes over now, and
    /// without a successor the active key has no end.
    fn withdraw(&mut self, id: &str, to: KeyState, now: Timestamp) -> Result<(), ChangeError> {
        let planned = self.active().filter(|active| active.valid_until.is_some()).map(|active| active.id.clone());
        let follows = self.next_in_line().is_some_and(|next| next.id == id);
        self.step(id, to, now)?;
        let next = self.next_in_line().map(|next| next.id.clone());
        match (planned, next) {
            (Some(active), Some(next)) if active == id => self.step(&next, KeyState::Active, now),
            (Some(active), None) if follows => {
                let active = self.keys.iter_mut().find(|key| key.id == active);
                active.into_iter().for_each(|active| active.valid_until = None);
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn step(&mut self, id: &str, to: KeyState, now: Timestamp) -> Result<(), ChangeError> {
        let key = self.keys.iter_mut().find(|key| key.id == id);
        let key = key.ok_or_else(|| ChangeError::NoSuchKey(id.to_owned()))?;
        if !key.state.may_become(to) {
            return Err(ChangeError::Illegal { id: id.to_owned(), from: key.state, to });
        }
        key.state = to;
        match to {
            KeyState::Active => key.valid_from = Some(now),
            KeyState::Deprecated => {
                key.valid_from.get_or_insert(now);
                key.valid_until.get_or_insert(now);
                key.deprecated_at = Some(now);
            }
            KeyState::Pending | KeyState::Retired | KeyState::Compromised => {}
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use writ_core::json::{compact, to_value};

    use super::*;
    use crate::keys::{Algorithm, SigningKey};

    fn public() -> [u8; 32] {
        SigningKey::generate(Algorithm::Ed25519).unwrap().public().raw().try_into().unwrap()
    }

    fn at(second: i64) -> Timestamp {
        Timestamp::from_millis(second * 1000)
    }

    #[test]
    fn a_rotation_from_beginning_to_end() {
        let mut registry = Registry::empty("writ", at(0));
        let mut go = |change: Change, second: i64| {
            let next = registry.changed(&change, at(second)).unwrap();
            next.may_follow(&registry).unwrap();
            assert!(registry.may_follow(&next).is_err());
            registry = Registry::parse(compact(&to_value(&next)).as_bytes()).unwrap();
            assert_eq!(registry, next);
            registry.clone()
        };
        go(Change::Publish { public: public() }, 1);
        go(Change::Activate { id: "writ-1".into() }, 2);
        go(Change::Publish { public: public() }, 3);
        let planned = go(Change::Plan { at: at(10) }, 4);
        assert_eq!(planned.due(at(9)), None);
        let due = planned.due(at(15)).unwrap();
        let rotated = go(due, 15);
        assert_eq!(rotated.active().unwrap().id, "writ-2");
        assert_eq!(rotated.active().unwrap().valid_from, Some(at(10)));
        assert_eq!(rotated.key("writ-1").unwrap().deprecated_at, Some(at(10)));
        go(Change::Retire { id: "writ-1".into() }, 16);
        let last = go(Change::Compromise { id: "writ-2".into() }, 17);
        assert_eq!((last.version(), last.active(), last.next_id().as_str()), (7, None, "writ-3"));
    }

    #[test]
    fn nothing_goes_backwards() {
        let publish = |registry: Registry| registry.changed(&Change::Publish { public: public() }, at(1)).unwrap();
        let registry = publish(publish(Registry::empty("writ", at(0))));
        let id = "writ-1".to_owned();
        let active = registry.changed(&Change::Activate { id: id.clone() }, at(1)).unwrap();
        let deprecated = active.changed(&Change::Deprecate { id: id.clone() }, at(1)).unwrap();
        let retired = deprecated.changed(&Change::Retire { id: id.clone() }, at(1)).unwrap();
        let compromised = retired.changed(&Change::Compromise { id: id.clone() }, at(1)).unwrap();
        let allowed = [
            (&registry, [true, true, false, true]),
            (&active, [false, true, false, true]),
            (&deprecated, [false, false, true, true]),
            (&retired, [false, false, false, true]),
            (&compromised, [false, false, false, false]),
        ];
        for (registry, allowed) in allowed {
            let changes = [
                Change::Activate { id: id.clone() },
                Change::Deprecate { id: id.clone() },
                Change::Retire { id: id.clone() },
                Change::Compromise { id: id.clone() },
            ];
            for (change, allowed) in changes.iter().zip(allowed) {
                assert_eq!(registry.changed(change, at(2)).is_ok(), allowed, "{change:?}");
            }
        }
        assert!(active.changed(&Change::Plan { at: at(1) }, at(2)).is_err());
        assert!(active.changed(&Change::Retire { id: "writ-9".into() }, at(2)).is_err());
    }

    #[test]
    fn a_planned_rotation_is_not_lost() {
        let go = |registry: &Registry, change: Change, second: i64| {
            let next = registry.changed(&change, at(second)).unwrap();
            next.may_follow(registry).unwrap();
            next
        };
        let mut planned = go(&Registry::empty("writ", at(0)), Change::Publish { public: public() }, 1);
        planned = go(&planned, Change::Activate { id: "writ-1".into() }, 1);
        planned = go(&planned, Change::Publish { public: public() }, 2);
        planned = go(&planned, Change::Plan { at: at(10) }, 2);
        assert!(planned.signing(at(9)).is_some() && planned.signing(at(10)).is_none());
        let (first, second) = ("writ-1".to_owned(), "writ-2".to_owned());
        // The successor goes: nothing ends.
        for change in [Change::Deprecate { id: second.clone() }, Change::Compromise { id: second.clone() }] {
            let without = go(&planned, change, 3);
            assert_eq!(without.active().unwrap().valid_until, None);
            assert_eq!(without.signing(at(20)).unwrap().id, first);
        }
        // The active one goes: the successor takes over.
        for change in [Change::Deprecate { id: first.clone() }, Change::Compromise { id: first.clone() }] {
            let without = go(&planned, change, 3);
            assert_eq!(without.signing(at(20)).unwrap().id, second);
            assert_eq!(without.active().unwrap().valid_from, Some(at(3)));
        }
        // Another key's end changes no plan.
        let third = go(&planned, Change::Publish { public: public() }, 3);
        let kept = go(&third, Change::Compromise { id: "writ-3".into() }, 4);
        assert_eq!((kept.active().unwrap().valid_until, kept.next_in_line()), (Some(at(10)), planned.next_in_line()));
        let kept = go(&third, Change::Compromise { id: second }, 4);
        assert_eq!(kept.due(at(10)), Some(Change::Activate { id: "writ-3".into() }));
    }

    #[test]
    fn the_order_of_keys_says_nothing() {
        let publish = |registry: &Registry| registry.changed(&Change::Publish { public: public() }, at(1)).unwrap();
        let registry = publish(&publish(&Registry::empty("writ", at(0))));
        let mut turned = registry.clone();
        turned.keys.reverse();
        turned.may_follow(&registry).unwrap();
        // A key that was withdrawn as compromised does not come back under another name.
        let mut renamed = turned.clone();
        renamed.version += 1;
        renamed.keys.retain(|key| key.id != "writ-1");
        renamed.may_follow(&registry).unwrap();
        renamed.keys.push(Key { id: "writ-9".into(), ..registry.keys[0].clone() });
        assert!(renamed.may_follow(&registry).is_err());
        let twice = registry.changed(&Change::Publish { public: registry.keys[0].public }, at(2));
        assert_eq!(twice, Err(ChangeError::Published { id: "writ-3".into() }));
        renamed.keys.push(registry.keys[0].clone());
        let printed = compact(&to_value(&renamed));
        assert!(matches!(Registry::parse(printed.as_bytes()), Err(crate::registry::RegistryError::OneKey(..))));
        let bends: [fn(&mut Vec<Key>); 3] =
            [|keys| keys.truncate(1), |keys| keys[0].state = KeyState::Active, |keys| keys[0].public = keys[1].public];
        for bend in bends {
            let mut bent = turned.clone();
            bend(&mut bent.keys);
            assert!(bent.may_follow(&registry).is_err());
            assert!(registry.may_follow(&bent).is_err());
        }
    }
}
