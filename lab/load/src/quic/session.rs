//! The session of WebTransport on one connection: from the server's settings to the messages under way.

use std::collections::{HashMap, HashSet};

use bytes::Bytes;
use quinn_proto::{Connection, Dir, ReadError, SendDatagramError, StreamId};

use crate::wire::h2::huffman::Huffman;
use crate::wire::webtransport::{self, Announced, Granting};
use crate::wire::{Fault, Ticket};

/// How far it is, and what is under way in it.
#[derive(Default)]
pub(super) struct Session {
    announced: HashMap<StreamId, Announced>,
    /// The stream of its request, whose id is the session's.
    stream: Option<StreamId>,
    granting: Granting,
    pub(super) is_granted: bool,
    n_datagrams: u64,
    /// Datagrams that have not come back, by serial number.
    datagrams: HashMap<u64, Ticket>,
    /// Those that are not waited for any more.
    given_up: HashSet<u64>,
}

/// What reading a stream has changed.
pub(super) enum Progress {
    None,
    /// The request for the session can be sent.
    Announced,
    /// The session is over.
    Ended,
}

impl Session {
    pub(super) fn is_of(&self, stream: StreamId) -> bool {
        self.stream == Some(stream)
    }

    fn id(&self) -> u64 {
        self.stream.map_or(0, u64::from)
    }

    /// Asks for it; the request fits every window.
    /// # Errors  The server allows no stream, or not all of the request.
    pub(super) fn ask(&mut self, connection: &mut Connection, request: &[u8]) -> Result<(), Fault> {
        let stream = connection.streams().open(Dir::Bi).ok_or(Fault::Session)?;
        self.stream = Some(stream);
        match connection.send_stream(stream).write(request) {
            Ok(n_bytes) if n_bytes == request.len() => Ok(()),
            _ => Err(Fault::Session),
        }
    }

    /// Reads a stream that the server has opened.
    /// # Errors  Its settings allow no session.
    pub(super) fn read_announced(
        &mut self,
        connection: &mut Connection,
        stream: StreamId,
    ) -> Result<Progress, Fault> {
        let announced = self.announced.entry(stream).or_default();
        let mut progress = Progress::None;
        read_all(connection, stream, |bytes| {
            if announced.receive(bytes)? {
                progress = Progress::Announced;
            }
            Ok(())
        })?;
        Ok(progress)
    }

    /// Reads the stream of its request.
    /// # Errors  It is refused.
    pub(super) fn read(
        &mut self,
        connection: &mut Connection,
        huffman: &Huffman,
    ) -> Result<Progress, Fault> {
        let Some(stream) = self.stream else {
            return Ok(Progress::None);
        };
        let (granting, is_granted) = (&mut self.granting, &mut self.is_granted);
        let is_over = read_all(connection, stream, |bytes| {
            *is_granted |= granting.receive(huffman, bytes)?;
            Ok(())
        })?;
        Ok(if is_over {
            Progress::Ended
        } else {
            Progress::None
        })
    }

    /// All of a message's stream.
    pub(super) fn on_stream(&self, message: &[u8]) -> Bytes {
        webtransport::on_stream(self.id(), message).into()
    }

    /// Hands QUIC a message as a datagram; its serial number, or `None` where that has to wait.
    /// # Errors  The server takes none of that size.
    pub(super) fn send_datagram(
        &mut self,
        connection: &mut Connection,
        message: &[u8],
    ) -> Result<Option<u64>, Fault> {
        let serial = self.n_datagrams;
        let datagram = webtransport::in_datagram(self.id(), serial, message);
        match connection.datagrams().send(datagram.into(), false) {
            Ok(()) => {
                self.n_datagrams += 1;
                Ok(Some(serial))
            }
            Err(SendDatagramError::Blocked(_)) => Ok(None),
            Err(_) => Err(Fault::Datagram),
        }
    }

    /// Notes whose a datagram is.
    pub(super) fn wait_for(&mut self, serial: u64, ticket: Ticket) {
        self.datagrams.insert(serial, ticket);
    }

    /// Whose a datagram is that came, and its message behind the serial number; `None` if it was given up.
    /// # Errors  None of that number is under way.
    pub(super) fn take_datagram<'a>(
        &mut self,
        datagram: &'a [u8],
    ) -> Result<Option<(Ticket, &'a [u8])>, Fault> {
        let (serial, rest) = webtransport::of_datagram(self.id(), datagram)?;
        match self.datagrams.remove(&serial) {
            Some(ticket) => Ok(Some((ticket, rest))),
            None if self.given_up.remove(&serial) => Ok(None),
            None => Err(Fault::Datagram),
        }
    }

    /// Waits no more for the datagrams of which `is_late` holds; returns them.
    pub(super) fn give_up(&mut self, is_late: impl Fn(Ticket) -> bool) -> Vec<Ticket> {
        let late: Vec<(u64, Ticket)> = self
            .datagrams
            .iter()
            .filter(|(_, ticket)| is_late(**ticket))
            .map(|(serial, ticket)| (*serial, *ticket))
            .collect();
        for (serial, _) in &late {
            self.datagrams.remove(serial);
            self.given_up.insert(*serial);
        }
        late.into_iter().map(|(_, ticket)| ticket).collect()
    }
}

/// Gives `take` all that has come of a stream; whether it has ended.
fn read_all(
    connection: &mut Connection,
    stream: StreamId,
    mut take: impl FnMut(&[u8]) -> Result<(), Fault>,
) -> Result<bool, Fault> {
    let mut receiving = connection.recv_stream(stream);
    let Ok(mut chunks) = receiving.read(true) else {
        return Ok(false);
    };
    let outcome = loop {
        match chunks.next(usize::MAX) {
            Ok(Some(chunk)) => {
                if let Err(fault) = take(&chunk.bytes) {
                    break Err(fault);
                }
            }
            Ok(None) | Err(ReadError::Reset(_)) => break Ok(true),
            Err(ReadError::Blocked) => break Ok(false),
        }
    };
    let _ = chunks.finalize();
    outcome
}
