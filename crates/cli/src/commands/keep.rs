//! `writ keep`: what the confined calls of a session share. `writ exec` starts it, and it leaves whoever started it.

use writ_core::{Digest, SessionId};
use writ_engine::confine::keeper;

use crate::args::KeepArgs;
use crate::environment;
use crate::exit::Failure;

/// Holds it.
pub fn run(args: &KeepArgs) -> Result<(), Failure> {
    // Before anything else is opened or started.
    let ready = keeper::detach()?;
    let order = Digest::parse(&args.order).map_err(|error| Failure::Usage(error.to_string()))?;
    keeper::keep(&SessionId::new(args.session.as_str()), order, &environment::home(), ready).map_err(Failure::could_not)
}
