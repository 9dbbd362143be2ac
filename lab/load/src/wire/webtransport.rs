//! WebTransport over HTTP/3, client side: the request for a session, and messages on streams and in datagrams. Sans-IO.
//!
//! A connection has one session. Of the drafts, servers speak several; they have in common what is here: the settings of the
//! server are waited for, the session is an extended CONNECT, its streams begin with a type and its id, and its datagrams with
//! a quarter of the id (draft-ietf-webtrans-http3, RFC 9220, RFC 9297). The connection and its packets are `quic.rs`.

use super::h2::huffman::Huffman;
use super::h3::{self, Response};
use super::{Answers, Failure, Fault, Ticket};
use crate::request::Request;

/// The bytes of a datagram's message that tell which one it is.
pub(crate) const SERIAL_BYTES: usize = 8;

const SETTINGS: u64 = 0x4;
const ENABLE_CONNECT_PROTOCOL: u64 = 0x8;
const H3_DATAGRAM: u64 = 0x33;
/// WebTransport as drafts 02, 07, 13 and 15 announce it.
const WEBTRANSPORT: [u64; 4] = [0x2b60_3742, 0xc671_706a, 0x14e9_cd29, 0x2c7c_f000];
/// The type of a stream that the client opens.
const STREAM: u64 = 0x41;
const CONTROL_STREAM: u64 = 0x0;
const SETTINGS_BYTES_MAX: u64 = 4096;

/// What this side says on its control stream: its type, and that it takes datagrams, extended CONNECT and sessions.
pub(crate) fn control() -> Vec<u8> {
    let mut payload = Vec::new();
    for name in [ENABLE_CONNECT_PROTOCOL, H3_DATAGRAM]
        .into_iter()
        .chain(WEBTRANSPORT)
    {
        h3::put_number(&mut payload, name);
        h3::put_number(&mut payload, 1);
    }
    let mut bytes = vec![0x00];
    h3::frame(&mut bytes, SETTINGS, &payload);
    bytes
}

/// The request for a session, whose stream stays open.
pub(crate) fn connect(request: &Request) -> Vec<u8> {
    let mut section = vec![0, 0];
    h3::integer(&mut section, 0xc0, 6, 15);
    h3::integer(&mut section, 0xc0, 6, 23);
    h3::literal_of(&mut section, 0, request.authority.as_bytes());
    h3::literal_of(&mut section, 1, request.target.as_bytes());
    let protocol = (":protocol".to_owned(), "webtransport".to_owned());
    let draft = ("sec-webtransport-http3-draft02".to_owned(), "1".to_owned());
    for (name, value) in [protocol, draft].iter().chain(&request.headers) {
        h3::literal(&mut section, name, value);
    }
    let mut bytes = Vec::new();
    h3::frame(&mut bytes, h3::HEADERS, &section);
    bytes
}

/// All of a message's stream.
pub(crate) fn on_stream(session: u64, message: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(message.len() + 10);
    h3::put_number(&mut bytes, STREAM);
    h3::put_number(&mut bytes, session);
    bytes.extend_from_slice(message);
    bytes
}

/// A datagram with a message, of which the first bytes are its serial number.
pub(crate) fn in_datagram(session: u64, serial: u64, message: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(message.len() + 8);
    h3::put_number(&mut bytes, session / 4);
    bytes.extend_from_slice(&serial.to_be_bytes());
    bytes.extend_from_slice(&message[SERIAL_BYTES..]);
    bytes
}

/// The serial number of a datagram, and what follows it.
/// # Errors  It is none of the session's, or too short for a number.
pub(crate) fn of_datagram(session: u64, mut datagram: &[u8]) -> Result<(u64, &[u8]), Fault> {
    if h3::number(&mut datagram) != Some(session / 4) {
        return Err(Fault::Datagram);
    }
    let (serial, rest) = datagram
        .split_first_chunk::<SERIAL_BYTES>()
        .ok_or(Fault::Datagram)?;
    Ok((u64::from_be_bytes(*serial), rest))
}

/// A stream that the server opens: its settings are on one of them.
#[derive(Debug, Default)]
pub(crate) struct Announced {
    bytes: Vec<u8>,
    is_over: bool,
}

impl Announced {
    /// Reads more of it; whether that told the settings, which allow sessions.
    /// # Errors  They allow none, or the control stream does not begin with them.
    pub(crate) fn receive(&mut self, input: &[u8]) -> Result<bool, Fault> {
        if self.is_over {
            return Ok(false);
        }
        self.bytes.extend_from_slice(input);
        let mut rest = self.bytes.as_slice();
        match h3::number(&mut rest) {
            None => return Ok(false),
            Some(CONTROL_STREAM) => {}
            Some(_) => {
                self.is_over = true;
                return Ok(false);
            }
        }
        let (Some(kind), Some(length)) = (h3::number(&mut rest), h3::number(&mut rest)) else {
            return Ok(false);
        };
        if kind != SETTINGS || length > SETTINGS_BYTES_MAX {
            return Err(Fault::Frame);
        }
        let Some(payload) = usize::try_from(length).ok().and_then(|n| rest.get(..n)) else {
            return Ok(false);
        };
        allows_sessions(payload)?;
        self.is_over = true;
        Ok(true)
    }
}

/// # Errors  It does not, or there is half a setting.
fn allows_sessions(mut payload: &[u8]) -> Result<(), Fault> {
    let (mut connect, mut datagrams, mut sessions) = (false, false, false);
    while !payload.is_empty() {
        let name = h3::number(&mut payload).ok_or(Fault::Frame)?;
        let value = h3::number(&mut payload).ok_or(Fault::Frame)?;
        connect |= name == ENABLE_CONNECT_PROTOCOL && value == 1;
        datagrams |= name == H3_DATAGRAM && value == 1;
        sessions |= WEBTRANSPORT.contains(&name) && value > 0;
    }
    if connect && datagrams && sessions {
        Ok(())
    } else {
        Err(Fault::Session)
    }
}

/// The stream of the request for a session.
#[derive(Debug, Default)]
pub(crate) struct Granting {
    response: Response,
    head: Head,
}

impl Granting {
    /// Reads more of it; whether the session is granted.
    /// # Errors  It is refused, or a rule of HTTP/3 was broken.
    pub(crate) fn receive(&mut self, huffman: &Huffman, input: &[u8]) -> Result<bool, Fault> {
        self.response.receive(huffman, 0, input, &mut self.head)?;
        match self.head.0 {
            None => Ok(false),
            Some(200..=299) => Ok(true),
            Some(_) => Err(Fault::Session),
        }
    }
}

/// Of the response, only the status matters; capsules behind it are not read.
#[derive(Debug, Default)]
struct Head(Option<u16>);

impl Answers for Head {
    fn is_head(&self, _ticket: Ticket) -> bool {
        false
    }
    fn begin(&mut self, _ticket: Ticket, status: u16, _closing: bool) {
        self.0 = Some(status);
    }
    fn body(&mut self, _ticket: Ticket, _bytes: &[u8]) {}
    fn unseen(&mut self, _ticket: Ticket, _n_bytes: u64) {}
    fn complete(&mut self, _ticket: Ticket) {}
    fn fail(&mut self, _ticket: Ticket, _failure: Failure) {}
    fn deliver(&mut self, _due_ns: Option<u64>, _n_bytes: u64) {}
    fn release(&mut self, _ticket: Ticket) {}
}

#[cfg(test)]
mod tests;
