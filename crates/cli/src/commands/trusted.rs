//! `writ keys trust`, `writ keys trusted`: whose policies the user accepts.

use serde::Serialize;
use writ_core::Digest;
use writ_engine::governing::Trust;
use writ_evidence::signer::Name;

use crate::args::{Format, FormatArgs, TrustedArgs};
use crate::exit::Failure;
use crate::human_check;
use crate::input;
use crate::output;

/// Trusts a key, an authority or an identity.
pub fn add(trust: &Trust, args: &TrustedArgs) -> Result<(), Failure> {
    if let Some(file) = &args.ca {
        human_check::not_agent("trust a certificate authority")?;
        let pinned = trust.pin_authority(&input::text(file)?, args.name.clone(), file);
        let (id, root) = pinned.map_err(Failure::malformed)?;
        output::line(format!("trusted {id}  {}", output::plain(&root.subject().to_string())));
        if args.name.is_empty() {
            output::note(format!(
                "{} everybody to whom it gives a certificate for signatures may sign policies: name them with --name",
                output::warn("warning:")
            ));
        }
        return Ok(());
    }
    if let (Some(file), Some(issuer)) = (&args.sigstore, &args.issuer) {
        human_check::not_agent("trust an identity")?;
        let pattern = args.identity_pattern.is_some();
        let who = args.identity_pattern.as_ref().or(args.identity.as_ref()).map(String::as_str).unwrap_or_default();
        let pinned = trust.pin_identity(&input::bytes(file)?, issuer, who, pattern, file);
        output::line(format!("trusted {}  {}", pinned.map_err(Failure::malformed)?, output::plain(who)));
        return Ok(());
    }
    let Some(file) = &args.file else { return Err(Failure::Usage("name a public key, --ca or --sigstore".to_owned())) };
    human_check::not_agent("trust a key")?;
    let key = trust.pin(&input::text(file)?, file).map_err(Failure::malformed)?;
    output::line(format!("trusted {}", key.key_id()));
    Ok(())
}

/// One that is trusted.
#[derive(Serialize)]
#[serde(tag = "type", rename_all = "lowercase")]
enum Trusted {
    Key {
        id: Digest,
        algorithm: String,
    },
    Ca {
        id: Digest,
        subject: String,
        /// The only ones whose certificates count; everybody's where there are none.
        names: Vec<Name>,
    },
    Sigstore {
        id: Digest,
        issuer: String,
        identity: String,
        pattern: bool,
    },
}

impl Trusted {
    fn line(&self) -> String {
        match self {
            Self::Key { id, algorithm } => format!("trusted key  {id}  {algorithm}"),
            Self::Ca { id, subject, names } => {
                let names: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
                let names = if names.is_empty() { "everybody".to_owned() } else { names.join(", ") };
                output::plain(&format!("trusted CA   {id}  {subject}, about {names}"))
            }
            Self::Sigstore { id, issuer, identity, pattern } => {
                let kind = if *pattern { "pattern " } else { "" };
                output::plain(&format!("trusted who  {id}  {kind}{identity}, by {issuer}"))
            }
        }
    }
}

fn all(trust: &Trust) -> Result<Vec<Trusted>, Failure> {
    let keys = trust.keys().map_err(Failure::could_not)?;
    let keys = keys.iter().map(|key| Trusted::Key { id: key.key_id(), algorithm: key.algorithm().to_string() });
    let mut out: Vec<Trusted> = keys.collect();
    for (id, authority) in trust.authorities().map_err(Failure::could_not)? {
        let root = authority.root().map_err(Failure::could_not)?;
        out.push(Trusted::Ca { id, subject: root.subject().to_string(), names: authority.subjects });
    }
    for (id, found) in trust.identities().map_err(Failure::could_not)? {
        let writ_engine::governing::TrustedIdentity { issuer, identity, pattern, .. } = found;
        out.push(Trusted::Sigstore { id, issuer, identity, pattern });
    }
    Ok(out)
}

/// What is trusted, one a line.
pub fn lines(trust: &Trust) -> Result<Vec<String>, Failure> {
    Ok(all(trust)?.iter().map(Trusted::line).collect())
}

/// Everything that is trusted.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Listing {
    trusted: Vec<Trusted>,
    require_signed: bool,
}

/// Lists it.
pub fn list(trust: &Trust, args: &FormatArgs) -> Result<(), Failure> {
    let listing = Listing { trusted: all(trust)?, require_signed: trust.require_signed() };
    if args.format == Format::Json {
        output::print_json(&listing);
        return Ok(());
    }
    listing.trusted.iter().map(Trusted::line).for_each(output::line);
    output::line(format!("signed policies are {}", if listing.require_signed { "required" } else { "not required" }));
    Ok(())
}
