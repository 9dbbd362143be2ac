//! Redis and PostgreSQL, on the connections of clients that the application has opened and named (`citius.go.share`).

use std::ffi::c_int;
use std::fmt;
use std::ptr::{self, NonNull};
use std::time::Duration;

use crate::calls::{CallError, c_text, check};
use crate::go::{table, table_for_wait, timeout_ns};
use crate::raw;

/// A client of either kind.
struct Engine {
    pointer: NonNull<raw::Engine>,
    table: &'static raw::Api,
}

// SAFETY: the server's clients may be used by any thread.
unsafe impl Send for Engine {}
// SAFETY: the server's clients may be used by several threads at a time.
unsafe impl Sync for Engine {}

const REDIS: c_int = 0;
const POSTGRES: c_int = 1;

impl Engine {
    fn find(kind: c_int, name: &str) -> Option<Self> {
        let table = table().ok()?;
        // SAFETY: the server's own function; the name is readable for its length.
        let pointer =
            unsafe { (table.engines.engine_find)(kind, name.as_ptr().cast(), name.len()) };
        NonNull::new(pointer.cast_mut()).map(|pointer| Self { pointer, table })
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        // SAFETY: it is released once.
        unsafe { (self.table.engines.engine_release)(self.pointer.as_ptr()) };
    }
}

// --- Redis ----------------------------------------------------------------------------------------

/// A `citius.redis.Redis` of the application.
///
/// ```no_run
/// use citius_handler::{Outcome, Redis, Reply, Request, Response, Status};
///
/// fn item(request: &Request<'_>, response: &mut Response<'_>) -> Outcome {
///     let redis = Redis::find("cache").ok_or(Status::FAILED)?;
///     let key = [b"item:", request.param(0)?].concat();
///     let reply = redis.call(&[b"GET", &key], None)?;
///     match reply.value() {
///         Reply::Bytes(item) => response.write(item),
///         _ => Err(Status::NOT_FOUND),
///     }
/// }
/// ```
pub struct Redis(Engine);

impl Redis {
    /// The client that `citius.go.share` has given this name.
    pub fn find(name: &str) -> Option<Self> {
        Engine::find(REDIS, name).map(Self)
    }

    /// Sends a command, its name and its arguments, and waits for the reply; `timeout` `None`: as long as the client permits.
    ///
    /// # Errors
    /// The server has refused it ([`Reason::Server`](crate::Reason::Server)), or there is no reply.
    pub fn call(
        &self,
        words: &[&[u8]],
        timeout: Option<Duration>,
    ) -> Result<OwnedReply, CallError> {
        let table = table_for_wait()?;
        let words: Vec<raw::Text> = words.iter().map(|word| raw::Text::of(word)).collect();
        let mut reply = ptr::null_mut();
        // SAFETY: the client is not released, and the words outlive the call.
        let code = unsafe {
            (table.engines.redis_call)(
                self.0.pointer.as_ptr(),
                words.as_ptr(),
                words.len(),
                timeout_ns(timeout),
                &raw mut reply,
            )
        };
        check(table, code)?;
        Ok(OwnedReply { reply, table })
    }
}

impl fmt::Debug for Redis {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Redis")
    }
}

/// A reply, with its memory.
pub struct OwnedReply {
    reply: *mut raw::Reply,
    table: &'static raw::Api,
}

// SAFETY: it is bytes that nothing changes.
unsafe impl Send for OwnedReply {}
// SAFETY: it is bytes that nothing changes, so shared references may be used by any thread.
unsafe impl Sync for OwnedReply {}

impl OwnedReply {
    /// What it is.
    pub fn value(&self) -> Reply<'_> {
        Reply::of(self.reply, self.table)
    }
}

impl fmt::Debug for OwnedReply {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.value().fmt(formatter)
    }
}

impl Drop for OwnedReply {
    fn drop(&mut self) {
        // SAFETY: it is freed once.
        unsafe { (self.table.engines.reply_free)(self.reply) };
    }
}

/// What Redis has sent.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Reply<'a> {
    /// Nothing.
    Nil,
    /// A number.
    Integer(i64),
    /// A double.
    Real(f64),
    /// True or false.
    Bool(bool),
    /// A string, a status such as `OK`, or the digits of a number of more than 64 bits.
    Bytes(&'a [u8]),
    /// An array or a set.
    Array(Elements<'a>),
    /// Keys and values by turns.
    Map(Elements<'a>),
    /// An error in an array.
    Error(&'a [u8]),
}

/// The replies in a reply.
#[derive(Clone, Copy)]
pub struct Elements<'a> {
    reply: *const raw::Reply,
    table: &'a raw::Api,
}

impl<'a> Reply<'a> {
    fn of(reply: *const raw::Reply, table: &'a raw::Api) -> Self {
        // SAFETY: it is not freed while it is borrowed.
        let text = || raw::bytes(unsafe { (table.engines.reply_text)(reply) });
        // SAFETY: the reply is not freed while it is borrowed.
        let integer = || unsafe { (table.engines.reply_integer)(reply) };
        // SAFETY: the reply is not freed while it is borrowed.
        match unsafe { (table.engines.reply_kind)(reply) } {
            1 => Self::Integer(integer()),
            // SAFETY: the reply is not freed while it is borrowed.
            2 => Self::Real(unsafe { (table.engines.reply_real)(reply) }),
            3 => Self::Bool(integer() != 0),
            4 => Self::Bytes(text()),
            5 => Self::Array(Elements { reply, table }),
            6 => Self::Map(Elements { reply, table }),
            7 => Self::Error(text()),
            _ => Self::Nil,
        }
    }
}

impl<'a> Elements<'a> {
    /// How many there are.
    pub fn len(&self) -> usize {
        // SAFETY: it is not freed while it is borrowed.
        unsafe { (self.table.engines.reply_count)(self.reply) }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// One of them.
    pub fn get(&self, index: usize) -> Option<Reply<'a>> {
        // SAFETY: the reply is not freed while it is borrowed; the server answers any index.
        let reply = unsafe { (self.table.engines.reply_at)(self.reply, index) };
        (!reply.is_null()).then(|| Reply::of(reply, self.table))
    }

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = Reply<'a>> + use<'a> {
        let all = *self;
        (0..all.len()).filter_map(move |index| all.get(index))
    }
}

impl fmt::Debug for Elements<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_list().entries(self.iter()).finish()
    }
}

impl PartialEq for Elements<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.iter().eq(other.iter())
    }
}

// --- PostgreSQL -----------------------------------------------------------------------------------

/// A `citius.pg.Pool` of the application.
///
/// ```no_run
/// use citius_handler::{Outcome, Postgres, Request, Response, Status};
///
/// fn name(request: &Request<'_>, response: &mut Response<'_>) -> Outcome {
///     let db = Postgres::find("db").ok_or(Status::FAILED)?;
///     let id = request.param_integer(0)?;
///     let rows = db.query("SELECT name FROM items WHERE id = $1", &[id.into()], None)?;
///     response.write(rows.text(0, 0).ok_or(Status::NOT_FOUND)?)
/// }
/// ```
pub struct Postgres(Engine);

/// A parameter of a statement.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Value<'a> {
    /// NULL.
    Null,
    /// A number.
    Integer(i64),
    /// A double.
    Real(f64),
    /// The text format of whatever type the parameter has.
    Text(&'a str),
    /// The binary format of the type, which for `bytea` are the bytes themselves.
    Bytes(&'a [u8]),
}

impl From<i64> for Value<'_> {
    fn from(value: i64) -> Self {
        Self::Integer(value)
    }
}

impl From<f64> for Value<'_> {
    fn from(value: f64) -> Self {
        Self::Real(value)
    }
}

impl<'a> From<&'a str> for Value<'a> {
    fn from(value: &'a str) -> Self {
        Self::Text(value)
    }
}

impl<'a> From<&'a [u8]> for Value<'a> {
    fn from(value: &'a [u8]) -> Self {
        Self::Bytes(value)
    }
}

impl<'a, T: Into<Value<'a>>> From<Option<T>> for Value<'a> {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::Null, Into::into)
    }
}

impl Value<'_> {
    fn raw(&self) -> raw::PgValue {
        let (kind, value) = match *self {
            Self::Null => (0, raw::Value { integer: 0 }),
            Self::Text(text) => {
                let text = raw::Text::of(text.as_bytes());
                (1, raw::Value { text })
            }
            Self::Bytes(bytes) => {
                let text = raw::Text::of(bytes);
                (2, raw::Value { text })
            }
            Self::Integer(integer) => (3, raw::Value { integer }),
            Self::Real(real) => (4, raw::Value { real }),
        };
        raw::PgValue { kind, value }
    }
}

impl Postgres {
    /// The pool that `citius.go.share` has given this name.
    pub fn find(name: &str) -> Option<Self> {
        Engine::find(POSTGRES, name).map(Self)
    }

    /// Executes a statement with parameters `$1`, `$2`, …, in a transaction of its own, and waits for all of its rows. A statement
    /// that is still running when the time is over, or the client has left, is cancelled.
    ///
    /// # Errors
    /// The server has refused it ([`Reason::Server`](crate::Reason::Server)), or there is no result.
    pub fn query(
        &self,
        sql: &str,
        values: &[Value<'_>],
        timeout: Option<Duration>,
    ) -> Result<Rows, CallError> {
        let table = table_for_wait()?;
        let sql = c_text(sql, "the statement")?;
        let values: Vec<raw::PgValue> = values.iter().map(Value::raw).collect();
        let mut rows = ptr::null();
        // SAFETY: the pool is not released, and what the parameters point to outlives the call.
        let code = unsafe {
            (table.engines.pg_query)(
                self.0.pointer.as_ptr(),
                sql.as_ptr(),
                values.as_ptr(),
                values.len(),
                timeout_ns(timeout),
                &raw mut rows,
            )
        };
        check(table, code)?;
        Ok(Rows { rows, table })
    }
}

impl fmt::Debug for Postgres {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Postgres")
    }
}

/// The rows of a statement.
pub struct Rows {
    rows: *const raw::Rows,
    table: &'static raw::Api,
}

// SAFETY: it is bytes that nothing changes.
unsafe impl Send for Rows {}
// SAFETY: it is bytes that nothing changes, so shared references may be used by any thread.
unsafe impl Sync for Rows {}

impl Rows {
    fn count(&self, what: c_int) -> u64 {
        // SAFETY: they are not freed.
        let count = unsafe { (self.table.engines.pg_count)(self.rows, what) };
        u64::try_from(count).unwrap_or(0)
    }

    /// How many came.
    pub fn len(&self) -> usize {
        usize::try_from(self.count(0)).unwrap_or(usize::MAX)
    }

    /// Whether none came.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Columns.
    pub fn columns(&self) -> usize {
        usize::try_from(self.count(1)).unwrap_or(usize::MAX)
    }

    /// Rows that the statement has changed or returned.
    pub fn affected(&self) -> u64 {
        self.count(2)
    }

    /// The name of a column.
    pub fn name(&self, column: usize) -> Option<&str> {
        // SAFETY: they are not freed while they are borrowed.
        let name = unsafe { (self.table.engines.pg_column)(self.rows, column) };
        (!name.data.is_null()).then(|| std::str::from_utf8(raw::bytes(name)).unwrap_or_default())
    }

    /// A value in the text format of its type, a `bytea` as its bytes; `None`: it is NULL, or there is none.
    pub fn text(&self, row: usize, column: usize) -> Option<&[u8]> {
        // SAFETY: they are not freed while they are borrowed.
        let text = unsafe { (self.table.engines.pg_text)(self.rows, row, column) };
        (!text.data.is_null()).then(|| raw::bytes(text))
    }

    /// A value as a number; `None`: it is NULL, there is none, or it is no number that fits.
    pub fn integer(&self, row: usize, column: usize) -> Option<i64> {
        let mut value = 0;
        // SAFETY: they are not freed; the value has a place.
        let code =
            unsafe { (self.table.engines.pg_integer)(self.rows, row, column, &raw mut value) };
        (code == 0).then_some(value)
    }

    /// A value as a double; `None`: it is NULL, there is none, or it is no number.
    pub fn real(&self, row: usize, column: usize) -> Option<f64> {
        let mut value = 0.0;
        // SAFETY: the rows are not freed before this is dropped, and there is a place for a number.
        let code = unsafe { (self.table.engines.pg_real)(self.rows, row, column, &raw mut value) };
        (code == 0).then_some(value)
    }
}

impl fmt::Debug for Rows {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            formatter,
            "{} rows of {} columns",
            self.len(),
            self.columns()
        )
    }
}

impl Drop for Rows {
    fn drop(&mut self) {
        // SAFETY: they are freed once.
        unsafe { (self.table.engines.pg_free)(self.rows) };
    }
}
