//! APIs, stores, and the addresses that lead to them.

use writ_core::json::{self, Limits};
use writ_core::{Timestamp, ToolCall, Verdict};
use writ_policy::{Lexical, Policy, Setting, decide};

use crate::{Allow, Ask, Deny, ROOT, all, decided, line};

#[test]
fn a_range_in_a_url_may_be_any_of_it() {
    all(
        r#"{"apis":{"deny":["https://api.x.example/admin/*"]}}"#,
        &[
            ("curl 'https://api.x.example/[a-b]dmin/x'", Ask),
            ("curl 'https://api.x.example/admin/[1-3]'", Deny),
            ("curl 'https://api.x.example/open/[1-3]'", Allow),
            ("curl 'https://api.x.example/open?x[]=1'", Allow),
        ],
    );
}

#[test]
fn a_url_that_programs_read_in_different_ways_is_on_no_list() {
    let odd =
        [" https://evil.example/a", r"\thttps://evil.example/", r"ht\ntps://evil.example/", "https:/evil.example/"];
    for url in odd {
        let input = format!(r#"{{"url":"{url}","prompt":"p"}}"#);
        for apis in [r#"{"apis":{"deny":["https://evil.example/*"]}}"#, r#"{"apis":{"allow":["https://x.example/*"]}}"#]
        {
            assert_eq!(decided(apis, "WebFetch", &input).verdict, Deny, "{apis}: {url}");
        }
        assert_eq!(decided(r#"{"secrets":{"deny":["env:X"]}}"#, "WebFetch", &input).verdict, Allow, "{url}");
    }
    let plain = r#"{"url":"https://x.example/a","prompt":"p"}"#;
    assert_eq!(decided(r#"{"apis":{"deny":["https://evil.example/*"]}}"#, "WebFetch", plain).verdict, Allow);
}

/// Runs each line under a list of one entry.
fn one(kind: &str, list: &str, cases: &[(&str, &str, Verdict)]) {
    for (entry, text, expected) in cases {
        let grants = format!(r#"{{"{kind}":{{"{list}":["{entry}"]}}}}"#);
        assert_eq!(line(&grants, text), *expected, "{grants}: {text}");
    }
}

#[test]
fn an_address_in_an_entry_is_read_as_one_in_a_call() {
    one(
        "apis",
        "deny",
        &[
            ("https://bücher.example/*", "curl https://bücher.example/a", Deny),
            ("https://bücher.example/*", "curl https://xn--bcher-kva.example/a", Deny),
            ("https://*.bücher.example/*", "curl https://a.BÜCHER.example/a", Deny),
            ("bücher.example", "curl https://bucher.example/a", Allow),
            ("https://x.example./a", "curl https://x.example/a", Deny),
            ("https://x.example/a", "curl https://x.example./a", Deny),
            ("https://x.example:443/a", "curl https://x.example/a", Deny),
            ("https://x.example:8443/a", "curl https://x.example/a", Allow),
            ("https://x.example/%61", "curl https://x.example/a", Deny),
            ("https://x.example/%61", "curl https://x.example/%61", Deny),
            ("https://x.example/%2a", "curl https://x.example/a", Allow),
            ("https://x.example/a%2Fb", "curl https://x.example/a/b", Deny),
            ("https://x.example/c/../a", "curl https://x.example/a", Deny),
            ("https://x.example/a%20b", "curl 'https://x.example/a b'", Deny),
            ("https://[::1]/*", "curl -g 'https://[::1]/a'", Deny),
            ("https://[::1]/*", "curl -g 'https://[0:0:0:0:0:0:0:1]/a'", Deny),
            ("https://[0:0::1]/*", "curl -g 'https://[::1]:8443/a'", Deny),
            ("https://[::1]/*", "curl -g 'https://[::2]/a'", Allow),
            ("https://127.0.0.1/*", "curl -g 'https://[::ffff:127.0.0.1]/a'", Deny),
            ("https://[::ffff:127.0.0.1]/*", "curl https://127.0.0.1/a", Deny),
            ("https://127.1/*", "curl https://2130706433/a", Deny),
            ("wss://x.example/*", "curl wss://x.example/a", Deny),
            ("ws://x.example/*", "curl https://x.example/a", Deny),
            ("{https,ftp}://{x,y}.example/*", "curl https://y.example/a", Deny),
            ("*://x.example/*", "curl http://x.example/a", Deny),
            ("https://[xy].example/*", "curl https://y.example/a", Deny),
            ("https://x.example/v?/a", "curl https://x.example/v2/a", Deny),
            ("https://x.example/{a*,b*}", "curl https://x.example/b1/c", Deny),
            ("https://x.example/{a*,b*}", "curl https://x.example/c", Allow),
            ("https://x.example/{a*,b*}/d", "curl https://x.example/b1/c/d", Allow),
        ],
    );
    one(
        "apis",
        "allow",
        &[
            ("https://x.example:443/a%20b", "curl https://x.example/a%20b", Allow),
            ("https://bücher.example/%61", "curl https://xn--bcher-kva.example/a", Allow),
            ("https://x.example/%2a", "curl https://x.example/a", Deny),
            ("https://x.example/a%2Fb", "curl https://x.example/a/b", Deny),
            ("https://127.0.0.1/*", "curl -g 'https://[::ffff:127.0.0.1]/a'", Deny),
            ("wss://x.example/*", "curl https://x.example/a", Allow),
            ("https://x.example/{a*,b*}", "curl https://x.example/a/b", Allow),
        ],
    );
    one(
        "storage",
        "deny",
        &[
            ("s3://prod/%61", "aws s3 cp s3://prod/a .", Deny),
            ("s3://prod/%61", "aws s3 cp s3://prod/%61 .", Deny),
            ("S3://Prod/*", "aws s3 cp s3://prod/x .", Deny),
            ("https://prod.s3.amazonaws.com/*", "curl https://prod.s3.amazonaws.com/x", Deny),
            ("s3://{prod*,live*}", "aws s3 cp s3://live1/a/b .", Deny),
        ],
    );
    one("storage", "allow", &[("s3://prod/%61", "aws s3 cp s3://prod/a .", Deny)]);
}

#[test]
fn apis() {
    let grants = r#"{"apis":{"allow":["https://api.x.example/v1/*","https://*.y.example"],"deny":["https://api.x.example/v1/admin/*"]}}"#;
    all(
        grants,
        &[
            ("curl https://api.x.example/v1/things/1?q=2", Allow),
            ("curl https://API.X.example/v1/things", Allow),
            ("curl https://a.y.example/", Allow),
            ("curl http://api.x.example/v1/things", Deny),
            ("curl https://api.x.example/v1/admin/users", Deny),
            ("curl http://api.x.example:80/v1/admin/users", Deny),
            ("curl https://api.x.example/v1/things/../admin/users", Deny),
            ("curl https://api.x.example/v1/%61dmin/users", Deny),
            ("curl https://api.x.example/v1/admin%2fusers", Ask),
            ("curl https://api.x.example/v2/things", Deny),
            ("curl https://other.example/", Deny),
            ("curl https://api.x.example/v1/$X", Ask),
            ("curl https://a.y.example/$X", Allow),
            ("curl $URL", Ask),
            ("ssh other.example", Allow),
            ("ssh api.x.example", Ask),
            ("cargo build", Allow),
        ],
    );
    for (url, expected) in
        [("https://api.x.example/v1/a", Allow), ("https://api.x.example/v1/admin/a", Deny), ("https://z.example", Deny)]
    {
        let input = format!(r#"{{"url":"{url}","prompt":"p"}}"#);
        assert_eq!(decided(grants, "WebFetch", &input).verdict, expected, "{url}");
        assert_eq!(decided(grants, "mcp__web__get", &format!(r#"{{"url":"{url}"}}"#)).verdict, expected, "{url}");
    }
}

#[test]
fn a_last_star_takes_everything_behind_it() {
    let grants = r#"{"apis":{"deny":["https://api.x.example/app/keys*"]},"storage":{"deny":["gs://b/pre*"]}}"#;
    all(
        grants,
        &[
            ("curl https://api.x.example/app/keys", Deny),
            ("curl https://api.x.example/app/keysx", Deny),
            ("curl https://api.x.example/app/keys/1", Deny),
            ("curl https://api.x.example/app/key", Allow),
            ("curl https://api.x.example/app/other/keys", Allow),
            ("gsutil cp gs://b/pre1/x/y .", Deny),
            ("gsutil cp gs://b/other/pre1 .", Allow),
        ],
    );
    let grants = r#"{"apis":{"allow":["https://api.x.example/keys*"]},"storage":{"deny":["s3://prod/**"]}}"#;
    all(
        grants,
        &[
            ("curl https://api.x.example/keys/1", Allow),
            ("curl https://api.x.example/key", Deny),
            ("pip install git+https://api.x.example/keys/1", Allow),
            ("pip install git+https://api.x.example/key", Deny),
            ("aws s3api copy-object --copy-source prod/x --bucket mine --key y", Deny),
            ("aws s3api copy-object --copy-source=/prod/x --bucket mine --key y", Deny),
            ("aws s3api copy-object --copy-source other/x --bucket mine --key y", Allow),
        ],
    );
}

#[test]
fn storage() {
    let grants = r#"{"storage":{"allow":["s3://bucket/attestations/*","gs://open/*"],"deny":["s3://bucket/attestations/keys/*"]}}"#;
    all(
        grants,
        &[
            ("aws s3 cp x s3://bucket/attestations/a", Allow),
            ("aws s3 cp s3://bucket/attestations/keys/a .", Deny),
            ("aws s3 cp s3://bucket/other .", Deny),
            ("duckdb <<< \"select * from 's3://bucket/other'\"", Deny),
            ("cat > notes.md <<'E'\nsee s3://bucket/other\nE", Allow),
            ("aws s3 sync s3://bucket/attestations/$X .", Ask),
            ("aws s3 sync s3://$X .", Ask),
            ("aws s3api get-object --bucket bucket --key attestations/a out", Allow),
            ("aws s3api get-object --bucket=bucket --key=other out", Deny),
            ("gsutil cp gs://open/a .", Allow),
            ("gsutil cp gs://shut/a .", Deny),
            ("python3 tool.py --to=s3://elsewhere/a", Deny),
            ("curl https://bucket.s3.eu-west-1.amazonaws.com/attestations/a", Allow),
            ("curl https://s3.amazonaws.com/bucket/other", Deny),
            ("curl https://storage.googleapis.com/shut/a", Deny),
            ("curl https://x.example/", Allow),
            ("aws s3 rm \"$X\"", Ask),
            ("aws s3 cp $X/x .", Ask),
            ("gsutil rm -r $X", Ask),
            ("cat list | xargs -n1 aws s3 rm", Ask),
            ("aws s3 cp \"$FILE\" s3://bucket/attestations/a", Allow),
            ("aws ec2 describe-instances --region $R", Allow),
        ],
    );
    let tool = |input: &str| decided(grants, "mcp__f__query", input).verdict;
    assert_eq!(tool(r#"{"uri":"s3://bucket/attestations/a b"}"#), Allow);
    assert_eq!(tool(r#"{"uri":"s3://bucket/other a b"}"#), Deny);
    assert_eq!(tool(r#"{"sql":"select * from 's3://bucket/other'"}"#), Deny);
    assert_eq!(tool(r#"{"sql":"select * from 's3://bucket/attestations/a'"}"#), Allow);
    // What lies below is not known, and may be what is denied.
    let part = r#"{"storage":{"deny":["s3://bucket/keys/*","gs://b/keys/*"]}}"#;
    all(
        part,
        &[
            ("aws s3 sync s3://bucket/ .", Ask),
            ("aws s3 sync s3://bucket .", Ask),
            ("aws s3 cp --recursive s3://bucket/ke s3://elsewhere/", Allow),
            ("aws s3 cp --recursive s3://bucket/keys .", Deny),
            ("aws s3 rm s3://bucket --recursive", Ask),
            ("aws s3 rb s3://bucket --force", Ask),
            ("aws s3 sync s3://bucket/public .", Allow),
            ("aws s3 cp s3://bucket/public/a .", Allow),
            ("aws s3 ls s3://bucket", Allow),
            ("gsutil -m cp -r gs://b .", Ask),
            ("gsutil cp 'gs://b/**' .", Ask),
            ("gsutil cp 'gs://b/public/*' .", Allow),
            ("gsutil rsync gs://b/public .", Allow),
            ("gcloud storage cp --recursive gs://b/ .", Ask),
            ("s5cmd cp 's3://bucket/k*' .", Ask),
        ],
    );
    // Storage that is granted needs no grant as an API.
    let both = r#"{"storage":{"allow":["s3://bucket/*"]},"apis":{"allow":["https://api.x.example/*"]}}"#;
    all(both, &[("curl https://bucket.s3.amazonaws.com/a", Allow), ("curl https://other.s3.amazonaws.com/a", Deny)]);
}

#[test]
fn stores_over_the_web() {
    let json = "curl https://storage.googleapis.com";
    all(
        r#"{"storage":{"deny":["s3://prod/**","gs://prod/*"]}}"#,
        &[
            ("curl https://s3.amazonaws.com/%70rod/x", Deny),
            ("curl https://s3.amazonaws.com/a/../prod/x", Deny),
            ("curl https://s3.amazonaws.com//prod/x", Ask),
            ("curl https://s3.amazonaws.com/prod%2Fx", Deny),
            ("curl https://other.s3.amazonaws.com//x", Allow),
            (&format!("{json}/prod/x"), Deny),
            (&format!("{json}/storage/v1/b/prod/o/x"), Deny),
            (&format!("{json}/storage/v1/b/prod/o/a%2Fb"), Deny),
            (&format!("{json}/download/storage/v1/b/prod/o/x?alt=media"), Deny),
            (&format!("{json}/upload/storage/v1/b/prod/o?name=x"), Deny),
            (&format!("{json}/storage/v1/b/open/o/x/copyTo/b/prod/o/y"), Deny),
            (&format!("{json}/storage/v1/b/$X/o/y"), Ask),
            (&format!("{json}/batch/storage/v1"), Ask),
            (&format!("{json}/storage/v1/b/open/o/x"), Allow),
            ("curl https://www.googleapis.com/storage/v1/b/%70rod/o/x", Deny),
            ("curl https://www.googleapis.com/storage/v1/b/open/o/prod%2Fx", Allow),
            ("curl https://www.googleapis.com/drive/v3/files/x", Allow),
            ("aws s3api copy-object --copy-source %70rod/x --bucket mine --key y", Deny),
            ("aws s3 cp s3://PROD/x .", Deny),
        ],
    );
    all(
        r#"{"storage":{"allow":["gs://open/*"]},"apis":{"allow":[]}}"#,
        &[
            ("curl https://www.googleapis.com/storage/v1/b/open/o/a%2Fb", Allow),
            ("curl https://www.googleapis.com/storage/v1/b/open/o/x/rewriteTo/b/other/o/y", Deny),
            ("curl https://storage.googleapis.com/upload/storage/v1/b/open/o", Allow),
            ("curl https://storage.googleapis.com/storage/v1/b/other/o/x", Deny),
        ],
    );
}

#[test]
fn what_curl_asks_for_instead_of_its_urls_path() {
    all(
        r#"{"apis":{"deny":["https://api.github.com/orgs/*"]}}"#,
        &[
            ("curl https://api.github.com --request-target /orgs/x", Deny),
            ("sudo curl --request-t /orgs/x api.github.com/user", Deny),
            ("curl --request-target https://api.github.com/orgs/x https://api.github.com", Deny),
            ("curl --request-target $X https://api.github.com", Ask),
            ("curl --request-target /user https://api.github.com", Allow),
            ("curl --request GET https://api.github.com", Allow),
            ("curl --request-target /orgs/x https://x.example", Allow),
        ],
    );
}

/// What is granted of APIs is no matter of programs that speak another protocol.
#[test]
fn programs_that_speak_no_http() {
    all(
        r#"{"apis":{"deny":["https://api.x.example/keys/*"]}}"#,
        &[
            ("psql \"$DATABASE_URL\" -c 'select 1'", Allow),
            ("ssh \"$HOST\" ls", Allow),
            ("redis-cli -h api.x.example ping", Allow),
            ("curl \"$URL\"", Ask),
            ("bash -c 'psql \"$A\"; curl \"$B\"'", Ask),
            ("eval \"psql $A; curl $B\"", Ask),
            ("psql -c '\\! curl https://api.x.example/keys/1'", Deny),
            ("psql -c '\\! curl \"$U\"'", Ask),
            ("ssh -L 8080:api.x.example:443 h", Ask),
        ],
    );
    all(
        r#"{"apis":{"allow":["http://localhost/*"]}}"#,
        &[
            ("psql -h localhost", Allow),
            ("curl http://localhost/x", Allow),
            ("curl https://localhost/x", Deny),
            ("curl -x localhost:80 http://x.example/", Deny),
        ],
    );
}

#[test]
fn what_gh_asks_of_the_api() {
    let grants = r#"{"apis":{"deny":["https://api.github.com/repos/acme/secret/*"]}}"#;
    all(
        grants,
        &[
            ("gh api repos/acme/secret/contents/a", Deny),
            ("gh api -X DELETE /repos/acme/secret/keys/1", Deny),
            ("gh api --jq .name 'repos/{owner}/secret/keys'", Ask),
            ("gh api repos/acme/open/issues", Allow),
            ("gh api 'search/issues?q=repo:acme/secret'", Allow),
            ("gh api --hostname git.x.example repos/acme/secret/keys", Allow),
            ("gh api https://api.github.com/repos/acme/secret/keys", Deny),
        ],
    );
    all(
        r#"{"apis":{"allow":["https://api.github.com/repos/acme/*"]}}"#,
        &[
            ("gh api user", Deny),
            ("gh api repos/acme/x", Allow),
            // Which of its URLs it sends something to, no word says.
            ("gh issue create -R acme/x --body y", Ask),
            ("gh release upload v1 x.tgz", Ask),
            ("gh pr list", Allow),
        ],
    );
}

#[test]
fn a_pattern_of_a_tool_holds_every_spelling_of_an_address() {
    let policy = r#"{"version":"1.0","name":"x","tools":{"deny":["WebFetch:*evil.example/secret*"]}}"#;
    let policy = Policy::parse(policy.as_bytes(), ROOT).unwrap();
    let setting = Setting { now: Timestamp::from_millis(0), home: Some("/h".to_owned()), protected: Vec::new() };
    for (url, expected) in [
        ("https://evil.example/secret", Deny),
        ("https://EVIL.example/secret", Deny),
        ("https://ev%69l.example/secret", Deny),
        ("https://evil.example/%73ecret", Deny),
        ("https://evil.example/a/../secret", Deny),
        ("evil.example/./secret", Deny),
        ("https://good.example/secret", Allow),
    ] {
        let input = json::parse_with(format!(r#"{{"url":"{url}","prompt":"p"}}"#).as_bytes(), Limits::FOREIGN).unwrap();
        let call = ToolCall::new("WebFetch", input, ROOT);
        assert_eq!(decide(&policy, &call, &setting, &Lexical).verdict, expected, "{url}");
    }
}
