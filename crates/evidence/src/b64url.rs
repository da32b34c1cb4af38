//! base64url without padding, in its only form (R33): no padding, no white space, no stray bits behind the last byte.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use writ_core::json;

/// The text of `bytes`.
pub fn encode(bytes: &[u8]) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}

/// Exactly `N` bytes, or nothing.
pub fn decode<const N: usize>(text: &str) -> Option<[u8; N]> {
    URL_SAFE_NO_PAD.decode(text).ok()?.try_into().ok()
}

/// For `#[serde(with = "b64url")]`.
pub fn serialize<S: serde::Serializer, const N: usize>(bytes: &[u8; N], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&encode(bytes))
}

/// For `#[serde(with = "b64url")]`.
pub fn deserialize<'de, D: serde::Deserializer<'de>, const N: usize>(deserializer: D) -> Result<[u8; N], D::Error> {
    let wrong = || format!("not {N} bytes in base64url without padding");
    json::read_text(deserializer, |text| decode(text).ok_or_else(wrong))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_form_only() {
        assert_eq!(encode(&[251, 255]), "-_8");
        assert_eq!(decode::<2>("-_8"), Some([251, 255]));
        for bad in ["-_8=", "-_9", "+/8", "-_8 ", "-_", "-_8A", ""] {
            assert_eq!(decode::<2>(bad), None, "{bad}");
        }
    }
}
