//! Access tokens: who may ask for evaluations.
//!
//! Owns the digests of the tokens; the tokens themselves are forgotten after reading. Refuses a token file that others can read.
//! Invariant: how long a comparison takes says nothing about a token.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use axum::http::header::{AUTHORIZATION, HeaderMap};
use subtle::ConstantTimeEq;
use writ_core::Digest;

/// Shortest token: 128 bits in hexadecimal have 32 characters, in base64 22.
const SHORTEST: usize = 22;
/// Longest token file.
const MAX_BYTES: u64 = 1 << 20;

/// Why a token file is not used.
#[derive(Debug, thiserror::Error)]
pub enum TokenError {
    /// It cannot be read.
    #[error("the token file {path} cannot be read: {source}")]
    Io {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// Others can read it.
    #[error("others can read {0}: `chmod 600` it")]
    Exposed(PathBuf),
    /// Not a token a line.
    #[error("line {line} of {path} is not a token: {SHORTEST} to 512 letters, digits and `-._~+/=`")]
    Token {
        /// The file.
        path: PathBuf,
        /// Which line.
        line: usize,
    },
    /// Nobody could come in.
    #[error("{0} holds no token")]
    Empty(PathBuf),
}

/// The tokens that are let in.
#[derive(Clone, Debug)]
pub struct AccessTokens(Vec<[u8; 32]>);

/// Which token a request has: its place in the file.
pub type TokenIndex = usize;

impl AccessTokens {
    /// A token a line; empty lines and lines that begin with `#` are skipped.
    pub fn read(path: &Path) -> Result<Self, TokenError> {
        let io = |source| TokenError::Io { path: path.to_owned(), source };
        let kind = fs::metadata(path).map_err(io)?;
        if !kind.is_file() || kind.len() > MAX_BYTES {
            return Err(io(std::io::ErrorKind::InvalidInput.into()));
        }
        if kind.permissions().mode() & 0o077 != 0 {
            return Err(TokenError::Exposed(path.to_owned()));
        }
        let text = fs::read_to_string(path).map_err(io)?;
        let mut tokens = Vec::new();
        for (at, line) in text.lines().map(str::trim).enumerate() {
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~+/=".contains(&byte);
            if !(SHORTEST..=512).contains(&line.len()) || !line.bytes().all(plain) {
                return Err(TokenError::Token { path: path.to_owned(), line: at + 1 });
            }
            tokens.push(*Digest::of(line.as_bytes()).as_bytes());
        }
        if tokens.is_empty() { Err(TokenError::Empty(path.to_owned())) } else { Ok(Self(tokens)) }
    }

    /// Whose token the request has.
    pub fn find(&self, headers: &HeaderMap) -> Option<TokenIndex> {
        let mut given = headers.get_all(AUTHORIZATION).iter();
        let (Some(only), None) = (given.next(), given.next()) else { return None };
        let (scheme, token) = only.to_str().ok()?.split_once(' ')?;
        if !scheme.eq_ignore_ascii_case("bearer") {
            return None;
        }
        let digest = Digest::of(token.trim().as_bytes());
        let mut found = None;
        for (at, known) in self.0.iter().enumerate() {
            if known.ct_eq(digest.as_bytes()).into() {
                found = Some(at);
            }
        }
        found
    }
}
