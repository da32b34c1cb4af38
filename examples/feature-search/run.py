#!/usr/bin/env python3
"""The specification's feature search: an agent builds a search, under limits, with steps that have to be there and evaluators that judge.

    WRIT=target/release/writ python3 examples/feature-search/run.py"""
import json, pathlib, sys

sys.dont_write_bytecode = True

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
from drive import Model, Session, expect

POLICY = pathlib.Path(__file__).resolve().parent.parent / "feature-search.aflock"


def implemented(steps):
    """A session that does the work, and runs these steps."""
    session = Session("search-feature", POLICY.read_text(), {"src/search.py": "def search(): pass\n", ".env": "KEY=x\n", "tests/test.py": "assert True\n"})
    session.hook("SessionStart", source="startup")
    session.asks("Implement the search feature")
    expect("reads the code", session.call("Read", file_path=str(session.repository / "src/search.py"))[0], "allow")
    expect("writes the code", session.call("Write", file_path=str(session.repository / "src/search.py"), content="def search(): return []\n")[0], "allow")
    expect("reads the secrets", session.call("Read", file_path=str(session.repository / ".env"))[0], "deny")
    expect("fetches from an unnamed host", session.call("WebFetch", url="https://example.org/x", prompt="x")[0], "deny")
    expect("pushes", session.call("Bash", command="git push origin main")[0], "ask")
    for step in steps:
        session.done("step", "run", step, "--", "python3", "tests/test.py")
    session.stops()
    return session


def judged(session, status, *more):
    with Model(status) as endpoint:
        code, said = session.writ("verify", "--evaluators", "--format", "json", *more, variables=endpoint)
    return code, json.loads(said)


def phase(report, name): return [phase["outcome"] for phase in report["phases"] if phase["name"] == name]


print("everything is there")
good = implemented(["task-complete", "quality-check"])
code, report = judged(good, "PASS")
for name in ("decisions", "limits", "required", "turns"):
    expect(name, phase(report, name), ["passed"])
expect("evaluators, Rego and model", phase(report, "evaluators"), ["passed", "passed"])
expect("status", report["status"], "verified")
good.done("export", "-o", "run.tar", "--transcripts")
key = str(next((good.folder / "state/sessions").glob("*/ledger.pub")))
code, said = good.writ("verify", "run.tar", "--trust", key)
expect("the bundle's last line", said.strip().splitlines()[-1].split(",")[0], "verified")
print("the model judges otherwise")
expect("status", judged(good, "FAIL")[1]["status"], "breached")
print("a step is missing")
code, report = judged(implemented(["task-complete"]), "PASS")
expect("required", phase(report, "required"), ["failed"])
expect("status", (code, report["status"]), (3, "breached"))
