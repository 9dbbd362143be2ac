//! What is to be sent on a connection, and the calls whose replies are to come; any thread may add to it.

use std::collections::VecDeque;

/// Bytes of commands under way on one connection, beyond which no more are taken.
const BYTES_MAX: usize = 64 * 1024 * 1024;

/// A call whose reply is to come.
pub(crate) struct Request<Call> {
    pub(crate) call: Call,
    /// Replies that come before the one that is the result.
    pub(crate) skips: u32,
    /// What the first of those that is an error says.
    pub(crate) error: Option<Box<[u8]>>,
    /// The command, if replies are kept.
    pub(crate) encoded: Option<Box<[u8]>>,
    bytes: usize,
}

/// The commands of one connection.
pub(crate) struct Outgoing<Call> {
    pub(crate) output: Vec<u8>,
    requests: VecDeque<Request<Call>>,
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

impl<Call> Outgoing<Call> {
    /// That of a connection whose login is to come.
    pub(crate) fn new(login: Vec<u8>) -> Self {
        Self {
            output: login,
            requests: VecDeque::new(),
            n_taken: 0,
            n_expired: 0,
            n_expected: 0,
            bytes: 0,
            is_open: false,
        }
    }

    /// Adds a call whose command is `encoded` and has so many replies.
    #[inline]
    pub(crate) fn push(&mut self, call: Call, encoded: &[u8], replies: u32, keeps_command: bool) {
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

    pub(crate) fn front(&mut self) -> Option<&mut Request<Call>> {
        self.requests.front_mut()
    }

    /// Takes the request at the front, whose reply has come.
    #[inline]
    pub(crate) fn pop(&mut self) -> Option<Request<Call>> {
        let request = self.requests.pop_front()?;
        self.n_taken = self.n_taken.saturating_sub(1);
        self.n_expired = self.n_expired.saturating_sub(1);
        self.bytes -= request.bytes;
        Some(request)
    }

    /// Whether a call has waited for too long whose reply is still to come.
    pub(crate) fn has_expired(&self) -> bool {
        self.n_expired > 0
    }

    /// Takes the number of replies that the protocol has to be told of.
    pub(crate) fn take_expected(&mut self) -> usize {
        std::mem::take(&mut self.n_expected)
    }

    /// Notes that the carrier takes the bytes of all requests.
    pub(crate) fn note_taken(&mut self) {
        self.n_taken = self.requests.len();
    }

    /// The calls whose replies are to come.
    pub(crate) fn calls(&self) -> impl Iterator<Item = &Call> {
        self.requests.iter().map(|request| &request.call)
    }

    /// Returns the calls whose time is up; their replies are still to come.
    pub(crate) fn expire(&mut self, is_due: impl Fn(&Call) -> bool) -> impl Iterator<Item = &Call> {
        let late = self.calls().take_while(|call| is_due(call)).count();
        let known = std::mem::replace(&mut self.n_expired, late).min(late);
        self.requests
            .range(known..late)
            .map(|request| &request.call)
    }

    /// Ends it: returns all calls, and how many of them have been sent.
    pub(crate) fn close(&mut self) -> (VecDeque<Request<Call>>, usize) {
        self.is_open = false;
        self.output.clear();
        let n_taken = std::mem::take(&mut self.n_taken);
        (std::mem::take(&mut self.requests), n_taken)
    }
}
