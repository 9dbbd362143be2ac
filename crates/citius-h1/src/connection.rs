//! One connection: requests in the order they came, answers in the same order.

use citius_http::{Action, Event, Fault, HeadPool, Limits, Millis, Output};

/// What a call may look at besides its input.
pub struct Context<'a> {
    /// The turn's clock.
    pub now: Millis,
    /// The limits in force.
    pub limits: &'a Limits,
    /// Where heads come from.
    pub heads: &'a mut HeadPool,
    /// `server: …\r\n`, or empty.
    pub server: &'a [u8],
    /// `date: …\r\n`, or empty; rendered once a second by the reactor.
    pub date: &'a [u8],
}

/// How a connection is to be closed once its output is flushed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Closing {
    /// Close.
    Clean,
    /// The peer may still be sending: shut down the sending side and drop input for a while.
    Linger,
    /// Close without ceremony (reset), so that the peer can tell that something is missing.
    Abort,
}

/// One HTTP/1.1 connection, server side.
#[derive(Debug)]
pub struct Connection {
    closing: Option<Closing>,
}

impl Connection {
    /// A connection accepted at `now`.
    pub fn new(_now: Millis) -> Self {
        Self { closing: None }
    }

    /// Takes as much of `input` as it can (advances the slice) and returns the next event; call
    /// until `None`. What is left must be offered again, longer.
    pub fn receive<'i>(
        &mut self,
        _cx: &mut Context<'_>,
        _input: &mut &'i [u8],
        _out: &mut Output,
    ) -> Option<Event<'i>> {
        None
    }

    /// The peer has closed its sending side.
    pub fn finish(&mut self, _cx: &mut Context<'_>, _out: &mut Output) -> Option<Event<'static>> {
        None
    }

    /// What the application wants to happen to `stream`.
    ///
    /// # Errors
    /// The application's fault.
    pub fn send(
        &mut self,
        _cx: &mut Context<'_>,
        _stream: u32,
        _action: Action<'_>,
        _out: &mut Output,
    ) -> Result<(), Fault> {
        Ok(())
    }

    /// The application wants up to `bytes` more of the body of `stream`.
    pub fn want(&mut self, _cx: &mut Context<'_>, _stream: u32, _bytes: u64, _out: &mut Output) {}

    /// Whether more input could be used.
    pub fn wants_input(&self, _limits: &Limits) -> bool {
        true
    }

    /// When [`Connection::expire`] wants to be called.
    pub fn deadline(&self, _limits: &Limits) -> Option<Millis> {
        None
    }

    /// The deadline has passed.
    pub fn expire(&mut self, _cx: &mut Context<'_>, _out: &mut Output) -> Option<Event<'static>> {
        None
    }

    /// Stops taking new requests.
    pub fn drain(&mut self) {
        self.closing = Some(Closing::Clean);
    }

    /// Set once nothing more will be read or begun.
    pub fn closing(&self) -> Option<Closing> {
        self.closing
    }

    /// Requests taken and not fully answered.
    pub fn streams_open(&self) -> usize {
        0
    }

    /// Whether what is sent for `stream` goes to the output now.
    pub fn is_at_front(&self, _stream: u32) -> bool {
        false
    }

    /// Whether `stream` may still be answered.
    pub fn is_open(&self, _stream: u32) -> bool {
        false
    }
}
