//! PostgreSQL: several replicas behind one name.
//!
//! An advisory lock, whose queue is fair, stands for the registry: changing it takes the lock alone, keeping a batch shares it. So no
//! batch commits while the registry changes, and none that was signed under an older one. The lock is taken in a statement of its
//! own, because a statement sees what was committed before it began to wait.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::time::Duration;

use ::postgres::config::{Host, SslMode};
use ::postgres::error::SqlState;
use ::postgres::{Client, Config, NoTls, Row};
use rustls::{ClientConfig, RootCertStore};
use tokio_postgres_rustls::MakeRustlsConnect;
use writ_core::json;
use writ_evidence::registry::Registry;

use super::{Changer, Database, DatabaseError, Identity, Kept, Record, check, chosen};

/// How long the server may take to take a connection or a packet.
const PATIENCE: Duration = Duration::from_secs(5);

const SCHEMA: &str = "
CREATE TABLE IF NOT EXISTS writ_instance (
    one INTEGER PRIMARY KEY CHECK (one = 1), id TEXT NOT NULL, url TEXT NOT NULL, version BIGINT NOT NULL DEFAULT 0);
CREATE TABLE IF NOT EXISTS writ_registry (version BIGINT PRIMARY KEY, document TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS writ_attestation (id TEXT PRIMARY KEY, key_id TEXT NOT NULL, document TEXT NOT NULL);";
/// Two replicas that start at once must not both create the tables.
const SCHEMA_LOCK: i64 = 0x5772_6974;
const REGISTRY_LOCK: i64 = 0x5772_6975;

/// Attestations in a PostgreSQL database.
pub struct Postgres {
    config: Config,
    client: Client,
}

impl fmt::Debug for Postgres {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Postgres")
    }
}

impl Postgres {
    /// Connects and makes the tables that are not there.
    pub fn connect(url: &str) -> Result<Self, DatabaseError> {
        let config = configured(url)?;
        let mut client = connected(&config)?;
        let mut schema = client.transaction().map_err(|error| refused(&error))?;
        let prepared = schema
            .execute("SELECT pg_advisory_xact_lock($1)", &[&SCHEMA_LOCK])
            .and_then(|_rows| schema.batch_execute(SCHEMA))
            .and_then(|()| schema.commit());
        prepared.map_err(|error| refused(&error))?;
        // Elsewhere a character that the database does not know would fail all that are kept in one step with it.
        let encoding = client.query_one("SHOW server_encoding", &[]).map_err(|error| refused(&error))?;
        match text(&encoding, 0)?.as_str() {
            "UTF8" => Ok(Self { config, client }),
            other => Err(DatabaseError::Postgres(format!("the database's encoding is {other}: make one with UTF8"))),
        }
    }

    /// The connection, made anew when it was lost.
    fn client(&mut self) -> Result<&mut Client, DatabaseError> {
        if self.client.is_closed() {
            self.client = connected(&self.config)?;
        }
        Ok(&mut self.client)
    }
}

impl Database for Postgres {
    fn known(&mut self) -> Result<Option<Identity>, DatabaseError> {
        let row =
            self.client()?.query_opt("SELECT id, url FROM writ_instance", &[]).map_err(|error| refused(&error))?;
        row.map(|row| Ok(Identity { id: text(&row, 0)?, url: chosen(text(&row, 1)?) })).transpose()
    }

    fn identity(&mut self, first: &Identity) -> Result<Identity, DatabaseError> {
        check(first)?;
        let client = self.client()?;
        let insert = "INSERT INTO writ_instance (one, id, url) VALUES (1, $1, $2) ON CONFLICT DO NOTHING";
        let url = first.url.as_deref().unwrap_or_default();
        client.execute(insert, &[&first.id, &url]).map_err(|error| refused(&error))?;
        Ok(self.known()?.unwrap_or_else(|| first.clone()))
    }

    fn move_to(&mut self, url: &str) -> Result<(), DatabaseError> {
        let moved = self.client()?.execute("UPDATE writ_instance SET url = $1", &[&url]);
        moved.map_err(|error| refused(&error)).map(|_rows| ())
    }

    fn version(&mut self) -> Result<u64, DatabaseError> {
        let row =
            self.client()?.query_opt("SELECT version FROM writ_instance", &[]).map_err(|error| refused(&error))?;
        row.as_ref().map_or(Ok(0), number)
    }

    fn registry(&mut self) -> Result<Option<Registry>, DatabaseError> {
        let select = "SELECT document FROM writ_registry ORDER BY version DESC LIMIT 1";
        let row = self.client()?.query_opt(select, &[]).map_err(|error| refused(&error))?;
        let document = row.map(|row| text(&row, 0)).transpose()?;
        Ok(document.map(|text| Registry::parse(text.as_bytes())).transpose()?)
    }

    fn history(&mut self) -> Result<Vec<String>, DatabaseError> {
        let select = "SELECT document FROM writ_registry ORDER BY version";
        let rows = self.client()?.query(select, &[]).map_err(|error| refused(&error))?;
        rows.iter().map(|row| text(row, 0)).collect()
    }

    fn change(&mut self, first: &Registry, changer: Changer<'_>) -> Result<Registry, DatabaseError> {
        let mut change = self.client()?.transaction().map_err(|error| refused(&error))?;
        change.execute("SELECT pg_advisory_xact_lock($1)", &[&REGISTRY_LOCK]).map_err(|error| refused(&error))?;
        let select = "SELECT document FROM writ_registry ORDER BY version DESC LIMIT 1";
        let row = change.query_opt(select, &[]).map_err(|error| refused(&error))?;
        let known = row.map(|row| text(&row, 0)).transpose()?;
        let known = known.map(|text| Registry::parse(text.as_bytes())).transpose()?;
        let known = known.as_ref().unwrap_or(first);
        let Some(next) = changer(known)? else { return Ok(known.clone()) };
        let version = i64::try_from(next.version()).unwrap_or(i64::MAX);
        let document = json::to_compact(&next);
        let insert = "INSERT INTO writ_registry (version, document) VALUES ($1, $2)";
        let changed = change
            .execute(insert, &[&version, &document])
            .and_then(|_rows| change.execute("UPDATE writ_instance SET version = $1", &[&version]))
            .and_then(|_rows| change.commit());
        changed.map_err(|error| refused(&error))?;
        Ok(next)
    }

    fn keep(&mut self, version: u64, batch: &[Record]) -> Result<Kept, DatabaseError> {
        let mut keep = self.client()?.transaction().map_err(|error| refused(&error))?;
        let lock = "SELECT pg_advisory_xact_lock_shared($1)";
        keep.execute(lock, &[&REGISTRY_LOCK]).map_err(|error| refused(&error))?;
        let row = keep.query_one("SELECT version FROM writ_instance", &[]).map_err(|error| refused(&error))?;
        if number(&row)? != version {
            return Ok(Kept::Stale);
        }
        let column = |of: fn(&Record) -> &str| batch.iter().map(of).collect::<Vec<&str>>();
        let (ids, keys) = (column(|record| &record.id), column(|record| &record.key_id));
        let documents = column(|record| &record.document);
        let insert = "INSERT INTO writ_attestation (id, key_id, document) SELECT * FROM unnest($1::text[], $2::text[], $3::text[])";
        match keep.execute(insert, &[&ids, &keys, &documents]).and_then(|_rows| keep.commit()) {
            Ok(()) => Ok(Kept::Whole),
            Err(error) if error.code() == Some(&SqlState::UNIQUE_VIOLATION) => Ok(Kept::Taken),
            Err(error) => Err(refused(&error)),
        }
    }

    fn find(&mut self, id: &str) -> Result<Option<Record>, DatabaseError> {
        let select = "SELECT id, key_id, document FROM writ_attestation WHERE id = $1";
        let row = self.client()?.query_opt(select, &[&id]).map_err(|error| refused(&error))?;
        row.map(|row| Ok(Record { id: text(&row, 0)?, key_id: text(&row, 1)?, document: text(&row, 2)? })).transpose()
    }

    fn each(&mut self, see: &mut dyn FnMut(Record) -> bool) -> Result<(), DatabaseError> {
        let mut last = String::new();
        loop {
            let select = "SELECT id, key_id, document FROM writ_attestation WHERE id > $1 ORDER BY id LIMIT 500";
            let rows = self.client()?.query(select, &[&last]).map_err(|error| refused(&error))?;
            if rows.is_empty() {
                return Ok(());
            }
            for row in &rows {
                let record = Record { id: text(row, 0)?, key_id: text(row, 1)?, document: text(row, 2)? };
                last.clone_from(&record.id);
                if !see(record) {
                    return Ok(());
                }
            }
        }
    }

    fn forget(&mut self, ids: &[String]) -> Result<usize, DatabaseError> {
        let delete = "DELETE FROM writ_attestation WHERE id = ANY($1)";
        let gone = self.client()?.execute(delete, &[&ids]).map_err(|error| refused(&error))?;
        Ok(usize::try_from(gone).unwrap_or(usize::MAX))
    }
}

/// The address, with times after which a server that is gone counts as gone.
fn configured(url: &str) -> Result<Config, DatabaseError> {
    let mut config: Config = url.parse().map_err(|error| refused(&error))?;
    // Unless told otherwise, what leaves the machine is encrypted and what does not is not.
    if config.get_ssl_mode() == SslMode::Prefer {
        config.ssl_mode(if is_here(&config) { SslMode::Disable } else { SslMode::Require });
    }
    // A static binary has no name service; this name needs none.
    if config.get_hostaddrs().is_empty() && matches!(config.get_hosts(), [Host::Tcp(name)] if name == "localhost") {
        config.hostaddr(Ipv4Addr::LOCALHOST.into());
    }
    if config.get_connect_timeout().is_none() {
        config.connect_timeout(PATIENCE);
    }
    if config.get_tcp_user_timeout().is_none() {
        config.tcp_user_timeout(PATIENCE);
    }
    Ok(config)
}

/// Whether the server is on this machine.
fn is_here(config: &Config) -> bool {
    let addresses = config.get_hostaddrs();
    let here = |host: &Host| match host {
        Host::Unix(_) => true,
        Host::Tcp(name) => name == "localhost" || name.parse().is_ok_and(|address: IpAddr| address.is_loopback()),
    };
    if addresses.is_empty() { config.get_hosts().iter().all(here) } else { addresses.iter().all(IpAddr::is_loopback) }
}

/// A connection; over TLS when it is required, with a certificate for the host's name by an authority of this machine.
fn connected(config: &Config) -> Result<Client, DatabaseError> {
    if config.get_ssl_mode() != SslMode::Require {
        return config.connect(NoTls).map_err(|error| refused(&error));
    }
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    let tls = ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()));
    let tls = tls.with_safe_default_protocol_versions().map_err(|error| DatabaseError::Postgres(error.to_string()))?;
    let tls = tls.with_root_certificates(roots).with_no_client_auth();
    config.connect(MakeRustlsConnect::new(tls)).map_err(|error| refused(&error))
}

fn text(row: &Row, at: usize) -> Result<String, DatabaseError> {
    row.try_get(at).map_err(|error| refused(&error))
}

fn number(row: &Row) -> Result<u64, DatabaseError> {
    let number: i64 = row.try_get(0).map_err(|error| refused(&error))?;
    Ok(number.unsigned_abs())
}

/// The server's own words where there are any; they do not repeat the address.
fn refused(error: &::postgres::Error) -> DatabaseError {
    let said = error.as_db_error().map(|error| error.message().to_owned());
    let cause =
        || std::error::Error::source(error).map_or_else(|| error.to_string(), |cause| format!("{error}: {cause}"));
    DatabaseError::Postgres(said.unwrap_or_else(cause))
}
