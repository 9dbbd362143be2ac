//! RPC over QUIC for the clients of `citius.rpc`: messages as over TCP in and out, datagrams below.
//!
//! A request gets a stream of its own, and `$/cancelRequest` cancels that. When the server takes leave, `$/goodbye` is told as
//! it is over TCP. Tests: `tests/rpc/test_quic.py`.

use std::net::SocketAddr;
use std::sync::Mutex;
use std::time::Instant;

use bytes::{Bytes, BytesMut};
use citius_base::sync::lock;
use citius_base::upstream::tls::ClientTls;
use citius_quic::{Calls, CallsEnd};
use citius_rpc::{PROTOCOL, Request, take_request};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList};

/// `[2, "$/goodbye", []]`.
const GOODBYE: &[u8] = b"\x93\x02\xa9$/goodbye\x90";

/// Adds what clients and services of remote procedure calls are made of.
pub(crate) fn add_calls(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<crate::rpc::RpcMessages>()?;
    module.add_class::<RpcQuic>()?;
    crate::rpc_unary::add_readers(module)
}

/// One connection.
#[pyclass(frozen, module = "citius._core")]
pub(crate) struct RpcQuic(Mutex<State>);

struct State {
    calls: Calls,
    has_said_goodbye: bool,
}

#[pymethods]
impl RpcQuic {
    #[new]
    fn new(
        tls: &ClientTls,
        server_name: &str,
        remote: &str,
        message_bytes_max: usize,
    ) -> PyResult<Self> {
        let remote: SocketAddr = remote
            .parse()
            .map_err(|_| PyValueError::new_err(format!("{remote:?} is no address with a port")))?;
        let calls = Calls::new(
            now(),
            tls.client(),
            PROTOCOL,
            server_name,
            remote,
            message_bytes_max,
        );
        Ok(Self(Mutex::new(State {
            calls: calls.map_err(PyValueError::new_err)?,
            has_said_goodbye: false,
        })))
    }

    /// Takes whole messages of MessagePack-RPC, one after another.
    fn send(&self, mut data: &[u8]) -> PyResult<()> {
        let mut state = lock(&self.0);
        while !data.is_empty() {
            let taken = take_request(&mut data);
            let (request, message) = taken.map_err(|fault| PyValueError::new_err(fault.text()))?;
            let bytes = || Bytes::copy_from_slice(message);
            match request {
                Request::Call(id) => state.calls.send(Some(id), bytes()),
                Request::Notification => state.calls.send(None, bytes()),
                Request::Cancellation(id) => state.calls.cancel(id),
            }
        }
        Ok(())
    }

    /// Takes a datagram of the server's.
    fn receive(&self, datagram: &[u8]) {
        let datagram = BytesMut::from(datagram);
        lock(&self.0).calls.receive(now(), datagram);
    }

    /// The datagrams that are to be sent now.
    fn datagrams<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let datagrams = PyList::empty(py);
        let now = now();
        let mut state = lock(&self.0);
        state.calls.expire(now);
        let mut bytes = Vec::new();
        while state.calls.transmit(now, &mut bytes) {
            datagrams.append(PyBytes::new(py, &bytes))?;
            bytes.clear();
        }
        Ok(datagrams)
    }

    /// Messages that have come: responses, and the goodbye of the server.
    fn take<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        let mut state = lock(&self.0);
        let mut messages = state.calls.take_responses().concat();
        if state.calls.end() == Some(&CallsEnd::Goodbye) && !state.has_said_goodbye {
            state.has_said_goodbye = true;
            messages.extend_from_slice(GOODBYE);
        }
        PyBytes::new(py, &messages)
    }

    /// Whether `take` has something, or the connection is over.
    #[getter]
    fn has_come(&self) -> bool {
        let state = lock(&self.0);
        state.calls.has_responses() || state.calls.end().is_some()
    }

    /// Seconds until `datagrams` is to be called again; `None`: not before something comes.
    #[getter]
    fn due_s(&self) -> Option<f64> {
        let at = lock(&self.0).calls.timeout()?;
        Some(at.saturating_duration_since(now()).as_secs_f64())
    }

    /// Whether the handshake is over.
    #[getter]
    fn is_connected(&self) -> bool {
        lock(&self.0).calls.is_connected()
    }

    /// Why the connection is over, if it is.
    #[getter]
    fn reason(&self) -> Option<String> {
        match lock(&self.0).calls.end()? {
            CallsEnd::Goodbye => Some("the server closed the connection gracefully".into()),
            CallsEnd::Lost(reason) => Some(reason.clone()),
        }
    }

    /// Whether TLS is why it is over, so that another attempt would end likewise.
    #[getter]
    fn is_in_vain(&self) -> bool {
        lock(&self.0).calls.is_in_vain()
    }

    /// Bytes of messages that have to wait.
    #[getter]
    fn queued_bytes(&self) -> usize {
        lock(&self.0).calls.queued_bytes()
    }

    /// Whether the server has acknowledged everything.
    #[getter]
    fn is_delivered(&self) -> bool {
        lock(&self.0).calls.is_delivered()
    }

    /// Ends the connection; `datagrams` has what tells the server.
    fn close(&self) {
        lock(&self.0).calls.close(now());
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "there is no turn: callers keep the time"
)]
fn now() -> Instant {
    Instant::now()
}
