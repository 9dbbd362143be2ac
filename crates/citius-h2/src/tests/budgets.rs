//! Each abuse: tolerated within its limit, and the end of the connection beyond.

use alloc::format;
use alloc::vec;
use alloc::vec::Vec;

use citius_http::{Closing, Fault, Fields, Limits};

use super::client::{Client, raw};
use crate::frame;

/// Repeats frames that only cost until the connection ends; returns how often they were tolerated.
#[track_caller]
fn endure(client: &mut Client, abuse: impl FnMut(&mut Client, u32)) -> u32 {
    endure_until(Fault::ExcessiveLoad, client, abuse)
}

/// As [`endure`], of requests that are reset.
#[track_caller]
fn endure_resets(client: &mut Client, abuse: impl FnMut(&mut Client, u32)) -> u32 {
    endure_until(Fault::ExcessiveResets, client, abuse)
}

#[track_caller]
fn endure_until(fault: Fault, client: &mut Client, mut abuse: impl FnMut(&mut Client, u32)) -> u32 {
    for n in 0..10_000 {
        abuse(client, n);
        client.read();
        if client.connection.closing().is_some() {
            assert_eq!(client.connection.fault(), Some(fault));
            assert_eq!(client.connection.closing(), Some(Closing::Linger));
            assert_eq!(client.connection.streams_open(), 0);
            return n;
        }
    }
    panic!("endured for ever");
}

fn limits() -> Limits {
    Limits {
        h2_resets_max: 20,
        h2_idle_frames_max: 50,
        ..Limits::default()
    }
}

#[test]
fn rapid_reset() {
    let mut client = Client::with(limits());
    let n = endure_resets(&mut client, |client, n| {
        client.get(2 * n + 1);
        client.frame(3, 0, 2 * n + 1, &[0, 0, 0, 8]);
    });
    assert_eq!(n, 20);
}

#[test]
fn rapid_reset_is_forgiven_with_time() {
    let mut client = Client::with(limits());
    for n in 0..200 {
        client.get(2 * n + 1);
        client.frame(3, 0, 2 * n + 1, &[0, 0, 0, 8]);
        client.wait(1000);
        client.read();
    }
    assert_eq!(client.connection.closing(), None);
}

/// issue 32 E2: curl 7.88 resets every stream of which it has read the response.
#[test]
fn resets_of_streams_that_are_over_are_no_abuse() {
    let mut client = Client::with(limits());
    for n in 0..200 {
        client.get(2 * n + 1);
        client.respond(2 * n + 1, 200, b"ok");
        client.frame(3, 0, 2 * n + 1, &[0, 0, 0, 5]);
        client.read();
    }
    assert_eq!(client.connection.closing(), None);
    let mut client = Client::with(limits());
    client.get(1);
    client.respond(1, 204, b"");
    let n = endure(&mut client, |client, _| {
        drop(client.frame(3, 0, 1, &[0, 0, 0, 5]));
    });
    assert_eq!(n, 51, "the request has paid for three");
}

#[test]
fn a_response_that_waits_is_not_over() {
    let mut client = Client::with(limits());
    client.frame(4, 0, 0, b"\0\x04\0\0\0\0");
    let n = endure_resets(&mut client, |client, n| {
        client.get(2 * n + 1);
        client.respond(2 * n + 1, 200, b"ok");
        client.frame(3, 0, 2 * n + 1, &[0, 0, 0, 8]);
    });
    assert_eq!(n, 20);
}

/// The users of a proxy, of whom some leave.
#[test]
fn resets_of_less_than_half_of_the_requests_are_no_abuse() {
    let mut client = Client::with(limits());
    for n in 0..600 {
        client.get(2 * n + 1);
        if n % 3 == 0 {
            client.frame(3, 0, 2 * n + 1, &[0, 0, 0, 8]);
        } else {
            client.respond(2 * n + 1, 200, b"ok");
        }
        client.read();
    }
    assert_eq!(client.connection.closing(), None);
    // 600 requests have paid for 300 resets, and so does every second request.
    let n = endure_resets(&mut client, |client, n| {
        client.get(2 * n + 1201);
        client.frame(3, 0, 2 * n + 1201, &[0, 0, 0, 8]);
    });
    assert!((199..=201).contains(&n), "{n}");
}

#[test]
fn made_you_reset() {
    let ways: [fn(&mut Client, u32); 4] = [
        |client, id| {
            client.get(id);
            client.frame(8, 0, id, &[0; 4]);
        },
        |client, id| {
            client.get(id);
            client.data(id, b"x", false);
        },
        |client, id| {
            client.get(id);
            client.frame(8, 0, id, &[0x7f, 0xff, 0xff, 0xff]);
        },
        |client, id| {
            let head = client.head(id, "GET", &[("te", "x")], true);
            client.feed(&head);
        },
    ];
    for way in ways {
        let mut client = Client::with(limits());
        assert_eq!(
            endure_resets(&mut client, |client, n| way(client, 2 * n + 1)),
            20
        );
    }
}

#[test]
fn more_streams_than_allowed() {
    let mut limits = limits();
    limits.h2_streams_max = 3;
    let mut client = Client::with(limits);
    for id in [1, 3, 5] {
        assert_ne!(client.get(id), "");
    }
    assert_eq!(client.get(7), "");
    assert_eq!(client.read(), "RST_STREAM 7 7");
    client.respond(3, 204, b"");
    assert_ne!(client.get(9), "");
    assert_eq!(
        endure_resets(&mut client, |client, n| drop(client.get(2 * n + 11))),
        19
    );
}

#[test]
fn continuation_flood() {
    let mut client = Client::new();
    client.feed(&raw(1, 0, 1, b"\x82"));
    let n = endure(&mut client, |client, _| drop(client.frame(9, 0, 1, b"")));
    assert_eq!(n, Limits::default().h2_continuations_max);
    let mut client = Client::new();
    client.feed(&raw(1, 0, 1, b"\x82"));
    let n = endure(&mut client, |client, _| {
        drop(client.frame(9, 0, 1, &[0; 16_384]));
    });
    assert_eq!(n, Limits::default().h2_continuations_max, "each is a frame");
}

#[test]
fn continuations_within_the_limit_are_a_head() {
    let mut client = Client::new();
    let bytes = client.head(1, "GET", &[], true);
    let block = &bytes[9..];
    client.feed(&raw(1, 1, 1, &block[..1]));
    client.feed(&raw(9, 0, 1, &block[1..2]));
    assert_eq!(client.feed(&raw(9, 4, 1, &block[2..])), "GET 1 / end");
}

/// "servers B7": one client's cookies behind a proxy that multiplexes.
#[test]
fn a_section_that_is_too_large_ends_no_neighbour() {
    let mut client = Client::new();
    client.get(1);
    let cookies: Vec<_> = (0..170)
        .map(|n| format!("{n}={}", "v".repeat(1500)))
        .collect();
    let own = [
        (":method", "GET"),
        (":scheme", "http"),
        (":path", "/"),
        (":authority", "b"),
    ];
    let fields: Vec<_> = own
        .into_iter()
        .chain(cookies.iter().map(|value| ("cookie", value.as_str())))
        .collect();
    let block = client.block(&fields);
    let mut frames = block.chunks(16_384).peekable();
    let first = frames.next().expect("a frame");
    client.feed(&raw(1, 1, 3, first));
    let mut n = 0;
    while let Some(next) = frames.next() {
        n += 1;
        let ends = if frames.peek().is_none() { 4 } else { 0 };
        assert_eq!(client.feed(&raw(9, ends, 3, next)), "");
    }
    assert_eq!(n, Limits::default().h2_continuations_max - 1);
    assert!(client.read().starts_with("HEADERS 3 :status=431"));
    client.respond(1, 200, b"still here");
    assert!(client.read().ends_with("\"still here\" end"));
    assert_eq!(
        client.get(5),
        "GET 5 / end",
        "the table is what it has to be"
    );
}

#[test]
fn hpack_bomb() {
    let mut client = Client::new();
    let value = "v".repeat(4000);
    let mut block = client.block(&[
        (":method", "GET"),
        (":scheme", "http"),
        (":path", "/"),
        (":authority", "a"),
    ]);
    block.extend(client.block(&[("x", &value)]));
    // One byte each: the field just said, twelve thousand times.
    block.extend(vec![0xbe; 12_000]);
    let mut bytes = Vec::new();
    frame::headers(&mut bytes, 1, &block, true);
    assert_eq!(client.feed(&bytes), "");
    assert!(client.read().starts_with("HEADERS 1 :status=431"));
    assert_eq!(client.get(3), "GET 3 / end");
}

#[test]
fn floods_of_frames_that_only_cost() {
    type Frame = (u8, u8, u32, &'static [u8]);
    let frames: [Frame; 7] = [
        (4, 0, 0, b""),
        (4, 0, 0, b"\0\x04\0\0\0\x01"),
        (6, 0, 0, b"12345678"),
        (2, 0, 9, b"\0\0\0\0\0"),
        (16, 0, 0, b"\0\0\0\x01u=1"),
        (0xbb, 0, 0, b""),
        (8, 0, 0, b"\0\0\0\x01"),
    ];
    for (kind, flags, stream, payload) in frames {
        let mut client = Client::with(limits());
        let n = endure(&mut client, |client, _| {
            drop(client.frame(kind, flags, stream, payload));
        });
        // The settings of the greeting are two of them.
        assert_eq!(n, 48, "{kind}");
    }
    let mut client = Client::with(limits());
    client.post(1);
    assert_eq!(
        endure(&mut client, |client, _| drop(client.data(1, b"", false))),
        48
    );
}

#[test]
fn small_window_dribble() {
    let mut client = Client::with(limits());
    client.frame(4, 0, 0, b"\0\x04\0\0\0\0");
    client.get(1);
    client.respond(1, 200, &vec![b'x'; 60_000]);
    let n = endure(&mut client, |client, _| client.open_window(1, 1));
    // The request itself has paid for the first three.
    assert_eq!(n, 50);
    let mut client = Client::with(limits());
    client.frame(4, 0, 0, b"\0\x04\0\0\0\0");
    client.get(1);
    client.respond(1, 200, &vec![b'x'; 60_000]);
    for _ in 0..58 {
        client.open_window(1, 1024);
        client.read();
    }
    assert_eq!(
        client.connection.closing(),
        None,
        "windows that let something through are welcome"
    );
}

#[test]
fn zero_window_stall() {
    let mut client = Client::new();
    client.frame(4, 0, 0, b"\0\x04\0\0\0\0");
    client.get(1);
    client.respond(1, 200, b"abc");
    let stall = client.limits.write_stall_ms;
    assert_eq!(client.wait(stall - 1), "");
    client.read();
    assert_eq!(
        client.wait(1),
        "broken 1 StreamStalled",
        "not for the application, which is done with it, but for the log"
    );
    assert_eq!(client.read(), "RST_STREAM 1 11");
    assert_eq!(client.connection.closing(), None);
    client.get(3);
    client.act(
        3,
        citius_http::Action::Start(super::client::response(200, &Fields::EMPTY)),
    );
    client.act(
        3,
        citius_http::Action::Data(citius_http::Payload::Copied(b"abc")),
    );
    assert_eq!(client.wait(stall), "broken 3 StreamStalled");
}

#[test]
fn a_trickle_is_not_enough() {
    let mut client = Client::new();
    client.frame(4, 0, 0, b"\0\x04\0\0\0\0");
    client.get(1);
    client.respond(1, 200, &vec![b'x'; 60_000]);
    let stall = client.limits.write_stall_ms;
    client.open_window(1, 1024);
    client.read();
    client.wait(stall);
    assert_eq!(client.read(), "");
    client.open_window(1, 1023);
    client.read();
    client.wait(stall);
    assert_eq!(client.read(), "RST_STREAM 1 11");
}

#[test]
fn the_whole_connection_stalls() {
    let mut client = Client::new();
    client.get(1);
    client.respond(1, 200, &vec![b'x'; 70_000]);
    client.open_window(1, 100_000);
    client.read();
    let stall = client.limits.write_stall_ms;
    client.wait(stall);
    client.wait(stall);
    assert_eq!(client.connection.fault(), Some(Fault::StreamStalled));
    assert_eq!(client.read(), "GOAWAY 1 11");
}
