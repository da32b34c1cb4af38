//! How models and services are asked that a policy's evaluators name: HTTP and gRPC to others.
//!
//! Owns the connections, each with its limits on time and size. Refuses to repeat a request and to judge an answer. Page:
//! `spec/evaluators.md`.

use std::io::Read;
use std::time::Duration;

use axum::http::uri::PathAndQuery;
use prost::Message;
use tonic::client::Grpc;
use tonic::transport::{ClientTlsConfig, Endpoint};
use tonic_prost::ProstCodec;
use writ_evaluators::{Status, ai, grpc};

use crate::network::{agent, authorities};
use crate::workload;

/// How long a model may think.
const MODEL_TIME: Duration = Duration::from_secs(120);
/// How long a service may take.
const SERVICE_TIME: Duration = Duration::from_secs(30);
/// Longest message of a service.
const MAX_MESSAGE: usize = 1 << 20;
/// The method of `proto/writ/evaluator/v1/evaluator.proto`.
const METHOD: &str = "/writ.evaluator.v1.Evaluator/Evaluate";

/// Posts a request to a model's endpoint.
pub fn send(request: &ai::Request) -> Result<Vec<u8>, String> {
    let failed = |error: &dyn std::fmt::Display| format!("{}: {error}", request.url);
    let mut post = agent(authorities(), MODEL_TIME).post(&request.url);
    for (name, value) in &request.headers {
        post = post.header(*name, value);
    }
    let mut answer = post.send(request.body.as_bytes()).map_err(|error| failed(&error))?;
    let status = answer.status();
    let mut body = Vec::new();
    answer.body_mut().as_reader().take(ai::MAX_ANSWER + 1).read_to_end(&mut body).map_err(|error| failed(&error))?;
    match () {
        () if !status.is_success() => Err(failed(&format!("it answered with {status}"))),
        () if body.len() as u64 > ai::MAX_ANSWER => Err(failed(&"its answer is too long")),
        () => Ok(body),
    }
}

#[derive(Clone, PartialEq, Message)]
struct EvaluateRequest {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(string, tag = "2")]
    input: String,
}

#[derive(Clone, PartialEq, Message)]
struct EvaluateResponse {
    #[prost(string, tag = "1")]
    status: String,
    #[prost(string, tag = "2")]
    reason: String,
}

/// Asks a service once.
pub fn call(request: &grpc::Request<'_>) -> Result<grpc::Answer, String> {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(|error| error.to_string())?;
    let asked = async { tokio::time::timeout(SERVICE_TIME, asked(request)).await };
    let answered = runtime.block_on(asked);
    let answered =
        answered.map_err(|_elapsed| format!("{}: no answer within {} s", request.endpoint, SERVICE_TIME.as_secs()));
    let EvaluateResponse { status, reason } = answered??;
    let status = match status.as_str() {
        "PASS" => Some(Status::Pass),
        "FAIL" => Some(Status::Fail),
        _ => None,
    };
    Ok(grpc::Answer { status, reason })
}

async fn asked(request: &grpc::Request<'_>) -> Result<EvaluateResponse, String> {
    let failed = |error: &dyn std::fmt::Display| format!("{}: {error}", request.endpoint);
    let address = match request.endpoint {
        address if address.contains("://") => address.to_owned(),
        bare => format!("http://{bare}"),
    };
    let mut endpoint = Endpoint::from_shared(address.clone()).map_err(|error| failed(&error))?;
    if address.starts_with("https://") {
        endpoint = endpoint.tls_config(ClientTlsConfig::new().with_native_roots()).map_err(|error| failed(&error))?;
    }
    let connected = endpoint.connect_timeout(SERVICE_TIME).connect().await;
    let channel = connected.map_err(|error| failed(&workload::told(&error)))?;
    let mut client = Grpc::new(channel).max_decoding_message_size(MAX_MESSAGE);
    client.ready().await.map_err(|error| failed(&error))?;
    let message = EvaluateRequest { name: request.name.to_owned(), input: request.input.to_owned() };
    let codec: ProstCodec<EvaluateRequest, EvaluateResponse> = ProstCodec::default();
    let answer = client.unary(tonic::Request::new(message), PathAndQuery::from_static(METHOD), codec).await;
    answer.map(tonic::Response::into_inner).map_err(|status| failed(&status.message()))
}
