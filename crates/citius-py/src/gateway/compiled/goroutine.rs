//! Handlers in goroutines: called at once, and sent within the turn if they do not wait.
//!
//! A request's goroutine has a context that ends when the client leaves. One that parks is entered as an exchange; its response then
//! comes through the mailbox, in the turn that has run it. Tests: `tests/goroutines/`.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

use bytes::Bytes;
use citius_base::exchange::{LazySubject, Role};
use citius_base::interpreter::gil::attached;
use citius_base::logging::Names;
use citius_base::reactor_handle::ReactorHandle;
use citius_base::report::{self, LEVEL_ERROR, LEVEL_WARNING, Subject};
use citius_goroutine::{Failure, StackError};
use citius_http::{Fault, Fields, Head, Payload};
use citius_native::context::Context;
use citius_native::green::Green;
use citius_native::{local, pool};
use citius_reactor::{Reply, ResponseAction, StreamCommand, StreamId, coarse_ms};
use pyo3::prelude::*;

use super::abi::HandlerResponse;
use super::arguments::Given;
use super::client_stream::ClientStream;
use super::handler::{
    Handler, HandlerOutcome, keep_response, response_command, send, take_response, text_command,
};
use super::{Job, complaint, post};
use crate::gateway::native::Route;
use crate::gateway::turn::Turn;

/// An open exchange that a goroutine works on.
pub(in crate::gateway) struct InGoroutine {
    context: Arc<Context>,
    route: Arc<Route>,
    pub(in crate::gateway) stream: Arc<ClientStream>,
}

impl Role for InGoroutine {
    fn on_disconnect(self: Box<Self>, _py: Python<'_>) -> bool {
        self.context.cancel();
        false
    }

    fn subject(&self, _py: Python<'_>, _names: Names<'_>) -> Option<LazySubject> {
        let label = format!("a request ({})", self.route.info.label);
        Some(Box::new(move |_| Subject::named(label)))
    }
}

/// A handler that has returned.
struct Finished {
    outcome: HandlerOutcome,
    mistake: Option<String>,
    response: Box<HandlerResponse>,
    head: Box<Head>,
}

/// Where the result of a goroutine goes.
enum Delivery {
    /// To the turn that has called the handler, which still waits for it.
    Turn(Option<Finished>),
    /// The handler has failed while that turn waited.
    Failed,
    /// To the mailbox.
    Mailbox,
}

/// What a failure needs to be told of.
#[derive(Clone)]
struct Origin {
    route: Arc<Route>,
    handle: Arc<ReactorHandle>,
    id: StreamId,
}

impl Origin {
    fn of(job: &Job) -> Self {
        Self {
            route: Arc::clone(&job.route),
            handle: Arc::clone(&job.handle),
            id: job.id,
        }
    }

    /// Logs that the handler has failed, in the next turn.
    fn note(&self, failure: &Failure) {
        let what = match failure {
            Failure::Overflowed => {
                let bytes = self.handle.limits.goroutine_stack_bytes;
                format!(
                    "its goroutine has overflowed its stack of {bytes} bytes; raise --goroutine-stack-bytes, or let it \
                     need less"
                )
            }
            Failure::Panicked(_) => "it panicked".to_owned(),
            Failure::Abandoned => return,
        };
        self.handle
            .note_failure(format!("a request failed: {}", self.message(&what)));
    }

    fn message(&self, what: &str) -> String {
        let handler = self.route.compiled.as_ref();
        let name = handler.map_or("", |handler| &handler.name);
        let label = &self.route.info.label;
        format!("the compiled handler {name}: {what} [{label}]")
    }

    /// Logs that the handler, or what it has started, has not waited for a long time.
    fn tell_long_run(&self, py: Python<'_>, began_ms: u64) {
        let handler = self.route.compiled.as_ref();
        let what = handler.and_then(|handler| handler.long_run(began_ms, &self.handle.limits));
        if let Some(what) = what {
            self.handle.log(py, LEVEL_WARNING, &self.message(&what));
        }
    }
}

/// Calls a handler in a goroutine of the reactor.
pub(super) fn serve(turn: &mut Turn<'_, '_>, job: Job, has_ended: bool, reply: &mut Reply<'_>) {
    let py = turn.py;
    let origin = Origin::of(&job);
    let context = Context::new(None, None);
    let stream = ClientStream::new(turn.handle, job.id, has_ended);
    await_body(&job, has_ended, reply);
    let delivery = Rc::new(RefCell::new(Delivery::Turn(None)));
    let word = {
        let (origin, delivery) = (origin.clone(), Local(Rc::clone(&delivery)));
        Green::make(
            Some(Arc::clone(&context)),
            Box::new(move |failure| fail(&origin, &delivery, &failure)),
        )
    };
    turn.tasks.enter_shared(py);
    let (late, of_call) = (Rc::clone(&delivery), Arc::clone(&stream));
    let code = move || {
        let called = call(&job, of_call);
        deliver(job, called, &late);
    };
    let is_waiting = || matches!(*delivery.borrow(), Delivery::Turn(None));
    let began_ms = coarse_ms();
    let started = local::start_now(attached(py), turn.handle, word, code, is_waiting);
    if let Err(error) = started {
        return refuse(turn, error, reply);
    }
    origin.tell_long_run(py, began_ms);
    let delivered = std::mem::replace(&mut *delivery.borrow_mut(), Delivery::Mailbox);
    match delivered {
        Delivery::Turn(Some(finished)) => send_now(turn, &origin, finished, reply),
        Delivery::Turn(None) => {
            let route = origin.route;
            let role = InGoroutine {
                context,
                route,
                stream,
            };
            turn.handle.enter(origin.id, role);
        }
        Delivery::Failed | Delivery::Mailbox => {
            crate::respond::send_fault(py, Fault::HandlerFailed, None, reply);
        }
    }
}

/// What belongs to the reactor's thread, on which alone its goroutines run.
struct Local<T>(T);

// SAFETY: goroutines of a reactor, and what is told of their failures, run on the reactor's thread only.
unsafe impl<T> Send for Local<T> {}

/// Calls a handler in a goroutine of the threads.
pub(super) fn serve_in_pool(
    turn: &mut Turn<'_, '_>,
    job: Job,
    has_ended: bool,
    reply: &mut Reply<'_>,
) {
    let origin = Origin::of(&job);
    let context = Context::new(None, None);
    let stream = ClientStream::new(turn.handle, job.id, has_ended);
    await_body(&job, has_ended, reply);
    let on_failure = {
        let origin = origin.clone();
        move |failure: Failure| {
            origin.note(&failure);
            post(&origin.handle, origin.id, failed());
        }
    };
    let word = Green::make(Some(Arc::clone(&context)), Box::new(on_failure));
    // Before the goroutine is there for the taking: a thread may respond before this returns.
    let route = Arc::clone(&origin.route);
    let role = InGoroutine {
        context,
        route,
        stream: Arc::clone(&stream),
    };
    turn.handle.enter(origin.id, role);
    let started = pool::start(&pool::pool(), word, move || {
        let _running = Green::begin();
        let called = call(&job, stream);
        deliver_late(job, called);
    });
    if let Err(error) = started {
        Green::unmake(word);
        drop(turn.handle.take(origin.id));
        refuse(turn, error, reply);
    }
}

/// Asks for the first of a body that the handler reads itself.
fn await_body(job: &Job, has_ended: bool, reply: &mut Reply<'_>) {
    if !has_ended {
        reply.want(u64::from(job.handle.limits.body_window_bytes));
    }
}

/// Calls the handler, on the goroutine's stack.
fn call(job: &Job, stream: Arc<ClientStream>) -> Called {
    let mut response = take_response();
    response.stream = Some(stream);
    response.streams_body = job.route.info.streams_body;
    response
        .default_content_type
        .clone_from(&job.handler.content_type);
    let given = Given {
        head: &job.head,
        captures: &job.captures,
        body: &job.body,
    };
    let handler: &Handler = &job.handler;
    let (outcome, mistake) = handler.make(
        given,
        &job.handle.limits,
        &mut response,
        |request, response| handler.enter(request, response),
    );
    (outcome, mistake, response)
}

type Called = (HandlerOutcome, Option<String>, Box<HandlerResponse>);

fn deliver(job: Job, called: Called, delivery: &Rc<RefCell<Delivery>>) {
    // What was sent before is on its way through the mailbox, and nothing may overtake it.
    let is_late = !matches!(*delivery.borrow(), Delivery::Turn(_)) || called.2.is_started();
    if is_late {
        return deliver_late(job, called);
    }
    let (outcome, mistake, response) = called;
    *delivery.borrow_mut() = Delivery::Turn(Some(Finished {
        outcome,
        mistake,
        response,
        head: job.head,
    }));
}

/// Sends the result through the mailbox.
fn deliver_late(job: Job, (outcome, mistake, mut response): Called) {
    if let HandlerOutcome::Rest { size: Some(size) } = outcome {
        let rest = response.take_body(size);
        keep_response(response);
        return end_late(job, rest);
    }
    let command = response_command(&job.handler, outcome, &mut response);
    keep_response(response);
    if let Some(mistake) = mistake {
        job.handle
            .note_failure(complaint(&job.handle, &job.route, &job.head, &mistake));
    }
    post(&job.handle, job.id, command);
    job.handle.keep_head(job.head);
}

/// Ends a response that was sent in pieces.
fn end_late(job: Job, rest: Bytes) {
    let (mailbox, id) = (&job.handle.mailbox, job.id);
    if !rest.is_empty() {
        let data = ResponseAction::Data(Payload::Shared(rest));
        // The end below wakes the reactor.
        let _ = mailbox.post(id, StreamCommand::Act(data)) && {
            mailbox.wake();
            true
        };
    }
    post(
        &job.handle,
        id,
        StreamCommand::Act(ResponseAction::End(Fields::EMPTY)),
    );
    job.handle.keep_head(job.head);
}

fn send_now(turn: &mut Turn<'_, '_>, origin: &Origin, finished: Finished, reply: &mut Reply<'_>) {
    let Finished {
        outcome,
        mistake,
        mut response,
        head,
    } = finished;
    let (py, handle) = (turn.py, turn.handle);
    if let Some(mistake) = mistake {
        report::failure(py, &complaint(handle, &origin.route, &head, &mistake));
    }
    let Some(handler) = &origin.route.compiled else {
        return;
    };
    if let Err(fault) = send(py, handler, outcome, &mut response, reply) {
        let what = format!("{} ({})", fault.text(), fault.spec());
        handle.log(
            py,
            LEVEL_ERROR,
            &complaint(handle, &origin.route, &head, &what),
        );
    }
    keep_response(response);
    reply.recycle(head);
}

/// The goroutine has ended without a result.
fn fail(origin: &Origin, delivery: &Local<Rc<RefCell<Delivery>>>, failure: &Failure) {
    origin.note(failure);
    let mut delivery = delivery.0.borrow_mut();
    if matches!(*delivery, Delivery::Turn(_)) {
        *delivery = Delivery::Failed;
    } else {
        post(&origin.handle, origin.id, failed());
    }
}

/// The response to a request whose handler has failed, as a command.
fn failed() -> citius_reactor::StreamCommand {
    text_command(citius_http::Status::INTERNAL_SERVER_ERROR)
}

/// There is no stack for another goroutine.
#[cold]
fn refuse(turn: &Turn<'_, '_>, error: StackError, reply: &mut Reply<'_>) {
    if turn.handle.should_log_slow_handler() {
        let message = format!("requests are answered with 503: {error}");
        turn.handle.log(turn.py, LEVEL_ERROR, &message);
    }
    crate::respond::send_fault(turn.py, Fault::Overloaded, None, reply);
}
