//! What a session is made of, and what is asked of it.

use alloc::boxed::Box;
use alloc::collections::{BTreeMap, VecDeque};
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;

use bytes::BytesMut;

use super::call::{Call, Work};
use super::path::Path;
use super::statement::{Found, Key, Origin, Statement};
use crate::authentication::Login;
use crate::bind::Parameters;
use crate::connection::{Connection, TransactionStatus};
use crate::description::Description;
use crate::fault::{Fault, ServerError};
use crate::left::Left;
use crate::names::Names;

/// A session with a server.
pub struct Session<C: Call> {
    pub(super) protocol: Connection,
    /// What the server has to answer, in its order.
    pub(super) requests: VecDeque<Request<C>>,
    pub(super) statements: BTreeMap<Key, Prepared<C>>,
    pub(super) path: Path,
    pub(super) names: Names,
    pub(super) status: TransactionStatus,
    /// Calls that wait for their statement to be prepared, or behind one that does.
    pub(super) backlog: VecDeque<C>,
    /// Calls whose statement could not be prepared. They end with `ReadyForQuery`, which has the transaction's status: code
    /// that handles the error reads it.
    pub(super) failing: Ended<C>,
    pub(super) parameters: Parameters,
    pub(super) fatal: Option<Box<ServerError>>,
    /// A COPY is under way: the server would take any request for its data.
    pub(super) is_copying: bool,
    /// Portals to be closed with the next request.
    pub(super) closing: Vec<String>,
    /// Names that the server is to forget behind the COPY that is under way.
    pub(super) forgotten: Vec<String>,
    /// What `statements` take of the server's memory, about.
    pub(super) server_bytes: usize,
    pub(super) left: Left,
    /// A reset is under way: what comes behind it is held back, because a cancel request may hit it.
    pub(super) is_resetting: bool,
    pub(super) is_closed: bool,
}

/// A statement that was found for a call.
pub(super) type FoundBy<C> = Found<<C as Call>::Codec, <C as Call>::Made>;

/// A statement of calls of this kind.
pub(super) type StatementOf<C> = Statement<<C as Call>::Codec, <C as Call>::Made>;

/// Calls that have ended, with their results, to be told when nothing is done with the session any more.
pub type Ended<C> = Vec<(C, Result<<C as Call>::Reply, <C as Call>::Error>)>;

pub(super) enum Request<C: Call> {
    /// The statement and what it is prepared as.
    Prepare(Key, Origin),
    Execute(Box<Execution<C>>),
    /// What follows code that may have changed the session.
    Reset,
}

pub(super) enum Prepared<C: Call> {
    Pending,
    /// It has types of which it is not known yet what they are.
    Untyped(Box<(Origin, Description)>),
    Ready(Arc<StatementOf<C>>),
}

pub(super) struct Execution<C: Call> {
    pub(super) call: C,
    pub(super) statement: Option<FoundBy<C>>,
    pub(super) rows: Option<C::Rows>,
    pub(super) count: u64,
    pub(super) error: Option<C::Error>,
    /// A cancel request that was for the call before it has hit it.
    pub(super) is_to_repeat: bool,
}

/// What was heard beside results, to be told when nothing is done with the session any more.
#[derive(Debug)]
pub struct Heard<C> {
    /// A cancel request is under way to this session.
    pub(super) is_cancelling: bool,
    /// Calls that have to be done once more, by any session.
    pub repeated: Vec<C>,
    /// The session is open.
    pub is_open: bool,
    /// Names of statements get lost behind this server, which was not known.
    pub are_names_lost: bool,
    /// Where the session is now, if requests have ended.
    pub status: Option<TransactionStatus>,
    /// Remarks of the server's.
    pub notices: Vec<ServerError>,
    /// Parameters of the session that have a new value.
    pub parameters: Vec<(String, String)>,
    /// Channel, payload and process of what other sessions have said.
    pub notifications: Vec<(String, String, i32)>,
    /// Types of which it has to be found out what they are.
    pub unknown_types: Vec<u32>,
    /// The call that is a COPY, and what has come of its data; `None`: the server wants some.
    pub copied: Option<(C, Option<Vec<u8>>)>,
    /// What has ended the session.
    pub over: Option<Over>,
}

/// What ends a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Over {
    /// The server, and what it has said is [kept](Session::take_fatal).
    Fatal,
    /// A rule of the protocol is broken.
    Fault(Fault),
}

impl<C> Heard<C> {
    /// Nothing yet. `is_cancelling`: a cancel request is under way to this session, or its effect may be.
    pub fn new(is_cancelling: bool) -> Self {
        Self {
            is_cancelling,
            repeated: Vec::new(),
            is_open: false,
            are_names_lost: false,
            status: None,
            notices: Vec::new(),
            parameters: Vec::new(),
            notifications: Vec::new(),
            unknown_types: Vec::new(),
            copied: None,
            over: None,
        }
    }
}

impl<C: Call> Session<C> {
    /// A session whose first message is in [`output`](Self::output).
    ///
    /// # Errors
    /// The login has zero bytes in it.
    pub fn new(login: Login) -> Result<Self, Fault> {
        Ok(Self {
            protocol: Connection::new(login)?,
            requests: VecDeque::new(),
            statements: BTreeMap::new(),
            path: Path::default(),
            names: Names::default(),
            status: TransactionStatus::Idle,
            backlog: VecDeque::new(),
            failing: Ended::<C>::new(),
            parameters: Parameters::default(),
            fatal: None,
            is_copying: false,
            closing: Vec::new(),
            forgotten: Vec::new(),
            server_bytes: 0,
            left: Left::Nothing,
            is_resetting: false,
            is_closed: false,
        })
    }

    /// What is to be sent.
    #[inline]
    pub fn output(&mut self) -> &mut BytesMut {
        self.protocol.output()
    }

    /// Says that the bytes travel over TLS, and what the server's certificate hashes to (`tls-server-end-point`).
    pub fn set_server_end_point(&mut self, hash: Vec<u8>) {
        self.protocol.set_server_end_point(hash);
    }

    /// Process and secret key of the session, once they are known.
    pub fn key(&self) -> Option<(i32, i32)> {
        self.protocol.key()
    }

    /// Whether it has ended.
    #[inline]
    pub fn is_closed(&self) -> bool {
        self.is_closed
    }

    /// What the server has said as it ended the session.
    pub fn take_fatal(&mut self) -> Option<Box<ServerError>> {
        self.fatal.take()
    }

    /// Says goodbye to the server; nothing may be sent after that.
    pub fn terminate(&mut self) {
        self.protocol.terminate();
    }

    /// Whether the COPY that is under way is this call. Another one of the same block may come behind it.
    pub fn is_copy_of(&self, is_it: impl Fn(&C) -> bool) -> bool {
        let is_it = |request: &Request<C>| matches!(request, Request::Execute(it) if matches!(it.call.work(), Work::Copy) && is_it(&it.call));
        self.is_copying && self.requests.iter().any(is_it)
    }

    /// Sends data of the COPY that is under way; without one nothing.
    pub fn copy_data(&mut self, data: &[u8]) {
        if self.is_copying && !self.is_closed {
            self.protocol.copy_data(data);
        }
    }

    /// Ends the data of the COPY that is under way; with a reason the server refuses it.
    pub fn end_copy(&mut self, why: Option<&str>) {
        if !self.is_copying || self.is_closed {
            return;
        }
        match why {
            None => self.protocol.copy_done(),
            Some(why) => self.protocol.copy_fail(why),
        }
    }

    /// Has a portal closed with the next request.
    pub fn close_portal(&mut self, name: String) {
        self.closing.push(name);
    }

    /// Whether the server works for a call that no code waits for any more.
    pub fn is_blocked(&self) -> bool {
        match self.requests.front() {
            Some(Request::Execute(it)) => it.call.is_over(),
            // What waits for a statement to be prepared, as behind the lock of a table.
            Some(Request::Prepare(..)) => {
                !self.backlog.is_empty() && self.backlog.iter().all(Call::is_over)
            }
            Some(Request::Reset) | None => false,
        }
    }

    /// Whether there is such a call anywhere in the pipeline: the server comes to it yet.
    pub fn has_abandoned(&self) -> bool {
        let is_over =
            |request: &Request<C>| matches!(request, Request::Execute(it) if it.call.is_over());
        self.requests.iter().any(is_over) || self.backlog.iter().any(Call::is_over)
    }
}
