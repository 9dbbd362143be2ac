//! Responses of a declared type: a handler's value in, JSON with the declared fields and no others out.
//!
//! In Python such a value is copied to what is declared (`python/citius/web/responses/results.py`), and the copy is encoded. Here the
//! value is walked along the type and written at once. That is done for what is known to give the same bytes: objects of the
//! declared Structs and of classes that extend them, lists, dictionaries, enumerations and plain values; msgspec encodes
//! other parts that hold no objects with fields, and what is declared as `Any`. Whatever else comes takes the way through
//! Python. Tests: `tests/gateway/test_copies.py`.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use citius_base::support;
use citius_base::sync::lock;
use citius_http::{FAST_PATHS, Status};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyBytes, PyDict, PyFloat, PyInt, PyList, PyString, PyTuple, PyType};

use crate::functions;
use crate::records::{Shape, offset_of, slot};

/// What a route declares of its responses.
#[pyclass(frozen, module = "citius._core")]
pub(crate) struct DeclaredResponse {
    /// Makes of a handler's value what is sent, in all the ways there are.
    respond: Py<PyAny>,
    status: Status,
    /// Whether a `Response` of the handler is sent as it is.
    passes_responses: bool,
    /// The type; `None` if its values take the way through Python.
    node: Option<Node>,
    /// The length of the last body, for the buffer of the next.
    last_bytes: AtomicUsize,
}

#[pymethods]
impl DeclaredResponse {
    #[new]
    #[pyo3(signature = (respond, *, status, passes_responses, node))]
    fn new(
        respond: Py<PyAny>,
        status: u16,
        passes_responses: bool,
        node: Option<Node>,
    ) -> PyResult<Self> {
        let status = Status::new(status).filter(|status| !status.is_informational());
        Ok(Self {
            respond,
            status: status.ok_or_else(|| PyValueError::new_err("no final status"))?,
            passes_responses,
            node,
            last_bytes: AtomicUsize::new(0),
        })
    }

    /// The value as JSON, if it is one that is encoded here.
    fn encode<'py>(&self, value: &Bound<'py, PyAny>) -> Option<Bound<'py, PyBytes>> {
        Some(PyBytes::new(value.py(), &self.encoded(value)?))
    }
}

impl DeclaredResponse {
    /// The value as JSON; `None` for what takes the way through Python.
    #[inline]
    pub(crate) fn encoded(&self, value: &Bound<'_, PyAny>) -> Option<Vec<u8>> {
        let node = self.node.as_ref().filter(|_| FAST_PATHS)?;
        let mut out = Vec::with_capacity(self.last_bytes.load(Ordering::Relaxed) + ROOM_BYTES);
        node.write(value, &mut out)?;
        self.last_bytes.store(out.len(), Ordering::Relaxed);
        Some(out)
    }

    pub(crate) fn status(&self) -> Status {
        self.status
    }

    /// The status of a response without a value.
    pub(crate) fn empty_status(&self) -> Status {
        if self.status == Status::OK {
            Status::NO_CONTENT
        } else {
            self.status
        }
    }

    pub(crate) fn passes_responses(&self) -> bool {
        self.passes_responses
    }

    /// What is sent, made by Python.
    pub(crate) fn respond<'py>(&self, value: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        self.respond.bind(value.py()).call1((value,))
    }
}

/// Room for numbers that are longer than those before.
const ROOM_BYTES: usize = 64;

/// A part of a declared type.
enum Node {
    /// Values that may be anything.
    Any,
    /// Values without parts.
    Leaf,
    /// Values without parts, and containers of such.
    Plain,
    /// Values without parts, mostly one of these members, whose JSON is known.
    Enumeration(Vec<(Py<PyAny>, Vec<u8>)>),
    Record(Box<Record>),
    List(Box<Node>),
    Dict(Box<Node>),
    /// `None`, or an object of one of these.
    Union(Vec<Record>),
}

/// A Struct.
struct Record {
    class: Py<PyType>,
    /// What comes before the fields: a brace, and the tag if there is one.
    head: Vec<u8>,
    fields: Vec<Field>,
    /// Classes that extend it, whose fields are in the same slots.
    known: Mutex<Vec<(Py<PyType>, Shape)>>,
}

struct Field {
    name: String,
    /// Its key with all that comes before the value.
    key: Vec<u8>,
    /// Where its slot is in an instance.
    offset: usize,
    node: Node,
}

/// Classes that extend one Struct and are known. Those beyond take the way through Python.
const KNOWN_MAX: usize = 16;

impl Node {
    /// Appends the JSON of a value; `None`: it is not encoded here, and what was appended is of no use.
    fn write(&self, value: &Bound<'_, PyAny>, out: &mut Vec<u8>) -> Option<()> {
        match self {
            Self::Any => write_part(value, out, |_| true),
            Self::Leaf => write_leaf(value, out),
            Self::Plain => write_part(value, out, is_plain),
            Self::Enumeration(members) => {
                match members.iter().find(|(member, _)| member.is(value)) {
                    Some((_, json)) => out.extend_from_slice(json),
                    None => write_leaf(value, out)?,
                }
                Some(())
            }
            Self::Record(record) => record.write(value, out),
            Self::List(item) => write_list(value, out, |one, out| item.write(one, out)),
            Self::Dict(item) => item.write_dict(value, out),
            Self::Union(_) if value.is_none() => {
                out.extend_from_slice(b"null");
                Some(())
            }
            Self::Union(records) => {
                let class = value.get_type();
                let exact = records.iter().find(|record| record.class.is(&class));
                let only = (records.len() == 1).then(|| &records[0]);
                exact.or(only)?.write(value, out)
            }
        }
    }

    fn write_dict(&self, value: &Bound<'_, PyAny>, out: &mut Vec<u8>) -> Option<()> {
        let dict = value.cast_exact::<PyDict>().ok()?;
        // First, because msgspec may call code of the application, which could change it.
        let items: Vec<_> = dict.iter().collect();
        out.push(b'{');
        for (place, (key, one)) in items.iter().enumerate() {
            if place > 0 {
                out.push(b',');
            }
            write_leaf(key.cast_exact::<PyString>().ok()?, out)?;
            out.push(b':');
            self.write(one, out)?;
        }
        out.push(b'}');
        Some(())
    }
}

impl Record {
    #[inline]
    fn write(&self, value: &Bound<'_, PyAny>, out: &mut Vec<u8>) -> Option<()> {
        let is_declared = value.get_type_ptr() == self.class.bind(value.py()).as_type_ptr();
        if !is_declared && !self.knows(&value.get_type()) {
            return None;
        }
        out.extend_from_slice(&self.head);
        for field in &self.fields {
            out.extend_from_slice(&field.key);
            field
                .node
                .write(&slot(value, &field.name, field.offset)?, out)?;
        }
        out.push(b'}');
        Some(())
    }

    /// Whether objects of a class have the fields in the slots of the declared one, and nothing in their place.
    #[inline]
    fn knows(&self, class: &Bound<'_, PyType>) -> bool {
        let shape = Shape::of(class);
        let is_known = lock(&self.known)
            .iter()
            .any(|(one, seen)| one.is(class) && Some(*seen) == shape);
        is_known || self.learn(class).unwrap_or(false)
    }

    #[cold]
    fn learn(&self, class: &Bound<'_, PyType>) -> PyResult<bool> {
        let own = self.class.bind(class.py());
        if !class.is_subclass(own)? {
            return Ok(false);
        }
        for name in self.fields.iter().map(|field| field.name.as_str()) {
            if !class.getattr(name)?.is(&own.getattr(name)?) {
                return Ok(false);
            }
        }
        let look = pyo3::intern!(class.py(), "__getattribute__");
        if !class.getattr(look)?.is(&own.getattr(look)?) {
            return Ok(false);
        }
        // After the look-ups, which give a class that was changed a new version.
        let Some(shape) = Shape::of(class) else {
            return Ok(false);
        };
        let kept = class.clone().unbind();
        let mut known = lock(&self.known);
        // A class that was changed leaves its place to itself.
        let place = known.iter().position(|(one, _)| one.is(class));
        let replaced = match place {
            Some(place) => Some(std::mem::replace(&mut known[place], (kept, shape))),
            None if known.len() < KNOWN_MAX => {
                known.push((kept, shape));
                None
            }
            None => return Ok(false),
        };
        drop(known);
        drop(replaced);
        Ok(true)
    }
}

/// Appends a list.
#[inline]
fn write_list(
    value: &Bound<'_, PyAny>,
    out: &mut Vec<u8>,
    mut write: impl FnMut(&Bound<'_, PyAny>, &mut Vec<u8>) -> Option<()>,
) -> Option<()> {
    let list = value.cast_exact::<PyList>().ok()?;
    out.push(b'[');
    for (place, one) in list.iter().enumerate() {
        if place > 0 {
            out.push(b',');
        }
        write(&one, out)?;
    }
    out.push(b']');
    Some(())
}

/// Appends a value that `is_declared`: here, or as msgspec encodes it.
#[inline]
fn write_part(
    value: &Bound<'_, PyAny>,
    out: &mut Vec<u8>,
    is_declared: impl Fn(&Bound<'_, PyAny>) -> bool,
) -> Option<()> {
    let begun = out.len();
    if write_plain(value, out).is_some() {
        return Some(());
    }
    out.truncate(begun);
    if is_declared(value) {
        write_encoded(value, out)
    } else {
        None
    }
}

/// Appends a value without parts: here, or as msgspec encodes it.
#[inline]
fn write_leaf(value: &Bound<'_, PyAny>, out: &mut Vec<u8>) -> Option<()> {
    let begun = out.len();
    if write_scalar(value, out).is_some() {
        return Some(());
    }
    out.truncate(begun);
    if is_scalar(value) || is_by(&functions::IS_LEAF, value) {
        write_encoded(value, out)
    } else {
        None
    }
}

/// Appends what msgspec encodes.
fn write_encoded(value: &Bound<'_, PyAny>, out: &mut Vec<u8>) -> Option<()> {
    let encoded = functions::ENCODE_JSON.call1(value.py(), value).ok()?;
    out.extend_from_slice(encoded.cast::<PyBytes>().ok()?.as_bytes());
    Some(())
}

/// Whether this is a text, a number, a truth or nothing, and no object of a class that extends one of these.
fn is_scalar(value: &Bound<'_, PyAny>) -> bool {
    value.cast_exact::<PyString>().is_ok()
        || value.cast_exact::<PyInt>().is_ok()
        || value.cast_exact::<PyFloat>().is_ok()
        || value.cast_exact::<PyBool>().is_ok()
        || value.is_none()
}

/// Whether no part of a value has fields.
fn is_plain(value: &Bound<'_, PyAny>) -> bool {
    if let Ok(list) = value.cast_exact::<PyList>() {
        return list.iter().all(|one| is_scalar(&one)) || is_by(&functions::IS_PLAIN, value);
    }
    if let Ok(dict) = value.cast_exact::<PyDict>() {
        let mut items = dict.iter();
        return items.all(|(key, one)| is_scalar(&key) && is_scalar(&one))
            || is_by(&functions::IS_PLAIN, value);
    }
    is_scalar(value) || is_by(&functions::IS_PLAIN, value)
}

/// Whether a function of the package says so.
fn is_by(function: &'static support::Function, value: &Bound<'_, PyAny>) -> bool {
    let found = function.call1(value.py(), value);
    found.is_ok_and(|found| found.is_truthy().unwrap_or(false))
}

/// Appends a plain value, or a list of such.
fn write_plain(value: &Bound<'_, PyAny>, out: &mut Vec<u8>) -> Option<()> {
    if let Ok(list) = value.cast_exact::<PyList>() {
        return write_list(list, out, write_scalar);
    }
    write_scalar(value, out)
}

/// Appends a text, a number, a truth or nothing.
#[inline]
fn write_scalar(value: &Bound<'_, PyAny>, out: &mut Vec<u8>) -> Option<()> {
    if let Ok(text) = value.cast_exact::<PyString>() {
        return write_text(text, out);
    }
    if let Ok(number) = value.cast_exact::<PyInt>() {
        let number = number.extract::<i64>().ok()?;
        out.extend_from_slice(itoa::Buffer::new().format(number).as_bytes());
        return Some(());
    }
    if let Ok(number) = value.cast_exact::<PyFloat>() {
        return write_real(number.value(), out);
    }
    if value.is_none() {
        out.extend_from_slice(b"null");
        return Some(());
    }
    let truth = value.cast_exact::<PyBool>().ok()?;
    out.extend_from_slice(if truth.is_true() { b"true" } else { b"false" });
    Some(())
}

/// Appends a text, if none of its characters has to be escaped.
#[inline]
fn write_text(text: &Bound<'_, PyString>, out: &mut Vec<u8>) -> Option<()> {
    let bytes = text.to_str().ok()?.as_bytes();
    let is_odd = |byte: u8| byte < 0x20 || byte == b'"' || byte == b'\\';
    if bytes.iter().fold(false, |odd, &byte| odd | is_odd(byte)) {
        return None;
    }
    out.push(b'"');
    out.extend_from_slice(bytes);
    out.push(b'"');
    Some(())
}

/// Appends a number with at most four decimals that is not long, as prices and most measured values are.
///
/// The decimal of at most 15 digits that reads as a `f64` is the only one of that length that does, so it is the shortest.
#[inline]
fn write_real(value: f64, out: &mut Vec<u8>) -> Option<()> {
    const SCALE: u64 = 10_000;
    let size = value.abs();
    if value.to_bits() == 0 {
        out.extend_from_slice(b"0.0");
        return Some(());
    }
    // Smaller and larger numbers may have an exponent.
    if !(1e-3..1e11).contains(&size) {
        return None;
    }
    #[expect(clippy::cast_precision_loss, reason = "below 2^53")]
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "in the range of 1e15"
    )]
    let (scaled, read) = {
        let scaled = (size * SCALE as f64).round_ties_even() as u64;
        (scaled, scaled as f64 / SCALE as f64)
    };
    #[expect(clippy::float_cmp, reason = "the very same number is meant")]
    if read != size {
        return None;
    }
    if value < 0.0 {
        out.push(b'-');
    }
    out.extend_from_slice(itoa::Buffer::new().format(scaled / SCALE).as_bytes());
    out.push(b'.');
    let (mut digits, mut rest) = ([0; 4], scaled % SCALE);
    for digit in digits.iter_mut().rev() {
        *digit = b'0' + u8::try_from(rest % 10).unwrap_or(0);
        rest /= 10;
    }
    let zeros = digits
        .iter()
        .skip(1)
        .rev()
        .take_while(|digit| **digit == b'0')
        .count();
    out.extend_from_slice(&digits[..digits.len() - zeros]);
    Some(())
}

// --- what Python declares -------------------------------------------------------------------------

impl<'a, 'py> FromPyObject<'a, 'py> for Node {
    type Error = PyErr;

    /// From `(kind, …)`, as `python/citius/web/responses/declared/field_copies.py` makes it.
    fn extract(given: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        let given = given.cast::<PyTuple>()?;
        let kind = given.get_item(0)?;
        let boxed = || given.get_item(1)?.extract::<Node>().map(Box::new);
        Ok(match kind.extract::<&str>()? {
            "any" => Self::Any,
            "leaf" => Self::Leaf,
            "plain" => Self::Plain,
            "enumeration" => Self::Enumeration(given.get_item(1)?.extract()?),
            "record" => Self::Record(Box::new(Record::declared(&given.to_owned())?)),
            "list" => Self::List(boxed()?),
            "dict" => Self::Dict(boxed()?),
            "union" => {
                let records = given.get_item(1)?.cast_into::<PyList>()?;
                let of = |one: Bound<'_, PyAny>| Record::declared(&one.cast_into::<PyTuple>()?);
                Self::Union(records.iter().map(of).collect::<PyResult<_>>()?)
            }
            other => return Err(PyValueError::new_err(format!("no node: {other}"))),
        })
    }
}

impl Record {
    /// From `("record", class, head, [(name, key, node), …])`.
    fn declared(given: &Bound<'_, PyTuple>) -> PyResult<Self> {
        let class = given.get_item(1)?.cast_into::<PyType>()?;
        let fields: Vec<(String, Vec<u8>, Node)> = given.get_item(3)?.extract()?;
        let field = |(name, key, node): (String, Vec<u8>, Node)| {
            let offset = offset_of(&class, &name)?;
            Ok(Field {
                name,
                key,
                offset,
                node,
            })
        };
        Ok(Self {
            fields: fields.into_iter().map(field).collect::<PyResult<_>>()?,
            head: given.get_item(2)?.extract()?,
            class: class.unbind(),
            known: Mutex::default(),
        })
    }
}
