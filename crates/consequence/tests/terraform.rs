//! Terraform plans: what each change costs, what changes cost together, and documents that mean harm.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a step that fails fails the test")]

use proptest::prelude::*;
use std::time::{Duration, Instant};
use writ_consequence::terraform::{PlanError, evaluate, supported};
use writ_consequence::{Confidence, Mutation, Report, Tier, Verdict};
use writ_core::json::{Limits, Value, compact, parse_with, to_compact};

fn json(text: &str) -> Value {
    parse_with(text.as_bytes(), Limits::FOREIGN).unwrap_or_else(|error| panic!("{error}: {text}"))
}

/// A plan of `changes`, with the rest of the document behind them.
fn plan(changes: &str, rest: &str) -> Value {
    json(&format!(r#"{{"format_version":"1.2","terraform_version":"1.9.0","resource_changes":[{changes}]{rest}}}"#))
}

fn change(address: &str, actions: &str, before: &str, after: &str) -> String {
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

fn delete(address: &str, before: &str) -> String {
    change(address, r#"["delete"]"#, before, "null")
}

fn create(address: &str, after: &str) -> String {
    change(address, r#"["create"]"#, "null", after)
}

fn update(address: &str, before: &str, after: &str) -> String {
    change(address, r#"["update"]"#, before, after)
}

fn report(changes: &[String], rest: &str) -> Report {
    evaluate(&plan(&changes.join(","), rest), None).unwrap()
}

fn only(change: &str) -> Mutation {
    let mut report = report(&[change.to_owned()], "");
    assert_eq!(report.mutations.len(), 1, "{change}");
    report.mutations.remove(0)
}

fn tier(change: &str) -> u8 {
    only(change).recoverability.tier.number()
}

/// The kinds of the risks, each with its addresses.
fn risks(report: &Report) -> Vec<(String, Vec<String>)> {
    let all = report.cross_action_risks.as_ref().unwrap().iter();
    all.map(|risk| {
        assert!(!risk.reason.is_empty());
        (risk.kind.to_owned(), risk.addresses.clone())
    })
    .collect()
}

fn has_risk(report: &Report, kind: &str, addresses: &[&str]) -> bool {
    risks(report).iter().any(|(own, parts)| own == kind && addresses.iter().all(|one| parts.iter().any(|it| it == one)))
}

/// `= type action {values} : tier` and `= type update {before} => {after} : tier`.
#[test]
fn the_data_files_examples_hold() {
    let mut count = 0;
    for entry in std::fs::read_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/data/terraform")).unwrap() {
        let text = std::fs::read_to_string(entry.unwrap().path()).unwrap();
        for line in text.lines().filter(|line| line.starts_with("= ")) {
            let (rest, want) = line.trim_start_matches("= ").rsplit_once(" : ").unwrap();
            let mut words = rest.splitn(3, ' ');
            let (kind, action, values) = (words.next().unwrap(), words.next().unwrap(), words.next().unwrap());
            let address = format!("{kind}.x");
            let change = match action {
                "delete" => delete(&address, values),
                "create" => create(&address, values),
                "replace" => change(&address, r#"["delete","create"]"#, values, values),
                "update" => {
                    let (before, after) = values.split_once(" => ").unwrap();
                    update(&address, before, after)
                }
                _ => panic!("{line}"),
            };
            assert_eq!(tier(&change).to_string(), want, "{line}");
            count += 1;
        }
    }
    assert!(count >= 100, "{count} examples");
}

#[test]
fn there_are_at_least_400_types_each_with_its_reason() {
    assert!(supported().len() >= 400);
    for known in supported() {
        assert!(!known.reason.is_empty() && !known.service.is_empty(), "{}", known.kind);
    }
    for provider in ["aws", "google", "azurerm", "azuread", "kubernetes", "github", "cloudflare", "datadog"] {
        let count = supported().filter(|known| known.provider == provider).count();
        assert!(count >= 25, "{provider}: {count}");
    }
}

#[test]
fn nothing_that_changes_is_nothing() {
    let data = create("data.aws_ami.x", "{}").replace(r#""mode":"managed""#, r#""mode":"data""#);
    let changes = [
        change("aws_s3_bucket.a", r#"["no-op"]"#, "{}", "{}"),
        change("aws_s3_bucket.b", r#"["read"]"#, "{}", "{}"),
        data,
    ];
    let report = report(&changes, "");
    assert!(report.mutations.is_empty());
    assert_eq!(report.verdict(), Verdict::Allow);
    assert_eq!(risks(&report), []);
    assert!(evaluate(&json(r#"{"format_version":"1.0","planned_values":{}}"#), None).unwrap().mutations.is_empty());
}

/// What the peer allows: each has to be seen here.
#[test]
fn creates_and_updates_are_looked_at() {
    let admin = r#"{"policy":"{\"Version\":\"2012-10-17\",\"Statement\":[{\"Effect\":\"Allow\",\"Action\":[\"*\"],\"Resource\":\"*\"}]}"}"#;
    for (change, want) in [
        (create("aws_security_group.x", r#"{"ingress":[{"from_port":22,"cidr_blocks":["0.0.0.0/0"]}]}"#), 3),
        (create("aws_iam_policy.x", admin), 3),
        (create("aws_iam_role_policy.x", admin), 3),
        (update("aws_db_instance.x", r#"{"backup_retention_period":7}"#, r#"{"backup_retention_period":0}"#), 3),
        (update("aws_db_instance.x", r#"{"storage_encrypted":true}"#, r#"{"storage_encrypted":false}"#), 3),
        (update("aws_db_instance.x", r#"{"deletion_protection":true}"#, r#"{"deletion_protection":false}"#), 3),
        (
            update(
                "aws_s3_bucket_versioning.x",
                r#"{"versioning_configuration":[{"status":"Enabled"}]}"#,
                r#"{"versioning_configuration":[{"status":"Suspended"}]}"#,
            ),
            3,
        ),
        (delete("azurerm_resource_group.x", "{}"), 4),
        (delete("acme_access_logs_bucket.x", "{}"), 5),
        (delete("aws_s3_bucket_of_somebody.x", "{}"), 5),
        (delete("aws_eks_cluster.x", "{}"), 4),
        (delete("aws_redshift_cluster.x", r#"{"skip_final_snapshot":true}"#), 4),
        (delete("aws_opensearch_domain.x", "{}"), 4),
        (delete("github_repository.x", "{}"), 4),
        (delete("kubernetes_persistent_volume_claim.x", "{}"), 4),
        (delete("helm_release.x", "{}"), 4),
        (create("aws_instance.x", r#"{"ami":"ami-1"}"#), 1),
        (update("aws_instance.x", r#"{"tags":{"a":"1"}}"#, r#"{"tags":{"a":"2"}}"#), 1),
    ] {
        assert_eq!(tier(&change), want, "{change}");
    }
}

#[test]
fn unknown_never_hides_unrecoverable() {
    let mut changes: Vec<String> = (0..10).map(|n| delete(&format!("acme_thing.x{n}"), "{}")).collect();
    assert_eq!(report(&changes, "").verdict(), Verdict::Escalate);
    changes.push(delete("aws_s3_bucket.logs", "{}"));
    let report = report(&changes, "");
    assert_eq!(report.verdict(), Verdict::Block);
    assert_eq!(report.worst().unwrap().intent.target.id.as_deref(), Some("aws_s3_bucket.logs"));
    assert!(report.mutations.iter().take(10).all(|one| one.recoverability.confidence == Confidence::Low));
}

#[test]
fn both_orders_of_a_replacement_delete() {
    for actions in [r#"["delete","create"]"#, r#"["create","delete"]"#] {
        let one = only(&change("aws_ebs_volume.x", actions, r#"{"size":1}"#, r#"{"size":2}"#));
        assert_eq!(one.recoverability.tier, Tier::Unrecoverable);
        assert_eq!(one.intent.action, "replace");
        assert_eq!(tier(&change("null_resource.x", actions, "{}", "{}")), 1);
        assert_eq!(tier(&change("aws_iam_role.x", actions, "{}", "{}")), 2);
    }
    // A replacement may open what it makes anew.
    let world = r#"{"ingress":[{"cidr_blocks":["0.0.0.0/0"]}]}"#;
    assert_eq!(tier(&change("aws_security_group.x", r#"["delete","create"]"#, r#"{"ingress":[]}"#, world)), 3);
    assert_eq!(tier(&change("aws_security_group.x", r#"["delete","create"]"#, world, world)), 2);
    let paths = change("aws_ebs_volume.x", r#"["delete","create"]"#, "{}", "{}")
        .replace(r#""actions""#, r#""replace_paths":[["size"],["kms_key_id"]],"actions""#);
    assert_eq!(only(&paths).intent.metadata.replaced_for, ["size", "kms_key_id"]);
}

#[test]
fn forget_move_and_import_touch_only_the_state() {
    let one = only(&change("aws_db_instance.x", r#"["forget"]"#, "{}", "null"));
    assert_eq!((one.recoverability.tier, one.intent.action.as_str()), (Tier::WithEffort, "forget"));
    assert_eq!(tier(&change("acme_x.x", r#"["forget"]"#, "{}", "null")), 2);
    assert_eq!(tier(&change("acme_x.x", r#"["create","forget"]"#, "{}", "{}")), 5);
    let still = change("aws_db_instance.new", r#"["no-op"]"#, "{}", "{}");
    let moved = still.replace(r#""mode""#, r#""previous_address":"aws_db_instance.old","mode""#);
    let one = only(&moved);
    assert_eq!((one.recoverability.tier, one.intent.action.as_str()), (Tier::Reversible, "move"));
    assert!(one.recoverability.reasoning.contains("aws_db_instance.old"));
    let one = only(&still.replace(r#""actions""#, r#""importing":{"id":"db-1"},"actions""#));
    assert_eq!((one.recoverability.tier, one.intent.action.as_str()), (Tier::Reversible, "import"));
    // Moved and changed: the change counts.
    let both =
        delete("aws_ebs_volume.new", "{}").replace(r#""mode""#, r#""previous_address":"aws_ebs_volume.old","mode""#);
    assert_eq!(tier(&both), 4);
}

#[test]
fn actions_that_are_not_known_are_not_guessed() {
    for actions in [r#"["obliterate"]"#, "[]", r#"["no-op","obliterate"]"#] {
        assert_eq!(tier(&change("aws_iam_role.x", actions, "{}", "{}")), 5, "{actions}");
    }
}

/// Terraform 1.14's actions, and commands that provisioners run: a plan does not say what they do.
#[test]
fn what_is_run_beside_the_changes_is_named() {
    let run =
        r#","action_invocations":[{"address":"action.aws_lambda_invoke.x","type":"aws_lambda_invoke","name":"x"}]"#;
    let found = report(&[], run);
    assert_eq!((found.verdict(), found.mutations.len()), (Verdict::Escalate, 1));
    let configuration = r#","configuration":{"root_module":{"module_calls":{"m":{"module":{"resources":[
        {"address":"null_resource.x","provisioners":[{"type":"local-exec"}]}]}}}}}"#;
    let found = report(&[create("module.m.null_resource.x", "{}"), create("null_resource.x", "{}")], configuration);
    let confidence: Vec<_> = found.mutations.iter().map(|one| one.recoverability.confidence).collect();
    assert_eq!(confidence, [Confidence::Medium, Confidence::High]);
}

#[test]
fn deposed_objects_are_objects() {
    let deposed = delete("aws_ebs_volume.x", r#"{"size":1}"#).replace(r#""mode""#, r#""deposed":"ab12cd34","mode""#);
    let one = only(&deposed);
    assert_eq!(one.recoverability.tier, Tier::Unrecoverable);
    assert_eq!(one.intent.metadata.deposed.as_deref(), Some("ab12cd34"));
    // The prior state's values are those of the object in use, not of this one.
    let state = r#","prior_state":{"values":{"root_module":{"resources":[{"address":"aws_ebs_volume.x","values":{"final_snapshot":true}}]}}}"#;
    assert_eq!(report(&[deposed], state).verdict(), Verdict::Block);
}

#[test]
fn the_prior_state_is_evidence_at_any_depth_and_never_outranks_the_plan() {
    let bare = delete("module.a.module.b.aws_db_instance.db", "null").replace("module.b.", r#"module.b[\"x.y\"]."#);
    let inner = r#"{"resources":[{"address":"module.a.module.b[\"x.y\"].aws_db_instance.db","mode":"managed","type":"aws_db_instance",
        "values":{"skip_final_snapshot":false,"final_snapshot_identifier":"last"}}]}"#;
    let values = format!(r#"{{"values":{{"root_module":{{"child_modules":[{{"child_modules":[{inner}]}}]}}}}}}"#);
    let document = plan(&bare, "");
    let blind = evaluate(&document, None).unwrap();
    let one = blind.mutations.first().unwrap();
    assert_eq!(one.recoverability.tier, Tier::Unrecoverable);
    assert!(one.missing.iter().any(|missing| missing.key == "before"));
    assert!(one.missing.iter().any(|missing| missing.key == "skip_final_snapshot"));
    let seen = evaluate(&document, Some(&json(&values))).unwrap();
    assert_eq!(seen.mutations.first().unwrap().recoverability.tier, Tier::FromBackup);
    // The same state within the plan.
    let own = plan(&bare, &format!(r#","prior_state":{values}"#));
    assert_eq!(evaluate(&own, None).unwrap().verdict(), Verdict::Warn);
    // The plan says otherwise: the plan holds.
    let told = bare.replace(r#""before":null"#, r#""before":{"skip_final_snapshot":true}"#);
    assert_eq!(evaluate(&plan(&told, ""), Some(&json(&values))).unwrap().verdict(), Verdict::Block);
}

#[test]
fn what_is_unknown_until_the_apply_is_named() {
    let unknown =
        create("aws_iam_policy.x", "{}").replace(r#""after_unknown":{}"#, r#""after_unknown":{"policy":true}"#);
    let one = only(&unknown);
    assert_eq!((one.recoverability.tier, one.recoverability.confidence), (Tier::Reversible, Confidence::Medium));
    assert_eq!(one.missing.first().map(|missing| missing.key.as_str()), Some("policy"));
    let nested = update("aws_db_instance.x", r#"{"deletion_protection":true}"#, "{}")
        .replace(r#""after_unknown":{}"#, r#""after_unknown":{"deletion_protection":true}"#);
    let one = only(&nested);
    assert_eq!(one.recoverability.tier, Tier::Reversible);
    assert!(one.missing.iter().any(|missing| missing.key == "deletion_protection"));
}

#[test]
fn sensitive_values_are_never_printed() {
    let secret = "hunter2-very-secret";
    let before = format!(
        r#"{{"policy":"{secret}","password":"{secret}","ingress":[{{"cidr_blocks":["0.0.0.0/0","{secret}"]}}]}}"#
    );
    for mask in [
        r#"{"policy":true,"password":true,"ingress":[{"cidr_blocks":[false,true]}]}"#,
        "true",
        r#"{"ingress":true,"policy":true}"#,
    ] {
        for kind in ["aws_security_group.x", "aws_sqs_queue.x", "aws_db_instance.x"] {
            for text in [create(kind, &before), delete(kind, &before), update(kind, &before, "{}")] {
                let text = text
                    .replace(r#""after_sensitive":{}"#, &format!(r#""after_sensitive":{mask}"#))
                    .replace(r#""before_sensitive":{}"#, &format!(r#""before_sensitive":{mask}"#));
                let out = report(
                    &[text],
                    &format!(
                        r#","prior_state":{{"values":{{"root_module":{{"resources":[{{"address":"{kind}","values":{before},"sensitive_values":{mask}}}]}}}}}}"#
                    ),
                );
                assert!(!to_compact(&out).contains(secret), "{kind} {mask}");
            }
        }
    }
    // Sensitive evidence still counts.
    let hidden = delete("aws_db_instance.x", r#"{"deletion_protection":true}"#)
        .replace(r#""before_sensitive":{}"#, r#""before_sensitive":{"deletion_protection":true}"#);
    let one = only(&hidden);
    assert_eq!(one.recoverability.tier, Tier::Reversible);
    assert_eq!(one.evidence.first().map(|evidence| &evidence.value), Some(&Value::from("(sensitive)")));
}

#[test]
fn drift_is_evidence_and_no_mutation() {
    let drift = update(
        "aws_db_instance.x",
        r#"{"id":"db-1","deletion_protection":true}"#,
        r#"{"id":"db-1","deletion_protection":false}"#,
    );
    let rest = format!(r#","resource_drift":[{drift}]"#);
    assert!(report(&[], &rest).mutations.is_empty());
    let gone = delete("aws_db_instance.x", r#"{"id":"db-1","deletion_protection":false,"skip_final_snapshot":true}"#);
    let report = report(&[gone], &rest);
    let drift = report.mutations.first().unwrap().evidence.iter().find(|evidence| evidence.key == "drift").unwrap();
    assert_eq!(compact(&drift.value), r#"["deletion_protection"]"#);
    assert!(has_risk(&report, "protection-drifted", &["aws_db_instance.x"]));
}

#[test]
fn changes_that_are_worse_together() {
    let db = delete("aws_db_instance.main", r#"{"id":"prod","identifier":"prod","skip_final_snapshot":true}"#);
    let snapshot = delete("aws_db_snapshot.last", r#"{"id":"s1","db_instance_identifier":"prod"}"#);
    let together = report(&[db.clone(), snapshot.clone()], "");
    assert!(has_risk(&together, "backup-with-data", &["aws_db_instance.main", "aws_db_snapshot.last"]));
    assert_eq!(risks(&report(&[snapshot], "")), []);
    let other = delete("aws_db_snapshot.last", r#"{"db_instance_identifier":"staging"}"#);
    assert_eq!(risks(&report(&[db.clone(), other], "")), []);

    let replica = delete(
        "aws_db_instance.replica",
        r#"{"id":"r","replicate_source_db":"arn:aws:rds:eu-west-1:1:db:prod","skip_final_snapshot":true}"#,
    );
    let together = report(&[replica, db.clone()], "");
    assert!(has_risk(&together, "replica-with-primary", &["aws_db_instance.main", "aws_db_instance.replica"]));

    let open = update("aws_db_instance.other", r#"{"deletion_protection":true}"#, r#"{"deletion_protection":false}"#);
    let together = report(&[open.clone(), db.clone()], "");
    assert!(has_risk(&together, "protection-then-delete", &["aws_db_instance.other", "aws_db_instance.main"]));
    assert_eq!(risks(&report(&[open], "")), []);

    let guard = delete("aws_s3_bucket_versioning.v", r#"{"bucket":"b1"}"#);
    let bucket = delete("aws_s3_bucket.b", r#"{"id":"b1","bucket":"b1"}"#);
    assert!(has_risk(
        &report(&[guard, bucket], ""),
        "protection-then-delete",
        &["aws_s3_bucket.b", "aws_s3_bucket_versioning.v"]
    ));

    let arn = "arn:aws:kms:eu-west-1:1:key/abcd";
    let key = delete("aws_kms_key.k", &format!(r#"{{"id":"abcd-1234","arn":"{arn}","deletion_window_in_days":7}}"#));
    let volume = delete("aws_ebs_volume.v", &format!(r#"{{"kms_key_id":"{arn}"}}"#));
    assert!(has_risk(&report(&[key.clone(), volume], ""), "key-with-data", &["aws_kms_key.k", "aws_ebs_volume.v"]));
    let kept = change("aws_ebs_volume.v", r#"["no-op"]"#, &format!(r#"{{"kms_key_id":"{arn}"}}"#), "{}");
    assert!(has_risk(&report(&[key.clone(), kept], ""), "key-of-kept-data", &["aws_kms_key.k", "aws_ebs_volume.v"]));
    let apart = delete("aws_ebs_volume.v", r#"{"kms_key_id":"arn:aws:kms:eu-west-1:1:key/other"}"#);
    assert_eq!(risks(&report(&[key, apart], "")), []);
}

#[test]
fn a_key_whose_data_stays_is_no_small_matter() {
    let key = delete("aws_kms_key.k", r#"{"arn":"arn:aws:kms:x:1:key/abcd","deletion_window_in_days":7}"#);
    assert_eq!(report(std::slice::from_ref(&key), "").verdict(), Verdict::Allow);
    let kept = change("aws_ebs_volume.v", r#"["no-op"]"#, r#"{"kms_key_id":"arn:aws:kms:x:1:key/abcd"}"#, "{}");
    let report = report(&[key, kept], "");
    assert_eq!(report.verdict(), Verdict::Warn);
    assert!(report.worst().unwrap().recoverability.reasoning.contains("no longer be read"));
}

#[test]
fn a_state_file_is_evidence_and_shows_nothing() {
    let state = json(
        r#"{"version":4,"serial":1,"lineage":"x","resources":[{"module":"module.m","mode":"managed","type":"aws_db_instance","name":"d",
        "instances":[{"index_key":"a","attributes":{"skip_final_snapshot":false,"backup_retention_period":"hunter2"},"dependencies":["aws_vpc.v"]}]}]}"#,
    );
    let gone = delete("module.m.aws_db_instance.d", "null").replace("aws_db_instance.d", r#"aws_db_instance.d[\"a\"]"#);
    let document = plan(&[gone, delete("aws_vpc.v", "{}")].join(","), "");
    let report = evaluate(&document, Some(&state)).unwrap();
    assert_eq!(report.verdict(), Verdict::Warn);
    assert_eq!(report.mutations.get(1).unwrap().dependencies.len(), 1);
    assert!(!to_compact(&report).contains("hunter2"));
}

#[test]
fn times_with_units_are_compared() {
    for (was, becomes, want) in [("604800s", "600s", 3), ("600s", "604800s", 1), ("7d", "24h", 3), ("24h", "7d", 1)] {
        let values = |text: &str| format!(r#"{{"version_retention_period":"{text}"}}"#);
        assert_eq!(tier(&update("google_spanner_database.x", &values(was), &values(becomes))), want, "{was} {becomes}");
    }
}

#[test]
fn names_known_only_after_the_apply_are_found_by_reference() {
    let db = delete("module.m.aws_db_instance.main", r#"{"skip_final_snapshot":true}"#);
    let snapshot = delete("module.m.aws_db_snapshot.last", "{}");
    let configuration = r#","configuration":{"root_module":{"module_calls":{"m":{"module":{"resources":[
        {"address":"aws_db_instance.main"},
        {"address":"aws_db_snapshot.last","expressions":{"db_instance_identifier":{"references":["aws_db_instance.main.id","aws_db_instance.main"]}}}]}}}}}"#;
    let report = report(&[db, snapshot], configuration);
    assert!(has_risk(&report, "backup-with-data", &["module.m.aws_db_instance.main", "module.m.aws_db_snapshot.last"]));
}

#[test]
fn what_depends_on_what_goes_is_listed() {
    let configuration = r#","configuration":{"root_module":{
      "resources":[
        {"address":"aws_vpc.v","expressions":{}},
        {"address":"aws_subnet.s","expressions":{"vpc_id":{"references":["aws_vpc.v.id","aws_vpc.v"]}}},
        {"address":"aws_instance.i","expressions":{"network_interface":[{"subnet_id":{"references":["aws_subnet.s.id","aws_subnet.s"]}}]}},
        {"address":"aws_eip.e","expressions":{},"depends_on":["module.app"]}],
      "module_calls":{"app":{"expressions":{"vpc":{"references":["aws_vpc.v.id","aws_vpc.v"]}},"module":{
        "outputs":{"lb":{"expression":{"references":["aws_lb.l.arn","aws_lb.l"]}}},
        "resources":[
          {"address":"aws_lb.l","expressions":{"x":{"references":["var.vpc"]}}},
          {"address":"aws_lb_listener.h","expressions":{"x":{"references":["aws_lb.l.arn","aws_lb.l"]}}}]}}}}}"#;
    let report = report(&[delete("aws_vpc.v", "{}"), delete("aws_subnet.s[0]", "{}")], configuration);
    let of = |index: usize| -> Vec<(String, String, bool)> {
        let found = report.mutations.get(index).unwrap().dependencies.iter();
        let mut all: Vec<_> = found.map(|one| (one.id.clone(), one.kind.clone(), one.transitive)).collect();
        all.sort();
        all
    };
    let want = |id: &str, kind: &str, transitive| (id.to_owned(), kind.to_owned(), transitive);
    assert_eq!(
        of(0),
        [
            want("aws_eip.e", "aws_eip", true),
            want("aws_instance.i", "aws_instance", true),
            want("aws_subnet.s", "aws_subnet", false),
            want("module.app.aws_lb.l", "aws_lb", false),
            want("module.app.aws_lb_listener.h", "aws_lb_listener", true),
        ]
    );
    assert_eq!(of(1), [want("aws_instance.i", "aws_instance", false)]);
    assert!(
        report
            .mutations
            .first()
            .unwrap()
            .dependencies
            .iter()
            .any(|one| one.reason.contains("deleted by the same plan"))
    );
}

#[test]
fn what_has_left_the_configuration_is_found_in_the_state() {
    let rest = r#","prior_state":{"values":{"root_module":{"resources":[
      {"address":"aws_vpc.v","values":{}},
      {"address":"aws_subnet.s","values":{},"depends_on":["aws_vpc.v"]},
      {"address":"aws_instance.i","values":{},"depends_on":["aws_subnet.s","aws_vpc.v"]}]}}}"#;
    let report = report(&[delete("aws_vpc.v", "{}")], rest);
    let found: Vec<_> =
        report.mutations.first().unwrap().dependencies.iter().map(|one| (one.id.as_str(), one.transitive)).collect();
    assert_eq!(found, [("aws_subnet.s", false), ("aws_instance.i", true)]);
}

#[test]
fn a_key_that_goes_is_held_against_what_a_targeted_plan_leaves_out() {
    let key = delete("aws_kms_key.k", r#"{"arn":"arn:aws:kms:eu-west-1:1:key/0001","key_id":"0001-0001"}"#);
    let state = |kind: &str, arn: &str| {
        format!(
            r#","prior_state":{{"values":{{"root_module":{{"child_modules":[{{"resources":[{{"address":"module.m.{kind}.x[0]",
            "mode":"managed","values":{{"kms_key_id":"arn:aws:kms:eu-west-1:1:key/{arn}"}}}}]}}]}}}}}}"#
        )
    };
    let kept = report(std::slice::from_ref(&key), &state("aws_db_instance", "0001"));
    assert_eq!(kept.verdict(), Verdict::Warn);
    let want = vec!["aws_kms_key.k".to_owned(), "module.m.aws_db_instance.x[0]".to_owned()];
    assert_eq!(risks(&kept), [("key-of-kept-data".to_owned(), want)]);
    assert_eq!(report(std::slice::from_ref(&key), &state("aws_db_instance", "0002")).verdict(), Verdict::Allow);
    assert_eq!(report(std::slice::from_ref(&key), &state("aws_iam_role", "0001")).verdict(), Verdict::Allow);
    let bucket = r#"{"server_side_encryption_configuration":[{"rule":[{"apply_server_side_encryption_by_default":
        [{"kms_master_key_id":"arn:aws:kms:eu-west-1:1:key/0001"}]}]}]}"#;
    let beside = change("aws_s3_bucket.b", r#"["no-op"]"#, bucket, bucket);
    assert_eq!(report(&[key, beside], "").verdict(), Verdict::Warn, "however deep the key's name stands");
}

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
