//! The client side of MessagePack-RPC for `citius.rpc`: bytes in, messages out. Tests: `tests/rpc/`.

use std::sync::Mutex;

use citius_base::sync::lock;
use citius_rpc::{Incoming, Responses};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList};

/// Messages of one connection, found in whatever pieces they come in.
#[pyclass(frozen, module = "citius._core")]
pub(crate) struct RpcMessages {
    state: Mutex<State>,
    bytes_max: usize,
}

#[derive(Default)]
struct State {
    responses: Responses,
    /// The beginning of a message that is not complete.
    held: Vec<u8>,
}

const NIL: &[u8] = &[0xc0];

#[pymethods]
impl RpcMessages {
    #[new]
    fn new(bytes_max: usize) -> Self {
        Self {
            state: Mutex::default(),
            bytes_max,
        }
    }

    fn feed<'py>(&self, py: Python<'py>, data: &[u8]) -> PyResult<Bound<'py, PyList>> {
        let messages = PyList::empty(py);
        let mut state = lock(&self.state);
        let State { responses, held } = &mut *state;
        if held.is_empty() {
            let mut input = data;
            self.take(py, responses, &mut input, &messages)?;
            held.extend_from_slice(input);
        } else {
            held.extend_from_slice(data);
            let mut input = held.as_slice();
            self.take(py, responses, &mut input, &messages)?;
            if input.len() < held.len() {
                *held = input.to_vec();
            }
        }
        Ok(messages)
    }
}

impl RpcMessages {
    fn take<'py>(
        &self,
        py: Python<'py>,
        responses: &mut Responses,
        input: &mut &[u8],
        messages: &Bound<'py, PyList>,
    ) -> PyResult<()> {
        let bytes = |bytes: &[u8]| PyBytes::new(py, bytes);
        loop {
            let incoming = responses.receive(input, self.bytes_max);
            match incoming.map_err(|fault| PyValueError::new_err(fault.text()))? {
                None => return Ok(()),
                Some(Incoming::Response {
                    msgid,
                    error,
                    result,
                }) => {
                    let error = (error != NIL).then(|| bytes(error));
                    messages.append((msgid, error, bytes(result)))?;
                }
                Some(Incoming::Notification { method, params }) => {
                    messages.append((None::<u32>, bytes(method), bytes(params)))?;
                }
            }
        }
    }
}
