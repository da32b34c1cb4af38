use super::*;

#[test]
fn lines_are_fit_to_be_shown() {
    for (line, shown) in [
        ("PGPASSWORD=hunter2 psql -c 'SELECT 1'", "PGPASSWORD=[secret] psql -c 'SELECT 1'"),
        ("vault --token hunter2 rm  x", "vault --token [secret] rm  x"),
        ("vault --token=\"hunter2\" rm", "vault --token=\"[secret]\" rm"),
        ("curl -u me:hunter2 https://x/", "curl -u me:[secret] https://x/"),
        ("psql postgres://me:hunter2@db:5/x?y", "psql postgres://me:[secret]@db:5/x?y"),
        ("psql postgres://me:hun@ter2@db/x", "psql postgres://me:[secret]@db/x"),
        ("curl -H 'Authorization: Bearer hunter2' x", "curl -H 'Authorization: [secret]' x"),
        ("rm -rf /data && git push --force", "rm -rf /data && git push --force"),
        ("docker run -p 80:80 -u 1000:1000 web", "docker run -p 80:80 -u 1000:1000 web"),
        ("echo hunter2 | docker login --password-stdin x", "echo [secret] | docker login --password-stdin x"),
    ] {
        assert_eq!(hide(line), shown);
    }
}

#[test]
fn no_spelling_leaks() {
    let mut leaks = Vec::new();
    for line in include_str!("spellings.txt").lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        let shown = hide(line);
        if ["hunter2", "tr0ub4dor"].iter().any(|secret| shown.contains(secret)) {
            leaks.push(shown);
        }
    }
    assert!(leaks.is_empty(), "{} leak:\n{}", leaks.len(), leaks.join("\n"));
}

#[test]
fn what_is_no_secret_stays() {
    for line in [
        "git commit -m 'token handling: done'",
        "cp src/password_reset.rs src/tokens.rs",
        "docker run -p 8080:80 --name web nginx",
        "ssh -p 2222 host",
        "mkdir -p a/b",
        "export TOKEN=$(cat t)",
        "mysql -u root -P 3306 -h db shop",
        "PWD=/srv/app make",
        "psql -U me -d shop -c 'SELECT 1'",
        "tar -xzf a.tgz -C /srv",
        "`/srv/a/b.txt` is in no commit",
        "everything below `/data`, outside the project, is removed",
        "rm -rf ~/.ssh/id_rsa",
        "kubectl get secret db -o yaml",
        "aws s3 cp a s3://b/c",
        "max_tokens=100",
        "curl -H 'Accept: application/json' https://x.example/a?page=2",
        "password_file=/run/p",
        "sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
        "it's there, and it doesn't matter",
        "grep -rn Base64Encode src",
        "docker pull registry.example/shop:1@sha256:9f86d081884c7d659a2feaa0c55ad015",
        "npm install react@npm:preact@18.2.0",
        "kubectl create secret generic app --from-file=a.txt",
        "kubectl patch deploy web -p x",
        "psql -p 5432 -U me shop",
        "vault token lookup",
        "git add src/password.rs src/b.rs",
        "git config core.editor vim",
        "aws s3api get-object --key photos/a.jpg",
        "sort --key=2 a.txt",
        "make PRIMARY_KEY=id",
        "npm set registry https://r.example",
        "gh auth login",
        "cat /etc/passwd | grep root",
        "terraform apply -var region=eu",
        "heroku config:set NODE_ENV=production",
        "redis-cli SET page:1 html",
    ] {
        assert_eq!(hide(line), line);
    }
}

#[test]
fn values_in_json_and_yaml_are_masked() {
    for (text, shown) in [
        (r#"{"run":"mysql -pS3cretX db","n":1}"#, r#"{"run":"mysql -p[secret] db","n":1}"#),
        (r#"{"steps":["ls","curl -u me:S3cretX h"]}"#, r#"{"steps":["ls","curl -u me:[secret] h"]}"#),
        (r#"{"passwords":["one","two"],"names":["a"]}"#, r#"{"passwords":["[secret]","[secret]"],"names":["a"]}"#),
        (r#"{\"passwords\":[\"one\",\"two\"]}"#, r#"{\"passwords\":[\"[secret]\",\"[secret]\"]}"#),
        ("password: |\n  S3cretX\nuser: me", "password: |\n  [secret]\nuser: me"),
        ("db_password:\n    \"two words\"\n", "db_password:\n    \"[secret]\"\n"),
    ] {
        assert_eq!(hide(text), shown);
    }
    for plain in [
        "password:\n  value: x\n",
        "passwords:\n  - rotate them\n",
        "Enter your password:\n  and press return\n",
        r#"{"run":"git commit -m 'a b'","paths":["a b","c"]}"#,
        "secrets: []",
    ] {
        assert_eq!(hide(plain), plain);
    }
}

#[test]
fn tokens_are_masked_and_names_are_not() {
    let token = format!("ghp_{}", "aB3".repeat(12));
    assert_eq!(mask(&format!("/w/{token}/x")), "/w/[secret]/x");
    assert_eq!(mask(&token), "[secret]");
    assert_eq!(mask(&format!("a={token},b")), "a=[secret],b");
    for plain in ["/w/src/ghp_short", "task-skeleton-of-a-very-long-file-name.rs", "sk-learn", "", "/usr/bin/git"] {
        assert_eq!(mask(plain), plain);
    }
}

#[test]
fn tokens_are_told_from_names_that_begin_like_them() {
    let long = "aB3".repeat(12);
    for start in ["ghp_", "glpat-", "npm_", "hf_", "sk-", "sk-proj-", "eyJ", "xoxb-", "hvs.", "ya29."] {
        assert!(has_token(&format!("curl -H 'Authorization: Bearer {start}{long}' x")), "{start}");
    }
    assert!(has_token("?key=AKIAABCDEFGHIJKLMNOP&x") && has_token("AKIA2E0A8F3B244C9986"));
    assert!(has_token(&format!("https://x.example/a.ghp_{long}")));
    for plain in [
        "npm_config_fetch_retry_mintimeout=1 npm ci",
        "pip install sk-something-with-a-very-long-name-2",
        "pypi-attestations-and-other-long-names",
        "eyJ",
        "AKIA",
        "cat hf_transformers_checkpoint_of_a_model",
        "sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
    ] {
        assert!(!has_token(plain), "{plain}");
    }
}

#[test]
fn long_texts_end() {
    for text in
        ["'".repeat(50_000), "\"a ".repeat(30_000), "-p ".repeat(50_000), "a=".repeat(50_000), "://".repeat(30_000)]
    {
        hide(&text);
    }
}

#[test]
fn names_of_hosts_and_ids_hold_no_tokens() {
    let token = "ghp_".to_owned() + &"a1B2".repeat(9);
    let host = format!("{}.evil.example", token.to_lowercase());
    assert_eq!(mask_host(&host), "[secret].evil.example");
    assert_eq!(mask_host("akia2e0a8f3b244c9986.example"), "[secret].example");
    for fine in ["key-management-service-for-everybody.example", "sk-learn-docs-for-people.example", "127.0.0.1", ""] {
        assert_eq!(mask_host(fine), fine);
    }
    let other = "ghp_".to_owned() + &"a1B3".repeat(9);
    for (one, two) in [(token.clone(), other.clone()), (format!("mcp__{token}__t"), format!("mcp__{other}__t"))] {
        let masked = mask_id(&one);
        assert!(!masked.contains("a1B2") && masked != mask_id(&two) && mask_id(&masked) == masked, "{masked}");
    }
    for fine in ["toolu_01A09q90qw90lq917835lq9", "mcp__github__list", "c1", "acceptEdits"] {
        assert_eq!(mask_id(fine), fine);
    }
}
