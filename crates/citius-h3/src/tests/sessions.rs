//! WebTransport: sessions, their streams and datagrams.

use alloc::vec::Vec;

use citius_http::{Action, Fault, Fields, Limits, Payload};

use crate::Connection;

use super::client::{Client, GET, bytes, data, frame, headers};

fn connect() -> Vec<u8> {
    let fields = [
        (":method", "CONNECT"),
        (":protocol", "webtransport"),
        (":scheme", "https"),
        (":authority", "a"),
        (":path", "/"),
    ];
    headers(&fields)
}

fn grant(client: &mut Client, session: u32) {
    let fields = &Fields::EMPTY;
    let switch = Action::Switch {
        protocol: b"webtransport",
        fields,
    };
    assert_eq!(client.act(session, switch), Ok(()));
}

fn granted() -> Client {
    let mut client = Client::greeted();
    client.bytes(0, &connect(), false);
    grant(&mut client, 0);
    assert_eq!(client.take_told(), ["0 request CONNECT / HTTP/3"]);
    client
}

fn want(client: &mut Client, stream: u64) {
    client.call(|connection, _| connection.want_session_bytes(stream, u64::MAX));
    client.settle();
}

#[test]
fn a_session_is_granted() {
    let client = granted();
    assert_eq!(
        client.response(0),
        "[:status: 200;sec-webtransport-http3-draft: draft02;]"
    );
    let mut client = Client::greeted();
    let mut request = connect();
    let at = request
        .windows(12)
        .position(|window| window == b"webtransport")
        .unwrap();
    request.splice(at - 1..at + 12, *b"\x0fwebtransport-h3");
    let length = request.len() - 2;
    assert!(length < 64 + 3);
    request[1] = u8::try_from(length).unwrap();
    client.bytes(0, &request, false);
    grant(&mut client, 0);
    assert!(
        client
            .response(0)
            .starts_with("[:status: 200;sec-webtransport"),
        "the other token"
    );
}

#[test]
fn streams_of_the_client_carry_bytes() {
    for cut in 0..7 {
        let mut client = granted();
        let text = [&bytes("4041 00")[..], b"hello"].concat();
        let (first, second) = text.split_at(cut);
        client.bytes(4, first, false);
        client.bytes(4, second, true);
        let told = client.take_told();
        assert_eq!(told, ["0 opened 4"], "cut at {cut}");
        want(&mut client, 4);
        assert_eq!(client.take_told(), ["stream 4 data hello", "stream 4 end"]);
        // The other side is still open.
        let sent = client
            .call(|connection, _| connection.send_session_bytes(4, Payload::Copied(b"back"), true));
        assert!(sent);
        client.settle();
        let sent = client.sent.get(&4).unwrap();
        assert_eq!((sent.bytes.as_slice(), sent.fin), (&b"back"[..], true));
        assert!(!client.call(|connection, _| {
            connection.send_session_bytes(4, Payload::Copied(b"more"), true)
        }));
    }
    let mut client = granted();
    let text = [&bytes("4054 00")[..], b"uni"].concat();
    for byte in text {
        client.bytes(6, &[byte], false);
    }
    want(&mut client, 6);
    client.bytes(6, b"more", true);
    let told = client.take_told();
    assert_eq!(
        told,
        [
            "0 opened 6",
            "stream 6 data uni",
            "stream 6 data more",
            "stream 6 end"
        ]
    );
}

#[test]
fn streams_wait_for_their_reader_and_for_their_session() {
    let mut client = granted();
    client.bytes(4, &bytes("4041 00"), false);
    assert_eq!(client.connection.appetite(4), 0);
    client.call(|connection, _| connection.want_session_bytes(4, 3));
    assert_eq!(client.connection.appetite(4), 3);
    client.bytes(4, b"abcdef", false);
    assert_eq!(client.take_told(), ["0 opened 4", "stream 4 data abc"]);
    assert_eq!(client.connection.appetite(4), 0);
    // Before the session: held, and told when it is granted.
    let mut client = Client::greeted();
    client.bytes(6, &[&bytes("4054 00")[..], b"x"].concat(), false);
    client.bytes(0, &connect(), false);
    assert_eq!(client.connection.appetite(6), 0);
    client.take_told();
    grant(&mut client, 0);
    want(&mut client, 6);
    assert_eq!(client.take_told(), ["0 opened 6", "stream 6 data x"]);
    // More than a few that wait are rejected.
    let mut client = Client::greeted();
    for n in 0..17 {
        client.bytes(6 + 4 * n, &bytes("4054 00"), false);
    }
    assert_eq!(
        client.sent.get(&(6 + 4 * 16)).unwrap().stopped,
        Some(0x3994_bd84)
    );
    assert!(!client.sent.contains_key(&(6 + 4 * 15)));
}

#[test]
fn streams_of_no_session_are_refused() {
    let mut client = Client::greeted();
    client.request(0, &GET);
    client.respond(0, b"x");
    client.bytes(4, &bytes("4041 00"), false);
    assert_eq!(client.response(4), "reset 0x170d7b68 stop 0x170d7b68");
    client.bytes(6, &bytes("4054 02"), false);
    assert_eq!(client.connection.fault(), Some(Fault::IdentifierOrder));
}

#[test]
fn streams_of_the_server_begin_with_their_session() {
    let mut client = granted();
    let limits = Limits::default();
    client.call(|connection, _| connection.open_session_stream(0, 7, false, &limits));
    client.call(|connection, _| connection.open_session_stream(0, 8, true, &limits));
    client.settle();
    client.settle();
    assert_eq!(client.take_told(), ["ready 7 11", "ready 8 1"]);
    assert_eq!(client.sent.get(&11).unwrap().bytes, bytes("4054 00"));
    assert_eq!(client.sent.get(&1).unwrap().bytes, bytes("4041 00"));
    want(&mut client, 1);
    client.bytes(1, b"reply", true);
    assert_eq!(client.take_told(), ["stream 1 data reply", "stream 1 end"]);
    client.call(|connection, _| connection.reset_session_stream(11, 7));
    client.call(|connection, _| connection.reset_session_stream(1, 30));
    client.settle();
    assert_eq!(
        client.sent.get(&11).unwrap().reset,
        Some(0x52e4_a40f_a8db + 7)
    );
    assert_eq!(
        client.sent.get(&1).unwrap().reset,
        Some(0x52e4_a40f_a8db + 31)
    );
}

#[test]
fn sides_of_streams_are_reset_and_stopped() {
    let mut client = granted();
    client.bytes(4, &bytes("4041 00"), false);
    client.call(|connection, cx| connection.reset(cx, 4, 0x52e4_a40f_a8db + 5));
    client.call(|connection, cx| connection.stop_sending(cx, 4, 0x10c));
    client.settle();
    let told = client.take_told();
    assert_eq!(
        told,
        [
            "0 opened 4",
            "stream 4 reset Some(5)",
            "stream 4 stopped None"
        ]
    );
    assert_eq!(client.sent.get(&4).unwrap().reset, Some(0x10c));
    client.bytes(8, &bytes("4041 00"), false);
    client.call(|connection, _| connection.stop_session_stream(8, 1));
    client.settle();
    assert_eq!(client.sent.get(&8).unwrap().stopped, Some(0x52e4_a40f_a8dc));
}

#[test]
fn datagrams_belong_to_sessions() {
    let mut client = granted();
    let mut tell = |hex: &str| {
        let datagram = bytes(hex);
        client.call(|connection, cx| match connection.datagram(cx, &datagram) {
            Some(crate::Incoming::Session(crate::SessionEvent::Datagram { session, bytes })) => {
                Some((session, bytes.to_vec()))
            }
            _ => None,
        })
    };
    assert_eq!(tell("00 6162"), Some((0, b"ab".to_vec())));
    assert_eq!(tell("00"), Some((0, Vec::new())));
    assert_eq!(tell("01 6162"), None, "no session");
    assert!(client.call(|connection, _| connection.send_datagram(0, b"cd")));
    assert!(!client.call(|connection, _| connection.send_datagram(1, b"cd")));
    client.settle();
    assert_eq!(client.datagrams, [b"\0cd".to_vec()]);
    for hex in ["", "40", "d000000000000000"] {
        let mut client = granted();
        let datagram = bytes(hex);
        assert!(client.call(|connection, cx| connection.datagram(cx, &datagram).is_none()));
        client.settle();
        assert_eq!(client.connection.fault(), Some(Fault::DatagramSyntax));
        assert_eq!(client.closed, Some(0x33));
    }
}

#[test]
fn a_few_datagrams_wait_for_their_session() {
    let mut client = Client::greeted();
    for n in 0..20 {
        let datagram = [0, b'a' + n];
        client.call(|connection, cx| assert!(connection.datagram(cx, &datagram).is_none()));
    }
    client.bytes(0, &connect(), false);
    client.take_told();
    grant(&mut client, 0);
    let told = client.take_told();
    assert_eq!((told.len(), told[0].as_str()), (16, "0 early a"));
    // Those of a request that is refused are forgotten, and so are those of one that is over.
    let mut client = Client::greeted();
    client.call(|connection, cx| assert!(connection.datagram(cx, &[0, 1]).is_none()));
    client.request(0, &GET);
    client.respond(0, b"x");
    client.call(|connection, cx| assert!(connection.datagram(cx, &[0, 2]).is_none()));
    client.bytes(4, &connect(), false);
    client.take_told();
    grant(&mut client, 1);
    assert!(client.take_told().is_empty());
}

#[test]
fn messages_have_streams_of_their_own_and_room_is_told() {
    let mut client = granted();
    let limits = Limits::default();
    let message = bytes::Bytes::from_static(b"to all");
    assert!(client.call(|connection, _| connection.send_session_message(0, message, &limits)));
    client.settle();
    client.settle();
    let sent = client.sent.get(&11).unwrap();
    let expected = [&bytes("4054 00")[..], b"to all"].concat();
    assert_eq!((&sent.bytes, sent.fin), (&expected, true));
    assert!(client.take_told().is_empty());
    client.bytes(4, &bytes("4041 00"), false);
    client.take_told();
    client.call(|connection, _| {
        connection.send_session_bytes(4, Payload::Copied(b"x"), false);
        connection.await_session_room(4);
    });
    client.settle();
    client.settle();
    assert_eq!(client.take_told(), ["stream 4 writable"]);
    client.call(|connection, _| connection.await_session_room(4));
    client.settle();
    assert_eq!(client.take_told(), ["stream 4 writable"], "there is room");
}

#[test]
fn streams_that_could_not_be_opened_end_with_their_session() {
    let mut client = granted();
    let limits = Limits::default();
    let message = bytes::Bytes::from_static(b"x");
    client.call(|connection, _| {
        assert!(connection.send_session_message(0, message.clone(), &limits));
        assert!(connection.replay_session_message(0, message.clone(), &limits));
        connection.open_session_stream(0, 7, true, &limits);
    });
    // The client allows none of them before it leaves.
    client.bytes(0, b"", true);
    assert_eq!(client.forgotten, [0, 1, 2]);
}

#[test]
fn the_client_closes_a_session() {
    let mut capsule = Vec::new();
    crate::capsule::put_close(&mut capsule, 7, b"bye");
    let whole = data(&capsule);
    for cut in 0..whole.len() {
        let mut client = granted();
        client.bytes(4, &bytes("4041 00"), false);
        client.take_told();
        client.bytes(0, &whole[..cut], false);
        client.bytes(0, &whole[cut..], false);
        assert_eq!(client.take_told(), ["0 closed 7 bye"], "cut at {cut}");
        assert_eq!(client.response(4), "reset 0x170d7b68 stop 0x170d7b68");
        assert!(client.response(0).contains("fin"));
        assert!(client.connection.is_idle());
    }
    // Its end alone closes it too, and so does a reset.
    let mut client = granted();
    client.bytes(0, b"", true);
    assert_eq!(client.take_told(), ["0 closed 0"]);
    assert!(client.connection.is_idle());
    let mut client = Client::greeted();
    client.bytes(0, &connect(), false);
    client.bytes(0, b"", true);
    client.take_told();
    grant(&mut client, 0);
    assert_eq!(client.take_told(), ["0 closed 0"]);
    let mut client = granted();
    client.bytes(4, &bytes("4041 00"), false);
    client.reset(0);
    assert_eq!(client.take_told(), ["0 opened 4", "0 broken StreamReset"]);
    assert_eq!(client.response(4), "reset 0x170d7b68 stop 0x170d7b68");
    assert!(client.connection.is_idle());
}

#[test]
fn the_server_closes_a_session() {
    let mut client = granted();
    client.call(|connection, cx| connection.close_session(cx, 0, 9, b"done"));
    client.settle();
    let sent = client.sent.get(&0).unwrap();
    assert!(sent.bytes.ends_with(b"\x68\x43\x08\0\0\0\x09done") && sent.fin);
    assert_eq!(sent.stopped, None, "the client ends it, too");
    assert!(client.connection.is_idle());
    let mut client = granted();
    assert_eq!(
        client.act(
            0,
            Action::End {
                trailers: &Fields::EMPTY
            }
        ),
        Ok(())
    );
    assert!(client.response(0).contains("fin") && client.connection.is_idle());
}

#[test]
fn a_drain_asks_sessions_to_end() {
    let mut client = granted();
    client.call(Connection::drain);
    client.settle();
    assert!(
        client
            .sent
            .get(&0)
            .unwrap()
            .bytes
            .ends_with(&bytes("00 05 800078ae 00"))
    );
    client.bytes(0, &data(&bytes("800078ae 00")), false);
    assert_eq!(client.take_told(), ["0 leaving", "0 draining"]);
    // So is one that is granted later.
    let mut client = Client::greeted();
    client.bytes(0, &connect(), false);
    client.call(Connection::drain);
    grant(&mut client, 0);
    assert_eq!(
        client.take_told(),
        ["0 request CONNECT / HTTP/3", "0 leaving"]
    );
}

#[test]
fn a_session_that_drains_takes_streams_and_no_request_is_begun() {
    let mut client = granted();
    client.call(Connection::drain);
    client.pass(250);
    assert_eq!(client.take_told(), ["0 leaving"]);
    client.bytes(4, &bytes("4041 00"), false);
    client.bytes(6, &bytes("4054 00"), false);
    client.bytes(8, &headers(&GET), true);
    client.bytes(12, &connect(), false);
    client.bytes(10, &bytes("4054 0c"), false);
    assert_eq!(client.take_told(), ["0 opened 4", "0 opened 6"]);
    for request in [8, 12] {
        assert!(client.response(request).contains("reset 0x10b"));
    }
    assert_eq!(client.response(10), "stop 0x170d7b68");
    client.call(|connection, cx| connection.close_session(cx, 0, 9, b"done"));
    client.settle();
    client.bytes(0, b"", true);
    assert_eq!(client.closed, Some(0x100));
}

#[test]
fn what_waits_for_a_session_that_does_not_come_is_given_up() {
    let mut client = Client::greeted();
    client.bytes(4, &bytes("4041 00"), false);
    assert!(
        client.connection.is_idle(),
        "the connection ends when its time is over"
    );
    client.bytes(0, &headers(&GET), true);
    client.respond(0, b"no session");
    assert_eq!(client.response(4), "reset 0x170d7b68 stop 0x170d7b68");
    let mut client = Client::greeted();
    client.bytes(4, &bytes("4041 00"), false);
    client.reset(0);
    assert_eq!(client.response(4), "reset 0x170d7b68 stop 0x170d7b68");
}

#[test]
fn malformed_capsules_end_their_session() {
    let mut client = granted();
    client.bytes(0, &data(&bytes("6843 02 0000")), false);
    assert_eq!(client.take_told(), ["0 broken CapsuleSyntax"]);
    assert_eq!(client.sent.get(&0).unwrap().reset, Some(0x101));
    assert_eq!(client.closed, None);
    // One that its end cuts.
    for cut in ["68", "6843 07 0000", "21 02 00"] {
        let mut client = granted();
        client.bytes(0, &data(&bytes(cut)), true);
        assert_eq!(client.take_told(), ["0 broken CapsuleSyntax"], "{cut}");
        assert_eq!(client.sent.get(&0).unwrap().reset, Some(0x101));
    }
    let mut client = granted();
    let ignored = data(&bytes("21 00"));
    for _ in 0..2001 {
        client.bytes(0, &ignored, false);
    }
    assert_eq!(client.closed, Some(0x107), "capsules that only cost");
}

#[test]
fn sessions_and_streams_have_limits() {
    let limits = Limits {
        webtransport_sessions_max: 1,
        webtransport_streams_max: 2,
        ..Limits::default()
    };
    let mut client = Client::new(limits.clone());
    client.greet();
    client.bytes(0, &connect(), false);
    grant(&mut client, 0);
    client.bytes(4, &connect(), false);
    assert_eq!(client.response(4), "reset 0x10b stop 0x10b");
    for stream in [8, 12, 16] {
        client.bytes(stream, &bytes("4041 00"), false);
    }
    assert_eq!(client.response(16), "reset 0x3994bd84 stop 0x3994bd84");
    client.take_told();
    client.call(|connection, _| connection.open_session_stream(0, 5, true, &limits));
    client.settle();
    assert_eq!(client.take_told(), ["not opened 5"]);
    let message = bytes::Bytes::from_static(b"x");
    assert!(
        !client
            .call(|connection, _| { connection.send_session_message(0, message.clone(), &limits) })
    );
    // Those of a history wait for the client, and for no limit.
    let waiting = client.call(|connection, _| connection.waiting_session_streams());
    for _ in 0..10 {
        let message = message.clone();
        assert!(
            client.call(|connection, _| { connection.replay_session_message(0, message, &limits) })
        );
    }
    assert_eq!(
        client.call(|connection, _| connection.waiting_session_streams()),
        waiting
    );
    assert!(client.closed.is_none());
}

#[test]
fn without_webtransport_its_streams_mean_nothing() {
    let mut client = Client::with(Limits::default(), crate::Options::default());
    client.greet();
    client.bytes(0, &[frame(0x41, b"x"), headers(&GET)].concat(), true);
    assert_eq!(client.take_told().len(), 1, "an unknown frame");
    client.bytes(6, &bytes("4054 00"), false);
    assert_eq!(client.sent.get(&6).unwrap().stopped, Some(0x103));
}
