//! What has come of a response: its head, and content that is collected.

use citius_h1::client::ResponseHead;
use citius_http::Version;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use smallvec::SmallVec;

/// Names and values of fields.
pub(crate) type Pairs = Vec<(Vec<u8>, Vec<u8>)>;

/// Fields one behind the other, in one piece of memory.
#[derive(Default)]
pub(crate) struct Lines {
    bytes: Vec<u8>,
    /// Where each name and each value ends.
    ends: SmallVec<[(usize, usize); 16]>,
}

impl Lines {
    pub(crate) fn with_capacity(bytes: usize) -> Self {
        Self {
            bytes: Vec::with_capacity(bytes),
            ends: SmallVec::new(),
        }
    }

    pub(crate) fn push(&mut self, name: &[u8], value: &[u8]) {
        self.bytes.extend_from_slice(name);
        let end_of_name = self.bytes.len();
        self.bytes.extend_from_slice(value);
        self.ends.push((end_of_name, self.bytes.len()));
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        let mut start = 0;
        self.ends.iter().map(move |&(end_of_name, end)| {
            let pair = (
                &self.bytes[start..end_of_name],
                &self.bytes[end_of_name..end],
            );
            start = end;
            pair
        })
    }
}

impl<'a> FromIterator<(&'a [u8], &'a [u8])> for Lines {
    fn from_iter<T: IntoIterator<Item = (&'a [u8], &'a [u8])>>(pairs: T) -> Self {
        let mut lines = Self::default();
        for (name, value) in pairs {
            lines.push(name, value);
        }
        lines
    }
}

/// The head of a response.
#[derive(Debug)]
pub(crate) enum Head {
    H1(ResponseHead),
    H2 { status: u16, fields: Pairs },
}

impl Head {
    pub(crate) fn status(&self) -> u16 {
        match self {
            Self::H1(head) => head.status,
            Self::H2 { status, .. } => *status,
        }
    }

    /// It has no content, and the fields of a response that has.
    pub(crate) fn is_not_modified(&self) -> bool {
        self.status() == 304
    }

    /// It grants another protocol, to which what follows belongs.
    pub(crate) fn is_switch(&self) -> bool {
        self.status() == 101
    }

    pub(crate) fn version(&self) -> &'static str {
        match self {
            Self::H1(head) if head.version == Version::Http10 => "HTTP/1.0",
            Self::H1(_) => "HTTP/1.1",
            Self::H2 { .. } => "HTTP/2",
        }
    }

    pub(crate) fn reason(&self) -> &[u8] {
        match self {
            Self::H1(head) => head.reason(),
            Self::H2 { .. } => b"",
        }
    }

    pub(crate) fn fields(&self) -> Box<dyn Iterator<Item = (&[u8], &[u8])> + '_> {
        match self {
            Self::H1(head) => Box::new(head.fields()),
            Self::H2 { fields, .. } => Box::new(
                fields
                    .iter()
                    .map(|(name, value)| (name.as_slice(), value.as_slice())),
            ),
        }
    }

    pub(crate) fn field(&self, name: &[u8]) -> Option<&[u8]> {
        match self {
            Self::H1(head) => head.field(name),
            Self::H2 { .. } => self
                .fields()
                .find(|(other, _)| other.eq_ignore_ascii_case(name))
                .map(|(_, value)| value),
        }
    }

    /// Bytes of the content, if the head says so.
    pub(crate) fn content_length(&self) -> Option<u64> {
        match self {
            Self::H1(head) => head.content_length,
            Self::H2 { .. } => {
                let value = self.field(b"content-length")?;
                std::str::from_utf8(value).ok()?.parse().ok()
            }
        }
    }
}

/// Content that is collected.
#[derive(Default)]
pub(crate) enum Collected {
    #[default]
    Empty,
    /// It has come in one piece.
    One(Py<PyBytes>),
    Many(Vec<u8>),
}

/// Bytes of content that is announced, for which memory is taken before they come.
const RESERVED_BYTES_MAX: u64 = 1024 * 1024;

impl Collected {
    /// Takes a piece of content that has `length` bytes in all, if that is known.
    pub(crate) fn push(&mut self, py: Python<'_>, data: &[u8], length: Option<u64>) {
        match self {
            Self::Empty if length == Some(data.len() as u64) => {
                *self = Self::One(PyBytes::new(py, data).unbind());
            }
            Self::Empty => {
                let announced = length.unwrap_or(0).min(RESERVED_BYTES_MAX);
                let mut bytes =
                    Vec::with_capacity(data.len().max(usize::try_from(announced).unwrap_or(0)));
                bytes.extend_from_slice(data);
                *self = Self::Many(bytes);
            }
            Self::One(before) => {
                let mut bytes = before.as_bytes(py).to_vec();
                bytes.extend_from_slice(data);
                *self = Self::Many(bytes);
            }
            Self::Many(bytes) => bytes.extend_from_slice(data),
        }
    }

    pub(crate) fn into_bytes(self, py: Python<'_>) -> Py<PyBytes> {
        match self {
            Self::Empty => PyBytes::new(py, b"").unbind(),
            Self::One(bytes) => bytes,
            Self::Many(bytes) => PyBytes::new(py, &bytes).unbind(),
        }
    }
}
