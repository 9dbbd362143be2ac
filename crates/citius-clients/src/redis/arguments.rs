//! Python objects as the words of commands.

use citius_redis::append_word;
use pyo3::buffer::PyBuffer;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyBytes, PyFloat, PyInt, PyString, PyTuple};

/// Appends the words of a command from number `first` on. Without a `name`, messages call it by its first word.
///
/// # Errors
/// `TypeError`: one of them is neither text nor bytes nor a number.
pub(crate) fn append_words(
    output: &mut Vec<u8>,
    words: &Bound<'_, PyTuple>,
    first: usize,
    name: Option<&str>,
) -> PyResult<()> {
    for (at, word) in words.iter_borrowed().enumerate() {
        append(output, &word).map_err(|error| {
            let own = words
                .get_item(0)
                .map_or_else(|_| String::new(), |name| name.to_string());
            explained(error, first + at, name.unwrap_or(&own), &word)
        })?;
    }
    Ok(())
}

/// Appends the only argument of a command.
#[inline]
pub(crate) fn append_key(output: &mut Vec<u8>, key: &Bound<'_, PyAny>, name: &str) -> PyResult<()> {
    append(output, key).map_err(|error| explained(error, 1, name, key))
}

/// Appends one word.
#[inline]
fn append(output: &mut Vec<u8>, word: &Bound<'_, PyAny>) -> PyResult<()> {
    if let Ok(text) = word.cast::<PyString>() {
        append_word(output, text.to_str()?.as_bytes());
    } else if let Ok(bytes) = word.cast::<PyBytes>() {
        append_word(output, bytes.as_bytes());
    } else {
        append_rare(output, word)?;
    }
    Ok(())
}

fn append_rare(output: &mut Vec<u8>, word: &Bound<'_, PyAny>) -> PyResult<()> {
    if word.is_exact_instance_of::<PyInt>() {
        match word.extract::<i64>() {
            Ok(number) => append_word(output, itoa::Buffer::new().format(number).as_bytes()),
            Err(_) => append_word(output, word.str()?.to_str()?.as_bytes()),
        }
        return Ok(());
    }
    if word.is_instance_of::<PyBool>() {
        return Err(PyTypeError::new_err(()));
    }
    if word.is_instance_of::<PyInt>() {
        // A member of an IntEnum has a text of its own.
        let number = word.call_method0("__int__")?;
        return append_rare(output, &number);
    }
    if let Ok(float) = word.cast::<PyFloat>() {
        append_word(output, float.repr()?.to_str()?.as_bytes());
        return Ok(());
    }
    let buffer = PyBuffer::<u8>::get(word).map_err(|_| PyTypeError::new_err(()))?;
    append_word(output, &buffer.to_vec(word.py())?);
    Ok(())
}

#[cold]
fn explained(error: PyErr, at: usize, name: &str, word: &Bound<'_, PyAny>) -> PyErr {
    if !error.is_instance_of::<PyTypeError>(word.py()) {
        return error;
    }
    let kind = word.get_type().name().map(|name| name.to_string());
    PyTypeError::new_err(format!(
        "argument {at} of {name}: expected str, bytes, int or float, got {}; set_msgpack and set_json encode objects",
        kind.unwrap_or_default(),
    ))
}
