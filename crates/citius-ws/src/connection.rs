//! One connection, from the response that made it a WebSocket to its end.
//!
//! ```text
//!          ┌── close(): our close frame ──► Closing ── the peer's, or patience ends ──┐
//! Open ────┤                                                                          ├──► Over
//!          └── the peer's close frame (answered), a broken rule, silence ─────────────┘
//! ```
//!
//! While Closing, messages are read and dropped: behind them is the peer's close frame.

use alloc::vec::Vec;

use citius_http::{Limits, Millis};

use crate::frame::{self, FrameHead, Kind, Opcode};
use crate::handshake::Agreed;
use crate::mask::unmask_into;
use crate::text::{Text, is_text};
use crate::tools::is_worth_it;
use crate::{Close, Fault, Tools};

/// What a call may look at besides its input.
#[derive(Debug)]
pub struct Context<'a> {
    /// The turn's clock.
    pub now: Millis,
    /// The limits in force.
    pub limits: &'a Limits,
    /// What all connections share.
    pub tools: &'a mut Tools,
}

/// What a connection has understood.
#[derive(Debug, PartialEq, Eq)]
pub enum Event {
    /// A message. Give its memory back with [`Tools::recycle`].
    Message {
        /// What it is.
        kind: Kind,
        /// All of it; UTF-8 if it is a text.
        bytes: Vec<u8>,
    },
    /// It is over: write what came to the output, then end the transport.
    Closed {
        /// How.
        close: Close,
        /// The rule the peer broke, if that is why.
        fault: Option<Fault>,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Open,
    /// Our close frame has left, at this moment.
    Closing(Millis),
    Over,
}

/// One WebSocket, server side.
#[derive(Debug)]
pub struct Connection {
    state: State,
    /// The logarithm of the window that messages are compressed for.
    bits: Option<u8>,
    /// A head that has not come whole.
    head: [u8; frame::HEAD_BYTES_MAX],
    head_bytes: u8,
    /// The frame whose payload is coming, and how much of it has come.
    frame: Option<(FrameHead, u64)>,
    /// The message that is coming.
    message: Option<Message>,
    /// The payload of the control frame that is coming.
    control: Vec<u8>,
    /// When the peer was heard last.
    heard_at: Millis,
    /// When it was asked for a sign of life that has not come.
    pinged_at: Option<Millis>,
    rate: Rate,
}

/// A message that has not come whole.
#[derive(Debug)]
struct Message {
    kind: Kind,
    is_compressed: bool,
    bytes: Vec<u8>,
    text: Text,
    fragments: u32,
}

/// Frames counted over a span of time.
#[derive(Debug, Default)]
struct Rate {
    since: Millis,
    messages: u32,
    controls: u32,
}

impl Rate {
    #[inline]
    fn note_message(&mut self, cx: &Context<'_>) -> Result<(), Fault> {
        if cx.limits.ws_messages_max == 0 {
            return Ok(());
        }
        self.begin_span(cx);
        self.messages = self.messages.saturating_add(1);
        if self.messages > cx.limits.ws_messages_max {
            return Err(Fault::TooManyMessages);
        }
        Ok(())
    }

    fn note_control(&mut self, cx: &Context<'_>) -> Result<(), Fault> {
        self.begin_span(cx);
        self.controls = self.controls.saturating_add(1);
        let most = cx.limits.ws_controls_max;
        if most > 0 && self.controls > most {
            return Err(Fault::TooManyControls);
        }
        Ok(())
    }

    fn begin_span(&mut self, cx: &Context<'_>) {
        if cx.now.saturating_sub(self.since) >= cx.limits.ws_rate_ms {
            *self = Self {
                since: cx.now,
                ..Self::default()
            };
        }
    }
}

impl Connection {
    /// A connection that was agreed upon at `now`.
    pub fn new(agreed: Agreed, now: Millis) -> Self {
        Self {
            state: State::Open,
            bits: agreed.deflate_bits,
            head: [0; frame::HEAD_BYTES_MAX],
            head_bytes: 0,
            frame: None,
            message: None,
            control: Vec::new(),
            heard_at: now,
            pinged_at: None,
            rate: Rate::default(),
        }
    }

    /// Takes as much of `input` as it can (advances the slice) and returns the next event; call until
    /// `None`, which means that all of it is taken. Responses to control frames go to `out`.
    #[inline]
    pub fn receive(
        &mut self,
        cx: &mut Context<'_>,
        input: &mut &[u8],
        out: &mut Vec<u8>,
    ) -> Option<Event> {
        match self.next_event(cx, input, out) {
            Ok(event) => event,
            Err(fault) => {
                *input = &[];
                Some(self.fail(fault, out))
            }
        }
    }

    /// The transport has ended: there will be no close frame any more.
    pub fn receive_eof(&mut self) -> Option<Event> {
        if self.state == State::Over {
            return None;
        }
        self.end();
        Some(Event::Closed {
            close: Close::abnormal(),
            fault: None,
        })
    }

    /// Whether messages may be sent.
    #[inline]
    pub fn is_open(&self) -> bool {
        self.state == State::Open
    }

    /// Whether it is over.
    pub fn is_over(&self) -> bool {
        self.state == State::Over
    }

    /// Appends a message; nothing if the connection is not open.
    #[inline]
    pub fn send(&mut self, cx: &mut Context<'_>, kind: Kind, payload: &[u8], out: &mut Vec<u8>) {
        if self.state == State::Open {
            cx.tools.encode(kind, payload, self.bits, cx.limits, out);
        }
    }

    /// The logarithm of the window that a message of so many bytes is compressed for, if it is.
    #[inline]
    pub fn compresses(&self, payload_bytes: usize, limits: &Limits) -> Option<u8> {
        self.bits.filter(|_| is_worth_it(payload_bytes, limits))
    }

    /// Appends the head of a message whose payload the caller writes behind it, uncompressed; nothing if
    /// the connection is not open.
    pub fn send_head(&mut self, kind: Kind, payload_bytes: usize, out: &mut Vec<u8>) {
        if self.state == State::Open {
            frame::write_head(out, Opcode::Message(kind), false, payload_bytes);
        }
    }

    /// Begins to close; nothing if that has been begun.
    pub fn close(&mut self, now: Millis, close: &Close, out: &mut Vec<u8>) {
        if self.state == State::Open {
            frame::write_control(out, Opcode::Close, &close.payload());
            self.state = State::Closing(now);
        }
    }

    /// When [`expire`](Self::expire) wants to be called; `None` for never. Changes with every other call.
    #[inline]
    pub fn deadline(&self, limits: &Limits) -> Option<Millis> {
        let (since, patience_ms) = match (self.state, self.pinged_at) {
            (State::Open, None) => (self.heard_at, limits.ws_ping_interval_ms),
            (State::Open, Some(pinged_at)) => (pinged_at, limits.ws_ping_timeout_ms),
            (State::Closing(at), _) => (at, limits.ws_close_ms.max(1)),
            (State::Over, _) => return None,
        };
        (patience_ms > 0).then(|| since.saturating_add(patience_ms))
    }

    /// Time has passed; does nothing before the deadline.
    pub fn expire(&mut self, cx: &Context<'_>, out: &mut Vec<u8>) -> Option<Event> {
        if self.deadline(cx.limits)? > cx.now {
            return None;
        }
        match (self.state, self.pinged_at) {
            (State::Open, Some(_)) => Some(self.fail(Fault::PingTimeout, out)),
            (State::Open, None) => {
                frame::write_control(out, Opcode::Ping, b"");
                if cx.limits.ws_ping_timeout_ms > 0 {
                    self.pinged_at = Some(cx.now);
                } else {
                    self.heard_at = cx.now;
                }
                None
            }
            _ => self.receive_eof(),
        }
    }

    /// Ends it for a broken rule; tells the peer which, unless our close frame has left already.
    #[cold]
    fn fail(&mut self, fault: Fault, out: &mut Vec<u8>) -> Event {
        let close = Close::new(fault.code(), fault.text());
        if self.state == State::Open {
            frame::write_control(out, Opcode::Close, &close.payload());
        }
        self.end();
        Event::Closed {
            close,
            fault: Some(fault),
        }
    }

    /// Nothing more is understood, and nothing kept.
    fn end(&mut self) {
        self.state = State::Over;
        self.frame = None;
        self.message = None;
        self.control = Vec::new();
    }

    #[inline]
    fn next_event(
        &mut self,
        cx: &mut Context<'_>,
        input: &mut &[u8],
        out: &mut Vec<u8>,
    ) -> Result<Option<Event>, Fault> {
        if !input.is_empty() {
            self.heard_at = cx.now;
            self.pinged_at = None;
        }
        loop {
            if self.state == State::Over {
                *input = &[];
                return Ok(None);
            }
            let (head, done) = if let Some(frame) = self.frame {
                frame
            } else {
                let Some(head) = self.take_head(input)? else {
                    return Ok(None);
                };
                if let Some(event) = self.begin_frame(cx, head, input)? {
                    return Ok(Some(event));
                }
                // A message that was taken whole while it is not wanted any more.
                if self.frame.is_none() {
                    continue;
                }
                (head, 0)
            };
            let left = usize::try_from(head.length.saturating_sub(done)).unwrap_or(usize::MAX);
            let (piece, rest) = input.split_at_checked(left).unwrap_or((*input, &[]));
            *input = rest;
            let is_whole = piece.len() == left;
            self.frame = (!is_whole).then(|| (head, done.saturating_add(piece.len() as u64)));
            if head.opcode.is_control() {
                unmask_into(&mut self.control, piece, head.key, done);
                if is_whole && let Some(event) = self.take_control(cx, head.opcode, out)? {
                    return Ok(Some(event));
                }
            } else {
                self.take_piece(cx, piece, &head, done)?;
                if is_whole
                    && head.is_final
                    && let Some(event) = self.end_message(cx)?
                {
                    return Ok(Some(event));
                }
            }
            if !is_whole {
                return Ok(None);
            }
        }
    }

    /// The head at the start of `input`, if it has come whole.
    #[inline]
    fn take_head(&mut self, input: &mut &[u8]) -> Result<Option<FrameHead>, Fault> {
        let with_deflate = self.bits.is_some();
        if self.head_bytes == 0
            && let Some((head, n)) = FrameHead::parse(input, with_deflate)?
        {
            *input = input.get(n..).unwrap_or_default();
            return Ok(Some(head));
        }
        self.take_arriving_head(input, with_deflate)
    }

    /// The way of heads that come in pieces: byte by byte.
    #[cold]
    fn take_arriving_head(
        &mut self,
        input: &mut &[u8],
        with_deflate: bool,
    ) -> Result<Option<FrameHead>, Fault> {
        while let Some((&byte, rest)) = input.split_first() {
            let at = usize::from(self.head_bytes);
            if let Some(slot) = self.head.get_mut(at) {
                *slot = byte;
            }
            self.head_bytes = self.head_bytes.saturating_add(1);
            *input = rest;
            let so_far = self.head.get(..=at).unwrap_or_default();
            if let Some((head, _)) = FrameHead::parse(so_far, with_deflate)? {
                self.head_bytes = 0;
                return Ok(Some(head));
            }
        }
        Ok(None)
    }

    /// Checks a frame against what came before it. A message that is there whole is taken at once;
    /// otherwise the payload is what comes next.
    #[inline]
    fn begin_frame(
        &mut self,
        cx: &mut Context<'_>,
        head: FrameHead,
        input: &mut &[u8],
    ) -> Result<Option<Event>, Fault> {
        let bytes_max = cx.limits.ws_message_bytes_max;
        match head.opcode {
            Opcode::Message(_) if self.message.is_some() => return Err(Fault::Interleaved),
            Opcode::Message(kind) => {
                if head.length > bytes_max {
                    return Err(Fault::TooLarge);
                }
                self.rate.note_message(cx)?;
                if head.is_final
                    && !head.is_compressed
                    && let Some((payload, rest)) =
                        input.split_at_checked(usize::try_from(head.length).unwrap_or(usize::MAX))
                {
                    *input = rest;
                    return self.take_whole(cx, kind, head.key, payload);
                }
                self.message = Some(Message {
                    kind,
                    is_compressed: head.is_compressed,
                    bytes: Vec::new(),
                    text: Text::default(),
                    fragments: 1,
                });
            }
            Opcode::Continuation => {
                let message = self.message.as_mut().ok_or(Fault::Continuation)?;
                if head.length.saturating_add(message.bytes.len() as u64) > bytes_max {
                    return Err(Fault::TooLarge);
                }
                message.fragments = message.fragments.saturating_add(1);
                if message.fragments > cx.limits.ws_fragments_max {
                    return Err(Fault::TooManyFragments);
                }
            }
            Opcode::Close | Opcode::Ping | Opcode::Pong => self.rate.note_control(cx)?,
        }
        self.frame = Some((head, 0));
        Ok(None)
    }

    /// A message of one frame that has come whole.
    #[inline]
    fn take_whole(
        &mut self,
        cx: &mut Context<'_>,
        kind: Kind,
        key: [u8; 4],
        payload: &[u8],
    ) -> Result<Option<Event>, Fault> {
        let mut bytes = cx.tools.take();
        bytes.clear();
        unmask_into(&mut bytes, payload, key, 0);
        if kind == Kind::Text && !is_text(&bytes) {
            return Err(Fault::Text);
        }
        if self.state != State::Open {
            cx.tools.recycle(bytes);
            return Ok(None);
        }
        Ok(Some(Event::Message { kind, bytes }))
    }

    /// More of a message.
    fn take_piece(
        &mut self,
        cx: &Context<'_>,
        piece: &[u8],
        head: &FrameHead,
        done: u64,
    ) -> Result<(), Fault> {
        let Some(message) = &mut self.message else {
            return Ok(());
        };
        // What a head promises is reserved only as far as it is likely to come soon.
        let expected = head.length.min(u64::from(cx.limits.body_window_bytes));
        if done == 0 {
            message
                .bytes
                .reserve(usize::try_from(expected).unwrap_or_default());
        }
        unmask_into(&mut message.bytes, piece, head.key, done);
        if message.kind == Kind::Text
            && !message.is_compressed
            && !message.text.grows(&message.bytes)
        {
            return Err(Fault::Text);
        }
        Ok(())
    }

    /// The last frame of a message is complete.
    fn end_message(&mut self, cx: &mut Context<'_>) -> Result<Option<Event>, Fault> {
        let Some(message) = self.message.take() else {
            return Ok(None);
        };
        let Message { kind, bytes, .. } = message;
        if !message.is_compressed {
            if kind == Kind::Text && !message.text.is_complete(&bytes) {
                return Err(Fault::Text);
            }
            return Ok(self.is_open().then_some(Event::Message { kind, bytes }));
        }
        let mut inflated = cx.tools.take();
        inflated.clear();
        let bytes_max = usize::try_from(cx.limits.ws_message_bytes_max).unwrap_or(usize::MAX);
        cx.tools.deflate.inflate(&bytes, &mut inflated, bytes_max)?;
        if kind == Kind::Text && !is_text(&inflated) {
            return Err(Fault::Text);
        }
        Ok(self.is_open().then_some(Event::Message {
            kind,
            bytes: inflated,
        }))
    }

    /// A control frame is complete.
    fn take_control(
        &mut self,
        cx: &Context<'_>,
        opcode: Opcode,
        out: &mut Vec<u8>,
    ) -> Result<Option<Event>, Fault> {
        let payload = core::mem::take(&mut self.control);
        match opcode {
            // RFC 6455 §5.5.2: until a close frame is received, although we may have sent one.
            Opcode::Ping => {
                frame::write_control(out, Opcode::Pong, &payload);
                Ok(None)
            }
            Opcode::Close => {
                let close = Close::parse(&payload).ok_or(Fault::ClosePayload)?;
                self.close(cx.now, &close, out);
                self.end();
                Ok(Some(Event::Closed { close, fault: None }))
            }
            // A pong has been heard, and that is all there is to it.
            _ => Ok(None),
        }
    }
}

#[cfg(test)]
mod tests;
