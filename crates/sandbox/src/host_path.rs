//! Paths of the host as a confinement names them.
//!
//! Owns their form in JSON: a text, or `{"bytes": "hexadecimal"}` where the path is no UTF-8, so that two paths never share a form. Refuses
//! what is not absolute, holds `..` or a zero byte. Its invariant: the bytes are kept as they were given, a last `/` too.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Component, Path};

use serde::de::{self, MapAccess, Visitor};
use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// An absolute path. A last `/` says that it is a folder, which matters where nothing is there yet.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HostPath(OsString);

/// Why a text is no [`HostPath`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HostPathError {
    /// It does not begin with `/`.
    #[error("the path is not absolute")]
    Relative,
    /// It holds `..`, whose meaning depends on links.
    #[error("the path holds `..`")]
    Parent,
    /// It holds a zero byte.
    #[error("the path holds a zero byte")]
    Zero,
    /// Its hexadecimal form is none.
    #[error("the bytes of the path are not hexadecimal")]
    Hexadecimal,
}

impl HostPath {
    /// Takes a path as it is.
    pub fn new(path: impl Into<OsString>) -> Result<Self, HostPathError> {
        let path = path.into();
        if path.as_bytes().contains(&0) {
            return Err(HostPathError::Zero);
        }
        if !Path::new(&path).is_absolute() {
            return Err(HostPathError::Relative);
        }
        if Path::new(&path).components().any(|part| part == Component::ParentDir) {
            return Err(HostPathError::Parent);
        }
        Ok(Self(path))
    }

    /// The path.
    pub fn as_path(&self) -> &Path {
        Path::new(&self.0)
    }

    /// Whether it ends with `/`.
    pub fn names_folder(&self) -> bool {
        self.0.as_bytes().ends_with(b"/")
    }
}

impl AsRef<Path> for HostPath {
    fn as_ref(&self) -> &Path {
        self.as_path()
    }
}

impl fmt::Debug for HostPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl TryFrom<&Path> for HostPath {
    type Error = HostPathError;

    fn try_from(path: &Path) -> Result<Self, HostPathError> {
        Self::new(path.as_os_str())
    }
}

impl Serialize for HostPath {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        write(&self.0, serializer)
    }
}

impl<'de> Deserialize<'de> for HostPath {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        read(deserializer).and_then(|text| Self::new(text).map_err(de::Error::custom))
    }
}

/// `#[serde(with = "host_path::pairs")]`: names and values that need not be UTF-8.
pub mod pairs {
    use std::ffi::OsString;

    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    #[derive(Serialize, Deserialize)]
    struct Text(#[serde(serialize_with = "super::write", deserialize_with = "super::read")] OsString);

    /// Writes them.
    pub fn serialize<S: Serializer>(pairs: &[(OsString, OsString)], serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(pairs.iter().map(|(name, value)| [Text(name.clone()), Text(value.clone())]))
    }

    /// Reads them.
    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<(OsString, OsString)>, D::Error> {
        let pairs = Vec::<[Text; 2]>::deserialize(deserializer)?;
        Ok(pairs.into_iter().map(|[name, value]| (name.0, value.0)).collect())
    }
}

fn write<S: Serializer>(text: &OsStr, serializer: S) -> Result<S::Ok, S::Error> {
    if let Some(text) = text.to_str() {
        return serializer.serialize_str(text);
    }
    let digits: String = text.as_bytes().iter().map(|byte| format!("{byte:02x}")).collect();
    let mut map = serializer.serialize_map(Some(1))?;
    map.serialize_entry("bytes", &digits)?;
    map.end()
}

fn read<'de, D: Deserializer<'de>>(deserializer: D) -> Result<OsString, D::Error> {
    deserializer.deserialize_any(TextOrBytes)
}

struct TextOrBytes;

impl<'de> Visitor<'de> for TextOrBytes {
    type Value = OsString;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a text, or its bytes in hexadecimal")
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<OsString, E> {
        Ok(OsString::from(text))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<OsString, A::Error> {
        let Some((name, digits)) = map.next_entry::<String, String>()? else {
            return Err(de::Error::missing_field("bytes"));
        };
        if name != "bytes" || map.next_key::<String>()?.is_some() {
            return Err(de::Error::custom("expected the one member `bytes`"));
        }
        let bytes = hexadecimal(&digits).ok_or_else(|| de::Error::custom(HostPathError::Hexadecimal))?;
        // One value, one form: what is UTF-8 is written as a text.
        if std::str::from_utf8(&bytes).is_ok() {
            return Err(de::Error::custom("what is UTF-8 is written as a text"));
        }
        Ok(OsString::from_vec(bytes))
    }
}

fn hexadecimal(digits: &str) -> Option<Vec<u8>> {
    let (pairs, rest) = digits.as_bytes().as_chunks::<2>();
    let digit = |byte: u8| char::from(byte).to_digit(16).filter(|_| !byte.is_ascii_uppercase());
    let byte = |[high, low]: [u8; 2]| u8::try_from(digit(high)? << 4 | digit(low)?).ok();
    if rest.is_empty() { pairs.iter().map(|pair| byte(*pair)).collect() } else { None }
}

#[cfg(test)]
mod tests {
    use writ_core::json;

    use super::*;

    #[test]
    fn every_path_comes_back() {
        for bytes in [&b"/"[..], b"/a b/c\nd", b"/caf\xc3\xa9/", b"/\xff\xfe"] {
            let path = HostPath::new(OsString::from_vec(bytes.to_vec())).unwrap();
            let text = json::to_canonical(&path);
            assert_eq!(json::from_slice::<HostPath>(text.as_bytes()).unwrap(), path, "{text}");
        }
    }

    #[test]
    fn other_paths_are_refused() {
        for (text, error) in
            [("a", HostPathError::Relative), ("/a/../b", HostPathError::Parent), ("/a\0b", HostPathError::Zero)]
        {
            assert_eq!(HostPath::new(text), Err(error), "{text:?}");
        }
        for text in [r#"{"bytes":"2f61"}"#, r#"{"bytes":"2fF"}"#, r#"{"bytes":"2fFF"}"#, r#"{"hex":"2fff"}"#, "1"] {
            assert!(json::from_slice::<HostPath>(text.as_bytes()).is_err(), "{text}");
        }
    }
}
