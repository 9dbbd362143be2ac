//! A reactor that an event loop turns: no descriptor, clients' bytes carried by calls, wake-ups and timers asked of the loop.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use citius_http::{Action, Fault, Fields, Head, Limits, Payload, ResponseHead, Status};
use citius_reactor::{
    ConnectionId, Host, ListenerProtocol, ListenerTraits, Peer, Reactor, Reply, ResponseAction,
    Service, StreamCommand, StreamId, Then,
};

/// The event loop: counts what it is asked for.
#[derive(Default)]
struct Loop {
    wakes: AtomicUsize,
    waits: AtomicUsize,
    /// The wait that was asked for last.
    wait_ms: AtomicU64,
}
use support::options;

mod support;

impl Host for Loop {
    fn wake(&self) {
        self.wakes.fetch_add(1, Ordering::Relaxed);
    }

    fn turn_later(&self, wait_ms: u64) {
        self.waits.fetch_add(1, Ordering::Relaxed);
        self.wait_ms.store(wait_ms, Ordering::Relaxed);
    }
}

/// Responds with the path at once; to `/late` when told to, and to `/large` with a megabyte.
#[derive(Default)]
struct Paths {
    late: Vec<StreamId>,
    gone: Vec<ConnectionId>,
}

impl Service for Paths {
    fn request(&mut self, head: Box<Head>, _ended: bool, reply: &mut Reply<'_>) {
        let body = match head.path() {
            b"/late" => return self.late.push(reply.id()),
            b"/large" => Payload::Shared(Bytes::from(vec![b'x'; LARGE])),
            path => Payload::Copied(path),
        };
        let response = ResponseHead {
            status: Status::OK,
            content_type: None,
            fields: &Fields::EMPTY,
        };
        reply
            .send(Action::Respond(response, body))
            .expect("a valid response");
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
        panic!("a handler panicked");
    }
}

const LARGE: usize = 1024 * 1024;

/// Bytes that a connection holds for its owner at most, before the piece that was written last.
const HELD_MAX: usize = 64 * 1024;

struct Rig {
    event_loop: Arc<Loop>,
    reactor: Reactor,
    service: Paths,
    listener: usize,
}

impl Rig {
    fn new(limits: Limits) -> Self {
        let event_loop = Arc::new(Loop::default());
        let host: Arc<dyn Host> = Arc::<Loop>::clone(&event_loop);
        let mut reactor = Reactor::hosted(options(limits), host).expect("no descriptor is needed");
        let listener = reactor.listen_remote(ListenerProtocol::Http, ListenerTraits::default());
        Self {
            event_loop,
            reactor,
            service: Paths::default(),
            listener,
        }
    }

    fn accept(&mut self) -> ConnectionId {
        let peer = Peer::Internet(([127, 0, 0, 1], 4000).into());
        let local = Peer::Internet(([127, 0, 0, 1], 80).into());
        let id = self
            .reactor
            .accept_remote(self.listener, peer, local, &mut self.service);
        self.turn();
        id.expect("there is room")
    }

    fn turn(&mut self) {
        self.reactor.turn(&mut self.service);
    }

    fn put(&mut self, id: ConnectionId, bytes: &[u8]) {
        self.reactor.put_memory(id, bytes);
        self.turn();
    }

    /// What a client gets that reads everything, and what follows it.
    fn take(&mut self, id: ConnectionId) -> (Vec<u8>, Then) {
        let mut all = Vec::new();
        loop {
            let outgoing = self.reactor.take_remote(id);
            if outgoing.bytes.is_empty() {
                return (all, outgoing.then);
            }
            all.extend_from_slice(&outgoing.bytes);
            if outgoing.then == Then::Close {
                return (all, Then::Close);
            }
            self.turn();
        }
    }
}

fn get(path: &str) -> Vec<u8> {
    format!("GET {path} HTTP/1.1\r\nHost: a\r\n\r\n").into_bytes()
}

#[test]
fn it_has_no_descriptor() {
    let rig = Rig::new(Limits::default());
    #[cfg(target_os = "linux")]
    assert!(rig.reactor.descriptor().is_none());
    assert_eq!(rig.reactor.connections(), 0);
}

#[test]
fn requests_are_answered_and_the_client_may_close() {
    let mut rig = Rig::new(Limits::default());
    let id = rig.accept();
    rig.put(id, &[get("/a"), get("/b")].concat());
    let (bytes, then) = rig.take(id);
    assert_eq!(String::from_utf8_lossy(&bytes).matches("200 OK").count(), 2);
    assert_eq!(then, Then::Open);
    rig.put(id, b"");
    assert_eq!(rig.take(id), (Vec::new(), Then::Close));
    assert_eq!(rig.service.gone, [id]);
    assert_eq!(rig.reactor.connections(), 0);
}

#[test]
fn one_wake_up_is_asked_for_until_a_turn_has_begun() {
    let mut rig = Rig::new(Limits::default());
    let id = rig.accept();
    rig.put(id, &[get("/late"), get("/late")].concat());
    let mailbox = rig.reactor.mailbox();
    let before = rig.event_loop.wakes.load(Ordering::Relaxed);
    mailbox.wake();
    mailbox.wake();
    assert_eq!(rig.event_loop.wakes.load(Ordering::Relaxed), before + 1);
    rig.turn();
    mailbox.wake();
    assert_eq!(rig.event_loop.wakes.load(Ordering::Relaxed), before + 2);
}

#[test]
fn wake_ups_of_threads_are_not_lost() {
    let mut rig = Rig::new(Limits::default());
    let id = rig.accept();
    let n_requests = 100;
    // A turn whose time is over asks for the next one.
    let mut seen = rig.event_loop.wakes.load(Ordering::Relaxed);
    rig.put(id, &get("/late").repeat(n_requests));
    while rig.service.late.len() < n_requests {
        rig.turn();
    }
    let unanswered = Mutex::new(rig.service.late.clone());
    let mailbox = rig.reactor.mailbox();
    let mut received = Vec::new();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                loop {
                    let Some(id) = unanswered.lock().expect("no panic").pop() else {
                        return;
                    };
                    if mailbox.post(id, respond()) {
                        mailbox.wake();
                    }
                }
            });
        }
        // A loop that turns only when it was asked to.
        while received
            .windows(6)
            .filter(|window| *window == b"200 OK")
            .count()
            < n_requests
        {
            let wakes = rig.event_loop.wakes.load(Ordering::Acquire);
            if wakes == seen {
                std::thread::yield_now();
                continue;
            }
            seen = wakes;
            rig.reactor.turn(&mut rig.service);
            received.extend(rig.reactor.take_remote(id).bytes);
        }
    });
}

#[test]
fn what_is_not_taken_stays_in_the_queue_until_its_deadline() {
    let limits = Limits {
        write_stall_ms: 1,
        ..Limits::default()
    };
    let mut rig = Rig::new(limits);
    let id = rig.accept();
    rig.put(id, &get("/large").repeat(2));
    assert!(rig.event_loop.waits.load(Ordering::Relaxed) > 0);
    while rig.reactor.connections() > 0 {
        #[expect(clippy::disallowed_methods, reason = "a deadline has to pass")]
        std::thread::sleep(Duration::from_millis(5));
        rig.turn();
    }
    assert!(rig.reactor.remote_news().contains(&(id, true)));
    let outgoing = rig.reactor.take_remote(id);
    assert_eq!(outgoing.then, Then::Reset);
    assert!(outgoing.bytes.len() < 2 * LARGE);
}

#[test]
fn a_client_that_takes_slowly_bounds_what_is_held() {
    let mut rig = Rig::new(Limits::default());
    let id = rig.accept();
    rig.put(id, &get("/large").repeat(8));
    let (mut received, mut held_max) = (0, 0);
    while received < 8 * LARGE {
        let outgoing = rig.reactor.take_remote(id);
        assert_eq!(outgoing.then, Then::Open);
        held_max = held_max.max(outgoing.bytes.len());
        received += outgoing.bytes.len();
        rig.turn();
    }
    let most = HELD_MAX + 2 * LARGE;
    assert!(held_max <= most, "{held_max} bytes were held at once");
}

#[test]
fn a_broken_connection_ends_what_it_has_asked_for() {
    let mut rig = Rig::new(Limits::default());
    let id = rig.accept();
    rig.put(id, &get("/late"));
    rig.reactor.lose_remote(id);
    rig.turn();
    assert_eq!(rig.service.gone, [id]);
    assert_eq!(rig.reactor.connections(), 0);
    assert!(rig.reactor.memory_news().iter().all(|&news| news == id));
    assert_eq!(rig.take(id), (Vec::new(), Then::Close));
}

#[test]
fn a_client_that_leaves_while_a_handler_is_slow_is_noticed() {
    let mut rig = Rig::new(Limits {
        pipeline_max: 1,
        ..Limits::default()
    });
    let id = rig.accept();
    rig.put(id, &get("/late"));
    rig.put(id, b"");
    rig.turn();
    assert_eq!(
        rig.service.gone.first(),
        Some(&id),
        "nothing more of it was to be read"
    );
}

#[test]
fn deadlines_hold_without_a_descriptor() {
    let mut rig = Rig::new(Limits {
        head_read_ms: 1,
        ..Limits::default()
    });
    let id = rig.accept();
    rig.put(id, b"GET / HT");
    assert!(rig.event_loop.wait_ms.load(Ordering::Relaxed) <= 60_000);
    while rig.reactor.connections() > 0 {
        #[expect(clippy::disallowed_methods, reason = "a deadline has to pass")]
        std::thread::sleep(Duration::from_millis(5));
        rig.turn();
        let (bytes, then) = rig.take(id);
        if !bytes.is_empty() {
            assert!(bytes.starts_with(b"HTTP/1.1 408"));
            assert_eq!(then, Then::Shut, "a client may still be sending");
            rig.put(id, b"");
        }
    }
}

#[test]
fn a_connection_above_the_limit_is_told() {
    let mut rig = Rig::new(Limits {
        connections_max: 1,
        ..Limits::default()
    });
    let _first = rig.accept();
    let second = rig.accept();
    let (bytes, then) = rig.take(second);
    assert!(bytes.starts_with(b"HTTP/1.1 503"));
    assert_eq!(then, Then::Shut);
}

#[test]
fn a_reactor_that_drains_takes_none() {
    let mut rig = Rig::new(Limits::default());
    rig.reactor.drain(&mut rig.service);
    let (peer, listener) = (Peer::Local, rig.listener);
    let refused = rig
        .reactor
        .accept_remote(listener, peer, peer, &mut rig.service);
    assert_eq!(refused, None);
    assert!(rig.reactor.is_drained());
}

fn respond() -> StreamCommand {
    StreamCommand::Act(ResponseAction::Respond {
        status: Status::OK,
        content_type: None,
        fields: Fields::EMPTY,
        body: Payload::Shared(Bytes::from_static(b"late")),
    })
}
