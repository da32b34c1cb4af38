#!/usr/bin/env python3
"""verify.py ATTESTATION REGISTRY: does the signature hold, by a key that counts? Python's own library and `openssl`, nothing else.
The short way through spec/attestation.md: strict JSON, form, id, key and its state, signature. Left out: what a time means, trust, the registry's form."""
import base64, hashlib, ipaddress, json, math, re, subprocess, sys, tempfile
from decimal import Decimal

P, EIGHT = 2**255 - 19, 0x05fc536d880238b13933c6d305acdfd5f098eff289f4c345b027b2c28f95e826
LABEL, TIME = r"(?!-)[\w-]{1,63}(?<!-)", r"\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d(\.\d+)?([Zz]|[+-]\d\d:\d\d)"
URI = rf"https?://({LABEL}(?:\.{LABEL})*|\[([0-9A-Fa-f.:]*:[0-9A-Fa-f.:]*)\])(?::([1-9]\d{{0,4}}))?/\.well-known/attestations/"
FORMS = {"timestamp": TIME, "expires_at": TIME, "key_id": "[!-~]{1,256}", "version": r"recourse\.attestation\.v1", "nonce": "[0-9a-f]{32}",
         "chain_id": "(?s:.+)", "parent_attestation": "sha256:[0-9a-f]{64}"}
def must(condition, code="invalid_attestation"): condition or sys.exit(code)

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

def load(path):
    def pairs(members): must(len(dict(members)) == len(members)); return dict(members)
    def integer(text): must(abs(int(text)) < 2**53 or number(int(text)) == text); return int(text)
    def real(text): must(math.isfinite(float(text))); return float(text)
    hooks = {"object_pairs_hook": pairs, "parse_int": integer, "parse_float": real, "parse_constant": lambda _: must(False)}
    return json.loads(open(path, "rb").read().decode(), **hooks)
def raw(text, length):
    data = base64.urlsafe_b64decode(text + "==") if re.fullmatch(r"[\w-]+", text, re.A) else b""
    must(len(data) == length and base64.urlsafe_b64encode(data).decode().rstrip("=") == text)
    return data
def weak(point):  # small order, or not in its canonical form
    y = int.from_bytes(point, "little") & (2**255 - 1)
    return y >= P or y in (0, 1, P - 1, EIGHT, P - EIGHT)

try:
    a = load(sys.argv[1])
    for member in FORMS.keys() & a.keys(): must(re.fullmatch(FORMS[member], a[member], re.A))
    must(isinstance(a["input"], dict) and isinstance(a["output"], dict) and (isinstance(a["evaluator"], dict) or a["evaluator"].encode()))
    name = hashlib.sha256(jcs({name: a[name] for name in ("input", "output", "evaluator", "timestamp", "key_id")}).encode()).hexdigest()[:32]
    host, address, port = re.fullmatch(URI + name + r"\.json", a["attestation_uri"], re.A).groups()
    must(len(host) <= 253 and int(port or 1) <= 65535)
    if address or re.search(r"(^|\.)(\d+|0[xX][0-9A-Fa-f]*)$", host, re.A): ipaddress.ip_address(address or host)
    signature, payload = raw(a.pop("signature"), 64), jcs(a).encode()
    key = next((k for k in load(sys.argv[2])["keys"] if k["key_id"] == a["key_id"]), None)
    must(key, "key_not_found")
    must(key["state"] in ("active", "deprecated", "retired"), "key_" + key["state"])
    public = raw(key["public_key"], 32)
except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
    sys.exit("invalid_attestation")
with tempfile.TemporaryDirectory() as folder:
    for file, data in {"key": bytes.fromhex("302a300506032b6570032100") + public, "signature": signature, "payload": payload}.items(): open(f"{folder}/{file}", "wb").write(data)
    good = subprocess.run("openssl pkeyutl -verify -pubin -keyform DER -inkey key -rawin -in payload -sigfile signature".split(), cwd=folder, capture_output=True).returncode == 0
must(good and not weak(public) and not weak(signature[:32]), "signature_invalid")
print("valid")
