//! Commands of Redis, and their replies as Rust's values.

use std::sync::Arc;

use citius_base::serial::Signal;
use pyo3::exceptions::PyBaseException;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyBytes, PyDict, PyFloat, PyInt, PyList, PySet, PyString, PyTuple};

use super::engine::{Engine, attached, check_wait, wait_for};
use super::failure::failure_of;
use crate::redis::call::RedisCall;
use crate::redis::client::RedisClient;
use citius_native::net::error::Result;
use citius_native::wait::Until;

/// A `citius_reply`.
#[derive(Debug, PartialEq)]
pub enum Reply {
    Nil,
    Integer(i64),
    Real(f64),
    Bool(bool),
    /// A string, a status, a verbatim text, or the digits of a number of more than 64 bits.
    Bytes(Vec<u8>),
    /// An array or a set.
    Array(Vec<Self>),
    /// Keys and values by turns.
    Map(Vec<Self>),
    /// An error within an array, as `EXEC` has them.
    Error(Vec<u8>),
}

/// A reply, or what is set when there is one.
type Found = std::result::Result<Result<Reply>, Arc<Signal>>;

const WHAT: &str = "a command of Redis";

/// Sends a command and waits for its reply.
pub(super) fn call(engine: &Engine, words: &[&[u8]], until: Until) -> Result<Reply> {
    check_wait(WHAT)?;
    let (call, mut found) = attached(|py| {
        let begin = || -> PyResult<(Py<RedisCall>, Found)> {
            let words = PyTuple::new(py, words.iter().map(|word| PyBytes::new(py, word)))?;
            let call = RedisClient::native_call(&engine.redis(py)?, &words)?;
            let found = look(py, &call)?;
            Ok((call, found))
        };
        begin().map_err(|error| failure_of(py, &error))
    })?;
    loop {
        let signal = match found {
            Ok(reply) => {
                attached(|_| drop(call));
                return reply;
            }
            Err(signal) => signal,
        };
        if let Err(error) = wait_for(&signal, until, WHAT) {
            attached(|py| {
                RedisCall::abandon(call.bind(py));
                drop(call);
            });
            return Err(error);
        }
        found = attached(|py| look(py, &call).map_err(|error| failure_of(py, &error)))?;
    }
}

fn look(py: Python<'_>, call: &Py<RedisCall>) -> PyResult<Found> {
    let found = RedisCall::look_serially(call.bind(py))?;
    Ok(found.map(|value| reply_of(value.bind(py))))
}

fn reply_of(value: &Bound<'_, PyAny>) -> Result<Reply> {
    let made = made_of(value);
    made.map_err(|error| failure_of(value.py(), &error))
}

fn made_of(value: &Bound<'_, PyAny>) -> PyResult<Reply> {
    if let Ok(bytes) = value.cast::<PyBytes>() {
        return Ok(Reply::Bytes(bytes.as_bytes().to_vec()));
    }
    if let Ok(text) = value.cast::<PyString>() {
        return Ok(Reply::Bytes(text.to_str()?.as_bytes().to_vec()));
    }
    if value.is_none() {
        return Ok(Reply::Nil);
    }
    if let Ok(value) = value.cast::<PyBool>() {
        return Ok(Reply::Bool(value.is_true()));
    }
    if value.is_instance_of::<PyInt>() {
        return Ok(match value.extract() {
            Ok(number) => Reply::Integer(number),
            Err(_) => Reply::Bytes(value.str()?.to_str()?.as_bytes().to_vec()),
        });
    }
    if let Ok(number) = value.cast::<PyFloat>() {
        return Ok(Reply::Real(number.value()));
    }
    if let Ok(map) = value.cast::<PyDict>() {
        let mut pairs = Vec::with_capacity(map.len() * 2);
        for (key, value) in map {
            pairs.push(made_of(&key)?);
            pairs.push(made_of(&value)?);
        }
        return Ok(Reply::Map(pairs));
    }
    if value.is_instance_of::<PyBaseException>() {
        return Ok(Reply::Error(value.str()?.to_str()?.as_bytes().to_vec()));
    }
    let is_list = value.is_instance_of::<PyList>()
        || value.is_instance_of::<PySet>()
        || value.is_instance_of::<PyTuple>();
    if is_list {
        let elements = value.try_iter()?.map(|element| made_of(&element?));
        return Ok(Reply::Array(elements.collect::<PyResult<_>>()?));
    }
    Ok(Reply::Bytes(value.str()?.to_str()?.as_bytes().to_vec()))
}
