//! The end of a session: which calls are lost, which go to another session, and which are given up.

use citius_pg::{Lost, Over, Scope, Unsent};
use citius_testkit::pg_calls::{Client, FakeCall, FakeHost};
use citius_testkit::pg_messages::ready;

use super::*;

fn close(client: &mut Client) -> Option<Lost<FakeCall>> {
    client.session.close(FakeHost(&client.pool))
}

#[test]
fn calls_under_way_are_lost_and_those_that_were_not_sent_go_back() {
    let mut client = client_of(ONE);
    let (sent, free) = (call(ONE, 1), call(TWO, 2));
    let own = FakeCall::scoped(Scope::Session, TWO, &[3.into()]);
    for one in [&sent, &free, &own] {
        client.add(one);
    }
    let lost = close(&mut client).unwrap();
    assert!(lost.underway.len() == 1 && lost.underway[0].is(&sent));
    let [(last, of_last), (first, of_first)] = &*lost.unsent else {
        panic!("two were not sent");
    };
    assert!(last.is(&own) && first.is(&free));
    assert_eq!((*of_last, *of_first), (Unsent::Lost, Unsent::Queued));
    assert!(close(&mut client).is_none(), "it ends once");
    client.sent();
    client.hear(&result(&[1]));
    client.pump();
    assert!(client.sent().is_empty() && client.ended.is_empty());
}

#[test]
fn a_statement_whose_preparation_ends_sessions_is_given_up() {
    let one = call(ONE, 1);
    for round in 0..3 {
        let mut client = client();
        client.add(&one);
        let lost = close(&mut client).unwrap();
        let expected = [Unsent::Queued, Unsent::Queued, Unsent::GivenUp][round];
        assert_eq!(lost.unsent[0].1, expected);
    }
}

#[test]
fn a_call_whose_failure_is_known_has_it_at_the_end() {
    let mut client = client();
    let one = call(ONE, 1);
    client.add(&one);
    client.hear(&citius_testkit::pg_messages::failure("42P01", "no table"));
    let lost = close(&mut client).unwrap();
    assert_eq!(lost.failing.len(), 1);
    assert_eq!(lost.failing[0].1, Err("server: 42P01".into()));
}

#[test]
fn what_breaks_the_protocol_is_told_and_read_no_further() {
    let mut client = client();
    let one = call(ONE, 1);
    client.add(&one);
    client.hear(&[ready(b'I'), described()].concat());
    assert!(matches!(client.over, Some(Over::Fault(_))));
    assert!(client.ended.is_empty());
}
