//! Requests and responses, and the order of what both are made of (RFC 9114 §4, §6, §7).

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use bytes::Bytes;
use citius_http::{Action, Closing, Fault, Fields, Limits, Payload, ResponseHead, Status};

use crate::Connection;

use super::client::{Client, GET, bytes, data, frame, headers, read_frames, section, with};

const H3_NO_ERROR: u64 = 0x100;

fn head(fields: &Fields) -> ResponseHead<'_> {
    ResponseHead {
        status: Status::OK,
        content_type: None,
        fields,
    }
}

/// What closes a connection on which `act` has happened.
#[track_caller]
fn closes(why: &str, act: impl FnOnce(&mut Client), fault: Fault, code: u64) {
    let mut client = Client::greeted();
    act(&mut client);
    assert_eq!(client.connection.fault(), Some(fault), "{why}");
    assert_eq!(client.closed, Some(code), "{why}");
    assert_eq!(client.connection.closing(), Some(Closing::Abort));
    // Nothing more is read (I8).
    client.take_told();
    client.bytes(400, &headers(&GET), true);
    assert_eq!(client.take_told(), [""; 0]);
}

#[test]
fn a_request_is_answered() {
    let mut client = Client::greeted();
    client.request(0, &GET);
    assert_eq!(client.take_told(), ["0 request GET / HTTP/3 ended"]);
    client.respond(0, b"hello");
    assert_eq!(
        client.response(0),
        "[:status: 200;content-type: text/plain; charset=utf-8;content-length: 5;]hello fin"
    );
    assert!(client.connection.is_idle());
    // The second response comes from the template.
    client.request(4, &GET);
    client.respond(1, b"again");
    let first = client.sent.get(&0).unwrap().bytes.len();
    assert_eq!(client.sent.get(&4).unwrap().bytes.len(), first);
    assert!(client.response(4).ends_with("]again fin"));
}

#[test]
fn our_first_words_are_settings() {
    let client = Client::new(Limits::default());
    let control = &client.sent.get(&3).expect("the control stream").bytes;
    assert_eq!(control[..2], [0, 4]);
    assert_eq!(client.sent.get(&7).expect("the decoder stream").bytes, [3]);
}

#[test]
fn a_body_and_trailers_are_told() {
    let mut client = Client::greeted();
    let request = [
        headers(&with("POST", &[("content-length", "6")])),
        data(b"abc"),
        frame(0x21, b"unknown"),
        data(b"def"),
        headers(&[("x-sum", "7")]),
        frame(0x40, b"unknown"),
    ]
    .concat();
    client.bytes(0, &request, true);
    assert_eq!(
        client.take_told(),
        [
            "0 request POST / HTTP/3",
            "0 data abc",
            "0 data def",
            "0 end x-sum: 7;"
        ]
    );
    client.respond(0, b"");
    assert!(client.response(0).ends_with("content-length: 0;] fin"));
    assert!(client.connection.is_idle());
}

#[test]
fn the_end_may_come_behind_the_rest() {
    let mut client = Client::greeted();
    client.bytes(0, &headers(&GET), false);
    client.bytes(0, b"", true);
    assert_eq!(client.take_told(), ["0 request GET / HTTP/3", "0 end"]);
}

#[test]
fn a_dialogue_means_the_same_however_it_is_cut() {
    let request = [
        headers(&with("POST", &[("content-length", "6"), ("cookie", "a=b")])),
        data(b"abcd"),
        frame(0x4321, b"unknown"),
        data(b"ef"),
        headers(&[("x-sum", "7")]),
    ]
    .concat();
    let joined = |told: Vec<String>| {
        let text = told.join("\n");
        text.replace("\n0 data ", "")
    };
    let mut whole = Client::greeted();
    whole.bytes(0, &request, true);
    let expected = joined(whole.take_told());
    for cut in 0..=request.len() {
        let mut client = Client::greeted();
        client.bytes(0, &request[..cut], false);
        client.bytes(0, &request[cut..], true);
        assert_eq!(joined(client.take_told()), expected, "cut at {cut}");
    }
    let mut client = Client::greeted();
    for byte in &request {
        client.bytes(0, &[*byte], false);
    }
    client.bytes(0, b"", true);
    assert_eq!(joined(client.take_told()), expected);
    // The same without a reader, who comes at the end and takes byte by byte.
    for cut in 0..=request.len() {
        let mut client = Client::greeted();
        client.wants = 0;
        client.bytes(0, &request[..cut], false);
        client.bytes(0, &request[cut..], true);
        for _ in 0..8 {
            client.want(0, 1);
        }
        assert_eq!(joined(client.take_told()), expected, "held, cut at {cut}");
    }
}

#[test]
fn unread_content_stays_in_quic() {
    let mut client = Client::greeted();
    client.wants = 0;
    client.bytes(0, &headers(&with("POST", &[])), false);
    client.bytes(0, &[0, 0x80, 1, 0, 0], false);
    assert_eq!(client.connection.appetite(0), 0);
    client.want(0, 10);
    assert_eq!(
        client.offer(0, &[b'x'; 100]).len(),
        0,
        "one chunk may come ahead"
    );
    assert_eq!(client.connection.appetite(0), 0);
    assert_eq!(
        client.take_told(),
        ["0 request POST / HTTP/3", "0 data xxxxxxxxxx"]
    );
    client.want(0, 90);
    assert_eq!(client.take_told(), [format!("0 data {}", "x".repeat(90))]);
    client.want(0, 5);
    assert!(client.connection.appetite(0) > 0);
}

#[test]
fn responses_stream_wait_and_end() {
    let mut client = Client::greeted();
    client.window = Some(0);
    client.request(0, &GET);
    let mut fields = Fields::default();
    fields.push(b"x-a", b"b").unwrap();
    assert_eq!(client.act(0, Action::Start(head(&fields))), Ok(()));
    let full = client.connection.write_capacity(0, &client.limits);
    assert_eq!(client.act(0, Action::Data(Payload::Copied(b"one"))), Ok(()));
    let left = client.connection.write_capacity(0, &client.limits);
    assert_eq!(full - left, 5, "a frame's header and three bytes");
    let large = Payload::Shared(Bytes::from(alloc::vec![b'x'; 20_000]));
    assert_eq!(client.act(0, Action::Data(large)), Ok(()));
    let mut trailers = Fields::default();
    trailers.push(b"x-t", b"u").unwrap();
    assert_eq!(
        client.act(
            0,
            Action::End {
                trailers: &trailers
            }
        ),
        Ok(())
    );
    assert_eq!(client.response(0), "");
    assert!(client.connection.waiting_bytes_of(0).is_some() && !client.connection.is_open(0));
    client.open_window(1000, &[0]);
    assert_eq!(client.sent.get(&0).unwrap().bytes.len(), 1000);
    client.open_window(usize::MAX, &[0]);
    let expected = format!(
        "[:status: 200;x-a: b;]one{}[x-t: u;] fin",
        "x".repeat(20_000)
    );
    assert_eq!(client.response(0), expected);
    assert!(client.connection.is_idle());
}

#[test]
fn heads_without_content_end_at_once() {
    let mut client = Client::greeted();
    client.request(0, &with("HEAD", &[]));
    client.respond(0, b"hello");
    assert_eq!(
        client.response(0),
        "[:status: 200;content-type: text/plain; charset=utf-8;content-length: 5;] fin"
    );
    client.request(4, &with("HEAD", &[]));
    assert_eq!(client.act(1, Action::Start(head(&Fields::EMPTY))), Ok(()));
    assert_eq!(client.response(4), "[:status: 200;] fin");
    assert!(client.connection.is_open(1));
    assert_eq!(
        client.act(1, Action::Data(Payload::Copied(b"dropped"))),
        Ok(())
    );
    assert_eq!(
        client.act(
            1,
            Action::End {
                trailers: &Fields::EMPTY
            }
        ),
        Ok(())
    );
    assert_eq!(client.response(4), "[:status: 200;] fin");
    assert!(client.connection.is_idle());
}

#[test]
fn informational_responses_come_first() {
    let mut client = Client::greeted();
    client.wants = 0;
    client.bytes(
        0,
        &headers(&with("POST", &[("expect", "100-continue")])),
        false,
    );
    client.want(0, u64::MAX);
    assert_eq!(client.response(0), "[:status: 100;]");
    let hints = ResponseHead {
        status: Status::from_const(103),
        content_type: None,
        fields: &Fields::EMPTY,
    };
    assert_eq!(client.act(0, Action::Inform(hints)), Ok(()));
    client.bytes(0, &data(b"x"), true);
    client.respond(0, b"");
    let text = client.response(0);
    assert!(
        text.starts_with("[:status: 100;][:status: 103;][:status: 200;"),
        "{text}"
    );
}

#[test]
fn a_response_before_the_end_of_its_request_stops_the_client() {
    let mut client = Client::greeted();
    client.bytes(
        0,
        &[headers(&with("POST", &[])), data(b"abc")].concat(),
        false,
    );
    client.respond(0, b"enough");
    assert!(client.response(0).ends_with("]enough fin stop 0x100"));
    assert_eq!(client.sent.get(&0).unwrap().stopped, Some(H3_NO_ERROR));
    client.take_told();
    client.bytes(0, &data(b"more"), true);
    assert_eq!(client.take_told(), [""; 0]);
    assert!(client.connection.is_idle() && client.closed.is_none());
}

#[test]
fn applications_that_break_rules_break_no_connection() {
    let mut client = Client::greeted();
    client.request(0, &GET);
    let data_first = client.act(0, Action::Data(Payload::Copied(b"x")));
    assert_eq!(data_first, Err(Fault::ResponseOrder));
    assert!(client.response(0).starts_with("[:status: 500;"));
    client.request(4, &GET);
    let mut fields = Fields::default();
    fields.push(b"content-length", b"3").unwrap();
    assert_eq!(client.act(1, Action::Start(head(&fields))), Ok(()));
    assert_eq!(
        client.act(1, Action::Data(Payload::Copied(b"four"))),
        Err(Fault::ResponseLength)
    );
    assert_eq!(client.sent.get(&4).unwrap().reset, Some(0x102));
    client.request(8, &GET);
    assert_eq!(client.act(2, Action::Abort), Ok(()));
    assert_eq!(client.response(8), "reset 0x102");
    client.request(12, &GET);
    client.respond(3, b"x");
    assert_eq!(
        client.act(3, Action::Abort),
        Ok(()),
        "nothing is left to abort"
    );
    assert!(client.closed.is_none() && client.connection.is_idle());
}

#[test]
fn malformed_requests_are_reset_and_others_go_on() {
    let long = "x".repeat(9000);
    for (fields, fault) in [
        (with("GET", &[("X", "y")]), Fault::FieldNameSyntax),
        (with("GET", &[("x", "a\r\nb")]), Fault::FieldValueSyntax),
        (
            with("GET", &[("connection", "close")]),
            Fault::FieldForbidden,
        ),
        (with("GET", &[(":late", "x")]), Fault::PseudoField),
        (with("GET", &[(":path", "/")]), Fault::PseudoField),
        (with("G ET", &[]), Fault::MethodSyntax),
        (
            with("GET", &[("content-length", "1")]),
            Fault::LengthMismatch,
        ),
        (with("GET", &[("host", "b")]), Fault::HostRepeated),
        (GET[..2].to_vec(), Fault::PseudoField),
        // RFC 9114 §4.3.1: `https` has an authority, or the request is malformed.
        (
            GET[..2].iter().chain(&GET[3..]).copied().collect(),
            Fault::HostMissing,
        ),
    ] {
        let mut client = Client::greeted();
        client.request(0, &fields);
        assert_eq!(client.take_told(), [""; 0], "{fields:?}");
        assert_eq!(client.response(0), "reset 0x10e", "{fields:?}");
        let refused = client.connection.take_refused();
        assert_eq!(refused.len(), 1);
        assert_eq!(refused[0].fault, fault, "{fields:?}");
        client.request(4, &GET);
        assert_eq!(client.take_told().len(), 1);
    }
    for (fields, status) in [
        (with("GET", &[("x", &"y".repeat(40_000))]), 431),
        (with("GET", &[("expect", "a")]), 417),
        ([(":method", "CONNECT"), (":authority", "a")].to_vec(), 501),
        (
            with("GET", &(0..101).map(|_| ("x", "y")).collect::<Vec<_>>()),
            431,
        ),
        ([&GET[..3], &[(":path", long.as_str())]].concat(), 414),
    ] {
        let mut client = Client::greeted();
        client.request(0, &fields);
        let text = client.response(0);
        assert!(text.starts_with(&format!("[:status: {status};")), "{text}");
        assert!(text.contains("fin"), "{text}");
        assert!(client.connection.is_idle() && client.closed.is_none());
    }
}

#[test]
fn nothing_is_told_of_a_refused_request_that_is_taken_back() {
    let mut client = Client::greeted();
    client.window = Some(0);
    client.bytes(0, &headers(&with("GET", &[("expect", "a")])), false);
    client.stop(0);
    client.bytes(4, &headers(&with("GET", &[("expect", "a")])), false);
    client.call(Connection::lost);
    client.settle();
    assert_eq!(client.take_told(), [""; 0]);
}

#[test]
fn bodies_that_contradict_their_heads_are_reset() {
    let post = || headers(&with("POST", &[("content-length", "3")]));
    for (request, fin) in [
        ([post(), data(b"four")].concat(), false),
        ([post(), data(b"ab"), data(b"cd")].concat(), false),
        ([post(), data(b"ab")].concat(), true),
    ] {
        let mut client = Client::greeted();
        client.bytes(0, &request, fin);
        assert_eq!(
            client.take_told().last().unwrap(),
            "0 broken LengthMismatch"
        );
        assert_eq!(client.sent.get(&0).unwrap().reset, Some(0x10e));
        assert!(client.closed.is_none());
    }
    for (trailers, fault, code) in [
        (section(&[(":path", "/")]), "PseudoField", Some(0x10e)),
        (
            section(&[("content-length", "3")]),
            "TrailerForbidden",
            Some(0x10e),
        ),
        (section(&[("X", "3")]), "FieldNameSyntax", Some(0x10e)),
        (
            section(&[("x", &"y".repeat(9000))]),
            "TrailersTooLong",
            None,
        ),
    ] {
        let mut client = Client::greeted();
        let request = [headers(&with("POST", &[])), data(b"a"), frame(1, &trailers)].concat();
        client.bytes(0, &request, true);
        assert_eq!(
            client.take_told().last().unwrap(),
            &format!("0 broken {fault}")
        );
        assert_eq!(client.sent.get(&0).unwrap().reset, code);
        assert_eq!(
            client.response(0).starts_with("[:status: 431;"),
            code.is_none()
        );
    }
}

#[test]
fn a_body_that_stops_short_behind_the_beginning_of_a_response_does_not_end_it() {
    let mut client = Client::greeted();
    let request = headers(&with("POST", &[("content-length", "300000")]));
    client.bytes(0, &[request, data(b"ab")].concat(), false);
    assert_eq!(client.act(0, Action::Start(head(&Fields::EMPTY))), Ok(()));
    client.settle();
    client.take_told();
    client.bytes(0, &[], true);
    assert_eq!(client.take_told(), [""; 0]);
    let end = Action::End {
        trailers: &Fields::EMPTY,
    };
    assert_eq!(client.act(0, end), Ok(()));
    client.settle();
    assert!(
        client.response(0).ends_with("fin"),
        "{}",
        client.response(0)
    );
    assert_eq!(client.sent.get(&0).unwrap().reset, None);
    assert!(client.connection.is_idle() && client.closed.is_none());
}

#[test]
fn long_bodies_get_a_413() {
    let mut client = Client::greeted();
    client.wants = 0;
    client.bytes(
        0,
        &headers(&with("POST", &[("content-length", "9")])),
        false,
    );
    assert!(client.call(|connection, cx| connection.limit_body(cx, 0, 8)));
    client.settle();
    assert!(client.response(0).starts_with("[:status: 413;"));
    let mut client = Client::greeted();
    client.wants = 0;
    client.bytes(0, &headers(&with("POST", &[])), false);
    assert!(!client.call(|connection, cx| connection.limit_body(cx, 0, 8)));
    client.want(0, u64::MAX);
    client.bytes(0, &data(b"12345678"), false);
    client.bytes(0, &[0, 1], false);
    assert_eq!(client.take_told().last().unwrap(), "0 broken BodyTooLong");
    let text = client.response(0);
    assert!(
        text.starts_with("[:status: 413;") && text.ends_with("fin stop 0x100"),
        "{text}"
    );
}

#[test]
fn a_body_that_is_too_long_does_not_end_a_response_that_has_begun() {
    let mut client = Client::greeted();
    client.wants = 0;
    client.bytes(0, &headers(&with("POST", &[])), false);
    assert!(!client.call(|connection, cx| connection.limit_body(cx, 0, 8)));
    client.want(0, u64::MAX);
    client.bytes(0, &data(b"1234"), false);
    assert_eq!(client.act(0, Action::Start(head(&Fields::EMPTY))), Ok(()));
    client.settle();
    client.take_told();
    client.bytes(0, &data(b"56789"), false);
    assert_eq!(client.take_told(), ["0 body refused BodyTooLong"]);
    client.want(0, u64::MAX);
    client.settle();
    assert_eq!(client.take_told(), [""; 0]);
    let end = Action::End {
        trailers: &Fields::EMPTY,
    };
    assert_eq!(client.act(0, end), Ok(()));
    client.settle();
    let text = client.response(0);
    assert!(text.ends_with("fin stop 0x100"), "{text}");
    assert_eq!(client.sent.get(&0).unwrap().reset, None);
    assert!(client.connection.is_idle() && client.closed.is_none());
}

#[test]
fn an_incomplete_request_is_reset() {
    assert_eq!(
        crate::code::Code::of(Fault::RequestIncomplete).number(),
        0x10d
    );
    let mut client = Client::greeted();
    client.bytes(0, b"", true);
    assert_eq!(client.response(0), "reset 0x10d");
    client.bytes(4, &frame(0x21, b"x"), true);
    assert_eq!(client.response(4), "reset 0x10d");
    assert!(client.closed.is_none() && client.connection.is_idle());
}

#[test]
fn frames_of_requests_have_an_order() {
    let unexpected = |why: &str, request: Vec<u8>| {
        closes(
            why,
            |client| client.bytes(0, &request, false),
            Fault::FrameSequence,
            0x105,
        );
    };
    unexpected("data before a head", data(b"x"));
    let whole = [headers(&GET), headers(&[("x", "y")])].concat();
    unexpected("data behind trailers", [&whole[..], &data(b"x")].concat());
    unexpected(
        "trailers behind trailers",
        [&whole[..], &headers(&[("x", "y")])].concat(),
    );
    for kind in [
        0x2, 0x3, 0x4, 0x5, 0x6, 0x7, 0x8, 0x9, 0xd, 0xf0700, 0xf0701,
    ] {
        unexpected(
            "a frame of the control stream, or HTTP/2's",
            frame(kind, b"\0"),
        );
        unexpected(
            "behind a head",
            [headers(&GET), frame(kind, b"\0")].concat(),
        );
    }
    closes(
        "a frame that is cut by the end",
        |client| client.bytes(0, &headers(&GET)[..9], true),
        Fault::FrameSize,
        0x106,
    );
    closes(
        "content that is cut by the end",
        |client| client.bytes(0, &[headers(&GET), [0, 5, b'a'].to_vec()].concat(), true),
        Fault::FrameSize,
        0x106,
    );
    closes(
        "a field section that can't be read",
        |client| client.bytes(0, &frame(1, &[0, 0, 0xff, 0x24]), true),
        Fault::FieldCompression,
        0x200,
    );
    closes(
        "a session's stream behind other frames",
        |client| client.bytes(0, &[frame(0x21, b""), bytes("4041 00")].concat(), false),
        Fault::FrameSize,
        0x106,
    );
}

#[test]
fn the_control_stream_has_an_order() {
    let first = |hex: &'static str, fault: Fault, code: u64| {
        let mut client = Client::new(Limits::default());
        client.bytes(2, &bytes(hex), false);
        assert_eq!(client.connection.fault(), Some(fault), "{hex}");
        assert_eq!(client.closed, Some(code), "{hex}");
    };
    first("00 07 01 00", Fault::SettingsMissing, 0x10a);
    first("00 21 00", Fault::SettingsMissing, 0x10a);
    first("00 04 02 0200", Fault::SettingsValue, 0x109);
    first("00 04 02 0802", Fault::SettingsValue, 0x109);
    first("00 04 04 0100 0100", Fault::SettingsValue, 0x109);
    first("00 04 01 01", Fault::FrameSize, 0x106);
    for (hex, fault, code) in [
        ("04 00", Fault::FrameSequence, 0x105),
        ("00 01 00", Fault::FrameSequence, 0x105),
        ("01 01 00", Fault::FrameSequence, 0x105),
        ("05 01 00", Fault::FrameSequence, 0x105),
        ("02 00", Fault::FrameSequence, 0x105),
        ("09 00", Fault::FrameSequence, 0x105),
        ("03 01 00", Fault::IdentifierOrder, 0x108),
        ("0d 01 05 0d 01 04", Fault::IdentifierOrder, 0x108),
        ("0d 02 05 00", Fault::FrameSize, 0x106),
        ("0d 00", Fault::FrameSize, 0x106),
        ("07 01 04 07 01 08", Fault::IdentifierOrder, 0x108),
        ("07 02 04 00", Fault::FrameSize, 0x106),
        ("800f0700 02 0175", Fault::IdentifierOrder, 0x108),
        ("800f0701 02 0075", Fault::IdentifierOrder, 0x108),
        ("800f0700 00", Fault::FrameSize, 0x106),
        (
            "800f0700 0a c1ffffffffffffff 753d",
            Fault::IdentifierOrder,
            0x108,
        ),
        ("0d 5001", Fault::ExcessiveLoad, 0x107),
    ] {
        closes(
            hex,
            |client| client.bytes(2, &bytes(hex), false),
            fault,
            code,
        );
    }
    let mut client = Client::greeted();
    client.bytes(
        2,
        &bytes("0d 01 05 0d 01 05 07 01 08 07 01 04 21 03 010203 800f0700 04 00 753d31"),
        false,
    );
    assert_eq!(client.closed, None);
}

#[test]
fn control_and_qpack_streams_are_read_however_they_are_cut() {
    let control = bytes("00 04 04 3301 0610 0d 01 05 21 03 010203 800f0700 04 00 753d31 07 01 00");
    let encoder = bytes("02 3fe11f c00161 00");
    let decoder = bytes("03 44 7f80 01");
    for (stream, text) in [(2, control), (6, encoder), (10, decoder)] {
        for cut in 0..text.len() {
            let mut client = Client::new(Limits::default());
            client.bytes(stream, &text[..cut], false);
            client.bytes(stream, &text[cut..], false);
            assert_eq!(client.connection.fault(), None, "{stream}, cut at {cut}");
        }
        let mut client = Client::new(Limits::default());
        for byte in text {
            client.bytes(stream, &[byte], false);
        }
        assert_eq!(client.connection.fault(), None);
    }
}

#[test]
fn streams_that_must_stay_open_and_be_alone() {
    for kind in ["00 0400", "02", "03"] {
        closes(
            "a second one of its kind",
            |client| {
                client.bytes(6, &bytes(kind), false);
                client.bytes(10, &bytes(kind), false);
            },
            Fault::StreamCreation,
            0x103,
        );
    }
    closes(
        "a push",
        |client| client.bytes(6, &[1], false),
        Fault::StreamCreation,
        0x103,
    );
    let critical = Fault::CriticalStreamClosed;
    closes(
        "control ends",
        |client| client.bytes(2, b"", true),
        critical,
        0x104,
    );
    closes(
        "control is reset",
        |client| client.reset(2),
        critical,
        0x104,
    );
    for kind in [2u8, 3] {
        closes(
            "it ends",
            |client| client.bytes(6, &[kind], true),
            critical,
            0x104,
        );
        closes(
            "it is reset",
            |client| {
                client.bytes(6, &[kind], false);
                client.reset(6);
            },
            critical,
            0x104,
        );
    }
    closes("ours is not read", |client| client.stop(3), critical, 0x104);
    closes(
        "nor the decoder's",
        |client| client.stop(7),
        critical,
        0x104,
    );
}

#[test]
fn streams_of_other_types_are_refused_and_may_end() {
    let mut client = Client::greeted();
    client.bytes(6, &bytes("4021 0102"), false);
    assert_eq!(client.sent.get(&6).unwrap().stopped, Some(0x103));
    client.bytes(6, b"more", true);
    client.bytes(10, b"", true);
    client.reset(14);
    assert_eq!(client.closed, None);
}

#[test]
fn instructions_that_can_t_be_read_close() {
    closes(
        "a capacity above ours",
        |client| client.bytes(6, &bytes("02 3fe21f"), false),
        Fault::EncoderStream,
        0x201,
    );
    closes(
        "an acknowledgement of nothing",
        |client| client.bytes(6, &bytes("03 80"), false),
        Fault::DecoderStream,
        0x202,
    );
}

#[test]
fn heads_wait_for_the_table_and_are_acknowledged() {
    let mut client = Client::greeted();
    // `:authority: a` from the dynamic table, which is empty; behind it a body.
    let section = [bytes("0200 d1 d7 c1 80")].concat();
    let request = [frame(1, &section), data(b"abc")].concat();
    client.bytes(0, &request, true);
    client.request(4, &GET);
    assert_eq!(
        client.take_told(),
        ["1 request GET / HTTP/3 ended"],
        "others go on"
    );
    assert_eq!(client.connection.appetite(0), 0);
    client.bytes(6, &bytes("02 3fe11f c0"), false);
    assert_eq!(client.take_told(), [""; 0]);
    client.bytes(6, &bytes("0161"), false);
    assert_eq!(
        client.take_told(),
        ["0 request GET / HTTP/3", "0 data abc", "0 end"]
    );
    // The insertion is counted when it comes, the section acknowledged when it is read.
    assert_eq!(client.sent.get(&7).unwrap().bytes, bytes("03 01 80"));
    // The next one needs no waiting, and is not counted again.
    client.bytes(8, &frame(1, &section), true);
    assert_eq!(client.take_told(), ["2 request GET / HTTP/3 ended"]);
    client.bytes(12, &frame(1, &section), true);
    assert_eq!(
        client.take_told(),
        ["3 request GET / HTTP/3 ended"],
        "remembered"
    );
    assert_eq!(client.sent.get(&7).unwrap().bytes, bytes("03 01 80 88 8c"));
    // Trailers wait as heads do.
    client.bytes(
        16,
        &[headers(&with("POST", &[])), frame(1, &bytes("0300 80"))].concat(),
        true,
    );
    assert_eq!(client.take_told(), ["4 request POST / HTTP/3"]);
    client.bytes(6, &bytes("4178 0179"), false);
    assert_eq!(client.take_told(), ["4 end x: y;"]);
    // One that is taken back is cancelled.
    client.bytes(20, &frame(1, &bytes("0500 80")), true);
    client.reset(20);
    assert_eq!(client.take_told(), [""; 0]);
    assert!(client.sent.get(&7).unwrap().bytes.ends_with(&bytes("54")));
}

#[test]
fn requests_may_be_taken_back() {
    let mut client = Client::greeted();
    client.request(0, &GET);
    client.take_told();
    client.stop(0);
    assert_eq!(client.take_told(), ["0 broken StreamReset"]);
    assert_eq!(client.response(0), "reset 0x10c");
    client.bytes(4, &headers(&with("POST", &[])), false);
    client.take_told();
    client.reset(4);
    client.stop(4);
    assert_eq!(client.take_told(), ["1 broken StreamReset"]);
    assert_eq!(
        client.act(1, Action::Data(Payload::Copied(b"late"))),
        Ok(())
    );
    // Before its head.
    client.bytes(8, &headers(&GET)[..3], false);
    client.reset(8);
    client.reset(12);
    client.bytes(12, &headers(&GET), true);
    assert_eq!(client.take_told(), [""; 0]);
    // A response that is on its way, and will never arrive.
    client.window = Some(0);
    client.request(16, &GET);
    client.respond(4, b"x");
    client.take_told();
    client.stop(16);
    assert_eq!(client.take_told(), ["4 broken StreamReset"]);
    assert!(client.connection.is_idle());
}

#[test]
fn streams_begin_in_any_order() {
    let mut client = Client::greeted();
    client.request(8, &GET);
    client.request(0, &GET);
    client.request(4, &GET);
    assert_eq!(client.take_told().len(), 3);
    for request in [1, 2, 0] {
        client.respond(request, b"x");
    }
    for stream in [0, 4, 8] {
        assert!(client.response(stream).ends_with("x fin"));
        client.request(stream, &GET);
    }
    assert_eq!(
        client.take_told(),
        [""; 0],
        "a stream that is over does not begin again"
    );
}

#[test]
fn extended_connect_becomes_a_tunnel() {
    let websocket = with("CONNECT", &[]);
    let websocket = [&[(":protocol", "websocket")], &websocket[..]].concat();
    let mut client = Client::greeted();
    client.bytes(0, &headers(&websocket), false);
    client.bytes(0, &data(b"early"), false);
    assert_eq!(client.take_told(), ["0 request CONNECT / HTTP/3"]);
    let switch = Action::Switch {
        protocol: b"websocket",
        fields: &Fields::EMPTY,
    };
    assert_eq!(client.act(0, switch), Ok(()));
    client.want(0, u64::MAX);
    client.bytes(0, &data(b"frame"), false);
    assert_eq!(client.take_told(), ["0 data early", "0 data frame"]);
    assert_eq!(
        client.act(0, Action::Data(Payload::Copied(b"back"))),
        Ok(())
    );
    assert_eq!(client.response(0), "[:status: 200;]back");
    client.bytes(0, b"", true);
    assert_eq!(client.take_told(), ["0 end"]);
    assert_eq!(
        client.act(
            0,
            Action::End {
                trailers: &Fields::EMPTY
            }
        ),
        Ok(())
    );
    assert!(client.response(0).ends_with("back fin"));
    closes(
        "trailers in a tunnel",
        |client| {
            client.bytes(0, &headers(&websocket), false);
            let fields = &Fields::EMPTY;
            let switch = Action::Switch {
                protocol: b"websocket",
                fields,
            };
            assert_eq!(client.act(0, switch), Ok(()));
            client.bytes(0, &headers(&[("x", "y")]), false);
        },
        Fault::FrameSequence,
        0x105,
    );
    let mut plain = Client::with(Limits::default(), crate::Options::default());
    plain.request(0, &websocket);
    assert_eq!(plain.response(0), "reset 0x10e");
}

/// RFC 9220 §3, RFC 8441 §5: any 2xx grants what an extended CONNECT asks for.
#[test]
fn an_extended_connect_is_not_refused_with_success() {
    let websocket = [&[(":protocol", "websocket")], &with("CONNECT", &[])[..]].concat();
    for (status, is_whole) in [(200, true), (204, true), (200, false), (299, false)] {
        let mut client = Client::greeted();
        client.bytes(0, &headers(&websocket), false);
        let fields = Fields::EMPTY;
        let response = ResponseHead {
            status: Status::new(status).unwrap(),
            ..head(&fields)
        };
        let action = if is_whole {
            Action::Respond(response, Payload::Copied(b""))
        } else {
            Action::Start(response)
        };
        assert_eq!(client.act(0, action), Err(Fault::ResponseGrants));
        assert!(client.response(0).starts_with("[:status: 500;"));
    }
}

#[test]
fn a_drain_answers_what_was_sent_and_rejects_the_rest() {
    let mut client = Client::greeted();
    client.request(0, &GET);
    client.call(Connection::drain);
    client.settle();
    let control = |client: &Client| client.sent.get(&3).unwrap().bytes.clone();
    assert!(control(&client).ends_with(&bytes("07 08 fffffffffffffffc")));
    client.request(4, &GET);
    assert_eq!(
        client.take_told().len(),
        2,
        "it has crossed the first notice"
    );
    client.pass(250);
    assert!(control(&client).ends_with(&bytes("07 01 08")));
    client.request(8, &GET);
    assert_eq!(client.response(8), "reset 0x10b stop 0x10b");
    client.respond(0, b"x");
    assert_eq!(client.closed, None);
    client.respond(1, b"y");
    assert_eq!(client.closed, Some(H3_NO_ERROR));
    assert_eq!(client.connection.closing(), Some(Closing::Clean));
    assert!(client.response(0).ends_with("fin") && client.response(4).ends_with("fin"));
}

#[test]
fn an_idle_connection_is_closed() {
    let mut client = Client::greeted();
    let limits = Limits::default();
    assert_eq!(
        client.connection.deadline(&limits),
        Some(limits.head_read_ms)
    );
    client.request(0, &GET);
    assert_eq!(
        client.connection.deadline(&limits),
        None,
        "a handler may take its time"
    );
    client.respond(0, b"x");
    client.pass(limits.keep_alive_ms - 1);
    assert_eq!(client.closed, None);
    client.pass(1);
    assert_eq!(client.closed, Some(H3_NO_ERROR));
}

#[test]
fn what_comes_too_slowly_ends() {
    let limits = Limits::default();
    let mut client = Client::greeted();
    client.bytes(0, &headers(&GET)[..5], false);
    client.bytes(6, b"\x40", false);
    client.pass(limits.head_read_ms);
    assert!(
        client.response(0).starts_with("[:status: 408;"),
        "{}",
        client.response(0)
    );
    assert_eq!(client.sent.get(&6).unwrap().stopped, Some(0x103));
    let refused = client.connection.take_refused();
    assert_eq!(refused[0].fault, Fault::HeadTooSlow);
    let mut client = Client::greeted();
    client.bytes(0, &headers(&with("POST", &[])), false);
    client.pass(limits.body_read_ms);
    assert_eq!(client.take_told().last().unwrap(), "0 broken BodyTooSlow");
    assert!(client.response(0).starts_with("[:status: 408;"));
    // A head that waits for insertions which never come.
    let mut client = Client::greeted();
    client.bytes(0, &frame(1, &bytes("0200 80")), true);
    client.pass(limits.head_read_ms);
    assert!(client.response(0).starts_with("[:status: 408;"));
    assert!(
        client.sent.get(&7).unwrap().bytes.ends_with(&bytes("40")),
        "it is cancelled"
    );
}

#[test]
fn stalled_responses_are_reset() {
    let limits = Limits::default();
    let mut client = Client::greeted();
    client.window = Some(0);
    client.request(0, &GET);
    client.respond(0, &[b'x'; 5000]);
    client.pass(limits.write_stall_ms - 1);
    client.open_window(2000, &[0]);
    client.pass(1);
    assert_eq!(client.sent.get(&0).unwrap().reset, None);
    client.take_told();
    client.pass(limits.write_stall_ms);
    assert_eq!(client.take_told(), ["0 broken StreamStalled"]);
    assert_eq!(client.sent.get(&0).unwrap().reset, Some(0x107));
    assert!(client.connection.is_idle());
}

#[test]
fn a_connection_that_is_lost_breaks_its_requests() {
    let mut client = Client::greeted();
    client.request(0, &GET);
    client.bytes(4, &headers(&GET)[..3], false);
    client.take_told();
    client.call(Connection::lost);
    client.settle();
    assert_eq!(client.take_told(), ["0 broken StreamReset"]);
    assert_eq!(
        client.closed, None,
        "the connection has ended, and no close is sent"
    );
}

#[test]
fn a_refusal_has_its_code() {
    let mut client = Client::greeted();
    client.call(|connection, _| connection.refuse(Fault::Overloaded));
    client.settle();
    assert_eq!(client.closed, Some(0x100));
}

#[test]
fn secrets_go_into_no_table_and_defaults_into_every_response() {
    let mut client = Client::greeted();
    client.fields.push(b"x-default", b"d").unwrap();
    client.request(0, &GET);
    let mut fields = Fields::default();
    fields.push(b"set-cookie", b"a=b").unwrap();
    let done = client.act(0, Action::Respond(head(&fields), Payload::Copied(b"")));
    assert_eq!(done, Ok(()));
    let sent = &client.sent.get(&0).unwrap().bytes;
    let literal = bytes("7e 03 613d62");
    assert!(sent.windows(5).any(|window| window == literal));
    assert!(read_frames(sent).contains("x-default: d;"));
}
