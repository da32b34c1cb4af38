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
