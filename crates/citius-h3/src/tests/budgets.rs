//! What a client may cost without getting on: each abuse, and its bound (`budget`).

use alloc::vec::Vec;

use citius_http::{Fault, Limits};

use super::client::{Client, GET, bytes, data, frame, headers, section, with};

const EXCESSIVE_LOAD: Option<u64> = Some(0x107);

fn limited(change: impl FnOnce(&mut Limits)) -> Client {
    let mut limits = Limits::default();
    change(&mut limits);
    let mut client = Client::new(limits);
    client.greet();
    client
}

/// How often `act` is possible before the connection ends.
fn count(client: &mut Client, most: u64, mut act: impl FnMut(&mut Client, u64)) -> u64 {
    for n in 0..most {
        act(client, n);
        if client.closed.is_some() {
            return n;
        }
    }
    most
}

#[test]
fn rapid_resets_end_the_connection() {
    let mut client = limited(|_| {});
    let n_done = count(&mut client, 1000, |client, n| {
        client.request(4 * n, &GET);
        client.stop(4 * n);
    });
    assert_eq!((n_done, client.closed), (200, EXCESSIVE_LOAD));
    // A client that takes back a few every now and then goes on.
    let mut client = limited(|_| {});
    let n_done = count(&mut client, 1000, |client, n| {
        client.now += 100;
        client.request(4 * n, &GET);
        client.stop(4 * n);
    });
    assert_eq!((n_done, client.closed), (1000, None));
}

#[test]
fn provoked_resets_end_the_connection() {
    for request in [
        frame(1, &section(&[(":path", "/")])),
        [
            headers(&with("POST", &[("content-length", "1")])),
            data(b"12"),
        ]
        .concat(),
        frame(0x21, b""),
    ] {
        let mut client = limited(|_| {});
        let n_done = count(&mut client, 1000, |client, n| {
            client.bytes(4 * n, &request, true);
        });
        assert_eq!((n_done, client.closed), (200, EXCESSIVE_LOAD));
    }
    let mut client = limited(|limits| limits.h3_resets_max = 3);
    let n_done = count(&mut client, 10, |client, n| client.reset(4 * n));
    assert_eq!(n_done, 3, "streams of which nothing has come");
}

#[test]
fn more_requests_than_may_be_open_are_rejected() {
    let mut client = limited(|limits| limits.h3_streams_max = 2);
    for stream in [0, 4, 8] {
        client.request(stream, &GET);
    }
    assert_eq!(client.take_told().len(), 2);
    assert_eq!(client.response(8), "reset 0x10b stop 0x10b");
    client.respond(0, b"x");
    client.request(12, &GET);
    assert_eq!(client.take_told().len(), 1);
    // QUIC bounds the gap of numbers; so is it here.
    let mut client = limited(|_| {});
    client.request(4 * 100_000, &GET);
    assert_eq!(client.closed, EXCESSIVE_LOAD);
}

#[test]
fn idle_frames_end_the_connection() {
    let unknown = frame(0x21, b"x");
    let empty = data(b"");
    let priority = bytes("800f0700 04 00 753d31");
    let cases: [(&str, u64, Vec<u8>); 4] = [
        ("unknown frames", 0, unknown.clone()),
        ("empty data", 0, empty),
        ("unknown frames of the control stream", 2, unknown),
        ("priorities", 2, priority),
    ];
    for (why, stream, abuse) in cases {
        let mut client = limited(|_| {});
        client.bytes(0, &headers(&with("POST", &[])), false);
        let n_done = count(&mut client, 5000, |client, _| {
            client.bytes(stream, &abuse, false);
        });
        assert_eq!((n_done, client.closed), (2000, EXCESSIVE_LOAD), "{why}");
    }
    let mut client = limited(|_| {});
    let n_done = count(&mut client, 5000, |client, n| {
        client.bytes(6 + 4 * n, &bytes("4021"), true);
    });
    assert_eq!(
        (n_done, client.closed),
        (2000, EXCESSIVE_LOAD),
        "unknown streams"
    );
    let mut client = limited(|_| {});
    let n_done = count(&mut client, 5000, |client, n| {
        client.bytes(6 + 4 * n, &bytes("40"), false);
    });
    assert_eq!(
        (n_done, client.closed),
        (63, EXCESSIVE_LOAD),
        "streams that never say what they are"
    );
    let mut client = limited(|limits| limits.h3_budget_ms = 1000);
    client.bytes(0, &headers(&with("POST", &[])), false);
    let n_done = count(&mut client, 5000, |client, _| {
        client.now += 1;
        client.bytes(0, &data(b""), false);
    });
    assert_eq!(n_done, 5000, "counting starts anew");
}

#[test]
fn an_encoder_that_only_inserts_ends_the_connection() {
    let mut client = limited(|_| {});
    client.bytes(6, &bytes("02 3fe11f c00161"), false);
    let n_done = count(&mut client, 10_000, |client, _| {
        client.bytes(6, &[0], false);
    });
    assert_eq!(client.closed, EXCESSIVE_LOAD);
    assert_eq!(n_done, 1022 + 2000);
    // With requests it may.
    let mut client = limited(|_| {});
    client.bytes(6, &bytes("02 3fe11f c00161"), false);
    let n_done = count(&mut client, 1000, |client, n| {
        client.bytes(6, &[0; 100], false);
        client.request(4 * n, &GET);
        client.respond(u32::try_from(n).unwrap(), b"");
    });
    assert_eq!((n_done, client.closed), (1000, None));
}

#[test]
fn more_blocked_heads_than_were_allowed_end_the_connection() {
    let mut client = limited(|_| {});
    let blocked = frame(1, &bytes("0200 80"));
    let n_done = count(&mut client, 100, |client, n| {
        client.bytes(4 * n, &blocked, true);
    });
    assert_eq!(n_done, 16);
    assert_eq!(client.connection.fault(), Some(Fault::FieldCompression));
    let mut client = limited(|limits| limits.h3_blocked_streams_max = 0);
    client.bytes(0, &blocked, true);
    assert_eq!(client.closed, Some(0x200));
    // What a blocked head holds is bounded by its length, and nothing behind it is read.
    let mut client = limited(|_| {});
    client.bytes(0, &blocked, false);
    assert_eq!(client.connection.appetite(0), 0);
}

#[test]
fn the_table_is_as_large_as_was_agreed() {
    for (table_bytes, capacity, closed) in [
        (4096, "02 3fe11f", None),
        (4096, "02 3fe21f", Some(0x201)),
        (0, "02 3f01", Some(0x201)),
        (0, "02 20", None),
    ] {
        let mut client = limited(|limits| limits.h3_table_bytes = table_bytes);
        client.bytes(6, &bytes(capacity), false);
        assert_eq!(client.closed, closed, "{capacity}");
        // Without a table there is nothing to acknowledge, and no stream to do it on.
        assert_eq!(client.sent.contains_key(&7), table_bytes > 0);
    }
}

/// CVE-2025-64702, CVE-2026-40898, and 13 bytes that become 25 MB.
#[test]
fn bombs_in_heads_and_trailers_are_not_unpacked() {
    let mut client = limited(|_| {});
    let mut instructions = bytes("02 3fe11f 4178");
    citius_http::multiplexed::spelling::put_string(&mut instructions, 0, 7, &[b'v'; 4000]);
    client.bytes(6, &instructions, false);
    let get = section(&GET);
    let bomb = [
        &[2, 0][..],
        get.get(2..).unwrap(),
        &[0x80; 16_000],
        &[0x80; 14_000],
    ]
    .concat();
    client.bytes(0, &frame(1, &bomb), true);
    assert!(client.response(0).starts_with("[:status: 431;"));
    assert!(
        client.heads.take().bytes.capacity() <= 4096,
        "nothing of it is kept"
    );
    let trailers = [&[2, 0][..], &[0x80; 8000]].concat();
    client.bytes(
        4,
        &[headers(&with("POST", &[])), frame(1, &trailers)].concat(),
        true,
    );
    assert_eq!(
        client.take_told().last().unwrap(),
        "1 broken TrailersTooLong"
    );
    assert!(client.response(4).starts_with("[:status: 431;"));
    assert_eq!(client.closed, None);
    // A section that is too long by itself is not gathered.
    client.bytes(8, &[bytes("01 bfffffff")].concat(), false);
    assert!(client.response(8).starts_with("[:status: 431;"));
    client.bytes(
        12,
        &[headers(&with("POST", &[])), bytes("01 bfffffff")].concat(),
        false,
    );
    assert!(client.response(12).starts_with("[:status: 431;"));
    assert_eq!(client.closed, None);
}

/// CVE-2026-42530.
#[test]
fn an_encoder_stream_is_not_opened_again() {
    let mut client = limited(|_| {});
    client.bytes(6, &bytes("02 3fe11f"), false);
    client.bytes(10, &bytes("02"), false);
    assert_eq!(client.closed, Some(0x103));
    let mut client = limited(|_| {});
    client.bytes(6, &bytes("02 3fe11f"), false);
    client.reset(6);
    assert_eq!(client.closed, Some(0x104), "nor may it end");
}

#[test]
fn a_client_that_reads_no_acknowledgements_is_cut_off() {
    let mut client = limited(|limits| limits.write_queue_bytes_max = 100);
    client.bytes(6, &bytes("02 3fe11f c00161"), false);
    client.window = Some(0);
    // References to the table, all of which are acknowledged; the head is not.
    let get = section(&GET[..2]);
    let request = frame(
        1,
        &[&[2, 0][..], get.get(2..).unwrap(), &bytes("80 c1")].concat(),
    );
    let n_done = count(&mut client, 1000, |client, n| {
        client.bytes(4 * n, &request, true);
        client
            .call(|connection, cx| {
                connection.send(cx, u32::try_from(n).unwrap(), citius_http::Action::Abort)
            })
            .unwrap();
        client.settle();
    });
    assert!(n_done < 120, "{n_done}");
    assert_eq!(client.closed, EXCESSIVE_LOAD);
}
