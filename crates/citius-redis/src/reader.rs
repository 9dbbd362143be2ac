//! Bytes in, the values of replies out, one at a time and in their order.
//!
//! An array, set or map is announced with its length; its elements follow as values of their own. [`Item::ends`] says how many
//! of those that are open end with a value, so that a reader of a reply needs a stack but no recursion. Attributes are read
//! and dropped. Types that no server sends (streamed strings and arrays) are faults.

use alloc::vec::Vec;

use crate::fault::Fault;

/// Bytes that one reply may take by default, as [`Reader`] counts them. Origin: half of Redis' own limit of a string, 512 MiB.
pub const REPLY_BYTES_MAX: usize = 256 * 1024 * 1024;

/// What each value of a reply counts beside its bytes: about what an object of a program takes that it becomes.
pub const VALUE_BYTES: usize = 48;

/// Bytes of one line: a number, a status, an error. Origin: the line buffer of Redis' own parser.
pub const LINE_BYTES_MAX: usize = 64 * 1024;

/// Arrays within arrays. Origin: `COMMAND DOCS`, the deepest reply of Redis itself, has about ten.
pub const DEPTH_MAX: usize = 128;

/// A value, or the beginning of one that contains others.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Value<'a> {
    /// Any bytes.
    Blob(&'a [u8]),
    /// A status, such as `OK`.
    Simple(&'a [u8]),
    /// An error; its first word is its code.
    Error(&'a [u8]),
    /// A 64-bit number.
    Integer(i64),
    /// A floating point number.
    Double(f64),
    /// `#t` or `#f`.
    Boolean(bool),
    /// A decimal number of any length.
    BigNumber(&'a [u8]),
    /// Text for people, without the three letters of its format.
    Verbatim(&'a [u8]),
    /// No value.
    Null,
    /// So many values follow.
    Array(u32),
    /// So many values follow, in no order.
    Set(u32),
    /// So many pairs of values follow.
    Map(u32),
    /// So many values follow, which are no reply. The first says of what kind they are.
    Push(u32),
}

impl Value<'_> {
    /// Whether others follow that are its elements.
    #[inline]
    pub fn is_container(&self) -> bool {
        matches!(
            self,
            Self::Array(_) | Self::Set(_) | Self::Map(_) | Self::Push(_)
        )
    }
}

/// A value, and what ends with it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Item<'a> {
    /// The value.
    pub value: Value<'a>,
    /// How many arrays, sets, maps and pushes end with it, the innermost first; an empty one ends itself.
    pub ends: u32,
    /// Whether the reply ends with it.
    pub is_last: bool,
}

/// An array, set, map, push or attribute whose elements are still to come.
#[derive(Clone, Copy, Debug)]
struct Open {
    left: u64,
    is_attribute: bool,
}

/// Where in a reply the bytes so far have led.
#[derive(Debug)]
pub struct Reader {
    open: Vec<Open>,
    /// Attributes among those that are open.
    attributes: usize,
    /// What the reply may still take.
    left: usize,
    reply_bytes_max: usize,
    /// Bytes of the line at the beginning of the input in which no end has been found.
    searched: usize,
}

impl Default for Reader {
    fn default() -> Self {
        Self::new(REPLY_BYTES_MAX)
    }
}

impl Reader {
    /// A reader of replies that take at most so many bytes, each value counted with [`VALUE_BYTES`] more.
    pub fn new(reply_bytes_max: usize) -> Self {
        Self {
            open: Vec::new(),
            attributes: 0,
            left: reply_bytes_max,
            reply_bytes_max,
            searched: 0,
        }
    }

    /// Whether the next value begins a reply.
    #[inline]
    pub fn is_between(&self) -> bool {
        self.open.is_empty()
    }

    /// The next value of `input`, which is advanced behind it; `None` if it has not come in full. What is left of the input
    /// must be offered again, longer.
    ///
    /// # Errors
    /// The bytes are no RESP3, or a limit is exceeded. Nothing more may be read.
    #[inline]
    pub fn next<'a>(&mut self, input: &mut &'a [u8]) -> Result<Option<Item<'a>>, Fault> {
        loop {
            let before = input.len();
            let Some(token) = self.take(input)? else {
                return Ok(None);
            };
            self.pay(before.saturating_sub(input.len()))?;
            if let Some(item) = self.place(token)? {
                return Ok(Some(item));
            }
        }
    }

    /// Takes a value off the input.
    #[inline]
    fn take<'a>(&mut self, input: &mut &'a [u8]) -> Result<Option<Token<'a>>, Fault> {
        let Some((&kind, rest)) = input.split_first() else {
            return Ok(None);
        };
        // First: what speaks another protocol is not waited for.
        if !is_known(kind) {
            return Err(UNKNOWN);
        }
        let Some((line, rest)) = self.take_line(rest)? else {
            return Ok(None);
        };
        let token = match kind {
            b'$' => match length(line)? {
                None => Token::Value(Value::Null),
                Some(len) => match self.take_blob(len, rest)? {
                    None => return Ok(None),
                    Some((blob, rest)) => {
                        *input = rest;
                        return Ok(Some(Token::Value(Value::Blob(blob))));
                    }
                },
            },
            b'+' => Token::Value(Value::Simple(line)),
            b'-' => Token::Value(Value::Error(line)),
            b':' => Token::Value(Value::Integer(integer(line)?)),
            b'_' if line.is_empty() => Token::Value(Value::Null),
            b'*' => match length(line)? {
                None => Token::Value(Value::Null),
                Some(len) => Token::Opening(Value::Array(len), u64::from(len)),
            },
            _ => return self.take_rare(kind, line, rest, input),
        };
        *input = rest;
        Ok(Some(token))
    }

    /// Takes a value of a kind that few replies have.
    fn take_rare<'a>(
        &self,
        kind: u8,
        line: &'a [u8],
        rest: &'a [u8],
        input: &mut &'a [u8],
    ) -> Result<Option<Token<'a>>, Fault> {
        let token = match kind {
            b'%' => opening(line, 2, Value::Map)?,
            b'~' => opening(line, 1, Value::Set)?,
            b'>' if self.open.is_empty() => opening(line, 1, Value::Push)?,
            b'>' => return Err(Fault::Protocol("a push in the middle of a reply")),
            b'|' => Token::Attribute(u64::from(some_length(line)?) * 2),
            b'#' => Token::Value(Value::Boolean(match line {
                b"t" => true,
                b"f" => false,
                _ => return Err(Fault::Protocol("a boolean that is neither t nor f")),
            })),
            b',' => Token::Value(Value::Double(double(line)?)),
            b'(' => Token::Value(Value::BigNumber(big_number(line)?)),
            b'!' | b'=' => {
                let Some((blob, rest)) = self.take_blob(some_length(line)?, rest)? else {
                    return Ok(None);
                };
                *input = rest;
                return Ok(Some(Token::Value(if kind == b'!' {
                    Value::Error(blob)
                } else {
                    Value::Verbatim(text_of(blob)?)
                })));
            }
            b'_' => return Err(Fault::Protocol("a null with a value")),
            b';' | b'.' => return Err(STREAMED),
            _ => return Err(UNKNOWN),
        };
        *input = rest;
        Ok(Some(token))
    }

    /// Takes a line and its end.
    #[inline]
    fn take_line<'a>(&mut self, rest: &'a [u8]) -> Result<Option<Split<'a>>, Fault> {
        let unread = rest.get(self.searched..).unwrap_or_default();
        let Some(at) = unread.iter().position(|&byte| byte == b'\r') else {
            if rest.len() > LINE_BYTES_MAX {
                return Err(Fault::LineTooLong);
            }
            self.searched = rest.len();
            return Ok(None);
        };
        let len = self.searched + at;
        if len > LINE_BYTES_MAX {
            return Err(Fault::LineTooLong);
        }
        let (line, end) = rest.split_at(len);
        match end {
            [_, b'\n', rest @ ..] => {
                self.searched = 0;
                Ok(Some((line, rest)))
            }
            [_, _, ..] => Err(Fault::Protocol("a line that does not end with CRLF")),
            _ => {
                self.searched = len;
                Ok(None)
            }
        }
    }

    /// Takes so many bytes and the end of the line behind them.
    #[inline]
    fn take_blob<'a>(&self, len: u32, rest: &'a [u8]) -> Result<Option<Split<'a>>, Fault> {
        let len = len as usize;
        if len > self.left {
            return Err(Fault::ReplyTooLong(self.reply_bytes_max));
        }
        let Some((blob, end)) = rest.split_at_checked(len) else {
            return Ok(None);
        };
        match end {
            [b'\r', b'\n', rest @ ..] => Ok(Some((blob, rest))),
            [b'\r'] | [] => Ok(None),
            _ => Err(Fault::Protocol("a string that is longer than its length")),
        }
    }

    /// Counts what a value takes.
    #[inline]
    fn pay(&mut self, bytes: usize) -> Result<(), Fault> {
        let left = self.left.checked_sub(bytes + VALUE_BYTES);
        self.left = left.ok_or(Fault::ReplyTooLong(self.reply_bytes_max))?;
        Ok(())
    }

    /// Finds where in the reply a value is; `None` if it is part of an attribute.
    #[inline]
    fn place<'a>(&mut self, token: Token<'a>) -> Result<Option<Item<'a>>, Fault> {
        let (value, len, is_attribute) = match token {
            Token::Value(value) => (value, None, false),
            Token::Opening(value, len) => (value, Some(len), false),
            Token::Attribute(len) => (Value::Null, Some(len), true),
        };
        let is_dropped = is_attribute || self.attributes > 0;
        let mut ends = 0;
        match len {
            Some(0) if is_attribute => return Ok(None),
            Some(0) => ends = 1,
            Some(left) => {
                if self.open.len() >= DEPTH_MAX {
                    return Err(Fault::TooDeep);
                }
                self.open.push(Open { left, is_attribute });
                self.attributes += usize::from(is_attribute);
                let item = Item {
                    value,
                    ends: 0,
                    is_last: false,
                };
                return Ok((!is_dropped).then_some(item));
            }
            None => {}
        }
        ends += self.close();
        let is_last = self.open.is_empty();
        if is_last {
            self.left = self.reply_bytes_max;
        }
        let item = Item {
            value,
            ends,
            is_last,
        };
        Ok((!is_dropped).then_some(item))
    }

    /// Notes that a value is complete; returns how many of those that contain it end with it.
    #[inline]
    fn close(&mut self) -> u32 {
        let mut ends = 0;
        while let Some(open) = self.open.last_mut() {
            open.left = open.left.saturating_sub(1);
            if open.left > 0 {
                break;
            }
            let is_attribute = open.is_attribute;
            self.open.pop();
            if is_attribute {
                // The value that it belongs to is still to come.
                self.attributes = self.attributes.saturating_sub(1);
                break;
            }
            ends += 1;
        }
        ends
    }
}

/// What stands on the input.
#[derive(Clone, Copy)]
enum Token<'a> {
    Value(Value<'a>),
    /// A value that contains so many others.
    Opening(Value<'a>, u64),
    /// So many values that say something about the next one.
    Attribute(u64),
}

/// Something taken off the input, and what is left.
type Split<'a> = (&'a [u8], &'a [u8]);

/// Whether a value can begin with this byte.
#[inline]
fn is_known(kind: u8) -> bool {
    matches!(
        kind,
        b'$' | b'+'
            | b'-'
            | b':'
            | b'_'
            | b'*'
            | b'%'
            | b'~'
            | b'>'
            | b'|'
            | b'#'
            | b','
            | b'('
            | b'!'
            | b'='
            | b';'
            | b'.'
    )
}

const UNKNOWN: Fault = Fault::Protocol("a reply of an unknown type");
const STREAMED: Fault = Fault::Protocol("a streamed reply, which no server sends");

/// The length of a string or an array; `None` for the null of RESP2.
#[inline]
fn length(line: &[u8]) -> Result<Option<u32>, Fault> {
    if let [b'?', ..] = line {
        return Err(STREAMED);
    }
    if line == b"-1" {
        return Ok(None);
    }
    let mut len: u32 = 0;
    for &byte in line {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            return Err(NO_LENGTH);
        }
        let more = len
            .checked_mul(10)
            .and_then(|len| len.checked_add(digit.into()));
        len = more.ok_or(NO_LENGTH)?;
    }
    if line.is_empty() {
        return Err(NO_LENGTH);
    }
    Ok(Some(len))
}

const NO_LENGTH: Fault = Fault::Protocol("a length that is no 32-bit number");

fn some_length(line: &[u8]) -> Result<u32, Fault> {
    length(line)?.ok_or(NO_LENGTH)
}

fn opening<'a>(line: &[u8], values: u64, make: fn(u32) -> Value<'a>) -> Result<Token<'a>, Fault> {
    let len = some_length(line)?;
    Ok(Token::Opening(make(len), u64::from(len) * values))
}

#[inline]
fn integer(line: &[u8]) -> Result<i64, Fault> {
    const NO_NUMBER: Fault = Fault::Protocol("a number that has no 64 bits");
    let (is_negative, digits) = match line {
        [b'-', digits @ ..] => (true, digits),
        [b'+', digits @ ..] | digits => (false, digits),
    };
    if digits.is_empty() {
        return Err(NO_NUMBER);
    }
    // Downwards, where there is one number more.
    let mut number: i64 = 0;
    for &byte in digits {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            return Err(NO_NUMBER);
        }
        let less = number
            .checked_mul(10)
            .and_then(|number| number.checked_sub(digit.into()));
        number = less.ok_or(NO_NUMBER)?;
    }
    if is_negative {
        return Ok(number);
    }
    number.checked_neg().ok_or(NO_NUMBER)
}

fn double(line: &[u8]) -> Result<f64, Fault> {
    let text = core::str::from_utf8(line).ok();
    text.and_then(|text| text.parse().ok())
        .ok_or(Fault::Protocol("a double that is no number"))
}

fn big_number(line: &[u8]) -> Result<&[u8], Fault> {
    let digits = line.strip_prefix(b"-").or_else(|| line.strip_prefix(b"+"));
    let digits = digits.unwrap_or(line);
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return Err(Fault::Protocol("a big number with other bytes than digits"));
    }
    Ok(line)
}

/// The text of a verbatim string, behind `txt:` or `mkd:`.
fn text_of(blob: &[u8]) -> Result<&[u8], Fault> {
    match blob {
        [_, _, _, b':', text @ ..] => Ok(text),
        _ => Err(Fault::Protocol("a verbatim string without a format")),
    }
}
