//! Which services sign: as an instance's signing configuration names them, or as they are given.
//!
//! Owns the choice. Refuses a configuration that wants more services than one of a kind: a bundle would have less than it asks for.

use sigstore_verify::trust_root::{ServiceConfiguration, ServiceEndpoint, ServiceSelector, SigningConfig};
use writ_core::json;

use super::log::Version;

/// Largest configuration.
const MAX: usize = 1 << 20;

/// A transparency log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Log {
    /// Where it is.
    pub url: String,
    /// Which API it speaks.
    pub version: Version,
}

/// The services that a keyless signature is made with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Services {
    /// The certificate authority.
    pub fulcio: String,
    /// The transparency log.
    pub rekor: Log,
    /// The timestamp authority.
    pub tsa: Option<String>,
}

/// Why services cannot sign together.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ServicesError {
    /// Not a signing configuration.
    #[error("not a Sigstore signing configuration (v0.2): {0}")]
    Format(String),
    /// None of a kind.
    #[error("the signing configuration names no {0} that is in use now and whose API is known")]
    None(&'static str),
    /// More than one of a kind.
    #[error("the signing configuration wants more than one {0}, and one is asked here")]
    Many(&'static str),
    /// A log that does not say when.
    #[error("a log of Rekor's second version does not say when something was signed: it takes a timestamp authority")]
    NoTime,
}

impl Services {
    /// As they are given: the log is one of Rekor's first version.
    pub fn given(fulcio: &str, rekor: &str, tsa: Option<&str>) -> Self {
        let rekor = Log { url: rekor.to_owned(), version: Version::V1 };
        Self { fulcio: fulcio.to_owned(), rekor, tsa: tsa.map(str::to_owned) }
    }

    /// As a signing configuration names them, of those that are in use now: the newest log that is known.
    pub fn configured(bytes: &[u8]) -> Result<Self, ServicesError> {
        if bytes.len() > MAX {
            return Err(ServicesError::Format(format!("it has more than {MAX} bytes")));
        }
        // Strictly first, so that both readers see the same document.
        let document = json::parse(bytes).map_err(|error| ServicesError::Format(error.to_string()))?;
        let config = SigningConfig::from_json(&json::canonical(&document))
            .map_err(|error| ServicesError::Format(error.to_string()))?;
        let fulcio = config.fulcio_url().ok_or(ServicesError::None("certificate authority"))?.url.clone();
        let logs = config.eligible_rekor_urls(None);
        let stamps = config.eligible_tsa_urls();
        for (kind, wanted, found) in [
            ("transparency log", &config.rekor_tlog_config, &logs),
            ("timestamp authority", &config.tsa_config, &stamps),
        ] {
            if !one_is_enough(wanted, found) {
                return Err(ServicesError::Many(kind));
            }
        }
        let log = logs.first().ok_or(ServicesError::None("transparency log"))?;
        let version = Version::of(log.major_api_version).ok_or(ServicesError::None("transparency log"))?;
        let tsa = stamps.first().map(|one| one.url.clone());
        if version == Version::V2 && tsa.is_none() {
            return Err(ServicesError::NoTime);
        }
        Ok(Self { fulcio, rekor: Log { url: log.url.clone(), version }, tsa })
    }
}

fn one_is_enough(wanted: &ServiceConfiguration, found: &[&ServiceEndpoint]) -> bool {
    match wanted.selector {
        ServiceSelector::Any => true,
        ServiceSelector::Exact => wanted.count == Some(1),
        ServiceSelector::All => found.len() <= 1,
        ServiceSelector::Undefined | _ => found.is_empty(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(logs: &str, stamps: &str, more: &str) -> Result<Services, ServicesError> {
        let text = format!(
            r#"{{"mediaType":"application/vnd.dev.sigstore.signingconfig.v0.2+json",
            "caUrls":[{}],"rekorTlogUrls":[{logs}],"tsaUrls":[{stamps}],"oidcUrls":[]{more}}}"#,
            one("https://fulcio.example", 1)
        );
        Services::configured(text.as_bytes())
    }

    fn one(url: &str, version: u32) -> String {
        format!(
            r#"{{"url":"{url}","majorApiVersion":{version},"operator":"o","validFor":{{"start":"2020-01-01T00:00:00Z"}}}}"#
        )
    }

    #[test]
    fn the_newest_log_is_taken() {
        let (first, second) = (one("https://one.example", 1), one("https://two.example", 2));
        let stamp = one("https://tsa.example", 1);
        let found = config(&format!("{first},{second}"), &stamp, "").unwrap();
        assert_eq!(found.rekor, Log { url: "https://two.example".to_owned(), version: Version::V2 });
        assert_eq!(
            (found.fulcio.as_str(), found.tsa.as_deref()),
            ("https://fulcio.example", Some("https://tsa.example"))
        );
        let found = config(&first, "", "").unwrap();
        assert_eq!((found.rekor.version, found.tsa), (Version::V1, None));
        let any = r#","rekorTlogConfig":{"selector":"ANY"},"tsaConfig":{"selector":"EXACT","count":1}"#;
        assert!(config(&format!("{first},{second}"), &stamp, any).is_ok());
    }

    #[test]
    fn what_one_service_cannot_give_is_refused() {
        let (first, second) = (one("https://one.example", 1), one("https://two.example", 2));
        assert_eq!(config(&second, "", ""), Err(ServicesError::NoTime));
        assert_eq!(config("", "", ""), Err(ServicesError::None("transparency log")));
        assert_eq!(config(&one("https://x.example", 9), "", ""), Err(ServicesError::None("transparency log")));
        let over = first.replace("\"start\"", "\"end\":\"2021-01-01T00:00:00Z\",\"start\"");
        assert_eq!(config(&over, "", ""), Err(ServicesError::None("transparency log")));
        let all = r#","rekorTlogConfig":{"selector":"ALL"}"#;
        assert_eq!(config(&format!("{first},{second}"), "", all), Err(ServicesError::Many("transparency log")));
        let two = r#","rekorTlogConfig":{"selector":"EXACT","count":2}"#;
        assert_eq!(config(&first, "", two), Err(ServicesError::Many("transparency log")));
        assert!(matches!(Services::configured(b"{}"), Err(ServicesError::Format(_))));
    }
}
