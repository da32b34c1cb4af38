"""What a Sigstore instance of a test's own is made of: its authority, its certificates with the certificate log's word in them, its logs' keys."""

import base64
import datetime
import hashlib
import json
import struct
import time

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

SCT = x509.ObjectIdentifier("1.3.6.1.4.1.11129.2.4.2")
OIDC_ISSUER = x509.ObjectIdentifier("1.3.6.1.4.1.57264.1.8")
OIDC_ISSUER_V1 = x509.ObjectIdentifier("1.3.6.1.4.1.57264.1.1")
NOW = datetime.datetime.utcnow().replace(microsecond=0)


def b64(data):
    return base64.b64encode(data).decode()


def new_key():
    return ec.generate_private_key(ec.SECP256R1())


def sign(key, data):
    return key.sign(data, ec.ECDSA(hashes.SHA256()))


def spki(key):
    return key.public_key().public_bytes(serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo)


def der(data, tag):
    assert len(data) < 65536
    size = len(data)
    length = bytes([size]) if size < 128 else bytes([0x81, size]) if size < 256 else b"\x82" + struct.pack(">H", size)
    return bytes([tag]) + length + data


def usage(**given):
    words = ["digital_signature", "content_commitment", "key_encipherment", "data_encipherment", "key_agreement",
             "key_cert_sign", "crl_sign", "encipher_only", "decipher_only"]
    return x509.KeyUsage(**{word: given.get(word, False) for word in words})


def authority(key):
    name = x509.Name([x509.NameAttribute(NameOID.ORGANIZATION_NAME, "test"), x509.NameAttribute(NameOID.COMMON_NAME, "fulcio")])
    made = x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(key.public_key())
    made = made.serial_number(x509.random_serial_number())
    made = made.not_valid_before(NOW - datetime.timedelta(days=1)).not_valid_after(NOW + datetime.timedelta(days=1))
    made = made.add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
    made = made.add_extension(usage(key_cert_sign=True, crl_sign=True), critical=True)
    made = made.add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
    return made.sign(key, hashes.SHA256())


def canonical(value):
    return json.dumps(value, sort_keys=True, separators=(",", ":")).encode()


def log(key):
    start = (NOW - datetime.timedelta(days=1)).strftime("%Y-%m-%dT%H:%M:%SZ")
    public = {"rawBytes": b64(spki(key)), "keyDetails": "PKIX_ECDSA_P256_SHA_256", "validFor": {"start": start}}
    return {"baseUrl": "https://log.test", "hashAlgorithm": "SHA2_256", "publicKey": public,
            "logId": {"keyId": b64(hashlib.sha256(spki(key)).digest())}}


def leaf(ca, ca_key, log_key, key, identity, issuer, ends, logged=None):
    """A signer's certificate, which ends so long after NOW; `logged` is what the certificate log signs in place of it."""
    made = x509.CertificateBuilder().subject_name(x509.Name([])).issuer_name(ca.subject).public_key(key)
    made = made.serial_number(x509.random_serial_number())
    made = made.not_valid_before(NOW - datetime.timedelta(minutes=5)).not_valid_after(NOW + ends)
    made = made.add_extension(usage(digital_signature=True), critical=True)
    made = made.add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.CODE_SIGNING]), critical=False)
    made = made.add_extension(x509.SubjectKeyIdentifier.from_public_key(key), critical=False)
    made = made.add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(ca_key.public_key()), critical=False)
    name = x509.RFC822Name(identity) if "@" in identity and "/" not in identity else x509.UniformResourceIdentifier(identity)
    made = made.add_extension(x509.SubjectAlternativeName([name]), critical=True)
    made = made.add_extension(x509.UnrecognizedExtension(OIDC_ISSUER_V1, issuer.encode()), critical=False)
    made = made.add_extension(x509.UnrecognizedExtension(OIDC_ISSUER, der(issuer.encode(), 0x0C)), critical=False)
    # RFC 6962, section 3.2: the log signs the certificate without its own word in it.
    before = made.sign(ca_key, hashes.SHA256()).tbs_certificate_bytes
    at = int(time.time() * 1000) - 60_000
    entry = hashlib.sha256(spki(ca_key)).digest() + struct.pack(">I", len(before))[1:] + before
    word = sign(log_key, logged or struct.pack(">BBQH", 0, 0, at, 1) + entry + b"\0\0")
    one = b"\0" + hashlib.sha256(spki(log_key)).digest() + struct.pack(">Q", at) + b"\0\0\x04\x03"
    one += struct.pack(">H", len(word)) + word
    one = struct.pack(">H", len(one)) + one
    made = made.add_extension(x509.UnrecognizedExtension(SCT, der(struct.pack(">H", len(one)) + one, 0x04)), critical=False)
    return made.sign(ca_key, hashes.SHA256())
