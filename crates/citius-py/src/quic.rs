//! HTTP/3 as Python configures it. Tests: `tests/http3/`.

use std::fs::File;
use std::path::PathBuf;
use std::sync::Arc;

use citius_quic::{Keys, Log, Logs, Origin, Place, steering_program as program};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

/// The packet filter for connection ids of a secret, as the kernel takes it: `struct sock_filter`, one after the other.
#[pyfunction]
#[pyo3(signature = (secret, *, is_ipv6, sockets))]
pub(crate) fn steering_program(
    py: Python<'_>,
    secret: [u8; 32],
    is_ipv6: bool,
    sockets: u32,
) -> Bound<'_, PyBytes> {
    let mut bytes = Vec::new();
    for instruction in program(&Keys::new(&secret), is_ipv6, sockets) {
        bytes.extend_from_slice(&instruction.code.to_ne_bytes());
        bytes.extend_from_slice(&[instruction.if_true, instruction.if_false]);
        bytes.extend_from_slice(&instruction.operand.to_ne_bytes());
    }
    PyBytes::new(py, &bytes)
}

/// Where a reactor stands among those of a server.
pub(crate) fn place_of(
    secret: &[u8; 32],
    slot: u16,
    generation: u8,
    qlog_dir: Option<PathBuf>,
) -> Place {
    Place {
        keys: Keys::new(secret),
        origin: Origin { slot, generation },
        finds_mtu: false,
        logs: qlog_dir.map(logs_in),
    }
}

/// Files in a directory, of connections by their ids; one that cannot be made is left out.
fn logs_in(directory: PathBuf) -> Logs {
    Logs(Arc::new(move |id| {
        let file = File::create_new(directory.join(format!("{id}.sqlog"))).ok()?;
        Some(Box::new(file) as Log)
    }))
}
