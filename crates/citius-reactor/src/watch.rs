//! What the observer is told: the requests of all connections, from their heads to their ends.
//!
//! A connection keeps a note of each request that is not fully answered. Without an observer and without
//! a limit on open requests there are no notes, and the cost is a branch.

use citius_http::{Action, Fault, Head, Limits, Method};
use citius_observe::{Ending, Note, Observer, Tally};

use crate::clock::{exact_us, wall_us};
use crate::conn::Conn;

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
}

/// What is to be done with a request that has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Course {
    /// The service answers it.
    Serve,
    /// Too many are open.
    Shed,
    /// It asks whether we live, or (`true`) whether we are ready.
    TellHealth(bool),
}

impl Watch {
    pub(crate) fn new(observer: Option<Box<Observer>>, limits: &Limits) -> Self {
        Self {
            is_on: observer.is_some() || limits.requests_open_max > 0,
            observer,
            open_max: limits.requests_open_max,
            open: 0,
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
    pub(crate) fn begin(&mut self, conn: &mut Conn, stream: u32, head: &mut Head) -> Course {
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
                return Course::TellHealth(wants_ready);
            }
            if self.open_max > 0 && self.open > self.open_max {
                observer.page().add(Tally::RequestsShed, 1);
            }
        }
        if self.open_max > 0 && self.open > self.open_max {
            Course::Shed
        } else {
            Course::Serve
        }
    }

    /// A request has ended.
    #[inline]
    pub(crate) fn end(&mut self, note: Note, ending: Ending) {
        self.open -= 1;
        if let Some(observer) = &mut self.observer {
            observer.finish(note, ending, exact_us());
        }
    }

    /// The body of a request will never be complete.
    pub(crate) fn end_broken(&mut self, conn: &mut Conn, stream: u32, fault: Fault) {
        // In HTTP/2 a stream may be broken and the connection whole.
        conn.fault_told |= conn.wire.fault() == Some(fault);
        if let Some(at) = conn.notes.iter().position(|note| note.stream == stream) {
            self.end(conn.notes.remove(at), Ending::Broken(fault));
        }
    }

    /// The connection has gone; whoever was not answered never will be.
    pub(crate) fn end_all(&mut self, conn: &mut Conn) {
        self.tell_fault(conn);
        while let Some(note) = conn.notes.pop() {
            self.end(note, Ending::Cancelled);
        }
    }

    /// A head that was refused is no request: its fault is told when the connection ends.
    pub(crate) fn tell_fault(&mut self, conn: &mut Conn) {
        if let (Some(observer), Some(fault)) = (&mut self.observer, conn.wire.fault())
            && !std::mem::replace(&mut conn.fault_told, true)
        {
            observer.refuse(conn.peer.address(), fault, exact_us());
        }
    }

    /// Counts something that happens to connections.
    #[inline]
    pub(crate) fn count(&mut self, tally: Tally, n: u64) {
        if let Some(observer) = &mut self.observer {
            observer.page().add(tally, n);
        }
    }
}

/// What an action makes of a request: its ending, if this is one.
pub(crate) fn take_note_of(note: &mut Note, action: &Action<'_>) -> Option<Ending> {
    match action {
        Action::Respond(answer, payload) => {
            note.status = answer.status.code();
            if !note.head_only && !answer.status.has_no_body() {
                note.bytes += payload.len();
            }
            Some(Ending::Answered)
        }
        Action::Inform(_) => None,
        Action::Start(answer) => {
            note.status = answer.status.code();
            note.has_begun = true;
            None
        }
        Action::Switch { .. } => {
            note.status = 101;
            note.has_begun = true;
            None
        }
        Action::Data(payload) => {
            if !note.head_only {
                note.bytes += payload.len();
            }
            None
        }
        Action::End { .. } => Some(Ending::Answered),
        Action::Abort => Some(Ending::Aborted),
    }
}
