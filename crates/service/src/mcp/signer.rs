//! The signer: one thread that holds the keys and the database, and takes one job at a time.
//!
//! The database's client blocks and must not be dropped inside a runtime, so it lives where there is none.

use std::path::Path;
use std::sync::mpsc;
use std::{io, thread};

use writ_core::Timestamp;
use writ_core::json::{self, Limits, Value};
use writ_core::secret::hide;
use writ_engine::attest::issuer::{Issuer, IssuerError, SHELF_LIFE_SECONDS, Statement};
use writ_engine::attest::subject;
use writ_evidence::attestation::{self, Attestation};
use writ_evidence::registry::Registry;

type Job = Box<dyn FnOnce(&mut Issuer) + Send>;

/// What this process is to attestations.
pub enum Instance {
    /// It has an instance's keys and registry.
    Here {
        /// Who holds them.
        signer: Signer,
        /// Whether reports are attested.
        attests: bool,
    },
    /// There is none on this machine.
    None,
    /// There is one, and it cannot be used.
    Broken(String),
}

/// The way to that thread.
pub struct Signer {
    jobs: mpsc::Sender<Job>,
    url: String,
}

/// What the issuer could not do.
#[derive(Debug, thiserror::Error)]
pub enum SignerError {
    /// It said why.
    #[error("{}", hide(&.0.to_string()))]
    Issuer(#[from] IssuerError),
    /// Its thread is gone.
    #[error("the issuer is gone")]
    Gone,
}

impl Instance {
    /// The instance of a state folder. One that is to attest is made when there is none; else nothing is made.
    /// `url` is where its attestations are found: it moves there if it is told to, or never was anywhere.
    pub fn open(
        state: &Path,
        database: Option<&str>,
        attests: bool,
        url: Option<(&str, bool)>,
    ) -> Result<Self, IssuerError> {
        if !attests && database.is_none() && !state.join(writ_store::instance::FILE).exists() {
            return Ok(Self::None);
        }
        let opened = Issuer::open(state, database, None).and_then(|mut issuer| {
            match url {
                Some((url, told)) if attests && (told || issuer.identity().url.is_none()) => issuer.move_to(url)?,
                Some(_) | None => {}
            }
            Ok(issuer)
        });
        match opened.map(Signer::new) {
            Ok(Ok(signer)) => Ok(Self::Here { signer, attests }),
            Err(error) if attests => Err(error),
            Err(error) => Ok(Self::Broken(hide(&error.to_string()))),
            Ok(Err(error)) => Ok(Self::Broken(error.to_string())),
        }
    }
}

impl Signer {
    /// Gives the issuer a thread.
    pub fn new(mut issuer: Issuer) -> io::Result<Self> {
        let url = issuer.identity().url().to_owned();
        let (jobs, queue) = mpsc::channel::<Job>();
        let work = move || queue.into_iter().for_each(|job| job(&mut issuer));
        thread::Builder::new().name("issuer".to_owned()).spawn(work)?;
        Ok(Self { jobs, url })
    }

    /// The instance's base URL.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// The report with its durable attestation beside it.
    pub fn attest(&self, input: Value, output: Value) -> Result<Value, SignerError> {
        let statement =
            Statement { input, output: output.clone(), seconds: SHELF_LIFE_SECONDS, chain_id: None, parent: None };
        let issued = self.ask(move |issuer| issuer.issue(&[statement]))??;
        let document = issued.first().and_then(|text| json::parse_with(text.as_bytes(), Limits::SIGNED).ok());
        Ok(subject::response(output, document.ok_or(SignerError::Gone)?))
    }

    /// The registry as it is now.
    pub fn registry(&self) -> Result<Registry, SignerError> {
        Ok(self.ask(|issuer| issuer.registry(Timestamp::now()))??)
    }

    /// The document of an attestation this instance issued.
    pub fn find(&self, id: &str) -> Result<Option<String>, SignerError> {
        let id = id.to_owned();
        Ok(self.ask(move |issuer| issuer.find(&id))??.map(|record| record.document))
    }

    /// Whether an attestation says it is of this instance.
    pub fn issued(&self, attestation: &Attestation) -> bool {
        same_instance(attestation.instance(), &self.url)
    }

    fn ask<T: Send + 'static>(&self, job: impl FnOnce(&mut Issuer) -> T + Send + 'static) -> Result<T, SignerError> {
        let (answer, answered) = mpsc::sync_channel(1);
        let job = Box::new(move |issuer: &mut Issuer| drop(answer.send(job(issuer))));
        self.jobs.send(job).map_err(|_closed| SignerError::Gone)?;
        answered.recv().map_err(|_closed| SignerError::Gone)
    }
}

/// Whether two base URLs are of one instance, however they are spelled.
pub fn same_instance(one: &str, other: &str) -> bool {
    let [one, other] = [one, other].map(attestation::Instance::parse);
    one.is_ok() && one == other
}

#[cfg(test)]
mod tests {
    use super::same_instance;

    #[test]
    fn one_instance_in_many_spellings() {
        for other in ["http://a.example", "http://a.example:80", "http://A.Example"] {
            assert!(same_instance(other, "http://a.example"), "{other}");
        }
        for other in ["https://a.example", "http://a.example:8080", "http://b.example", "http://a.example."] {
            assert!(!same_instance("http://a.example", other), "{other}");
        }
        assert!(!same_instance("http://127.1", "http://127.1"));
    }
}
