//! What is to be sent on a connection, and the calls whose replies are to come. What a call is, its user knows.

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::vec::Vec;

use crate::lifetime::{Lifetime, append_questions};

/// Bytes of commands under way on one connection, beyond which it [is full](Outgoing::is_full).
pub const OUTGOING_BYTES_MAX: usize = 64 * 1024 * 1024;

/// A call whose reply is to come.
#[derive(Debug)]
pub struct Request<Call> {
    /// The call.
    pub call: Call,
    /// Replies that come before the one that is the result.
    pub skips: u32,
    /// What the first of those that is an error says.
    pub error: Option<Box<[u8]>>,
    /// The command, if replies are kept.
    pub encoded: Option<Box<[u8]>>,
    /// How long its reply holds; the replies that come before it tell. `None`: it is not kept.
    pub lifetime: Option<Lifetime>,
    bytes: usize,
}

/// What of a call is kept where replies are.
#[derive(Clone, Copy, Debug)]
pub enum Keep {
    /// Nothing.
    Nothing,
    /// The command, which may change what is kept.
    Command,
    /// The reply too, if the server says how long it holds.
    Reply {
        /// Fields of hashes may have times to live of their own.
        has_field_ttls: bool,
        /// The time.
        now_ms: u64,
    },
}

/// The commands of one connection.
#[derive(Debug)]
pub struct Outgoing<Call> {
    /// What the carrier is to take.
    pub output: Vec<u8>,
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
    pub is_open: bool,
}

impl<Call> Outgoing<Call> {
    /// That of a connection whose login is to come.
    pub fn new(login: Vec<u8>) -> Self {
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
    pub fn push(&mut self, call: Call, encoded: &[u8], mut replies: u32, keep: Keep) {
        let before = self.output.len();
        let mut lifetime = None;
        if let Keep::Reply {
            has_field_ttls,
            now_ms,
        } = keep
        {
            let questions = append_questions(&mut self.output, encoded, has_field_ttls);
            lifetime = (questions > 0).then(|| Lifetime::new(now_ms));
            replies += questions;
        }
        self.output.extend_from_slice(encoded);
        let bytes = self.output.len() - before;
        self.bytes += bytes;
        self.n_expected += replies as usize;
        self.requests.push_back(Request {
            call,
            skips: replies.saturating_sub(1),
            error: None,
            encoded: (!matches!(keep, Keep::Nothing)).then(|| encoded.into()),
            lifetime,
            bytes,
        });
    }

    /// Whether the commands under way take more bytes than they may.
    pub fn is_full(&self) -> bool {
        self.bytes > OUTGOING_BYTES_MAX
    }

    /// The request whose reply comes next.
    pub fn front(&mut self) -> Option<&mut Request<Call>> {
        self.requests.front_mut()
    }

    /// Takes the request at the front, whose reply has come.
    #[inline]
    pub fn pop(&mut self) -> Option<Request<Call>> {
        let request = self.requests.pop_front()?;
        self.n_taken = self.n_taken.saturating_sub(1);
        self.n_expired = self.n_expired.saturating_sub(1);
        self.bytes -= request.bytes;
        Some(request)
    }

    /// Whether a call has waited for too long whose reply is still to come.
    pub fn has_expired(&self) -> bool {
        self.n_expired > 0
    }

    /// Takes the number of replies that the protocol has to be told of.
    pub fn take_expected(&mut self) -> usize {
        core::mem::take(&mut self.n_expected)
    }

    /// Notes that the carrier takes the bytes of all requests.
    pub fn note_taken(&mut self) {
        self.n_taken = self.requests.len();
    }

    /// The calls whose replies are to come.
    pub fn calls(&self) -> impl Iterator<Item = &Call> {
        self.requests.iter().map(|request| &request.call)
    }

    /// Returns the calls whose time is up; their replies are still to come.
    pub fn expire(&mut self, is_due: impl Fn(&Call) -> bool) -> impl Iterator<Item = &Call> {
        let late = self.calls().take_while(|call| is_due(call)).count();
        let known = core::mem::replace(&mut self.n_expired, late).min(late);
        self.requests
            .range(known..late)
            .map(|request| &request.call)
    }

    /// Ends it: returns all calls, and how many of them have been sent.
    pub fn close(&mut self) -> (VecDeque<Request<Call>>, usize) {
        self.is_open = false;
        self.output.clear();
        let n_taken = core::mem::take(&mut self.n_taken);
        (core::mem::take(&mut self.requests), n_taken)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with_calls(calls: &[u32]) -> Outgoing<u32> {
        let mut outgoing = Outgoing::new(b"hello".to_vec());
        for &call in calls {
            outgoing.push(call, b"PING", 1, Keep::Nothing);
        }
        outgoing
    }

    #[test]
    fn calls_end_in_the_order_in_which_they_were_added() {
        let mut outgoing = Outgoing::new(b"hello".to_vec());
        outgoing.push(1, b"GET a", 1, Keep::Command);
        outgoing.push(2, b"MULTI x EXEC", 3, Keep::Nothing);
        assert_eq!(outgoing.output, b"helloGET aMULTI x EXEC");
        assert_eq!((outgoing.take_expected(), outgoing.take_expected()), (4, 0));
        let first = outgoing.pop().expect("two were added");
        assert_eq!((first.call, first.skips), (1, 0));
        assert_eq!(first.encoded.as_deref(), Some(&b"GET a"[..]));
        let second = outgoing.front().expect("one is left");
        assert_eq!(
            (second.call, second.skips, second.encoded.is_none()),
            (2, 2, true)
        );
        assert!(outgoing.pop().is_some());
        assert!(outgoing.pop().is_none());
        assert_eq!(outgoing.bytes, 0);
    }

    #[test]
    fn what_is_asked_of_a_reply_goes_before_its_command() {
        let mut outgoing = Outgoing::new(Vec::new());
        let keep = Keep::Reply {
            has_field_ttls: false,
            now_ms: 5,
        };
        let get = b"*2\r\n$3\r\nGET\r\n$1\r\na\r\n";
        outgoing.push(1, get, 1, keep);
        let asked = [b"*2\r\n$4\r\nPTTL\r\n$1\r\na\r\n".as_slice(), get].concat();
        assert_eq!(outgoing.output, asked);
        assert_eq!(outgoing.take_expected(), 2);
        let request = outgoing.pop().expect("one was added");
        assert_eq!(
            (request.skips, request.lifetime),
            (1, Some(Lifetime::new(5)))
        );
        assert_eq!(
            (request.encoded.as_deref(), outgoing.bytes),
            (Some(&get[..]), 0)
        );
        outgoing.push(2, b"*1\r\n$4\r\nPING\r\n", 1, keep);
        let request = outgoing.pop().expect("one was added");
        assert!(request.skips == 0 && request.lifetime.is_none());
    }

    #[test]
    fn what_was_taken_by_the_carrier_is_told_from_what_was_not() {
        let mut outgoing = with_calls(&[1, 2]);
        outgoing.note_taken();
        outgoing.push(3, b"PING", 1, Keep::Nothing);
        outgoing.pop();
        outgoing.is_open = true;
        let (left, taken) = outgoing.close();
        let calls: Vec<u32> = left.iter().map(|request| request.call).collect();
        assert_eq!((calls.as_slice(), taken), (&[2, 3][..], 1));
        assert!(!outgoing.is_open && outgoing.output.is_empty());
    }

    #[test]
    fn a_call_expires_once_and_its_reply_is_still_to_come() {
        let mut outgoing = with_calls(&[10, 20, 30]);
        let mut expired = |now| {
            outgoing
                .expire(|call| *call <= now)
                .copied()
                .collect::<Vec<_>>()
        };
        assert_eq!(expired(10), [10]);
        assert_eq!(expired(20), [20]);
        assert!(expired(20).is_empty());
        assert!(outgoing.has_expired());
        assert_eq!(outgoing.calls().count(), 3);
        outgoing.pop();
        assert!(outgoing.has_expired());
        outgoing.pop();
        assert!(!outgoing.has_expired());
    }

    #[test]
    fn commands_under_way_have_a_limit() {
        let mut outgoing = Outgoing::new(Vec::new());
        let half = alloc::vec![0; OUTGOING_BYTES_MAX / 2];
        outgoing.push(1, &half, 1, Keep::Nothing);
        outgoing.push(2, &half, 1, Keep::Nothing);
        assert!(!outgoing.is_full());
        outgoing.push(3, b"PING", 1, Keep::Nothing);
        assert!(outgoing.is_full());
        outgoing.pop();
        assert!(!outgoing.is_full());
    }
}
