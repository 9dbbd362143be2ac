//! Forms as browsers and programs send them, broken ones, limits, and every cut of each.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec;
use alloc::vec::Vec;

use crate::{Event, Fault, Limits, Multipart, Part, urlencoded};

const LIMITS: Limits = Limits {
    fields_max: 3,
    files_max: 2,
    part_head_bytes_max: 200,
    name_bytes_max: 32,
    text_bytes_max: 64,
    file_bytes_max: 128,
};

type Parts = Vec<(Part, Vec<u8>)>;

/// All complete parts of a form that comes in these pieces, and how it ends.
fn parse<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> (Parts, Result<(), Fault>) {
    let mut parser = Multipart::new(b"XX", LIMITS).unwrap();
    let (mut parts, mut open) = (Vec::new(), None);
    for mut piece in pieces {
        loop {
            match parser.receive(&mut piece) {
                Ok(None) => break,
                Ok(Some(Event::Part(part))) => open = Some((part, Vec::new())),
                Ok(Some(Event::Content(bytes))) => {
                    assert!(!bytes.is_empty());
                    open.as_mut().unwrap().1.extend_from_slice(bytes);
                }
                Ok(Some(Event::PartEnd)) => parts.push(open.take().unwrap()),
                Ok(Some(Event::End)) => assert!(open.is_none() && piece.is_empty()),
                Err(fault) => {
                    assert_eq!(parser.finish(), Err(fault));
                    return (parts, Err(fault));
                }
            }
        }
        assert!(piece.is_empty());
    }
    (parts, parser.finish())
}

/// What a form is made of, whole and in two pieces, cut at every byte, and byte by byte.
#[track_caller]
fn check(body: &[u8]) -> (Parts, Result<(), Fault>) {
    let whole = parse([body]);
    for at in 0..=body.len() {
        let (before, after) = body.split_at(at);
        assert_eq!(parse([before, after]), whole, "cut at {at}");
    }
    assert_eq!(parse(body.chunks(1)), whole, "byte by byte");
    whole
}

fn part(head: &str, content: &str) -> String {
    format!("--XX\r\n{head}\r\n\r\n{content}\r\n")
}

const NAME: &str = "Content-Disposition: form-data; name=\"a\"";

#[track_caller]
fn contents(body: &str) -> Vec<(String, Option<String>, String)> {
    let (parts, end) = check(body.as_bytes());
    assert_eq!(end, Ok(()), "{body}");
    let shown = |(part, content): (Part, Vec<u8>)| {
        let content = String::from_utf8(content).unwrap();
        (part.name, part.filename, content)
    };
    parts.into_iter().map(shown).collect()
}

#[test]
fn fields_and_files_come_as_they_were_sent() {
    let file =
        "content-disposition:form-data; name=f; filename=\"x y.txt\"\r\nContent-Type: text/plain";
    let body = part(NAME, "ä") + &part(file, "line\r\n--X\r\r\n-\r\n--") + "--XX--\r\n";
    let (parts, _) = check(body.as_bytes());
    assert_eq!(parts[1].0.content_type.as_deref(), Some("text/plain"));
    assert_eq!(
        contents(&body),
        [
            ("a".to_string(), None, "ä".to_string()),
            (
                "f".to_string(),
                Some("x y.txt".to_string()),
                "line\r\n--X\r\r\n-\r\n--".to_string()
            ),
        ]
    );
}

#[test]
fn what_stands_around_the_parts_is_skipped() {
    for body in [
        "--XX--",
        "--XX--\r\n--XX\r\n",
        "preamble\r\n-\r\n--X\r\n--XX--epilogue",
        "\r\n--XX--",
    ] {
        assert_eq!(contents(body), [], "{body}");
    }
    let padded = format!("\r\r\n--XX \t\r\n{NAME}\r\n\r\n\r\n--XX--");
    assert_eq!(contents(&padded), [("a".into(), None, String::new())]);
}

#[test]
fn names_are_read_as_browsers_and_programs_write_them() {
    for (parameters, name, filename) in [
        ("name=\"a%22b%0D%0Ac%25\"", "a\"b\r\nc%25", None),
        (r#"name="a\"b\\c""#, r#"a"b\c"#, None),
        (
            r#"name=a; filename="C:\dir\x.txt""#,
            "a",
            Some(r"C:\dir\x.txt"),
        ),
        (r#"name="ü"; filename="日本.txt""#, "ü", Some("日本.txt")),
        ("filename=\"\";name=\"\"", "", Some("")),
        ("name=a;filename=b c ;x=y", "a", Some("b c")),
        ("NAME=a; FileName=b", "a", Some("b")),
        (
            "name=a; filename=x; filename*=UTF-8''na%C3%AFve%20f",
            "a",
            Some("naïve f"),
        ),
        ("name=a; filename*=iso-8859-1'en'%A3", "a", Some("£")),
        ("name=a; filename=x; filename*=utf-8''%FF", "a", Some("x")),
        ("name=a; filename=x; filename*=nonsense", "a", Some("x")),
        ("name=a; filename*0=y; filename=x", "a", Some("x")),
        ("name=a; filename*=utf-8''", "a", Some("")),
        ("name=\"a;b=c\" junk; x", "a;b=c", None),
        ("name=\"open", "open", None),
    ] {
        let head = format!("Content-Disposition: form-data; {parameters}");
        let body = part(&head, "") + "--XX--";
        let expected = (name.into(), filename.map(String::from), String::new());
        assert_eq!(contents(&body), [expected], "{parameters}");
    }
}

#[test]
fn names_that_are_not_utf_8_are_replaced() {
    let body = b"--XX\r\nContent-Disposition: form-data; name=\"\xff\"\r\n\r\n\xff\r\n--XX--";
    let (parts, end) = check(body);
    assert_eq!(end, Ok(()));
    assert_eq!(
        (parts[0].0.name.as_str(), &parts[0].1[..]),
        ("\u{fffd}", &b"\xff"[..])
    );
}

/// Files whose name is only where it cannot be read.
fn unreadable() -> Vec<(String, Fault)> {
    [
        "filename*=utf-7''a",
        "filename*=utf-8''%FF",
        "filename*=a",
        "filename*0=a",
        "FileName*1*=utf-8''a",
    ]
    .map(|name| (part(&format!("{NAME}; {name}"), ""), Fault::FileName))
    .into()
}

/// Forms that break the grammar.
fn broken() -> Vec<(String, Fault)> {
    let long = "x".repeat(300);
    vec![
        (String::new(), Fault::NoDelimiter),
        ("--X".into(), Fault::NoDelimiter),
        ("x--XX--".into(), Fault::NoDelimiter),
        ("\n--XX--".into(), Fault::NoDelimiter),
        ("--XX".into(), Fault::Unfinished),
        ("--XX-".into(), Fault::Unfinished),
        (part(NAME, "1"), Fault::Unfinished),
        (part(NAME, "1") + "--XX\r\n", Fault::HeadTooLong),
        ("--XXY\r\n".into(), Fault::DelimiterSyntax),
        ("--XX\n".into(), Fault::DelimiterSyntax),
        ("--XX \r\r\n".into(), Fault::DelimiterSyntax),
        ("--XX-\r\n".into(), Fault::DelimiterSyntax),
        (format!("--XX\r\n{NAME}\r\n--XX--"), Fault::HeadTooLong),
        (
            part(&format!("{NAME}\r\nX: {long}"), ""),
            Fault::HeadTooLong,
        ),
        (
            format!("--XX\r\n{NAME}\n\n1\r\n--XX--{long}"),
            Fault::HeadTooLong,
        ),
        (part("no colon", ""), Fault::FieldSyntax),
        (part(": x", ""), Fault::FieldSyntax),
        (part("a b: x", ""), Fault::FieldSyntax),
        (
            part(&format!("{NAME}\r\n folded: x"), ""),
            Fault::FieldSyntax,
        ),
        (part(&format!("{NAME}\nX: y"), ""), Fault::FieldSyntax),
        (part(&format!("{NAME}\rx"), ""), Fault::FieldSyntax),
        (part("X: y", ""), Fault::Disposition),
        ("--XX\r\n\r\n\r\n--XX--".into(), Fault::Disposition),
        (
            part("Content-Disposition: form-data", ""),
            Fault::Disposition,
        ),
        (
            part("Content-Disposition: attachment; name=a", ""),
            Fault::Disposition,
        ),
        (part(&format!("{NAME}; name=b"), ""), Fault::Disposition),
        (part(&format!("{NAME}\r\n{NAME}"), ""), Fault::Disposition),
        (
            part(&format!("{NAME}\r\nContent-Transfer-Encoding: base64"), ""),
            Fault::TransferEncoding,
        ),
    ]
}

/// Forms with more than the limits allow.
fn too_much() -> Vec<(String, Fault)> {
    let long = "x".repeat(300);
    let file = "Content-Disposition: form-data; name=a; filename=b";
    vec![
        (
            part(&NAME.replace('a', &"a".repeat(33)), ""),
            Fault::Disposition,
        ),
        (
            part(&NAME.replace("\"a\"", &"a".repeat(33)), ""),
            Fault::NameTooLong,
        ),
        (
            part(&format!("{NAME}; filename={}", "b".repeat(33)), ""),
            Fault::NameTooLong,
        ),
        (part(NAME, "").repeat(4), Fault::TooManyFields),
        (part(file, "").repeat(3), Fault::TooManyFiles),
        (part(NAME, &long[..40]).repeat(2), Fault::TextTooLong),
        (part(file, &long), Fault::FileTooLong),
    ]
}

#[test]
fn every_broken_form_has_its_fault() {
    let mut seen = vec![Fault::Boundary];
    for (body, fault) in [broken(), unreadable(), too_much()].concat() {
        let (_, end) = check(body.as_bytes());
        assert_eq!(end, Err(fault), "{body:?}");
        seen.push(fault);
    }
    for fault in Fault::ALL {
        assert!(seen.contains(fault), "{fault:?} has no case");
        assert!(matches!(fault.status(), 400 | 413) && !fault.text().is_empty());
    }
}

#[test]
fn a_form_may_have_as_much_as_its_limits_say() {
    let file = "Content-Disposition: form-data; name=b; filename=c";
    let body = part(NAME, &"x".repeat(32)).repeat(2)
        + &part(NAME, "")
        + &part(file, &"y".repeat(128)).repeat(2)
        + "--XX--";
    assert_eq!(contents(&body).len(), 5);
    let head_bytes_max = LIMITS.part_head_bytes_max as usize;
    let head = format!(
        "{NAME}\r\nX: {}",
        "x".repeat(head_bytes_max - NAME.len() - 5)
    );
    assert_eq!(head.len(), head_bytes_max);
    assert_eq!(contents(&(part(&head, "1") + "--XX--")).len(), 1);
    assert_eq!(
        check((part(&(head + "x"), "1") + "--XX--").as_bytes()).1,
        Err(Fault::HeadTooLong)
    );
}

#[test]
fn a_name_keeps_the_control_characters_that_browsers_do_not_escape() {
    let head = "Content-Disposition: form-data; name=\"a\0\u{1}\u{1f}\u{7f}\u{9b}b\"";
    let (parts, end) = check((part(head, "1") + "--XX--").as_bytes());
    assert_eq!(end, Ok(()));
    assert_eq!(parts[0].0.name, "a\0\u{1}\u{1f}\u{7f}\u{9b}b");
    let (_, end) = check((part(&head.replace('\0', "\r"), "1") + "--XX--").as_bytes());
    assert_eq!(end, Err(Fault::FieldSyntax));
}

#[test]
fn a_boundary_is_1_to_70_plain_characters() {
    for boundary in [&b""[..], b"\r\n", b"a\x7f", &[b'a'; 71], "ü".as_bytes()] {
        assert_eq!(
            Multipart::new(boundary, LIMITS).err(),
            Some(Fault::Boundary)
        );
    }
    assert!(Multipart::new(&[b'a'; 70], LIMITS).is_ok());
    assert!(Multipart::new(b"'()+_,-./:=? x", LIMITS).is_ok());
}

/// Bytes that resemble a delimiter over and over.
#[test]
fn near_delimiters_are_content() {
    let file = "Content-Disposition: form-data; name=b; filename=c";
    for pattern in [
        "\r",
        "\r\n",
        "\r\n-",
        "\r\n--",
        "\r\n--X",
        "\r\r\n--X\r\n--",
        "-",
        "--XX",
    ] {
        let content = pattern.repeat(9);
        let body = part(file, &content) + "--XX--";
        assert_eq!(
            contents(&body),
            [("b".into(), Some("c".into()), content)],
            "{pattern:?}"
        );
    }
}

#[test]
fn urlencoded_pairs() {
    let read = |body: &str| urlencoded::parse(body.as_bytes(), &LIMITS);
    let pair = |name: &str, value: &str| (name.to_string(), value.to_string());
    assert_eq!(
        read("a=1&&b=x+y%2B%zz&c=%FF").unwrap(),
        [pair("a", "1"), pair("b", "x y+%zz"), pair("c", "\u{fffd}")]
    );
    assert_eq!(read("=&a").unwrap(), [pair("", ""), pair("a", "")]);
    assert_eq!(read("").unwrap(), []);
    assert_eq!(read("a&a&a&a"), Err(Fault::TooManyFields));
    assert_eq!(read(&"a".repeat(33)), Err(Fault::NameTooLong));
    assert_eq!(
        read(&format!("a={}", "x".repeat(65))),
        Err(Fault::TextTooLong)
    );
}
