//! Reactors that accept from one socket: which of them serves a new connection.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use citius_http::{Action, Fault, Fields, Head, Limits, Payload, ResponseHead, Status};
use citius_reactor::{Balancer, ConnectionId, ListenerProtocol, Reactor, Reply, Service, StreamId};

/// Responds with its name.
struct Named(&'static [u8]);
use support::options;

mod support;

impl Service for Named {
    fn request(&mut self, head: Box<Head>, _ended: bool, reply: &mut Reply<'_>) {
        let response = ResponseHead {
            status: Status::OK,
            content_type: None,
            fields: &Fields::EMPTY,
        };
        reply
            .send(Action::Respond(response, Payload::Copied(self.0)))
            .expect("a valid response");
        reply.recycle(head);
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
        panic!("no handler panics here");
    }
}

/// For reactors of which none is waited for too long, however slow the machine is.
const PATIENT: Duration = Duration::from_secs(600);
/// For those of which one is late.
const IMPATIENT: Duration = Duration::from_millis(5);

/// Reactors that share a socket, and its address.
fn reactors(count: usize, patience: Duration) -> (Vec<Reactor>, SocketAddr) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    listener.set_nonblocking(true).expect("a socket");
    let address = listener.local_addr().expect("it is bound");
    let balancer = Arc::new(Balancer::new(patience).expect("a timer"));
    let made = (0..count).map(|_| {
        let mut reactor = Reactor::new(options(Limits::default())).expect("an epoll set");
        let socket = OwnedFd::from(listener.try_clone().expect("a descriptor"));
        reactor
            .listen(socket.into(), ListenerProtocol::Http)
            .expect("it listens");
        reactor.share(&balancer).expect("an epoll set");
        reactor
    });
    (made.collect(), address)
}

fn connect(address: SocketAddr, count: usize) -> Vec<TcpStream> {
    (0..count)
        .map(|_| {
            let peer = TcpStream::connect(address).expect("a listener");
            peer.set_read_timeout(Some(Duration::from_secs(10)))
                .expect("a socket");
            peer
        })
        .collect()
}

fn turn_until(reactor: &mut Reactor, connections: usize) {
    for _ in 0..1000 {
        reactor.turn(&mut Named(b"?"));
        if reactor.connections() == connections {
            return;
        }
        pause(1);
    }
    panic!("{} connections", reactor.connections());
}

#[expect(
    clippy::disallowed_methods,
    reason = "time has to pass, and no reactor turns"
)]
fn pause(ms: u64) {
    std::thread::sleep(Duration::from_millis(ms));
}

/// Sends a request, turns `reactor`, and returns the name in the response, or nothing if another reactor has the connection.
fn served_by(peer: &mut TcpStream, reactor: &mut Reactor, name: &'static [u8]) -> String {
    peer.write_all(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
        .expect("it is open");
    reactor.turn(&mut Named(name));
    peer.set_nonblocking(true).expect("a socket");
    let mut buffer = [0; 1024];
    let read = peer.read(&mut buffer);
    peer.set_nonblocking(false).expect("a socket");
    let text = String::from_utf8_lossy(&buffer[..read.unwrap_or(0)]).into_owned();
    text.rsplit("\r\n").next().unwrap_or_default().to_owned()
}

#[test]
fn a_burst_is_shared_equally_whoever_accepts_it() {
    let (mut all, address) = reactors(3, PATIENT);
    let [first, second, third] = &mut all[..] else {
        unreachable!("three were asked for")
    };
    let mut peers = connect(address, 9);
    turn_until(first, 3);
    first.turn(&mut Named(b"?"));
    assert_eq!(first.connections(), 3, "the others are offered");
    turn_until(second, 3);
    turn_until(third, 3);
    let mut served = [0; 3];
    for peer in &mut peers {
        for (reactor, count) in [&mut *first, &mut *second, &mut *third]
            .into_iter()
            .zip(&mut served)
        {
            if served_by(peer, reactor, b"me") == "me" {
                *count += 1;
                break;
            }
        }
    }
    assert_eq!(served, [3, 3, 3]);
}

#[test]
fn who_is_idle_takes_what_others_let_wait() {
    let (mut all, address) = reactors(3, IMPATIENT);
    let [first, second, third] = &mut all[..] else {
        unreachable!("three were asked for")
    };
    // The first accepts all, and neither it nor the second turns from now on.
    let _peers = connect(address, 6);
    for _ in 0..1000 {
        if first.connections() >= 2 {
            break;
        }
        first.turn(&mut Named(b"?"));
    }
    let accepted = first.connections();
    assert!((2..=6).contains(&accepted), "{accepted}");
    // The alarm wakes the third one, which is idle.
    for _ in 0..200 {
        third
            .poll(Some(Duration::from_secs(10)))
            .expect("no signal");
        third.turn(&mut Named(b"?"));
        if third.connections() == 6 - accepted {
            break;
        }
    }
    assert_eq!(third.connections(), 6 - accepted);
    // The second is late: what comes is shared by the others until it has turned.
    let _more = connect(address, 8 + 2 * accepted);
    for _ in 0..1000 {
        first.turn(&mut Named(b"?"));
        third.turn(&mut Named(b"?"));
        if first.connections() + third.connections() == 14 + 2 * accepted {
            break;
        }
        pause(1);
    }
    assert_eq!(
        first.connections() + third.connections(),
        14 + 2 * accepted,
        "none waits for the second"
    );
    second.turn(&mut Named(b"?"));
    assert_eq!(second.connections(), 0);
    // Each time it may be late again, on a busy machine.
    let mut last = Vec::new();
    while second.connections() == 0 && last.len() < 200 {
        last.extend(connect(address, 1));
        first.turn(&mut Named(b"?"));
        second.turn(&mut Named(b"?"));
    }
    assert!(second.connections() > 0);
}

#[test]
fn who_stops_takes_up_what_waits_for_others() {
    let (mut all, address) = reactors(2, PATIENT);
    let [first, second] = &mut all[..] else {
        unreachable!("two were asked for")
    };
    let _peers = connect(address, 4);
    turn_until(first, 2);
    first.drain(&mut Named(b"?"));
    assert_eq!(first.connections(), 4);
    second.turn(&mut Named(b"?"));
    assert_eq!(second.connections(), 0);
}

#[test]
fn who_stops_takes_up_what_waits_for_it() {
    let (mut all, address) = reactors(2, PATIENT);
    let [first, second] = &mut all[..] else {
        unreachable!("two were asked for")
    };
    let mut peers = connect(address, 4);
    turn_until(first, 2);
    second.drain(&mut Named(b"second"));
    assert_eq!(second.connections(), 2);
    let served: Vec<_> = peers
        .iter_mut()
        .map(|peer| served_by(peer, second, b"second"))
        .collect();
    assert_eq!(served.iter().filter(|name| *name == "second").count(), 2);
    // What comes now is the other's.
    let _more = connect(address, 4);
    turn_until(first, 6);
}

#[test]
fn what_waits_for_a_reactor_that_is_closed_or_gone_is_closed() {
    for is_dropped in [false, true] {
        let (mut all, address) = reactors(2, PATIENT);
        let mut second = all.pop().expect("two were asked for");
        let mut first = all.pop().expect("two were asked for");
        let mut peers = connect(address, 4);
        turn_until(&mut first, 2);
        if is_dropped {
            drop(second);
        } else {
            second.close(&mut Named(b"?"));
        }
        let ended = peers.iter_mut().filter(|peer| {
            peer.set_nonblocking(true).expect("a socket");
            let mut peer: &TcpStream = peer;
            matches!(peer.read(&mut [0; 1]), Ok(0))
        });
        assert_eq!(ended.count(), 2);
        let _more = connect(address, 4);
        turn_until(&mut first, 6);
    }
}

#[test]
fn clients_of_reactors_in_threads_are_all_answered() {
    let (all, address) = reactors(3, IMPATIENT);
    let stopped = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for (number, mut reactor) in all.into_iter().enumerate() {
            let stopped = &stopped;
            scope.spawn(move || {
                let mut turns = 0_u32;
                while !stopped.load(Ordering::Relaxed) {
                    // EINTR: the turn finds nothing.
                    let _ = reactor.poll(Some(Duration::from_millis(20)));
                    reactor.turn(&mut Named(b"me"));
                    turns += 1;
                    // One of them is late again and again.
                    if number == 0 && turns.is_multiple_of(50) {
                        pause(20);
                    }
                }
                reactor.drain(&mut Named(b"me"));
                assert_eq!(reactor.connections(), 0);
            });
        }
        // Also when a client panics: the threads are waited for.
        let _stop = Stop(&stopped);
        for _ in 0..100 {
            for mut peer in connect(address, 8) {
                peer.write_all(b"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
                    .expect("it is open");
                let mut text = String::new();
                peer.read_to_string(&mut text).expect("a response");
                assert!(text.ends_with("\r\n\r\nme"), "{text}");
            }
        }
    });
}

/// Stops the threads when it is dropped.
struct Stop<'a>(&'a AtomicBool);

impl Drop for Stop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}
