use super::{Huffman, Response, encode, frame, prefixed, read_section};
use crate::request::Request;
use crate::wire::{Answers, Failure, Fault, Ticket};

/// What was told.
#[derive(Debug, Default, PartialEq)]
struct Heard {
    status: Option<u16>,
    body: Vec<u8>,
    is_head: bool,
}

impl Answers for Heard {
    fn is_head(&self, _ticket: Ticket) -> bool {
        self.is_head
    }
    fn begin(&mut self, _ticket: Ticket, status: u16, _closing: bool) {
        assert_eq!(self.status, None, "one head");
        self.status = Some(status);
    }
    fn body(&mut self, _ticket: Ticket, bytes: &[u8]) {
        self.body.extend_from_slice(bytes);
    }
    fn unseen(&mut self, _ticket: Ticket, _n_bytes: u64) {
        unreachable!("nothing is skipped");
    }
    fn complete(&mut self, _ticket: Ticket) {
        unreachable!("the stream's end completes");
    }
    fn fail(&mut self, _ticket: Ticket, _failure: Failure) {
        unreachable!("the stream's reset fails");
    }
    fn deliver(&mut self, _due_ns: Option<u64>, _n_bytes: u64) {
        unreachable!("HTTP delivers answers only");
    }
    fn release(&mut self, _ticket: Ticket) {
        unreachable!("HTTP answers every request");
    }
}

fn read(pieces: &[&[u8]], is_head: bool) -> Result<(Heard, bool), Fault> {
    let (mut response, huffman) = (Response::default(), Huffman::default());
    let mut heard = Heard {
        is_head,
        ..Heard::default()
    };
    for piece in pieces {
        response.receive(&huffman, 0, piece, &mut heard)?;
    }
    Ok((heard, response.is_complete()))
}

fn frames(frames: &[(u64, &[u8])]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for (kind, payload) in frames {
        frame(&mut bytes, *kind, payload);
    }
    bytes
}

/// `:status: 200`, `content-length: 5` as a literal.
const HEAD: &[u8] = b"\x00\x00\xd9\x54\x015";

#[test]
fn an_answer_is_read_at_every_cut() {
    let bytes = frames(&[
        (1, b"\x00\x00\xff\x00"),
        (1, HEAD),
        (0x21, b"unknown"),
        (0, b"hel"),
        (0, b"lo"),
        (1, b"\x00\x00\x21t\x01u"),
    ]);
    for cut in 0..=bytes.len() {
        let (heard, is_complete) = read(&[&bytes[..cut], &bytes[cut..]], false).expect("an answer");
        assert_eq!(
            (heard.status, heard.body.as_slice()),
            (Some(200), &b"hello"[..])
        );
        assert!(is_complete, "cut at {cut}");
    }
    let single: Vec<&[u8]> = bytes.chunks(1).collect();
    assert!(read(&single, false).is_ok_and(|(_, is_complete)| is_complete));
    for cut in 1..bytes.len() {
        let read = read(&[&bytes[..cut]], false).expect("the start of an answer");
        // Only behind the last byte of the body, and behind the trailers, may it end.
        let n_trailers = frames(&[(1, b"\x00\x00\x21t\x01u")]).len();
        assert_eq!(read.1, cut == bytes.len() - n_trailers, "ends at {cut}");
    }
}

#[test]
fn answers_against_the_rules() {
    for (bytes, fault) in [
        (frames(&[(0, b"x")]), Fault::Frame),
        (frames(&[(4, b"")]), Fault::Frame),
        (frames(&[(1, b"\x02\x00\x80")]), Fault::Hpack),
        (frames(&[(1, b"\x00\x00\x80")]), Fault::Hpack),
        (
            frames(&[(1, b"\x00\x00\x5f\x09\x03abc")]),
            Fault::StatusLine,
        ),
        (frames(&[(1, b"\x00\x00\xd9\x54\x01x")]), Fault::BodyLength),
        (
            frames(&[(1, b"\x00\x00\xd9\x54\x011\x54\x012")]),
            Fault::BodyLength,
        ),
        (frames(&[(1, b"\x00\x00\x54\x011")]), Fault::StatusLine),
        (frames(&[(1, HEAD), (1, HEAD)]), Fault::Frame),
        (b"\x01\x80\xff\xff\xff".to_vec(), Fault::HeadTooLong),
    ] {
        assert_eq!(read(&[&bytes], false).err(), Some(fault), "{bytes:?}");
    }
    let short = frames(&[(1, HEAD), (0, b"four")]);
    assert!(read(&[&short], false).is_ok_and(|(_, is_complete)| !is_complete));
    let head = frames(&[(1, HEAD)]);
    assert!(
        read(&[&head], true).is_ok_and(|(_, is_complete)| is_complete),
        "HEAD has no body"
    );
}

#[test]
fn statuses_of_the_static_table_and_coded_ones() {
    let huffman = Huffman::default();
    for (section, status, length) in [
        (&b"\x00\x00\xd8"[..], 103, None),
        (b"\x00\x00\xff\x08\xc4", 500, Some(0)),
        (b"\x00\x00\x5f\x09\x03599", 599, None),
        (b"\x00\x00\x5f\x09\x82\x10\x03", 201, None),
    ] {
        let head = read_section(&huffman, section).expect("a head");
        assert_eq!((head.status, head.length), (Some(status), length));
    }
}

#[test]
fn a_request_is_a_head_and_its_body() {
    let request = Request {
        method: "POST".into(),
        target: "/a".into(),
        authority: "b:1".into(),
        headers: vec![
            ("X-C".into(), "d".into()),
            ("Connection".into(), "close".into()),
        ],
        body: b"body".to_vec(),
        is_chunked: false,
    };
    let section = b"\x00\x00\xd4\xd7\x50\x03b:1\x51\x02/a\x23x-c\x01d\x54\x014";
    assert_eq!(encode(&request), frames(&[(1, section), (0, b"body")]));
}

#[test]
fn integers_of_several_bytes() {
    assert_eq!(prefixed(&mut &b"\xff\x9a\x0a"[..], 5), Some(1337));
    assert_eq!(prefixed(&mut &b"\xff\xff\xff\xff\xff\x0f"[..], 5), None);
}
