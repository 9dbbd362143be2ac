//! When a reply is kept, and what of those that are kept is not valid any more.
//!
//! A write of this client's own ends what is kept of its keys when it is sent and again when its reply comes, so that code that has
//! awaited a write reads what it wrote. Writes of others are told by the server.

use citius_base::sync::lock;
use citius_reactor::coarse_ms;
use citius_redis::{CachedBy, Reader, Tracking, cached_by};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList};

use super::call::{RedisCall, Work};
use super::client::RedisClient;
use super::incoming::KeepsReplies;
use super::reply::{Blobs, Builder};

impl RedisClient {
    /// Which keys the server is to tell changes of.
    pub(crate) fn tracking(&self) -> Tracking {
        match (&self.cache, self.prefixes.as_slice()) {
            (None, _) => Tracking::Off,
            (Some(_), []) => Tracking::Read,
            (Some(_), prefixes) => Tracking::Prefixes(prefixes.to_vec()),
        }
    }

    /// Whether the reply to a call is kept; then it is its result.
    #[inline]
    pub(crate) fn is_kept(
        &self,
        py: Python<'_>,
        encoded: &[u8],
        call: &Py<RedisCall>,
    ) -> PyResult<bool> {
        if self.cache.is_none() {
            return Ok(false);
        }
        self.find_kept(py, encoded, call.get())
    }

    fn find_kept(&self, py: Python<'_>, encoded: &[u8], call: &RedisCall) -> PyResult<bool> {
        let Some(cache) = &self.cache else {
            return Ok(false);
        };
        let is_command = matches!(call.work, Work::Command(_) | Work::Get(_));
        if !is_command || cached_by(encoded) == CachedBy::Nothing {
            lock(cache).forget_words(encoded);
            return Ok(false);
        }
        // On a connection of the caller's own, which may have another database, or be in a transaction.
        if !call.is_free() {
            return Ok(false);
        }
        let Some(reply) = lock(cache).get(encoded, coarse_ms()) else {
            return Ok(false);
        };
        let value = read(py, &reply, &call.shape.blobs)?;
        // No code waits yet.
        call.finish(py, call.shape.then.apply(py, value));
        Ok(true)
    }

    /// Whether the reply to a command may be kept, if the server says how long it holds.
    pub(crate) fn may_keep(&self, encoded: &[u8]) -> bool {
        let Some(cache) = &self.cache else {
            return false;
        };
        cached_by(encoded) != CachedBy::Nothing && lock(cache).is_tracked(encoded)
    }

    /// Takes a message that keys have changed; `false` if it is another one.
    pub(crate) fn take_invalidation(&self, push: &Bound<'_, PyAny>) -> PyResult<bool> {
        let (Some(cache), Ok(push)) = (&self.cache, push.cast::<PyList>()) else {
            return Ok(false);
        };
        if push.len() != 2 || !is_bytes(&push.get_item(0)?, b"invalidate") {
            return Ok(false);
        }
        let keys = push.get_item(1)?;
        let mut cache = lock(cache);
        match keys.cast::<PyList>() {
            // All of them: the database has been emptied.
            Err(_) => cache.clear(),
            Ok(keys) => {
                for key in keys {
                    if let Ok(key) = key.cast::<PyBytes>() {
                        cache.forget(key.as_bytes());
                    }
                }
            }
        }
        Ok(true)
    }

    /// Changes are not told any more.
    pub(crate) fn forget_kept(&self) {
        if let Some(cache) = &self.cache {
            lock(cache).clear();
        }
    }
}

fn is_bytes(value: &Bound<'_, PyAny>, expected: &[u8]) -> bool {
    value
        .cast::<PyBytes>()
        .is_ok_and(|bytes| bytes.as_bytes() == expected)
}

/// The value of a reply.
fn read(py: Python<'_>, reply: &[u8], blobs: &Blobs) -> PyResult<Py<PyAny>> {
    let (mut reader, mut builder) = (Reader::default(), Builder::default());
    let mut input = reply;
    while let Ok(Some(item)) = reader.next(&mut input) {
        if let Some(value) = builder.add(py, item, blobs) {
            return value;
        }
    }
    Err(PyValueError::new_err("a kept reply is not whole"))
}

impl KeepsReplies for RedisClient {
    fn note_reply(&self, encoded: &[u8], reply: &[u8], until_ms: Option<u64>) {
        let Some(cache) = &self.cache else { return };
        if cached_by(encoded) == CachedBy::Nothing {
            lock(cache).forget_words(encoded);
        } else if let Some(until_ms) = until_ms
            && !reply.is_empty()
        {
            lock(cache).insert(encoded, reply, coarse_ms(), until_ms);
        }
    }
}
