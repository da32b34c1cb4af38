//! The server on this process's standard input and output.

use std::io::{self, BufReader};

use tokio_util::sync::CancellationToken;

use super::line_transport::LineTransport;
use super::server::Server;
use super::{ServeError, asked_to_stop, runtime};

/// Serves until the input ends or the process is asked to stop. What was asked before the input ended is answered.
pub fn serve(server: Server) -> Result<(), ServeError> {
    let (lines, writer) = LineTransport::start(BufReader::new(io::stdin()), io::stdout())?;
    let runtime = runtime()?;
    let served = runtime.block_on(session(server.clone(), lines));
    server.close();
    runtime.shutdown_background();
    // The client may have stopped reading; then the writer's end is nothing to wait for.
    if served.as_ref().is_ok_and(|ended| *ended) {
        drop(writer.join());
    }
    served.map(drop)
}

/// One session. Whether it ended by itself.
async fn session(server: Server, lines: LineTransport) -> Result<bool, ServeError> {
    let stop = CancellationToken::new();
    let run = async {
        match rmcp::service::serve_server_with_ct(server, lines, stop.clone()).await {
            Ok(running) => running.waiting().await.map(drop).map_err(|error| ServeError::Session(error.to_string())),
            Err(rmcp::service::ServerInitializeError::ConnectionClosed(_)) => Ok(()),
            Err(error) => Err(ServeError::Session(error.to_string())),
        }
    };
    tokio::select! {
        ended = run => ended.map(|()| true),
        stopped = asked_to_stop() => {
            stop.cancel();
            stopped?;
            Ok(false)
        }
    }
}
