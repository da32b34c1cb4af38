//! The tools as clients see them: names, words and shapes.

use std::sync::Arc;

use rmcp::model::{JsonObject, Tool, ToolAnnotations};
use serde_json::{Value, json};

/// Evaluates a shell line.
pub const SHELL: &str = "recourse_evaluate_shell";
/// Evaluates a Terraform plan.
pub const TERRAFORM: &str = "recourse_evaluate_terraform";
/// Evaluates a call to a server.
pub const MCP_CALL: &str = "recourse_evaluate_mcp_call";
/// Lists what is known.
pub const RESOURCES: &str = "recourse_supported_resources";
/// Verifies an attestation.
pub const VERIFY: &str = "recourse_verify_attestation";

/// Runs a shell line.
pub const BASH: &str = "bash";
/// Reads a file.
pub const READ_FILE: &str = "read_file";
/// Writes a file.
pub const WRITE_FILE: &str = "write_file";
/// Runs a step and attests it.
pub const ATTEST_STEP: &str = "attest_step";
/// Signs what the agent says of a step.
pub const SIGN_ATTESTATION: &str = "sign_attestation";
/// Asks for a human's yes.
pub const REQUEST_APPROVAL: &str = "request_approval";
/// Says what a call would come to.
pub const CHECK_TOOL: &str = "check_tool";
/// Shows the policy.
pub const GET_POLICY: &str = "get_policy";
/// Shows the session.
pub const GET_SESSION: &str = "get_session";
/// Shows the identity.
pub const GET_IDENTITY: &str = "get_identity";
/// Gives a token.
pub const GET_TOKEN: &str = "get_token";

/// What the server is for, as its `instructions`.
pub const INSTRUCTIONS: &str = "Ask before a command, a Terraform plan or a call to another server that could destroy something. \
    `riskAssessment` is the answer: allow and warn (tell the user) let it go on; escalate wants a human; block must not be run. A \
    report may have an `attestation`: proof that this was evaluated, for whoever asks for it.";

/// Every tool. None of them changes anything that it is asked about.
pub fn tools() -> Vec<Tool> {
    let report = object(report());
    let plain = |kind: &str, about: &str| json!({ "type": kind, "description": about });
    let document = |about: &str| json!({ "type": ["object", "string"], "description": about });
    let hash_only = plain("boolean", "The attestation shows digests alone, and the report names nothing of the input");
    let call = json!({
        "hash_only": hash_only,
        "tool": plain("string", "The tool's name"),
        "server": plain("string", "The server it is on"),
        "arguments": plain("object", "The arguments the call would have"),
    });
    let shell = json!({
        "hash_only": hash_only,
        "command": plain("string", "The line as the shell would get it"),
        "cwd": plain("string", "The folder it would run in"),
        "home": plain("string", "The home directory of whoever would run it, where that is another machine"),
    });
    let plan = json!({
        "hash_only": hash_only,
        "plan": document("The output of `terraform show -json PLAN`, as an object or as its exact text"),
        "state": document("The output of `terraform show -json` before the plan, when the plan has no prior state"),
    });
    let filter = json!({ "filter": plain("string", "Part of a type, a provider, a program or a rule: what it finds is told in full") });
    let proof = json!({
        "attestation": document("The attestation, as an object or as its text"),
        "uri": plain("string", "Or its `attestation_uri`"),
    });
    vec![
        tool(
            SHELL,
            "Evaluate a shell command",
            "Says what a shell command would destroy and what could bring it back.",
        )
        .input(&shell, &["command"])
        .output(&report),
        tool(
            TERRAFORM,
            "Evaluate a Terraform plan",
            "Says what a Terraform or OpenTofu plan would destroy and what could bring it back.",
        )
        .input(&plan, &["plan"])
        .output(&report),
        tool(
            MCP_CALL,
            "Evaluate a call to an MCP tool",
            "Says what a call to another MCP server's tool would destroy.",
        )
        .input(&call, &["tool"])
        .output(&report),
        tool(
            RESOURCES,
            "List what is known",
            "Lists the Terraform types with the tier of their deletion, and the families of shell rules.",
        )
        .input(&filter, &[])
        .output(&object(resources())),
        tool(VERIFY, "Verify an attestation", "Says whether an attestation is genuine and still holds.")
            .input(&proof, &[])
            .output(&object(verified())),
    ]
    .into_iter()
    .map(|shape| shape.0)
    .collect()
}

/// The tools of a server that stands beside the agent's client.
pub fn session_tools() -> Vec<Tool> {
    let plain = |kind: &str, about: &str| json!({ "type": kind, "description": about });
    let cwd = plain("string", "The folder it is about; this server's own when left out");
    let call = json!({
        "tool": plain("string", "The tool's name, such as `Bash` or `mcp__SERVER__TOOL`"),
        "input": plain("object", "Its input, such as `{\"command\": \"git push\"}`"),
        "cwd": cwd,
    });
    let line = json!({
        "command": plain("string", "The line, as bash takes it"),
        "cwd": cwd,
        "timeout_seconds": plain("number", "How long it may take: 120 when left out, 600 at most"),
    });
    let path = plain("string", "The file, absolute or from this server's folder");
    let file = json!({ "path": path });
    let written = json!({ "path": path, "content": plain("string", "All of the file") });
    vec![
        tool(BASH, "Run a shell command", "Runs a shell command that the policy allows, and records it.")
            .input(&line, &["command"])
            .acts(),
        tool(READ_FILE, "Read a file", "Reads a text file that the policy lets be read, and records that.")
            .input(&file, &["path"]),
        tool(WRITE_FILE, "Write a file", "Writes a whole file that the policy lets be written, and records that.")
            .input(&written, &["path", "content"])
            .acts(),
        tool(REQUEST_APPROVAL, "Ask for approval", "Asks for a human's yes to exactly this action in this session.")
            .input(&call, &["tool"]),
        tool(CHECK_TOOL, "Check a call", "Says what the policy would say of a call. Nothing is run or recorded.")
            .input(&call, &["tool"]),
        tool(GET_POLICY, "Show the policy", "Shows the policy that governs here.").input(&json!({}), &[]),
        tool(GET_SESSION, "Show the session", "Shows what this session has come to so far.").input(&json!({}), &[]),
        tool(
            GET_IDENTITY,
            "Show the identity",
            "Shows who the agents of this session are: model, environment, tools, policy, and how each is known.",
        )
        .input(&json!({}), &[]),
        tool(GET_TOKEN, "Get a token", "Gives a token that says who this agent is, where a notary runs.")
            .input(&json!({}), &[]),
    ]
    .into_iter()
    .chain(step_tools(&cwd))
    .map(|shape| shape.0)
    .collect()
}

/// Those that sign something of a step.
fn step_tools(cwd: &Value) -> [Shape; 2] {
    let plain = |kind: &str, about: &str| json!({ "type": kind, "description": about });
    let files = |about: &str| json!({ "type": "array", "items": { "type": "string" }, "description": about });
    let name = plain("string", "The step's name, as the policy's `requiredAttestations` has it");
    let products = files("Files and folders that come of it, from the folder");
    let step = json!({
        "name": name,
        "command": plain("string", "The line, as bash takes it"),
        "materials": files("Files and folders that go in, from the folder"),
        "products": products,
        "cwd": cwd,
        "timeout_seconds": plain("number", "How long it may take: 120 when left out, 600 at most"),
    });
    let said = json!({
        "name": name,
        "predicateType": plain("string", "What kind of statement it is, a URI; none of Writ's own types"),
        "predicate": plain("object", "What you say of the step"),
        "products": products,
        "cwd": cwd,
    });
    [
        tool(
            ATTEST_STEP,
            "Run and attest a step",
            "Runs a command that the policy allows as a step, and signs how it ended.",
        )
        .input(&step, &["name", "command"])
        .acts(),
        tool(
            SIGN_ATTESTATION,
            "Sign a statement",
            "Signs what you say of a step that the policy names, marked as your own word.",
        )
        .input(&said, &["name", "predicateType", "predicate"])
        .acts(),
    ]
}

struct Shape(Tool);

fn tool(name: &'static str, title: &str, about: &'static str) -> Shape {
    let hints =
        ToolAnnotations::with_title(title).read_only(true).destructive(false).idempotent(true).open_world(false);
    Shape(Tool::new(name, about, JsonObject::new()).with_title(title).with_annotations(hints))
}

impl Shape {
    fn input(mut self, properties: &Value, required: &[&str]) -> Self {
        self.0.input_schema = object(json!({
            "type": "object", "properties": properties, "required": required, "additionalProperties": false,
        }));
        self
    }

    /// It changes something.
    fn acts(mut self) -> Self {
        let title = self.0.title.clone().unwrap_or_default();
        let hints =
            ToolAnnotations::with_title(title).read_only(false).destructive(true).idempotent(false).open_world(true);
        self.0.annotations = Some(hints);
        self
    }

    fn output(mut self, schema: &Arc<JsonObject>) -> Self {
        self.0.output_schema = Some(Arc::clone(schema));
        self
    }
}

fn object(value: Value) -> Arc<JsonObject> {
    Arc::new(if let Value::Object(object) = value { object } else { JsonObject::new() })
}

fn report() -> Value {
    json!({
        "type": "object",
        "properties": {
            "schemaVersion": { "const": "recourse.consequence.v1" },
            "riskAssessment": { "enum": ["allow", "warn", "escalate", "block"] },
            "assessmentReason": { "type": "string" },
            "summary": { "type": "object" },
            "mutations": { "type": "array", "items": { "type": "object" } },
            "attestation": { "type": "object" },
        },
        "required": ["schemaVersion", "riskAssessment", "assessmentReason", "summary", "mutations"],
    })
}

fn resources() -> Value {
    json!({
        "type": "object",
        "properties": {
            "terraform": { "type": "array", "items": { "type": "object", "required": ["type", "tier"] } },
            "shell": { "type": "array", "items": { "type": "object", "required": ["family", "about", "programs", "ruleCount"] } },
        },
        "required": ["terraform", "shell"],
    })
}

fn verified() -> Value {
    json!({
        "type": "object",
        "properties": {
            "valid": { "type": "boolean" },
            "code": { "type": "string" },
            "detail": { "type": "string" },
            "key_id": { "type": "string" },
            "key_state": { "type": "string" },
            "verdict": { "type": "string" },
            "expires_at": { "type": "string" },
        },
        "required": ["valid", "detail"],
    })
}
