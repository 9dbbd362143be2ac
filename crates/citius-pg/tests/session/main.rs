//! A session without Python and without a server: calls in, bytes out; bytes in, results out.

mod cuts;
mod ends;
mod failures;
mod preparing;
mod sending;
mod types;

use citius_testkit::pg_calls::{Client, FakeCall, FakePool, INT4, Outcome};
use citius_testkit::pg_messages::{prepared, ready};

/// `SELECT $1::int4`, with what makes it another text.
const ONE: &str = "SELECT $1::int4 AS one";
const TWO: &str = "SELECT $1::int4 AS two";

/// The names of the first two texts of a pool.
const NAME_OF_ONE: &str = "s0";
const NAME_OF_TWO: &str = "s16";

fn client() -> Client {
    Client::open(FakePool::new(true, false))
}

/// A statement of the pool with one argument.
fn call(text: &str, value: i32) -> FakeCall {
    FakeCall::free(text, &[value.into()])
}

/// What the server says of a statement with one `int4` in and one out.
fn described() -> Vec<u8> {
    [prepared(&[INT4], &[("a", INT4)]), ready(b'I')].concat()
}

/// A result of these rows.
fn result(values: &[i32]) -> Vec<u8> {
    result_in(b'I', values)
}

/// A result in a transaction (`T`) or in none (`I`).
fn result_in(status: u8, values: &[i32]) -> Vec<u8> {
    [citius_testkit::pg_messages::rows(values), ready(status)].concat()
}

/// An error of one request.
fn failed(code: &str, text: &str) -> Vec<u8> {
    failed_in(b'I', code, text)
}

fn failed_in(status: u8, code: &str, text: &str) -> Vec<u8> {
    [
        citius_testkit::pg_messages::failure(code, text),
        ready(status),
    ]
    .concat()
}

/// A script has been executed.
fn done(tag: &str) -> Vec<u8> {
    done_in(b'I', tag)
}

fn done_in(status: u8, tag: &str) -> Vec<u8> {
    [citius_testkit::pg_messages::complete(tag), ready(status)].concat()
}

#[expect(clippy::unnecessary_wraps, reason = "what it is compared with")]
fn rows(values: &[i32]) -> Result<Outcome, String> {
    Ok(Outcome {
        rows: values.to_vec(),
        count: values.len() as u64,
    })
}

/// A client for which a statement is prepared.
fn client_of(text: &str) -> Client {
    let mut client = client();
    let first = call(text, 1);
    client.add(&first);
    client.hear(&described());
    client.hear(&result(&[1]));
    assert_eq!(client.result_of(&first), rows(&[1]));
    client.sent();
    client
}

const PARSED: [&str; 3] = ["Parse s0: SELECT $1::int4 AS one", "Describe Ss0", "Sync"];
const EXECUTED: [&str; 3] = ["Bind s0 of 1", "Execute 0", "Sync"];
