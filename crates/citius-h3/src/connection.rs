//! One connection.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use citius_http::{Action, Closing, Fault, Limits, Millis, Payload, RefusedHead};

use crate::seam::{Context, Control, Incoming, Options, Outgoing, Taken, Token};

/// One HTTP/3 connection, server side.
///
/// Duties of the caller:
/// - bytes of the client's streams go to [`receive`](Self::receive), in the order of each stream, and no more of a stream than
///   [`appetite`](Self::appetite) says; what is left in QUIC's buffers holds the client back;
/// - after every call but the queries: take events of [`next_event`](Self::next_event) until there is none, then
///   [`next_control`](Self::next_control), then send ([`next_to_send`](Self::next_to_send), [`outgoing`](Self::outgoing),
///   [`taken`](Self::taken));
/// - call [`expire`](Self::expire) at the [`deadline`](Self::deadline).
#[derive(Debug)]
pub struct Connection {
    controls: VecDeque<Control>,
}

impl Connection {
    /// A connection whose handshake is complete at `now`.
    pub fn new(now: Millis, options: Options) -> Self {
        let _ = (now, options);
        Self {
            controls: VecDeque::new(),
        }
    }
    /// The QUIC stream of the request `stream`.
    pub const fn quic_stream(stream: u32) -> u64 {
        (stream as u64) << 2
    }

    // --- what comes from QUIC ---
    /// Takes bytes of a stream of the client's (advances `input`), and with `fin` its end behind them. Returns the next event;
    /// call until `None`, then all of `input` is taken.
    pub fn receive<'i>(
        &mut self,
        cx: &mut Context<'_>,
        stream: u64,
        input: &mut &'i [u8],
        fin: bool,
    ) -> Option<Incoming<'i>> {
        let _ = (cx, stream, input, fin);
        None
    }
    /// Bytes of `stream` that are of use now; 0: read none. Changes with `want`.
    pub fn appetite(&self, stream: u64) -> usize {
        let _ = stream;
        0
    }
    /// The client has reset its side of `stream`.
    pub fn reset(&mut self, cx: &mut Context<'_>, stream: u64, code: u64) {
        let _ = (cx, stream, code);
    }
    /// The client reads no more of `stream` (STOP_SENDING).
    pub fn stop_sending(&mut self, cx: &mut Context<'_>, stream: u64, code: u64) {
        let _ = (cx, stream, code);
    }
    /// A DATAGRAM frame has come.
    pub fn datagram<'i>(&mut self, cx: &mut Context<'_>, bytes: &'i [u8]) -> Option<Incoming<'i>> {
        let _ = (cx, bytes);
        None
    }
    /// A stream that [`Control`] has asked for is open.
    pub fn opened(&mut self, token: Token, stream: u64) {
        let _ = (token, stream);
    }
    /// `stream` takes bytes again.
    pub fn writable(&mut self, stream: u64) {
        let _ = stream;
    }
    /// The QUIC connection is over, by the client's doing or its silence: requests that are open are broken.
    pub fn lost(&mut self, cx: &mut Context<'_>) {
        let _ = cx;
    }

    // --- what goes to the application ---
    /// The next event that needs no input.
    pub fn next_event(&mut self, cx: &mut Context<'_>) -> Option<Incoming<'static>> {
        let _ = cx;
        None
    }
    pub fn has_events(&self) -> bool {
        false
    }

    // --- what comes from the application: as in citius-h2 ---
    pub fn want(&mut self, cx: &mut Context<'_>, stream: u32, bytes: u64) {
        let _ = (cx, stream, bytes);
    }
    pub fn limit_body(&mut self, cx: &mut Context<'_>, stream: u32, bytes_max: u64) -> bool {
        let _ = (cx, stream, bytes_max);
        false
    }
    pub fn send(
        &mut self,
        cx: &mut Context<'_>,
        stream: u32,
        action: Action<'_>,
    ) -> Result<(), Fault> {
        let _ = (cx, stream, action);
        Ok(())
    }
    pub fn fail(&mut self, cx: &mut Context<'_>, stream: u32, fault: Fault) {
        let _ = (cx, stream, fault);
    }
    pub fn drain(&mut self, cx: &mut Context<'_>) {
        let _ = cx;
    }
    pub fn refuse(&mut self, cx: &mut Context<'_>, fault: Fault) {
        let _ = (cx, fault);
    }
    pub fn deadline(&self, limits: &Limits) -> Option<Millis> {
        let _ = limits;
        None
    }
    pub fn expire(&mut self, cx: &mut Context<'_>) {
        let _ = cx;
    }
    pub fn closing(&self) -> Option<Closing> {
        None
    }
    pub fn fault(&self) -> Option<Fault> {
        None
    }
    pub fn streams_open(&self) -> usize {
        0
    }
    pub fn is_open(&self, stream: u32) -> bool {
        let _ = stream;
        false
    }
    pub fn is_idle(&self) -> bool {
        false
    }
    pub fn write_capacity(&self, stream: u32, limits: &Limits) -> usize {
        let _ = (stream, limits);
        0
    }
    pub fn waiting_bytes_of(&self, stream: u32) -> Option<u64> {
        let _ = stream;
        None
    }
    pub fn fault_response_bytes(&self) -> u64 {
        0
    }
    pub fn has_refused(&self) -> bool {
        false
    }
    pub fn take_refused(&mut self) -> Vec<RefusedHead> {
        Vec::new()
    }

    // --- WebTransport sessions ---
    pub fn open_session_stream(&mut self, session: u32, bidirectional: bool) -> Option<u32> {
        let _ = (session, bidirectional);
        None
    }
    pub fn want_session_bytes(&mut self, stream: u64, bytes: u64) {
        let _ = (stream, bytes);
    }
    pub fn send_session_bytes(&mut self, stream: u64, payload: Payload<'_>, fin: bool) {
        let _ = (stream, payload, fin);
    }
    pub fn session_write_capacity(&self, stream: u64, limits: &Limits) -> usize {
        let _ = (stream, limits);
        0
    }
    pub fn reset_session_stream(&mut self, stream: u64, code: u32) {
        let _ = (stream, code);
    }
    pub fn stop_session_stream(&mut self, stream: u64, code: u32) {
        let _ = (stream, code);
    }
    pub fn send_datagram(&mut self, session: u32, bytes: &[u8]) {
        let _ = (session, bytes);
    }
    pub fn close_session(&mut self, cx: &mut Context<'_>, session: u32, code: u32, reason: &[u8]) {
        let _ = (cx, session, code, reason);
    }

    // --- what goes to QUIC ---
    /// The next thing to do.
    pub fn next_control(&mut self) -> Option<Control> {
        self.controls.pop_front()
    }
    /// The stream whose turn it is to send (RFC 9218 §10).
    pub fn next_to_send(&mut self) -> Option<u64> {
        None
    }
    /// What is to be sent on `stream` next.
    pub fn outgoing(&mut self, stream: u64) -> Option<Outgoing<'_>> {
        let _ = stream;
        None
    }
    /// So much of it was taken.
    pub fn taken(&mut self, cx: &mut Context<'_>, stream: u64, taken: Taken) {
        let _ = (cx, stream, taken);
    }
    /// A file that `stream` sends has ended too early, or can't be read.
    pub fn cut(&mut self, cx: &mut Context<'_>, stream: u64) {
        let _ = (cx, stream);
    }
}
