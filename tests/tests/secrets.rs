//! `grants.secrets`: programs in a sandbox use a secret without having it.

#[cfg(test)]
#[path = "workplace/host.rs"]
mod host;
#[cfg(test)]
#[expect(dead_code, reason = "other tests need more of it")]
#[path = "workplace/lab.rs"]
mod lab;
#[cfg(test)]
#[expect(dead_code, reason = "other tests need more of it")]
mod workplace;

use std::fs;
use std::path::PathBuf;

use host::{CANARY, Host, name};
use serde_json::{Value, json};

/// Nothing that was said holds the value.
fn clean(said: &str) {
    assert!(!said.contains("c4n4ry") && !said.contains("YzRuNHJ5"), "{said}");
}

#[test]
fn programs_use_a_secret_without_having_it() {
    let host = Host::start("secrets-programs");
    let lab = host.lab("secrets-programs", &host.policy());
    let asks = |line: &str| {
        let (code, said) = lab.run(line);
        clean(&said);
        assert_eq!(code, Some(0), "{line}\n{said}\n{:#?}", lab.rows("connection"));
        said
    };
    let url = host.url("/");
    let said = asks(&format!("curl -sS --fail -H \"Authorization: Bearer $API_TOKEN\" {url}"));
    assert!(said.contains("hello Bearer ***"), "{said}");
    assert!(host.seen().contains(&format!("Bearer {CANARY}")));
    asks(&format!("curl -sS --fail -u me:$API_TOKEN -H \"Private-Token: $API_TOKEN\" {url}"));
    assert!(host.seen().to_lowercase().contains(&format!("private-token: {CANARY}")));
    let git = host.url("/repo.git").replace("https://", "https://me:$API_TOKEN@");
    let said = asks(&format!("git ls-remote {git}"));
    assert!(said.contains("refs/heads/mock-head"), "{said}");
    host.seen();
    let python = "import os,sys,urllib.request as u; print(u.urlopen(u.Request(sys.argv[1], headers={'Authorization': os.environ['API_TOKEN']})).read())";
    assert!(asks(&format!("python3 -c \"{python}\" {url}")).contains("hello ***"));
    assert!(host.seen().contains(CANARY));
    // Node before 24 knows no proxy: it finds the host by its name.
    if name() != "localhost" {
        let node = "require('https').get(process.argv[1],{headers:{authorization:process.env.API_TOKEN}},r=>r.pipe(process.stdout))";
        assert!(asks(&format!("node -e \"{node}\" {url}")).contains("hello ***"));
        assert!(host.seen().contains(CANARY));
    }
    fs::create_dir_all(lab.repository().join("src")).unwrap();
    let manifest = "[package]\nname = \"own\"\nversion = \"1.0.0\"\nedition = \"2021\"\n[dependencies]\nmock-dep = { version = \"1\", registry = \"mock\" }\n[workspace]\n";
    fs::write(lab.repository().join("Cargo.toml"), manifest).unwrap();
    fs::write(lab.repository().join("src/lib.rs"), "").unwrap();
    // A toolchain below a home that is closed to others is not there for root's calls, so the program alone is.
    fs::copy(std::env::var_os("CARGO").unwrap(), lab.place.folder.join("cargo")).unwrap();
    asks(&format!(
        "CARGO_HOME=/tmp/cargo CARGO_REGISTRIES_MOCK_INDEX=sparse+{} CARGO_REGISTRIES_MOCK_TOKEN=$API_TOKEN \
         CARGO_REGISTRY_GLOBAL_CREDENTIAL_PROVIDERS=cargo:token ~/cargo generate-lockfile",
        host.url("/cargo/")
    ));
    assert!(host.seen().contains(CANARY));
    let rows = lab.rows("connection");
    assert!(rows.iter().any(|row| row["connection"]["secrets"] == json!(["API_TOKEN"])), "{rows:#?}");
    let phase = lab.phase("sandbox");
    assert_eq!(phase["outcome"], "passed", "{phase}");
    assert!(phase["summary"].as_str().unwrap().contains("secrets API_TOKEN (in "), "{phase}");
    assert_eq!(lab.files_with("c4n4ry"), [] as [PathBuf; 0]);
}

#[test]
fn a_value_is_nowhere_inside() {
    let host = Host::start("secrets-inside");
    let lab = host.lab("secrets-inside", &host.policy());
    let (code, said) =
        lab.run("env; for f in /proc/[0-9]*/environ /proc/[0-9]*/cmdline; do tr '\\0' '\\n' < $f; done; true");
    clean(&said);
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains("API_TOKEN=writ_secret_") && !said.contains("MY_VALUE=") && !said.contains("COPY"), "{said}");
    let (_, said) = lab.run("p=1; cat /proc/$p/environ /proc/$p/mem; grep -l c4n4r[y] -r /dev/trust . ; ls -l /dev/trust; tail -2 /dev/trust/bundle.pem");
    clean(&said);
    assert!(said.contains("END CERTIFICATE") && !said.contains("KEY"), "{said}");
    // One session, one placeholder: what one call writes down the next can use.
    let once = lab.run("echo $API_TOKEN").1;
    assert_eq!(lab.run("echo $API_TOKEN").1, once);
    let other = host.lab("secrets-other", &host.policy());
    assert_ne!(other.run("echo $API_TOKEN").1, once);
    assert_eq!(lab.files_with("c4n4ry"), [] as [PathBuf; 0]);
    let said = String::from_utf8(lab.writ(&["sandbox", "plan"]).stdout).unwrap();
    assert!(said.contains(&format!("API_TOKEN from env:MY_VALUE for {}\n", name())), "{said}");
    clean(&said);
    clean(&String::from_utf8(lab.writ(&["sandbox", "plan", "--format", "json"]).stdout).unwrap());
}

#[test]
fn a_placeholder_is_worth_nothing_elsewhere() {
    let host = Host::start("secrets-elsewhere");
    let lab = host.lab("secrets-elsewhere", &host.policy());
    let through = "curl -sS -m 10 --noproxy '' -x http://127.0.0.1:3128";
    // In the clear, to a host that is allowed and not bound.
    let (_, said) = lab.run(&format!("{through} -H \"Authorization: $API_TOKEN\" http://localhost/"));
    assert!(said.contains("the placeholder of secret `API_TOKEN` is not for `localhost`"), "{said}");
    // In a place of the bound host where nothing is put in.
    let (_, said) = lab.run(&format!("curl -sS -m 10 \"{}?q=$API_TOKEN\"", host.url("/")));
    assert!(said.contains("stands where nothing is put in"), "{said}");
    let words: Vec<Value> =
        lab.rows("connection").iter().map(|row| row["connection"]["refusal"]["word"].clone()).collect();
    assert_eq!(words, [json!("placeholder"), json!("place")]);
    assert!(!host.seen().contains("c4n4ry"));
    let phase = lab.phase("sandbox");
    assert!(phase["summary"].as_str().unwrap().contains("2 refused; secrets API_TOKEN (unused)"), "{phase}");
}

#[test]
fn a_secret_without_a_value_runs_nothing() {
    let host = Host::start("secrets-missing");
    let mut lab = host.lab("secrets-missing", &host.policy());
    let (id, answer) = lab.ask("echo one");
    assert!(answer["updatedInput"].is_object(), "{answer}");
    lab.variables.retain(|(name, _)| name != "MY_VALUE");
    let ran = lab.writ(&["exec", "--session", workplace::SESSION, "--call", &id, "--", "echo one"]);
    let said = String::from_utf8(ran.stderr).unwrap();
    assert_eq!((ran.status.code(), ran.stdout), (Some(126), Vec::new()));
    assert!(
        said.starts_with("writ: it did not run: ")
            && said.contains("secret `API_TOKEN` has no value: the variable `MY_VALUE` is not set"),
        "{said}"
    );
    let (_, answer) = lab.ask("echo two");
    assert_eq!(answer["permissionDecision"], "deny", "{answer}");
    assert!(answer["permissionDecisionReason"].as_str().unwrap().contains("`MY_VALUE` is not set"), "{answer}");
}

/// A value in a file: the file itself is hidden inside. A changed policy takes secrets away and gives none.
#[test]
fn a_file_holds_a_value_and_a_changed_policy_only_tightens() {
    let host = Host::start("secrets-file");
    let mut policy = host.policy();
    policy["grants"]["secrets"]["bind"][0]["from"] = json!("file:~/token");
    let lab = host.lab("secrets-file", &policy);
    fs::write(lab.place.folder.join("token"), format!("{CANARY}\n")).unwrap();
    // What reads it outside of any sandbox is told no.
    let (_, answer) = lab.ask("cat ~/token");
    assert_eq!(answer["permissionDecision"], "deny", "{answer}");
    assert!(answer["permissionDecisionReason"].as_str().unwrap().contains("/grants/secrets/bind/0/from"), "{answer}");
    let line =
        format!("f=~/tok$(echo ne | rev); cat $f; curl -sS --fail -H \"Authorization: $API_TOKEN\" {}", host.url("/"));
    let (_, said) = lab.run(&line);
    clean(&said);
    assert!(said.contains("hello ***") && said.contains("Permission denied"), "{said}");
    assert!(host.seen().contains(CANARY));
    policy["grants"]["secrets"]["bind"] = json!([]);
    fs::write(lab.repository().join(".aflock"), policy.to_string()).unwrap();
    assert_eq!(lab.run("echo [$API_TOKEN]").1, "[]\n");
    let (_, said) = lab.run("f=~/tok$(echo ne | rev); cat $f");
    clean(&said);
}

#[test]
fn what_grants_refuse_no_program_gets() {
    let host = Host::start("secrets-refused");
    let mut policy = host.policy();
    policy["grants"]["secrets"]["deny"] = json!(["env:DATABASE_*"]);
    policy["grants"]["apis"] = json!({
        "allow": [format!("https://{}:{}/open/*", name(), host.port)],
        "deny": [format!("https://{}/open/admin/*", name())]
    });
    let mut lab = host.lab("secrets-refused", &policy);
    lab.variables.push(("DATABASE_URL".to_owned(), "postgres://u:p4ssw0rd@db/x".to_owned()));
    lab.variables.push(("DATABASES".to_owned(), "two".to_owned()));
    // A script, of which no line shows what it reads and asks for.
    let script = format!(
        "import os, sys, urllib.request as ask, urllib.error\n\
         print('there' if 'DATABASE_URL' in os.environ else 'gone', os.environ['DATABASES'])\n\
         for path in ['/open/x', '/open/admin/x', '/open/./%61dmin/x', '/open//admin/x', '/other']:\n\
         \x20   try:\n\
         \x20       print(path, ask.urlopen('https://{}:{}' + path).status)\n\
         \x20   except urllib.error.HTTPError as error:\n\
         \x20       print(path, error.code, error.headers['X-Writ-Refused'], error.read().decode())\n",
        name(),
        host.port
    );
    fs::write(lab.repository().join("ask.py"), script).unwrap();
    let (code, said) = lab.run("python3 ask.py");
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains("gone two") && said.contains("/open/x 200"), "{said}");
    for path in ["/open/admin/x", "/open/./%61dmin/x", "/open//admin/x"] {
        assert!(said.contains(&format!("{path} 403 api writ: ")), "{said}");
    }
    assert!(said.contains("/other 403 api writ: ") && said.contains("is not granted (/grants/apis/allow)"), "{said}");
    let seen = host.seen();
    assert!(seen.contains("/open/x") && !seen.contains("admin") && !seen.contains("other"), "{seen}");
    let words: Vec<Value> =
        lab.rows("connection").iter().map(|row| row["connection"]["refusal"]["word"].clone()).collect();
    assert_eq!(words.iter().filter(|word| **word == json!("api")).count(), 4, "{words:?}");
    assert_eq!(lab.files_with("p4ssw0rd"), [] as [PathBuf; 0]);
    assert_eq!(lab.phase("sandbox")["outcome"], "passed");
    let said = String::from_utf8(lab.writ(&["sandbox", "plan"]).stdout).unwrap();
    assert!(
        said.contains("the variable DATABASE_*") && said.contains("paths inside TLS that is passed through"),
        "{said}"
    );
}
