//! MessagePack as far as MessagePack-RPC needs it: where a message ends, what it consists of, how one begins.
//!
//! Parameters and results are passed over, not decoded.

use alloc::vec::Vec;

use citius_http::Fault;

/// How far the search for the end of a message has come. Continues where it stopped.
#[derive(Debug)]
pub(crate) struct Scanner {
    /// Bytes of the message that are whole values or their heads.
    at: usize,
    /// Values to come in the container in hand.
    left: u64,
    /// Values to come in the containers around it.
    around: Vec<u64>,
}

impl Default for Scanner {
    fn default() -> Self {
        Self {
            at: 0,
            left: 1,
            around: Vec::new(),
        }
    }
}

/// A value up to where its own bytes end.
struct Shape {
    /// Bytes of type and length.
    head: usize,
    /// Bytes behind them.
    body: u64,
    /// Values behind those.
    children: u64,
}

impl Scanner {
    /// The length of the message that `input` begins with, once all of it is there.
    ///
    /// # Errors
    /// It is too long or nested too deeply, or a byte is none of MessagePack's.
    #[inline]
    pub(crate) fn scan(
        &mut self,
        input: &[u8],
        bytes_max: usize,
        depth_max: usize,
    ) -> Result<Option<usize>, Fault> {
        loop {
            while self.left == 0 {
                let Some(left) = self.around.pop() else {
                    let length = self.at;
                    self.at = 0;
                    self.left = 1;
                    return Ok(Some(length));
                };
                self.left = left;
            }
            let rest = input.get(self.at..).unwrap_or_default();
            let Some(shape) = shape_of(rest)? else {
                return Ok(None);
            };
            // A child has a byte at least.
            let least = (self.at as u64)
                .saturating_add(shape.head as u64)
                .saturating_add(shape.body)
                .saturating_add(shape.children);
            if least > bytes_max as u64 {
                return Err(Fault::CallTooLong);
            }
            let body = usize::try_from(shape.body).unwrap_or(usize::MAX);
            let end = shape.head.saturating_add(body);
            if rest.len() < end {
                return Ok(None);
            }
            self.at = self.at.saturating_add(end);
            self.left = self.left.saturating_sub(1);
            if shape.children > 0 {
                if self.around.len() >= depth_max {
                    return Err(Fault::CallTooDeep);
                }
                self.around.push(self.left);
                self.left = shape.children;
            }
        }
    }
}

/// The shape of the value that `bytes` begin with; `None` if its head is not whole.
#[inline]
fn shape_of(bytes: &[u8]) -> Result<Option<Shape>, Fault> {
    let Some((&lead, rest)) = bytes.split_first() else {
        return Ok(None);
    };
    let small = u64::from(lead);
    let shape = |head: usize, body: u64, children: u64| {
        Ok(Some(Shape {
            head,
            body,
            children,
        }))
    };
    match lead {
        0x00..=0x7f | 0xe0..=0xff | 0xc0 | 0xc2 | 0xc3 => shape(1, 0, 0),
        0x80..=0x8f => shape(1, 0, (small & 0x0f) << 1),
        0x90..=0x9f => shape(1, 0, small & 0x0f),
        0xa0..=0xbf => shape(1, small & 0x1f, 0),
        0xc1 => Err(Fault::CallSyntax),
        0xcc | 0xd0 => shape(1, 1, 0),
        0xcd | 0xd1 => shape(1, 2, 0),
        0xca | 0xce | 0xd2 => shape(1, 4, 0),
        0xcb | 0xcf | 0xd3 => shape(1, 8, 0),
        // Fixed extensions: a type and 1, 2, 4, 8 or 16 bytes.
        0xd4..=0xd8 => shape(2, 1 << (small & 0x0f).saturating_sub(4), 0),
        0xc4..=0xc9 | 0xd9..=0xdf => {
            let (width, kind) = width_of(lead);
            let Some(length) = rest.get(..width) else {
                return Ok(None);
            };
            let n = length
                .iter()
                .fold(0u64, |n, &byte| n << 8 | u64::from(byte));
            let head = width.saturating_add(1);
            match kind {
                Kind::Bytes => shape(head, n, 0),
                Kind::Extension => shape(head, n.saturating_add(1), 0),
                Kind::Array => shape(head, 0, n),
                Kind::Map => shape(head, 0, n << 1),
            }
        }
    }
}

enum Kind {
    Bytes,
    Extension,
    Array,
    Map,
}

/// Bytes of the length behind a lead byte, and what it is the length of.
fn width_of(lead: u8) -> (usize, Kind) {
    match lead {
        0xc4 | 0xd9 => (1, Kind::Bytes),
        0xc5 | 0xda => (2, Kind::Bytes),
        0xc6 | 0xdb => (4, Kind::Bytes),
        0xc7 => (1, Kind::Extension),
        0xc8 => (2, Kind::Extension),
        0xc9 => (4, Kind::Extension),
        0xdc => (2, Kind::Array),
        0xdd => (4, Kind::Array),
        0xde => (2, Kind::Map),
        _ => (4, Kind::Map),
    }
}

/// A message of MessagePack-RPC, in its parts.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Message<'a> {
    /// `[0, msgid, method, params]`, and `[2, method, params]` without a `msgid`.
    Call {
        msgid: Option<u32>,
        method: &'a [u8],
        params: &'a [u8],
    },
    /// `[1, msgid, error, result]`; both are encoded.
    Response {
        msgid: u32,
        error: &'a [u8],
        result: &'a [u8],
    },
    /// A request whose method is no text or whose parameters are neither array nor map.
    Malformed { msgid: u32 },
}

/// What a whole message says; `None` if it is none of MessagePack-RPC's.
#[inline]
pub(crate) fn split(message: &[u8]) -> Option<Message<'_>> {
    let mut reader = Reader { rest: message };
    let n = reader.array()?;
    match (reader.integer()?, n) {
        (0, 4) => {
            let msgid = reader.msgid()?;
            let call = reader.text().zip(reader.params());
            Some(
                call.map_or(Message::Malformed { msgid }, |(method, params)| {
                    Message::Call {
                        msgid: Some(msgid),
                        method,
                        params,
                    }
                }),
            )
        }
        (1, 4) => {
            let msgid = reader.msgid()?;
            let error = reader.value()?;
            Some(Message::Response {
                msgid,
                error,
                result: reader.rest,
            })
        }
        (2, 3) => Some(Message::Call {
            msgid: None,
            method: reader.text()?,
            params: reader.params()?,
        }),
        _ => None,
    }
}

/// The `msgid` of a request that is not all there, if that much is.
pub(crate) fn msgid_of(message: &[u8]) -> Option<u32> {
    let mut reader = Reader { rest: message };
    match (reader.array()?, reader.integer()?) {
        (4, 0) => reader.msgid(),
        _ => None,
    }
}

/// The only integer of an array of one, as `$/cancelRequest` has it.
pub(crate) fn only_msgid(params: &[u8]) -> Option<u32> {
    let mut reader = Reader { rest: params };
    (reader.array()? == 1).then(|| reader.msgid()).flatten()
}

/// Reads parts of messages whose values are known to be whole.
struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    #[inline]
    fn take(&mut self, n: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.rest.split_at_checked(n)?;
        self.rest = rest;
        Some(taken)
    }

    #[inline]
    fn byte(&mut self) -> Option<u8> {
        let (&byte, rest) = self.rest.split_first()?;
        self.rest = rest;
        Some(byte)
    }

    #[inline]
    fn number(&mut self, width: usize) -> Option<u64> {
        let bytes = self.take(width)?;
        Some(bytes.iter().fold(0, |n, &byte| n << 8 | u64::from(byte)))
    }

    #[inline]
    fn array(&mut self) -> Option<u64> {
        match self.byte()? {
            lead @ 0x90..=0x9f => Some(u64::from(lead & 0x0f)),
            0xdc => self.number(2),
            0xdd => self.number(4),
            _ => None,
        }
    }

    /// An integer that is not negative, however it is written.
    #[inline]
    fn integer(&mut self) -> Option<u64> {
        let (width, is_signed) = match self.byte()? {
            lead @ 0x00..=0x7f => return Some(u64::from(lead)),
            0xcc => (1, false),
            0xcd => (2, false),
            0xce => (4, false),
            0xcf => (8, false),
            0xd0 => (1, true),
            0xd1 => (2, true),
            0xd2 => (4, true),
            0xd3 => (8, true),
            _ => return None,
        };
        let n = self.number(width)?;
        let sign = 1u64 << (width as u64).saturating_mul(8).saturating_sub(1);
        (!is_signed || n & sign == 0).then_some(n)
    }

    #[inline]
    fn msgid(&mut self) -> Option<u32> {
        u32::try_from(self.integer()?).ok()
    }

    /// A method's name. Bytes are taken for text: clients older than the difference send them.
    #[inline]
    fn text(&mut self) -> Option<&'a [u8]> {
        let n = match self.byte()? {
            lead @ 0xa0..=0xbf => u64::from(lead & 0x1f),
            0xc4 | 0xd9 => self.number(1)?,
            0xc5 | 0xda => self.number(2)?,
            0xc6 | 0xdb => self.number(4)?,
            _ => return None,
        };
        self.take(usize::try_from(n).ok()?)
    }

    /// The rest, if it is an array, or a map of named parameters. Nil is taken for none: Go's codec sends a slice
    /// without elements like that.
    #[inline]
    fn params(&mut self) -> Option<&'a [u8]> {
        match self.rest.first()? {
            0x80..=0x9f | 0xdc..=0xdf => Some(self.rest),
            0xc0 => Some(&[0x90]),
            _ => None,
        }
    }

    /// A whole value of any kind.
    fn value(&mut self) -> Option<&'a [u8]> {
        let length = Scanner::default().scan(self.rest, usize::MAX, usize::MAX);
        self.take(length.ok()??)
    }
}

/// Appends an unsigned integer in its shortest form.
#[inline]
pub(crate) fn encode_uint(n: u32, out: &mut Vec<u8>) {
    let bytes = n.to_be_bytes();
    let [_, _, high, low] = bytes;
    match n {
        0..=0x7f => out.push(low),
        0x80..=0xff => out.extend_from_slice(&[0xcc, low]),
        0x100..=0xffff => out.extend_from_slice(&[0xcd, high, low]),
        _ => {
            out.push(0xce);
            out.extend_from_slice(&bytes);
        }
    }
}

/// Appends a text. One longer than 4 GiB, which no response may be, loses its end.
#[inline]
pub fn encode_text(text: &str, out: &mut Vec<u8>) {
    encode_run(
        text.as_bytes(),
        [None, Some(0xd9), Some(0xda), Some(0xdb)],
        out,
    );
}

/// Appends bytes. Of more than 4 GiB, which no response may have, the rest is lost.
#[inline]
pub fn encode_bytes(bytes: &[u8], out: &mut Vec<u8>) {
    encode_run(bytes, [Some(0xc4), Some(0xc4), Some(0xc5), Some(0xc6)], out);
}

/// `leads` are those of lengths below 32, 2^8, 2^16 and 2^32; `None` is a length within the lead.
#[inline]
fn encode_run(bytes: &[u8], leads: [Option<u8>; 4], out: &mut Vec<u8>) {
    let length = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
    let [_, _, high, low] = length.to_be_bytes();
    let [tiny, small, medium, large] = leads;
    match (length, tiny) {
        (0..=31, None) => out.push(0xa0 | low),
        (0..=0xff, _) => out.extend_from_slice(&[small.unwrap_or_default(), low]),
        (0x100..=0xffff, _) => out.extend_from_slice(&[medium.unwrap_or_default(), high, low]),
        _ => {
            out.push(large.unwrap_or_default());
            out.extend_from_slice(&length.to_be_bytes());
        }
    }
    out.extend_from_slice(bytes.get(..length as usize).unwrap_or_default());
}
