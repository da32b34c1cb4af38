#!/usr/bin/env python3
"""The specification's first use: an agent assesses security controls, and its assessment is proved, complete and judged.

    WRIT=target/release/writ python3 examples/oscal/run.py"""
import json, pathlib, sys

sys.dont_write_bytecode = True
HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
from drive import Model, Server, Session, expect

POLICY = (HERE / "policy.aflock").read_text()
CONTROLS = {"AC-2": "Accounts are reviewed each quarter.", "AU-3": "Each audit record names its event, time and source.", "IA-5": "Authenticators are changed after a compromise."}
KIND = "https://example.com/oscal/assessment/v1"


def assessed(controls):
    """A session in which an agent looks at each control, gathers evidence by a command that Writ runs, and says what it found."""
    files = {f"controls/{name}.md": text + "\n" for name, text in CONTROLS.items()}
    session = Session("oscal-evaluation", POLICY, {**files, "evidence/.keep": "", "findings/.keep": ""})
    session.hook("SessionStart", source="startup")
    session.asks("Evaluate the controls")
    catalogue = session.repository / "controls"
    for name in CONTROLS:
        expect(f"reads {name}", session.call("Read", file_path=str(catalogue / f"{name}.md"))[0], "allow")
    expect("writes to the catalogue", session.call("Write", file_path=str(catalogue / "AC-2.md"), content="x")[0], "deny")
    with Server(session) as writ:
        ran = writ.call("attest_step", name="evidence-collection", command="cat controls/*.md > evidence/all.txt", materials=["controls"], products=["evidence/all.txt"])
        expect("gathers evidence, as a step", ran["attested"]["standing"], "observed")
        for name in controls:
            found = {"controlId": name, "result": "pass", "evidence": ["evidence/all.txt"], "remediation": None, "remark": CONTROLS[name]}
            told = writ.call("sign_attestation", name="control-assessment", predicateType=KIND, predicate=found, products=["evidence/all.txt"])
            expect(f"assesses {name}", told["attested"]["standing"], "reported by the agent")
        writ.call("sign_attestation", name="finding-generation", predicateType=KIND, predicate={"findings": [], "controls": list(controls)})
    session.stops()
    return session


def judged(session, status, *more):
    with Model(status) as endpoint:
        code, said = session.writ("verify", "--evaluators", "--format", "json", *more, variables=endpoint)
    return code, json.loads(said)


def phases(report, name): return [phase for phase in report["phases"] if phase["name"] == name]


print("every control is assessed")
good = assessed(list(CONTROLS))
good.done("keys", "generate", str(good.folder / "auditor"))
key = next(path for path in (good.folder / "auditor", good.folder / "auditor.pem") if path.exists())
code, report = judged(good, "PASS", "--results", "results.json", "--vsa-key", str(key))
expect("required", [phase["outcome"] for phase in phases(report, "required")], ["passed"])
expect("evaluators, Rego and model", [phase["outcome"] for phase in phases(report, "evaluators")], ["passed", "passed"])
expect("status", report["status"], "verified")
results = json.loads((good.repository / "results.json").read_text())
expect("what evaluators said is signed", results["payloadType"], "application/vnd.in-toto+json")
print("the model finds the assessments superficial")
expect("status", judged(good, "FAIL")[1]["status"], "breached")
print("a control is left out")
code, report = judged(assessed(["AC-2", "IA-5"]), "PASS")
expect("status", (code, report["status"]), (3, "breached"))
rules = phases(report, "evaluators")[0]
expect("the rule names it", "AU-3" in json.dumps(rules["findings"]), True)
