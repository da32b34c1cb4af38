"""What others' libraries say of a bundle or an envelope.

    peer.py bundle TRUSTED_ROOT BUNDLE FILE IDENTITY ISSUER     sigstore, offline
    peer.py statement TRUSTED_ROOT BUNDLE DIGEST IDENTITY ISSUER    the same of a statement about a digest
    peer.py envelope ENVELOPE PUBLIC_KEY                        securesystemslib

Prints `agreed`, or exits with what is wrong.
"""

import json
import sys


def bundle(root, bundle, file, identity, issuer):
    from sigstore.models import Bundle, TrustedRoot
    from sigstore.verify import Verifier
    from sigstore.verify.policy import Identity

    verifier = Verifier(trusted_root=TrustedRoot.from_file(root))
    found = Bundle.from_json(open(bundle, "rb").read())
    verifier.verify_artifact(open(file, "rb").read(), found, Identity(identity=identity, issuer=issuer))


def statement(root, bundle, digest, identity, issuer):
    from sigstore.models import Bundle, TrustedRoot
    from sigstore.verify import Verifier
    from sigstore.verify.policy import Identity

    verifier = Verifier(trusted_root=TrustedRoot.from_file(root))
    found = Bundle.from_json(open(bundle, "rb").read())
    kind, payload = verifier.verify_dsse(found, Identity(identity=identity, issuer=issuer))
    assert kind == "application/vnd.in-toto+json", kind
    assert json.loads(payload)["subject"][0]["digest"]["sha256"] == digest


def envelope(envelope, key):
    from cryptography.hazmat.primitives.serialization import load_pem_public_key
    from securesystemslib.dsse import Envelope
    from securesystemslib.signer import SSlibKey

    read = Envelope.from_dict(json.load(open(envelope)))
    (keyid,) = read.signatures
    key = SSlibKey.from_crypto(load_pem_public_key(open(key, "rb").read()), keyid=keyid)
    read.verify([key], 1)


{"bundle": bundle, "statement": statement, "envelope": envelope}[sys.argv[1]](*sys.argv[2:])
print("agreed")
