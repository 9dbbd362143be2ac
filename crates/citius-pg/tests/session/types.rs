//! Types of a database: statements that wait until they are known, and those that have changed.

use citius_pg::{Definition, Guard, Scope};
use citius_testkit::pg_calls::{Argument, Client, FakeCall, FakeHost, FakePool, INT4};
use citius_testkit::pg_messages::{complete, message, prepared, ready, row, row_description};

use super::*;

/// A type that a database has made.
const OWN: u32 = 20_000;

fn described_as(parameters: &[u32], column: u32) -> Vec<u8> {
    [prepared(parameters, &[("a", column)]), ready(b'I')].concat()
}

#[test]
fn a_statement_waits_until_its_types_are_known_and_the_look_up_goes_first() {
    let mut client = client();
    let one = call(ONE, 1);
    client.add(&one);
    client.hear(&described_as(&[INT4], OWN));
    assert_eq!(client.unknown_types, [OWN]);
    client.sent();
    let look_up = FakeCall::scoped(Scope::Lookup, TWO, &[2.into()]);
    client.add(&look_up);
    client.hear(&described());
    assert_eq!(client.sent()[3], format!("Bind {NAME_OF_TWO} of 1"));
    client
        .pool
        .learn(|types| types.define(OWN, Definition::Domain(INT4)));
    let types = citius_pg::Host::types(&FakeHost(&client.pool));
    assert!(client.session.know_types(&types).is_empty());
    client.pump();
    assert_eq!(client.sent(), EXECUTED);
}

#[test]
fn a_statement_whose_types_cannot_be_found_out_fails_and_is_described_again() {
    let mut client = client();
    let (one, other) = (call(ONE, 1), call(TWO, 2));
    client.add(&one);
    client.add(&other);
    client.hear(&[described_as(&[INT4], OWN), described()].concat());
    client.sent();
    let host = FakeHost(&client.pool);
    let failed = client.session.fail_types(host, || "no types".to_owned());
    assert!(failed.len() == 1 && failed[0].0.is(&one));
    client.pump();
    assert_eq!(client.sent()[..2], ["Close Ss0", "Bind s16 of 1"]);
    client.add(&call(ONE, 3));
    assert_eq!(client.sent(), PARSED);
}

/// A client for which a statement is prepared that has a composite type for its parameter.
fn with_composite(has_names: bool) -> Client {
    let mut client = Client::open(FakePool::new(has_names, false));
    let fields = [("f".to_owned(), INT4)];
    let composite = Definition::Composite(fields.into());
    client.pool.learn(|types| types.define(OWN, composite));
    client.add(&of_composite());
    client.hear(&described_as(&[OWN], INT4));
    client
}

fn of_composite() -> FakeCall {
    let argument = Argument {
        type_oid: OWN,
        value: 1,
    };
    FakeCall::free(ONE, &[argument])
}

#[test]
fn a_guard_goes_with_a_statement_that_relies_on_the_fields_of_a_type() {
    let mut client = with_composite(true);
    let sent = client.sent();
    assert_eq!(sent[3], "Bind s0 of 1");
    assert!(sent[4].starts_with("Parse : SELECT CASE"), "{sent:?}");
    assert_eq!(sent.last().unwrap(), "Sync");
    // The guard fails: the types are looked up, the statement is described, and the call is repeated.
    let changed = "invalid input syntax for type integer: \"citius: a composite type has changed\"";
    client.hear(&[message(b'2', b""), failed("22P02", changed)].concat());
    assert_eq!(client.repeated.len(), 1);
    let again = client.repeated.remove(0);
    client.add(&again);
    assert!(client.sent().contains(&PARSED[0].to_owned()));
    client.hear(&described_as(&[OWN], INT4));
    assert_eq!(
        client.unknown_types,
        [OWN],
        "it is forgotten with all others"
    );
    let error = citius_pg::ServerError {
        code: "22P02".into(),
        message: changed.into(),
        ..Default::default()
    };
    assert!(Guard::has_failed(&error));
}

#[test]
fn a_guard_is_that_of_its_own_statement_and_of_no_later_one() {
    // A batch of no executions has nothing to guard, and neither has the next portion of a portal.
    let mut client = with_composite(true);
    client.sent();
    let none = FakeCall::each(ONE, &[]);
    client.add(&none);
    assert_eq!(client.sent(), ["Sync"]);
    client.add(&call(TWO, 1));
    client.sent();
    let guarded = [
        message(b'2', b""),
        message(b'1', b""),
        message(b'2', b""),
        row(0),
        complete("SELECT 1"),
        message(b'3', b""),
        row(1),
        complete("SELECT 1"),
        ready(b'I'),
    ];
    client.hear(&guarded.concat());
    client.hear(&[ready(b'I'), described()].concat());
    assert_eq!(client.over, None);
    assert_eq!(client.sent(), ["Bind s16 of 1", "Execute 0", "Sync"]);
}

#[test]
fn columns_that_have_changed_of_a_statement_without_a_name_are_read_as_they_are() {
    let mut client = Client::open(FakePool::new(false, false));
    let one = call(ONE, 1);
    client.add(&one);
    client.hear(&described());
    let head = [message(b'1', b""), message(b'2', b"")].concat();
    let tail = [row(5), complete("SELECT 1"), ready(b'I')].concat();
    let renamed = row_description(&[("b", INT4)]);
    client.hear(&[&head[..], &renamed, &tail].concat());
    assert_eq!(client.result_of(&one), rows(&[5]));
    // Another format was asked for than the new type is read in.
    let other = call(ONE, 1);
    client.add(&other);
    let retyped = row_description(&[("b", 869)]);
    client.hear(&[&head[..], &retyped, &tail].concat());
    assert!(client.result_of(&other).unwrap_err().contains("changed"));
}

#[test]
fn a_batch_without_a_name_has_its_text_again_behind_the_guard() {
    // The guard is a statement without a name, too, and is what an empty name means behind it.
    let mut client = with_composite(false);
    client.sent();
    let argument = Argument {
        type_oid: OWN,
        value: 1,
    };
    client.add(&FakeCall::each_of(ONE, &[argument, argument]));
    let sent = client.sent();
    let texts: Vec<&String> = sent.iter().filter(|it| it.starts_with("Parse")).collect();
    let own = format!("Parse : {ONE}");
    assert!(*texts[0] == own && texts[1].starts_with("Parse : SELECT CASE") && *texts[2] == own);
    assert_eq!(texts.len(), 3);
}

#[test]
fn what_is_known_anew_of_a_statement_is_not_forgotten_for_an_error_of_before() {
    let mut client = Client::open(FakePool::new(false, false));
    let (first, second) = (call(ONE, 1), call(ONE, 2));
    client.add(&first);
    client.add(&second);
    client.hear(&described());
    let bound = [message(b'1', b""), message(b'2', b"")].concat();
    let renamed = row_description(&[("b", INT4)]);
    let tail = [row(5), complete("SELECT 1"), ready(b'I')].concat();
    client.hear(&[&bound[..], &renamed, &tail].concat());
    client.hear(&failed("42P01", "no table"));
    assert_eq!(client.result_of(&first), rows(&[5]));
    assert_eq!(client.repeated.len(), 1);
    client.sent();
    client.add(&second);
    let sent = client.sent();
    assert!(!sent.contains(&"Describe S".to_owned()), "{sent:?}");
}
