#!/usr/bin/env python3
"""verify.py ATTESTATION REGISTRY [--at TIME]: does the signature hold, by a key that counts, and has the verdict not ended?

Python's own library and `openssl`, nothing else. As a module: `verify(attestation, registry, at=None)` takes the two documents as bytes,
and returns the attestation or raises `Refused`, whose `code` is one of the protocol's. The short way through spec/attestation.md: strict
JSON, form, id, key and its state, signature, end. Left out: trust, nonces, the registry's form and history."""
import base64, hashlib, ipaddress, json, math, re, subprocess, sys, tempfile
from datetime import datetime, timezone
from decimal import Decimal

P, EIGHT = 2**255 - 19, 0x05fc536d880238b13933c6d305acdfd5f098eff289f4c345b027b2c28f95e826
LABEL, TIME = r"(?!-)[\w-]{1,63}(?<!-)", r"\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d(\.\d+)?([Zz]|[+-]\d\d:\d\d)"
URI = rf"https?://({LABEL}(?:\.{LABEL})*|\[([0-9A-Fa-f.:]*:[0-9A-Fa-f.:]*)\])(?::([1-9]\d{{0,4}}))?/\.well-known/attestations/"
FORMS = {"timestamp": TIME, "expires_at": TIME, "key_id": "[!-~]{1,256}", "version": r"recourse\.attestation\.v1", "nonce": "[0-9a-f]{32}",
         "chain_id": "(?s:.+)", "parent_attestation": "sha256:[0-9a-f]{64}"}


class Refused(Exception):
    """Why an attestation is not valid: `code` is one of the protocol's failure codes."""

    def __init__(self, code):
        super().__init__(code)
        self.code = code


def must(condition, code="invalid_attestation"):
    if not condition:
        raise Refused(code)


def number(x):  # ECMAScript's form; repr has the same digits
    sign, digits, exponent = Decimal(repr(float(x))).normalize().as_tuple()
    minus, digits, point = "-" if sign and x else "", "".join(map(str, digits)), len(digits) + exponent
    if len(digits) <= point <= 21: return minus + digits.ljust(point, "0")
    if 0 < point <= 21: return f"{minus}{digits[:point]}.{digits[point:]}"
    if -6 < point <= 0: return f"{minus}0.{'0' * -point}{digits}"
    return f"{minus}{digits[0]}{'.' + digits[1:] if digits[1:] else ''}e{point - 1:+d}"


def jcs(v, level=1):
    must(level <= 256 or not isinstance(v, (list, dict)))
    if isinstance(v, list): return "[" + ",".join(jcs(item, level + 1) for item in v) + "]"
    if isinstance(v, dict): return "{" + ",".join(f"{jcs(k)}:{jcs(v[k], level + 1)}" for k in sorted(v, key=lambda k: k.encode("utf-16-be"))) + "}"
    return number(v) if isinstance(v, (int, float)) and not isinstance(v, bool) else json.dumps(v, ensure_ascii=False)


def load(data):
    def pairs(members): must(len(dict(members)) == len(members)); return dict(members)
    def integer(text): must(abs(int(text)) < 2**53 or number(int(text)) == text); return int(text)
    def real(text): must(math.isfinite(float(text))); return float(text)
    hooks = {"object_pairs_hook": pairs, "parse_int": integer, "parse_float": real, "parse_constant": lambda _: must(False)}
    return json.loads(data.decode(), **hooks)


def raw(text, length):
    data = base64.urlsafe_b64decode(text + "==") if re.fullmatch(r"[\w-]+", text, re.A) else b""
    must(len(data) == length and base64.urlsafe_b64encode(data).decode().rstrip("=") == text)
    return data


def weak(point):  # small order, or not in its canonical form
    y = int.from_bytes(point, "little") & (2**255 - 1)
    return y >= P or y in (0, 1, P - 1, EIGHT, P - EIGHT)


def moment(text):  # to the millisecond, as times are compared
    text = re.sub(r"(\.\d{3})\d+", r"\1", text.upper().replace("Z", "+00:00"))
    text = re.sub(r"\.(\d{1,3})(?=[+-])", lambda found: "." + found[1].ljust(6, "0"), text)
    text = re.sub(r":60(?=[.+-])", ":59", text)  # a leap second
    # Python knows no year 0; that year's days are those of 2000, and all of them are long ago.
    first = text.startswith("0000")
    parsed = datetime.fromisoformat("2000" + text[4:] if first else text)
    if first:
        must(parsed.astimezone(timezone.utc).year >= 2000)
        return datetime.min.replace(tzinfo=timezone.utc)
    try: return parsed.astimezone(timezone.utc)
    except OverflowError:
        must(parsed.year < 9999)
        return datetime.min.replace(tzinfo=timezone.utc)


def formed(attestation, registry):
    """The attestation, its signature, what was signed, and the key's public half."""
    a = load(attestation)
    for member in FORMS.keys() & a.keys(): must(re.fullmatch(FORMS[member], a[member], re.A))
    for member in {"timestamp", "expires_at"} & a.keys(): moment(a[member])
    must(isinstance(a["input"], dict) and isinstance(a["output"], dict) and (isinstance(a["evaluator"], dict) or a["evaluator"].encode()))
    name = hashlib.sha256(jcs({name: a[name] for name in ("input", "output", "evaluator", "timestamp", "key_id")}).encode()).hexdigest()[:32]
    host, address, port = re.fullmatch(URI + name + r"\.json", a["attestation_uri"], re.A).groups()
    must(len(host) <= 253 and int(port or 1) <= 65535)
    if address or re.search(r"(^|\.)(\d+|0[xX][0-9A-Fa-f]*)$", host, re.A): ipaddress.ip_address(address or host)
    unsigned = {member: value for member, value in a.items() if member != "signature"}
    signature, payload = raw(a["signature"], 64), jcs(unsigned).encode()
    key = next((k for k in load(registry)["keys"] if k["key_id"] == a["key_id"]), None)
    must(key, "key_not_found")
    must(key["state"] in ("active", "deprecated", "retired"), "key_" + key["state"])
    return a, signature, payload, raw(key["public_key"], 32)


def signed(signature, payload, public):
    with tempfile.TemporaryDirectory() as folder:
        for file, data in {"key": bytes.fromhex("302a300506032b6570032100") + public, "signature": signature, "payload": payload}.items():
            with open(f"{folder}/{file}", "wb") as out: out.write(data)
        command = "openssl pkeyutl -verify -pubin -keyform DER -inkey key -rawin -in payload -sigfile signature"
        good = subprocess.run(command.split(), cwd=folder, capture_output=True).returncode == 0
    return good and not weak(public) and not weak(signature[:32])


def verify(attestation, registry, at=None):
    """Checks an attestation against a registry, both as bytes, at a moment (now when left out). Returns it, or raises `Refused`."""
    try:
        a, signature, payload, public = formed(attestation, registry)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise Refused("invalid_attestation") from None
    must(signed(signature, payload, public), "signature_invalid")
    must("expires_at" not in a or (at or datetime.now(timezone.utc)) < moment(a["expires_at"]), "expired")
    return a


def main(arguments):
    at = None
    if len(arguments) == 4 and arguments[2] == "--at": at, arguments = moment(arguments[3]), arguments[:2]
    if len(arguments) != 2: sys.exit(__doc__.split("\n")[0])
    documents = []
    for path in arguments:
        with open(path, "rb") as file: documents.append(file.read())
    try:
        verify(*documents, at)
    except Refused as refused:
        sys.exit(refused.code)
    print("valid")


if __name__ == "__main__":
    main(sys.argv[1:])
