//! What the service tells about itself: its log, its metrics, and spans.
//!
//! Everything is said once, as `tracing`'s events and spans; the subscriber here makes lines of the ones and hands the others to
//! OpenTelemetry. Only `writ serve` sets it up: no other command of the program, the hook least of all, starts any of this.

mod log;
mod metrics;
mod otlp;
pub mod spans;

use std::io::Write;
use std::thread::JoinHandle;

use tracing::Metadata;
use tracing_subscriber::Layer;
use tracing_subscriber::layer::SubscriberExt;

pub use log::Style;
pub use metrics::{CONTENT_TYPE as METRICS_TYPE, Metrics};
pub use otlp::{Otlp, OtlpError};

use super::ServeError;
use log::LogQueue;
use otlp::Exporters;

/// What was found about an action; stands in a response's extensions.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Verdict {
    /// `shell`, `terraform` or `mcp`.
    pub source: &'static str,
    /// `allow`, `escalate` or `block`.
    pub verdict: &'static str,
}

/// What is set up for the time the service runs.
pub struct Telemetry {
    log: LogQueue,
    log_thread: JoinHandle<()>,
    exporters: Option<Exporters>,
}

impl Telemetry {
    /// Sets up everything, for the whole process. `instance` is who the spans and metrics are of.
    pub fn start(
        style: Style,
        sink: Box<dyn Write + Send>,
        otlp: Option<&Otlp>,
        instance: &str,
    ) -> Result<(Self, Metrics), ServeError> {
        let mut metrics = Metrics::default();
        let exporters = otlp.map(|otlp| Exporters::start(otlp, instance, &mut metrics)).transpose()?;
        let log = LogQueue::default();
        let log_thread = log.write_to(sink)?;
        // Not an `Option` of a layer: one that is not there wants every span.
        let mut layers = vec![log::lines(style, log.clone())];
        layers.extend(exporters.as_ref().and_then(Exporters::tracer).map(|tracer| spans::layer(tracer).boxed()));
        let subscriber = tracing_subscriber::registry().with(layers);
        tracing::subscriber::set_global_default(subscriber).map_err(std::io::Error::other)?;
        log_panics(log.clone());
        Ok((Self { log, log_thread, exporters }, metrics))
    }

    /// Sends and writes what still waits.
    pub fn end(self) {
        if let Some(exporters) = self.exporters {
            exporters.end();
        }
        self.log.end();
        drop(self.log_thread.join());
    }
}

/// Whether an event or a span is the service's own: libraries may quote requests.
fn is_ours(metadata: &Metadata<'_>) -> bool {
    metadata.target().starts_with(env!("CARGO_CRATE_NAME"))
}

/// A panic's place goes to the log, its message nowhere: it may quote a request. What is built to abort ends as soon as this returns.
fn log_panics(log: LogQueue) {
    std::panic::set_hook(Box::new(move |panic| {
        let place = panic.location().map_or_else(String::new, |place| format!("{}:{}", place.file(), place.line()));
        tracing::error!(event = "panicked", place);
        log.flush();
    }));
}
