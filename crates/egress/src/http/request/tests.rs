use super::*;

fn read(text: &str) -> Result<Request, Refusal> {
    Request::read(text.as_bytes())
}

#[test]
fn requests_are_read() {
    let request = read("POST http://API.x.com:81/a?b HTTP/1.1\r\nHost: api.x.com:81\r\nContent-Length: 3\r\nX-A:  b \r\nConnection: X-Hop, keep-alive\r\nX-Hop: 1\r\nProxy-Authorization: x\r\n\r\n").unwrap();
    assert_eq!(request.framing, Framing::Length(3));
    assert_eq!(request.fields, [("x-a".to_owned(), b"b".to_vec())]);
    let (host, port) = request.destination(80).unwrap();
    assert_eq!((host.as_str(), port, request.path()), ("api.x.com", 81, &b"/a?b"[..]));
    let written = write(&request, "api.x.com:81", request.path(), &request.fields);
    assert_eq!(written.as_slice(), b"POST /a?b HTTP/1.1\r\nhost: api.x.com:81\r\ncontent-length: 3\r\nx-a: b\r\n\r\n");
    let bare = read("GET http://x.com?a HTTP/1.0\r\n\r\n").unwrap();
    assert_eq!((bare.path(), bare.keep, bare.chunks), (&b"/?a"[..], false, false));
    let connect = read("CONNECT x.com:443 HTTP/1.1\r\nHost: x.com\r\n\r\n").unwrap();
    assert_eq!(connect.destination(80).unwrap().1, 443);
    let web = read("GET /s HTTP/1.1\r\nHost: x.com\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n").unwrap();
    assert_eq!(web.upgrade.as_deref(), Some(&b"websocket"[..]));
}

#[test]
fn what_programs_read_differently_is_refused() {
    for head in [
        "GET / HTTP/1.1\nHost: x.com\n\n",
        "GET / HTTP/1.1\r\nHost: x.com\nX: y\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: x.com\r\nX: a\rb\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: x.com\r\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: x.com\r\n folded: y\r\n\r\n",
        "GET / HTTP/1.1\r\n Host: x.com\r\n\r\n",
        "\r\nGET / HTTP/1.1\r\nHost: x.com\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: x.com\r\nX: a\0b\r\n\r\n",
        "GET / HTTP/1.1\r\nHost : x.com\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: x.com\r\nHost: x.com\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: x.com, y.com\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: u@x.com\r\n\r\n",
        "GET / HTTP/1.1\r\nHost:\r\n\r\n",
        "GET / HTTP/1.1\r\nX: y\r\n\r\n",
        "GET / HTTP/1.0\r\nX: y\r\n\r\n",
        "GET  / HTTP/1.1\r\nHost: x.com\r\n\r\n",
        "GET / HTTP/1.1 \r\nHost: x.com\r\n\r\n",
        "GET /a b HTTP/1.1\r\nHost: x.com\r\n\r\n",
        "GET /a#b HTTP/1.1\r\nHost: x.com\r\n\r\n",
        "GET / HTTP/2.0\r\nHost: x.com\r\n\r\n",
        "GET x.com HTTP/1.1\r\nHost: x.com\r\n\r\n",
        "GET ftp://x.com/ HTTP/1.1\r\nHost: x.com\r\n\r\n",
        "GET http://x.com\\@y.com/ HTTP/1.1\r\nHost: x.com\r\n\r\n",
        "GET http://u@x.com/ HTTP/1.1\r\nHost: x.com\r\n\r\n",
        "GET http:///x.com HTTP/1.1\r\nHost: x.com\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: x.com\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: x.com\r\nTransfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: x.com\r\nContent-Length: 3\r\nContent-Length: 3\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: x.com\r\nContent-Length: 3, 3\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: x.com\r\nContent-Length: +3\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: x.com\r\nContent-Length: 0x3\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: x.com\r\nContent-Length: \r\n\r\n",
        "POST / HTTP/1.1\r\nHost: x.com\r\nContent-Length: 9999999999999999999\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: x.com\r\nTransfer-Encoding: xchunked\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: x.com\r\nTransfer-Encoding: gzip, chunked\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: x.com\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: x.com\r\nTransfer-Encoding:\x0bchunked\r\n\r\n",
        "POST / HTTP/1.0\r\nHost: x.com\r\nTransfer-Encoding: chunked\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: x.com\r\nConnection: authorization\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: x.com\r\nExpect: 200-ok\r\n\r\n",
        "CONNECT x.com HTTP/1.1\r\nHost: x.com\r\n\r\n",
        "CONNECT http://x.com:443 HTTP/1.1\r\nHost: x.com\r\n\r\n",
        "CONNECT x.com:443/ HTTP/1.1\r\nHost: x.com\r\n\r\n",
    ] {
        assert!(read(head).is_err(), "{head:?}");
    }
    let many = "X: y\r\n".repeat(200);
    assert!(read(&format!("GET / HTTP/1.1\r\nHost: x.com\r\n{many}\r\n")).is_err());
    assert!(read("POST / HTTP/1.1\r\nHost: x.com\r\nTransfer-Encoding: Chunked\r\n\r\n").is_ok());
}

#[test]
fn two_hosts_are_one_too_many() {
    for head in [
        "CONNECT x.com:443 HTTP/1.1\r\nHost: y.com:443\r\n\r\n",
        "CONNECT x.com:443 HTTP/1.1\r\nHost: x.com:444\r\n\r\n",
        "GET http://x.com/ HTTP/1.1\r\nHost: y.com\r\n\r\n",
        "GET http://x.com:81/ HTTP/1.1\r\nHost: x.com\r\n\r\n",
    ] {
        assert!(matches!(read(head).unwrap().destination(80), Err(Refusal::Mismatch { .. })), "{head}");
    }
    assert!(read("GET http://x.com:80/ HTTP/1.1\r\nHost: X.com\r\n\r\n").unwrap().destination(80).is_ok());
}
