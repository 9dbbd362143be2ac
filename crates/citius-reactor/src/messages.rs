//! WebSockets: frames of a tunnel become messages, and messages become frames.
//!
//! A service sees messages only. Pings, the wait for the client's close frame and flow control are here, where the clock, the
//! limits and the write queue are. Bytes of a tunnel are asked for as earlier ones became messages, so that at most
//! `body_window_bytes` of frames wait while the service takes nothing.
//! Tests: `tests/gateway/`, `tests/abuse/` and Autobahn.

use std::sync::atomic::Ordering;

use citius_http::{Action, Fault, Fields, Limits, Output, Payload};
use citius_ws::{Agreed, Close, Code, Event, Kind};

use crate::broadcast::{Broadcast, Slow};
use crate::conn::Conn;
use crate::reactor::Reactor;
use crate::service::{Reply, Service};
use crate::socket::{Behind, Codecs, Socket, find, forget};

impl Reply<'_> {
    /// Keeps the connection from taking anything behind this request for another one, as it may become a
    /// WebSocket. `false`: there is something, or the connection is about to close.
    pub fn hold(&mut self) -> bool {
        self.conn.wire.hold(self.stream)
    }

    /// Makes the request a WebSocket, as agreed upon; `fields` are the response's.
    ///
    /// # Errors
    /// The request has been answered, or was not held.
    pub fn open_socket(&mut self, agreed: Agreed, fields: &Fields) -> Result<(), Fault> {
        if !self.conn.wire.is_open(self.stream) {
            return Ok(());
        }
        self.keep_as_is();
        self.send_on(Action::Switch {
            protocol: b"websocket",
            fields,
        })?;
        // Most connections have one, and a vector that grows by itself begins with four.
        self.conn.sockets.reserve_exact(1);
        self.conn.sockets.push(Socket {
            stream: self.stream,
            codec: citius_ws::Connection::new(agreed, self.tools.clock.now),
            held: Vec::new(),
            is_paused: false,
            owed: 0,
            has_ended: false,
            behind: Behind::default(),
        });
        self.want(u64::from(self.tools.limits.body_window_bytes));
        if self.codecs.is_draining {
            self.close_socket(&Close::new(Code::SERVICE_RESTART, ""));
        }
        Ok(())
    }

    /// Sends a message; nothing once the socket is closing.
    #[inline]
    pub fn send_message(&mut self, kind: Kind, payload: Payload<'_>) {
        let Some(socket) = find(&mut self.conn.sockets, self.stream) else {
            return;
        };
        if !socket.codec.is_open() {
            return;
        }
        let limits = &self.tools.limits;
        let mut frames = std::mem::take(&mut self.codecs.frames);
        frames.clear();
        let mut behind = None;
        match payload {
            Payload::Shared(bytes)
                if bytes.len() >= Output::SHARED_BYTES_MIN
                    && socket.codec.compresses(bytes.len(), limits).is_none() =>
            {
                socket.codec.send_head(kind, bytes.len(), &mut frames);
                behind = Some(bytes);
            }
            Payload::Shared(_) | Payload::Copied(_) => {
                let bytes: &[u8] = match &payload {
                    Payload::Copied(bytes) => bytes,
                    Payload::Shared(bytes) => bytes,
                    Payload::File(_) => &[],
                };
                let mut context =
                    Codecs::context(&mut self.codecs.tools, self.tools.clock.now, limits);
                socket.codec.send(&mut context, kind, bytes, &mut frames);
            }
            // Messages are never files.
            Payload::File(_) => {}
        }
        self.write_frames(&frames);
        if let Some(bytes) = behind {
            // Refused only when the connection is being cut already.
            let _ = self.send_on(Action::Data(Payload::Shared(bytes)));
        }
        self.codecs.frames = frames;
    }

    /// Begins to close the socket; nothing if that has begun.
    pub fn close_socket(&mut self, close: &Close) {
        let mut frames = std::mem::take(&mut self.codecs.frames);
        frames.clear();
        if let Some(socket) = find(&mut self.conn.sockets, self.stream) {
            socket.codec.close(self.tools.clock.now, close, &mut frames);
        }
        self.write_frames(&frames);
        self.codecs.frames = frames;
    }

    #[inline]
    fn write_frames(&mut self, frames: &[u8]) {
        if !frames.is_empty() {
            // Refused only when the connection is being cut already.
            let _ = self.send_on(Action::Data(Payload::Copied(frames)));
        }
    }

    /// The socket is over: so is its tunnel.
    fn end_socket(&mut self) {
        forget(&mut self.conn.sockets, self.stream);
        let trailers = &Fields::EMPTY;
        // Refused only when the connection is being cut already.
        let _ = self.send_on(Action::End { trailers });
    }
}

impl Reactor {
    /// Bytes of a tunnel: makes messages of them, as long as the service takes some.
    pub(crate) fn receive_frames<S: Service>(
        &mut self,
        conn: &mut Conn,
        stream: u32,
        bytes: &[u8],
        service: &mut S,
    ) {
        let mut input = bytes;
        self.take_messages(conn, stream, &mut input, service);
        let taken = (bytes.len() - input.len()) as u64;
        let Some(socket) = find(&mut conn.sockets, stream) else {
            return;
        };
        if socket.is_paused {
            socket.held.extend_from_slice(input);
            socket.owed += taken;
        } else {
            self.reply(conn, stream).want(taken);
        }
    }

    /// The tunnel has ended on the peer's side.
    pub(crate) fn end_frames<S: Service>(&mut self, conn: &mut Conn, stream: u32, service: &mut S) {
        let Some(socket) = find(&mut conn.sockets, stream) else {
            return;
        };
        socket.has_ended = true;
        if socket.is_paused {
            return;
        }
        let event = socket.codec.receive_eof();
        self.tell(conn, stream, event, service);
    }

    /// The service takes messages again.
    pub(crate) fn resume_frames<S: Service>(
        &mut self,
        conn: &mut Conn,
        stream: u32,
        service: &mut S,
    ) {
        let Some(socket) = find(&mut conn.sockets, stream) else {
            return;
        };
        if !std::mem::replace(&mut socket.is_paused, false) {
            return;
        }
        let held = std::mem::take(&mut socket.held);
        let mut input = held.as_slice();
        self.take_messages(conn, stream, &mut input, service);
        let taken = (held.len() - input.len()) as u64;
        let Some(socket) = find(&mut conn.sockets, stream) else {
            return;
        };
        socket.owed += taken;
        if socket.is_paused {
            socket.held = input.to_vec();
            return;
        }
        let owed = std::mem::take(&mut socket.owed);
        let has_ended = socket.has_ended;
        if has_ended {
            self.end_frames(conn, stream, service);
        } else {
            self.reply(conn, stream).want(owed);
        }
    }

    /// Messages of `input`, until it is used up or the service takes no more.
    fn take_messages<S: Service>(
        &mut self,
        conn: &mut Conn,
        stream: u32,
        input: &mut &[u8],
        service: &mut S,
    ) {
        loop {
            let Some(socket) = find(&mut conn.sockets, stream).filter(|socket| !socket.is_paused)
            else {
                return;
            };
            let mut frames = std::mem::take(&mut self.codecs.frames);
            frames.clear();
            let (now, limits) = (self.tools.clock.now, &self.tools.limits);
            let mut context = Codecs::context(&mut self.codecs.tools, now, limits);
            let event = socket.codec.receive(&mut context, input, &mut frames);
            if !frames.is_empty() {
                self.reply(conn, stream).write_frames(&frames);
            }
            self.codecs.frames = frames;
            if event.is_none() {
                return;
            }
            self.tell(conn, stream, event, service);
        }
    }

    /// Tells the service what a socket has understood.
    fn tell<S: Service>(
        &mut self,
        conn: &mut Conn,
        stream: u32,
        event: Option<Event>,
        service: &mut S,
    ) {
        match event {
            None => {}
            Some(Event::Message { kind, bytes }) => {
                let takes_more = service.message(kind, &bytes, &mut self.reply(conn, stream));
                self.codecs.tools.recycle(bytes);
                if let Some(socket) = find(&mut conn.sockets, stream) {
                    socket.is_paused = !takes_more;
                }
            }
            Some(Event::Closed { close, fault }) => {
                let mut reply = self.reply(conn, stream);
                reply.end_socket();
                service.closed(close, fault, &mut reply);
            }
        }
    }

    /// Sends what many get to one of them, unless that is too slow.
    pub(crate) fn send_broadcast<S: Service>(
        &mut self,
        conn: &mut Conn,
        stream: u32,
        broadcast: &Broadcast,
        service: &mut S,
    ) {
        let socket = find(&mut conn.sockets, stream);
        if socket.is_none_or(|socket| !socket.codec.is_open()) {
            return self.send_to_session(conn, stream, broadcast, service);
        }
        let is_queued = broadcast.slow == Slow::Queue || !self.is_behind(conn, stream);
        let limits = &self.tools.limits;
        let Some(socket) = find(&mut conn.sockets, stream) else {
            return;
        };
        if is_queued {
            let bits = socket.codec.compresses(broadcast.payload.len(), limits);
            let frame = broadcast.frame(bits, &mut self.codecs.tools, limits);
            if broadcast.slow == Slow::Queue {
                socket.behind.note_replayed(frame.len());
            }
            let data = Action::Data(Payload::Shared(frame));
            // Refused only when the connection is being cut already.
            let _ = self.reply(conn, stream).send_on(data);
            return;
        }
        broadcast.missed.fetch_add(1, Ordering::Relaxed);
        if let Slow::Close(code) = broadcast.slow {
            // A client that does not read will not return a close frame either: it is the last thing sent.
            let close = Close::new(code, "too slow");
            let mut reply = self.reply(conn, stream);
            reply.close_socket(&close);
            reply.end_socket();
            service.closed(close, None, &mut reply);
        }
    }

    /// Whether a socket is too slow for another message of a room. What waits for it is offered to the connection first.
    fn is_behind(&mut self, conn: &mut Conn, stream: u32) -> bool {
        let mut waiting = waiting_bytes(conn, stream);
        let (now, limits) = (self.tools.clock.now, &self.tools.limits);
        let Some(socket) = find(&mut conn.sockets, stream) else {
            return false;
        };
        let mut behind = socket.behind;
        if behind.is_offer_due(waiting, limits) {
            self.offer_output(conn);
            waiting = waiting_bytes(conn, stream);
            behind.note_offer(waiting, now, &self.tools.limits);
        }
        if let Some(socket) = find(&mut conn.sockets, stream) {
            socket.behind = behind;
        }
        behind.is_too_slow(waiting, now, &self.tools.limits)
    }

    /// Has the connection take what waits for it, as far as it does.
    #[cold]
    fn offer_output(&mut self, conn: &mut Conn) {
        if conn.is_quic() {
            self.write_quic(conn);
            return;
        }
        // An error shows again when the connection is settled.
        while let Ok(true) = conn.flush(self.tools.clock.now, &mut self.scratch)
            && conn.wire.wants_output()
        {
            conn.wire.pump(&mut self.tools.context(), &mut conn.output);
            if conn.output.is_empty() {
                return;
            }
        }
    }

    /// Does what is due for the sockets of a connection; whether anything was.
    pub(crate) fn expire_sockets<S: Service>(&mut self, conn: &mut Conn, service: &mut S) -> bool {
        let now = self.tools.clock.now;
        let is_due = |socket: &&Socket, limits: &Limits| {
            socket.codec.deadline(limits).is_some_and(|at| at <= now)
        };
        let due: Vec<u32> = conn
            .sockets
            .iter()
            .filter(|socket| is_due(socket, &self.tools.limits))
            .map(|socket| socket.stream)
            .collect();
        for &stream in &due {
            let Some(socket) = find(&mut conn.sockets, stream) else {
                continue;
            };
            let mut frames = std::mem::take(&mut self.codecs.frames);
            frames.clear();
            let limits = &self.tools.limits;
            let context = Codecs::context(&mut self.codecs.tools, now, limits);
            let event = socket.codec.expire(&context, &mut frames);
            self.reply(conn, stream).write_frames(&frames);
            self.codecs.frames = frames;
            self.tell(conn, stream, event, service);
        }
        !due.is_empty()
    }

    /// Begins to close all sockets of a connection.
    pub(crate) fn close_sockets(&mut self, conn: &mut Conn, code: Code) {
        let close = Close::new(code, "");
        let streams: Vec<u32> = conn.sockets.iter().map(|socket| socket.stream).collect();
        for stream in streams {
            self.reply(conn, stream).close_socket(&close);
        }
    }
}

/// Bytes of a stream that are not written, and of those of others that are before them.
fn waiting_bytes(conn: &Conn, stream: u32) -> usize {
    let held_back = conn.wire.held_back_bytes(stream).unwrap_or(0);
    conn.output
        .len()
        .saturating_add(usize::try_from(held_back).unwrap_or(usize::MAX))
}

#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests {
    use citius_http::Head;

    use crate::messages::*;
    use crate::{ConnectionId, Options, Peer, Protocols, Proxies, StreamId};

    /// Takes a WebSocket, and of its messages the first one only.
    struct Paused;

    impl Service for Paused {
        fn request(&mut self, _head: Box<Head>, _ended: bool, reply: &mut Reply<'_>) {
            assert!(reply.hold());
            reply
                .open_socket(Agreed::default(), &Fields::EMPTY)
                .expect("it is held");
        }
        fn message(&mut self, _kind: Kind, _bytes: &[u8], _reply: &mut Reply<'_>) -> bool {
            false
        }
        fn data(&mut self, _bytes: &[u8], _reply: &mut Reply<'_>) {}
        fn end(&mut self, _trailers: Fields, _reply: &mut Reply<'_>) {}
        fn broken(&mut self, _id: StreamId, _fault: Fault) {}
        fn writable(&mut self, _reply: &mut Reply<'_>) {}
        fn disconnected(&mut self, _connection: ConnectionId) {}
        fn refused(&mut self, _id: StreamId, fault: Fault) {
            panic!("{}", fault.text());
        }
        fn file_failed(&mut self, _connection: ConnectionId, _message: &str) {}
        fn panicked(&mut self, _connection: ConnectionId) {
            panic!("the service does not");
        }
    }

    /// Review B5.
    #[test]
    fn a_pause_keeps_the_buffer_of_frames() {
        let mut reactor = Reactor::new(Options {
            limits: Limits::default(),
            server: None,
            date: false,
            default_fields: Fields::EMPTY,
            observer: None,
            compression: None,
            proxies: Proxies::default(),
            protocols: Protocols::default(),
        })
        .expect("an epoll set");
        let id = reactor.open_memory(Peer::Local, None);
        let request =
            b"GET / HTTP/1.1\r\nHost: a\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n";
        reactor.feed_memory(id, request, &mut Paused);
        // A ping, whose pong is a frame; then two messages.
        let frames = b"\x89\x80\0\0\0\0\x81\x81\0\0\0\0a\x81\x81\0\0\0\0b";
        reactor.feed_memory(id, frames, &mut Paused);
        let sent = reactor.take_memory(id).unwrap_or_default();
        assert!(sent.ends_with(b"\x8a\x00"), "{}", sent.escape_ascii());
        assert!(reactor.codecs.frames.capacity() > 0);
    }
}
