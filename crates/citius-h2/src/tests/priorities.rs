//! Whose data leaves first (RFC 9218).

use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;

use super::client::Client;

/// Numbers of the streams whose data leaves, in that order, when all have waited for the connection's window.
fn order(priorities: &[&str], update: Option<(u32, &str)>) -> Vec<String> {
    let mut client = Client::new();
    client.get(1);
    client.respond(1, 200, &vec![b'x'; 65_535]);
    client.read();
    for (id, priority) in (3u32..).step_by(2).zip(priorities) {
        let head = client.head(id, "GET", &[("priority", priority)], true);
        client.feed(&head);
        client.respond(id, 200, &vec![b'x'; 20_000]);
    }
    if let Some((id, value)) = update {
        let payload = [&id.to_be_bytes()[..], value.as_bytes()].concat();
        client.frame(16, 0, 0, &payload);
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
