//! The fast paths against the slow ones: the last-header-block cache and the response template.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use citius_http::{Action, Event, FAST_PATHS, Fields, Payload, ResponseHead, Status};
use citius_testkit::rng::Rng;
use citius_testkit::variants::{self, Variant};

use super::client::{Client, raw, with};
use crate::frame::{self, END_HEADERS, END_STREAM};
use crate::hpack::{Encoder, Indexing};

/// One side of the comparison.
struct Side {
    client: Client,
    is_fast: bool,
    /// Everything that happened.
    seen: Vec<String>,
    written: Vec<u8>,
    n_recalled: usize,
    /// Without fields and with some.
    n_templates: [usize; 2],
}

impl Side {
    fn new(is_fast: bool) -> Self {
        Self {
            client: Client::new(),
            is_fast,
            seen: Vec::new(),
            written: Vec::new(),
            n_recalled: 0,
            n_templates: [0; 2],
        }
    }

    /// Has the slow side know nothing of what was before.
    fn forget(&mut self) {
        if !self.is_fast {
            self.client.connection.last_block = None;
            self.client.connection.templates = crate::response::Templates::default();
        }
    }

    /// Takes frames, and answers the requests that come of them.
    fn take(&mut self, bytes: &[u8], responses: &mut Rng) {
        let (mut input, mut streams) = (bytes, Vec::new());
        loop {
            self.forget();
            let event = with!(&mut self.client, |connection, cx, out| connection
                .receive(cx, &mut input, out));
            let Some(event) = event else { break };
            self.seen.push(format!("{event:?}"));
            if let Event::Request { stream, head, .. } = event {
                streams.push(stream);
                self.client.heads.give(head);
            }
        }
        let connection = &self.client.connection;
        let state = (connection.fault(), connection.closing(), input.len());
        self.seen.push(format!("{state:?}"));
        for stream in streams {
            self.respond(stream, responses);
        }
        self.written.extend(self.client.out.pieces().flatten());
        self.client.out.clear();
    }

    fn respond(&mut self, stream: u32, rng: &mut Rng) {
        self.forget();
        let mut fields = Fields::default();
        if rng.once_in(2) {
            let value: &[u8] = if rng.once_in(6) { b"c" } else { b"b" };
            fields.push(b"x-a", value).expect("a field");
        }
        let media: [&[u8]; 4] = [b"text/plain", b"text/plain", b"text/html", b"bad\r\n"];
        let n_media = if rng.once_in(10) { 4 } else { 3 };
        let media = media[rng.below(n_media)];
        let status = [200, 200, 200, 200, 404, 204, 304][rng.below(7)];
        let response = ResponseHead {
            status: Status::new(status).expect("a status"),
            content_type: (!rng.once_in(10)).then_some(media),
            fields: &fields,
        };
        let body = &b"Welcome!"[..[8, 8, 8, 0, 3][rng.below(5)]];
        let length = body.len() as u64;
        let (is_known, sent) = with!(&mut self.client, |connection, cx, out| {
            let generation = connection.encoder.generation();
            let is_known = response.content_type.is_some_and(|media| {
                let lines = fields.lines();
                let template = connection.templates.of(lines);
                template.is_for(cx, generation, media, lines, Some(length))
            });
            let action = Action::Respond(response, Payload::Copied(body));
            (is_known, connection.send(cx, stream, action, out))
        });
        let of_kind = usize::from(!fields.is_empty());
        self.n_templates[of_kind] += usize::from(is_known && status == 200);
        self.seen.push(format!("{sent:?}"));
    }
}

/// The field block of a request.
fn block_of(variant: &Variant, rng: &mut Rng, encoder: &mut Encoder) -> Vec<u8> {
    let mut block = Vec::new();
    encoder.begin(&mut block);
    let mut fields: Vec<(&[u8], &[u8])> = Vec::from([
        (&b":method"[..], &variant.method[..]),
        (b":scheme", b"http"),
        (b":path", &variant.target),
    ]);
    for (name, value) in &variant.fields {
        // Most names as a client of HTTP/2 would send them; a capital letter is a fault.
        fields.push(match &name[..] {
            b"Host" => (b":authority", value),
            b"Accept" | b"X-Long" => (b"accept", value),
            name => (name, value),
        });
    }
    let how = if rng.once_in(8) {
        Indexing::Once
    } else {
        Indexing::Keep
    };
    for (name, value) in fields {
        encoder.field(&mut block, name, value, how);
    }
    block
}

/// The frames of one request: with or without its end, whole or continued, now and then with settings before it.
fn frames_of(block: &[u8], id: u32, rng: &mut Rng) -> (Vec<u8>, bool) {
    let mut bytes = Vec::new();
    if rng.once_in(12) {
        let table_bytes = [0, 64, 4096][rng.below(3)];
        frame::settings(&mut bytes, &[(1, table_bytes)]);
    }
    let ends = if rng.once_in(6) { 0 } else { END_STREAM };
    if rng.once_in(8) {
        let at = rng.below(block.len());
        bytes.extend(raw(1, ends, id, &block[..at]));
        bytes.extend(raw(9, END_HEADERS, id, &block[at..]));
    } else {
        bytes.extend(raw(1, END_HEADERS | ends, id, block));
    }
    (bytes, ends != 0)
}

#[test]
fn fast_paths_come_to_the_same_as_slow_ones() {
    let (mut n_recalled, mut n_templates) = (0, [0; 2]);
    for seed in 0..1500 {
        let mut rng = Rng::new(seed);
        let (mut fast, mut slow) = (Side::new(true), Side::new(false));
        let mut encoder = Encoder::new();
        for (variant, id) in variants::run(&mut rng, 16).iter().zip((1..).step_by(2)) {
            let block = block_of(variant, &mut rng, &mut encoder);
            let (bytes, ends) = frames_of(&block, id, &mut rng);
            fast.n_recalled +=
                usize::from(fast.client.connection.cached_head(&block, ends).is_some());
            let responses = rng.next_u64();
            for side in [&mut fast, &mut slow] {
                side.take(&bytes, &mut Rng::new(responses));
            }
            assert_eq!(fast.seen, slow.seen, "seed {seed}, stream {id}");
            assert_eq!(fast.written, slow.written, "seed {seed}, stream {id}");
        }
        n_recalled += fast.n_recalled;
        for (sum, n) in n_templates.iter_mut().zip(fast.n_templates) {
            *sum += n;
        }
        assert_eq!(slow.n_templates, [0; 2], "slow means slow");
    }
    let taken = (n_recalled > 3000, n_templates.iter().all(|&n| n > 100));
    assert_eq!(
        taken,
        (FAST_PATHS, FAST_PATHS),
        "{n_recalled} {n_templates:?}"
    );
}
