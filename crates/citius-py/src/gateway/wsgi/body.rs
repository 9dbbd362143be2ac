//! What an application returned in, a response out: in one piece where the whole body is known, else block by block.
//!
//! PEP 3333 ("Buffering and Streaming") forbids to hold back a block while the next one is made. A body is known if it is a
//! list, a tuple or a single block, or fills the announced length. Otherwise each block is sent before the next is asked for.
//! Tests: `tests/wsgi/`.

use std::sync::Arc;

use bytes::Bytes;
use citius_base::context::in_context;
use citius_base::fork::end_child_with;
use citius_base::report::{LEVEL_DEBUG, LEVEL_ERROR, LEVEL_WARNING};
use citius_base::sink::{Sink, payload};
use citius_base::support;
use citius_base::task::Tasks;
use citius_http::{Action, Declared, Fault, Fields, Method, Payload};
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyIterator, PyList, PyTuple};
use smallvec::SmallVec;

use super::file::FileWrapper;
use super::start::{ResponseState, Shared, block};
use crate::file;
use crate::request_context::{RequestContext, log_fault};
use crate::respond;

type Blocks<'py> = SmallVec<[Bound<'py, PyBytes>; 1]>;

/// A response that leaves block by block.
pub(super) struct Pump {
    iterator: Py<PyIterator>,
    /// What the application returned, whose `close` is called at the end.
    iterable: Option<Py<PyAny>>,
    shared: Arc<Shared>,
    /// What the application was called in, while the reactor's thread does something else in between.
    context: Option<Py<PyAny>>,
}

/// What came of one step.
pub(super) enum Step {
    /// So many bytes are on their way, and there is more to come.
    More(usize),
    Done,
}

/// How often an application may yield nothing before others have their turn.
const EMPTY_BLOCKS_MAX: usize = 64;

/// Sends what the application returned or raised; what is not known to be all of it is left to step.
#[inline]
pub(super) fn send_result<S: Sink>(
    py: Python<'_>,
    result: PyResult<Bound<'_, PyAny>>,
    shared: &Arc<Shared>,
    context: &mut RequestContext<'_>,
    sink: &mut S,
) -> Option<Pump> {
    let iterable = match result {
        Ok(iterable) => iterable,
        Err(error) => {
            fail(py, &error, shared, context, sink);
            return None;
        }
    };
    if let Some(only) = only_block_of(&iterable) {
        if let Err(error) = respond(py, std::slice::from_ref(&only), shared, context, sink) {
            fail(py, &error, shared, context, sink);
        }
        return None;
    }
    if let Ok(file) = iterable.cast_exact::<FileWrapper>() {
        match respond_file(py, file.get(), shared, context, sink) {
            Ok(true) => {
                close(py, &iterable);
                return None;
            }
            Ok(false) => {}
            Err(error) => {
                fail(py, &error, shared, context, sink);
                close(py, &iterable);
                return None;
            }
        }
    }
    let outcome = match blocks_of(&iterable) {
        Some(Ok(blocks)) => {
            return match respond(py, &blocks, shared, context, sink) {
                Ok(()) => None,
                Err(error) => {
                    fail(py, &error, shared, context, sink);
                    None
                }
            };
        }
        Some(Err(error)) => Err(error),
        None => begin(py, &iterable, shared, context, sink),
    };
    match outcome {
        Ok(Some(pump)) => return Some(pump),
        Ok(None) => {}
        Err(error) => fail(py, &error, shared, context, sink),
    }
    close(py, &iterable);
    None
}

/// The block of a list of one, which is what most applications return.
#[inline]
fn only_block_of<'py>(iterable: &Bound<'py, PyAny>) -> Option<Bound<'py, PyBytes>> {
    let list = iterable.cast_exact::<PyList>().ok()?;
    if list.len() != 1 {
        return None;
    }
    list.get_item(0).ok()?.cast_into().ok()
}

/// The blocks of a list or a tuple: all there will be, and nothing to close.
#[inline]
fn blocks_of<'py>(iterable: &Bound<'py, PyAny>) -> Option<PyResult<Blocks<'py>>> {
    let mut blocks = Blocks::new();
    let mut push = |item: Bound<'py, PyAny>| {
        blocks.push(block(&item, BODY_CONSISTS_OF)?.clone());
        Ok::<_, PyErr>(())
    };
    let outcome = if let Ok(list) = iterable.cast_exact::<PyList>() {
        list.iter().try_for_each(&mut push)
    } else if let Ok(tuple) = iterable.cast_exact::<PyTuple>() {
        tuple.iter().try_for_each(&mut push)
    } else {
        return None;
    };
    Some(outcome.map(|()| blocks))
}

const BODY_CONSISTS_OF: &str = "the body of an answer consists of";

/// Has the kernel send a file, from where it stands; `false` if it has to be read.
///
/// As many bytes as `content-length` says; a file that is shorter raises now.
fn respond_file<S: Sink>(
    py: Python<'_>,
    file: &FileWrapper,
    shared: &Arc<Shared>,
    context: &mut RequestContext<'_>,
    sink: &mut S,
) -> PyResult<bool> {
    let (announced, is_begun) = {
        let state = shared.borrow_state();
        if !state.is_started {
            return Err(not_started());
        }
        let is_begun = state.is_sent || state.is_committed || state.trailers.are_sent();
        (state.content_length(), is_begun)
    };
    if is_begun {
        return Ok(false);
    }
    let Some((descriptor, offset)) = file.place(py)? else {
        return Ok(false);
    };
    let Some(body) = file::of_descriptor(context.handle, descriptor, offset, announced)? else {
        return Ok(false);
    };
    let state = &mut *shared.borrow_state();
    send_whole(py, body, state, context, sink)?;
    Ok(true)
}

/// The first block that is not empty, and whether the iteration has ended. The head must wait for either, for an
/// application that has nothing yet may yield empty blocks.
fn first_block<'py>(
    iterator: &mut Bound<'py, PyIterator>,
) -> PyResult<(Option<Bound<'py, PyBytes>>, bool)> {
    for _ in 0..EMPTY_BLOCKS_MAX {
        let Some(item) = iterator.next() else {
            return Ok((None, true));
        };
        let item = item?;
        let bytes = block(&item, BODY_CONSISTS_OF)?;
        if !bytes.as_bytes().is_empty() {
            return Ok((Some(bytes.clone()), false));
        }
    }
    Ok((None, false))
}

/// Takes the first block, and sends everything if that is everything.
fn begin<S: Sink>(
    py: Python<'_>,
    iterable: &Bound<'_, PyAny>,
    shared: &Arc<Shared>,
    context: &mut RequestContext<'_>,
    sink: &mut S,
) -> PyResult<Option<Pump>> {
    let mut iterator = iterable.try_iter()?;
    let (first, ended) = first_block(&mut iterator)?;
    let (is_sent, announced, written_bytes) = {
        let state = shared.borrow_state();
        let announced = state.content_length().filter(|_| state.takes_no_trailers());
        (state.is_sent, announced, state.written.len())
    };
    let first_bytes = first.as_ref().map_or(0, |first| first.as_bytes().len());
    let so_far = (written_bytes + first_bytes) as u64;
    let is_head = context.with_head(py, |head| head.method == Method::Head);
    let is_all = ended
        || announced.is_some_and(|announced| so_far >= announced && first.is_some())
        || first.is_some()
            && (is_head && announced.is_some() || is_only_block(py, iterable, announced));
    if is_all && !is_sent {
        let blocks: Blocks<'_> = first.into_iter().collect();
        respond(py, &blocks, shared, context, sink)?;
        return Ok(None);
    }
    let pump = Pump {
        iterator: iterator.unbind(),
        iterable: Some(iterable.clone().unbind()),
        shared: Arc::clone(shared),
        context: None,
    };
    let is_complete = {
        let state = &mut *shared.borrow_state();
        if let Some(first) = first {
            send_block(py, &first, state, sink)?;
        }
        let is_complete = ended || state.is_complete() || is_head && state.is_sent;
        if is_complete {
            end(py, state, context, sink);
        }
        is_complete
    };
    if is_complete {
        return Ok(None);
    }
    Ok(Some(pump))
}

/// Whether what was just taken of `iterable` is all it has: PEP 3333, "Handling the Content-Length Header".
fn is_only_block(py: Python<'_>, iterable: &Bound<'_, PyAny>, announced: Option<u64>) -> bool {
    if announced.is_some() {
        return false;
    }
    let _ = py;
    iterable.len().is_ok_and(|n_blocks| n_blocks == 1)
}

/// Sends a whole response.
#[inline]
fn respond<S: Sink>(
    py: Python<'_>,
    blocks: &[Bound<'_, PyBytes>],
    shared: &Arc<Shared>,
    context: &mut RequestContext<'_>,
    sink: &mut S,
) -> PyResult<()> {
    let state = &mut *shared.borrow_state();
    if !state.is_started {
        return Err(not_started());
    }
    if state.is_sent || state.trailers.are_sent() {
        // `write` has begun the response, or it does not end with its body.
        if !state.is_sent {
            start(py, state, sink);
        }
        for block in blocks {
            send_block(py, block, state, sink)?;
        }
        end(py, state, context, sink);
        return Ok(());
    }
    let written = std::mem::take(&mut state.written);
    let joined;
    let (body, total_bytes) = match blocks {
        [only] if written.is_empty() => (payload(only), only.as_bytes().len()),
        _ => {
            let mut all = written;
            for block in blocks {
                all.extend_from_slice(block.as_bytes());
            }
            joined = all;
            (Payload::Copied(&joined), joined.len())
        }
    };
    debug_assert_eq!(body.len(), total_bytes as u64);
    send_whole(py, body, state, context, sink)
}

/// Sends a response whose whole body is known.
#[inline]
fn send_whole<S: Sink>(
    py: Python<'_>,
    mut body: Payload<'_>,
    state: &mut ResponseState,
    context: &mut RequestContext<'_>,
    sink: &mut S,
) -> PyResult<()> {
    let total_bytes = body.len();
    let status = state.start_state.status;
    match state.content_length() {
        Some(announced) if announced == total_bytes => state.forget_content_length(),
        Some(announced) if announced < total_bytes => {
            too_long(py, context, announced);
            body = first_bytes(body, announced);
            state.forget_content_length();
        }
        Some(announced) if !status.refuses_content() && !is_head(py, context) => {
            return Err(PyValueError::new_err(format!(
                "content-length says {announced}, but the body has {total_bytes} bytes"
            )));
        }
        // A HEAD without a body: the length of the body of a GET is not known.
        None if total_bytes == 0 && is_head(py, context) && !status.refuses_content() => {
            start(py, state, sink);
            end(py, state, context, sink);
            return Ok(());
        }
        _ => {}
    }
    state.is_sent = true;
    state.is_committed = true;
    let fields = state.start_state.fields();
    let response = state.start_state.response_head(&fields);
    if let Err(fault) = sink.send(py, Action::Respond(response, body)) {
        log_fault(py, fault, context);
    }
    Ok(())
}

fn is_head(py: Python<'_>, context: &RequestContext<'_>) -> bool {
    context.with_head(py, |head| head.method == Method::Head)
}

#[expect(
    clippy::cast_possible_truncation,
    reason = "less than the length of what is in memory"
)]
fn first_bytes(body: Payload<'_>, most: u64) -> Payload<'_> {
    match body {
        Payload::Copied(bytes) => Payload::Copied(&bytes[..most as usize]),
        Payload::Shared(bytes) => Payload::Shared(bytes.slice(..most as usize)),
        // Made with the right length to begin with.
        Payload::File(range) => Payload::File(range),
    }
}

/// Puts the head on its way.
fn start<S: Sink>(py: Python<'_>, state: &mut ResponseState, sink: &mut S) {
    state.is_sent = true;
    state.is_committed = true;
    state.declared = Declared::new(state.content_length());
    // What could be refused of it has been checked by `start_response`.
    let fields = state.start_state.fields();
    let response = state.start_state.response_head(&fields);
    let _ = sink.send(py, Action::Start(response));
    drop(fields);
    let written = std::mem::take(&mut state.written);
    if !written.is_empty() {
        let offered = written.len() as u64;
        let bytes = state.declared.count_most(offered);
        if bytes < offered {
            state.mistake = Some(TOO_LONG);
        }
        let body = first_bytes(Payload::Shared(Bytes::from(written)), bytes);
        let _ = sink.send(py, Action::Data(body));
    }
}

/// Puts a block on its way, after the head. What is wrong with it is logged at the [end](end) of the response.
pub(super) fn send_block<S: Sink>(
    py: Python<'_>,
    block: &Bound<'_, PyBytes>,
    state: &mut ResponseState,
    sink: &mut S,
) -> PyResult<()> {
    if !state.is_started {
        return Err(not_started());
    }
    if !state.is_sent {
        start(py, state, sink);
    }
    let offered = block.as_bytes().len() as u64;
    let bytes = state.declared.count_most(offered);
    if bytes < offered {
        state.mistake = Some(TOO_LONG);
    }
    if bytes > 0 {
        let body = first_bytes(payload(block), bytes);
        if let Err(fault) = sink.send(py, Action::Data(body)) {
            state.mistake = Some(fault.text());
        }
    }
    Ok(())
}

/// The body is complete, or should be.
fn end<S: Sink>(
    py: Python<'_>,
    state: &mut ResponseState,
    context: &RequestContext<'_>,
    sink: &mut S,
) {
    if let Some(mistake) = state.mistake.take() {
        let what = format!(": {mistake}");
        context
            .subject(py)
            .log(py, context.handle, LEVEL_WARNING, &what);
    }
    let is_bodiless = state.start_state.status.refuses_content() || is_head(py, context);
    match state.declared.left() {
        Some(due) if due > 0 && !is_bodiless => {
            let what = format!(
                ": the body is {due} bytes shorter than its content-length; the connection is cut"
            );
            context
                .subject(py)
                .log(py, context.handle, LEVEL_ERROR, &what);
            let _ = sink.send(py, Action::Abort);
        }
        _ => {
            let trailers = state.trailers.take().filter(|_| !is_bodiless);
            let trailers = &trailers.unwrap_or(Fields::EMPTY);
            let _ = sink.send(py, Action::End { trailers });
        }
    }
}

const TOO_LONG: &str = "a body is longer than its content-length; what is more was left out";

#[cold]
fn too_long(py: Python<'_>, context: &RequestContext<'_>, announced: u64) {
    let what = format!(": {TOO_LONG} ({announced})");
    context
        .subject(py)
        .log(py, context.handle, LEVEL_WARNING, &what);
}

#[cold]
fn not_started() -> PyErr {
    PyRuntimeError::new_err("the application answers without having called start_response")
}

/// The application failed: 500 while that is possible, else the connection is cut.
#[cold]
pub(super) fn fail<S: Sink>(
    py: Python<'_>,
    error: &PyErr,
    shared: &Arc<Shared>,
    context: &mut RequestContext<'_>,
    sink: &mut S,
) {
    end_child_with(py, context.handle, error);
    report(py, error, context, S::IN_TURN);
    let state = &mut *shared.borrow_state();
    if state.is_committed && !state.is_sent {
        start(py, state, sink);
    }
    if state.is_sent {
        let _ = sink.send(py, Action::Abort);
    } else {
        state.is_sent = true;
        respond::send_fault(py, Fault::HandlerFailed, None, sink);
    }
}

/// Logs an exception of the application's, with its traceback.
#[cold]
fn report(py: Python<'_>, error: &PyErr, context: &RequestContext<'_>, is_in_turn: bool) {
    // A greenlet that was killed because its client has disconnected (`Call::disconnected`).
    let is_plain = error.is_instance_of::<pyo3::exceptions::PyException>(py);
    if !is_plain && context.handle.with(context.id, |_| ()).is_none() && !is_in_turn {
        return;
    }
    let has_left = !is_in_turn && context.handle.with(context.id, |_| ()).is_none();
    if has_left && support::comes_from_disconnection(py, error) {
        let what = format!(": after the client had gone: {error}");
        let subject = context.subject(py);
        return subject.log(py, context.handle, LEVEL_DEBUG, &what);
    }
    context.subject(py).exception(py, " failed", error);
}

/// Calls `close`, whatever has happened (PEP 3333, "Specification Details").
pub(super) fn close(py: Python<'_>, iterable: &Bound<'_, PyAny>) {
    let closed = match iterable.getattr_opt(intern!(py, "close")) {
        Ok(Some(close)) => close.call0().map(drop),
        Ok(None) => Ok(()),
        Err(error) => Err(error),
    };
    if let Err(error) = closed {
        let logged = citius_base::logging::LOG_EXCEPTION
            .get(py)
            .and_then(|log| log.call1(("close() of an answer failed", error.into_value(py))));
        if let Err(error) = logged {
            error.write_unraisable(py, None);
        }
    }
}

impl Pump {
    /// Asks the application for the next block and puts it on its way.
    pub(super) fn step<S: Sink>(
        &mut self,
        py: Python<'_>,
        context: &mut RequestContext<'_>,
        sink: &mut S,
    ) -> Step {
        match self.next(py, context, sink) {
            Ok(stepped) => stepped,
            Err(error) => {
                let shared = Arc::clone(&self.shared);
                fail(py, &error, &shared, context, sink);
                self.close(py);
                Step::Done
            }
        }
    }

    fn next<S: Sink>(
        &mut self,
        py: Python<'_>,
        context: &mut RequestContext<'_>,
        sink: &mut S,
    ) -> PyResult<Step> {
        let item = self.iterator.bind(py).clone().next().transpose()?;
        let shared = Arc::clone(&self.shared);
        let Some(item) = item else {
            {
                let state = &mut *shared.borrow_state();
                if !state.is_started {
                    return Err(not_started());
                }
                if !state.is_sent {
                    start(py, state, sink);
                }
                end(py, state, context, sink);
            }
            self.close(py);
            return Ok(Step::Done);
        };
        let bytes = block(&item, BODY_CONSISTS_OF)?;
        if bytes.as_bytes().is_empty() {
            return Ok(Step::More(0));
        }
        let is_complete = {
            let state = &mut *shared.borrow_state();
            send_block(py, bytes, state, sink)?;
            let is_complete = state.is_complete() || is_head(py, context);
            if is_complete {
                end(py, state, context, sink);
            }
            is_complete
        };
        if is_complete {
            self.close(py);
            return Ok(Step::Done);
        }
        Ok(Step::More(bytes.as_bytes().len()))
    }

    /// Nothing more is asked of the application, or sent. More than once is as good as once.
    pub(super) fn close(&mut self, py: Python<'_>) {
        let Some(iterable) = self.iterable.take() else {
            return;
        };
        match self.context.take() {
            Some(context) => in_context(py, &context, || close(py, iterable.bind(py))),
            None => close(py, iterable.bind(py)),
        }
    }

    /// Goes on in the context where it has stopped.
    pub(super) fn resume(&mut self, py: Python<'_>, tasks: &mut Tasks) {
        if let Some(context) = self.context.take() {
            tasks.enter_shared_with(py, context);
        }
    }

    /// Stops, and keeps its context apart from that of the next call.
    pub(super) fn pause(&mut self, py: Python<'_>, tasks: &mut Tasks) {
        match tasks.take_shared(py) {
            Ok(context) => self.context = Some(context),
            Err(error) => error.write_unraisable(py, None),
        }
    }
}
