//! What a plan says of itself: format, errors, changes it puts off, and changes it does not tell.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a step that fails fails the test")]

use writ_consequence::terraform::evaluate;
use writ_consequence::{Report, Verdict};
use writ_core::json::{Limits, Value, parse_with};

fn json(text: &str) -> Value {
    parse_with(text.as_bytes(), Limits::FOREIGN).unwrap_or_else(|error| panic!("{error}: {text}"))
}

fn report(text: &str) -> Report {
    evaluate(&json(text), None).unwrap()
}

const BUCKET: &str = r#"{"address":"aws_s3_bucket.b","mode":"managed","type":"aws_s3_bucket","name":"b",
    "change":{"actions":["delete"],"before":{"bucket":"b"},"after":null}}"#;
const QUEUE: &str = r#"{"address":"aws_sqs_queue.q","mode":"managed","type":"aws_sqs_queue","name":"q",
    "change":{"actions":["create"],"before":null,"after":{"name":"q"}}}"#;

#[test]
fn formats_before_1_0_are_read_the_same() {
    for version in ["0.1", "0.2", "1.0", "1.1", "1.2", "1.3"] {
        let report = report(&format!(r#"{{"format_version":"{version}","resource_changes":[{BUCKET}]}}"#));
        assert_eq!(report.verdict(), Verdict::Block, "{version}");
    }
}

#[test]
fn a_plan_that_ended_with_an_error_is_looked_at() {
    let text = r#"{"format_version":"1.2","planned_values":{"root_module":{}},"prior_state":{},"errored":true}"#;
    assert_eq!(report(text).verdict(), Verdict::Escalate);
    assert_eq!(report(&text.replace("true", "false")).verdict(), Verdict::Allow);
    let text = format!(r#"{{"format_version":"1.2","resource_changes":[{BUCKET}],"errored":true}}"#);
    assert_eq!(report(&text).verdict(), Verdict::Block, "the worst decides");
}

#[test]
fn a_targeted_plan_is_judged_by_what_it_does() {
    let text = format!(r#"{{"format_version":"1.2","resource_changes":[{QUEUE}],"complete":false,"errored":false}}"#);
    assert_eq!(report(&text).verdict(), Verdict::Allow);
}

#[test]
fn what_is_put_off_is_named_and_not_held_against_the_plan() {
    let deferred = format!(r#"[{{"reason":"resource_config_unknown","resource_change":{BUCKET}}},{{}},7]"#);
    let text = format!(r#"{{"format_version":"1.2","resource_changes":[{QUEUE}],"deferred_changes":{deferred}}}"#);
    let report = report(&text);
    assert_eq!(report.verdict(), Verdict::Allow);
    let put_off: Vec<_> = report.mutations.iter().filter(|one| one.intent.action == "defer").collect();
    assert_eq!(put_off.len(), 3);
    assert_eq!(put_off.first().unwrap().intent.target.id.as_deref(), Some("aws_s3_bucket.b"));
}

#[test]
fn resources_without_changes_are_not_nothing_to_do() {
    let values = |address: &str| {
        format!(
            r#"{{"root_module":{{"child_modules":[{{"resources":[{{"address":"{address}","mode":"managed","values":{{}}}}]}}]}}}}"#
        )
    };
    let made = format!(r#"{{"format_version":"1.2","planned_values":{}}}"#, values("module.m.aws_iam_role.r"));
    assert_eq!(report(&made).verdict(), Verdict::Escalate);
    let refreshed = format!(
        r#"{{"format_version":"1.2","planned_values":{0},"prior_state":{{"values":{0}}}}}"#,
        values("module.m.aws_iam_role.r")
    );
    assert_eq!(report(&refreshed).verdict(), Verdict::Allow, "a plan that only refreshes");
    let read = made.replace("managed", "data");
    assert_eq!(report(&read).verdict(), Verdict::Allow);
}
