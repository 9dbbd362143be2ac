//! A plain response has the same bytes by both methods: [`Connection::respond`] against [`Connection::send`].

use citius_h1::{Connection, Context, Template};
use std::sync::LazyLock;

use citius_http::{Closing, Event, Fields, HeadPool, Limits, Metadata, Output, PlainResponse};

static TEXT: LazyLock<Metadata> = LazyLock::new(|| metadata(b"text/plain", false));
static VARIED: LazyLock<Metadata> = LazyLock::new(|| metadata(b"text/plain", true));
static OCTETS: LazyLock<Metadata> = LazyLock::new(|| metadata(b"application/octet-stream", true));

fn metadata(media_type: &'static [u8], varies: bool) -> Metadata {
    let mut fields = Fields::default();
    if varies {
        fields.push(b"vary", b"accept").expect("a valid field");
    }
    Metadata { media_type, fields }
}

/// The responses.
const RESPONSES: [(&LazyLock<Metadata>, &[u8]); 7] = [
    (&TEXT, b"one"),
    (&TEXT, b"two"),
    (&TEXT, b""),
    (&VARIED, b"varied"),
    (&TEXT, b"three"),
    (&OCTETS, b"eleven bytes"),
    (&OCTETS, b"twelve"),
];

/// What a run comes to.
#[derive(Debug, PartialEq, Eq)]
struct Outcome {
    written: Vec<u8>,
    closing: Option<Closing>,
    deadline: Option<u64>,
}

/// Requests, each with the next response of [`RESPONSES`].
struct Run<'a> {
    /// The bytes of each read.
    reads: &'a [&'a [u8]],
    /// All requests of a read are taken, then the application responds in reverse order.
    backwards: bool,
    drains: bool,
    default_fields: Fields,
}

impl<'a> Run<'a> {
    fn of(reads: &'a [&'a [u8]]) -> Self {
        Self {
            reads,
            backwards: false,
            drains: false,
            default_fields: Fields::EMPTY,
        }
    }

    /// The outcome, and how many responses `respond` has given, if it was asked.
    fn outcome(&self, plainly: bool) -> (Outcome, usize) {
        let (limits, mut heads, mut template) =
            (Limits::default(), HeadPool::default(), Template::default());
        let (mut connection, mut out) = (Connection::new(0), Output::default());
        let (mut n_responses, mut n_plain, mut rest) = (0, 0, Vec::new());
        for (now, read) in (1..).zip(self.reads) {
            let date = format!("date: {}\r\n", now / 3);
            if now % 3 == 0 {
                template.clear();
            }
            let mut cx = Context {
                now,
                limits: &limits,
                heads: &mut heads,
                server: b"server: s\r\n",
                date: date.as_bytes(),
                default_fields: &self.default_fields,
                template: &mut template,
            };
            rest.extend_from_slice(read);
            let (mut input, mut streams) = (&rest[..], Vec::new());
            loop {
                let event = connection.receive(&mut cx, &mut input, &mut out);
                let has_event = event.is_some();
                match event {
                    Some(Event::Request { stream, .. }) => streams.push(stream),
                    Some(other) => panic!("unexpected event: {other:?}"),
                    None => {}
                }
                if self.drains && now == 2 {
                    connection.drain();
                }
                if has_event && self.backwards {
                    continue;
                }
                while let Some(stream) = streams.pop() {
                    let (metadata, body) = RESPONSES[n_responses % RESPONSES.len()];
                    n_responses += 1;
                    let plain = PlainResponse { metadata, body };
                    if plainly && connection.respond(&mut cx, stream, plain, &mut out) {
                        n_plain += 1;
                    } else {
                        let sent = connection.send(&mut cx, stream, plain.action(), &mut out);
                        sent.expect("a valid response");
                    }
                }
                if !has_event {
                    break;
                }
            }
            rest = input.to_vec();
        }
        let outcome = Outcome {
            written: out.pieces().flatten().copied().collect(),
            closing: connection.closing(),
            deadline: connection.deadline(&limits),
        };
        (outcome, n_plain)
    }

    /// Both ways come to the same; returns how many responses were given sooner.
    #[track_caller]
    fn check(&self) -> usize {
        let (expected, _) = self.outcome(false);
        let (outcome, n_plain) = self.outcome(true);
        assert_eq!(
            outcome.written.escape_ascii().to_string(),
            expected.written.escape_ascii().to_string()
        );
        assert_eq!(outcome, expected);
        n_plain
    }
}

const GET: &[u8] = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n";
const HEAD: &[u8] = b"HEAD / HTTP/1.1\r\nHost: a\r\n\r\n";
const CLOSE: &[u8] = b"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";
const HTTP10: &[u8] = b"GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n";
const POST: &[u8] = b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\n";

#[test]
fn most_answers_are_given_sooner() {
    // The first of its type makes the template, and so does the first after that was cleared.
    assert!(Run::of(&[GET; 40]).check() >= 15);
    let together = [GET; 40].concat();
    assert!(Run::of(&[GET, GET, &together, GET]).check() >= 25);
}

#[test]
fn others_are_given_the_same_way_as_ever() {
    for last in [HEAD, CLOSE, HTTP10, POST] {
        let plain_before = Run::of(&[GET, GET]).check();
        assert_eq!(Run::of(&[GET, GET, last]).check(), plain_before, "{last:?}");
        Run::of(&[GET, GET, last, GET, GET]).check();
        Run::of(&[GET, GET, &[GET, last, GET].concat()]).check();
    }
}

#[test]
fn answers_keep_their_order() {
    let together = [GET; 7].concat();
    let reads = [GET, GET, &together, GET, &together];
    let run = Run {
        backwards: true,
        ..Run::of(&reads)
    };
    run.check();
}

#[test]
fn a_head_that_has_begun_to_arrive_counts() {
    let reads: [&[u8]; 4] = [GET, GET, &[GET, &GET[..10]].concat(), &GET[10..]];
    Run::of(&reads).check();
}

#[test]
fn a_connection_that_drains_says_so() {
    let run = Run {
        drains: true,
        ..Run::of(&[GET, GET, GET])
    };
    run.check();
    assert!(run.outcome(true).0.closing.is_some());
}

#[test]
fn standing_fields_are_said() {
    let mut default_fields = Fields::default();
    default_fields
        .push(b"x-default", b"1")
        .expect("a valid field");
    let run = Run {
        default_fields,
        ..Run::of(&[GET; 9])
    };
    assert!(run.check() > 0);
    let written = run.outcome(true).0.written;
    assert_eq!(
        written.windows(12).filter(|w| w == b"x-default: 1").count(),
        9
    );
}
