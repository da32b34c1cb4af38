"""A Sigstore instance of a test's own: authority, certificate log and transparency log, and one bundle over a file.

    sigstore_instance.py FOLDER FILE IDENTITY ISSUER [FLAW]

Writes trusted_root.json and bundle.json into FOLDER. FLAW is what is wrong with the bundle: `late` (the log took it when the
certificate was over), `sct` (the certificate log's signature), `promise`, `proof`, `checkpoint` (the transparency log's), `entry` (it is of
another file), `root` (a root that did not issue the certificate), `signature`.
"""

import base64
import datetime
import hashlib
import json
import struct
import sys
import time

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

FOLDER, FILE, IDENTITY, ISSUER = sys.argv[1:5]
FLAW = sys.argv[5] if len(sys.argv) > 5 else ""
SCT = x509.ObjectIdentifier("1.3.6.1.4.1.11129.2.4.2")
OIDC_ISSUER = x509.ObjectIdentifier("1.3.6.1.4.1.57264.1.8")
OIDC_ISSUER_V1 = x509.ObjectIdentifier("1.3.6.1.4.1.57264.1.1")
ARTIFACT = open(FILE, "rb").read()
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


def leaf(ca, ca_key, log_key, key):
    made = x509.CertificateBuilder().subject_name(x509.Name([])).issuer_name(ca.subject).public_key(key.public_key())
    made = made.serial_number(x509.random_serial_number())
    made = made.not_valid_before(NOW - datetime.timedelta(minutes=5)).not_valid_after(NOW + datetime.timedelta(minutes=5))
    if FLAW == "late":
        made._not_valid_after = NOW - datetime.timedelta(minutes=3)
    made = made.add_extension(usage(digital_signature=True), critical=True)
    made = made.add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.CODE_SIGNING]), critical=False)
    made = made.add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
    made = made.add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(ca_key.public_key()), critical=False)
    name = x509.RFC822Name(IDENTITY) if "@" in IDENTITY and "/" not in IDENTITY else x509.UniformResourceIdentifier(IDENTITY)
    made = made.add_extension(x509.SubjectAlternativeName([name]), critical=True)
    made = made.add_extension(x509.UnrecognizedExtension(OIDC_ISSUER_V1, ISSUER.encode()), critical=False)
    made = made.add_extension(x509.UnrecognizedExtension(OIDC_ISSUER, der(ISSUER.encode(), 0x0C)), critical=False)
    # RFC 6962, section 3.2: the log signs the certificate without its own word in it.
    before = made.sign(ca_key, hashes.SHA256()).tbs_certificate_bytes
    at = int(time.time() * 1000) - 60_000
    entry = hashlib.sha256(spki(ca_key)).digest() + struct.pack(">I", len(before))[1:] + before
    word = sign(log_key, struct.pack(">BBQH", 0, 0, at, 1) + entry + b"\0\0")
    if FLAW == "sct":
        word = sign(log_key, b"something else")
    one = b"\0" + hashlib.sha256(spki(log_key)).digest() + struct.pack(">Q", at) + b"\0\0\x04\x03"
    one += struct.pack(">H", len(word)) + word
    one = struct.pack(">H", len(one)) + one
    made = made.add_extension(x509.UnrecognizedExtension(SCT, der(struct.pack(">H", len(one)) + one, 0x04)), critical=False)
    return made.sign(ca_key, hashes.SHA256())


def canonical(value):
    return json.dumps(value, sort_keys=True, separators=(",", ":")).encode()


def entry(rekor, certificate, signature):
    what = b"another file" if FLAW == "entry" else ARTIFACT
    pem = certificate.public_bytes(serialization.Encoding.PEM)
    body = canonical({"apiVersion": "0.0.1", "kind": "hashedrekord", "spec": {
        "data": {"hash": {"algorithm": "sha256", "value": hashlib.sha256(what).hexdigest()}},
        "signature": {"content": b64(signature), "publicKey": {"content": b64(pem)}}}})
    at, index = int(NOW.replace(tzinfo=datetime.timezone.utc).timestamp()), 7
    log_id = hashlib.sha256(spki(rekor)).digest()
    said = canonical({"body": b64(body), "integratedTime": at, "logID": log_id.hex(), "logIndex": index})
    promise = sign(rekor, b"something else" if FLAW == "promise" else said)
    other, own = hashlib.sha256(b"\0other").digest(), hashlib.sha256(b"\0" + body).digest()
    root = hashlib.sha256(b"\1" + other + own).digest()
    note = f"rekor.test - 1\n2\n{b64(root)}\n"
    word = sign(rekor, b"something else" if FLAW == "checkpoint" else note.encode())
    checkpoint = f"{note}\n\u2014 rekor.test {b64(log_id[:4] + word)}\n"
    proof = {"logIndex": "1", "rootHash": b64(root), "treeSize": "2", "checkpoint": {"envelope": checkpoint},
             "hashes": [b64(own if FLAW == "proof" else other)]}
    return {"logIndex": str(index), "logId": {"keyId": b64(log_id)}, "integratedTime": str(at),
            "kindVersion": {"kind": "hashedrekord", "version": "0.0.1"}, "canonicalizedBody": b64(body),
            "inclusionPromise": {"signedEntryTimestamp": b64(promise)}, "inclusionProof": proof}


def log(key):
    start = (NOW - datetime.timedelta(days=1)).strftime("%Y-%m-%dT%H:%M:%SZ")
    public = {"rawBytes": b64(spki(key)), "keyDetails": "PKIX_ECDSA_P256_SHA_256", "validFor": {"start": start}}
    return {"baseUrl": "https://log.test", "hashAlgorithm": "SHA2_256", "publicKey": public,
            "logId": {"keyId": b64(hashlib.sha256(spki(key)).digest())}}


ca_key, ct, rekor, key = new_key(), new_key(), new_key(), new_key()
ca = authority(ca_key)
certificate = leaf(ca, ca_key, ct, key)
signature = sign(key, b"other bytes" if FLAW == "signature" else ARTIFACT)
bundle = {
    "mediaType": "application/vnd.dev.sigstore.bundle.v0.3+json",
    "verificationMaterial": {
        "certificate": {"rawBytes": b64(certificate.public_bytes(serialization.Encoding.DER))},
        "tlogEntries": [entry(rekor, certificate, signature)],
    },
    "messageSignature": {"messageDigest": {"algorithm": "SHA2_256", "digest": b64(hashlib.sha256(ARTIFACT).digest())},
                         "signature": b64(signature)},
}
believed = authority(new_key()) if FLAW == "root" else ca
start = (NOW - datetime.timedelta(days=1)).strftime("%Y-%m-%dT%H:%M:%SZ")
trusted = {
    "mediaType": "application/vnd.dev.sigstore.trustedroot+json;version=0.1",
    "tlogs": [log(rekor)],
    "certificateAuthorities": [{
        "subject": {"organization": "test", "commonName": "fulcio"}, "uri": "https://fulcio.test",
        "certChain": {"certificates": [{"rawBytes": b64(believed.public_bytes(serialization.Encoding.DER))}]},
        "validFor": {"start": start}}],
    "ctlogs": [log(ct)],
    "timestampAuthorities": [],
}
json.dump(bundle, open(f"{FOLDER}/bundle.json", "w"))
json.dump(trusted, open(f"{FOLDER}/trusted_root.json", "w"))
