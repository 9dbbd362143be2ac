//! RPC over QUIC for the clients of `citius.rpc`: messages as over TCP in and out, datagrams below.
//!
//! A request gets a stream of its own, and `$/cancelRequest` cancels that. When the server takes leave, `$/goodbye` is told as
//! it is over TCP. Tests: `tests/rpc/test_quic.py`.

use std::net::SocketAddr;
use std::sync::Mutex;
use std::time::Instant;

use bytes::{Bytes, BytesMut};
use citius_quic::{Calls, CallsEnd};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList};

use crate::sync::lock;
use crate::upstream::tls::ClientTls;

/// `[2, "$/goodbye", []]` and the start of `[2, "$/cancelRequest", [id]]`.
const GOODBYE: &[u8] = b"\x93\x02\xa9$/goodbye\x90";
const CANCEL: &[u8] = b"\x93\x02\xaf$/cancelRequest\x91";

/// Adds what clients are made of.
pub(crate) fn add_clients(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<crate::rpc::RpcMessages>()?;
    module.add_class::<RpcQuic>()
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
        let calls = Calls::new(now(), tls.client(), server_name, remote, message_bytes_max);
        Ok(Self(Mutex::new(State {
            calls: calls.map_err(PyValueError::new_err)?,
            has_said_goodbye: false,
        })))
    }

    /// Takes whole messages of MessagePack-RPC, one after another.
    fn send(&self, mut data: &[u8]) -> PyResult<()> {
        let mut state = lock(&self.0);
        while !data.is_empty() {
            let Some(length) = length_of(data) else {
                return Err(PyValueError::new_err("expected whole messages"));
            };
            let (message, rest) = data.split_at(length);
            data = rest;
            match message {
                [0x94, 0x00, id @ ..] => {
                    let Some(id) = number_of(id) else {
                        return Err(PyValueError::new_err("expected the number of a call"));
                    };
                    state.calls.send(Some(id), Bytes::copy_from_slice(message));
                }
                _ => match message.strip_prefix(CANCEL).and_then(number_of) {
                    Some(id) => state.calls.cancel(id),
                    None => state.calls.send(None, Bytes::copy_from_slice(message)),
                },
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

/// The number at the start of `bytes`, as `MessagePack` has it.
fn number_of(bytes: &[u8]) -> Option<u32> {
    match *bytes {
        [n @ 0..=0x7f, ..] | [0xcc, n, ..] => Some(n.into()),
        [0xcd, a, b, ..] => Some(u16::from_be_bytes([a, b]).into()),
        [0xce, a, b, c, d, ..] => Some(u32::from_be_bytes([a, b, c, d])),
        _ => None,
    }
}

/// Bytes of the value at the start of `bytes`; `None`: it is not whole, or no `MessagePack`.
fn length_of(bytes: &[u8]) -> Option<usize> {
    let mut at = 0_usize;
    // Values that are still to come.
    let mut left = 1_usize;
    while left > 0 {
        left -= 1;
        let kind = *bytes.get(at)?;
        at += 1;
        let number = |at: usize, width: usize| -> Option<usize> {
            let digits = bytes.get(at..at + width)?;
            Some(
                digits
                    .iter()
                    .fold(0, |sum, &digit| sum << 8 | usize::from(digit)),
            )
        };
        // The bytes of its length, what they count besides bytes, and bytes that follow anyway.
        let (width, values, fixed) = match kind {
            0x80..=0x8f => (0, 2 * usize::from(kind & 15), 0),
            0x90..=0x9f => (0, usize::from(kind & 15), 0),
            0xa0..=0xbf => (0, 0, usize::from(kind & 31)),
            0xc4 | 0xd9 => (1, 0, number(at, 1)?),
            0xc5 | 0xda => (2, 0, number(at, 2)?),
            0xc6 | 0xdb => (4, 0, number(at, 4)?),
            0xc7 => (1, 0, 1 + number(at, 1)?),
            0xc8 => (2, 0, 1 + number(at, 2)?),
            0xc9 => (4, 0, 1 + number(at, 4)?),
            0xcc | 0xd0 => (0, 0, 1),
            0xcd | 0xd1 => (0, 0, 2),
            0xca | 0xce | 0xd2 => (0, 0, 4),
            0xcb | 0xcf | 0xd3 => (0, 0, 8),
            0xd4..=0xd8 => (0, 0, 1 + (1 << (kind - 0xd4))),
            0xdc => (2, number(at, 2)?, 0),
            0xdd => (4, number(at, 4)?, 0),
            0xde => (2, 2 * number(at, 2)?, 0),
            0xdf => (4, 2 * number(at, 4)?, 0),
            0xc1 => return None,
            _ => (0, 0, 0),
        };
        at += width + fixed;
        left += values;
        if at > bytes.len() {
            return None;
        }
    }
    Some(at)
}
