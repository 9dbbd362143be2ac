//! Whose data leaves first (RFC 9218).

use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;

use citius_http::{Fault, Limits};

use super::client::Client;
use crate::frame;

/// Numbers of the streams whose data leaves, in that order, when all have waited for the connection's window.
fn order(priorities: &[&str], update: Option<(u32, &str)>) -> Vec<String> {
    order_with(&[], priorities, update)
}

/// The same, with updates that come before the requests.
fn order_with(
    early: &[(u32, &str)],
    priorities: &[&str],
    update: Option<(u32, &str)>,
) -> Vec<String> {
    let mut client = Client::new();
    for &(id, value) in early {
        client.prioritise(id, value);
    }
    client.get(1);
    client.respond(1, 200, &vec![b'x'; 65_535]);
    client.read();
    for (id, priority) in (3u32..).step_by(2).zip(priorities) {
        let head = client.head(id, "GET", &[("priority", priority)], true);
        client.feed(&head);
        client.respond(id, 200, &vec![b'x'; 20_000]);
    }
    if let Some((id, value)) = update {
        client.prioritise(id, value);
    }
    client.read();
    client.open_window(0, 1_000_000);
    let text = client.read();
    let data = text.split("; ").filter(|line| line.starts_with("DATA"));
    data.filter_map(|line| line.split(' ').nth(1))
        .map(String::from)
        .collect()
}

#[test]
fn the_most_urgent_leaves_first() {
    assert_eq!(
        order(&["u=5", "", "u=0"], None),
        ["7", "7", "5", "5", "3", "3"]
    );
}

#[test]
fn equals_follow_each_other_or_share() {
    assert_eq!(order(&["", ""], None), ["3", "3", "5", "5"]);
    assert_eq!(order(&["i", "i"], None), ["3", "5", "3", "5"]);
    assert_eq!(order(&["i", "", "i"], None), ["5", "5", "3", "7", "3", "7"]);
}

#[test]
fn an_update_changes_the_order() {
    assert_eq!(
        order(&["u=1", "u=2"], Some((3, "u=6"))),
        ["5", "5", "3", "3"]
    );
}

#[test]
fn an_update_may_come_before_its_request() {
    assert_eq!(
        order_with(&[(5, "u=6"), (5, "u=0")], &["u=1", "u=2"], None),
        ["5", "5", "3", "3"],
        "the newest goes over what the head says"
    );
    assert_eq!(
        order_with(&[(5, "u=0")], &["u=1", "u=2"], Some((5, "u=7"))),
        ["3", "3", "5", "5"]
    );
    assert_eq!(
        order_with(&[(9, "u=0"), (3, "u=7")], &["", ""], None),
        ["5", "5", "3", "3"]
    );
}

#[test]
fn updates_that_come_early_are_as_many_as_streams_may_be() {
    let limits = Limits {
        h2_streams_max: 4,
        ..Limits::default()
    };
    let mut client = Client::with(limits);
    for id in [7, 3, 5, 3] {
        client.prioritise(id, "u=1");
    }
    client.get(7);
    assert!(client.connection.early.is_empty(), "lower ones are over");
    for id in [7, 5, 9, 11, 13, 13] {
        client.prioritise(id, "u=1");
    }
    assert_eq!(client.connection.fault(), None);
    client.prioritise(15, "u=1");
    assert_eq!(client.connection.fault(), Some(Fault::PriorityExcess));
    assert_eq!(client.read(), "GOAWAY 7 1");
}

#[test]
fn early_updates_of_a_client_that_does_not_know_the_limit_are_dropped() {
    let limits = Limits {
        h2_streams_max: 4,
        ..Limits::default()
    };
    let mut client = Client::silent(limits);
    let mut bytes = frame::PREFACE.to_vec();
    frame::settings(&mut bytes, &[]);
    client.feed(&bytes);
    for id in (1..1000).step_by(2) {
        client.prioritise(id, "u=1");
    }
    assert_eq!(client.connection.fault(), None);
    client.get(7);
    client.get(9);
    assert!(client.connection.early.is_empty());
}
