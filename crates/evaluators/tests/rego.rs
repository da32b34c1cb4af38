//! Rego as modules are run: each rule of the aflock specification, what people often write instead, and what has no end.
#![expect(clippy::unwrap_used, reason = "a step that fails fails the test")]

use writ_core::json::{self, Value};
use writ_evaluators::input::{Statement, build};
use writ_evaluators::rego::{Job, Said, run};

/// Three turns: what they cost, used and wrote.
fn input(policy: &str) -> String {
    let turn = |number: u64, cost: f64, allowed: bool, written: &str| Statement {
        name: format!("turn-{number}"),
        also: None,
        document: json::parse(
            format!(
                r#"{{"predicate":{{"turn":{number},"metrics":{{"costUSD":{cost},"tokensIn":1000,"tokensOut":200}},
                "tools":[{{"name":"Write","allowed":{allowed}}}],"files":{{"written":["{written}"]}}}}}}"#
            )
            .as_bytes(),
        )
        .unwrap(),
    };
    let statements = [
        turn(1, 0.25, true, "src/a.rs"),
        turn(2, 0.5, false, "secrets/prod/key.pem"),
        turn(9, 0.125, true, "src/b.rs"),
    ];
    build(&json::parse(policy.as_bytes()).unwrap(), &statements).text
}

const POLICY: &str = r#"{"attestationsFrom":["turn-*"],"limits":{"maxSpendUSD":{"value":0.5},"maxTokensIn":{"value":2000},"maxTurns":{"value":2}},
    "files":{"deny":["secrets/**"]},"materialsFrom":{"session":{"constraints":{"maxTurnDistance":5}}}}"#;
const HEAD: &str = "package agentflow\nimport rego.v1\nturns := [t | some t in input.attestationsFrom[\"turn-*\"]]\n";

fn said(module: &str) -> Said {
    run(&Job { place: ".aflock/evaluators/rego/0".to_owned(), module: module.to_owned(), input: input(POLICY) })
}

fn denied(rule: &str) -> Vec<String> {
    let said = said(&format!("{HEAD}{rule}"));
    assert_eq!(said.error, None, "{rule}");
    said.denied
}

#[test]
fn each_rule_of_the_specification_says_what_it_says_there() {
    let sums = "sum_spend := sum([t.predicate.metrics.costUSD | some t in turns])\n\
                sum_tokens_in := sum([t.predicate.metrics.tokensIn | some t in turns])\n\
                sum_tool_calls := sum([count(t.predicate.tools) | some t in turns])\n";
    for (rule, expected) in [
        (
            "deny contains msg if {\n sum_spend > input.policy.limits.maxSpendUSD.value\n \
             msg := sprintf(\"Cumulative spend $%.2f exceeds limit $%.2f\", [sum_spend, input.policy.limits.maxSpendUSD.value])\n}",
            vec!["Cumulative spend $0.88 exceeds limit $0.50"],
        ),
        (
            "deny contains msg if {\n sum_tokens_in > input.policy.limits.maxTokensIn.value\n \
             msg := sprintf(\"Cumulative input tokens %d exceeds limit %d\", [sum_tokens_in, input.policy.limits.maxTokensIn.value])\n}",
            vec!["Cumulative input tokens 3000 exceeds limit 2000"],
        ),
        (
            "deny contains msg if {\n count(turns) > input.policy.limits.maxTurns.value\n \
             msg := sprintf(\"Turn count %d exceeds limit %d\", [count(turns), input.policy.limits.maxTurns.value])\n}",
            vec!["Turn count 3 exceeds limit 2"],
        ),
        (
            "deny contains msg if {\n some t in turns\n some tool in t.predicate.tools\n not tool.allowed\n \
             msg := sprintf(\"Turn %d used disallowed tool %s\", [t.predicate.turn, tool.name])\n}",
            vec!["Turn 2 used disallowed tool Write"],
        ),
        (
            "deny contains msg if {\n some t in turns\n some f in t.predicate.files.written\n file_denied(f)\n \
             msg := sprintf(\"Turn %d wrote to denied path %s\", [t.predicate.turn, f])\n}\n\
             file_denied(path) if {\n some pattern in input.policy.files.deny\n glob.match(pattern, [], path)\n}",
            vec!["Turn 2 wrote to denied path secrets/prod/key.pem"],
        ),
        ("deny contains msg if { sum_tool_calls > 3; msg := \"many\" }", vec![]),
        // The rule of distances, with the function that Rego has.
        (
            "deny contains msg if {\n some i in numbers.range(1, count(turns) - 1)\n current := turns[i]\n previous := turns[i-1]\n \
             distance := current.predicate.turn - previous.predicate.turn\n \
             distance > input.policy.materialsFrom.session.constraints.maxTurnDistance\n msg := sprintf(\"Turn gap %d exceeds max distance %d\",\n \
             [distance, input.policy.materialsFrom.session.constraints.maxTurnDistance])\n}",
            vec!["Turn gap 7 exceeds max distance 5"],
        ),
    ] {
        assert_eq!(denied(&format!("{sums}{rule}")), expected, "{rule}");
    }
    // The example of the specification, as a policy writes it in one line, and its short form of before Rego 1.0.
    let module = "package agentflow\nimport rego.v1\nsum_spend := sum([t.predicate.metrics.costUSD | some t in input.attestationsFrom[\"turn-*\"]])\n\
        deny contains msg if { sum_spend > input.limits.maxSpendUSD.value; msg := sprintf(\"Spend $%.2f exceeds limit $%.2f\", [sum_spend, \
        input.limits.maxSpendUSD.value]) }";
    assert_eq!(said(module).denied, ["Spend $0.88 exceeds limit $0.50"]);
    assert_eq!(
        said("package agentflow\ndeny[msg] { input.limits.maxTurns.value < 3; msg := \"few\" }").denied,
        ["few"]
    );
}

#[test]
fn what_is_no_rule_is_told_with_its_line_and_what_to_write() {
    for (module, place, told) in [
        // The rule of distances as the specification writes it.
        ("deny contains msg if {\n some i in range(1, count(turns))\n msg := \"x\"\n}", ":5:", "numbers.range"),
        // The OSCAL example subtracts a set from a list.
        (
            "missing := [1] - {1}\ndeny contains msg if { count(missing) > 0; msg := \"m\" }",
            ":4:",
            "{x | some x in list}",
        ),
        ("deny contains msg if { msg := sprintf(\"%5.2f\", [1.5]) }", ":4:", "`%v`"),
        ("deny contains msg if { time.now_ns() > 1; msg := \"m\" }", ":4:", "the clock"),
        ("deny contains msg if { http.send({}).x; msg := \"m\" }", ":4:", "the world"),
        ("deny contains msg if { rand.intn(\"a\", 3) > 1; msg := \"m\" }", ":4:", "the world"),
        ("deny contains msg if { opa.runtime().x; msg := \"m\" }", ":4:", "the world"),
        ("deny contains msg if { glob.match(\"[a\", [], \"a\"); msg := \"m\" }", ":4:", "not closed"),
        ("deny contains msg if { msg := }", ":4:", "expecting"),
        ("allow if { true }", "rego/0: ", "`deny contains msg if"),
    ] {
        let said = said(&format!("{HEAD}{module}"));
        let error = said.error.unwrap_or_else(|| panic!("{module}: {:?}", said.denied));
        assert!(
            error.starts_with(".aflock/evaluators/rego/0") && error.contains(place) && error.contains(told),
            "{error}"
        );
    }
    let v1 = said("package a\nimport rego.v1\ndeny[msg] { msg := \"x\" }").error.unwrap();
    assert!(v1.contains(":3:") && v1.contains("deny contains msg if"), "{v1}");
}

#[test]
fn what_a_deny_holds_is_told_whatever_its_shape() {
    assert_eq!(denied("deny if { true }"), ["`deny` is true"]);
    assert!(denied("deny if { false }").is_empty());
    assert_eq!(denied("deny contains {\"msg\": \"why\", \"n\": 1} if { true }"), ["why"]);
    assert_eq!(denied("deny := [\"a\", \"b\"]"), ["a", "b"]);
    assert!(matches!(json::parse(input(POLICY).as_bytes()).unwrap(), Value::Object(_)));
}

/// What can make nothing of an operand is an error with its line: undefined, the rule would say nothing.
#[test]
fn a_builtin_that_can_make_nothing_of_an_operand_is_no_pass() {
    for asked in [
        "units.parse_bytes(\"1ZZ\") > 10",
        "units.parse(\"1ZZ\") > 10",
        "regex.replace(\"secret\", \"(\", \"\") != \"z\"",
        "array.slice(turns, 0, 1e30)[0].predicate.turn == 1",
        "array.slice(turns, 0, 1.5)[0].predicate.turn == 1",
        "bits.rsh(1, 4294967296) == 0",
        "bits.lsh(1, 100000000000) > 5",
    ] {
        let said = said(&format!("{HEAD}deny contains \"x\" if {asked}"));
        let error = said.error.unwrap_or_default();
        assert!(
            said.denied.is_empty() && error.contains(":4:") && error.contains("can make nothing of"),
            "{asked}: {error}"
        );
    }
    let sound = "units.parse_bytes(\"2KiB\") == 2048; units.parse(\"2K\") == 2000; regex.replace(\"aXa\", \"X\", \"-\") == \"a-a\"\n\
                 array.slice([1, 2, 3], 1, 9) == [2, 3]; bits.lsh(1, 70) == 1180591620717411303424; bits.rsh(8, 2) == 2";
    assert_eq!(denied(&format!("deny contains \"all\" if {{ {sound} }}")), ["all"]);
}
