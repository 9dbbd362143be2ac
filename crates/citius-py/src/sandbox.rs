//! Linux only. `confine`: what a worker gives up before it serves (`--sandbox`), by `citius-sandbox`.
//!
//! `python/citius/process/sandbox.py` says with which rules. Tests: `tests/deploy/test_sandbox.py`.

use std::path::PathBuf;

use citius_sandbox::{Enforced, Rules};
use pyo3::exceptions::PyOSError;
use pyo3::prelude::*;

/// Adds the functions to the module.
pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(confine, module)?)?;
    module.add_function(wrap_pyfunction!(refuse_rings, module)?)
}

/// Let the kernel seem to have no `io_uring`: its rings make calls that no filter sees.
#[pyfunction]
fn refuse_rings() -> PyResult<()> {
    citius_sandbox::refuse_rings().map_err(|error| PyOSError::new_err(error.to_string()))
}

/// Give up for good what the rules do not name; `True` if this kernel enforces all of them.
#[pyfunction]
#[pyo3(signature = (*, readable, writable, ports, unix))]
fn confine(
    readable: Vec<PathBuf>,
    writable: Vec<PathBuf>,
    ports: Vec<u16>,
    unix: bool,
) -> PyResult<bool> {
    let rules = Rules {
        readable,
        writable,
        ports,
        unix,
    };
    let enforced =
        citius_sandbox::confine(&rules).map_err(|error| PyOSError::new_err(error.to_string()))?;
    Ok(enforced == Enforced::Wholly)
}
