//! Terraform plans: what each change costs, and what that rests on.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a step that fails fails the test")]

#[path = "terraform/hostile.rs"]
mod hostile;
#[path = "terraform/made.rs"]
mod made;
#[path = "terraform/together.rs"]
mod together;

use made::{change, create, delete, has_risk, json, only, plan, report, risks, tier, update};
use writ_consequence::terraform::{evaluate, supported};
use writ_consequence::{Confidence, Tier, Verdict};
use writ_core::json::{Value, compact, to_compact};

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
