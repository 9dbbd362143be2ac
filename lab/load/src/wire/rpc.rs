//! MessagePack-RPC, client side: a request is a call, its answer the result; any number under way at once.
//!
//! The procedure is the path of the URL without its slash, the parameters are the body: a MessagePack array,
//! empty without one. A valid answer has status 200 and the encoded result as its body; an error
//! has status 500 and the encoded error.
//!
//! Specification: <https://github.com/msgpack-rpc/msgpack-rpc/blob/master/spec.md>

use std::collections::HashSet;

use super::{Answers, Fault, Setup, Ticket, Wire};
use crate::request::Request;

/// The state of one connection.
#[derive(Debug)]
pub(crate) struct Rpc {
    /// A message that has begun.
    partial: Vec<u8>,
    /// Calls that are not answered, by their `msgid`.
    asked: HashSet<Ticket>,
    is_over: bool,
}

/// A call as it is sent, around its `msgid`.
#[derive(Debug)]
pub(crate) struct Prepared {
    rest: Vec<u8>,
}

impl Wire for Rpc {
    type Shared = ();
    type Prepared = Prepared;
    const REPLIES: bool = false;

    fn new(_setup: Setup) -> Self {
        Self {
            partial: Vec::new(),
            asked: HashSet::new(),
            is_over: false,
        }
    }

    fn prepare(requests: &[&Request], _setup: Setup) -> Vec<Prepared> {
        let prepare = |request: &&Request| Prepared {
            rest: behind_msgid(request),
        };
        requests.iter().map(prepare).collect()
    }

    fn open(&mut self, _prepared: &[Prepared], _output: &mut Vec<u8>) {}

    #[inline]
    fn has_room(&self) -> bool {
        !self.is_over
    }

    #[inline]
    fn send(&mut self, ticket: Ticket, _due_ns: u64, prepared: &Prepared, output: &mut Vec<u8>) {
        let [high, low] = ticket.to_be_bytes();
        output.extend_from_slice(&[0x94, 0x00, 0xcd, high, low]);
        output.extend_from_slice(&prepared.rest);
        self.asked.insert(ticket);
    }

    fn reply(&mut self, _output: &mut Vec<u8>) {}

    fn receive<A: Answers>(
        &mut self,
        _shared: &mut (),
        input: &[u8],
        answers: &mut A,
    ) -> Result<(), Fault> {
        let joined;
        let mut bytes = input;
        if !self.partial.is_empty() {
            self.partial.extend_from_slice(input);
            joined = std::mem::take(&mut self.partial);
            bytes = &joined;
        }
        while let Some(length) = length_of(bytes)? {
            let (message, rest) = bytes.split_at(length);
            self.take(message, answers)?;
            bytes = rest;
        }
        self.partial = bytes.to_vec();
        Ok(())
    }

    fn end<A: Answers>(&mut self, _answers: &mut A) {}

    fn has_begun(&self, ticket: Ticket) -> bool {
        // Whose answer has begun is known when it is complete.
        !self.partial.is_empty() && self.asked.len() == 1 && self.asked.contains(&ticket)
    }

    fn is_over(&self) -> bool {
        self.is_over
    }

    fn skippable(&self) -> u64 {
        0
    }

    fn skip<A: Answers>(&mut self, _n_bytes: u64, _answers: &mut A) {
        unreachable!("nothing is skippable");
    }
}

impl Rpc {
    /// One whole message.
    fn take<A: Answers>(&mut self, message: &[u8], answers: &mut A) -> Result<(), Fault> {
        match message {
            [0x94, 0x01, rest @ ..] => {
                let (ticket, rest) = msgid(rest).ok_or(Fault::Call)?;
                if !self.asked.remove(&ticket) {
                    return Err(Fault::Unasked);
                }
                let (status, body) = outcome(rest)?;
                answers.begin(ticket, status, false);
                answers.body(ticket, body);
                answers.complete(ticket);
                Ok(())
            }
            // Of notifications only the last word of a server that leaves means something here.
            [0x93, 0x02, 0xa9, name @ ..] => {
                self.is_over |= name.starts_with(b"$/goodbye");
                Ok(())
            }
            [0x93, 0x02, ..] => Ok(()),
            _ => Err(Fault::Call),
        }
    }
}

/// What stands behind the `msgid` of a call: the procedure and its parameters.
fn behind_msgid(request: &Request) -> Vec<u8> {
    let path = request.target.split('?').next().unwrap_or_default();
    let name = path.trim_start_matches('/').as_bytes();
    let length = u8::try_from(name.len()).expect("options have checked it");
    let mut rest = vec![0xd9, length];
    rest.extend_from_slice(name);
    if request.body.is_empty() {
        rest.push(0x90);
    } else {
        rest.extend_from_slice(&request.body);
    }
    rest
}

/// The status and the body of a response, of which the error and the result are given.
fn outcome(bytes: &[u8]) -> Result<(u16, &[u8]), Fault> {
    let error = length_of(bytes)?.ok_or(Fault::Call)?;
    let (error, result) = bytes.split_at(error);
    Ok(if error == [0xc0] {
        (200, result)
    } else {
        (500, error)
    })
}

/// All of a call's stream: the stream tells calls apart, so that all have one `msgid`.
pub(crate) fn on_stream(request: &Request) -> Vec<u8> {
    let mut call = vec![0x94, 0x00, ONE];
    call.extend_from_slice(&behind_msgid(request));
    call
}

/// What came back on a call's stream, whole.
/// # Errors  It is not one response to that call.
pub(crate) fn of_stream(bytes: &[u8]) -> Result<(u16, &[u8]), Fault> {
    let [0x94, 0x01, ONE, rest @ ..] = bytes else {
        return Err(Fault::Call);
    };
    if length_of(bytes)? != Some(bytes.len()) {
        return Err(Fault::Call);
    }
    outcome(rest)
}

const ONE: u8 = 1;

/// An unsigned integer in any of its forms, as far as it is a ticket.
fn msgid(bytes: &[u8]) -> Option<(Ticket, &[u8])> {
    let (n, rest) = match bytes {
        [n @ 0..=0x7f, rest @ ..] | [0xcc, n, rest @ ..] => (u16::from(*n), rest),
        [0xcd, high, low, rest @ ..] | [0xce, 0, 0, high, low, rest @ ..] => {
            (u16::from_be_bytes([*high, *low]), rest)
        }
        _ => return None,
    };
    Some((n, rest))
}

/// The length of the value that `bytes` begin with; `None` if it is not whole.
fn length_of(bytes: &[u8]) -> Result<Option<usize>, Fault> {
    let (mut at, mut n_left) = (0_usize, 1_u64);
    while n_left > 0 {
        let Some(&lead) = bytes.get(at) else {
            return Ok(None);
        };
        let width = match lead {
            0xc4 | 0xc7 | 0xd9 => 1,
            0xc5 | 0xc8 | 0xda | 0xdc | 0xde => 2,
            0xc6 | 0xc9 | 0xdb | 0xdd | 0xdf => 4,
            0xc1 => return Err(Fault::Call),
            _ => 0,
        };
        let Some(length) = bytes.get(at + 1..at + 1 + width) else {
            return Ok(None);
        };
        let n = length
            .iter()
            .fold(0_u64, |n, byte| n << 8 | u64::from(*byte));
        let low = u64::from(lead);
        let (n_bytes, n_values) = match lead {
            0x80..=0x8f => (0, 2 * (low & 0x0f)),
            0x90..=0x9f => (0, low & 0x0f),
            0xa0..=0xbf => (low & 0x1f, 0),
            0xc4..=0xc6 | 0xd9..=0xdb => (n, 0),
            0xc7..=0xc9 => (n + 1, 0),
            0xcc | 0xd0 => (1, 0),
            0xcd | 0xd1 => (2, 0),
            0xca | 0xce | 0xd2 => (4, 0),
            0xcb | 0xcf | 0xd3 => (8, 0),
            0xd4..=0xd8 => (1 + (1 << (low - 0xd4)), 0),
            0xdc | 0xdd => (0, n),
            0xde | 0xdf => (0, 2 * n),
            _ => (0, 0),
        };
        at += 1 + width + usize::try_from(n_bytes).map_err(|_| Fault::Call)?;
        n_left = n_left - 1 + n_values;
    }
    Ok((at <= bytes.len()).then_some(at))
}

#[cfg(test)]
mod tests;
