//! An application call outside the turn: in a thread of the pool or in a greenlet.
//!
//! In: a request, and the pieces of its body from the reactor's thread. Out: actions, through the mailbox. The call may wait
//! for the rest of a long body and until more can be written. A short body is complete before the call starts, so that a slow
//! client holds no thread. Tests: `tests/wsgi/`.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use citius_base::exchange::{LazySubject, Role, Tell};
use citius_base::fork::end_child;
use citius_base::logging::Names;
use citius_base::reactor_handle::ReactorHandle;
use citius_base::report::Subject;
use citius_base::sink::Late;
use citius_base::support::{call_back, connection_reset};
use citius_base::sync::lock;
use citius_http::Head;
use citius_reactor::{Peer, StreamCommand, StreamId};
use pyo3::exceptions::PyOSError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use super::Wsgi;
use super::body::{self, Pump, Step};
use super::input::Input;
use super::spool::{Spool, Spools};
use super::start::{Shared, WriteNow};
use crate::request_context::RequestContext;

/// One request on its way through a thread, or one whose body is still coming.
pub(crate) struct Call {
    pub(super) handle: Arc<ReactorHandle>,
    pub(super) id: StreamId,
    peer: Peer,
    /// Blocks a greenlet; without it, threads block.
    waiter: Option<Py<PyAny>>,
    transfer: Mutex<Transfer>,
    /// Told of every change of `transfer`.
    changed: Condvar,
}

/// What the reactor's thread and the one that runs the call tell each other.
#[derive(Default)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "independent facts about one exchange"
)]
struct Transfer {
    head: Option<Box<Head>>,
    /// The part of the body that has arrived and was not taken.
    body: Vec<u8>,
    body_ended: bool,
    /// Where the body goes that is too long to wait in memory.
    spool: Option<Spool>,
    /// Some of the body has been asked for.
    is_body_requested: bool,
    /// What the log calls the request, once the head has gone to the application.
    subject: Option<Subject>,
    /// A thread or greenlet runs the call, or will.
    is_called: bool,
    /// The client has disconnected.
    is_disconnected: bool,
    /// The body is longer than it may be: no more of it comes, while the response goes on.
    is_body_refused: bool,
    is_writable: bool,
    /// Wakes the greenlet that waits.
    on_change: Option<Py<PyAny>>,
    /// Counts changes, so that none is slept through.
    changes: u64,
    /// What `write` has sent since there was room.
    unsent_bytes: usize,
    /// Kills the greenlet that runs the call if the client of a streamed response disconnects.
    on_disconnect_callback: Option<Py<PyAny>>,
    /// The rest of a response that the reactor's own thread steps.
    pump: Option<Pump>,
}

impl Call {
    pub(super) fn new(
        context: &mut RequestContext<'_>,
        body_ended: bool,
        waiter: Option<Py<PyAny>>,
    ) -> Arc<Self> {
        Arc::new(Self {
            handle: Arc::clone(context.handle),
            id: context.id,
            peer: context.peer,
            waiter,
            transfer: Mutex::new(Transfer {
                head: context.head.take(),
                body_ended,
                ..Transfer::default()
            }),
            changed: Condvar::new(),
        })
    }

    fn transfer(&self) -> MutexGuard<'_, Transfer> {
        lock(&self.transfer)
    }

    /// Changes the shared state and wakes the thread or greenlet that waits.
    fn change(&self, py: Python<'_>, change: impl FnOnce(&mut Transfer)) {
        let callback = {
            let mut transfer = self.transfer();
            transfer.changes += 1;
            change(&mut transfer);
            transfer.on_change.take()
        };
        self.changed.notify_all();
        call_back(py, callback);
    }

    /// A piece of the body. Returns whether it is long and the call is not queued yet.
    pub(super) fn push(&self, py: Python<'_>, bytes: &[u8]) -> bool {
        let mut is_long = false;
        self.change(py, |transfer| {
            transfer.body.extend_from_slice(bytes);
            is_long = !transfer.is_called
                && transfer.body.len() >= self.handle.limits.body_window_bytes as usize;
        });
        is_long
    }

    /// Moves what has come of the body to a file. `false`: there is no room for it.
    pub(super) fn spool(&self, py: Python<'_>, spools: &Spools) -> PyResult<bool> {
        let (bytes, spool) = {
            let mut transfer = self.transfer();
            (std::mem::take(&mut transfer.body), transfer.spool.take())
        };
        let mut spool = match spool {
            Some(spool) => spool,
            None => spools.open(py)?,
        };
        let is_writable = spool.write(py, &bytes, self.handle.limits.body_spooled_bytes_max)?;
        self.transfer().spool = Some(spool);
        Ok(is_writable)
    }

    /// `wsgi.input` of a request whose body is complete; `None` if it is empty.
    pub(super) fn take_input<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let (bytes, spool) = {
            let mut transfer = self.transfer();
            (std::mem::take(&mut transfer.body), transfer.spool.take())
        };
        let Some(mut spool) = spool else {
            return super::complete_input(py, bytes);
        };
        // Less than a window is left, for which there is always room.
        spool.write(py, &bytes, u64::MAX)?;
        spool.rewind(py)?;
        Ok(Some(Bound::new(py, Input::spooled(spool))?.into_any()))
    }

    /// What the log calls the request.
    pub(crate) fn subject(&self) -> Subject {
        let transfer = self.transfer();
        match (&transfer.head, &transfer.subject) {
            (Some(head), _) => Subject::new(self.handle.names(), head, None),
            (None, Some(subject)) => subject.clone(),
            (None, None) => Subject::named(format!("request {}", self.id.stream)),
        }
    }

    /// Some of the body has been asked for.
    pub(super) fn mark_body_requested(&self) {
        self.transfer().is_body_requested = true;
    }

    /// The body is complete. Returns whether the call is not queued yet.
    pub(super) fn end(&self, py: Python<'_>) -> bool {
        let mut is_waiting = false;
        self.change(py, |transfer| {
            transfer.body_ended = true;
            is_waiting = !transfer.is_called;
        });
        is_waiting
    }

    /// There is room to write. A pump is handed out, to be stepped.
    pub(super) fn writable(&self, py: Python<'_>) -> Option<Pump> {
        let mut pump = None;
        self.change(py, |transfer| {
            transfer.is_writable = true;
            pump = transfer.pump.take();
        });
        pump
    }

    /// Keeps what is left of a response until there is room.
    pub(super) fn set_pump(&self, pump: Pump, head: Option<Box<Head>>) {
        let mut transfer = self.transfer();
        let replaced = transfer.pump.replace(pump);
        transfer.head = head;
        drop(transfer);
        drop(replaced);
    }

    /// The client has disconnected: no more is read, and no more of the body comes.
    pub(super) fn disconnected(&self, py: Python<'_>) {
        let mut pump = None;
        self.change(py, |transfer| {
            transfer.is_disconnected = true;
            pump = transfer.pump.take();
        });
        // Only now: the greenlet that waited has been woken and may have ended.
        let on_disconnect_callback = self.transfer().on_disconnect_callback.take();
        if let Some(mut pump) = pump {
            pump.close(py);
        }
        call_back(py, on_disconnect_callback);
    }

    /// The request as its response needs it, for the reactor's thread to send it.
    pub(super) fn take(&self) -> Option<Box<Head>> {
        let mut transfer = self.transfer();
        transfer.is_called = true;
        transfer.head.take()
    }

    pub(super) fn mark_called(&self) {
        self.transfer().is_called = true;
    }

    /// The next bytes of the body, waited for; `None` at its end.
    pub(super) fn next_piece(self: &Arc<Self>, py: Python<'_>) -> PyResult<Option<Vec<u8>>> {
        loop {
            let (piece, ended, was_wanted, changes) = {
                let mut transfer = self.transfer();
                let piece = std::mem::take(&mut transfer.body);
                let is_short = piece.is_empty() && !transfer.body_ended;
                if is_short && transfer.is_disconnected {
                    drop(transfer);
                    let text = "the client has gone before its whole body had come";
                    return Err(connection_reset(py, text));
                }
                if is_short && transfer.is_body_refused {
                    return Err(PyOSError::new_err("the body is longer than it may be"));
                }
                let was_wanted = std::mem::replace(&mut transfer.is_body_requested, true);
                (piece, transfer.body_ended, was_wanted, transfer.changes)
            };
            let more_bytes = if was_wanted {
                piece.len() as u64
            } else {
                u64::from(self.handle.limits.body_window_bytes)
            };
            if !ended && more_bytes > 0 {
                self.handle
                    .post(py, self.id, StreamCommand::Want(more_bytes));
            }
            if ended || !piece.is_empty() {
                return Ok((!piece.is_empty()).then_some(piece));
            }
            self.wait(py, changes)?;
        }
    }

    /// Blocks the thread, or the greenlet, until there has been a change since `changes`.
    fn wait(self: &Arc<Self>, py: Python<'_>, changes: u64) -> PyResult<()> {
        if let Some(waiter) = &self.waiter {
            let call = Arc::clone(self);
            let gateway = None;
            return waiter.bind(py).call1((Job { call, gateway },)).map(drop);
        }
        py.detach(|| {
            let mut transfer = self.transfer();
            while transfer.changes == changes {
                transfer = self
                    .changed
                    .wait(transfer)
                    .unwrap_or_else(PoisonError::into_inner);
            }
        });
        Ok(())
    }

    /// Waits until what was sent has left, or the client has disconnected.
    fn await_writable(self: &Arc<Self>, py: Python<'_>) -> PyResult<()> {
        self.transfer().is_writable = false;
        self.handle.post(py, self.id, StreamCommand::AwaitWritable);
        loop {
            let changes = {
                let transfer = self.transfer();
                if transfer.is_writable || transfer.is_disconnected {
                    return Ok(());
                }
                transfer.changes
            };
            self.wait(py, changes)?;
        }
    }

    /// Bytes that may be on their way before more is asked of the application. In a greenlet nothing
    /// leaves before it waits.
    fn ahead_bytes_max(&self) -> usize {
        match self.waiter {
            Some(_) => 0,
            None => self.handle.limits.write_queue_bytes_max as usize,
        }
    }

    fn late(&self) -> Late<'_> {
        Late {
            handle: &self.handle,
            id: self.id,
        }
    }

    /// Calls the application and sends its response, here and now.
    ///
    /// `kill` ends the greenlet that runs this; it is called when the client of a streamed response has gone. Until
    /// then an application is left to finish what its client has begun, as under other servers.
    pub(super) fn run(self: &Arc<Self>, py: Python<'_>, gateway: &Wsgi, kill: Option<Py<PyAny>>) {
        self.handle
            .guard(py, self.id, || self.run_unguarded(py, gateway, kill));
    }

    fn run_unguarded(self: &Arc<Self>, py: Python<'_>, gateway: &Wsgi, kill: Option<Py<PyAny>>) {
        let (head, body, body_ended) = {
            let mut transfer = self.transfer();
            let body = std::mem::take(&mut transfer.body);
            let head = transfer.head.take();
            if !transfer.body_ended {
                let subject = |head: &Head| Subject::new(self.handle.names(), head, None);
                transfer.subject = head.as_deref().map(subject);
            }
            (head, body, transfer.body_ended)
        };
        let Some(head) = head else {
            return;
        };
        if self.transfer().is_disconnected {
            // The client has left while the request was queued.
            return self.handle.keep_head(head);
        }
        let input = if body_ended {
            super::complete_input(py, body)
        } else {
            self.transfer().body = body;
            Bound::new(py, Input::arriving(self, &head)).map(|input| Some(input.into_any()))
        };
        let mut context = RequestContext::new(self.id, self.peer, &self.handle, head);
        let mut late = self.late();
        let prepared = input.and_then(|input| {
            let limits = &self.handle.limits;
            let mut scratch = gateway.borrow_scratch(py, limits)?;
            let head = context.head.as_deref().expect("put there just now");
            let prepared = scratch.prepare(py, limits, head, self.peer, input, body_ended, false);
            gateway.return_scratch(scratch);
            prepared
        });
        match prepared {
            Err(error) => {
                crate::completion::send_internal_error(py, &error, &mut context, &mut late);
            }
            Ok((environ, callables)) => {
                let shared = Arc::clone(&callables.shared);
                shared.set_late(Some(Arc::<Self>::clone(self)));
                let result = gateway
                    .app
                    .bind(py)
                    .call1((environ.dict, &callables.start_response));
                if let Some(pump) = body::send_result(py, result, &shared, &mut context, &mut late)
                {
                    self.drive(py, pump, &mut context, kill);
                }
                shared.set_late(None);
                drop(shared);
                gateway.return_callables(py, callables);
            }
        }
        end_child(py, &self.handle);
        drop(self.handle.take(self.id));
        if let Some(head) = context.head.take() {
            self.handle.keep_head(head);
        }
    }

    /// Sends a response block by block.
    fn drive(
        self: &Arc<Self>,
        py: Python<'_>,
        mut pump: Pump,
        context: &mut RequestContext<'_>,
        kill: Option<Py<PyAny>>,
    ) {
        let (is_disconnected, replaced) = {
            let mut transfer = self.transfer();
            (
                transfer.is_disconnected,
                std::mem::replace(&mut transfer.on_disconnect_callback, kill),
            )
        };
        drop(replaced);
        let mut late = self.late();
        let mut unsent_bytes = 0;
        let mut is_over = is_disconnected;
        while !is_over {
            let Step::More(bytes) = pump.step(py, context, &mut late) else {
                break;
            };
            unsent_bytes += bytes;
            let waited = if unsent_bytes >= self.ahead_bytes_max() {
                unsent_bytes = 0;
                self.await_writable(py)
            } else {
                Ok(())
            };
            is_over = waited.is_err() || self.transfer().is_disconnected;
        }
        let kill = self.transfer().on_disconnect_callback.take();
        drop(kill);
        pump.close(py);
    }
}

impl WriteNow for Call {
    fn write(
        self: Arc<Self>,
        py: Python<'_>,
        shared: &Shared,
        bytes: &Bound<'_, PyBytes>,
    ) -> PyResult<()> {
        let size = bytes.as_bytes().len();
        if size == 0 {
            return Ok(());
        }
        let (is_disconnected, unsent_bytes) = {
            let mut transfer = self.transfer();
            transfer.unsent_bytes += size;
            (transfer.is_disconnected, transfer.unsent_bytes)
        };
        if is_disconnected {
            return Err(connection_reset(
                py,
                "the client reads no more of the response",
            ));
        }
        let mut late = self.late();
        body::send_block(py, bytes, &mut shared.borrow_state(), &mut late)?;
        if unsent_bytes > self.ahead_bytes_max() {
            self.transfer().unsent_bytes = 0;
            self.await_writable(py)?;
        }
        Ok(())
    }
}

/// A call in the table of exchanges.
pub(super) struct OpenCall(pub(super) Arc<Call>);

impl Role for OpenCall {
    fn on_disconnect(self: Box<Self>, py: Python<'_>) -> bool {
        self.0.disconnected(py);
        false
    }

    fn refuse_body(&self, _py: Python<'_>) -> Option<Tell> {
        let call = Arc::clone(&self.0);
        Some(Box::new(move |py| {
            call.change(py, |transfer| transfer.is_body_refused = true);
        }))
    }

    fn subject(&self, _py: Python<'_>, _names: Names<'_>) -> Option<LazySubject> {
        let call = Arc::clone(&self.0);
        Some(Box::new(move |_| Call::subject(&call)))
    }
}

/// A call as Python code sees it that runs it in a greenlet.
#[pyclass(frozen, module = "citius._core", name = "WsgiJob")]
pub(crate) struct Job {
    pub(super) call: Arc<Call>,
    pub(super) gateway: Option<Py<Wsgi>>,
}

#[pymethods]
impl Job {
    /// Calls the application and sends its response.
    #[pyo3(signature = (kill = None))]
    fn run(&self, py: Python<'_>, kill: Option<Py<PyAny>>) {
        if let Some(gateway) = &self.gateway {
            self.call.run(py, gateway.get(), kill);
        }
    }

    /// Has `callback` called at the next change.
    fn on_change(&self, callback: Py<PyAny>) {
        let replaced = self.call.transfer().on_change.replace(callback);
        drop(replaced);
    }
}
