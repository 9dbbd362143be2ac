//! Procedures of a native application: a call in, its result or error out, in the form of the call.
//!
//! Parameters are decoded into the signature by functions that `python/citius/web/routing/rpc/procedures.py` makes once for each
//! procedure. A call has no request object and passes no middleware. Tests: `tests/rpc/`.

use std::collections::HashMap;
use std::sync::Arc;

use citius_base::exchange::Role;
use citius_base::fork::end_child_with;
use citius_base::reactor_handle::ReactorHandle;
use citius_base::report::Subject;
use citius_base::sink::{Late, Sink, payload};
use citius_base::task::{
    CompletionHandler, Entry, LateStep, Next, Progress, Resume, Suspended, is_cancellation,
};
use citius_http::{Action, Fault, Fields, Form, Payload, ProcedureCall, ResponseHead, Status};
use citius_reactor::{Reply, StreamId};
use citius_rpc::{encode_bytes, encode_text};
use pyo3::exceptions::{PyBaseException, PyRuntimeError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyBytes, PyString};

use crate::functions;
use crate::gateway::turn::Turn;
use crate::respond::send_fault;
use crate::route::Kind;

/// What is exposed, by name.
pub(crate) type Procedures = HashMap<Vec<u8>, Arc<Procedure>>;

/// A procedure, ready to be called.
pub(crate) struct Procedure {
    pub(super) handler: Py<PyAny>,
    pub(super) kind: Kind,
    /// It can be called with no parameters at all.
    pub(super) takes_nothing: bool,
    pub(super) decoders: Decoders,
    /// What its calls are counted and logged under.
    pub(super) class: u16,
    /// Milliseconds it may take, if not those of all.
    pub(super) call_ms: Option<u64>,
    /// What it is called by.
    pub(crate) name: Box<str>,
    /// Its handler in messages, with file and line.
    pub(crate) handler_name: Box<str>,
}

/// Functions that take encoded parameters and call the handler with what they say.
#[derive(FromPyObject)]
pub(crate) struct Decoders {
    msgpack_array: Py<PyAny>,
    msgpack_map: Py<PyAny>,
    json_array: Py<PyAny>,
    json_object: Py<PyAny>,
}

impl Decoders {
    fn of(&self, call: &ProcedureCall<'_>) -> &Py<PyAny> {
        match (call.form, call.params.first()) {
            (Form::MessagePack, Some(0x90..=0x9f | 0xdc | 0xdd)) => &self.msgpack_array,
            (Form::MessagePack, _) => &self.msgpack_map,
            (Form::Json, Some(b'[')) => &self.json_array,
            (Form::Json, _) => &self.json_object,
        }
    }
}

/// A call is there: finds its procedure and calls it.
#[inline]
pub(super) fn call(
    turn: &mut Turn<'_, '_>,
    procedures: &Procedures,
    call: &ProcedureCall<'_>,
    reply: &mut Reply<'_>,
) {
    let Some(procedure) = procedures.get(&*call.method) else {
        return answer_unknown(call, reply);
    };
    reply.classify(procedure.class);
    if let Some(ms) = procedure.call_ms {
        reply.give_up_after(ms);
    }
    let py = turn.py;
    if procedure.kind != Kind::Async {
        turn.tasks.enter_shared(py);
    }
    let mut completion = CallCompletion {
        handle: turn.handle,
        id: reply.id(),
        form: call.form,
        is_notification: !call.wants_response,
        call_id: call.id,
        procedure,
        is_entered: false,
    };
    let is_bare = procedure.takes_nothing && matches!(call.params, [0x90 | 0x80] | b"[]" | b"{}");
    if procedure.kind == Kind::Blocking {
        let submitted = completion.submit(py, call, is_bare);
        return completion.after_submit(py, submitted, reply);
    }
    let result = if is_bare {
        procedure.handler.bind(py).call0()
    } else {
        let decoder = procedure.decoders.of(call).bind(py);
        decoder.call1((PyBytes::new(py, call.params),))
    };
    match result {
        Ok(coroutine) if procedure.kind == Kind::Async => {
            turn.tasks
                .step(py, coroutine.unbind(), &mut completion, reply);
        }
        result => {
            completion.on_result(py, result, reply);
        }
    }
}

/// Answers a call of what is not exposed.
#[cold]
pub(super) fn answer_unknown(call: &ProcedureCall<'_>, reply: &mut Reply<'_>) {
    let name = String::from_utf8_lossy(&call.method);
    let name: String = name.chars().take(NAME_CHARACTERS_MAX).collect();
    let text = format!("nothing is exposed as {name:?}");
    let response = ResponseHead::text(Status::from_const(404));
    // A call that is just being made is open.
    let _ = reply.send(Action::Respond(response, Payload::Copied(text.as_bytes())));
}

/// Characters of an unknown name in the response.
const NAME_CHARACTERS_MAX: usize = 100;

/// An open exchange that is a call. A call without a response runs to its end although its connection has gone.
struct CallRole {
    is_notification: bool,
}

impl Role for CallRole {
    fn on_disconnect(self: Box<Self>, _py: Python<'_>) -> bool {
        true
    }

    fn outlives_connection(&self) -> bool {
        self.is_notification
    }
}

/// A call on its way to its response.
struct CallCompletion<'a> {
    handle: &'a Arc<ReactorHandle>,
    id: StreamId,
    form: Form,
    is_notification: bool,
    /// The id that the client has given it, if that is a number; for the log.
    call_id: Option<u32>,
    procedure: &'a Arc<Procedure>,
    /// It is in the table of open exchanges.
    is_entered: bool,
}

impl CallCompletion<'_> {
    fn role(&self) -> CallRole {
        CallRole {
            is_notification: self.is_notification,
        }
    }

    /// The call to keep, once it is entered in the table of open exchanges.
    fn open(&self) -> SuspendedCall {
        SuspendedCall {
            handle: Arc::clone(self.handle),
            id: self.id,
            form: self.form,
            is_notification: self.is_notification,
            call_id: self.call_id,
            procedure: Arc::clone(self.procedure),
        }
    }

    /// Hands a call to the thread pool; `false` if that is full.
    fn submit(
        &mut self,
        py: Python<'_>,
        call: &ProcedureCall<'_>,
        is_bare: bool,
    ) -> PyResult<bool> {
        let submit = self.handle.callbacks.submit.as_ref().ok_or_else(|| {
            PyRuntimeError::new_err("there is no thread pool for blocking procedures")
        })?;
        let procedure = self.procedure;
        let pool_call = RpcCall(self.open());
        // Before `submit`, for the pool's thread may respond before that returns.
        self.is_entered = true;
        self.handle.enter(self.id, self.role());
        let submitted = if is_bare {
            submit.bind(py).call1((pool_call, &procedure.handler, ()))?
        } else {
            let params = PyBytes::new(py, call.params);
            let decoder = procedure.decoders.of(call);
            submit.bind(py).call1((pool_call, decoder, (params,)))?
        };
        submitted.is_truthy()
    }

    fn after_submit(&mut self, py: Python<'_>, submitted: PyResult<bool>, reply: &mut Reply<'_>) {
        match submitted {
            Ok(true) => {}
            Ok(false) => {
                drop(self.handle.take(self.id));
                send_fault(py, Fault::Overloaded, None, reply);
            }
            Err(error) => {
                self.on_result(py, Err(error), reply);
            }
        }
    }

    /// Sends what the procedure returned.
    #[inline]
    fn send_result<S: Sink>(
        &self,
        py: Python<'_>,
        value: &Bound<'_, PyAny>,
        sink: &mut S,
    ) -> PyResult<()> {
        if self.form == Form::MessagePack
            && let Some(encoded) = encode_plain(value)?
        {
            Self::send(py, Status::OK, Payload::Copied(&encoded), sink);
            return Ok(());
        }
        let encode = match self.form {
            Form::MessagePack => &functions::ENCODE_MSGPACK,
            Form::Json => &functions::ENCODE_JSON,
        };
        let encoded = functions::encoded(py, encode, value)?;
        let bytes = encoded.cast::<PyBytes>()?;
        Self::send(py, Status::OK, payload(bytes), sink);
        Ok(())
    }

    /// Sends what the procedure raised; logs it unless it is meant for the caller.
    #[cold]
    fn send_error<S: Sink>(&self, py: Python<'_>, error: &PyErr, sink: &mut S) {
        // By way of `into_value`, which puts the traceback where Python looks for it.
        let exception: Py<PyBaseException> = error.clone_ref(py).into_value(py);
        let message = self.subject(py).message(" failed");
        let made = functions::RPC_ERROR
            .get(py)
            .and_then(|make| make.call1((exception, self.form == Form::Json, message)))
            .and_then(|made| made.extract::<(u16, Py<PyBytes>)>());
        match made {
            Ok((code, encoded)) => {
                let status = Status::new(code).unwrap_or(Status::INTERNAL_SERVER_ERROR);
                Self::send(py, status, payload(encoded.bind(py)), sink);
            }
            Err(error) => {
                error.write_unraisable(py, None);
                send_fault(py, Fault::HandlerFailed, None, sink);
            }
        }
    }

    #[inline]
    fn send<S: Sink>(py: Python<'_>, status: Status, payload: Payload<'_>, sink: &mut S) {
        let response = ResponseHead {
            status,
            content_type: None,
            fields: &Fields::EMPTY,
        };
        // Refused only when the connection is being cut already.
        let _ = sink.send(py, Action::Respond(response, payload));
    }
}

/// Values whose encoding needs no encoder.
#[inline]
fn encode_plain(value: &Bound<'_, PyAny>) -> PyResult<Option<Vec<u8>>> {
    let mut encoded = Vec::new();
    if let Ok(text) = value.cast_exact::<PyString>() {
        let text = text.to_str()?;
        encoded.reserve_exact(text.len() + 5);
        encode_text(text, &mut encoded);
    } else if let Ok(bytes) = value.cast_exact::<PyBytes>() {
        let bytes = bytes.as_bytes();
        encoded.reserve_exact(bytes.len() + 5);
        encode_bytes(bytes, &mut encoded);
    } else if value.is_none() {
        encoded.push(0xc0);
    } else if let Ok(flag) = value.cast_exact::<PyBool>() {
        encoded.push(if flag.is_true() { 0xc3 } else { 0xc2 });
    } else {
        return Ok(None);
    }
    Ok(Some(encoded))
}

impl CompletionHandler for CallCompletion<'_> {
    fn exchange(&self) -> (&Arc<ReactorHandle>, StreamId) {
        (self.handle, self.id)
    }

    fn subject(&self, _py: Python<'_>) -> Subject {
        Subject::of_call(
            &self.procedure.name,
            &self.procedure.handler_name,
            self.call_id,
        )
    }

    #[inline]
    fn on_result<S: Sink>(
        &mut self,
        py: Python<'_>,
        result: PyResult<Bound<'_, PyAny>>,
        sink: &mut S,
    ) -> Next {
        let sent = result.and_then(|value| self.send_result(py, &value, sink));
        let mut ending = None;
        if let Err(error) = sent {
            end_child_with(py, self.handle, &error);
            // If the call was cancelled, its response has been sent, and this one is dropped.
            self.send_error(py, &error, sink);
            ending = is_cancellation(py, &error).then_some(error);
        }
        if self.is_entered {
            drop(self.handle.take(self.id));
        }
        Next::Done(ending)
    }

    fn on_suspend(&mut self, _py: Python<'_>) -> PyResult<Suspended> {
        Ok(Suspended {
            entry: Entry::As(Box::new(self.role())),
            resume: Box::new(self.open()),
        })
    }

    #[inline]
    fn flush(&mut self, _py: Python<'_>, _reply: &mut Reply<'_>) {}

    fn fail(&mut self, py: Python<'_>, error: &PyErr, reply: &mut Reply<'_>) {
        self.send_error(py, error, reply);
    }
}

/// A call between two steps of its coroutine, or in a thread of the pool.
struct SuspendedCall {
    handle: Arc<ReactorHandle>,
    id: StreamId,
    form: Form,
    is_notification: bool,
    call_id: Option<u32>,
    procedure: Arc<Procedure>,
}

impl SuspendedCall {
    fn completion(&self) -> CallCompletion<'_> {
        CallCompletion {
            handle: &self.handle,
            id: self.id,
            form: self.form,
            is_notification: self.is_notification,
            call_id: self.call_id,
            procedure: &self.procedure,
            is_entered: true,
        }
    }
}

impl Resume for SuspendedCall {
    fn resume(&mut self, py: Python<'_>, step: LateStep<'_>) -> Progress {
        step.run(py, &mut self.completion())
    }
}

/// A call that a pool works on, with the methods of a request that a pool uses.
#[pyclass(frozen, module = "citius._core", name = "_RpcCall")]
pub(crate) struct RpcCall(SuspendedCall);

#[pymethods]
impl RpcCall {
    fn _set_task(&self, task: Py<PyAny>) {
        self.0.handle.set_task(self.0.id, Some(task));
    }

    /// Whether it is still to be done. A notification is, whatever has become of its connection.
    fn _is_open(&self) -> bool {
        self.0.is_notification || self.0.handle.is_open(self.0.id)
    }

    fn _respond(&self, value: &Bound<'_, PyAny>) {
        self.complete(value.py(), Ok(value.clone()));
    }

    fn _fail(&self, error: &Bound<'_, PyAny>) {
        self.complete(error.py(), Err(PyErr::from_value(error.clone())));
    }
}

impl RpcCall {
    fn complete(&self, py: Python<'_>, result: PyResult<Bound<'_, PyAny>>) {
        let mut late = Late {
            handle: &self.0.handle,
            id: self.0.id,
        };
        self.0.completion().on_result(py, result, &mut late);
    }
}
