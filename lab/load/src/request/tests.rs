use std::path::Path;

use super::{Entry, Expectation, Mix, Request, Url, check_header, check_method};
use crate::pace::Random;

#[track_caller]
fn check_url(text: &str, host: &str, port: u16, authority: &str, target: &str) {
    let url = Url::parse(text).expect("a valid URL");
    let found = (
        url.host.as_str(),
        url.port,
        url.authority.as_str(),
        url.target.as_str(),
    );
    assert_eq!(found, (host, port, authority, target));
}

#[test]
fn takes_urls_apart() {
    check_url("http://a", "a", 80, "a", "/");
    check_url("http://a:8000/b/c?d=e#f", "a", 8000, "a:8000", "/b/c?d=e");
    check_url("http://a?x=:1", "a", 80, "a", "/?x=:1");
    check_url("http://[::1]:81/", "::1", 81, "[::1]:81", "/");
    check_url("http://[::1]", "::1", 80, "[::1]", "/");
}

#[test]
fn refuses_urls_it_cannot_ask() {
    for text in [
        "localhost:8000",
        "ws+unix://a/",
        "ftp://a/",
        "http://",
        "http://:80/",
        "http://a:x/",
        "http://a:70000/",
        "http://a/b c",
        "http://a/é",
        "http://u:p@a/",
    ] {
        let message = Url::parse(text).expect_err(text);
        assert!(message.contains("expected http[s]://") || message.contains("percent-encode"));
    }
}

#[test]
fn refuses_what_would_break_the_head() {
    for (name, value) in [
        ("", "x"),
        ("a b", "x"),
        ("A", "x\r\nB: y"),
        ("A", "\0"),
        ("Transfer-Encoding", "chunked"),
    ] {
        assert!(check_header(name, value).is_err(), "{name:?}: {value:?}");
    }
    assert_eq!(
        check_header("A", " b\tc ").expect("valid"),
        ("A".into(), "b\tc".into())
    );
    assert!(check_method("GET /".into()).is_err());
    assert!(check_method("CONNECT".into()).is_err());
    assert!(check_method("REPORT".into()).is_ok());
}

fn base() -> Entry {
    Entry {
        request: Request {
            method: "GET".into(),
            target: "/".into(),
            authority: "a".into(),
            headers: vec![("X".into(), "y".into())],
            body: Vec::new(),
            is_chunked: false,
        },
        expectation: Expectation {
            status: 200,
            length: Some(9),
            body: None,
        },
        weight: 1,
        is_background: false,
    }
}

#[test]
fn mix_entries_inherit_what_they_leave_out() {
    let json = r#"[{"weight": 3}, {"method": "POST", "path": "/p", "headers": {"Z": "1"},
                    "body": "b", "expect_status": 201, "expect_body": "ok"}]"#;
    let mix = Mix::read(json, Path::new("."), &base()).expect("a valid mix");
    assert_eq!(mix.entries[0].request, base().request);
    assert_eq!(mix.entries[0].expectation, base().expectation);
    let Entry {
        request,
        expectation,
        weight,
        is_background,
    } = &mix.entries[1];
    assert!(!is_background && !mix.entries[0].is_background);
    assert_eq!(
        (request.method.as_str(), request.target.as_str()),
        ("POST", "/p")
    );
    assert_eq!(request.headers.len(), 2);
    assert_eq!(request.body, b"b");
    let expected = Expectation {
        status: 201,
        length: Some(2),
        body: Some(b"ok".to_vec()),
    };
    assert_eq!((expectation, *weight), (&expected, 1));
}

#[test]
fn mix_faults_name_the_entry() {
    for (json, part) in [
        ("[]", "at least one"),
        (r#"[{"weight": 0}]"#, "at least one"),
        (r#"[{}, {"path": "x"}]"#, "entry 1"),
        (r#"[{"wieght": 1}]"#, "wieght"),
        (r#"[{"body": "a", "body_file": "b"}]"#, "exclude"),
        (r#"[{"body_file": "no such file"}]"#, "no such file"),
        (
            r#"[{"expect_body": "a", "expect_length": 2}]"#,
            "length is 2",
        ),
        (r#"{"weight": 1}"#, "expected a sequence"),
    ] {
        let message = Mix::read(json, Path::new("."), &base()).expect_err(json);
        assert!(message.contains(part), "{message}");
    }
}

#[test]
fn mix_is_drawn_by_weight() {
    let json = r#"[{"weight": 1}, {"weight": 0}, {"weight": 3}]"#;
    let mix = Mix::read(json, Path::new("."), &base()).expect("a valid mix");
    let mut random = Random::new(3);
    let mut counts = [0_u32; 3];
    (0..40_000).for_each(|_| counts[mix.draw(&mut random)] += 1);
    assert_eq!(counts[1], 0);
    assert!((9_600..10_400).contains(&counts[0]), "{counts:?}");
}

#[test]
fn mix_of_equal_weights_is_drawn_evenly() {
    let mix =
        Mix::read("[{}, {}, {\"background\": true}]", Path::new("."), &base()).expect("valid");
    assert!(mix.entries[2].is_background);
    let mut random = Random::new(3);
    let mut counts = [0_u32; 3];
    (0..30_000).for_each(|_| counts[mix.draw(&mut random)] += 1);
    assert!(
        counts.iter().all(|count| (9_600..10_400).contains(count)),
        "{counts:?}"
    );
}
