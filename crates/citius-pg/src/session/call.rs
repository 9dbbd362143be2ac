//! What a session needs to know of a call, and of the pool that it belongs to.

use alloc::sync::Arc;
use core::sync::atomic::{AtomicBool, AtomicU8, Ordering};

use super::pool::PoolState;
use super::portal::Portal;
use super::statement::{Statement, StatementId};
use crate::bind::Parameters;
use crate::description::Description;
use crate::fault::{Fault, ServerError};
use crate::row::Row;
use crate::type_table::TypeTable;

/// A call: what is executed, and what becomes of it. Of two values that are the same call, both mean it.
pub trait Call: Sized {
    /// What its methods are called with: the pool, and what the caller's language needs for its objects.
    type Host<'a>: Host<Self::Codec>;
    /// How an application has values of a type converted.
    type Codec;
    /// What is made once of a statement's description, to read its rows.
    type Made: Default;
    /// What has come of a result.
    type Rows;
    /// A result.
    type Reply;
    /// Why there is none.
    type Error;

    /// What is executed.
    fn work(&self) -> Work<'_, Self::Codec, Self::Made>;

    /// Where it may be executed, and how often that has failed.
    fn standing(&self) -> &Standing;

    /// Whether no code waits for it any more.
    fn is_over(&self) -> bool;

    /// The number of the statement that has to be prepared for it; `None`: there is none.
    ///
    /// # Errors
    /// The text cannot be looked up.
    fn id(&self, host: Self::Host<'_>) -> Result<Option<StatementId>, Self::Error>;

    /// Its text; that of a [`Work::Resume`] is not asked for.
    ///
    /// # Errors
    /// It is not UTF-8.
    fn text<'a>(&'a self, host: Self::Host<'_>) -> Result<&'a str, Self::Error>;

    /// Encodes the arguments of one execution, that of the `row` of [`Work::Each`], or has them encoded already. Returns by
    /// which description they are sent and rows asked for, and what is sent.
    ///
    /// # Errors
    /// They do not fit.
    fn encode<'a>(
        &'a self,
        host: Self::Host<'_>,
        statement: &'a Statement<Self::Codec, Self::Made>,
        row: usize,
        parameters: &'a mut Parameters,
    ) -> Result<(&'a Description, &'a Parameters), Unfit<Self::Error>>;

    /// The beginning of a result.
    fn rows(&self, host: Self::Host<'_>) -> Self::Rows;

    /// Takes a row.
    ///
    /// # Errors
    /// It cannot be read; further rows are not handed over.
    fn row(
        host: Self::Host<'_>,
        rows: &mut Self::Rows,
        statement: &Statement<Self::Codec, Self::Made>,
        row: Row<'_>,
    ) -> Result<(), Self::Error>;

    /// The result, of which all has come: without rows it is the count.
    ///
    /// # Errors
    /// There is something that cannot be made of it.
    fn finish(
        host: Self::Host<'_>,
        rows: Option<Self::Rows>,
        statement: Option<&Statement<Self::Codec, Self::Made>>,
        count: u64,
    ) -> Result<Self::Reply, Self::Error>;

    /// The same call once more.
    #[must_use]
    fn share(&self, host: Self::Host<'_>) -> Self;

    /// An error of a call.
    fn error(host: Self::Host<'_>, trouble: Trouble<'_>) -> Self::Error;
}

/// What a session needs of its pool.
pub trait Host<Codec>: Copy {
    /// What its sessions have in common.
    fn pool(&self) -> &PoolState;

    /// What is known of types now.
    fn types(&self) -> Arc<TypeTable<Codec>>;

    /// Milliseconds on a clock that only goes forward.
    fn now_ms(&self) -> u64;
}

/// What is executed.
#[derive(Debug)]
pub enum Work<'a, Codec, Made> {
    /// A statement, prepared once per session.
    Statement,
    /// A statement with parameters that are encoded already, whose rows come as its caller likes.
    Encoded,
    /// One statement with each of so many rows of parameters, in one request.
    Each(usize),
    /// Statements without parameters, by the simple protocol.
    Script,
    /// A statement whose rows come in portions: the first of them.
    Open(&'a Portal<Codec, Made>),
    /// The next portion.
    Resume(&'a Portal<Codec, Made>),
    /// A COPY.
    Copy,
}

/// Where a call may be executed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// On any session of the pool.
    Pool,
    /// On one session.
    Session,
    /// On one session, in a block that begins and ends its transaction itself.
    Block,
    /// On one session, before the calls there: it finds out what the types of their statements are.
    Lookup,
}

/// What a call may be and how it has fared.
#[derive(Debug)]
pub struct Standing {
    scope: Scope,
    /// Values of its rows are read by the names of their fields.
    pub(super) reads_names: bool,
    /// Sessions that have ended while its statement was prepared there, or types that had changed when it was executed.
    losses: AtomicU8,
    /// It has been sent, and what the server said of it was of a plan or of types that are gone.
    was_stale: AtomicBool,
}

/// So many sessions may end over the preparation of one statement.
const LOSSES_MAX: u8 = 3;

impl Standing {
    /// That of a call that was not sent yet.
    pub fn new(scope: Scope, reads_names: bool) -> Self {
        Self {
            scope,
            reads_names,
            losses: AtomicU8::new(0),
            was_stale: AtomicBool::new(false),
        }
    }

    /// Where it may be executed.
    pub fn scope(&self) -> Scope {
        self.scope
    }

    /// Whether any session of the pool may execute it.
    #[inline]
    pub fn is_free(&self) -> bool {
        self.scope == Scope::Pool
    }

    /// Notes a loss: whether that was the last one.
    pub(super) fn has_lost_enough(&self) -> bool {
        self.losses.fetch_add(1, Ordering::Relaxed) + 1 >= LOSSES_MAX
    }

    /// Notes that it was sent by a plan or by types that are gone; whether that was noted before.
    pub(super) fn was_stale_before(&self) -> bool {
        self.was_stale.swap(true, Ordering::Relaxed)
    }
}

/// What an error of a call is made of.
#[derive(Debug)]
pub enum Trouble<'a> {
    /// Its statement changes the session for the calls of others; the word says what it changes.
    Refused {
        /// `transaction`, `savepoint`, `names`, `pooled`, `session` or `stream`.
        word: &'static str,
        /// A block has made it.
        is_of_block: bool,
    },
    /// It cannot be sent as it is.
    Unsendable(&'a str),
    /// A rule of the protocol is broken.
    Fault(&'a Fault),
    /// The server has refused it.
    Server(&'a ServerError),
}

/// Why arguments cannot be encoded.
#[derive(Debug)]
pub struct Unfit<Error> {
    /// What the call ends with, if another look at the types does not help.
    pub error: Error,
    /// What kind of mistake it is.
    pub misfit: Misfit,
}

/// A kind of mistake in the arguments of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Misfit {
    /// An argument, or their number, is of another type than the statement's.
    Type,
    /// A number is too large for its type.
    Range,
    /// Another one.
    Other,
}
