//! HPACK, client side (RFC 7541): our fields to blocks, the peer's blocks to what a judge needs.
//!
//! *Encoding*: the fields of all requests are known before the run. Those that stay within the
//! table are inserted when first sent and one byte each from then on; nothing is ever evicted.
//!
//! *Decoding*: only the status, the content length and the breaking of rules matter, so the table
//! keeps the meaning and the size of an entry, not its text, and an indexed field costs a look.

use std::collections::VecDeque;
use std::rc::Rc;

use super::huffman::Huffman;
use crate::wire::Fault;

/// A field of a request as it is sent.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Coded {
    /// The same bytes always.
    Plain(Vec<u8>),
    /// By its place in the table once it is there; until then as a literal that puts it there.
    Indexed { id: usize, literal: Vec<u8> },
}

/// Distributes the table among the fields of all requests.
#[derive(Debug, Default)]
pub(crate) struct Catalogue {
    fields: Vec<(String, String)>,
    n_table_bytes: usize,
}

impl Catalogue {
    pub(crate) fn code(&mut self, name: &str, value: &str) -> Coded {
        let exact = STATIC.iter().position(|field| *field == (name, value));
        if let Some(index) = exact {
            let mut bytes = Vec::new();
            encode_integer(0x80, 7, index + 1, &mut bytes);
            return Coded::Plain(bytes);
        }
        let field = (name.to_owned(), value.to_owned());
        let mut id = self.fields.iter().position(|f| *f == field);
        let size = name.len() + value.len() + ENTRY_BYTES;
        if id.is_none() && self.n_table_bytes + size <= TABLE_BYTES {
            self.n_table_bytes += size;
            self.fields.push(field);
            id = Some(self.fields.len() - 1);
        }
        match id {
            Some(id) => Coded::Indexed {
                id,
                literal: literal(0x40, 6, name, value),
            },
            None => Coded::Plain(literal(0x00, 4, name, value)),
        }
    }
}

fn literal(pattern: u8, n_prefix: u32, name: &str, value: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    let string = |text: &str, bytes: &mut Vec<u8>| {
        encode_integer(0x00, 7, text.len(), bytes);
        bytes.extend_from_slice(text.as_bytes());
    };
    if let Some(index) = STATIC.iter().position(|(n, _)| *n == name) {
        encode_integer(pattern, n_prefix, index + 1, &mut bytes);
    } else {
        bytes.push(pattern);
        string(name, &mut bytes);
    }
    string(value, &mut bytes);
    bytes
}

/// RFC 7541 §5.1.
fn encode_integer(pattern: u8, n_prefix: u32, value: usize, output: &mut Vec<u8>) {
    let prefix_max = (1 << n_prefix) - 1;
    let low = |value: usize| u8::try_from(value).expect("masked by the caller");
    if value < prefix_max {
        return output.push(pattern | low(value));
    }
    output.push(pattern | low(prefix_max));
    let mut rest = value - prefix_max;
    while rest >= 128 {
        output.push(low(rest & 127) | 128);
        rest >>= 7;
    }
    output.push(low(rest));
}

/// The table of one connection, as the peer has it.
#[derive(Debug, Default)]
pub(crate) struct Encoder {
    /// By the id of a field: which insertion it was, from 1; 0 if it has not been one.
    inserted: Vec<usize>,
    n_inserted: usize,
    /// The table is too small for us, or its owner wants none.
    is_off: bool,
    /// The next block begins with an update of the table's size to nothing.
    gives_up: bool,
}

impl Encoder {
    #[inline]
    pub(crate) fn encode(&mut self, fields: &[Coded], output: &mut Vec<u8>) {
        if std::mem::take(&mut self.gives_up) {
            encode_integer(0x20, 5, 0, output);
        }
        for field in fields {
            match field {
                Coded::Plain(bytes) => output.extend_from_slice(bytes),
                Coded::Indexed { id, literal } => self.encode_indexed(*id, literal, output),
            }
        }
    }

    #[inline]
    fn encode_indexed(&mut self, id: usize, literal: &[u8], output: &mut Vec<u8>) {
        if self.inserted.len() <= id {
            self.inserted.resize(id + 1, 0);
        }
        match self.inserted[id] {
            0 if self.is_off => {
                // The same literal, without the wish to be remembered (RFC 7541 §6.2.2).
                match literal[0] & 0x3F {
                    index @ 0..15 => output.push(index),
                    index => encode_integer(0x00, 4, usize::from(index), output),
                }
                output.extend_from_slice(&literal[1..]);
            }
            0 => {
                self.n_inserted += 1;
                self.inserted[id] = self.n_inserted;
                output.extend_from_slice(literal);
            }
            place => {
                let index = STATIC.len() + 1 + self.n_inserted - place;
                encode_integer(0x80, 7, index, output);
            }
        }
    }

    /// The peer's limit for the table that we write. A smaller one than usual is not used at all.
    pub(crate) fn limit(&mut self, n_bytes: usize) {
        if n_bytes < TABLE_BYTES && !self.is_off {
            *self = Self {
                is_off: true,
                gives_up: true,
                ..Self::default()
            };
        }
    }
}

/// What a block of fields says, as far as a judge wants to know.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Section {
    pub(crate) status: Option<u16>,
    pub(crate) content_length: Option<u64>,
    /// A rule of RFC 9113 §8.2 or §8.3 was broken: the stream is in error, the table is not.
    pub(crate) is_malformed: bool,
}

/// What a field is to us.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Meaning {
    Status(u16),
    ContentLength(u64),
    Other,
    /// A name or value that no answer may have.
    Malformed,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Name {
    Status,
    ContentLength,
    Other,
    Malformed,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    name: Name,
    meaning: Meaning,
    name_bytes: usize,
    size: usize,
}

/// What the decoders of one thread share: constants, and room for strings.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tools {
    huffman: Rc<Huffman>,
    static_table: Rc<StaticTable>,
    string: Vec<u8>,
}

#[derive(Debug)]
struct StaticTable(Vec<Entry>);

impl Default for StaticTable {
    fn default() -> Self {
        let entry = |(name, value): &(&str, &str)| {
            Entry::new(name_of(name.as_bytes()), name.len(), value.as_bytes())
        };
        Self(STATIC.iter().map(entry).collect())
    }
}

/// The table of one connection, as the peer writes it.
#[derive(Debug)]
pub(crate) struct Decoder {
    /// Newest first.
    entries: VecDeque<Entry>,
    n_bytes: usize,
    n_bytes_max: usize,
}

impl Default for Decoder {
    fn default() -> Self {
        Self {
            entries: VecDeque::new(),
            n_bytes: 0,
            n_bytes_max: TABLE_BYTES,
        }
    }
}

impl Decoder {
    /// # Errors  The block cannot be decoded, and neither can any block after it.
    pub(crate) fn decode(&mut self, tools: &mut Tools, block: &[u8]) -> Result<Section, Fault> {
        let mut section = Section::default();
        let mut input = block;
        let mut has_fields = false;
        while let Some(first) = input.first().copied() {
            let meaning = match first {
                0x80.. => {
                    let index = integer(&mut input, 7)?;
                    self.entry(tools, index)?.meaning
                }
                0x40.. => {
                    let entry = self.literal(tools, &mut input, 6)?;
                    self.insert(entry);
                    entry.meaning
                }
                0x20.. => {
                    let n_bytes = integer(&mut input, 5)?;
                    // RFC 7541 §4.2: only where a block begins, and not beyond the limit.
                    if has_fields || n_bytes > TABLE_BYTES {
                        return Err(Fault::Hpack);
                    }
                    self.n_bytes_max = n_bytes;
                    self.evict(0);
                    continue;
                }
                _ => self.literal(tools, &mut input, 4)?.meaning,
            };
            has_fields = true;
            section.note(meaning);
        }
        Ok(section)
    }

    fn entry(&self, tools: &Tools, index: usize) -> Result<Entry, Fault> {
        let place = index.checked_sub(1).ok_or(Fault::Hpack)?;
        let entry = match tools.static_table.0.get(place) {
            Some(entry) => Some(entry),
            None => self.entries.get(place - STATIC.len()),
        };
        entry.copied().ok_or(Fault::Hpack)
    }

    fn literal(&self, tools: &mut Tools, input: &mut &[u8], n_prefix: u32) -> Result<Entry, Fault> {
        let (name, name_bytes) = match integer(input, n_prefix)? {
            0 => {
                let text = string(tools, input)?;
                (name_of(text), text.len())
            }
            index => {
                let entry = self.entry(tools, index)?;
                (entry.name, entry.name_bytes)
            }
        };
        Ok(Entry::new(name, name_bytes, string(tools, input)?))
    }

    /// RFC 7541 §4.4: an entry larger than the table empties it and is not an error.
    fn insert(&mut self, entry: Entry) {
        self.evict(entry.size);
        if entry.size <= self.n_bytes_max {
            self.n_bytes += entry.size;
            self.entries.push_front(entry);
        }
    }

    fn evict(&mut self, n_wanted: usize) {
        while self.n_bytes + n_wanted > self.n_bytes_max
            && let Some(entry) = self.entries.pop_back()
        {
            self.n_bytes -= entry.size;
        }
    }
}

impl Section {
    fn note(&mut self, meaning: Meaning) {
        match meaning {
            Meaning::Status(status) if self.status.is_none() => self.status = Some(status),
            Meaning::ContentLength(length)
                if self.content_length.is_none_or(|known| known == length) =>
            {
                self.content_length = Some(length);
            }
            Meaning::Other => {}
            Meaning::Status(_) | Meaning::ContentLength(_) | Meaning::Malformed => {
                self.is_malformed = true;
            }
        }
    }
}

impl Entry {
    fn new(name: Name, name_bytes: usize, value: &[u8]) -> Self {
        let digits = || std::str::from_utf8(value).ok();
        let is_number = !value.is_empty() && value.iter().all(u8::is_ascii_digit);
        let meaning = match name {
            Name::Status if is_number && value.len() == 3 => digits()
                .and_then(|digits| digits.parse().ok())
                .map(Meaning::Status),
            Name::ContentLength if is_number => digits()
                .and_then(|digits| digits.parse().ok())
                .map(Meaning::ContentLength),
            Name::Other if !value.iter().any(|b| matches!(b, b'\0' | b'\r' | b'\n')) => {
                Some(Meaning::Other)
            }
            _ => None,
        };
        Self {
            name,
            meaning: meaning.unwrap_or(Meaning::Malformed),
            name_bytes,
            size: name_bytes + value.len() + ENTRY_BYTES,
        }
    }
}

/// RFC 9113 §8.2: no upper case, no fields of the connection, no pseudo-field but the status.
fn name_of(name: &[u8]) -> Name {
    match name {
        b":status" => Name::Status,
        b"content-length" => Name::ContentLength,
        // The static table has pseudo-fields of requests, which are no fault until they are used.
        b"connection"
        | b"keep-alive"
        | b"proxy-connection"
        | b"transfer-encoding"
        | b"upgrade"
        | b""
        | [b':', ..] => Name::Malformed,
        _ if name.iter().any(|b| b.is_ascii_uppercase() || *b <= b' ') => Name::Malformed,
        _ => Name::Other,
    }
}

/// RFC 7541 §5.1, bounded: no length or index needs more than 28 bits.
fn integer(input: &mut &[u8], n_prefix: u32) -> Result<usize, Fault> {
    let prefix_max = (1 << n_prefix) - 1;
    let (first, mut rest) = input.split_first().ok_or(Fault::Hpack)?;
    let mut value = usize::from(*first) & prefix_max;
    if value == prefix_max {
        for shift in [0, 7, 14, 21] {
            let (byte, next) = rest.split_first().ok_or(Fault::Hpack)?;
            rest = next;
            value += (usize::from(*byte) & 127) << shift;
            if byte & 128 == 0 {
                *input = rest;
                return Ok(value);
            }
        }
        return Err(Fault::Hpack);
    }
    *input = rest;
    Ok(value)
}

/// RFC 7541 §5.2.
fn string<'a, 'b: 'a>(tools: &'a mut Tools, input: &mut &'b [u8]) -> Result<&'a [u8], Fault> {
    let is_huffman = input.first().is_some_and(|byte| byte & 0x80 != 0);
    let n_bytes = integer(input, 7)?;
    let (bytes, rest) = input.split_at_checked(n_bytes).ok_or(Fault::Hpack)?;
    *input = rest;
    if !is_huffman {
        return Ok(bytes);
    }
    tools.string.clear();
    tools
        .huffman
        .decode(bytes, &mut tools.string)
        .ok_or(Fault::Hpack)?;
    Ok(&tools.string)
}

/// RFC 7541 §4.1: what an entry costs besides its text.
const ENTRY_BYTES: usize = 32;
/// Both tables, unless the peer wants ours smaller (RFC 9113 §6.5.2).
const TABLE_BYTES: usize = 4_096;
/// RFC 7541 Appendix A.
const STATIC: [(&str, &str); 61] = [
    (":authority", ""),
    (":method", "GET"),
    (":method", "POST"),
    (":path", "/"),
    (":path", "/index.html"),
    (":scheme", "http"),
    (":scheme", "https"),
    (":status", "200"),
    (":status", "204"),
    (":status", "206"),
    (":status", "304"),
    (":status", "400"),
    (":status", "404"),
    (":status", "500"),
    ("accept-charset", ""),
    ("accept-encoding", "gzip, deflate"),
    ("accept-language", ""),
    ("accept-ranges", ""),
    ("accept", ""),
    ("access-control-allow-origin", ""),
    ("age", ""),
    ("allow", ""),
    ("authorization", ""),
    ("cache-control", ""),
    ("content-disposition", ""),
    ("content-encoding", ""),
    ("content-language", ""),
    ("content-length", ""),
    ("content-location", ""),
    ("content-range", ""),
    ("content-type", ""),
    ("cookie", ""),
    ("date", ""),
    ("etag", ""),
    ("expect", ""),
    ("expires", ""),
    ("from", ""),
    ("host", ""),
    ("if-match", ""),
    ("if-modified-since", ""),
    ("if-none-match", ""),
    ("if-range", ""),
    ("if-unmodified-since", ""),
    ("last-modified", ""),
    ("link", ""),
    ("location", ""),
    ("max-forwards", ""),
    ("proxy-authenticate", ""),
    ("proxy-authorization", ""),
    ("range", ""),
    ("referer", ""),
    ("refresh", ""),
    ("retry-after", ""),
    ("server", ""),
    ("set-cookie", ""),
    ("strict-transport-security", ""),
    ("transfer-encoding", ""),
    ("user-agent", ""),
    ("vary", ""),
    ("via", ""),
    ("www-authenticate", ""),
];

#[cfg(test)]
mod tests;
