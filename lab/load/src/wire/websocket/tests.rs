use super::{
    ACCEPT, CLOSE, PING, PONG, Prepared, STAMP_BYTES, Stamp, TEXT, WebSocket, mask, write_frame,
};
use crate::request::Request;
use crate::wire::{Answers, Failure, Fault, Setup, Ticket, Wire};

/// What the wire told.
#[derive(Clone, Debug, Default, PartialEq)]
struct Heard {
    open: Option<(Ticket, u16, Vec<u8>)>,
    complete: Vec<(Ticket, u16, Vec<u8>)>,
    delivered: Vec<(Option<u64>, u64)>,
    released: Vec<Ticket>,
}

impl Answers for Heard {
    fn is_head(&self, _ticket: Ticket) -> bool {
        false
    }
    fn begin(&mut self, ticket: Ticket, status: u16, _closing: bool) {
        assert_eq!(self.open, None, "a message began inside another");
        self.open = Some((ticket, status, Vec::new()));
    }
    fn body(&mut self, ticket: Ticket, bytes: &[u8]) {
        let open = self.open.as_mut().expect("begun");
        assert_eq!(open.0, ticket);
        open.2.extend_from_slice(bytes);
    }
    fn unseen(&mut self, _ticket: Ticket, _n_bytes: u64) {
        unreachable!("nothing is skipped");
    }
    fn complete(&mut self, ticket: Ticket) {
        let open = self.open.take().expect("begun");
        assert_eq!(open.0, ticket);
        self.complete.push(open);
    }
    fn fail(&mut self, ticket: Ticket, failure: Failure) {
        unreachable!("message {ticket} cannot fail alone, {failure:?}");
    }
    fn deliver(&mut self, due_ns: Option<u64>, n_bytes: u64) {
        self.delivered.push((due_ns, n_bytes));
    }
    fn release(&mut self, ticket: Ticket) {
        self.released.push(ticket);
    }
}

const SETUP: Setup = Setup {
    keep_alive: true,
    is_secure: false,
    is_broadcast: false,
};

fn prepare(body: &[u8]) -> Prepared {
    let request = Request {
        method: "GET".into(),
        target: "/echo".into(),
        authority: "a".into(),
        headers: vec![("Origin".into(), "b".into())],
        body: body.into(),
        is_chunked: false,
    };
    WebSocket::prepare(&[&request], SETUP).remove(0)
}

fn accepted() -> Vec<u8> {
    format!(
        "HTTP/1.1 101 Switching Protocols\r\nUpgrade: WebSocket\r\nConnection: Upgrade\r\n\
         Sec-WebSocket-Accept: {ACCEPT}\r\n\r\n"
    )
    .into_bytes()
}

/// A frame as servers send it.
fn frame(first: u8, payload: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    let payload_at = write_frame(first & 0x0F, payload, &mut bytes);
    bytes.drain(payload_at - 4..payload_at);
    mask(&mut bytes[payload_at - 4..]);
    bytes[0] = first;
    bytes[1] &= 0x7F;
    bytes
}

fn asking(n_asked: Ticket, setup: Setup) -> WebSocket {
    let mut wire = WebSocket::new(setup);
    let mut sent = Vec::new();
    for ticket in 0..n_asked {
        wire.send(ticket, 7, &prepare(&[b'x'; STAMP_BYTES]), &mut sent);
    }
    assert!(sent.is_empty(), "messages wait for the upgrade");
    wire
}

#[track_caller]
fn every_cut(
    n_asked: Ticket,
    input: &[u8],
    check: impl Fn(&mut WebSocket, &Heard, Result<(), Fault>),
) {
    let pieces = (0..=input.len()).map(|cut| {
        let (first, second) = input.split_at(cut);
        vec![first, second]
    });
    for pieces in pieces.chain([input.chunks(1).collect()]) {
        let (mut wire, mut heard) = (asking(n_asked, SETUP), Heard::default());
        let result = pieces
            .iter()
            .try_for_each(|piece| wire.receive(&mut (), piece, &mut heard));
        check(&mut wire, &heard, result);
    }
}

#[test]
fn messages_come_back_in_order_and_in_pieces() {
    let long = vec![b'l'; 300];
    let input = [
        accepted(),
        frame(0x80 | TEXT, b"one"),
        frame(TEXT, b"tw"),
        frame(0x80 | PING, b"are you there"),
        frame(0, b""),
        frame(0x80, b"o"),
        frame(0x82, &long),
        frame(0x80 | PONG, b""),
    ]
    .concat();
    every_cut(3, &input, |wire, heard, result| {
        assert_eq!(result, Ok(()));
        let complete = [
            (0, 101, b"one".to_vec()),
            (1, 101, b"two".to_vec()),
            (2, 101, long.clone()),
        ];
        assert_eq!(heard.complete, complete);
        let mut replies = Vec::new();
        wire.reply(&mut replies);
        let mut pong = Vec::new();
        write_frame(PONG, b"are you there", &mut pong);
        assert!(replies.ends_with(&pong) && wire.has_room());
    });
}

#[test]
fn messages_are_sent_when_the_upgrade_is_accepted() {
    let mut wire = asking(1, SETUP);
    let (mut output, mut heard) = (Vec::new(), Heard::default());
    wire.open(&[prepare(b"")], &mut output);
    let asked = b"GET /echo HTTP/1.1\r\nHost: a\r\nOrigin: b\r\n";
    assert!(output.starts_with(asked));
    output.clear();
    wire.reply(&mut output);
    assert!(output.is_empty() && !wire.has_room());
    wire.receive(&mut (), &accepted(), &mut heard)
        .expect("in due form");
    wire.reply(&mut output);
    assert_eq!(output, prepare(&[b'x'; STAMP_BYTES]).frame);
}

#[test]
fn a_refused_upgrade_is_the_answer() {
    let input = b"HTTP/1.1 404 Not Found\r\nContent-Length: 3\r\n\r\nno!";
    every_cut(1, input, |wire, heard, result| {
        assert_eq!(result, Ok(()));
        assert_eq!(heard.complete, [(0, 404, Vec::new())]);
        assert!(wire.is_over());
    });
}

#[test]
fn a_close_ends_the_connection() {
    let input = [accepted(), frame(0x80 | CLOSE, b"\x03\xe8bye")].concat();
    every_cut(1, &input, |wire, heard, result| {
        assert_eq!((result, heard.complete.len()), (Ok(()), 0));
        assert!(wire.is_over());
        let (mut replies, mut close) = (Vec::new(), Vec::new());
        wire.reply(&mut replies);
        write_frame(CLOSE, b"\x03\xe8", &mut close);
        assert!(replies.ends_with(&close));
    });
}

#[test]
fn what_breaks_the_rules_is_a_fault() {
    for (name, input, fault) in [
        ("masked", b"\x81\x81\0\0\0\0x".to_vec(), Fault::Frame),
        ("a reserved bit", frame(0xC1, b"x"), Fault::Frame),
        ("an unknown kind", frame(0x83, b"x"), Fault::Frame),
        ("a continuation of nothing", frame(0x80, b"x"), Fault::Frame),
        (
            "a message in a message",
            [frame(1, b"x"), frame(0x81, b"y")].concat(),
            Fault::Frame,
        ),
        ("a ping in pieces", frame(PING, b"x"), Fault::Frame),
        ("a long ping", frame(0x80 | PING, &[0; 126]), Fault::Frame),
        ("nobody asked", frame(0x81, b"x").repeat(2), Fault::Unasked),
    ] {
        let bytes = [accepted(), input].concat();
        every_cut(1, &bytes, |_, _, result| {
            assert_eq!(result, Err(fault), "{name}");
        });
    }
    for head in [
        "HTTP/1.1 101 Yes\r\nUpgrade: websocket\r\n\r\n",
        "HTTP/1.1 101 Yes\r\nUpgrade: websocket\r\nSec-WebSocket-Accept: x\r\n\r\n",
        "SSH-2.0-OpenSSH\r\n\r\n",
    ] {
        every_cut(1, head.as_bytes(), |_, _, result| {
            assert!(result.is_err(), "{head}");
        });
    }
}

#[test]
fn every_copy_of_a_broadcast_is_timed_and_ones_own_ends_the_request() {
    let setup = Setup {
        is_broadcast: true,
        ..SETUP
    };
    let (mut wire, mut heard) = (asking(1, setup), Heard::default());
    let own = Stamp {
        sender: wire.sender,
        due_ns: 7,
    };
    let other = Stamp {
        sender: wire.sender + 1,
        due_ns: 9,
    };
    let mut sent = Vec::new();
    wire.receive(&mut (), &accepted(), &mut heard)
        .expect("in due form");
    wire.reply(&mut sent);
    let payload_at = sent.len() - STAMP_BYTES;
    mask(&mut sent[payload_at..]);
    assert_eq!(Stamp::parse(&sent[payload_at..]), Some(own));
    let input = [
        frame(0x81, (other.text() + "more").as_bytes()),
        frame(0x81, own.text().as_bytes()),
        frame(0x81, b"welcome"),
    ];
    for byte in input.concat().chunks(1) {
        wire.receive(&mut (), byte, &mut heard).expect("in order");
    }
    assert_eq!(heard.delivered, [(Some(9), 28), (Some(7), 24), (None, 7)]);
    assert_eq!(heard.released, [0]);
}
