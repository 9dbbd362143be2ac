//! What has come on a connection: bytes in, results of calls out, in their order.
//!
//! Most replies are one value, which becomes the result at once. Others are put together value by value. A transaction has a reply
//! for `MULTI` and for each command that is queued, which are skipped, and one that has the results of all.

use std::sync::Mutex;

use citius_base::sync::lock;
use citius_reactor::Inbox;
use citius_redis::{Connection, Event, Fault, Item, Login, Outgoing, Request, Server, Value};
use pyo3::prelude::*;

use super::call::{RedisCall, Work};
use super::client::RedisClient;
use super::errors::{error_of, server_error};
use super::reply::{Blobs, Builder, simple_value};

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
pub(crate) struct Incoming {
    protocol: Connection,
    inbox: Inbox,
    /// The reply that has begun to come.
    reading: Option<Reading>,
    builder: Builder,
    pushed: Builder,
    /// Values that came unasked.
    n_pushed: u64,
}

/// A reply of several values.
struct Reading {
    call: Py<RedisCall>,
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
#[derive(Default)]
pub(crate) struct Received {
    /// Results of calls that were sent.
    pub(crate) ended: Vec<(Py<RedisCall>, Outcome)>,
    /// Results of commands in transactions.
    pub(crate) in_blocks: Vec<(Py<RedisCall>, Outcome)>,
    pub(crate) pushes: Vec<PyResult<Py<PyAny>>>,
    /// Errors of commands that subscribe.
    pub(crate) refusals: Vec<Box<[u8]>>,
    pub(crate) server: Option<Server>,
    pub(crate) fault: Option<Fault>,
}

/// What reading needs of the connection.
pub(crate) struct Context<'a, 'py> {
    pub(crate) py: Python<'py>,
    pub(crate) client: &'a RedisClient,
    pub(crate) outgoing: &'a Mutex<Outgoing<Py<RedisCall>>>,
}

impl Incoming {
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
    pub(crate) fn receive(&mut self, context: &Context<'_, '_>, bytes: &[u8]) -> Received {
        let expected = lock(context.outgoing).take_expected();
        self.protocol.expect(expected);
        let mut received = Received::default();
        let mut inbox = std::mem::take(&mut self.inbox);
        inbox.receive(bytes, |bytes| self.read(context, bytes, &mut received));
        self.inbox = inbox;
        received
    }

    /// Takes all whole values; returns how many bytes are left.
    fn read(&mut self, context: &Context<'_, '_>, bytes: &[u8], received: &mut Received) -> usize {
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
        context: &Context<'_, '_>,
        item: Item<'_>,
        raw: &[u8],
        received: &mut Received,
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
            let is_block = is_result && matches!(request.call.get().work, Work::Transaction(_));
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
        context: &Context<'_, '_>,
        mut reading: Reading,
        item: Item<'_>,
        raw: &[u8],
        received: &mut Received,
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
        } else if let (Some(block), Work::Transaction(calls)) = (&mut reading.block, &call.work) {
            block.take(py, &mut self.builder, item, calls, received);
        } else if call.is_over() {
            self.builder = Builder::default();
        } else if let Some(made) = self.builder.add(py, item, &call.shape.blobs) {
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
        context: &Context<'_, '_>,
        request: Request<Py<RedisCall>>,
        outcome: Outcome,
        raw: &[u8],
        received: &mut Received,
    ) {
        if let Some(encoded) = &request.encoded {
            let lifetime = request.lifetime.filter(|_| outcome.is_value());
            let until_ms = lifetime.and_then(|lifetime| lifetime.until_ms(self.n_pushed));
            context.client.note_reply(encoded, raw, until_ms);
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
fn skip(context: &Context<'_, '_>, item: Item<'_>, n_pushed: u64) {
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
fn outcome_of(py: Python<'_>, call: &RedisCall, item: Item<'_>) -> Outcome {
    match item.value {
        Value::Error(error) => Outcome::Error(error.into()),
        Value::Null if matches!(call.work, Work::Transaction(_)) => {
            Outcome::Value(Err(error_of(py, "watch_failed", py.None())))
        }
        _ if call.is_over() => Outcome::Value(Ok(py.None())),
        value => Outcome::Value(simple_value(py, value, &call.shape.blobs)),
    }
}

impl Block {
    /// Takes a value of the reply to `EXEC`; a result that is complete is kept for its call.
    fn take(
        &mut self,
        py: Python<'_>,
        builder: &mut Builder,
        item: Item<'_>,
        calls: &[Py<RedisCall>],
        received: &mut Received,
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
            let made = builder.add(py, item, &call.get().shape.blobs);
            made.map(Outcome::Value)
        };
        if let Some(outcome) = outcome {
            received.in_blocks.push((call.clone_ref(py), outcome));
        }
    }
}
