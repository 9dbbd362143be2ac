//! What is sent when: pipelines, what is held back, batches, portals, COPY, resets.

use std::sync::Arc;

use citius_pg::{Portal, RESET, Scope};
use citius_testkit::pg_calls::{Client, FakeCall, FakePool, INT4};
use citius_testkit::pg_messages::{complete, message, prepared, ready, row};

use super::*;

#[test]
fn several_calls_are_under_way_and_each_has_its_own_rows() {
    let mut client = client_of(ONE);
    let calls: Vec<FakeCall> = (0..20).map(|value| call(ONE, value)).collect();
    for one in &calls {
        client.add(one);
    }
    assert_eq!(client.sent().len(), 20 * EXECUTED.len());
    for value in 0..20 {
        client.hear(&result(&[value, -value]));
    }
    for (value, one) in calls.iter().enumerate() {
        let value = i32::try_from(value).unwrap();
        assert_eq!(client.result_of(one), rows(&[value, -value]));
    }
}

#[test]
fn the_error_of_one_call_is_no_error_of_the_next() {
    let mut client = client_of(ONE);
    let (bad, good) = (call(ONE, 0), call(ONE, 2));
    client.add(&bad);
    client.add(&good);
    client.hear(&[failed("22012", "division by zero"), result(&[2])].concat());
    assert_eq!(client.result_of(&bad), Err("server: 22012".into()));
    assert_eq!(client.result_of(&good), rows(&[2]));
}

#[test]
fn rows_before_an_error_are_no_result() {
    let mut client = client_of(ONE);
    let one = call(ONE, 1);
    client.add(&one);
    client.hear(&[message(b'2', b""), row(1), failed("22012", "late")].concat());
    assert_eq!(client.result_of(&one), Err("server: 22012".into()));
}

#[test]
fn nothing_is_sent_while_calls_are_held_and_all_behind_it() {
    let mut client = client_of(ONE);
    client.is_held = true;
    let calls = [call(ONE, 1), call(ONE, 2)];
    client.add(&calls[0]);
    client.add(&calls[1]);
    client.pump();
    assert!(client.sent().is_empty());
    client.is_held = false;
    client.pump();
    assert_eq!(client.sent(), [EXECUTED, EXECUTED].concat());
}

#[test]
fn a_call_that_no_code_waits_for_is_not_sent() {
    let mut client = client();
    let (gone, waited_for) = (call(ONE, 1), call(ONE, 2));
    client.add(&gone);
    client.add(&waited_for);
    client.sent();
    gone.abandon();
    client.hear(&described());
    assert_eq!(client.sent(), EXECUTED);
    client.hear(&result(&[2]));
    assert_eq!(client.result_of(&waited_for), rows(&[2]));
}

#[test]
fn whether_the_server_works_for_nothing_is_told() {
    let mut client = client_of(ONE);
    let (first, second) = (call(ONE, 1), call(ONE, 2));
    client.add(&first);
    client.add(&second);
    second.abandon();
    assert!(!client.session.is_blocked() && client.session.has_abandoned());
    client.hear(&result(&[1]));
    assert!(client.session.is_blocked());
    client.hear(&result(&[2]));
    assert!(!client.session.is_blocked() && !client.session.has_abandoned());
    // A statement that is being prepared, as behind the lock of a table.
    let third = call(TWO, 3);
    client.add(&third);
    assert!(!client.session.is_blocked());
    third.abandon();
    assert!(client.session.is_blocked() && client.session.has_abandoned());
}

#[test]
fn a_batch_is_one_request() {
    let mut client = client_of(ONE);
    let batch = FakeCall::each(ONE, &[1, 2]);
    client.add(&batch);
    let sent = client.sent();
    assert_eq!(
        sent,
        [
            "Bind s0 of 1",
            "Execute 0",
            "Bind s0 of 1",
            "Execute 0",
            "Sync"
        ]
    );
    let one = citius_testkit::pg_messages::rows(&[1]);
    client.hear(&[one.clone(), one, ready(b'I')].concat());
    let found = client.result_of(&batch).unwrap();
    assert_eq!((&*found.rows, found.count), (&[1, 1][..], 2));
    let none = FakeCall::each(ONE, &[]);
    client.add(&none);
    assert_eq!(client.sent(), ["Sync"]);
}

#[test]
fn of_a_call_that_does_not_fit_nothing_is_sent() {
    let mut client = client_of(ONE);
    let batch = FakeCall::each(ONE, &[1, citius_testkit::pg_calls::TOO_LARGE]);
    client.add(&batch);
    assert!(client.sent().is_empty());
    assert_eq!(client.result_of(&batch), Err("unfit: Range".into()));
    let good = call(ONE, 3);
    client.add(&good);
    client.hear(&result(&[3]));
    assert_eq!(client.result_of(&good), rows(&[3]));
}

#[test]
fn a_statement_of_compiled_code_is_executed_with_what_is_encoded() {
    let mut client = client();
    let one = FakeCall::encoded(ONE, 5);
    client.add(&one);
    client.hear(&described());
    assert_eq!(client.sent(), [PARSED, EXECUTED].concat());
    client.hear(&result(&[5]));
    assert_eq!(client.result_of(&one), rows(&[5]));
}

/// A block in which a portal of two rows is open.
fn with_portal(portal: &Arc<Portal<(), ()>>) -> Client {
    let mut client = client();
    client.add(&FakeCall::script("BEGIN"));
    client.hear(&done_in(b'T', "BEGIN"));
    let first = FakeCall::open(portal, ONE, &[1.into()]);
    client.add(&first);
    client.hear(&[prepared(&[INT4], &[("a", INT4)]), ready(b'T')].concat());
    let sent = client.sent();
    assert_eq!(sent[4..], ["Bind s0 of 1 in a portal", "Execute 2", "Sync"]);
    let portion = [message(b'2', b""), row(1), row(2), message(b's', b"")].concat();
    client.hear(&[portion, ready(b'T')].concat());
    let found = client.result_of(&first).map(|found| found.rows);
    assert_eq!(found, Ok(vec![1, 2]));
    assert!(!portal.is_done());
    client
}

#[test]
fn a_portal_is_fetched_from_in_portions_until_its_last_row() {
    let portal = Arc::new(Portal::new(2));
    let mut client = with_portal(&portal);
    // The statement is the portal's as long as that lives.
    client.session.forget_statements();
    assert!(client.sent().is_empty());
    let second = FakeCall::resume(&portal);
    client.add(&second);
    assert_eq!(client.sent(), ["Execute 2", "Sync"]);
    client.hear(&[row(3), complete("SELECT 1"), ready(b'T')].concat());
    assert_eq!(client.result_of(&second).unwrap().rows, [3]);
    assert!(portal.is_done());
    client.session.close_portal(portal.name().to_owned());
    client.add(&FakeCall::script("COMMIT"));
    let sent = client.sent();
    assert_eq!(
        sent,
        [format!("Close P{}", portal.name()), "Query COMMIT".into()]
    );
}

#[test]
fn a_portal_that_is_cancelled_fails_and_the_session_goes_on() {
    let portal = Arc::new(Portal::new(2));
    let mut client = with_portal(&portal);
    let second = FakeCall::resume(&portal);
    client.add(&second);
    second.abandon();
    assert!(client.session.is_blocked());
    (client.is_cancelling, client.is_held) = (true, true);
    let rollback = FakeCall::script("ROLLBACK");
    client.add(&rollback);
    client.sent();
    client.hear(&[row(3), failed_in(b'E', "57014", "cancelled")].concat());
    assert!(client.repeated.is_empty(), "its block has failed");
    assert_eq!(client.result_of(&second), Err("server: 57014".into()));
    assert!(!portal.is_done());
    assert!(
        client.sent().is_empty(),
        "the request could hit what follows"
    );
    (client.is_cancelling, client.is_held) = (false, false);
    client.pump();
    assert_eq!(client.sent(), ["Query ROLLBACK"]);
    client.hear(&done("ROLLBACK"));
    assert!(client.result_of(&rollback).is_ok());
}

#[test]
fn data_is_sent_only_for_a_copy_and_nothing_behind_it_until_it_is_done() {
    let mut client = client_of(ONE);
    client.session.copy_data(b"stray");
    assert!(client.sent().is_empty());
    let copy = FakeCall::copy("COPY t FROM STDIN");
    client.add(&copy);
    let behind = FakeCall::scoped(Scope::Session, ONE, &[1.into()]);
    client.add(&behind);
    assert_eq!(client.sent(), ["Query COPY"]);
    client.hear(&message(b'G', &[0, 0, 0]));
    assert_eq!(client.copied, [None]);
    client.session.copy_data(b"1\n");
    client.session.end_copy(None);
    assert_eq!(client.sent(), ["CopyData 1\n", "CopyDone"]);
    client.hear(&done("COPY 1"));
    assert_eq!(client.result_of(&copy).unwrap().count, 1);
    assert_eq!(client.sent(), EXECUTED);
}

#[test]
fn the_data_of_a_copy_is_not_interrupted_by_names_that_are_forgotten() {
    // PostgreSQL refuses any other message between those of the data (protocol-flow, "COPY Operations").
    let mut client = client_of(ONE);
    let stale = FakeCall::scoped(Scope::Session, ONE, &[1.into()]);
    client.add(&stale);
    client.add(&FakeCall::copy("COPY t FROM STDIN"));
    client.sent();
    client.hear(&failed("0A000", "cached plan must not change result type"));
    client.hear(&message(b'G', &[0, 0, 0]));
    client.session.forget_statements();
    client.session.end_copy(None);
    assert_eq!(client.sent(), ["CopyDone"]);
    client.hear(&done("COPY 0"));
    assert_eq!(client.sent(), ["Close Ss0"]);
}

#[test]
fn data_of_a_copy_is_handed_on() {
    let mut client = client();
    let copy = FakeCall::copy("COPY t TO STDOUT");
    client.add(&copy);
    let data = [
        message(b'd', b"1\n"),
        message(b'd', b"2\n"),
        message(b'c', b""),
    ]
    .concat();
    client.hear(&[message(b'H', &[0, 0, 0]), data, done("COPY 2")].concat());
    assert_eq!(client.copied, [Some(b"1\n2\n".to_vec())]);
    assert_eq!(client.result_of(&copy).unwrap().count, 2);
    let none = FakeCall::copy("SELECT 1");
    client.add(&none);
    assert!(client.result_of(&none).unwrap_err().contains("COPY"));
    assert!(client.sent().iter().all(|sent| sent == "Query COPY"));
}

#[test]
fn a_copy_from_the_client_is_no_statement() {
    let mut client = client();
    let stream = call("COPY t FROM STDIN", 1);
    client.add(&stream);
    assert_eq!(client.result_of(&stream), Err("refused: stream".into()));
    assert!(client.sent().is_empty());
}

#[test]
fn what_changes_the_session_is_refused_to_calls_of_the_pool() {
    let mut client = client();
    for (text, word) in [
        ("BEGIN", "transaction"),
        ("SAVEPOINT a", "savepoint"),
        ("DISCARD ALL", "names"),
        ("SET search_path = a", "session"),
        ("LISTEN a", "session"),
        ("PREPARE a AS SELECT 1", "session"),
    ] {
        let one = FakeCall::free(text, &[]);
        client.add(&one);
        assert_eq!(
            client.result_of(&one),
            Err(format!("refused: {word}")),
            "{text}"
        );
    }
    let commit = FakeCall::scoped(Scope::Block, "COMMIT", &[]);
    client.add(&commit);
    assert_eq!(
        client.result_of(&commit),
        Err("refused: transaction".into())
    );
    assert!(client.sent().is_empty());
    let mut pooled = Client::open(FakePool::new(false, false));
    let set = FakeCall::scoped(Scope::Session, "LISTEN a", &[]);
    pooled.add(&set);
    assert_eq!(pooled.result_of(&set), Err("refused: pooled".into()));
}

#[test]
fn what_a_user_leaves_is_undone_for_the_next_one() {
    let mut client = client();
    assert_eq!(client.session.take_changes(), None);
    client.add(&FakeCall::scoped(Scope::Session, "LISTEN a", &[]));
    assert_eq!(client.session.take_changes().as_deref(), Some(RESET));
    assert_eq!(client.session.take_changes(), None);
    client.add(&FakeCall::scoped(Scope::Session, "LOAD 'a'", &[]));
    assert_eq!(client.session.take_changes().as_deref(), Some(""));
    client.session.set_changed();
    let reset = client.session.take_changes().unwrap();
    assert!(reset.contains("DEALLOCATE") && reset.ends_with(RESET));
}

#[test]
fn code_of_the_pool_is_followed_by_a_reset_that_holds_the_next_user_back() {
    let mut client = client_of(ONE);
    let code = FakeCall::free("DO 'BEGIN END'", &[]);
    let next = call(ONE, 2);
    client.add(&code);
    client.add(&next);
    client.hear(&[prepared(&[], &[]), ready(b'I')].concat());
    let sent = client.sent();
    assert_eq!(
        sent[3..],
        ["Bind s22 of 0", "Execute 0", "Sync", "Query DO"]
    );
    client.hear(&[message(b'2', b""), done("DO")].concat());
    assert!(client.result_of(&code).is_ok());
    assert!(client.sent().is_empty(), "the reset is not over");
    client.hear(&[complete("DO"), done("DISCARD TEMP")].concat());
    assert_eq!(client.sent(), EXECUTED);
}

#[test]
fn a_pool_that_resets_does_so_behind_each_of_its_own_calls() {
    let mut client = Client::open(FakePool::new(true, true));
    let (one, of_a_session) = (
        call(ONE, 1),
        FakeCall::scoped(Scope::Session, ONE, &[2.into()]),
    );
    client.add(&one);
    client.hear(&described());
    assert_eq!(client.sent()[3..], [&EXECUTED[..], &["Query DO"]].concat());
    client.hear(&[result(&[1]), done("DISCARD TEMP")].concat());
    client.add(&of_a_session);
    assert_eq!(client.sent(), EXECUTED);
}

#[test]
fn a_reset_that_a_stray_cancel_request_has_hit_is_sent_again() {
    let mut client = Client::open(FakePool::new(true, true));
    client.add(&call(ONE, 1));
    client.hear(&described());
    client.hear(&result(&[1]));
    client.sent();
    client.is_cancelling = true;
    client.hear(&failed("57014", "cancelled"));
    assert_eq!(client.sent(), ["Query DO"]);
    let next = call(ONE, 2);
    client.add(&next);
    assert!(client.sent().is_empty());
    client.hear(&done("DISCARD TEMP"));
    assert_eq!(client.sent()[..3], EXECUTED);
}
