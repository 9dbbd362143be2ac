//! Dialogues with a connection: bytes in, what they mean, bytes out; whole and cut at every byte.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec;
use alloc::vec::Vec;

use citius_http::{
    Action, Closing, Event, Fault, Fields, Form, Limits, Millis, Output, Payload, ResponseHead,
    Status,
};

use crate::{Connection, Context, Incoming, Request, Responses, take_request};

/// A connection whose procedures return their parameters, except `late`, which returns when told to, `fail`
/// and `text`, which fail in two ways.
struct Dialogue {
    connection: Connection,
    limits: Limits,
    now: Millis,
    held: Vec<u8>,
    output: Output,
    /// What has happened, in words.
    events: Vec<String>,
    late: Vec<u32>,
}

impl Dialogue {
    fn new() -> Self {
        Self::with(Limits::default())
    }

    fn with(limits: Limits) -> Self {
        Self {
            connection: Connection::new(0),
            limits,
            now: 0,
            held: Vec::new(),
            output: Output::default(),
            events: Vec::new(),
            late: Vec::new(),
        }
    }

    fn hear(&mut self, bytes: &[u8]) {
        self.held.extend_from_slice(bytes);
        let held = core::mem::take(&mut self.held);
        let mut input = held.as_slice();
        loop {
            let cx = Context {
                now: self.now,
                limits: &self.limits,
            };
            match self.connection.receive(cx, &mut input, &mut self.output) {
                Some(event) => self.handle(event),
                None => break,
            }
        }
        self.held = input.to_vec();
    }

    fn handle(&mut self, event: Event<'_>) {
        match event {
            Event::Call { stream, call } => {
                let method = String::from_utf8_lossy(&call.method).into_owned();
                let answered = if call.wants_response { "call" } else { "tell" };
                let params = match call.form {
                    Form::Json => String::from_utf8_lossy(call.params).into_owned(),
                    Form::MessagePack => format!("{:02x?}", call.params),
                };
                self.events.push(format!("{answered} {method} {params}"));
                match &*method {
                    "late" => self.late.push(stream),
                    "fail" => self.respond(stream, 400, None, call.params),
                    "text" => self.respond(stream, 404, Some(b"text/plain"), b"no \"such\"\n"),
                    _ => self.respond(stream, 200, None, call.params),
                }
            }
            Event::Broken { stream, fault } => {
                self.late.retain(|late| *late != stream);
                self.events.push(format!("broken {}", fault.name()));
            }
            other => panic!("{other:?}"),
        }
    }

    fn respond(&mut self, stream: u32, code: u16, media: Option<&[u8]>, payload: &[u8]) {
        let response = ResponseHead {
            status: Status::new(code).expect("a status"),
            content_type: media,
            fields: &Fields::EMPTY,
        };
        let cx = Context {
            now: self.now,
            limits: &self.limits,
        };
        let action = Action::Respond(response, Payload::Copied(payload));
        self.connection
            .send(cx, stream, action, &mut self.output)
            .expect("a response");
    }

    fn wait_until(&mut self, now: Millis) {
        self.now = now;
        while self
            .connection
            .deadline(&self.limits)
            .is_some_and(|at| at <= now)
        {
            let cx = Context {
                now,
                limits: &self.limits,
            };
            if let Some(event) = self.connection.expire(cx, &mut self.output) {
                self.handle(event);
            }
        }
    }

    /// What was said since the last time.
    fn said(&mut self) -> Vec<u8> {
        let said = self.output.pieces().flatten().copied().collect();
        self.output.clear();
        said
    }

    fn said_text(&mut self) -> String {
        String::from_utf8(self.said()).expect("text")
    }
}

/// Holds what a connection makes of `input` against what is expected, whole and cut in two at every byte.
#[track_caller]
fn check(input: &[u8], events: &[&str], said: &[u8]) {
    let mut whole = Dialogue::new();
    whole.hear(input);
    assert_eq!(whole.events, events);
    let heard = whole.said();
    assert_eq!(heard, said, "{}", String::from_utf8_lossy(&heard));
    for cut in 1..input.len() {
        let mut parts = Dialogue::new();
        parts.hear(&input[..cut]);
        parts.hear(&input[cut..]);
        assert_eq!(parts.events, events, "cut at {cut}");
        assert_eq!(parts.said(), said, "cut at {cut}");
    }
    let mut bytes = Dialogue::new();
    for byte in input {
        bytes.hear(&[*byte]);
    }
    assert_eq!(bytes.events, events, "byte by byte");
    assert_eq!(bytes.said(), said, "byte by byte");
}

fn text(text: &str) -> Vec<u8> {
    let mut out = Vec::new();
    crate::encode_text(text, &mut out);
    out
}

/// `[0, msgid, method, params]`, with the parts encoded.
fn request(msgid: &[u8], method: &str, params: &[u8]) -> Vec<u8> {
    [&[0x94, 0x00], msgid, &text(method), params].concat()
}

/// `[1, msgid, {type, message}, nil]`
fn failure(msgid: &[u8], kind: &str, message: &str) -> Vec<u8> {
    [
        &[0x94, 0x01],
        msgid,
        &[0x82],
        &text("type"),
        &text(kind),
        &text("message"),
        &text(message),
        &[0xc0],
    ]
    .concat()
}

// --- MessagePack-RPC ----------------------------------------------------------------------------

#[test]
fn a_request_is_answered_and_a_notification_is_not() {
    let notification = [&[0x93, 0x02], &text("note")[..], &[0x91, 0x05]].concat();
    let input = [request(&[0x07], "echo", &[0x92, 0x01, 0x02]), notification].concat();
    check(
        &input,
        &["call echo [92, 01, 02]", "tell note [91, 05]"],
        &[0x94, 0x01, 0x07, 0xc0, 0x92, 0x01, 0x02],
    );
}

#[test]
fn integers_may_be_written_in_every_width() {
    for (written, echoed) in [
        (&[0x7f][..], &[0x7f][..]),
        (&[0xcc, 0x80], &[0xcc, 0x80]),
        (&[0xcd, 0, 5], &[0x05]),
        (&[0xcd, 1, 0], &[0xcd, 1, 0]),
        (
            &[0xce, 0xff, 0xff, 0xff, 0xff],
            &[0xce, 0xff, 0xff, 0xff, 0xff],
        ),
        (&[0xcf, 0, 0, 0, 0, 0, 1, 0, 0], &[0xce, 0, 1, 0, 0]),
        (&[0xd0, 0x7f], &[0x7f]),
        (&[0xd2, 0, 0, 0, 1], &[0x01]),
    ] {
        let said = [&[0x94, 0x01], echoed, &[0xc0, 0x90]].concat();
        check(&request(written, "a", &[0x90]), &["call a [90]"], &said);
    }
    // Negative, and larger than 32 bits.
    for refused in [&[0xff][..], &[0xd0, 0xff], &[0xcf, 0, 0, 0, 1, 0, 0, 0, 0]] {
        let mut dialogue = Dialogue::new();
        dialogue.hear(&request(refused, "a", &[0x90]));
        assert_eq!(dialogue.connection.fault(), Some(Fault::CallSyntax));
    }
}

#[test]
fn values_of_every_kind_are_passed_over_unread() {
    let values: &[&[u8]] = &[
        &[0xc0],
        &[0xc2],
        &[0xe0],
        &[0xca, 0, 0, 0, 0],
        &[0xcb, 0, 0, 0, 0, 0, 0, 0, 0],
        &[0xd3, 0, 0, 0, 0, 0, 0, 0, 0],
        &[0xa3, b'a', b'b', b'c'],
        &[0xd9, 1, b'a'],
        &[0xda, 0, 1, b'a'],
        &[0xdb, 0, 0, 0, 1, b'a'],
        &[0xc4, 2, 1, 2],
        &[0xc5, 0, 2, 1, 2],
        &[0xc6, 0, 0, 0, 2, 1, 2],
        &[0xd4, 1, 1],
        &[0xd5, 1, 1, 1],
        &[0xd6, 1, 1, 1, 1, 1],
        &[0xd7, 1, 1, 1, 1, 1, 1, 1, 1, 1],
        &[0xd8, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1],
        &[0xc7, 2, 9, 1, 2],
        &[0xc8, 0, 2, 9, 1, 2],
        &[0xc9, 0, 0, 0, 2, 9, 1, 2],
        &[0x81, 0xa1, b'k', 0x92, 1, 2],
        &[0xdc, 0, 2, 1, 2],
        &[0xdd, 0, 0, 0, 1, 0x90],
        &[0xde, 0, 1, 1, 2],
        &[0xdf, 0, 0, 0, 1, 1, 0x80],
    ];
    for value in values {
        let params = [&[0x91], *value].concat();
        let said = [&[0x94, 0x01, 0x01, 0xc0], &params[..]].concat();
        let event = format!("call a {params:02x?}");
        check(&request(&[1], "a", &params), &[&event], &said);
    }
    check(
        &request(&[1], "named", &[0x81, 0xa1, b'k', 0x05]),
        &["call named [81, a1, 6b, 05]"],
        &[0x94, 0x01, 0x01, 0xc0, 0x81, 0xa1, b'k', 0x05],
    );
}

#[test]
fn a_method_may_be_bytes() {
    let input = [&[0x94, 0x00, 0x01, 0xc4, 0x01, b'a'][..], &[0x90]].concat();
    check(&input, &["call a [90]"], &[0x94, 0x01, 0x01, 0xc0, 0x90]);
}

#[test]
fn nil_is_no_parameters() {
    let said = [0x94, 0x01, 0x01, 0xc0, 0x90];
    check(&request(&[1], "a", &[0xc0]), &["call a [90]"], &said);
}

#[test]
fn answers_leave_as_they_are_ready() {
    let mut dialogue = Dialogue::new();
    for msgid in [1, 2, 3] {
        dialogue.hear(&request(&[msgid], "late", &[0x90]));
    }
    dialogue.hear(&request(&[4], "soon", &[0x90]));
    assert_eq!(dialogue.said(), [0x94, 0x01, 0x04, 0xc0, 0x90]);
    let [first, second, third] = dialogue.late[..] else {
        panic!("three calls");
    };
    for (stream, msgid) in [(second, 2), (third, 3), (first, 1)] {
        assert!(dialogue.connection.is_open(stream));
        dialogue.respond(stream, 200, None, &[0xc3]);
        assert_eq!(dialogue.said(), [0x94, 0x01, msgid, 0xc0, 0xc3]);
        dialogue.respond(stream, 200, None, &[0xc3]);
        assert_eq!(dialogue.said(), [0u8; 0], "once");
    }
    assert_eq!(dialogue.connection.streams_open(), 0);
}

#[test]
fn errors_are_values() {
    check(
        &request(&[1], "fail", &[0x91, 0x09]),
        &["call fail [91, 09]"],
        &[0x94, 0x01, 0x01, 0x91, 0x09, 0xc0],
    );
    check(
        &request(&[1], "text", &[0x90]),
        &["call text [90]"],
        &failure(&[1], "MethodNotFound", "no \"such\"\n"),
    );
}

#[test]
fn what_has_a_number_and_is_no_request_is_told_so() {
    let said = failure(&[9], "InvalidRequest", "what came is no request");
    check(&[0x94, 0x00, 0x09, 0x05, 0x90], &[], &said);
    check(&[0x94, 0x00, 0x09, 0xa1, b'a', 0x05], &[], &said);
}

#[test]
fn what_is_no_message_ends_the_connection() {
    let messages: &[&[u8]] = &[
        &[0x93, 0x00, 0x01, 0xa1],
        &[0x94, 0x02, 0x01, 0xa1, b'a', 0x90],
        &[0x94, 0x01, 0x01, 0xc0, 0xc0],
        &[0x94, 0x03, 0x01, 0xc0, 0xc0],
        &[0x90],
        &[0x93, 0x02, 0x05, 0x90],
        &[0x94, 0x00, 0xa1, b'1', 0xa1, b'a', 0x90],
        &[0x94, 0xc1],
    ];
    for message in messages {
        let mut dialogue = Dialogue::new();
        let more = request(&[1], "never", &[0x90]);
        dialogue.hear(&[message, &more[..]].concat());
        assert_eq!(
            dialogue.connection.fault(),
            Some(Fault::CallSyntax),
            "{message:02x?}"
        );
        assert_eq!(dialogue.connection.closing(), Some(Closing::Linger));
        assert_eq!(dialogue.events, [""; 0]);
        assert_eq!(dialogue.connection.deadline(&dialogue.limits), None);
    }
}

#[test]
fn an_open_call_is_answered_before_a_fault_ends_the_connection() {
    let mut dialogue = Dialogue::new();
    dialogue.hear(&request(&[1], "late", &[0x90]));
    dialogue.hear(&[0xc1]);
    assert_eq!(dialogue.connection.closing(), None);
    assert!(!dialogue.connection.wants_input(&dialogue.limits));
    let late = dialogue.late[0];
    dialogue.respond(late, 200, None, &[0xc3]);
    assert_eq!(dialogue.said(), [0x94, 0x01, 0x01, 0xc0, 0xc3]);
    assert_eq!(dialogue.connection.closing(), Some(Closing::Linger));
}

// --- limits -------------------------------------------------------------------------------------

#[test]
fn a_length_is_judged_when_it_is_announced() {
    let limits = Limits {
        rpc_message_bytes_max: 100,
        ..Limits::default()
    };
    let announced: &[&[u8]] = &[
        &[0xc6, 0, 0, 0, 90],
        &[0xdb, 0xff, 0xff, 0xff, 0xff],
        &[0xdd, 0xff, 0xff, 0xff, 0xff],
        &[0xdf, 0xff, 0xff, 0xff, 0xff],
        &[0xc9, 0xff, 0xff, 0xff, 0xff, 1],
    ];
    for value in announced {
        let mut dialogue = Dialogue::with(limits.clone());
        dialogue.hear(&request(&[5], "a", &[&[0x91], *value].concat()));
        assert_eq!(dialogue.connection.fault(), Some(Fault::CallTooLong));
        let said = failure(&[5], "MessageTooLong", Fault::CallTooLong.text());
        assert_eq!(dialogue.said(), said, "who asked can be told");
        assert_eq!(dialogue.connection.closing(), Some(Closing::Linger));
    }
    let mut dialogue = Dialogue::with(limits);
    dialogue.hear(format!("{{\"a\":\"{}", "x".repeat(100)).as_bytes());
    assert_eq!(dialogue.connection.fault(), Some(Fault::CallTooLong));
}

#[test]
fn nesting_has_a_limit() {
    let limits = || Limits {
        rpc_depth_max: 5,
        ..Limits::default()
    };
    // The message and its parameters are two.
    for (inner, fault) in [(3, None), (4, Some(Fault::CallTooDeep))] {
        let params = [vec![0x91; inner], vec![0x91, 0x00]].concat();
        let mut dialogue = Dialogue::with(limits());
        dialogue.hear(&request(&[1], "a", &params));
        assert_eq!(dialogue.connection.fault(), fault);
        let json = format!(
            "{{\"jsonrpc\":\"2.0\",\"method\":\"a\",\"params\":{}{}}}",
            "[".repeat(inner + 1),
            "]".repeat(inner + 1)
        );
        let mut dialogue = Dialogue::with(limits());
        dialogue.hear(json.as_bytes());
        assert_eq!(dialogue.connection.fault(), fault);
    }
    // Ten thousand would overflow a stack, if one were used.
    let mut dialogue = Dialogue::new();
    dialogue.hear(&request(&[1], "a", &[0x91; 10_000]));
    assert_eq!(dialogue.connection.fault(), Some(Fault::CallTooDeep));
}

#[test]
fn reading_stops_while_too_many_calls_are_open() {
    let mut dialogue = Dialogue::with(Limits {
        rpc_calls_open_max: 2,
        ..Limits::default()
    });
    let calls: Vec<u8> = (1..=4)
        .flat_map(|n| request(&[n], "late", &[0x90]))
        .collect();
    dialogue.hear(&calls);
    assert_eq!(dialogue.late.len(), 2);
    assert!(!dialogue.connection.wants_input(&dialogue.limits));
    let first = dialogue.late[0];
    dialogue.respond(first, 200, None, &[0xc0]);
    assert!(dialogue.connection.wants_input(&dialogue.limits));
    dialogue.hear(b"");
    assert_eq!(dialogue.late.len(), 3);
}

#[test]
fn a_message_has_to_arrive_in_time() {
    let mut dialogue = Dialogue::new();
    dialogue.wait_until(100);
    dialogue.hear(&[0x94]);
    dialogue.wait_until(200);
    dialogue.hear(&[0x00]);
    let due = dialogue.connection.deadline(&dialogue.limits);
    assert_eq!(
        due,
        Some(100 + dialogue.limits.rpc_message_ms),
        "from its first byte"
    );
    dialogue.wait_until(200 + dialogue.limits.rpc_message_ms);
    assert_eq!(dialogue.connection.fault(), Some(Fault::CallTooSlow));
    assert_eq!(dialogue.connection.closing(), Some(Closing::Linger));
}

#[test]
fn a_message_that_is_not_read_on_is_not_late() {
    let mut dialogue = Dialogue::with(Limits {
        rpc_calls_open_max: 1,
        ..Limits::default()
    });
    dialogue.hear(&[&request(&[1], "late", &[0x90])[..], &[0x94]].concat());
    assert_eq!(dialogue.connection.deadline(&dialogue.limits), None);
}

#[test]
fn an_idle_connection_ends_with_a_goodbye() {
    let mut dialogue = Dialogue::new();
    dialogue.hear(&request(&[1], "late", &[0x90]));
    assert_eq!(
        dialogue.connection.deadline(&dialogue.limits),
        None,
        "it is not idle"
    );
    dialogue.now = 5000;
    let late = dialogue.late[0];
    dialogue.respond(late, 200, None, &[0xc0]);
    dialogue.said();
    let due = 5000 + dialogue.limits.rpc_idle_ms;
    assert_eq!(dialogue.connection.deadline(&dialogue.limits), Some(due));
    dialogue.wait_until(due);
    let goodbye = [&[0x93, 0x02], &text("$/goodbye")[..], &[0x90]].concat();
    assert_eq!(dialogue.said(), goodbye);
    assert_eq!(dialogue.connection.closing(), Some(Closing::Linger));
}

#[test]
fn a_call_has_its_time() {
    let mut dialogue = Dialogue::with(Limits {
        rpc_call_ms: 1000,
        ..Limits::default()
    });
    for msgid in [1, 2, 3] {
        dialogue.hear(&request(&[msgid], "late", &[0x90]));
    }
    let [_, second, third] = dialogue.late[..] else {
        panic!("three calls");
    };
    dialogue.connection.set_due(second, 10);
    dialogue.connection.set_due(third, Millis::MAX);
    assert_eq!(dialogue.connection.deadline(&dialogue.limits), Some(10));
    dialogue.wait_until(10);
    let overdue = |msgid| failure(&[msgid], "DeadlineExceeded", Fault::CallOverdue.text());
    assert_eq!(dialogue.said(), overdue(2));
    assert_eq!(
        dialogue.events.last().map(String::as_str),
        Some("broken CallOverdue")
    );
    dialogue.respond(second, 200, None, &[0xc3]);
    assert_eq!(dialogue.said(), [0u8; 0], "too late");
    dialogue.wait_until(1000);
    assert_eq!(dialogue.said(), overdue(1));
    dialogue.wait_until(1_000_000);
    assert_eq!(dialogue.late, [third], "which has no deadline");
}

// --- the two words of ours ----------------------------------------------------------------------

#[test]
fn a_caller_can_take_its_call_back() {
    let cancel = [&[0x93, 0x02], &text("$/cancelRequest")[..], &[0x91, 0x01]].concat();
    let input = [request(&[1], "late", &[0x90]), cancel.clone(), cancel].concat();
    check(
        &input,
        &["call late [90]", "broken CallCancelled"],
        &failure(&[1], "Cancelled", Fault::CallCancelled.text()),
    );
    let input = "{\"jsonrpc\":\"2.0\",\"id\":\"x\",\"method\":\"late\"}\n\
        {\"jsonrpc\":\"2.0\",\"method\":\"$/cancelRequest\",\"params\":{\"id\":\"x\"}}";
    check(
        input.as_bytes(),
        &["call late []", "broken CallCancelled"],
        b"{\"jsonrpc\":\"2.0\",\"id\":\"x\",\"error\":{\"code\":-32800,\
          \"message\":\"caller has cancelled the call\",\"data\":{\"type\":\"Cancelled\"}}}\n",
    );
}

#[test]
fn a_drain_answers_what_is_open_and_takes_nothing_more() {
    let mut dialogue = Dialogue::new();
    dialogue.hear(&request(&[1], "late", &[0x90]));
    dialogue.connection.drain(&mut dialogue.output);
    assert_eq!(dialogue.connection.closing(), None);
    dialogue.hear(&request(&[2], "never", &[0x90]));
    assert_eq!(dialogue.events, ["call late [90]"]);
    let late = dialogue.late[0];
    dialogue.respond(late, 200, None, &[0xc3]);
    let goodbye = [&[0x93, 0x02], &text("$/goodbye")[..], &[0x90]].concat();
    assert_eq!(
        dialogue.said(),
        [&[0x94, 0x01, 0x01, 0xc0, 0xc3], &goodbye[..]].concat()
    );
    assert_eq!(dialogue.connection.closing(), Some(Closing::Linger));
}

#[test]
fn numbers_of_calls_may_wrap() {
    let mut calls = crate::calls::Calls::default();
    for stream in [u32::MAX - 1, u32::MAX, 0, 1, 2] {
        calls.enter(crate::calls::OpenCall {
            stream,
            id: crate::calls::Id::None,
            batch: None,
            due_at: Millis::MAX,
        });
    }
    for stream in [0, u32::MAX, 2, u32::MAX - 1, 1] {
        assert!(calls.is_open(stream));
        assert_eq!(calls.take(stream).map(|call| call.stream), Some(stream));
        assert!(!calls.is_open(stream));
    }
    assert!(calls.is_empty());
}

// --- JSON-RPC 2.0: the examples of the specification, and what lies beside them -----------------

/// The same for text, response by response.
#[track_caller]
fn check_json(input: &str, events: &[&str], said: &str) {
    check(input.as_bytes(), events, said.as_bytes());
}

const INVALID: &str = "\"error\":{\"code\":-32600,\"message\":\"what came is no request\",\
    \"data\":{\"type\":\"InvalidRequest\"}}}";

#[test]
fn positional_and_named_parameters() {
    check_json(
        "{\"jsonrpc\": \"2.0\", \"method\": \"subtract\", \"params\": [42, 23], \"id\": 1}",
        &["call subtract [42, 23]"],
        "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":[42, 23]}\n",
    );
    check_json(
        "{\"jsonrpc\":\"2.0\",\"method\":\"subtract\",\"params\":{\"a\":{\"}\":\"]\\\"\"}},\"id\":\"4\"}",
        &["call subtract {\"a\":{\"}\":\"]\\\"\"}}"],
        "{\"jsonrpc\":\"2.0\",\"id\":\"4\",\"result\":{\"a\":{\"}\":\"]\\\"\"}}}\n",
    );
}

#[test]
fn values_follow_each_other_with_or_without_space() {
    let note = "{\"jsonrpc\":\"2.0\",\"method\":\"update\",\"params\":[1]}";
    check_json(
        &format!("\r\n {note}{note}\n\n{note} "),
        &["tell update [1]"; 3],
        "",
    );
}

#[test]
fn a_null_id_is_echoed_and_a_method_may_be_escaped() {
    check_json(
        "{\"id\":null,\"method\":\"\\u0061b\",\"jsonrpc\":\"2.0\",\"extra\":[1]}",
        &["call ab []"],
        "{\"jsonrpc\":\"2.0\",\"id\":null,\"result\":[]}\n",
    );
}

#[test]
fn what_is_not_json_is_told_so_and_the_next_value_is_heard() {
    check_json(
        "{\"jsonrpc\": \"2.0\", \"method\": \"foobar, oops}\", \"baz\"}\
         {\"jsonrpc\":\"2.0\",\"method\":\"b\"}",
        &["tell b []"],
        "{\"jsonrpc\":\"2.0\",\"id\":null,\"error\":{\"code\":-32700,\
         \"message\":\"what came is not JSON\",\"data\":{\"type\":\"ParseError\"}}}\n",
    );
    check_json(
        "{\"jsonrpc\":\"2.0\",\"method\":\"\u{e9}\"}",
        &["tell \u{e9} []"],
        "",
    );
    let mut dialogue = Dialogue::new();
    dialogue.hear(b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"\xff\"}");
    assert!(dialogue.said_text().contains("-32700"));
}

#[test]
fn what_cannot_begin_a_message_ends_the_connection() {
    for first in [
        &b"GET / HTTP/1.1\r\n"[..],
        &[0x16, 3, 1],
        &[0xc0],
        b"1",
        b"  x",
        // The specification's examples of invalid JSON: brackets that do not match, and a line that ends in a string.
        b"{\"jsonrpc\": \"2.0\", \"method\": \"foobar, \"params\": \"bar\", \"baz]",
        b"[{\"jsonrpc\": \"2.0\", \"method\": \"sum\"}, {\"jsonrpc\": \"2.0\", \"method\"]",
        b"{\"jsonrpc\": \"2.0\", \"method\": \"foobar\n",
    ] {
        let mut dialogue = Dialogue::new();
        dialogue.hear(first);
        assert_eq!(dialogue.connection.fault(), Some(Fault::CallSyntax));
        assert!(dialogue.said_text().contains("-32700"));
        assert_eq!(dialogue.connection.closing(), Some(Closing::Linger));
    }
}

#[test]
fn what_is_json_and_no_request() {
    for (value, id) in [
        (
            "{\"jsonrpc\":\"2.0\",\"method\":1,\"params\":\"bar\"}",
            "null",
        ),
        ("{\"jsonrpc\":\"1.0\",\"method\":\"a\",\"id\":5}", "5"),
        ("{\"method\":\"a\",\"id\":5}", "5"),
        (
            "{\"jsonrpc\":\"2.0\",\"method\":\"a\",\"params\":1,\"id\":-1.5}",
            "-1.5",
        ),
        ("{\"jsonrpc\":\"2.0\",\"method\":\"a\",\"id\":[1]}", "null"),
        ("{\"jsonrpc\":\"2.0\",\"method\":\"a\",\"id\":true}", "null"),
        (
            "{\"jsonrpc\":\"2.0\",\"method\":\"a\",\"method\":\"b\",\"id\":1}",
            "null",
        ),
    ] {
        let said = format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},{INVALID}\n");
        check_json(value, &[], &said);
    }
    let long = "x".repeat(300);
    let mut dialogue = Dialogue::new();
    dialogue.hear(format!("{{\"jsonrpc\":\"2.0\",\"method\":\"a\",\"id\":\"{long}\"}}").as_bytes());
    assert!(
        dialogue
            .said_text()
            .contains("\"id\":null,\"error\":{\"code\":-32600")
    );
}

#[test]
fn a_batch_is_answered_as_a_whole() {
    check_json(
        "[\n{\"jsonrpc\":\"2.0\",\"method\":\"sum\",\"params\":[1,2],\"id\":\"1\"},\
          {\"jsonrpc\":\"2.0\",\"method\":\"note\",\"params\":[7]} , \
          {\"foo\":\"boo\"}, [\"2.0\",\"sum\",[],1],\
          {\"jsonrpc\":\"2.0\",\"method\":\"fail\",\"params\":[0],\"id\":2} ] \
         {\"jsonrpc\":\"2.0\",\"method\":\"after\"}",
        &[
            "call sum [1,2]",
            "tell note [7]",
            "call fail [0]",
            "tell after []",
        ],
        &format!(
            "[{{\"jsonrpc\":\"2.0\",\"id\":\"1\",\"result\":[1,2]}},\
              {{\"jsonrpc\":\"2.0\",\"id\":null,{INVALID},\
              {{\"jsonrpc\":\"2.0\",\"id\":null,{INVALID},\
              {{\"jsonrpc\":\"2.0\",\"id\":2,\"error\":[0]}}]\n"
        ),
    );
}

#[test]
fn batches_of_nothing_of_rubbish_and_of_notifications() {
    check_json(
        "[]",
        &[],
        &format!("{{\"jsonrpc\":\"2.0\",\"id\":null,{INVALID}\n"),
    );
    check_json(
        "[1]",
        &[],
        &format!("[{{\"jsonrpc\":\"2.0\",\"id\":null,{INVALID}]\n"),
    );
    check_json(
        "[{\"jsonrpc\":\"2.0\",\"method\":\"a\"},{\"jsonrpc\":\"2.0\",\"method\":\"b\"}]",
        &["tell a []", "tell b []"],
        "",
    );
    check_json(
        "[{\"jsonrpc\":\"2.0\",\"method\":\"sum\",\"id\":\"1\"},{\"jsonrpc\":\"2.0\",\"method\"}]",
        &[],
        "{\"jsonrpc\":\"2.0\",\"id\":null,\"error\":{\"code\":-32700,\
         \"message\":\"what came is not JSON\",\"data\":{\"type\":\"ParseError\"}}}\n",
    );
}

#[test]
fn a_batch_waits_for_its_last_call_and_others_do_not() {
    let mut dialogue = Dialogue::with(Limits {
        rpc_calls_open_max: 3,
        ..Limits::default()
    });
    dialogue.hear(
        b"[{\"jsonrpc\":\"2.0\",\"method\":\"late\",\"id\":1},\
           {\"jsonrpc\":\"2.0\",\"method\":\"soon\",\"id\":2}]\
          {\"jsonrpc\":\"2.0\",\"method\":\"soon\",\"id\":3}",
    );
    assert_eq!(
        dialogue.said_text(),
        "{\"jsonrpc\":\"2.0\",\"id\":3,\"result\":[]}\n"
    );
    let late = dialogue.late[0];
    dialogue.respond(late, 200, None, b"4");
    assert_eq!(
        dialogue.said_text(),
        "[{\"jsonrpc\":\"2.0\",\"id\":2,\"result\":[]},{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":4}]\n"
    );
    let calls = ["{\"jsonrpc\":\"2.0\",\"method\":\"a\",\"id\":1}"; 4].join(",");
    dialogue.hear(format!("[{calls}]").as_bytes());
    assert!(
        dialogue
            .said_text()
            .contains("the batch has too many calls")
    );
}

#[test]
fn a_batch_that_is_too_long_is_not_read_to_its_end() {
    let mut dialogue = Dialogue::with(Limits {
        rpc_calls_open_max: 2,
        ..Limits::default()
    });
    dialogue.hear(b"[1,2,3,what follows was never looked at]");
    assert!(
        dialogue
            .said_text()
            .contains("the batch has too many calls")
    );
    dialogue.hear(b"{\"jsonrpc\":\"2.0\",\"method\":\"soon\",\"id\":3}");
    assert!(
        dialogue.said_text().contains("\"result\":[]"),
        "the next one is read"
    );
}

#[test]
fn a_batch_that_is_begun_is_finished_before_the_goodbye() {
    let mut dialogue = Dialogue::with(Limits {
        rpc_calls_open_max: 2,
        ..Limits::default()
    });
    let calls =
        ["late", "late"].map(|m| format!("{{\"jsonrpc\":\"2.0\",\"method\":\"{m}\",\"id\":1}}"));
    let single = "{\"jsonrpc\":\"2.0\",\"method\":\"late\",\"id\":0}";
    dialogue.hear(format!("{single}[{}]", calls.join(",")).as_bytes());
    assert_eq!(dialogue.late.len(), 2, "one of the batch has to wait");
    dialogue.connection.drain(&mut dialogue.output);
    let first = dialogue.late[0];
    dialogue.respond(first, 200, None, b"0");
    dialogue.hear(b"");
    assert_eq!(dialogue.late.len(), 3);
    for stream in dialogue.late.clone() {
        dialogue.respond(stream, 200, None, b"0");
    }
    let said = dialogue.said_text();
    assert!(
        said.ends_with("}]\n{\"jsonrpc\":\"2.0\",\"method\":\"$/goodbye\"}\n"),
        "{said}"
    );
    assert_eq!(dialogue.connection.closing(), Some(Closing::Linger));
}

#[test]
fn large_results_are_not_copied() {
    let mut dialogue = Dialogue::new();
    dialogue.hear(&request(&[1], "late", &[0x90]));
    let large = vec![0xc0; Output::SHARED_BYTES_MIN];
    let cx = Context {
        now: 0,
        limits: &dialogue.limits,
    };
    let response = ResponseHead {
        status: Status::OK,
        content_type: None,
        fields: &Fields::EMPTY,
    };
    let action = Action::Respond(response, Payload::Shared(large.clone().into()));
    dialogue
        .connection
        .send(cx, 0, action, &mut dialogue.output)
        .expect("a response");
    assert_eq!(dialogue.output.pieces().count(), 2);
    assert_eq!(
        dialogue.said(),
        [&[0x94, 0x01, 0x01, 0xc0], &large[..]].concat()
    );
}

#[test]
fn an_answer_out_of_order_is_an_error_for_the_caller() {
    let mut dialogue = Dialogue::new();
    dialogue.hear(&request(&[1], "late", &[0x90]));
    let cx = Context {
        now: 0,
        limits: &dialogue.limits,
    };
    let action = Action::Data(Payload::Copied(b"x"));
    let sent = dialogue
        .connection
        .send(cx, 0, action, &mut dialogue.output);
    assert_eq!(sent, Err(Fault::ResponseOrder));
    assert_eq!(
        dialogue.said(),
        failure(&[1], "InternalError", Fault::HandlerFailed.text())
    );
}

#[test]
fn every_fault_of_calls_is_shown() {
    let own = include_str!("tests.rs");
    let mut of_calls = Fault::ALL
        .iter()
        .filter(|fault| fault.spec().contains("-RPC"));
    assert!(of_calls.clone().count() > 0);
    assert!(of_calls.all(|fault| own.contains(&format!("Fault::{}", fault.name()))));
}

// --- the client's side --------------------------------------------------------------------------

#[test]
fn a_client_hears_answers_and_notifications() {
    let stream: Vec<u8> = [
        &[0x94, 0x01, 0x05, 0xc0, 0x92, 1, 2][..],
        &[0x94, 0x01, 0xcc, 0x80, 0xa1, b'e', 0xc0],
        &[0x93, 0x02, 0xa1, b'n', 0x90],
    ]
    .concat();
    let expected = [
        "5 [c0] [92, 01, 02]".to_string(),
        "128 [a1, 65] [c0]".to_string(),
        "n [90]".to_string(),
    ];
    for cut in 0..stream.len() {
        let (mut responses, mut heard) = (Responses::default(), Vec::new());
        let mut input = &stream[..cut];
        for whole in [false, true] {
            if whole {
                input = &stream[stream.len() - input.len() - (stream.len() - cut)..];
            }
            while let Some(incoming) = responses.receive(&mut input, 1000).expect("messages") {
                heard.push(match incoming {
                    Incoming::Response {
                        msgid,
                        error,
                        result,
                    } => {
                        format!("{msgid} {error:02x?} {result:02x?}")
                    }
                    Incoming::Notification { method, params } => {
                        format!("{} {params:02x?}", String::from_utf8_lossy(method))
                    }
                });
            }
        }
        assert_eq!(heard, expected, "cut at {cut}");
    }
}

#[test]
fn a_client_takes_no_nonsense() {
    for (bytes, fault) in [
        (&b"HTTP/1.1 400"[..], Fault::CallSyntax),
        (
            &[0x94, 0x01, 0x05, 0xc0, 0xc6, 0, 1, 0, 0],
            Fault::CallTooLong,
        ),
    ] {
        let mut input = bytes;
        assert_eq!(Responses::default().receive(&mut input, 100), Err(fault));
    }
}

#[test]
fn what_a_client_says_is_divided_into_messages() {
    let cancel = [
        &[0x93, 0x02],
        &text("$/cancelRequest")[..],
        &[0x91, 0xcd, 1, 0],
    ]
    .concat();
    let messages = [
        (
            Request::Call(7),
            [&[0x94, 0x00, 0x07], &text("add")[..], &[0x92, 1, 2]].concat(),
        ),
        (
            Request::Call(70_000),
            [
                &[0x94, 0x00, 0xce, 0, 1, 0x11, 0x70],
                &text("f")[..],
                &[0xc4, 1, 0],
            ]
            .concat(),
        ),
        (Request::Cancellation(256), cancel),
        (
            Request::Notification,
            [&[0x93, 0x02], &text("$/cancelRequest")[..], &[0x90]].concat(),
        ),
        (
            Request::Notification,
            [
                &[0x93, 0x02],
                &text("seen")[..],
                &[0x81, 0xa1, b'n', 0x93, 1, 0xc0, 0xc3],
            ]
            .concat(),
        ),
    ];
    let whole = messages
        .iter()
        .map(|(_, bytes)| &bytes[..])
        .collect::<Vec<_>>()
        .concat();
    let mut input = &whole[..];
    for (request, bytes) in messages {
        assert_eq!(take_request(&mut input), Ok((request, &bytes[..])));
        for end in 0..bytes.len() {
            assert!(
                take_request(&mut &bytes[..end]).is_err(),
                "{end} of {bytes:?}"
            );
        }
    }
    assert!(input.is_empty());
    // A response is none of a client's.
    assert!(take_request(&mut &[0x94, 0x01, 0x07, 0xc0, 0xc0][..]).is_err());
}
