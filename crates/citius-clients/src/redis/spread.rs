//! Commands that are about all keys of a cluster, or about all of its nodes: each master gets one, and their replies make one.
//!
//! A failure of any node is that of the command; the others have done it. Tests: `tests/redis/test_cluster_wide.py`.

use std::sync::{Arc, Mutex};

use citius_base::sync::lock;
use citius_redis::Spread;
use pyo3::IntoPyObjectExt;
use pyo3::prelude::*;
use pyo3::types::{PyInt, PyList};

/// A command whose replies come from several nodes.
pub(crate) struct Whole<Call> {
    pub(crate) call: Call,
    spread: Spread,
    replies: Mutex<Vec<Option<PyResult<Py<PyAny>>>>>,
}

impl<Call> Whole<Call> {
    pub(crate) fn new(call: Call, spread: Spread, parts: usize) -> Self {
        Self {
            call,
            spread,
            replies: Mutex::new((0..parts).map(|_| None).collect()),
        }
    }
}

/// What one of the nodes is sent.
pub(crate) struct Part<Call> {
    pub(crate) whole: Arc<Whole<Call>>,
    pub(crate) index: usize,
}

impl<Call> Part<Call> {
    /// Takes the reply of a node; returns the result of the command with the last one.
    pub(crate) fn take(
        &self,
        py: Python<'_>,
        reply: PyResult<Py<PyAny>>,
    ) -> Option<PyResult<Py<PyAny>>> {
        let replies = {
            let mut replies = lock(&self.whole.replies);
            let place = replies.get_mut(self.index)?;
            if place.is_some() {
                return None;
            }
            *place = Some(reply);
            if replies.iter().any(Option::is_none) {
                return None;
            }
            std::mem::take(&mut *replies)
        };
        let replies = replies.into_iter().flatten().collect::<PyResult<Vec<_>>>();
        Some(replies.and_then(|replies| combine(py, self.whole.spread, replies)))
    }
}

fn combine(py: Python<'_>, spread: Spread, replies: Vec<Py<PyAny>>) -> PyResult<Py<PyAny>> {
    let mut rest = replies.into_iter();
    let Some(mut first) = rest.next() else {
        return Ok(py.None());
    };
    for reply in rest {
        let (one, other) = (first.bind(py), reply.bind(py));
        first = match spread {
            Spread::Any if one.is_none() => reply,
            Spread::Same | Spread::Refused(_) | Spread::Any => continue,
            Spread::Sum | Spread::List => one.add(other)?.unbind(),
            Spread::Distinct => {
                let added = PyList::empty(py);
                for element in other.try_iter()? {
                    let element = element?;
                    if !one.contains(&element)? {
                        added.append(element)?;
                    }
                }
                one.add(added)?.unbind()
            }
            Spread::Least => by_place(one, other, |one, other| {
                Ok(if other.lt(&one)? { other } else { one })
            })?,
            Spread::Counts => by_place(one, other, |one, other| {
                if one.is_instance_of::<PyInt>() {
                    one.add(other)
                } else {
                    Ok(one)
                }
            })?,
        };
    }
    Ok(first)
}

/// A list of what `make` makes of the elements at each place.
fn by_place<'py>(
    one: &Bound<'py, PyAny>,
    other: &Bound<'py, PyAny>,
    make: impl Fn(Bound<'py, PyAny>, Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>>,
) -> PyResult<Py<PyAny>> {
    let both = one.try_iter()?.zip(other.try_iter()?);
    let made = both.map(|(one, other)| make(one?, other?));
    made.collect::<PyResult<Vec<_>>>()?.into_py_any(one.py())
}
