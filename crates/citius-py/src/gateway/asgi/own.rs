//! Dictionaries that each request has for itself and that seldom change: made once, they serve request after request.
//!
//! An application may change what it finds in its scope, and no other request may see that. Most change nothing:
//! then the next request gets the same objects. Invariant: what serves again is known to nobody but the template
//! of scopes, and so is every container in it, and each holds the very objects it was made with.

use pyo3::ffi::Py_ssize_t;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

use crate::ownership::references;

/// A dictionary of constants and of containers of them.
pub(super) struct Own {
    items: Items,
    latest: Option<Py<PyDict>>,
}

type Items = Vec<(Py<PyAny>, Item)>;

enum Item {
    Constant(Py<PyAny>),
    Dict(Items),
    List(Vec<Py<PyAny>>),
}

impl Own {
    /// Of dictionaries that are filled like `example`.
    pub(super) fn like(example: &Bound<'_, PyDict>) -> Self {
        Self {
            items: items_of(example),
            latest: None,
        }
    }

    /// The dictionary for a request, which its caller keeps until it gets the next one; `None` if the one before
    /// serves again.
    #[inline]
    pub(super) fn renewed<'py>(&mut self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyDict>>> {
        // It is known here and to the caller.
        self.other_than(py, 2)
    }

    /// The dictionary for a request; its caller keeps none.
    pub(super) fn take<'py>(&mut self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let renewed = self.other_than(py, 1)?;
        Ok(match (renewed, &self.latest) {
            (None, Some(latest)) => latest.bind(py).clone(),
            (Some(renewed), _) => renewed,
            (None, None) => unreachable!("only the latest is not renewed"),
        })
    }

    #[inline]
    fn other_than<'py>(
        &mut self,
        py: Python<'py>,
        known: Py_ssize_t,
    ) -> PyResult<Option<Bound<'py, PyDict>>> {
        if let Some(latest) = &self.latest
            && references(py, latest) == known
            && is_as_made(latest.bind(py), &self.items)
        {
            return Ok(None);
        }
        let made = make(py, &self.items)?;
        self.latest = Some(made.clone().unbind());
        Ok(Some(made))
    }
}

fn items_of(example: &Bound<'_, PyDict>) -> Items {
    let item = |value: Bound<'_, PyAny>| {
        if let Ok(dict) = value.cast_exact::<PyDict>() {
            Item::Dict(items_of(dict))
        } else if let Ok(list) = value.cast_exact::<PyList>() {
            Item::List(list.iter().map(Bound::unbind).collect())
        } else {
            Item::Constant(value.unbind())
        }
    };
    let items = example.iter();
    items
        .map(|(key, value)| (key.unbind(), item(value)))
        .collect()
}

fn make<'py>(py: Python<'py>, items: &Items) -> PyResult<Bound<'py, PyDict>> {
    let made = PyDict::new(py);
    for (key, item) in items {
        match item {
            Item::Constant(value) => made.set_item(key, value)?,
            Item::Dict(items) => made.set_item(key, make(py, items)?)?,
            Item::List(values) => made.set_item(key, PyList::new(py, values)?)?,
        }
    }
    Ok(made)
}

#[inline]
fn is_as_made(dict: &Bound<'_, PyDict>, items: &Items) -> bool {
    let py = dict.py();
    // One is the iterator's for the moment, the other its container's.
    let is_ours = |value: &Bound<'_, PyAny>| references(py, value.as_unbound()) == 2;
    let is_same = |value: &Bound<'_, PyAny>, item: &Item| match item {
        Item::Constant(known) => value.is(known),
        Item::Dict(items) => match value.cast_exact::<PyDict>() {
            Ok(dict) => is_ours(value) && is_as_made(dict, items),
            Err(_) => false,
        },
        Item::List(values) => match value.cast_exact::<PyList>() {
            Ok(list) => {
                is_ours(value)
                    && list.len() == values.len()
                    && list
                        .iter()
                        .zip(values)
                        .all(|(value, known)| value.is(known))
            }
            Err(_) => false,
        },
    };
    if dict.len() != items.len() {
        return false;
    }
    // An empty one, as most are, needs no iterator.
    items.is_empty()
        || dict
            .iter()
            .zip(items)
            .all(|((key, value), (known, item))| key.is(known) && is_same(&value, item))
}
