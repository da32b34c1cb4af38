//! The process's surroundings, read once: the only place that looks at environment variables.

use std::env;
use std::io::ErrorKind::{NotADirectory, NotFound, PermissionDenied};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use nix::unistd::geteuid;
use writ_clients::claude_code::settings::SHELL_VARIABLE;
use writ_clients::settings::is_bash;
use writ_clients::{CLIENTS, Client};
use writ_core::{SessionId, Timestamp, regular_file};
use writ_engine::claims::ClaimSettings;
use writ_engine::identity::image::SOCKETS;
use writ_engine::{Asker, Environment, Home, Workload};
use writ_evaluators::ai::{Endpoint, Form};
use writ_policy::is_secret_variable;
use writ_service::http::Otlp;
use zeroize::Zeroizing;

use crate::exit::Failure;

/// Where Writ keeps its state: `$WRIT_STATE_DIR`, else `$XDG_STATE_HOME/writ`, else `~/.local/state/writ`. A relative
/// `WRIT_STATE_DIR` would be another folder in each directory, so there is then no state, and nothing is done that needs some.
pub fn home() -> Home {
    let user = absolute("HOME");
    let state = match env::var_os("WRIT_STATE_DIR").filter(|path| !path.is_empty()) {
        Some(_) => absolute("WRIT_STATE_DIR"),
        None => absolute("XDG_STATE_HOME")
            .map(|dir| dir.join("writ"))
            .or_else(|| user.as_ref().map(|dir| dir.join(".local/state/writ"))),
    };
    let claims = claims(user.as_deref(), state.as_deref());
    let program = program();
    let project = absolute("CLAUDE_PROJECT_DIR");
    let folders = CLIENTS
        .into_iter()
        .filter_map(|client| Some((client.name(), absolute(client.settings()?.folder_variable()?)?)))
        .collect();
    let secret_variables = secret_variables();
    let environment: Option<Environment> = Some(|| env::vars_os().collect());
    Home {
        state,
        user,
        folders,
        program,
        search: search_path(),
        project,
        secret_variables,
        environment,
        asker: Asker::This,
        notary: absolute("WRIT_NOTARY").or_else(|| Some(PathBuf::from(format!("/run/writ/{}.sock", geteuid())))),
        keeper: None,
        workload: workload(),
        engines: engines(),
        claims,
        zsh: false,
    }
}

/// Sockets of container engines: those that variables name, then those of the system.
fn engines() -> Vec<PathBuf> {
    let named = ["DOCKER_HOST", "CONTAINER_HOST"].into_iter().filter_map(|name| env::var(name).ok());
    let named = named.filter_map(|address| address.strip_prefix("unix://").map(PathBuf::from));
    named.chain(SOCKETS.map(PathBuf::from)).filter(|path| path.is_absolute()).collect()
}

/// The Workload API, where the client was started with one.
fn workload() -> Option<Workload> {
    let address = env::var("SPIFFE_ENDPOINT_SOCKET").ok().filter(|address| !address.is_empty())?;
    Some(Workload { address, fetch: writ_service::workload::fetch })
}

/// The names of the variables here whose values are secrets, by their names, or that lead to who has some.
fn secret_variables() -> Vec<String> {
    let is_secret = |name: &String| is_secret_variable(name) || name.to_ascii_uppercase().ends_with("_AUTH_SOCK");
    let mut names: Vec<String> =
        env::vars_os().filter_map(|(name, _)| name.into_string().ok()).filter(is_secret).collect();
    names.sort();
    names
}

/// Folders where the client looks for a shell, beside `PATH`.
const SHELLS: [&str; 4] = ["/bin", "/usr/bin", "/usr/local/bin", "/opt/homebrew/bin"];

/// Whether the client runs its lines with zsh: the shell that `CLAUDE_CODE_SHELL` names where it is there, else what `SHELL`
/// names, else zsh where there is one (measured, `spec/clients/claude-code.md`).
pub fn runs_zsh() -> bool {
    let text = |name: &str| env::var_os(name).map(|value| value.to_string_lossy().into_owned()).unwrap_or_default();
    let there = |shell: &str| {
        if shell.contains('/') {
            return Path::new(shell).is_file();
        }
        search_path().into_iter().chain(SHELLS.map(PathBuf::from)).any(|dir| dir.join(shell).is_file())
    };
    let pinned = text(SHELL_VARIABLE);
    if (is_bash(&pinned) || pinned.contains("zsh")) && there(&pinned) {
        return !is_bash(&pinned);
    }
    !is_bash(&text("SHELL")) && there("zsh")
}

/// The switches of the DONE-claim check (`spec/claims.md`). What does not read is as if unset.
fn claims(user: Option<&Path>, state: Option<&Path>) -> ClaimSettings {
    // Below nothing is nothing: whoever sets -1 wants no block.
    let number = |name: &str| {
        let number: i64 = env::var(name).ok()?.trim().parse().ok()?;
        u64::try_from(number.max(0)).ok()
    };
    // Never by itself in the work tree: what lies there changes what git says of the agent's work.
    let named = env::var_os("ATTEST_CAPTURE_DIR").filter(|folder| !folder.is_empty()).map(PathBuf::from);
    let folder = named.or_else(|| state.map(|state| state.join("captured")));
    let agents = env::var("ATTEST_ENFORCE_AGENTS").unwrap_or_default();
    ClaimSettings {
        enforce: is_one("ATTEST_ENFORCE"),
        agents: ClaimSettings::kinds(&agents),
        max_retries: number("ATTEST_MAX_RETRIES"),
        session_ceiling: number("ATTEST_SESSION_BLOCK_CEILING"),
        max_hash_bytes: number("ATTEST_MAX_HASH_BYTES"),
        capture: folder.filter(|_| is_one("ATTEST_CAPTURE")),
        cast: absolute("CAST_DB_PATH").or_else(|| user.map(|dir| dir.join(".claude/cast.db"))),
    }
}

fn is_one(name: &str) -> bool {
    env::var_os(name).is_some_and(|text| text == "1")
}

/// This program's file. A copy in memory has none; its first word tells which it is a copy of.
fn program() -> Option<PathBuf> {
    let own = env::current_exe().ok()?;
    if !is_copy(&own) {
        return Some(own);
    }
    env::args_os().next().map(PathBuf::from).filter(|path| path.is_absolute())
}

/// Whether a program is a copy in memory.
pub fn is_copy(program: &Path) -> bool {
    program.as_os_str().as_bytes().starts_with(writ_sandbox::COPY.as_bytes())
}

/// The PIN of a PKCS#11 token.
pub fn pin() -> Option<String> {
    env::var("WRIT_PKCS11_PIN").ok().filter(|pin| !pin.is_empty())
}

/// The identity token for a signature without a key, where cosign looks for it.
pub fn identity_token() -> Option<Zeroizing<Vec<u8>>> {
    env::var("SIGSTORE_ID_TOKEN").ok().filter(|token| !token.is_empty()).map(|token| Zeroizing::new(token.into_bytes()))
}

/// Whether the environment says that an agent's client started this.
pub fn says_agent() -> bool {
    is_one("CLAUDECODE")
}

/// The client that started this process as a server, and its session, where it says so.
pub fn client_session() -> Option<(&'static dyn Client, SessionId)> {
    CLIENTS.into_iter().find_map(|client| {
        let session = env::var(client.session_variable()?).ok().filter(|session| !session.is_empty())?;
        Some((client, SessionId::new(session)))
    })
}

/// A header with its variables put in: `Authorization: Bearer ${TOKEN}`.
pub fn with_variables(text: &str) -> Result<String, Failure> {
    let mut out = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("${") {
        let (name, behind) =
            after.split_once('}').ok_or_else(|| Failure::Usage("`${` without `}` in `--header`".to_owned()))?;
        let value = env::var(name).map_err(|_unset| Failure::Usage(format!("`{name}` in `--header` is not set")))?;
        out.push_str(before);
        out.push_str(&value);
        rest = behind;
    }
    out.push_str(rest);
    Ok(out)
}

/// Where Docker and its like keep credentials for registries.
pub fn docker_config() -> Option<PathBuf> {
    let folder = absolute("DOCKER_CONFIG").or_else(|| absolute("HOME").map(|home| home.join(".docker")));
    folder.map(|folder| folder.join("config.json"))
}

/// The only moment that what is built may name, where `SOURCE_DATE_EPOCH` says one.
pub fn source_date() -> Result<Option<Timestamp>, Failure> {
    let name = "SOURCE_DATE_EPOCH";
    let Some(text) = said(name)? else { return Ok(None) };
    let seconds: Option<i64> = text.parse().ok().filter(|seconds| (0..253_402_300_800).contains(seconds));
    let seconds = seconds.ok_or_else(|| wrong(name, &text, "seconds since 1970"))?;
    Ok(Some(Timestamp::from_millis(seconds * 1000)))
}

/// The directory the process runs in, absolute.
pub fn cwd() -> Result<PathBuf, Failure> {
    env::current_dir().map_err(|error| Failure::could_not(format!("cannot tell the current directory: {error}")))
}

/// Largest file of variables that is looked into.
const MAX_VARIABLES: u64 = 1 << 20;

/// Why nothing is to be decided with this environment: a file of the project may have given the client variables by which Writ's state, or
/// its program, is another. Only what is set is looked for.
pub fn moved(client: &dyn Client, cwd: &Path) -> Option<String> {
    let ours = |name: &str| {
        name == "XDG_STATE_HOME" || ["WRIT_", "ATTEST_", "LD_"].iter().any(|front| name.starts_with(front))
    };
    let set: Vec<String> =
        env::vars_os().filter_map(|(name, _)| name.into_string().ok()).filter(|name| ours(name)).collect();
    if set.is_empty() || client.variable_files().is_empty() {
        return None;
    }
    let user = absolute("HOME");
    for folder in cwd.ancestors().chain(user.as_deref()) {
        for path in client.variable_files().iter().map(|name| folder.join(name)) {
            // How such a file is read is the client's own: a name anywhere in it counts, and what cannot be read may hold it.
            let held = match regular_file::read(&path, MAX_VARIABLES) {
                Ok(bytes) => set.iter().find(|name| bytes.windows(name.len()).any(|piece| piece == name.as_bytes())),
                Err(error) if matches!(error.kind(), NotFound | NotADirectory | PermissionDenied) => None,
                Err(_) => set.first(),
            };
            if let Some(name) = held {
                return Some(format!(
                    "writ denies: {} names `{name}`, or cannot be read: by that Writ would keep and look for its record elsewhere. Take it out",
                    path.display()
                ));
            }
        }
    }
    None
}

/// A variable that holds an absolute path; anything else there is as if unset.
fn absolute(name: &str) -> Option<PathBuf> {
    env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute())
}

/// The variables that should hold an absolute path and hold something else.
pub fn not_absolute() -> Vec<(&'static str, String)> {
    let names = ["WRIT_STATE_DIR", "XDG_STATE_HOME", "CLAUDE_CONFIG_DIR"];
    let read = |name: &'static str| Some((name, env::var_os(name)?.to_string_lossy().into_owned()));
    names.into_iter().filter_map(read).filter(|(_, value)| !value.is_empty() && !value.starts_with('/')).collect()
}

/// Where spans and metrics go: below `endpoint`, else where OpenTelemetry's own variables say, else nowhere.
pub fn otlp(endpoint: Option<String>) -> Result<Option<Otlp>, Failure> {
    if said("OTEL_SDK_DISABLED")?.is_some_and(|value| value.eq_ignore_ascii_case("true")) {
        return Ok(None);
    }
    let all = said("OTEL_EXPORTER_OTLP_ENDPOINT")?;
    let url = |signal: &str, path: &str| -> Result<Option<String>, Failure> {
        if said(&format!("OTEL_{signal}_EXPORTER"))?.is_some_and(|exporter| exporter == "none") {
            return Ok(None);
        }
        // The variable of one signal is its whole URL.
        let own = said(&format!("OTEL_EXPORTER_OTLP_{signal}_ENDPOINT"))?;
        let below = |base: String| format!("{}{path}", base.trim_end_matches('/'));
        Ok(endpoint.clone().map(below).or(own).or_else(|| all.clone().map(below)))
    };
    let (spans, metrics) = (url("TRACES", "/v1/traces")?, url("METRICS", "/v1/metrics")?);
    if spans.is_none() && metrics.is_none() {
        return Ok(None);
    }
    for signal in ["", "TRACES_", "METRICS_"] {
        one_of(&format!("OTEL_EXPORTER_OTLP_{signal}PROTOCOL"), &["http/protobuf", "http/json"])?;
    }
    one_of("OTEL_TRACES_SAMPLER", &SAMPLERS)?;
    let timeout = said("OTEL_EXPORTER_OTLP_TIMEOUT")?.map(|text| {
        let wrong = || wrong("OTEL_EXPORTER_OTLP_TIMEOUT", &text, "a whole number of milliseconds");
        text.parse().map(Duration::from_millis).map_err(|_not_a_number| wrong())
    });
    Ok(Some(Otlp {
        spans,
        metrics,
        timeout: timeout.transpose()?.unwrap_or(Otlp::TIMEOUT),
        authorities: said("OTEL_EXPORTER_OTLP_CERTIFICATE")?.map(PathBuf::from),
    }))
}

/// The samplers that OpenTelemetry knows.
const SAMPLERS: [&str; 6] = [
    "always_on",
    "always_off",
    "traceidratio",
    "parentbased_always_on",
    "parentbased_always_off",
    "parentbased_traceidratio",
];

/// A variable that says something.
fn said(name: &str) -> Result<Option<String>, Failure> {
    match env::var(name) {
        Ok(value) => Ok(Some(value).filter(|value| !value.is_empty())),
        Err(env::VarError::NotPresent) => Ok(None),
        Err(env::VarError::NotUnicode(value)) => Err(wrong(name, &value.to_string_lossy(), "text in UTF-8")),
    }
}

fn one_of(name: &str, words: &[&str]) -> Result<(), Failure> {
    match said(name)?.filter(|value| !words.contains(&value.as_str())) {
        None => Ok(()),
        Some(value) => Err(wrong(name, &value, &format!("one of {}", words.join(", ")))),
    }
}

fn wrong(name: &str, value: &str, wanted: &str) -> Failure {
    Failure::Usage(format!("`{name}` is `{value}`: write {wanted}, or unset it"))
}

/// The folders of `$PATH`.
pub fn search_path() -> Vec<PathBuf> {
    env::var_os("PATH").map(|path| env::split_paths(&path).collect()).unwrap_or_default()
}

/// Where models are asked that a policy's evaluators name, and why nowhere.
pub fn evaluator() -> Result<Endpoint, String> {
    let variable = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
    if let Some(url) = variable("WRIT_EVALUATOR_URL") {
        return Ok(Endpoint { form: Form::ChatCompletions, url, key: variable("WRIT_EVALUATOR_KEY") });
    }
    let base = variable("ANTHROPIC_BASE_URL").unwrap_or_else(|| "https://api.anthropic.com".to_owned());
    let key = variable("ANTHROPIC_API_KEY");
    let key =
        key.ok_or("no model can be asked: set ANTHROPIC_API_KEY, or WRIT_EVALUATOR_URL and WRIT_EVALUATOR_KEY")?;
    Ok(Endpoint { form: Form::Messages, url: format!("{}/v1/messages", base.trim_end_matches('/')), key: Some(key) })
}
