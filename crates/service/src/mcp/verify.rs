//! The tool that verifies: the own instance's attestations here, all others by whoever is put in for them.

use std::sync::Arc;

use writ_core::Timestamp;
use writ_core::json::{Object, Value};
use writ_core::secret::hide;
use writ_evidence::attestation::{Attestation, Failure, FailureCode, split_uri};
use writ_evidence::registry::{KeyState, Registry};

use super::arguments::{Refusal, text_of};
use super::signer::{Instance, Signer, SignerError, same_instance};

/// What is to be verified, in the right form.
#[derive(Clone, Debug)]
pub enum Presented {
    /// An attestation.
    Attestation(Box<Attestation>),
    /// Where one is, to be fetched.
    Uri(String),
}

/// What became of it.
#[derive(Clone, Debug)]
pub struct Verified {
    /// Why it does not count; `None` when it does.
    pub failure: Option<Failure>,
    /// The attestation, where one was at hand.
    pub attestation: Option<Box<Attestation>>,
    /// Its key's state, where that was found out.
    pub key_state: Option<KeyState>,
}

// EXTENSION POINT: the verifier of other instances' attestations is put in by whoever starts the server.
/// Verifies what another instance issued. May block.
pub type Foreign = Arc<dyn Fn(&Presented) -> Verified + Send + Sync>;

/// Trusts no other instance.
pub fn trust_no_instance() -> Foreign {
    Arc::new(|presented| {
        let (instance, attestation) = match presented {
            Presented::Attestation(attestation) => (attestation.instance(), Some(attestation.clone())),
            Presented::Uri(uri) => (split_uri(uri).map_or(uri.as_str(), |(instance, _)| instance), None),
        };
        let detail = format!("{instance} is not this instance, and no other is trusted here");
        Verified { failure: Some(Failure::new(FailureCode::InstanceNotTrusted, detail)), attestation, key_state: None }
    })
}

/// Answers `{valid, code?, detail, key_id?, key_state?, verdict?, expires_at?}`. An attestation that does not verify is an answer;
/// a refusal is for what could not be looked at.
pub fn verify(
    arguments: &Object,
    exact: Result<Value, String>,
    instance: &Instance,
    foreign: &Foreign,
) -> Result<Value, Refusal> {
    let given = arguments.get("attestation").filter(|given| !matches!(given, Value::Null));
    let presented = match (given, text_of(arguments, "uri")?) {
        (Some(Value::String(text)), None) => Attestation::parse(text.as_bytes()).map(Box::new),
        (Some(_), None) => exact
            .map_err(|detail| Failure::new(FailureCode::InvalidAttestation, detail))
            .and_then(Attestation::from_value)
            .map(Box::new),
        (None, Some(uri)) => return Ok(by_uri(uri, instance, foreign)?.to_json()),
        (None, None) | (Some(_), Some(_)) => {
            return Err(Refusal("give either `attestation` or `uri`".to_owned()));
        }
    };
    let verified = match presented {
        Err(failure) => Verified::failed(failure),
        Ok(attestation) => match instance {
            Instance::Here { signer, .. } if signer.issued(&attestation) => own(attestation, signer)?,
            Instance::Broken(why) => return Err(Refusal(format!("this instance's registry cannot be read: {why}"))),
            Instance::Here { .. } | Instance::None => foreign(&Presented::Attestation(attestation)),
        },
    };
    Ok(verified.to_json())
}

fn by_uri(uri: &str, instance: &Instance, foreign: &Foreign) -> Result<Verified, Refusal> {
    let Some((base, id)) = split_uri(uri) else {
        let detail = "`uri` is not {instance}/.well-known/attestations/{id}.json";
        return Ok(Verified::failed(Failure::new(FailureCode::InvalidAttestation, detail)));
    };
    let signer = match instance {
        Instance::Here { signer, .. } if same_instance(base, signer.url()) => signer,
        Instance::Broken(why) => return Err(Refusal(format!("this instance's registry cannot be read: {why}"))),
        Instance::Here { .. } | Instance::None => return Ok(foreign(&Presented::Uri(uri.to_owned()))),
    };
    let Some(document) = signer.find(id)? else {
        let detail = format!("this instance has no attestation {id}");
        return Ok(Verified::failed(Failure::new(FailureCode::AttestationAbsent, detail)));
    };
    match Attestation::parse(document.as_bytes()) {
        Ok(attestation) => Ok(own(Box::new(attestation), signer)?),
        Err(failure) => Ok(Verified::failed(failure)),
    }
}

fn own(attestation: Box<Attestation>, signer: &Signer) -> Result<Verified, SignerError> {
    let registry = signer.registry()?;
    let key_state = registry.key(attestation.key_id()).map(|key| key.state);
    let failure = checked(&attestation, &registry, Timestamp::now()).err();
    Ok(Verified { failure, attestation: Some(attestation), key_state })
}

fn checked(attestation: &Attestation, registry: &Registry, now: Timestamp) -> Result<(), Failure> {
    registry.check(attestation)?;
    match attestation.expires_at() {
        Some(end) if now >= end => Err(Failure::new(FailureCode::Expired, format!("it held until {end}"))),
        _ => Ok(()),
    }
}

impl Verified {
    /// What does not verify, of an attestation that could not even be read.
    pub const fn failed(failure: Failure) -> Self {
        Self { failure: Some(failure), attestation: None, key_state: None }
    }

    /// The tool's answer. The verdict of what does not verify is not told: it may be anybody's.
    fn to_json(&self) -> Value {
        let mut out = Object::new();
        out.push("valid", Value::from(self.failure.is_none()));
        match &self.failure {
            Some(failure) => {
                out.push("code", Value::from(failure.code.as_str()));
                out.push("detail", Value::from(hide(&failure.detail)));
            }
            None => out.push("detail", Value::from("the signature is good, and its key counts")),
        }
        let mut told = |name: &str, text: Option<String>| {
            if let Some(text) = text {
                out.push(name, Value::from(hide(&text)));
            }
        };
        if let Some(attestation) = &self.attestation {
            told("key_id", Some(attestation.key_id().to_owned()));
            told("key_state", self.key_state.map(|state| state.to_string()));
            let verdict = attestation.output().get("riskAssessment").and_then(Value::as_str);
            told("verdict", verdict.filter(|_| self.failure.is_none()).map(str::to_owned));
            told("expires_at", attestation.expires_at().map(|end| end.to_string()));
        }
        Value::Object(out)
    }
}

impl From<SignerError> for Refusal {
    fn from(error: SignerError) -> Self {
        Self(error.to_string())
    }
}
