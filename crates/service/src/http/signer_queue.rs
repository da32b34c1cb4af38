//! The signer queue: requests wait for the one thread that signs and keeps; another tidies up behind it.
//!
//! Owns the issuer. The thread takes everything that waits at once and puts it under one durable step, so that the disk is flushed once for
//! many requests. Invariant: an answer leaves only after its attestation is durable. By hand: `tower`'s buffer and the batching crates
//! gather by count and time, in a task; here a step takes what is there, bounded in bytes, on a thread that may block.

use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::{Builder, JoinHandle, sleep};
use std::time::Duration;

use tokio::sync::mpsc::{self, error::TrySendError};
use tokio::sync::oneshot;
use writ_engine::attest::archive::Archive;
use writ_engine::attest::issuer::{Issuer, IssuerError, Prepared};

use super::error::ApiError;
use super::telemetry::Metrics;

/// Most requests that wait.
const WAITING: usize = 4096;
/// Most attestations of one step.
const BATCH: usize = 256;
/// Most bytes of one step, unless one alone has more.
const BATCH_BYTES: usize = 16 << 20;
/// How long what was kept waits to be tidied up.
const UNTIDY: Duration = Duration::from_millis(50);

struct Job {
    prepared: Prepared,
    answer: oneshot::Sender<Option<String>>,
}

/// Where requests wait for their attestation.
#[derive(Clone)]
pub struct SignerQueue(mpsc::Sender<Job>);

impl SignerQueue {
    /// Starts the threads. They end when the last sender is dropped.
    pub fn open(issuer: Issuer, archive: Archive, metrics: Metrics) -> std::io::Result<(Self, [JoinHandle<()>; 2])> {
        let (sender, jobs) = mpsc::channel(WAITING);
        let (kept, untidy) = sync_channel(1);
        let tidier = Builder::new().name("writ-tidier".to_owned());
        let tidier = tidier.spawn(move || tidy(archive, &untidy))?;
        let signer = Builder::new().name("writ-signer".to_owned());
        let signer = signer.spawn(move || work(issuer, jobs, &kept, &metrics))?;
        Ok((Self(sender), [signer, tidier]))
    }

    /// Whether nobody works there any more.
    pub fn is_gone(&self) -> bool {
        self.0.is_closed()
    }

    /// The attestation's canonical document, durable.
    pub async fn attest(&self, prepared: Prepared) -> Result<String, ApiError> {
        let (answer, document) = oneshot::channel();
        match self.0.try_send(Job { prepared, answer }) {
            Ok(()) => {}
            Err(TrySendError::Full(_)) => return Err(ApiError::Busy),
            Err(TrySendError::Closed(_)) => return Err(ApiError::Unattested),
        }
        document.await.ok().flatten().ok_or(ApiError::Unattested)
    }
}

fn work(mut issuer: Issuer, mut jobs: mpsc::Receiver<Job>, kept: &SyncSender<()>, metrics: &Metrics) {
    while let Some(first) = jobs.blocking_recv() {
        let mut bytes = first.prepared.bytes();
        let (mut batch, mut answers) = (vec![first.prepared], vec![first.answer]);
        while batch.len() < BATCH && bytes < BATCH_BYTES {
            let Ok(next) = jobs.try_recv() else { break };
            bytes = bytes.saturating_add(next.prepared.bytes());
            batch.push(next.prepared);
            answers.push(next.answer);
        }
        metrics.batch(batch.len());
        // A connection that was lost since the last batch is found out by the first try and made anew by the second.
        match issuer.sign(&batch).or_else(|error| again(&mut issuer, &batch, error)) {
            Ok(documents) => {
                metrics.attested(documents.len());
                for (answer, document) in answers.into_iter().zip(documents) {
                    // Whoever asked may have gone; the attestation is kept all the same.
                    drop(answer.send(Some(document)));
                }
                // When it is full the tidier knows already.
                kept.try_send(()).ok();
            }
            Err(error) => {
                metrics.not_attested(answers.len());
                tracing::error!(event = "not_attested", why = error.to_string());
                answers.into_iter().for_each(|answer| drop(answer.send(None)));
            }
        }
    }
}

fn again(issuer: &mut Issuer, batch: &[Prepared], error: IssuerError) -> Result<Vec<String>, IssuerError> {
    if matches!(error, IssuerError::Database(_)) { issuer.sign(batch) } else { Err(error) }
}

fn tidy(mut archive: Archive, untidy: &Receiver<()>) {
    while untidy.recv().is_ok() {
        sleep(UNTIDY);
        if let Err(error) = archive.tidy() {
            tracing::warn!(event = "untidy", why = error.to_string());
        }
    }
}
