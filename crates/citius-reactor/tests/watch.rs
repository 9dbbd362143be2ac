//! What an observer hears of requests, whatever stands behind `Service`.

use std::io::Read as _;
use std::sync::Arc;
use std::time::Duration;

use citius_http::{Action, Fault, Fields, Head, Limits, Payload, ResponseHead, Status};
use citius_observe::observer::Options as Watching;
use citius_observe::{Counter, Format, Lines, MetricsSlot, Observer, Sink};
use citius_reactor::{
    ConnectionId, Network, Options, Peer, Proxies, Reactor, Reply, ResponseAction, Service,
    StreamCommand, StreamId,
};

/// Answers with the request's id; `/late` when told to, `/wrong` with what cannot be sent.
#[derive(Default)]
struct Echo {
    late: Vec<StreamId>,
    served: usize,
}
use support::options;

mod support;

impl Service for Echo {
    fn request(&mut self, head: Box<Head>, _ended: bool, reply: &mut Reply<'_>) {
        self.served += 1;
        reply.classify(1);
        let mut fields = Fields::default();
        match head.path() {
            b"/late" => return self.late.push(reply.id()),
            b"/wrong" => fields.push(b"content-length", b"7").expect("valid"),
            _ => {}
        }
        let id = head.field(b"x-request-id").unwrap_or(b"none");
        let parent = head.field(b"traceparent").unwrap_or(b"none");
        let response = ResponseHead {
            status: Status::OK,
            content_type: None,
            fields: &fields,
        };
        let text = [id, b" ", parent].concat();
        let sent = reply.send(Action::Respond(response, Payload::Copied(&text)));
        assert_eq!(sent.is_err(), head.path() == b"/wrong");
        reply.recycle(head);
    }

    fn data(&mut self, _bytes: &[u8], _reply: &mut Reply<'_>) {}
    fn end(&mut self, _trailers: Fields, _reply: &mut Reply<'_>) {}
    fn broken(&mut self, _id: StreamId, _fault: Fault) {}
    fn writable(&mut self, _reply: &mut Reply<'_>) {}
    fn disconnected(&mut self, _connection: ConnectionId) {}
    fn refused(&mut self, _id: StreamId, _fault: Fault) {}
    fn file_failed(&mut self, _connection: ConnectionId, message: &str) {
        panic!("{message}");
    }
    fn panicked(&mut self, _connection: ConnectionId) {}
}

struct Rig {
    reactor: Reactor,
    service: Echo,
    slot: MetricsSlot,
    lines: Arc<Lines>,
    log: std::io::PipeReader,
}

impl Rig {
    fn new(limits: Limits, change: impl FnOnce(&mut Watching)) -> Self {
        Self::behind(Proxies::default(), limits, change)
    }

    fn behind(proxies: Proxies, limits: Limits, change: impl FnOnce(&mut Watching)) -> Self {
        let (log, writer) = std::io::pipe().expect("a pipe");
        let lines = Arc::new(
            Lines::open(Sink::Open(std::os::fd::OwnedFd::from(writer).into())).expect("a thread"),
        );
        let format = "%(m)s %(target)s %(s)s %(B)s %(route)s %(fault)s %(id)s";
        let mut watching = Watching {
            slot: MetricsSlot::leak(),
            log: Some((Arc::clone(&lines), Format::parse(format).expect("a format"))),
            log_share: 1.0,
            utc_offset_s: Arc::default(),
            request_id: None,
            traces: false,
            trace_share: 1.0,
            spans: None,
            health: None,
        };
        change(&mut watching);
        let slot = watching.slot;
        let mut observer = Observer::new(watching);
        assert_eq!(observer.class_of("/route"), 1);
        let reactor = Reactor::new(Options {
            proxies,
            observer: Some(Box::new(observer)),
            ..options(limits)
        })
        .expect("an epoll set");
        Self {
            reactor,
            service: Echo::default(),
            slot,
            lines,
            log,
        }
    }

    fn feed(&mut self, id: ConnectionId, bytes: &[u8]) -> String {
        self.reactor.feed_memory(id, bytes, &mut self.service);
        String::from_utf8(self.reactor.take_memory(id).unwrap_or_default()).expect("ASCII")
    }

    fn ask(&mut self, text: &str) -> String {
        let id = self.reactor.open_memory(Peer::Local, None);
        self.feed(id, text.as_bytes())
    }

    /// The whole log; nothing is logged after this.
    fn log(mut self) -> Vec<String> {
        self.reactor.close(&mut self.service);
        self.reactor.turn(&mut self.service);
        assert!(self.lines.close(Duration::from_secs(10)));
        drop((self.reactor, self.lines));
        let mut text = String::new();
        self.log.read_to_string(&mut text).expect("ASCII");
        text.lines().map(str::to_owned).collect()
    }
}

fn get(path: &str) -> String {
    format!("GET {path} HTTP/1.1\r\nHost: a\r\n\r\n")
}

#[test]
fn every_request_has_one_line_and_one_count() {
    let mut rig = Rig::new(Limits::default(), |_| {});
    rig.ask(&[get("/a"), get("/b")].concat());
    rig.ask(&get("/a").replace("GET", "HEAD"));
    rig.ask(&get("/wrong"));
    let late = rig.reactor.open_memory(Peer::Local, None);
    rig.feed(late, get("/late").as_bytes());
    let id = rig.service.late.pop().expect("it waits");
    let (start, data, end) = (
        ResponseAction::Start {
            status: Status::OK,
            content_type: None,
            fields: Fields::EMPTY,
        },
        ResponseAction::Data(Payload::Shared(b"12345"[..].into())),
        ResponseAction::End(Fields::EMPTY),
    );
    for post in [start, data, end] {
        // The next turn is called by hand.
        let _ = rig.reactor.mailbox().post(id, StreamCommand::Act(post));
    }
    rig.reactor.turn(&mut rig.service);
    let left = rig.reactor.open_memory(Peer::Local, None);
    rig.feed(left, get("/late").as_bytes());
    rig.feed(left, b"");
    assert_eq!(rig.slot.codes(), [(200, 4), (499, 1), (500, 1)]);
    assert_eq!(rig.slot.counter(Counter::RequestsCancelled), 1);
    let class = &rig.slot.classes()[0];
    assert_eq!(class.label, "/route");
    assert_eq!(class.counts.iter().map(|count| count.2).sum::<u64>(), 6);
    assert_eq!(
        rig.log(),
        [
            "GET /a 200 9 /route - -",
            "GET /b 200 9 /route - -",
            "HEAD /a 200 0 /route - -",
            "GET /wrong 500 0 /route response_length -",
            "GET /late 200 5 /route - -",
            "GET /late 499 0 /route client_left -",
        ]
    );
}

/// Newcomer B7: what the end of a drain cuts off is no client that has left.
#[test]
fn what_a_stop_cuts_off_has_a_fault_of_its_own() {
    let mut rig = Rig::new(Limits::default(), |_| {});
    let late = rig.reactor.open_memory(Peer::Local, None);
    rig.feed(late, get("/late").as_bytes());
    rig.reactor.drain(&mut rig.service);
    rig.reactor.close(&mut rig.service);
    assert_eq!(rig.slot.codes(), [(503, 1)]);
    assert_eq!(rig.slot.counter(Counter::RequestsCancelled), 0);
    assert_eq!(rig.log(), ["GET /late 503 0 /route server_stopped -"]);
}

#[test]
fn what_is_not_understood_is_told_too() {
    let mut rig = Rig::new(Limits::default(), |_| {});
    rig.ask("GET / HTTP/1.1\r\n\r\n");
    rig.ask("\x01\x02");
    let (head, body) = (
        "POST / HTTP/1.1\r\nHost: a\r\n",
        "Transfer-Encoding: chunked\r\n\r\nxyz\r\n",
    );
    let id = rig.reactor.open_memory(Peer::Local, None);
    rig.feed(
        id,
        [&head.replace(" / ", " /late "), body].concat().as_bytes(),
    );
    rig.service.late.clear();
    assert_eq!(rig.slot.faults(Fault::HostMissing), 1);
    assert_eq!(rig.slot.faults(Fault::MethodSyntax), 1);
    let log = rig.log();
    // The bytes are those of the response: the text of the fault and the end of its line.
    let line = |what: &str, fault: Fault, name| {
        format!("{what} 400 {} - {name} -", fault.text().len() + 1)
    };
    assert_eq!(log[0], line("GET /", Fault::HostMissing, "host_missing"));
    assert_eq!(log[1], line("- -", Fault::MethodSyntax, "method_syntax"));
    assert_eq!(log.len(), 3, "{log:?}");
}

#[test]
fn a_refused_head_is_logged_with_what_was_read_of_it() {
    let limits = Limits {
        target_bytes_max: 40,
        head_bytes_max: 200,
        ..Limits::default()
    };
    let long = format!("/{}", "x".repeat(60));
    let mut rig = Rig::new(limits, |_| {});
    rig.ask(&format!("PUT {long} HTTP/1.1\r\nHost: a\r\n\r\n"));
    rig.ask(&format!("PUT {long}"));
    let head = get("/many").replace("\r\n\r\n", &format!("\r\nA: {long}").repeat(4));
    rig.ask(&head);
    rig.ask("GET /a\x7fb HTTP/1.1\r\n\r\n");
    rig.ask("GET /old HTTP/0.9\r\n\r\n");
    // The answers before it have left by then.
    rig.ask(&[&get("/a"), "DELETE /b HTTP/1.1\r\n bad\r\n\r\n"].concat());
    // Behind a chunked body that is not wanted nothing is read, however it goes on.
    let late = rig.reactor.open_memory(Peer::Local, None);
    let chunked = "POST /c HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n";
    rig.feed(late, chunked.as_bytes());
    rig.feed(late, b"GET /body HTTP/1.1\r\n\r\n");
    // It ends before it is complete.
    let cut = rig.reactor.open_memory(Peer::Local, None);
    rig.feed(cut, b"GET /cut HTTP/1.1\r\nHos");
    rig.feed(cut, b"");
    let all = rig.log();
    let log: Vec<String> = all
        .iter()
        .map(|line| line.split(' ').take(3).collect::<Vec<_>>().join(" "))
        .collect();
    let long = format!("PUT {long} 414");
    let told = [
        &long,
        &long,
        "GET /many 431",
        r"GET /a\x7fb 400",
        "GET /old 505",
        "GET /a 200",
        "DELETE /b 400",
        "POST /c 200",
        "GET /cut 400",
    ];
    assert_eq!(log, told, "{all:?}");
}

#[test]
fn too_many_open_requests_are_shed() {
    let limits = Limits {
        requests_open_max: 2,
        ..Limits::default()
    };
    let mut rig = Rig::new(limits, |_| {});
    let one = rig.reactor.open_memory(Peer::Local, None);
    rig.feed(one, [get("/late"), get("/late")].concat().as_bytes());
    let other = rig.reactor.open_memory(Peer::Local, None);
    let response = rig.feed(other, get("/a").as_bytes());
    assert!(response.starts_with("HTTP/1.1 503"), "{response}");
    assert!(response.contains("retry-after: 1\r\n"), "{response}");
    assert_eq!(
        (rig.service.served, rig.slot.counter(Counter::RequestsShed)),
        (2, 1)
    );
    rig.feed(one, b"");
    rig.reactor.turn(&mut rig.service);
    let response = rig.feed(other, get("/a").as_bytes());
    assert!(response.starts_with("HTTP/1.1 200"), "{response}");
}

#[test]
fn ids_and_traces_reach_the_application_and_come_back() {
    let mut rig = Rig::new(Limits::default(), |watching| {
        watching.request_id = Some("x-request-id".into());
        watching.traces = true;
    });
    let response =
        rig.ask(&get("/a").replace("Host", "X-Request-ID: theirs\r\ntraceparent: 1\r\nHost"));
    let (head, body) = response.split_once("\r\n\r\n").expect("a response");
    let (id, parent) = body.split_once(' ').expect("both");
    assert!(id.len() == 32 && id != "theirs");
    assert!(head.contains(&format!("x-request-id: {id}\r\n")), "{head}");
    assert!(
        head.contains(&format!("traceresponse: {parent}\r\n")),
        "{head}"
    );
    assert_eq!(rig.log()[0], format!("GET /a 200 88 /route - {id}"));
}

#[test]
fn a_trusted_peers_id_and_trace_are_taken_over() {
    let proxies = Proxies {
        networks: vec![Network::Local],
        ..Proxies::default()
    };
    let mut rig = Rig::behind(proxies, Limits::default(), |watching| {
        watching.request_id = Some("x-request-id".into());
        watching.traces = true;
    });
    let given = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    let fields = format!("X-Request-ID: theirs\r\nTraceparent: {given}\r\nHost");
    let response = rig.ask(&get("/a").replace("Host", &fields));
    let (_, body) = response.split_once("\r\n\r\n").expect("a response");
    assert!(
        body.starts_with(&format!("theirs {}", &given[..36])),
        "{body}"
    );
    assert!(!body.contains("b7ad6b7169203331"), "the parent is ours now");
    let bad = get("/a").replace("Host", "x-request-id: a\tb\r\nHost");
    assert!(!rig.ask(&bad).contains("a\tb"));
}

#[test]
fn health_on_the_main_port() {
    let mut rig = Rig::new(Limits::default(), |watching| {
        watching.health = Some("/-".into());
    });
    assert!(rig.ask(&get("/-/live")).starts_with("HTTP/1.1 200"));
    assert!(rig.ask(&get("/-/ready")).starts_with("HTTP/1.1 503"));
    rig.slot.set(citius_observe::Gauge::State, 1);
    assert!(rig.ask(&get("/-/ready")).starts_with("HTTP/1.1 200"));
    rig.slot.set(citius_observe::Gauge::Checks, 2);
    assert!(rig.ask(&get("/-/ready")).starts_with("HTTP/1.1 503"));
    assert_eq!(rig.service.served, 0);
}

#[test]
fn a_sample_still_has_every_error() {
    let mut rig = Rig::new(Limits::default(), |watching| watching.log_share = 0.0);
    rig.ask(&[get("/a"), get("/wrong"), get("/a")].concat());
    assert_eq!(rig.log(), ["GET /wrong 500 0 /route response_length -"]);
}
