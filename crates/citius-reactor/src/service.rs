//! The boundary between the reactor and the application: events to a [`Service`], actions through a [`Reply`].

use citius_compress::{Compressor, Sink};
use citius_h3::SessionEvent;
use citius_http::coding::Coding;
use citius_http::{
    Action, Fault, Fields, FileRange, Head, Limits, Millis, Payload, PlainResponse, ProcedureCall,
    RefusedHead, ResponseHead,
};
use citius_observe::{Ending, Note};
use citius_ws::{Close, Kind};

use crate::conn::{Conn, read_file};
use crate::id::{ConnectionId, Peer, StreamId};
use crate::mailbox::StreamCommand;
use crate::protocol::OutputEnd;
use crate::socket::Codecs;
use crate::system::Errno;
use crate::tools::Tools;
use crate::upstream::{Handed, UpstreamId};
use crate::watch::{self, Watch};

/// What [`Service::noted`] is told.
#[derive(Clone, Copy, Debug)]
pub enum Notice<'a> {
    /// Something about TLS.
    Tls(TlsNotice<'a>),
    /// A peer that is no trusted proxy, or sent no PROXY header, has connected to a listener that asks for one.
    ProxyRefused(Peer, &'a str),
    /// New connections find no free descriptor.
    OutOfDescriptors {
        /// Connections that are open.
        connections: usize,
        /// Idle ones that were closed since the last notice.
        evicted: u64,
        /// New ones that were turned away since then.
        refused: u64,
    },
    /// They do again.
    DescriptorsAreFree {
        /// As above.
        evicted: u64,
        /// As above.
        refused: u64,
    },
    /// The reactor drains, and so many requests are still open.
    Draining {
        /// How many.
        requests: usize,
        /// Of which routes.
        routes: &'a str,
    },
    /// A client has taken nothing for too long, and its connection with open requests is cut.
    Stalled {
        /// How many.
        requests: usize,
        /// Of which routes.
        routes: &'a str,
    },
}

/// What there is to tell about TLS.
#[derive(Clone, Copy, Debug)]
pub enum TlsNotice<'a> {
    /// The files of TLS have changed and are in force.
    Renewed,
    /// A certificate of theirs wants to be looked at.
    Warning(&'a str),
    /// They have changed and cannot be used; those from before stay in force.
    NotRenewed(&'a str),
    /// A peer's handshake has failed.
    HandshakeFailed(Peer, &'a str),
}

/// What responses requests. All calls come from the reactor's thread, within a turn.
pub trait Service {
    /// A request head is complete. Unless `ended`, the body follows once `reply.want` asks for it.
    fn request(&mut self, head: Box<Head>, ended: bool, reply: &mut Reply<'_>);
    /// A procedure is called; only where [`ListenerProtocol`](crate::ListenerProtocol) says so. Answered as
    /// [`Call`] says; without procedures there is nothing to call.
    fn call(&mut self, call: ProcedureCall<'_>, reply: &mut Reply<'_>) {
        let _ = call;
        reply.fail(Fault::HandlerFailed);
    }
    /// A piece of the body of `reply.id()`.
    fn data(&mut self, bytes: &[u8], reply: &mut Reply<'_>);
    /// The body of `reply.id()` is complete.
    fn end(&mut self, trailers: Fields, reply: &mut Reply<'_>);
    /// No more of the body of `id` comes, and its response, which has begun, goes on.
    fn body_refused(&mut self, id: StreamId, fault: Fault) {
        self.broken(id, fault);
    }
    /// The body of `id` will never be complete, and the client takes no response any more.
    fn broken(&mut self, id: StreamId, fault: Fault);
    /// A message has come on the WebSocket `reply.id()`. `false`: no more until [`StreamCommand::Resume`].
    ///
    /// A service that makes no WebSockets never hears of any.
    fn message(&mut self, _kind: Kind, _bytes: &[u8], _reply: &mut Reply<'_>) -> bool {
        true
    }
    /// The WebSocket `reply.id()` is over; `fault` is the rule that the peer broke, if that is why.
    fn closed(&mut self, _close: Close, _fault: Option<citius_ws::Fault>, _reply: &mut Reply<'_>) {}
    /// Something of the WebTransport session `reply.id()`. A service that grants none never hears of any.
    fn session(&mut self, _event: SessionEvent<'_>, _reply: &mut Reply<'_>) {}
    /// The queue of `reply.id()`, which asked for it with [`Reply::await_writable`], has room again.
    fn writable(&mut self, reply: &mut Reply<'_>);
    /// The connection is gone, and with it its requests.
    fn disconnected(&mut self, connection: ConnectionId);
    /// A request was refused before its header section was complete, or the connection ended for a fault that is no
    /// request's.
    fn head_refused(&mut self, peer: Peer, refused: &RefusedHead) {
        let _ = (peer, refused);
    }
    /// An action of the application's was refused; `what` says where it came from.
    fn refused(&mut self, id: StreamId, fault: Fault);
    /// A file did not give what a response had promised of it; the connection is cut.
    fn file_failed(&mut self, connection: ConnectionId, message: &str);
    /// A handler panicked in Rust; its connection is cut.
    fn panicked(&mut self, connection: ConnectionId);
    /// An event of `connection` has kept the thread for `took_ms`, longer than
    /// [`slow_handler_ms`](citius_http::Limits::slow_handler_ms): the request of `stream` if that is known.
    /// `latest` is the head of the request that was answered last.
    fn slow(
        &mut self,
        connection: ConnectionId,
        stream: Option<StreamId>,
        took_ms: Millis,
        latest: Option<&Head>,
    ) {
        let _ = (connection, stream, took_ms, latest);
    }
    /// Bytes have come from another server; whether more are wanted now.
    fn upstream_received(&mut self, id: UpstreamId, bytes: &[u8]) -> bool {
        let _ = (id, bytes);
        true
    }
    /// Another server sends no more; whether something may still go to it. Otherwise its connection has ended.
    fn upstream_finished(&mut self, id: UpstreamId) -> bool {
        let _ = id;
        false
    }
    /// The connection to another server has ended, by an error if there is one, and is forgotten.
    fn upstream_closed(&mut self, id: UpstreamId, error: Option<Errno>) {
        let _ = (id, error);
    }
    /// The next server to which something is to be sent, and whether what has come from it is read before.
    fn next_unsent_upstream(&mut self) -> Option<(UpstreamId, bool)> {
        None
    }
    /// Appends to `bytes` what is to be sent to it.
    fn take_upstream_output(&mut self, id: UpstreamId, bytes: &mut Vec<u8>) -> Handed {
        let _ = (id, bytes);
        Handed {
            hears: true,
            is_last: false,
        }
    }
    /// What [`Mailbox::call_service`](crate::Mailbox::call_service) has asked for, or the time that the last call returned. Returns when
    /// to call again, in nanoseconds of the monotonic clock ([`exact_ns`](crate::exact_ns)).
    fn called(&mut self) -> Option<u64> {
        None
    }
    /// Connections that the service wants to be called for; asked after each [`called`](Self::called).
    fn take_outgoing(&mut self) -> Option<std::sync::Arc<crate::OutgoingPoller>> {
        None
    }
    /// Whether it will be.
    fn outgoing_watched(&mut self, is_watched: bool) {
        let _ = is_watched;
    }
    /// Something for the operator of the server.
    fn noted(&mut self, note: Notice<'_>) {
        let _ = note;
    }
}

/// The way back to the client, for as long as a service call lasts.
///
/// Borrows what it may need in few pieces: one is made for every request.
pub struct Reply<'a> {
    pub(crate) stream: u32,
    pub(crate) conn: &'a mut Conn,
    pub(crate) tools: &'a mut Tools,
    pub(crate) watch: &'a mut Watch,
    pub(crate) compressor: Option<&'a Compressor>,
    pub(crate) codecs: &'a mut Codecs,
}

/// What comes out of the compressor goes on to the protocol.
struct Onward<'r, 'a>(&'r mut Reply<'a>);

impl Sink for Onward<'_, '_> {
    fn send(&mut self, action: Action<'_>) -> Result<(), Fault> {
        self.0.send_on(action)
    }

    fn read(&mut self, range: &FileRange) -> std::io::Result<Vec<u8>> {
        Ok(read_file(range)?)
    }
}

impl Reply<'_> {
    /// The request this reply belongs to.
    #[inline]
    pub fn id(&self) -> StreamId {
        StreamId {
            connection: self.conn.id,
            stream: self.stream,
        }
    }

    /// Who asks.
    #[inline]
    pub fn peer(&self) -> Peer {
        self.conn.peer
    }

    /// The turn's clock.
    pub fn now(&self) -> Millis {
        self.tools.clock.now
    }

    /// The address the client has reached; asks the kernel.
    pub fn local(&self) -> Peer {
        self.conn.local()
    }

    /// The limits in force.
    pub fn limits(&self) -> &Limits {
        &self.tools.limits
    }

    /// Gives back a head that is not needed any more, for its memory.
    #[inline]
    pub fn recycle(&mut self, head: Box<Head>) {
        self.tools.heads.give(head);
    }

    /// Does what the application wants.
    ///
    /// # Errors
    /// A fault to blame the application for; the client gets a 500 or a closed connection.
    #[inline]
    pub fn send(&mut self, action: Action<'_>) -> Result<(), Fault> {
        if let Some(compressor) = self.compressor {
            return self.send_compressed(compressor, action);
        }
        self.send_on(action)
    }

    /// Answers plainly, if that takes nothing but to write it; `false`: nothing is done, and
    /// [`send`](Self::send) has to do it.
    #[inline]
    pub fn respond(&mut self, plain: PlainResponse<'_>) -> bool {
        if self.compressor.is_some() || self.watch.is_on {
            return false;
        }
        let (conn, mut context) = (&mut *self.conn, self.tools.context());
        conn.wire
            .respond(&mut context, self.stream, plain, &mut conn.output)
    }

    #[inline]
    pub(crate) fn send_on(&mut self, action: Action<'_>) -> Result<(), Fault> {
        if self.watch.is_on {
            return self.send_watched(action);
        }
        let (conn, mut context) = (&mut *self.conn, self.tools.context());
        conn.wire
            .send(&mut context, self.stream, action, &mut conn.output)
    }

    /// Says what the request is counted and logged under; see [`Observer::class_of`].
    #[inline]
    pub fn classify(&mut self, class: u16) {
        if let Some(note) = self.conn.notes.last_mut()
            && note.stream == self.stream
        {
            note.class = class;
        }
    }

    /// Notes something of the request for the log and the metrics.
    fn note(&mut self, note_down: impl FnOnce(&mut Note)) {
        let mut notes = self.conn.notes.iter_mut();
        if let Some(note) = notes.find(|note| note.stream == self.stream) {
            note_down(note);
        }
    }

    /// Sends, and tells the observer what became of it.
    fn send_watched(&mut self, action: Action<'_>) -> Result<(), Fault> {
        let (stream, context) = (self.stream, &mut self.tools.context());
        let Conn {
            wire,
            notes,
            output,
            ..
        } = &mut *self.conn;
        let Some(at) = notes.iter().position(|note| note.stream == stream) else {
            return wire.send(context, stream, action, output);
        };
        let ending = watch::take_note_of(&mut notes[at], &action);
        let sent = match (&self.watch.observer, action) {
            (Some(observer), Action::Respond(response, payload)) if observer.adds_fields() => {
                let fields = &observer.add_fields(&notes[at], response.fields);
                let action = Action::Respond(ResponseHead { fields, ..response }, payload);
                wire.send(context, stream, action, output)
            }
            (Some(observer), Action::Start(response)) if observer.adds_fields() => {
                let fields = &observer.add_fields(&notes[at], response.fields);
                let action = Action::Start(ResponseHead { fields, ..response });
                wire.send(context, stream, action, output)
            }
            (Some(observer), Action::Switch { protocol, fields }) if observer.adds_fields() => {
                let fields = &observer.add_fields(&notes[at], fields);
                let action = Action::Switch { protocol, fields };
                wire.send(context, stream, action, output)
            }
            (_, action) => wire.send(context, stream, action, output),
        };
        match (sent, ending) {
            (Err(fault), _) => {
                let note = &mut notes[at];
                if !note.has_begun {
                    // What the application meant to say was not said.
                    (note.status, note.bytes) = (0, 0);
                }
                self.watch.end(notes.remove(at), Ending::Broken(fault));
            }
            (Ok(()), Some(ending)) => {
                let note = notes.remove(at);
                self.watch.leave(self.conn, note, ending);
            }
            (Ok(()), None) => {}
        }
        sent
    }

    /// Sends, compressed where that is worth it.
    fn send_compressed(
        &mut self,
        compressor: &Compressor,
        action: Action<'_>,
    ) -> Result<(), Fault> {
        let mut codings = std::mem::take(&mut self.conn.codings);
        let sent = compressor.send(&mut codings, self.stream, action, &mut Onward(self));
        self.conn.codings = codings;
        sent
    }

    /// Takes the next step of a response that the compressor has not sent all of.
    pub(crate) fn go_on(&mut self) -> Result<(), Fault> {
        let mut codings = std::mem::take(&mut self.conn.codings);
        let sent = codings.go_on(self.stream, &mut Onward(self));
        self.conn.codings = codings;
        sent
    }

    /// The response goes out as it is: the application has chosen its coding.
    pub fn keep_as_is(&mut self) {
        self.conn.codings.forget(self.stream);
    }

    /// The response is compressed at these levels, if it is.
    pub fn set_compression_levels(&mut self, levels: &[(Coding, u8)]) {
        self.conn.codings.set_levels(self.stream, levels);
    }

    /// Answers a call of a procedure by an error that says no more than the fault.
    pub(crate) fn fail(&mut self, fault: Fault) {
        let response = ResponseHead {
            status: fault.status(),
            content_type: Some(b"text/plain"),
            fields: &Fields::EMPTY,
        };
        // Refused only when the connection is being cut already.
        let _ = self.send(Action::Respond(
            response,
            Payload::Copied(fault.text().as_bytes()),
        ));
    }

    /// Has a call given up when it has taken so long from now.
    pub fn give_up_after(&mut self, ms: u64) {
        let due_at = self.tools.clock.now.saturating_add(ms);
        self.conn.wire.set_due(self.stream, due_at);
    }

    /// Asks for `bytes` more of the body.
    pub fn want(&mut self, bytes: u64) {
        let (conn, mut context) = (&mut *self.conn, self.tools.context());
        conn.wire
            .want(&mut context, self.stream, bytes, &mut conn.output);
    }

    /// The body of this request may have at most `bytes_max` bytes. Without a call it may have any number.
    ///
    /// `true`: more are announced. The request is answered with 413, and nothing is heard of it any more. If more come
    /// unannounced, it is [broken](Service::broken).
    #[must_use]
    pub fn limit_body(&mut self, bytes_max: u64) -> bool {
        let (conn, mut context) = (&mut *self.conn, self.tools.context());
        let is_refused =
            conn.wire
                .limit_body(&mut context, self.stream, bytes_max, &mut conn.output);
        if is_refused {
            self.watch
                .end_broken(self.conn, self.stream, Fault::BodyTooLong);
        }
        is_refused
    }

    /// Bytes of a streamed response that may be sent now without piling up.
    ///
    /// Zero in HTTP/1 while an earlier request of the connection is unanswered: what is sent then is parked.
    pub fn write_capacity(&self) -> usize {
        if self.conn.codings.is_unfinished(self.stream) {
            return 0;
        }
        let (limits, queued) = (&self.tools.limits, self.conn.output.len());
        self.conn.wire.write_capacity(self.stream, limits, queued)
    }

    /// Asks for one call of [`Service::writable`] when there is room again.
    pub fn await_writable(&mut self) {
        if !self.conn.rooms.contains(&self.stream) {
            self.conn.rooms.push(self.stream);
        }
    }

    /// Tells the client of a tunnel that nothing more comes.
    fn end_output(&mut self) {
        let conn = &mut *self.conn;
        let told = conn.wire.end_output(self.stream, &mut conn.output);
        if told == OutputEnd::Connection {
            conn.end_output();
        }
    }

    /// Does what a command says, as a turn does with those of the mailbox.
    ///
    /// # Errors
    /// As [`send`](Self::send).
    pub fn deliver(&mut self, command: StreamCommand) -> Result<(), Fault> {
        match command {
            StreamCommand::Act(action) => self.send(action.borrowed()),
            StreamCommand::Want(bytes) => {
                self.want(bytes);
                Ok(())
            }
            StreamCommand::RpcCode(code) => {
                self.note(|note| note.rpc_code = Some(code));
                Ok(())
            }
            StreamCommand::UpstreamTime(us) => {
                self.note(|note| note.upstream_us = Some(us));
                Ok(())
            }
            StreamCommand::AwaitWritable => {
                self.await_writable();
                Ok(())
            }
            StreamCommand::Switch(fields) => {
                self.keep_as_is();
                self.send_on(Action::Switch {
                    protocol: b"websocket",
                    fields: &fields,
                })
            }
            StreamCommand::EndOutput => {
                self.end_output();
                Ok(())
            }
            StreamCommand::Open(agreed, fields) => self.open_socket(agreed, &fields),
            StreamCommand::Message(kind, bytes) => {
                self.send_message(kind, Payload::Shared(bytes));
                Ok(())
            }
            StreamCommand::Close(close) => {
                self.close_socket(&close);
                Ok(())
            }
            StreamCommand::Session(command) => self.command_session(*command),
            // The turn does these itself.
            StreamCommand::Broadcast(_) | StreamCommand::Resume => Ok(()),
        }
    }
}
