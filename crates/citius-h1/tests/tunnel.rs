//! Connections that become tunnels: what is read, and when, and how they end.

use citius_h1::{Connection, Context, Template};
use citius_http::{
    Action, Closing, Event, Fault, Fields, HeadPool, Limits, Output, Payload, ResponseHead, Status,
};

const UPGRADE: &[u8] =
    b"GET /chat HTTP/1.1\r\nHost: a\r\nConnection: keep-alive, Upgrade\r\nUpgrade: websocket\r\n\r\n";
const GRANTED: &[u8] =
    b"HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: websocket\r\nx-a: b\r\n\r\n";

struct Peer {
    connection: Connection,
    limits: Limits,
    heads: HeadPool,
    template: Template,
    out: Output,
    unread: Vec<u8>,
}

impl Peer {
    fn new() -> Self {
        Self {
            connection: Connection::new(0),
            limits: Limits::default(),
            heads: HeadPool::default(),
            template: Template::default(),
            out: Output::default(),
            unread: Vec::new(),
        }
    }

    fn with<R>(
        &mut self,
        act: impl FnOnce(&mut Connection, &mut Context<'_>, &mut Output) -> R,
    ) -> R {
        let mut cx = Context {
            now: 0,
            limits: &self.limits,
            heads: &mut self.heads,
            server: b"",
            date: b"",
            default_fields: &Fields::EMPTY,
            template: &mut self.template,
        };
        act(&mut self.connection, &mut cx, &mut self.out)
    }

    /// What the connection makes of more bytes, in words.
    fn receive(&mut self, bytes: &[u8]) -> Vec<String> {
        let mut input = std::mem::take(&mut self.unread);
        input.extend_from_slice(bytes);
        let mut told = Vec::new();
        let left = self.with(|connection, cx, out| {
            let mut rest = input.as_slice();
            while let Some(event) = connection.receive(cx, &mut rest, out) {
                told.push(words(&event));
            }
            rest.to_vec()
        });
        self.unread = left;
        told
    }

    fn act(&mut self, stream: u32, action: Action<'_>) -> Result<(), Fault> {
        self.with(|connection, cx, out| connection.send(cx, stream, action, out))
    }

    fn want(&mut self, stream: u32, bytes: u64) {
        self.with(|connection, cx, out| connection.want(cx, stream, bytes, out));
    }

    fn switch(&mut self, stream: u32) -> Result<(), Fault> {
        let mut fields = Fields::default();
        fields.push(b"x-a", b"b").expect("valid");
        let protocol = b"websocket";
        self.act(
            stream,
            Action::Switch {
                protocol,
                fields: &fields,
            },
        )
    }

    fn written(&mut self) -> Vec<u8> {
        let written = self.out.pieces().flatten().copied().collect();
        self.out.clear();
        written
    }
}

fn words(event: &Event<'_>) -> String {
    match event {
        Event::Request { stream, head, .. } => {
            format!("request {stream} upgrade {}", head.asks_upgrade)
        }
        Event::Data { stream, bytes } => {
            format!("data {stream} {}", String::from_utf8_lossy(bytes))
        }
        Event::End { stream, .. } => format!("end {stream}"),
        other => format!("{other:?}"),
    }
}

const NO_FIELDS: &Fields = &Fields::EMPTY;
const END: Action<'static> = Action::End {
    trailers: NO_FIELDS,
};

fn ok(body: &[u8]) -> Action<'_> {
    let response = ResponseHead {
        status: Status::OK,
        content_type: None,
        fields: NO_FIELDS,
    };
    Action::Respond(response, Payload::Copied(body))
}

#[test]
fn bytes_go_both_ways_until_the_end() {
    let mut peer = Peer::new();
    assert_eq!(peer.receive(UPGRADE), ["request 0 upgrade true"]);
    assert!(peer.connection.hold(0) && !peer.connection.hold(0));
    assert!(!peer.connection.wants_input(&peer.limits));
    assert_eq!(peer.switch(0), Ok(()));
    assert_eq!(peer.written(), GRANTED);
    // As many bytes as are wanted, even if they look like a request, with no deadline.
    assert!(!peer.connection.wants_input(&peer.limits));
    peer.want(0, 6);
    assert_eq!(peer.receive(b"GET / HTTP/1.1\r\n"), ["data 0 GET / "]);
    assert_eq!(peer.connection.deadline(&peer.limits), None);
    assert!(!peer.connection.wants_input(&peer.limits));
    peer.want(0, 100);
    assert_eq!(peer.receive(b""), ["data 0 HTTP/1.1\r\n"]);
    assert!(peer.connection.wants_input(&peer.limits));
    assert_eq!(peer.act(0, Action::Data(Payload::Copied(b"raw"))), Ok(()));
    assert_eq!(
        (peer.written(), peer.connection.streams_open()),
        (b"raw".to_vec(), 1)
    );
    assert_eq!(peer.act(0, END), Ok(()));
    assert_eq!(peer.connection.closing(), Some(Closing::Linger));
    assert!(peer.written().is_empty());
}

#[test]
fn the_peer_may_end_its_side_first() {
    let mut peer = Peer::new();
    peer.receive(UPGRADE);
    assert!(peer.connection.hold(0));
    assert_eq!(peer.switch(0), Ok(()));
    peer.want(0, 3);
    assert_eq!(peer.receive(b"abcdef"), ["data 0 abc"]);
    let finish = |peer: &mut Peer| {
        peer.with(|connection, cx, out| connection.receive_eof(cx, out).as_ref().map(words))
    };
    assert_eq!(finish(&mut peer), None, "there is something unread");
    peer.want(0, 10);
    assert_eq!(peer.receive(b""), ["data 0 def", "end 0"]);
    peer.written();
    assert_eq!(peer.act(0, Action::Data(Payload::Copied(b"last"))), Ok(()));
    assert_eq!(peer.act(0, END), Ok(()));
    assert_eq!(
        (peer.written(), peer.connection.closing()),
        (b"last".to_vec(), Some(Closing::Clean))
    );
}

#[test]
fn another_answer_lets_the_next_request_in() {
    let mut peer = Peer::new();
    assert_eq!(peer.receive(UPGRADE).len(), 1);
    assert!(peer.connection.hold(0));
    assert!(
        peer.receive(UPGRADE).is_empty(),
        "nothing is read before the response"
    );
    assert_eq!(peer.act(0, ok(b"no")), Ok(()));
    assert_eq!(peer.receive(b""), ["request 1 upgrade true"]);
    assert!(peer.connection.hold(1));
    assert_eq!(peer.switch(1), Ok(()));
    assert!(peer.written().ends_with(GRANTED));
}

#[test]
fn what_was_not_held_becomes_no_tunnel() {
    let mut peer = Peer::new();
    peer.receive(UPGRADE);
    assert_eq!(peer.switch(0), Err(Fault::ResponseOrder));
    assert!(peer.written().starts_with(b"HTTP/1.1 500 "));
    // Something has come behind it: two requests, or half of one.
    let mut peer = Peer::new();
    assert_eq!(peer.receive(&[UPGRADE, UPGRADE].concat()).len(), 2);
    assert!(!peer.connection.hold(0) && peer.connection.hold(1));
    let mut peer = Peer::new();
    assert_eq!(peer.receive(&[UPGRADE, b"GET"].concat()).len(), 1);
    assert!(!peer.connection.hold(0));
    let mut peer = Peer::new();
    peer.receive(UPGRADE);
    peer.connection.drain();
    assert!(!peer.connection.hold(0));
}

#[test]
fn a_tunnel_behind_a_slow_answer_waits_its_turn_and_outlives_a_drain() {
    let mut peer = Peer::new();
    let first = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n";
    assert_eq!(peer.receive(&[&first[..], UPGRADE].concat()).len(), 2);
    assert!(peer.connection.hold(1));
    assert_eq!(peer.switch(1), Ok(()));
    assert_eq!(peer.act(1, Action::Data(Payload::Copied(b"early"))), Ok(()));
    assert!(peer.written().is_empty());
    assert_eq!(peer.act(0, ok(b"late")), Ok(()));
    assert!(
        peer.written()
            .ends_with(&[&b"late"[..], GRANTED, b"early"].concat())
    );
    peer.connection.drain();
    peer.want(1, 10);
    assert_eq!(peer.receive(b"still"), ["data 1 still"]);
    assert_eq!(peer.act(1, END), Ok(()));
    assert!(peer.connection.closing().is_some());
}
