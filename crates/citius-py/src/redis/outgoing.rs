//! What is to be sent on a connection, and the calls whose replies are to come; any thread may add to it.

use std::collections::VecDeque;

use pyo3::prelude::*;

use super::call::RedisCall;

/// Bytes of commands under way on one connection, beyond which no more are taken.
const BYTES_MAX: usize = 64 * 1024 * 1024;

/// A call whose reply is to come.
pub(crate) struct Request {
    pub(crate) call: Py<RedisCall>,
    /// Replies that come before the one that is the result.
    pub(crate) skips: u32,
    /// What the first of those that is an error says.
    pub(crate) error: Option<Box<[u8]>>,
    /// The command, if replies are kept.
    pub(crate) encoded: Option<Box<[u8]>>,
    bytes: usize,
}

/// The commands of one connection.
#[derive(Default)]
pub(crate) struct Outgoing {
    pub(crate) output: Vec<u8>,
    requests: VecDeque<Request>,
    /// Requests whose bytes the carrier has taken.
    n_taken: usize,
    /// Requests at the front whose calls have been failed because they waited for too long.
    n_expired: usize,
    /// Replies of requests that the protocol does not know of yet.
    n_expected: usize,
    /// Bytes of all requests.
    bytes: usize,
    /// The login is done.
    pub(crate) is_open: bool,
}

impl Outgoing {
    /// Adds a call whose command is `encoded` and has so many replies.
    #[inline]
    pub(crate) fn push(
        &mut self,
        call: Py<RedisCall>,
        encoded: &[u8],
        replies: u32,
        keeps_command: bool,
    ) {
        self.output.extend_from_slice(encoded);
        self.bytes += encoded.len();
        self.n_expected += replies as usize;
        self.requests.push_back(Request {
            call,
            skips: replies.saturating_sub(1),
            error: None,
            encoded: keeps_command.then(|| encoded.into()),
            bytes: encoded.len(),
        });
    }

    /// Whether the commands under way take more bytes than they may.
    pub(crate) fn is_full(&self) -> bool {
        self.bytes > BYTES_MAX
    }

    pub(crate) fn front(&mut self) -> Option<&mut Request> {
        self.requests.front_mut()
    }

    /// Takes the request at the front, whose reply has come.
    #[inline]
    pub(crate) fn pop(&mut self) -> Option<Request> {
        let request = self.requests.pop_front()?;
        self.n_taken = self.n_taken.saturating_sub(1);
        self.n_expired = self.n_expired.saturating_sub(1);
        self.bytes -= request.bytes;
        Some(request)
    }

    /// Takes the number of replies that the protocol has to be told of.
    pub(crate) fn take_expected(&mut self) -> usize {
        std::mem::take(&mut self.n_expected)
    }

    /// Notes that the carrier takes the bytes of all requests.
    pub(crate) fn note_taken(&mut self) {
        self.n_taken = self.requests.len();
    }

    pub(crate) fn has(&self, call: &Bound<'_, RedisCall>) -> bool {
        self.requests.iter().any(|request| request.call.is(call))
    }

    /// Takes the calls whose time is up; their replies are still to come.
    pub(crate) fn expire(&mut self, py: Python<'_>, now_ms: u64, due: &mut Vec<Py<RedisCall>>) {
        let is_due = |request: &&Request| request.call.get().until_ms() <= now_ms;
        let late = self.requests.iter().take_while(is_due).count();
        let new = self.requests.range(self.n_expired.min(late)..late);
        due.extend(new.map(|request| request.call.clone_ref(py)));
        self.n_expired = late;
    }

    /// Ends it: returns all calls, and how many of them have been sent.
    pub(crate) fn close(&mut self) -> (VecDeque<Request>, usize) {
        self.is_open = false;
        self.output.clear();
        let n_taken = std::mem::take(&mut self.n_taken);
        (std::mem::take(&mut self.requests), n_taken)
    }
}
