//! Who asks: a registry's challenge, and the token or name that answers it.
//!
//! Owns `WWW-Authenticate` and the token services of the distribution specification. Refuses to send credentials in the clear to another
//! machine, and to a place that a registry names without TLS. Invariant: a header is kept for one registry and scope, and is in no error.

use serde::Deserialize;
use ureq::Agent;
use ureq::http::Response;
use writ_core::json::{self, Limits};
use writ_package::reference::is_local;
use zeroize::Zeroizing;

use super::credentials::Login;
use super::error::{RegistryError, foreign};
use super::http::{body, network, said};

/// Largest answer of a token service.
const MAX_ANSWER: u64 = 1 << 20;

/// What a registry wants to know.
pub(super) enum Challenge {
    /// A name and password.
    Basic,
    /// A token from elsewhere.
    Bearer { realm: String, service: Option<String>, scope: Option<String> },
}

#[derive(Deserialize)]
struct Token {
    token: Option<String>,
    access_token: Option<String>,
}

impl Challenge {
    /// What an answer with status 401 says.
    pub fn of<B>(answer: &Response<B>) -> Option<Self> {
        let headers = answer.headers().get_all("www-authenticate").iter();
        let mut found: Vec<Self> = headers.filter_map(|value| Self::parse(value.to_str().ok()?)).collect();
        let bearer = found.iter().position(|one| matches!(one, Self::Bearer { .. }));
        match bearer {
            Some(at) => Some(found.swap_remove(at)),
            None => found.pop(),
        }
    }

    fn parse(header: &str) -> Option<Self> {
        let (scheme, rest) = header.split_once(' ').unwrap_or((header, ""));
        if scheme.eq_ignore_ascii_case("basic") {
            return Some(Self::Basic);
        }
        let part =
            |wanted: &str| parameters(rest).find(|(name, _)| name.eq_ignore_ascii_case(wanted)).map(|(_, value)| value);
        let realm = scheme.eq_ignore_ascii_case("bearer").then(|| part("realm")).flatten()?;
        Some(Self::Bearer { realm, service: part("service"), scope: part("scope") })
    }
}

/// `name="value"` by `name="value"`; commas may stand in values.
fn parameters(text: &str) -> impl Iterator<Item = (&str, String)> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let (name, after) = rest.trim_start_matches([',', ' ']).split_once('=')?;
        let (value, behind) = match after.strip_prefix('"') {
            Some(quoted) => quoted.split_once('"')?,
            None => after.split_once(',').unwrap_or((after, "")),
        };
        rest = behind;
        Some((name.trim(), value.trim().to_owned()))
    })
}

/// The header that answers a challenge; `None` where there is nothing to answer with.
pub(super) fn answer(
    agent: &Agent,
    registry: &str,
    plain: bool,
    challenge: &Challenge,
    scope: &str,
    login: Option<&Login>,
) -> Result<Option<Zeroizing<String>>, RegistryError> {
    let Challenge::Bearer { realm, service, scope: wanted } = challenge else {
        return Ok(login.and_then(Login::basic));
    };
    let host = realm.strip_prefix("http://").map(|rest| rest.split(['/', '?']).next().unwrap_or_default());
    let clear = host.is_some_and(|host| is_local(host) || plain && host == registry);
    if !realm.starts_with("https://") && !clear {
        let why = "which is not HTTPS, for a token";
        return Err(RegistryError::Leads { url: registry.to_owned(), to: foreign(realm), why });
    }
    let scopes = if scope.is_empty() { wanted.clone().unwrap_or_default() } else { scope.to_owned() };
    let refresh = login.filter(|login| login.user.is_none());
    let response = match refresh {
        Some(login) => {
            let mut form = vec![
                ("grant_type", "refresh_token"),
                ("client_id", "writ"),
                ("refresh_token", login.secret.as_str()),
                ("scope", scopes.as_str()),
            ];
            form.extend(service.as_deref().map(|service| ("service", service)));
            agent.post(realm).send_form(form)
        }
        None => {
            let mut request = agent.get(realm);
            if let Some(service) = service {
                request = request.query("service", service);
            }
            for scope in scopes.split(' ').filter(|scope| !scope.is_empty()) {
                request = request.query("scope", scope);
            }
            if let Some(basic) = login.and_then(Login::basic) {
                request = request.header("Authorization", basic.as_str());
            }
            request.call()
        }
    };
    let mut response = response.map_err(|error| network(realm, &error))?;
    let status = response.status().as_u16();
    if matches!(status, 400 | 401 | 403) {
        return Err(RegistryError::Unauthorized { registry: registry.to_owned(), said: said(&mut response) });
    }
    if status != 200 {
        return Err(RegistryError::Status { url: foreign(realm), status, said: said(&mut response) });
    }
    let bytes = Zeroizing::new(body(&mut response, realm, MAX_ANSWER)?);
    let token: Token = json::from_slice_with(&bytes, Limits::FOREIGN)
        .map_err(|_not_shown| network_text(realm, "its answer is no token"))?;
    let token = token.token.or(token.access_token).filter(|token| !token.is_empty());
    let token = Zeroizing::new(token.ok_or_else(|| network_text(realm, "it gives no token"))?);
    Ok(Some(Zeroizing::new(format!("Bearer {}", token.as_str()))))
}

fn network_text(url: &str, why: &str) -> RegistryError {
    RegistryError::Network { url: foreign(url), why: why.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn challenges_are_read() {
        let header =
            r#"Bearer realm="https://auth.example/token",service="r.example",scope="repository:a/b:pull,push""#;
        let Some(Challenge::Bearer { realm, service, scope }) = Challenge::parse(header) else {
            panic!("no challenge")
        };
        assert_eq!(realm, "https://auth.example/token");
        assert_eq!((service.as_deref(), scope.as_deref()), (Some("r.example"), Some("repository:a/b:pull,push")));
        assert!(matches!(Challenge::parse("Basic realm=\"x\""), Some(Challenge::Basic)));
        assert!(Challenge::parse("Digest x=\"y\"").is_none() && Challenge::parse("Bearer realm=\"x").is_none());
    }
}
