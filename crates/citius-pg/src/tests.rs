//! Conversations with a server that is bytes in these tests.

use alloc::string::{String, ToString};
use alloc::sync::Arc;
use alloc::vec::Vec;
use alloc::{format, vec};

use crate::{
    ChannelBinding, Connection, Description, Event, Fault, JsonRows, Kind, Login, Parameters,
    TransactionStatus, Value, civil_of_days,
};

fn message(tag: u8, body: &[u8]) -> Vec<u8> {
    let mut bytes = vec![tag];
    bytes.extend_from_slice(&u32::try_from(body.len() + 4).unwrap().to_be_bytes());
    bytes.extend_from_slice(body);
    bytes
}

fn login() -> Login {
    Login {
        user: "u".into(),
        password: Some("p".into()),
        ..Login::default()
    }
}

/// What comes of `bytes`, in words; the connection ends with the first fault.
fn hear(connection: &mut Connection, bytes: &[u8]) -> Vec<String> {
    let mut input = bytes;
    let mut heard = Vec::new();
    loop {
        match connection.receive(&mut input) {
            Ok(Some(event)) => heard.push(format!("{event:?}")),
            Ok(None) => return heard,
            Err(fault) => {
                heard.push(format!("fault: {fault}"));
                return heard;
            }
        }
    }
}

fn opening() -> Vec<u8> {
    let mut bytes = message(b'R', &[0, 0, 0, 0]);
    bytes.extend(message(b'S', b"server_version\x0015\0"));
    bytes.extend(message(b'K', &[0, 0, 0, 7, 0, 0, 0, 9]));
    bytes.extend(message(b'Z', b"I"));
    bytes
}

fn open() -> Connection {
    let mut connection = Connection::new(login()).unwrap();
    connection.output().clear();
    assert_eq!(hear(&mut connection, &opening()).last().unwrap(), "Open");
    connection
}

/// A statement `SELECT $1::int4 AS a`.
fn described() -> Vec<u8> {
    let mut bytes = message(b'1', b"");
    bytes.extend(message(b't', &[0, 1, 0, 0, 0, 23]));
    let mut column = b"\0\x01a\0".to_vec();
    column.extend([
        0, 0, 0, 0, 0, 0, 0, 0, 0, 23, 0, 4, 255, 255, 255, 255, 0, 0,
    ]);
    bytes.extend(message(b'T', &column));
    bytes.extend(message(b'Z', b"I"));
    bytes
}

fn prepared(connection: &mut Connection) -> Description {
    connection.prepare("s", "SELECT $1::int4 AS a").unwrap();
    let bytes = described();
    let mut input = bytes.as_slice();
    let Ok(Some(Event::Prepared(description))) = connection.receive(&mut input) else {
        panic!("it is prepared");
    };
    assert!(matches!(
        connection.receive(&mut input),
        Ok(Some(Event::Done(TransactionStatus::Idle)))
    ));
    description
}

fn one_row() -> Vec<u8> {
    let mut bytes = message(b'2', b"");
    bytes.extend(message(b'D', &[0, 1, 0, 0, 0, 4, 0, 0, 0, 5]));
    bytes.extend(message(b'C', b"SELECT 1\0"));
    bytes.extend(message(b'Z', b"I"));
    bytes
}

#[test]
fn a_login_without_a_password() {
    let mut connection = Connection::new(login()).unwrap();
    let sent = connection.output().split();
    assert!(sent.windows(7).any(|part| part == b"user\0u\0"));
    let heard = hear(&mut connection, &opening());
    assert_eq!(heard, ["Parameter(\"server_version\", \"15\")", "Open"]);
    assert_eq!(connection.key(), Some((7, 9)));
}

#[test]
fn md5_is_the_hash_that_the_server_expects() {
    let mut connection = Connection::new(login()).unwrap();
    connection.output().clear();
    assert!(hear(&mut connection, &message(b'R', &[0, 0, 0, 5, 1, 2, 3, 4])).is_empty());
    let sent = connection.output().split();
    assert_eq!(&sent[..8], b"p\0\0\0(md5");
    assert_eq!(sent.len(), 41);
}

#[test]
fn a_server_that_skips_its_proof_is_not_believed() {
    let mut connection = Connection::new(login()).unwrap();
    let offer = message(b'R', b"\0\0\0\x0aSCRAM-SHA-256\0\0");
    assert!(hear(&mut connection, &offer).is_empty());
    let heard = hear(&mut connection, &message(b'R', &[0, 0, 0, 0]));
    assert!(heard[0].contains("has not proven"), "{heard:?}");
}

/// RFC 5802 §5: one exchange. A second request would have an unbound proof, or the password, given to what stands in between.
#[test]
fn a_server_that_asks_anew_in_the_middle_of_a_proof_gets_none() {
    let plus = message(b'R', b"\0\0\0\x0aSCRAM-SHA-256\0SCRAM-SHA-256-PLUS\0\0");
    for (channel_binding, is_secured) in [
        (ChannelBinding::Required, true),
        (ChannelBinding::Preferred, true),
        (ChannelBinding::Preferred, false),
    ] {
        for other in [
            b"\0\0\0\x0aSCRAM-SHA-256\0\0".as_slice(),
            b"\0\0\0\x0aSCRAM-SHA-256\0SCRAM-SHA-256-PLUS\0\0",
            b"\0\0\0\x03",
            b"\0\0\0\x05salt",
        ] {
            let mut connection = Connection::new(Login {
                channel_binding,
                ..login()
            })
            .unwrap();
            if is_secured {
                connection.set_server_end_point(vec![7; 32]);
            }
            assert!(hear(&mut connection, &plus).is_empty());
            let sent = connection.output().split();
            let is_bound = sent.windows(22).any(|it| it == b"p=tls-server-end-point");
            assert_eq!(is_bound, is_secured);
            let heard = hear(&mut connection, &message(b'R', other));
            assert!(heard[0].contains("in the middle of one"), "{heard:?}");
            assert!(connection.output().is_empty());
        }
    }
}

/// A server that has not been logged in to yet makes the client keep little.
#[test]
fn what_comes_before_the_login_is_short() {
    let announced = |tag, bytes: u32| {
        let mut begin = vec![tag];
        begin.extend_from_slice(&bytes.to_be_bytes());
        begin
    };
    let mut connection = Connection::new(login()).unwrap();
    assert!(hear(&mut connection, &announced(b'E', 64 * 1024)).is_empty());
    let mut connection = Connection::new(login()).unwrap();
    let heard = hear(&mut connection, &announced(b'E', 64 * 1024 + 1));
    assert!(heard[0].starts_with("fault"), "{heard:?}");
    let mut connection = Connection::new(login()).unwrap();
    let heard = hear(&mut connection, &message(b'N', &vec![0; 64 * 1024]));
    assert!(heard[0].starts_with("fault"), "{heard:?}");
    // Its parameters may be longer when the client is who it says it is, and all messages of a session.
    let mut connection = Connection::new(login()).unwrap();
    assert!(hear(&mut connection, &message(b'R', &[0; 4])).is_empty());
    assert!(hear(&mut connection, &announced(b'S', 1024 * 1024)).is_empty());
    assert!(hear(&mut open(), &announced(b'E', 1024 * 1024)).is_empty());
}

#[test]
fn statements_are_prepared_and_executed() {
    let mut connection = open();
    let description = prepared(&mut connection);
    assert_eq!(description.parameters, [23]);
    assert_eq!(description.columns[0].kind, Kind::Int4);
    connection.output().clear();
    let mut parameters = Parameters::default();
    parameters.push_binary(&5_i32.to_be_bytes());
    connection.execute("s", &description, &parameters).unwrap();
    connection.execute("s", &description, &parameters).unwrap();
    assert_eq!(connection.requests(), 2);
    let sent = connection.output().split();
    let bind = b"B\0\0\0\x19\0s\0\0\x01\0\x01\0\x01\0\0\0\x04\0\0\0\x05\0\x01\0\x01";
    assert_eq!(&sent[..bind.len()], bind);
    assert_eq!(
        &sent[bind.len()..sent.len() / 2],
        b"E\0\0\0\x09\0\0\0\0\0S\0\0\0\x04"
    );
    let mut bytes = one_row();
    bytes.extend(one_row());
    let heard = hear(&mut connection, &bytes);
    assert_eq!(heard.len(), 6);
    assert_eq!(heard[1..3], ["Complete(1)", "Done(Idle)"]);
    assert_eq!(connection.requests(), 0);
}

#[test]
fn pieces_of_any_length_give_the_same_events() {
    let mut bytes = opening();
    bytes.extend(message(b'N', b"SWARNING\0C01000\0Mlook\0\0"));
    bytes.extend(message(b'A', b"\0\0\0\x01channel\0payload\0"));
    let whole = hear(&mut Connection::new(login()).unwrap(), &bytes);
    assert_eq!(whole.len(), 4);
    for size in 1..bytes.len() {
        let mut connection = Connection::new(login()).unwrap();
        let (mut held, mut heard) = (Vec::new(), Vec::new());
        for piece in bytes.chunks(size) {
            held.extend_from_slice(piece);
            let mut input = held.as_slice();
            while let Some(event) = connection.receive(&mut input).unwrap() {
                heard.push(format!("{event:?}"));
            }
            held = input.to_vec();
        }
        assert_eq!(heard, whole);
    }
}

#[test]
fn what_nothing_has_asked_for_is_a_fault() {
    for unasked in [
        one_row(),
        described(),
        message(b'Z', b"I"),
        message(b'?', b""),
    ] {
        let heard = hear(&mut open(), &unasked);
        assert!(heard.last().unwrap().starts_with("fault"), "{heard:?}");
    }
    let mut connection = open();
    connection.prepare("s", "SELECT 1").unwrap();
    let heard = hear(&mut connection, &one_row());
    assert!(heard[0].starts_with("fault"), "{heard:?}");
    let mut fresh = Connection::new(login()).unwrap();
    let heard = hear(&mut fresh, &message(b'Z', b"I"));
    assert!(heard[0].starts_with("fault"), "{heard:?}");
}

#[test]
fn the_end_of_another_request_is_a_fault() {
    let end = message(b'Z', b"I");
    let failed = message(b'E', b"SERROR\0VERROR\0C22012\0Mdivision by zero\0\0");
    let ended = |connection: &mut Connection, bytes: &[&[u8]]| {
        let heard = hear(connection, &bytes.concat());
        heard.last().unwrap().clone()
    };
    let mut connection = open();
    connection.prepare("s", "SELECT 1").unwrap();
    assert!(ended(&mut connection, &[&end]).starts_with("fault"));
    let row = one_row();
    let result = &row[..row.len() - end.len()];
    // What comes for a request of two executions, and whether it may end there.
    for (bytes, is_whole) in [
        (vec![&end[..]], false),
        (vec![result, &end], false),
        (vec![result, result, &end], true),
        (vec![&failed, &end], true),
        (vec![result, &failed, &end], true),
        (vec![result, result, result], false),
        (vec![&failed, result], false),
    ] {
        let mut connection = open();
        let description = prepared(&mut connection);
        let parameters = Parameters::default();
        for _ in 0..2 {
            connection
                .execute_next("s", &description, &parameters)
                .unwrap();
        }
        connection.end_executions(2);
        let last = ended(&mut connection, &bytes);
        assert_eq!(!last.starts_with("fault"), is_whole, "{last}");
    }
    let mut connection = open();
    connection.end_executions(0);
    assert_eq!(ended(&mut connection, &[&end]), "Done(Idle)");
    connection.script("SELECT 1; SELECT 1").unwrap();
    assert!(ended(&mut connection, &[&end]).starts_with("fault"));
}

#[test]
fn lengths_are_not_believed() {
    for bytes in [
        b"D\xff\xff\xff\xff".as_slice(),
        b"D\0\0\0\x03",
        b"H\x54\x54\x50/1.1",
    ] {
        let heard = hear(&mut open(), bytes);
        assert!(heard[0].starts_with("fault"), "{heard:?}");
    }
    let mut connection = open();
    let description = prepared(&mut connection);
    connection
        .execute("s", &description, &Parameters::default())
        .unwrap();
    let bytes = message(b'D', &[0, 1, 0, 0, 0, 9, 0]);
    let mut input = bytes.as_slice();
    let Ok(Some(Event::Row(row))) = connection.receive(&mut input) else {
        panic!("a row is taken as it is");
    };
    assert!(row.values().next().unwrap().is_err());
}

#[test]
fn a_zero_byte_changes_no_message() {
    let mut connection = open();
    assert!(connection.prepare("s", "SELECT 1\0; DROP").is_err());
    assert!(connection.script("SELECT 1\0").is_err());
    assert!(connection.output().is_empty());
    let user = "u\0v".to_string();
    assert!(
        Connection::new(Login {
            user,
            ..Login::default()
        })
        .is_err()
    );
}

#[test]
fn garbage_ends_in_a_fault_and_never_in_a_panic() {
    // An xorshift generator; the same bytes in every run.
    let mut state = 0x9E37_79B9_7F4A_7C15_u64;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    let tags = b"RKZ123CDEINSTtnAsGHWdc";
    for _ in 0..20_000 {
        let mut connection = open();
        let description = prepared(&mut connection);
        connection
            .execute("s", &description, &Parameters::default())
            .unwrap();
        connection.script("SELECT 1").unwrap();
        let mut bytes = Vec::new();
        for _ in 0..4 {
            let tag = tags[usize::try_from(next()).unwrap() % tags.len()];
            let len = usize::try_from(next()).unwrap() % 40;
            let body: Vec<u8> = (0..len).map(|_| next().to_be_bytes()[3] % 11).collect();
            bytes.extend(message(tag, &body));
        }
        hear(&mut connection, &bytes);
        for kind in [
            Kind::Array,
            Kind::Numeric,
            Kind::Jsonb,
            Kind::Interval,
            Kind::TimeTz,
        ] {
            if let Ok(Value::Array(array)) = Value::of(kind, &bytes) {
                array.elements().for_each(drop);
            }
        }
        let rows = JsonRows::new(&description, &Arc::default());
        let mut input = bytes.as_slice();
        while let Ok(Some(Event::Row(row))) = connection.receive(&mut input) {
            let _ = rows.push(row, &mut String::new());
        }
    }
}

#[test]
fn an_array_does_not_say_how_much_memory_it_takes() {
    let mut bytes = vec![0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 23];
    bytes.extend([0x7f, 0xff, 0xff, 0xff, 0, 0, 0, 1]);
    assert!(matches!(
        Value::of(Kind::Array, &bytes),
        Err(Fault::Protocol(_))
    ));
}

#[test]
fn days_are_dates() {
    for (days, date) in [
        (0, (2000, 1, 1)),
        (-1, (1999, 12, 31)),
        (59, (2000, 2, 29)),
        (60, (2000, 3, 1)),
        (-730_119, (1, 1, 1)),
        (2_921_939, (9999, 12, 31)),
    ] {
        let civil = civil_of_days(days);
        assert_eq!((civil.year, civil.month, civil.day), date);
    }
}
