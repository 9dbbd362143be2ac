//! HTTP/3 answers, client side (RFC 9114, RFC 9204): the bytes of one request, and the reading of one answer. Sans-IO.
//!
//! The connection, its streams and its packets are `quic.rs`. This side allows no dynamic table, so that every field section can
//! be read by itself; of its fields only those that frame the answer are looked at.

use super::h2::huffman::Huffman;
use super::{Answers, Fault, Ticket};
use crate::request::Request;

/// What this side says on its control stream: its type, and settings that allow nothing.
pub(crate) const CONTROL: &[u8] = &[0x00, 0x04, 0x00];

/// `H3_REQUEST_CANCELLED`, for answers that are not waited for.
pub(crate) const REQUEST_CANCELLED: u32 = 0x10c;

const DATA: u64 = 0x0;
pub(super) const HEADERS: u64 = 0x1;

/// All of a request's stream.
pub(crate) fn encode(request: &Request) -> Vec<u8> {
    let mut section = vec![0, 0];
    match request.method.as_str() {
        "GET" => integer(&mut section, 0xc0, 6, 17),
        "POST" => integer(&mut section, 0xc0, 6, 20),
        method => literal_of(&mut section, 15, method.as_bytes()),
    }
    integer(&mut section, 0xc0, 6, 23);
    literal_of(&mut section, 0, request.authority.as_bytes());
    literal_of(&mut section, 1, request.target.as_bytes());
    for (name, value) in &request.headers {
        if matches!(
            name.to_ascii_lowercase().as_str(),
            "connection" | "host" | "keep-alive" | "transfer-encoding"
        ) {
            continue;
        }
        literal(&mut section, name, value);
    }
    if !request.body.is_empty() {
        literal_of(&mut section, 4, request.body.len().to_string().as_bytes());
    }
    let mut bytes = Vec::new();
    frame(&mut bytes, HEADERS, &section);
    if !request.body.is_empty() {
        frame(&mut bytes, DATA, &request.body);
    }
    bytes
}

/// A field whose name is the static table's.
pub(super) fn literal_of(section: &mut Vec<u8>, name: usize, value: &[u8]) {
    integer(section, 0x50, 4, name);
    integer(section, 0, 7, value.len());
    section.extend_from_slice(value);
}

/// A field that the static table does not have.
pub(super) fn literal(section: &mut Vec<u8>, name: &str, value: &str) {
    let name = name.to_ascii_lowercase();
    integer(section, 0x20, 3, name.len());
    section.extend_from_slice(name.as_bytes());
    integer(section, 0, 7, value.len());
    section.extend_from_slice(value.as_bytes());
}

pub(super) fn integer(out: &mut Vec<u8>, pattern: u8, n_bits: u32, number: usize) {
    let most = (1_usize << n_bits) - 1;
    if number < most {
        return out.push(pattern | u8::try_from(number).expect("less than a byte"));
    }
    out.push(pattern | u8::try_from(most).expect("less than a byte"));
    let mut rest = number - most;
    while rest >= 0x80 {
        out.push(0x80 | u8::try_from(rest & 0x7f).expect("seven bits"));
        rest >>= 7;
    }
    out.push(u8::try_from(rest).expect("seven bits"));
}

pub(super) fn frame(out: &mut Vec<u8>, kind: u64, payload: &[u8]) {
    put_number(out, kind);
    put_number(out, payload.len() as u64);
    out.extend_from_slice(payload);
}

/// Appends a QUIC integer (RFC 9000 §16).
pub(super) fn put_number(out: &mut Vec<u8>, number: u64) {
    match number {
        0..=0x3f => out.push(u8::try_from(number).expect("six bits")),
        0x40..=0x3fff => {
            let number = u16::try_from(number).expect("14 bits") | 0x4000;
            out.extend_from_slice(&number.to_be_bytes());
        }
        0x4000..=0x3fff_ffff => {
            let number = u32::try_from(number).expect("30 bits") | 0x8000_0000;
            out.extend_from_slice(&number.to_be_bytes());
        }
        _ => out.extend_from_slice(&(number | 0xc000_0000_0000_0000).to_be_bytes()),
    }
}

/// Takes a QUIC integer (RFC 9000 §16).
pub(super) fn number(input: &mut &[u8]) -> Option<u64> {
    let (&first, rest) = input.split_first()?;
    let (more, rest) = rest.split_at_checked((1 << (first >> 6)) - 1)?;
    *input = rest;
    let number = u64::from(first & 0x3f);
    Some(
        more.iter()
            .fold(number, |number, &byte| number << 8 | u64::from(byte)),
    )
}

/// How far the answer on one stream is.
#[derive(Debug, Default)]
pub(crate) struct Response {
    /// The start of a frame's header, or of a section.
    partial: Vec<u8>,
    reading: Reading,
    pub(crate) has_begun: bool,
    /// Its content-length, and how much has come.
    declared: Option<u64>,
    n_body: u64,
}

#[derive(Clone, Copy, Debug, Default)]
enum Reading {
    #[default]
    Frame,
    Section(usize),
    Body(u64),
    Skip(u64),
}

impl Response {
    /// Reads all of `input`.
    /// # Errors  A rule was broken; the connection is not to be trusted any more.
    pub(crate) fn receive<A: Answers>(
        &mut self,
        huffman: &Huffman,
        ticket: Ticket,
        mut input: &[u8],
        answers: &mut A,
    ) -> Result<(), Fault> {
        while !input.is_empty() {
            match self.reading {
                Reading::Frame => {
                    let n_held = self.partial.len();
                    self.partial
                        .extend_from_slice(&input[..input.len().min(16)]);
                    let mut header = self.partial.as_slice();
                    let (Some(kind), Some(length)) = (number(&mut header), number(&mut header))
                    else {
                        if self.partial.len() >= 16 {
                            return Err(Fault::Frame);
                        }
                        return Ok(());
                    };
                    let n_header = self.partial.len() - header.len();
                    input = &input[n_header - n_held..];
                    self.partial.clear();
                    self.reading = match kind {
                        DATA if !self.has_begun => return Err(Fault::Frame),
                        DATA => Reading::Body(length),
                        HEADERS if length > SECTION_BYTES_MAX => return Err(Fault::HeadTooLong),
                        HEADERS => Reading::Section(usize::try_from(length).unwrap_or_default()),
                        // Frames of the control stream, and pushes that were not allowed.
                        0x3..=0x7 | 0xd => return Err(Fault::Frame),
                        _ => Reading::Skip(length),
                    };
                    self.close_frame();
                }
                Reading::Section(left) => {
                    let (came, rest) = input.split_at(left.min(input.len()));
                    input = rest;
                    self.partial.extend_from_slice(came);
                    self.reading = Reading::Section(left - came.len());
                    if left == came.len() {
                        let section = std::mem::take(&mut self.partial);
                        self.reading = Reading::Frame;
                        self.take_section(huffman, ticket, &section, answers)?;
                    }
                }
                Reading::Body(left) => {
                    let n_bytes = limit(input.len(), left);
                    let (came, rest) = input.split_at(n_bytes);
                    input = rest;
                    answers.body(ticket, came);
                    self.n_body += n_bytes as u64;
                    self.reading = Reading::Body(left - n_bytes as u64);
                    self.close_frame();
                }
                Reading::Skip(left) => {
                    let n_bytes = limit(input.len(), left);
                    input = &input[n_bytes..];
                    self.reading = Reading::Skip(left - n_bytes as u64);
                    self.close_frame();
                }
            }
        }
        Ok(())
    }

    fn close_frame(&mut self) {
        if matches!(self.reading, Reading::Body(0) | Reading::Skip(0)) {
            self.reading = Reading::Frame;
        }
    }

    /// The stream has ended; whether that was the end of an answer.
    pub(crate) fn is_complete(&self) -> bool {
        self.has_begun
            && self.partial.is_empty()
            && matches!(self.reading, Reading::Frame)
            && self.declared.is_none_or(|length| length == self.n_body)
    }

    fn take_section<A: Answers>(
        &mut self,
        huffman: &Huffman,
        ticket: Ticket,
        section: &[u8],
        answers: &mut A,
    ) -> Result<(), Fault> {
        let head = read_section(huffman, section)?;
        if self.has_begun {
            // Trailers.
            return if head.status.is_none() {
                Ok(())
            } else {
                Err(Fault::Frame)
            };
        }
        match head.status {
            None => Err(Fault::StatusLine),
            Some(100..=199) => Ok(()),
            Some(status) => {
                self.has_begun = true;
                self.declared = head.length.filter(|_| !answers.is_head(ticket));
                answers.begin(ticket, status, false);
                Ok(())
            }
        }
    }
}

/// A larger head is no server's that is measured here.
const SECTION_BYTES_MAX: u64 = 64 * 1024;

fn limit(n_bytes: usize, most: u64) -> usize {
    usize::try_from(most).map_or(n_bytes, |most| n_bytes.min(most))
}

#[derive(Debug, Default)]
struct Head {
    status: Option<u16>,
    length: Option<u64>,
}

/// Reads a field section that refers to the static table alone.
fn read_section(huffman: &Huffman, section: &[u8]) -> Result<Head, Fault> {
    let [0, 0, fields @ ..] = section else {
        return Err(Fault::Hpack);
    };
    let (mut fields, mut head) = (fields, Head::default());
    while let Some(&first) = fields.first() {
        if first & 0x80 != 0 {
            let index = prefixed(&mut fields, 6).filter(|_| first & 0x40 != 0);
            match index.ok_or(Fault::Hpack)? {
                4 => set(&mut head.length, 0)?,
                index @ 0..99 => {
                    if let Some(status) = status_of(index) {
                        set(&mut head.status, status)?;
                    }
                }
                _ => return Err(Fault::Hpack),
            }
            continue;
        }
        let name = if first & 0x40 != 0 {
            match prefixed(&mut fields, 4).filter(|_| first & 0x10 != 0) {
                Some(4) => b"content-length".to_vec(),
                Some(24..=28 | 63..=71) => b":status".to_vec(),
                Some(0..99) => Vec::new(),
                _ => return Err(Fault::Hpack),
            }
        } else if first & 0x20 != 0 {
            string(huffman, &mut fields, 3)?
        } else {
            return Err(Fault::Hpack);
        };
        let value = string(huffman, &mut fields, 7)?;
        let text = std::str::from_utf8(&value).unwrap_or_default();
        match name.as_slice() {
            b":status" => set(
                &mut head.status,
                text.parse().map_err(|_| Fault::StatusLine)?,
            )?,
            b"content-length" => {
                set(
                    &mut head.length,
                    text.parse().map_err(|_| Fault::BodyLength)?,
                )?;
            }
            _ => {}
        }
    }
    Ok(head)
}

fn set<T: PartialEq>(place: &mut Option<T>, value: T) -> Result<(), Fault> {
    if place.as_ref().is_some_and(|before| *before != value) {
        return Err(Fault::BodyLength);
    }
    *place = Some(value);
    Ok(())
}

/// The status that a field of the static table is.
fn status_of(index: usize) -> Option<u16> {
    const FIRST: [u16; 5] = [103, 200, 304, 404, 503];
    const SECOND: [u16; 9] = [100, 204, 206, 302, 400, 403, 421, 425, 500];
    match index {
        24..=28 => FIRST.get(index - 24).copied(),
        63..=71 => SECOND.get(index - 63).copied(),
        _ => None,
    }
}

fn prefixed(input: &mut &[u8], n_bits: u32) -> Option<usize> {
    let (&first, mut rest) = input.split_first()?;
    let most = (1_usize << n_bits) - 1;
    let mut number = usize::from(first) & most;
    if number == most {
        for shift in (0..28).step_by(7) {
            let (&byte, after) = rest.split_first()?;
            rest = after;
            number += usize::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                *input = rest;
                return Some(number);
            }
        }
        return None;
    }
    *input = rest;
    Some(number)
}

fn string(huffman: &Huffman, input: &mut &[u8], n_bits: u32) -> Result<Vec<u8>, Fault> {
    let is_coded = input
        .first()
        .is_some_and(|first| first & (1 << n_bits) != 0);
    let length = prefixed(input, n_bits).ok_or(Fault::Hpack)?;
    let (bytes, rest) = input.split_at_checked(length).ok_or(Fault::Hpack)?;
    *input = rest;
    if !is_coded {
        return Ok(bytes.to_vec());
    }
    let mut text = Vec::new();
    huffman.decode(bytes, &mut text).ok_or(Fault::Hpack)?;
    Ok(text)
}

#[cfg(test)]
mod tests;
