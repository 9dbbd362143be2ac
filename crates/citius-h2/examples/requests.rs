//! `requests STREAMS COUNT`: answers COUNT GET requests, STREAMS of them at a time, as h2load sends them.
//!
//! For instruction counts, not for seconds: run it under `valgrind --tool=callgrind` with two values of COUNT, and
//! divide the difference of the totals by the difference of the counts.

use std::hint::black_box;

use citius_h2::{Connection, Context, Options};
use citius_http::{Action, Event, Fields, HeadPool, Limits, Output, Payload, ResponseHead, Status};

fn main() {
    let mut numbers = std::env::args().skip(1).map(|word| word.parse::<usize>());
    let (Some(Ok(together)), Some(Ok(count))) = (numbers.next(), numbers.next()) else {
        eprintln!("usage: requests STREAMS COUNT");
        std::process::exit(2);
    };
    let (limits, mut heads, mut out) = (Limits::default(), HeadPool::default(), Output::default());
    let mut connection = Connection::new(0, Options::default());
    let mut n_responses = 0;
    let mut batch =
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0\0\0\0\x04\x01\0\0\0\0".to_vec();
    // A window as wide as h2load opens it.
    batch.extend_from_slice(b"\0\0\x04\x08\0\0\0\0\0\x3f\xff\0\0");
    let mut stream = 1u32;
    let first: &[u8] = b"\x82\x84\x86\x41\x0e127.0.0.1:8000\x7a\x0ah2load/1.5";
    while n_responses < count {
        for _ in 0..together {
            // The authority and the agent are in the table from the second request on.
            let block: &[u8] = if stream == 1 {
                first
            } else {
                b"\x82\x84\x86\xbf\xbe"
            };
            let length = u8::try_from(block.len()).expect("a short block");
            batch.extend_from_slice(&[0, 0, length, 1, 5]);
            batch.extend_from_slice(&stream.to_be_bytes());
            batch.extend_from_slice(block);
            stream += 2;
        }
        let mut cx = Context {
            now: 1,
            limits: &limits,
            heads: &mut heads,
            server: b"server: citius\r\n",
            date: b"date: Sun, 06 Nov 1994 08:49:37 GMT\r\n",
            default_fields: &Fields::EMPTY,
        };
        let mut input = black_box(batch.as_slice());
        while let Some(event) = connection.receive(&mut cx, &mut input, &mut out) {
            let Event::Request { stream, head, .. } = event else {
                unreachable!("the requests have no bodies")
            };
            let response = ResponseHead {
                status: Status::OK,
                content_type: Some(b"text/plain; charset=utf-8"),
                fields: &Fields::EMPTY,
            };
            let action = Action::Respond(response, Payload::Copied(black_box(b"Welcome!\n")));
            connection
                .send(&mut cx, stream, action, &mut out)
                .expect("a valid response");
            cx.heads.give(head);
            n_responses += 1;
        }
        assert_eq!(connection.fault(), None);
        black_box(out.single());
        out.clear();
        batch.clear();
    }
}
