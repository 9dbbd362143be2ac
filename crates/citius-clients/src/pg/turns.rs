//! What is done with a session while it is out of its place: calls that are added, bytes that have come, its end.
//!
//! Each function takes the session, has it work, puts it back, and then tells what has come of it: calls that have ended, what the
//! listener is to know, and calls that go back to the pool. A function that finds the session at work leaves what it would do at
//! the session's [`Place`](citius_base::upstream::Place).

use std::sync::atomic::Ordering;

use citius_pg::{Lost, Over, Unsent};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use super::call::{PgCall, SessionCall, Work};
use super::connection::{PgConnection, Session, Working};
use super::errors::{error_of, protocol_error, server_error};
use super::pool::PgPool;
use super::session::{Ended, Heard, PyHost};

impl PgConnection {
    fn host<'a>(&'a self, py: Python<'a>) -> PyHost<'a> {
        let pool = self.pool.get();
        PyHost { py, pool }
    }

    /// Does something with the session that runs no Python code; while it works, when it is back.
    pub(super) fn with(&self, act: impl FnOnce(&mut Session) + Send + 'static) {
        let act = |working: &mut Working| act(&mut working.session);
        self.place.with(act, |act| {
            Box::new(|slf, mut working| {
                act(&mut working);
                slf.get().put(slf.py(), working);
                slf.get().place.do_late(slf);
            })
        });
    }

    /// Does something with the session now, or when it is back; `act` puts it back.
    pub(super) fn when_free(
        slf: &Bound<'_, Self>,
        act: impl FnOnce(&Bound<'_, Self>, Box<Working>) + Copy + Send + 'static,
    ) {
        if let Some(working) = slf.get().place.take(|| Box::new(act)) {
            act(slf, working);
        }
    }

    pub(super) fn note_unsent(&self, py: Python<'_>) {
        self.upstream.note_unsent(py);
    }

    /// Puts the session back, and has the carrier take what it has to send.
    fn put(&self, py: Python<'_>, mut working: Box<Working>) {
        let has_output = !working.session.output().is_empty();
        self.place.put(working);
        if has_output {
            self.note_unsent(py);
        }
    }

    /// Sends calls that have waited for something other than the server.
    pub(super) fn pump_held(slf: &Bound<'_, Self>) {
        Self::when_free(slf, |slf, mut working| {
            let (py, this) = (slf.py(), slf.get());
            let mut ended = Ended::new();
            let session = &mut working.session;
            session.pump(this.host(py), this.is_held(), &mut ended);
            this.put(py, working);
            this.tell_ended(py, ended, false);
            this.place.do_late(slf);
        });
    }

    /// Takes a call that any session may have; gives it back while it works or is closed.
    pub(crate) fn submit(slf: &Bound<'_, Self>, call: Py<PgCall>) -> Result<(), Py<PgCall>> {
        let place = &slf.get().place;
        match place.take_if(|working| !working.session.is_closed()) {
            Some(working) => {
                Self::add(slf, working, call);
                Ok(())
            }
            None => Err(call),
        }
    }

    /// Takes a call that belongs to this session; it waits while the session works.
    pub(crate) fn submit_or_fail(slf: &Bound<'_, Self>, call: Py<PgCall>) -> PyResult<()> {
        let (py, this) = (slf.py(), slf.get());
        let working = this.place.take(|| {
            let call = call.clone_ref(py);
            Box::new(move |slf, working| Self::submit_late(slf, working, &call))
        });
        working.map_or(Ok(()), |working| Self::add_or_fail(slf, working, call))
    }

    /// Takes a call of this session that has waited.
    fn submit_late(slf: &Bound<'_, Self>, working: Box<Working>, call: &Py<PgCall>) {
        let py = slf.py();
        let submitted = Self::add_or_fail(slf, working, call.clone_ref(py));
        if let Err(error) = submitted
            && let Some(sleeper) = call.get().finish(py, Err(error))
        {
            sleeper.wake(py, false);
        }
    }

    fn add_or_fail(slf: &Bound<'_, Self>, working: Box<Working>, call: Py<PgCall>) -> PyResult<()> {
        let this = slf.get();
        if working.session.is_closed() {
            this.place.put(working);
            this.place.do_late(slf);
            let end = this.end.get().map_or("", String::as_str);
            let why = format!("the session is closed: {end}");
            return Err(error_of(slf.py(), "connection_lost", why));
        }
        Self::add(slf, working, call);
        Ok(())
    }

    fn add(slf: &Bound<'_, Self>, mut working: Box<Working>, call: Py<PgCall>) {
        let (py, this) = (slf.py(), slf.get());
        this.load.fetch_add(1, Ordering::Relaxed);
        let mut ended = Ended::new();
        let (session, call) = (&mut working.session, SessionCall(call));
        session.add(this.host(py), call, this.is_held(), &mut ended);
        this.put(py, working);
        this.tell_ended(py, ended, false);
        this.place.do_late(slf);
    }

    pub(super) fn read(
        slf: &Bound<'_, Self>,
        mut working: Box<Working>,
        bytes: &[u8],
        may_step: bool,
    ) {
        let (py, this) = (slf.py(), slf.get());
        if working.session.is_closed() {
            this.place.put(working);
            return this.place.do_late(slf);
        }
        let host = this.host(py);
        let is_cancelling = this.is_cancelling.load(Ordering::Relaxed);
        let (mut heard, mut ended) = (Heard::new(is_cancelling), Ended::new());
        let Working { session, inbox } = &mut *working;
        inbox.receive(bytes, |bytes| {
            session.receive(host, bytes, &mut heard, &mut ended)
        });
        session.pump(host, this.is_held(), &mut ended);
        if heard.is_open
            && let Some(key) = session.key()
        {
            let _ = this.key.set(key);
        }
        this.put(py, working);
        if let Some(status) = heard.status {
            this.status.store(status as u8, Ordering::Relaxed);
        }
        if heard.are_names_lost {
            this.pool.get().tell_nameless(py);
        }
        // Each goes to the front of the queue, so the last one goes first.
        for SessionCall(call) in std::mem::take(&mut heard.repeated).into_iter().rev() {
            this.load.fetch_sub(1, Ordering::Relaxed);
            PgPool::queue_first(this.pool.bind(py), call);
        }
        tell_copied(py, &mut heard);
        this.tell_ended(py, ended, may_step);
        Self::tell_heard(slf, heard);
        PgPool::pump(this.pool.bind(py));
        this.place.do_late(slf);
    }

    pub(super) fn know_types_of(slf: &Bound<'_, Self>, mut working: Box<Working>) {
        let (py, this) = (slf.py(), slf.get());
        let unknown_types = working.session.know_types(&this.pool.get().types());
        this.put(py, working);
        if !unknown_types.is_empty() {
            this.upstream.tell(py, "types", unknown_types);
        }
        Self::pump_held(slf);
    }

    pub(super) fn fail_types_of(
        slf: &Bound<'_, Self>,
        mut working: Box<Working>,
        error: &Bound<'_, PyAny>,
    ) {
        let (py, this) = (slf.py(), slf.get());
        let failed = || PyErr::from_value(error.clone());
        let ended = working.session.fail_types(this.host(py), failed);
        this.put(py, working);
        this.tell_ended(py, ended, false);
        Self::pump_held(slf);
    }

    fn tell_heard(slf: &Bound<'_, Self>, heard: Heard) {
        let (py, this) = (slf.py(), slf.get());
        for (name, value) in heard.parameters {
            this.upstream.tell(py, "parameter", (name, value));
        }
        for notice in &heard.notices {
            let notice = server_error(py, notice).into_value(py);
            this.upstream.tell(py, "notice", notice);
        }
        for notification in heard.notifications {
            this.upstream.tell(py, "notification", notification);
        }
        if !heard.unknown_types.is_empty() {
            this.upstream.tell(py, "types", heard.unknown_types);
        }
        if heard.is_open {
            this.upstream.tell(py, "open", py.None());
        }
        match heard.over {
            Some(Over::Fault(fault)) => Self::end(slf, &protocol_error(py, &fault)),
            Some(Over::Fatal) => Self::lose(slf, "the server has ended the session"),
            None => {}
        }
    }

    fn tell_ended(&self, py: Python<'_>, ended: Ended, may_step: bool) {
        for (SessionCall(call), result) in ended {
            self.load.fetch_sub(1, Ordering::Relaxed);
            if let Some(sleeper) = call.get().finish(py, result) {
                sleeper.wake(py, may_step);
            }
        }
    }
}

/// The end of a session.
impl PgConnection {
    /// The connection has ended.
    pub(super) fn lose(slf: &Bound<'_, Self>, why: &str) {
        let why = why.to_owned();
        let working = slf.get().place.take(|| {
            let why = why.clone();
            Box::new(move |slf, working| Self::lose_session(slf, working, &why))
        });
        if let Some(working) = working {
            Self::lose_session(slf, working, &why);
        }
    }

    fn lose_session(slf: &Bound<'_, Self>, mut working: Box<Working>, why: &str) {
        let py = slf.py();
        let fatal = working.session.take_fatal();
        slf.get().place.put(working);
        let error = match fatal {
            Some(fatal) => server_error(py, &fatal),
            None => error_of(py, "connection_lost", why),
        };
        Self::end(slf, &error);
    }

    /// Ends the session: requests under way fail, and requests that were not sent go back to the pool.
    pub(super) fn end(slf: &Bound<'_, Self>, error: &PyErr) {
        let (py, this) = (slf.py(), slf.get());
        let working = this.place.take(|| {
            let error = error.clone_ref(py);
            Box::new(move |slf, working| Self::end_session(slf, working, &error))
        });
        if let Some(working) = working {
            Self::end_session(slf, working, error);
        }
    }

    fn end_session(slf: &Bound<'_, Self>, mut working: Box<Working>, error: &PyErr) {
        let (py, this) = (slf.py(), slf.get());
        let why = error.value(py).to_string();
        let lost = working.session.close(this.host(py));
        let _ = this.end.set(why.clone());
        this.place.put(working);
        let Some(lost) = lost else {
            return this.place.do_late(slf);
        };
        // First, so that no call comes back here.
        this.upstream
            .tell(py, "closed", error.value(py).clone().unbind());
        this.tell_lost(py, lost, error, &why);
        this.load.store(0, Ordering::Relaxed);
        PgPool::pump(this.pool.bind(py));
        this.place.do_late(slf);
    }

    fn tell_lost(&self, py: Python<'_>, lost: Lost<SessionCall>, error: &PyErr, why: &str) {
        let mut ended = lost.failing;
        for call in lost.underway {
            let value = error.value(py).clone().unbind();
            let lost = error_of(py, "lost_during_statement", value);
            ended.push((call, Err(lost)));
        }
        let connection_lost = error_of(py, "connection_lost", why);
        // Each goes to the front of the queue, so the last one goes first.
        for (call, what) in lost.unsent {
            let why = match what {
                Unsent::Queued => {
                    PgPool::queue_first(self.pool.bind(py), call.0);
                    continue;
                }
                // What has ended one session after the other is told as it is.
                Unsent::GivenUp => error,
                Unsent::Lost => &connection_lost,
            };
            ended.push((call, Err(why.clone_ref(py))));
        }
        self.tell_ended(py, ended, false);
    }
}

/// Hands the data of a COPY on, before its end is told.
fn tell_copied(py: Python<'_>, heard: &mut Heard) {
    let Some((SessionCall(call), data)) = heard.copied.take() else {
        return;
    };
    let Work::Copy(_, sink) = &call.get().work else {
        return;
    };
    let data = data.map(|data| PyBytes::new(py, &data));
    if let Err(error) = sink.call1(py, (data,)) {
        error.write_unraisable(py, None);
    }
}
