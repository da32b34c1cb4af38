#!/usr/bin/env python3
"""bundle.py FILE --trust KEY.pem: does a session's record hold? Exit code 0 when all holds, 3 when it does not, 4 when it is no bundle.

Python's own library and `cryptography`, written from the pages in `spec/` alone: bundle.md (the archive and its names), ledger.md (rows and
their chain), checkpoint.md (signed trees), notary.md (keys that were introduced), signing.md (envelopes). What it does not do: judge each
call again and read the transcripts (`writ verify` does). Nothing is laid out on the disk, and the ledger is read row by row."""
import argparse, base64, datetime, decimal, hashlib, json, math, os, re, stat, sys

from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519

BLOCK, MAX_MANIFEST, MAX_LINE, MAX_DEPTH, MAX_NOTES, MAX_SMALL = 512, 16 << 20, 60_000, 64, 32 << 20, 64 << 20
ALONE = ("ledger.jsonl", "checkpoints", "ledger.pub")
BY_DIGEST = re.compile(r"(?:(?:layers|policies)/([0-9a-f]{64})|(?:attestations|claims|identities|prices|registries|sandboxes|statements)/([0-9a-f]{64})\.json)")
WHOLE = re.compile(rb"(?<![0-9a-f])[0-9a-f]{64}(?![0-9a-f])")
LINK = "https://in-toto.io/attestation/link/v0.3"
NOTE = re.compile("(([^\n]+)\n(0|[1-9][0-9]{0,15})\n([^\n]+)\n(?:custody [^\n]+\n)?)\n\u2014 ([^ \n]+) ([^ \n]+)\n")
MOMENT = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\.[0-9]{3}Z")
DECISIONS = {"APPROVED", "DENIED", "ASKED", "COMPLETED", "FAILED", "HALLUCINATED", "CHECKPOINT"}
ROW = ("sequence", "timestamp", "callId", "toolName", "decision", "denialReason", "resultHash", "detail", "prevHash", "entryHash")
SEALED = ("prevHash", "sequence", "callId", "toolName", "decision", "denialReason", "resultHash", "timestamp")

class Broken(Exception): """The record does not hold, and why."""
class Malformed(Exception): """It is no bundle, or no key, and why."""

def must(condition, why):
    if not condition: raise Broken(why)
def sha(data): return hashlib.sha256(data).digest()
def is_text(value): return isinstance(value, str)
def is_count(value): return type(value) is int and 0 <= value < 1 << 53
def is_hex(value): return is_text(value) and re.fullmatch("[0-9a-f]{64}", value)
def is_hidden(value): return isinstance(value, list) and len(value) == 3 and is_count(value[0]) and is_hex(value[1]) and is_count(value[2])
def is_list(value, of): return isinstance(value, list) and value and all(map(of, value))

FILE = {"path": is_text, "size": is_count, "sha256": is_hex}
TRANSCRIPT = {"main": is_text, "name": is_text, "size": is_count, "sha256": is_hex, "path": is_text, "masked": lambda value: is_list(value, is_hidden)}

def typed(value, members, optional=()):
    must(isinstance(value, dict) and set(value) | set(optional) == set(members), "the manifest has other members")
    must(all(members[name](value[name]) for name in value), "a member of the manifest is of another type")

def strict(data, why, exact=False):
    """JSON without a member twice; `exact`: without a whole number that not every reader has."""
    def pairs(members):
        must(len(dict(members)) == len(members), f"{why}: a member twice")
        return dict(members)
    def number(word):
        value = int(word) if re.fullmatch("-?[0-9]{1,17}", word) else float(word)
        must(math.isfinite(value) and not (exact and value == int(value) and abs(value) >= 1 << 53), f"{why}: the number {word}")
        return value
    try:
        value = json.loads(data.decode("utf-8"), object_pairs_hook=pairs, parse_float=number, parse_int=number, parse_constant=number)
        json.dumps(value, ensure_ascii=False).encode()
    except (UnicodeError, ValueError, RecursionError) as error: raise Broken(f"{why}: {error}") from None
    return value

def canonical(value, inside=0): # RFC 8785
    must(inside < MAX_DEPTH or not isinstance(value, (dict, list)), "it is nested too deep")
    if isinstance(value, dict):
        return "{" + ",".join(f"{canonical(key)}:{canonical(value[key], inside + 1)}" for key in sorted(value, key=lambda key: key.encode("utf-16-be"))) + "}"
    if isinstance(value, list): return "[" + ",".join(canonical(item, inside + 1) for item in value) + "]"
    if type(value) is not float: return json.dumps(value, ensure_ascii=False)
    if value.is_integer() and abs(value) < 1e21: return str(int(value))
    sign, digits, exponent = decimal.Decimal(repr(value)).as_tuple()
    digits, point = "".join(map(str, digits)), len(digits) + exponent
    if not -6 < point <= 21: return "-" * sign + digits[0] + ("." + digits[1:]).removesuffix(".") + f"e{point - 1:+d}"
    return "-" * sign + (digits[:point] + "." + digits[point:] if point > 0 else "0." + "0" * -point + digits)

def b64(text, why, url=False):
    try: data = base64.b64decode(text.replace("-", "+").replace("_", "/") if url else text, validate=True)
    except ValueError: raise Broken(f"{why}: no Base64") from None
    must(text in (base64.b64encode(data).decode(), url and base64.urlsafe_b64encode(data).decode()), f"{why}: Base64 that is not canonical")
    return data

class Key:
    """A public key, and its id: the SHA-256 of its SubjectPublicKeyInfo."""
    def __init__(self, key):
        self.key = key
        self.der = key.public_bytes(serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo)
        self.id, self.text = "sha256:" + sha(self.der).hex(), key.public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
    @staticmethod
    def pem(data):
        key, bare = serialization.load_pem_public_key(data), lambda text: text.replace(b"\r\n", b"\n").strip(b"\n")
        must(len(data) <= 8192 and bare(data) == bare(key.public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)) and (isinstance(key, ed25519.Ed25519PublicKey) or isinstance(getattr(key, "curve", None), ec.SECP256R1)), "it is not one PEM block `PUBLIC KEY` of an Ed25519 or P-256 key"); return Key(key)
    def named(self, origin):
        """How a note's signature names the key."""
        if not isinstance(self.key, ed25519.Ed25519PublicKey): return sha(self.der)[:4]
        return sha(origin.encode() + b"\n\x01" + self.key.public_bytes(serialization.Encoding.Raw, serialization.PublicFormat.Raw))[:4]
    def verifies(self, signature, message):
        try: self.key.verify(signature, message, *([] if isinstance(self.key, ed25519.Ed25519PublicKey) else [ec.ECDSA(hashes.SHA256())]))
        except InvalidSignature: return False
        return True

def header(path, size):
    """The only header that a bundle has for a file of this path and size."""
    data, prefix = path.encode(), b""
    if len(data) > 100:
        cuts = [at for at, byte in enumerate(data) if byte == 0x2F and at <= 155 and len(data) - at - 1 <= 100]
        must(cuts, f"`{path}` is too long a path")
        prefix, data = data[:cuts[-1]], data[cuts[-1] + 1:]
    head = data.ljust(100, b"\0") + b"0000644\0" + b"0000000\0" * 2 + b"%011o\0" % size + b"00000000000\0"
    rest = b"0" + bytes(100) + b"ustar\0" + b"00" + bytes(80) + prefix.ljust(155, b"\0") + bytes(12)
    return head + b"%07o\0" % (sum(head) + sum(rest) + 8 * 0x20) + rest

def plain(path):
    """A file that is no pipe, no device and no folder."""
    file = open(os.open(path, os.O_RDONLY | os.O_NONBLOCK), "rb")
    if not stat.S_ISREG(os.fstat(file.fileno()).st_mode): raise OSError(f"{path}: not a plain file")
    return file

class Bundle:
    """The files of a bundle, each read from its place in the archive."""
    def __init__(self, path):
        self.file = plain(path)
        self.text = self.small("bundle.json", MAX_MANIFEST, Malformed("it does not begin with a manifest"))
        try: self.manifest = strict(self.text, "the manifest")
        except Broken as error: raise Malformed(error) from None
        self.check_manifest(self.text)
        self.signature = self.small("bundle.sig", 1024, Broken("the manifest's signature does not follow it"))
        self.places, self.digests = {}, {}
        for entry in self.manifest["files"]: self.take(entry)
        must(self.file.read(2 * BLOCK + 1) == bytes(2 * BLOCK), "the archive does not end where its manifest says")
    def small(self, path, most, otherwise):
        """The file that comes next, which has to be this one."""
        first = self.file.read(BLOCK)
        size = int(first[124:135], 8) if re.fullmatch(rb"[0-7]{11}", first[124:135]) else most + 1
        if size > most or first != header(path, size): raise otherwise
        must(len(text := self.file.read(size)) == size, f"it is cut off in `{path}`")
        self.skip_padding(size)
        return text
    def check_manifest(self, text):
        manifest, told = self.manifest, self.manifest if isinstance(self.manifest, dict) else {}
        if told.get("format") != "writ-bundle" or type(told.get("version")) not in (int, float) or told["version"] != 1:
            raise Malformed("its manifest is of another format or version")
        listing = lambda value: isinstance(value, list)
        typed(manifest, {"format": is_text, "version": is_count, "session": is_text, "files": listing, "transcripts": listing})
        for entry in manifest["files"]: typed(entry, FILE)
        for entry in manifest["transcripts"]:
            typed(entry, TRANSCRIPT, ("path", "masked"))
            must(entry.get("path", "transcripts/").startswith("transcripts/") and ("path" in entry or "masked" not in entry), "a transcript lies elsewhere")
        must(canonical(manifest).encode() == text, "the manifest is not in canonical form")
        paths, held = [entry["path"] for entry in manifest["files"]], sum(entry["size"] for entry in manifest["files"])
        must(len(paths) <= 100_000 and held <= 16 << 30, "it holds more than a bundle may")
        most = lambda path: 16 << 30 if path == "ledger.jsonl" or path.startswith("transcripts/") else MAX_NOTES if path == "checkpoints" else MAX_SMALL
        must(all(entry["size"] <= most(entry["path"]) for entry in manifest["files"]), "a file is too long")
        must(paths == sorted(set(paths), key=str.encode), "the files are not sorted by their paths")
        plain = all(part not in ("", ".", "..") and "\0" not in part for path in paths for part in path.split("/"))
        must(plain and not {"bundle.json", "bundle.sig"} & set(paths), "a path leads elsewhere")
    def take(self, entry):
        path, size, told = entry["path"], entry["size"], entry["sha256"]
        must(self.file.read(BLOCK) == header(path, size), f"the header of `{path}` is another")
        self.places[path] = (self.file.tell(), size)
        digest = hashlib.sha256()
        for piece in self.pieces(path): digest.update(piece)
        must(digest.hexdigest() == told, f"`{path}` is not what the manifest says")
        self.digests[path] = told
        self.skip_padding(size)
    def skip_padding(self, size):
        must(self.file.read(-size % BLOCK) == bytes(-size % BLOCK), "a file is not padded with zeros")
    def pieces(self, path):
        at, left = self.places[path]
        while left:
            self.file.seek(at)
            must(piece := self.file.read(min(left, 1 << 18)), "the archive ends too early")
            yield piece
            at, left = at + len(piece), left - len(piece)
        self.file.seek(at)
    def read(self, path):
        must(path in self.places, f"`{path}` is missing")
        must(self.places[path][1] <= MAX_SMALL, f"`{path}` is too long")
        return b"".join(self.pieces(path))
    def lines(self, path):
        rest = b""
        for piece in self.pieces(path):
            *whole, rest = (rest + piece).split(b"\n")
            yield from whole
            must(len(rest) <= MAX_LINE, "a line of the ledger is too long")
        must(rest == b"", "the last row has no end")
    def unnamed(self):
        """Files that neither the ledger nor a file that it leads to names."""
        left = {path for path in self.places if path not in ALONE and not path.startswith("transcripts/")}
        reading = ["ledger.jsonl"]
        while reading:
            found, run = set(), b""
            for piece in self.pieces(reading.pop()):
                piece = run + piece
                # What may go on in the next piece waits for it.
                run = re.search(rb"[0-9a-f]*\Z", piece).group()
                found, run = found.union(WHOLE.findall(piece, 0, len(piece) - len(run))), run[:65]
            found.update(WHOLE.findall(run))
            named = {path for path in left if self.digests[path].encode() in found}
            left -= named
            reading.extend(named)
        return sorted(left)

class Ledger:
    """Rows one after the other: the chain, the tree over them, and the key that signs from each on."""
    def __init__(self, session_name, key):
        self.origin, self.key, self.ledger_key = f"writ/session/{session_name}", key, key
        self.count, self.seal, self.stack = 0, "0" * 64, []
        self.roots, self.signers, self.state = {}, {}, {}
        self.stops, self.last_act, self.ended, self.over = [], -1, False, False
        self.named, self.read, self.genesis, self.first = {}, {}, None, None
    def take(self, line, sizes):
        if self.count in sizes: self.roots[self.count], self.signers[self.count] = self.root(), self.key
        must(len(line) <= MAX_LINE, "it is too long")
        row = strict(line, "it", exact=True)
        must(list(row) == list(ROW), "its members are others")
        raw = {name: canonical(value) for name, value in row.items()}
        must(("{" + ",".join(f'"{name}":{text}' for name, text in raw.items()) + "}").encode() == line, "it is spelled in another way")
        datetime.datetime.fromisoformat(row["timestamp"])
        texts = [row[name] is None or is_text(row[name]) for name in ("callId", "toolName", "denialReason")]
        must(all(texts) and (row["resultHash"] is None or is_hex(row["resultHash"])) and MOMENT.fullmatch(row["timestamp"]), "a member is of another form")
        detail = None if row["detail"] is None else sha(raw["detail"].encode()).hex()
        seal = sha(canonical([row[name] for name in SEALED] + [detail]).encode()).hex()
        must(row["entryHash"] == seal, "its seal is another: the row was edited")
        must(row["prevHash"] == self.seal, "it is not sealed to the row before")
        must(row["sequence"] == self.count and row["decision"] in DECISIONS, "it is out of order")
        self.seal, detail = seal, row["detail"] or {}
        if self.count == 0:
            self.genesis, self.first = detail, seal
            must(detail.get("key") == self.ledger_key.id, "it names another key than the one that is trusted")
        self.custody(detail, row)
        self.follow(detail, row)
        self.push(sha(b"\0" + line))
    def custody(self, detail, row):
        if not isinstance(told := detail.get("custody"), dict): return
        new = Key(serialization.load_der_public_key(b64(told["key"], "a key"))) if "key" in told else self.ledger_key
        words = ["writ/custody/v1", self.origin, str(self.count), "sha256:" + row["prevHash"], told["kept"], new.id, told.get("before", "-")]
        introduced = "signature" in told and self.ledger_key.verifies(b64(told["signature"], "a signature"), ("\n".join(words) + "\n").encode())
        must(introduced if "signature" in told else new.id == self.ledger_key.id, "nobody introduced its key")
        self.key = new
    def follow(self, detail, row):
        event, state = detail.get("event"), detail.get("state") or {}
        if event == "stop": self.stops.append(self.count)
        elif event in ("prompt", "tool-call"): self.last_act = self.count
        self.over = event in ("session-end", "run-ended") or self.over and event not in ("prompt", "tool-call", "session-resumed"); self.ended |= self.over
        policy, verdict, claim = state.get("policy") or {}, detail.get("attestation") or {}, event == "claim" and detail.get("statement")
        for place, digest in (("policies/{}", policy.get("file")), ("layers/{}", policy.get("layers")), ("claims/{}.json", claim), ("attestations/{}.json", verdict.get("digest")),
                              ("registries/{}.json", verdict.get("registry")), ("identities/{}.json", (detail.get("identity") or {}).get("document"))):
            if digest: self.named[place.format(digest[7:])] = (digest[7:], None)
        # Texts of rules, as they were when the policy was accepted.
        for digest in detail["rules"].values() if isinstance(detail.get("rules"), dict) else (): self.named[f"policies/{digest[7:]}"] = (digest[7:], None)
        for told in (detail.get("transcripts") or {}).get("read", ()):
            self.read[detail["transcripts"].get("main"), told["file"]] = told["to"], told["digest"] if told["from"] == 0 else None
        if event == "attested":
            told = detail["attested"]
            must(f"statements/{told['digest'][7:]}.json" not in self.named, "it names a statement a second time")
            self.named[f"statements/{told['digest'][7:]}.json"] = (told["digest"][7:], (told["name"], row["prevHash"], detail.get("imported"), row["sequence"]))
        elif event == "turn-attested": self.named["attestations/" + detail["name"]] = (detail["statement"][7:], None)
    def push(self, leaf):
        size, node = self.count, leaf
        while size & 1: node, size = sha(b"\1" + self.stack.pop() + node), size >> 1
        self.stack, self.count = [*self.stack, node], self.count + 1
    def root(self):
        if not self.stack: return sha(b"")
        node = self.stack[-1]
        for left in reversed(self.stack[:-1]): node = sha(b"\1" + left + node)
        return node

def notes(data):
    """The signed notes of the file, with the bytes that each signs."""
    out, at, text = [], 0, data.decode("utf-8")
    while at < len(text):
        note = NOTE.match(text, at)
        must(note and len(note[0].encode()) <= 4096, "a checkpoint is cut off, too long, or has other lines")
        body, origin, size, root, name, code = note.groups()
        out.append((name, origin, int(size), b64(root, "a root"), b64(code, "a signature"), body.encode()))
        at = note.end()
    return out

def check_notes(signed, ledger):
    covered = 0
    for name, origin, size, root, code, body in signed:
        must(name == origin == ledger.origin, f"a checkpoint is of `{origin}`")
        must(size >= covered, "a checkpoint takes rows back")
        must(ledger.roots.get(size) == root, f"the checkpoint over {size} rows has another root: history was rewritten")
        must(code[:4] == ledger.signers[size].named(origin), f"the checkpoint over {size} rows is signed by another key")
        must(ledger.signers[size].verifies(code[4:], body), f"the checkpoint over {size} rows is not signed")
        covered = size
    return covered

def statement(data, keys, why, go=False):
    """The statement of an envelope that one of the keys signed, as DSSE says or as the Go aflock does."""
    envelope = strict(data, why)
    kind, payload = envelope["payloadType"].encode(), b64(envelope["payload"], why, True)
    little = b"DSSEv1" + b"".join(len(part).to_bytes(8, "little") + part for part in (kind, payload))
    words = little if go else b"DSSEv1 %d %s %d %s" % (len(kind), kind, len(payload), payload)
    must(any(key.verifies(b64(one["sig"], why, True), words) for one in envelope["signatures"] for key in keys), f"{why}: no key of the session signed it")
    return strict(payload, why)

def folder_name(session):
    if re.fullmatch(r"[A-Za-z0-9_-]{1,64}", session): return session
    return (re.sub(r"[^A-Za-z0-9_-]", "", session)[:32] or "session") + "." + sha(session.encode()).hex()[:16]

def verify(path, trusted):
    bundle = Bundle(path)
    must(not (unnamed := bundle.unnamed()), f"no row names {', '.join(unnamed)}")
    brought = Key.pem(bundle.read("ledger.pub"))
    must(brought.text == bundle.read("ledger.pub"), "the key that it brings is written in another way")
    words = f"writ/bundle/v1\n{sha(bundle.text).hex()}\n".encode()
    code = bundle.signature.decode("ascii")
    must(code.endswith("\n") and brought.verifies(b64(code[:-1], "the signature"), words), "the manifest is not signed by the key that it brings")
    must(signed := notes(bundle.read("checkpoints")) if "checkpoints" in bundle.places else [], "no checkpoint: nobody signed for it")
    name = signed[0][1].removeprefix("writ/session/")
    ledger, sizes = Ledger(name, brought), {note[2] for note in signed}
    keys = {brought.id: brought}
    for line in bundle.lines("ledger.jsonl"):
        try: ledger.take(line, sizes)
        except (Broken, KeyError, TypeError, ValueError, AttributeError) as error: raise Broken(f"row {ledger.count}: {error}") from None
        keys[ledger.key.id] = ledger.key
    must(ledger.count, "it has no rows")
    ledger.roots[ledger.count], ledger.signers[ledger.count] = ledger.root(), ledger.key
    must((session := ledger.genesis.get("session")) == bundle.manifest["session"] and folder_name(session) == name, "the manifest or the checkpoints are of another session")
    tail(ledger, covered := check_notes(signed, ledger))
    must(brought.id == trusted.id or all(ledger.signers[note[2]].id == trusted.id for note in signed), "it brings another key than the one that is trusted, and that one did not sign its checkpoints")
    made_of = {(entry["main"], entry["name"]): (entry["size"], "sha256:" + entry["sha256"]) for entry in bundle.manifest["transcripts"]}
    must("main" in {file for _, file in ledger.read} or not (ledger.stops or ledger.ended) or made_of.get((ledger.genesis.get("transcript"), "main"), (0,))[0] == 0, "no stop read the transcript")
    for (main, file), (end, digest) in ledger.read.items():
        must((held := made_of.get((main or ledger.genesis.get("transcript"), file), (-1, None)))[0] > end or held == (end, digest or held[1]), f"the transcript `{file}` was gone, shorter or other than what was read of it")
    for place, (digest, _) in sorted(ledger.named.items()):
        must(bundle.digests.get(place) == digest, f"`{place}`, which a row names, is missing or another")
    for place in (place for place in ledger.named if place.startswith("layers/")):
        for layer in strict(bundle.read(place), place):
            must(bundle.digests.get("policies/" + layer["file"][7:]) == layer["file"][7:], f"the policy `{layer['name']}`, which `{place}` names, is missing")
    check_named(bundle, list(keys.values()), (f"agentflow:run:{session}", ledger.first), ledger.named)
    return ledger, covered, brought.id != trusted.id and bundle.manifest["transcripts"]

def tail(ledger, covered):
    if covered >= ledger.count: return
    must(not ledger.ended, f"rows from {covered} on are not signed for, though the session ended")
    late = [stop for stop in ledger.stops if stop >= covered and ledger.last_act > stop]
    must(not late, f"rows from {covered} on are not signed for, though the agent stopped at row {late[:1]} and went on")

def check_named(bundle, keys, run, named):
    """What lies under its digest is it; what is signed is signed by a key of the session, and about it."""
    texts, seen = {entry.get("path") for entry in bundle.manifest["transcripts"]}, set()
    notes = {re.sub(r"\.[^./]*$", "", path) + ".meta.json" for path in texts if path}
    for path, digest in bundle.digests.items():
        folder, placed = path.rpartition("/")[0], BY_DIGEST.fullmatch(path)
        if path.startswith("transcripts/"): must(path in texts or path in notes, f"`{path}` is no transcript")
        if path in ALONE or path.startswith("transcripts/"): continue
        must(digest in placed.groups() if placed else path in named, f"`{path}` does not lie where a file of its kind does")
        must(digest not in seen and not seen.add(digest), f"`{path}` is there twice")
        if folder in ("claims", "statements") or folder == "attestations" and not placed:
            other = folder == "statements" and named[path][1][2]
            by = [Key(serialization.load_der_public_key(b64(other["key"], path)))] if other else keys
            signed = statement(bundle.read(path), by, path, bool(other) and other["encoding"] == "go-aflock")
            if other: continue
            about = [subject.get("digest", {}).get("sha256") for subject in signed["subject"] if subject["name"] == run[0]]
            must(folder == "claims" or path in named and about == [run[1]], f"{path}: no row names it, or it is about another run")
            if folder == "statements":
                step, before, _, row = named[path][1]
                own, link = {"name": f"agentflow:step:{step}", "digest": {"sha256": before}} in signed["subject"], signed["predicate"]
                if signed["predicateType"] == LINK: own = link["name"] == step and link["byproducts"].get("row", row) == row
                must(own, f"{path}: it is of another step or place")
            bound((signed["predicate"] or {}).get("sessionBinding"), path)
    for entry, kept in ((entry, entry.get("path")) for entry in bundle.manifest["transcripts"]):
        whole = lambda: (bundle.digests[kept], bundle.places[kept][1]) == (entry["sha256"], entry["size"])
        must(kept is None or kept in bundle.digests and ("masked" in entry or whole()), f"`{kept}` is not the transcript that the manifest says")

def bound(binding, why):
    """The turn is the last leaf of the tree whose root it names (turns.md, "The tree")."""
    if binding is None: return
    must(binding["algorithm"] in ("sha256", "sha512"), f"{why}: another hash")
    hashed = lambda data: hashlib.new(binding["algorithm"], data).digest()
    node, last, steps = hashed(b"\0" + canonical(binding["leaf"]).encode()), binding["treeSize"] - 1, binding["merkleProof"]
    must(binding["turnIndex"] == last and binding["leaf"]["previousTurnHash"] == binding["previousTurnHash"], f"{why}: another place")
    # The last leaf has one sibling for each one in the binary form of its index, on its left.
    must(len(steps) == bin(last).count("1"), f"{why}: a proof of another length")
    for step in steps: node = hashed(b"\1" + bytes.fromhex(step) + node)
    must(node.hex() == binding["merkleRoot"], f"{why}: the proof leads to another root")

def shown(text): return "".join(c if c.isprintable() else repr(c)[1:-1] for c in str(text))

def said(code, text, to=sys.stdout):
    print(text, file=to)
    return code

def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("file")
    parser.add_argument("--trust", required=True, metavar="KEY.pem", help="the public key that signs on the machine of the session, or its notary's")
    args = parser.parse_args()
    try:
        with plain(args.trust) as file: trusted = Key.pem(file.read(MAX_SMALL))
    except OSError as error: return said(1, f"error: {shown(error)}", sys.stderr)
    except (Broken, ValueError, UnsupportedAlgorithm) as error: return said(4, f"error: {args.trust}: {shown(error)}", sys.stderr)
    try: ledger, covered, others = verify(args.file, trusted)
    except Malformed as error: return said(4, f"error: {args.file} is no bundle: {shown(error)}", sys.stderr)
    except OSError as error: return said(1, f"error: {shown(error)}", sys.stderr)
    except (Broken, KeyError, IndexError, TypeError, ValueError, AttributeError, RecursionError, UnsupportedAlgorithm) as error: return said(3, f"NOT VERIFIED: {shown(error)}")
    until = f" up to row {covered - 1}: the session is still open" if covered < ledger.count else "" if ledger.over else f" up to row {covered - 1}: the session had not ended when the bundle was made"
    if others: return said(3, f"verified, except: what its transcripts were is the word of another key ({ledger.ledger_key.id}) than the trusted one")
    return said(0, f"verified{until} ({ledger.count} rows, key {ledger.ledger_key.id}; calls were not judged again, transcripts not read)")

if __name__ == "__main__":
    sys.exit(main())
