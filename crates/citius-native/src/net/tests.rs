//! URLs, responses in every division into two pieces, and addresses that say nothing.

use std::net::{TcpListener, TcpStream};
use std::time::Duration;

use citius_h1::client::{Asked, Content, Request};

use super::error::Reason;
use super::response::Reader;
use super::stream::{Stream, Target};
use super::tls::TlsRules;
use super::url::Url;
use crate::wait::Until;

fn parsed(text: &str) -> Url {
    Url::parse(text, &TlsRules::default()).unwrap_or_else(|error| panic!("{text}: {}", error.text))
}

#[test]
fn a_url_says_where_to_connect_to_and_what_to_ask_for() {
    let url = parsed("http://example.org:8080/a/b?c=d#e");
    assert_eq!(
        (url.target.host.as_str(), url.target.port),
        ("example.org", 8080)
    );
    assert_eq!(url.authority, "example.org:8080");
    assert_eq!(url.path, "/a/b?c=d");
    assert!(url.target.tls.is_none());

    let url = parsed("HTTPS://[::1]?q");
    assert_eq!((url.target.host.as_str(), url.target.port), ("::1", 443));
    assert_eq!(
        (url.authority.as_str(), url.path.as_str()),
        ("[::1]", "/?q")
    );
    assert!(url.target.tls.is_some());
    assert_eq!(parsed("http://h:").target.port, 80);
}

#[test]
fn what_is_no_url_of_http_is_a_mistake() {
    for text in [
        "",
        "example.org",
        "ftp://example.org/",
        "http://",
        "http://a b/",
        "http://a/\r\nX: y",
        "http://user@host/",
        "http://h:0/",
        "http://h:65536/",
        "http://h:+80/",
        "http://[::1/",
        "http://[example]/",
        "http://[::1]x/",
        "http://h\u{e9}/",
        "http://:80/",
    ] {
        let error = Url::parse(text, &TlsRules::default()).expect_err(text);
        assert_eq!(error.reason, Reason::Misuse, "{text}");
    }
}

fn asked(method: &str) -> Asked {
    let request = Request {
        method: method.as_bytes(),
        target: b"/",
        authority: b"example.org",
        content: Content::Length(0),
        upgrades: false,
    };
    let encoded = request.encode(std::iter::empty(), &mut Vec::new());
    encoded.unwrap_or_else(|_| panic!("{method} is a method"))
}

fn read(pieces: &[&[u8]], method: &str, body_bytes_max: usize) -> Result<Reader, Reason> {
    let mut reader = Reader::new(asked(method), body_bytes_max);
    assert!(reader.is_untouched());
    for piece in pieces {
        reader.receive(piece).map_err(|error| error.reason)?;
    }
    if !reader.is_complete() {
        reader.end().map_err(|error| error.reason)?;
    }
    Ok(reader)
}

const CHUNKED: &[u8] = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nX: y\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n";

#[test]
fn a_response_is_the_same_in_any_two_pieces() {
    for cut in 0..=CHUNKED.len() {
        let (first, second) = CHUNKED.split_at(cut);
        let reader = read(&[first, second], "GET", 100);
        let reader = reader.unwrap_or_else(|reason| panic!("cut at {cut}: {reason:?}"));
        assert!(reader.is_complete() && reader.keeps_alive(), "cut at {cut}");
        let response = reader.into_response();
        assert_eq!(
            (response.head.status, response.body.as_slice()),
            (200, b"abcde".as_slice())
        );
        assert_eq!(response.head.field(b"x"), Some(b"y".as_slice()));
    }
}

#[test]
fn what_is_no_response_says_why() {
    let whole = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nabcde";
    assert!(read(&[whole], "GET", 5).is_ok());
    assert_eq!(read(&[whole], "GET", 4).err(), Some(Reason::TooLarge));
    assert_eq!(
        read(&[&whole[..whole.len() - 1]], "GET", 5).err(),
        Some(Reason::Ended)
    );
    assert_eq!(
        read(&[b"SSH-2.0-OpenSSH\r\n\r\n"], "GET", 5).err(),
        Some(Reason::Protocol)
    );
    let twice = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nabcdef";
    assert_eq!(read(&[twice], "GET", 9).err(), Some(Reason::Protocol));
}

#[test]
fn the_response_to_head_has_no_body_and_one_until_the_end_spoils_the_connection() {
    let head = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n";
    let reader = read(&[head], "HEAD", 5).expect("it is whole");
    assert!(reader.keeps_alive());
    assert!(reader.into_response().body.is_empty());

    let reader = read(&[b"HTTP/1.1 200 OK\r\n\r\n", b"abc"], "GET", 5).expect("it is whole");
    assert!(!reader.keeps_alive());
    assert_eq!(reader.into_response().body, b"abc");
    // What comes behind a response belongs to no request.
    let reader =
        read(&[b"HTTP/1.1 204 No Content\r\n\r\nHTTP/1.1 200"], "GET", 5).expect("it is whole");
    assert!(!reader.keeps_alive());
}

/// A listener that takes no more connections, and those that it has not accepted.
fn silent() -> (TcpListener, Vec<TcpStream>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("its address");
    let mut waiting = Vec::new();
    while let Ok(one) = TcpStream::connect_timeout(&address, Duration::from_millis(100)) {
        waiting.push(one);
    }
    (listener, waiting)
}

#[test]
fn an_address_that_says_nothing_leaves_time_for_the_next() {
    let (silent, _waiting) = silent();
    let answering = TcpListener::bind("127.0.0.1:0").expect("a port");
    let addresses = [&silent, &answering].map(|one| one.local_addr().expect("its address"));
    let target = Target {
        host: "localhost".into(),
        port: 0,
        tls: None,
    };
    let second = 1_000_000_000;
    let connected = Stream::connect_first(&addresses, &target, Until::within(4 * second));
    assert!(connected.is_ok());
    answering.accept().expect("a connection");
    let alone = Stream::connect_first(&addresses[..1], &target, Until::within(second / 2));
    assert_eq!(alone.err().map(|error| error.reason), Some(Reason::Timeout));
}
