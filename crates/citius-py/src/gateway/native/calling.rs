//! Calls of handlers: which route handles a path, the arguments that it declares, and what becomes of the result.

use std::sync::Arc;

use citius_http::Fault;
use citius_reactor::Reply;
use citius_route::{Converter, Found, Router};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use smallvec::SmallVec;

use super::routes::{Argument, Route};
use super::unmatched::{Unmatched, unmatched_arguments};
use crate::completion::complete_in_turn;
use crate::gateway::turn::Turn;
use crate::request_context::{NativeRequest, RequestContext};
use crate::respond;
use crate::route::{Kind, convert};

/// The route for the path of a request that is to be something else than a request, in the routes of that kind.
pub(super) fn find_handled<'a>(
    routes: &'a Router<Arc<Route>>,
    method: &str,
    context: &mut RequestContext<'a>,
    reply: &mut Reply<'_>,
) -> Option<&'a Arc<Route>> {
    let head = context.head.as_deref().expect("it was put there just now");
    let found = routes.find(method, head.path(), &mut context.captures);
    let Found::Route(route) = found else {
        context.captures.clear();
        return None;
    };
    reply.classify(route.class);
    context.route = Some(&route.info);
    Some(route)
}

/// Calls the handler.
#[inline]
pub(super) fn call(
    turn: &mut Turn<'_, '_>,
    route: &Route,
    unmatched: Unmatched<'_>,
    context: &mut RequestContext<'_>,
    body_ended: bool,
    reply: &mut Reply<'_>,
) {
    let py = turn.py;
    let handler = route.info.handler.bind(py);
    if route.kind != Kind::Async {
        turn.tasks.enter_shared(py);
    }
    let arguments = match unmatched {
        Some(unmatched) => unmatched_arguments(py, unmatched, context, body_ended),
        None => arguments(py, route, context, body_ended),
    };
    let arguments = match arguments {
        Ok(arguments) => arguments,
        Err(error) => return finish(turn, Err(error), Kind::Def, context, reply),
    };
    if route.kind == Kind::Blocking {
        return submit(turn, handler, &arguments, context, body_ended, reply);
    }
    // As far as possible without a tuple, which costs as much as the call.
    let result = match arguments.as_slice() {
        [] => handler.call0(),
        [one] => handler.call1((one,)),
        [one, two] => handler.call1((one, two)),
        [one, two, three] => handler.call1((one, two, three)),
        more => PyTuple::new(py, more).and_then(|arguments| handler.call1(arguments)),
    };
    finish(turn, result, route.kind, context, reply);
}

#[inline]
pub(super) fn finish(
    turn: &mut Turn<'_, '_>,
    result: PyResult<Bound<'_, PyAny>>,
    kind: Kind,
    context: &mut RequestContext<'_>,
    reply: &mut Reply<'_>,
) {
    match result {
        Ok(coroutine) if kind == Kind::Async => {
            turn.tasks.step(turn.py, coroutine.unbind(), context, reply);
        }
        result => complete_in_turn(turn.py, result, context, reply, turn.tasks),
    }
}

/// Hands a request to the thread pool.
fn submit<'py>(
    turn: &mut Turn<'_, 'py>,
    handler: &Bound<'_, PyAny>,
    arguments: &[Bound<'py, PyAny>],
    context: &mut RequestContext<'_>,
    body_ended: bool,
    reply: &mut Reply<'_>,
) {
    let py = turn.py;
    let submitted = context
        .request(py, body_ended)
        .cloned()
        .and_then(|request| {
            let submit = turn.handle.callbacks.submit.as_ref().ok_or_else(|| {
                PyRuntimeError::new_err("there is no thread pool for blocking handlers")
            })?;
            // Before `submit`, for the pool's thread may respond before that returns.
            let role = NativeRequest::new(request.clone().unbind());
            turn.handle.enter(reply.id(), role);
            let arguments = PyTuple::new(py, arguments)?;
            submit
                .bind(py)
                .call1((request, handler, arguments))?
                .is_truthy()
        });
    match submitted {
        Ok(true) => {}
        Ok(false) => {
            drop(turn.handle.take(reply.id()));
            respond::send_fault(py, Fault::Overloaded, context.error_format(py), reply);
        }
        Err(error) => {
            drop(turn.handle.take(reply.id()));
            complete_in_turn(py, Err(error), context, reply, turn.tasks);
        }
    }
}

/// The positional arguments of a call.
pub(super) type Arguments<'py> = SmallVec<[Bound<'py, PyAny>; 4]>;

/// The arguments of a handler of a route.
#[inline]
fn arguments<'py>(
    py: Python<'py>,
    route: &Route,
    context: &mut RequestContext<'_>,
    body_ended: bool,
) -> PyResult<Arguments<'py>> {
    let mut arguments = Arguments::new();
    // Parameters first: making the request takes the captures along.
    for argument in &route.arguments {
        arguments.push(match *argument {
            Argument::Param(at, converter) => param(py, route, at, converter, context)?,
            Argument::Request => py.None().into_bound(py),
        });
    }
    for (value, argument) in arguments.iter_mut().zip(&route.arguments) {
        if let Argument::Request = argument {
            *value = context.request(py, body_ended)?.clone().into_any();
        }
    }
    Ok(arguments)
}

/// The path parameter at place `at` of a route.
fn param<'py>(
    py: Python<'py>,
    route: &Route,
    at: usize,
    converter: Converter,
    context: &RequestContext<'_>,
) -> PyResult<Bound<'py, PyAny>> {
    match (&context.request, context.captures.get(at)) {
        (None, Some(text)) => convert(py, converter, text),
        (Some(request), _) => {
            let params = request.bind(py).getattr(pyo3::intern!(py, "path_params"))?;
            params.get_item(route.info.params[at].name.as_str())
        }
        (None, None) => Ok(py.None().into_bound(py)),
    }
}
