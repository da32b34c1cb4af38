//! `writ identity`.

use clap::Args as ClapArgs;
use writ_engine::identity::TRUST_DOMAIN;

use super::FormatArgs;

#[derive(ClapArgs, Debug)]
pub struct IdentityArgs {
    /// The session; the newest of this repository when left out.
    pub session: Option<String>,
    /// Say how each part is known, and what is hashed.
    #[arg(long)]
    pub explain: bool,
    /// The trust domain of the SPIFFE ids.
    #[arg(long, value_name = "DOMAIN", default_value = TRUST_DOMAIN, value_parser = trust_domain)]
    pub trust_domain: String,
    #[command(flatten)]
    pub format: FormatArgs,
}

/// A trust domain as SPIFFE has it: lower-case letters, digits, `.`, `-` and `_`.
fn trust_domain(text: &str) -> Result<String, String> {
    let good = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || ".-_".contains(c);
    if !text.is_empty() && text.len() <= 255 && text.chars().all(good) {
        return Ok(text.to_owned());
    }
    Err("a trust domain is made of lower-case letters, digits, `.`, `-` and `_`".to_owned())
}
