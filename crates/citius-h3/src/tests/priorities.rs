//! Whose bytes leave first (RFC 9218).

use citius_http::{Action, Fields, Payload, ResponseHead, Status};

use super::client::{Client, bytes, headers, with};

/// Requests with these priorities, whose responses wait for a window; in which order they leave.
fn order(
    priorities: &[&str],
    n_bytes: usize,
    step: usize,
    prepare: impl Fn(&mut Client),
) -> alloc::vec::Vec<u64> {
    let mut client = Client::greeted();
    prepare(&mut client);
    client.window = Some(0);
    let mut streams = alloc::vec::Vec::new();
    for (stream, priority) in (0..).step_by(4).zip(priorities) {
        client.bytes(
            stream,
            &headers(&with("GET", &[("priority", priority)])),
            true,
        );
        streams.push(stream);
    }
    for request in 0..u32::try_from(priorities.len()).unwrap() {
        let response = ResponseHead {
            status: Status::OK,
            content_type: None,
            fields: &Fields::EMPTY,
        };
        let body = alloc::vec![b'x'; n_bytes];
        let done = client.act(request, Action::Respond(response, Payload::Copied(&body)));
        assert_eq!(done, Ok(()));
    }
    client.order.clear();
    for _ in 0..100 {
        client.open_window(step, &streams);
    }
    client.order.dedup();
    client.order
}

#[test]
fn the_most_urgent_comes_first_and_equals_follow_each_other() {
    let order = order(&["u=5", "u=0", "", "u=3"], 1000, usize::MAX, |_| {});
    assert_eq!(order, [4, 8, 12, 0]);
}

#[test]
fn what_was_said_of_a_stream_goes_over_its_head() {
    // The first comes before its request, the second names one that is open.
    let order = order(&["u=1", "u=2"], 1000, usize::MAX, |client| {
        client.bytes(2, &bytes("800f0700 04 00 753d35"), false);
    });
    assert_eq!(order, [4, 0]);
    let mut client = Client::greeted();
    client.window = Some(0);
    client.bytes(0, &headers(&with("GET", &[])), true);
    client.bytes(4, &headers(&with("GET", &[])), true);
    client.respond(0, b"x");
    client.respond(1, b"y");
    client.order.clear();
    client.bytes(2, &bytes("800f0700 04 04 753d31"), false);
    client.open_window(usize::MAX, &[0, 4]);
    assert_eq!(client.order, [4, 0]);
}
