//! How Python sees the values of a channel that native code can use.
//!
//! A channel of objects is Python's. The values of every other channel are bytes, which compiled code sends and receives without
//! the GIL; on their way from and to Python they are converted by the channel's element. Tests: `tests/go/test_elements.py`.

use citius_native::{Element, Format, Packed, Value};
use pyo3::exceptions::{PyOverflowError, PyTypeError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyBytes, PyFloat, PyInt, PyString, PyTuple, PyType};

use crate::object::{borrowed, from_object, object, value};

/// What `type=` of a channel says.
pub(crate) fn of(kind: Option<&Bound<'_, PyAny>>) -> PyResult<Element> {
    let Some(kind) = kind else {
        return Ok(Element::Object);
    };
    if let Ok(class) = kind.cast::<PyType>() {
        return of_class(class);
    }
    if let Ok(format) = kind.cast::<PyString>() {
        let module = kind.py().import(intern!(kind.py(), "struct"))?;
        return of_struct(
            &module
                .getattr(intern!(kind.py(), "Struct"))?
                .call1((format,))?,
        );
    }
    if kind.hasattr(intern!(kind.py(), "pack"))? {
        return of_struct(kind);
    }
    if kind.hasattr(intern!(kind.py(), "itemsize"))? {
        return Ok(Element::Array(object(kind.clone().unbind())));
    }
    Err(unknown(kind))
}

fn of_class(class: &Bound<'_, PyType>) -> PyResult<Element> {
    let py = class.py();
    let fixed = |size, format| Ok(Element::fixed(size, format));
    if class.is(py.get_type::<PyAny>()) {
        Ok(Element::Object)
    } else if class.is(py.get_type::<PyBool>()) {
        fixed(1, Format::Bool)
    } else if class.is(py.get_type::<PyInt>()) {
        fixed(8, Format::Integer)
    } else if class.is(py.get_type::<PyFloat>()) {
        fixed(8, Format::Real)
    } else if class.is(py.get_type::<PyBytes>()) {
        Ok(Element::Bytes)
    } else if class.is(py.None().bind(py).get_type()) {
        fixed(0, Format::Unit)
    } else {
        Err(unknown(class))
    }
}

fn of_struct(layout: &Bound<'_, PyAny>) -> PyResult<Element> {
    let size = layout.getattr(intern!(layout.py(), "size"))?.extract()?;
    Ok(Element::fixed(
        size,
        Format::Struct(object(layout.clone().unbind())),
    ))
}

#[cold]
fn unknown(kind: &Bound<'_, PyAny>) -> PyErr {
    PyTypeError::new_err(format!(
        "the type of a channel is object, int, float, bool, bytes, NoneType, a format of the struct module (\"<qd\"), \
         a struct.Struct or a numpy dtype, not {kind}"
    ))
}

/// The value that `given` is.
pub(crate) fn pack(element: &Element, given: Py<PyAny>, py: Python<'_>) -> PyResult<Value> {
    let bound = given.bind(py);
    let packed = match element {
        Element::Object => return Ok(value(given)),
        Element::Bytes => Packed::copied(
            bound
                .cast::<PyBytes>()
                .map_err(|_| misfit(element, bound))?
                .as_bytes(),
        ),
        Element::Array(dtype) => Packed::copied(&array_bytes(bound, borrowed(dtype).bind(py))?),
        Element::Fixed {
            size,
            format,
            drop: _,
        } => match format {
            Format::Unit if bound.is_none() => Packed::default(),
            Format::Integer => {
                let number = bound.cast::<PyInt>().map_err(|_| misfit(element, bound))?;
                let number: i64 = number.extract().map_err(|_| {
                    PyOverflowError::new_err(format!(
                        "{bound} does not fit the 64 bits of this channel's integers"
                    ))
                })?;
                Packed::copied(&number.to_ne_bytes())
            }
            Format::Real => {
                let is_number =
                    bound.is_instance_of::<PyFloat>() || bound.is_instance_of::<PyInt>();
                if !is_number {
                    return Err(misfit(element, bound));
                }
                Packed::copied(&bound.extract::<f64>()?.to_ne_bytes())
            }
            Format::Bool => {
                let truth = bound.cast::<PyBool>().map_err(|_| misfit(element, bound))?;
                Packed::copied(&[u8::from(truth.is_true())])
            }
            Format::Opaque => {
                let bytes = bound
                    .cast::<PyBytes>()
                    .map_err(|_| misfit(element, bound))?
                    .as_bytes();
                if bytes.len() != *size {
                    return Err(misfit(element, bound));
                }
                Packed::copied(bytes)
            }
            Format::Struct(layout) => {
                Packed::copied(struct_bytes(bound, borrowed(layout).bind(py))?.as_bytes())
            }
            Format::Unit => return Err(misfit(element, bound)),
        },
    };
    Ok(Value::Packed(packed))
}

/// The object that `received` is.
pub(crate) fn unpack(element: &Element, received: Value, py: Python<'_>) -> PyResult<Py<PyAny>> {
    let packed = match received {
        Value::Object(object) => return Ok(from_object(py, object)),
        Value::Packed(packed) => packed,
    };
    let bytes = packed.bytes();
    let word = || {
        let mut word = [0; 8];
        word.copy_from_slice(bytes);
        word
    };
    Ok(match element {
        Element::Fixed {
            format: Format::Unit,
            ..
        } => py.None(),
        Element::Fixed {
            format: Format::Integer,
            ..
        } => i64::from_ne_bytes(word())
            .into_pyobject(py)?
            .into_any()
            .unbind(),
        Element::Fixed {
            format: Format::Real,
            ..
        } => PyFloat::new(py, f64::from_ne_bytes(word()))
            .into_any()
            .unbind(),
        Element::Fixed {
            format: Format::Bool,
            ..
        } => PyBool::new(py, bytes != [0]).to_owned().into_any().unbind(),
        Element::Fixed {
            format: Format::Struct(layout),
            ..
        } => {
            let fields = borrowed(layout)
                .bind(py)
                .call_method1(intern!(py, "unpack"), (PyBytes::new(py, bytes),))?;
            let fields = fields.cast_into::<PyTuple>()?;
            if fields.len() == 1 {
                fields.get_item(0)?.unbind()
            } else {
                fields.into_any().unbind()
            }
        }
        Element::Array(dtype) => array(borrowed(dtype).bind(py), bytes)?,
        Element::Object
        | Element::Bytes
        | Element::Fixed {
            format: Format::Opaque,
            ..
        } => PyBytes::new(py, bytes).into_any().unbind(),
    })
}

/// What its values are, for messages.
fn describe(element: &Element) -> String {
    match element {
        Element::Object => "objects".to_owned(),
        Element::Bytes => "bytes".to_owned(),
        Element::Array(dtype) => format!("arrays of {}", borrowed(dtype)),
        Element::Fixed { size, format, .. } => match format {
            Format::Unit => "None".to_owned(),
            Format::Integer => "int".to_owned(),
            Format::Real => "float".to_owned(),
            Format::Bool => "bool".to_owned(),
            Format::Opaque | Format::Struct(_) => format!("{size} bytes"),
        },
    }
}

#[cold]
fn misfit(element: &Element, object: &Bound<'_, PyAny>) -> PyErr {
    let kind = object.get_type();
    let kind = kind
        .name()
        .map_or_else(|_| "?".into(), |name| name.to_string());
    PyTypeError::new_err(format!(
        "expected a value for a channel of {}, got {kind}",
        describe(element)
    ))
}

/// The bytes of an array that has the dtype of the channel, or of what numpy makes one of.
fn array_bytes(object: &Bound<'_, PyAny>, dtype: &Bound<'_, PyAny>) -> PyResult<Vec<u8>> {
    let py = object.py();
    let numpy = py.import(intern!(py, "numpy"))?;
    let array = numpy.call_method1(intern!(py, "ascontiguousarray"), (object, dtype))?;
    let dimensions: usize = array.getattr(intern!(py, "ndim"))?.extract()?;
    if dimensions != 1 {
        return Err(PyTypeError::new_err(format!(
            "expected an array of one dimension for this channel, got {dimensions}"
        )));
    }
    let bytes = array.call_method0(intern!(py, "tobytes"))?;
    Ok(bytes.cast::<PyBytes>()?.as_bytes().to_vec())
}

fn struct_bytes<'py>(
    object: &Bound<'py, PyAny>,
    layout: &Bound<'py, PyAny>,
) -> PyResult<Bound<'py, PyBytes>> {
    let pack = layout.getattr(intern!(object.py(), "pack"))?;
    let packed = match object.cast::<PyTuple>() {
        Ok(fields) => pack.call1(fields)?,
        Err(_) => pack.call1((object,))?,
    };
    Ok(packed.cast_into::<PyBytes>()?)
}

/// A copy of `bytes` as an array of numpy's.
fn array(dtype: &Bound<'_, PyAny>, bytes: &[u8]) -> PyResult<Py<PyAny>> {
    let py = dtype.py();
    let numpy = py.import(intern!(py, "numpy"))?;
    let view = numpy.call_method1(intern!(py, "frombuffer"), (PyBytes::new(py, bytes), dtype))?;
    Ok(view.call_method0(intern!(py, "copy"))?.unbind())
}
