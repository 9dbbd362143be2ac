//! Windows: what is held back on either side, and that all of it comes through.

use alloc::format;
use alloc::vec;

use citius_http::{Action, Fault, Fields, Limits, Payload};

use super::client::{Client, raw, response};

const WINDOW: usize = 65_535;

#[test]
fn a_body_nobody_wants_waits() {
    let mut client = Client::new();
    client.post(1);
    assert_eq!(client.data(1, b"abcdef", true), "");
    assert_eq!(client.want(1, 2), "held 1 ab");
    assert_eq!(client.want(1, 2), "held 1 cd");
    assert_eq!(client.want(1, 9), "held 1 ef; end 1");
}

#[test]
fn what_is_wanted_in_part_is_split() {
    let mut client = Client::new();
    client.post(1);
    client.want(1, 4);
    assert_eq!(client.data(1, b"abcdef", false), "data 1 abcd");
    assert_eq!(client.want(1, 1), "held 1 e");
    assert_eq!(client.data(1, b"gh", true), "");
    assert_eq!(client.want(1, u64::MAX), "held 1 fgh; end 1");
}

#[test]
fn windows_open_again_as_bodies_are_taken() {
    let mut client = Client::new();
    client.post(1);
    client.want(1, u64::MAX);
    let mut opened = 0;
    for _ in 0..64 {
        client.data(1, &[0; 16_000], false);
        opened += client.read().matches("WINDOW_UPDATE 1 ").count();
        assert_eq!(client.connection.fault(), None);
    }
    assert!((16..=33).contains(&opened), "not for every frame: {opened}");
}

#[test]
fn a_client_that_sends_more_than_it_may_is_stopped() {
    let mut client = Client::new();
    client.post(1);
    for _ in 0..4 {
        client.data(1, &[0; 16_384], false);
        assert_eq!(client.read(), "");
    }
    assert_eq!(client.data(1, b"x", false), "broken 1 FlowControl");
    assert!(client.read().starts_with("RST_STREAM 1 3"));
    let limits = Limits {
        h2_window_bytes: 100_000,
        ..Limits::default()
    };
    let mut client = Client::with(limits);
    client.post(1);
    client.post(3);
    for id in [1, 1, 1, 1, 3, 3, 3] {
        client.data(id, &[0; 16_384], false);
    }
    assert_eq!(client.connection.fault(), Some(Fault::FlowControl));
}

#[test]
fn padding_counts_and_is_given_back() {
    let mut client = Client::new();
    client.post(1);
    client.want(1, u64::MAX);
    for _ in 0..1000 {
        assert_eq!(
            client.frame(0, 8, 1, &[&[255, b'x'][..], &[0; 255]].concat()),
            "data 1 x"
        );
        client.read();
    }
    assert_eq!(client.connection.fault(), None);
}

#[test]
fn answers_wait_for_their_windows() {
    let mut client = Client::new();
    client.get(1);
    client.get(3);
    client.respond(1, 200, &vec![b'x'; WINDOW + 10]);
    let text = client.read();
    assert_eq!(text.matches("DATA 1 \"16384 bytes\"").count(), 3, "{text}");
    assert!(text.ends_with("DATA 1 \"16383 bytes\""), "{text}");
    client.respond(3, 200, b"also waits: the connection's window is used up");
    assert!(!client.read().contains("DATA"));
    client.open_window(0, 5);
    assert_eq!(client.read(), "DATA 3 \"also \"");
    client.open_window(1, 100);
    client.open_window(0, 1000);
    assert_eq!(
        client.read(),
        "DATA 1 \"xxxxxxxxxx\" end; DATA 3 \"41 bytes\" end"
    );
    assert_eq!(client.connection.streams_open(), 0);
}

#[test]
fn an_empty_end_needs_no_window() {
    let mut client = Client::new();
    client.frame(4, 0, 0, b"\0\x04\0\0\0\0");
    client.read();
    client.get(1);
    client.act(1, Action::Start(response(200, &Fields::EMPTY)));
    client.act(
        1,
        Action::End {
            trailers: &Fields::EMPTY,
        },
    );
    assert!(client.read().ends_with("DATA 1 \"\" end"));
    client.get(3);
    client.respond(3, 200, b"abc");
    assert!(!client.read().contains("DATA"));
    client.frame(4, 0, 0, b"\0\x04\0\0\0\x02");
    assert_eq!(client.read(), "SETTINGS ack; DATA 3 \"ab\"");
    client.frame(4, 0, 0, b"\0\x04\0\0\0\x01");
    client.open_window(3, 1);
    assert_eq!(client.read(), "SETTINGS ack", "the window was below zero");
    client.open_window(3, 1);
    assert_eq!(client.read(), "DATA 3 \"c\" end");
}

#[test]
fn a_window_opened_too_far_ends_what_it_belongs_to() {
    let mut client = Client::new();
    client.get(1);
    assert_eq!(
        client.frame(8, 0, 1, &[0x7f, 0xff, 0xff, 0xff]),
        "broken 1 FlowControl"
    );
    assert_eq!(client.read(), "RST_STREAM 1 3");
    client.get(3);
    assert_eq!(client.frame(8, 0, 3, &[0; 4]), "broken 3 FrameSequence");
    client.frame(8, 0, 0, &[0x7f, 0xff, 0xff, 0xff]);
    assert_eq!(client.connection.fault(), Some(Fault::FlowControl));
}

#[test]
fn whoever_streams_is_told_when_there_is_room() {
    let mut client = Client::new();
    client.get(1);
    client.act(1, Action::Start(response(200, &Fields::EMPTY)));
    let mut n_bytes = 0;
    while client.connection.write_capacity(1, &client.limits) > 0 {
        client.act(1, Action::Data(Payload::Copied(&[b'x'; 10_000])));
        client.read();
        n_bytes += 10_000;
    }
    assert!((120_000..=150_000).contains(&n_bytes), "{n_bytes}");
    client.open_window(0, 1_000_000);
    client.open_window(1, 1_000_000);
    client.read();
    assert!(client.connection.write_capacity(1, &client.limits) > 0);
}

#[test]
fn large_bodies_are_kept_by_reference() {
    let mut client = Client::new();
    client.open_window(0, 10_000_000);
    client.frame(4, 0, 0, b"\0\x04\0\x80\0\0");
    client.read();
    client.get(1);
    let body = bytes::Bytes::from(vec![b'x'; 1_000_000]);
    let range = body.as_ptr_range();
    client.act(
        1,
        Action::Respond(response(200, &Fields::EMPTY), Payload::Shared(body.clone())),
    );
    let n_shared = client
        .out
        .pieces()
        .filter(|piece| range.contains(&piece.as_ptr()))
        .count();
    assert_eq!(
        n_shared, 4,
        "as much as the output takes ahead of the socket"
    );
    let text = client.read();
    assert_eq!(text.matches("16384 bytes").count(), 1_000_000 / 16_384);
    assert!(text.ends_with(&format!("\"{} bytes\" end", 1_000_000 % 16_384)));
}

#[test]
fn frames_of_unknown_types_are_skipped() {
    let mut client = Client::new();
    client.feed(&raw(0xaa, 0xff, 7, &[0; 5000]));
    client.feed(&raw(0xaa, 0, 0, b"")[..5]);
    client.feed(&raw(0xaa, 0, 0, b"")[5..]);
    assert_eq!(client.get(1), "GET 1 / end");
}
