//! Bytes that arrive at any cut give the same results.

use citius_pg::Scope;
use citius_testkit::pg_calls::{Client, FakeCall, Outcome};
use citius_testkit::pg_messages::{complete, message};

use super::*;

/// A conversation: each part comes when what it answers has been sent.
fn conversation(hear: &mut dyn FnMut(&mut Client, &[u8])) -> Vec<Result<Outcome, String>> {
    let mut client = client();
    let calls = [
        call(ONE, 1),
        call(TWO, 2),
        call(ONE, 3),
        FakeCall::each(TWO, &[4, 5]),
        FakeCall::copy("COPY t TO STDOUT"),
        FakeCall::scoped(Scope::Session, ONE, &[6.into()]),
    ];
    for one in &calls {
        client.add(one);
    }
    hear(&mut client, &[described(), described()].concat());
    let two = citius_testkit::pg_messages::rows(&[4]);
    let results = [
        result(&[1]),
        failed("22012", "division by zero"),
        result(&[3, 3]),
        [two.clone(), two, citius_testkit::pg_messages::ready(b'I')].concat(),
    ];
    hear(&mut client, &results.concat());
    let data = [message(b'H', &[0, 0, 0]), message(b'd', b"1\n")].concat();
    hear(
        &mut client,
        &[&data, &*message(b'd', b"2\n"), &*complete("COPY 2")].concat(),
    );
    hear(&mut client, &citius_testkit::pg_messages::ready(b'I'));
    hear(&mut client, &result(&[6]));
    let copied: Vec<u8> = client.copied.iter().flatten().flatten().copied().collect();
    assert_eq!(copied, b"1\n2\n");
    assert_eq!(client.over, None);
    calls.iter().map(|one| client.result_of(one)).collect()
}

#[test]
fn pieces_of_any_length_give_the_same_results() {
    let whole = conversation(&mut |client, bytes| client.hear(bytes));
    assert_eq!(whole[0], rows(&[1]));
    assert_eq!(whole[1], Err("server: 22012".into()));
    for size in 1..140 {
        let pieces = conversation(&mut |client, bytes| {
            bytes.chunks(size).for_each(|piece| client.hear(piece));
        });
        assert_eq!(pieces, whole, "in pieces of {size}");
    }
}

#[test]
fn two_pieces_cut_anywhere_give_the_same_results() {
    let whole = conversation(&mut |client, bytes| client.hear(bytes));
    for at in 0..300 {
        let pieces = conversation(&mut |client, bytes| {
            let (first, second) = bytes.split_at(at.min(bytes.len()));
            client.hear(first);
            client.hear(second);
        });
        assert_eq!(pieces, whole, "cut at {at}");
    }
}
