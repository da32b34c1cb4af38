//! Files that seem to hold a secret's value.
//!
//! Owns what is taken for one: by the file's name, or a line of it. Refuses nothing: who builds does, and who verifies tells it. Invariant: a
//! file that is no text is none but by its name. Page: `spec/package.md`.

use writ_core::secret;

/// Largest file that is looked at for secrets.
pub(crate) const MAX_TEXT: u64 = 4 << 20;

/// The line of a file where a secret's value seems to stand; the first where its name says that it holds one.
pub(crate) fn secret_line(path: &str, bytes: &[u8]) -> Option<usize> {
    let base = path.rsplit('/').next().unwrap_or(path);
    let named = base == ".env"
        || base.starts_with(".env.") && base != ".env.example"
        || base == ".netrc"
        || base.starts_with("id_ed25519") && !base.ends_with(".pub");
    if named {
        return Some(1);
    }
    let is_secret = |line: &str| secret::has_token(line) || line.contains("PRIVATE KEY-----");
    std::str::from_utf8(bytes).ok()?.lines().position(is_secret).map(|at| at + 1)
}
