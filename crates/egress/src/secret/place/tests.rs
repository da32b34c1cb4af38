use super::*;
use crate::secret::{SecretRule, SecretValue, placeholder};
use writ_policy::HostRule;

const VALUE: &[u8] = b"hunter2/+ long?";

fn rule(inject: Inject) -> SecretRule {
    SecretRule {
        name: "token".to_owned(),
        placeholder: placeholder().unwrap(),
        hosts: vec![HostRule::parse(String::new(), "*.x.com").unwrap()],
        inject,
        headers: vec!["private-token".to_owned()],
    }
}

fn place(
    inject: Inject,
    host: &str,
    secure: bool,
    target: &str,
    field: (&str, &str),
) -> Result<(String, String), Refusal> {
    let rule = rule(inject);
    let secrets =
        Secrets::new(std::slice::from_ref(&rule), vec![SecretValue::new("token".to_owned(), VALUE.to_vec()).unwrap()])
            .unwrap();
    let filled = |text: &str| {
        let text = text.replace("PLACE", &rule.placeholder).replace("ESCAPED", &rule.placeholder.replace('_', "%5F"));
        match text.strip_prefix("ENCODED ") {
            Some(rest) => STANDARD.encode(rest),
            None => match text.strip_prefix("basic ") {
                Some(rest) => format!("basic {}", STANDARD.encode(rest)),
                None => text,
            },
        }
    };
    let mut fields = Fields {
        target: filled(target).into_bytes(),
        fields: vec![(field.0.to_owned(), filled(field.1).into_bytes())],
    };
    let host = HostName::read(host.as_bytes()).unwrap();
    let used = secrets.place(&host, secure, &mut fields)?;
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    let out = (text(&fields.target), text(&fields.fields[0].1));
    assert_eq!(!used.is_empty(), target.contains("PLACE") || field.1.contains("PLACE"));
    assert!(!out.0.contains("writ_secret_") && !out.1.contains("writ_secret_"));
    Ok(out)
}

#[test]
fn values_are_put_in_where_the_rule_allows_it() {
    for (field, value, sent) in [
        ("authorization", "Bearer PLACE", "Bearer hunter2/+ long?".to_owned()),
        ("cookie", "a=PLACE; b=PLACE", "a=hunter2/+ long?; b=hunter2/+ long?".to_owned()),
        ("x-api-key", "PLACE", "hunter2/+ long?".to_owned()),
        ("private-token", "PLACE", "hunter2/+ long?".to_owned()),
        ("authorization", "basic user:PLACE", format!("Basic {}", STANDARD.encode("user:hunter2/+ long?"))),
        ("authorization", "Bearer other", "Bearer other".to_owned()),
    ] {
        assert_eq!(place(Inject::Header, "a.x.com", true, "/", (field, value)).unwrap().1, sent);
    }
    let (target, _) = place(Inject::Query, "a.x.com", true, "/p?key=PLACE&b", ("accept", "*/*")).unwrap();
    assert_eq!(target, "/p?key=hunter2%2F%2B%20long%3F&b");
}

#[test]
fn placeholders_elsewhere_are_refused() {
    for (host, secure, target, field) in [
        ("y.com", true, "/", ("authorization", "Bearer PLACE")),
        ("x.com", true, "/", ("authorization", "Bearer PLACE")),
        ("a.x.com", false, "/", ("authorization", "Bearer PLACE")),
        ("y.com", true, "/", ("authorization", "basic user:PLACE")),
        ("y.com", true, "/", ("x-data", "ENCODED aPLACE")),
        ("y.com", true, "/?a=PLACE", ("accept", "*/*")),
        ("y.com", true, "/?a=ESCAPED", ("accept", "*/*")),
        ("a.x.com", true, "/", ("x-other", "PLACE")),
        ("a.x.com", true, "/", ("x-other", "basic user:PLACE")),
        ("a.x.com", true, "/", ("authorization", "ENCODED aPLACE")),
        ("a.x.com", true, "/?key=PLACE", ("accept", "*/*")),
        ("a.x.com", true, "/PLACE", ("accept", "*/*")),
    ] {
        assert!(place(Inject::Header, host, secure, target, field).is_err(), "{host} {target} {field:?}");
    }
    assert!(place(Inject::Query, "a.x.com", true, "/PLACE?a=PLACE", ("accept", "*/*")).is_err());
    assert!(place(Inject::Query, "y.com", true, "/?a=PLACE", ("accept", "*/*")).is_err());
}

#[test]
fn values_that_cannot_be_sent_are_refused() {
    for bad in [&b"short"[..], b"line\r\nX: y feed", b"nul\0nul nul", &[b'a'; 9000]] {
        assert!(SecretValue::new("token".to_owned(), bad.to_vec()).is_err());
    }
    let rules = [rule(Inject::Header)];
    let value = |name: &str| SecretValue::new(name.to_owned(), VALUE.to_vec()).unwrap();
    assert!(
        Secrets::new(&rules, vec![]).is_err() && Secrets::new(&rules, vec![value("token"), value("other")]).is_err()
    );
    let debug = format!("{:?} {:?}", value("token"), Secrets::new(&rules, vec![value("token")]).unwrap());
    assert!(!debug.contains("hunter2"), "{debug}");
}
