//! Connections that the application has opened to other servers, databases above all: their sockets, and what these have not
//! taken yet. What a reactor does with them is in `upstream_turn.rs`.

use crate::readiness::Readiness;
use crate::system::{Errno, Result, Socket};

/// Names a connection that was [attached](crate::Reactor::attach_upstream).
pub type UpstreamId = u32;

/// A connection to another server.
#[derive(Debug)]
pub(crate) struct Upstream {
    id: UpstreamId,
    pub(crate) socket: Socket,
    /// What the socket has not taken yet.
    pub(crate) output: Vec<u8>,
    /// How much of it has been sent: it is moved when that is half of it, and not with each write.
    pub(crate) sent: usize,
    /// The socket is full.
    pub(crate) is_full: bool,
    /// The service has something to send, which it keeps until the socket has taken what it was given before.
    pub(crate) is_late: bool,
    pub(crate) sending: Sending,
    /// What the kernel reports.
    pub(crate) interest: Readiness,
}

/// How far the sending side is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sending {
    /// More may follow.
    Open,
    /// Nothing follows what was handed over: it ends when the socket has taken that.
    Ending,
    /// It has ended.
    Ended,
}

/// What the service says when it has handed over what is to be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Handed {
    /// More of what the peer sends is wanted now.
    pub hears: bool,
    /// Nothing follows: the peer is told so, and may go on sending.
    pub is_last: bool,
}

/// All of them.
#[derive(Debug, Default)]
pub(crate) struct Upstreams {
    /// By identity.
    pub(crate) open: Vec<Upstream>,
    /// Where what is to be sent is collected.
    pub(crate) spare: Vec<u8>,
}

/// Bytes of the collecting buffer that are kept; larger ones go back to the allocator.
pub(crate) const SPARE_BYTES_MAX: usize = 256 * 1024;

impl Upstreams {
    pub(crate) fn position(&self, id: UpstreamId) -> std::result::Result<usize, usize> {
        self.open.binary_search_by_key(&id, |it| it.id)
    }

    pub(crate) fn get_mut(&mut self, id: UpstreamId) -> Option<&mut Upstream> {
        let at = self.position(id).ok()?;
        self.open.get_mut(at)
    }

    /// Whether more of what its peer sends is wanted.
    pub(crate) fn hears(&self, id: UpstreamId) -> bool {
        let at = self.position(id);
        at.is_ok_and(|at| self.open[at].interest.contains(Readiness::IN))
    }
}

impl Upstream {
    /// A connected socket, of which the kernel reports what comes.
    pub(crate) fn new(id: UpstreamId, socket: Socket) -> Self {
        Self {
            id,
            socket,
            output: Vec::new(),
            sent: 0,
            is_full: false,
            is_late: false,
            sending: Sending::Open,
            interest: Readiness::IN,
        }
    }

    pub(crate) fn read(&self, inbox: &mut [u8]) -> Result<usize> {
        self.socket.recv(inbox)
    }

    /// Sends what it takes of what is kept and of `more`, and keeps the rest.
    pub(crate) fn write(&mut self, more: &[u8]) -> Result<()> {
        if !self.output.is_empty() {
            self.output.extend_from_slice(more);
            self.sent += self.send(&self.output[self.sent..])?;
            if self.sent == self.output.len() {
                self.output.clear();
                self.output.shrink_to(SPARE_BYTES_MAX);
                self.sent = 0;
            } else if self.sent > self.output.len() / 2 {
                self.output.drain(..self.sent);
                self.sent = 0;
            }
            return Ok(());
        }
        let sent = self.send(more)?;
        self.output.extend_from_slice(&more[sent..]);
        Ok(())
    }

    fn send(&self, bytes: &[u8]) -> Result<usize> {
        if self.is_full || bytes.is_empty() {
            return Ok(0);
        }
        match self.socket.send(bytes) {
            Err(Errno::AGAIN | Errno::INTR) => Ok(0),
            sent => sent,
        }
    }
}

#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests {
    use std::io::Read;
    use std::os::fd::OwnedFd;
    use std::os::unix::net::UnixStream;

    use crate::upstream::*;

    /// Review B4: a large request leaves in order, and what is sent is dropped in pieces of half of what is kept.
    #[test]
    fn large_output_leaves_by_a_cursor() {
        let (ours, mut theirs) = UnixStream::pair().unwrap();
        ours.set_nonblocking(true).unwrap();
        let mut upstream = Upstream::new(1, Socket::from(OwnedFd::from(ours)));
        let sent: Vec<u8> = (0..8_000_000_u32)
            .map(|at| at.to_le_bytes()[at as usize % 3])
            .collect();
        let (first, last) = sent.split_at(7_000_000);
        upstream.write(first).unwrap();
        upstream.write(last).unwrap();
        let (mut received, mut piece, mut moves) = (Vec::new(), vec![0; 64 * 1024], 0);
        while received.len() < sent.len() {
            let n = theirs.read(&mut piece).unwrap();
            received.extend_from_slice(&piece[..n]);
            let before = upstream.output.len();
            upstream.write(&[]).unwrap();
            moves += usize::from(upstream.output.len() != before);
        }
        assert!(received == sent);
        assert!(upstream.output.is_empty());
        assert!(moves <= 24, "the rest was moved {moves} times");
    }
}
