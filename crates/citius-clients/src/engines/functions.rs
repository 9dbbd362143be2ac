//! The functions of the header for Redis and PostgreSQL.

use std::ffi::{c_char, c_int};
use std::ptr;
use std::sync::Arc;

use citius_abi::{EngineObjects, EnginesApi, PgValue, Text};
use citius_pg::Parameters;

use super::engine::{self, Engine, Kind, attached};
use super::redis::Reply;
use super::{pg, redis};
use crate::pg::native::Table;
use citius_native::net::error::{NetError, Result, code_of};
use citius_native::net::functions::{bytes, string};
use citius_native::wait::Until;

/// What the header's pointers lead to here.
pub struct Objects;

impl EngineObjects for Objects {
    type Engine = Engine;
    type Reply = Reply;
    type Rows = Table;
}

/// Those of the header, by which compiled code calls the clients.
pub const ENGINES_API: EnginesApi<Objects> = EnginesApi {
    engine_find,
    engine_release,
    redis_call,
    reply_kind,
    reply_integer,
    reply_real,
    reply_text,
    reply_count,
    reply_at,
    reply_free,
    pg_query,
    pg_count,
    pg_column,
    pg_text,
    pg_integer,
    pg_real,
    pg_free,
};

const OK: c_int = 0;
const NOT_FOUND: c_int = 404;
const UNPROCESSABLE: c_int = 422;

// --- clients ---

unsafe extern "C" fn engine_find(
    kind: c_int,
    name: *const c_char,
    name_size: usize,
) -> *const Engine {
    let kind = if kind == 0 {
        Kind::Redis
    } else {
        Kind::Postgres
    };
    // SAFETY: what the header asks for.
    let name = unsafe { bytes(name, name_size) };
    engine::find(kind, name).map_or(ptr::null(), Arc::into_raw)
}

unsafe extern "C" fn engine_release(pointer: *const Engine) {
    if !pointer.is_null() {
        // SAFETY: what the header asks for: it is released once.
        let engine = unsafe { Arc::from_raw(pointer) };
        if Arc::strong_count(&engine) == 1 {
            attached(|_| drop(engine));
        }
    }
}

/// # Safety
/// The pointer is null or a client that is not released.
unsafe fn engine_at<'a>(pointer: *const Engine, find: &str) -> Result<&'a Engine> {
    // SAFETY: the caller's.
    let engine = unsafe { pointer.as_ref() };
    engine.ok_or_else(|| {
        NetError::misuse(format!(
            "the client is NULL: {find} has found none of this name; citius.go.share gives it one"
        ))
    })
}

/// Stack that a call needs before it is on the thread's own.
const STACK_BYTES: usize = 12 * 1024;

// --- Redis ---

unsafe extern "C" fn redis_call(
    pointer: *const Engine,
    words: *const Text,
    count: usize,
    timeout_ns: i64,
    place: *mut *mut Reply,
) -> c_int {
    citius_goroutine::require_stack(STACK_BYTES);
    let call = || {
        if !place.is_null() {
            // SAFETY: what the header asks for.
            unsafe { place.write(ptr::null_mut()) };
        }
        // SAFETY: what the header asks for.
        let engine = unsafe { engine_at(pointer, "citius_redis_find")? };
        if words.is_null() || count == 0 {
            return Err(NetError::misuse(
                "a command and its arguments were expected",
            ));
        }
        // SAFETY: what the header asks for.
        let words = unsafe { std::slice::from_raw_parts(words, count) };
        let words: Vec<&[u8]> = words
            .iter()
            // SAFETY: what the header asks for.
            .map(|word| unsafe { word.bytes() })
            .collect();
        let reply = redis::call(engine, &words, Until::within(timeout_ns))?;
        if !place.is_null() {
            // SAFETY: what the header asks for.
            unsafe { place.write(Box::into_raw(Box::new(reply))) };
        }
        Ok(())
    };
    code_of(call())
}

unsafe extern "C" fn reply_kind(reply: *const Reply) -> c_int {
    // SAFETY: what the header asks for.
    match unsafe { reply.as_ref() } {
        None | Some(Reply::Nil) => 0,
        Some(Reply::Integer(_)) => 1,
        Some(Reply::Real(_)) => 2,
        Some(Reply::Bool(_)) => 3,
        Some(Reply::Bytes(_)) => 4,
        Some(Reply::Array(_)) => 5,
        Some(Reply::Map(_)) => 6,
        Some(Reply::Error(_)) => 7,
    }
}

unsafe extern "C" fn reply_integer(reply: *const Reply) -> i64 {
    // SAFETY: what the header asks for.
    match unsafe { reply.as_ref() } {
        Some(Reply::Integer(number)) => *number,
        Some(Reply::Bool(value)) => i64::from(*value),
        _ => 0,
    }
}

unsafe extern "C" fn reply_real(reply: *const Reply) -> f64 {
    // SAFETY: what the header asks for.
    match unsafe { reply.as_ref() } {
        Some(Reply::Real(number)) => *number,
        _ => 0.0,
    }
}

unsafe extern "C" fn reply_text(reply: *const Reply) -> Text {
    // SAFETY: what the header asks for.
    match unsafe { reply.as_ref() } {
        Some(Reply::Bytes(bytes) | Reply::Error(bytes)) => Text::of(bytes),
        _ => Text::EMPTY,
    }
}

unsafe extern "C" fn reply_count(reply: *const Reply) -> usize {
    // SAFETY: what the header asks for.
    match unsafe { reply.as_ref() } {
        Some(Reply::Array(elements) | Reply::Map(elements)) => elements.len(),
        _ => 0,
    }
}

unsafe extern "C" fn reply_at(reply: *const Reply, index: usize) -> *const Reply {
    // SAFETY: what the header asks for.
    let found = match unsafe { reply.as_ref() } {
        Some(Reply::Array(elements) | Reply::Map(elements)) => elements.get(index),
        _ => None,
    };
    found.map_or(ptr::null(), ptr::from_ref)
}

unsafe extern "C" fn reply_free(reply: *mut Reply) {
    if !reply.is_null() {
        // SAFETY: what the header asks for: it is freed once.
        drop(unsafe { Box::from_raw(reply) });
    }
}

// --- PostgreSQL ---

/// # Safety
/// Texts of it are readable.
unsafe fn push(parameters: &mut Parameters, given: &PgValue, number: usize) -> Result<()> {
    let value = given.value;
    match given.kind {
        0 => parameters.push_null(),
        1 | 2 => {
            // SAFETY: the kind says which member it is.
            let text = unsafe { value.text };
            // SAFETY: this function's own promise.
            let bytes = unsafe { text.bytes() };
            if given.kind == 1 {
                parameters.push_text(bytes);
            } else {
                parameters.push_binary(bytes);
            }
        }
        // SAFETY: the kind says which member it is.
        3 => parameters.push_text(
            itoa::Buffer::new()
                .format(unsafe { value.integer })
                .as_bytes(),
        ),
        // SAFETY: the kind says which member it is.
        4 => parameters.push_text(real_text(unsafe { value.real }).as_bytes()),
        kind => {
            return Err(NetError::misuse(format!(
                "parameter ${number}: there is no kind {kind}; use citius_pg_null and the functions beside it"
            )));
        }
    }
    Ok(())
}

/// As PostgreSQL reads it.
fn real_text(number: f64) -> String {
    if number.is_infinite() {
        let text = if number > 0.0 {
            "Infinity"
        } else {
            "-Infinity"
        };
        return text.into();
    }
    format!("{number:?}")
}

unsafe extern "C" fn pg_query(
    pointer: *const Engine,
    sql: *const c_char,
    given: *const PgValue,
    count: usize,
    timeout_ns: i64,
    place: *mut *const Table,
) -> c_int {
    citius_goroutine::require_stack(STACK_BYTES);
    let query = || {
        if !place.is_null() {
            // SAFETY: what the header asks for.
            unsafe { place.write(ptr::null()) };
        }
        // SAFETY: what the header asks for.
        let engine = unsafe { engine_at(pointer, "citius_pg_find")? };
        // SAFETY: what the header asks for.
        let sql = unsafe { string(sql, "the statement")? };
        let sql = sql.ok_or_else(|| NetError::misuse("the statement is NULL"))?;
        if given.is_null() && count > 0 {
            return Err(NetError::misuse("the parameters are NULL"));
        }
        let mut parameters = Parameters::default();
        for at in 0..count {
            // SAFETY: what the header asks for: `count` of them.
            let one = unsafe { given.add(at) };
            // SAFETY: what the header asks for: each of the `count` parameters is readable.
            let given = unsafe { &*one };
            // SAFETY: what the header asks for.
            unsafe { push(&mut parameters, given, at + 1)? };
        }
        let table = pg::query(engine, sql, parameters, Until::within(timeout_ns))?;
        if !place.is_null() {
            // SAFETY: what the header asks for.
            unsafe { place.write(Arc::into_raw(table)) };
        }
        Ok(())
    };
    code_of(query())
}

/// 0: rows, 1: columns, 2: rows that were changed or returned.
unsafe extern "C" fn pg_count(table: *const Table, what: c_int) -> i64 {
    // SAFETY: what the header asks for.
    let Some(table) = (unsafe { table.as_ref() }) else {
        return 0;
    };
    let count = match what {
        0 => table.rows as u64,
        1 => table.columns.len() as u64,
        _ => table.count,
    };
    i64::try_from(count).unwrap_or(i64::MAX)
}

unsafe extern "C" fn pg_column(table: *const Table, column: usize) -> Text {
    // SAFETY: what the header asks for.
    let table = unsafe { table.as_ref() };
    let name = table.and_then(|table| table.columns.get(column));
    name.map_or(Text::EMPTY, |name| Text::of(name.as_bytes()))
}

/// # Safety
/// The pointer is null or a table that is not freed.
unsafe fn value_at<'a>(table: *const Table, row: usize, column: usize) -> Option<&'a [u8]> {
    // SAFETY: the caller's.
    unsafe { table.as_ref() }?.value(row, column)
}

unsafe extern "C" fn pg_text(table: *const Table, row: usize, column: usize) -> Text {
    // SAFETY: what the header asks for.
    unsafe { value_at(table, row, column) }.map_or(Text::EMPTY, Text::of)
}

/// # Safety
/// The table is as the header asks for, and so is the place.
unsafe fn parsed<T: std::str::FromStr>(
    table: *const Table,
    row: usize,
    column: usize,
    place: *mut T,
) -> c_int {
    // SAFETY: the caller's.
    let Some(value) = (unsafe { value_at(table, row, column) }) else {
        return NOT_FOUND;
    };
    let value = std::str::from_utf8(value)
        .ok()
        .and_then(|text| text.parse().ok());
    let Some(value) = value else {
        return UNPROCESSABLE;
    };
    // SAFETY: the caller's.
    unsafe { place.write(value) };
    OK
}

unsafe extern "C" fn pg_integer(
    table: *const Table,
    row: usize,
    column: usize,
    place: *mut i64,
) -> c_int {
    // SAFETY: what the header asks for.
    unsafe { parsed(table, row, column, place) }
}

unsafe extern "C" fn pg_real(
    table: *const Table,
    row: usize,
    column: usize,
    place: *mut f64,
) -> c_int {
    // SAFETY: what the header asks for.
    unsafe { parsed(table, row, column, place) }
}

unsafe extern "C" fn pg_free(table: *const Table) {
    if !table.is_null() {
        // SAFETY: what the header asks for: it is freed once.
        drop(unsafe { Arc::from_raw(table) });
    }
}
