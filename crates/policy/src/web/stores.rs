//! Web addresses of stores: which bucket and object a path at one of their hosts is.

use crate::url;

/// Something in a store that is asked for over the web.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Stored {
    /// As the store itself calls it: `s3://bucket/key`.
    pub address: String,
    /// More follows that the address does not tell.
    pub open: bool,
}

/// What a path is at a host; nothing where that is no store's.
pub(super) fn stored(host: &str, path: &str, query: Option<&str>) -> Vec<Stored> {
    let whole = || place(host, decoded(path).trim_start_matches('/'));
    let named = |address| vec![Stored { address, open: false }];
    google(host, path, query).unwrap_or_else(|| whole().map(named).unwrap_or_default())
}

/// The store's own address of a path at one of its hosts.
pub(super) fn place(host: &str, path: &str) -> Option<String> {
    let amazon = host.strip_suffix(".cn").filter(|host| host.ends_with(".com")).unwrap_or(host);
    if let Some(front) = amazon.strip_suffix(".amazonaws.com") {
        let labels: Vec<&str> = front.split('.').collect();
        let at = labels.iter().position(|label| *label == "s3" || label.starts_with("s3-"))?;
        let front = labels.get(..at).unwrap_or_default();
        // An endpoint of a network of one's own: `[BUCKET.]bucket.vpce-ID.s3.REGION.vpce.amazonaws.com`.
        let front = match front {
            [bucket @ .., "bucket", endpoint] if endpoint.starts_with("vpce-") => bucket,
            other => other,
        };
        let bucket = front.join(".");
        return Some(if bucket.is_empty() { format!("s3://{path}") } else { format!("s3://{bucket}/{path}") });
    }
    if ["storage.googleapis.com", "storage.cloud.google.com", "commondatastorage.googleapis.com"].contains(&host) {
        return Some(format!("gs://{path}"));
    }
    let ends = [".storage.googleapis.com", ".commondatastorage.googleapis.com"];
    let bucket = ends.iter().find_map(|end| host.strip_suffix(end)).map(|bucket| format!("gs://{bucket}/{path}"));
    let account = [".blob.core.windows.net", ".dfs.core.windows.net"].iter().find_map(|end| host.strip_suffix(end));
    bucket.or_else(|| account.map(|account| format!("az://{account}/{path}")))
}

/// Google's JSON API: `/storage/v1/b/BUCKET/o/OBJECT`, in which a slash of an object's name is `%2F`; `None` where a path is none of its.
pub(super) fn google(host: &str, path: &str, query: Option<&str>) -> Option<Vec<Stored>> {
    if !host.ends_with(".googleapis.com") {
        return None;
    }
    let segments: Vec<String> = path.trim_start_matches('/').split('/').map(decoded).collect();
    let at = segments.iter().position(|segment| segment == "storage").filter(|at| *at <= 2)?;
    let (front, rest) = segments.split_at_checked(at)?;
    let names: Vec<&str> = rest.iter().map(String::as_str).filter(|name| !name.is_empty()).collect();
    let [_, version, tail @ ..] = names.as_slice() else { return None };
    if !version.starts_with('v') {
        return None;
    }
    // Many requests in one.
    let any = || vec![Stored { address: "gs:".to_owned(), open: true }];
    match tail {
        _ if front.iter().any(|name| name == "batch") => Some(any()),
        ["b", bucket, "o"] if front.iter().any(|name| name == "upload") => Some(vec![uploaded(bucket, query)]),
        ["b", bucket, "o", object, "copyTo" | "rewriteTo", "b", other, "o", copy, ..] => {
            Some(vec![object_of(bucket, object), object_of(other, copy)])
        }
        ["b", bucket, "o", object, ..] => Some(vec![object_of(bucket, object)]),
        ["b", bucket, ..] => Some(vec![Stored { address: format!("gs://{bucket}"), open: false }]),
        [] | ["b"] => Some(vec![Stored { address: "gs:".to_owned(), open: false }]),
        _ => None,
    }
}

fn object_of(bucket: &str, object: &str) -> Stored {
    Stored { address: format!("gs://{bucket}/{object}"), open: false }
}

/// An upload names its object in the query, or in what it sends.
fn uploaded(bucket: &str, query: Option<&str>) -> Stored {
    let pairs = ::url::form_urlencoded::parse(query.unwrap_or_default().as_bytes());
    let name = pairs.filter(|(key, _)| key == "name").map(|(_, name)| name.into_owned()).last();
    name.map_or_else(|| Stored { address: format!("gs://{bucket}"), open: true }, |name| object_of(bucket, &name))
}

fn decoded(path: &str) -> String {
    url::decoded(path, |letter, out| out.push(letter))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn addresses(host: &str, path: &str, query: &str) -> Vec<String> {
        let each = stored(host, path, Some(query)).into_iter();
        each.map(|stored| if stored.open { format!("{}…", stored.address) } else { stored.address }).collect()
    }

    #[test]
    fn what_paths_are_in_stores() {
        let google = "storage.googleapis.com";
        for (host, path, query, expected) in [
            ("s3.amazonaws.com", "/%70rod/x", "", vec!["s3://prod/x"]),
            ("prod.s3.cn-north-1.amazonaws.com.cn", "/x", "", vec!["s3://prod/x"]),
            ("prod.bucket.vpce-1a-5e.s3.us-east-1.vpce.amazonaws.com", "/x", "", vec!["s3://prod/x"]),
            ("bucket.vpce-1a-5e.s3.us-east-1.vpce.amazonaws.com", "/prod/x", "", vec!["s3://prod/x"]),
            ("bucket.s3.amazonaws.com", "/x", "", vec!["s3://bucket/x"]),
            (google, "/prod/x", "", vec!["gs://prod/x"]),
            ("commondatastorage.googleapis.com", "/prod/x", "", vec!["gs://prod/x"]),
            ("prod.commondatastorage.googleapis.com", "/x", "", vec!["gs://prod/x"]),
            (google, "/storage/v1/b/prod/o/a%2Fb", "alt=media", vec!["gs://prod/a/b"]),
            (google, "/download/storage/v1/b/prod/o/x", "", vec!["gs://prod/x"]),
            ("www.googleapis.com", "/storage/v1/%62/%70rod/o/x/acl", "", vec!["gs://prod/x"]),
            (google, "/upload/storage/v1/b/prod/o", "uploadType=media&name=a/b", vec!["gs://prod/a/b"]),
            (google, "/resumable/upload/storage/v1/b/prod/o", "", vec!["gs://prod…"]),
            (google, "/storage/v1/b/a/o/x/rewriteTo/b/prod/o/y", "", vec!["gs://a/x", "gs://prod/y"]),
            (google, "/batch/storage/v1", "", vec!["gs:…"]),
            (google, "/storage/v1/b/prod", "", vec!["gs://prod"]),
            (google, "/storage/v1/b", "", vec!["gs:"]),
            ("x.blob.core.windows.net", "/c/x", "", vec!["az://x/c/x"]),
            ("x.example", "/storage/v1/b/prod/o/x", "", vec![]),
        ] {
            assert_eq!(addresses(host, path, query), expected, "{host}{path}");
        }
    }
}
