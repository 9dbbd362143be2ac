//! Conversations with a server that is bytes in these tests.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use crate::{
    CachedBy, Connection, DEPTH_MAX, Event, Fault, KeyPosition, LINE_BYTES_MAX, Login, Manner,
    Reader, Redirect, Tracking, Value, Words, append_command, key_of, slot_of, slots_of, traits_of,
};

/// All values of `bytes`, in words, and the fault that ends them if there is one.
fn read(bytes: &[u8]) -> Vec<String> {
    read_pieces(core::iter::once(bytes), Reader::default())
}

fn read_pieces<'a>(pieces: impl Iterator<Item = &'a [u8]>, mut reader: Reader) -> Vec<String> {
    let (mut all, mut seen) = (Vec::new(), Vec::new());
    for piece in pieces {
        all.extend_from_slice(piece);
        let mut input = all.as_slice();
        loop {
            match reader.next(&mut input) {
                Ok(Some(item)) => {
                    let end = if item.is_last { " last" } else { "" };
                    seen.push(format!("{} ends {}{end}", words(item.value), item.ends));
                }
                Ok(None) => break,
                Err(fault) => {
                    seen.push(format!("fault: {fault}"));
                    return seen;
                }
            }
        }
        let rest = input.len();
        all.drain(..all.len() - rest);
    }
    seen
}

fn words(value: Value<'_>) -> String {
    let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
    match value {
        Value::Blob(bytes) => format!("blob {:?}", text(bytes)),
        Value::Simple(bytes) => format!("simple {:?}", text(bytes)),
        Value::Error(bytes) => format!("error {:?}", text(bytes)),
        Value::BigNumber(bytes) => format!("big {}", text(bytes)),
        Value::Verbatim(bytes) => format!("verbatim {:?}", text(bytes)),
        other => format!("{other:?}"),
    }
}

#[track_caller]
fn check(bytes: &[u8], expected: &[&str]) {
    assert_eq!(read(bytes), expected);
    let cut = read_pieces(bytes.chunks(1), Reader::default());
    assert_eq!(cut, expected, "cut at every byte");
}

#[test]
fn values() {
    check(b"$5\r\nhello\r\n", &["blob \"hello\" ends 0 last"]);
    check(b"$0\r\n\r\n", &["blob \"\" ends 0 last"]);
    check(b"$4\r\na\r\nb\r\n", &["blob \"a\\r\\nb\" ends 0 last"]);
    check(b"$-1\r\n", &["Null ends 0 last"]);
    check(b"*-1\r\n", &["Null ends 0 last"]);
    check(b"_\r\n", &["Null ends 0 last"]);
    check(b"+OK\r\n", &["simple \"OK\" ends 0 last"]);
    check(b"-ERR no\r\n", &["error \"ERR no\" ends 0 last"]);
    check(b"!6\r\nERR no\r\n", &["error \"ERR no\" ends 0 last"]);
    check(b":12\r\n", &["Integer(12) ends 0 last"]);
    check(b":+7\r\n", &["Integer(7) ends 0 last"]);
    check(
        b":-9223372036854775808\r\n",
        &["Integer(-9223372036854775808) ends 0 last"],
    );
    check(
        b":9223372036854775807\r\n",
        &["Integer(9223372036854775807) ends 0 last"],
    );
    check(b",1.5e3\r\n", &["Double(1500.0) ends 0 last"]);
    check(b",-inf\r\n", &["Double(-inf) ends 0 last"]);
    check(b",nan\r\n", &["Double(NaN) ends 0 last"]);
    check(b"#t\r\n", &["Boolean(true) ends 0 last"]);
    check(
        b"(-123456789012345678901\r\n",
        &["big -123456789012345678901 ends 0 last"],
    );
    check(b"=8\r\ntxt:text\r\n", &["verbatim \"text\" ends 0 last"]);
}

#[test]
fn values_that_contain_others() {
    check(b"*0\r\n", &["Array(0) ends 1 last"]);
    check(
        b"*2\r\n*1\r\n:1\r\n*0\r\n:3\r\n",
        &[
            "Array(2) ends 0",
            "Array(1) ends 0",
            "Integer(1) ends 1",
            "Array(0) ends 2 last",
            "Integer(3) ends 0 last",
        ],
    );
    check(
        b"%1\r\n+a\r\n~2\r\n:1\r\n:2\r\n",
        &[
            "Map(1) ends 0",
            "simple \"a\" ends 0",
            "Set(2) ends 0",
            "Integer(1) ends 0",
            "Integer(2) ends 2 last",
        ],
    );
    check(
        b">2\r\n+invalidate\r\n*1\r\n$1\r\nk\r\n+OK\r\n",
        &[
            "Push(2) ends 0",
            "simple \"invalidate\" ends 0",
            "Array(1) ends 0",
            "blob \"k\" ends 2 last",
            "simple \"OK\" ends 0 last",
        ],
    );
}

#[test]
fn attributes_are_dropped_wherever_they_are() {
    check(
        b"|1\r\n+ttl\r\n*2\r\n:1\r\n%1\r\n+a\r\n:2\r\n*2\r\n:7\r\n|0\r\n|1\r\n+a\r\n|1\r\n+x\r\n+y\r\n+b\r\n:8\r\n",
        &["Array(2) ends 0", "Integer(7) ends 0", "Integer(8) ends 1 last"],
    );
}

#[test]
fn what_is_no_resp3_is_refused() {
    let unknown = "fault: the server does not speak RESP3: a reply of an unknown type";
    let length = "fault: the server does not speak RESP3: a length that is no 32-bit number";
    let number = "fault: the server does not speak RESP3: a number that has no 64 bits";
    let streamed =
        "fault: the server does not speak RESP3: a streamed reply, which no server sends";
    let crlf = "fault: the server does not speak RESP3: a line that does not end with CRLF";
    for (bytes, expected) in [
        (b"HTTP/1.1 400 Bad Request\r\n".as_slice(), unknown),
        (b"\r\n", unknown),
        (b"$x\r\n", length),
        (b"$\r\n", length),
        (b"$-2\r\n", length),
        (b"$4294967296\r\n", length),
        (b"%-1\r\n", length),
        (b"$?\r\n", streamed),
        (b"*?\r\n", streamed),
        (b".\r\n", streamed),
        (b":\r\n", number),
        (b":1a\r\n", number),
        (b":9223372036854775808\r\n", number),
        (b"+O\rK\r\n", crlf),
        (
            b"#x\r\n",
            "fault: the server does not speak RESP3: a boolean that is neither t nor f",
        ),
        (
            b"_x\r\n",
            "fault: the server does not speak RESP3: a null with a value",
        ),
        (
            b",1,5\r\n",
            "fault: the server does not speak RESP3: a double that is no number",
        ),
        (
            b"(1.5\r\n",
            "fault: the server does not speak RESP3: a big number with other bytes than digits",
        ),
        (
            b"=3\r\ntxt\r\n",
            "fault: the server does not speak RESP3: a verbatim string without a format",
        ),
        (
            b"$1\r\nabc\r\n",
            "fault: the server does not speak RESP3: a string that is longer than its length",
        ),
    ] {
        check(bytes, &[expected]);
    }
    check(
        b"*1\r\n>1\r\n",
        &[
            "Array(1) ends 0",
            "fault: the server does not speak RESP3: a push in the middle of a reply",
        ],
    );
}

#[test]
fn what_one_reply_may_cost_is_bounded() {
    let read = |bytes: &[u8]| {
        let mut seen = read_pieces(bytes.chunks(bytes.len().max(1)), Reader::new(1000));
        seen.pop().unwrap_or_default()
    };
    let too_long = "fault: the server has sent a reply that takes more than 1000 bytes";
    // The length alone is enough, and nothing is allocated for it.
    assert_eq!(read(b"$1001\r\n"), too_long);
    assert_eq!(read(&b":1\r\n".repeat(100)), "Integer(1) ends 0 last");
    let mut many = b"*100\r\n".to_vec();
    many.extend(b":1\r\n".repeat(100));
    assert_eq!(read(&many), too_long);
    assert_eq!(read(b"*4294967295\r\n"), "Array(4294967295) ends 0");
}

#[test]
fn nesting_is_bounded() {
    let mut seen = read(&b"*1\r\n".repeat(DEPTH_MAX + 1));
    assert_eq!(
        seen.pop().unwrap(),
        "fault: the server has sent a reply that is nested more than 128 deep"
    );
    assert_eq!(seen.len(), DEPTH_MAX);
    let mut deepest = b"*1\r\n".repeat(DEPTH_MAX);
    deepest.extend(b":1\r\n");
    assert_eq!(read(&deepest).pop().unwrap(), "Integer(1) ends 128 last");
}

#[test]
fn lines_are_bounded() {
    let mut line = b"+".to_vec();
    line.resize(LINE_BYTES_MAX + 1, b'x');
    let mut whole = line.clone();
    whole.extend(b"\r\n");
    assert_eq!(read(&whole).len(), 1);
    line.extend(b"x\r\n");
    let fault = "fault: the server has sent a line of more than 65536 bytes";
    assert_eq!(read(&line), [fault]);
    let pieces = read_pieces(line.chunks(1000), Reader::default());
    assert_eq!(pieces, [fault]);
}

// --- connections ---

const HELLO: &[u8] =
    b"%7\r\n$6\r\nserver\r\n$5\r\nredis\r\n$7\r\nversion\r\n$6\r\n7.0.15\r\n$5\r\nproto\r\n:3\r\n\
    $2\r\nid\r\n:7\r\n$4\r\nmode\r\n$10\r\nstandalone\r\n\
    $7\r\nmodules\r\n*2\r\n%0\r\n%2\r\n$4\r\nname\r\n$7\r\nversion\r\n$3\r\nver\r\n:1\r\n\
    $4\r\nrole\r\n$6\r\nmaster\r\n";
const UNKNOWN: &[u8] = b"-ERR unknown subcommand 'SETINFO'\r\n";

fn login() -> Login {
    Login {
        password: Some("secret".into()),
        name: "shop".into(),
        database: 2,
        tracking: Tracking::Prefixes(Vec::from([b"a:".to_vec()])),
        library: ("citius", "1"),
        ..Login::default()
    }
}

/// What comes of `bytes`, in words; the connection ends with the first fault.
fn hear(connection: &mut Connection, bytes: &[u8]) -> Vec<String> {
    let mut input = bytes;
    let mut heard = Vec::new();
    loop {
        match connection.receive(&mut input) {
            Ok(Some(Event::Open(server))) => heard.push(format!("{server:?}")),
            Ok(Some(Event::Reply(item))) => heard.push(format!("reply {}", words(item.value))),
            Ok(Some(Event::Refused(error))) => {
                heard.push(format!("refused {}", String::from_utf8_lossy(error)));
            }
            Ok(Some(Event::Push(item))) => heard.push(format!("push {}", words(item.value))),
            Ok(None) => return heard,
            Err(fault) => {
                heard.push(format!("fault: {fault}"));
                return heard;
            }
        }
    }
}

fn connect(login: &Login) -> Connection {
    Connection::new(login, 10_000, &mut Vec::new())
}

fn open() -> Connection {
    let mut connection = connect(&Login::default());
    let bytes = [HELLO, UNKNOWN, UNKNOWN].concat();
    assert_eq!(hear(&mut connection, &bytes).len(), 1);
    connection
}

#[test]
fn the_login_leaves_in_one_write() {
    let mut output = Vec::new();
    let mut connection = Connection::new(&login(), 10_000, &mut output);
    let expected = b"*7\r\n$5\r\nHELLO\r\n$1\r\n3\r\n$4\r\nAUTH\r\n$7\r\ndefault\r\n$6\r\nsecret\r\n$7\r\nSETNAME\r\n$4\r\nshop\r\n\
        *4\r\n$6\r\nCLIENT\r\n$7\r\nSETINFO\r\n$8\r\nLIB-NAME\r\n$6\r\ncitius\r\n\
        *4\r\n$6\r\nCLIENT\r\n$7\r\nSETINFO\r\n$7\r\nLIB-VER\r\n$1\r\n1\r\n\
        *2\r\n$6\r\nSELECT\r\n$1\r\n2\r\n\
        *6\r\n$6\r\nCLIENT\r\n$8\r\nTRACKING\r\n$2\r\nON\r\n$5\r\nBCAST\r\n$6\r\nPREFIX\r\n$2\r\na:\r\n";
    assert_eq!(
        String::from_utf8_lossy(&output),
        String::from_utf8_lossy(expected)
    );
    let bytes = [HELLO, UNKNOWN, b"+OK\r\n+OK\r\n>1\r\n+early\r\n+OK\r\n"].concat();
    assert_eq!(
        hear(&mut connection, &bytes),
        [
            "Server { name: \"redis\", version: \"7.0.15\", id: 7, mode: \"standalone\", role: \"master\" }"
        ]
    );
}

#[test]
fn a_refused_login_says_why_and_never_shows_the_password() {
    let mut connection = connect(&login());
    let fault = hear(
        &mut connection,
        b"-WRONGPASS invalid username-password pair\r\n",
    );
    assert_eq!(fault, ["fault: WRONGPASS invalid username-password pair"]);
    let mut connection = connect(&login());
    let bytes = [
        HELLO,
        UNKNOWN,
        UNKNOWN,
        b"-ERR DB index is out of range\r\n",
    ]
    .concat();
    assert_eq!(
        hear(&mut connection, &bytes),
        ["fault: ERR DB index is out of range"]
    );
    assert!(!format!("{:?}", login()).contains("secret"));
}

#[test]
fn replies_belong_to_the_command_that_waits_longest_and_to_no_other() {
    let mut connection = open();
    connection.expect(2);
    let bytes = b"$1\r\n1\r\n>1\r\n+message\r\n*1\r\n$1\r\n2\r\n+more\r\n";
    assert_eq!(
        hear(&mut connection, bytes),
        [
            "reply blob \"1\"",
            "push Push(1)",
            "push simple \"message\"",
            "reply Array(1)",
            "reply blob \"2\"",
            "fault: the server has sent a reply that no command waits for",
        ]
    );
}

#[test]
fn a_push_is_never_taken_for_a_reply() {
    let mut connection = open();
    assert_eq!(hear(&mut connection, b">1\r\n*1\r\n:1\r\n").len(), 3);
    assert_eq!(
        hear(&mut connection, b":1\r\n"),
        ["fault: the server has sent a reply that no command waits for"]
    );
    assert_eq!(Fault::Unasked, Fault::Unasked.clone());
}

// --- commands and clusters ---

#[test]
fn slots_are_those_of_the_specification() {
    // 0x31C3 is the check value of CRC-16/XMODEM.
    assert_eq!(slot_of(b"123456789"), 0x31c3);
    assert_eq!(slot_of(b"foo"), 12182);
    assert_eq!(slot_of(b"{user1000}.following"), slot_of(b"user1000"));
    assert_eq!(slot_of(b"foo{{bar}}zap"), slot_of(b"{bar"));
    assert_eq!(slot_of(b"foo{bar}{zap}"), slot_of(b"bar"));
    assert_ne!(slot_of(b"foo{}{bar}"), slot_of(b"bar"));
    assert_eq!(slot_of(b""), 0);
}

#[test]
fn redirections() {
    let moved = b"MOVED 3999 127.0.0.1:6381";
    assert_eq!(
        Redirect::of(moved),
        Some(Redirect::Moved(3999, "127.0.0.1:6381"))
    );
    assert_eq!(
        Redirect::of(b"ASK 1 :6381"),
        Some(Redirect::Ask(1, ":6381"))
    );
    assert_eq!(
        Redirect::of(b"TRYAGAIN Multiple keys"),
        Some(Redirect::Again)
    );
    assert_eq!(
        Redirect::of(b"CLUSTERDOWN The cluster is down"),
        Some(Redirect::Again)
    );
    for other in [
        b"MOVED 16384 a:1".as_slice(),
        b"MOVED",
        b"MOVED x a:1",
        b"ERR MOVED 1 a:1",
        b"\xff",
    ] {
        assert_eq!(Redirect::of(other), None);
    }
}

#[test]
fn traits() {
    assert_eq!(traits_of(b"get").cached_by, CachedBy::FirstKey);
    assert_eq!(traits_of(b"MGET").cached_by, CachedBy::AllKeys);
    assert_eq!(traits_of(b"SET").cached_by, CachedBy::Nothing);
    assert_eq!(traits_of(b"bLpop").manner, Manner::Blocking);
    assert_eq!(traits_of(b"XREAD").manner, Manner::BlockingWith(b"BLOCK"));
    assert!(matches!(traits_of(b"Subscribe").manner, Manner::Never(_)));
    assert_eq!(
        traits_of(b"A.NAME.THAT.IS.LONGER.THAN.ALL").manner,
        Manner::Shared
    );
    assert_eq!(traits_of(b"").manner, Manner::Shared);
}

#[test]
fn commands_are_arrays_of_strings() {
    let mut output = b"before".to_vec();
    append_command(&mut output, &[b"SET", b"", b"a\r\n\0"]);
    assert_eq!(
        output,
        b"before*3\r\n$3\r\nSET\r\n$0\r\n\r\n$4\r\na\r\n\0\r\n"
    );
}

fn encoded(commands: &[&[&[u8]]]) -> Vec<u8> {
    let mut encoded = Vec::new();
    for words in commands {
        append_command(&mut encoded, words);
    }
    encoded
}

#[test]
fn first_keys() {
    let find = |words: &[&[u8]]| key_of(&encoded(&[words])).map(<[u8]>::to_vec);
    let key = Some(b"k".to_vec());
    assert_eq!(find(&[b"GET", b"k"]), key);
    assert_eq!(find(&[b"GET"]), None);
    assert_eq!(find(&[b"EVAL", b"return 1", b"1", b"k"]), key);
    assert_eq!(find(&[b"EVAL", b"return 1", b"0", b"k"]), None);
    assert_eq!(find(&[b"EVAL"]), None);
    assert_eq!(find(&[b"BLMPOP", b"0", b"1", b"k", b"LEFT"]), key);
    assert_eq!(
        find(&[b"XREAD", b"COUNT", b"1", b"streams", b"k", b"0"]),
        key
    );
    assert_eq!(find(&[b"XREAD", b"COUNT", b"1"]), None);
    // Names of groups and consumers may be words of the command (review of issue 32).
    for (group, consumer) in [
        (b"STREAMS".as_slice(), b"c".as_slice()),
        (b"g", b"streams"),
        (b"count", b"block"),
    ] {
        let words: &[&[u8]] = &[
            b"XREADGROUP",
            b"GROUP",
            group,
            consumer,
            b"COUNT",
            b"1",
            b"BLOCK",
            b"5",
            b"NOACK",
            b"STREAMS",
            b"k",
            b">",
        ];
        assert_eq!(find(words), key);
    }
    assert_eq!(find(&[b"PING", b"k"]), None);
    assert_eq!(find(&[b"OBJECT", b"ENCODING", b"k"]), key);
}

#[test]
fn keys_of_several_commands() {
    let transaction = encoded(&[
        &[b"MULTI"],
        &[b"PING", b"a"],
        &[b"SET", b"k", b""],
        &[b"EXEC"],
    ]);
    assert_eq!(key_of(&transaction), Some(b"k".as_slice()));
    assert!(slots_of(&transaction).eq([slot_of(b"k")]));
    let several = encoded(&[
        &[b"MULTI"],
        &[b"GET", b"a"],
        &[b"SET", b"b", b""],
        &[b"EXEC"],
    ]);
    assert!(slots_of(&several).eq([slot_of(b"a"), slot_of(b"b")]));
    assert_eq!(key_of(b""), None);
    assert_eq!(key_of(b"*2\r\n$3\r\nGET\r\n$9\r\nk"), None);
    assert_eq!(traits_of(b"DBSIZE").key, KeyPosition::None);
    let words: Vec<_> = Words::of(&encoded(&[&[b"MGET", b"a", b"", b"c"]]))
        .map(<[u8]>::len)
        .collect();
    assert_eq!(words, [4, 1, 0, 1]);
}

#[test]
fn a_subscriber_may_be_told_of_errors_unasked() {
    let login = Login {
        subscribes: true,
        ..Login::default()
    };
    let mut connection = connect(&login);
    let bytes = [HELLO, UNKNOWN, UNKNOWN].concat();
    hear(&mut connection, &bytes);
    assert_eq!(
        hear(&mut connection, b"-NOPERM no\r\n"),
        ["refused NOPERM no"]
    );
    connection.expect(1);
    assert_eq!(
        hear(&mut connection, b"-ERR no\r\n"),
        ["reply error \"ERR no\""]
    );
    assert_eq!(hear(&mut connection, b"+OK\r\n").len(), 1);
}

#[test]
fn what_changes_a_connection_is_known_by_name_and_argument() {
    use crate::command::{Spread, manner_of, spread_of};
    let manner = |name: &[u8], argument: &[u8]| manner_of(name, || Some(argument.to_vec()));
    assert!(matches!(manner(b"client", b"reply"), Manner::Never(_)));
    assert!(matches!(manner(b"CLIENT", b"Tracking"), Manner::Refused(_)));
    assert!(matches!(manner(b"SCRIPT", b"DEBUG"), Manner::Refused(_)));
    assert_eq!(manner(b"CLIENT", b"LIST"), Manner::Shared);
    assert_eq!(manner(b"SCRIPT", b"LOAD"), Manner::Shared);
    assert_eq!(manner_of(b"CLIENT", || None), Manner::Shared);
    for name in [&b"SUBSCRIBE"[..], b"hello", b"RESET", b"MONITOR"] {
        assert!(matches!(manner_of(name, || None), Manner::Never(_)));
    }
    for name in [&b"SELECT"[..], b"multi", b"WAIT", b"WATCH"] {
        assert!(matches!(manner_of(name, || None), Manner::Refused(_)));
    }
    assert_eq!(spread_of(b"dbsize", None), Some(Spread::Sum));
    assert_eq!(spread_of(b"Script", Some(b"load")), Some(Spread::Same));
    assert!(matches!(
        spread_of(b"SCAN", Some(b"0")),
        Some(Spread::Refused(_))
    ));
    assert_eq!(spread_of(b"GET", Some(b"dbsize")), None);
    assert_eq!(spread_of(b"INFO", None), None);
}
