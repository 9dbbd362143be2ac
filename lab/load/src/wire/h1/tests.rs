use super::head::Recent;
use super::{Fault, H1, HEAD_BYTES_MAX, encode};
use crate::request::Request;
use crate::wire::{Answers, Failure, Setup, Ticket, Wire};

const SETUP: Setup = Setup {
    keep_alive: true,
    is_secure: false,
    is_broadcast: false,
};

/// What the wire told, body fragments joined.
#[derive(Debug, Default, PartialEq, Clone)]
struct Heard {
    heads_asked: Vec<Ticket>,
    open: Option<(Ticket, u16, bool, Vec<u8>)>,
    complete: Vec<(Ticket, u16, bool, Vec<u8>)>,
}

impl Answers for Heard {
    fn is_head(&self, ticket: Ticket) -> bool {
        self.heads_asked.contains(&ticket)
    }
    fn begin(&mut self, ticket: Ticket, status: u16, closing: bool) {
        assert_eq!(self.open, None, "an answer began inside another");
        self.open = Some((ticket, status, closing, Vec::new()));
    }
    fn body(&mut self, ticket: Ticket, bytes: &[u8]) {
        let open = self.open.as_mut().expect("body before head");
        assert_eq!(open.0, ticket);
        open.3.extend_from_slice(bytes);
    }
    fn unseen(&mut self, ticket: Ticket, n_bytes: u64) {
        let n_bytes = usize::try_from(n_bytes).expect("small");
        self.body(ticket, &vec![b'?'; n_bytes]);
    }
    fn complete(&mut self, ticket: Ticket) {
        let open = self.open.take().expect("complete without head");
        assert_eq!(open.0, ticket);
        self.complete.push(open);
    }
    fn deliver(&mut self, _due_ns: Option<u64>, _n_bytes: u64) {
        unreachable!("HTTP delivers answers only");
    }
    fn release(&mut self, _ticket: Ticket) {
        unreachable!("HTTP answers every request");
    }
    fn fail(&mut self, ticket: Ticket, failure: Failure) {
        unreachable!("HTTP/1.1 cannot end answer {ticket} alone, {failure:?}");
    }
}

/// A connection with `n_asked` requests under way, tickets 0, 1, 2…
struct Connection {
    wire: H1,
    recent: Recent,
    heard: Heard,
}

impl Connection {
    fn asking(n_asked: Ticket, heads_asked: &[Ticket]) -> Self {
        let mut wire = H1::new(SETUP);
        (0..n_asked).for_each(|ticket| wire.send(ticket, 0, &Vec::new(), &mut Vec::new()));
        let heard = Heard {
            heads_asked: heads_asked.to_vec(),
            ..Heard::default()
        };
        Self {
            wire,
            recent: Recent::default(),
            heard,
        }
    }

    fn receive(&mut self, input: &[u8]) -> Result<(), Fault> {
        self.wire.receive(&mut self.recent, input, &mut self.heard)
    }
}

/// Feeds `input` whole, cut in two at every place, and byte by byte.
fn every_cut(
    n_asked: Ticket,
    heads: &[Ticket],
    input: &[u8],
    check: impl Fn(&mut Connection, Result<(), Fault>),
) {
    let feed = |pieces: &[&[u8]]| {
        let mut connection = Connection::asking(n_asked, heads);
        let result = pieces
            .iter()
            .try_for_each(|piece| connection.receive(piece));
        check(&mut connection, result);
    };
    feed(&[input]);
    (1..input.len()).for_each(|cut| feed(&[&input[..cut], &input[cut..]]));
    feed(&input.chunks(1).collect::<Vec<_>>());
}

#[track_caller]
fn check(input: &str, expected: &[(u16, bool, &str)]) {
    check_heads(input, &[], expected);
}

#[track_caller]
fn check_heads(input: &str, heads: &[Ticket], expected: &[(u16, bool, &str)]) {
    let n_asked = Ticket::try_from(expected.len()).expect("few");
    every_cut(n_asked, heads, input.as_bytes(), |connection, result| {
        assert_eq!(result, Ok(()), "{input:?}");
        connection.wire.end(&mut connection.heard);
        let heard: Vec<_> = connection.heard.complete.iter().enumerate().collect();
        assert_eq!(heard.len(), expected.len(), "{input:?}: {heard:?}");
        for (place, (ticket, status, closing, body)) in heard {
            assert_eq!(usize::from(*ticket), place);
            let body = std::str::from_utf8(body).expect("ASCII");
            assert_eq!((*status, *closing, body), expected[place], "{input:?}");
        }
        assert_eq!(connection.wire.begun(), None, "{input:?}");
    });
}

#[track_caller]
fn refuse(input: &str, fault: Fault) {
    every_cut(1, &[], input.as_bytes(), |_, result| {
        assert_eq!(result, Err(fault), "{input:?}");
    });
}

#[test]
fn reads_a_body_of_a_length() {
    check(
        "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello",
        &[(200, false, "hello")],
    );
    check(
        "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
        &[(200, false, "")],
    );
    check(
        "HTTP/1.1 404 Not Found\r\ncontent-LENGTH:3 \r\nX: \t\r\n\r\nno\n",
        &[(404, false, "no\n")],
    );
    check(
        "HTTP/1.1 200\r\nContent-Length: 1\r\n\r\nx",
        &[(200, false, "x")],
    );
    check(
        "HTTP/1.1 200 \r\nContent-Length: 1\r\n\r\nx",
        &[(200, false, "x")],
    );
}

#[test]
fn same_length_twice_is_one_length() {
    let input = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 2\r\n\r\nab";
    check(input, &[(200, false, "ab")]);
}

#[test]
fn reads_pipelined_answers_in_order() {
    let input = "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\na\
                 HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nb\
                 HTTP/1.1 500 Oh\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nc\r\n0\r\n\r\n\
                 HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nd";
    check(
        input,
        &[
            (200, false, "a"),
            (200, false, "b"),
            (500, false, "c"),
            (200, false, "d"),
        ],
    );
}

#[test]
fn reads_chunks() {
    let head = "HTTP/1.1 200 OK\r\nTransfer-Encoding: Chunked\r\n\r\n";
    for (body, expected) in [
        ("0\r\n\r\n", ""),
        ("5\r\nhello\r\n0\r\n\r\n", "hello"),
        (
            "0005\r\nhello\r\n1;name=\"v\"\r\n!\r\n0;x\r\n\r\n",
            "hello!",
        ),
        (
            "A\r\n0123456789\r\na \r\n0123456789\r\n0\r\nX: y\r\nZ:\r\n\r\n",
            "01234567890123456789",
        ),
        ("2\r\n\r\n\r\n0\r\n\r\n", "\r\n"),
    ] {
        check(&format!("{head}{body}"), &[(200, false, expected)]);
    }
}

#[test]
fn refuses_broken_chunks() {
    let head = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
    for body in [
        "g\r\n",
        "\r\n",
        "-1\r\n",
        "0x1\r\n",
        "5\nhello",
        "5\rhello",
        "1\r\nab",
        "1\r\na\r0",
        "00000000000000001\r\n",
        "0;a\n\r\n",
        "0\r\nX: y\n\r\n",
        "0\r\n\rx",
    ] {
        refuse(&format!("{head}{body}"), Fault::Chunk);
    }
}

#[test]
fn no_body_for_head_204_and_304() {
    let length = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n";
    let chunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
    let unknown = "HTTP/1.1 200 OK\r\n\r\n";
    let input = [length, chunked, unknown].concat();
    check_heads(
        &input,
        &[0, 1, 2],
        &[(200, false, ""), (200, false, ""), (200, false, "")],
    );
    let input = "HTTP/1.1 204 No Content\r\n\r\nHTTP/1.1 304 Not Modified\r\nContent-Length: 9\r\n\r\n\
                 HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx";
    check(
        input,
        &[(204, false, ""), (304, false, ""), (200, false, "x")],
    );
}

#[test]
fn interim_answers_are_skipped() {
    let input = "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n\
                 HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
    check(input, &[(200, false, "ok")]);
    refuse(
        "HTTP/1.1 101 Switching Protocols\r\nUpgrade: h2c\r\n\r\n",
        Fault::Upgrade,
    );
}

#[test]
fn closing_is_recognised_in_any_spelling() {
    for (version, field, closing) in [
        ("1.1", "Connection: close", true),
        ("1.1", "connection:CLOSE", true),
        ("1.1", "CoNnEcTiOn: x, Close ,y", true),
        ("1.1", "Connection: keep-alive", false),
        ("1.1", "Connection: closed", false),
        ("1.1", "X-Connection: close", false),
        ("1.0", "Connection: Keep-Alive", false),
        ("1.0", "X: y", true),
    ] {
        let input = format!("HTTP/{version} 200 OK\r\n{field}\r\nContent-Length: 1\r\n\r\nx");
        check(&input, &[(200, closing, "x")]);
    }
}

#[test]
fn without_framing_the_body_ends_with_the_connection() {
    check(
        "HTTP/1.1 200 OK\r\n\r\nall of\r\n\r\nthis",
        &[(200, false, "all of\r\n\r\nthis")],
    );
    check("HTTP/1.0 200 OK\r\n\r\n", &[(200, true, "")]);
}

#[test]
fn after_a_close_nothing_is_read() {
    let input =
        b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 1\r\n\r\nxHTTP/1.1 500 \r\n";
    every_cut(3, &[], input, |connection, result| {
        assert_eq!(result, Ok(()));
        assert_eq!(connection.heard.complete, [(0, 200, true, b"x".to_vec())]);
        assert!(connection.wire.is_over());
        assert_eq!(connection.wire.begun(), None);
    });
}

#[test]
fn begun_names_the_answer_that_was_cut() {
    let input = b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nxHTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhel";
    every_cut(3, &[], input, |connection, result| {
        assert_eq!(result, Ok(()));
        connection.wire.end(&mut connection.heard);
        assert_eq!(connection.heard.complete.len(), 1);
        assert_eq!(connection.wire.begun(), Some(1));
    });
    let mut connection = Connection::asking(2, &[]);
    assert_eq!(connection.wire.begun(), None);
    connection.receive(b"HTT").expect("a beginning");
    assert_eq!(connection.wire.begun(), Some(0));
}

#[test]
fn refuses_two_readings_of_a_length() {
    let head = |fields: &str| format!("HTTP/1.1 200 OK\r\n{fields}\r\n\r\n");
    for fields in [
        "Content-Length: 1\r\nContent-Length: 2",
        "Content-Length: 1, 1",
        "Content-Length: +1",
        "Content-Length: ",
        "Content-Length: 0x1",
        "Content-Length: 99999999999999999999",
        "Content-Length: 1\r\nTransfer-Encoding: chunked",
    ] {
        refuse(&head(fields), Fault::BodyLength);
    }
    for fields in [
        "Transfer-Encoding: gzip, chunked",
        "Transfer-Encoding: identity",
        "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked",
    ] {
        refuse(&head(fields), Fault::TransferCoding);
    }
    refuse(
        "HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
        Fault::TransferCoding,
    );
}

#[test]
fn refuses_what_is_not_a_head() {
    for input in [
        "HTTP/2 200 OK\r\n\r\n",
        "http/1.1 200 OK\r\n\r\n",
        "HTTP/1.1  200 OK\r\n\r\n",
        "HTTP/1.1 20 OK\r\n\r\n",
        "HTTP/1.1 2000 OK\r\n\r\n",
        "HTTP/1.1 099 OK\r\n\r\n",
        "HTTP/1.x 200 OK\r\n\r\n",
        "garbage",
        "\r\n\r\n",
    ] {
        refuse(input, Fault::StatusLine);
    }
    for field in [
        "no colon",
        " folded: x",
        ": x",
        "na me: x",
        "name : x",
        "X: a\rb",
        "X: a\0b",
    ] {
        refuse(
            &format!("HTTP/1.1 200 OK\r\nA: b\r\n{field}\r\n\r\n"),
            Fault::FieldLine,
        );
    }
    refuse(
        "HTTP/1.1 200 OK\nContent-Length: 0\n\n",
        Fault::BareLineFeed,
    );
    refuse(
        "HTTP/1.1 200 OK\r\nContent-Length: 0\n\r\n\r\n",
        Fault::BareLineFeed,
    );
}

#[test]
fn refuses_bytes_nobody_asked_for() {
    refuse(
        "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nxy",
        Fault::Unasked,
    );
    let mut connection = Connection::asking(0, &[]);
    assert_eq!(connection.receive(b"H"), Err(Fault::Unasked));
}

#[test]
fn refuses_a_head_without_end() {
    let mut connection = Connection::asking(1, &[]);
    connection
        .receive(b"HTTP/1.1 200 OK\r\nX: ")
        .expect("a beginning");
    let mut n_sent = 20;
    let fault = loop {
        assert!(n_sent < 2 * HEAD_BYTES_MAX, "never refused");
        match connection.receive(&[b'x'; 1_000]) {
            Ok(()) => n_sent += 1_000,
            Err(fault) => break fault,
        }
    };
    assert_eq!(fault, Fault::HeadTooLong);
}

#[test]
fn remembered_heads_keep_their_own_meaning() {
    let heads: Vec<String> = (0..10)
        .map(|length| format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n"))
        .collect();
    let mut connection = Connection::asking(40, &[]);
    for round in 0..4 {
        for (length, head) in heads.iter().enumerate() {
            let body = "b".repeat(length);
            connection
                .receive(format!("{head}{body}").as_bytes())
                .expect("well formed");
            let (ticket, .., read) = connection.heard.complete.last().expect("complete");
            assert_eq!(
                (usize::from(*ticket), read.len()),
                (round * 10 + length, length)
            );
        }
    }
}

#[test]
fn skipped_bytes_count_as_body() {
    let mut connection = Connection::asking(2, &[]);
    connection
        .receive(b"HTTP/1.1 200 OK\r\nContent-Length: 8\r\n\r\nabc")
        .expect("a beginning");
    assert_eq!(connection.wire.skippable(), 5);
    connection.wire.skip(4, &mut connection.heard);
    connection
        .receive(b"zHTTP/1.1 204 \r\n\r\n")
        .expect("the end");
    let expected = [
        (0, 200, false, b"abc????z".to_vec()),
        (1, 204, false, Vec::new()),
    ];
    assert_eq!(connection.heard.complete, expected);
}

#[test]
fn chunked_bodies_and_heads_are_never_skippable() {
    let mut connection = Connection::asking(1, &[]);
    assert_eq!(connection.wire.skippable(), 0);
    connection
        .receive(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhe")
        .expect("a beginning");
    assert_eq!(connection.wire.skippable(), 0);
}

#[test]
fn requests_have_the_fields_they_need_and_no_others() {
    let request = |method: &str, headers: &[(&str, &str)], body: &str| Request {
        method: method.to_owned(),
        target: "/a?b=c".to_owned(),
        authority: "host:1".to_owned(),
        headers: headers
            .iter()
            .map(|(n, v)| ((*n).to_owned(), (*v).to_owned()))
            .collect(),
        body: body.as_bytes().to_vec(),
        is_chunked: false,
    };
    let chunked = |body: &str| Request {
        is_chunked: true,
        ..request("POST", &[], body)
    };
    for (request, keep_alive, expected) in [
        (
            chunked("a body of 20 bytes.."),
            true,
            "POST /a?b=c HTTP/1.1\r\nHost: host:1\r\nTransfer-Encoding: chunked\r\n\r\n\
             14\r\na body of 20 bytes..\r\n0\r\n\r\n",
        ),
        (
            chunked(""),
            true,
            "POST /a?b=c HTTP/1.1\r\nHost: host:1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        ),
        (
            request("GET", &[], ""),
            true,
            "GET /a?b=c HTTP/1.1\r\nHost: host:1\r\n\r\n",
        ),
        (
            request("GET", &[("host", "x"), ("A", "b")], ""),
            false,
            "GET /a?b=c HTTP/1.1\r\nhost: x\r\nA: b\r\nConnection: close\r\n\r\n",
        ),
        (
            request("POST", &[], "xyz"),
            true,
            "POST /a?b=c HTTP/1.1\r\nHost: host:1\r\nContent-Length: 3\r\n\r\nxyz",
        ),
        (
            request("PUT", &[("Connection", "x")], ""),
            false,
            "PUT /a?b=c HTTP/1.1\r\nHost: host:1\r\nConnection: x\r\nContent-Length: 0\r\n\r\n",
        ),
    ] {
        let bytes = encode(&request, keep_alive);
        assert_eq!(std::str::from_utf8(&bytes).expect("ASCII"), expected);
    }
}
