//! What an error means for its request: repeated, prepared anew, or told.

use citius_pg::{Over, Scope};
use citius_testkit::pg_calls::FakeCall;
use citius_testkit::pg_messages::{error, ready};

use super::*;

const PLAN: &str = "cached plan must not change result type";

#[test]
fn a_plan_that_has_changed_is_prepared_anew_and_the_call_repeated_once() {
    let mut client = client_of(ONE);
    let one = call(ONE, 2);
    client.add(&one);
    client.sent();
    client.hear(&failed("0A000", PLAN));
    assert!(client.ended.is_empty());
    assert!(client.repeated.pop().unwrap().is(&one));
    client.add(&one);
    assert_eq!(client.sent(), [&["Close Ss0"][..], &PARSED].concat());
    client.hear(&described());
    client.hear(&failed("0A000", PLAN));
    assert!(
        client.repeated.is_empty(),
        "the second time is its own doing"
    );
    assert_eq!(client.result_of(&one), Err("server: 0A000".into()));
}

#[test]
fn a_plan_that_has_changed_says_so_of_the_plans_of_other_statements() {
    let mut client = client_of(ONE);
    client.add(&call(TWO, 1));
    client.hear(&described());
    client.hear(&result(&[1]));
    client.add(&call(ONE, 2));
    client.hear(&failed("0A000", PLAN));
    client.sent();
    client.add(&call(TWO, 3));
    let parse = format!("Parse {NAME_OF_TWO}: {TWO}");
    assert_eq!(client.sent()[..2], [format!("Close S{NAME_OF_TWO}"), parse]);
}

#[test]
fn a_call_of_a_block_is_not_repeated_because_its_transaction_has_failed() {
    let mut client = client_of(ONE);
    client.add(&FakeCall::script("BEGIN"));
    client.hear(&done_in(b'T', "BEGIN"));
    let one = FakeCall::scoped(Scope::Block, ONE, &[2.into()]);
    client.add(&one);
    client.hear(&failed_in(b'E', "0A000", PLAN));
    assert!(client.repeated.is_empty());
    assert_eq!(client.result_of(&one), Err("server: 0A000".into()));
}

#[test]
fn a_stray_cancel_request_has_calls_of_the_pool_repeated() {
    let mut client = client_of(ONE);
    client.is_cancelling = true;
    let (free, own) = (
        call(ONE, 1),
        FakeCall::scoped(Scope::Session, ONE, &[2.into()]),
    );
    client.add(&free);
    client.add(&own);
    client.hear(&[failed("57014", "cancelled"), failed("57014", "cancelled")].concat());
    assert!(client.repeated.pop().unwrap().is(&free));
    assert_eq!(client.result_of(&own), Err("server: 57014".into()));
    client.is_cancelling = false;
    let timed_out = call(ONE, 3);
    client.add(&timed_out);
    client.hear(&failed("57014", "statement timeout"));
    assert_eq!(client.result_of(&timed_out), Err("server: 57014".into()));
}

#[test]
fn a_stray_cancel_request_has_a_statement_prepared_anew() {
    let mut client = client();
    client.is_cancelling = true;
    let one = call(ONE, 1);
    client.add(&one);
    client.sent();
    client.hear(&failed("57014", "cancelled"));
    assert!(client.ended.is_empty());
    assert_eq!(client.sent(), [&["Close Ss0"][..], &PARSED].concat());
    client.hear(&described());
    client.hear(&result(&[1]));
    assert_eq!(client.result_of(&one), rows(&[1]));
}

#[test]
fn a_name_that_is_there_already_has_names_given_up() {
    let mut client = client();
    let one = call(ONE, 1);
    client.add(&one);
    client.sent();
    client.hear(&failed("42P05", "prepared statement \"s0\" already exists"));
    assert_eq!(client.n_names_lost, 1);
    let sent = client.sent();
    assert_eq!(sent[1], format!("Parse : {ONE}"), "{sent:?}");
}

#[test]
fn an_argument_of_another_type_has_the_statement_described_once_more() {
    let mut client = client_of(ONE);
    let text = citius_testkit::pg_calls::Argument {
        type_oid: 25,
        value: 7,
    };
    let one = FakeCall::free(ONE, &[text]);
    client.add(&one);
    assert_eq!(client.sent(), [&["Close Ss0"][..], &PARSED].concat());
    let changed = citius_testkit::pg_messages::prepared(&[25], &[("a", 23)]);
    client.hear(&[changed, ready(b'I')].concat());
    client.hear(&result(&[7]));
    assert_eq!(client.result_of(&one), rows(&[7]));
    let never = call(ONE, 8);
    client.add(&never);
    client.sent();
    let changed = citius_testkit::pg_messages::prepared(&[25], &[("a", 23)]);
    client.hear(&[changed, ready(b'I')].concat());
    assert_eq!(client.result_of(&never), Err("unfit: Type".into()));
}

#[test]
fn a_number_that_is_too_large_has_it_described_at_most_once_a_second() {
    let mut client = client_of(ONE);
    let large = || call(ONE, citius_testkit::pg_calls::TOO_LARGE);
    let first = large();
    client.add(&first);
    assert_eq!(client.result_of(&first), Err("unfit: Range".into()));
    client.pool.wait_ms(1000);
    let second = large();
    client.add(&second);
    assert_eq!(client.sent(), [&["Close Ss0"][..], &PARSED].concat());
    client.hear(&described());
    assert_eq!(client.result_of(&second), Err("unfit: Range".into()));
    let third = large();
    client.add(&third);
    assert_eq!(client.result_of(&third), Err("unfit: Range".into()));
    assert!(client.sent().is_empty());
}

#[test]
fn an_error_that_ends_the_session_is_kept_for_its_end() {
    let mut client = client_of(ONE);
    client.add(&call(ONE, 1));
    client.hear(&error("FATAL", "57P01", "terminating connection"));
    assert_eq!(client.over, Some(Over::Fatal));
    assert_eq!(client.session.take_fatal().unwrap().code, "57P01");
    assert!(client.ended.is_empty());
}

#[test]
fn a_reset_that_fails_ends_the_session_and_nothing_is_sent_behind_it() {
    let mut client = client_of(ONE);
    client.add(&FakeCall::free("DO 'BEGIN END'", &[]));
    client.hear(&[citius_testkit::pg_messages::prepared(&[], &[]), ready(b'I')].concat());
    client.hear(&[citius_testkit::pg_messages::message(b'2', b""), done("DO")].concat());
    client.add(&call(ONE, 2));
    client.sent();
    client.hear(&failed("42501", "permission denied"));
    assert_eq!(client.over, Some(Over::Fatal));
    assert!(client.sent().is_empty());
}
