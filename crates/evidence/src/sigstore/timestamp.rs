//! A timestamp over a signature, asked of an authority as RFC 3161 has it.
//!
//! Owns the request and the look at the answer. Refuses one over something else, and one that answers another request. Checks no signature:
//! whoever verifies the bundle does. By hand on `der` and `cms`: `sigstore-tsa` makes requests with its own HTTP client alone.

use cms::content_info::ContentInfo;
use cms::signed_data::SignedData;
use der::asn1::{BitString, GeneralizedTime, Int, ObjectIdentifier, OctetString, Uint};
use der::{Any, Decode, Encode, Sequence};
use writ_core::Digest;
use x509_cert::ext::Extensions;
use x509_cert::ext::pkix::name::GeneralName;
use x509_cert::spki::AlgorithmIdentifierOwned;

use super::AnswerError;
use crate::keys::{KeyError, random};

/// What a request is called.
pub const MEDIA_TYPE: &str = "application/timestamp-query";
const SHA256: ObjectIdentifier = ObjectIdentifier::new_unwrap("2.16.840.1.101.3.4.2.1");
const SIGNED_DATA: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.113549.1.7.2");
const TST_INFO: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.113549.1.9.16.1.4");

#[derive(Sequence)]
struct Imprint {
    algorithm: AlgorithmIdentifierOwned,
    digest: OctetString,
}

#[derive(Sequence)]
struct Query {
    version: u8,
    imprint: Imprint,
    nonce: Int,
    certificates: bool,
}

#[derive(Sequence)]
struct Status {
    status: u8,
    #[asn1(optional = "true")]
    text: Option<Vec<String>>,
    #[asn1(optional = "true")]
    failure: Option<BitString>,
}

#[derive(Sequence)]
struct Answer {
    status: Status,
    #[asn1(optional = "true")]
    token: Option<ContentInfo>,
}

#[derive(Sequence)]
struct Accuracy {
    #[asn1(optional = "true")]
    seconds: Option<u64>,
    #[asn1(context_specific = "0", optional = "true", tag_mode = "IMPLICIT")]
    millis: Option<u16>,
    #[asn1(context_specific = "1", optional = "true", tag_mode = "IMPLICIT")]
    micros: Option<u16>,
}

#[derive(Sequence)]
struct Info {
    version: u8,
    policy: ObjectIdentifier,
    imprint: Imprint,
    serial: Int,
    time: GeneralizedTime,
    #[asn1(optional = "true")]
    accuracy: Option<Accuracy>,
    #[asn1(default = "no")]
    ordering: bool,
    #[asn1(optional = "true")]
    nonce: Option<Int>,
    #[asn1(context_specific = "0", optional = "true", tag_mode = "EXPLICIT")]
    authority: Option<GeneralName>,
    #[asn1(context_specific = "1", optional = "true", tag_mode = "IMPLICIT")]
    extensions: Option<Extensions>,
}

const fn no() -> bool {
    false
}

/// What is asked.
pub struct Request {
    nonce: Int,
    digest: Digest,
    der: Vec<u8>,
}

impl Request {
    /// A timestamp over a signature, with the authority's certificates.
    pub fn of(signature: &[u8]) -> Result<Self, KeyError> {
        let failed = |_der: der::Error| KeyError::Library;
        let nonce = Int::from(Uint::new(&random()?.to_be_bytes()).map_err(failed)?);
        let digest = Digest::of(signature);
        let imprint = Imprint {
            algorithm: AlgorithmIdentifierOwned { oid: SHA256, parameters: Some(Any::null()) },
            digest: OctetString::new(*digest.as_bytes()).map_err(failed)?,
        };
        let query = Query { version: 1, imprint, nonce: nonce.clone(), certificates: true };
        Ok(Self { nonce, digest, der: query.to_der().map_err(failed)? })
    }

    /// The request's bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.der
    }

    /// Looks whether an answer is one to this request.
    pub fn is_answered_by(&self, answer: &[u8]) -> Result<(), AnswerError> {
        let wrong = |error: der::Error| AnswerError::Timestamp(error.to_string());
        let answer = Answer::from_der(answer).map_err(wrong)?;
        let (0 | 1, Some(token)) = (answer.status.status, answer.token) else {
            return Err(AnswerError::NotGranted(answer.status.status));
        };
        let other = |what: &str| AnswerError::Timestamp(format!("it holds no {what}"));
        if token.content_type != SIGNED_DATA {
            return Err(other("signed data"));
        }
        let signed: SignedData = token.content.decode_as().map_err(wrong)?;
        let content = signed.encap_content_info;
        if content.econtent_type != TST_INFO {
            return Err(other("time"));
        }
        let info = content.econtent.ok_or_else(|| other("time"))?;
        let info = Info::from_der(info.value()).map_err(wrong)?;
        if info.imprint.algorithm.oid != SHA256 || info.imprint.digest.as_bytes() != self.digest.as_bytes() {
            return Err(AnswerError::OtherTimestamp("it is over other bytes"));
        }
        if info.nonce.as_ref() != Some(&self.nonce) {
            return Err(AnswerError::OtherTimestamp("it answers another request"));
        }
        Ok(())
    }
}
