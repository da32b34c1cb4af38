//! Plans that tests make, and their reports.

use writ_consequence::terraform::evaluate;
use writ_consequence::{Mutation, Report};
use writ_core::json::{Limits, Value, compact, parse_with};

pub fn json(text: &str) -> Value {
    parse_with(text.as_bytes(), Limits::FOREIGN).unwrap_or_else(|error| panic!("{error}: {text}"))
}

/// A plan of `changes`, with the rest of the document behind them.
pub fn plan(changes: &str, rest: &str) -> Value {
    json(&format!(r#"{{"format_version":"1.2","terraform_version":"1.9.0","resource_changes":[{changes}]{rest}}}"#))
}

pub fn change(address: &str, actions: &str, before: &str, after: &str) -> String {
    let bare = address.split('[').next().unwrap();
    let mut words = bare.rsplit('.');
    let (name, kind) = (words.next().unwrap(), words.next().unwrap());
    format!(
        r#"{{"address":{},"mode":"managed","type":"{kind}","name":"{name}","provider_name":"registry.terraform.io/hashicorp/{}",
        "change":{{"actions":{actions},"before":{before},"after":{after},"after_unknown":{{}},"before_sensitive":{{}},"after_sensitive":{{}}}}}}"#,
        compact(&Value::from(address)),
        kind.split('_').next().unwrap()
    )
}

pub fn delete(address: &str, before: &str) -> String {
    change(address, r#"["delete"]"#, before, "null")
}

pub fn create(address: &str, after: &str) -> String {
    change(address, r#"["create"]"#, "null", after)
}

pub fn update(address: &str, before: &str, after: &str) -> String {
    change(address, r#"["update"]"#, before, after)
}

pub fn report(changes: &[String], rest: &str) -> Report {
    evaluate(&plan(&changes.join(","), rest), None).unwrap()
}

pub fn only(change: &str) -> Mutation {
    let mut report = report(&[change.to_owned()], "");
    assert_eq!(report.mutations.len(), 1, "{change}");
    report.mutations.remove(0)
}

pub fn tier(change: &str) -> u8 {
    only(change).recoverability.tier.number()
}

/// The kinds of the risks, each with its addresses.
pub fn risks(report: &Report) -> Vec<(String, Vec<String>)> {
    let all = report.cross_action_risks.as_ref().unwrap().iter();
    all.map(|risk| {
        assert!(!risk.reason.is_empty());
        (risk.kind.to_owned(), risk.addresses.clone())
    })
    .collect()
}

pub fn has_risk(report: &Report, kind: &str, addresses: &[&str]) -> bool {
    risks(report).iter().any(|(own, parts)| own == kind && addresses.iter().all(|one| parts.iter().any(|it| it == one)))
}
