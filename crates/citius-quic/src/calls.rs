//! A connection of RPC without HTTP/3, client side: each call on a stream of its own.
//!
//! In: requests and datagrams. Out: responses and datagrams. Wire: docs/guides/rpc.md. Tests: `tests/rpc/test_quic.py`.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Instant;

use bytes::{Bytes, BytesMut};
use citius_tls::Client;
use quinn_proto::crypto::rustls::QuicClientConfig;
use quinn_proto::{
    ClientConfig, Connection, ConnectionError, ConnectionHandle, DatagramEvent, Dir, Endpoint,
    EndpointConfig, Event, ReadError, StreamEvent, StreamId, TransportConfig, VarInt,
};
use ring::{hmac, rand::SystemRandom};

/// Application error codes: those of HTTP/3 (RFC 9114 §8.1).
const NO_ERROR: u32 = 0x100;
const REJECTED: u32 = 0x10b;
const CANCELLED: u32 = 0x10c;

/// How a connection has ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CallsEnd {
    /// The server has taken leave: calls without a response were not executed.
    Goodbye,
    /// It is lost, for this reason.
    Lost(String),
}

/// A message on its way.
struct Sending {
    stream: StreamId,
    rest: Bytes,
}

/// A call without a response, or a notification that the server has not executed: it has no number, and an empty response.
struct Open {
    id: Option<u32>,
    response: Vec<u8>,
}

/// One connection and its calls.
pub struct Calls {
    endpoint: Endpoint,
    handle: ConnectionHandle,
    connection: Connection,
    remote: SocketAddr,
    message_bytes_max: usize,
    /// Requests that have no stream yet; those without a number are notifications.
    waiting: VecDeque<(Option<u32>, Bytes)>,
    sending: Vec<Sending>,
    open: HashMap<StreamId, Open>,
    /// The server has rejected a call: it takes leave. Those that it has rejected have no response to come.
    is_leaving: bool,
    rejected: BTreeSet<u32>,
    responses: Vec<Vec<u8>>,
    is_connected: bool,
    end: Option<CallsEnd>,
    /// TLS has failed: another attempt would too.
    is_in_vain: bool,
}

impl std::fmt::Debug for Calls {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Calls")
            .field("remote", &self.remote)
            .field("end", &self.end)
            .finish_non_exhaustive()
    }
}

impl Calls {
    /// Begins a connection to the server called `name` at `remote`, on which `protocol` is spoken (ALPN).
    ///
    /// # Errors
    /// The name is none that a certificate can have, or TLS 1.3 is switched off.
    pub fn new(
        now: Instant,
        tls: &Client,
        protocol: &[u8],
        name: &str,
        remote: SocketAddr,
        message_bytes_max: usize,
    ) -> Result<Self, String> {
        let crypto = QuicClientConfig::try_from(tls.for_quic(&[protocol]))
            .map_err(|error| error.to_string())?;
        let mut transport = TransportConfig::default();
        transport
            .max_concurrent_bidi_streams(VarInt::from_u32(0))
            .max_concurrent_uni_streams(VarInt::from_u32(0));
        let mut config = ClientConfig::new(Arc::new(crypto));
        config.transport_config(Arc::new(transport));
        let key = hmac::Key::generate(hmac::HMAC_SHA256, &SystemRandom::new())
            .map_err(|_| "the system gives no random numbers".to_owned())?;
        let mut endpoint = Endpoint::new(
            Arc::new(EndpointConfig::new(Arc::new(key))),
            None,
            true,
            None,
        );
        let (handle, connection) = endpoint
            .connect(now, config, remote, name)
            .map_err(|error| error.to_string())?;
        Ok(Self {
            endpoint,
            handle,
            connection,
            remote,
            message_bytes_max,
            waiting: VecDeque::new(),
            sending: Vec::new(),
            open: HashMap::new(),
            is_leaving: false,
            rejected: BTreeSet::new(),
            responses: Vec::new(),
            is_connected: false,
            end: None,
            is_in_vain: false,
        })
    }

    /// Sends a call, by which its response is known, or without a number a notification.
    pub fn send(&mut self, id: Option<u32>, message: Bytes) {
        self.waiting.push_back((id, message));
        self.go_on();
    }

    /// Cancels a call: no response to it is told.
    pub fn cancel(&mut self, id: u32) {
        self.waiting.retain(|&(other, _)| other != Some(id));
        self.rejected.remove(&id);
        let found = self.open.iter().find(|(_, open)| open.id == Some(id));
        let Some(stream) = found.map(|(&stream, _)| stream) else {
            return;
        };
        self.open.remove(&stream);
        let code = VarInt::from_u32(CANCELLED);
        // What is over already stays so.
        let _ = self.connection.recv_stream(stream).stop(code);
        let before = self.sending.len();
        self.sending.retain(|sending| sending.stream != stream);
        if self.sending.len() < before {
            let _ = self.connection.send_stream(stream).reset(code);
        }
    }

    /// Takes a datagram of the server's.
    pub fn receive(&mut self, now: Instant, datagram: BytesMut) {
        let mut ignored = Vec::new();
        let event = self
            .endpoint
            .handle(now, self.remote, None, None, datagram, &mut ignored);
        if let Some(DatagramEvent::ConnectionEvent(handle, event)) = event
            && handle == self.handle
        {
            self.connection.handle_event(event);
        }
        self.settle();
    }

    /// Time has passed.
    pub fn expire(&mut self, now: Instant) {
        if self.connection.poll_timeout().is_some_and(|at| at <= now) {
            self.connection.handle_timeout(now);
            self.settle();
        }
    }

    /// When [`expire`](Self::expire) is due.
    pub fn timeout(&mut self) -> Option<Instant> {
        self.connection.poll_timeout()
    }

    /// Appends the next datagram to `out`; `false`: there is none.
    pub fn transmit(&mut self, now: Instant, out: &mut Vec<u8>) -> bool {
        self.connection.poll_transmit(now, 1, out).is_some()
    }

    /// Responses that are whole, since this was asked last.
    pub fn take_responses(&mut self) -> Vec<Vec<u8>> {
        std::mem::take(&mut self.responses)
    }

    /// Whether responses wait to be taken.
    pub fn has_responses(&self) -> bool {
        !self.responses.is_empty()
    }

    /// Whether the handshake is over.
    pub fn is_connected(&self) -> bool {
        self.is_connected
    }

    /// How it has ended, if it has.
    pub fn end(&self) -> Option<&CallsEnd> {
        self.end.as_ref()
    }

    /// Whether TLS is why it has ended, so that another attempt would end likewise.
    pub fn is_in_vain(&self) -> bool {
        self.is_in_vain
    }

    /// Bytes of messages that QUIC has not taken.
    pub fn queued_bytes(&self) -> usize {
        let waiting = self.waiting.iter().map(|(_, message)| message.len());
        let sending = self.sending.iter().map(|sending| sending.rest.len());
        waiting.chain(sending).sum()
    }

    /// Whether the server has acknowledged everything, and executed all notifications.
    pub fn is_delivered(&mut self) -> bool {
        self.waiting.is_empty()
            && self.sending.is_empty()
            && self.open.values().all(|open| open.id.is_some())
            && self.connection.streams().send_streams() == 0
    }

    /// Ends the connection; a datagram tells the server.
    pub fn close(&mut self, now: Instant) {
        let code = VarInt::from_u32(NO_ERROR);
        self.connection.close(now, code, Bytes::new());
        self.end
            .get_or_insert_with(|| CallsEnd::Lost("the client was closed".into()));
    }

    fn settle(&mut self) {
        loop {
            while let Some(event) = self.connection.poll_endpoint_events() {
                if let Some(event) = self.endpoint.handle_event(self.handle, event) {
                    self.connection.handle_event(event);
                }
            }
            let Some(event) = self.connection.poll() else {
                break;
            };
            match event {
                Event::Connected => self.is_connected = true,
                Event::ConnectionLost { reason } => self.lose(&reason),
                Event::Stream(StreamEvent::Readable { id }) => self.read(id),
                Event::Stream(StreamEvent::Stopped { id, error_code }) => {
                    self.sending.retain(|sending| sending.stream != id);
                    // RFC 9000 §3.5. One that is reset already stays so.
                    let _ = self.connection.send_stream(id).reset(error_code);
                }
                Event::Stream(
                    StreamEvent::Opened { .. }
                    | StreamEvent::Writable { .. }
                    | StreamEvent::Finished { .. }
                    | StreamEvent::Available { .. },
                )
                | Event::HandshakeDataReady
                | Event::DatagramReceived
                | Event::DatagramsUnblocked => {}
            }
        }
        self.go_on();
        if self.is_leaving && self.open.is_empty() {
            // It waits for nothing but the end of the connection.
            self.end.get_or_insert(CallsEnd::Goodbye);
        }
    }

    /// Opens streams for messages that wait, and gives QUIC what it takes of all.
    fn go_on(&mut self) {
        if !self.is_connected || self.end.is_some() {
            return;
        }
        if self.is_leaving {
            // The server would reject these too.
            let unsent = std::mem::take(&mut self.waiting).into_iter();
            self.rejected.extend(unsent.filter_map(|(id, _)| id));
        }
        while !self.waiting.is_empty()
            && let Some(stream) = self.connection.streams().open(Dir::Bi)
            && let Some((id, rest)) = self.waiting.pop_front()
        {
            let response = Vec::new();
            self.open.insert(stream, Open { id, response });
            self.sending.push(Sending { stream, rest });
        }
        let connection = &mut self.connection;
        self.sending.retain_mut(|sending| {
            let mut stream = connection.send_stream(sending.stream);
            while !sending.rest.is_empty() {
                match stream.write(&sending.rest) {
                    Ok(n) => drop(sending.rest.split_to(n)),
                    Err(quinn_proto::WriteError::Blocked) => return true,
                    Err(_) => return false,
                }
            }
            // One that is stopped in this moment has no end to tell.
            let _ = stream.finish();
            false
        });
    }

    /// Reads what there is of a response.
    fn read(&mut self, stream: StreamId) {
        let mut received = self.connection.recv_stream(stream);
        let Ok(mut chunks) = received.read(true) else {
            return;
        };
        let mut end = None;
        loop {
            match chunks.next(usize::MAX) {
                Ok(Some(chunk)) => {
                    if let Some(open) = self.open.get_mut(&stream) {
                        open.response.extend_from_slice(&chunk.bytes);
                        if open.response.len() > self.message_bytes_max {
                            end = Some(Err(None));
                            break;
                        }
                    }
                }
                Ok(None) => {
                    end = Some(Ok(()));
                    break;
                }
                Err(ReadError::Blocked) => break,
                Err(ReadError::Reset(code)) => {
                    end = Some(Err(Some(code)));
                    break;
                }
            }
        }
        let _ = chunks.finalize();
        let Some(end) = end else {
            return;
        };
        let Some(open) = self.open.remove(&stream) else {
            return;
        };
        match end {
            Ok(()) if open.id.is_none() => {}
            Ok(()) => self.responses.push(open.response),
            Err(Some(code)) if code == VarInt::from_u32(REJECTED) => {
                self.is_leaving = true;
                self.rejected.extend(open.id);
            }
            Err(code) => {
                let reason = code.map_or_else(
                    || format!("a response has more than {} bytes", self.message_bytes_max),
                    |code| format!("the server has reset a call with {:#x}", code.into_inner()),
                );
                self.end.get_or_insert(CallsEnd::Lost(reason));
            }
        }
    }

    fn lose(&mut self, reason: &ConnectionError) {
        let end = match reason {
            ConnectionError::ApplicationClosed(close)
                if close.error_code == VarInt::from_u32(NO_ERROR) =>
            {
                CallsEnd::Goodbye
            }
            ConnectionError::ApplicationClosed(close) => {
                CallsEnd::Lost(String::from_utf8_lossy(&close.reason).into_owned())
            }
            other => CallsEnd::Lost(other.to_string()),
        };
        let code = match reason {
            ConnectionError::TransportError(error) => u64::from(error.code),
            ConnectionError::ConnectionClosed(close) => u64::from(close.error_code),
            _ => 0,
        };
        // RFC 9001 §4.8: the alerts of TLS.
        self.is_in_vain |= (0x100..0x200).contains(&code);
        self.end.get_or_insert(end);
    }
}
