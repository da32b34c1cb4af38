//! `writ serve`: evaluations and attestations over HTTP.

use std::num::NonZeroU32;
use std::time::Duration;

use writ_service::http::{self, Options, ServeError, Style};

use crate::args::{LogFormat, ServeArgs};
use crate::environment;
use crate::exit::Failure;

/// Serves until it is told to end.
pub fn run(args: ServeArgs) -> Result<(), Failure> {
    let database = args.database.database;
    if database.as_ref().is_some_and(|url| !url.starts_with("postgres://") && !url.starts_with("postgresql://")) {
        return Err(Failure::Usage(
            "`--database` takes `postgres://…`; without it a file in the state folder".to_owned(),
        ));
    }
    let options = Options {
        listen: args.listen,
        state: environment::home().state().map_err(Failure::could_not)?.to_owned(),
        database,
        attest: args.attest,
        instance: args.instance,
        base_url: args.base_url,
        shelf_life: args.shelf_life,
        tokens: args.token_file,
        tls: args.tls_cert.zip(args.tls_key),
        rate: NonZeroU32::new(args.rate),
        max_body: usize::try_from(args.max_body).unwrap_or(usize::MAX),
        timeout: Duration::from_secs(args.timeout),
        otlp: environment::otlp(args.otlp)?,
        log: match args.log {
            LogFormat::Text => Style::Text,
            LogFormat::Json => Style::Json,
        },
        sink: Box::new(std::io::stderr()),
    };
    http::serve(options).map_err(failure)
}

fn failure(error: ServeError) -> Failure {
    if error.is_usage() { Failure::Usage(error.to_string()) } else { Failure::could_not(error) }
}
