//! Dictionaries that belong to one request at a time and are reused if that request did not change them.
//!
//! In: an example. Out: a dictionary equal to it. Invariant (I18): a dictionary is reused only if nothing else refers to it
//! or to a container in it, and each container holds the very objects that it was made with.
//! Tests: `tests/asgi/test_isolation.py`.

use std::sync::Arc;

use citius_base::reuse::{Known, Reuse, Spare, version};
use pyo3::ffi::Py_ssize_t;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};

/// A dictionary of constants and of containers of them.
pub(super) struct ReusableDict {
    items: Arc<Items>,
    current: Spare<Current>,
}

type Items = Vec<(Py<PyAny>, Item)>;

enum Item {
    Constant(Py<PyAny>),
    Dict(Items),
    List(Vec<Py<PyAny>>),
}

struct Current {
    dict: Py<PyDict>,
    items: Arc<Items>,
    /// Where all containers are dictionaries, and those have versions: the outer's, and the inner ones with theirs.
    /// Otherwise one has to look at everything.
    versions: Option<(u64, Inner)>,
}

/// The dictionaries in a dictionary, with their versions.
type Inner = Vec<(Py<PyDict>, u64)>;

impl ReusableDict {
    /// Of dictionaries that are filled like `example`.
    pub(super) fn like(example: &Bound<'_, PyDict>) -> Self {
        Self {
            items: Arc::new(items_of(example)),
            current: Spare::default(),
        }
    }

    /// The dictionary for the next request, if the one before, `lent` to so many scopes, cannot be reused.
    #[inline]
    pub(super) fn renewed<'py>(
        &mut self,
        py: Python<'py>,
        lent: Py_ssize_t,
    ) -> PyResult<Option<Bound<'py, PyDict>>> {
        if self.current.is_fresh(py, lent) {
            return Ok(None);
        }
        let (dict, current) = Current::new(py, &self.items)?;
        self.current.put(current);
        Ok(Some(dict))
    }

    /// The dictionary for the next request; nothing else may refer to the one before.
    pub(super) fn take<'py>(&mut self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        Ok(match (self.renewed(py, 0)?, self.current.lent()) {
            (Some(renewed), _) => renewed,
            (None, Some(current)) => current.dict.bind(py).clone(),
            (None, None) => unreachable!("there is one that need not be renewed"),
        })
    }
}

impl Reuse for Current {
    #[inline]
    fn is_fresh(&mut self, py: Python<'_>, lent: Py_ssize_t) -> bool {
        Known::ASGI_DICT.are_all(py, &self.dict, lent) && self.is_as_made(py)
    }
}

impl Current {
    #[cold]
    fn new<'py>(py: Python<'py>, items: &Arc<Items>) -> PyResult<(Bound<'py, PyDict>, Self)> {
        let mut inner = Some(Inner::new());
        let dict = make(py, items, &mut inner)?;
        let current = Self {
            dict: dict.clone().unbind(),
            items: Arc::clone(items),
            versions: version(&dict).zip(inner),
        };
        Ok((dict, current))
    }

    #[inline]
    fn is_as_made(&self, py: Python<'_>) -> bool {
        let Some((outer, inner)) = &self.versions else {
            return holds(self.dict.bind(py), &self.items);
        };
        version(self.dict.bind(py)) == Some(*outer)
            && inner.iter().all(|(dict, made)| {
                Known::ASGI_INNER.are_all(py, dict, 0) && version(dict.bind(py)) == Some(*made)
            })
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

/// A dictionary with `items`. `inner` becomes `None` if not all that is in it has a version.
fn make<'py>(
    py: Python<'py>,
    items: &Items,
    inner: &mut Option<Inner>,
) -> PyResult<Bound<'py, PyDict>> {
    let made = PyDict::new(py);
    for (key, item) in items {
        match item {
            Item::Constant(value) => made.set_item(key, value)?,
            Item::Dict(items) => {
                let dict = make(py, items, inner)?;
                made.set_item(key, &dict)?;
                match (version(&dict), &mut *inner) {
                    (Some(version), Some(inner)) => inner.push((dict.unbind(), version)),
                    _ => *inner = None,
                }
            }
            Item::List(values) => {
                made.set_item(key, PyList::new(py, values)?)?;
                *inner = None;
            }
        }
    }
    Ok(made)
}

/// Whether `dict` is as it was made of `items`.
fn holds(dict: &Bound<'_, PyDict>, items: &Items) -> bool {
    let py = dict.py();
    let is_ours = |value: &Bound<'_, PyAny>| Known::ASGI_INNER.are_all(py, value.as_unbound(), 0);
    let is_same = |value: &Bound<'_, PyAny>, item: &Item| match item {
        Item::Constant(known) => value.is(known),
        Item::Dict(items) => {
            let dict = value.cast_exact::<PyDict>();
            is_ours(value) && dict.is_ok_and(|dict| holds(dict, items))
        }
        Item::List(values) => value.cast_exact::<PyList>().is_ok_and(|list| {
            is_ours(value)
                && list.len() == values.len()
                && list
                    .iter()
                    .zip(values)
                    .all(|(value, known)| value.is(known))
        }),
    };
    dict.len() == items.len()
        && dict
            .iter()
            .zip(items)
            .all(|((key, value), (known, item))| key.is(known) && is_same(&value, item))
}
