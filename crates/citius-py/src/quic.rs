//! HTTP/3 as Python configures it. Tests: `tests/http3/`.

use citius_quic::{Keys, Origin, Place, steering_program as program};
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
pub(crate) fn place_of(secret: &[u8; 32], slot: u16, generation: u8) -> Place {
    Place {
        keys: Keys::new(secret),
        origin: Origin { slot, generation },
        finds_mtu: false,
    }
}
