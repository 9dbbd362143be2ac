use super::{
    Announced, Granting, Huffman, SETTINGS, connect, control, in_datagram, of_datagram, on_stream,
};
use crate::request::Request;
use crate::wire::Fault;
use crate::wire::h3;

fn control_of(settings: &[(u64, u64)]) -> Vec<u8> {
    let mut payload = Vec::new();
    for &(name, value) in settings {
        h3::put_number(&mut payload, name);
        h3::put_number(&mut payload, value);
    }
    let mut bytes = vec![0x00];
    h3::frame(&mut bytes, SETTINGS, &payload);
    bytes
}

fn told(bytes: &[u8]) -> Result<bool, Fault> {
    Announced::default().receive(bytes)
}

#[test]
fn settings_of_each_draft_allow_sessions() {
    for name in [0x2b60_3742, 0xc671_706a, 0x14e9_cd29, 0x2c7c_f000] {
        let bytes = control_of(&[(1, 4096), (8, 1), (0x33, 1), (name, 1), (0x21, 5)]);
        assert_eq!(told(&bytes), Ok(true), "{name:#x}");
        let mut announced = Announced::default();
        let found: Vec<bool> = bytes
            .iter()
            .map(|byte| announced.receive(&[*byte]).expect("settings"))
            .collect();
        // With the last byte, and never again.
        assert_eq!(found.iter().filter(|found| **found).count(), 1);
        assert!(found.last().is_some_and(|found| *found));
        assert_eq!(announced.receive(b"\x21\x00"), Ok(false));
    }
    assert_eq!(told(&control()), Ok(true), "its own, too");
}

#[test]
fn settings_without_sessions_are_refused() {
    for settings in [
        &[(8, 1), (0x33, 1)][..],
        &[(8, 1), (0x2b60_3742, 1)],
        &[(0x33, 1), (0x2b60_3742, 1)],
        &[(8, 0), (0x33, 1), (0x2b60_3742, 1)],
        &[(8, 1), (0x33, 1), (0x14e9_cd29, 0)],
        &[],
    ] {
        assert_eq!(
            told(&control_of(settings)),
            Err(Fault::Session),
            "{settings:?}"
        );
    }
    // GOAWAY in their place, and a setting without a value.
    assert_eq!(told(b"\x00\x07\x01\x00"), Err(Fault::Frame));
    assert_eq!(told(b"\x00\x04\x01\x08"), Err(Fault::Frame));
    assert_eq!(
        told(b"\x00\x04\x80\x01\x00\x00"),
        Err(Fault::Frame),
        "too long"
    );
    assert_eq!(told(b"\x02\x3f\xe1\x1f"), Ok(false), "QPACK's encoder");
}

#[test]
fn a_session_is_granted_or_refused() {
    let huffman = Huffman::default();
    let response = |section: &[u8]| {
        let mut bytes = Vec::new();
        h3::frame(&mut bytes, h3::HEADERS, section);
        bytes
    };
    // `:status: 200`, with a capsule behind it.
    let mut granted = response(b"\x00\x00\xd9");
    h3::frame(&mut granted, 0, b"\x80\x00\x78\xae\x00");
    let mut granting = Granting::default();
    assert_eq!(granting.receive(&huffman, &granted[..3]), Ok(false));
    assert_eq!(granting.receive(&huffman, &granted[3..]), Ok(true));
    for refused in [&b"\x00\x00\xdb"[..], b"\x00\x00\xff\x04"] {
        let mut granting = Granting::default();
        let found = granting.receive(&huffman, &response(refused));
        assert_eq!(found, Err(Fault::Session), "{refused:?}");
    }
}

#[test]
fn the_request_for_a_session() {
    let request = Request {
        method: "GET".into(),
        target: "/echo".into(),
        authority: "a:1".into(),
        headers: vec![("Origin".into(), "https://a".into())],
        body: Vec::new(),
        is_chunked: false,
    };
    let bytes = connect(&request);
    assert_eq!(bytes[0], 0x01);
    // CONNECT and https of the static table, then literals.
    assert_eq!(&bytes[3..7], b"\x00\x00\xcf\xd7");
    let text = String::from_utf8_lossy(&bytes);
    for part in [
        ":protocol\x0cwebtransport",
        "\x03a:1",
        "\x05/echo",
        "origin\x09https://a",
    ] {
        assert!(text.contains(part), "{part:?} in {text:?}");
    }
}

#[test]
fn messages_have_the_session_in_front() {
    assert_eq!(on_stream(4, b"abc"), b"\x40\x41\x04abc");
    let datagram = in_datagram(4, 0x0102_0304, b"0123456789");
    assert_eq!(datagram, b"\x01\0\0\0\0\x01\x02\x03\x0489");
    assert_eq!(of_datagram(4, &datagram), Ok((0x0102_0304, &b"89"[..])));
    assert_eq!(
        of_datagram(8, &datagram),
        Err(Fault::Datagram),
        "another session's"
    );
    assert_eq!(
        of_datagram(4, &datagram[..8]),
        Err(Fault::Datagram),
        "too short"
    );
    assert_eq!(of_datagram(4, b""), Err(Fault::Datagram));
}
