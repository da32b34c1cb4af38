//! What changes cost together, and what depends on what goes.

use writ_consequence::Verdict;

use super::made::{change, delete, has_risk, report, risks, update};

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
