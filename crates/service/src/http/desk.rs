//! The desk: the one thread that signs and keeps.
//!
//! Owns the notary. It takes everything that waits at once and puts it under one durable step, so that the disk is flushed once for
//! many requests. Invariant: an answer leaves only after its attestation is durable.

use std::thread::JoinHandle;

use tokio::sync::mpsc::{self, error::TrySendError};
use tokio::sync::oneshot;
use writ_engine::notary::{Notary, NotaryError, Prepared};

use super::answer::Refusal;
use super::log::{Field, Log};
use super::metrics::Metrics;

/// Most requests that wait.
const WAITING: usize = 4096;
/// Most attestations of one step.
const BATCH: usize = 256;
/// Most bytes of one step, unless one alone has more.
const BATCH_BYTES: usize = 16 << 20;

struct Job {
    prepared: Prepared,
    answer: oneshot::Sender<Option<String>>,
}

/// Where requests wait for their attestation.
#[derive(Clone)]
pub struct Desk(mpsc::Sender<Job>);

impl Desk {
    /// Starts the thread. It ends when the last desk is dropped.
    pub fn open(notary: Notary, metrics: Metrics, log: Log) -> std::io::Result<(Self, JoinHandle<()>)> {
        let (sender, jobs) = mpsc::channel(WAITING);
        let thread = std::thread::Builder::new().name("writ-desk".to_owned());
        let thread = thread.spawn(move || work(notary, jobs, &metrics, &log))?;
        Ok((Self(sender), thread))
    }

    /// The attestation's canonical document, durable.
    pub async fn attest(&self, prepared: Prepared) -> Result<String, Refusal> {
        let (answer, document) = oneshot::channel();
        match self.0.try_send(Job { prepared, answer }) {
            Ok(()) => {}
            Err(TrySendError::Full(_)) => return Err(Refusal::Busy),
            Err(TrySendError::Closed(_)) => return Err(Refusal::Unattested),
        }
        document.await.ok().flatten().ok_or(Refusal::Unattested)
    }
}

fn work(mut notary: Notary, mut jobs: mpsc::Receiver<Job>, metrics: &Metrics, log: &Log) {
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
        match notary.sign(&batch).or_else(|error| again(&mut notary, &batch, error)) {
            Ok(documents) => {
                metrics.attested(documents.len());
                for (answer, document) in answers.into_iter().zip(documents) {
                    // Whoever asked may have gone; the attestation is kept all the same.
                    drop(answer.send(Some(document)));
                }
            }
            Err(error) => {
                metrics.not_attested(answers.len());
                log.event("not_attested", &[("why", Field::Text(&error.to_string()))]);
                answers.into_iter().for_each(|answer| drop(answer.send(None)));
            }
        }
    }
}

fn again(notary: &mut Notary, batch: &[Prepared], error: NotaryError) -> Result<Vec<String>, NotaryError> {
    if matches!(error, NotaryError::Database(_)) { notary.sign(batch) } else { Err(error) }
}
