use alloc::vec;

use super::*;
use crate::{Code, Tools};

/// A server's side and everything it says.
struct Peer {
    connection: Connection,
    tools: Tools,
    limits: Limits,
    now: Millis,
    out: Vec<u8>,
}

impl Peer {
    fn new() -> Self {
        Self::with(|_| {}, None)
    }

    fn with(change: impl FnOnce(&mut Limits), bits: Option<u8>) -> Self {
        let mut limits = Limits::default();
        change(&mut limits);
        let agreed = Agreed { deflate_bits: bits };
        Self {
            connection: Connection::new(agreed, 0),
            tools: Tools::default(),
            limits,
            now: 0,
            out: Vec::new(),
        }
    }

    /// All events of `input`, which comes in pieces of `size` bytes.
    fn receive_in(&mut self, input: &[u8], size: usize) -> Vec<Event> {
        let mut events = Vec::new();
        for piece in input.chunks(size.max(1)) {
            let mut piece = piece;
            let mut context = Context {
                now: self.now,
                limits: &self.limits,
                tools: &mut self.tools,
            };
            while let Some(event) = self
                .connection
                .receive(&mut context, &mut piece, &mut self.out)
            {
                events.push(event);
            }
            assert!(piece.is_empty(), "all of it is taken");
        }
        events
    }

    fn receive(&mut self, input: &[u8]) -> Vec<Event> {
        self.receive_in(input, usize::MAX)
    }

    fn send(&mut self, kind: Kind, payload: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        let mut context = Context {
            now: self.now,
            limits: &self.limits,
            tools: &mut self.tools,
        };
        self.connection.send(&mut context, kind, payload, &mut out);
        out
    }

    fn expire(&mut self, now: Millis) -> Option<Event> {
        self.now = now;
        let context = Context {
            now,
            limits: &self.limits,
            tools: &mut self.tools,
        };
        self.connection.expire(&context, &mut self.out)
    }
}

/// A client's frame.
fn frame(first: u8, payload: &[u8]) -> Vec<u8> {
    const KEY: [u8; 4] = [0xa1, 0x02, 0xfe, 0x44];
    let mut out = vec![first];
    match payload.len() {
        length @ 0..=125 => out.push(0x80 | length as u8),
        length @ 126..=0xffff => {
            out.push(0xfe);
            out.extend((length as u16).to_be_bytes());
        }
        length => {
            out.push(0xff);
            out.extend((length as u64).to_be_bytes());
        }
    }
    out.extend(KEY);
    unmask_into(&mut out, payload, KEY, 0);
    out
}

/// Numbers that look random and are the same each time.
fn rng() -> impl FnMut() -> u64 {
    let mut state = 0x2545_f491_4f6c_dd1du64;
    move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    }
}

fn text(payload: &str) -> Event {
    Event::Message {
        kind: Kind::Text,
        bytes: payload.into(),
    }
}

fn binary(payload: &[u8]) -> Event {
    Event::Message {
        kind: Kind::Binary,
        bytes: payload.into(),
    }
}

fn broken(fault: Fault) -> Event {
    Event::Closed {
        close: Close::new(fault.code(), fault.text()),
        fault: Some(fault),
    }
}

fn closed(code: u16, reason: &str) -> Event {
    Event::Closed {
        close: Close::new(Code::new(code).expect("a code"), reason),
        fault: None,
    }
}

/// The close frame that responses a fault.
fn last_words(fault: Fault) -> Vec<u8> {
    let payload = Close::new(fault.code(), fault.text()).payload();
    [&[0x88, payload.len() as u8], &payload[..]].concat()
}

/// `input` makes these events and this output, however it is cut.
#[track_caller]
fn says(input: &[u8], bits: Option<u8>, events: &[Event], output: &[u8]) {
    for size in [usize::MAX, 1, 2, 3, 7, 8, 64] {
        let mut peer = Peer::with(|_| {}, bits);
        assert_eq!(peer.receive_in(input, size), events, "in pieces of {size}");
        assert_eq!(peer.out, output, "in pieces of {size}");
    }
}

#[test]
fn messages_of_one_frame_and_of_many() {
    let long = "ä".repeat(50_000);
    let input = [
        frame(0x81, b"Hello"),
        frame(0x82, b"\0\xff"),
        frame(0x81, b""),
        frame(0x01, b"He"),
        frame(0x00, b""),
        frame(0x80, b"llo"),
        frame(0x02, b""),
        frame(0x80, b""),
        frame(0x81, long.as_bytes()),
    ]
    .concat();
    let events = [
        text("Hello"),
        binary(b"\0\xff"),
        text(""),
        text("Hello"),
        binary(b""),
        text(&long),
    ];
    says(&input, None, &events, b"");
}

#[test]
fn control_frames_come_between_fragments_and_are_answered() {
    let longest = [7; 125];
    let input = [
        frame(0x01, b"He"),
        frame(0x89, b"ping"),
        frame(0x8a, b"unasked"),
        frame(0x89, &longest),
        frame(0x80, b"llo"),
        frame(0x88, b"\x03\xe8bye"),
        frame(0x81, b"not heard"),
    ]
    .concat();
    let output = [
        &[0x8a, 4][..],
        b"ping",
        &[0x8a, 125],
        &longest,
        &[0x88, 5],
        b"\x03\xe8bye",
    ]
    .concat();
    says(&input, None, &[text("Hello"), closed(1000, "bye")], &output);
}

#[test]
fn a_close_without_a_code_is_answered_by_one() {
    let event = Event::Closed {
        close: Close::new(Code::NO_STATUS, ""),
        fault: None,
    };
    says(&frame(0x88, b""), None, &[event], &[0x88, 0]);
}

#[test]
fn every_rule_of_frames_closes_with_its_code() {
    let cases: &[(Vec<u8>, Fault)] = &[
        (frame(0xc1, b"x"), Fault::ReservedBits),
        (frame(0x83, b"x"), Fault::Opcode),
        (vec![0x81, 0x01, b'x'], Fault::Unmasked),
        (vec![0x82, 0xfe, 0, 5], Fault::Length),
        (frame(0x09, b"x"), Fault::FragmentedControl),
        (frame(0x89, &[0; 126]), Fault::LongControl),
        (frame(0x80, b"x"), Fault::Continuation),
        (
            [frame(0x01, b"x"), frame(0x81, b"y")].concat(),
            Fault::Interleaved,
        ),
        (frame(0x88, b"\x03"), Fault::ClosePayload),
        (frame(0x88, b"\x03\xed"), Fault::ClosePayload),
        (frame(0x88, b"\x03\xe8\xff"), Fault::ClosePayload),
        (frame(0x81, b"\xce\xba\xe1"), Fault::Text),
        (
            [frame(0x01, b"\xce"), frame(0x80, b"\x20")].concat(),
            Fault::Text,
        ),
        (
            [frame(0x01, b"\xce"), frame(0x80, b"")].concat(),
            Fault::Text,
        ),
    ];
    for (input, fault) in cases {
        // A head of a frame is refused before its end has come, and says no more than what it is.
        for size in [usize::MAX, 1, 3] {
            let mut peer = Peer::new();
            let behind = [input.clone(), frame(0x81, b"not heard")].concat();
            assert_eq!(
                peer.receive_in(&behind, size),
                [broken(*fault)],
                "{fault:?}"
            );
            assert_eq!(peer.out, last_words(*fault), "{fault:?}");
            assert!(peer.connection.is_over() && peer.connection.receive_eof().is_none());
        }
    }
}

#[test]
fn text_is_refused_at_the_byte_that_shows_it() {
    let mut peer = Peer::new();
    // The message is to be four bytes longer, but these will never be a text.
    let start = frame(0x01, b"good \xf4\x90");
    assert_eq!(peer.receive(&start), [broken(Fault::Text)]);
    let mut peer = Peer::new();
    let unfinished = frame(0x81, "some text \u{fffd} and \u{1f600} more".as_bytes());
    assert_eq!(peer.receive(&unfinished[..unfinished.len() - 7]), []);
}

#[test]
fn limits_are_kept_and_said() {
    let small = |limits: &mut Limits| limits.ws_message_bytes_max = 10;
    let mut peer = Peer::with(small, None);
    assert_eq!(peer.receive(&frame(0x82, &[0; 10])), [binary(&[0; 10])]);
    // The head alone is enough.
    assert_eq!(
        peer.receive(&frame(0x82, &[0; 11])[..6]),
        [broken(Fault::TooLarge)]
    );
    let mut peer = Peer::with(small, None);
    let input = [frame(0x02, &[0; 6]), frame(0x00, &[0; 5])].concat();
    assert_eq!(peer.receive_in(&input, 1), [broken(Fault::TooLarge)]);

    let mut peer = Peer::with(|limits| limits.ws_fragments_max = 3, None);
    let fragments = [frame(0x02, b""), frame(0x00, b""), frame(0x80, b"")].concat();
    assert_eq!(peer.receive(&fragments), [binary(b"")]);
    let more = [
        frame(0x02, b""),
        frame(0x00, b""),
        frame(0x00, b""),
        frame(0x00, b""),
    ]
    .concat();
    assert_eq!(peer.receive(&more), [broken(Fault::TooManyFragments)]);

    let mut peer = Peer::with(|limits| limits.ws_messages_max = 2, None);
    let two = [frame(0x82, b""), frame(0x82, b"")].concat();
    assert_eq!(peer.receive(&two).len(), 2);
    peer.now += peer.limits.ws_rate_ms;
    assert_eq!(peer.receive(&two).len(), 2);
    assert_eq!(
        peer.receive(&frame(0x82, b"")),
        [broken(Fault::TooManyMessages)]
    );

    let mut peer = Peer::with(|limits| limits.ws_controls_max = 2, None);
    let pings = [frame(0x89, b""), frame(0x8a, b"")].concat();
    assert_eq!(peer.receive(&pings), []);
    assert_eq!(
        peer.receive(&frame(0x89, b"")),
        [broken(Fault::TooManyControls)]
    );
}

#[test]
fn compressed_messages_both_ways() {
    let mut client = crate::deflate::Deflate::default();
    let long = "compressible ".repeat(100);
    let mut packed = Vec::new();
    client.deflate(long.as_bytes(), 15, &mut packed);
    let (start, end) = packed.split_at(packed.len() / 2);
    let input = [
        frame(0xc1, &packed),
        frame(0x81, b"as it is"),
        frame(0x41, start),
        frame(0x89, b""),
        frame(0x80, end),
    ]
    .concat();
    let events = [text(&long), text("as it is"), text(&long)];
    says(&input, Some(15), &events, &[0x8a, 0]);

    let mut peer = Peer::with(|_| {}, Some(9));
    let sent = peer.send(Kind::Text, long.as_bytes());
    assert!(sent.len() < 125 && sent[0] == 0xc1, "{sent:x?}");
    let mut inflated = Vec::new();
    let read = client.inflate(&sent[2..], &mut inflated, 10_000);
    assert_eq!((read, inflated), (Ok(()), long.clone().into_bytes()));
    assert_eq!(peer.send(Kind::Text, b"short"), b"\x81\x05short");
    // What does not get shorter is sent as it is.
    let mut next = rng();
    let noise: Vec<u8> = (0..2000).map(|_| (next() >> 24) as u8).collect();
    assert_eq!(peer.send(Kind::Binary, &noise)[0], 0x82);
    assert_eq!(Peer::new().send(Kind::Text, long.as_bytes())[0], 0x81);
}

#[test]
fn compressed_rubbish_bombs_and_texts_are_refused() {
    let mut peer = Peer::with(|_| {}, Some(15));
    assert_eq!(
        peer.receive(&frame(0xc2, b"\xff\xff")),
        [broken(Fault::Deflate)]
    );
    let mut packed = Vec::new();
    let mut client = crate::deflate::Deflate::default();
    client.deflate(&vec![0; 100_000], 15, &mut packed);
    let mut peer = Peer::with(|limits| limits.ws_message_bytes_max = 99_999, Some(15));
    assert_eq!(
        peer.receive(&frame(0xc2, &packed)),
        [broken(Fault::TooLarge)]
    );
    let mut packed = Vec::new();
    client.deflate(b"\xff", 15, &mut packed);
    let mut peer = Peer::with(|_| {}, Some(15));
    assert_eq!(peer.receive(&frame(0xc1, &packed)), [broken(Fault::Text)]);
    let mut peer = Peer::with(|_| {}, Some(15));
    let second = [frame(0x02, b""), frame(0xc0, b"")].concat();
    assert_eq!(peer.receive(&second), [broken(Fault::ReservedBits)]);
}

#[test]
fn a_silent_peer_is_pinged_and_then_given_up() {
    let mut peer = Peer::new();
    let (interval, timeout) = (
        peer.limits.ws_ping_interval_ms,
        peer.limits.ws_ping_timeout_ms,
    );
    assert_eq!(peer.connection.deadline(&peer.limits), Some(interval));
    assert_eq!(peer.expire(interval - 1), None);
    assert_eq!(
        (peer.expire(interval), peer.out.as_slice()),
        (None, &[0x89, 0][..])
    );
    // Any byte is a sign of life.
    peer.now = interval + 10;
    assert_eq!(peer.receive(&frame(0x82, b"x")[..1]), []);
    assert_eq!(
        peer.connection.deadline(&peer.limits),
        Some(2 * interval + 10)
    );
    peer.out.clear();
    assert_eq!(peer.expire(2 * interval + 10), None);
    assert_eq!(peer.expire(2 * interval + 9 + timeout), None);
    let given_up = peer.expire(2 * interval + 10 + timeout);
    assert_eq!(given_up, Some(broken(Fault::PingTimeout)));
    assert_eq!(
        peer.out,
        [vec![0x89, 0], last_words(Fault::PingTimeout)].concat()
    );

    let mut quiet = Peer::with(|limits| limits.ws_ping_interval_ms = 0, None);
    assert_eq!(
        (
            quiet.connection.deadline(&quiet.limits),
            quiet.expire(1 << 40)
        ),
        (None, None)
    );
    let mut patient = Peer::with(|limits| limits.ws_ping_timeout_ms = 0, None);
    assert_eq!(patient.expire(interval), None);
    assert_eq!(
        patient.connection.deadline(&patient.limits),
        Some(2 * interval)
    );
}

#[test]
fn our_close_waits_for_theirs() {
    let mut peer = Peer::new();
    let mut out = Vec::new();
    let close = Close::new(Code::SERVICE_RESTART, "again");
    peer.connection.close(5, &close, &mut out);
    assert_eq!(out, b"\x88\x07\x03\xf4again");
    peer.connection.close(6, &close, &mut out);
    assert_eq!((out.len(), peer.send(Kind::Text, b"late").len()), (9, 0));
    // What was under way is dropped. Pings are answered until their close has come ("servers D15", RFC 6455 §5.5.2).
    let input = [
        frame(0x81, b"dropped"),
        frame(0x01, b"in "),
        frame(0x89, b"ping"),
        frame(0x80, b"pieces"),
        frame(0x88, b"\x03\xf4"),
        frame(0x89, b"late"),
    ]
    .concat();
    assert_eq!(peer.receive_in(&input, 5), [closed(1012, "")]);
    assert_eq!(peer.out, b"\x8a\x04ping");

    let mut deaf = Peer::new();
    deaf.connection.close(5, &close, &mut out);
    let patience = deaf.limits.ws_close_ms;
    assert_eq!(deaf.expire(patience + 4), None);
    let lost = Event::Closed {
        close: Close::abnormal(),
        fault: None,
    };
    assert_eq!(deaf.expire(patience + 5), Some(lost));
}

#[test]
fn a_transport_that_ends_is_an_abnormal_close() {
    let mut peer = Peer::new();
    assert_eq!(peer.receive(&frame(0x81, b"half")[..5]), []);
    let lost = Event::Closed {
        close: Close::abnormal(),
        fault: None,
    };
    assert_eq!(
        (peer.connection.receive_eof(), peer.connection.receive_eof()),
        (Some(lost), None)
    );
}

#[test]
fn storms_of_bytes_end_in_a_close_or_in_messages() {
    let mut next = rng();
    for round in 0..2000u64 {
        let mut input: Vec<u8> = (0..next() % 6)
            .flat_map(|_| {
                let first = [0x81, 0x01, 0x80, 0x00, 0x82, 0xc1, 0x89, 0x88][next() as usize % 8];
                let payload: Vec<u8> = (0..next() % 140).map(|_| next() as u8 & 0x7f).collect();
                frame(first, &payload)
            })
            .collect();
        for _ in 0..next() % 3 {
            let at = next() as usize % input.len().max(1);
            if let Some(byte) = input.get_mut(at) {
                *byte ^= 1 << (next() % 8);
            }
        }
        let bits = (round % 2 == 0).then_some(15);
        let mut whole = Peer::with(|limits| limits.ws_message_bytes_max = 500, bits);
        let mut cut = Peer::with(|limits| limits.ws_message_bytes_max = 500, bits);
        let events = whole.receive(&input);
        assert_eq!(
            events,
            cut.receive_in(&input, 1 + next() as usize % 9),
            "{input:x?}"
        );
        assert_eq!(whole.out, cut.out);
        let ends = events
            .iter()
            .filter(|event| matches!(event, Event::Closed { .. }))
            .count();
        assert_eq!(usize::from(whole.connection.is_over()), ends);
    }
}

#[test]
fn an_idle_connection_is_small() {
    assert!(
        size_of::<Connection>() <= 216,
        "{}",
        size_of::<Connection>()
    );
}
