use alloc::vec::Vec;

use super::connection::{Connection, Event};
use super::{Fault, Limits, Misuse, Pairs, Request};
use crate::frame::{self, ACK, Code, FRAME_BYTES_MAX, PREFACE, header};
use crate::hpack::{Encoder, Indexing};

const GET: Request<'_> = Request {
    method: b"GET",
    scheme: b"https",
    authority: b"a",
    path: b"/",
    content_length: Some(0),
    ends: true,
};

const POST: Request<'_> = Request {
    method: b"POST",
    content_length: None,
    ends: false,
    ..GET
};

/// A server's side, by hand.
struct Peer {
    connection: Connection,
    limits: Limits,
    encoder: Encoder,
    out: Vec<u8>,
    input: Vec<u8>,
}

/// Events as text.
fn spell(event: &Event<'_>) -> alloc::string::String {
    alloc::format!("{event:?}")
}

impl Peer {
    fn silent() -> Self {
        let limits = Limits::DEFAULT;
        let mut out = Vec::new();
        let connection = Connection::new(&limits, &mut out);
        assert!(out.starts_with(PREFACE));
        out.clear();
        Self {
            connection,
            limits,
            encoder: Encoder::new(),
            out,
            input: Vec::new(),
        }
    }

    fn new() -> Self {
        let mut peer = Self::silent();
        frame::settings(&mut peer.input, &[]);
        assert_eq!(peer.receive(), Ok(Vec::from(["Room".into()])));
        peer.out.clear();
        peer
    }

    fn begin(&mut self, request: &Request<'_>) -> u32 {
        let begun = self.connection.begin(request, [], &mut self.out);
        begun.expect("there is room")
    }

    fn say(&mut self, id: u32, fields: &[(&str, &str)], ends: bool) {
        let mut block = Vec::new();
        for (name, value) in fields {
            let (name, value) = (name.as_bytes(), value.as_bytes());
            self.encoder.field(&mut block, name, value, Indexing::Keep);
        }
        frame::headers(&mut self.input, id, &block, ends);
    }

    fn data(&mut self, id: u32, data: &[u8], ends: bool) {
        frame::data(&mut self.input, id, data.len(), ends);
        self.input.extend_from_slice(data);
    }

    fn receive(&mut self) -> Result<Vec<alloc::string::String>, Fault> {
        let input = core::mem::take(&mut self.input);
        let mut rest = input.as_slice();
        let mut events = Vec::new();
        while let Some(event) = self
            .connection
            .receive(&self.limits, &mut rest, &mut self.out)?
        {
            let id = match &event {
                Event::Head(id, ..) | Event::Data(id, _) => Some(*id),
                _ => None,
            };
            events.push(spell(&event));
            if id.is_some_and(|id| self.connection.take_end(id)) {
                events.push("end".into());
            }
        }
        self.input = rest.to_vec();
        Ok(events)
    }
}

#[test]
fn responses_come_in_any_order() {
    let mut peer = Peer::new();
    assert_eq!((peer.begin(&GET), peer.begin(&GET)), (1, 3));
    peer.say(3, &[(":status", "200"), ("x", "y")], false);
    peer.data(3, b"three", true);
    peer.say(1, &[(":status", "103"), ("link", "a")], false);
    peer.say(1, &[(":status", "204")], true);
    let events = peer.receive().expect("a good server");
    assert_eq!(events.len(), 6);
    assert!(events[0].starts_with("Head(3, 200"), "{events:?}");
    assert_eq!(&events[2], "end");
    assert!(events[3].starts_with("Interim(1, 103"), "{events:?}");
    assert_eq!(&events[5], "end");
    assert_eq!(peer.connection.room(), 100);
}

#[test]
fn any_cut_gives_the_same() {
    let mut whole = Peer::new();
    whole.begin(&GET);
    whole.say(1, &[(":status", "200")], false);
    whole.data(1, b"content", false);
    whole.say(1, &[("t", "u")], true);
    let bytes = whole.input.clone();
    let expected = whole.receive();
    for at in 0..bytes.len() {
        let mut peer = Peer::new();
        peer.begin(&GET);
        peer.input.extend_from_slice(&bytes[..at]);
        let mut events = peer.receive().expect("a good server");
        peer.input.extend_from_slice(&bytes[at..]);
        events.extend(peer.receive().expect("a good server"));
        assert_eq!(Ok(events), expected, "{at}");
    }
}

#[test]
fn a_response_with_two_readings_ends_its_stream() {
    let cases: [(&[(&str, &str)], Fault); 13] = [
        (&[("x", "y")], Fault::PseudoField),
        (
            &[(":status", "200"), (":status", "200")],
            Fault::PseudoField,
        ),
        (&[("x", "y"), (":status", "200")], Fault::PseudoField),
        (&[(":status", "200"), (":path", "/")], Fault::PseudoField),
        (&[(":status", "20")], Fault::Status),
        (&[(":status", "600")], Fault::Status),
        (&[(":status", "101")], Fault::Status),
        (&[(":status", "200"), ("X", "y")], Fault::FieldSyntax),
        (
            &[(":status", "200"), ("x", "a\r\nb: c")],
            Fault::FieldSyntax,
        ),
        (&[(":status", "200"), ("x", " y")], Fault::FieldSyntax),
        (
            &[(":status", "200"), ("connection", "close")],
            Fault::FieldOfConnection,
        ),
        (
            &[(":status", "200"), ("transfer-encoding", "chunked")],
            Fault::FieldOfConnection,
        ),
        (
            &[
                (":status", "200"),
                ("content-length", "1"),
                ("content-length", "1"),
            ],
            Fault::ContentLength,
        ),
    ];
    for (fields, fault) in cases {
        let mut peer = Peer::new();
        peer.begin(&GET);
        peer.out.clear();
        peer.say(1, fields, false);
        let events = peer.receive().expect("the connection goes on");
        assert_eq!(events, [spell(&Event::Failed(1, fault))], "{fields:?}");
        let mut reset = Vec::new();
        frame::reset(&mut reset, 1, fault.code);
        assert_eq!(peer.out, reset, "{fields:?}");
        // The next one is not touched.
        assert_eq!(peer.begin(&GET), 3);
        peer.say(3, &[(":status", "200")], true);
        assert_eq!(peer.receive().expect("it goes on").len(), 2);
    }
}

#[test]
fn content_has_the_length_that_is_said() {
    for (length, data, is_good) in [("3", "abc", true), ("3", "ab", false), ("3", "abcd", false)] {
        let mut peer = Peer::new();
        peer.begin(&GET);
        peer.say(1, &[(":status", "200"), ("content-length", length)], false);
        peer.data(1, data.as_bytes(), true);
        let events = peer.receive().expect("the connection goes on");
        assert_eq!(events.iter().any(|it| it == "end"), is_good, "{events:?}");
    }
    // Without content in return to HEAD, whatever the head says.
    let mut peer = Peer::new();
    let head = Request {
        method: b"HEAD",
        ..GET
    };
    peer.begin(&head);
    peer.say(1, &[(":status", "200"), ("content-length", "3")], true);
    assert_eq!(peer.receive().expect("a good server").len(), 2);
}

#[test]
fn what_is_no_http2_ends_the_connection() {
    let cases: [(&[u8], Fault); 13] = [
        (&header(0, 0, 0, 0), Fault::FrameStream),
        (&header(0, 1, 4, 2), Fault::FrameStream),
        (&header(0, 1, 4, 7), Fault::FrameStream),
        (&header(4, 5, 4, 1), Fault::FrameSize),
        (&header(0, 5, 4, 1), Fault::Push),
        (&header(1, 4, 0, 0), Fault::FrameSize),
        (&header(0, 4, 0, 1), Fault::FrameStream),
        (&header(0, 4, 1, 0), Fault::FrameSize),
        (&header(0, 6, 0, 0), Fault::FrameSize),
        (&header(0, 6, 0, 1), Fault::FrameStream),
        (&header(0, 7, 0, 0), Fault::FrameSize),
        (&header(0, 8, 0, 0), Fault::FrameSize),
        (&header(0, 9, 4, 1), Fault::FrameOrder),
    ];
    for (said, fault) in cases {
        let mut peer = Peer::new();
        peer.begin(&GET);
        peer.input.extend_from_slice(said);
        let length = usize::from(said[2]);
        peer.input.resize(said.len() + length, 0);
        let outcome = peer.receive();
        if fault == Fault::FrameSize && said[3] == 5 {
            assert_eq!(outcome, Err(Fault::Push));
        } else if said[3] == 4 && said[4] == ACK && length == 0 {
            assert_eq!(outcome, Ok(Vec::new()));
        } else {
            assert_eq!(outcome, Err(fault), "{said:?}");
            assert!(peer.out.ends_with(&[0, 0, 0, fault.code as u8]));
            assert_eq!(peer.receive(), Err(fault), "it is broken for good");
        }
    }
}

#[test]
fn frames_are_no_larger_than_was_agreed() {
    let mut peer = Peer::new();
    peer.begin(&GET);
    let [_, l0, l1, l2] = u32::try_from(FRAME_BYTES_MAX + 1)
        .unwrap_or(0)
        .to_be_bytes();
    peer.input
        .extend_from_slice(&[l0, l1, l2, 0, 0, 0, 0, 0, 1]);
    assert_eq!(peer.receive(), Err(Fault::FrameSize));
}

#[test]
fn settings_come_first() {
    let mut peer = Peer::silent();
    frame::ping(&mut peer.input, &[0; 8], 0);
    assert_eq!(peer.receive(), Err(Fault::SettingsMissing));
}

#[test]
fn settings_are_values_that_they_can_have() {
    for (name, value, fault) in [
        (2, 1, Fault::SettingsValue),
        (4, 1 << 31, Fault::FlowControl),
        (5, 16_383, Fault::SettingsValue),
        (5, 1 << 24, Fault::SettingsValue),
    ] {
        let mut peer = Peer::new();
        frame::settings(&mut peer.input, &[(name, value)]);
        assert_eq!(peer.receive(), Err(fault));
    }
}

#[test]
fn a_server_says_how_many_requests_it_takes() {
    let mut peer = Peer::new();
    frame::settings(&mut peer.input, &[(3, 2)]);
    peer.receive().expect("a good server");
    assert_eq!(peer.connection.room(), 2);
    peer.begin(&GET);
    peer.begin(&GET);
    let refused = peer.connection.begin(&GET, [], &mut peer.out);
    assert_eq!(refused, Err(Misuse::Full));
    peer.say(1, &[(":status", "200")], true);
    peer.receive().expect("a good server");
    assert_eq!(peer.connection.room(), 1);
}

#[test]
fn content_is_sent_as_far_as_windows_go() {
    let mut peer = Peer::new();
    frame::settings(&mut peer.input, &[(4, 10)]);
    peer.receive().expect("a good server");
    let id = peer.begin(&POST);
    assert_eq!(
        peer.connection.data(id, &[b'x'; 25], true, &mut peer.out),
        10
    );
    assert_eq!(
        peer.connection.data(id, &[b'x'; 15], true, &mut peer.out),
        0
    );
    // A window that shrinks below nothing.
    frame::settings(&mut peer.input, &[(4, 4)]);
    frame::window_update(&mut peer.input, id, 10);
    peer.receive().expect("a good server");
    assert_eq!(peer.connection.capacity(id), 4);
    assert_eq!(
        peer.connection.data(id, &[b'x'; 15], true, &mut peer.out),
        4
    );
    frame::window_update(&mut peer.input, id, 100);
    peer.receive().expect("a good server");
    assert_eq!(
        peer.connection.data(id, &[b'x'; 11], true, &mut peer.out),
        11
    );
    assert!(!peer.connection.takes_content(id));
    // What is sent counts for all streams together.
    frame::settings(&mut peer.input, &[(4, 1_000_000)]);
    peer.receive().expect("a good server");
    let id = peer.begin(&POST);
    let content = alloc::vec![b'x'; 70_000];
    let sent = peer.connection.data(id, &content, true, &mut peer.out);
    assert_eq!(sent, 65_535 - 25);
}

#[test]
fn windows_do_not_overflow() {
    let mut peer = Peer::new();
    frame::window_update(&mut peer.input, 0, 0x7fff_ffff);
    assert_eq!(peer.receive(), Err(Fault::FlowControl));
    let mut peer = Peer::new();
    frame::window_update(&mut peer.input, 0, 0);
    assert_eq!(peer.receive(), Err(Fault::WindowIncrement));
    let mut peer = Peer::new();
    let id = peer.begin(&POST);
    frame::window_update(&mut peer.input, id, 0x7fff_ffff);
    let events = peer.receive().expect("the connection goes on");
    assert_eq!(events, [spell(&Event::Failed(id, Fault::FlowControl))]);
}

#[test]
fn content_that_is_not_consumed_is_bounded() {
    let mut peer = Peer::new();
    peer.begin(&GET);
    peer.say(1, &[(":status", "200")], false);
    peer.receive().expect("a good server");
    let piece = [b'x'; FRAME_BYTES_MAX];
    let mut outcome = Ok(Vec::new());
    let mut sent = 0;
    while outcome.is_ok() && sent < 10_000_000 {
        peer.data(1, &piece, false);
        outcome = peer.receive();
        sent += piece.len();
    }
    assert_eq!(outcome, Err(Fault::FlowControl));
    assert!(sent <= 256 * 1024 + FRAME_BYTES_MAX);
}

#[test]
fn what_is_consumed_may_come_again() {
    let mut peer = Peer::new();
    peer.begin(&GET);
    peer.say(1, &[(":status", "200")], false);
    let piece = [b'x'; FRAME_BYTES_MAX];
    for _ in 0..2000 {
        peer.data(1, &piece, false);
        peer.receive().expect("it keeps to its windows");
        let Peer {
            connection,
            limits,
            out,
            ..
        } = &mut peer;
        connection.consumed(1, piece.len(), limits, out);
    }
}

#[test]
fn frames_that_bring_nothing_on_are_counted() {
    for kind in 0..4 {
        let mut peer = Peer::new();
        let id = peer.begin(&POST);
        peer.say(id, &[(":status", "200")], false);
        peer.receive().expect("a good server");
        let mut outcome = Ok(Vec::new());
        let mut n_frames = 0;
        while outcome.is_ok() && n_frames < 5000 {
            match kind {
                0 => frame::ping(&mut peer.input, &[0; 8], 0),
                1 => frame::settings(&mut peer.input, &[]),
                2 => frame::data(&mut peer.input, id, 0, false),
                _ => frame::window_update(&mut peer.input, id, 1),
            }
            outcome = peer.receive();
            n_frames += 1;
        }
        assert_eq!(outcome, Err(Fault::ExcessiveLoad), "{kind}");
    }
}

/// A server that asks, and does not read what it is told, has one asking bring something on now and then.
#[test]
fn answers_that_wait_to_be_sent_are_counted() {
    for is_taken in [false, true] {
        let mut peer = Peer::new();
        let id = peer.begin(&POST);
        peer.say(id, &[(":status", "200")], false);
        peer.receive().expect("a good server");
        let mut outcome = Ok(Vec::new());
        let mut n_answers = 0;
        while outcome.is_ok() && n_answers < 5000 {
            frame::ping(&mut peer.input, &[0; 8], 0);
            peer.data(id, b"x", false);
            outcome = peer.receive();
            n_answers += 1;
            if is_taken {
                peer.connection.output_taken();
            }
        }
        if is_taken {
            assert!(outcome.is_ok());
        } else {
            assert_eq!(outcome, Err(Fault::ExcessiveLoad));
            assert!(n_answers >= peer.limits.replies_max);
        }
    }
}

#[test]
fn a_section_in_endless_pieces_is_bounded() {
    let mut peer = Peer::new();
    peer.begin(&GET);
    peer.input.extend_from_slice(&header(0, 1, 0, 1));
    let mut outcome = Ok(Vec::new());
    for _ in 0..1000 {
        peer.input.extend_from_slice(&header(0, 9, 0, 1));
        outcome = peer.receive();
        if outcome.is_err() {
            break;
        }
    }
    assert_eq!(outcome, Err(Fault::SectionTooLong));
}

#[test]
fn heads_are_bounded() {
    for (fields, fault) in [(200, Fault::TooManyFields), (0, Fault::HeadTooLong)] {
        let mut peer = Peer::new();
        peer.begin(&GET);
        let long = "x".repeat(if fields == 0 { 66_000 } else { 1 });
        let mut all = Vec::from([(":status", "200")]);
        all.extend((0..fields.max(1)).map(|_| ("x", long.as_str())));
        peer.say(1, &all, true);
        let outcome = peer.receive();
        if fields == 0 {
            assert_eq!(outcome, Err(Fault::SectionTooLong));
        } else {
            assert_eq!(outcome, Ok(Vec::from([spell(&Event::Failed(1, fault))])));
        }
    }
    let mut peer = Peer::new();
    peer.begin(&GET);
    for _ in 0..65 {
        peer.say(1, &[(":status", "103")], false);
    }
    let events = peer.receive().expect("the connection goes on");
    assert_eq!(
        events.last(),
        Some(&spell(&Event::Failed(1, Fault::TooManyInterim)))
    );
}

#[test]
fn a_server_that_leaves_says_what_it_has_not_done() {
    let mut peer = Peer::new();
    for _ in 0..3 {
        peer.begin(&GET);
    }
    frame::go_away(&mut peer.input, 3, Code::NoError);
    peer.say(1, &[(":status", "200")], true);
    let events = peer.receive().expect("a good server");
    assert_eq!(events[0], spell(&Event::Leaving(3)));
    assert_eq!(events.len(), 3);
    assert!(peer.connection.is_going());
    assert_eq!(peer.connection.room(), 0);
}

#[test]
fn a_stream_is_reset_by_either_side() {
    let mut peer = Peer::new();
    for _ in 0..3 {
        peer.begin(&GET);
    }
    frame::reset(&mut peer.input, 1, Code::RefusedStream);
    frame::reset(&mut peer.input, 3, Code::Internal);
    let events = peer.receive().expect("a good server");
    assert_eq!(
        events,
        [
            spell(&Event::Reset(1, 7, true)),
            spell(&Event::Reset(3, 2, false))
        ]
    );
    peer.out.clear();
    peer.connection.reset(5, &mut peer.out);
    assert!(!peer.out.is_empty());
    // What the server says of it before it knows is decoded, and dropped.
    peer.say(5, &[(":status", "200"), ("kept", "in the table")], false);
    peer.data(5, b"late", true);
    assert_eq!(peer.receive(), Ok(Vec::new()));
    assert_eq!(peer.begin(&GET), 7);
    peer.say(7, &[(":status", "200"), ("kept", "in the table")], true);
    assert!(peer.receive().expect("a good server")[0].contains("116, 97, 98, 108, 101"));
    assert_eq!(peer.connection.room(), 100);
}

#[test]
fn nothing_of_the_caller_is_another_field() {
    let mut peer = Peer::new();
    let mut refuse = |name: &'static [u8], value: &'static [u8]| {
        peer.connection
            .begin(&GET, [(name, value)], &mut Vec::new())
    };
    assert_eq!(refuse(b"x", b"a\r\nb"), Err(Misuse::FieldValue(b"x")));
    assert_eq!(refuse(b":path", b"/"), Err(Misuse::FieldName(b":path")));
    for owned in [
        &b"Connection"[..],
        b"Transfer-Encoding",
        b"Content-Length",
        b"upgrade",
    ] {
        assert_eq!(refuse(owned, b"1"), Err(Misuse::FieldOwned(owned)));
    }
    assert!(refuse(b"te", b"trailers").is_ok());
    assert_eq!(refuse(b"te", b"gzip"), Err(Misuse::FieldOwned(b"te")));
    let pairs = Pairs::new();
    assert!(pairs.is_empty());
}
