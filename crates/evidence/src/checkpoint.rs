//! C2SP checkpoints: a tree's size and root in a signed note.
//!
//! Format: c2sp.org/tlog-checkpoint inside c2sp.org/signed-note, with a signature by Ed25519, or by ECDSA on P-256 where a token keeps
//! the key. Refuses a note that is not byte for byte what [`Checkpoint::sign`] writes. Page: `spec/checkpoint.md`.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use writ_core::{Digest, SessionId};

use crate::custody::{Kept, Signs};
use crate::keys::{Algorithm, KeyError, PublicKey};

/// The note's algorithm byte for Ed25519.
const ED25519: u8 = 1;
/// The one for ECDSA.
const ECDSA: u8 = 2;

/// Largest note.
pub const MAX_NOTE: usize = 4096;

/// A tree at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Checkpoint {
    /// Which log this is; also the name of the signing key in the note.
    pub origin: String,
    /// How many entries.
    pub size: u64,
    /// The root over them.
    pub root: Digest,
    /// What keeps the key that signs it, where it says so.
    pub kept: Option<Kept>,
}

/// Why a note is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NoteError {
    /// Not a checkpoint with one signature, or not in the form one is written in.
    #[error("not a signed checkpoint")]
    Malformed,
    /// Signed by another key.
    #[error("not signed by the expected key")]
    OtherKey,
    /// The signature does not hold.
    #[error("its signature is wrong")]
    Signature,
}

/// The origin of a session's log.
pub fn origin(session: &SessionId) -> String {
    format!("writ/session/{}", session.file_name())
}

impl Checkpoint {
    /// The signed note.
    pub fn sign<S: Signs + ?Sized>(&self, key: &S) -> Result<String, KeyError> {
        let body = self.body();
        let mut blob = key_hash(&self.origin, key.public()).to_vec();
        blob.extend(key.sign(body.as_bytes())?);
        Ok(format!("{body}\n\u{2014} {} {}\n", self.origin, STANDARD.encode(blob)))
    }

    /// Reads a note and checks its signature.
    pub fn verify(note: &str, key: &PublicKey) -> Result<Self, NoteError> {
        let (checkpoint, blob) = Self::parse(note)?;
        let (id, signature) = blob.split_at_checked(4).ok_or(NoteError::Malformed)?;
        if id != key_hash(&checkpoint.origin, key) {
            return Err(NoteError::OtherKey);
        }
        key.verify(checkpoint.body().as_bytes(), signature).map_err(|_bad| NoteError::Signature)?;
        Ok(checkpoint)
    }

    /// Reads a note without believing it.
    pub fn read(note: &str) -> Result<Self, NoteError> {
        Self::parse(note).map(|(checkpoint, _)| checkpoint)
    }

    fn parse(note: &str) -> Result<(Self, Vec<u8>), NoteError> {
        if note.len() > MAX_NOTE {
            return Err(NoteError::Malformed);
        }
        let (body, signature) = note.split_once("\n\n").ok_or(NoteError::Malformed)?;
        let mut lines = body.split('\n');
        let (Some(origin), Some(size), Some(root), kept, None) =
            (lines.next(), lines.next(), lines.next(), lines.next(), lines.next())
        else {
            return Err(NoteError::Malformed);
        };
        let kept = kept.map(|line| Kept::parse(line).ok_or(NoteError::Malformed)).transpose()?;
        let root: [u8; 32] = decode(root)?.try_into().map_err(|_length| NoteError::Malformed)?;
        let size = size.parse().map_err(|_not_a_number| NoteError::Malformed)?;
        let checkpoint = Self { origin: origin.to_owned(), size, root: Digest::from_bytes(root), kept };
        let (name, blob) = signature
            .strip_prefix("\u{2014} ")
            .and_then(|line| line.strip_suffix('\n'))
            .and_then(|line| line.rsplit_once(' '))
            .ok_or(NoteError::Malformed)?;
        let blob = decode(blob)?;
        let again = format!("{}\n\u{2014} {name} {}\n", checkpoint.body(), STANDARD.encode(&blob));
        if !is_name(name) || name != checkpoint.origin || again != note {
            Err(NoteError::Malformed)
        } else {
            Ok((checkpoint, blob))
        }
    }

    fn body(&self) -> String {
        let kept = self.kept.map(Kept::line).unwrap_or_default();
        format!("{}\n{}\n{}\n{kept}", self.origin, self.size, STANDARD.encode(self.root.as_bytes()))
    }
}

/// `name+hash+base64(algorithm ‖ key)`: the verifier key other log tools take.
pub fn vkey(origin: &str, key: &PublicKey) -> String {
    let hash = key_hash(origin, key);
    let hex: String = hash.iter().map(|byte| format!("{byte:02x}")).collect();
    let typed = match key.algorithm() {
        Algorithm::Ed25519 => [&[ED25519], key.raw()].concat(),
        Algorithm::P256 => [&[ECDSA], key.to_der().as_slice()].concat(),
    };
    format!("{origin}+{hex}+{}", STANDARD.encode(typed))
}

/// Reads a verifier key: the name it stands for, and the key.
pub fn parse_vkey(text: &str) -> Result<(String, PublicKey), NoteError> {
    let mut parts = text.splitn(3, '+');
    let (Some(name), Some(hash), Some(key)) = (parts.next(), parts.next(), parts.next()) else {
        return Err(NoteError::Malformed);
    };
    let key = decode(key)?;
    let key = match key.split_first() {
        Some((&ED25519, raw)) => PublicKey::new(Algorithm::Ed25519, raw.to_vec()),
        Some((&ECDSA, der)) => PublicKey::from_der(der).and_then(|key| match key.algorithm() {
            Algorithm::P256 => Ok(key),
            Algorithm::Ed25519 => Err(KeyError::Unsupported),
        }),
        Some(_) | None => Err(KeyError::Unsupported),
    };
    let key = key.map_err(|_bad| NoteError::Malformed)?;
    let good = is_name(name) && vkey(name, &key) == text && !hash.is_empty();
    if good { Ok((name.to_owned(), key)) } else { Err(NoteError::Malformed) }
}

/// A key name of the signed-note format: not empty, no white space, no `+`.
fn is_name(name: &str) -> bool {
    !name.is_empty() && !name.chars().any(|c| c.is_whitespace() || c.is_control() || c == '+')
}

fn key_hash(origin: &str, key: &PublicKey) -> [u8; 4] {
    let digest = match key.algorithm() {
        Algorithm::Ed25519 => Digest::of(&[origin.as_bytes(), b"\n", &[ED25519], key.raw()].concat()),
        // As the registry of note signatures has it for ECDSA: of the key alone.
        Algorithm::P256 => Digest::of(&key.to_der()),
    };
    let mut id = [0u8; 4];
    for (to, from) in id.iter_mut().zip(digest.as_bytes()) {
        *to = *from;
    }
    id
}

fn decode(text: &str) -> Result<Vec<u8>, NoteError> {
    STANDARD.decode(text).map_err(|_not_base64| NoteError::Malformed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keys::SigningKey;

    fn sample() -> (Checkpoint, SigningKey) {
        let checkpoint =
            Checkpoint { origin: origin(&SessionId::new("s1")), size: 7, root: Digest::of(b"x"), kept: None };
        (checkpoint, SigningKey::generate(Algorithm::Ed25519).unwrap())
    }

    #[test]
    fn notes_verify() {
        let (checkpoint, key) = sample();
        let note = checkpoint.sign(&key).unwrap();
        assert_eq!(Checkpoint::verify(&note, key.public()), Ok(checkpoint.clone()));
        assert_eq!(Checkpoint::read(&note), Ok(checkpoint));
        let other = SigningKey::generate(Algorithm::Ed25519).unwrap();
        assert_eq!(Checkpoint::verify(&note, other.public()), Err(NoteError::OtherKey));
    }

    #[test]
    fn any_changed_byte_is_refused() {
        let (checkpoint, key) = sample();
        let note = checkpoint.sign(&key).unwrap().into_bytes();
        for at in 0..note.len() {
            let mut bent = note.clone();
            bent[at] ^= 1;
            let refused =
                std::str::from_utf8(&bent).map_or(true, |text| Checkpoint::verify(text, key.public()).is_err());
            assert!(refused, "byte {at}");
        }
    }

    /// The example key and note of the Go implementation of signed notes.
    #[test]
    fn the_reference_key_and_note() {
        let text = "PeterNeumann+c74f20a3+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW";
        let (name, key) = parse_vkey(text).unwrap();
        assert_eq!((name.as_str(), vkey(&name, &key).as_str()), ("PeterNeumann", text));
        let body =
            "If you think cryptography is the answer to your problem,\nthen you don't know what your problem is.\n";
        let blob = "x08go/ZJkuBS9UG/SffcvIAQxVBtiFupLLr8pAcElZInNIuGUgYN1FFYC2pZSNXgKvqfqdngotpRZb6KE6RyyBwJnAM=";
        let blob = STANDARD.decode(blob).unwrap();
        assert_eq!(blob[..4], key_hash(&name, &key));
        assert!(key.verify(body.as_bytes(), &blob[4..]).is_ok() && key.verify(b"other", &blob[4..]).is_err());
        for at in 0..text.len() {
            let mut bent = text.as_bytes().to_vec();
            bent[at] ^= 1;
            assert!(parse_vkey(std::str::from_utf8(&bent).unwrap()).is_err(), "byte {at}");
            assert!(parse_vkey(text.get(..at).unwrap()).is_err());
        }
    }

    #[test]
    fn refuses_other_forms() {
        let (checkpoint, key) = sample();
        let note = checkpoint.sign(&key).unwrap();
        let (body, signature) = note.split_once("\n\n").unwrap();
        for bad in [
            String::new(),
            format!("{body}\n\n"),
            format!("{body}\nextra\n\n{signature}"),
            format!("{body}\n\n{signature}{signature}"),
            format!("{body}\r\n\r\n{signature}"),
            format!("\n{note}"),
            format!("{note}\n"),
            note.replacen("\n7\n", "\n07\n", 1),
            note.replacen("\n7\n", "\n+7\n", 1),
            note.replacen("\n7\n", "\n-7\n", 1),
            note.replacen("\u{2014}", "--", 1),
            note.trim_end().to_owned(),
        ] {
            assert_eq!(Checkpoint::read(&bad), Err(NoteError::Malformed), "{bad}");
        }
    }

    #[test]
    fn a_key_on_p256_signs_too() {
        let (checkpoint, _) = sample();
        let key = SigningKey::generate(Algorithm::P256).unwrap();
        let note = checkpoint.sign(&key).unwrap();
        assert_eq!(Checkpoint::verify(&note, key.public()), Ok(checkpoint.clone()));
        let other = SigningKey::generate(Algorithm::P256).unwrap();
        assert_eq!(Checkpoint::verify(&note, other.public()), Err(NoteError::OtherKey));
        for at in 0..note.len() {
            let mut bent = note.clone().into_bytes();
            bent[at] ^= 1;
            let refused =
                std::str::from_utf8(&bent).map_or(true, |text| Checkpoint::verify(text, key.public()).is_err());
            assert!(refused, "byte {at}");
        }
        let text = vkey(&checkpoint.origin, key.public());
        assert_eq!(parse_vkey(&text), Ok((checkpoint.origin, key.public().clone())));
    }
}
