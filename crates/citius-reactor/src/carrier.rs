//! A QUIC connection below its protocol: streams and datagrams in both directions, between `quinn-proto` and HTTP/3.
//!
//! In: events of the connection. Out: bytes of streams that HTTP/3 has a use for, and bytes of responses that QUIC takes. What
//! neither side wants now stays where it is, so that a client is held back by the windows of its streams. Datagrams of the
//! network are `quic.rs`'s. Tests: `tests/http3/`.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use citius_h3::{Outgoing, Taken, Token};
use citius_http::Tls;
use citius_observe::Note;
use citius_quic::{
    Allowance, Begun, Connection, ConnectionError, ConnectionEvent, Dir, Elsewhere, Event, Handle,
    ReadError, StreamEvent, StreamId, Transmit, VarInt, WriteError,
};
use smallvec::SmallVec;

use crate::conn::read_file;
use crate::system::{DatagramSocket, Errno, exact_instant};

/// Bytes of one stream that are passed on before others have their turn.
const READ_BYTES_MAX: usize = 64 * 1024;

/// How long an address may take to be proven; one that takes longer is not believed. quinn gives up later, after three times
/// its timeout for probes, which is a second on a new path: until then packets without a challenge show that it was answered.
const PROOF_MAX: Duration = Duration::from_secs(2);

/// An address that packets come from, which anyone can write: it is the client's once it has answered a challenge there (RFC 9000
/// §8.2, §9.3).
#[derive(Clone, Copy)]
struct Moving {
    to: SocketAddr,
    since: Instant,
}

/// What is counted of the WebTransport sessions of one connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counted {
    pub(crate) sessions: u64,
    pub(crate) streams: u64,
}

/// A call without a response: its stream, and what is noted of it. The note has the number of the session's request.
pub(crate) type OpenCall = (u64, Note);

/// One QUIC connection.
pub(crate) struct Carrier {
    pub(crate) connection: Connection,
    pub(crate) handle: Handle,
    /// The number of the socket that its datagrams go by.
    pub(crate) socket: u32,
    /// The address of that socket.
    bound: SocketAddr,
    /// What has come for it and is not taken.
    pub(crate) arrived: Vec<ConnectionEvent>,
    /// It is on the list of those that something has come for.
    pub(crate) is_active: bool,
    /// It is being served: found set when the connection ends, that was a panic, and its state is not to be relied on.
    pub(crate) is_in_hand: bool,
    /// Streams with something to read, or an end.
    readable: VecDeque<StreamId>,
    /// Streams of which the client reads no more, with its codes; HTTP/3 is told once it has read what came before.
    pub(crate) stopped: Vec<(u64, u64)>,
    /// Streams that are to be opened when the client allows it. Those of one direction do not wait for those of the other.
    pub(crate) uni_to_open: VecDeque<Token>,
    pub(crate) bi_to_open: VecDeque<Token>,
    /// Streams of the server's own that are open for as long as the connection is.
    own_streams: usize,
    /// Streams of which QUIC takes no more now.
    pub(crate) blocked: SmallVec<[u64; 4]>,
    /// A run of datagrams that the socket has not taken.
    pub(crate) unsent: Option<(Transmit, Vec<u8>)>,
    /// When its timer is due, in nanoseconds of the monotonic clock; `u64::MAX`: it has none.
    pub(crate) timer_at: u64,
    /// What the handshake has agreed on; `None` until it is over.
    pub(crate) facts: Option<Arc<Tls>>,
    /// It carries calls, not HTTP/3.
    pub(crate) is_rpc: bool,
    /// What the client may be sent while the handshake goes on.
    pub(crate) allowance: Allowance,
    /// What may be sent to addresses that are not the client's.
    pub(crate) elsewhere: Elsewhere,
    /// Datagrams that one call may send to the client, as far as is known of the way to it.
    pub(crate) run_max: usize,
    /// Where the client may have gone.
    moving: Option<Moving>,
    /// How it is closed, if HTTP/3 has said so.
    pub(crate) closes_with: Option<(u64, &'static str)>,
    /// Bytes of streams that have come, and are not counted yet.
    pub(crate) received_bytes: u64,
    /// Calls on streams of sessions, without a response.
    pub(crate) calls: Vec<OpenCall>,
    /// What of its sessions is among the metrics.
    pub(crate) counted: Counted,
}

impl std::fmt::Debug for Carrier {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Carrier")
            .field("handle", &self.handle)
            .field("readable", &self.readable)
            .field("blocked", &self.blocked)
            .finish_non_exhaustive()
    }
}

/// What has happened to a connection, as far as others have to do something about it.
pub(crate) enum Happened {
    /// The handshake is over.
    Connected,
    /// A stream takes bytes again.
    Writable(u64),
    /// Datagrams wait.
    Datagrams,
    /// The connection is over.
    Lost(ConnectionError),
}

/// What there is of a stream.
#[derive(Default)]
pub(crate) struct Read {
    pub(crate) chunks: SmallVec<[Bytes; 4]>,
    pub(crate) fin: bool,
    pub(crate) reset: Option<u64>,
}

impl Carrier {
    pub(crate) fn new(begun: Begun, bound: SocketAddr) -> Self {
        let Begun {
            handle,
            connection,
            socket,
            allowance,
        } = begun;
        Self {
            connection: *connection,
            handle,
            socket,
            bound,
            allowance,
            elsewhere: Elsewhere::default(),
            run_max: usize::MAX,
            arrived: Vec::new(),
            is_active: false,
            is_in_hand: false,
            readable: VecDeque::new(),
            stopped: Vec::new(),
            uni_to_open: VecDeque::new(),
            bi_to_open: VecDeque::new(),
            own_streams: 0,
            blocked: SmallVec::new(),
            unsent: None,
            timer_at: u64::MAX,
            facts: None,
            is_rpc: false,
            moving: None,
            closes_with: None,
            received_bytes: 0,
            calls: Vec::new(),
            counted: Counted::default(),
        }
    }

    /// The address that the client has reached.
    pub(crate) fn local(&self) -> SocketAddr {
        let mut local = self.bound;
        if let Some(ip) = self.connection.local_ip() {
            local.set_ip(ip);
        }
        local
    }

    /// Another address of the client than `known` which needs no proof: another port, as behind a NAT that has forgotten. Takes
    /// note of one that does.
    #[inline]
    pub(crate) fn moved(&mut self, known: Option<SocketAddr>) -> Option<SocketAddr> {
        let remote = self.connection.remote_address();
        if known == Some(remote) {
            self.moving = None;
            return None;
        }
        if known.is_none_or(|known| known.ip() == remote.ip()) {
            self.moving = None;
            return Some(remote);
        }
        if self.moving.is_none_or(|moving| moving.to != remote) {
            self.moving = Some(Moving {
                to: remote,
                since: exact_instant(),
            });
        }
        None
    }

    /// How many datagrams one call may send. Of a run that is not allowed as a whole, the first datagrams would be.
    #[inline]
    pub(crate) fn run_max(&self) -> usize {
        if self.allowance.is_limited() || self.moving.is_some() {
            1
        } else {
            self.run_max
        }
    }

    /// Sends a run of datagrams. `false`: there is no room, and it is kept.
    pub(crate) fn send(
        &mut self,
        socket: &DatagramSocket,
        transmit: Transmit,
        bytes: &[u8],
    ) -> bool {
        match socket.transmit(&transmit, bytes) {
            Err(Errno::AGAIN) => {
                self.unsent = Some((transmit, bytes.to_vec()));
                return false;
            }
            Ok(false) => self.run_max = 1,
            Ok(true) | Err(_) => {}
        }
        true
    }

    /// Whether a datagram may leave, whose client is known at `known`; `challenges` is what there was before it was made.
    pub(crate) fn may_send(
        &mut self,
        transmit: &Transmit,
        known: Option<SocketAddr>,
        challenges: Option<u64>,
        now: Instant,
    ) -> bool {
        if !self.allowance.spend(transmit.size) {
            return false;
        }
        let to = transmit.destination;
        if known.is_none_or(|known| known.ip() == to.ip()) {
            return true;
        }
        // Without a challenge the path is quinn's to bound: it was answered late, or given up.
        let is_bounded = to != self.connection.remote_address() || self.challenges() != challenges;
        !is_bounded || self.elsewhere.spend(to.ip(), transmit.size, now)
    }

    /// Packets so far that say nothing of the address that the client may have gone to: those with a challenge, and probes of
    /// the size of packets, which have none.
    #[inline]
    pub(crate) fn challenges(&self) -> Option<u64> {
        self.moving?;
        let stats = self.connection.stats();
        Some(stats.frame_tx.path_challenge + stats.path.sent_plpmtud_probes)
    }

    /// The address that the client has proven: `transmit` goes there, and no challenge was sent since there were `challenges`.
    pub(crate) fn proven(
        &mut self,
        challenges: Option<u64>,
        transmit: &Transmit,
        now: Instant,
    ) -> Option<SocketAddr> {
        let moving = self.moving?;
        let is_proven = transmit.destination == moving.to
            && self.challenges() == challenges
            && now.saturating_duration_since(moving.since) < PROOF_MAX
            && !self.connection.is_closed();
        is_proven.then(|| {
            self.moving = None;
            self.elsewhere.proven();
            self.run_max = usize::MAX;
            moving.to
        })
    }

    /// The next thing that has happened.
    pub(crate) fn happened(&mut self) -> Option<Happened> {
        while let Some(event) = self.connection.poll() {
            return Some(match event {
                Event::Connected => {
                    self.allowance.lift();
                    if let Some(agreed) = citius_quic::agreed(&self.connection) {
                        self.facts = agreed.tls;
                        self.is_rpc = agreed.protocol.as_deref() == Some(citius_rpc::PROTOCOL);
                    }
                    Happened::Connected
                }
                Event::ConnectionLost { reason } => Happened::Lost(reason),
                Event::Stream(StreamEvent::Opened { dir }) => {
                    while let Some(stream) = self.connection.streams().accept(dir) {
                        self.readable.push_back(stream);
                    }
                    continue;
                }
                Event::Stream(StreamEvent::Readable { id }) => {
                    if !self.readable.contains(&id) {
                        self.readable.push_back(id);
                    }
                    continue;
                }
                Event::Stream(StreamEvent::Writable { id }) => {
                    self.unblock(id.into());
                    Happened::Writable(id.into())
                }
                Event::Stream(StreamEvent::Stopped { id, error_code }) => {
                    self.unblock(id.into());
                    // RFC 9000 §3.5: whatever becomes of the request. One that is reset already stays so.
                    let _ = self.connection.send_stream(id).reset(error_code);
                    self.stopped.push((id.into(), error_code.into_inner()));
                    continue;
                }
                Event::DatagramReceived => Happened::Datagrams,
                Event::Stream(StreamEvent::Finished { .. } | StreamEvent::Available { .. })
                | Event::HandshakeDataReady
                | Event::DatagramsUnblocked => continue,
            });
        }
        None
    }

    /// The next of the streams with something to read, of which `appetite` says how much is wanted. Others keep their place.
    pub(crate) fn next_readable(
        &mut self,
        mut appetite: impl FnMut(u64) -> usize,
    ) -> Option<(StreamId, usize)> {
        for _ in 0..self.readable.len() {
            let stream = self.readable.pop_front()?;
            let wanted = appetite(stream.into());
            if wanted > 0 {
                return Some((stream, wanted));
            }
            self.readable.push_back(stream);
        }
        None
    }

    /// Reads `wanted` bytes of a stream at most; what has more is read again later.
    pub(crate) fn read(&mut self, stream: StreamId, wanted: usize) -> Read {
        let mut read = Read::default();
        let mut left = wanted.min(READ_BYTES_MAX);
        let mut of_stream = self.connection.recv_stream(stream);
        // A stream that is closed was stopped by us, or has been read to its end.
        let Ok(mut chunks) = of_stream.read(true) else {
            return read;
        };
        let has_more = loop {
            match chunks.next(left) {
                Ok(Some(chunk)) => {
                    left -= chunk.bytes.len();
                    self.received_bytes += chunk.bytes.len() as u64;
                    read.chunks.push(chunk.bytes);
                    if left == 0 {
                        break true;
                    }
                }
                Ok(None) => {
                    read.fin = true;
                    break false;
                }
                Err(ReadError::Blocked) => break false,
                Err(ReadError::Reset(code)) => {
                    read.reset = Some(code.into_inner());
                    break false;
                }
            }
        };
        // What this has changed about windows is seen when datagrams are made.
        let _ = chunks.finalize();
        if has_more {
            self.readable.push_back(stream);
        }
        read
    }

    /// Takes what it can of `outgoing`; returns that, and how many bytes it was.
    ///
    /// # Errors
    /// A file's, of which the response is cut; `ECANCELED`: the client has stopped the stream.
    pub(crate) fn write(
        &mut self,
        stream: u64,
        outgoing: &Outgoing<'_>,
        file_bytes_max: &mut u64,
    ) -> Result<(Taken, usize), Errno> {
        let Ok(number) = VarInt::from_u64(stream) else {
            return Err(Errno::CANCELED);
        };
        let mut of_stream = self.connection.send_stream(StreamId::from(number));
        let mut written = 0;
        let mut is_blocked = false;
        let mut write = |bytes: &[u8]| -> Result<bool, Errno> {
            let mut rest = bytes;
            while !rest.is_empty() {
                match of_stream.write(rest) {
                    Ok(n) => {
                        written += n;
                        rest = rest.get(n..).unwrap_or_default();
                    }
                    Err(WriteError::Blocked) => {
                        is_blocked = true;
                        return Ok(false);
                    }
                    Err(WriteError::Stopped(_) | WriteError::ClosedStream) => {
                        return Err(Errno::CANCELED);
                    }
                }
            }
            Ok(true)
        };
        if let Some(range) = outgoing.output.file() {
            if *file_bytes_max == 0 {
                return Ok((Taken::Some(0), 0));
            }
            let bytes = read_file(range)?;
            *file_bytes_max = file_bytes_max.saturating_sub(bytes.len() as u64);
            write(&bytes)?;
        } else {
            for piece in outgoing.output.pieces() {
                if !write(piece)? {
                    break;
                }
            }
        }
        if is_blocked {
            self.blocked.push(stream);
            return Ok((Taken::Blocked(written), written));
        }
        if written < outgoing.output.len() {
            return Ok((Taken::Some(written), written));
        }
        if outgoing.fin {
            // A stream that is stopped in this moment has no end to tell.
            let _ = of_stream.finish();
        }
        Ok((Taken::All, written))
    }

    /// Opens the next of the streams that wait for it, if the client allows it by now.
    pub(crate) fn open_next(&mut self) -> Option<(Token, u64)> {
        let mut streams = self.connection.streams();
        let queues = [
            (Dir::Uni, &mut self.uni_to_open),
            (Dir::Bi, &mut self.bi_to_open),
        ];
        let (token, stream) = queues.into_iter().find_map(|(dir, queue)| {
            let token = *queue.front()?;
            let stream = streams.open(dir)?;
            queue.pop_front();
            Some((token, stream))
        })?;
        if !matches!(token, Token::Session(_)) {
            self.own_streams += 1;
        }
        Some((token, stream.into()))
    }

    /// Opens none of these streams of sessions any more, whose numbers are in order.
    pub(crate) fn forget(&mut self, numbers: &[u32]) {
        for queue in [&mut self.uni_to_open, &mut self.bi_to_open] {
            queue.retain(|token| match token {
                Token::Session(number) => numbers.binary_search(number).is_err(),
                Token::Control | Token::Decoder => true,
            });
        }
    }

    /// Asks the client to send no more on a stream.
    pub(crate) fn stop(&mut self, stream: u64, code: u64) {
        if let (Ok(stream), Ok(code)) = (VarInt::from_u64(stream), VarInt::from_u64(code)) {
            let stream = StreamId::from(stream);
            // It is over already.
            let _ = self.connection.recv_stream(stream).stop(code);
            self.readable.retain(|&other| other != stream);
        }
    }

    fn unblock(&mut self, stream: u64) {
        self.blocked.retain(|other| *other != stream);
    }

    /// Resets our side of a stream.
    pub(crate) fn reset(&mut self, stream: u64, code: u64) {
        self.unblock(stream);
        if let (Ok(stream), Ok(code)) = (VarInt::from_u64(stream), VarInt::from_u64(code)) {
            // It is over already.
            let _ = self
                .connection
                .send_stream(StreamId::from(stream))
                .reset(code);
        }
    }

    /// Whether the client has acknowledged all responses.
    pub(crate) fn has_delivered(&mut self) -> bool {
        self.connection.streams().send_streams() <= self.own_streams
    }
}
