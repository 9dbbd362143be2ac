//! The WSGI gateway (PEP 3333): a request in, a call of the application, its iterable as a response out.
//!
//! - *inline*: on the reactor's thread, one call at a time, when the whole body has arrived (a long one in a file).
//! - in a *thread* of a fixed number: requests wait in a bounded queue, beyond which they get a 503.
//! - in a *greenlet*, by way of a host that makes them.
//!
//! In the last two a body longer than `body_window_bytes` is read while it arrives. Tests: `tests/wsgi/`.
//! Reading order: this file, [`environ`], [`environ_cache`], [`start`], [`start_state`], [`body`], [`input`], [`spool`], [`call`].

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::ThreadId;

use citius_base::host_loop::HostLoop;
use citius_base::reactor_handle::ReactorHandle;
use citius_base::report::{LEVEL_WARNING, Subject};
use citius_base::reuse::{Reuse as _, Spare};
use citius_base::support::guarded;
use citius_base::sync::lock;
use citius_base::task::Tasks;
use citius_http::{Fault, Head, Limits};
use citius_reactor::ws::Opening;
use citius_reactor::{Peer, Reply};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use self::body::{Pump, Step};
use self::call::{Call, Job, OpenCall};
use self::environ::{Environ, EnvironFactory, Extra};
use self::input::Input;
use self::spool::Spools;
use self::start::Callables;
use crate::gateway::body_limit::BodyLimit;
use crate::gateway::turn::Turn;
use crate::request_context::RequestContext;
use crate::{completion, respond};

mod body;
mod call;
mod environ;
mod environ_cache;
mod file;
mod input;
mod spool;
mod start;
mod start_state;

pub(crate) use self::call::Job as WsgiJob;
pub(crate) use self::file::FileWrapper;
pub(crate) use self::input::Input as WsgiInput;

/// The WSGI gateway of one application.
#[pyclass(frozen, module = "citius._core")]
pub(crate) struct Wsgi {
    pub(crate) app: Py<PyAny>,
    template: Py<PyDict>,
    root: String,
    mode: Mode,
    /// What a call needs and the next one may have again; as many as there were calls at once, in each thread without
    /// a GIL.
    #[expect(clippy::vec_box, reason = "a desk changes hands by pointer")]
    scratches: Mutex<Vec<Box<CallScratch>>>,
    queue: Mutex<Queue>,
    /// There is a job, or no more will come.
    job_queued: Condvar,
    spools: Spools,
    /// That clients ask for WebSockets has been logged.
    has_warned_of_websockets: AtomicBool,
}

/// Where the application is called.
enum Mode {
    Inline,
    Threads { queue_max: usize },
    Greenlets { spawn: Py<PyAny>, wait: Py<PyAny> },
}

/// Jobs for the threads.
#[derive(Default)]
struct Queue {
    jobs: VecDeque<Arc<Call>>,
    /// Threads that wait for a job.
    idle: usize,
    /// A thread has been woken and has not taken a job yet: no other need be woken.
    waking: bool,
    closed: bool,
}

/// What one call at a time needs and does not make anew.
pub(crate) struct CallScratch {
    /// Whose it is without a GIL.
    thread: ThreadId,
    environ_factory: EnvironFactory,
    callables: Spare<Callables>,
}

#[pymethods]
impl Wsgi {
    #[new]
    #[pyo3(signature = (app, environ, *, spool, root_path = "", queue_max = None, spawn = None, wait = None))]
    #[expect(
        clippy::too_many_arguments,
        reason = "keyword arguments of a Python method"
    )]
    fn new(
        py: Python<'_>,
        app: Py<PyAny>,
        environ: &Bound<'_, PyDict>,
        spool: Py<PyAny>,
        root_path: &str,
        queue_max: Option<usize>,
        spawn: Option<Py<PyAny>>,
        wait: Option<Py<PyAny>>,
    ) -> PyResult<Self> {
        let empty = Bound::new(py, Input::complete(Vec::new()))?;
        let template = environ::template(py, environ, root_path, empty.into_any())?;
        let mode = match (spawn, wait, queue_max) {
            (Some(spawn), Some(wait), _) => Mode::Greenlets { spawn, wait },
            (_, _, Some(queue_max)) => Mode::Threads { queue_max },
            _ => Mode::Inline,
        };
        Ok(Self {
            app,
            template: template.unbind(),
            root: root_path.to_owned(),
            mode,
            scratches: Mutex::default(),
            queue: Mutex::default(),
            job_queued: Condvar::new(),
            spools: Spools::new(spool),
            has_warned_of_websockets: AtomicBool::new(false),
        })
    }

    /// Runs queued calls in this thread until `close`.
    fn work(&self, py: Python<'_>) -> PyResult<()> {
        // Without a loop this is no more than a context that is as new for every call.
        let mut contexts = Tasks::new(py, Arc::new(HostLoop::new(None, None)), None)?;
        while let Some(call) = self.next_job(py) {
            // One that cannot be entered is logged; the call is made in the thread's own context then.
            let _ = guarded(py, || contexts.enter_shared(py));
            call.run(py, self, None);
            let _ = guarded(py, || contexts.leave(py));
        }
        Ok(())
    }

    /// Lets the threads go when the queue has run dry.
    fn close(&self) {
        lock(&self.queue).closed = true;
        self.job_queued.notify_all();
    }

    /// Requests that wait for a thread.
    #[getter]
    fn queued(&self) -> usize {
        lock(&self.queue).jobs.len()
    }
}

impl Wsgi {
    fn is_inline(&self) -> bool {
        matches!(self.mode, Mode::Inline)
    }

    /// How long a body may be.
    pub(crate) fn body_limit(&self, limits: &Limits) -> BodyLimit {
        if self.is_inline() {
            BodyLimit::spooled(limits)
        } else {
            BodyLimit::streamed(limits, None)
        }
    }

    /// A client asks for a WebSocket, of which PEP 3333 knows nothing: the application can answer as to any request.
    #[cold]
    fn warn_of_websocket(&self, turn: &Turn<'_, '_>, head: &Head) {
        if self.has_warned_of_websockets.swap(true, Ordering::Relaxed) {
            return;
        }
        let what = " asks for a WebSocket, and the environ of a WSGI application has no socket here (no \
                    werkzeug.socket, gunicorn.socket or wsgi.websocket): serve WebSockets by an ASGI or native \
                    application, see docs/guides/asgi-and-wsgi.md; further requests for one are not logged";
        Subject::new(turn.handle.names(), head, None).log(
            turn.py,
            turn.handle,
            LEVEL_WARNING,
            what,
        );
    }

    fn next_job(&self, py: Python<'_>) -> Option<Arc<Call>> {
        if let Some(call) = self.take_job(&mut lock(&self.queue)) {
            return Some(call);
        }
        py.detach(|| {
            let mut queue = lock(&self.queue);
            loop {
                if let Some(call) = self.take_job(&mut queue) {
                    return Some(call);
                }
                if queue.closed {
                    return None;
                }
                queue.idle += 1;
                queue = self
                    .job_queued
                    .wait(queue)
                    .unwrap_or_else(PoisonError::into_inner);
                queue.idle -= 1;
                queue.waking = false;
            }
        })
    }

    /// The next job; if there are more, another thread is woken for them, because this one may block.
    fn take_job(&self, queue: &mut Queue) -> Option<Arc<Call>> {
        let call = queue.jobs.pop_front()?;
        if !queue.jobs.is_empty() {
            self.wake_one(queue);
        }
        Some(call)
    }

    fn wake_one(&self, queue: &mut Queue) {
        if queue.idle > 0 && !queue.waking {
            queue.waking = true;
            self.job_queued.notify_one();
        }
    }

    /// Has a thread run `call`; `false` if the queue is full.
    fn queue(&self, call: &Arc<Call>, queue_max: usize) -> bool {
        let mut queue = lock(&self.queue);
        if queue.closed || queue.jobs.len() >= queue_max + queue.idle {
            return false;
        }
        queue.jobs.push_back(Arc::clone(call));
        self.wake_one(&mut queue);
        true
    }

    fn borrow_scratch(&self, py: Python<'_>, limits: &Limits) -> PyResult<Box<CallScratch>> {
        {
            let mut scratches = lock(&self.scratches);
            let found = if cfg!(Py_GIL_DISABLED) {
                // References are counted for each thread: what one has made is known to be unused in that one alone (I18).
                let here = std::thread::current().id();
                scratches.iter().rposition(|scratch| scratch.thread == here)
            } else {
                scratches.len().checked_sub(1)
            };
            if let Some(at) = found {
                return Ok(scratches.swap_remove(at));
            }
        }
        Ok(Box::new(CallScratch {
            thread: std::thread::current().id(),
            environ_factory: EnvironFactory::new(self.template.clone_ref(py), &self.root),
            callables: Spare::new(Callables::new(py, limits)?),
        }))
    }

    fn return_scratch(&self, scratch: Box<CallScratch>) {
        lock(&self.scratches).push(scratch);
    }

    /// Keeps the callables of a call for another one, if nothing else can use them.
    fn return_callables(&self, py: Python<'_>, mut callables: Callables) {
        // Without a GIL the number of references can only be read in the thread that has made the object.
        if cfg!(Py_GIL_DISABLED) || !callables.is_fresh(py, 0) {
            return;
        }
        let mut scratches = lock(&self.scratches);
        let mut latest_first = scratches.iter_mut().rev();
        if let Some(scratch) = latest_first.find(|scratch| scratch.callables.is_empty()) {
            scratch.callables.put(callables);
            return;
        }
        // Without the lock: dropping them may run Python code.
        drop(scratches);
        drop(callables);
    }
}

impl CallScratch {
    /// The arguments of the application. With `may_lend` they are to be handed to
    /// [`clear`](Self::clear) before the scratch serves another call.
    #[inline]
    #[expect(clippy::too_many_arguments, reason = "a request and how it is called")]
    fn prepare<'py>(
        &mut self,
        py: Python<'py>,
        limits: &Limits,
        head: &Head,
        peer: Peer,
        input: Option<Bound<'py, PyAny>>,
        body_ended: bool,
        may_lend: bool,
    ) -> PyResult<(Environ<'py>, Callables)> {
        let dechunked = body_ended && head.body == citius_http::BodyLength::Chunked;
        let dechunked_bytes = match (&input, dechunked) {
            (_, false) => None,
            (None, true) => Some(0),
            (Some(input), true) => Some(input.cast::<Input>()?.get().unread_bytes()),
        };
        let callables = match self.callables.take(py) {
            Some(callables) => callables,
            None => Callables::new(py, limits)?,
        };
        callables.renew();
        let extra = Extra {
            input,
            dechunked_bytes,
            send_trailers: &|py| callables.send_trailers(py).map(Bound::into_any),
        };
        let environ = self.environ_factory.make(py, head, peer, extra, may_lend)?;
        Ok((environ, callables))
    }

    /// Makes it ready for another call, with what the last one has left.
    #[inline]
    fn clear(&mut self, environ: Environ<'_>, callables: Callables) {
        self.environ_factory.give_back(environ);
        self.callables.put(callables);
    }
}

fn complete_input(py: Python<'_>, body: Vec<u8>) -> PyResult<Option<Bound<'_, PyAny>>> {
    if body.is_empty() {
        return Ok(None);
    }
    Ok(Some(Bound::new(py, Input::complete(body))?.into_any()))
}

/// A request head is complete.
#[inline]
pub(super) fn request(
    turn: &mut Turn<'_, '_>,
    gateway: &Py<Wsgi>,
    head: Box<Head>,
    ended: bool,
    reply: &mut Reply<'_>,
) {
    let this = gateway.get();
    if Opening::transport(&head).is_some() {
        this.warn_of_websocket(turn, &head);
    }
    if !ended
        && this
            .body_limit(&turn.handle.limits)
            .enforce(turn.py, turn.handle, &head, None, reply)
    {
        return reply.recycle(head);
    }
    let awaits_consent = head.expects_continue;
    let is_message_stream = !ended && input::is_message_stream(&head);
    let mut context = RequestContext::new(reply.id(), reply.peer(), turn.handle, head);
    if ended && this.is_inline() {
        return call_inline(turn, this, &mut context, None, reply);
    }
    let waiter = match &this.mode {
        Mode::Greenlets { wait, .. } => Some(wait.clone_ref(turn.py)),
        _ => None,
    };
    let call = Call::new(&mut context, ended, waiter);
    turn.handle.enter(reply.id(), OpenCall(Arc::clone(&call)));
    if this.is_inline() {
        reply.want(u64::MAX);
    } else if ended || awaits_consent || is_message_stream {
        // RFC 9110 §10.1.1: the client is told to go on when the application reads the body.
        submit(turn, gateway, &call, reply);
    } else {
        call.mark_body_requested();
        reply.want(u64::from(turn.handle.limits.body_window_bytes));
    }
}

/// A piece of the body.
pub(super) fn data(
    turn: &mut Turn<'_, '_>,
    gateway: &Py<Wsgi>,
    bytes: &[u8],
    reply: &mut Reply<'_>,
) {
    if let Some(call) = call_of(turn.handle, reply) {
        turn.tasks.enter_shared(turn.py);
        let is_long = call.push(turn.py, bytes);
        if is_long && gateway.get().is_inline() {
            spool(turn, gateway.get(), &call, reply);
        } else if is_long {
            submit(turn, gateway, &call, reply);
        }
    }
}

/// Moves a long body to a file; where that cannot be, the request is answered at once.
fn spool(turn: &mut Turn<'_, '_>, gateway: &Wsgi, call: &Arc<Call>, reply: &mut Reply<'_>) {
    let py = turn.py;
    let spooled = call.spool(py, &gateway.spools);
    if matches!(spooled, Ok(true)) {
        return;
    }
    drop(turn.handle.take(reply.id()));
    let head = call.take().unwrap_or_default();
    let mut context = RequestContext::new(reply.id(), reply.peer(), turn.handle, head);
    if let Err(error) = spooled {
        completion::send_internal_error(py, &error, &mut context, reply);
    } else {
        let message = format!(
            ": refused with 503, for the temporary files of request bodies would have more than {} \
             bytes; the limit is set by --body-spooled-bytes-max, which --threads does without",
            turn.handle.limits.body_spooled_bytes_max
        );
        context
            .subject(py)
            .log(py, turn.handle, LEVEL_WARNING, &message);
        respond::send_fault(py, Fault::Overloaded, None, reply);
    }
    if let Some(head) = context.head.take() {
        reply.recycle(head);
    }
}

/// The body is complete.
pub(super) fn end(turn: &mut Turn<'_, '_>, gateway: &Py<Wsgi>, reply: &mut Reply<'_>) {
    let Some(call) = call_of(turn.handle, reply) else {
        return;
    };
    turn.tasks.enter_shared(turn.py);
    if !call.end(turn.py) {
        return;
    }
    let this = gateway.get();
    if !this.is_inline() {
        return submit(turn, gateway, &call, reply);
    }
    drop(turn.handle.take(reply.id()));
    let Some(head) = call.take() else {
        return;
    };
    let handle = turn.handle;
    let mut context = RequestContext::new(reply.id(), reply.peer(), handle, head);
    match call.take_input(turn.py) {
        Ok(input) => call_inline(turn, this, &mut context, input, reply),
        Err(error) => {
            completion::send_internal_error(turn.py, &error, &mut context, reply);
        }
    }
}

/// There is room for more of a response.
pub(super) fn writable(turn: &mut Turn<'_, '_>, reply: &mut Reply<'_>) {
    let Some(call) = call_of(turn.handle, reply) else {
        return;
    };
    turn.tasks.enter_shared(turn.py);
    if let Some(pump) = call.writable(turn.py) {
        let Some(head) = call.take() else {
            return;
        };
        let mut context = RequestContext::new(reply.id(), reply.peer(), turn.handle, head);
        step(turn, pump, &call, &mut context, reply);
    }
}

fn call_of(handle: &ReactorHandle, reply: &Reply<'_>) -> Option<Arc<Call>> {
    handle.with_role(reply.id(), |call: &mut OpenCall| Arc::clone(&call.0))
}

/// Calls the application on this thread.
#[inline]
fn call_inline<'py>(
    turn: &mut Turn<'_, 'py>,
    gateway: &Wsgi,
    context: &mut RequestContext<'_>,
    input: Option<Bound<'py, PyAny>>,
    reply: &mut Reply<'_>,
) {
    let py = turn.py;
    turn.tasks.enter_shared(py);
    let limits = &context.handle.limits;
    let prepared = gateway.borrow_scratch(py, limits).and_then(|mut scratch| {
        let head = context.head.as_deref().expect("put there by the caller");
        let arguments = scratch.prepare(py, limits, head, context.peer, input, true, true)?;
        Ok((scratch, arguments))
    });
    let (mut scratch, (environ, callables)) = match prepared {
        Ok(prepared) => prepared,
        Err(error) => {
            completion::send_internal_error(py, &error, context, reply);
            return;
        }
    };
    let result = gateway
        .app
        .bind(py)
        .call1((&environ.dict, &callables.start_response));
    let pump = body::send_result(py, result, &callables.shared, context, reply);
    scratch.clear(environ, callables);
    gateway.return_scratch(scratch);
    if let Some(mut pump) = pump {
        pump.pause(py, turn.tasks);
        let head = context.head.take();
        let call = Call::new(context, true, None);
        call.mark_called();
        call.set_pump(pump, head);
        turn.handle.enter(reply.id(), OpenCall(call));
        reply.await_writable();
    } else if let Some(head) = context.head.take() {
        reply.recycle(head);
    }
}

/// Sends one more block of a response.
fn step(
    turn: &mut Turn<'_, '_>,
    mut pump: Pump,
    call: &Arc<Call>,
    context: &mut RequestContext<'_>,
    reply: &mut Reply<'_>,
) {
    pump.resume(turn.py, turn.tasks);
    match pump.step(turn.py, context, reply) {
        Step::More(_) => {
            pump.pause(turn.py, turn.tasks);
            call.set_pump(pump, context.head.take());
            reply.await_writable();
        }
        Step::Done => {
            drop(turn.handle.take(reply.id()));
            if let Some(head) = context.head.take() {
                reply.recycle(head);
            }
        }
    }
}

/// Has a thread or a greenlet make the call.
fn submit(turn: &mut Turn<'_, '_>, gateway: &Py<Wsgi>, call: &Arc<Call>, reply: &mut Reply<'_>) {
    let py = turn.py;
    call.mark_called();
    match &gateway.get().mode {
        Mode::Inline => {}
        Mode::Threads { queue_max } => {
            if !gateway.get().queue(call, *queue_max) {
                drop(turn.handle.take(reply.id()));
                let head = call.take().unwrap_or_default();
                let mut context = RequestContext::new(reply.id(), reply.peer(), turn.handle, head);
                respond::send_fault(py, Fault::Overloaded, None, reply);
                if let Some(head) = context.head.take() {
                    reply.recycle(head);
                }
            }
        }
        Mode::Greenlets { spawn, .. } => {
            turn.tasks.enter_shared(py);
            let job = Job {
                call: Arc::clone(call),
                gateway: Some(gateway.clone_ref(py)),
            };
            if let Err(error) = spawn.bind(py).call1((job,)) {
                drop(turn.handle.take(reply.id()));
                let head = call.take().unwrap_or_default();
                let mut context = RequestContext::new(reply.id(), reply.peer(), turn.handle, head);
                completion::send_internal_error(py, &error, &mut context, reply);
            }
        }
    }
}
