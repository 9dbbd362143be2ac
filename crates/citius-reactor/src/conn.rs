//! One connection: its socket, its protocol, and the bytes that wait to be parsed or written.
//!
//! In: bytes of the client. Out: bytes of responses, and of files. No other file reads from or writes to a client's socket (I4).
//! Tests: `tests/turn.rs`, `tests/files.rs`.

use std::io::IoSlice;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use citius_compress::Streams;
use citius_http::{FileRange, Limits, Millis, Origin, Output};
use citius_observe::Note;
use citius_tls::{Session, Stop, TlsScratch};
use rustix::event::epoll::EventFlags;
use rustix::io::{Errno, Result};
use rustix::net::{RecvFlags, SendAncillaryBuffer, SendFlags, Shutdown};
use smallvec::SmallVec;

use crate::file::File;
use crate::id::{ConnectionId, Peer};
use crate::leaving::Leaving;
use crate::socket::Socket;
use crate::wire::{Protocols, Wire};

/// What becomes of a connection after it was in hand.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    Keep,
    Close,
}

/// Where bytes come from and go to.
#[derive(Debug)]
pub(crate) enum Transport {
    /// A non-blocking socket.
    Socket(OwnedFd),
    /// The same with TLS between it and the protocol.
    Tls(Box<Secured>),
    /// Two buffers, for an owner in the same process.
    Memory(Memory),
}

/// A socket and what makes plaintext of its bytes.
#[derive(Debug)]
pub(crate) struct Secured {
    pub(crate) socket: OwnedFd,
    pub(crate) session: Session,
    /// What the peer has done wrong, for log and counters.
    pub(crate) failure: Option<String>,
}

/// A connection without a kernel.
#[derive(Debug, Default)]
pub(crate) struct Memory {
    pub(crate) incoming: Vec<u8>,
    pub(crate) incoming_ended: bool,
    pub(crate) outgoing: Vec<u8>,
    /// What the owner knows of the client; it counts as a trusted proxy's word.
    pub(crate) origin: Option<Box<Origin>>,
    /// The owner is told of news, and takes what is outgoing before there is much more of it.
    pub(crate) is_told: bool,
    /// Bytes have come out or gone in since the owner was told last.
    pub(crate) has_news: bool,
}

/// How far a connection is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// TLS is agreed on, until this moment; no protocol runs yet.
    Handshaking { until: Millis },
    /// Requests come and responses go.
    Open,
    /// The last response is on its way; no more is read.
    Flushing,
    /// Our side is shut; what still comes is dropped until the peer closes or this moment.
    Lingering { until: Millis },
}

/// One connection.
#[derive(Debug)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "independent facts about one connection"
)]
pub(crate) struct Conn {
    pub(crate) id: ConnectionId,
    pub(crate) transport: Transport,
    pub(crate) peer: Peer,
    /// The peer speaks for its clients.
    pub(crate) is_trusted: bool,
    pub(crate) wire: Wire,
    /// The versions of HTTP that its listener speaks.
    pub(crate) protocols: Protocols,
    pub(crate) phase: Phase,
    /// Bytes that are read but not understood yet: an unfinished head, or what is held back.
    pub(crate) input: Vec<u8>,
    /// `input` waits for the protocol or for the write queue, not for more bytes.
    pub(crate) is_held_back: bool,
    /// Bytes that the socket has not taken yet.
    pub(crate) output: Output,
    /// Since when the socket takes nothing; meaningful while `output` is not empty.
    pub(crate) stalled_since: Millis,
    /// Requests whose responses may be compressed; none without compression.
    pub(crate) codings: Streams,
    /// Requests that have become WebSockets.
    pub(crate) sockets: Vec<Socket>,
    /// Streams that wait for room in `output`.
    pub(crate) rooms: SmallVec<[u32; 2]>,
    /// Requests that are watched and not fully answered.
    pub(crate) notes: SmallVec<[Note; 1]>,
    /// Requests that are watched and fully answered, and whose responses the kernel has not taken all of. As many as
    /// fit the write queue: while that is full no request is taken.
    pub(crate) leaving: Vec<Leaving>,
    /// The fault that ended reading has been told.
    pub(crate) fault_told: bool,
    /// Bytes that the kernel has taken.
    pub(crate) written_bytes: u64,
    /// How many of them have been counted.
    pub(crate) counted_bytes: u64,
    /// It is we who cannot go on with a response: its file gives no more.
    pub(crate) is_cut: bool,
    /// It is on the list of those that go on in the next turn.
    pub(crate) comes_again: bool,
    /// Closing it is a reset.
    pub(crate) resets: bool,
    /// The peer has closed its sending side.
    pub(crate) peer_closed: bool,
    /// The protocol has been told so.
    pub(crate) knows_of_end: bool,
    /// It has sent a request.
    pub(crate) has_asked: bool,
    /// When it is drained although it has not; `Millis::MAX`: not at all.
    pub(crate) drain_at: Millis,
    /// What epoll watches for.
    pub(crate) interest: EventFlags,
    /// When the heap entry of this connection is due; `Millis::MAX`: there is none.
    pub(crate) timer_at: Millis,
}

impl Conn {
    pub(crate) fn new(
        id: ConnectionId,
        transport: Transport,
        peer: Peer,
        wire: Wire,
        now: Millis,
    ) -> Self {
        Self {
            id,
            transport,
            peer,
            is_trusted: false,
            wire,
            protocols: Protocols::default(),
            phase: Phase::Open,
            input: Vec::new(),
            is_held_back: false,
            output: Output::default(),
            stalled_since: now,
            codings: Streams::default(),
            sockets: Vec::new(),
            rooms: SmallVec::new(),
            notes: SmallVec::new(),
            leaving: Vec::new(),
            fault_told: false,
            written_bytes: 0,
            counted_bytes: 0,
            is_cut: false,
            comes_again: false,
            resets: false,
            peer_closed: false,
            knows_of_end: false,
            has_asked: false,
            drain_at: Millis::MAX,
            interest: EventFlags::IN,
            timer_at: Millis::MAX,
        }
    }

    /// Bytes written since this was asked last.
    #[inline]
    pub(crate) fn take_written(&mut self) -> u64 {
        let counted = std::mem::replace(&mut self.counted_bytes, self.written_bytes);
        self.written_bytes.wrapping_sub(counted)
    }

    /// How many bytes will have been written when all are out that are in the queue now.
    #[inline]
    pub(crate) fn end_of_output(&self) -> u64 {
        self.written_bytes.saturating_add(self.output.len() as u64)
    }

    pub(crate) fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        self.socket().map(AsFd::as_fd)
    }

    #[inline]
    fn socket(&self) -> Option<&OwnedFd> {
        match &self.transport {
            Transport::Socket(socket) => Some(socket),
            Transport::Tls(secured) => Some(&secured.socket),
            Transport::Memory(_) => None,
        }
    }

    /// Whether the socket has not taken all there is: responses, or messages of the handshake's.
    #[inline]
    pub(crate) fn wants_write(&self) -> bool {
        !self.output.is_empty()
            || matches!(&self.transport, Transport::Tls(secured) if secured.session.wants_write())
    }

    /// Whether bytes are held back that the protocol would take by now.
    #[inline]
    pub(crate) fn could_go_on(&self, limits: &Limits) -> bool {
        self.is_held_back && !self.input.is_empty() && self.wire.wants_input(limits)
    }

    /// Whether its socket is watched for the peer's end, and not for what the peer sends.
    pub(crate) fn hears_only_the_end(&self) -> bool {
        self.interest.contains(EventFlags::RDHUP)
    }

    /// Whether it lives in memory and its peer has sent what has not been read.
    #[inline]
    pub(crate) fn has_unread_memory(&self) -> bool {
        match &self.transport {
            Transport::Socket(_) | Transport::Tls(_) => false,
            Transport::Memory(memory) => self.phase == Phase::Open && !memory.incoming.is_empty(),
        }
    }

    /// Whether what was read last has the peer's end in it, which no socket will tell again.
    #[inline]
    pub(crate) fn has_heard_the_end(&self) -> bool {
        matches!(&self.transport, Transport::Tls(secured) if secured.session.peer_has_closed())
    }

    /// Reads once. `Ok(0)`: the peer has closed its side.
    ///
    /// # Errors
    /// The socket's; `EPROTO` if TLS has failed, `EPROTONOSUPPORT` if the peer does not speak it.
    #[inline]
    pub(crate) fn read(&mut self, buffer: &mut [u8], scratch: &mut TlsScratch) -> Result<usize> {
        match &mut self.transport {
            Transport::Tls(secured) => secured.read(buffer, scratch),
            Transport::Socket(socket) => {
                rustix::net::recv(socket, buffer, RecvFlags::empty()).map(|(_, n)| n)
            }
            Transport::Memory(memory) => {
                let n = memory.incoming.len().min(buffer.len());
                buffer[..n].copy_from_slice(&memory.incoming[..n]);
                memory.incoming.drain(..n);
                memory.has_news |= n > 0;
                if n == 0 && !memory.incoming_ended {
                    Err(Errno::AGAIN)
                } else {
                    Ok(n)
                }
            }
        }
    }

    /// Reads once and drops what comes, whatever it means. `Ok(0)`: the peer has closed its side.
    pub(crate) fn discard(&mut self, buffer: &mut [u8]) -> Result<usize> {
        match &mut self.transport {
            // Its owner takes the response later, as a socket's peer may.
            Transport::Memory(memory) if !memory.incoming_ended => {
                memory.incoming.clear();
                Err(Errno::AGAIN)
            }
            Transport::Memory(_) => Ok(0),
            Transport::Socket(_) | Transport::Tls(_) => match self.socket() {
                Some(socket) => {
                    rustix::net::recv(socket, buffer, RecvFlags::empty()).map(|(_, n)| n)
                }
                None => Ok(0),
            },
        }
    }

    /// Writes what the socket takes. `Ok(true)`: everything is out.
    ///
    /// # Errors
    /// The socket's; the file's, `ENODATA` for one that ended too early, if a file comes next.
    #[inline]
    pub(crate) fn flush(&mut self, now: Millis, scratch: &mut TlsScratch) -> Result<bool> {
        let mut file_bytes_max = FILE_BYTES_PER_FLUSH;
        while self.wants_write() {
            match self.write_once(&mut file_bytes_max, scratch) {
                Ok(n) => {
                    self.output.advance(n);
                    self.written_bytes += n as u64;
                    self.stalled_since = now;
                }
                Err(Errno::AGAIN) => {
                    // The wait begins now, not with the last write that went through.
                    if !self.interest.contains(EventFlags::OUT) {
                        self.stalled_since = now;
                    }
                    return Ok(false);
                }
                Err(Errno::INTR) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(true)
    }

    fn write_once(&mut self, file_bytes_max: &mut u64, scratch: &mut TlsScratch) -> Result<usize> {
        match (&mut self.transport, self.output.single()) {
            (Transport::Tls(secured), _) => secured.write(&self.output, file_bytes_max, scratch),
            (Transport::Socket(socket), Some(bytes)) => {
                rustix::net::send(socket, bytes, SendFlags::NOSIGNAL)
            }
            (Transport::Socket(socket), None) => match self.output.file() {
                Some(range) => send_file(socket, range, file_bytes_max),
                None => send_pieces(socket, &self.output),
            },
            (Transport::Memory(memory), _) => {
                let before = memory.outgoing.len();
                if memory.is_told && before >= MEMORY_BYTES_MAX {
                    return Err(Errno::AGAIN);
                }
                memory.has_news = true;
                for piece in self.output.pieces() {
                    memory.outgoing.extend_from_slice(piece);
                }
                if let (Some(range), true) = (self.output.file(), memory.outgoing.len() == before) {
                    memory.outgoing.extend_from_slice(&read_file(range)?);
                }
                Ok(memory.outgoing.len() - before)
            }
        }
    }

    /// Ends the connection in both directions, even if another process holds its socket.
    pub(crate) fn shut_down(&mut self) {
        self.say_goodbye();
        if let Some(socket) = self.socket() {
            // A peer that is gone already needs no telling.
            let _ = rustix::net::shutdown(socket, Shutdown::Both);
        }
    }

    /// Tells the peer that nothing more will come.
    pub(crate) fn shut_down_write(&mut self) {
        self.say_goodbye();
        if let Some(socket) = self.socket() {
            // A peer that is gone already needs no telling.
            let _ = rustix::net::shutdown(socket, Shutdown::Write);
        }
    }

    /// Tells a peer of TLS that it has got everything, if it has: what ends without this was cut.
    fn say_goodbye(&mut self) {
        if let Transport::Tls(secured) = &mut self.transport
            && self.output.is_empty()
            && self.wire.streams_open() == 0
        {
            let words = secured.session.close();
            if !words.is_empty() {
                // A socket that takes no more has a peer that has not read all.
                let _ = rustix::net::send(&secured.socket, &words, SendFlags::NOSIGNAL);
            }
        }
    }

    /// Makes closing a reset, so that a client sees the cut instead of an end.
    pub(crate) fn reset_on_close(&mut self) {
        self.resets = true;
        if let Some(socket) = self.socket() {
            let at_once = Some(std::time::Duration::ZERO);
            // If it fails the client sees an orderly close in the middle of a message, which is a cut too.
            let _ = rustix::net::sockopt::set_socket_linger(socket, at_once);
        }
    }
}

impl Secured {
    /// Reads once and deciphers. Nothing may come of it (`EAGAIN`): half a record, or a message of the handshake's.
    fn read(&mut self, buffer: &mut [u8], scratch: &mut TlsScratch) -> Result<usize> {
        let (socket, mut has_ended) = (&self.socket, false);
        let read = self.session.receive(scratch, buffer, |room| {
            let n = rustix::net::recv(socket, room, RecvFlags::empty())?.1;
            has_ended = n == 0;
            Ok(n)
        });
        match read {
            Ok(0) if has_ended || self.session.peer_has_closed() => Ok(0),
            Ok(0) => Err(Errno::AGAIN),
            Ok(n) => Ok(n),
            Err(Stop::Io(error)) => Err(error),
            Err(Stop::ClearText) => Err(Errno::PROTONOSUPPORT),
            Err(Stop::Failed(failure)) => {
                self.failure = Some(failure.to_string());
                // The alert; a client that does not take it now loses nothing.
                let _ = self.write_some(&[], scratch);
                Err(Errno::PROTO)
            }
        }
    }

    /// Seals what comes next of `output` and sends it; returns how much of it is sent in full.
    fn write(
        &mut self,
        output: &Output,
        file_bytes_max: &mut u64,
        scratch: &mut TlsScratch,
    ) -> Result<usize> {
        if let Some(range) = output.file() {
            if !self.session.is_sending() {
                if *file_bytes_max == 0 {
                    return Err(Errno::AGAIN);
                }
                let bytes = read_file(range)?;
                *file_bytes_max = file_bytes_max.saturating_sub(bytes.len() as u64);
                return self.write_some(&[&bytes], scratch);
            }
            return self.write_some(&[], scratch);
        }
        if let Some(bytes) = output.single() {
            return self.write_some(&[bytes], scratch);
        }
        let pieces: SmallVec<[&[u8]; 8]> = output.pieces().take(PIECES_MAX).collect();
        self.write_some(&pieces, scratch)
    }

    fn write_some(&mut self, pieces: &[&[u8]], scratch: &mut TlsScratch) -> Result<usize> {
        let socket = &self.socket;
        let sent = self
            .session
            .transmit(scratch, pieces.iter().copied(), |sealed| {
                rustix::net::send(socket, sealed, SendFlags::NOSIGNAL)
            });
        sent.map_err(|stop| match stop {
            Stop::Io(error) => error,
            Stop::Failed(_) | Stop::ClearText => Errno::PROTO,
        })
    }
}

/// Bytes of files that one flush may send. A reader as fast as we are could otherwise keep a turn busy
/// with one file, and a slow disk make it wait for more than that.
const FILE_BYTES_PER_FLUSH: u64 = 256 * 1024;
/// Bytes read at once of a file that cannot be sent by the kernel.
const FILE_BYTES_PER_READ: u64 = 64 * 1024;
/// Bytes in memory that an owner has not taken, beyond which no more are written; a socket's buffer is about as large.
const MEMORY_BYTES_MAX: usize = 64 * 1024;
/// Pieces given to the kernel at once; more wait for the next round.
const PIECES_MAX: usize = 64;

/// Sends bytes gathered from several places, up to the next that are of a file.
fn send_pieces(socket: &OwnedFd, output: &Output) -> Result<usize> {
    let pieces: SmallVec<[IoSlice<'_>; 8]> =
        output.pieces().take(PIECES_MAX).map(IoSlice::new).collect();
    let mut flags = SendFlags::NOSIGNAL;
    // The head shall not travel in a packet of its own when the file follows at once.
    flags.set(SendFlags::MORE, output.has_file());
    let mut control = SendAncillaryBuffer::default();
    rustix::net::sendmsg(socket, &pieces, &mut control, flags)
}

/// Sends bytes of a file, and takes them off `bytes_max`; once that is used up the socket is as good as full.
fn send_file(socket: &OwnedFd, range: &FileRange, bytes_max: &mut u64) -> Result<usize> {
    let count = range.len().min(*bytes_max);
    if count == 0 {
        return Err(Errno::AGAIN);
    }
    let file = file_of(range)?;
    let mut sent = Err(Errno::INVAL);
    if !file.must_be_read() {
        let (mut offset, count) = (range.offset(), usize::try_from(count).unwrap_or(usize::MAX));
        sent = match rustix::fs::sendfile(socket, file, Some(&mut offset), count) {
            // The file has become shorter since its length was promised.
            Ok(0) => return Err(Errno::NODATA),
            sent => sent,
        };
    }
    if let Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) = sent {
        file.set_must_be_read();
        sent = rustix::net::send(socket, &read_file(range)?, SendFlags::NOSIGNAL);
    }
    let n = sent?;
    *bytes_max = bytes_max.saturating_sub(n as u64);
    Ok(n)
}

/// The next bytes of a file.
pub(crate) fn read_file(range: &FileRange) -> Result<Vec<u8>> {
    let count = range.len().min(FILE_BYTES_PER_READ);
    let mut bytes = vec![0; usize::try_from(count).unwrap_or_default()];
    file_of(range)?.read_exact(range.offset(), &mut bytes)?;
    Ok(bytes)
}

/// What is open behind a range; only [`File`] makes ranges for this reactor.
pub(crate) fn file_of(range: &FileRange) -> Result<&File> {
    range.handle().ok_or(Errno::BADF)
}
