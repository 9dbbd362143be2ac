//! Clients that Python has given names to, for compiled code to find.

use std::sync::{Arc, Mutex};

use citius_base::serial::Signal;
use citius_base::sync::lock;
use citius_goroutine::on_thread_stack;
use pyo3::exceptions::PyTypeError;
use pyo3::intern;
use pyo3::prelude::*;

use crate::pg::pool::PgPool;
use crate::redis::client::RedisClient;
use citius_native::chan::receive_value;
use citius_native::codes::{self, CLOSED};
use citius_native::net::error::{NetError, Result};
use citius_native::wait::{self, Until};

/// What a client talks to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Redis,
    Postgres,
}

/// A `citius.redis.Redis` or a `citius.pg.Pool`.
pub struct Engine {
    kind: Kind,
    object: Py<PyAny>,
}

static ENGINES: Mutex<Vec<(String, Arc<Engine>)>> = Mutex::new(Vec::new());

/// Gives a client a name, or takes the name from whatever has it.
///
/// # Errors
/// `TypeError`: it is no client.
pub(crate) fn share(name: &str, object: Option<&Bound<'_, PyAny>>) -> PyResult<()> {
    let engine = object.map(engine_of).transpose()?;
    let before = {
        let mut engines = lock(&ENGINES);
        let at = engines.iter().position(|(other, _)| other == name);
        let before = at.map(|at| engines.swap_remove(at));
        if let Some(engine) = engine {
            engines.push((name.to_owned(), Arc::new(engine)));
        }
        before
    };
    drop(before);
    Ok(())
}

fn engine_of(object: &Bound<'_, PyAny>) -> PyResult<Engine> {
    let kind = object.getattr_opt(intern!(object.py(), "shared_as"))?;
    let kind = match kind.as_ref().and_then(|kind| kind.extract().ok()) {
        Some("redis") => Kind::Redis,
        Some("pg") => Kind::Postgres,
        _ => {
            return Err(PyTypeError::new_err(format!(
                "share takes a channel, a citius.redis.Redis or a citius.pg.Pool, got {}",
                object.get_type().name()?
            )));
        }
    };
    Ok(Engine {
        kind,
        object: object.clone().unbind(),
    })
}

/// The client of a kind that has a name.
pub(crate) fn find(kind: Kind, name: &[u8]) -> Option<Arc<Engine>> {
    let engines = lock(&ENGINES);
    let found = engines
        .iter()
        .find(|(other, engine)| other.as_bytes() == name && engine.kind == kind);
    found.map(|(_, engine)| Arc::clone(engine))
}

impl Engine {
    /// The open client of this thread.
    pub(super) fn redis<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, RedisClient>> {
        let core = self.object.bind(py).getattr(intern!(py, "core"))?;
        Ok(core.cast_into()?)
    }

    /// The open pool of this thread.
    pub(super) fn pool<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PgPool>> {
        let core = self.object.bind(py).getattr(intern!(py, "core_here"))?;
        Ok(core.cast_into()?)
    }
}

/// Does `work` with the GIL, on the thread's own stack: Python needs more than a goroutine has. It must not wait.
pub(super) fn attached<R>(work: impl FnOnce(Python<'_>) -> R) -> R {
    on_thread_stack(|| {
        Python::attach(|py| {
            // There may be an exception of the code that was running.
            let raised = PyErr::take(py);
            let result = work(py);
            if let Some(raised) = raised {
                raised.restore(py);
            }
            result
        })
    })
}

/// Waits for the signal of a call, which says that its result is there.
pub(super) fn wait_for(signal: &Signal, until: Until, what: &str) -> Result<()> {
    match receive_value(signal.channel(), until) {
        // The signal is given by closing its channel.
        Ok(_) | Err(CLOSED) => Ok(()),
        Err(code) => Err(NetError::waiting(code, what)),
    }
}

/// Refuses a call where nothing may wait, before anything is sent.
pub(super) fn check_wait(what: &str) -> Result<()> {
    match wait::refusal_here() {
        None => Ok(()),
        Some(mistake) => Err(NetError::waiting(codes::misuse(mistake), what)),
    }
}
