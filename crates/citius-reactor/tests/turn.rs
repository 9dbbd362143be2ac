//! Turns over connections in memory: what the reactor promises whatever stands behind `Service`.

use std::collections::VecDeque;
use std::io::{Read, Write};
use std::net::Shutdown;
use std::os::fd::OwnedFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::time::Duration;

use bytes::Bytes;
use citius_http::{Action, Fault, Fields, Head, Limits, Payload, ResponseHead, Status};
use citius_reactor::{
    ConnectionId, ListenerProtocol, Peer, Reactor, Reply, ResponseAction, Service, StreamCommand,
    StreamId,
};

/// Answers with the path at once; `/long` after more than a turn may take, `/late` when told to, `/panic` not at all.
#[derive(Default)]
struct Paths {
    late: VecDeque<StreamId>,
    gone: Vec<ConnectionId>,
    panicked: usize,
}
use support::options;

mod support;

impl Service for Paths {
    fn request(&mut self, head: Box<Head>, _ended: bool, reply: &mut Reply<'_>) {
        match head.path() {
            b"/panic" => panic!("as the test wants it"),
            b"/late" => self.late.push_back(reply.id()),
            path => {
                if path == b"/long" {
                    #[expect(
                        clippy::disallowed_methods,
                        reason = "it is what no handler should do"
                    )]
                    std::thread::sleep(Duration::from_millis(10));
                }
                let response = ResponseHead {
                    status: Status::OK,
                    content_type: None,
                    fields: &Fields::EMPTY,
                };
                reply
                    .send(Action::Respond(response, Payload::Copied(path)))
                    .expect("a valid response");
            }
        }
        reply.recycle(head);
    }

    fn data(&mut self, _bytes: &[u8], _reply: &mut Reply<'_>) {}
    fn end(&mut self, _trailers: Fields, _reply: &mut Reply<'_>) {}
    fn broken(&mut self, _id: StreamId, _fault: Fault) {}
    fn writable(&mut self, _reply: &mut Reply<'_>) {}
    fn disconnected(&mut self, connection: ConnectionId) {
        self.gone.push(connection);
    }
    fn refused(&mut self, _id: StreamId, fault: Fault) {
        panic!("{}", fault.text());
    }
    fn file_failed(&mut self, _connection: ConnectionId, message: &str) {
        panic!("{message}");
    }
    fn panicked(&mut self, _connection: ConnectionId) {
        self.panicked += 1;
    }
}

fn reactor() -> Reactor {
    reactor_with(Limits::default())
}

fn reactor_with(limits: Limits) -> Reactor {
    Reactor::new(options(limits)).expect("an epoll set")
}

fn requests(paths: &[&str]) -> Vec<u8> {
    paths
        .iter()
        .flat_map(|p| format!("GET {p} HTTP/1.1\r\nHost: a\r\n\r\n").into_bytes())
        .collect()
}

/// The bodies of all responses so far; every path ends in `;`.
fn bodies(reactor: &mut Reactor, id: ConnectionId) -> Option<String> {
    let bytes = String::from_utf8(reactor.take_memory(id)?).expect("ASCII");
    let responses = bytes.split("HTTP/1.1 200 OK\r\n").skip(1);
    Some(
        responses
            .map(|response| response.split("\r\n\r\n").nth(1).expect("a body"))
            .collect(),
    )
}

fn respond(body: &'static [u8]) -> StreamCommand {
    StreamCommand::Act(ResponseAction::Respond {
        status: Status::OK,
        content_type: None,
        fields: Fields::EMPTY,
        body: Payload::Shared(Bytes::from_static(body)),
    })
}

#[test]
fn pipelined_requests_are_answered_in_one_turn_and_in_order() {
    let (mut reactor, mut service) = (reactor(), Paths::default());
    let id = reactor.open_memory(Peer::Local, None);
    reactor.feed_memory(id, &requests(&["/a", "/b", "/c"]), &mut service);
    assert_eq!(bodies(&mut reactor, id).as_deref(), Some("/a/b/c"));
    assert_eq!(reactor.requests_total(), 3);
}

#[test]
fn late_answers_leave_in_the_order_of_their_requests() {
    let (mut reactor, mut service) = (reactor(), Paths::default());
    let id = reactor.open_memory(Peer::Local, None);
    reactor.feed_memory(id, &requests(&["/late", "/b", "/late", "/d"]), &mut service);
    assert_eq!(bodies(&mut reactor, id).as_deref(), Some(""));
    let (first, third) = (service.late[0], service.late[1]);
    let mailbox = reactor.mailbox();
    assert!(
        mailbox.post(third, respond(b"/third")),
        "no turn is under way, so one must be woken"
    );
    assert!(
        !mailbox.post(first, respond(b"/first")),
        "one wake-up is enough"
    );
    reactor.turn(&mut service);
    assert_eq!(
        bodies(&mut reactor, id).as_deref(),
        Some("/first/b/third/d")
    );
    assert_eq!(reactor.requests_open(), 0);
}

#[test]
fn letters_to_a_connection_that_is_gone_reach_nobody() {
    let (mut reactor, mut service) = (reactor(), Paths::default());
    let before = reactor.open_memory(Peer::Local, None);
    reactor.feed_memory(before, &requests(&["/late"]), &mut service);
    reactor.feed_memory(before, b"", &mut service);
    assert_eq!(bodies(&mut reactor, before), None);
    assert!(service.gone.contains(&before));
    let after = reactor.open_memory(Peer::Local, None);
    assert_eq!(after.index, before.index, "the place is used again");
    assert!(
        reactor
            .mailbox()
            .post(service.late[0], respond(b"/not-yours"))
    );
    reactor.feed_memory(after, &requests(&["/a"]), &mut service);
    assert_eq!(bodies(&mut reactor, after).as_deref(), Some("/a"));
}

#[test]
fn what_a_turn_had_no_time_for_is_answered_although_the_peer_has_closed_its_side() {
    let address = std::env::temp_dir().join(format!("citius-end-{}.socket", std::process::id()));
    let (mut reactor, mut service) = (reactor(), Paths::default());
    let listener = UnixListener::bind(&address).expect("a fresh name");
    listener.set_nonblocking(true).expect("a socket");
    let mut peer = UnixStream::connect(&address).expect("a listener");
    reactor
        .listen(OwnedFd::from(listener).into(), ListenerProtocol::Http)
        .expect("it listens");
    std::fs::remove_file(&address).expect("it was made above");
    let paths = ["/long"; 40];
    peer.write_all(&requests(&paths)).expect("room for them");
    peer.shutdown(Shutdown::Write).expect("a socket");
    while service.gone.is_empty() {
        reactor.turn(&mut service);
    }
    let mut responses = String::new();
    peer.read_to_string(&mut responses).expect("ASCII");
    assert_eq!(responses.matches("/long").count(), paths.len());
}

#[test]
fn a_panic_costs_the_connection_it_happened_on() {
    let (mut reactor, mut service) = (reactor(), Paths::default());
    let (unlucky, other) = (
        reactor.open_memory(Peer::Local, None),
        reactor.open_memory(Peer::Local, None),
    );
    reactor.feed_memory(unlucky, &requests(&["/a", "/panic", "/b"]), &mut service);
    assert_eq!((service.panicked, bodies(&mut reactor, unlucky)), (1, None));
    reactor.feed_memory(other, &requests(&["/still-here"]), &mut service);
    assert_eq!(bodies(&mut reactor, other).as_deref(), Some("/still-here"));
    assert_eq!(reactor.connections(), 1);
}

#[test]
fn a_drain_answers_what_is_open_and_closes_what_is_idle() {
    let (mut reactor, mut service) = (reactor(), Paths::default());
    let (idle, busy) = (
        reactor.open_memory(Peer::Local, None),
        reactor.open_memory(Peer::Local, None),
    );
    reactor.feed_memory(idle, &requests(&["/a"]), &mut service);
    reactor.feed_memory(busy, &requests(&["/late"]), &mut service);
    reactor.drain(&mut service);
    assert_eq!(reactor.connections(), 1);
    assert!(!reactor.is_drained());
    assert!(reactor.mailbox().post(service.late[0], respond(b"/done")));
    reactor.turn(&mut service);
    assert_eq!(bodies(&mut reactor, busy).as_deref(), Some("/done"));
    // The peer may have sent another request meanwhile; it is waited for until it has read its response.
    assert!(!reactor.is_drained());
    reactor.feed_memory(busy, b"", &mut service);
    assert!(reactor.is_drained());
}

/// Whenever it is asked, another client connects, up to `left` times.
struct Herd {
    address: PathBuf,
    left: usize,
    asked: usize,
    last: Option<UnixStream>,
}

impl Herd {
    fn come(&mut self) {
        let mut peer = UnixStream::connect(&self.address).expect("a listener");
        peer.write_all(b"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
            .expect("room for a request");
        self.last = Some(peer);
    }
}

impl Service for Herd {
    fn request(&mut self, _head: Box<Head>, _ended: bool, reply: &mut Reply<'_>) {
        self.asked += 1;
        if self.left > 0 {
            self.left -= 1;
            self.come();
        }
        let response = ResponseHead {
            status: Status::OK,
            content_type: None,
            fields: &Fields::EMPTY,
        };
        let sent = reply.send(Action::Respond(response, Payload::Copied(b"")));
        sent.expect("a valid response");
    }
    fn data(&mut self, _bytes: &[u8], _reply: &mut Reply<'_>) {}
    fn end(&mut self, _trailers: Fields, _reply: &mut Reply<'_>) {}
    fn broken(&mut self, _id: StreamId, _fault: Fault) {}
    fn writable(&mut self, _reply: &mut Reply<'_>) {}
    fn disconnected(&mut self, _connection: ConnectionId) {}
    fn refused(&mut self, _id: StreamId, fault: Fault) {
        panic!("{}", fault.text());
    }
    fn file_failed(&mut self, _connection: ConnectionId, message: &str) {
        panic!("{message}");
    }
    fn panicked(&mut self, _connection: ConnectionId) {
        panic!("a handler panicked");
    }
}

#[test]
fn a_drain_takes_a_whole_queue_and_no_endless_one() {
    let address = std::env::temp_dir().join(format!("citius-turn-{}.socket", std::process::id()));
    for (left, expected) in [(3000, 3001..=3001), (100_000, 4096..=10_000)] {
        let limits = Limits {
            connections_max: 8,
            ..Limits::default()
        };
        let mut reactor = reactor_with(limits);
        let listener = UnixListener::bind(&address).expect("a fresh name");
        listener.set_nonblocking(true).expect("a socket");
        reactor
            .listen(OwnedFd::from(listener).into(), ListenerProtocol::Http)
            .expect("it listens");
        let mut herd = Herd {
            address: address.clone(),
            left,
            asked: 0,
            last: None,
        };
        herd.come();
        reactor.drain(&mut herd);
        std::fs::remove_file(&address).expect("it was made above");
        assert!(expected.contains(&herd.asked), "{} of {left}", herd.asked);
    }
}
