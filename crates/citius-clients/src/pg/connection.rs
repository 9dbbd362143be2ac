//! One session as Python sees it: where its bytes go, and what is asked of it.
//!
//! The session is taken out of its lock while it works, because reading rows makes Python objects, which may run any code. What is
//! to be done with it meanwhile waits at its [`Place`] and is done when it is back ([`turns`](super::turns)); a call that any session
//! may have goes to the pool's queue. What is asked of it is answered without it.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicUsize, Ordering};

use citius_base::upstream::{Carrier, Place, Protocol, TlsArguments, Upstream};
use citius_pg::{ChannelBinding, Left, Login, cancel_request};
use citius_reactor::Inbox;
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use super::call::{PgCall, SessionCall};
use super::errors::{error_of, protocol_error};
use super::pool::PgPool;

/// A session whose calls are Python's.
pub(super) type Session = citius_pg::Session<SessionCall>;

/// A session with a server.
#[pyclass(frozen, module = "citius._core", name = "PgConnection")]
pub(crate) struct PgConnection {
    pub(super) pool: Py<PgPool>,
    pub(super) place: Place<Working, Self>,
    pub(super) upstream: Upstream,
    /// Requests under way or about to be.
    pub(super) load: AtomicUsize,
    /// Where it is: [`TransactionStatus`](citius_pg::TransactionStatus).
    pub(super) status: AtomicU8,
    /// A cancel request is under way, or its effect may be.
    pub(super) is_cancelling: AtomicBool,
    /// Calls are held back, so that a cancel request does not hit them.
    is_held: AtomicBool,
    /// How often something has come.
    heard: AtomicU32,
    /// What cancels it, from when it is open on.
    pub(super) key: OnceLock<(i32, i32)>,
    /// What has ended it.
    pub(super) end: OnceLock<String>,
}

/// What is taken out while it works.
pub(crate) struct Working {
    pub(super) session: Session,
    /// What has come of a message that is not there in full.
    pub(super) inbox: Inbox,
}

/// User, password, database, further parameters, and the mode of channel binding.
type LoginArguments = (
    String,
    Option<String>,
    String,
    Vec<(String, String)>,
    String,
);

impl PgConnection {
    pub(crate) fn load(&self) -> usize {
        self.load.load(Ordering::Relaxed)
    }

    /// Whether it has something that has not left: what is added leaves with it.
    pub(crate) fn is_unsent(&self) -> bool {
        self.upstream.is_unsent()
    }

    pub(super) fn is_held(&self) -> bool {
        self.is_held.load(Ordering::Relaxed)
    }

    /// Has a portal closed with the next request.
    pub(crate) fn close_portal(&self, name: &str) {
        let name = name.to_owned();
        self.with(|session| session.close_portal(name));
    }
}

impl Protocol for PgConnection {
    fn upstream(&self) -> &Upstream {
        &self.upstream
    }

    #[inline]
    fn received(slf: &Bound<'_, Self>, plaintext: &[u8], may_step: bool) {
        let this = slf.get();
        let heard = this.heard.load(Ordering::Relaxed);
        this.heard.store(heard.wrapping_add(1), Ordering::Relaxed);
        let working = this.place.take(|| {
            let bytes = plaintext.to_vec();
            Box::new(move |slf, working| Self::read(slf, working, &bytes, false))
        });
        if let Some(working) = working {
            Self::read(slf, working, plaintext, may_step);
        }
    }

    fn secured(slf: &Bound<'_, Self>, server_end_point: Vec<u8>) {
        slf.get()
            .with(|session| session.set_server_end_point(server_end_point));
    }

    fn ended(slf: &Bound<'_, Self>, why: &str) {
        Self::lose(slf, why);
    }

    fn tls_failed(slf: &Bound<'_, Self>, why: String) {
        Self::end(slf, &error_of(slf.py(), "tls_failed", why));
    }

    fn take_output(&self, _py: Python<'_>, take: impl FnOnce(&[u8])) {
        // While it works it says later what it has to send.
        self.place.look(|working| {
            let output = working.session.output();
            take(output);
            output.clear();
        });
    }

    fn has_output(&self) -> bool {
        let has_output = |working: &mut Working| !working.session.output().is_empty();
        self.place.look(has_output).unwrap_or(false)
    }
}

#[pymethods]
impl PgConnection {
    #[new]
    #[pyo3(signature = (pool, login, listener, wake, tls = None))]
    fn new(
        py: Python<'_>,
        pool: Py<PgPool>,
        login: LoginArguments,
        listener: Py<PyAny>,
        wake: Py<PyAny>,
        tls: Option<TlsArguments<'_>>,
    ) -> PyResult<Self> {
        let (user, password, database, parameters, channel_binding) = login;
        let login = Login {
            user,
            password,
            database,
            parameters,
            channel_binding: match channel_binding.as_str() {
                "disable" => ChannelBinding::Off,
                "require" => ChannelBinding::Required,
                _ => ChannelBinding::Preferred,
            },
        };
        let session = Session::new(login).map_err(|fault| protocol_error(py, &fault))?;
        let inbox = Inbox::default();
        Ok(Self {
            pool,
            upstream: Upstream::new(listener, wake, tls)?,
            place: Place::new(Working { session, inbox }),
            load: AtomicUsize::new(0),
            status: AtomicU8::new(0),
            is_cancelling: AtomicBool::new(false),
            is_held: AtomicBool::new(false),
            heard: AtomicU32::new(0),
            key: OnceLock::new(),
            end: OnceLock::new(),
        })
    }

    /// Bytes have come, on the event loop's own thread and within no task's step.
    #[pyo3(name = "receive")]
    fn receive_now(slf: &Bound<'_, Self>, data: &[u8]) {
        Upstream::receive(slf, data, true);
    }

    /// The connection has ended.
    #[pyo3(name = "end")]
    fn end_now(slf: &Bound<'_, Self>, why: &str) {
        Self::lose(slf, why);
    }

    /// What is to be sent.
    #[pyo3(name = "take_output")]
    fn take_output_now<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        let mut bytes = Vec::new();
        Upstream::take_output(py, self, &mut bytes);
        PyBytes::new(py, &bytes)
    }

    /// Says goodbye to the server; nothing may be sent after that.
    fn terminate(&self, py: Python<'_>) {
        self.with(Session::terminate);
        self.note_unsent(py);
    }

    /// Sends data of a COPY; nothing if it is not the one that is under way.
    fn copy_data(&self, py: Python<'_>, call: Py<PgCall>, data: &[u8]) {
        let data = data.to_vec();
        self.with(move |session| {
            if session.is_copy_of(|it| it.0.is(&call)) {
                session.copy_data(&data);
            }
        });
        self.note_unsent(py);
    }

    /// Ends the data of a COPY if it is the one that is under way; with a reason the server refuses it.
    #[pyo3(signature = (call, why = None))]
    fn end_copy(&self, py: Python<'_>, call: Py<PgCall>, why: Option<String>) {
        self.with(move |session| {
            if session.is_copy_of(|it| it.0.is(&call)) {
                session.end_copy(why.as_deref());
            }
        });
        self.note_unsent(py);
    }

    /// Has a reactor carry the bytes.
    fn attach(slf: &Bound<'_, Self>, reactor: &Bound<'_, Carrier>, fd: i32) -> PyResult<()> {
        Upstream::attach(slf, reactor, fd)
    }

    /// Has Python carry the bytes again: `wake` is called when there is something to send.
    fn detach(slf: &Bound<'_, Self>, reactor: &Bound<'_, Carrier>, wake: Py<PyAny>) {
        Upstream::detach(slf, reactor, wake);
    }

    /// What can be found out of some unknown types is known: statements that have waited for it are sent. Those that
    /// have others still are looked up again.
    fn know_types(slf: &Bound<'_, Self>) {
        Self::when_free(slf, Self::know_types_of);
    }

    /// It could not be found out what types are: statements that have waited for it fail, and are described again when
    /// they come again.
    fn fail_types(slf: &Bound<'_, Self>, error: &Bound<'_, PyAny>) {
        let working = slf.get().place.take(|| {
            let error = error.clone().unbind();
            Box::new(move |slf, working| Self::fail_types_of(slf, working, error.bind(slf.py())))
        });
        if let Some(working) = working {
            Self::fail_types_of(slf, working, error);
        }
    }

    /// Has statements prepared anew when they come again, because what they are about has been changed.
    #[pyo3(name = "forget_statements")]
    fn forget_all(&self) {
        self.with(Session::forget_statements);
    }

    /// The message of a connection that cancels what this session does; `None` before the session is open.
    fn cancel_request<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyBytes>> {
        let key = self.key.get();
        key.map(|&(process, secret)| PyBytes::new(py, &cancel_request(process, secret)))
    }

    /// What is to be executed before another block has it, because something may be left of the one that had it; empty if that
    /// does not undo it.
    fn take_changes(&self) -> Option<String> {
        let changes = self.place.look(|it| it.session.take_changes());
        // While the session works it is not known what is left: all is reset.
        changes.unwrap_or_else(|| Left::Names.reset())
    }

    /// Has it reset before another block has it, whatever this one does.
    fn set_changed(&self) {
        self.with(Session::set_changed);
    }

    /// A number that changes whenever something comes.
    #[getter]
    fn heard(&self) -> u32 {
        self.heard.load(Ordering::Relaxed)
    }

    /// Whether the server works for a call that no code waits for any more. While the session works it is not known;
    /// [`has_abandoned`](Self::has_abandoned) says that it has to be asked again.
    fn is_blocked(&self) -> bool {
        let is_blocked = self.place.look(|it| it.session.is_blocked());
        is_blocked.unwrap_or(false)
    }

    /// Whether there is such a call anywhere in the pipeline, or may be: the server comes to it yet.
    fn has_abandoned(&self) -> bool {
        let has_abandoned = self.place.look(|it| it.session.has_abandoned());
        has_abandoned.unwrap_or(true)
    }

    /// Requests under way.
    #[getter(load)]
    fn load_now(&self) -> usize {
        self.load()
    }

    /// 0: in no transaction, 1: in one, 2: in one that has failed.
    #[getter]
    fn status(&self) -> u8 {
        self.status.load(Ordering::Relaxed)
    }

    /// Says whether a cancel request to this session may have an effect yet, and whether calls are held back for it.
    fn set_cancelling(slf: &Bound<'_, Self>, is_cancelling: bool, is_held: bool) {
        slf.get()
            .is_cancelling
            .store(is_cancelling, Ordering::Relaxed);
        slf.get().is_held.store(is_held, Ordering::Relaxed);
        if !is_held {
            Self::pump_held(slf);
        }
    }

    /// Process identifier of the session's server process.
    #[getter]
    fn process(&self) -> Option<i32> {
        self.key.get().map(|key| key.0)
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.pool)?;
        self.upstream.traverse(&visit)
    }
}
