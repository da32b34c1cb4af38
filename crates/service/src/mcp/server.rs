//! The server: which tool a call names, and a thread for it.

use std::sync::Arc;

use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, CustomRequest, CustomResult, ErrorCode,
    ErrorData, Implementation, JsonObject, ListToolsResult, PaginatedRequestParams, ServerCapabilities, ServerConfig,
    Tool,
};
use rmcp::service::RequestContext;
use rmcp::{RoleServer, ServerHandler};
use tokio::sync::Semaphore;
use writ_core::json::{self, Object, Value};
use writ_core::secret::hide;
use writ_engine::attest::subject::Detail;
use writ_engine::mcp::Gate;

use super::arguments::Refusal;
use super::evaluate::World;
use super::signer::Instance;
use super::verify::Foreign;
use super::{evaluate, guarded, json_values, resources, schemas, session, verify};

/// How many calls are worked on at once.
const AT_ONCE: usize = 4;
/// The protocol's methods that a tool server knows. One of them that is taken for an unknown one has the wrong parameters.
const KNOWN: [&str; 5] = ["initialize", "ping", "server/discover", "tools/list", "tools/call"];

/// The tools.
#[derive(Clone)]
pub struct Server {
    inner: Arc<Inner>,
    turns: Arc<Semaphore>,
}

struct Inner {
    world: World,
    instance: Instance,
    detail: Detail,
    foreign: Foreign,
    tools: Vec<Tool>,
    /// The agent's session, where this process stands beside its client.
    gate: Option<Gate>,
}

impl Server {
    /// A server for actions of that world, whose attestations show so much. `foreign` verifies what other instances issued.
    pub fn new(world: World, instance: Instance, detail: Detail, foreign: Foreign, gate: Option<Gate>) -> Self {
        let mut tools = schemas::tools();
        if gate.is_some() {
            tools.extend(schemas::session_tools());
        }
        let inner = Inner { world, instance, detail, foreign, tools, gate };
        Self { inner: Arc::new(inner), turns: Arc::new(Semaphore::new(AT_ONCE)) }
    }

    /// The base URL of the instance that attests here.
    pub fn url(&self) -> Option<&str> {
        match &self.inner.instance {
            Instance::Here { signer, .. } => Some(signer.url()),
            Instance::None | Instance::Broken(_) => None,
        }
    }

    /// Ends the session that is this process's own.
    pub(super) fn close(&self) {
        if let Some(gate) = &self.inner.gate {
            gate.close();
        }
    }

    /// What this process is to attestations.
    pub(super) fn instance(&self) -> &Instance {
        &self.inner.instance
    }
}

impl Inner {
    fn call(&self, tool: &Tool, given: JsonObject) -> Result<Value, Refusal> {
        let known = tool.input_schema.get("properties").and_then(serde_json::Value::as_object);
        if let Some(unknown) = given.keys().find(|name| known.is_none_or(|known| !known.contains_key(*name))) {
            let known: Vec<&str> = known.into_iter().flat_map(|known| known.keys()).map(String::as_str).collect();
            return Err(Refusal(hide(&format!("unknown argument `{unknown}`: there are `{}`", known.join("`, `")))));
        }
        let exact = given.get("attestation").map(|given| json_values::from_serde(given.clone(), true));
        let arguments = given.into_iter().map(|(name, value)| Ok((name, json_values::from_serde(value, false)?)));
        let arguments: Result<Object, json_values::Rounded> = arguments.collect();
        let arguments = arguments.map_err(|error| Refusal(error.to_string()))?;
        let at = evaluate::CallContext { world: &self.world, instance: &self.instance, detail: self.detail };
        match tool.name.as_ref() {
            schemas::SHELL => evaluate::shell(&arguments, &at),
            schemas::TERRAFORM => evaluate::terraform(&arguments, &at),
            schemas::MCP_CALL => evaluate::mcp_call(&arguments, &at),
            schemas::RESOURCES => resources::supported(&arguments),
            name if name != schemas::VERIFY => self.about_session(name, &arguments),
            _ => {
                let exact = exact.unwrap_or(Ok(Value::Null)).map_err(|error| error.to_string());
                verify::verify(&arguments, exact, &self.instance, &self.foreign)
            }
        }
    }
}

impl Inner {
    fn about_session(&self, name: &str, arguments: &Object) -> Result<Value, Refusal> {
        let Some(gate) = &self.gate else { return Err(Refusal("there is no session here".to_owned())) };
        match name {
            schemas::BASH => guarded::bash(gate, arguments),
            schemas::READ_FILE => guarded::read_file(gate, arguments),
            schemas::WRITE_FILE => guarded::write_file(gate, arguments),
            schemas::ATTEST_STEP => guarded::attest_step(gate, arguments),
            schemas::SIGN_ATTESTATION => guarded::sign_attestation(gate, arguments),
            schemas::REQUEST_APPROVAL => guarded::request_approval(gate, arguments),
            schemas::CHECK_TOOL => session::check(gate, arguments),
            schemas::GET_POLICY => session::policy(gate),
            schemas::GET_SESSION => Ok(session::session(gate)),
            schemas::GET_IDENTITY => session::identity(gate),
            schemas::GET_TOKEN => Ok(session::token(gate)),
            other => Err(Refusal(format!("there is no tool `{}`", hide(other)))),
        }
    }
}

impl ServerHandler for Server {
    fn get_info(&self) -> ServerConfig {
        let mut info = ServerConfig::new(ServerCapabilities::builder().enable_tools().build());
        info.server_info = Implementation::new("writ", env!("CARGO_PKG_VERSION")).with_title("Writ");
        info.instructions = Some(schemas::INSTRUCTIONS.to_owned());
        info
    }

    async fn list_tools(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        Ok(ListToolsResult::with_all_items(self.inner.tools.clone()))
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        self.inner.tools.iter().find(|tool| tool.name == name).cloned()
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let Some(tool) = self.get_tool(&request.name) else {
            let unknown = format!("unknown tool `{}`", hide(&request.name));
            return Err(ErrorData::invalid_params(unknown, None));
        };
        let gone = |error: &dyn std::fmt::Display| ErrorData::internal_error(error.to_string(), None);
        let turn = Arc::clone(&self.turns).acquire_owned().await.map_err(|error| gone(&error))?;
        let inner = Arc::clone(&self.inner);
        let work = move || {
            let done = inner.call(&tool, request.arguments.unwrap_or_default());
            drop(turn);
            done
        };
        Ok(match tokio::task::spawn_blocking(work).await.map_err(|error| gone(&error))? {
            Ok(value) => {
                let mut result = CallToolResult::success(vec![ContentBlock::text(json::compact(&value))]);
                result.structured_content = Some(json_values::to_serde(&value));
                result.into()
            }
            Err(Refusal(why)) => CallToolResult::error(vec![ContentBlock::text(why)]).into(),
        })
    }

    async fn on_custom_request(
        &self,
        request: CustomRequest,
        _context: RequestContext<RoleServer>,
    ) -> Result<CustomResult, ErrorData> {
        if KNOWN.contains(&request.method.as_str()) {
            return Err(ErrorData::invalid_params(
                format!("`{}` does not take these parameters", request.method),
                None,
            ));
        }
        Err(ErrorData::new(ErrorCode::METHOD_NOT_FOUND, hide(&request.method), None))
    }
}
