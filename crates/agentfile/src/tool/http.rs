//! A tool that is an HTTP request: UTCP's `http` template.
//!
//! Owns what arguments make of it: URL, headers, body, and where secrets go. Refuses what would send a request elsewhere than its
//! description says, secrets that stand in it, and OAuth 2. Invariant: no argument changes scheme, host or number of a path's parts. Page:
//! `spec/tools.md`.

use std::collections::BTreeMap;

use serde::Deserialize;
use writ_core::json::{self, Object, Value};
use writ_core::secret::hide;

use super::address::{fill, parts};
use super::template::Text;
use super::{Malformed, plain};

/// The methods that UTCP knows.
const METHODS: [&str; 5] = ["GET", "POST", "PUT", "PATCH", "DELETE"];
/// Headers that say how a request is framed, where it goes, or who sends it: no description and no argument sets them.
const OURS: [&str; 10] = [
    "host",
    "content-length",
    "transfer-encoding",
    "connection",
    "upgrade",
    "te",
    "trailer",
    "expect",
    "proxy-authorization",
    "proxy-connection",
];

/// A tool that is an HTTP request.
#[derive(Clone, Debug, PartialEq)]
pub struct Http {
    method: String,
    url: String,
    content_type: String,
    headers: BTreeMap<String, Text>,
    body: Body,
    header_fields: Vec<String>,
    auth: Option<Auth>,
    pointer: String,
}

/// Which arguments are the body.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Body {
    /// The value of this one.
    Field(String),
    /// All that have no other place.
    Rest,
    /// None.
    Nothing,
}

#[derive(Clone, Debug, PartialEq)]
enum Auth {
    Key { value: Text, name: String, place: Place },
    Basic { user: Text, password: Text },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Place {
    Header,
    Query,
    Cookie,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Wire {
    #[serde(default, rename = "name")]
    _name: Option<Value>,
    #[serde(default, rename = "type", alias = "call_template_type", alias = "provider_type")]
    _kind: Option<Value>,
    #[serde(default, rename = "allowed_communication_protocols")]
    _protocols: Option<Value>,
    /// Of tools that a specification is turned into, not of this one.
    #[serde(default, rename = "auth_tools")]
    _auth_tools: Option<Value>,
    #[serde(default)]
    http_method: Option<String>,
    url: String,
    #[serde(default)]
    content_type: Option<String>,
    #[serde(default)]
    auth: Option<Value>,
    #[serde(default)]
    headers: Option<BTreeMap<String, String>>,
    #[serde(default)]
    body_field: Option<String>,
    #[serde(default)]
    header_fields: Option<Vec<String>>,
}

#[derive(Deserialize)]
#[serde(tag = "auth_type", rename_all = "snake_case", deny_unknown_fields)]
enum WireAuth {
    ApiKey {
        api_key: String,
        #[serde(default)]
        var_name: Option<String>,
        #[serde(default)]
        location: Option<Place>,
    },
    Basic {
        username: String,
        password: String,
    },
}

/// A request, but for the values of its secrets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// `GET`.
    pub method: String,
    /// Where it goes, with the arguments in the query, without secrets.
    pub url: String,
    /// The host in it.
    pub host: String,
    /// Its headers.
    pub headers: Vec<(String, Field)>,
    /// What is added to the query.
    pub query: Vec<(String, Text)>,
    /// Its body.
    pub body: Option<Vec<u8>>,
}

/// What a header says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Field {
    /// This.
    Text(Text),
    /// A name and a password, as `Basic` has them.
    Basic(Text, Text),
}

impl Request {
    /// The variables that it names, and whether they go into `header` or `query`.
    pub fn variables(&self) -> Vec<(&str, &'static str)> {
        let mut out: Vec<(&str, &'static str)> = Vec::new();
        for (_, field) in &self.headers {
            match field {
                Field::Text(text) => out.extend(text.variables().map(|name| (name, "header"))),
                Field::Basic(user, password) => {
                    out.extend(user.variables().chain(password.variables()).map(|name| (name, "header")));
                }
            }
        }
        out.extend(self.query.iter().flat_map(|(_, text)| text.variables().map(|name| (name, "query"))));
        out.sort_unstable();
        out.dedup();
        out
    }
}

impl Http {
    pub(super) fn read(pointer: &str, template: &Value, older: bool) -> Result<Self, Malformed> {
        let wrong = |below: &str, why: &str| Malformed::new(format!("{pointer}{below}"), why);
        let wire: Wire = json::from_value(template).map_err(|error| wrong("", &error.to_string()))?;
        let method = wire.http_method.as_deref().unwrap_or("GET").to_ascii_uppercase();
        if !METHODS.contains(&method.as_str()) {
            return Err(wrong("/http_method", "it is none of GET, POST, PUT, PATCH, DELETE"));
        }
        parts(&wire.url).map_err(|why| wrong("/url", why))?;
        let headers = wire.headers.unwrap_or_default();
        let mut read = BTreeMap::new();
        for (name, value) in headers {
            let place = format!("/headers/{name}");
            header(&name, &value).map_err(|why| wrong(&place, why))?;
            let (pair, text) = (format!("{name}: {value}"), Text::read(&value));
            let secret = is_secret_header(&name) || hide(&pair) != pair;
            if secret && !value.is_empty() && text.variables().next().is_none() {
                return Err(wrong(&place, "a secret stands in the description: write `${NAME}`, and `CRED NAME …`"));
            }
            read.insert(name, text);
        }
        let header_fields = wire.header_fields.unwrap_or_default();
        if let Some(name) = header_fields.iter().find(|name| header(name, "").is_err() || is_secret_header(name)) {
            return Err(wrong("/header_fields", &format!("no argument may be the header `{name}`")));
        }
        let auth = wire.auth.filter(|auth| *auth != Value::Null);
        let auth = auth.map(|auth| self::auth(&auth).map_err(|why| wrong("/auth", &why))).transpose()?;
        // The older providers send what is left as a body, the newer ones as a query.
        let body = match wire.body_field {
            Some(field) => Body::Field(field),
            None if method == "GET" || method == "DELETE" => Body::Nothing,
            None if older => Body::Rest,
            None => Body::Field("body".to_owned()),
        };
        let content_type = wire.content_type.unwrap_or_else(|| "application/json".to_owned());
        header("content-type", &content_type).map_err(|why| wrong("/content_type", why))?;
        Ok(Self {
            method,
            url: wire.url,
            content_type,
            headers: read,
            body,
            header_fields,
            auth,
            pointer: pointer.to_owned(),
        })
    }

    /// The request that it is with these arguments.
    pub fn request(&self, arguments: &Object) -> Result<Request, Malformed> {
        let wrong = |below: &str, why: String| Malformed::new(format!("{}{below}", self.pointer), why);
        let mut rest: Vec<(&str, &Value)> = arguments.iter().collect();
        let mut take = |wanted: &str| {
            let at = rest.iter().position(|(name, _)| *name == wanted)?;
            Some(rest.remove(at).1)
        };
        let mut headers: Vec<(String, Field)> =
            self.headers.iter().map(|(name, text)| (name.clone(), Field::Text(text.clone()))).collect();
        for name in &self.header_fields {
            let Some(value) = take(name) else { continue };
            let text = plain(value);
            header(name, &text).map_err(|why| Malformed::new(format!("/{name}"), why))?;
            headers.push((name.clone(), Field::Text(Text(vec![super::Part::Plain(text)]))));
        }
        let body = match &self.body {
            Body::Field(name) => take(name).cloned(),
            Body::Rest | Body::Nothing => None,
        };
        let path = fill(&self.url, &mut take).map_err(|why| wrong("/url", why))?;
        let mut url = parts(&path).map_err(|why| wrong("/url", why.to_owned()))?;
        let body = match self.body {
            Body::Rest if !rest.is_empty() => {
                let all = rest.drain(..).map(|(name, value)| (name.to_owned(), value.clone()));
                Some(Value::Object(all.collect()))
            }
            Body::Rest | Body::Field(_) | Body::Nothing => body,
        };
        if !rest.is_empty() {
            let mut query = url.query_pairs_mut();
            for (name, value) in rest {
                match value {
                    Value::Null => {}
                    Value::Array(items) => {
                        for item in items {
                            query.append_pair(name, &plain(item));
                        }
                    }
                    Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Object(_) => {
                        query.append_pair(name, &plain(value));
                    }
                }
            }
        }
        let body = body.map(|body| self.body(&body).map_err(|why| wrong("/content_type", why))).transpose()?;
        let typed = headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("content-type"));
        if body.is_some() && !typed {
            headers.push(("Content-Type".to_owned(), Field::Text(Text::read(&self.content_type))));
        }
        let mut query = Vec::new();
        match &self.auth {
            None => {}
            Some(Auth::Key { value, name, place: Place::Header }) => {
                headers.push((name.clone(), Field::Text(value.clone())))
            }
            Some(Auth::Key { value, name, place: Place::Query }) => query.push((name.clone(), value.clone())),
            Some(Auth::Key { value, name, place: Place::Cookie }) => {
                let parts = [super::Part::Plain(format!("{name}="))].into_iter().chain(value.0.clone());
                headers.push(("Cookie".to_owned(), Field::Text(Text(parts.collect()))));
            }
            Some(Auth::Basic { user, password }) => {
                headers.push(("Authorization".to_owned(), Field::Basic(user.clone(), password.clone())));
            }
        }
        let host = url.host_str().unwrap_or_default().trim_matches(['[', ']']).to_owned();
        Ok(Request { method: self.method.clone(), url: url.to_string(), host, headers, query, body })
    }

    fn body(&self, value: &Value) -> Result<Vec<u8>, String> {
        let kind = self.content_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
        if kind == "application/json" || kind.ends_with("+json") {
            return Ok(json::compact(value).into_bytes());
        }
        match (kind.as_str(), value) {
            ("application/x-www-form-urlencoded", Value::Object(members)) => {
                let mut form = url::form_urlencoded::Serializer::new(String::new());
                for (name, value) in members.iter() {
                    form.append_pair(name, &plain(value));
                }
                Ok(form.finish().into_bytes())
            }
            (_, Value::String(text)) => Ok(text.clone().into_bytes()),
            _ => Err(format!("a body of the type `{kind}` has to be a text")),
        }
    }
}

/// Whether a header may be set, and to this.
fn header(name: &str, value: &str) -> Result<(), &'static str> {
    let token = |c: char| c.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~".contains(c);
    if name.is_empty() || !name.chars().all(token) {
        return Err("this is no header's name");
    }
    if OURS.contains(&name.to_ascii_lowercase().as_str()) {
        return Err("this header is not a description's to set");
    }
    let visible = |c: char| c == '\t' || (' '..='~').contains(&c);
    if value.chars().all(visible) { Ok(()) } else { Err("a header holds visible letters of ASCII alone") }
}

/// Headers that are for a secret, which no argument is.
fn is_secret_header(name: &str) -> bool {
    ["authorization", "cookie"].contains(&name.to_ascii_lowercase().as_str())
}

fn auth(auth: &Value) -> Result<Auth, String> {
    if let Some(kind) =
        auth.get("auth_type").and_then(Value::as_str).filter(|kind| !["api_key", "basic"].contains(kind))
    {
        return Err(format!("`{kind}` is not spoken from here: `api_key` and `basic` are"));
    }
    let secret = |text: &str| {
        let text = Text::read(text);
        let named = text.variables().next().is_some();
        named
            .then_some(text)
            .ok_or_else(|| "a secret stands in the description: write `${NAME}`, and `CRED NAME …`".to_owned())
    };
    match json::from_value(auth).map_err(|error| error.to_string())? {
        WireAuth::ApiKey { api_key, var_name, location } => {
            let (name, place) = (var_name.unwrap_or_else(|| "X-Api-Key".to_owned()), location.unwrap_or(Place::Header));
            if place != Place::Query {
                header(&name, "").map_err(str::to_owned)?;
            }
            Ok(Auth::Key { value: secret(&api_key)?, name, place })
        }
        WireAuth::Basic { username, password } => {
            Ok(Auth::Basic { user: Text::read(&username), password: secret(&password)? })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Description, How};
    use super::*;

    fn http(template: &str) -> Result<Http, Malformed> {
        let text = format!(r#"{{"tool_call_template":{{"call_template_type":"http",{template}}}}}"#);
        match Description::read(text.as_bytes())?.how {
            How::Http(http) => Ok(*http),
            How::Cli(_) | How::Program | How::Server => panic!("no request"),
        }
    }

    fn request(template: &str, arguments: &str) -> Result<Request, Malformed> {
        http(template)?.request(json::parse(arguments.as_bytes()).unwrap().as_object().unwrap())
    }

    fn said(request: &Request, name: &str) -> Option<String> {
        let field = request.headers.iter().find(|(own, _)| own == name)?;
        match &field.1 {
            Field::Text(text) => Some(text.filled(&|name| format!("<{name}>"))),
            Field::Basic(user, password) => Some(format!(
                "{}:{}",
                user.filled(&|name| format!("<{name}>")),
                password.filled(&|name| format!("<{name}>"))
            )),
        }
    }

    #[test]
    fn arguments_have_their_places() {
        let template = r#""url":"https://api.example/users/{id}?v=1","http_method":"POST","header_fields":["X-Trace"],"headers":{"A":"b"}"#;
        let got = request(
            template,
            r#"{"id":"a/../b?c#d","X-Trace":"t","body":{"k":[1,"x"]},"q":["1","2"],"n":null,"b":true}"#,
        )
        .unwrap();
        assert_eq!(got.url, "https://api.example/users/a%2F..%2Fb%3Fc%23d?v=1&q=1&q=2&b=true");
        assert_eq!((got.method.as_str(), got.host.as_str()), ("POST", "api.example"));
        assert_eq!(got.body.as_deref(), Some(br#"{"k":[1,"x"]}"#.as_slice()));
        assert_eq!(said(&got, "X-Trace").as_deref(), Some("t"));
        assert_eq!(said(&got, "Content-Type").as_deref(), Some("application/json"));
        assert!(got.variables().is_empty());
        let form =
            r#""url":"https://api.example/","http_method":"POST","content_type":"application/x-www-form-urlencoded""#;
        assert_eq!(request(form, r#"{"body":{"a":"b c"}}"#).unwrap().body.as_deref(), Some(b"a=b+c".as_slice()));
        assert!(request(form, r#"{"body":[1]}"#).is_err());
        let older = r#"{"tool_provider":{"provider_type":"http","url":"https://api.example/","http_method":"POST"}}"#;
        let How::Http(older) = Description::read(older.as_bytes()).unwrap().how else { panic!("no request") };
        let all = older.request(json::parse(br#"{"a":1}"#).unwrap().as_object().unwrap()).unwrap();
        assert_eq!(all.body.as_deref(), Some(br#"{"a":1}"#.as_slice()));
    }

    #[test]
    fn no_argument_leads_elsewhere() {
        let template = r#""url":"http://127.0.0.1:8080/a/{x}/b""#;
        for bad in [r#"{"x":".."}"#, r#"{"x":"."}"#, r#"{"x":""}"#, "{}"] {
            assert!(request(template, bad).is_err(), "{bad}");
        }
        for (good, path) in
            [("../..", "/a/..%2F../b"), ("%2e%2e", "/a/%252e%252e/b"), ("a\\\\b", "/a/a%5Cb/b"), ("é", "/a/%C3%A9/b")]
        {
            let got = request(template, &format!(r#"{{"x":"{good}"}}"#)).unwrap();
            assert_eq!(got.url, format!("http://127.0.0.1:8080{path}"));
        }
        for url in [
            "http://api.example/",
            "ftp://127.0.0.1/",
            "https://{host}/",
            "https://user@api.example/",
            "https://api.example%2eevil/",
            "https://${HOST}/",
            "https://api.example/?key=$KEY",
            "file:///etc/passwd",
            "/relative",
        ] {
            assert_eq!(http(&format!(r#""url":"{url}""#)).unwrap_err().pointer, "/tool_call_template/url", "{url}");
        }
        let header = r#""url":"https://api.example/","header_fields":["X"]"#;
        assert!(request(header, r#"{"X":"a\r\nHost: evil"}"#).is_err());
        for (member, pointer) in [
            (r#""header_fields":["Host"]"#, "/header_fields"),
            (r#""header_fields":["authorization"]"#, "/header_fields"),
            (r#""headers":{"Content-Length":"1"}"#, "/headers/Content-Length"),
            (r#""headers":{"A b":"1"}"#, "/headers/A b"),
            (r#""headers":{"Authorization":"Bearer abcdefghijklmnop1234567890"}"#, "/headers/Authorization"),
            (r#""headers":{"X-Api-Key":"abcdefghijklmnop1234567890"}"#, "/headers/X-Api-Key"),
            (r#""http_method":"CONNECT""#, "/http_method"),
            (r#""proxy":"x""#, ""),
        ] {
            let error = http(&format!(r#""url":"https://api.example/",{member}"#)).unwrap_err();
            assert_eq!(error.pointer, format!("/tool_call_template{pointer}"), "{error}");
        }
    }

    #[test]
    fn secrets_are_named_and_never_written() {
        let with = |auth: &str| request(&format!(r#""url":"https://api.example/","auth":{auth}"#), "{}");
        let got = with(r#"{"auth_type":"api_key","api_key":"Bearer ${TOKEN}","var_name":"Authorization"}"#).unwrap();
        assert_eq!(said(&got, "Authorization").as_deref(), Some("Bearer <TOKEN>"));
        assert_eq!(got.variables(), [("TOKEN", "header")]);
        let got = with(r#"{"auth_type":"api_key","api_key":"$TOKEN","var_name":"k","location":"query"}"#).unwrap();
        assert_eq!((got.url.as_str(), got.variables()), ("https://api.example/", vec![("TOKEN", "query")]));
        let got = with(r#"{"auth_type":"api_key","api_key":"$TOKEN","var_name":"k","location":"cookie"}"#).unwrap();
        assert_eq!(said(&got, "Cookie").as_deref(), Some("k=<TOKEN>"));
        let got = with(r#"{"auth_type":"basic","username":"me","password":"${TOKEN}"}"#).unwrap();
        assert_eq!(said(&got, "Authorization").as_deref(), Some("me:<TOKEN>"));
        for (auth, why) in [
            (r#"{"auth_type":"api_key","api_key":"plain"}"#, "a secret stands"),
            (r#"{"auth_type":"basic","username":"me","password":"plain"}"#, "a secret stands"),
            (r#"{"auth_type":"oauth2","client_id":"$A","client_secret":"$B","token_url":"https://x/"}"#, "`oauth2`"),
        ] {
            assert!(with(auth).unwrap_err().why.contains(why), "{auth}");
        }
    }
}
