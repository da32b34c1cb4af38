//! Documents that are no plans, or mean harm.

use std::time::{Duration, Instant};

use proptest::prelude::*;
use writ_consequence::Verdict;
use writ_consequence::terraform::{PlanError, evaluate};
use writ_core::json::{Limits, Value, compact, parse_with, to_compact};

use super::made::{create, delete, json, plan, report, update};

#[test]
fn errors_say_what_is_wrong() {
    let error = |text: &str| evaluate(&json(text), None).unwrap_err();
    assert_eq!(error("[]"), PlanError::NotAPlan { found: "array" });
    assert_eq!(error("{}"), PlanError::NotAPlan { found: "no `format_version`" });
    assert_eq!(error(r#"{"version":4,"lineage":"x","serial":1}"#), PlanError::NotAPlan { found: "a state file" });
    assert_eq!(error(r#"{"format_version":"1.0","values":{}}"#), PlanError::NotAPlan { found: "a state" });
    for version in ["2.0", "10.0", "01.0", "-1", ""] {
        let text = format!(r#"{{"format_version":"{version}","resource_changes":[]}}"#);
        assert_eq!(error(&text), PlanError::UnsupportedVersion { version: version.to_owned() });
    }
    for bad in
        ["1", "{}", "[1]", r#"[{"address":"a"}]"#, r#"[{"address":"a.b","type":"a","change":{"actions":"delete"}}]"#]
    {
        let text = format!(r#"{{"format_version":"1.2","resource_changes":{bad}}}"#);
        assert!(matches!(error(&text), PlanError::Malformed { .. }), "{bad}");
    }
    let many = vec!["1"; 200_001].join(",");
    assert!(matches!(
        error(&format!(r#"{{"format_version":"1.2","resource_changes":[{many}]}}"#)),
        PlanError::TooLarge { .. }
    ));
    assert_eq!(evaluate(&plan("", ""), Some(&json("{}"))), Err(PlanError::NotAState));
}

#[test]
fn hostile_plans_are_bounded() {
    let start = Instant::now();
    // One attribute of 2 MB, one of 200,000 members, drift out of order, addresses of brackets, everybody with one name.
    let wide: Vec<String> = (0..200_000).map(|n| format!(r#""k{n}":0"#)).collect();
    let back: Vec<String> = (0..200_000).rev().map(|n| format!(r#""k{n}":1"#)).collect();
    let (wide, back) = (format!("{{{}}}", wide.join(",")), format!("{{{}}}", back.join(",")));
    let drift = format!(r#","resource_drift":[{}]"#, update("aws_s3_bucket.w", &wide, &back));
    assert_eq!(report(&[delete("aws_s3_bucket.w", &wide)], &drift).verdict(), Verdict::Block);
    let same: Vec<String> = (0..5_000)
        .map(|n| delete(&format!("aws_db_snapshot.s{n}"), r#"{"id":"same-name","db_instance_identifier":"same-name"}"#))
        .chain(
            (0..5_000)
                .map(|n| delete(&format!("aws_db_instance.d{n}"), r#"{"id":"same-name","kms_key_id":"same-name"}"#)),
        )
        .chain((0..1_000).map(|n| delete(&format!("aws_kms_key.k{n}"), r#"{"id":"same-name"}"#)))
        .collect();
    let found = report(&same, "");
    assert!(found.cross_action_risks.unwrap().len() <= 256);
    // A hub that everything refers to, deleted, and referred to by everything.
    let resources: Vec<String> = (0..20_000)
        .map(|n| {
            format!(
                r#"{{"address":"aws_instance.i{n}","expressions":{{"x":{{"references":["var.hub","aws_vpc.v"]}}}}}}"#
            )
        })
        .collect();
    let configuration = format!(r#","configuration":{{"root_module":{{"resources":[{}]}}}}"#, resources.join(","));
    let mut changes: Vec<String> = (0..2_000).map(|n| delete(&format!("aws_instance.i{n}"), "{}")).collect();
    changes.push(delete("aws_vpc.v", "{}"));
    let found = report(&changes, &configuration);
    assert!(found.mutations.iter().all(|one| one.dependencies.len() <= 32));
    assert!(start.elapsed() < Duration::from_secs(30), "{:?}", start.elapsed());
}

#[test]
fn deep_nesting_is_survived() {
    let deep = |levels: usize| format!("{}1{}", "[".repeat(levels), "]".repeat(levels));
    assert!(parse_with(deep(300).as_bytes(), Limits::FOREIGN).is_err());
    let nested = format!("{{\"ingress\":{}}}", deep(240));
    for text in [create("aws_security_group.x", &nested), delete("aws_s3_bucket.x", &nested)] {
        let masked = text.replace(r#""after_sensitive":{}"#, &format!(r#""after_sensitive":{nested}"#));
        assert_eq!(report(&[masked], "").mutations.len(), 1);
    }
    // Modules 60 deep: followed as far as the limit, then left.
    let leaf = String::from(r#"{"resources":[{"address":"a.b","expressions":{"x":{"references":["var.v"]}}}]}"#);
    let modules = (0..60).fold(leaf, |inner, n| {
        format!(
            r#"{{"module_calls":{{"m{n}":{{"expressions":{{"v":{{"references":["var.v"]}}}},"module":{inner}}}}}}}"#
        )
    });
    let configuration = format!(r#","configuration":{{"root_module":{modules}}}"#);
    assert_eq!(report(&[delete("aws_s3_bucket.x", "{}")], &configuration).verdict(), Verdict::Block);
    let state =
        (0..100).fold(String::from(r#"{"resources":[]}"#), |inner, _| format!(r#"{{"child_modules":[{inner}]}}"#));
    let state = format!(r#","prior_state":{{"values":{{"root_module":{state}}}}}"#);
    assert_eq!(report(&[delete("aws_s3_bucket.x", "{}")], &state).verdict(), Verdict::Block);
}

fn anything() -> impl Strategy<Value = Value> {
    let text = prop_oneof![
        Just("1.2".to_owned()),
        Just("delete".to_owned()),
        Just("aws_db_instance".to_owned()),
        Just("aws_db_instance.x[\"".to_owned()),
        Just("{\"Statement\":[{\"Effect\":\"Allow\"}]}".to_owned()),
        ".{0,8}",
    ];
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::Bool),
        (-10.0..400.0_f64).prop_map(Value::Number),
        text.prop_map(Value::String),
    ];
    let name = prop::sample::select(vec![
        "format_version",
        "resource_changes",
        "resource_drift",
        "prior_state",
        "values",
        "root_module",
        "child_modules",
        "resources",
        "address",
        "type",
        "name",
        "mode",
        "change",
        "actions",
        "before",
        "after",
        "after_unknown",
        "before_sensitive",
        "configuration",
        "module_calls",
        "module",
        "expressions",
        "references",
        "depends_on",
        "outputs",
        "policy",
        "ingress",
        "cidr_blocks",
        "skip_final_snapshot",
        "Statement",
        "importing",
        "replace_paths",
    ]);
    leaf.prop_recursive(6, 64, 6, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Value::Array),
            prop::collection::vec((name.clone().prop_map(str::to_owned), inner), 0..8)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn arbitrary_json_never_panics(plan in anything(), state in proptest::option::of(anything())) {
        let _never = evaluate(&plan, state.as_ref()).map(|report| to_compact(&report));
    }

    #[test]
    fn arbitrary_parts_never_panic(before in anything(), after in anything(), mask in anything(), parts in anything()) {
        for kind in ["aws_db_instance", "aws_security_group", "aws_iam_policy", "aws_kms_key", "aws_db_snapshot", "acme_x"] {
            for actions in [r#"["delete"]"#, r#"["update"]"#, r#"["create"]"#, r#"["delete","create"]"#] {
                let text = format!(
                    r#"{{"format_version":"1.2","resource_changes":[{{"address":"{kind}.x","type":"{kind}","change":{{"actions":{actions},"before":{},"after":{},"before_sensitive":{},"after_unknown":{}}}}}],"configuration":{{"root_module":{}}},"resource_drift":[]}}"#,
                    compact(&before), compact(&after), compact(&mask), compact(&mask), compact(&parts)
                );
                if let Ok(plan) = parse_with(text.as_bytes(), Limits::FOREIGN) {
                    prop_assert!(evaluate(&plan, None).is_ok());
                }
            }
        }
    }
}
