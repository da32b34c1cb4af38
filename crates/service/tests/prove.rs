//! Whether a child is ever allowed more than its base: the solver's word against every request of a small world.

#![expect(clippy::unwrap_used, reason = "a step that fails fails the test")]

use writ_agentfile::cedar::{Request, known_action};
use writ_agentfile::ceiling::Level;
use writ_agentfile::{Options, lint};
use writ_core::json::Value;
use writ_service::prove::prove;

const TOOLS: [&str; 3] = ["read", "write", "shell"];
const PATHS: [&str; 3] = ["/w/*", "/w/secret/*", "*"];
const HOSTS: [&str; 2] = ["api.example", "b.example"];

/// Numbers that are the same in every run.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, most: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % most as u64).unwrap()
    }
}

/// A policy: its effect, its tool or host, and the paths it is for.
#[derive(Clone)]
struct Piece {
    effect: &'static str,
    on: usize,
    path: usize,
}

impl Piece {
    fn random(numbers: &mut Numbers) -> Self {
        let effect = if numbers.below(3) == 0 { "forbid" } else { "permit" };
        Self { effect, on: numbers.below(TOOLS.len() + HOSTS.len()), path: numbers.below(PATHS.len()) }
    }

    fn cedar(&self) -> String {
        let Self { effect, on, path } = self;
        match TOOLS.get(*on) {
            Some(tool) => format!(
                "{effect}(principal, action == AgentRC::Action::\"tool.invoke\", resource == AgentRC::Tool::\"{tool}\") when {{ context.path like \"{}\" }};\n",
                PATHS.get(*path).unwrap()
            ),
            None => format!(
                "{effect}(principal, action == AgentRC::Action::\"network.egress\", resource == AgentRC::Host::\"{}\");\n",
                HOSTS.get(on - TOOLS.len()).unwrap()
            ),
        }
    }
}

fn level(name: &str, pieces: &[Piece]) -> Level {
    let tools: String = TOOLS.iter().map(|tool| format!("TOOL utcp:{tool}\n")).collect();
    let cedar: String = pieces.iter().map(Piece::cedar).collect();
    let hosts: String = HOSTS.iter().map(|host| format!("URL https://{host}\n")).collect();
    let text = format!("AGENT {name}\nAUDIT basic\n{tools}{hosts}POLICY\n{cedar}END\n");
    let linted = lint(text.as_bytes(), name, &Options::default());
    assert!(!linted.has_errors(), "{:?}\n{text}", linted.found);
    Level::of(linted)
}

/// A request that the child is allowed and the base is not, among all of the small world.
fn wider(child: &Level, base: &Level) -> Option<String> {
    let mut requests = Vec::new();
    for tool in TOOLS {
        for path in ["/w/a", "/w/secret/a", "/x", ""] {
            let mut request = Request::new(known_action("tool.invoke").unwrap(), tool);
            request.context.push("path", Value::from(path));
            requests.push((format!("{tool} {path}"), request));
        }
    }
    for host in HOSTS {
        requests.push((host.to_owned(), Request::new(known_action("network.egress").unwrap(), host)));
    }
    let wider = |request: &Request| {
        let held = base.decide(child.agent.name_or_default(), request).is_allowed();
        child.rules.decide(&child.agent, request).is_allowed() && !held
    };
    requests.into_iter().find(|(_, request)| wider(request)).map(|(name, _)| name)
}

#[test]
fn the_solver_agrees_with_every_request_of_a_small_world() {
    let mut numbers = Numbers(0x5eed_1234_5678_9abc);
    let (mut refuted, mut proved) = (0, 0);
    while refuted < 100 {
        let pieces: Vec<Piece> = (0..2 + numbers.below(4)).map(|_| Piece::random(&mut numbers)).collect();
        let mut other = pieces.clone();
        // A child that has one policy less, one more, or one for other paths.
        let at = numbers.below(other.len());
        match numbers.below(3) {
            0 => drop(other.remove(at)),
            1 => other.push(Piece::random(&mut numbers)),
            _ => other[at].path = numbers.below(PATHS.len()),
        }
        let (base, child) = (level("base", &pieces), level("child", &other));
        let answers = prove(&child, &base).unwrap();
        let told = |word: &str| answers.iter().any(|answer| answer.result == word);
        let text = || format!("{answers:?}\n{}\n{}", base.agent.text, child.agent.text);
        match wider(&child, &base) {
            Some(request) => assert!(told("refuted"), "{request} is wider: {}", text()),
            None => assert!(!told("unknown"), "{}", text()),
        }
        if told("refuted") {
            refuted += 1;
            let shown = answers.iter().filter(|answer| answer.result == "refuted");
            assert!(shown.into_iter().all(|answer| answer.counterexample.is_some()), "{}", text());
        } else {
            proved += 1;
        }
    }
    assert!(proved > 20, "{proved} were proved");
}

fn one(name: &str, lines: &str) -> Level {
    let linted = lint(format!("AGENT {name}\nAUDIT basic\n{lines}").as_bytes(), name, &Options::default());
    assert!(!linted.has_errors(), "{:?}\n{lines}", linted.found);
    Level::of(linted)
}

fn result(child: &Level, base: &Level, action: &str) -> &'static str {
    let answers = prove(child, base).unwrap();
    let answer = answers.iter().find(|answer| answer.action == action).unwrap();
    let shown = answer.counterexample.as_ref().map(|shown| Request::parse(writ_core::json::compact(shown).as_bytes()));
    if let Some(Ok(request)) = shown.filter(|_| answer.result == "refuted") {
        assert!(child.rules.decide(&child.agent, &request).is_allowed(), "{answer:?}");
        assert!(!base.decide(child.agent.name_or_default(), &request).is_allowed(), "{answer:?}");
    }
    answer.result
}

/// A sum that is too large errs, and that denies, on either side.
#[test]
fn what_is_too_large_is_denied() {
    const MOST: &str = "9223372036854775807";
    let policy = |effect: &str, when: &str| {
        format!("{effect}(principal, action == AgentRC::Action::\"tool.invoke\", resource) when {{ {when} }};\n")
    };
    let agent =
        |name: &str, policies: &[String]| one(name, &format!("TOOL utcp:x\nPOLICY\n{}END\n", policies.concat()));
    let small = policy("permit", "context.count <= 0");
    for (child, base, wanted) in [
        // Where the count is above 0, the sum errs: the child allows none of them.
        (
            vec![policy("permit", "true"), policy("forbid", &format!("context.count + {MOST} < 0"))],
            vec![small.clone()],
            "proved",
        ),
        (
            vec![policy("permit", "true"), policy("forbid", &format!("context.count + {MOST} < -5"))],
            vec![policy("permit", "context.count < 0")],
            "refuted",
        ),
        (vec![policy("permit", &format!("context.count + {MOST} > 0"))], vec![small.clone()], "proved"),
        (vec![policy("permit", &format!("-{MOST} - context.count <= 0"))], vec![small.clone()], "refuted"),
        (vec![policy("permit", &format!("-{MOST} - 1 - context.count <= 0"))], vec![small.clone()], "proved"),
        (
            vec![policy("permit", "context.count * 4000 == 8000")],
            vec![policy("permit", "context.count == 2")],
            "proved",
        ),
        (
            vec![policy("permit", "context.count * 4000 >= 8000")],
            vec![policy("permit", "context.count == 2")],
            "refuted",
        ),
        // What the base's sum denies, the child has to deny, too.
        (
            vec![policy("permit", "context.count >= 0")],
            vec![policy("permit", &format!("context.count + {MOST} > 0"))],
            "refuted",
        ),
        (vec![small.clone()], vec![policy("permit", &format!("context.count + {MOST} >= 0 || true"))], "proved"),
    ] {
        let (child, base) = (agent("child", &child), agent("base", &base));
        assert_eq!(result(&child, &base, "tool.invoke"), wanted, "{}\n{}", child.agent.text, base.agent.text);
    }
}

/// A host is declared by the scheme and the port that reach it.
#[test]
fn a_host_is_asked_about_by_scheme_and_port() {
    for (child, base, wanted) in [
        ("URL https://h.example\n", "URL https://h.example/path\n", "proved"),
        ("URL https://h.example\n", "URL https://h.example\nURL https://h.example:8443\n", "proved"),
        ("URL https://h.example:8443\n", "URL https://h.example\n", "refuted"),
        ("URL http://h.example\n", "URL https://h.example\n", "refuted"),
    ] {
        assert_eq!(result(&one("child", child), &one("base", base), "network.egress"), wanted, "{child}{base}");
    }
}
