//! Linux only. What a worker gives up before it serves (`--sandbox`), by `citius-sandbox`.
//!
//! `python/citius/process/sandbox.py` says with which rules. Tests: `tests/deploy/test_sandbox.py`.

use std::collections::HashSet;
use std::path::PathBuf;

use citius_sandbox::Rules;
use pyo3::exceptions::PyOSError;
use pyo3::prelude::*;

/// Adds the functions to the module.
pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(confine, module)?)?;
    module.add_function(wrap_pyfunction!(refuse_rings, module)?)?;
    module.add_function(wrap_pyfunction!(adopt_orphans, module)?)
}

/// Let the kernel seem to have no `io_uring`: its rings make calls that no filter sees.
#[pyfunction]
fn refuse_rings() -> PyResult<()> {
    citius_sandbox::refuse_rings().map_err(|error| PyOSError::new_err(error.to_string()))
}

/// Let descendants whose parents have ended become children of this process.
#[pyfunction]
fn adopt_orphans() -> PyResult<()> {
    Ok(citius_sandbox::adopt_orphans()?)
}

/// Give up for good what the rules do not name; returns what this kernel cannot restrict.
#[pyfunction]
#[pyo3(signature = (*, readable, writable, ports, words))]
#[expect(
    clippy::needless_pass_by_value,
    reason = "arguments of Python are owned"
)]
fn confine(
    readable: Vec<PathBuf>,
    writable: Vec<PathBuf>,
    ports: Vec<u16>,
    words: HashSet<String>,
) -> PyResult<Vec<&'static str>> {
    let rules = Rules {
        readable,
        writable,
        ports,
        udp: words.contains("udp"),
        unix: words.contains("unix"),
        listen: words.contains("listen"),
        metadata: words.contains("metadata"),
    };
    citius_sandbox::confine(&rules).map_err(|error| PyOSError::new_err(error.to_string()))
}
