//! One connection: what carries its bytes, its protocol, and the bytes that wait to be parsed or written.
//!
//! In: bytes of the client. Out: bytes of responses, and of files. No other file reads from or writes to a client's stream (I4).
//! Tests: `tests/turn.rs`, `tests/files.rs`, `tests/hosted.rs`.

use citius_compress::Streams;
use citius_http::{FileRange, Limits, Millis, Output};
use citius_observe::Note;
use citius_tls::{Session, Stop, TlsScratch};
use smallvec::SmallVec;

use crate::carrier::Carrier;
use crate::file::File;
use crate::id::{ConnectionId, Peer};
use crate::leaving::Leaving;
use crate::readiness::Readiness;
use crate::socket::Socket as WebSocket;
use crate::stream::{Memory, Stream};
use crate::system::{Errno, Result, Socket, send_file};
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
    /// What carries the bytes, as it is.
    Plain(Stream),
    /// What carries the bytes, with TLS between it and the protocol.
    Tls(Box<Secured>),
    /// A connection of QUIC, which has streams of its own.
    Quic(Box<Carrier>),
}

/// A stream and what makes plaintext of its bytes.
#[derive(Debug)]
pub(crate) struct Secured {
    pub(crate) stream: Stream,
    pub(crate) session: Session,
    /// What the peer has done wrong, for log and counters.
    pub(crate) failure: Option<String>,
}

/// How far a connection is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// A header of the PROXY protocol has to come, until this moment; then TLS begins, if it is secured.
    AwaitingProxyHeader { until: Millis, is_secured: bool },
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
    /// The address that the client has reached, if a PROXY header has stated it.
    pub(crate) stated_local: Option<Box<Peer>>,
    /// The peer speaks for its clients.
    pub(crate) is_trusted: bool,
    /// The port of HTTPS that its requests are redirected to; 0: they are served.
    pub(crate) redirect_port: u16,
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
    pub(crate) sockets: Vec<WebSocket>,
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
    /// The peer takes nothing.
    pub(crate) is_stalled: bool,
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
    /// What the poller watches for.
    pub(crate) interest: Readiness,
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
            stated_local: None,
            is_trusted: false,
            redirect_port: 0,
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
            is_stalled: false,
            comes_again: false,
            resets: false,
            peer_closed: false,
            knows_of_end: false,
            has_asked: false,
            drain_at: Millis::MAX,
            interest: Readiness::IN,
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

    /// What carries its bytes; none does for itself alone where there are datagrams.
    #[inline]
    fn stream(&self) -> Option<&Stream> {
        match &self.transport {
            Transport::Plain(stream) => Some(stream),
            Transport::Tls(secured) => Some(&secured.stream),
            Transport::Quic(_) => None,
        }
    }

    fn stream_mut(&mut self) -> Option<&mut Stream> {
        match &mut self.transport {
            Transport::Plain(stream) => Some(stream),
            Transport::Tls(secured) => Some(&mut secured.stream),
            Transport::Quic(_) => None,
        }
    }

    /// The address that the client has reached.
    pub(crate) fn local(&self) -> Peer {
        if let Some(stated) = &self.stated_local {
            return **stated;
        }
        match &self.transport {
            Transport::Quic(carrier) => Peer::Internet(carrier.local()),
            Transport::Plain(_) | Transport::Tls(_) => {
                self.stream().map_or(Peer::Local, Stream::local)
            }
        }
    }

    /// Its QUIC connection, if it is one.
    #[inline]
    pub(crate) fn is_quic(&self) -> bool {
        matches!(self.transport, Transport::Quic(_))
    }

    /// Its socket, unless something else carries its bytes.
    #[inline]
    pub(crate) fn socket(&self) -> Option<&Socket> {
        match self.stream()? {
            Stream::Socket(socket) => Some(socket),
            Stream::Memory(_) => None,
        }
    }

    /// Its buffers, if they are what carries its bytes.
    #[inline]
    pub(crate) fn memory(&self) -> Option<&Memory> {
        match self.stream()? {
            Stream::Socket(_) => None,
            Stream::Memory(memory) => Some(memory),
        }
    }

    pub(crate) fn memory_mut(&mut self) -> Option<&mut Memory> {
        match self.stream_mut()? {
            Stream::Socket(_) => None,
            Stream::Memory(memory) => Some(memory),
        }
    }

    /// Whether a client is at the other end of a socket, whose bytes may be under way.
    pub(crate) fn is_remote(&self) -> bool {
        self.memory().is_none_or(|memory| memory.remote.is_some())
    }

    /// Whether the socket has not taken all there is: responses, or messages of the handshake's.
    #[inline]
    pub(crate) fn wants_write(&self) -> bool {
        !self.output.is_empty()
            || match &self.transport {
                Transport::Plain(_) => false,
                Transport::Tls(secured) => secured.session.wants_write(),
                Transport::Quic(carrier) => !carrier.blocked.is_empty(),
            }
    }

    /// Whether bytes are held back that the protocol would take by now.
    #[inline]
    pub(crate) fn could_go_on(&self, limits: &Limits) -> bool {
        self.is_held_back && !self.input.is_empty() && self.wire.wants_input(limits)
    }

    /// Whether its socket is watched for the peer's end, and not for what the peer sends.
    pub(crate) fn hears_only_the_end(&self) -> bool {
        self.interest.contains(Readiness::RDHUP)
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
            Transport::Plain(stream) => stream.recv(buffer),
            // Its datagrams come by the reactor's socket.
            Transport::Quic(_) => Err(Errno::AGAIN),
        }
    }

    /// Reads once what the stream carries, and leaves it there. `Ok(0)`: the peer has closed its side.
    pub(crate) fn peek(&mut self, buffer: &mut [u8]) -> Result<usize> {
        self.stream_mut()
            .map_or(Err(Errno::AGAIN), |stream| stream.peek(buffer))
    }

    /// Reads once and drops what comes, whatever it means. `Ok(0)`: the peer has closed its side.
    pub(crate) fn discard(&mut self, buffer: &mut [u8]) -> Result<usize> {
        self.stream_mut()
            .map_or(Ok(0), |stream| stream.discard(buffer))
    }

    /// Writes what the stream takes. `Ok(true)`: everything is out.
    ///
    /// # Errors
    /// The stream's; the file's, `ENODATA` for one that ended too early, if a file comes next.
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
                    if !self.interest.contains(Readiness::OUT) {
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
            (Transport::Plain(Stream::Socket(socket)), Some(bytes)) => socket.send(bytes),
            (Transport::Plain(Stream::Socket(socket)), None) => match self.output.file() {
                Some(range) => send_range(socket, range, file_bytes_max),
                None => socket.send_pieces(&self.output),
            },
            (Transport::Plain(Stream::Memory(memory)), _) => memory.send_output(&self.output),
            // Its output is in the streams of its protocol.
            (Transport::Quic(_), _) => Err(Errno::AGAIN),
        }
    }

    /// Whether its bytes pass through to another server as they are: each side ends when its peer has.
    #[inline]
    pub(crate) fn passes_through(&self) -> bool {
        self.wire.is_tunnel() && self.sockets.is_empty()
    }

    /// Whether something is still to be sent to a peer that has closed its side.
    pub(crate) fn owes_responses(&self) -> bool {
        self.wire.owes_responses() || self.passes_through()
    }

    /// Ends the connection in both directions, even if another process holds its socket.
    pub(crate) fn shut_down(&mut self) {
        self.say_goodbye();
        if let Some(socket) = self.socket() {
            socket.shut_down();
        }
    }

    /// Tells the peer that nothing more will come.
    pub(crate) fn shut_down_write(&mut self) {
        self.say_goodbye();
        self.shut_down_stream();
    }

    /// The same in a tunnel, in which the peer may go on sending.
    pub(crate) fn end_output(&mut self) {
        self.announce_end();
        self.shut_down_stream();
    }

    fn shut_down_stream(&mut self) {
        if let Some(stream) = self.stream_mut() {
            stream.shut_down_write();
        }
    }

    /// Tells a peer of TLS that it has got everything, if it has: what ends without this was cut.
    fn say_goodbye(&mut self) {
        if self.output.is_empty() && self.wire.streams_open() == 0 {
            self.announce_end();
        }
    }

    fn announce_end(&mut self) {
        if let Transport::Tls(secured) = &mut self.transport {
            let words = secured.session.close();
            if !words.is_empty() {
                // A socket that takes no more has a peer that has not read all.
                let _ = secured.stream.send(&words);
            }
        }
    }

    /// Makes closing a reset, so that a client sees the cut instead of an end.
    pub(crate) fn reset_on_close(&mut self) {
        self.resets = true;
        if let Some(socket) = self.socket() {
            socket.reset_on_close();
        }
    }
}

impl Secured {
    /// Reads once and deciphers. Nothing may come of it (`EAGAIN`): half a record, or a message of the handshake's.
    fn read(&mut self, buffer: &mut [u8], scratch: &mut TlsScratch) -> Result<usize> {
        let (stream, mut has_ended) = (&mut self.stream, false);
        let read = self.session.receive(scratch, buffer, |room| {
            let n = stream.recv(room)?;
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
        let stream = &mut self.stream;
        let sent = self
            .session
            .transmit(scratch, pieces.iter().copied(), |sealed| {
                stream.send(sealed)
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
/// Pieces sealed at once; more wait for the next round.
const PIECES_MAX: usize = 64;

/// Sends bytes of a file, and takes them off `bytes_max`; once that is used up the socket is as good as full.
fn send_range(socket: &Socket, range: &FileRange, bytes_max: &mut u64) -> Result<usize> {
    let count = range.len().min(*bytes_max);
    if count == 0 {
        return Err(Errno::AGAIN);
    }
    let file = file_of(range)?;
    let mut sent = Err(Errno::INVAL);
    if !file.must_be_read() {
        sent = send_file(socket, file.as_std(), range.offset(), count);
    }
    if sent == Err(Errno::INVAL) {
        file.set_must_be_read();
        sent = socket.send(&read_file(range)?);
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
