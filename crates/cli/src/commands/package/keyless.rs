//! Who signs a package without a key: the services and the token, as the arguments name them.

use writ_evidence::sigstore::{Services, ServicesError};
use writ_service::sigstore::{Keyless, SigstoreError, token};
use zeroize::Zeroizing;

use crate::args::KeylessArgs;
use crate::environment;
use crate::exit::Failure;
use crate::input;

/// The services that are named. No instance is asked that was not.
pub fn services(args: &KeylessArgs) -> Result<Services, Failure> {
    match (&args.signing_config, &args.fulcio_url, &args.rekor_url) {
        (Some(file), ..) => Services::configured(&input::bytes(file)?)
            .map_err(|error: ServicesError| Failure::malformed(format!("{}: {error}", file.display()))),
        (None, Some(fulcio), Some(rekor)) => Ok(Services::given(fulcio, rekor, args.tsa_url.as_deref())),
        (None, ..) => Err(Failure::Usage("name --key, --signing-config, or --fulcio-url and --rekor-url".to_owned())),
    }
}

/// Whoever the token names, with a certificate for a new key.
pub fn begin(args: &KeylessArgs, services: &Services) -> Result<Keyless, Failure> {
    let text = match &args.identity_token_file {
        Some(file) => Zeroizing::new(input::bytes(file)?),
        None => environment::identity_token().ok_or_else(|| {
            Failure::Usage("no identity token: name --identity-token-file, or set SIGSTORE_ID_TOKEN".to_owned())
        })?,
    };
    token(&String::from_utf8_lossy(&text)).and_then(|token| Keyless::begin(services, &token)).map_err(failure)
}

/// What it means for the exit code that nothing is signed.
pub fn failure(error: SigstoreError) -> Failure {
    use writ_evidence::sigstore::IdentityTokenError::{Expired, Malformed, Unverified};
    match error {
        SigstoreError::Address { .. } => Failure::Usage(error.to_string()),
        SigstoreError::Token(Malformed) => Failure::malformed(error),
        SigstoreError::Token(Expired(_) | Unverified)
        | SigstoreError::Network { .. }
        | SigstoreError::TooLarge { .. }
        | SigstoreError::Refused { .. }
        | SigstoreError::Answer { .. }
        | SigstoreError::Nameless(_)
        | SigstoreError::Key(_) => Failure::could_not(error),
    }
}
