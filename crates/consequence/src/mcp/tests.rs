use writ_core::json::parse;

use super::*;
use crate::paths::NoProbe;
use crate::report::Verdict;

fn verdict(tool: &str, arguments: &str) -> Verdict {
    let arguments = parse(arguments.as_bytes()).unwrap();
    let call = Call { tool, server: None, arguments: &arguments, annotations: None };
    evaluate(&call, &Env::default(), &NoProbe).verdict()
}

#[test]
fn words_count_for_what_they_are_about() {
    let stopped = [
        ("drain_node", r#"{"name":"n1"}"#),
        ("browser_delete_profile", "{}"),
        ("close_account", "{}"),
        ("git", r#"{"args":["checkout","--","."]}"#),
        ("checkout_cart", "{}"),
    ];
    for (tool, arguments) in stopped {
        assert_ne!(verdict(tool, arguments), Verdict::Allow, "{tool} {arguments}");
    }
    let passed = [
        ("mcp__filesystem__edit_file", r#"{"path":"/srv/x/src/a.ts","edits":[]}"#),
        ("mcp__playwright__browser_close", "{}"),
        ("performance_stop_trace", "{}"),
        ("close_page", r#"{"pageIdx":1}"#),
        ("mcp__git__git_checkout", r#"{"branch_name":"main"}"#),
    ];
    for (tool, arguments) in passed {
        assert_eq!(verdict(tool, arguments), Verdict::Allow, "{tool} {arguments}");
    }
}

#[test]
fn names_and_arguments_count() {
    for (tool, arguments) in [
        ("deleteFile", "{}"),
        ("mcp__db__execute_sql", r#"{"sql":"DROP TABLE users"}"#),
        ("bash", r#"{"command":"rm -rf /"}"#),
        ("purge_queue", "{}"),
        ("transfer_funds", r#"{"amount":100}"#),
        ("http_request", r#"{"method":"DELETE","url":"https://x/y"}"#),
        ("repo-destroy", "{}"),
        ("DROPTable", "{}"),
        ("create_payment", r#"{"amount":12,"currency":"EUR"}"#),
        ("setBudget", r#"{"campaign":"x","budget":"100000"}"#),
        ("write_file", r#"{"path":"/etc/passwd","content":"x"}"#),
        ("delete_file", r#"{"path":"/etc/hosts"}"#),
        ("kms.schedule_key_deletion", r#"{"KeyId":"k"}"#),
        ("s3.delete_bucket", r#"{"Bucket":"b"}"#),
        ("s3_delete_objects", "{}"),
        ("ec2.terminate_instances", "{}"),
        ("iam.deactivate_mfa_device", "{}"),
        ("cloudtrail.stop_logging", "{}"),
        ("run", r#"{"code":"import shutil; shutil.rmtree('/srv')"}"#),
        ("run", r#"{"code":"import os; os.system('rm -rf /')"}"#),
        ("execute_code", r#"{"language":"javascript","code":"require('fs').rmSync('/srv',{recursive:true})"}"#),
        ("run", r#"{"code":"rm -rf /srv"}"#),
        ("kubectl", r#"{"args":["delete","ns","prod"]}"#),
        ("kubectl", r#"{"args":"delete pvc --all"}"#),
        ("kubectl", r#"{"command":"delete ns prod"}"#),
        ("run_kubectl", r#"{"args":["-n","prod","delete","sts","db"]}"#),
        ("git", r#"{"args":["push","--force"]}"#),
        ("git_reset", r#"{"mode":"hard"}"#),
        ("git_push", r#"{"force":true}"#),
        ("docker", r#"{"args":["volume","rm","pg"]}"#),
        ("helm", r#"{"args":["uninstall","web"]}"#),
        ("terraform", r#"{"args":["destroy","-auto-approve"]}"#),
        ("delete_namespace", r#"{"name":"prod"}"#),
        ("mcp__aws__call_aws", r#"{"cli_command":"aws s3 rb s3://b --force"}"#),
    ] {
        assert_ne!(verdict(tool, arguments), Verdict::Allow, "{tool} {arguments}");
    }
    for (tool, arguments) in [
        ("get_delete_status", "{}"),
        ("search_code", r#"{"query":"delete from users"}"#),
        ("list_files", "{}"),
        ("mcp__db__execute_sql", r#"{"sql":"SELECT 1"}"#),
        ("bash", r#"{"command":"ls"}"#),
        ("search_deleted", "{}"),
        ("frobnicate", "{}"),
        ("list_payments", r#"{"amount":12}"#),
        ("add_ingredient", r#"{"amount":2}"#),
        ("create_payment_link", r#"{"amount":0}"#),
        ("write_file", r#"{"path":"src/main.rs","content":"x"}"#),
        ("create_directory", r#"{"path":"/home/me/project/new"}"#),
        ("read_file", r#"{"path":"/etc/passwd"}"#),
        ("kubectl", r#"{"args":["get","pods"]}"#),
        ("kubectl", r#"{"args":"get pods"}"#),
        ("git", r#"{"args":["status"]}"#),
        ("git_status", "{}"),
        ("git_push", r#"{"branch":"x"}"#),
        ("run", r#"{"code":"print(1)"}"#),
        ("run", r#"{"code":"const a = [1]; console.log(a)"}"#),
        ("s3.list_buckets", "{}"),
        ("s3.create_bucket", r#"{"Bucket":"b"}"#),
        ("kms.list_keys", "{}"),
        ("schedule_meeting", "{}"),
    ] {
        assert_eq!(verdict(tool, arguments), Verdict::Allow, "{tool} {arguments}");
    }
}

#[test]
fn tools_are_judged_like_their_twins_in_a_shell() {
    for (tool, arguments, wanted) in [
        ("s3.delete_bucket", "{}", Verdict::Block),
        ("kms.schedule_key_deletion", "{}", Verdict::Warn),
        ("kubectl", r#"{"args":["delete","ns","prod"]}"#, Verdict::Block),
        ("run", r#"{"code":"import shutil; shutil.rmtree('/srv')"}"#, Verdict::Block),
    ] {
        assert_eq!(verdict(tool, arguments), wanted, "{tool} {arguments}");
    }
}

#[test]
fn hints_raise_and_never_lower() {
    let arguments = Value::Null;
    let with = |tool, hints: &str| {
        let hints = parse(hints.as_bytes()).unwrap();
        let call = Call { tool, server: None, arguments: &arguments, annotations: Some(&hints) };
        evaluate(&call, &Env::default(), &NoProbe).verdict()
    };
    assert_eq!(with("frobnicate", r#"{"destructiveHint":true}"#), Verdict::Escalate);
    assert_ne!(with("delete_all", r#"{"readOnlyHint":true,"destructiveHint":false}"#), Verdict::Allow);
}
