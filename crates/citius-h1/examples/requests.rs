//! `requests BYTES TOGETHER COUNT [parse]`: answers COUNT GET requests of BYTES bytes, TOGETHER of them at a time.
//!
//! For instruction counts, not for seconds: run it under `valgrind --tool=callgrind` with two values of COUNT, and
//! divide the difference of the totals by the difference of the counts. With `parse`, httparse reads the
//! same heads instead and no response is written, to compare.

use std::hint::black_box;

use citius_h1::{Connection, Context, Template};
use citius_http::{Action, Event, Fields, HeadPool, Limits, Output, Payload, ResponseHead, Status};

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let number = |index: usize| words.get(index).and_then(|word| word.parse::<usize>().ok());
    let (Some(n_bytes), Some(together), Some(count)) = (number(0), number(1), number(2)) else {
        eprintln!("usage: requests BYTES TOGETHER COUNT [parse]");
        std::process::exit(2);
    };
    let request = request_of(n_bytes);
    if words.get(3).is_some_and(|word| word == "parse") {
        parse_with_httparse(&request, count);
    } else {
        respond(&request, together.max(1), count);
    }
}

/// A GET like a browser's, filled up with cookies.
fn request_of(n_bytes: usize) -> Vec<u8> {
    let mut head = b"GET / HTTP/1.1\r\nHost: a:8000\r\n".to_vec();
    for line in [
        &b"Accept: */*\r\n"[..],
        b"Connection: keep-alive\r\n",
        b"User-Agent: Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0\r\n",
        b"Accept-Language: en-US,en;q=0.5\r\n",
        b"Accept-Encoding: gzip, deflate, br, zstd\r\n",
        b"Upgrade-Insecure-Requests: 1\r\n",
        b"Sec-Fetch-Dest: document\r\nSec-Fetch-Mode: navigate\r\nSec-Fetch-Site: none\r\n",
    ] {
        if head.len() + line.len() + 2 <= n_bytes {
            head.extend_from_slice(line);
        }
    }
    let cookie = n_bytes.saturating_sub(head.len() + "Cookie: \r\n\r\n".len());
    if cookie > 0 {
        head.extend_from_slice(b"Cookie: ");
        head.resize(head.len() + cookie, b'c');
        head.extend_from_slice(b"\r\n");
    }
    head.extend_from_slice(b"\r\n");
    head
}

fn respond(request: &[u8], together: usize, count: usize) {
    let batch = request.repeat(together);
    let (limits, mut heads, mut out) = (Limits::default(), HeadPool::default(), Output::default());
    let (mut connection, mut template) = (Connection::new(0), Template::default());
    let mut n_responses = 0;
    while n_responses < count {
        let mut cx = Context {
            now: 1,
            limits: &limits,
            heads: &mut heads,
            server: b"server: citius\r\n",
            date: b"date: Sun, 06 Nov 1994 08:49:37 GMT\r\n",
            default_fields: &Fields::EMPTY,
            template: &mut template,
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
            let payload = Payload::Copied(black_box(b"Welcome!\n"));
            let action = Action::Respond(response, payload);
            connection
                .send(&mut cx, stream, action, &mut out)
                .expect("a valid response");
            cx.heads.give(head);
            n_responses += 1;
        }
        assert_eq!(connection.closing(), None);
        black_box(out.single());
        out.clear();
    }
}

fn parse_with_httparse(request: &[u8], count: usize) {
    for _ in 0..count {
        let mut fields = [std::mem::MaybeUninit::uninit(); 100];
        let mut head = httparse::Request::new(&mut []);
        let status = head.parse_with_uninit_headers(black_box(request), &mut fields);
        assert!(black_box(status).is_ok_and(|status| status.is_complete()));
    }
}
