"""A Sigstore instance of a test's own that is asked over HTTP: Fulcio, Rekor of both versions, and a timestamp authority.

    sigstore_services.py FOLDER ISSUER

Writes trusted_root.json, signing_config.json (with Rekor 2) and tokens (TOKENS below, one file each) into FOLDER, prints its port, and ends
with its standard input. What is asked below `/FLAW/` is answered with that flaw (FLAWS below).
"""

import base64
import datetime
import hashlib
import http.server
import json
import os
import subprocess
import sys
import threading
import time

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import Prehashed, decode_dss_signature, encode_dss_signature

from sigstore_parts import NOW, authority, b64, canonical, leaf, log, new_key, sign, spki

FOLDER, ISSUER = sys.argv[1:3]
IDENTITY, OTHER = "release@example.org", "someone@example.org"
FLAWS = ["refuse", "large", "moved", "words", "other-key", "detached", "other-entry", "unproven", "undated", "other-stamp", "echo",
         "expired", "control"]
ALGORITHM = ec.ECDSA(hashes.SHA256())
issuers = {ISSUER: new_key(), "https://other.example.org": new_key()}
ca_key, ct_key, rekor_key, rekor2_key = new_key(), new_key(), new_key(), new_key()
ca = authority(ca_key)
lock = threading.Lock()


class Refused(Exception):
    pass


def part(data):
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def unpart(text):
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


def token(name, claims, key=None):
    told = {"iss": ISSUER, "aud": "sigstore", "sub": "subject-1", "exp": int(time.time()) + 3600, **claims}
    text = part(b'{"alg":"ES256","typ":"JWT"}') + "." + part(canonical(told))
    r, s = decode_dss_signature(sign(key or issuers[told["iss"]], text.encode()))
    open(f"{FOLDER}/{name}", "w").write(f"{text}.{part(r.to_bytes(32, 'big') + s.to_bytes(32, 'big'))}\n")


def holder(text):
    """Whom a token names, once its issuer's signature holds."""
    head, body, signature = text.split(".")
    claims, signature = json.loads(unpart(body)), unpart(signature)
    der = encode_dss_signature(int.from_bytes(signature[:32], "big"), int.from_bytes(signature[32:], "big"))
    try:
        issuers[claims["iss"]].public_key().verify(der, f"{head}.{body}".encode(), ALGORITHM)
    except (KeyError, InvalidSignature):
        raise Refused("the token's signature does not hold")
    if claims["aud"] != "sigstore" or claims["exp"] <= time.time():
        raise Refused("the token is not for this, or over")
    return claims.get("email", claims["sub"]), claims["iss"]


def certify(asked, flaw):
    text = asked["credentials"]["oidcIdentityToken"]
    if flaw == "refuse":
        raise Refused(f"there was an error processing the identity token {text}")
    if flaw == "echo":
        return {"signedCertificateEmbeddedSct": text}
    identity, issuer = holder(text)
    request = asked["publicKeyRequest"]
    key = serialization.load_pem_public_key(request["publicKey"]["content"].encode())
    if request["publicKey"]["algorithm"] != "ECDSA" or not isinstance(key.curve, ec.SECP256R1):
        raise Refused("the key is none of P-256")
    try:
        key.verify(base64.b64decode(request["proofOfPossession"]), identity.encode(), ALGORITHM)
    except InvalidSignature:
        raise Refused("whoever asks does not have the key")
    if flaw == "other-key":
        key = new_key().public_key()
    identity = identity if "@" in identity else f"https://example.org/{identity}"
    if flaw == "control":
        identity, issuer = "https://example.org/\x1b]0;x\x07", issuer + "\u202e"
    ends = datetime.timedelta(minutes=-1) if flaw == "expired" else datetime.timedelta(hours=1)
    made = leaf(ca, ca_key, ct_key, key, identity, issuer, ends)
    pem = [one.public_bytes(serialization.Encoding.PEM).decode() for one in (made, ca)]
    kind = "signedCertificateDetachedSct" if flaw == "detached" else "signedCertificateEmbeddedSct"
    return {kind: {"chain": {"certificates": pem}}}


def tree(leaves):
    """The root of a Merkle tree (RFC 6962, section 2.1)."""
    if len(leaves) == 1:
        return hashlib.sha256(b"\0" + leaves[0]).digest()
    cut = 1 << (len(leaves) - 1).bit_length() - 1
    return hashlib.sha256(b"\1" + tree(leaves[:cut]) + tree(leaves[cut:])).digest()


def path(index, leaves):
    if len(leaves) == 1:
        return []
    cut = 1 << (len(leaves) - 1).bit_length() - 1
    if index < cut:
        return path(index, leaves[:cut]) + [tree(leaves[cut:])]
    return path(index - cut, leaves[cut:]) + [tree(leaves[:cut])]


class Log:
    """A Merkle log, with others' entries in it."""

    def __init__(self, origin, key):
        self.origin, self.key, self.leaves = origin, key, [b"one", b"another", b"a third"]
        self.id = hashlib.sha256(spki(key)).digest()

    def put(self, body):
        with lock:
            self.leaves.append(body)
            leaves = list(self.leaves)
        index, root = len(leaves) - 1, tree(leaves)
        note = f"{self.origin}\n{len(leaves)}\n{b64(root)}\n"
        checkpoint = f"{note}\n\u2014 {self.origin} {b64(self.id[:4] + sign(self.key, note.encode()))}\n"
        return index, len(leaves), root, path(index, leaves), checkpoint


rekor, rekor2 = Log("rekor.test", rekor_key), Log("rekor2.test", rekor2_key)


def pae(envelope):
    kind, payload = envelope["payloadType"].encode(), base64.b64decode(envelope["payload"])
    return b"DSSEv1 %d %s %d %s" % (len(kind), kind, len(payload), payload)


def entered(asked, flaw):
    assert (asked["kind"], asked["apiVersion"]) == ("dsse", "0.0.1")
    proposed = asked["spec"]["proposedContent"]
    envelope, (verifier,) = json.loads(proposed["envelope"]), proposed["verifiers"]
    certificate = x509.load_pem_x509_certificate(base64.b64decode(verifier))
    # The log writes a certificate in one way, whichever it was sent in.
    verifier = b64(certificate.public_bytes(serialization.Encoding.PEM))
    (signature,) = envelope["signatures"]
    if signature.get("keyid"):
        raise Refused("no verifier has this key's id")
    try:
        certificate.public_key().verify(base64.b64decode(signature["sig"]), pae(envelope), ALGORITHM)
    except InvalidSignature:
        raise Refused("the envelope's signature does not hold")
    digest = lambda data: {"algorithm": "sha256", "value": hashlib.sha256(data).hexdigest()}
    logged = b64(sign(new_key(), b"")) if flaw == "other-entry" else signature["sig"]
    body = canonical({"apiVersion": "0.0.1", "kind": "dsse", "spec": {
        "envelopeHash": digest(proposed["envelope"].encode()), "payloadHash": digest(base64.b64decode(envelope["payload"])),
        "signatures": [{"signature": logged, "verifier": verifier}]}})
    index, size, root, hashed, checkpoint = rekor.put(body)
    told = {"body": b64(body), "integratedTime": int(time.time()), "logID": rekor.id.hex(), "logIndex": index + 1000}
    promise = b64(sign(rekor_key, canonical(told)))
    proof = {"checkpoint": checkpoint, "hashes": [one.hex() for one in hashed], "logIndex": index, "rootHash": root.hex(),
             "treeSize": size}
    proven = {"inclusionProof": proof, "signedEntryTimestamp": promise}
    if flaw in ("unproven", "undated"):
        del proven["inclusionProof" if flaw == "unproven" else "signedEntryTimestamp"]
    return {hashlib.sha256(b"\0" + body).hexdigest(): {**told, "verification": proven}}


def entered2(asked, _flaw):
    request = asked["hashedRekordRequestV002"]
    verifier = request["signature"]["verifier"]
    certificate = x509.load_der_x509_certificate(base64.b64decode(verifier["x509Certificate"]["rawBytes"]))
    algorithm = ec.ECDSA(Prehashed(hashes.SHA256()))
    content = base64.b64decode(request["signature"]["content"])
    certificate.public_key().verify(content, base64.b64decode(request["digest"]), algorithm)
    body = canonical({"apiVersion": "0.0.2", "kind": "hashedrekord", "spec": {"hashedRekordV002": {
        "data": {"algorithm": "SHA2_256", "digest": request["digest"]}, "signature": request["signature"]}}})
    index, size, root, hashed, checkpoint = rekor2.put(body)
    return {"logIndex": str(index), "logId": {"keyId": b64(rekor2.id)},
            "kindVersion": {"kind": "hashedrekord", "version": "0.0.2"}, "canonicalizedBody": b64(body),
            "inclusionProof": {"logIndex": str(index), "rootHash": b64(root), "treeSize": str(size),
                               "hashes": [b64(one) for one in hashed], "checkpoint": {"envelope": checkpoint}}}


def openssl(*words):
    ran = subprocess.run(["openssl", *words], cwd=FOLDER, capture_output=True)
    assert ran.returncode == 0, ran.stderr.decode()
    return ran.stdout


def stamp_authority():
    """A certificate for timestamps, as `openssl ts` wants it."""
    open(f"{FOLDER}/tsa.cnf", "w").write(
        "[req]\ndistinguished_name=dn\nprompt=no\nx509_extensions=ext\n[dn]\nO=test\nCN=tsa\n[ext]\nkeyUsage=critical,digitalSignature\n"
        "extendedKeyUsage=critical,timeStamping\nbasicConstraints=critical,CA:FALSE\nsubjectKeyIdentifier=hash\n"
        "[root]\nkeyUsage=critical,keyCertSign\nbasicConstraints=critical,CA:TRUE\nsubjectKeyIdentifier=hash\n"
        "[tsa]\ndefault_tsa=one\n[one]\nserial=serial\nsigner_digest=sha256\ndefault_policy=1.2.3.4\ndigests=sha256\n"
        "accuracy=secs:1\nordering=no\ntsa_name=no\ness_cert_id_chain=no\n")
    open(f"{FOLDER}/serial", "w").write("01\n")
    new = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2", "-config", "tsa.cnf"]
    openssl("req", "-x509", *new, "-keyout", "tsa-root.key", "-out", "tsa-root.pem", "-extensions", "root", "-subj", "/O=test/CN=tsa-root")
    openssl("req", "-new", *new, "-keyout", "tsa.key", "-out", "tsa.csr")
    openssl("x509", "-req", "-in", "tsa.csr", "-CA", "tsa-root.pem", "-CAkey", "tsa-root.key", "-set_serial", "2", "-days", "2",
            "-extfile", "tsa.cnf", "-extensions", "ext", "-out", "tsa.pem")
    names = ["tsa.pem", "tsa-root.pem"]
    return [x509.load_pem_x509_certificate(open(f"{FOLDER}/{name}", "rb").read()) for name in names]


def stamped(query, flaw):
    with lock:
        if flaw == "other-stamp":
            openssl("ts", "-query", "-digest", "00" * 32, "-sha256", "-cert", "-out", "query.tsq")
        else:
            open(f"{FOLDER}/query.tsq", "wb").write(query)
        openssl("ts", "-reply", "-config", "tsa.cnf", "-section", "one", "-queryfile", "query.tsq", "-inkey", "tsa.key", "-signer",
                "tsa.pem", "-out", "reply.tsr")
        return open(f"{FOLDER}/reply.tsr", "rb").read()


ROUTES = {"/api/v2/signingCert": certify, "/api/v1/log/entries": entered, "/api/v2/log/entries": entered2}


class Door(http.server.BaseHTTPRequestHandler):
    def answer(self, status, body, kind="application/json", **headers):
        self.send_response(status)
        for name, value in {"Content-Type": kind, "Content-Length": str(len(body)), **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def do_POST(self):
        asked = self.rfile.read(int(self.headers["Content-Length"]))
        first, _, rest = self.path[1:].partition("/")
        flaw, route = (first, f"/{rest}") if first in FLAWS else ("", self.path)
        if flaw == "large":
            return self.answer(201, b" " * (2 << 20))
        if flaw == "moved":
            return self.answer(307, b"", Location=route)
        if flaw == "words":
            return self.answer(201, b"certainly")
        try:
            if route == "/api/v1/timestamp":
                return self.answer(201, stamped(asked, flaw), "application/timestamp-reply")
            if route not in ROUTES:
                return self.answer(404, b"{}")
            self.answer(201, canonical(ROUTES[route](json.loads(asked), flaw)))
        except Refused as why:
            self.answer(400, canonical({"code": 3, "message": str(why), "details": []}))

    def log_message(self, *_words):
        pass


stamps = stamp_authority()
start = (NOW - datetime.timedelta(days=1)).strftime("%Y-%m-%dT%H:%M:%SZ")
chain = lambda made: {"certificates": [{"rawBytes": b64(one.public_bytes(serialization.Encoding.DER))} for one in made]}
subject = lambda name: {"organization": "test", "commonName": name}
trusted = {
    "mediaType": "application/vnd.dev.sigstore.trustedroot+json;version=0.1",
    "tlogs": [log(rekor_key), log(rekor2_key)],
    "certificateAuthorities": [{"subject": subject("fulcio"), "uri": "https://fulcio.test", "certChain": chain([ca]),
                                "validFor": {"start": start}}],
    "ctlogs": [log(ct_key)],
    "timestampAuthorities": [{"subject": subject("tsa"), "uri": "https://tsa.test", "certChain": chain(stamps),
                              "validFor": {"start": start}}],
}
json.dump(trusted, open(f"{FOLDER}/trusted_root.json", "w"))
TOKENS = {
    "token": {"email": IDENTITY, "email_verified": True},
    "token-other": {"email": OTHER, "email_verified": True},
    "token-other-issuer": {"iss": "https://other.example.org", "email": IDENTITY, "email_verified": True},
    "token-subject": {"sub": "workflow"},
    "token-unverified": {"email": IDENTITY, "email_verified": False},
    "token-expired": {"email": IDENTITY, "email_verified": True, "exp": int(time.time()) - 1},
    "token-audience": {"email": IDENTITY, "email_verified": True, "aud": "somewhere"},
}
for name, claims in TOKENS.items():
    token(name, claims)
token("token-forged", TOKENS["token"], new_key())
server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Door)
at = f"http://127.0.0.1:{server.server_port}"
service = lambda path, version: [{"url": at + path, "majorApiVersion": version, "operator": "test", "validFor": {"start": start}}]
config = {
    "mediaType": "application/vnd.dev.sigstore.signingconfig.v0.2+json",
    "caUrls": service("", 1), "oidcUrls": [], "rekorTlogUrls": service("", 2), "tsaUrls": service("/api/v1/timestamp", 1),
    "rekorTlogConfig": {"selector": "ANY"}, "tsaConfig": {"selector": "ANY"},
}
json.dump(config, open(f"{FOLDER}/signing_config.json", "w"))
threading.Thread(target=server.serve_forever, daemon=True).start()
print(server.server_port, flush=True)
sys.stdin.read()
os._exit(0)
