//! The types of which handlers return values that are encoded.
//!
//! In: types whose values were encoded before. Out: whether a type is one of them, without a look at its attributes.
//! It holds a bounded number of types. Tests: `tests/gateway/`.

use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyDict, PyList, PyTuple, PyType};

/// Types whose values have been encoded: neither text nor bytes, no responses and nothing to iterate over by
/// themselves. Asking what a value is takes several times what encoding it does, and a service returns few types.
pub struct DataTypes([PyOnceLock<Py<PyType>>; Self::KEPT_MAX]);

impl Default for DataTypes {
    fn default() -> Self {
        Self([const { PyOnceLock::new() }; Self::KEPT_MAX])
    }
}

impl DataTypes {
    /// Those beyond are asked each time.
    const KEPT_MAX: usize = 16;

    /// Whether it was noted.
    #[inline]
    pub fn contains(&self, kind: &Bound<'_, PyType>) -> bool {
        self.0
            .iter()
            .map_while(|place| place.get(kind.py()))
            .any(|known| known.is(kind))
    }

    /// Notes a type of which a value was encoded.
    #[cold]
    pub fn note(&self, kind: &Bound<'_, PyType>) {
        let py = kind.py();
        // `is_data` knows these two, and a tuple is looked at each time.
        if kind.is(py.get_type::<PyDict>())
            || kind.is(py.get_type::<PyList>())
            || kind.is(py.get_type::<PyTuple>())
        {
            return;
        }
        if self.contains(kind) {
            return;
        }
        let mut kept = kind.clone().unbind();
        for place in &self.0 {
            match place.set(kind.py(), kept) {
                Ok(()) => return,
                Err(refused) => kept = refused,
            }
        }
    }
}
