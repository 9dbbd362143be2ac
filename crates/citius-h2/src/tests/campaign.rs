//! Arbitrary frames, cuts and responses: nothing panics, no cut shows, nothing hangs, windows are kept.

use alloc::string::String;
use alloc::vec::Vec;

use citius_http::{Action, Fields, Payload};

use super::client::{Client, raw, response, with};
use crate::frame;

/// xorshift64*.
struct Rng(u64);

impl Rng {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        let roll = self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33;
        usize::try_from(roll).unwrap() % bound
    }
}

/// Frames of a client that is sometimes mistaken, behind a preface.
fn compose(rng: &mut Rng) -> Vec<u8> {
    let mut client = Client::new();
    let mut bytes = frame::PREFACE.to_vec();
    frame::settings(&mut bytes, &[]);
    frame::settings_ack(&mut bytes);
    let mut id = 1u32;
    for _ in 0..=rng.below(12) {
        let any = |rng: &mut Rng| u32::try_from(rng.below(12)).unwrap();
        match rng.below(16) {
            0..=3 => {
                bytes.extend(client.head(id, "GET", &[], true));
                id += 2;
            }
            4..=6 => {
                bytes.extend(client.head(id, "POST", &[], false));
                for _ in 0..rng.below(4) {
                    bytes.extend(raw(0, 0, id, &[b'x'; 50][..rng.below(50)]));
                }
                bytes.extend(raw(0, 1, id, b"end"));
                id += 2;
            }
            7 => bytes.extend(raw(8, 0, any(rng), &[0, 0, 1, 0])),
            8 => bytes.extend(raw(
                4,
                0,
                0,
                &[0, 4, 0, 0, 0, u8::try_from(rng.below(256)).unwrap()],
            )),
            9 => bytes.extend(raw(3, 0, any(rng), &[0, 0, 0, 8])),
            10 => bytes.extend(raw(6, 0, 0, b"12345678")),
            11 => bytes.extend(raw(0, 8, any(rng), &[3, b'a', 0, 0, 0])),
            12 => bytes.extend(raw(0x55, 0, any(rng), &[7; 30])),
            13 => {
                let head = client.head(id, "PUT", &[("content-length", "2")], false);
                let (block, at) = (&head[9..], rng.below(head.len() - 9));
                bytes.extend(raw(1, 0, id, &block[..at]));
                bytes.extend(raw(9, 4, id, &block[at..]));
                bytes.extend(raw(0, 1, id, b"ab"));
                id += 2;
            }
            14 => {
                let kind = u8::try_from(rng.below(18)).unwrap();
                let flags = u8::try_from(rng.below(256)).unwrap();
                bytes.extend(raw(kind, flags, any(rng), &[1; 20][..rng.below(20)]));
            }
            _ => {
                let at = rng.below(bytes.len());
                bytes[at] ^= 1 << rng.below(8);
            }
        }
    }
    bytes
}

fn events_of(told: &str) -> Vec<String> {
    let events = told.split("; ").filter(|event| !event.is_empty());
    events.map(String::from).collect()
}

/// A response at once, or for every third request in pieces.
fn respond(client: &mut Client, id: u32) {
    if !id.is_multiple_of(3) {
        return client.respond(id, 200, b"Welcome!\n");
    }
    let trailers = &Fields::EMPTY;
    client.act(id, Action::Start(response(200, &Fields::EMPTY)));
    client.act(id, Action::Data(Payload::Copied(&[b'x'; 300])));
    client.act(id, Action::End { trailers });
}

/// What was seen and written, however the input was cut.
fn run(input: &[u8], mut pieces: impl FnMut() -> usize, responses: bool) -> (String, String) {
    let mut client = Client::silent(citius_http::Limits::default());
    let (mut seen, mut rest) = (Vec::new(), input);
    while !rest.is_empty() {
        let (piece, after) = rest.split_at(pieces().clamp(1, rest.len()));
        rest = after;
        seen.extend(events_of(&client.feed(piece)));
    }
    let requests: Vec<u32> = seen
        .iter()
        .filter(|event| {
            ["GET", "POST", "PUT"]
                .iter()
                .any(|method| event.starts_with(method))
        })
        .filter_map(|event| event.split(' ').nth(1)?.parse().ok())
        .collect();
    for id in requests.into_iter().filter(|_| responses) {
        seen.extend(events_of(&client.want(id, u64::MAX)));
        respond(&mut client, id);
    }
    let mut written = client.read();
    let broken = with!(&mut client, |connection, cx, out| connection
        .receive_eof(cx, out));
    seen.extend(broken.map(super::client::spell));
    let mut patience = 0;
    while let Some(at) = client.connection.deadline(&client.limits) {
        seen.extend(events_of(&client.wait(at.saturating_sub(client.now))));
        written += &client.read();
        patience += 1;
        assert!(patience < 100, "deadlines without end");
    }
    // Held pieces are as long as what came at once: only their sum counts.
    let told = seen
        .iter()
        .filter(|event| !event.starts_with("data") && !event.starts_with("held"));
    let told: Vec<&str> = told.map(String::as_str).collect();
    (told.join("; "), written)
}

#[test]
fn no_cut_shows_and_nothing_hangs() {
    for seed in 1..1500u64 {
        let input = compose(&mut Rng(seed));
        for responses in [false, true] {
            let whole = run(&input, || usize::MAX, responses);
            let bytes = run(&input, || 1, responses);
            assert_eq!(whole, bytes, "seed {seed}, byte by byte");
            let mut rng = Rng(seed);
            let random = run(&input, || 1 + rng.below(40), responses);
            assert_eq!(whole, random, "seed {seed}, at random");
        }
    }
}

#[test]
fn bytes_without_sense_do_no_harm() {
    for seed in 1..500u64 {
        let mut rng = Rng(seed);
        let mut input = frame::PREFACE.to_vec();
        frame::settings(&mut input, &[]);
        input.extend((0..200).map(|_| u8::try_from(rng.below(256)).unwrap()));
        let whole = run(&input, || usize::MAX, true);
        assert_eq!(whole, run(&input, || 1, true), "seed {seed}");
    }
}
