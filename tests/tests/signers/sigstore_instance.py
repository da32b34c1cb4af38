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
import sys

from cryptography.hazmat.primitives import serialization

from sigstore_parts import NOW, authority, b64, canonical, leaf, log, new_key, sign, spki

FOLDER, FILE, IDENTITY, ISSUER = sys.argv[1:5]
FLAW = sys.argv[5] if len(sys.argv) > 5 else ""
ARTIFACT = open(FILE, "rb").read()


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


ca_key, ct, rekor, key = new_key(), new_key(), new_key(), new_key()
ca = authority(ca_key)
ends = datetime.timedelta(minutes=-3 if FLAW == "late" else 5)
certificate = leaf(ca, ca_key, ct, key.public_key(), IDENTITY, ISSUER, ends, b"something else" if FLAW == "sct" else None)
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
