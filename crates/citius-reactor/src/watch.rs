//! What the observer is told: the requests of all connections, from their heads to their ends.
//!
//! A connection keeps a note of each request without a complete response. Without an observer and without a limit on open
//! requests there are no notes, and the cost is a branch.

use std::collections::BTreeMap;

use citius_http::{Action, Fault, Head, Limits, Method, RefusedHead, Status, Version};
use citius_observe::{Counter, Ending, Gauge, Note, Observer};

use crate::clock::{exact_us, wall_us};
use crate::conn::Conn;
use crate::leaving::Leaving;

/// The observer, and what is known without one.
#[derive(Debug)]
pub(crate) struct Watch {
    pub(crate) observer: Option<Box<Observer>>,
    /// Notes are kept.
    pub(crate) is_on: bool,
    /// Requests that may be open; 0: any number.
    open_max: u32,
    /// Requests that are open.
    open: u32,
    /// How requests end whose connection ends: the client has left, unless it is the server that closes.
    pub(crate) lost: Ending,
}

/// Routes of open requests that are told by name.
const ROUTES_TOLD: usize = 5;

/// What is to be done with a request that has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Admission {
    /// The service gets it.
    Serve,
    /// Too many are open.
    Shed,
    /// It asks whether we live, or (`true`) whether we are ready.
    Health(bool),
}

impl Watch {
    pub(crate) fn new(observer: Option<Box<Observer>>, limits: &Limits) -> Self {
        Self {
            is_on: observer.is_some() || limits.requests_open_max > 0,
            observer,
            open_max: limits.requests_open_max,
            open: 0,
            lost: Ending::Cancelled,
        }
    }

    /// The beginning of a turn.
    #[inline]
    pub(crate) fn begin_turn(&mut self) {
        if let Some(observer) = &mut self.observer {
            observer.tick(exact_us(), wall_us());
        }
    }

    /// The end of a turn.
    #[inline]
    pub(crate) fn end_turn(&mut self, connections_open: usize) {
        if let Some(observer) = &mut self.observer {
            observer.end_turn(connections_open, self.open);
        }
    }

    /// A request has come.
    pub(crate) fn begin(&mut self, conn: &mut Conn, stream: u32, head: &mut Head) -> Admission {
        let note = match &mut self.observer {
            Some(observer) => observer.begin(
                stream,
                head,
                conn.peer.address(),
                conn.is_trusted,
                exact_us(),
            ),
            None => Note::bare(stream, head.method == Method::Head),
        };
        conn.notes.push(note);
        self.open += 1;
        if let Some(observer) = &mut self.observer {
            if let Some(wants_ready) = observer.asks_for_health(head.path()) {
                return Admission::Health(wants_ready);
            }
            if self.open_max > 0 && self.open > self.open_max {
                observer.slot().add(Counter::RequestsShed, 1);
            }
        }
        if self.open_max > 0 && self.open > self.open_max {
            Admission::Shed
        } else {
            Admission::Serve
        }
    }

    /// Something has come that [`end`](Self::end) ends.
    pub(crate) fn note_open(&mut self) {
        self.open += 1;
    }

    /// A request has ended.
    #[inline]
    pub(crate) fn end(&mut self, note: Note, ending: Ending) {
        self.open -= 1;
        if let Some(observer) = &mut self.observer {
            observer.finish(note, ending, exact_us());
        }
    }

    /// A request is fully answered. It is told of once the kernel has its response.
    pub(crate) fn leave(&mut self, conn: &mut Conn, note: Note, ending: Ending) {
        self.open -= 1;
        if self.observer.is_none() {
            return;
        }
        let mut leaving = Leaving {
            note,
            ending,
            end_at: None,
            held_back: 0,
        };
        leaving.look(&conn.wire, conn.end_of_output());
        conn.leaving.push(leaving);
    }

    /// Tells of the requests whose responses have left by now.
    pub(crate) fn end_sent(&mut self, conn: &mut Conn) {
        let Some(observer) = &mut self.observer else {
            return;
        };
        let (now_us, end_of_output) = (exact_us(), conn.end_of_output());
        let mut all = std::mem::take(&mut conn.leaving);
        let mut kept = Vec::new();
        for mut leaving in all.drain(..) {
            leaving.look(&conn.wire, end_of_output);
            if leaving.end_at.is_some_and(|end| end <= conn.written_bytes) {
                observer.finish(leaving.note, leaving.ending, now_us);
            } else {
                kept.push(leaving);
            }
        }
        // Most often none are left, and the memory is kept.
        conn.leaving = if kept.is_empty() { all } else { kept };
    }

    /// Tells of the requests whose responses will never leave in full.
    fn end_unsent(&mut self, conn: &mut Conn) {
        let lost = self.lost_of(conn);
        let Some(observer) = &mut self.observer else {
            return;
        };
        let (now_us, mut begin) = (exact_us(), conn.written_bytes);
        for leaving in conn.leaving.drain(..) {
            let unsent = match leaving.end_at {
                Some(end) => end.saturating_sub(begin),
                None => leaving.held_back,
            };
            begin = begin.max(leaving.end_at.unwrap_or(0));
            let (note, ending) = leaving.cut(unsent);
            let ending = match ending {
                Ending::Complete if unsent > 0 && conn.is_cut => Ending::Aborted,
                Ending::Complete if unsent > 0 => lost,
                ending => ending,
            };
            observer.finish(note, ending, now_us);
        }
    }

    /// The body of a request will never be complete.
    pub(crate) fn end_broken(&mut self, conn: &mut Conn, stream: u32, fault: Fault) {
        // In HTTP/2 a stream may be broken and the connection whole.
        conn.fault_told |= conn.wire.fault() == Some(fault);
        self.end_calls(conn, Some(stream));
        if let Some(at) = conn.notes.iter().position(|note| note.stream == stream) {
            let mut note = conn.notes.remove(at);
            if note.status == 0 {
                note.bytes = conn.wire.fault_response_bytes();
            }
            self.end(note, Ending::Broken(fault));
        }
        // The client has taken back a request whose response waited for its window.
        let is_it = |leaving: &Leaving| leaving.note.stream == stream && leaving.end_at.is_none();
        if let (Some(at), Some(observer)) =
            (conn.leaving.iter().position(is_it), &mut self.observer)
        {
            let leaving = conn.leaving.remove(at);
            let unsent = leaving.held_back;
            let (note, _) = leaving.cut(unsent);
            observer.finish(note, Ending::Broken(fault), exact_us());
        }
    }

    /// The connection has gone; requests without a response get none.
    pub(crate) fn end_all(&mut self, conn: &mut Conn) {
        let (unsent, lost) = (conn.output.len() as u64, self.lost_of(conn));
        self.end_unsent(conn);
        while let Some(mut note) = conn.notes.pop() {
            note.bytes = note.bytes.saturating_sub(unsent);
            self.end(note, lost);
        }
    }

    /// Why a connection ends that has requests.
    pub(crate) fn lost_of(&self, conn: &Conn) -> Ending {
        if conn.is_stalled || conn.wire.fault() == Some(Fault::StreamStalled) {
            Ending::Broken(Fault::StreamStalled)
        } else {
            self.lost
        }
    }

    /// Counts and returns the requests whose heads were refused since the last call, and the fault that has ended
    /// reading, where no request was told of it.
    #[cold]
    pub(crate) fn take_refused(&mut self, conn: &mut Conn) -> Vec<RefusedHead> {
        let mut all = conn.wire.take_refused();
        if let Some(fault) = conn.wire.fault()
            && !std::mem::replace(&mut conn.fault_told, true)
        {
            let refused = conn.wire.refused_head(&conn.input);
            let unknown = || RefusedHead::new(fault, Version::default(), (b"", b""), 0);
            all.push(refused.unwrap_or_else(unknown));
        }
        if let Some(observer) = &mut self.observer {
            for refused in &all {
                observer.refuse(conn.peer.address(), refused, exact_us());
            }
        }
        all
    }

    /// Withdraws readiness, or gives it back.
    pub(crate) fn set_short_of_descriptors(&mut self, is_short: bool) {
        if let Some(observer) = &mut self.observer {
            observer
                .slot()
                .set(Gauge::DescriptorsMissing, u64::from(is_short));
        }
    }

    /// The routes of open requests, the most frequent first: `2 of GET /events, 1 of GET /ws`.
    #[cold]
    pub(crate) fn routes<'a>(&self, notes: impl Iterator<Item = &'a Note>) -> String {
        let Some(observer) = &self.observer else {
            return String::new();
        };
        let mut counts: BTreeMap<String, usize> = BTreeMap::new();
        for note in notes {
            *counts.entry(observer.describe(note)).or_default() += 1;
        }
        let mut counts: Vec<_> = counts.into_iter().collect();
        counts.sort_by_key(|&(_, count)| std::cmp::Reverse(count));
        let others: usize = counts.iter().skip(ROUTES_TOLD).map(|(_, n)| n).sum();
        let told = counts.iter().take(ROUTES_TOLD);
        let mut told: Vec<String> = told.map(|(route, n)| format!("{n} of {route}")).collect();
        if others > 0 {
            told.push(format!("{others} others"));
        }
        told.join(", ")
    }

    /// Counts something that happens to connections.
    #[inline]
    pub(crate) fn count(&mut self, counter: Counter, n: u64) {
        if let Some(observer) = &mut self.observer {
            observer.slot().add(counter, n);
        }
    }
}

/// What an action makes of a request: its ending, if this is one.
pub(crate) fn take_note_of(note: &mut Note, action: &Action<'_>) -> Option<Ending> {
    match action {
        Action::Respond(response, payload) => {
            note.status = response.status.code();
            if !note.head_only && !response.status.refuses_content() {
                note.bytes += payload.len();
            }
            Some(Ending::Complete)
        }
        Action::Inform(_) => None,
        Action::Start(response) => {
            note.status = response.status.code();
            note.has_begun = true;
            None
        }
        Action::Switch { .. } => {
            note.status = 101;
            note.has_begun = true;
            None
        }
        Action::Data(payload) => {
            let is_dropped = || Status::new(note.status).is_some_and(Status::refuses_content);
            if !note.head_only && !is_dropped() {
                note.bytes += payload.len();
            }
            None
        }
        Action::End { .. } => Some(Ending::Complete),
        Action::Abort => Some(Ending::Aborted),
    }
}
