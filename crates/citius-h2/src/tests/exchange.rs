//! Requests and responses, well-formed and not.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use citius_http::{
    Action, Closing, Fault, Fields, Head, HeadPool, Limits, Output, Payload, Version,
};

use super::client::{Client, raw, response, with};
use crate::frame;
use crate::{Connection, Context, Options};

#[test]
fn a_get_is_answered_with_few_bytes() {
    let mut client = Client::new();
    let mut lengths = Vec::new();
    for id in [1, 3, 5, 7] {
        assert_eq!(client.get(id), format!("GET {id} / end"));
        client.respond(id, 200, b"Welcome!\n");
        lengths.push(client.out.len());
        let expected = format!(
            "HEADERS {id} :status=200 content-type=text/plain content-length=9; DATA {id} \"Welcome!\\n\" end"
        );
        assert_eq!(client.read(), expected);
    }
    // Two frame headers, the body, and eight bytes of head.
    assert_eq!(lengths[1..], [9 + 8 + 9 + 9; 3]);
    assert_eq!(client.connection.streams_open(), 0);
}

#[test]
fn answers_leave_in_the_order_they_are_ready() {
    let mut client = Client::new();
    for id in [1, 3, 5] {
        client.get(id);
    }
    for id in [5, 1, 3] {
        client.respond(id, 404, b"");
    }
    let text =
        |id| format!("HEADERS {id} :status=404 content-type=text/plain content-length=0 end");
    assert_eq!(client.read(), [text(5), text(1), text(3)].join("; "));
}

#[test]
fn bodies_and_trailers_go_both_ways() {
    let mut client = Client::new();
    assert_eq!(client.post(1), "POST 1 /");
    assert_eq!(client.want(1, u64::MAX), "");
    assert_eq!(client.data(1, b"abc", false), "data 1 abc");
    let block = client.block(&[("x-sum", "1")]);
    let mut bytes = Vec::new();
    frame::headers(&mut bytes, 1, &block, true);
    assert_eq!(client.feed(&bytes), "end 1 x-sum: 1");
    client.act(1, Action::Start(response(200, &Fields::EMPTY)));
    client.act(1, Action::Data(Payload::Copied(b"x")));
    let mut trailers = Fields::default();
    trailers.push(b"x-took", b"2").expect("a field");
    client.act(
        1,
        Action::End {
            trailers: &trailers,
        },
    );
    assert_eq!(
        client.read(),
        "HEADERS 1 :status=200 content-type=text/plain; DATA 1 \"x\"; HEADERS 1 x-took=2 end"
    );
}

#[test]
fn what_has_no_body_has_none() {
    let mut client = Client::new();
    let head = client.head(1, "HEAD", &[], true);
    assert_eq!(client.feed(&head), "HEAD 1 / end");
    client.respond(1, 200, b"four");
    assert_eq!(
        client.read(),
        "HEADERS 1 :status=200 content-type=text/plain content-length=4 end"
    );
    for (id, status) in [(3, 204), (5, 304)] {
        client.get(id);
        client.respond(id, status, b"dropped");
        assert_eq!(
            client.read(),
            format!("HEADERS {id} :status={status} content-type=text/plain end")
        );
    }
    client.get(7);
    client.act(7, Action::Inform(response(103, &Fields::EMPTY)));
    client.act(7, Action::Start(response(304, &Fields::EMPTY)));
    client.act(7, Action::Data(Payload::Copied(b"dropped")));
    client.act(
        7,
        Action::End {
            trailers: &Fields::EMPTY,
        },
    );
    assert_eq!(
        client.read(),
        "HEADERS 7 :status=103 content-type=text/plain; HEADERS 7 :status=304 content-type=text/plain end"
    );
    assert_eq!(client.connection.streams_open(), 0);
}

#[test]
fn continue_is_said_when_the_body_is_wanted() {
    let mut client = Client::new();
    let head = client.head(1, "POST", &[("expect", "100-continue")], false);
    client.feed(&head);
    assert_eq!(client.read(), "");
    client.want(1, 10);
    assert_eq!(client.read(), "HEADERS 1 :status=100");
    client.want(1, 10);
    assert_eq!(client.read(), "");
}

/// "servers D1": curl 7.88 and httpx lose a response that a reset follows at once.
#[test]
fn the_rest_of_a_request_is_read_away_behind_its_response() {
    let mut client = Client::new();
    client.post(1);
    for _ in 0..4 {
        client.data(1, &[0; 10_000], false);
    }
    client.respond(1, 403, b"");
    let head = "HEADERS 1 :status=403 content-type=text/plain content-length=0 end";
    // Both windows are open for what may be dropped.
    let opened = "WINDOW_UPDATE 1 2071616; WINDOW_UPDATE 0 1088576";
    assert_eq!(client.read(), format!("{opened}; {head}"));
    assert_eq!(client.connection.streams_open(), 0);
    assert_eq!(client.want(1, 100), "");
    for _ in 0..4 {
        assert_eq!(client.data(1, &[0; 10_000], false), "");
    }
    assert_eq!(client.data(1, &[0; 1000], true), "");
    // curl 7.88 waits for a frame.
    assert_eq!(client.read(), "WINDOW_UPDATE 0 1");
    assert_eq!(client.wait(5000), "");
    assert_eq!(
        (client.read().as_str(), client.connection.closing()),
        ("", None)
    );
    assert_eq!(client.get(3), "GET 3 / end");
}

/// curl 7.88 sends nothing behind the end of a response if its window is shut then.
#[test]
fn a_window_is_opened_before_a_response_that_is_early() {
    for whole in [true, false] {
        let mut client = Client::new();
        let fields = [("content-length", "100000")];
        let head = client.head(1, "POST", &fields, false);
        assert_eq!(client.feed(&head), "POST 1 /");
        for length in [16_384, 16_384, 16_384, 16_383] {
            client.data(1, &[0; 16_384][..length], false);
        }
        if whole {
            client.respond(1, 403, b"no");
        } else {
            client.act(1, Action::Start(response(200, &Fields::EMPTY)));
            client.read();
            client.act(
                1,
                Action::End {
                    trailers: &Fields::EMPTY,
                },
            );
        }
        let text = client.read();
        assert!(text.starts_with("WINDOW_UPDATE 1 34464; "), "{text}");
        for length in [16_384, 16_384, 1696] {
            client.data(1, &[0; 16_384][..length], false);
        }
        assert_eq!(client.data(1, &[0], true), "");
        assert_eq!(client.connection.closing(), None);
        assert_eq!(client.get(3), "GET 3 / end");
    }
}

/// What others have sent counts too; and what was opened beyond the connection's window is kept back later (issue 32 E1).
#[test]
fn the_connection_is_open_for_the_rest_of_an_early_request() {
    let limits = Limits {
        h2_window_bytes: 100_000,
        discard_bytes_max: 100_000,
        ..Limits::default()
    };
    let mut client = Client::with(limits);
    client.post(1);
    for _ in 0..5 {
        client.data(1, &[0; 10_000], false);
    }
    let head = client.head(3, "POST", &[("content-length", "90000")], false);
    client.feed(&head);
    client.respond(3, 403, b"");
    let text = client.read();
    let opened = "WINDOW_UPDATE 3 24464; WINDOW_UPDATE 0 40000; HEADERS 3";
    assert!(text.starts_with(opened), "{text}");
    for _ in 0..9 {
        client.data(3, &[0; 10_000], false);
    }
    client.data(3, b"", true);
    assert_eq!(client.connection.fault(), None);
    // 90 000 were dropped, of which 40 000 had been given already.
    let text = client.read();
    assert!(text.contains("WINDOW_UPDATE 0 30000"), "{text}");
    assert!(text.ends_with("WINDOW_UPDATE 0 20000"), "{text}");
    // What is open serves all that come.
    for id in (5..25).step_by(2) {
        let head = client.head(id, "POST", &[("content-length", "90000")], false);
        client.feed(&head);
        client.respond(id, 403, b"");
    }
    let given = client.read().matches("WINDOW_UPDATE 0 ").count();
    assert_eq!(given, 1);
}

/// curl 7.88 and httpx fail if a request is reset that they have not sent to its end (issue 32 E1).
#[test]
fn a_long_rest_is_dropped_as_long_as_it_comes() {
    for is_curl in [false, true] {
        let mut client = Client::new();
        if is_curl {
            client.frame(4, 0, 0, &[0, 3, 0, 0, 0, 100]);
            client.read();
        }
        let mut head = |id| client.head(id, "POST", &[("content-length", "100000000")], false);
        let (first, second) = (head(1), head(3));
        client.feed(&first);
        client.respond(1, 200, b"");
        let text = client.read();
        // Of curl both windows are open for all of it.
        let opened = "WINDOW_UPDATE 1 99934464; WINDOW_UPDATE 0 98951424; HEADERS 1";
        assert_eq!(text.starts_with(opened), is_curl, "{text}");
        assert_eq!(text.contains("WINDOW"), is_curl, "{text}");
        for _ in 0..3 {
            assert_eq!(client.data(1, &[0; 480], false), "");
            assert_eq!(client.wait(client.limits.linger_ms), "");
            assert_eq!(client.read(), "");
        }
        client.feed(&second);
        client.respond(3, 200, b"");
        let text = client.read();
        // Room for the rests of both.
        let opened = "WINDOW_UPDATE 3 99934464; WINDOW_UPDATE 0 100000000; HEADERS 3";
        assert_eq!(text.starts_with(opened), is_curl, "{text}");
        client.data(3, &[0; 10_000], false);
        assert_eq!(client.data(1, &[0; 479], false), "");
        assert_eq!(client.wait(client.limits.linger_ms), "");
        assert_eq!(client.read(), "RST_STREAM 1 0");
        if is_curl {
            // What was lent to it may be under way.
            for _ in 0..=client.limits.h2_idle_frames_max {
                assert_eq!(client.data(1, &[0; 1], false), "");
            }
        }
        assert_eq!(client.connection.fault(), None);
        assert_eq!(client.get(5), "GET 5 / end");
    }
}

#[test]
fn a_rest_that_is_too_long_or_too_slow_is_reset() {
    let limits = Limits {
        h2_discard_bytes_max: 1000,
        ..Limits::default()
    };
    let mut client = Client::with(limits);
    for id in [1, 3] {
        client.post(id);
        client.respond(id, 403, b"");
        assert!(client.read().ends_with("content-length=0 end"));
    }
    assert_eq!(client.data(1, &[0; 1000], false), "");
    assert_eq!(client.read(), "");
    assert_eq!(client.data(1, &[0; 1], false), "");
    assert_eq!(client.read(), "RST_STREAM 1 0");
    // Frames that cross the reset break no rule.
    assert_eq!(client.data(1, &[0; 1000], true), "");
    assert_eq!(client.wait(1999), "");
    assert_eq!(client.read(), "");
    assert_eq!(client.wait(1), "");
    assert_eq!(client.read(), "RST_STREAM 3 0");
    client.post(5);
    client.respond(5, 403, b"");
    client.read();
    assert_eq!(client.frame(3, 0, 5, &[0, 0, 0, 8]), "", "it is answered");
    assert_eq!(client.connection.closing(), None);
}

#[test]
fn a_streamed_response_that_ends_first_is_no_other() {
    let mut client = Client::new();
    client.post(1);
    assert_eq!(client.want(1, 3), "");
    client.act(1, Action::Start(response(200, &Fields::EMPTY)));
    assert_eq!(client.data(1, b"abc", false), "data 1 abc");
    let trailers = &Fields::EMPTY;
    client.act(1, Action::End { trailers });
    assert!(client.read().ends_with("DATA 1 \"\" end"));
    assert_eq!(client.data(1, b"def", false), "");
    let block = client.block(&[("x-sum", "1")]);
    assert_eq!(client.feed(&raw(1, 5, 1, &block)), "", "trailers end it");
    assert_eq!(client.read(), "WINDOW_UPDATE 0 1");
    assert_eq!(client.wait(5000), "");
    assert_eq!(client.read(), "");
}

#[test]
fn a_client_that_leaves_within_a_rest_ends_the_connection() {
    let mut client = Client::new();
    client.post(1);
    client.respond(1, 403, b"");
    client.read();
    let event = with!(&mut client, |connection, cx, out| connection
        .receive_eof(cx, out));
    assert!(event.is_none());
    assert_eq!(client.connection.closing(), Some(Closing::Clean));
}

/// "servers D6".
#[test]
fn a_client_may_be_quiet_while_its_response_streams() {
    let mut client = Client::new();
    client.post(1);
    client.want(1, u64::MAX);
    client.act(1, Action::Start(response(200, &Fields::EMPTY)));
    assert_eq!(client.wait(60_000), "");
    assert_eq!(client.data(1, b"abc", true), "data 1 abc; end 1");
}

#[test]
fn failures_of_the_application_are_500_or_a_reset() {
    let mut client = Client::new();
    client.get(1);
    with!(&mut client, |connection, cx, out| connection.fail(
        cx,
        1,
        Fault::HandlerFailed,
        out
    ));
    assert!(client.read().starts_with("HEADERS 1 :status=500"));
    client.get(3);
    client.act(3, Action::Start(response(200, &Fields::EMPTY)));
    let fields = Fields::EMPTY;
    let twice = Action::Start(response(200, &fields));
    let result = with!(&mut client, |connection, cx, out| connection
        .send(cx, 3, twice, out));
    assert_eq!(result, Err(Fault::ResponseOrder));
    assert_eq!(
        client.read(),
        "HEADERS 3 :status=200 content-type=text/plain; RST_STREAM 3 2"
    );
    client.get(5);
    client.act(5, Action::Abort);
    assert_eq!(client.read(), "RST_STREAM 5 2");
    let mut fields = Fields::default();
    fields.push(b"content-length", b"3").expect("a length");
    client.get(7);
    let short = Action::Respond(response(200, &fields), Payload::Copied(b"ab"));
    let result = with!(&mut client, |connection, cx, out| connection
        .send(cx, 7, short, out));
    assert_eq!(result, Err(Fault::ResponseLength));
    assert!(client.read().starts_with("HEADERS 7 :status=500"));
}

#[test]
fn a_reset_is_told_even_after_the_end() {
    let mut client = Client::new();
    client.get(1);
    assert_eq!(client.frame(3, 0, 1, &[0, 0, 0, 8]), "broken 1 StreamReset");
    assert!(!client.connection.is_open(1));
    client.respond(1, 200, b"too late");
    assert_eq!(client.read(), "");
}

#[test]
fn malformed_requests_are_reset_and_the_others_go_on() {
    for more in [
        &[("Upper", "x")][..],
        &[("connection", "close")],
        &[("te", "gzip")],
        &[(":path", "/")],
        &[("x", "a\nb")],
        &[("content-length", "1")],
    ] {
        let mut client = Client::new();
        let head = client.head(1, "GET", more, true);
        assert_eq!(client.feed(&head), "");
        assert_eq!(client.read(), "RST_STREAM 1 1", "{more:?}");
        assert_eq!(
            client.get(3),
            "GET 3 / end",
            "the table is what it has to be"
        );
    }
}

#[test]
fn what_is_too_much_is_answered() {
    let mut client = Client::new();
    let head = client.head(1, "POST", &[("content-length", "99999999999")], false);
    client.feed(&head);
    assert!(!client.limit_body(1, 99_999_999_999));
    assert!(client.limit_body(1, 99_999_999_998));
    assert_eq!(client.feed(&[]), "", "nothing is heard of it");
    let text = client.read();
    assert!(
        text.starts_with("HEADERS 1 :status=413") && text.ends_with("end"),
        "{text}"
    );
    assert_eq!(client.data(1, b"abc", false), "");
    assert_eq!(client.read(), "", "its rest is read away");
    let fields: Vec<_> = (0..101).map(|n| (format!("x{n}"), "")).collect();
    let fields: Vec<_> = fields
        .iter()
        .map(|(name, value)| (name.as_str(), *value))
        .collect();
    let head = client.head(3, "GET", &fields, true);
    client.feed(&head);
    assert!(client.read().starts_with("HEADERS 3 :status=431"));
    let block = client.block(&[(":method", "CONNECT"), (":authority", "a:1")]);
    client.feed(&raw(1, 5, 5, &block));
    assert!(client.read().starts_with("HEADERS 5 :status=501"));
    let mut client = Client::new();
    client.post(1);
    assert!(!client.limit_body(1, 5));
    client.want(1, u64::MAX);
    assert_eq!(client.data(1, b"abcdef", false), "broken 1 BodyTooLong");
    assert!(client.read().contains("; HEADERS 1 :status=413"));
}

/// RFC 8441 §5: any 2xx grants what an extended CONNECT asks for.
#[test]
fn an_extended_connect_is_not_refused_with_success() {
    for (status, is_whole) in [(200, true), (204, true), (200, false), (299, false)] {
        let mut client = Client::new();
        let head = client.head(1, "CONNECT", &[(":protocol", "websocket")], false);
        client.feed(&head);
        let fields = Fields::EMPTY;
        let action = if is_whole {
            Action::Respond(response(status, &fields), Payload::Copied(b""))
        } else {
            Action::Start(response(status, &fields))
        };
        let result = with!(&mut client, |connection, cx, out| connection
            .send(cx, 1, action, out));
        assert_eq!(result, Err(Fault::ResponseGrants));
        assert!(client.read().contains("HEADERS 1 :status=500"));
    }
}

/// httpx loses all of a response whose stream is reset (issue 32 E1).
#[test]
fn a_body_that_is_too_long_does_not_end_a_response_that_has_begun() {
    let mut client = Client::new();
    client.post(1);
    assert!(!client.limit_body(1, 5));
    client.want(1, u64::MAX);
    assert_eq!(client.data(1, b"abc", false), "data 1 abc");
    client.act(1, Action::Start(response(200, &Fields::EMPTY)));
    client.read();
    assert_eq!(client.data(1, b"def", false), "refused 1 BodyTooLong");
    // Nothing of the rest is told, whatever the application asks for, nor its end.
    assert_eq!(client.want(1, u64::MAX), "");
    assert_eq!(client.data(1, b"ghi", false), "");
    assert_eq!(client.read(), "");
    client.act(1, Action::Data(Payload::Copied(b"whole")));
    assert_eq!(client.read(), "DATA 1 \"whole\"");
    assert_eq!(client.data(1, b"jkl", true), "");
    let trailers = &Fields::EMPTY;
    client.act(1, Action::End { trailers });
    assert_eq!(client.read(), "DATA 1 \"\" end");
    assert_eq!(client.get(3), "GET 3 / end");
}

/// The rest is read away, up to a bound, beside the response and behind it.
#[test]
fn the_rest_of_a_body_that_is_too_long_is_bounded() {
    let limits = Limits {
        h2_discard_bytes_max: 100_000,
        ..Limits::default()
    };
    let mut client = Client::with(limits);
    client.post(1);
    assert!(!client.limit_body(1, 5));
    client.act(1, Action::Start(response(200, &Fields::EMPTY)));
    client.want(1, u64::MAX);
    assert_eq!(client.data(1, b"abcdef", false), "refused 1 BodyTooLong");
    client.read();
    let window = |client: &mut Client, pieces: usize| {
        let mut opened = String::new();
        for _ in 0..pieces {
            assert_eq!(client.data(1, &[b'x'; 16_000], false), "");
            opened += &client.read();
        }
        opened
    };
    assert!(window(&mut client, 6).contains("WINDOW_UPDATE 1 "));
    let later = window(&mut client, 3);
    assert!(!later.contains("WINDOW_UPDATE 1 "), "{later}");
    assert!(!later.contains("RST_STREAM"), "{later}");
    let trailers = &Fields::EMPTY;
    client.act(1, Action::End { trailers });
    let end = client.read();
    assert!(
        end.contains("DATA 1 \"\" end") && !end.contains("RST"),
        "{end}"
    );
    // What has not come by then is not waited for.
    client.wait(Limits::default().linger_ms);
    client.wait(Limits::default().linger_ms);
    assert!(client.read().contains("RST_STREAM 1 0"));
}

#[test]
fn lengths_are_held_against_the_data() {
    for (data, ends) in [(&b"abcd"[..], false), (b"ab", true)] {
        let mut client = Client::new();
        let head = client.head(1, "POST", &[("content-length", "3")], false);
        client.feed(&head);
        client.want(1, u64::MAX);
        assert_eq!(client.data(1, data, ends), "broken 1 LengthMismatch");
        assert_eq!(client.read(), "RST_STREAM 1 1");
    }
}

/// curl 7.88 ends its upload once it has read a status from 400 on, and loses a response that is reset then (issue 32 E1).
#[test]
fn a_body_that_stops_short_behind_the_beginning_of_a_response_does_not_end_it() {
    for data in [&b""[..], b"ab"] {
        let mut client = Client::new();
        let head = client.head(1, "POST", &[("content-length", "300000")], false);
        client.feed(&head);
        client.act(1, Action::Start(response(403, &Fields::EMPTY)));
        client.read();
        assert_eq!(client.data(1, data, true), "");
        assert_eq!(client.read(), "");
        client.act(
            1,
            Action::End {
                trailers: &Fields::EMPTY,
            },
        );
        assert_eq!(client.read(), "DATA 1 \"\" end");
        // It is over, and needs no reset: the client has closed its side.
        assert_eq!(client.wait(5000), "");
        assert_eq!(client.read(), "");
        assert_eq!(client.get(3), "GET 3 / end");
    }
}

/// The application is told that the rest does not come, if it waits for it.
#[test]
fn the_rest_of_a_body_that_stops_short_has_the_time_of_a_body() {
    let mut client = Client::new();
    let head = client.head(1, "POST", &[("content-length", "300000")], false);
    client.feed(&head);
    client.act(1, Action::Start(response(403, &Fields::EMPTY)));
    client.read();
    client.want(1, u64::MAX);
    assert_eq!(client.data(1, b"ab", true), "data 1 ab");
    assert_eq!(client.wait(11_000), "broken 1 BodyTooSlow");
}

#[test]
fn faults_of_the_connection_end_it() {
    type Frame = (u8, u8, u32, &'static [u8]);
    let cases: [(Frame, Fault, u32); 24] = [
        ((0, 0, 0, b"x"), Fault::FrameSequence, 1),
        ((0, 0, 1, b"x"), Fault::FrameSequence, 1),
        ((0, 8, 1, b"\x05abc"), Fault::FramePadding, 1),
        ((1, 5, 0, b""), Fault::FrameSequence, 1),
        ((1, 5, 2, b"\x82"), Fault::StreamNumber, 1),
        ((1, 5, 1, b"\x80"), Fault::FieldCompression, 9),
        ((1, 0x25, 1, b"\0\0\0\x01\0\x82"), Fault::PriorityCycle, 1),
        ((2, 0, 1, b"\0\0\0\0"), Fault::FrameSize, 6),
        ((2, 0, 1, b"\0\0\0\x01\0"), Fault::PriorityCycle, 1),
        ((3, 0, 1, b"\0\0\0\0"), Fault::FrameSequence, 1),
        ((3, 0, 1, b"\0\0\0"), Fault::FrameSize, 6),
        ((4, 0, 1, b""), Fault::FrameSequence, 1),
        ((4, 1, 0, b"\0"), Fault::FrameSize, 6),
        ((4, 0, 0, b"\0\x02\0\0\0\x02"), Fault::SettingsValue, 1),
        ((4, 0, 0, b"\0\x04\x80\0\0\0"), Fault::FlowControl, 3),
        ((5, 4, 1, b"\0\0\0\x02"), Fault::FrameSequence, 1),
        ((6, 0, 0, b"1234567"), Fault::FrameSize, 6),
        ((6, 0, 1, b"12345678"), Fault::FrameSequence, 1),
        ((7, 0, 1, b"\0\0\0\0\0\0\0\0"), Fault::FrameSequence, 1),
        ((8, 0, 0, b"\0\0\0\0"), Fault::FlowControl, 3),
        ((8, 0, 1, b"\0\0\0\x01"), Fault::FrameSequence, 1),
        ((9, 4, 1, b""), Fault::FrameSequence, 1),
        ((16, 0, 0, b"\0\0\0\0u=1"), Fault::FrameSequence, 1),
        ((16, 0, 0, b"\0\0\0\x02u=1"), Fault::StreamNumber, 1),
    ];
    for ((kind, flags, stream, payload), fault, code) in cases {
        let mut client = Client::new();
        client.frame(kind, flags, stream, payload);
        assert_eq!(client.connection.fault(), Some(fault), "{kind} {payload:?}");
        let text = client.read();
        assert!(
            text.starts_with("GOAWAY ") && text.ends_with(&format!(" {code}")),
            "{text}"
        );
        assert_eq!(client.connection.closing(), Some(Closing::Linger));
        assert_eq!(client.get(1), "", "no further byte is read");
    }
    let mut client = Client::new();
    client.feed(&frame::header(0, 0, 0, 1)[..0]);
    client.feed(&[0, 0x40, 1, 0, 0, 0, 0, 0, 1]);
    assert_eq!(client.connection.fault(), Some(Fault::FrameSize));
}

#[test]
fn a_refused_head_is_kept_for_the_log() {
    let limits = Limits {
        target_bytes_max: 8,
        h2_resets_max: 100,
        ..Limits::default()
    };
    let mut client = Client::with(limits);
    let mut refused = |id: u32, fields: &[(&str, &str)]| {
        let block = client.block(fields);
        client.frame(1, frame::END_HEADERS | frame::END_STREAM, id, &block);
        let written = client.read();
        let [head] = &client.connection.take_refused()[..] else {
            panic!("one head was refused");
        };
        let told = (
            String::from_utf8_lossy(&head.method).into_owned(),
            String::from_utf8_lossy(&head.target).into_owned(),
        );
        assert_eq!(head.version, Version::Http2);
        (head.fault, told, head.response_bytes, written)
    };
    let own = [(":method", "PUT"), (":scheme", "http"), (":authority", "a")];
    let long = [&own[..], &[(":path", "/long/target")]].concat();
    let (fault, told, bytes, written) = refused(1, &long);
    assert_eq!(fault, Fault::TargetTooLong);
    assert_eq!(told, ("PUT".into(), "/long/target".into()));
    assert!(written.contains(":status=414"), "{written}");
    assert!(
        written.contains(&format!("content-length={bytes};")),
        "{written}"
    );
    let malformed = [&own[..], &[(":path", "/a"), ("Upper", "x")]].concat();
    let (fault, told, bytes, written) = refused(3, &malformed);
    assert_eq!(fault, Fault::FieldNameSyntax);
    assert_eq!((told, bytes), (("PUT".into(), "/a".into()), 0));
    assert!(written.starts_with("RST_STREAM 3"), "{written}");
    let (_, told, ..) = refused(5, &[(":method", "GET"), (":unknown", "x")]);
    assert_eq!(told, ("GET".into(), String::new()));
    assert!(!client.connection.has_refused());
}

#[test]
fn the_log_is_told_what_a_refused_body_got() {
    let mut client = Client::new();
    client.post(1);
    assert!(!client.limit_body(1, 2));
    assert_eq!(client.want(1, 100), "");
    assert_eq!(client.data(1, b"xyz", false), "broken 1 BodyTooLong");
    let bytes = client.connection.fault_response_bytes();
    let written = client.read();
    let announced = format!("content-length={bytes};");
    assert!(bytes > 0 && written.contains(&announced), "{written}");
}

#[test]
fn frames_on_closed_streams() {
    let mut client = Client::new();
    client.get(1);
    assert_eq!(client.data(1, b"x", false), "broken 1 StreamClosed");
    assert_eq!(client.read(), "RST_STREAM 1 5");
    client.get(3);
    client.respond(3, 204, b"");
    client.read();
    client.data(3, b"x", false);
    assert_eq!(client.read(), "RST_STREAM 3 5");
    client.get(5);
    client.respond(5, 204, b"");
    client.read();
    client.get(5);
    assert_eq!(client.connection.fault(), Some(Fault::StreamClosed));
    assert_eq!(client.read(), "GOAWAY 5 5");
}

#[test]
fn the_preface_is_needed_whole() {
    for bytes in [
        &b"GET / HTTP/1.1\r\n"[..],
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\r",
    ] {
        let mut client = Client::silent(Limits::default());
        client.feed(bytes);
        assert_eq!(client.connection.fault(), Some(Fault::PrefaceSyntax));
    }
    let mut client = Client::silent(Limits::default());
    client.feed(&[frame::PREFACE.as_slice(), &raw(6, 0, 0, b"12345678")].concat());
    assert_eq!(
        client.connection.fault(),
        Some(Fault::PrefaceSyntax),
        "settings come first"
    );
}

/// Drains, and offers what is unread, which is nothing, as the reactor does.
fn drain(client: &mut Client) -> String {
    with!(client, |connection, cx, out| connection.drain(cx, out));
    assert_eq!(client.feed(&[]), "");
    client.read()
}

/// It has read what has come, and a moment passes.
fn has_read(client: &mut Client) {
    client.frame(6, 1, 0, crate::connection::SHUTDOWN_PING);
    client.wait(250);
}

/// It has read the content of a response.
fn has_read_content(client: &mut Client, id: u32) {
    client.frame(6, 1, 0, &crate::connection::end_ping(id));
}

/// One that limits what a server pushes and the sections that it sends, as the library h2 does.
fn of_h2() -> Client {
    let mut client = Client::new();
    client.frame(4, 0, 0, b"\0\x03\0\0\0\x64\0\x06\0\x01\0\0");
    assert_eq!(client.read(), "SETTINGS ack");
    client
}

/// Node repeats no request that crosses a GOAWAY.
#[test]
fn leave_is_taken_in_two_steps() {
    let mut client = Client::new();
    client.get(1);
    assert_eq!(drain(&mut client), "PING");
    client.frame(6, 1, 0, crate::connection::SHUTDOWN_PING);
    assert_eq!(client.read(), "GOAWAY 2147483647 0; PING");
    assert_eq!(client.get(3), "GET 3 / end", "it crossed the notice");
    client.frame(6, 1, 0, crate::connection::SHUTDOWN_PING);
    assert_eq!(client.get(5), "GET 5 / end", "it left behind the answer");
    assert_eq!(client.read(), "");
    client.wait(250);
    assert_eq!(client.get(7), "GET 7 / end", "it is busy");
    for id in [1, 3, 5, 7] {
        client.respond(id, 204, b"");
    }
    let text = client.read();
    assert!(text.ends_with("; PING"), "{text}");
    has_read_content(&mut client, 7);
    assert_eq!(client.read(), "DATA 7 \"\" end");
    client.wait(249);
    assert_eq!(client.read(), "");
    client.wait(251);
    assert_eq!(client.read(), "GOAWAY 7 0");
    assert_eq!(client.connection.closing(), Some(Closing::Linger));
}

/// curl 7.88 (servers D2, issue 32 E2): content that it reads together with the end of its last stream is lost once a GOAWAY has
/// come.
#[test]
fn the_last_end_of_a_drain_waits_until_the_content_is_read() {
    let mut client = Client::new();
    client.get(1);
    client.get(3);
    drain(&mut client);
    client.respond(1, 200, b"one");
    client.respond(3, 200, b"three");
    // Node loses a request that it makes between the end of a response and a GOAWAY that it reads together.
    assert!(!client.read().contains("end"));
    client.frame(6, 1, 0, crate::connection::SHUTDOWN_PING);
    let text = client.read();
    let rest = "GOAWAY 2147483647 0; PING; DATA 1 \"one\" end; DATA 3 \"three\"; PING";
    assert_eq!(text, rest);
    assert_eq!(client.connection.streams_open(), 0, "the handler is done");
    has_read_content(&mut client, 1);
    assert_eq!(client.read(), "", "that is another stream");
    has_read_content(&mut client, 3);
    assert_eq!(client.read(), "DATA 3 \"\" end");
    // Behind the last notice too, and with trailers.
    client.get(5);
    client.wait(10_000);
    client.read();
    client.act(5, Action::Start(response(200, &Fields::EMPTY)));
    client.act(5, Action::Data(Payload::Copied(b"five")));
    client.act(
        5,
        Action::End {
            trailers: &Fields::EMPTY,
        },
    );
    assert!(client.read().ends_with("DATA 5 \"five\"; PING"));
    client.wait(client.limits.linger_ms - 1);
    assert_eq!(client.read(), "");
    client.wait(1);
    assert_eq!(
        client.read(),
        "DATA 5 \"\" end",
        "a client that answers no ping"
    );
}

/// A stream whose content has left before the drain becomes the last one when the ends of the others leave.
#[test]
fn the_last_of_several_held_ends_is_asked_for() {
    let mut client = Client::new();
    for id in [1, 3, 5] {
        client.get(id);
        client.act(id, Action::Start(response(200, &Fields::EMPTY)));
        client.act(id, Action::Data(Payload::Copied(b"all")));
    }
    client.read();
    drain(&mut client);
    let trailers = &Fields::EMPTY;
    for id in [3, 1, 5] {
        client.act(id, Action::End { trailers });
    }
    assert_eq!(client.read(), "");
    client.frame(6, 1, 0, crate::connection::SHUTDOWN_PING);
    let ends = "DATA 1 \"\" end; DATA 3 \"\" end; PING";
    assert_eq!(client.read(), format!("GOAWAY 2147483647 0; PING; {ends}"));
    has_read_content(&mut client, 5);
    assert_eq!(client.read(), "DATA 5 \"\" end");
}

#[test]
fn pings_for_the_last_end_are_no_abuse() {
    let mut client = Client::with(Limits {
        h2_idle_frames_max: 20,
        ..Limits::default()
    });
    client.get(1);
    drain(&mut client);
    client.frame(6, 1, 0, crate::connection::SHUTDOWN_PING);
    client.respond(1, 200, b"one");
    for id in (3..203).step_by(2) {
        has_read_content(&mut client, id - 2);
        assert_ne!(client.get(id), "", "it goes on all the same");
        client.respond(id, 200, b"late");
        client.read();
    }
    assert_eq!(client.connection.fault(), None);
    for _ in 0..21 {
        has_read_content(&mut client, 1);
    }
    assert_eq!(client.connection.fault(), Some(Fault::ExcessiveLoad));
}

/// A window that is shut holds the content back, and then the end waits.
#[test]
fn the_last_end_of_a_drain_follows_what_waits_for_a_window() {
    let mut client = Client::new();
    client.frame(4, 0, 0, b"\0\x04\0\0\0\0");
    client.get(1);
    drain(&mut client);
    client.frame(6, 1, 0, crate::connection::SHUTDOWN_PING);
    client.read();
    client.respond(1, 200, b"abc");
    assert!(!client.read().contains("PING"));
    client.open_window(1, 100);
    assert_eq!(client.read(), "DATA 1 \"abc\"; PING");
    has_read_content(&mut client, 1);
    assert_eq!(client.read(), "DATA 1 \"\" end");
    // A client that has closed its side reads, and answers no more.
    let mut client = Client::new();
    client.get(1);
    drain(&mut client);
    client.respond(1, 200, b"abc");
    client.read();
    with!(&mut client, |connection, cx, out| connection
        .receive_eof(cx, out));
    assert_eq!(client.read(), "DATA 1 \"abc\" end");
    assert_eq!(client.connection.closing(), Some(Closing::Clean));
}

#[test]
fn the_second_step_does_not_wait_for_ever() {
    let mut client = Client::new();
    client.get(1);
    drain(&mut client);
    client.frame(6, 1, 0, crate::connection::SHUTDOWN_PING);
    assert_eq!(client.read(), "GOAWAY 2147483647 0; PING");
    client.frame(6, 1, 0, crate::connection::SHUTDOWN_PING);
    for _ in 0..30 {
        client.wait(199);
    }
    assert_eq!(client.read(), "");
    client.wait(30);
    assert_eq!(client.read(), "GOAWAY 1 0");
    assert_eq!(client.get(3), "");
    assert_eq!(client.read(), "RST_STREAM 3 7");
    assert_eq!(client.connection.closing(), None);
    client.respond(1, 204, b"");
    has_read_content(&mut client, 1);
    assert_eq!(client.connection.closing(), Some(Closing::Linger));
}

#[test]
fn a_client_that_does_not_answer_the_ping_is_left_all_the_same() {
    let mut client = Client::new();
    client.get(1);
    client.respond(1, 204, b"");
    client.read();
    assert_eq!(drain(&mut client), "PING");
    client.wait(client.limits.linger_ms);
    assert_eq!(client.read(), "GOAWAY 2147483647 0; PING");
    client.wait(250);
    assert_eq!(client.read(), "GOAWAY 1 0");
    assert_eq!(client.connection.closing(), Some(Closing::Linger));
    let mut client = Client::new();
    assert_eq!(drain(&mut client), "GOAWAY 2147483647 0; PING");
    let patience = client.limits.linger_ms;
    assert_eq!(client.wait(patience), "");
    assert_eq!(client.read(), "GOAWAY 0 0");
    assert_eq!(client.connection.closing(), Some(Closing::Linger));
}

/// "servers D2": the library h2 reads nothing behind a GOAWAY.
#[test]
fn h2_is_told_behind_the_last_response() {
    let mut client = of_h2();
    client.get(1);
    assert_eq!(drain(&mut client), "");
    client.respond(1, 200, b"last");
    assert!(client.connection.has_events());
    assert_eq!(client.feed(&[]), "");
    assert!(client.read().ends_with("DATA 1 \"last\" end; PING"));
    has_read(&mut client);
    assert_eq!(client.read(), "GOAWAY 1 0");
    assert_eq!(client.connection.closing(), Some(Closing::Linger));
    assert!(!client.connection.has_events());
}

/// httpx gives up requests that wait for their turn to read while another one reads the GOAWAY.
#[test]
fn responses_of_a_drain_end_together_and_then_h2_is_told() {
    let mut client = of_h2();
    for id in [1, 3, 5] {
        client.get(id);
    }
    assert_eq!(drain(&mut client), "");
    client.respond(3, 200, b"three");
    client.respond(1, 204, b"");
    assert_eq!(client.feed(&[]), "");
    let text = client.read();
    assert!(!text.contains("end"), "{text}");
    assert_eq!(client.get(7), "GET 7 / end");
    client.respond(5, 200, b"five");
    assert!(!client.connection.wants_output());
    client.respond(7, 200, b"seven");
    assert_eq!(client.feed(&[]), "");
    let text = client.read();
    assert_eq!(text.matches(" end").count(), 4, "{text}");
    assert!(text.ends_with("end; PING"), "{text}");
    // What it sends before it knows is not taken, and beyond the last stream.
    assert_eq!(client.get(9), "");
    client.wait(249);
    client.frame(6, 1, 0, crate::connection::SHUTDOWN_PING);
    // The request that is not taken may have had the turn to read that a response waits for (issue 32 E2).
    assert_eq!(client.read(), "PING");
    client.frame(6, 1, 0, crate::connection::SHUTDOWN_PING);
    client.wait(249);
    assert_eq!(client.get(11), "");
    assert_eq!(client.read(), "");
    client.wait(1);
    assert_eq!(client.read(), "GOAWAY 7 0");
    assert_eq!(client.connection.closing(), Some(Closing::Linger));
}

#[test]
fn a_response_of_a_drain_waits_for_a_second_at_most() {
    let mut client = of_h2();
    client.get(1);
    client.get(3);
    assert_eq!(drain(&mut client), "");
    client.respond(3, 200, b"three");
    assert_eq!(client.wait(999), "");
    assert!(!client.read().contains("end"));
    assert_eq!(client.wait(1), "");
    assert_eq!(client.read(), "DATA 3 \"three\" end");
    client.get(5);
    client.respond(5, 200, b"five");
    assert!(client.read().ends_with("DATA 5 \"five\" end"));
    client.respond(1, 200, b"one");
    client.feed(&[]);
    has_read(&mut client);
    assert!(client.read().ends_with("GOAWAY 5 0"));
}

/// The library h2 again: requests that overlap without end leave no moment in which none is open.
#[test]
fn requests_that_overlap_are_left_to_another_connection_late_in_a_drain() {
    let mut client = of_h2();
    client.get(1);
    assert_eq!(drain(&mut client), "");
    client.wait(1999);
    client.get(3);
    client.respond(1, 200, b"one");
    client.wait(1);
    assert_eq!(client.get(5), "", "it waits for the end of 3");
    client.frame(1, 4, 7, &[0x83, 0x86, 0x84]);
    client.data(7, b"its body", true);
    client.frame(3, 0, 5, &[0, 0, 0, 8]);
    assert!(!client.read().contains("RST_STREAM"));
    client.respond(3, 200, b"three");
    client.feed(&[]);
    assert!(client.read().ends_with("DATA 3 \"three\" end; PING"));
    for _ in [5, 7] {
        client.frame(6, 1, 0, crate::connection::SHUTDOWN_PING);
        assert_eq!(client.read(), "PING");
    }
    has_read(&mut client);
    assert_eq!(client.read(), "GOAWAY 3 0");
    assert_eq!(client.connection.closing(), Some(Closing::Linger));

    // A response that does not come is not waited for for ever.
    let mut client = of_h2();
    client.get(1);
    drain(&mut client);
    client.wait(2000);
    assert_eq!(client.get(3), "");
    assert_eq!(client.wait(3999), "");
    assert_eq!(client.read(), "");
    client.wait(1);
    assert_eq!(client.read(), "GOAWAY 1 0");
    client.respond(1, 200, b"one");
    assert!(client.read().ends_with("DATA 1 \"one\" end"));
    assert_eq!(client.connection.closing(), Some(Closing::Linger));
}

#[test]
fn a_response_of_a_drain_does_not_wait_for_what_has_gone_or_streams() {
    let mut client = of_h2();
    client.get(1);
    client.get(3);
    assert_eq!(drain(&mut client), "");
    client.respond(3, 200, b"three");
    client.read();
    assert_eq!(client.frame(3, 0, 1, &[0, 0, 0, 8]), "broken 1 StreamReset");
    assert_eq!(client.read(), "DATA 3 \"three\" end; PING");
    has_read(&mut client);
    assert_eq!(client.read(), "GOAWAY 3 0");
    let mut client = of_h2();
    client.get(1);
    client.get(3);
    assert_eq!(drain(&mut client), "");
    client.respond(3, 200, b"three");
    client.read();
    client.act(1, Action::Start(response(200, &Fields::EMPTY)));
    assert!(client.read().ends_with("DATA 3 \"three\" end"));
    client.get(5);
    client.respond(5, 200, b"five");
    assert!(client.read().ends_with("DATA 5 \"five\" end"));
}

#[test]
fn a_drain_takes_what_has_come_and_waits_for_half_a_request() {
    let mut client = of_h2();
    client.get(1);
    assert_eq!(drain(&mut client), "");
    let head = client.head(3, "GET", &[], true);
    let (first, second) = head.split_at(12);
    client.feed(first);
    client.respond(1, 200, b"one");
    assert_eq!(client.feed(&[]), "");
    assert!(client.read().ends_with("end"));
    assert!(!client.connection.has_events());
    assert_eq!(client.feed(second), "GET 3 / end");
    client.respond(3, 204, b"");
    client.feed(&[]);
    has_read(&mut client);
    assert!(client.read().ends_with("GOAWAY 3 0"));
}

#[test]
fn a_drain_waits_for_the_rest_of_an_answered_request() {
    let mut client = of_h2();
    client.post(1);
    assert_eq!(drain(&mut client), "");
    client.respond(1, 403, b"");
    assert_eq!(client.feed(&[]), "");
    assert!(client.read().ends_with("end"));
    client.data(1, b"abc", true);
    has_read(&mut client);
    assert_eq!(client.read(), "WINDOW_UPDATE 0 1; PING; GOAWAY 1 0");
}

#[test]
fn a_client_that_does_not_read_its_last_response_is_told_all_the_same() {
    let mut client = of_h2();
    client.get(1);
    client.respond(1, 204, b"");
    client.read();
    assert_eq!(drain(&mut client), "PING");
    let patience = client.limits.linger_ms;
    client.wait(patience - 1);
    assert_eq!(client.read(), "");
    client.wait(1);
    assert_eq!(client.read(), "GOAWAY 1 0");
    assert_eq!(client.connection.closing(), Some(Closing::Linger));
}

#[test]
fn an_idle_connection_that_drains_says_goaway_at_once() {
    let mut client = of_h2();
    client.get(1);
    client.respond(1, 204, b"");
    client.read();
    client.wait(1000);
    assert_eq!(drain(&mut client), "GOAWAY 1 0");
    assert_eq!(client.connection.closing(), Some(Closing::Linger));
    let mut client = Client::silent(Limits::default());
    assert_eq!(
        drain(&mut client),
        "SETTINGS; WINDOW_UPDATE 0 983041; GOAWAY 0 0"
    );
}

#[test]
fn time_ends_what_does_not_go_on() {
    let mut client = Client::silent(Limits::default());
    client.wait(30_000);
    assert_eq!(
        client.connection.closing(),
        Some(Closing::Clean),
        "no preface"
    );
    let mut client = Client::new();
    client.get(1);
    client.respond(1, 204, b"");
    client.wait(74_999);
    assert_eq!(client.connection.closing(), None);
    client.wait(1);
    assert_eq!(client.connection.closing(), Some(Closing::Clean), "idle");
    let mut client = Client::new();
    client.feed(&raw(1, 0, 1, b"\x82"));
    client.wait(30_000);
    assert_eq!(
        client.connection.fault(),
        Some(Fault::HeadTooSlow),
        "half a head"
    );
    let mut client = Client::new();
    client.feed(&[0, 0]);
    client.wait(30_000);
    assert_eq!(
        client.connection.fault(),
        Some(Fault::HeadTooSlow),
        "half a frame"
    );
    let mut client = Client::silent(Limits::default());
    let mut bytes = frame::PREFACE.to_vec();
    frame::settings(&mut bytes, &[]);
    client.feed(&bytes);
    client.get(1);
    client.wait(30_000);
    assert_eq!(client.connection.fault(), Some(Fault::SettingsTimeout));
}

#[test]
fn a_slow_body_is_given_up() {
    let mut client = Client::new();
    client.post(1);
    assert_eq!(client.wait(60_000), "", "no deadline");
    client.want(1, u64::MAX);
    client.data(1, &[b'x'; 2400], false);
    assert_eq!(client.wait(10_000), "");
    client.data(1, &[b'x'; 2399], false);
    assert_eq!(client.wait(10_000), "broken 1 BodyTooSlow");
    assert!(client.read().contains("; HEADERS 1 :status=408"));
}

#[test]
fn a_client_that_closes_gets_what_it_has_asked_for() {
    let mut client = Client::new();
    client.get(1);
    client.post(3);
    let event = with!(&mut client, |connection, cx, out| connection
        .receive_eof(cx, out));
    assert_eq!(
        event.map(super::client::spell).as_deref(),
        Some("broken 3 Truncated")
    );
    client.respond(1, 204, b"");
    assert_eq!(client.connection.closing(), Some(Closing::Clean));
}

#[test]
fn an_upgrade_answers_the_request_it_came_with() {
    let mut client = Client::silent(Limits::default());
    let (head, limits) = (Head::default(), Limits::default());
    let (mut out, mut heads) = (Output::default(), HeadPool::default());
    let cx = Context {
        now: 0,
        limits: &limits,
        heads: &mut heads,
        server: b"",
        date: b"",
        default_fields: &Fields::EMPTY,
    };
    let settings = b"AAMAAABkAAQAoAAAAAIAAAAA";
    let upgraded = Connection::upgraded(&cx, Options::default(), &head, settings, &mut out);
    client.connection = upgraded.expect("valid settings");
    client.out = out;
    assert!(client.read().starts_with("SETTINGS"));
    client.respond(1, 200, b"hi");
    assert!(client.read().ends_with("DATA 1 \"hi\" end"));
    let mut bytes = frame::PREFACE.to_vec();
    frame::settings(&mut bytes, &[]);
    client.feed(&bytes);
    assert_eq!(client.get(3), "GET 3 / end");
    let cx = Context {
        now: 0,
        limits: &limits,
        heads: &mut heads,
        server: b"",
        date: b"",
        default_fields: &Fields::EMPTY,
    };
    let refused =
        Connection::upgraded(&cx, Options::default(), &head, b"!", &mut Output::default());
    assert_eq!(refused.err(), Some(Fault::SettingsValue));
}

#[test]
fn a_request_that_is_said_again_means_the_same() {
    let mut client = Client::new();
    let first = client.head(1, "GET", &[("user-agent", "x")], true);
    client.feed(&first);
    for n in 1..400 {
        let id = 2 * n + 1;
        let again = client.head(id, "GET", &[("user-agent", "x")], true);
        assert_eq!(client.feed(&again), format!("GET {id} / end"));
        client.respond(id, 200, b"x");
        let text = client.read();
        assert!(text.ends_with(&format!("DATA {id} \"x\" end")), "{text}");
    }
}
