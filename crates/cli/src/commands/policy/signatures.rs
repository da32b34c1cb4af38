//! `writ policy sign`, `writ policy verify`: signatures over a policy's exact bytes.

use std::fs;
use std::path::{Path, PathBuf};

use serde::Serialize;
use writ_core::{Digest, Timestamp, json};
use writ_engine::governing::{self, GoverningError, PAYLOAD_TYPE, Signed, Trust, When};
use writ_engine::keeper::{Place, TokenKey};
use writ_evidence::custody::Signs;
use writ_evidence::dsse::{Envelope, EnvelopeError};
use writ_evidence::intoto::{Bundle, Content};
use writ_evidence::keys::SigningKey;
use writ_evidence::signer::x509::Chain;

use super::report;
use crate::args::{Format, FormatArgs};
use crate::commands::keys;
use crate::environment;
use crate::exit::Failure;
use crate::input;
use crate::output;

/// What a policy is signed with.
pub enum With {
    /// Keys.
    Keys(Vec<PathBuf>),
    /// A key and the chain of its certificate.
    Certificate(PathBuf, PathBuf),
    /// A key in a token, by its place and PIN, and the chain of its certificate.
    Token(Box<(Place, String)>, Option<PathBuf>),
    /// A bundle that another tool made.
    Bundle(PathBuf),
}

impl With {
    /// From the arguments.
    pub fn of(mut keys: Vec<PathBuf>, cert: Option<PathBuf>, bundle: Option<PathBuf>) -> Result<Self, Failure> {
        match (cert, bundle, keys.len()) {
            (None, Some(bundle), _) => Ok(Self::Bundle(bundle)),
            (None, None, _) => Ok(Self::Keys(keys)),
            (Some(cert), _, 1) => Ok(Self::Certificate(keys.remove(0), cert)),
            (Some(_), _, _) => Err(Failure::Usage("--cert takes one --key: the certificate's own".to_owned())),
        }
    }
}

/// Signs a policy.
pub fn sign(file: &Path, with: With, to: Option<PathBuf>) -> Result<(), Failure> {
    // Requiring signatures must not keep anyone from making one.
    let file = &std::path::absolute(file)?;
    let bytes = governing::read(file).map_err(report)?;
    let governing = governing::open_alone(file, bytes, None, &Trust::open(None)).map_err(report)?;
    if governing.signed != Signed::Plain {
        return Err(Failure::Usage(format!("{} is signed already; sign the plain policy", file.display())));
    }
    let envelope = match with {
        With::Keys(files) => {
            let keys: Vec<SigningKey> = files.iter().map(|path| keys::signing_key(path)).collect::<Result<_, _>>()?;
            let refs: Vec<&SigningKey> = keys.iter().collect();
            Envelope::sign(PAYLOAD_TYPE, &governing.bytes, &refs).map_err(Failure::could_not)?
        }
        With::Certificate(key, chain) => certified(&governing.bytes, &keys::signing_key(&key)?, &chain)?,
        With::Token(token, chain) => {
            let (place, pin) = *token;
            let key = TokenKey::open(place, pin, &environment::home().search).map_err(Failure::could_not)?;
            match chain {
                Some(chain) => certified(&governing.bytes, &key, &chain)?,
                None => Envelope::sign(PAYLOAD_TYPE, &governing.bytes, &[&key]).map_err(Failure::could_not)?,
            }
        }
        With::Bundle(bundle) => around(&governing.bytes, &bundle)?,
    };
    let to = to.unwrap_or_else(|| {
        let mut name = file.as_os_str().to_owned();
        name.push(".signed");
        PathBuf::from(name)
    });
    if to == Path::new("-") {
        output::bytes(&envelope.to_bytes());
        return Ok(());
    }
    fs::write(&to, envelope.to_bytes()).map_err(|error| Failure::could_not(format!("{}: {error}", to.display())))?;
    output::line(format!("wrote {}", to.display()));
    Ok(())
}

fn certified(policy: &[u8], key: &dyn Signs, file: &Path) -> Result<Envelope, Failure> {
    let wrong = |why: String| Failure::malformed(format!("{}: {why}", file.display()));
    let chain = Chain::from_pem([input::bytes(file)?.as_slice()]).map_err(|error| wrong(error.to_string()))?;
    if !chain.is_for(key.public()) {
        return Err(wrong("its first certificate is not for that key: put the signer's own first".to_owned()));
    }
    chain.is_good(Timestamp::now()).map_err(|error| wrong(error.to_string()))?;
    Envelope::sign_certified(PAYLOAD_TYPE, policy, key, &chain.to_pem()).map_err(Failure::could_not)
}

fn around(policy: &[u8], file: &Path) -> Result<Envelope, Failure> {
    let wrong = |why: String| Failure::malformed(format!("{}: {why}", file.display()));
    let bytes = input::bytes(file)?;
    let bundle = Bundle::parse(&bytes).map_err(|error| wrong(error.to_string()))?;
    let Content::Message { signature, digest } = bundle.content else {
        return Err(wrong(
            "it signs an envelope of its own, not the policy's bytes: make it with `cosign sign-blob --bundle` or `sigstore sign`"
                .to_owned(),
        ));
    };
    let own = Digest::of(policy);
    if digest.is_some_and(|(name, digest)| name == "SHA2_256" && digest != own.as_bytes()) {
        return Err(wrong(format!("it is of other bytes than the policy's, whose digest is {own}")));
    }
    let value = json::parse(&bytes).map_err(|error| wrong(error.to_string()))?;
    Ok(Envelope::around_bundle(PAYLOAD_TYPE, policy, &value, signature))
}

/// What an envelope's signatures are worth.
#[derive(Serialize)]
struct Signatures<'a> {
    verified: bool,
    signers: &'a [String],
    why: Option<&'a str>,
}

/// Checks signatures with given keys, or with all that is trusted.
pub fn verify(file: &Path, key_files: &[PathBuf], args: &FormatArgs) -> Result<(), Failure> {
    let bytes = governing::read(file).map_err(report)?;
    let pinned = key_files.iter().map(|path| keys::public_key(path)).collect::<Result<Vec<_>, _>>()?;
    let outcome = match Envelope::parse(&bytes) {
        Ok(envelope) if envelope.payload_type() != PAYLOAD_TYPE => Err("it is no signed policy".to_owned()),
        Ok(_) if pinned.is_empty() => trusted(file, &bytes)?,
        Ok(envelope) => envelope
            .verify(&pinned)
            .map(|good| good.signers().iter().map(ToString::to_string).collect())
            .map_err(|error| error.to_string()),
        Err(error @ EnvelopeError::Base64 { .. }) => Err(error.to_string()),
        Err(error) => {
            return Err(Failure::malformed(format!("{} is no DSSE envelope: {error}", file.display())));
        }
    };
    let signers: Vec<String> = outcome.clone().unwrap_or_default();
    if args.format == Format::Json {
        let why = outcome.as_ref().err().map(String::as_str);
        output::print_json(&Signatures { verified: outcome.is_ok(), signers: &signers, why });
    } else {
        output::line(match &outcome {
            Ok(_) => format!("{} signed by {}", output::good("✓"), output::plain(&signers.join(", "))),
            Err(why) => format!("{} {}", output::bad("✗"), output::plain(why)),
        });
    }
    if outcome.is_ok() { Ok(()) } else { Err(Failure::No) }
}

fn trusted(file: &Path, bytes: &[u8]) -> Result<Result<Vec<String>, String>, Failure> {
    let trust = Trust::open(environment::home().state.as_deref());
    let signed = match governing::unwrap(file, bytes, &trust, When::now()) {
        Ok((_, signed)) => signed,
        Err(GoverningError::Envelope { why, .. }) => return Ok(Err(why)),
        Err(error) => return Err(report(error)),
    };
    // Whom the policy itself lets sign is known once it is read; whether the files that it names are here does not matter for that.
    let policy = governing::kept::document(&std::path::absolute(file)?, bytes);
    let policy = policy.map_err(|error| Failure::malformed(format!("{}: {error}", file.display())))?;
    let signed = governing::among(policy.functionaries(), signed);
    Ok(match signed {
        Signed::UnknownKey(reasons) if reasons.is_empty() => {
            let keys = trust.keys().map_err(Failure::could_not)?.len();
            Err(format!("no signature by any of the {keys} keys it was checked with"))
        }
        Signed::UnknownKey(reasons) => Err(reasons.join("; ")),
        Signed::NoFunctionary => Err("it is signed by none of the functionaries that it names".to_owned()),
        Signed::Plain => Err("it is no signed policy".to_owned()),
        Signed::By(_) | Signed::Accepted(_) => Ok(signed.signers().unwrap_or_default()),
    })
}
