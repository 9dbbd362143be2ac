//! WebTransport over HTTP/3 (draft-ietf-webtrans-http3): sessions, their streams, and datagrams (RFC 9297).
//!
//! A session is the stream of an extended CONNECT that was granted. Its other streams name it at their start; what comes for
//! one that is not granted yet waits in QUIC's buffers, but for the first bytes.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use bytes::Bytes;
use citius_http::{Fault, Fields, Limits, Payload};

use crate::capsule::{self, Capsules};
use crate::code::{self, Code};
use crate::connection::{Connection, Shutdown};
use crate::frame;
use crate::seam::{Context, Control, Incoming, SessionEvent, Token};
use crate::stream::{Fin, Phase, Reading, Sender, quic, request_number};
use crate::varint;

/// Bytes of a stream that are read at once.
const READ_BYTES: usize = 64 * 1024;

/// A session that was granted.
#[derive(Debug)]
struct Session {
    id: u32,
    capsules: Capsules,
}

/// A stream of a session.
#[derive(Debug)]
struct SessionStream {
    stream: u64,
    session: u32,
    /// `None`: the client does not send, or no more.
    receiver: Option<Receiver>,
    /// `None`: the server does not send, or no more.
    sender: Option<Sender>,
    served: u32,
    /// The application waits until all bytes are taken.
    awaits_room: bool,
}

/// What the client sends on a stream.
#[derive(Debug, Default)]
struct Receiver {
    /// The application knows of the stream.
    is_told: bool,
    /// Bytes that it wants.
    credit: u64,
    /// Bytes that came before.
    unread: Bytes,
    /// The client has finished its side, behind `unread`.
    has_ended: bool,
}

/// A stream that was asked for.
#[derive(Debug)]
struct Opening {
    token: u32,
    session: u32,
    is_bidirectional: bool,
    purpose: Purpose,
}

/// What a stream is opened for.
#[derive(Debug)]
enum Purpose {
    /// The application uses it, and knows it by this number.
    Number(u32),
    /// It carries one message.
    Message(Bytes),
    /// It carries one message of a history, which bounds how many there are: it counts for no limit before it is open.
    Replayed(Bytes),
}

/// What is known of sessions; empty on connections without any.
#[derive(Debug, Default)]
pub(crate) struct Sessions {
    open: Vec<Session>,
    streams: Vec<SessionStream>,
    opening: Vec<Opening>,
    n_asked: u32,
    pub(crate) events: VecDeque<SessionEvent<'static>>,
    /// Streams of which something waits to be told.
    ready: VecDeque<u64>,
    /// One was granted.
    was_used: bool,
    /// Datagrams that wait for their sessions to be granted.
    early: VecDeque<(u32, Bytes)>,
    /// Those that found no room there, and are not counted.
    n_dropped: u64,
}

impl Sessions {
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.open.is_empty() && self.streams.is_empty()
    }

    /// Whether a session is open; streams may wait for one that is not granted.
    #[inline]
    pub(crate) fn has_open(&self) -> bool {
        !self.open.is_empty()
    }

    #[inline]
    pub(crate) fn has_events(&self) -> bool {
        !self.events.is_empty() || !self.ready.is_empty()
    }

    #[inline]
    pub(crate) fn has_stream(&self, stream: u64) -> bool {
        self.streams.iter().any(|other| other.stream == stream)
    }

    #[inline]
    pub(crate) fn n_streams(&self) -> usize {
        self.streams.len()
    }

    /// Whether a session was granted, whatever has become of it.
    #[inline]
    pub(crate) fn was_used(&self) -> bool {
        self.was_used
    }

    /// The client has opened a stream of a session.
    pub(crate) fn adopt(&mut self, stream: u64, session: u32) {
        self.streams.push(SessionStream {
            stream,
            session,
            receiver: Some(Receiver::default()),
            sender: (stream & 2 == 0).then(Sender::default),
            served: 0,
            awaits_room: false,
        });
    }

    fn find_mut(&mut self, stream: u64) -> Option<&mut SessionStream> {
        self.streams.iter_mut().find(|other| other.stream == stream)
    }

    fn find(&self, stream: u64) -> Option<&SessionStream> {
        self.streams.iter().find(|other| other.stream == stream)
    }

    /// Streams that were asked for, but those of a history.
    fn n_opening(&self) -> usize {
        let is_counted = |one: &&Opening| !matches!(one.purpose, Purpose::Replayed(_));
        self.opening.iter().filter(is_counted).count()
    }

    fn is_granted(&self, session: u32) -> bool {
        self.open.iter().any(|open| open.id == session)
    }

    pub(crate) fn sender(&self, stream: u64) -> Option<&Sender> {
        self.find(stream)?.sender.as_ref()
    }

    pub(crate) fn sender_mut(&mut self, stream: u64) -> Option<&mut Sender> {
        self.find_mut(stream)?.sender.as_mut()
    }

    pub(crate) fn served(&self, stream: u64) -> u32 {
        self.find(stream).map_or(0, |found| found.served)
    }

    pub(crate) fn note_served(&mut self, stream: u64, n_served: u32) {
        if let Some(found) = self.find_mut(stream) {
            found.served = n_served;
        }
    }

    /// All bytes of a stream are taken.
    pub(crate) fn all_is_taken(&mut self, stream: u64) {
        if let Some(found) = self.find_mut(stream)
            && core::mem::take(&mut found.awaits_room)
        {
            let session = found.session;
            self.events
                .push_back(SessionEvent::Writable { session, stream });
        }
    }

    /// The end of a stream has left.
    pub(crate) fn local_end_is_sent(&mut self, stream: u64) {
        if let Some(found) = self.find_mut(stream) {
            found.sender = None;
        }
        self.forget_if_over(stream);
    }

    /// Forgets a stream of which both sides are over.
    fn forget_if_over(&mut self, stream: u64) {
        self.streams.retain(|other| {
            other.stream != stream || other.receiver.is_some() || other.sender.is_some()
        });
    }

    pub(crate) fn clear(&mut self) {
        self.open.clear();
        self.streams.clear();
        self.opening.clear();
        self.events.clear();
        self.ready.clear();
        self.early.clear();
    }
}

impl Connection {
    /// Whether as many sessions are open, or asked for, as may be.
    pub(crate) fn has_all_sessions(&self, limits: &Limits) -> bool {
        let n_sessions = self
            .streams
            .iter()
            .filter(|stream| stream.asks_session)
            .count();
        n_sessions > limits.webtransport_sessions_max as usize
    }

    /// A session is granted.
    pub(crate) fn begin_session(&mut self, id: u32) {
        self.sessions.was_used = true;
        self.sessions.open.push(Session {
            id,
            capsules: Capsules::default(),
        });
        let waiting = self
            .sessions
            .streams
            .iter()
            .filter(|stream| stream.session == id);
        let waiting: Vec<u64> = waiting.map(|stream| stream.stream).collect();
        self.sessions.ready.extend(waiting);
        for (session, bytes) in core::mem::take(&mut self.sessions.early) {
            if session == id {
                self.tell(SessionEvent::EarlyDatagram { session, bytes });
            } else {
                self.sessions.early.push_back((session, bytes));
            }
        }
        // Capsules may have come.
        self.ready.push_back(id);
        if self.shutdown != Shutdown::No && self.direct.is_none() {
            self.drain_session(id);
        }
    }

    /// A session is over: its streams are reset.
    pub(crate) fn end_session(&mut self, id: u32) {
        self.sessions.open.retain(|session| session.id != id);
        let mut unopened = Vec::new();
        self.sessions.opening.retain(|opening| {
            if opening.session == id {
                unopened.push(opening.token);
            }
            opening.session != id
        });
        if !unopened.is_empty() {
            unopened.sort_unstable();
            self.controls.push_back(Control::Forget(unopened));
        }
        self.sessions.early.retain(|&(session, _)| session != id);
        let code = Code::SessionGone.number();
        let mut gone = Vec::new();
        self.sessions.streams.retain_mut(|found| {
            if found.session != id {
                return true;
            }
            gone.push((
                found.stream,
                found.sender.is_some(),
                found.receiver.is_some(),
            ));
            false
        });
        for (stream, sends, receives) in gone {
            self.turns.retain(|turn| turn.stream != stream);
            if sends {
                self.controls.push_back(Control::Reset { stream, code });
            }
            if receives {
                self.controls
                    .push_back(Control::StopSending { stream, code });
            }
        }
    }

    /// The client has closed a session: this side is finished too.
    fn close_by_client(&mut self, cx: &mut Context<'_>, id: u32, code: u32, reason: Bytes) {
        if !self.sessions.is_granted(id) {
            return;
        }
        self.end_session(id);
        self.tell(SessionEvent::Closed {
            session: id,
            code,
            reason,
        });
        self.finish_session(cx, id);
    }

    /// Whether the client has ended a session's stream within a capsule (RFC 9297 §3.3).
    pub(crate) fn cuts_capsule(&self, id: u32) -> bool {
        let session = self.sessions.open.iter().find(|open| open.id == id);
        session.is_some_and(|session| !session.capsules.is_whole())
    }

    /// The client has ended a session's stream without a word.
    pub(crate) fn session_is_closed(&mut self, cx: &mut Context<'_>, id: u32) {
        self.close_by_client(cx, id, 0, Bytes::new());
    }

    fn finish_session(&mut self, cx: &mut Context<'_>, id: u32) {
        if let Some(stream) = self.streams.find_mut(id) {
            stream.reading = Reading::Over;
        }
        // Fails only where the response is over.
        let _ = self.send(
            cx,
            id,
            citius_http::Action::End {
                trailers: &Fields::EMPTY,
            },
        );
    }

    /// Capsules of a session (RFC 9297 §3.2).
    pub(crate) fn take_capsules(
        &mut self,
        cx: &mut Context<'_>,
        id: u32,
        mut bytes: &[u8],
    ) -> Result<(), Fault> {
        loop {
            let Some(session) = self
                .sessions
                .open
                .iter_mut()
                .find(|session| session.id == id)
            else {
                return Ok(());
            };
            match session.capsules.next(&mut bytes) {
                Ok(None) => return Ok(()),
                Ok(Some(capsule::Capsule::Ignored)) => {
                    self.budget.idle_frame(cx.now, cx.limits)?;
                }
                Ok(Some(capsule::Capsule::Draining)) => {
                    self.budget.idle_frame(cx.now, cx.limits)?;
                    self.tell(SessionEvent::Draining { session: id });
                }
                Ok(Some(capsule::Capsule::Closed { code, reason })) => {
                    self.close_by_client(cx, id, code, reason);
                    return Ok(());
                }
                Err(fault) => return self.break_for(cx, id, fault),
            }
        }
    }

    // --- streams of the client ----------------------------------------------------------------

    /// A stream names its session; whether it is taken.
    pub(crate) fn adopt_session_stream(
        &mut self,
        cx: &mut Context<'_>,
        stream: u64,
        session: u64,
    ) -> bool {
        let Some(id) = request_number(session) else {
            self.end_with(Fault::IdentifierOrder);
            return false;
        };
        let is_granted = self.sessions.is_granted(id);
        let may_be_granted = self.may_be_granted(id);
        let is_held = |found: &&SessionStream| !self.sessions.is_granted(found.session);
        let n_held = self.sessions.streams.iter().filter(is_held).count();
        let code = if !is_granted && !may_be_granted {
            Some(Code::SessionGone)
        } else if self.sessions.streams.len() >= cx.limits.webtransport_streams_max as usize
            || !is_granted && n_held >= cx.limits.webtransport_early_max as usize
        {
            Some(Code::SessionStreamRejected)
        } else {
            None
        };
        if let Some(code) = code {
            self.reject(stream, code);
            if let Err(fault) = self.budget.idle_frame(cx.now, cx.limits) {
                self.end_with(fault);
            }
            return false;
        }
        self.sessions.adopt(stream, id);
        true
    }

    /// Takes bytes of a stream of a session.
    pub(crate) fn receive_session_stream<'i>(
        &mut self,
        stream: u64,
        input: &mut &'i [u8],
        fin: bool,
    ) -> Option<Incoming<'i>> {
        let given = core::mem::take(input);
        let found = self
            .sessions
            .streams
            .iter_mut()
            .find(|found| found.stream == stream)?;
        let session = found.session;
        let is_granted = self.sessions.open.iter().any(|open| open.id == session);
        let receiver = found.receiver.as_mut()?;
        if is_granted && !receiver.is_told {
            receiver.is_told = true;
            *input = given;
            return Some(Incoming::Session(SessionEvent::Opened { session, stream }));
        }
        receiver.has_ended |= fin;
        if !given.is_empty() {
            let length = usize::try_from(receiver.credit)
                .unwrap_or(usize::MAX)
                .min(given.len());
            if length == 0 || !is_granted || !receiver.unread.is_empty() {
                receiver.unread = if receiver.unread.is_empty() {
                    Bytes::copy_from_slice(given)
                } else {
                    Bytes::from([&receiver.unread, given].concat())
                };
                return None;
            }
            let (bytes, rest) = given.split_at(length);
            *input = rest;
            receiver.credit = receiver.credit.saturating_sub(length as u64);
            return Some(Incoming::Session(SessionEvent::Data {
                session,
                stream,
                bytes,
            }));
        }
        if receiver.has_ended && is_granted && receiver.unread.is_empty() {
            found.receiver = None;
            self.sessions.forget_if_over(stream);
            return Some(Incoming::Session(SessionEvent::End { session, stream }));
        }
        None
    }

    /// Streams go on of which something waits.
    pub(crate) fn resume_session_stream(&mut self) -> Option<Incoming<'static>> {
        while let Some(&stream) = self.sessions.ready.front() {
            if let Some(event) = self.next_of_session_stream(stream) {
                return Some(Incoming::Session(event));
            }
            self.sessions.ready.pop_front();
        }
        None
    }

    fn next_of_session_stream(&mut self, stream: u64) -> Option<SessionEvent<'static>> {
        let found = self.sessions.find_mut(stream)?;
        let session = found.session;
        let receiver = found.receiver.as_mut()?;
        if !receiver.is_told {
            receiver.is_told = true;
            return Some(SessionEvent::Opened { session, stream });
        }
        if !receiver.unread.is_empty() {
            let length = usize::try_from(receiver.credit)
                .unwrap_or(usize::MAX)
                .min(receiver.unread.len());
            if length == 0 {
                return None;
            }
            receiver.credit = receiver.credit.saturating_sub(length as u64);
            let bytes = receiver.unread.split_to(length);
            return Some(SessionEvent::Buffered {
                session,
                stream,
                bytes,
            });
        }
        if receiver.has_ended {
            found.receiver = None;
            self.sessions.forget_if_over(stream);
            return Some(SessionEvent::End { session, stream });
        }
        None
    }

    /// What of a stream is of use now; `None`: it is of no session.
    pub(crate) fn appetite_for_session(&self, stream: u64) -> Option<usize> {
        let found = self.sessions.find(stream)?;
        let receiver = found.receiver.as_ref()?;
        let is_held = !self.sessions.is_granted(found.session) || !receiver.unread.is_empty();
        Some(if is_held {
            0
        } else {
            usize::try_from(receiver.credit)
                .unwrap_or(usize::MAX)
                .min(READ_BYTES)
        })
    }

    /// The client has reset its side of a stream; `false`: it is of no session.
    pub(crate) fn reset_session_side(&mut self, stream: u64, code: u64) -> bool {
        let Some(found) = self.sessions.find_mut(stream) else {
            return false;
        };
        let session = found.session;
        let was_told = found
            .receiver
            .take()
            .is_some_and(|receiver| receiver.is_told);
        self.sessions.forget_if_over(stream);
        if was_told {
            self.tell(SessionEvent::Reset {
                session,
                stream,
                code: code::to_session(code),
            });
        }
        true
    }

    /// The client reads no more of a stream; `false`: it is of no session.
    pub(crate) fn stop_session_side(&mut self, stream: u64, code: u64) -> bool {
        let Some(found) = self.sessions.find_mut(stream) else {
            return false;
        };
        if found.sender.take().is_none() {
            return true;
        }
        let session = found.session;
        let is_known = found
            .receiver
            .as_ref()
            .is_none_or(|receiver| receiver.is_told);
        self.sessions.forget_if_over(stream);
        self.turns.retain(|turn| turn.stream != stream);
        self.controls.push_back(Control::Reset { stream, code });
        if is_known {
            self.tell(SessionEvent::Stopped {
                session,
                stream,
                code: code::to_session(code),
            });
        }
        true
    }

    // --- what the application wants -------------------------------------------------------------

    /// Asks for a stream of `session`, which the application knows by `number` until [`SessionEvent::Ready`] says which one it
    /// is. [`SessionEvent::NotOpened`]: as many are open as may be. Nothing comes of it if the session is over.
    pub fn open_session_stream(
        &mut self,
        session: u32,
        number: u32,
        is_bidirectional: bool,
        limits: &Limits,
    ) {
        if !self.open_stream(session, Purpose::Number(number), is_bidirectional, limits)
            && self.sessions.is_granted(session)
        {
            self.tell(SessionEvent::NotOpened { session, number });
        }
    }

    /// Sends a message of `session` on a unidirectional stream of its own. `false`: the session is over, or as many streams are
    /// open as may be.
    pub fn send_session_message(&mut self, session: u32, bytes: Bytes, limits: &Limits) -> bool {
        self.open_stream(session, Purpose::Message(bytes), false, limits)
    }

    /// Opens a stream that carries a message of a history, when the client lets it; `false` if there is no such session.
    pub fn replay_session_message(&mut self, session: u32, bytes: Bytes, limits: &Limits) -> bool {
        self.open_stream(session, Purpose::Replayed(bytes), false, limits)
    }

    fn open_stream(
        &mut self,
        session: u32,
        purpose: Purpose,
        is_bidirectional: bool,
        limits: &Limits,
    ) -> bool {
        let n_streams = self
            .sessions
            .streams
            .len()
            .saturating_add(self.sessions.n_opening());
        let is_full = n_streams >= limits.webtransport_streams_max as usize;
        let is_counted = !matches!(purpose, Purpose::Replayed(_));
        if !self.sessions.is_granted(session) || is_counted && is_full {
            return false;
        }
        let number = self.sessions.n_asked;
        self.sessions.n_asked = number.wrapping_add(1);
        self.sessions.opening.push(Opening {
            token: number,
            session,
            is_bidirectional,
            purpose,
        });
        let token = Token::Session(number);
        self.controls.push_back(if is_bidirectional {
            Control::OpenBi(token)
        } else {
            Control::OpenUni(token)
        });
        true
    }

    /// A stream that was asked for is open.
    pub(crate) fn session_stream_opened(&mut self, token: u32, stream: u64) {
        let found = self
            .sessions
            .opening
            .iter()
            .position(|opening| opening.token == token);
        let Some(index) = found else {
            // Its session is over.
            return self.reject(stream, Code::SessionGone);
        };
        let Opening {
            session,
            is_bidirectional,
            purpose,
            ..
        } = self.sessions.opening.swap_remove(index);
        let mut sender = Sender::default();
        let tail = sender.output.tail();
        if self.direct.is_none() {
            varint::put(tail, if is_bidirectional { 0x41 } else { 0x54 });
            varint::put(tail, quic(session));
        }
        if let Purpose::Message(bytes) | Purpose::Replayed(bytes) = &purpose {
            sender.output.push(Payload::Shared(bytes.clone()));
            sender.fin = Fin::Due;
        }
        let receiver = Receiver {
            is_told: true,
            ..Receiver::default()
        };
        self.sessions.streams.push(SessionStream {
            stream,
            session,
            receiver: is_bidirectional.then_some(receiver),
            sender: Some(sender),
            served: 0,
            awaits_room: false,
        });
        self.schedule(stream);
        if let Purpose::Number(number) = purpose {
            self.tell(SessionEvent::Ready {
                session,
                number,
                stream,
            });
        }
    }

    /// The application wants up to `bytes` more of a stream; adds up.
    pub fn want_session_bytes(&mut self, stream: u64, bytes: u64) {
        let Some(found) = self.sessions.find_mut(stream) else {
            return;
        };
        if let Some(receiver) = &mut found.receiver {
            receiver.credit = receiver.credit.saturating_add(bytes);
            if !receiver.unread.is_empty() || receiver.has_ended {
                self.sessions.ready.push_back(stream);
            }
        }
    }

    /// Sends bytes on a stream, and with `fin` its end. `false`: it is over.
    pub fn send_session_bytes(&mut self, stream: u64, payload: Payload<'_>, fin: bool) -> bool {
        let Some(sender) = self.sessions.sender_mut(stream) else {
            return false;
        };
        if sender.fin != Fin::No {
            return false;
        }
        sender.output.push(payload);
        if fin {
            sender.fin = Fin::Due;
        }
        if sender.is_due() {
            self.schedule(stream);
        }
        true
    }

    /// Has [`SessionEvent::Writable`] told when all bytes of a stream are taken; nothing if its sending side is over.
    pub fn await_session_room(&mut self, stream: u64) {
        let Some(found) = self.sessions.find_mut(stream) else {
            return;
        };
        let Some(sender) = &found.sender else {
            return;
        };
        if sender.is_due() {
            found.awaits_room = true;
        } else {
            let session = found.session;
            self.tell(SessionEvent::Writable { session, stream });
        }
    }

    /// Whether a WebTransport session was granted, whatever has become of it.
    pub fn had_sessions(&self) -> bool {
        self.sessions.was_used && self.direct.is_none()
    }

    /// The open sessions and the open streams in them.
    #[inline]
    pub fn n_sessions(&self) -> (usize, usize) {
        (self.sessions.open.len(), self.sessions.streams.len())
    }

    /// Datagrams that were dropped since the last call.
    #[inline]
    pub fn take_datagrams_dropped(&mut self) -> u64 {
        core::mem::take(&mut self.sessions.n_dropped)
    }

    /// Whether `session` was granted, and is not over.
    pub fn is_session(&self, session: u32) -> bool {
        self.sessions.is_granted(session)
    }

    /// Streams of sessions of which something waits to be sent.
    pub fn waiting_session_streams(&self) -> usize {
        let is_due = |found: &&SessionStream| found.sender.as_ref().is_some_and(Sender::is_due);
        let n_due = self.sessions.streams.iter().filter(is_due).count();
        n_due.saturating_add(self.sessions.n_opening())
    }

    /// Resets the server's side of a stream with the application's `code`.
    pub fn reset_session_stream(&mut self, stream: u64, code: u32) {
        let Some(found) = self.sessions.find_mut(stream) else {
            return;
        };
        if found.sender.take().is_some() {
            let code = code::from_session(code);
            self.controls.push_back(Control::Reset { stream, code });
            self.turns.retain(|turn| turn.stream != stream);
            self.sessions.forget_if_over(stream);
        }
    }

    /// Reads no more of a stream, and tells the client so with the application's `code`.
    pub fn stop_session_stream(&mut self, stream: u64, code: u32) {
        let Some(found) = self.sessions.find_mut(stream) else {
            return;
        };
        if found.receiver.take().is_some() {
            let code = code::from_session(code);
            self.controls
                .push_back(Control::StopSending { stream, code });
            self.sessions.forget_if_over(stream);
        }
    }

    /// Sends a datagram of `session`; `false`: the session is over, or the client takes none.
    pub fn send_datagram(&mut self, session: u32, bytes: &[u8]) -> bool {
        if !self.sessions.is_granted(session) || !self.peer.datagrams {
            return false;
        }
        let mut datagram = Vec::with_capacity(bytes.len().saturating_add(8));
        varint::put(&mut datagram, u64::from(session));
        datagram.extend_from_slice(bytes);
        self.controls.push_back(Control::Datagram(datagram.into()));
        true
    }

    /// Closes `session` with the application's code and words, of which 1024 bytes are sent.
    pub fn close_session(&mut self, cx: &mut Context<'_>, session: u32, code: u32, reason: &[u8]) {
        if !self.sessions.is_granted(session) {
            return;
        }
        let mut bytes = Vec::new();
        capsule::put_close(&mut bytes, code, reason);
        self.write_capsule(session, &bytes);
        self.end_session(session);
        self.finish_session(cx, session);
    }

    /// Asks the clients of all sessions to bring them to an end.
    pub(crate) fn drain_sessions(&mut self) {
        let open = self.sessions.open.iter();
        let sessions: Vec<u32> = open.map(|session| session.id).collect();
        for session in sessions {
            self.drain_session(session);
        }
    }

    fn drain_session(&mut self, session: u32) {
        let mut bytes = Vec::new();
        capsule::put_drain(&mut bytes);
        self.write_capsule(session, &bytes);
        self.tell(SessionEvent::Leaving { session });
    }

    fn write_capsule(&mut self, session: u32, bytes: &[u8]) {
        if let Some(stream) = self.streams.find_mut(session)
            && stream.is_open()
        {
            frame::whole(stream.sender.output.tail(), frame::DATA, bytes);
            self.schedule(quic(session));
        }
    }

    /// A DATAGRAM frame has come. A few of sessions that are not granted yet wait for that; others are dropped.
    pub fn datagram<'i>(&mut self, cx: &mut Context<'_>, bytes: &'i [u8]) -> Option<Incoming<'i>> {
        if self.closing.is_some() || self.direct.is_some() {
            return None;
        }
        let mut rest = bytes;
        let quarter = varint::take(&mut rest).filter(|quarter| quarter >> 60 == 0);
        let Some(quarter) = quarter else {
            self.end_with(Fault::DatagramSyntax);
            return None;
        };
        let session = u32::try_from(quarter).ok()?;
        if self.sessions.is_granted(session) {
            return Some(Incoming::Session(SessionEvent::Datagram {
                session,
                bytes: rest,
            }));
        }
        if self.options.webtransport && self.may_be_granted(session) {
            let mut early = core::mem::take(&mut self.sessions.early);
            early.retain(|&(waiting, _)| self.may_be_granted(waiting));
            if early.len() < cx.limits.webtransport_early_max as usize {
                early.push_back((session, Bytes::copy_from_slice(rest)));
            } else {
                self.sessions.n_dropped = self.sessions.n_dropped.saturating_add(1);
            }
            self.sessions.early = early;
        }
        None
    }

    /// Whether a request has come, or may come, that asks for the session `id`, and is not decided.
    fn may_be_granted(&self, id: u32) -> bool {
        if let Some(request) = self.streams.find(id) {
            return request.phase == Phase::Head || request.asks_session && request.is_open();
        }
        let may_come = id >= self.next_stream || self.unseen.contains(&id);
        may_come && !self.is_behind_goaway(id)
    }
}
