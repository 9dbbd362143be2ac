//! One connection: calls in the order they came, responses in the order they are ready.
//!
//! ```text
//! new ─► Reading ──── fault, drain, idle ────► no further call is taken
//!                                                       │ the last open call is answered
//!                                                       ▼
//!                                    `$/goodbye` unless a fault was told, closing()
//! ```
//!
//! `$/goodbye` is a notification of ours: neither protocol has a way to end a connection without losing what
//! is under way. A client that does not know it still sees the end of the connection.
//! `$/cancelRequest` is that of the Language Server Protocol: the caller names a call it no longer waits for.

use alloc::borrow::Cow;
use alloc::collections::VecDeque;
use alloc::string::String;
use alloc::vec::Vec;

use citius_http::{
    Action, Closing, Event, Fault, Form, Limits, Millis, Output, Payload, ProcedureCall, Status,
};

use crate::calls::{Batches, Calls, Id, OpenCall};
use crate::failure::Failure;
use crate::json::{self, BatchMistake, Mistake};
use crate::msgpack::{self, Message};

/// What a call may look at besides its input.
#[derive(Clone, Copy, Debug)]
pub struct Context<'a> {
    /// The turn's clock.
    pub now: Millis,
    /// The limits in force.
    pub limits: &'a Limits,
}

/// One connection of MessagePack-RPC or JSON-RPC 2.0, server side.
///
/// The caller has the duties that HTTP/1's connection has: look at [`closing`](Self::closing) after every call
/// that may change it, write what came to the output, offer what [`receive`](Self::receive) left over again.
#[derive(Debug, Default)]
pub struct Connection {
    /// Told by the first byte.
    form: Option<Form>,
    msgpack: msgpack::Scanner,
    json: json::Scanner,
    calls: Calls,
    batches: Batches,
    /// What is left of the batch in hand: bytes to skip before each element, and its length.
    elements: VecDeque<(usize, usize)>,
    /// The batch in hand, while it has elements left.
    batch: u32,
    /// Bytes of the batch in hand that have not been taken.
    batch_bytes: usize,
    next_stream: u32,
    /// Accept, the end of the last response, or the first byte of a message that is not complete.
    since: Millis,
    is_partial: bool,
    /// What ended reading, if the peer is to blame.
    fault: Option<Fault>,
    draining: bool,
    peer_finished: bool,
    closing: Option<Closing>,
}

/// What became of a call.
enum Outcome<'a> {
    /// The encoded result.
    Result(Payload<'a>),
    /// The encoded error.
    Error(Payload<'a>),
    /// An error of a known kind, in words.
    Failure(Failure, Cow<'a, str>),
}

/// What a message came to.
enum Step<'a> {
    Event(Event<'a>),
    /// It is dealt with.
    Again,
    /// There is no whole message.
    Stop,
}

pub(crate) const CANCEL: &[u8] = b"$/cancelRequest";
const GOODBYE: &str = "$/goodbye";

impl Connection {
    /// A connection accepted at `now`.
    pub fn new(now: Millis) -> Self {
        Self {
            since: now,
            ..Self::default()
        }
    }

    /// Takes as much of `input` as it can (advances the slice) and returns the next event; call
    /// until `None`. What is left must be offered again, longer.
    #[inline]
    pub fn receive<'i>(
        &mut self,
        cx: Context<'_>,
        input: &mut &'i [u8],
        out: &mut Output,
    ) -> Option<Event<'i>> {
        while self.wants_input(cx.limits) {
            match self.next(cx, input, out) {
                Ok(Step::Event(event)) => return Some(event),
                Ok(Step::Again) => {}
                Ok(Step::Stop) => {
                    if !self.is_partial && !input.is_empty() {
                        self.is_partial = true;
                        self.since = cx.now;
                    }
                    break;
                }
                Err(fault) => self.refuse(fault, input, out),
            }
        }
        self.close_if_done(out);
        None
    }

    /// The peer has closed its sending side.
    pub fn receive_eof(&mut self) {
        self.peer_finished = true;
    }

    /// Answers the call `stream`; nothing if that has been answered already.
    ///
    /// # Errors
    /// The application's fault, to be logged; the caller gets an error in place of the response.
    #[inline]
    pub fn send(
        &mut self,
        cx: Context<'_>,
        stream: u32,
        action: Action<'_>,
        out: &mut Output,
    ) -> Result<(), Fault> {
        let (outcome, result) = match action {
            Action::Respond(response, payload) => match (response.status, response.content_type) {
                (_, Some(_)) => (in_words(response.status, &payload), Ok(())),
                (Status::OK, None) => (Outcome::Result(payload), Ok(())),
                _ => (Outcome::Error(payload), Ok(())),
            },
            Action::Inform(_) => return Ok(()),
            Action::Abort => (failed(), Ok(())),
            Action::Start(_) | Action::Data(_) | Action::End { .. } | Action::Switch { .. } => {
                (failed(), Err(Fault::ResponseOrder))
            }
        };
        let Some(call) = self.calls.take(stream) else {
            return Ok(());
        };
        self.respond(&call, outcome, out);
        if self.calls.is_empty() {
            self.since = cx.now;
            self.close_if_done(out);
        }
        result
    }

    /// Has the call `stream` given up at `due_at` (`Millis::MAX`: never).
    pub fn set_due(&mut self, stream: u32, due_at: Millis) {
        self.calls.set_due(stream, due_at);
    }

    /// Whether more input could be used: not while too many calls are open, nor once reading has ended.
    #[inline]
    pub fn wants_input(&self, limits: &Limits) -> bool {
        self.closing.is_none()
            && self.fault.is_none()
            && self.calls.len() < limits.rpc_calls_open_max.max(1) as usize
            // A batch is taken as a whole.
            && (!self.draining || !self.elements.is_empty())
    }

    /// When [`expire`](Self::expire) is due if no other call comes first; `None` for never.
    #[inline]
    pub fn deadline(&self, limits: &Limits) -> Option<Millis> {
        if self.closing.is_some() {
            return None;
        }
        let at = self.patience_over_at(limits).min(self.calls.due_at());
        (at != Millis::MAX).then_some(at)
    }

    /// A deadline has passed.
    pub fn expire(&mut self, cx: Context<'_>, out: &mut Output) -> Option<Event<'static>> {
        if let Some(call) = self.calls.take_due(cx.now) {
            self.since = cx.now;
            return Some(self.break_off(&call, Fault::CallOverdue, out));
        }
        if self.patience_over_at(cx.limits) <= cx.now {
            if self.is_partial {
                self.refuse(Fault::CallTooSlow, &mut &[][..], out);
            } else {
                self.draining = true;
            }
            self.close_if_done(out);
        }
        None
    }

    /// No further call is taken; the connection ends when the open ones are answered.
    pub fn drain(&mut self, out: &mut Output) {
        self.draining = true;
        self.close_if_done(out);
    }

    /// How the connection is to be closed once the output is flushed; `None` while it is open.
    #[inline]
    pub fn closing(&self) -> Option<Closing> {
        self.closing
    }

    /// What ended reading, if the peer is to blame.
    pub fn fault(&self) -> Option<Fault> {
        self.fault
    }

    /// Calls without a response.
    #[inline]
    pub fn streams_open(&self) -> usize {
        self.calls.len()
    }

    /// Whether the call `stream` has no response yet.
    pub fn is_open(&self, stream: u32) -> bool {
        self.calls.is_open(stream)
    }

    /// The moment at which the peer has been waited for long enough.
    fn patience_over_at(&self, limits: &Limits) -> Millis {
        let patience_ms = match () {
            // What must not be read on is not the peer's delay.
            () if self.is_partial && self.wants_input(limits) => limits.rpc_message_ms,
            () if self.calls.is_empty() => limits.rpc_idle_ms,
            () => 0,
        };
        match patience_ms {
            0 => Millis::MAX,
            ms => self.since.saturating_add(ms),
        }
    }

    /// Takes the next message.
    #[inline]
    fn next<'i>(
        &mut self,
        cx: Context<'_>,
        input: &mut &'i [u8],
        out: &mut Output,
    ) -> Result<Step<'i>, Fault> {
        if !self.elements.is_empty() {
            return Ok(self.next_element(cx, input, out));
        }
        let Some(&first) = input.first() else {
            return Ok(Step::Stop);
        };
        let form = match self.form {
            Some(form) => form,
            None => *self.form.insert(form_of(first)?),
        };
        let bytes_max = cx.limits.rpc_message_bytes_max as usize;
        let depth_max = cx.limits.rpc_depth_max as usize;
        let length = match form {
            Form::MessagePack => self.msgpack.scan(input, bytes_max, depth_max)?,
            Form::Json => {
                if !self.json.has_begun() {
                    take(input, json::blank(input));
                    if input.is_empty() {
                        return Ok(Step::Stop);
                    }
                }
                self.json.scan(input, bytes_max, depth_max)?
            }
        };
        let Some(length) = length else {
            return Ok(Step::Stop);
        };
        self.is_partial = false;
        match form {
            Form::MessagePack => self.take_message(cx, take(input, length), out),
            Form::Json if first_of(input) == Some(b'[') => {
                self.begin_batch(cx, input, length, out);
                Ok(Step::Again)
            }
            Form::Json => Ok(self.take_value(cx, take(input, length), None, out)),
        }
    }

    /// A whole message of MessagePack-RPC's.
    #[inline]
    fn take_message<'i>(
        &mut self,
        cx: Context<'_>,
        message: &'i [u8],
        out: &mut Output,
    ) -> Result<Step<'i>, Fault> {
        let (msgid, method, params) = match msgpack::split(message) {
            Some(Message::Call {
                msgid,
                method,
                params,
            }) => (msgid, method, params),
            Some(Message::Malformed { msgid }) => {
                self.reject(Id::Number(msgid), None, Failure::InvalidRequest, out);
                return Ok(Step::Again);
            }
            Some(Message::Response { .. }) | None => return Err(Fault::CallSyntax),
        };
        if msgid.is_none() && method == CANCEL {
            let id = msgpack::only_msgid(params).map(Id::Number);
            return Ok(self.cancel(id, out));
        }
        let call = ProcedureCall {
            method: Cow::Borrowed(method),
            params,
            form: Form::MessagePack,
            wants_response: msgid.is_some(),
            id: msgid,
        };
        let id = msgid.map_or(Id::None, Id::Number);
        Ok(Step::Event(self.open(cx, id, None, call)))
    }

    /// A whole request object of JSON-RPC's, or what stands in its place.
    fn take_value<'i>(
        &mut self,
        cx: Context<'_>,
        value: &'i [u8],
        batch: Option<u32>,
        out: &mut Output,
    ) -> Step<'i> {
        let request = match json::request_of(value) {
            Ok(request) => request,
            Err(mistake) => {
                let (id, failure) = match mistake {
                    Mistake::Syntax => (None, Failure::Parse),
                    Mistake::Shape(id) => (id, Failure::InvalidRequest),
                };
                self.reject(Id::Json(id.unwrap_or(b"null").into()), batch, failure, out);
                return Step::Again;
            }
        };
        if request.id.is_none() && request.method.as_bytes() == CANCEL {
            let id = json::cancelled_id(request.params).map(|id| Id::Json(id.into()));
            let step = self.cancel(id, out);
            self.settle_batch(batch, out);
            return step;
        }
        let method = match request.method {
            Cow::Borrowed(method) => Cow::Borrowed(method.as_bytes()),
            Cow::Owned(method) => Cow::Owned(method.into_bytes()),
        };
        let call = ProcedureCall {
            method,
            params: request.params,
            form: Form::Json,
            wants_response: request.id.is_some(),
            id: request.id.and_then(json::small_number),
        };
        let id = request.id.map_or(Id::None, |id| Id::Json(id.into()));
        Step::Event(self.open(cx, id, batch, call))
    }

    /// Enters a call.
    #[inline]
    fn open<'i>(
        &mut self,
        cx: Context<'_>,
        id: Id,
        batch: Option<u32>,
        call: ProcedureCall<'i>,
    ) -> Event<'i> {
        let stream = self.next_stream;
        self.next_stream = stream.wrapping_add(1);
        let due_at = match cx.limits.rpc_call_ms {
            0 => Millis::MAX,
            ms => cx.now.saturating_add(ms),
        };
        self.calls.enter(OpenCall {
            stream,
            id,
            batch,
            due_at,
        });
        Event::Call { stream, call }
    }

    /// A batch of `length` bytes is there: its elements come out one by one.
    fn begin_batch(&mut self, cx: Context<'_>, input: &mut &[u8], length: usize, out: &mut Output) {
        let batch = input.get(..length).unwrap_or_default();
        let n_max = cx.limits.rpc_calls_open_max.max(1) as usize;
        let failure = match json::elements_of(batch, n_max) {
            Err(BatchMistake::Syntax) => Failure::Parse,
            Err(BatchMistake::TooLong) => Failure::TooLong,
            Ok(elements) if elements.is_empty() => Failure::InvalidRequest,
            Ok(elements) => {
                self.batch = self.batches.begin(elements.len());
                self.elements = elements;
                self.batch_bytes = length;
                return;
            }
        };
        take(input, length);
        self.reject(Id::Json((*b"null").into()), None, failure, out);
    }

    fn next_element<'i>(
        &mut self,
        cx: Context<'_>,
        input: &mut &'i [u8],
        out: &mut Output,
    ) -> Step<'i> {
        let Some((skip, length)) = self.elements.pop_front() else {
            return Step::Again;
        };
        take(input, skip);
        let element = take(input, length);
        self.batch_bytes = self.batch_bytes.saturating_sub(skip).saturating_sub(length);
        if self.elements.is_empty() {
            take(input, core::mem::take(&mut self.batch_bytes));
        }
        self.take_value(cx, element, Some(self.batch), out)
    }

    /// The caller no longer waits for a call.
    fn cancel<'i>(&mut self, id: Option<Id>, out: &mut Output) -> Step<'i> {
        let stream = id.and_then(|id| self.calls.find(&id));
        match stream.and_then(|stream| self.calls.take(stream)) {
            Some(call) => Step::Event(self.break_off(&call, Fault::CallCancelled, out)),
            // Its response is being written.
            None => Step::Again,
        }
    }

    /// Responds to a call that is not executed any more.
    fn break_off(&mut self, call: &OpenCall, fault: Fault, out: &mut Output) -> Event<'static> {
        let failure = Failure::of(fault.status());
        self.respond(call, Outcome::Failure(failure, fault.text().into()), out);
        self.close_if_done(out);
        Event::Broken {
            stream: call.stream,
            fault,
        }
    }

    /// Responds to a message that is no call.
    fn reject(&mut self, id: Id, batch: Option<u32>, failure: Failure, out: &mut Output) {
        let text = match failure {
            Failure::Parse => "what came is not JSON",
            Failure::TooLong => "the batch has too many calls",
            _ => "what came is no request",
        };
        let call = OpenCall {
            stream: 0,
            id,
            batch,
            due_at: Millis::MAX,
        };
        self.respond(&call, Outcome::Failure(failure, text.into()), out);
    }

    /// Nothing more is read. Tells why, if it can be known to whom.
    #[cold]
    fn refuse(&mut self, fault: Fault, input: &mut &[u8], out: &mut Output) {
        self.fault = Some(fault);
        let id = match self.form {
            Some(Form::MessagePack) if fault != Fault::CallSyntax => {
                msgpack::msgid_of(input).map(Id::Number)
            }
            Some(Form::MessagePack) => None,
            Some(Form::Json) | None => Some(Id::Json((*b"null").into())),
        };
        let failure = match fault {
            Fault::CallSyntax => Failure::Parse,
            _ => Failure::of(fault.status()),
        };
        if let Some(id) = id {
            let call = OpenCall {
                stream: 0,
                id,
                batch: None,
                due_at: Millis::MAX,
            };
            self.respond(&call, Outcome::Failure(failure, fault.text().into()), out);
        }
    }

    /// Ends the connection if nothing keeps it.
    #[inline]
    fn close_if_done(&mut self, out: &mut Output) {
        let is_over = self.fault.is_some() || self.draining;
        if !is_over || self.closing.is_some() || !self.calls.is_empty() || !self.elements.is_empty()
        {
            return;
        }
        // The peer may still be sending.
        self.closing = Some(Closing::Linger);
        if self.fault.is_none() && !self.peer_finished {
            self.say_goodbye(out);
        }
    }

    fn say_goodbye(&self, out: &mut Output) {
        let out = out.tail();
        match self.form {
            Some(Form::MessagePack) => {
                out.extend_from_slice(&[0x93, 0x02]);
                msgpack::encode_text(GOODBYE, out);
                out.push(0x90);
            }
            Some(Form::Json) => {
                out.extend_from_slice(b"{\"jsonrpc\":\"2.0\",\"method\":");
                json::encode_text(GOODBYE, out);
                out.extend_from_slice(b"}\n");
            }
            // No byte has come yet: the protocol is not known.
            None => {}
        }
    }

    /// Writes a response unless the call was a notification.
    #[inline]
    fn respond(&mut self, call: &OpenCall, outcome: Outcome<'_>, out: &mut Output) {
        match (&call.id, call.batch) {
            (Id::Number(msgid), _) => answer_msgpack(*msgid, outcome, out),
            (Id::Json(id), None) => answer_json(id, outcome, out),
            (Id::Json(id), Some(batch)) => {
                if let Some(responses) = self.batches.respond(batch) {
                    append_json(id, &outcome, responses);
                }
            }
            (Id::None, _) => {}
        }
        self.settle_batch(call.batch, out);
    }

    fn settle_batch(&mut self, batch: Option<u32>, out: &mut Output) {
        if let Some(responses) = batch.and_then(|batch| self.batches.complete_one(batch)) {
            out.push(Payload::Shared(responses.into()));
        }
    }
}

/// The protocol that a connection beginning with this byte speaks.
fn form_of(first: u8) -> Result<Form, Fault> {
    match first {
        0x90..=0x9f | 0xdc | 0xdd => Ok(Form::MessagePack),
        b'{' | b'[' => Ok(Form::Json),
        _ if first.is_ascii_whitespace() => Ok(Form::Json),
        _ => Err(Fault::CallSyntax),
    }
}

fn first_of(input: &[u8]) -> Option<u8> {
    input.first().copied()
}

/// Takes `n` bytes off `input`.
#[inline]
fn take<'i>(input: &mut &'i [u8], n: usize) -> &'i [u8] {
    let (taken, rest) = input.split_at_checked(n).unwrap_or((input, &[]));
    *input = rest;
    taken
}

/// A response that is text for people, as the message of an error.
fn in_words(status: Status, payload: &Payload<'_>) -> Outcome<'static> {
    let text = String::from_utf8_lossy(bytes_of(payload)).into_owned();
    Outcome::Failure(Failure::of(status), Cow::Owned(text))
}

fn failed<'a>() -> Outcome<'a> {
    Outcome::Failure(Failure::Internal, Fault::HandlerFailed.text().into())
}

/// The bytes of a payload. Files are none of ours: no result is one.
fn bytes_of<'a>(payload: &'a Payload<'_>) -> &'a [u8] {
    match payload {
        Payload::Copied(bytes) => bytes,
        Payload::Shared(bytes) => bytes,
        Payload::File(_) => &[],
    }
}

/// `[1, msgid, error, result]`.
#[inline]
fn answer_msgpack(msgid: u32, outcome: Outcome<'_>, out: &mut Output) {
    const NIL: u8 = 0xc0;
    let tail = out.tail();
    tail.extend_from_slice(&[0x94, 0x01]);
    msgpack::encode_uint(msgid, tail);
    match outcome {
        Outcome::Result(result) => {
            tail.push(NIL);
            out.push(result);
        }
        Outcome::Error(error) => {
            out.push(error);
            out.tail().push(NIL);
        }
        Outcome::Failure(failure, text) => {
            failure.encode_msgpack(&text, tail);
            tail.push(NIL);
        }
    }
}

/// A response object on a line of its own.
fn answer_json(id: &[u8], outcome: Outcome<'_>, out: &mut Output) {
    let tail = out.tail();
    json::open(id, tail);
    match outcome {
        Outcome::Result(result) => {
            tail.extend_from_slice(b"\"result\":");
            out.push(result);
        }
        Outcome::Error(error) => {
            tail.extend_from_slice(b"\"error\":");
            out.push(error);
        }
        Outcome::Failure(failure, text) => {
            tail.extend_from_slice(b"\"error\":");
            failure.encode_json(&text, tail);
        }
    }
    out.tail().extend_from_slice(b"}\n");
}

/// A response object among others.
fn append_json(id: &[u8], outcome: &Outcome<'_>, out: &mut Vec<u8>) {
    json::open(id, out);
    match outcome {
        Outcome::Result(result) => {
            out.extend_from_slice(b"\"result\":");
            out.extend_from_slice(bytes_of(result));
        }
        Outcome::Error(error) => {
            out.extend_from_slice(b"\"error\":");
            out.extend_from_slice(bytes_of(error));
        }
        Outcome::Failure(failure, text) => {
            out.extend_from_slice(b"\"error\":");
            failure.encode_json(text, out);
        }
    }
    out.push(b'}');
}
