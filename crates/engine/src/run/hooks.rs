//! The supervisor's side of hooks that are asked inside a run.
//!
//! Owns the listener and who waits at it; every answer is [`crate::hook`]'s. Refuses whoever does not show the run's token. Invariant:
//! once this is dropped, no answer is being made any more, so the run's last rows are the last.

use std::io;
use std::net::{Shutdown, TcpListener, TcpStream};
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use rustix::net::{Shutdown as How, shutdown};
use writ_core::Digest;

use super::exchange;
use crate::Home;
use crate::hook::wire::Told;
use crate::hook::{self, Inside};

/// Most hooks that are answered at a time; the others wait.
const MOST: usize = 64;
/// How long whoever asks may take to say what.
const PATIENCE: Duration = Duration::from_secs(10);

/// Hooks that are answered until this is dropped.
pub struct Hooks {
    listener: TcpListener,
    asked: Arc<Asked>,
    thread: Option<thread::JoinHandle<()>>,
}

/// What an answer needs.
struct Asked {
    /// Digest of the token, so that comparing takes the same time whatever is shown.
    token: Digest,
    home: Home,
    inside: Inside,
    /// Who is being answered.
    open: Mutex<Vec<Arc<TcpStream>>>,
    less: Condvar,
}

/// Begins to answer.
pub fn serve(listener: TcpListener, token: &str, home: Home, inside: Inside) -> io::Result<Hooks> {
    listener.set_nonblocking(false)?;
    let asked =
        Asked { token: Digest::of(token.as_bytes()), home, inside, open: Mutex::default(), less: Condvar::new() };
    let (asked, accepting) = (Arc::new(asked), listener.try_clone()?);
    let with = Arc::clone(&asked);
    let thread = thread::Builder::new().name("hooks".to_owned()).spawn(move || accept(&accepting, &with))?;
    Ok(Hooks { listener, asked, thread: Some(thread) })
}

fn accept(listener: &TcpListener, asked: &Arc<Asked>) {
    loop {
        let stream = match listener.accept() {
            Ok((stream, _)) => Arc::new(stream),
            // Shut down: the run has ended.
            Err(error) if error.kind() == io::ErrorKind::InvalidInput => return,
            Err(_) => {
                thread::sleep(Duration::from_millis(10));
                continue;
            }
        };
        {
            let open = asked.open.lock().unwrap_or_else(PoisonError::into_inner);
            let full = |open: &mut Vec<Arc<TcpStream>>| open.len() >= MOST;
            let mut open = asked.less.wait_while(open, full).unwrap_or_else(PoisonError::into_inner);
            open.push(Arc::clone(&stream));
        }
        let with = Arc::clone(asked);
        let answering = Arc::clone(&stream);
        let spawned = thread::Builder::new().spawn(move || {
            // Whoever asked and is gone wants no answer.
            drop(with.answer(&answering));
            with.forget(&answering);
        });
        if spawned.is_err() {
            asked.forget(&stream);
        }
    }
}

impl Asked {
    fn answer(&self, stream: &TcpStream) -> io::Result<()> {
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        let question = exchange::read(&mut &*stream)?;
        let client = writ_clients::named(&question.client);
        let (Some(client), true) = (client, Digest::of(question.token.as_bytes()) == self.token) else {
            return Ok(());
        };
        let home = Home { zsh: question.zsh, ..self.home.clone() };
        let cwd = Path::new(&question.cwd);
        let answer = hook::answer_in(&question.payload, client, &home, cwd, Some(&self.inside));
        let told = Told { text: client.render(&answer).into_bytes(), notes: answer.notes.join("\n").into_bytes() };
        told.write(&mut &*stream)
    }

    fn forget(&self, stream: &Arc<TcpStream>) {
        self.open.lock().unwrap_or_else(PoisonError::into_inner).retain(|other| !Arc::ptr_eq(other, stream));
        self.less.notify_all();
    }
}

impl Drop for Hooks {
    fn drop(&mut self) {
        // Nobody is left inside to ask; who still says what they want has no more time to. Errors mean that it is closed already.
        shutdown(&self.listener, How::Both).unwrap_or_default();
        for stream in self.asked.open.lock().unwrap_or_else(PoisonError::into_inner).iter() {
            stream.shutdown(Shutdown::Read).unwrap_or_default();
        }
        drop(self.thread.take().map(thread::JoinHandle::join));
        let open = self.asked.open.lock().unwrap_or_else(PoisonError::into_inner);
        drop(self.asked.less.wait_while(open, |open| !open.is_empty()));
    }
}
