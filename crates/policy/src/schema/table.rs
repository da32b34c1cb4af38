//! Every member of a policy document: the one place that knows their names.

use writ_core::Custody;

use super::{Field, Kind, enforced, field, required};

const TEXTS: Kind = Kind::List(&Kind::Text);
const NAMES: Kind = Kind::List(&Kind::Name);

const ALLOW_DENY: &[Field] =
    &[field("allow", TEXTS, "Patterns that may be used."), field("deny", TEXTS, "Patterns that must not be used.")];

const RESOURCES: &[Field] =
    &[field("allow", NAMES, "Patterns that may be used."), field("deny", NAMES, "Patterns that must not be used.")];

const SECRETS: &[Field] = &[
    field("allow", NAMES, "Patterns over sources that may be used."),
    field("deny", NAMES, "Patterns over sources that must not be used."),
    field(
        "bind",
        Kind::List(&Kind::Object(&[
            required(field("name", Kind::Name, "The variable that holds its placeholder inside.")),
            required(field("from", Kind::Name, "Where its value comes from: `env:NAME` or `file:PATH`.")),
            required(field("hosts", NAMES, "Hosts that may receive it; `domains` allows them.")),
            field("inject", Kind::Word(&["header", "query"]), "Where it is put in; `header` when left out."),
            field("headers", NAMES, "Headers beside `Authorization`, `Cookie` and `X-Api-Key`."),
        ])),
        "Secrets that programs in a sandbox use without having them. An extension: spec/sandbox.md.",
    ),
];

/// A limit: a number, or the number with its enforcement.
const AMOUNT: Kind = Kind::OrObject(&Kind::Amount, &[required(field("value", Kind::Amount, "The limit.")), WHEN]);
const COUNT: Kind = Kind::OrObject(&Kind::Count, &[required(field("value", Kind::Count, "The limit.")), WHEN]);
const WHEN: Field = field(
    "enforcement",
    Kind::Word(&["fail-fast", "post-hoc"]),
    "`fail-fast` stops at once, `post-hoc` is checked at the end. Left out: `fail-fast`.",
);

const LIMITS: &[Field] = &[
    field("maxSpendUSD", AMOUNT, "Most money, in US dollars."),
    field("maxTokensIn", COUNT, "Most input tokens."),
    field("maxTokensOut", COUNT, "Most output tokens."),
    field("maxTurns", COUNT, "Most conversation turns."),
    field("maxWallTimeSeconds", COUNT, "Longest wall time, in seconds."),
    field("maxToolCalls", COUNT, "Most tool calls."),
];

const FUNCTIONARY: &[Field] = &[
    required(field("type", Kind::Word(&["keyless", "publickey", "x509"]), "How the signer is known.")),
    field("issuer", Kind::Name, "OIDC issuer, or certificate issuer."),
    field("subject", Kind::Name, "OIDC subject, or certificate subject."),
    field("publickeyid", Kind::Name, "Id of a public key."),
];

const SUBLAYOUT: &[Field] = &[
    required(field("name", Kind::Name, "The sub-agent's type.")),
    required(field("policy", Kind::PolicyOrPath, "Path of its policy, or the policy itself.")),
    field("policyDigest", Kind::Map(&Kind::Text), "Expected digest of its policy."),
    field("functionaries", Kind::List(&Kind::Object(FUNCTIONARY)), "Who may sign for it; replaces the parent's."),
    field("limits", Kind::Object(LIMITS), "Its limits; never looser than the parent's (R23)."),
    field(
        "inherit",
        Kind::List(&Kind::Word(&["limits", "tools", "files", "domains", "functionaries"])),
        "What it does not repeat of the parent's; a parent always holds.",
    ),
    field("attestationPrefix", Kind::Text, "Prefix of its attestations; stands on the rows of its calls."),
];

const SESSION_SOURCE: &[Field] = &[
    field("path", Kind::Name, "Path of the session's transcript."),
    field("merkleRoot", Kind::Name, "Expected Merkle root of the session."),
    field("algorithm", Kind::Word(&["sha256", "sha512"]), "Hash of the tree; sha256 when left out."),
    field(
        "constraints",
        Kind::Object(&[
            field("maxTurnDistance", Kind::Count, "Largest gap between attested turns."),
            field("requireContiguousTurns", Kind::Truth, "No gaps at all."),
        ]),
        "What the order of turns must satisfy.",
    ),
];

const MATERIALS: &[Field] = &[
    field("session", Kind::Object(SESSION_SOURCE), "Binding to the session's transcript."),
    field(
        "git",
        Kind::Object(&[
            field("treeHash", Kind::Name, "Git tree that attestations are bound to."),
            field("branch", Kind::Name, "Expected branch."),
        ]),
        "Binding to a state of the code.",
    ),
    field(
        "artifacts",
        Kind::List(&Kind::Object(&[
            field("name", Kind::Name, "Its name."),
            field("digest", Kind::Map(&Kind::Text), "Its digest by algorithm."),
            field("uri", Kind::Name, "Where it is."),
        ])),
        "Bindings to other things.",
    ),
    field(
        "sublayoutSessions",
        Kind::Map(&Kind::Object(&[
            field("merkleRoot", Kind::Name, "Root of the sub-agent's session."),
            field("spawnedAtTurn", Kind::Count, "The parent's turn that started it."),
        ])),
        "Bindings to sub-agents' sessions, by name.",
    ),
];

const EVALUATORS: &[Field] = &[
    field(
        "rego",
        Kind::List(&Kind::Object(&[
            required(field("name", Kind::Name, "Its name.")),
            required(field("policy", Kind::Name, "Inline Rego, or the path of a .rego file.")),
        ])),
        "Rego rules; `deny` must stay empty.",
    ),
    field(
        "ai",
        Kind::List(&Kind::Object(&[
            required(field("name", Kind::Name, "Its name.")),
            required(field("prompt", Kind::Name, "What PASS and FAIL mean.")),
            field("model", Kind::Name, "The model that judges."),
        ])),
        "Judgements by a model.",
    ),
    field(
        "grpc",
        Kind::List(&Kind::Object(&[
            required(field("name", Kind::Name, "Its name.")),
            required(field("endpoint", Kind::Name, "host:port of the service.")),
        ])),
        "Judgements by a service.",
    ),
];

const CONSEQUENCES: &[Field] = &[
    field("ask", Kind::Count, "Ask from the verdict of this tier on: 3 is warn, 5 escalate, 4 block."),
    field("deny", Kind::Count, "Deny from the verdict of this tier on."),
    field(
        "attestedApply",
        Kind::Count,
        "`terraform apply` and `tofu apply` run only with a plan file whose attested verdict still holds and is of this tier at worst.",
    ),
    field("attest", Kind::Truth, "Attest every evaluation; a call whose verdict cannot be attested is denied."),
    field("attestHashOnly", Kind::Truth, "What is attested shows digests alone, and names nothing of the call."),
];

const CLAIMS: &[Field] = &[
    field("enforce", Kind::Truth, "Send an agent back to work whose DONE is false beyond doubt."),
    field(
        "agents",
        NAMES,
        "The agent types this is about; `all` is every subagent, `main` the main agent. Absent: every subagent.",
    ),
    field("maxRetries", Kind::Count, "How often one agent is sent back; 1 when left out."),
    field("sessionCeiling", Kind::Count, "How often agents are sent back in a session; 10 when left out."),
    field("tests", Kind::Truth, "Also send back who says that tests passed when they did not."),
];

const NETWORK: &[Field] = &[
    field(
        "ports",
        Kind::List(&Kind::Object(&[
            required(field("hosts", NAMES, "Whose.")),
            required(field("port", Kind::Count, "Which.")),
            required(field("protocol", Kind::Word(&["tls", "http", "opaque"]), "What is spoken there.")),
        ])),
        "Ports beside 443 (TLS) and 80 (HTTP).",
    ),
    field(
        "private",
        Kind::List(&Kind::Object(&[
            required(field("range", Kind::Name, "Addresses: `10.0.0.0/8`.")),
            required(field("hosts", NAMES, "Hosts that may lead there.")),
        ])),
        "Addresses that are not the public internet's.",
    ),
    field(
        "limits",
        Kind::List(&Kind::Object(&[
            required(field("hosts", NAMES, "Whose; they count together.")),
            field("perMinute", Kind::Count, "Requests a minute."),
            field("bytesUp", Kind::Count, "Bytes to them, in one run."),
            field("bytesDown", Kind::Count, "Bytes from them, in one run."),
        ])),
        "How often and how much.",
    ),
    field(
        "loopback",
        Kind::List(&Kind::Count),
        "Ports of the host's 127.0.0.1 that programs inside reach at the same address.",
    ),
];

const USE: &[Field] = &[
    field("wallTimeSeconds", Kind::Count, "Seconds until everything ends."),
    field("cpuTimeSeconds", Kind::Count, "Seconds of processor time, of each process."),
    field("memoryMiB", Kind::Count, "Memory of all processes together; needs a control group."),
    field("processMemoryMiB", Kind::Count, "Memory of each process."),
    field("processes", Kind::Count, "Processes and threads at a time."),
    field("fileSizeMiB", Kind::Count, "Size of a file."),
    field("openFiles", Kind::Count, "Open files of each process."),
];

const ENFORCE: &[Field] = &[
    field("calls", Kind::Truth, "Run each shell call in a sandbox made from this policy."),
    field(
        "atLeast",
        Kind::Word(&["filters", "landlock", "namespaces", "full"]),
        "The weakest sandbox a session may begin with; `filters` when left out.",
    ),
    field("network", Kind::Object(NETWORK), "What is reached beside the usual ports of allowed hosts."),
    field("limits", Kind::Object(USE), "What each run may use up."),
];

const DATA_FLOW: &[Field] = &[
    field(
        "classify",
        Kind::Map(&NAMES),
        "Labels, and what has each: `Tool`, `Tool:pattern`, a path, `domain:host`, a URL, `env:NAME`, `vault:PATH`.",
    ),
    field(
        "flowRules",
        Kind::List(&Kind::Object(&[
            required(field("deny", Kind::Name, "`from->to`: what has read the first may not reach the second.")),
            field("message", Kind::Text, "What the agent is told beside."),
        ])),
        "What may not reach what.",
    ),
];

/// The whole document.
pub const ROOT: &[Field] = &[
    enforced(field("$schema", Kind::Text, "The JSON Schema, for editors.")),
    enforced(required(field("version", Kind::Version, "Schema version: \"1.0\"."))),
    enforced(required(field("name", Kind::Name, "What people call this policy."))),
    enforced(field("expires", Kind::Date, "After this moment every call is denied. RFC 3339.")),
    enforced(field("extends", Kind::Name, "A policy that this one tightens: path, https URL or OCI reference.")),
    enforced(field(
        "identity",
        Kind::Object(&[
            field("allowedModels", NAMES, "Models that may run under this policy."),
            field("allowedEnvironments", NAMES, "Environments that may run it, as patterns."),
            field("requiredTools", NAMES, "Tools that must be there."),
            field("deniedTools", NAMES, "Tools that must not be there: denied, as in `tools.deny`."),
            field(
                "standing",
                Kind::Word(&["observed", "reported"]),
                "What counts: only what the kernel tells, or what is reported too; `reported` when left out. An extension.",
            ),
        ]),
        "Who the agent must be: spec/identity.md.",
    )),
    enforced(field(
        "grants",
        Kind::Object(&[
            field("secrets", Kind::Object(SECRETS), "Secrets it may use: `env:NAME`, `file:PATH`, `vault:PATH`."),
            field("apis", Kind::Object(RESOURCES), "APIs it may call: `https://host/path/*`."),
            field("storage", Kind::Object(RESOURCES), "Storage it may use: `s3://bucket/*`."),
        ]),
        "Resources the agent's identity may use: spec/grants.md.",
    )),
    enforced(field("limits", Kind::Object(LIMITS), "How much a session may use: spec/limits.md.")),
    enforced(field(
        "tools",
        Kind::Object(&[
            field("allow", TEXTS, "Tools it may use: `Tool` or `Tool:pattern`. Absent: all that are not denied."),
            field("deny", TEXTS, "Tools it must not use."),
            field("requireApproval", TEXTS, "Tools that need a human's yes."),
        ]),
        "Tool access.",
    )),
    enforced(field(
        "files",
        Kind::Object(&[
            field("allow", TEXTS, "Files it may touch. Absent: all that are not denied."),
            field("deny", TEXTS, "Files it must not touch."),
            field("readOnly", TEXTS, "Files it may read and must not change."),
        ]),
        "File access, as globs relative to the policy's folder.",
    )),
    enforced(field("domains", Kind::Object(ALLOW_DENY), "Network access, by host name.")),
    enforced(field(
        "dataFlow",
        Kind::Object(DATA_FLOW),
        "What was read decides what may be written and sent. An extension: spec/flow.md.",
    )),
    enforced(field(
        "consequences",
        Kind::Object(CONSEQUENCES),
        "What may be lost: tiers 1 to 5 of `writ evaluate`. An extension: spec/consequence.md.",
    )),
    enforced(field(
        "approvals",
        Kind::Object(&[required(field(
            "keys",
            NAMES,
            "Ids of the keys that a human's yes must be signed with one of.",
        ))]),
        "Whose yes counts. An extension: spec/policy.md.",
    )),
    enforced(field(
        "tokens",
        Kind::Word(&["ask", "deny"]),
        "What becomes of a call whose command, URL or arguments to a server hold a token of a known shape. An extension.",
    )),
    enforced(field(
        "enforce",
        Kind::OrObject(&Kind::Word(&["decide", "observe", "calls"]), ENFORCE),
        "`observe` decides and records, and stops only what would touch the policy, the record, its keys or the hooks; `calls` runs each shell call in a sandbox. An extension.",
    )),
    enforced(field(
        "custody",
        Kind::Word(&Custody::WORDS),
        "What has to keep the key that signs the record, at least; under less every call is denied. An extension: spec/notary.md.",
    )),
    enforced(field("claims", Kind::Object(CLAIMS), "What an agent's DONE is worth. An extension: spec/claims.md.")),
    enforced(field("requiredAttestations", NAMES, "Steps that must leave an attestation.")),
    enforced(field("attestationDir", Kind::Name, "Where attestations go.")),
    enforced(field("attestationsFrom", NAMES, "Which attestations rules may see.")),
    enforced(field("materialsFrom", Kind::Object(MATERIALS), "What attestations are bound to.")),
    enforced(field("evaluators", Kind::Object(EVALUATORS), "Checks at or after the end.")),
    field("functionaries", Kind::List(&Kind::Object(FUNCTIONARY)), "Who may sign this policy."),
    enforced(field("sublayouts", Kind::List(&Kind::Object(SUBLAYOUT)), "Policies of sub-agents, by their type.")),
];
