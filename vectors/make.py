#!/usr/bin/env python3
"""Makes vectors/canonical, vectors/attestation and vectors/registry.

It shares nothing with the Rust code: its own RFC 8785 writer, and Ed25519 by OpenSSL through the `cryptography` package. The keys are
those of RFC 8032, section 7.1. Running it again writes the same bytes.
"""

import base64
import hashlib
import json
import struct
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

HERE = Path(__file__).parent
NOW = "2026-06-01T12:00:00Z"
HOST = "https://writ.example"
FOLDER = "/.well-known/attestations/"
GROUP_ORDER = 2**252 + 27742317777372353535851937790883648493
FIELD_PRIME = 2**255 - 19
IDENTITY = b"\x01" + bytes(31)
BASE_POINT = b"\x58" + b"\x66" * 31
# Small order without being y = 0 or ±1: the first of the points of order 8.
ORDER_EIGHT = bytes.fromhex("26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05")


# RFC 8785 ---------------------------------------------------------------------------------------------------------------------------


def number(value):
    """A double as ECMAScript writes it. Python's repr finds the same shortest digits."""
    value = float(value)
    if value == 0:
        return "0"
    sign = "-" if value < 0 else ""
    mantissa, _, exponent = f"{abs(value)!r}e0".partition("e")
    exponent = int(exponent.removesuffix("e0") or 0)
    whole, _, fraction = mantissa.partition(".")
    digits = (whole + fraction).lstrip("0")
    point = len(whole) + exponent - (len(whole + fraction) - len(digits))
    digits = digits.rstrip("0")
    if len(digits) <= point <= 21:
        return sign + digits + "0" * (point - len(digits))
    if 0 < point <= 21:
        return f"{sign}{digits[:point]}.{digits[point:]}"
    if -6 < point <= 0:
        return f"{sign}0.{'0' * -point}{digits}"
    power = point - 1
    tail = f".{digits[1:]}" if len(digits) > 1 else ""
    return f"{sign}{digits[0]}{tail}e{'+' if power > 0 else '-'}{abs(power)}"


def string(text):
    short = {8: "\\b", 9: "\\t", 10: "\\n", 12: "\\f", 13: "\\r", 34: '\\"', 92: "\\\\"}
    return '"' + "".join(short.get(ord(c), f"\\u{ord(c):04x}" if ord(c) < 32 else c) for c in text) + '"'


def jcs(value):
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (int, float)):
        return number(value)
    if isinstance(value, str):
        return string(value)
    if isinstance(value, list):
        return "[" + ",".join(map(jcs, value)) + "]"
    names = sorted(value, key=lambda name: name.encode("utf-16-be"))
    return "{" + ",".join(f"{string(name)}:{jcs(value[name])}" for name in names) + "}"


# Files ------------------------------------------------------------------------------------------------------------------------------


def put(folder, name, case):
    for key, value in list(case.items()):
        if isinstance(value, bytes):
            case[f"{key}_base64"] = base64.b64encode(case.pop(key)).decode()
    path = HERE / folder / f"{name}.json"
    assert not path.exists(), path
    path.write_text(json.dumps({"name": name, **case}, indent=2) + "\n")


def clear(folder):
    (HERE / folder).mkdir(exist_ok=True)
    for path in (HERE / folder).glob("*.json"):
        path.unlink()


# canonical --------------------------------------------------------------------------------------------------------------------------

# RFC 8785, appendix B: the double's bits and the text it has.
NUMBERS = {
    "0000000000000000": "0",
    "8000000000000000": "0",
    "0000000000000001": "5e-324",
    "8000000000000001": "-5e-324",
    "7fefffffffffffff": "1.7976931348623157e+308",
    "ffefffffffffffff": "-1.7976931348623157e+308",
    "4340000000000000": "9007199254740992",
    "c340000000000000": "-9007199254740992",
    "4430000000000000": "295147905179352830000",
    "44b52d02c7e14af5": "9.999999999999997e+22",
    "44b52d02c7e14af6": "1e+23",
    "44b52d02c7e14af7": "1.0000000000000001e+23",
    "444b1ae4d6e2ef4e": "999999999999999700000",
    "444b1ae4d6e2ef4f": "999999999999999900000",
    "444b1ae4d6e2ef50": "1e+21",
    "3eb0c6f7a0b5ed8c": "9.999999999999997e-7",
    "3eb0c6f7a0b5ed8d": "0.000001",
    "41b3de4355555553": "333333333.3333332",
    "41b3de4355555554": "333333333.33333325",
    "41b3de4355555555": "333333333.3333333",
    "41b3de4355555556": "333333333.3333334",
    "41b3de4355555557": "333333333.33333343",
    "becbf647612f3696": "-0.0000033333333333333333",
    "43143ff3c1cb0959": "1424953923781206.2",
}


def canonical():
    clear("canonical")

    def accept(name, why, text, expected):
        digest = hashlib.sha256(expected.encode()).hexdigest()
        case = {"why": why, "input": text, "expect": "canonical", "canonical": expected, "sha256": digest}
        put("canonical", f"accept-{name}", case)

    def reject(name, why, text):
        put("canonical", f"reject-{name}", {"why": why, "input": text, "expect": "invalid"})

    accept(
        "rfc8785-sample",
        "RFC 8785, section 3.2.2",
        '{\n  "numbers": [333333333.33333329, 1E30, 4.50,\n              2e-3, 0.000000000000000000000000001],\n'
        '  "string": "\\u20ac$\\u000F\\u000aA\'\\u0042\\u0022\\u005c\\\\\\"\\/",\n  "literals": [null, true, false]\n}',
        '{"literals":[null,true,false],"numbers":[333333333.3333333,1e+30,4.5,0.002,1e-27],'
        '"string":"€$\\u000f\\nA\'B\\"\\\\\\\\\\"/"}',
    )
    accept(
        "rfc8785-sorting",
        "RFC 8785, section 3.2.3: members by the UTF-16 code units of their names, an emoji before U+FB33",
        '{"\\u20ac":"Euro Sign","\\r":"Carriage Return","\\ufb33":"Hebrew Letter Dalet With Dagesh","1":"One",'
        '"\\ud83d\\ude00":"Emoji: Grinning Face","\\u0080":"Control","\\u00f6":"Latin Small Letter O With Diaeresis"}',
        '{"\\r":"Carriage Return","1":"One","\u0080":"Control","ö":"Latin Small Letter O With Diaeresis",'
        '"€":"Euro Sign","😀":"Emoji: Grinning Face","\ufb33":"Hebrew Letter Dalet With Dagesh"}',
    )
    for bits, expected in NUMBERS.items():
        value = struct.unpack(">d", bytes.fromhex(bits))[0]
        assert number(value) == expected, (bits, number(value), expected)
        accept(f"number-{bits}", "RFC 8785, appendix B", f"[{value:.16e}]", f"[{expected}]")
    accept("number-forms", "one value, one form", "[1.0,10e-1,1E0,100e-2,-0,-0.0,0e5,1e21,1e-7]", "[1,1,1,1,0,0,0,1e+21,1e-7]")
    accept("number-underflow", "too small for a double is zero", "[1e-400]", "[0]")
    accept("integer-limit", "2^53 - 1", "[9007199254740991,-9007199254740991]", "[9007199254740991,-9007199254740991]")
    accept(
        "integer-canonical",
        "a larger integer is taken in the form that RFC 8785 gives it",
        "[9007199254740992,12345678901234567000,1e+21]",
        "[9007199254740992,12345678901234567000,1e+21]",
    )
    accept("key-order", "numbers as names sort as text", '{"b":1,"10":2,"9":3,"a":{"z":1,"y":2},"":4}', '{"":4,"10":2,"9":3,"a":{"y":2,"z":1},"b":1}')
    accept("key-order-case", "upper case before lower case", '{"a":1,"B":2,"b":3,"A":4}', '{"A":4,"B":2,"a":1,"b":3}')
    accept("key-proto", "no name is special", '{"constructor":1,"__proto__":{"a":2}}', '{"__proto__":{"a":2},"constructor":1}')
    accept("array-order", "arrays keep their order", "[56,{\"d\":true,\"10\":null,\"1\":[]},\"b\",\"a\"]", '[56,{"1":[],"10":null,"d":true},"b","a"]')
    accept(
        "escapes",
        "the short escapes, lower-case hexadecimal, nothing else escaped",
        '"\\u0000\\u0008\\u0009\\u000A\\u000b\\u000C\\u000d\\u001F\\u0022\\u005C\\/\\u007F\\u2028\\u00e9"',
        '"\\u0000\\b\\t\\n\\u000b\\f\\r\\u001f\\"\\\\/\u007f\u2028é"',
    )
    accept("surrogate-pair", "a pair is one character", '"\\uD83D\\uDE00\\ud834\\udd1e"', '"😀𝄞"')
    accept("noncharacter", "U+FFFF is a character like others", '"\\uffff\\uFFFE"', '"\uffff\ufffe"')
    accept("no-nfc", "no normalisation: A and a ring stay two code points", '{"A\\u030a":"A\\u030a","\\u00c5":"\\u212b"}', '{"A\u030a":"A\u030a","Å":"\u212b"}')
    accept("white-space", "the four kinds of white space", " \t\r\n[ 1 , 2\n]\t", "[1,2]")
    accept("scalar", "a document may be any value", '"x"', '"x"')
    accept("empty", "empty containers", '{"a":{},"b":[]}', '{"a":{},"b":[]}')
    accept("escaped-name", "names are compared after escapes", '{"\\u0062":1,"a":2}', '{"a":2,"b":1}')
    accept("utf8", "the input's own UTF-8", '{"ключ":"值"}', '{"ключ":"值"}')
    accept("depth-256", "256 levels", "[" * 256 + "]" * 256, "[" * 256 + "]" * 256)

    reject("depth-257", "257 levels", "[" * 257 + "]" * 257)
    reject("depth-257-objects", "257 levels", '{"a":' * 257 + "1" + "}" * 257)
    reject("duplicate", "a member twice", '{"a":1,"b":2,"a":1}')
    reject("duplicate-escaped", "a member twice, once with an escape", '{"a":1,"\\u0061":2}')
    reject("duplicate-inside", "a member twice, further in", '{"a":[{"b":{"c":1,"c":2}}]}')
    reject("duplicate-proto", "a member twice", '{"__proto__":1,"__proto__":2}')
    reject("surrogate-high", "half a pair", '"\\ud83d"')
    reject("surrogate-low", "half a pair", '"\\ude00"')
    reject("surrogate-order", "a pair the wrong way round", '"\\ude00\\ud83d"')
    reject("surrogate-then-letter", "half a pair and another escape", '"\\ud83d\\u0041"')
    reject("surrogate-name", "half a pair in a name", '{"\\udc00":1}')
    reject("surrogate-utf8", "a surrogate in UTF-8", b'"\xed\xa0\xbd"')
    reject("invalid-utf8", "a stray byte", b'"\xff"')
    reject("overlong-utf8", "an overlong form", b'"\xc0\xaf"')
    reject("truncated-utf8", "half a character", b'"\xe2\x82"')
    reject("bom", "a byte order mark", b"\xef\xbb\xbf{}")
    reject("utf16", "UTF-16", '{"a":1}'.encode("utf-16-le"))
    reject("trailing", "bytes behind the document", "{} {}")
    reject("trailing-nul", "a zero byte behind the document", "{}\0")
    reject("trailing-comma", "", "[1,]")
    reject("trailing-comma-object", "", '{"a":1,}')
    for name in ["NaN", "Infinity", "-Infinity", "nan", "undefined", "True"]:
        reject(f"word-{name}", "no value of JSON", f"[{name}]")
    reject("leading-zero", "", "[01]")
    reject("leading-zero-negative", "", "[-01]")
    reject("plus", "", "[+1]")
    reject("bare-point", "", "[1.]")
    reject("bare-fraction", "", "[.5]")
    reject("bare-exponent", "", "[1e]")
    reject("bare-minus", "", "[-]")
    reject("hexadecimal", "", "[0x1]")
    reject("number-overflow", "beyond a double", "[1e400]")
    reject("integer-rounded", "would canonicalise as 9007199254740992", "[9007199254740993]")
    reject("integer-rounded-negative", "would canonicalise as its neighbour", "[-9007199254740993]")
    reject("integer-long", "the double's exact value, but not its canonical form", "[12345678901234567168]")
    reject("integer-1e21", "RFC 8785 writes 1e+21", "[1000000000000000000000]")
    reject("control", "a control character must be escaped", '"a\nb"')
    reject("escape", "no such escape", '"\\x41"')
    reject("escape-short", "", '"\\u12"')
    reject("escape-sign", "", '"\\u+041"')
    reject("single-quotes", "", "['a']")
    reject("comment", "", "[1] // one")
    reject("unquoted-name", "", "{a:1}")
    reject("number-name", "", "{1:1}")
    reject("open", "", '{"a":[1')
    reject("empty", "", "")
    reject("only-space", "", " \n")
    reject("vertical-tab", "no white space of JSON", "[1,\v2]")
    reject("no-break-space", "no white space of JSON", "[1,\u00a02]")


# attestation ------------------------------------------------------------------------------------------------------------------------


def b64url(data):
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


class Key:
    """A key of RFC 8032, section 7.1."""

    def __init__(self, secret):
        self.secret = bytes.fromhex(secret)
        self.private = Ed25519PrivateKey.from_private_bytes(self.secret)
        self.public = self.private.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw)

    def scalar(self):
        half = bytearray(hashlib.sha512(self.secret).digest()[:32])
        half[0] &= 248
        half[31] = half[31] & 127 | 64
        return int.from_bytes(half, "little")


ONE = Key("9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60")
TWO = Key("4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb")
THREE = Key("c5aa8df43f9f837bedb7442f31dcb7b166d38535076f094b85ce3a2e0b4458f7")
FOUR = Key("f5e5767cf153319517630f226876b86c8160cc583bc013744c6bf255f5cc0ee5")
FIVE = Key("833fe62409237b9d62ec77587520911e9a759cec1d19755b7da901b96dca3d42")

DATES = {
    "pending": {},
    "active": {"valid_from": "2026-01-01T00:00:00Z", "valid_until": None},
    "deprecated": {
        "valid_from": "2026-01-01T00:00:00Z",
        "valid_until": "2026-03-01T00:00:00Z",
        "deprecated_at": "2026-03-01T00:00:00Z",
    },
    "retired": {
        "valid_from": "2025-01-01T00:00:00Z",
        "valid_until": "2025-03-01T00:00:00Z",
        "deprecated_at": "2025-03-01T00:00:00Z",
    },
    "compromised": {"valid_from": "2025-01-01T00:00:00Z"},
}


def entry(state="active", key=ONE, key_id="writ-1", **more):
    public = key if isinstance(key, bytes) else key.public
    return {"key_id": key_id, "algorithm": "Ed25519", "public_key": b64url(public), "state": state, **DATES[state], **more}


def registry(*keys, version=3, **more):
    keys = list(keys or [entry()])
    return {"instance_id": "writ", "keys": keys, "registry_version": version, "updated_at": "2026-05-01T00:00:00Z", **more}


GONE = object()


def attest(key=ONE, uri=None, sign=None, **members):
    """An attestation, signed. A member that is GONE is left out; `uri` makes the URL of the id."""
    document = {
        "input": {"source": "shell", "hash": "sha256:" + hashlib.sha256(b"rm -rf /data").hexdigest()},
        "output": {"riskAssessment": "block", "summary": {"total": 1}, "mutations": [{"tier": 4, "cost": 0.5}]},
        "evaluator": "writ:consequence:0.1.0",
        "timestamp": "2026-05-01T14:30:00.000Z",
        "key_id": "writ-1",
        **members,
    }
    document = {name: value for name, value in document.items() if value is not GONE}
    five = {name: document[name] for name in ["input", "output", "evaluator", "timestamp", "key_id"] if name in document}
    identity = hashlib.sha256(jcs(five).encode()).hexdigest()[:32]
    if "attestation_uri" not in members:
        document["attestation_uri"] = (uri or (lambda i: f"{HOST}{FOLDER}{i}.json"))(identity)
    document = {name: value for name, value in document.items() if value is not GONE}
    payload = jcs(document).encode()
    document["signature"] = (sign or (lambda payload: b64url(key.private.sign(payload))))(payload)
    return document


def raw(document, **how):
    return json.dumps(document, ensure_ascii=False, **(how or {"separators": (",", ":")}))


def attestations():
    clear("attestation")

    def case(name, why, expect, document, keys=None, trusted=None, now=NOW):
        text = document if isinstance(document, (str, bytes)) else raw(document)
        keys = registry() if keys is None else keys
        keys = keys if isinstance(keys, str) else raw(keys)
        kind = "accept" if expect == "valid" else "reject"
        more = {} if trusted is None else {"trusted_instances": trusted}
        put("attestation", f"{kind}-{name}", {"why": why, "attestation": text, "registry": keys, **more, "now": now, "expect": expect})

    def good(name, why, document, **more):
        case(name, why, "valid", document, **more)

    def bad(name, why, document, **more):
        case(name, why, "invalid_attestation", document, **more)

    def forged(name, why, document, **more):
        case(name, why, "signature_invalid", document, **more)

    bare = attest()
    text = raw(bare)

    good("bare", "the seven members and no more", bare)
    for name in bare:
        bad(f"without-{name}", "one of the seven is missing", {key: value for key, value in bare.items() if key != name})
        bad(f"null-{name}", "null is not the member", {**bare, name: None})
    for name in ["input", "output", "evaluator", "timestamp", "key_id"]:
        bad(f"unmade-{name}", "signed like that, and still incomplete", attest(**{name: GONE}))

    # JSON
    good("pretty", "white space and order do not matter", raw(dict(reversed(bare.items())), indent=2))
    good("escaped", "escapes do not matter", text.replace("block", "\\u0062lock").replace("/", "\\/"))
    bad("changed-escape", "another letter behind the escape: the id is another", text.replace("block", "\\u0042lock"))
    good("numbers", "a number's form does not matter", text.replace("0.5", "5E-1").replace('"tier":4', '"tier":4.0'))
    bad("changed-number", "another number: the id is another", text.replace("0.5", "0.6"))
    bad("changed-output", "one byte of the output", text.replace("block", "blocl"))
    bad("changed-input", "one byte of the input", text.replace("shell", "shelm"))
    bad("changed-evaluator", "one byte of the evaluator", text.replace("0.1.0", "0.1.1"))
    bad("changed-timestamp", "one byte of the timestamp", text.replace("14:30", "14:31"))
    forged("changed-host", "another instance; the id does not cover it, the signature does", text.replace("writ.example", "wrjt.example"))
    forged(
        "changed-output-and-id",
        "another output under its own id, with the old signature",
        {**attest(output={"riskAssessment": "allow"}), "signature": bare["signature"]},
    )
    bad("duplicate", "a member twice", text[:-1] + ',"key_id":"writ-1"}')
    bad("duplicate-escaped", "a member twice, once with an escape", text[:-1] + ',"ke\\u0079_id":"writ-1"}')
    bad("duplicate-inside", "a member twice, further in", text.replace('"total":1', '"total":1,"total":1'))
    bad("trailing", "bytes behind the document", text + "x")
    bad("two-documents", "bytes behind the document", text + text)
    good("trailing-line-end", "white space behind the document", text + "\n")
    bad("array", "not an object", f"[{text}]")
    bad("text", "not an object", json.dumps(text))
    bad("empty", "nothing", "")
    bad("bom", "a byte order mark", b"\xef\xbb\xbf" + text.encode())
    bad("invalid-utf8", "a stray byte", text.encode().replace(b"block", b"bl\xffck"))
    bad("lone-surrogate", "half a pair", text.replace("block", "bl\\ud800ck"))
    bad("nan", "no value of JSON", text.replace("0.5", "NaN"))
    bad("leading-zero", "no number of JSON", text.replace("0.5", "00.5"))
    unicode = attest(output={"name": "e\u0301", "😀": 1, "\ufb33": 2, "quote": '"\\/\x7f\u2028', "nul": "\0"})
    good("unicode", "characters of every kind", unicode)
    bad("normalised", "NFC changes the document", raw(unicode).replace("e\u0301", "\u00e9"))
    nested = 1
    for _ in range(254):
        nested = [nested]
    good("depth-256", "the document and its output are the first two of 256 levels", attest(output={"a": nested}))
    bad("depth-257", "257 levels", attest(output={"a": [nested]}))
    good("integer-limit", "2^53 - 1", attest(output={"n": 2**53 - 1}))
    good("integer-canonical", "a larger integer in its canonical form", attest(output={"n": 2**53, "m": 12345678901234567000}))
    bad("integer-rounded", "would canonicalise like its neighbour 9007199254740992", attest(output={"n": 2**53 + 1}))
    bad("integer-long", "the same double in another form", attest(output={"n": 12345678901234567168}))
    good("exponent", "1e21 is 1e+21", raw(attest(output={"n": 1e21})).replace("1e+21", "1e21"))
    bad("integer-1e21", "RFC 8785 writes 1e+21", attest(output={"n": 10**21}))

    # Optional members
    optional = attest(
        version="recourse.attestation.v1",
        nonce="000102030405060708090a0b0c0d0e0f",
        expires_at="2026-06-01T12:15:00Z",
        chain_id="chain",
        parent_attestation="sha256:" + hashlib.sha256(jcs(bare).encode()).hexdigest(),
    )
    good("optional", "all optional members", optional)
    for name in ["version", "nonce", "expires_at", "chain_id", "parent_attestation"]:
        forged(f"optional-removed-{name}", "taken away after signing", {key: value for key, value in optional.items() if key != name})
        bad(f"optional-null-{name}", "null is not absence", attest(**{name: None}))
        bad(f"optional-empty-{name}", "an empty text", attest(**{name: ""}))
        bad(f"optional-number-{name}", "not a text", attest(**{name: 1}))
    for name, value in {
        "text": "x",
        "bare-hexadecimal": "0" * 64,
        "upper-case": "sha256:" + "A" * 64,
        "upper-case-name": "SHA256:" + "0" * 64,
        "short": "sha256:" + "0" * 63,
        "long": "sha256:" + "0" * 65,
        "other-hash": "sha512:" + "0" * 64,
    }.items():
        bad(f"parent-{name}", "not sha256: and 64 lower-case hexadecimal digits", attest(parent_attestation=value))
    good("unknown-member", "a member of no known name is signed like all", attest(note={"b": 1, "a": [None]}))
    forged("unknown-member-added", "added after signing", {**bare, "note": 1})
    forged("unknown-member-changed", "changed after signing", {**attest(note=1), "note": 2})
    good("proto-member", "no name is special", attest(**{"__proto__": {"signature": 1}}))
    forged("proto-member-added", "no name is special", {**bare, "__proto__": {"signature": 1}})
    for name, value in {"other": "recourse.attestation.v2", "case": "Recourse.attestation.v1"}.items():
        bad(f"version-{name}", "another version", attest(version=value))
    for name, value in {
        "upper-case": "000102030405060708090A0B0C0D0E0F",
        "short": "000102030405060708090a0b0c0d0e0",
        "long": "000102030405060708090a0b0c0d0e0f0",
        "letter": "g00102030405060708090a0b0c0d0e0f",
    }.items():
        bad(f"nonce-{name}", "not 32 lower-case hexadecimal digits", attest(nonce=value))

    # input, output, evaluator
    good("evaluator-object", "the evaluator may be an object", attest(evaluator={"name": "writ", "version": "0.1.0"}))
    good("evaluator-empty-object", "whatever is in it", attest(evaluator={}))
    good("empty-content", "objects without members", attest(input={}, output={}))
    for name, value in {"array": [], "text": "x", "number": 1, "true": True, "null": None}.items():
        bad(f"input-{name}", "not an object", attest(input=value))
        bad(f"output-{name}", "not an object", attest(output=value))
        if name != "text":
            bad(f"evaluator-{name}", "neither a text nor an object", attest(evaluator=value))
    bad("evaluator-empty", "an empty text", attest(evaluator=""))

    # Times
    for name, value in {
        "seconds": "2026-05-01T14:30:00Z",
        "nanoseconds": "2026-05-01T14:30:00.123456789Z",
        "offset": "2026-05-01T14:30:00+14:00",
        "minus-zero": "2026-05-01T14:30:00-00:00",
        "lower-case": "2026-05-01t14:30:00z",
        "leap-second": "2016-12-31T23:59:60Z",
        "leap-day": "2024-02-29T00:00:00Z",
        "first-year": "0000-01-01T00:00:00Z",
        "last-year": "9999-12-31T23:59:59.999Z",
    }.items():
        good(f"timestamp-{name}", "RFC 3339, section 5.6", attest(timestamp=value))
    for name, value in {
        "space": "2026-05-01 14:30:00Z",
        "zone": "2026-05-01T14:30:00",
        "date": "2026-05-01",
        "basic": "20260501T143000Z",
        "minutes": "2026-05-01T14:30Z",
        "comma": "2026-05-01T14:30:00,5Z",
        "empty-fraction": "2026-05-01T14:30:00.Z",
        "short-offset": "2026-05-01T14:30:00+02",
        "offset-24": "2026-05-01T14:30:00+24:00",
        "leap-day": "2026-02-29T00:00:00Z",
        "month": "2026-13-01T00:00:00Z",
        "day": "2026-04-31T00:00:00Z",
        "hour": "2026-05-01T24:00:00Z",
        "second": "2026-05-01T14:30:61Z",
        "annotated": "2026-05-01T14:30:00Z[UTC]",
        "blank": " 2026-05-01T14:30:00Z",
        "year": "12026-05-01T14:30:00Z",
        "before-first-year": "0000-01-01T00:00:00+00:01",
        "after-last-year": "9999-12-31T23:59:59-00:01",
        "digits": "2026-05-01T14:30:0\u0661Z",
    }.items():
        bad(f"timestamp-{name}", "not RFC 3339", attest(timestamp=value))
        bad(f"expires-{name}", "not RFC 3339", attest(expires_at=value))
    bad("timestamp-number", "not a text", attest(timestamp=1777645800))
    good("expires-later", "not over yet", attest(expires_at="2026-06-01T12:00:00.001Z"))
    good("expires-later-offset", "the same moment elsewhere", attest(expires_at="2026-06-01T14:00:00.001+02:00"))
    good("expires-later-west", "the same moment further west", attest(expires_at="2026-06-01T10:00:00.001-02:00"))
    good("expires-leap-second", "it is the second before", attest(expires_at="2016-12-31T23:59:60Z"), now="2016-12-31T23:59:58.999Z")
    case("expires-leap-second", "it is the second before", "expired", attest(expires_at="2016-12-31T23:59:60Z"), now="2016-12-31T23:59:59Z")
    good("expires-last-year", "a long time", attest(expires_at="9999-12-31T23:59:59Z"))
    for name, value in {
        "now": NOW,
        "now-offset": "2026-06-01T14:00:00+02:00",
        "now-west": "2026-06-01T10:00:00-02:00",
        "now-cut": "2026-06-01T12:00:00.000999Z",
        "before": "2026-06-01T11:59:59.999Z",
        "long-ago": "1969-12-31T23:59:59Z",
    }.items():
        case(f"expires-{name}", "at that moment it is over", "expired", attest(expires_at=value))

    # Keys
    for state in ["active", "deprecated", "retired"]:
        good(f"state-{state}", "what such a key signed counts", bare, keys=registry(entry(state)))
    case("state-pending", "it may not sign yet", "key_pending", bare, keys=registry(entry("pending")))
    case("state-compromised", "nothing it ever signed counts", "key_compromised", bare, keys=registry(entry("compromised")))
    good("second-key", "the key is found by its id", bare, keys=registry(entry("retired", TWO, "writ-0"), entry(), entry("pending", THREE, "writ-2")))
    case("key-unknown", "no key of that id", "key_not_found", bare, keys=registry(entry(key_id="writ-2")))
    case("key-id-case", "ids are compared as text", "key_not_found", bare, keys=registry(entry(key_id="Writ-1")))
    case("no-keys", "an instance without keys", "key_not_found", bare, keys={**registry(), "keys": []})
    forged("other-key", "the id names another key", bare, keys=registry(entry(key=TWO)))
    forged("signed-by-other", "signed with another key of the registry", attest(key=TWO), keys=registry(entry("deprecated"), entry(key=TWO, key_id="writ-2")))
    for name, value in {"graphic": "!~\"\\", "long": "k" * 256}.items():
        good(f"key-id-{name}", "printable ASCII, at most 256", attest(key_id=value), keys=registry(entry(key_id=value)))
    for name, value in {
        "empty": "",
        "space": "writ 1",
        "non-ascii": "wr\u00eft-1",
        "delete": "writ\x7f",
        "control": "writ\n1",
        "long": "k" * 257,
        "number": 1,
    }.items():
        bad(f"key-id-{name}", "1 to 256 printable ASCII characters without space", attest(key_id=value))

    # Signatures
    def bent(name, why, change, expect="invalid_attestation"):
        case(f"signature-{name}", why, expect, {**bare, "signature": change(bare["signature"])})

    alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
    signature = base64.urlsafe_b64decode(bare["signature"] + "==")
    half, scalar = signature[:32], int.from_bytes(signature[32:], "little")
    plain = attest(note=next(i for i in range(99) if set("-_") <= set(attest(note=i)["signature"])))
    good("signature-alphabet", "a signature with - and _", plain)
    bad("signature-standard-alphabet", "the same with + and /", {**plain, "signature": plain["signature"].translate(str.maketrans("-_", "+/"))})
    bent("padded", "padding", lambda text: text + "==")
    bent("space-before", "white space", lambda text: " " + text)
    bent("space-after", "white space", lambda text: text + "\n")
    bent("space-inside", "white space", lambda text: text[:40] + "\n" + text[40:])
    bent("stray-bits", "bits behind the last byte", lambda text: text[:-1] + alphabet[alphabet.index(text[-1]) | 1])
    bent("63-bytes", "63 bytes", lambda _: b64url(signature[:63]))
    bent("65-bytes", "65 bytes", lambda _: b64url(signature + b"\0"))
    bent("half-group", "87 characters of nothing", lambda _: "A" * 85)
    bent("empty", "an empty text", lambda _: "")
    bent("hexadecimal", "another form", lambda _: signature.hex())
    bent("zero", "64 zero bytes: R is of small order", lambda _: b64url(bytes(64)), "signature_invalid")
    bent("bit", "one bit", lambda _: b64url(half + (scalar ^ 1).to_bytes(32, "little")), "signature_invalid")
    bent("bit-r", "one bit of R", lambda _: b64url(bytes([half[0] ^ 1]) + signature[1:]), "signature_invalid")
    bent("s-plus-l", "S + L, which careless verifiers take", lambda _: b64url(half + (scalar + GROUP_ORDER).to_bytes(32, "little")), "signature_invalid")
    bent("s-high-bit", "S with its highest bit", lambda _: b64url(signature[:63] + bytes([signature[63] | 128])), "signature_invalid")
    bent("swapped", "S before R", lambda _: b64url(signature[32:] + half), "signature_invalid")

    def small_r(point):
        """S = h·a makes S·B = R + h·A for the R that is the identity: true by the equation, and anyone's R."""

        def sign(payload):
            h = int.from_bytes(hashlib.sha512(point + ONE.public + payload).digest(), "little")
            return b64url(point + (h * ONE.scalar() % GROUP_ORDER).to_bytes(32, "little"))

        return sign

    forged("signature-small-r", "R is the identity, and the equation holds", attest(sign=small_r(IDENTITY)))
    forged("signature-small-r-other-form", "R is the identity as y = p + 1", attest(sign=small_r((FIELD_PRIME + 1).to_bytes(32, "little"))))
    forged("signature-small-r-sign", "R is the identity with the sign of x set", attest(sign=small_r(IDENTITY[:31] + b"\x80")))
    forged("signature-of-id", "over the id", attest(sign=lambda payload: b64url(ONE.private.sign(hashlib.sha256(payload).digest()))))
    for name, point in {"identity": IDENTITY, "order-8": ORDER_EIGHT, "zero": bytes(32), "other-form": (FIELD_PRIME + 1).to_bytes(32, "little")}.items():
        case(
            f"key-small-{name}",
            "a key of small order makes the document no registry; for the identity this signature fits every document",
            "network_error",
            attest(sign=lambda _: b64url(BASE_POINT + (1).to_bytes(32, "little"))),
            keys=registry(entry(key=point)),
        )
    forged("key-off-curve", "a key that is no point", bare, keys=registry(entry(key=b"\x02" + bytes(31))))

    # URL
    def at(host, folder=FOLDER, tail=".json"):
        return attest(uri=lambda identity: f"{host}{folder}{identity}{tail}")

    for name, host in {
        "http": "http://writ.example",
        "port": "https://writ.example:8443",
        "default-port": "https://writ.example:443",
        "one-label": "http://localhost:1",
        "ipv4": "http://127.0.0.1:65535",
        "ipv4-numbers": "http://255.0.10.1",
        "ipv6": "http://[::1]:8080",
        "ipv6-upper-case": "http://[2001:DB8:0:0::1]",
        "ipv6-ipv4": "http://[::ffff:127.0.0.1]",
        "upper-case": "https://WRIT.example",
        "underscore": "https://my_writ-1.example",
        "number-first": "https://1.2.3.4.example",
        "long-label": "https://" + "a" * 63 + ".example",
        "long": "https://" + "a." * 126 + "a:65535",
    }.items():
        good(f"uri-{name}", "scheme, host, port", at(host))
    for name, host in {
        "user": "https://user@writ.example",
        "password": "https://user:pass@writ.example",
        "user-like-port": "https://writ.example:443@evil.example",
        "path": "https://writ.example/x",
        "slash": "https://writ.example/",
        "dots": "https://writ.example/..",
        "query": "https://writ.example?x=",
        "fragment": "https://writ.example#",
        "backslash": "https://writ.example\\",
        "space": "https://writ.example ",
        "percent": "https://writ%2eexample",
        "upper-case-scheme": "HTTPS://writ.example",
        "ftp": "ftp://writ.example",
        "no-scheme": "writ.example",
        "no-host": "https://",
        "only-port": "https://:443",
        "empty-port": "https://writ.example:",
        "port-0": "https://writ.example:0",
        "port-00443": "https://writ.example:0443",
        "port-65536": "https://writ.example:65536",
        "port-plus": "https://writ.example:+443",
        "port-name": "https://writ.example:https",
        "two-ports": "https://writ.example:443:443",
        "non-ascii": "https://wr\u00eft.example",
        "open-bracket": "https://[::1",
        "behind-bracket": "https://[::1]x",
        "empty-bracket": "https://[]",
        "ipv6-short": "https://[1:2]",
        "ipv6-long": "https://[1:2:3:4:5:6:7:8:9]",
        "ipv6-two-gaps": "https://[1::2::3]",
        "ipv6-full-gap": "https://[1:2:3:4::5:6:7:8]",
        "ipv6-digits": "https://[::12345]",
        "ipv6-ipv4": "https://[127.0.0.1]",
        "ipv6-ipv4-octal": "https://[::ffff:127.0.0.01]",
        "ipv4-short": "http://127.1",
        "ipv4-octal": "http://0177.0.0.1",
        "ipv4-decimal": "http://2130706433",
        "ipv4-hexadecimal": "http://127.0.0.0x1",
        "ipv4-empty-hexadecimal": "http://writ.0x",
        "ipv4-256": "http://127.0.0.256",
        "ipv4-long": "http://127.0.0.0.1",
        "number-last": "https://writ.example.1",
        "trailing-dot": "https://writ.example.",
        "two-dots": "https://writ..example",
        "first-dot": "https://.writ.example",
        "dot": "https://.",
        "hyphen-first": "https://-writ.example",
        "hyphen-last": "https://writ-.example",
        "long-label": "https://" + "a" * 64 + ".example",
        "long": "https://" + "a." * 127 + "a",
    }.items():
        bad(f"uri-{name}", "the instance is http(s)://host[:port] and nothing more", at(host))
    bad("uri-other-folder", "another folder", at(HOST, "/.well-known/attestation/"))
    bad("uri-dots-inside", "a way around", at(HOST, "/.well-known/x/../attestations/"))
    bad("uri-folder-twice", "the folder twice", at(HOST, FOLDER + FOLDER[1:]))
    bad("uri-escaped", "an escaped letter", at(HOST, "/.well-known/%61ttestations/"))
    bad("uri-tail", "a query", at(HOST, tail=".json?x"))
    bad("uri-fragment-tail", "a fragment", at(HOST, tail=".json#x"))
    bad("uri-no-tail", "no .json", at(HOST, tail=""))
    bad("uri-upper-case-tail", "upper case", at(HOST, tail=".JSON"))
    bad("uri-upper-case-id", "the id in upper case", attest(uri=lambda identity: f"{HOST}{FOLDER}{identity.upper()}.json"))
    bad("uri-other-id", "another id", attest(uri=lambda identity: f"{HOST}{FOLDER}{identity[::-1]}.json"))
    bad("uri-whole-digest", "the whole digest for an id", attest(uri=lambda identity: f"{HOST}{FOLDER}{identity}{identity}.json"))
    bad("uri-short-id", "31 digits", attest(uri=lambda identity: f"{HOST}{FOLDER}{identity[:31]}.json"))
    bad("uri-relative", "no instance", attest(uri=lambda identity: f"{FOLDER}{identity}.json"))
    bad("uri-number", "not a text", attest(attestation_uri=1))

    # Trust
    def trust(name, why, trusted, host=HOST, valid=True):
        case(f"trusted-{name}", why, "valid" if valid else "instance_not_trusted", at(host), trusted=trusted)

    trust("none", "an empty list accepts any", [])
    trust("same", "the same text", [HOST])
    trust("upper-case", "a host is compared in lower case", [HOST], "https://WRIT.example")
    trust("upper-case-entry", "on both sides", ["https://WRIT.Example:443"])
    trust("ipv6", "an address is compared in its one form", ["http://[0:0::1]"], "http://[::1]:80")
    trust("second", "one of several", ["https://other.example", HOST])
    trust("default-port", "the scheme's port may be left out", [HOST], "https://writ.example:443")
    trust("default-port-named", "or named", ["http://writ.example:80"], "http://writ.example")
    trust("port", "another port and the same", ["https://writ.example:8443"], "https://writ.example:8443")
    for name, entries, host in [
        ("other", ["https://other.example"], HOST),
        ("scheme", ["http://writ.example"], HOST),
        ("scheme-down", [HOST], "http://writ.example"),
        ("other-port", [HOST], "https://writ.example:8443"),
        ("wrong-default-port", [HOST], "https://writ.example:80"),
        ("subdomain", [HOST], "https://a.writ.example"),
        ("parent-domain", ["https://a.writ.example"], HOST),
        ("prefix", [HOST], "https://writ.example.evil.example"),
        ("no-instance", ["https://writ.example/"], HOST),
    ]:
        trust(name, "scheme, host and port must be the same", entries, host, valid=False)

    # What comes first
    case("first-form", "the form before trust", "invalid_attestation", {**bare, "nonce": 1}, trusted=["https://other.example"])
    case("first-trust", "trust before the registry", "instance_not_trusted", bare, keys="{", trusted=["https://other.example"])
    case("first-registry", "the registry before the key", "network_error", bare, keys="{")
    case("first-state", "the key's state before the signature", "key_compromised", attest(key=TWO), keys=registry(entry("compromised")))
    case("first-signature", "the signature before the end", "signature_invalid", attest(key=TWO, expires_at="2026-01-01T00:00:00Z"))
    case("two-active", "no registry", "network_error", bare, keys=registry(entry(), entry(key=TWO, key_id="writ-2")))


# registry ---------------------------------------------------------------------------------------------------------------------------


def registries():
    clear("registry")

    def case(name, why, expect, document):
        text = document if isinstance(document, (str, bytes)) else raw(document)
        kind = "accept" if expect else "reject"
        put("registry", f"{kind}-{name}", {"why": why, "document": text, "expect": "valid" if expect else "invalid"})

    def good(name, why, document):
        case(name, why, True, document)

    def bad(name, why, document):
        case(name, why, False, document)

    one = registry()
    text = raw(one)
    good("one-key", "an active key", one)
    good("no-keys", "an instance without keys", {**one, "keys": []})
    good("unknown-members", "members of no known name", {**registry(entry(note="x")), "note": [1]})
    good("pretty", "white space", raw(one, indent=2))
    good("all-states", "a key in each state", registry(*(entry(state, key, f"writ-{n}") for n, (state, key) in enumerate(zip(DATES, [ONE, TWO, THREE, FOUR, FIVE])))))
    for name in one:
        bad(f"without-{name}", "missing", {key: value for key, value in one.items() if key != name})
        bad(f"null-{name}", "null", {**one, name: None})
    bad("instance-empty", "an empty text", {**one, "instance_id": ""})
    bad("instance-number", "not a text", {**one, "instance_id": 1})
    bad("updated-date", "not RFC 3339", {**one, "updated_at": "2026-05-01"})
    for name, value in {"0": 0, "negative": -1, "fraction": 1.5, "text": "3", "beyond": 2**53}.items():
        bad(f"version-{name}", "not a whole number above 0", {**one, "registry_version": value})
    good("version-largest", "2^53 - 1", {**one, "registry_version": 2**53 - 1})
    good("version-float", "3.0 is 3", text.replace('"registry_version":3', '"registry_version":3.0'))
    bad("keys-object", "not a list", {**one, "keys": {}})
    bad("key-text", "not an object", {**one, "keys": ["writ-1"]})
    bad("not-an-object", "a list", f"[{text}]")
    bad("duplicate-member", "a member twice", text[:-1] + ',"registry_version":4}')
    bad("trailing", "bytes behind the document", text + "{}")
    bad("bom", "a byte order mark", b"\xef\xbb\xbf" + text.encode())
    bad("invalid-utf8", "a stray byte", text.encode().replace(b'"writ"', b'"wr\xfft"'))
    good("depth-64", "64 levels", {**one, "note": json.loads("[" * 63 + "]" * 63)})
    bad("depth-65", "65 levels", {**one, "note": json.loads("[" * 64 + "]" * 64)})
    good("integer-limit", "2^53 - 1", {**one, "note": 2**53 - 1})
    bad("integer-beyond", "beyond 2^53 - 1, in whatever form", {**one, "note": 2**53})

    whole = entry("deprecated")
    for name in ["key_id", "algorithm", "public_key", "state", "valid_from", "deprecated_at"]:
        bad(f"key-without-{name}", "missing", registry({key: value for key, value in whole.items() if key != name}))
        bad(f"key-null-{name}", "null", registry({**whole, name: None}))
    for name, value in {"empty": "", "space": "writ 1", "non-ascii": "wr\u00eft", "long": "k" * 257}.items():
        bad(f"key-id-{name}", "1 to 256 printable ASCII characters without space", registry(entry(key_id=value)))
    good("key-id-long", "256 characters", registry(entry(key_id="k" * 256)))
    for value in ["ed25519", "EdDSA", "RSA"]:
        bad(f"algorithm-{value}", "not Ed25519", registry(entry(algorithm=value)))
    public = b64url(ONE.public)
    alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
    for name, value in {
        "padded": public + "=",
        "space": public + " ",
        "stray-bits": public[:-1] + alphabet[alphabet.index(public[-1]) | 1],
        "31-bytes": b64url(ONE.public[:31]),
        "33-bytes": b64url(ONE.public + b"\0"),
        "hexadecimal": ONE.public.hex(),
        "standard-alphabet": base64.b64encode(b"\xff" * 31 + b"\0").decode().rstrip("="),
    }.items():
        bad(f"public-key-{name}", "not 32 bytes in base64url without padding", registry(entry(public_key=value)))
    p = FIELD_PRIME
    weak = {"zero": 0, "identity": 1, "minus-one": p - 1, "p": p, "p-plus-1": p + 1, "p-plus-3": p + 3}
    for name, value in weak.items():
        bad(f"public-key-{name}", "of small order, or y not below the prime", registry(entry(key=value.to_bytes(32, "little"))))
        signed = (value | 1 << 255).to_bytes(32, "little")
        bad(f"public-key-{name}-sign", "the same with the sign of x", registry(entry(key=signed)))
    order_eight = int.from_bytes(ORDER_EIGHT, "little")
    for name, value in {"a": order_eight, "b": p - order_eight}.items():
        bad(f"public-key-order-8-{name}", "of small order", registry(entry(key=value.to_bytes(32, "little"))))
        bad(f"public-key-order-8-{name}-sign", "of small order", registry(entry(key=(value | 1 << 255).to_bytes(32, "little"))))
    for value in ["revoked", "Active", ""]:
        bad(f"state-{value or 'empty'}", "no such state", registry({**whole, "state": value}))
    good("two-keys", "an active and a deprecated one", registry(whole, entry(key=TWO, key_id="writ-2")))
    bad("two-active", "more than one active", registry(entry(), entry(key=TWO, key_id="writ-2")))
    bad("id-twice", "one id twice", registry(whole, entry(key=TWO)))
    bad("id-twice-same-key", "one id twice", registry(whole, whole))
    bad("key-twice", "one key under two ids", registry(whole, entry(key_id="writ-2")))

    good("pending-no-dates", "a pending key needs no dates", registry(entry("pending")))
    good("compromised-no-dates", "nor does a compromised one", registry({k: v for k, v in entry("compromised").items() if k != "valid_from"}))
    good("active-planned", "an active key whose end is planned", registry(entry(valid_until="2026-09-01T00:00:00Z")))
    good("active-no-end", "an active key may leave valid_until out", registry({k: v for k, v in entry().items() if k != "valid_until"}))
    bad("active-no-beginning", "valid_from is required", registry({k: v for k, v in entry().items() if k != "valid_from"}))
    bad("active-null-beginning", "valid_from is required", registry(entry(valid_from=None)))
    for state in ["pending", "deprecated", "retired", "compromised"]:
        bad(f"{state}-null-end", "valid_until may be null for an active key alone", registry(entry(state, valid_until=None)))
        good(f"{state}-end", "valid_until as a date", registry(entry(state, valid_until="2026-09-01T00:00:00Z")))
    for state in ["deprecated", "retired"]:
        for name in ["valid_from", "deprecated_at"]:
            bad(f"{state}-no-{name}", f"{name} is required", registry({k: v for k, v in entry(state).items() if k != name}))
    good("deprecated-no-end", "valid_until is only a plan", registry({k: v for k, v in whole.items() if k != "valid_until"}))
    for name in ["valid_from", "valid_until", "deprecated_at"]:
        bad(f"{name}-date", "not RFC 3339", registry({**whole, name: "2026-01-01"}))
        bad(f"{name}-number", "not a text", registry({**whole, name: 1767225600}))

    def follow(name, why, expect, known, fetched):
        put("registry", f"succession-{expect.removeprefix('registry_')}-{name}", {"why": why, "known": raw(known), "fetched": raw(fetched), "expect": expect})

    known = registry(entry(), version=5)
    follow("same", "the same document", "keep", known, known)
    follow("same-keys", "the same version and keys, another date", "keep", known, {**known, "updated_at": "2026-05-02T00:00:00Z"})
    follow("same-moment", "a date in another form is the same date", "keep", known, registry(entry(valid_from="2026-01-01T01:00:00+01:00"), version=5))
    follow("higher", "a higher version", "take", known, {**known, "registry_version": 6})
    follow("much-higher", "any higher version", "take", known, {**known, "registry_version": 2**53 - 1})
    follow("new-key", "another key", "take", known, registry(entry(), entry("pending", TWO, "writ-2"), version=6))
    follow("rotation", "a rotation", "take", known, registry(entry("deprecated"), entry("active", TWO, "writ-2"), version=6))
    follow("key-gone", "a key may leave the registry", "take", known, {**known, "keys": [], "registry_version": 6})
    follow("lower", "a lower version", "registry_rollback", known, {**known, "registry_version": 4})
    follow("lower-other-keys", "a lower version", "registry_rollback", known, registry(entry("deprecated"), version=4))
    follow("same-version-new-key", "the same version with another key", "registry_rollback", known, registry(entry(), entry("pending", TWO, "writ-2"), version=5))
    follow("same-version-state", "the same version with another state", "registry_rollback", known, registry(entry("compromised"), version=5))
    follow("same-version-key-gone", "the same version without a key", "registry_rollback", known, {**known, "keys": []})
    follow("same-version-date", "the same version with another date of a key", "registry_rollback", known, registry(entry(valid_until="2026-09-01T00:00:00Z"), version=5))
    follow("other-key", "the id names another key", "registry_rollback", known, registry(entry(key=TWO), version=6))
    follow("key-renamed", "a key that was withdrawn comes back under another id", "registry_rollback", known, registry(entry(key_id="writ-2"), version=6))
    order = ["pending", "active", "deprecated", "retired", "compromised"]
    for at, before in enumerate(order):
        for then, after in enumerate(order):
            expect = "take" if then >= at else "registry_rollback"
            follow(f"{before}-{after}", "states go forwards, in any number of steps", expect, registry(entry(before), version=5), registry(entry(after), version=6))


canonical()
attestations()
registries()
