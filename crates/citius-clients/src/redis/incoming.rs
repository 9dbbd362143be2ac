//! What has come on a connection: bytes in, results of calls out, in their order.
//!
//! Most replies are one value, which becomes the result at once. Others are put together value by value. A transaction has a reply
//! for `MULTI` and for each command that is queued, which are skipped, and one that has the results of all.

use std::sync::Mutex;

use citius_base::sync::lock;
use citius_reactor::Inbox;
use citius_redis::{Connection, Event, Fault, Item, Login, Outgoing, Request, Server, Value};
use pyo3::PyClass;
use pyo3::prelude::*;
use pyo3::pyclass::boolean_struct::True;

use super::errors::{error_of, server_error};
use super::reply::{Blobs, Builder, simple_value};

/// A call, as what reads its reply knows it.
pub(crate) trait Expects: PyClass<Frozen = True> + Sync {
    /// What strings of its result become.
    fn blobs(&self) -> &Blobs;

    /// Whether no code waits for its result.
    fn is_over(&self) -> bool;

    /// The calls between `MULTI` and `EXEC`, if it is a transaction.
    fn transaction(&self) -> Option<&[Py<Self>]>;
}

/// What keeps replies of commands.
pub(crate) trait KeepsReplies {
    /// A reply has come: it is kept until then, or what it may have changed is not kept any more.
    fn note_reply(&self, encoded: &[u8], reply: &[u8], until_ms: Option<u64>);
}

/// What the server has said to a command.
pub(crate) enum Outcome {
    Value(PyResult<Py<PyAny>>),
    Error(Box<[u8]>),
}

impl Outcome {
    pub(crate) fn is_value(&self) -> bool {
        matches!(self, Self::Value(Ok(_)))
    }

    pub(crate) fn into_result(self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        match self {
            Self::Value(value) => value,
            Self::Error(error) => Err(server_error(py, &error)),
        }
    }
}

/// What the thread that reads needs.
pub(crate) struct Incoming<Q> {
    protocol: Connection,
    inbox: Inbox,
    /// The reply that has begun to come.
    reading: Option<Reading<Q>>,
    builder: Builder,
    pushed: Builder,
    /// Values that came unasked.
    n_pushed: u64,
}

/// A reply of several values.
struct Reading<Q> {
    call: Py<Q>,
    /// It is that of `EXEC`, whose elements are the results of other calls.
    block: Option<Block>,
    /// It is not the result.
    is_skipped: bool,
    /// Its bytes, if it may be kept.
    raw: Option<Vec<u8>>,
}

/// Where in the reply to `EXEC` the values so far have led.
#[derive(Default)]
struct Block {
    /// The array of all results has begun.
    is_begun: bool,
    /// The call whose result comes next.
    next: usize,
    /// How deep in that result.
    depth: u32,
}

/// What has come in one piece of input.
pub(crate) struct Received<Q> {
    /// Results of calls that were sent.
    pub(crate) ended: Vec<(Py<Q>, Outcome)>,
    /// Results of commands in transactions.
    pub(crate) in_blocks: Vec<(Py<Q>, Outcome)>,
    pub(crate) pushes: Vec<PyResult<Py<PyAny>>>,
    /// Errors of commands that subscribe.
    pub(crate) refusals: Vec<Box<[u8]>>,
    pub(crate) server: Option<Server>,
    pub(crate) fault: Option<Fault>,
}

/// What reading needs of the connection.
pub(crate) struct Context<'a, 'py, Q> {
    pub(crate) py: Python<'py>,
    pub(crate) kept: &'a dyn KeepsReplies,
    pub(crate) outgoing: &'a Mutex<Outgoing<Py<Q>>>,
}

impl<Q> Default for Received<Q> {
    fn default() -> Self {
        Self {
            ended: Vec::new(),
            in_blocks: Vec::new(),
            pushes: Vec::new(),
            refusals: Vec::new(),
            server: None,
            fault: None,
        }
    }
}

impl<Q: Expects> Incoming<Q> {
    /// The login is appended to `output`.
    pub(crate) fn new(login: &Login, reply_bytes_max: usize, output: &mut Vec<u8>) -> Self {
        Self {
            protocol: Connection::new(login, reply_bytes_max, output),
            inbox: Inbox::default(),
            reading: None,
            builder: Builder::default(),
            pushed: Builder::default(),
            n_pushed: 0,
        }
    }

    /// Takes what has come.
    pub(crate) fn receive(&mut self, context: &Context<'_, '_, Q>, bytes: &[u8]) -> Received<Q> {
        let expected = lock(context.outgoing).take_expected();
        self.protocol.expect(expected);
        let mut received = Received::default();
        let mut inbox = std::mem::take(&mut self.inbox);
        inbox.receive(bytes, |bytes| self.read(context, bytes, &mut received));
        self.inbox = inbox;
        received
    }

    /// Takes all whole values; returns how many bytes are left.
    fn read(
        &mut self,
        context: &Context<'_, '_, Q>,
        bytes: &[u8],
        received: &mut Received<Q>,
    ) -> usize {
        let mut input = bytes;
        loop {
            let before = input;
            match self.protocol.receive(&mut input) {
                Ok(Some(Event::Reply(item))) => {
                    let raw = &before[..before.len() - input.len()];
                    match self.reading.take() {
                        None => self.begin(context, item, raw, received),
                        Some(reading) => self.go_on(context, reading, item, raw, received),
                    }
                }
                Ok(Some(Event::Push(item))) => {
                    self.n_pushed += 1;
                    let made = self.pushed.add(context.py, item, &Blobs::Bytes);
                    received.pushes.extend(made);
                }
                Ok(Some(Event::Refused(error))) => received.refusals.push(error.into()),
                Ok(Some(Event::Open(server))) => received.server = Some(server),
                Ok(None) => return input.len(),
                Err(fault) => {
                    received.fault = Some(fault);
                    return 0;
                }
            }
        }
    }

    /// The first value of a reply, which is all of it for most commands.
    #[inline]
    fn begin(
        &mut self,
        context: &Context<'_, '_, Q>,
        item: Item<'_>,
        raw: &[u8],
        received: &mut Received<Q>,
    ) {
        let reading = {
            let mut outgoing = lock(context.outgoing);
            let Some(request) = outgoing.front() else {
                return;
            };
            if item.is_last && request.skips == 0 {
                let request = outgoing.pop();
                drop(outgoing);
                if let Some(request) = request {
                    let outcome = outcome_of(context.py, request.call.get(), item);
                    self.complete(context, request, outcome, raw, received);
                }
                return;
            }
            let is_result = request.skips == 0;
            let is_block = is_result && request.call.get().transaction().is_some();
            Reading {
                call: request.call.clone_ref(context.py),
                block: is_block.then(Block::default),
                is_skipped: !is_result,
                raw: (is_result && request.lifetime.is_some()).then(Vec::new),
            }
        };
        self.go_on(context, reading, item, raw, received);
    }

    /// A value of a reply that has several, or that is not the result.
    fn go_on(
        &mut self,
        context: &Context<'_, '_, Q>,
        mut reading: Reading<Q>,
        item: Item<'_>,
        raw: &[u8],
        received: &mut Received<Q>,
    ) {
        let py = context.py;
        if let Some(kept) = &mut reading.raw {
            kept.extend_from_slice(raw);
        }
        let call = reading.call.get();
        let mut outcome = Outcome::Value(Ok(py.None()));
        if reading.is_skipped {
            skip(context, item, self.n_pushed);
            if item.is_last {
                return;
            }
        } else if let (Some(block), Some(calls)) = (&mut reading.block, call.transaction()) {
            block.take(py, &mut self.builder, item, calls, received);
        } else if call.is_over() {
            self.builder = Builder::default();
        } else if let Some(made) = self.builder.add(py, item, call.blobs()) {
            outcome = Outcome::Value(made);
        }
        if !item.is_last {
            self.reading = Some(reading);
            return;
        }
        let request = lock(context.outgoing).pop();
        if let Some(request) = request {
            let raw = reading.raw.unwrap_or_default();
            self.complete(context, request, outcome, &raw, received);
        }
    }

    /// The result of a call has come.
    #[inline]
    fn complete(
        &self,
        context: &Context<'_, '_, Q>,
        request: Request<Py<Q>>,
        outcome: Outcome,
        raw: &[u8],
        received: &mut Received<Q>,
    ) {
        if let Some(encoded) = &request.encoded {
            let lifetime = request.lifetime.filter(|_| outcome.is_value());
            let until_ms = lifetime.and_then(|lifetime| lifetime.until_ms(self.n_pushed));
            context.kept.note_reply(encoded, raw, until_ms);
        }
        let outcome = match (request.error, outcome) {
            // `EXECABORT` says less than what caused it.
            (Some(error), Outcome::Error(_)) => Outcome::Error(error),
            (_, outcome) => outcome,
        };
        received.ended.push((request.call, outcome));
    }
}

/// A value of a reply that comes before the result: of `ASKING`, of `MULTI`, of commands that are queued, of how long the result holds.
fn skip<Q>(context: &Context<'_, '_, Q>, item: Item<'_>, n_pushed: u64) {
    let mut outgoing = lock(context.outgoing);
    let Some(request) = outgoing.front() else {
        return;
    };
    request.skips = request.skips.saturating_sub(u32::from(item.is_last));
    if let Some(lifetime) = &mut request.lifetime {
        lifetime.take(item, n_pushed);
    } else if let Value::Error(error) = item.value
        && request.error.is_none()
    {
        request.error = Some(error.into());
    }
}

/// What a reply of one value comes to.
#[inline]
fn outcome_of<Q: Expects>(py: Python<'_>, call: &Q, item: Item<'_>) -> Outcome {
    match item.value {
        Value::Error(error) => Outcome::Error(error.into()),
        Value::Null if call.transaction().is_some() => {
            Outcome::Value(Err(error_of(py, "watch_failed", py.None())))
        }
        _ if call.is_over() => Outcome::Value(Ok(py.None())),
        value => Outcome::Value(simple_value(py, value, call.blobs())),
    }
}

impl Block {
    /// Takes a value of the reply to `EXEC`; a result that is complete is kept for its call.
    fn take<Q: Expects>(
        &mut self,
        py: Python<'_>,
        builder: &mut Builder,
        item: Item<'_>,
        calls: &[Py<Q>],
        received: &mut Received<Q>,
    ) {
        if !std::mem::replace(&mut self.is_begun, true) {
            return;
        }
        let Some(call) = calls.get(self.next) else {
            return;
        };
        self.depth += u32::from(item.value.is_container());
        let ends = item.ends.min(self.depth);
        self.depth -= ends;
        let is_last = self.depth == 0;
        self.next += usize::from(is_last);
        let outcome = if let (Value::Error(error), true) = (item.value, is_last && ends == 0) {
            Some(Outcome::Error(error.into()))
        } else {
            let item = Item {
                value: item.value,
                ends,
                is_last,
            };
            let made = builder.add(py, item, call.get().blobs());
            made.map(Outcome::Value)
        };
        if let Some(outcome) = outcome {
            received.in_blocks.push((call.clone_ref(py), outcome));
        }
    }
}
