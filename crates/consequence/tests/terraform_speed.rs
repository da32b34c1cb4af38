//! Time: in a file of its own, so that no other test runs beside it.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a step that fails fails the test")]

use std::time::{Duration, Instant};
use writ_consequence::terraform::evaluate;
use writ_core::json::{Limits, Value, parse_with};

/// `count` deletes and their prior state, with a configuration in which each refers to the one before.
fn large(count: usize) -> String {
    let kinds = ["aws_db_instance", "aws_s3_bucket", "aws_security_group", "aws_iam_role", "acme_thing"];
    let kind = |n: usize| kinds.get(n % kinds.len()).unwrap();
    let (mut changes, mut state, mut configuration) = (Vec::new(), Vec::new(), Vec::new());
    for n in 0..count {
        let (kind, previous, last) = (kind(n), kind(n + kinds.len() - 1), n.wrapping_sub(1));
        let values = format!(
            r#"{{"id":"id-{n}","arn":"arn:aws:x:::{n}","name":"n{n}","tags":{{"a":"b"}},"skip_final_snapshot":true,
            "backup_retention_period":7,"delete_automated_backups":false,"ingress":[{{"cidr_blocks":["10.0.0.0/8"]}}],
            "kms_key_id":"arn:aws:kms:x:{n}"}}"#
        );
        let address = format!(r#""address":"module.m.{kind}.r{n}","mode":"managed","type":"{kind}""#);
        changes.push(format!(r#"{{{address},"change":{{"actions":["delete"],"before":{values},"after":null}}}}"#));
        state.push(format!(r#"{{{address},"values":{values}}}"#));
        configuration.push(format!(
            r#"{{"address":"{kind}.r{n}","expressions":{{"x":{{"references":["{previous}.r{last}.id","{previous}.r{last}"]}}}}}}"#
        ));
    }
    format!(
        r#"{{"format_version":"1.2","resource_changes":[{}],
        "prior_state":{{"values":{{"root_module":{{"child_modules":[{{"resources":[{}]}}]}}}}}},
        "configuration":{{"root_module":{{"module_calls":{{"m":{{"module":{{"resources":[{}]}}}}}}}}}}}}"#,
        changes.join(","),
        state.join(","),
        configuration.join(",")
    )
}

fn parsed(text: &str) -> Value {
    parse_with(text.as_bytes(), Limits::FOREIGN).unwrap_or_else(|error| panic!("{error}"))
}

fn time(plan: &Value) -> Duration {
    let run = || {
        let start = Instant::now();
        let report = evaluate(plan, None).unwrap();
        let time = start.elapsed();
        assert!(!report.mutations.is_empty());
        time
    };
    (0..5).map(|_| run()).min().unwrap()
}

#[test]
fn time_is_linear_in_the_plan() {
    let (small, big) = (time(&parsed(&large(1_000))), time(&parsed(&large(20_000))));
    println!("1,000 changes: {small:?}; 20,000 changes: {big:?}");
    // Far above what it takes (20 ms), as builds are slow and machines busy; 20 times the changes must not take 400 times as long.
    assert!(small < Duration::from_millis(500), "{small:?} for 1,000 changes");
    assert!(big < small * 80, "{small:?} for 1,000 changes, {big:?} for 20,000");
}
