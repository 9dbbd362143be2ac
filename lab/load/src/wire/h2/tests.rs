use super::frame;
use super::hpack::Tools;
use super::{BLOCK_BYTES_MAX, H2, Prepared, STREAMS_ASSUMED};
use crate::request::Request;
use crate::wire::{Answers, Failure, Fault, Setup, Ticket, Wire};

const SETUP: Setup = Setup {
    keep_alive: true,
    is_secure: false,
    is_broadcast: false,
};

/// What the wire told, body fragments joined.
#[derive(Clone, Debug, Default, PartialEq)]
struct Heard {
    open: Vec<(Ticket, u16, Vec<u8>)>,
    complete: Vec<(Ticket, u16, Vec<u8>)>,
    failed: Vec<(Ticket, Failure)>,
}

impl Heard {
    fn take(&mut self, ticket: Ticket) -> (Ticket, u16, Vec<u8>) {
        let place = self.open.iter().position(|(t, ..)| *t == ticket);
        self.open.swap_remove(place.expect("it has begun"))
    }
}

impl Answers for Heard {
    fn is_head(&self, _ticket: Ticket) -> bool {
        false
    }
    fn begin(&mut self, ticket: Ticket, status: u16, closing: bool) {
        assert!(!closing && !self.open.iter().any(|(t, ..)| *t == ticket));
        self.open.push((ticket, status, Vec::new()));
    }
    fn body(&mut self, ticket: Ticket, bytes: &[u8]) {
        let open = self.open.iter_mut().find(|(t, ..)| *t == ticket);
        open.expect("body before head").2.extend_from_slice(bytes);
    }
    fn unseen(&mut self, _ticket: Ticket, _n_bytes: u64) {
        unreachable!("nothing is skipped");
    }
    fn complete(&mut self, ticket: Ticket) {
        let open = self.take(ticket);
        self.complete.push(open);
    }
    fn deliver(&mut self, _due_ns: Option<u64>, _n_bytes: u64) {
        unreachable!("HTTP delivers answers only");
    }
    fn release(&mut self, _ticket: Ticket) {
        unreachable!("HTTP answers every request");
    }
    fn fail(&mut self, ticket: Ticket, failure: Failure) {
        self.failed.push((ticket, failure));
    }
}

fn prepare(method: &str, body: &[u8]) -> Prepared {
    let request = Request {
        method: method.into(),
        target: "/".into(),
        authority: "a".into(),
        headers: vec![
            ("Connection".into(), "close".into()),
            ("X-A".into(), "b".into()),
        ],
        body: body.into(),
        is_chunked: false,
    };
    H2::prepare(&[&request], SETUP).remove(0)
}

struct Connection {
    wire: H2,
    tools: Tools,
    heard: Heard,
    sent: Vec<u8>,
}

impl Connection {
    /// So many requests under way, tickets 0, 1, 2… on streams 1, 3, 5…
    fn asking(n_asked: Ticket) -> Self {
        let (mut wire, mut sent) = (H2::new(SETUP), Vec::new());
        wire.open(&[], &mut sent);
        let prepared = prepare("GET", b"");
        (0..n_asked).for_each(|ticket| wire.send(ticket, 0, &prepared, &mut sent));
        Self {
            wire,
            tools: Tools::default(),
            heard: Heard::default(),
            sent,
        }
    }

    fn receive(&mut self, input: &[u8]) -> Result<(), Fault> {
        self.wire.receive(&mut self.tools, input, &mut self.heard)
    }

    fn replies(&mut self) -> Vec<u8> {
        let mut output = Vec::new();
        self.wire.reply(&mut output);
        output
    }
}

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    frame::write_short(kind, flags, stream, payload, &mut bytes);
    bytes
}

fn settings(pairs: &[(u16, u32)]) -> Vec<u8> {
    let payload: Vec<u8> = pairs
        .iter()
        .flat_map(|(name, value)| [&name.to_be_bytes()[..], &value.to_be_bytes()].concat())
        .collect();
    frame(frame::SETTINGS, 0, 0, &payload)
}

const OK: &[u8] = b"\x88";
const END: u8 = frame::END_STREAM;
const HEAD: u8 = frame::END_HEADERS;

/// Feeds `input` whole, cut in two at every place, and byte by byte.
#[track_caller]
fn every_cut(n_asked: Ticket, input: &[u8], check: impl Fn(&mut Connection, Result<(), Fault>)) {
    for cut in 0..=input.len() {
        let mut connection = Connection::asking(n_asked);
        let (first, second) = input.split_at(cut);
        let result = connection
            .receive(first)
            .and_then(|()| connection.receive(second));
        check(&mut connection, result);
    }
    let mut connection = Connection::asking(n_asked);
    let result = input
        .chunks(1)
        .try_for_each(|byte| connection.receive(byte));
    check(&mut connection, result);
}

#[test]
fn answers_come_in_any_order_and_in_pieces() {
    let input = [
        settings(&[]),
        frame(frame::HEADERS, HEAD, 3, OK),
        frame(frame::HEADERS, HEAD, 1, b"\x8d"),
        frame(frame::DATA, 0, 3, b"ab"),
        frame(frame::DATA, frame::PADDED | END, 1, b"\x03no\0\0\0"),
        frame(frame::DATA, 0, 3, b""),
        frame(frame::DATA, END, 3, b"c"),
        frame(frame::HEADERS, HEAD | END, 5, b"\x89"),
    ]
    .concat();
    every_cut(3, &input, |connection, result| {
        assert_eq!(result, Ok(()));
        let complete = [
            (0, 404, b"no".to_vec()),
            (1, 200, b"abc".to_vec()),
            (2, 204, Vec::new()),
        ];
        assert_eq!(connection.heard.complete, complete);
        assert_eq!((connection.wire.n_open, connection.wire.front), (0, 7));
        assert_eq!(
            connection.replies(),
            frame(frame::SETTINGS, frame::ACK, 0, &[])
        );
    });
}

#[test]
fn heads_may_be_padded_prioritised_and_continued() {
    let input = [
        settings(&[]),
        frame(
            frame::HEADERS,
            frame::PADDED | frame::PRIORITISED,
            1,
            b"\x02\0\0\0\0\x10\x88\0\0",
        ),
        frame(frame::CONTINUATION, HEAD, 1, b"\x00\x01x\x01y"),
        frame(frame::DATA, 0, 1, b"body"),
        frame(frame::HEADERS, HEAD | END, 1, b"\x00\x01t\x01z"),
    ]
    .concat();
    every_cut(1, &input, |connection, result| {
        assert_eq!(result, Ok(()));
        assert_eq!(connection.heard.complete, [(0, 200, b"body".to_vec())]);
    });
}

#[test]
fn an_interim_answer_is_not_the_answer() {
    let mut connection = Connection::asking(1);
    connection.receive(&settings(&[])).expect("settings");
    let interim = frame(frame::HEADERS, HEAD, 1, b"\x08\x03103");
    connection.receive(&interim).expect("in order");
    assert_eq!(connection.heard, Heard::default());
    connection
        .receive(&frame(frame::HEADERS, HEAD | END, 1, OK))
        .expect("in order");
    assert_eq!(connection.heard.complete, [(0, 200, Vec::new())]);
}

#[test]
fn what_breaks_a_stream_costs_its_request_only() {
    let promise = b"\x88\x0f\x0d\x015";
    for (name, frames, failure) in [
        (
            "reset",
            vec![frame(frame::RST_STREAM, 0, 1, &[0, 0, 0, 8])],
            Failure::Reset,
        ),
        (
            "no status",
            vec![frame(frame::HEADERS, HEAD | END, 1, b"\x00\x01x\x01y")],
            Failure::Protocol,
        ),
        (
            "body first",
            vec![frame(frame::DATA, 0, 1, b"x")],
            Failure::Protocol,
        ),
        (
            "two heads",
            vec![frame(frame::HEADERS, HEAD, 1, OK); 2],
            Failure::Protocol,
        ),
        (
            "too short",
            vec![
                frame(frame::HEADERS, HEAD, 1, promise),
                frame(frame::DATA, END, 1, b"four"),
            ],
            Failure::Protocol,
        ),
        (
            "too long",
            vec![
                frame(frame::HEADERS, HEAD, 1, promise),
                frame(frame::DATA, 0, 1, b"sixsix"),
            ],
            Failure::Protocol,
        ),
    ] {
        let mut connection = Connection::asking(2);
        connection.receive(&settings(&[])).expect("settings");
        connection.receive(&frames.concat()).expect(name);
        assert_eq!(connection.heard.failed, [(0, failure)], "{name}");
        // What was on its way meanwhile is ignored, and the other stream goes on.
        connection
            .receive(&frame(frame::DATA, END, 1, b"late"))
            .expect(name);
        connection
            .receive(&frame(frame::HEADERS, HEAD | END, 3, OK))
            .expect(name);
        assert_eq!(connection.heard.complete, [(1, 200, Vec::new())], "{name}");
        let told = frame(frame::RST_STREAM, 0, 1, &1_u32.to_be_bytes());
        let replies = connection.replies();
        assert_eq!(
            replies.ends_with(&told),
            failure == Failure::Protocol,
            "{name}"
        );
    }
}

#[test]
#[expect(clippy::too_many_lines, reason = "a table")]
fn what_breaks_the_connection_is_a_fault() {
    let long = vec![0; BLOCK_BYTES_MAX / 5 + 1];
    let endless = [
        frame(frame::HEADERS, 0, 1, OK),
        frame(frame::CONTINUATION, 0, 1, &long).repeat(5),
    ];
    for (name, input, fault) in [
        (
            "a stream that was not opened",
            frame(frame::HEADERS, HEAD, 9, OK),
            Fault::Stream,
        ),
        (
            "an even stream",
            frame(frame::DATA, 0, 2, b"x"),
            Fault::Stream,
        ),
        (
            "a push",
            frame(frame::PUSH_PROMISE, HEAD, 1, &[0; 4]),
            Fault::Frame,
        ),
        (
            "too large",
            frame(frame::DATA, 0, 1, &vec![0; 16_385]),
            Fault::Frame,
        ),
        (
            "padding of all",
            frame(frame::DATA, frame::PADDED, 1, b"\x05abcd"),
            Fault::Frame,
        ),
        (
            "a block within a block",
            [
                &frame(frame::HEADERS, 0, 1, OK)[..],
                &frame(frame::PING, 0, 0, &[0; 8]),
            ]
            .concat(),
            Fault::Frame,
        ),
        (
            "no block",
            frame(frame::CONTINUATION, HEAD, 1, OK),
            Fault::Frame,
        ),
        (
            "a short ping",
            frame(frame::PING, 0, 0, &[0; 7]),
            Fault::Frame,
        ),
        (
            "a wild window",
            frame(frame::WINDOW_UPDATE, 0, 0, &0x7FFF_FFFF_u32.to_be_bytes()),
            Fault::FlowControl,
        ),
        (
            "an empty window",
            frame(frame::WINDOW_UPDATE, 0, 0, &[0; 4]),
            Fault::FlowControl,
        ),
        (
            "an odd setting",
            frame(frame::SETTINGS, 0, 0, &[0; 5]),
            Fault::Frame,
        ),
        (
            "no HPACK",
            frame(frame::HEADERS, HEAD, 1, b"\x80"),
            Fault::Hpack,
        ),
        ("a block without end", endless.concat(), Fault::HeadTooLong),
    ] {
        let mut connection = Connection::asking(2);
        connection.receive(&settings(&[])).expect("settings");
        assert_eq!(connection.receive(&input), Err(fault), "{name}");
    }
    let mut connection = Connection::asking(1);
    assert_eq!(
        connection.receive(b"HTTP/1.1 400 Bad Request\r\n"),
        Err(Fault::Preface)
    );
}

#[test]
fn streams_keep_to_the_peers_limit() {
    let mut connection = Connection::asking(0);
    let prepared = prepare("GET", b"");
    let fill = |connection: &mut Connection| {
        let mut n_asked = 0;
        while connection.wire.has_room() && n_asked < 1_000 {
            connection
                .wire
                .send(n_asked, 0, &prepared, &mut connection.sent);
            n_asked += 1;
        }
        usize::from(n_asked)
    };
    assert_eq!(fill(&mut connection), STREAMS_ASSUMED);
    connection
        .receive(&settings(&[(frame::MAX_CONCURRENT_STREAMS, 102)]))
        .expect("settings");
    assert_eq!(fill(&mut connection), 2);
    connection
        .receive(&frame(frame::HEADERS, HEAD | END, 5, OK))
        .expect("an answer");
    assert_eq!(fill(&mut connection), 1);
}

#[test]
fn a_leaving_peer_answers_what_it_said_and_no_more() {
    let mut connection = Connection::asking(3);
    connection.receive(&settings(&[])).expect("settings");
    connection
        .receive(&frame(frame::GOAWAY, 0, 0, &[0, 0, 0, 3, 0, 0, 0, 0]))
        .expect("in order");
    assert!(!connection.wire.has_room() && !connection.wire.is_over());
    for stream in [3, 1] {
        connection
            .receive(&frame(frame::HEADERS, HEAD | END, stream, OK))
            .expect("in order");
    }
    assert!(
        connection.wire.is_over(),
        "the third is left to be asked elsewhere"
    );
    assert_eq!(connection.heard.complete.len(), 2);
}

#[test]
fn a_body_waits_for_its_windows() {
    let body: Vec<u8> = (0..200_000_u32).map(|n| n.to_le_bytes()[0]).collect();
    let prepared = prepare("POST", &body);
    let mut connection = Connection::asking(0);
    connection.sent.clear();
    connection.wire.send(0, 0, &prepared, &mut connection.sent);
    assert!(
        !connection.wire.has_room(),
        "nothing is asked behind a body that waits"
    );
    let mut sent = std::mem::take(&mut connection.sent);
    let input = [
        settings(&[(frame::INITIAL_WINDOW_SIZE, 150_000)]),
        frame(frame::WINDOW_UPDATE, 0, 0, &100_000_u32.to_be_bytes()),
        frame(frame::WINDOW_UPDATE, 0, 1, &40_000_u32.to_be_bytes()),
    ];
    connection.receive(&input.concat()).expect("in order");
    sent.extend(connection.replies());
    let waits = |connection: &Connection| connection.wire.upload.as_ref().map(|u| u.n_sent);
    assert_eq!(
        waits(&connection),
        Some(165_535),
        "the connection's window is used up"
    );
    connection
        .receive(&frame(
            frame::WINDOW_UPDATE,
            0,
            0,
            &100_000_u32.to_be_bytes(),
        ))
        .expect("in order");
    sent.extend(connection.replies());
    assert_eq!(
        waits(&connection),
        Some(190_000),
        "the stream's window is used up"
    );
    connection
        .receive(&frame(
            frame::WINDOW_UPDATE,
            0,
            1,
            &10_000_u32.to_be_bytes(),
        ))
        .expect("in order");
    sent.extend(connection.replies());
    assert!(connection.wire.has_room());
    let (mut uploaded, mut rest) = (Vec::new(), &sent[..]);
    while let Some((head, behind)) = rest.split_first_chunk() {
        let head = frame::FrameHead::parse(head);
        assert!(head.n_payload <= frame::PAYLOAD_BYTES_MAX);
        let (payload, behind) = behind.split_at(head.n_payload);
        if head.kind == frame::DATA {
            uploaded.extend_from_slice(payload);
            assert_eq!(head.has(END), uploaded.len() == body.len());
        }
        rest = behind;
    }
    assert_eq!(uploaded, body);
}

#[test]
fn an_answer_before_the_body_is_sent_cancels_it() {
    let mut connection = Connection::asking(0);
    let prepared = prepare("POST", &vec![0; 100_000]);
    connection.wire.send(0, 0, &prepared, &mut connection.sent);
    connection.receive(&settings(&[])).expect("settings");
    connection
        .receive(&frame(frame::HEADERS, HEAD | END, 1, b"\x8c"))
        .expect("an answer");
    assert_eq!(connection.heard.complete, [(0, 400, Vec::new())]);
    assert!(connection.wire.has_room());
    let cancel = frame(frame::RST_STREAM, 0, 1, &frame::CANCEL.to_be_bytes());
    assert!(
        connection
            .replies()
            .windows(cancel.len())
            .any(|bytes| bytes == cancel)
    );
}

#[test]
fn windows_for_the_peer_are_renewed() {
    let mut connection = Connection::asking(1);
    connection.receive(&settings(&[])).expect("settings");
    connection
        .receive(&frame(frame::HEADERS, HEAD, 1, OK))
        .expect("a head");
    connection.replies();
    let data = frame(frame::DATA, 0, 1, &[0; 16_384]);
    let n_frames = frame::RECEIVE_WINDOW / 2 / 16_384 + 1;
    for _ in 0..n_frames {
        connection.receive(&data).expect("within the window");
        connection.heard.open[0].2.clear();
    }
    let n_bytes = (n_frames * 16_384).to_be_bytes();
    let renewed = [0, 1].map(|stream| frame(frame::WINDOW_UPDATE, 0, stream, &n_bytes));
    assert_eq!(connection.replies(), renewed.concat());
}

#[test]
fn pings_are_answered_and_bounded() {
    let mut connection = Connection::asking(1);
    connection.receive(&settings(&[])).expect("settings");
    connection.replies();
    let ping = frame(frame::PING, 0, 0, b"12345678");
    connection.receive(&ping).expect("in order");
    assert_eq!(
        connection.replies(),
        frame(frame::PING, frame::ACK, 0, b"12345678")
    );
    let flood = ping.repeat(10_000);
    assert_eq!(connection.receive(&flood), Err(Fault::Frame));
}

#[test]
fn requests_have_no_fields_of_the_connection() {
    let mut sent = Vec::new();
    let mut wire = H2::new(SETUP);
    wire.send(0, 0, &prepare("GET", b""), &mut sent);
    let block = b"\x82\x86\x84\x41\x01a\x40\x03x-a\x01b";
    assert_eq!(sent, frame(frame::HEADERS, HEAD | END, 1, block));
}

#[test]
fn a_large_head_is_continued() {
    let request = Request {
        method: "GET".into(),
        target: format!("/{}", "p".repeat(40_000)),
        authority: "a".into(),
        headers: Vec::new(),
        body: Vec::new(),
        is_chunked: false,
    };
    let setup = Setup {
        is_secure: true,
        ..SETUP
    };
    let mut sent = Vec::new();
    H2::new(SETUP).send(0, 0, &H2::prepare(&[&request], setup)[0], &mut sent);
    let mut heads = Vec::new();
    let mut rest = &sent[..];
    while let Some((head, behind)) = rest.split_first_chunk() {
        let head = frame::FrameHead::parse(head);
        heads.push((head.kind, head.flags));
        rest = &behind[head.n_payload..];
    }
    let last = (frame::CONTINUATION, HEAD);
    assert_eq!(
        heads,
        [(frame::HEADERS, END), (frame::CONTINUATION, 0), last]
    );
}
