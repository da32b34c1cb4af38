//! The issuer: it holds the keys of an attesting instance and puts verdicts under signature.
//!
//! Owns the way from a report to a kept attestation, and the operator's changes of the registry. Refuses to sign with a key that the
//! newest registry does not have as active: what was signed under an older one is thrown away and signed again. Invariant: an
//! attestation that [`Issuer::issue`] returned is durable, and its key was active when it was kept. Page: `spec/attestation.md`.

use std::path::Path;

use writ_core::json::{JsonError, Value};
use writ_core::{Digest, Timestamp};
use writ_evidence::attestation::Draft;
use writ_evidence::keys::{KeyError, random};
use writ_evidence::registry::{Change, ChangeError, Key, Registry};
use writ_store::StoreError;
use writ_store::instance::{Custodian, Database, DatabaseError, FileCustodian, Identity, Kept, Record, Signer};

/// The logic whose verdicts are attested, and its version.
pub const EVALUATOR: &str = concat!("writ:consequence:", env!("CARGO_PKG_VERSION"));
/// How long a verdict holds unless told otherwise.
pub const SHELF_LIFE_SECONDS: i64 = 15 * 60;
/// How often a batch is signed again because the registry moved or a timestamp was taken.
const ATTEMPTS: u32 = 16;

/// Why nothing was attested.
#[derive(Debug, thiserror::Error)]
pub enum IssuerError {
    /// The database, or an illegal change.
    #[error(transparent)]
    Database(#[from] DatabaseError),
    /// The keys.
    #[error(transparent)]
    Keys(#[from] StoreError),
    /// No key may sign.
    #[error("no key may sign now: `writ keys rotate` makes one")]
    NoActiveKey,
    /// The registry names an active key that this machine does not have.
    #[error(
        "the key `{0}` is active, and its private half is not in this machine's keys folder: put `{0}.pem` there, or run `writ keys rotate`"
    )]
    NotHere(String),
    /// The registry changed faster than a batch could be signed.
    #[error("the registry keeps changing: try again")]
    Unsettled,
    /// What was signed does not read: a report with more levels or bytes than an attestation may have.
    #[error("the report cannot be attested: {0}")]
    Unreadable(JsonError),
    /// The system gave no random numbers.
    #[error(transparent)]
    Random(#[from] KeyError),
}

/// What is to be attested.
#[derive(Clone, Debug)]
pub struct Statement {
    /// What was evaluated, as [`super::subject`] writes it.
    pub input: Value,
    /// The report.
    pub output: Value,
    /// How long the verdict holds, in seconds.
    pub seconds: i64,
    /// What ties several attestations together; made up when this is the first.
    pub chain_id: Option<String>,
    /// Digest of the attestation this one rests on.
    pub parent: Option<Digest>,
}

/// A statement in its canonical form, ready to be signed. Making it needs no key and no database.
#[derive(Clone, Debug)]
pub struct Prepared {
    draft: Draft,
    seconds: i64,
}

impl Statement {
    /// Writes the canonical form and draws the random members.
    pub fn prepare(&self) -> Result<Prepared, IssuerError> {
        let mut draft = Draft::new(&self.input, &self.output, EVALUATOR, String::new());
        draft.nonce = Some(random()?);
        draft.chain_id = Some(match &self.chain_id {
            Some(chain) => chain.clone(),
            None => format!("{:032x}", random()?),
        });
        draft.parent = self.parent;
        Ok(Prepared { draft, seconds: self.seconds })
    }
}

impl Prepared {
    /// The report, canonical.
    pub fn output(&self) -> &str {
        &self.draft.output
    }

    /// How many bytes its parts have.
    pub const fn bytes(&self) -> usize {
        self.draft.input.len().saturating_add(self.draft.output.len())
    }
}

/// The keys and the database of one instance.
pub struct Issuer {
    database: Box<dyn Database>,
    custodian: Box<dyn Custodian>,
    identity: Identity,
    ready: Option<Ready>,
    last: i128,
}

/// The key that signs, under the registry that says so.
struct Ready {
    version: u64,
    key_id: String,
    until: Option<Timestamp>,
    signer: Box<dyn Signer>,
}

impl std::fmt::Debug for Issuer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Issuer({} at {})", self.identity.id, self.identity.url())
    }
}

impl Issuer {
    /// Opens the instance of a state folder, whose registry may be in another database. `first` says who it is when nobody was there.
    pub fn open(state: &Path, database: Option<&str>, first: Option<Identity>) -> Result<Self, IssuerError> {
        let mut database = writ_store::instance::open(state, database)?;
        let custodian: Box<dyn Custodian> = Box::new(FileCustodian::new(state.join("keys")));
        let identity = match database.known()? {
            Some(known) => known,
            None => {
                let first = first.map_or_else(Self::unnamed_identity, Ok)?;
                begun(database.as_mut(), custodian.as_ref(), &first)?
            }
        };
        Ok(Self { database, custodian, identity, ready: None, last: 0 })
    }

    /// Who an instance is that nobody gave a name.
    pub fn unnamed_identity() -> Result<Identity, IssuerError> {
        Ok(Identity { id: format!("writ-{:08x}", random()? >> 96), url: None })
    }

    /// Who the instance is.
    pub const fn identity(&self) -> &Identity {
        &self.identity
    }

    /// What its custody of the keys is worth.
    pub fn custody(&self) -> &'static str {
        self.custodian.custody()
    }

    /// Moves it to another base URL: from now on its attestations are found there.
    pub fn move_to(&mut self, url: &str) -> Result<(), IssuerError> {
        let identity = Identity { url: Some(url.trim_end_matches('/').to_owned()), ..self.identity.clone() };
        writ_store::instance::check(&identity)?;
        if identity != self.identity {
            self.database.move_to(identity.url())?;
            self.identity = identity;
        }
        Ok(())
    }

    /// The registry as it is now; a rotation that is due happens first.
    pub fn registry(&mut self, now: Timestamp) -> Result<Registry, IssuerError> {
        match self.database.registry()? {
            Some(registry) if registry.due(now).is_none() => Ok(registry),
            _ => self.rotate_if_due(now),
        }
    }

    /// Every version of the registry, oldest first.
    pub fn history(&mut self) -> Result<Vec<String>, IssuerError> {
        Ok(self.database.history()?)
    }

    /// An attestation by its id.
    pub fn find(&mut self, id: &str) -> Result<Option<Record>, IssuerError> {
        Ok(self.database.find(id)?)
    }

    /// One of the operator's changes.
    pub fn change(&mut self, change: &Change, now: Timestamp) -> Result<Registry, IssuerError> {
        let first = self.rotate_if_due(now)?;
        let changer = &mut |known: &Registry| known.changed(change, later(now)).map(Some);
        Ok(self.database.change(&first, changer)?)
    }

    /// Publishes a new key, unless one is waiting already (§5.4 step 1).
    fn publish(&mut self, now: Timestamp) -> Result<Key, IssuerError> {
        for _ in 0..ATTEMPTS {
            let known = self.rotate_if_due(now)?;
            let id = known.next_id();
            let public = self.custodian.make(&id)?;
            let publish = &mut |known: &Registry| {
                // Another process may have published since; then its key is the one in line.
                let wanted = known.next_in_line().is_none() && known.next_id() == id;
                wanted.then(|| known.changed(&Change::Publish { public }, later(now))).transpose()
            };
            let registry = self.database.change(&known, publish)?;
            if let Some(key) = registry.next_in_line() {
                return Ok(key.clone());
            }
        }
        Err(IssuerError::Unsettled)
    }

    /// Rotates now, or plans to (§5.4).
    pub fn rotate(&mut self, at: Option<Timestamp>, now: Timestamp) -> Result<Registry, IssuerError> {
        if let Some(at) = at.filter(|at| *at <= now) {
            return Err(DatabaseError::from(ChangeError::Past { at }).into());
        }
        if at.is_some() && self.rotate_if_due(now)?.active().is_none() {
            return Err(DatabaseError::from(ChangeError::NoneActive).into());
        }
        let next = self.publish(now)?;
        self.change(&at.map_or(Change::Activate { id: next.id }, |at| Change::Plan { at }), now)
    }

    /// Attests, in one durable step: everything or nothing.
    pub fn issue(&mut self, statements: &[Statement]) -> Result<Vec<String>, IssuerError> {
        let prepared: Vec<Prepared> = statements.iter().map(Statement::prepare).collect::<Result<_, _>>()?;
        self.sign(&prepared)
    }

    /// [`Issuer::issue`] of what was prepared elsewhere: the part that only the holder of the keys can do.
    pub fn sign(&mut self, statements: &[Prepared]) -> Result<Vec<String>, IssuerError> {
        for _ in 0..ATTEMPTS {
            let ready = prepare(&mut self.ready, self.database.as_mut(), self.custodian.as_ref(), &self.identity)?;
            let (mut records, mut late) = (Vec::with_capacity(statements.len()), false);
            for Prepared { draft, seconds } in statements {
                let (now, timestamp) = Timestamp::distinct(&mut self.last);
                late |= ready.until.is_some_and(|end| now >= end);
                let end = now.millis().saturating_add(seconds.saturating_mul(1000));
                let draft = Draft { timestamp, expires_at: Some(Timestamp::from_millis(end)), ..draft.clone() };
                let pending = draft.pend(&ready.key_id, self.identity.url());
                let id = pending.id.clone();
                let signature = ready.signer.sign(pending.payload().as_bytes())?;
                records.push(Record { id, key_id: ready.key_id.clone(), document: pending.signed(&signature) });
            }
            if late {
                self.ready = None;
                continue;
            }
            match self.database.keep(ready.version, &records)? {
                Kept::Whole => return Ok(records.into_iter().map(|record| record.document).collect()),
                Kept::Stale => self.ready = None,
                Kept::Taken => {}
            }
        }
        Err(IssuerError::Unsettled)
    }

    /// The first key when there was none, and the rotation that is due.
    fn rotate_if_due(&mut self, now: Timestamp) -> Result<Registry, IssuerError> {
        rotate_if_due(self.database.as_mut(), self.custodian.as_ref(), &self.identity, now)
    }
}

/// A new instance, beside no key that ever attested. An instance is written down before it makes a key: a key without one has lost
/// its database, and with it who knew whether it was compromised.
fn begun(database: &mut dyn Database, custodian: &dyn Custodian, first: &Identity) -> Result<Identity, IssuerError> {
    match custodian.held(None, None)? {
        None => Ok(database.identity(first)?),
        // Another process may have begun since, and made its key.
        Some(path) => database.known()?.ok_or_else(|| StoreError::Orphan { path }.into()),
    }
}

fn rotate_if_due(
    database: &mut dyn Database,
    custodian: &dyn Custodian,
    identity: &Identity,
    now: Timestamp,
) -> Result<Registry, IssuerError> {
    let first = Registry::empty(identity.id.clone(), now);
    let mut registry = database.registry()?.unwrap_or_else(|| first.clone());
    if registry.keys().is_empty() {
        let id = registry.next_id();
        // Only the first key can have been made before the registry had one.
        if let Some(path) = custodian.held(Some(&identity.id), Some(&id))?
            && database.registry()?.is_none_or(|registry| registry.keys().is_empty())
        {
            return Err(StoreError::Orphan { path }.into());
        }
        let public = custodian.make(&id)?;
        let publish = &mut |known: &Registry| {
            let publish = || known.changed(&Change::Publish { public }, now);
            known.keys().is_empty().then(publish).transpose()
        };
        registry = database.change(&first, publish)?;
    }
    // Also the one that a process published before it died.
    let activation = |known: &Registry| {
        let first = known.next_in_line().filter(|_| known.version() == 1)?;
        Some(Change::Activate { id: first.id.clone() })
    };
    if activation(&registry).is_some() {
        let activate =
            &mut |known: &Registry| activation(known).map(|change| known.changed(&change, later(now))).transpose();
        registry = database.change(&first, activate)?;
    }
    rotated(database, registry, now)
}

/// The registry after the rotation that is due in it, if one is.
pub(crate) fn rotated(
    database: &mut dyn Database,
    registry: Registry,
    now: Timestamp,
) -> Result<Registry, IssuerError> {
    if registry.due(now).is_none() {
        return Ok(registry);
    }
    let rotate = &mut |known: &Registry| known.due(now).map(|change| known.changed(&change, later(now))).transpose();
    Ok(database.change(&registry, rotate)?)
}

/// A change happens when nobody else can change or sign any more, which may be long after it was asked for: what was signed while it
/// waited was signed before.
fn later(asked: Timestamp) -> Timestamp {
    Timestamp::now().max(asked)
}

/// The key that signs now. Asks for the whole registry only when its version moved or a rotation is due.
fn prepare<'a>(
    ready: &'a mut Option<Ready>,
    database: &mut dyn Database,
    custodian: &dyn Custodian,
    identity: &Identity,
) -> Result<&'a Ready, IssuerError> {
    let now = Timestamp::now();
    let fresh = match ready.take() {
        Some(known) if known.until.is_none_or(|end| now < end) => known,
        _ => {
            let registry = rotate_if_due(database, custodian, identity, now)?;
            let active = registry.signing(now).ok_or(IssuerError::NoActiveKey)?;
            let signer = custodian.signer(&active.id, &active.public)?;
            let signer = signer.ok_or_else(|| IssuerError::NotHere(active.id.clone()))?;
            Ready { version: registry.version(), key_id: active.id.clone(), until: active.valid_until, signer }
        }
    };
    Ok(ready.insert(fresh))
}
