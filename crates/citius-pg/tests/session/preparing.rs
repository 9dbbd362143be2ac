//! Which statement is prepared under which name, and which ones are forgotten.

use citius_pg::{NAMED_TEXT_BYTES_MAX, SERVER_BYTES_MAX, STATEMENTS_MAX, Scope};
use citius_testkit::pg_calls::{Client, FakeCall, FakePool, INT4};
use citius_testkit::pg_messages::{prepared, ready, row_description};

use super::*;

#[test]
fn a_statement_is_prepared_once_and_executed_by_its_name() {
    let mut client = client();
    let (first, second) = (call(ONE, 1), call(ONE, 2));
    client.add(&first);
    assert_eq!(client.sent(), PARSED);
    client.add(&second);
    assert!(client.sent().is_empty(), "it waits for the description");
    client.hear(&described());
    assert_eq!(client.sent(), [EXECUTED, EXECUTED].concat());
    client.hear(&[result(&[1]), result(&[2])].concat());
    assert_eq!(client.result_of(&first), rows(&[1]));
    assert_eq!(client.result_of(&second), rows(&[2]));
    client.add(&call(ONE, 3));
    assert_eq!(client.sent(), EXECUTED);
}

#[test]
fn statements_of_several_calls_are_prepared_at_the_same_time() {
    let mut client = client();
    client.add(&call(ONE, 1));
    client.add(&call(TWO, 2));
    let sent = client.sent();
    assert_eq!(sent[..3], PARSED);
    assert_eq!(sent[3], format!("Parse {NAME_OF_TWO}: {TWO}"));
    client.hear(&described());
    assert_eq!(client.sent(), EXECUTED, "the second one is not described");
}

#[test]
fn a_call_whose_statement_is_prepared_does_not_pass_one_whose_is_not() {
    let mut client = client_of(ONE);
    client.add(&call(TWO, 1));
    client.add(&call(ONE, 2));
    let sent = client.sent();
    assert!(!sent.iter().any(|it| it.starts_with("Bind")), "{sent:?}");
    client.hear(&described());
    let sent = client.sent();
    assert_eq!((&*sent[0], &*sent[3]), ("Bind s16 of 1", "Bind s0 of 1"));
}

#[test]
fn a_failed_prepare_fails_the_calls_that_wait_for_it_and_no_others() {
    let mut client = client();
    let (bad, other, bad_too) = (call(ONE, 1), call(TWO, 2), call(ONE, 3));
    for one in [&bad, &other, &bad_too] {
        client.add(one);
    }
    client.hear(&citius_testkit::pg_messages::failure("42P01", "no table"));
    assert!(client.ended.is_empty(), "the status is not known yet");
    client.hear(&ready(b'I'));
    assert_eq!(client.result_of(&bad), Err("server: 42P01".into()));
    assert_eq!(client.result_of(&bad_too), Err("server: 42P01".into()));
    client.sent();
    client.hear(&described());
    client.hear(&result(&[2]));
    assert_eq!(client.result_of(&other), rows(&[2]));
    // What has failed is tried again when it comes again, under the same name.
    client.sent();
    client.add(&call(ONE, 4));
    assert_eq!(client.sent(), PARSED);
}

#[test]
fn a_name_whose_parse_has_failed_is_closed_before_it_is_used_again() {
    let mut client = client();
    client.add(&call(ONE, 1));
    client.sent();
    client.hear(&failed("42P01", "no table"));
    assert_eq!(client.sent(), [format!("Close S{NAME_OF_ONE}")]);
}

#[test]
fn a_statement_without_a_name_is_sent_with_its_text() {
    let mut client = Client::open(FakePool::new(false, false));
    let first = call(ONE, 1);
    client.add(&first);
    let nameless = format!("Parse : {ONE}");
    assert_eq!(client.sent(), [&nameless, "Describe S", "Sync"]);
    client.hear(&described());
    let whole = [&nameless, "Bind  of 1", "Describe P", "Execute 0", "Sync"];
    assert_eq!(client.sent(), whole);
    let columns = row_description(&[("a", INT4)]);
    let mut answer = citius_testkit::pg_messages::message(b'1', b"");
    let bound = result(&[1]);
    answer.extend(&bound[..5]);
    answer.extend(columns);
    answer.extend(&bound[5..]);
    client.hear(&answer);
    assert_eq!(client.result_of(&first), rows(&[1]));
    client.add(&call(ONE, 2));
    assert_eq!(client.sent(), whole, "it is not described again");
}

#[test]
fn a_long_text_gets_no_name() {
    let mut client = client();
    let text = format!("{ONE} -- {}", "x".repeat(NAMED_TEXT_BYTES_MAX));
    client.add(&call(&text, 1));
    assert_eq!(client.sent()[0], format!("Parse : {text}"));
}

#[test]
fn an_unknown_name_has_names_given_up_and_the_call_repeated() {
    let mut client = client_of(ONE);
    let first = call(ONE, 2);
    client.add(&first);
    client.sent();
    client.hear(&failed("26000", "prepared statement \"s0\" does not exist"));
    assert!(client.ended.is_empty());
    assert!(client.repeated.pop().unwrap().is(&first));
    assert_eq!(client.n_names_lost, 1);
    client.add(&first);
    let sent = client.sent();
    assert!(sent.contains(&format!("Parse : {ONE}")), "{sent:?}");
}

#[test]
fn a_name_that_the_calls_own_text_has_deallocated_is_given_again() {
    let mut client = client_of(ONE);
    client.add(&FakeCall::scoped(Scope::Session, "DISCARD ALL", &[]));
    client.hear(&[prepared(&[], &[]), ready(b'I')].concat());
    client.session.take_changes();
    client.sent();
    client.add(&call(ONE, 2));
    assert_eq!(client.sent(), [&["Close Ss0"][..], &PARSED].concat());
    assert_eq!(client.n_names_lost, 0);
}

#[test]
fn the_server_keeps_a_bounded_number_of_statements() {
    let mut client = client();
    let (mut names, mut most) = (0_usize, 0_usize);
    for number in 0..STATEMENTS_MAX * 3 {
        client.add(&call(&format!("{ONE}{number}"), 1));
        client.hear(&described());
        client.hear(&result(&[1]));
        for sent in client.sent() {
            names += usize::from(sent.starts_with("Parse s"));
            names -= usize::from(sent.starts_with("Close Ss"));
        }
        most = most.max(names);
    }
    assert!(most <= STATEMENTS_MAX, "{most}");
    assert!(most > STATEMENTS_MAX / 4, "{most}");
}

#[test]
fn the_server_keeps_a_bounded_number_of_bytes_of_statements() {
    // By the estimate of `footprint`, a text of 8000 bytes takes 2.5 MiB.
    let filler = "x".repeat(8000);
    let most = SERVER_BYTES_MAX / (8000 * 320);
    let mut client = client();
    let mut names = 0_usize;
    for number in 0..60 {
        client.add(&call(&format!("{ONE} -- {number:06} {filler}"), 1));
        client.hear(&described());
        client.hear(&result(&[1]));
        for sent in client.sent() {
            names += usize::from(sent.starts_with("Parse s"));
            names -= usize::from(sent.starts_with("Close Ss"));
        }
        assert!(names <= most, "{names}");
    }
    assert!(names > 0);
}

#[test]
fn a_statement_that_is_wider_than_it_was_taken_to_be_makes_others_go() {
    // By the estimate of `footprint`, one of 1600 columns takes 1.6 MiB, and 0.3 MiB until it is described.
    let wide: Vec<(&str, u32)> = (0..1600).map(|_| ("column", INT4)).collect();
    let most = SERVER_BYTES_MAX / (1600 * 1024);
    let mut client = client();
    for number in 0..60 {
        client.add(&call(&format!("{ONE}{number}"), 1));
    }
    let mut names = 60;
    client.sent();
    for _ in 0..60 {
        client.hear(&[prepared(&[INT4], &wide), ready(b'I')].concat());
    }
    assert!(names > most);
    for _ in 0..60 {
        client.hear(&failed("22012", "division by zero"));
    }
    for sent in client.sent() {
        names -= usize::from(sent.starts_with("Close Ss"));
    }
    assert!(names <= most, "{names}");
}

#[test]
fn a_statement_that_is_under_way_is_not_forgotten() {
    let mut client = client_of(ONE);
    client.add(&call(ONE, 2));
    client.sent();
    client.session.forget_statements();
    assert!(client.sent().is_empty());
    client.hear(&result(&[2]));
    client.session.forget_statements();
    assert_eq!(client.sent(), ["Close Ss0"]);
}

#[test]
fn a_statement_is_prepared_once_for_each_search_path() {
    let mut client = client_of(ONE);
    let set = FakeCall::scoped(Scope::Session, "SET search_path = a", &[]);
    client.add(&set);
    client.hear(&[prepared(&[], &[]), ready(b'I')].concat());
    client.hear(&[citius_testkit::pg_messages::message(b'2', b""), done("SET")].concat());
    assert!(client.result_of(&set).is_ok());
    client.sent();
    client.add(&FakeCall::scoped(Scope::Session, ONE, &[1.into()]));
    let sent = client.sent();
    assert!(sent[0].starts_with("Parse s0_"), "{sent:?}");
    assert_eq!(
        client.session.take_changes().as_deref(),
        Some(citius_pg::RESET),
        "another block shall not find it"
    );
    client.hear(&described());
    client.sent();
    client.add(&call(ONE, 2));
    client.hear(&result(&[1]));
    assert_eq!(client.sent()[0], "Bind s0 of 1");
}

#[test]
fn what_stands_behind_a_change_of_the_search_path_is_prepared_behind_it() {
    let mut client = client();
    let set = FakeCall::scoped(Scope::Session, "SET search_path = a", &[]);
    client.add(&set);
    client.add(&FakeCall::scoped(Scope::Session, ONE, &[1.into()]));
    let sent = client.sent();
    assert!(
        sent[0].ends_with(": SET search_path = a") && sent.len() == 3,
        "{sent:?}"
    );
    client.hear(&[prepared(&[], &[]), ready(b'I')].concat());
    let sent = client.sent();
    assert_eq!(sent[1..3], ["Execute 0", "Sync"]);
    assert!(sent[3].starts_with("Parse s16_"), "{sent:?}");
}
