//! Policy documents: what is accepted, what is refused, and where the finger points.

use writ_core::json;
use writ_policy::Policy;

/// Document, then pointer, line, column and a word of the message and help.
const REFUSED: &[(&str, &str, usize, &str)] = &[
    (r#"{"version":"1.0"}"#, "", 1, "missing field `name`"),
    ("{\"version\":\"1.0\",\"name\":\"x\",\n \"tool\":{}}", "/tool", 2, "did you mean `tools`?"),
    ("{\"version\":\"2\",\"name\":\"x\"}", "/version", 1, "write \"1.0\""),
    ("{\"version\":\"1.0\",\"name\":7}", "/name", 1, "expected a string"),
    ("{\"version\":\"1.0\",\"name\":\"x\",\"expires\":\"tomorrow\"}", "/expires", 1, "RFC 3339"),
    ("{\"version\":\"1.0\",\"name\":\"x\",\"files\":{\"deny\":[\"ok\",\"[a\"]}}", "/files/deny/1", 1, "bad glob"),
    ("{\"version\":\"1.0\",\"name\":\"x\",\"tools\":{\"deny\":[\"Bsh\"]}}", "/tools/deny/0", 1, "did you mean `Bash`?"),
    ("{\"version\":\"1.0\",\"name\":\"x\",\"tools\":{\"alow\":[]}}", "/tools/alow", 1, "did you mean `allow`?"),
    (
        "{\"version\":\"1.0\",\"name\":\"x\",\"domains\":{\"allow\":[\"https://x.com\"]}}",
        "/domains/allow/0",
        1,
        "bad domain",
    ),
    ("{\"version\":\"1.0\",\"name\":\"x\",\"limits\":{\"maxTurns\":-1}}", "/limits/maxTurns", 1, "whole number"),
    (
        "{\"version\":\"1.0\",\"name\":\"x\",\"limits\":{\"maxTurns\":{\"value\":1,\"enforcement\":\"failfast\"}}}",
        "/limits/maxTurns/enforcement",
        1,
        "did you mean `fail-fast`?",
    ),
    (
        "{\"version\":\"1.0\",\"name\":\"x\",\"limits\":{\"maxSpendUSD\":10},\"sublayouts\":[{\"name\":\"a\",\"policy\":\"p\",\"limits\":{\"maxSpendUSD\":{\"value\":15}}}]}",
        "/sublayouts/0/limits/maxSpendUSD",
        1,
        "looser",
    ),
    (
        "{\"version\":\"1.0\",\"name\":\"x\",\"functionaries\":[{\"type\":\"keyles\"}]}",
        "/functionaries/0/type",
        1,
        "did you mean `keyless`?",
    ),
    ("{\"version\":\"1.0\",\"name\":\"x\",\"name\":\"y\"}", "", 1, "duplicate"),
    ("{\"version\":\"1.0\",\n\"name\":\"x\",}", "", 2, "strict JSON"),
    ("[]", "", 1, "expected an object"),
    ("", "", 1, "JSON"),
];

#[test]
fn refusals_name_place_and_remedy() {
    for (document, pointer, line, word) in REFUSED {
        let error = Policy::parse(document.as_bytes(), "/w").expect_err(document);
        let problem = error
            .problems()
            .iter()
            .find(|problem| problem.pointer == *pointer)
            .unwrap_or_else(|| panic!("{document}: {error}"));
        assert_eq!(problem.line, *line, "{document}: {error}");
        assert!(problem.message.contains(word) || problem.help.contains(word), "{document}: {problem:?}");
    }
}

#[test]
fn every_problem_is_reported_at_once() {
    let error =
        Policy::parse(br#"{"version":"3","nam":"x","files":{"deny":["{"]}}"#, "/w").expect_err("three problems");
    assert!(error.problems().len() >= 4, "{error}");
}

/// The twin of every refusal: the same document put right.
#[test]
fn the_whole_schema_is_accepted() {
    let example = include_bytes!("../../../examples/feature-search.aflock");
    let policy = Policy::parse(example, "/w").unwrap();
    assert_eq!(policy.name(), "feature-search-implementation");
    let pending = policy.not_enforced();
    assert!(pending.iter().any(|known| known == "/functionaries"), "it is ignored in silence");
    assert!(
        !pending.iter().any(|known| ["/tools", "/files", "/domains", "/expires", "/limits"].contains(&known.as_str()))
    );
    let idle = |more: &str| {
        let text = format!(r#"{{"version":"1.0","name":"x",{more}}}"#);
        Policy::parse(text.as_bytes(), "/w").unwrap().not_enforced().join(" ")
    };
    let deep = [
        (r#""enforce":{"calls":false,"atLeast":"full","limits":{}}"#, "/enforce/atLeast /enforce/limits"),
        (r#""enforce":{"calls":true,"atLeast":"full","limits":{}}"#, ""),
        (r#""attestationsFrom":["turn-*"]"#, "/attestationsFrom"),
        (r#""attestationsFrom":["turn-*"],"evaluators":{"rego":[]}"#, ""),
        (r#""consequences":{"deny":4,"attestHashOnly":true}"#, "/consequences/attestHashOnly"),
        (r#""consequences":{"attest":true,"attestHashOnly":true}"#, ""),
        (r#""tools":{"deny":["TodoWrite:x","Bash:x"],"allow":["TodoWrite:x"]}"#, "/tools/deny/0"),
        (r#""tools":{"deny":["mcp__srv__"],"requireApproval":["mcp____x"]}"#, "/tools/deny/0 /tools/requireApproval/0"),
        (r#""tools":{"deny":["mcp__srv","mcp__srv__*"],"allow":["mcp__srv__"]}"#, ""),
        (r#""tools":{"deny":["Read:$HOME/.ssh/**","Read:~/.ssh/**","Bash:echo $HOME/*"]}"#, "/tools/deny/0"),
        (
            r#""files":{"deny":["$HOME/.ssh/**","${HOME}/x","~root/x","file:///etc/passwd"]}"#,
            "/files/deny/0 /files/deny/1 /files/deny/2 /files/deny/3",
        ),
        (
            r#""files":{"readOnly":["%USERPROFILE%/x","C:/x","Read(src/**)"]}"#,
            "/files/readOnly/0 /files/readOnly/1 /files/readOnly/2",
        ),
        (r#""files":{"deny":["~/.ssh/**","a$b","50%/x","src/(x)/**","/c:/x","**/*~","x:y"],"allow":["$HOME/**"]}"#, ""),
        (r#""files":{"deny":["**/.env","!$HOME/.env"]}"#, ""),
        (r#""identity":{"standing":"observed","requiredTools":["Read"]}"#, "/identity/standing"),
        (r#""identity":{"standing":"observed","allowedModels":["m"]}"#, ""),
        (r#""sublayouts":[{"name":"a","policy":"a.aflock","limits":{"maxTurns":2},"inherit":["files"]}]"#, ""),
    ];
    for (more, expected) in deep {
        assert_eq!(idle(more), expected, "{more}");
    }
    let allowed = br#"{"version":"1.0","name":"x","tools":{"allow":["mcp__srv__"]}}"#;
    assert!(Policy::parse(allowed, "/w").unwrap().warnings().concat().contains("names no tool"));
    let full = br#"{"$schema":"x","version":"1.0","name":"x","extends":"base.aflock","identity":{"allowedModels":["m"],"deniedTools":["Bash"]},
        "grants":{"secrets":{"allow":["vault:x"]}},"materialsFrom":{"session":{"path":"p","merkleRoot":"sha512:@128","algorithm":"sha512",
        "constraints":{"maxTurnDistance":5,"requireContiguousTurns":true}},"git":{"treeHash":"@40","branch":"b"},
        "artifacts":[{"name":"a","digest":{"sha256":"@64"},"uri":"file:x"}],"sublayoutSessions":{"a":{"merkleRoot":"@64","spawnedAtTurn":2}}},
        "limits":{"maxTurns":3,"maxSpendUSD":{"value":1.5,"enforcement":"post-hoc"}},
        "sublayouts":[{"name":"a","policy":{"version":"1.0","name":"in"},"policyDigest":{"sha256":"@64"},"limits":{"maxTurns":2},"inherit":["files"]}]}"#;
    let digests = |text: &str| {
        ["40", "64", "128"].iter().fold(text.to_owned(), |text, digits| {
            text.replace(&format!("@{digits}"), &"a".repeat(digits.parse().unwrap()))
        })
    };
    Policy::parse(digests(std::str::from_utf8(full).unwrap()).as_bytes(), "/w").unwrap();
}

/// What has the right shape and still says nothing that could hold: the rule's word, the pointer, and a twin that is fine.
#[test]
fn what_no_policy_can_mean_is_refused() {
    let sha = "a".repeat(64);
    let money = |amount: &str| format!(r#""limits":{{"maxSpendUSD":{amount}}}"#);
    let rego = |text: &str| format!(r#""evaluators":{{"rego":[{{"name":"r","policy":"{text}"}}]}}"#);
    let digest = |text: &str| format!(r#""sublayouts":[{{"name":"a","policy":"a.aflock","policyDigest":{text}}}]"#);
    let twice = |one: &str, two: &str| {
        format!(r#""sublayouts":[{{"name":"{one}","policy":"a"}},{{"name":"{two}","policy":"b"}}]"#)
    };
    let enforced = |more: &str, domains: &str| format!(r#""enforce":{{"calls":true,{more}}},"domains":{domains}"#);
    let network = |more: &str| enforced(&format!(r#""network":{{{more}}}"#), r#"{"allow":["*.x.example"]}"#);
    let limits = |more: &str| enforced(&format!(r#""limits":{{{more}}}"#), "{}");
    let bind = |from: &str, host: &str, allow: &str, more: &str| {
        let bound = format!(r#"{{"name":"TOKEN","from":"{from}","hosts":["{host}"]}}"#);
        format!(r#""grants":{{"secrets":{{"bind":[{bound}]{more}}}}},"domains":{allow}"#)
    };
    let allowed = r#"{"allow":["*.x.example"]}"#;
    let good = || bind("env:TOKEN", "a.x.example", allowed, "");
    let from = "/grants/secrets/bind/0/from";
    let host = "/grants/secrets/bind/0/hosts/0";
    let cases = [
        ("bad-secret", from, bind("vault:x", "a.x.example", allowed, ""), good()),
        ("bad-secret", from, bind("env:1X", "a.x.example", allowed, ""), bind("file:~/x", "a.x.example", allowed, "")),
        ("bad-secret", host, bind("env:TOKEN", "x.example", allowed, ""), good()),
        ("bad-secret", host, bind("env:TOKEN", "*", r#"{"allow":["*"]}"#, ""), good()),
        ("bad-secret", host, bind("env:TOKEN", "a.x.example", r#"{"deny":["a.x.example"]}"#, ""), good()),
        ("bad-secret", "/grants/secrets/bind/0", bind("env:TOKEN", "a.x.example", "{}", ""), good()),
        ("bad-secret", from, bind("env:TOKEN", "a.x.example", allowed, r#","deny":["env:*"]"#), good()),
        (
            "bad-secret",
            from,
            bind("env:TOKEN", "a.x.example", allowed, r#","allow":["env:GH_*"]"#),
            bind("env:GH_TOKEN", "a.x.example", allowed, r#","allow":["env:GH_*"]"#),
        ),
        (
            "bad-network",
            "/enforce/network",
            enforced(r#""network":{"loopback":[5432]}"#, "{}"),
            network(r#""loopback":[5432]"#),
        ),
        ("bad-network", "/enforce/network/loopback/0", network(r#""loopback":[0]"#), network(r#""loopback":[65535]"#)),
        (
            "bad-network",
            "/enforce/network/private/0/range",
            network(r#""private":[{"range":"10.0.0.1/8","hosts":["*"]}]"#),
            network(r#""private":[{"range":"10.0.0.0/8","hosts":["*"]}]"#),
        ),
        (
            "bad-network",
            "/enforce/network/limits/0",
            network(r#""limits":[{"hosts":["*"]}]"#),
            network(r#""limits":[{"hosts":["*"],"bytesUp":0}]"#),
        ),
        (
            "bad-domain",
            "/enforce/network/ports/0/hosts",
            network(r#""ports":[{"hosts":[],"port":22,"protocol":"opaque"}]"#),
            network(r#""ports":[{"hosts":["a.x.example"],"port":22,"protocol":"opaque"}]"#),
        ),
        ("bad-limit", "/enforce/limits/memoryMiB", limits(r#""memoryMiB":0"#), limits(r#""memoryMiB":1"#)),
        ("bad-limit", "/enforce/limits/openFiles", limits(r#""openFiles":7"#), limits(r#""openFiles":8"#)),
        ("bad-amount", "/limits/maxSpendUSD", money("0.0000001"), money("0.000001")),
        ("bad-amount", "/limits/maxSpendUSD/value", money(r#"{"value":1.0000005}"#), money(r#"{"value":1.000005}"#)),
        ("bad-rego", "/evaluators/rego/0/policy", rego("deny[m] { true }"), rego("package a\\ndeny[m] { true }")),
        ("bad-rego", "/evaluators/rego/0/policy", rego("package a\\ndeny {"), rego("rules/deny.rego")),
        (
            "bad-digest",
            "/sublayouts/0/policyDigest/sha256",
            digest(r#"{"sha256":"zz"}"#),
            digest(&format!(r#"{{"sha256":"{sha}"}}"#)),
        ),
        (
            "bad-digest",
            "/sublayouts/0/policyDigest/sha256",
            digest(r#"{"sha256":"abc123"}"#),
            digest(&format!(r#"{{"sha256":"sha256:{sha}"}}"#)),
        ),
        (
            "bad-digest",
            "/sublayouts/0/policyDigest/md5",
            digest(&format!(r#"{{"md5":"{sha}"}}"#)),
            digest(&format!(r#"{{"sha256":"{sha}"}}"#)),
        ),
        (
            "bad-digest",
            "/functionaries/0/publickeyid",
            r#""functionaries":[{"type":"publickey","publickeyid":"sha256:abc"}]"#.to_owned(),
            r#""functionaries":[{"type":"publickey","publickeyid":"abc"}]"#.to_owned(),
        ),
        ("bad-digest", "/sublayouts/0/policyDigest", digest("{}"), digest(&format!(r#"{{"sha256":"{sha}"}}"#))),
        (
            "missing-field",
            "/sublayouts/0/policy",
            r#""sublayouts":[{"name":"a","policy":"{\"version\":\"1.0\"}"}]"#.to_owned(),
            r#""sublayouts":[{"name":"a","policy":"{\"version\":\"1.0\",\"name\":\"b\"}"}]"#.to_owned(),
        ),
        (
            "looser-limit",
            "/sublayouts/0/policy",
            r#""limits":{"maxTurns":1},"sublayouts":[{"name":"a","policy":"{\"version\":\"1.0\",\"name\":\"b\",\"limits\":{\"maxTurns\":2}}"}]"#.to_owned(),
            r#""limits":{"maxTurns":2},"sublayouts":[{"name":"a","policy":"{\"version\":\"1.0\",\"name\":\"b\",\"limits\":{\"maxTurns\":2}}"}]"#.to_owned(),
        ),
        (
            "bad-digest",
            "/sublayouts/0/policyDigest/sha256",
            digest(&format!(r#"{{"sha256":"sha512:{sha}"}}"#)),
            digest(&format!(r#"{{"sha256":"{}"}}"#, sha.to_uppercase())),
        ),
        ("bad-amount", "/limits/maxSpendUSD/value", money(r#"{"value":1e-9}"#), money(r#"{"value":0.000002}"#)),
        ("bad-domain", "/domains/deny/0", r#""domains":{"deny":["::zz"]}"#.to_owned(), r#""domains":{"deny":["::1"]}"#.to_owned()),
        (
            "bad-domain",
            "/domains/deny/0",
            format!(r#""domains":{{"deny":["{sha}.com"]}}"#),
            format!(r#""domains":{{"deny":["{}.com"]}}"#, "a".repeat(63)),
        ),
        ("bad-reference", "/extends", r#""extends":"https://""#.to_owned(), r#""extends":"oci://a/b:1""#.to_owned()),
        ("bad-amount", "/limits/maxSpendUSD", money("1e300"), money("1e6")),
        ("bad-reference", "/extends", r#""extends":"http://a/b""#.to_owned(), r#""extends":"https://a/b""#.to_owned()),
        (
            "bad-reference",
            "/evaluators/grpc/0/endpoint",
            r#""evaluators":{"grpc":[{"name":"a","endpoint":"h:99999"}]}"#.to_owned(),
            r#""evaluators":{"grpc":[{"name":"a","endpoint":"h:9999"}]}"#.to_owned(),
        ),
        (
            "empty-name",
            "/evaluators/ai/0/prompt",
            r#""evaluators":{"ai":[{"name":"a","prompt":" "}]}"#.to_owned(),
            r#""evaluators":{"ai":[{"name":"a","prompt":"PASS if"}]}"#.to_owned(),
        ),
        (
            "empty-name",
            "/identity/allowedModels/0",
            r#""identity":{"allowedModels":["\u200b"]}"#.to_owned(),
            r#""identity":{"allowedModels":["m"]}"#.to_owned(),
        ),
        (
            "unknown-tool",
            "/identity/requiredTools/0",
            r#""identity":{"requiredTools":["Bsh"]}"#.to_owned(),
            r#""identity":{"requiredTools":["Bash"]}"#.to_owned(),
        ),
        (
            "duplicate-name",
            "/requiredAttestations/1",
            r#""requiredAttestations":["a","a"]"#.to_owned(),
            r#""requiredAttestations":["a","b"]"#.to_owned(),
        ),
        (
            "bad-glob",
            "/attestationsFrom/0",
            r#""attestationsFrom":["[a"]"#.to_owned(),
            r#""attestationsFrom":["a-*"]"#.to_owned(),
        ),
        (
            "bad-domain",
            "/domains/deny/0",
            r#""domains":{"deny":["-a.com"]}"#.to_owned(),
            r#""domains":{"deny":["a-b.com"]}"#.to_owned(),
        ),
        ("duplicate-name", "/sublayouts/1/name", twice("a", "a"), twice("a", "b")),
        ("empty-name", "/sublayouts/0/name", twice(" ", "b"), twice("a", "b")),
        (
            "bad-date",
            "/expires",
            r#""expires":"2027-02-30T00:00:00Z""#.to_owned(),
            r#""expires":"2027-02-28T00:00:00Z""#.to_owned(),
        ),
    ];
    for (rule, pointer, bad, good) in cases {
        let document = |members: &str| format!(r#"{{"version":"1.0","name":"x",{members}}}"#);
        Policy::parse(document(&good).as_bytes(), "/w").unwrap_or_else(|error| panic!("{good}: {error}"));
        let error = Policy::parse(document(&bad).as_bytes(), "/w").expect_err(&bad);
        assert!(
            error.problems().iter().any(|problem| (problem.rule, problem.pointer.as_str()) == (rule, pointer)),
            "{bad}: {error:?}"
        );
    }
    let error = Policy::parse(br#"{"version":"1.0","name":"  "}"#, "/w").expect_err("no name");
    assert_eq!(error.problems()[0].rule, "empty-name");
}

/// Files are looked for where the caller says, and only those that the policy names.
#[test]
fn files_that_a_policy_names_have_to_be_there() {
    let document = br#"{"version":"1.0","name":"x","extends":"./base.aflock","evaluators":{"rego":[{"name":"r","policy":"deny.rego"}]}}"#;
    let policy = Policy::parse(document, "/w").unwrap();
    let base = br#"{"version":"1.0","name":"base"}"#;
    let there = |file: &str| match file {
        "./base.aflock" => Some(base.to_vec()),
        "deny.rego" => Some(b"package a\ndeny[m] { m := 1 }".to_vec()),
        _ => None,
    };
    policy.check_files(document, there).unwrap();
    let error = policy.check_files(document, |file| there(file).filter(|_| file == "deny.rego")).expect_err("no base");
    assert_eq!((error.problems()[0].rule, error.problems()[0].pointer.as_str()), ("missing-file", "/extends"));
    let remote = br#"{"version":"1.0","name":"x","extends":"https://example.com/base.aflock"}"#;
    Policy::parse(remote, "/w").unwrap().check_files(remote, |_| None).unwrap();
}

/// A file that is there has to be what it is named for.
#[test]
fn files_that_a_policy_names_are_read() {
    let child = br#"{"version":"1.0","name":"child"}"#;
    let digest = writ_core::Digest::of(child).hex();
    let document = |digest: &str| {
        format!(
            r#"{{"version":"1.0","name":"x","evaluators":{{"rego":[{{"name":"r","policy":"r.rego"}}]}},"sublayouts":[{{"name":"s","policy":"s.aflock","policyDigest":{{"sha256":"{digest}"}}}}]}}"#
        )
    };
    let rego = b"package a\ndeny[m] { m := 1 }";
    /// A name, what stands there, what is pinned, and what is said.
    type Case<'a> = (&'a str, &'a [u8], &'a [u8], Option<&'a str>);
    let cases: [Case<'_>; 5] = [
        (&digest, rego, child, None),
        (&digest, b"package a\ndeny[m] { m := }", child, Some("bad-rego")),
        (&digest, rego, b"{", Some("bad-policy")),
        (&"0".repeat(64), rego, child, Some("other-digest")),
        // What is signed is checked when it governs.
        (&"0".repeat(64), rego, br#"{"payloadType":"x"}"#, None),
    ];
    for (digest, rego, child, rule) in cases {
        let text = document(digest);
        let policy = Policy::parse(text.as_bytes(), "/w").unwrap();
        let read = |file: &str| Some(if file == "r.rego" { rego.to_vec() } else { child.to_vec() });
        let found = policy.check_files(text.as_bytes(), read);
        assert_eq!(found.err().map(|error| error.problems()[0].rule), rule, "{text}");
    }
    let nested = br#"{"version":"1.0","name":"x","sublayouts":[{"name":"s","policy":{"version":"1.0","name":"y","extends":"./z"}}]}"#;
    let policy = Policy::parse(nested, "/w").unwrap();
    let missing = policy.check_files(nested, |_| None).expect_err("the child's parent");
    assert_eq!(missing.problems()[0].pointer, "/sublayouts/0/policy/extends");
    let itself = policy.check_files(nested, |_| Some(nested.to_vec())).expect_err("a circle");
    assert_eq!(itself.problems()[0].rule, "bad-reference");
}

#[test]
fn the_shipped_schema_is_the_generated_one() {
    let shipped = include_str!("../../../spec/policy.schema.json");
    let same = json::pretty(&Policy::schema()) + "\n" == shipped;
    assert!(same, "run `writ policy schema > spec/policy.schema.json`");
}
