//! Requests that are passed on without Python: a head in, a call with the same head as Python would have made, its response out.
//!
//! Python decides at the start which routes do it: those of `app.forward` without hooks, with nothing around them. Python connects,
//! and makes known by which pool and to which origin ([`Direct::learn`]). A request for which something is not known, or that is
//! not straightforward, and a call that fails or whose response is not, are Python's: it decides on retries, messages and statuses.
//! What is done here is what Python does ([internals/gateways.md](../../../../docs/internals/gateways.md#forwarding)); invariant I30.
//! Tests: `tests/http/gateway/test_direct.py`.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

use citius_base::client_metrics::{ClientMetrics, ClientOperation, Operation};
use citius_base::passing::{
    ClientRequest, Direct, DirectForward, Inbound, Passing, Prepared, Underway,
};
use citius_base::progress::{Sleeper, Wakes};
use citius_base::sync::lock;
use citius_forwarded::is_same_loosely;
use citius_http::{Fields, Head, Method, Payload, Status};
use citius_observe::ClientCounter;
use citius_reactor::{ResponseAction, StreamCommand};
use pyo3::exceptions::PyRuntimeError;
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;

use super::call::{Body, DeadlineArguments, Deadlines, HttpCall};
use super::forward::{ForwardRules, Onward};
use super::limits::{ForwardLimit, ForwardSlot, OriginLimits};
use super::origin::HttpOrigin;
use super::pool::HttpPool;
use super::relay::relaying;
use super::reply::HttpReply;
use super::request::Asked;
use super::servers::{ForwardServer, ForwardServers, Lease};
use super::upload::body_to_come;

/// What the requests of one declaration are passed on by.
struct Forwarder {
    rules: Py<ForwardRules>,
    servers: Py<ForwardServers>,
    /// Fields that are set in each request.
    own: Vec<(Vec<u8>, Vec<u8>)>,
    deadlines: Deadlines,
    limit: Py<ForwardLimit>,
    /// `(request, server, outcome, operation, slot)`: the coroutine that goes on with a request, by the call's error or its reply, counts
    /// it by the operation, if there is one, and gives the slot of the origin back, if it has one.
    to_python: Py<PyAny>,
    places: Mutex<Vec<Place>>,
}

/// What Python has opened on one loop.
struct Place {
    pool: Py<HttpPool>,
    /// By the places of the servers.
    origins: Vec<Option<Known>>,
}

/// What is known of a server on one loop.
struct Known {
    origin: Py<HttpOrigin>,
    /// What counts requests to it, if anything does.
    metrics: Option<Py<ClientMetrics>>,
    limits: Option<Py<OriginLimits>>,
}

impl Known {
    fn clone_ref(&self, py: Python<'_>) -> Self {
        Self {
            origin: self.origin.clone_ref(py),
            metrics: self.metrics.as_ref().map(|it| it.clone_ref(py)),
            limits: self.limits.as_ref().map(|it| it.clone_ref(py)),
        }
    }
}

/// What passes the requests of a declaration on; none before it has [learnt](DirectForward::learn) by what.
#[pyfunction]
#[pyo3(signature = (rules, servers, own, deadlines, limit, to_python))]
pub(super) fn direct_forward(
    rules: Py<ForwardRules>,
    servers: Py<ForwardServers>,
    own: Vec<(Vec<u8>, Vec<u8>)>,
    deadlines: DeadlineArguments,
    limit: Py<ForwardLimit>,
    to_python: Py<PyAny>,
) -> DirectForward {
    DirectForward(Arc::new(Forwarder {
        rules,
        servers,
        own,
        deadlines: Deadlines::of(deadlines),
        limit,
        to_python,
        places: Mutex::default(),
    }))
}

/// The method of a request that may be passed on here.
fn method_of(head: &Head) -> Option<&'static str> {
    Some(match head.method {
        Method::Get if !head.asks_upgrade => "GET",
        Method::Head => "HEAD",
        Method::Post => "POST",
        Method::Put => "PUT",
        Method::Patch => "PATCH",
        Method::Delete => "DELETE",
        // Others are rare, and some have rules of their own.
        _ => return None,
    })
}

impl Forwarder {
    /// By which pool and to which origin a request to a server goes from this loop; `None` as well if its breaker has to be asked.
    fn place(
        &self,
        py: Python<'_>,
        event_loop: &Py<PyAny>,
        server: usize,
    ) -> Option<(Py<HttpPool>, Known)> {
        let places = lock(&self.places);
        let place = places.iter().find(|it| it.pool.get().serves(event_loop))?;
        let is_closed = |it: &&Known| it.limits.as_ref().is_none_or(|it| it.get().is_closed());
        let origin = place.origins.get(server)?.as_ref().filter(is_closed)?;
        Some((place.pool.clone_ref(py), origin.clone_ref(py)))
    }

    fn asked(&self, method: &'static str, onward: Onward) -> Option<Asked> {
        let Onward { target, mut fields } = onward;
        if !self.own.is_empty() {
            let is_own = |name: &[u8]| self.own.iter().any(|(own, _)| is_same_loosely(own, name));
            let kept = fields.iter().filter(|(name, _)| !is_own(name));
            let own = self.own.iter();
            let own = own.map(|(name, value)| (name.as_slice(), value.as_slice()));
            fields = kept.chain(own).collect();
        }
        let target = String::from_utf8(target).ok().filter(|it| it.is_ascii())?;
        Some(Asked::Made {
            method,
            target,
            fields,
        })
    }
}

impl Direct for Forwarder {
    fn prepare(
        self: Arc<Self>,
        py: Python<'_>,
        request: &ClientRequest<'_>,
        inbound: Inbound,
        content_wanted: Option<u64>,
    ) -> Option<Prepared> {
        let method = method_of(request.head)?;
        let event_loop = inbound.handle.event_loop.get()?;
        let servers = self.servers.get();
        if self.limit.get().is_reached() || servers.is_for_python() {
            return None;
        }
        let at = servers.look_without(Some(request.head), &[])?;
        let (pool, known) = self.place(py, event_loop, at)?;
        let onward = self.rules.get().onward(request).ok()?;
        let asked = self.asked(method, onward)?;
        let server = servers.server(at)?.clone_ref(py);
        let lease = Lease::of(py, &server, &self.limit, known.limits.as_ref())?;
        let (body, content) = match content_wanted {
            None => (Body::Nothing, None),
            Some(wanted) => {
                let length = request.head.body;
                let pool = Box::new(pool.clone_ref(py));
                let (body, content) = body_to_come(py, length, pool, &inbound, wanted).ok()?;
                (body, Some(content))
            }
        };
        servers.note_choice();
        let call = HttpCall::new(
            Box::new(pool),
            known.origin,
            asked,
            body,
            true,
            self.deadlines,
            Some(inbound.clone()),
        );
        let call = Py::new(py, call).ok()?;
        let operation = known.metrics.map(|metrics| {
            let operation = metrics.get().begin(py);
            (metrics, operation)
        });
        let forwarding = Arc::new(Forwarding {
            forwarder: self,
            inbound,
            at,
            server,
            is_head: method == "HEAD",
            call,
            operation: Mutex::new(operation),
            since: known.limits.as_ref().map_or(0, |it| it.get().changes()),
            limits: known.limits,
            lease: Mutex::new(Some(lease)),
            relaying: OnceLock::new(),
            outcome: Mutex::default(),
            is_gone: AtomicBool::new(false),
        });
        Some((forwarding, content))
    }

    fn learn(
        &self,
        server: usize,
        pool: &Bound<'_, PyAny>,
        origin: &Bound<'_, PyAny>,
        metrics: Option<&Bound<'_, ClientMetrics>>,
        limits: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        let pool = pool.cast::<HttpPool>()?;
        let known = Known {
            origin: origin.cast::<HttpOrigin>()?.clone().unbind(),
            metrics: metrics.map(|it| it.clone().unbind()),
            limits: limits
                .map(|it| it.cast::<OriginLimits>().map(|it| it.clone().unbind()))
                .transpose()?,
        };
        let mut places = lock(&self.places);
        let place = places.iter().position(|it| it.pool.is(pool));
        let at = place.unwrap_or_else(|| {
            places.push(Place {
                pool: pool.clone().unbind(),
                origins: Vec::new(),
            });
            places.len() - 1
        });
        let origins = &mut places[at].origins;
        if origins.len() <= server {
            origins.resize_with(server + 1, || None);
        }
        let replaced = origins[server].replace(known);
        // Pools that were closed, or whose loop has another one.
        let other = |it: &mut Place| {
            let it = it.pool.get();
            !std::ptr::eq(it, pool.get()) && (it.is_stopped() || it.has_loop_of(pool.get()))
        };
        let gone: Vec<Place> = places.extract_if(.., other).collect();
        drop(places);
        drop((replaced, gone));
        Ok(())
    }

    fn traverse(&self, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.to_python)?;
        if let Ok(places) = self.places.try_lock() {
            for place in places.iter() {
                visit.call(&place.pool)?;
            }
        }
        Ok(())
    }
}

/// One request.
struct Forwarding {
    forwarder: Arc<Forwarder>,
    inbound: Inbound,
    /// The place of its server.
    at: usize,
    server: Py<ForwardServer>,
    is_head: bool,
    call: Py<HttpCall>,
    /// Until there is a response, which keeps it from then on.
    lease: Mutex<Option<Lease>>,
    /// What counts it, until there is a response.
    operation: Mutex<Option<(Py<ClientMetrics>, Operation)>>,
    limits: Option<Py<OriginLimits>>,
    /// How often the server's circuit breaker had opened or closed when it was sent.
    since: u64,
    /// What passes the content on, once the head was sent.
    relaying: OnceLock<Arc<dyn Passing>>,
    /// What Python is to go on with.
    outcome: Mutex<Option<PyResult<Py<PyAny>>>>,
    is_gone: AtomicBool,
}

impl Forwarding {
    fn act(&self, py: Python<'_>, action: ResponseAction) {
        self.inbound.post(py, StreamCommand::Act(action));
    }

    /// Counts the response.
    fn count(&self, reply: &HttpReply) {
        let Some((metrics, operation)) = lock(&self.operation).take() else {
            return;
        };
        let metrics = metrics.get();
        if !reply.is_reused() {
            metrics.count(ClientCounter::Opened);
        }
        let (status, describe) = (reply.head().status(), || (String::new(), 1));
        if status >= 400 {
            metrics.failed(operation, || status.to_string(), describe);
        } else {
            metrics.succeeded(operation, describe);
        }
    }

    /// Has Python go on with it, in a turn.
    #[cold]
    fn hand_over(&self, py: Python<'_>, outcome: PyResult<Py<PyAny>>) {
        let replaced = lock(&self.outcome).replace(outcome);
        drop(replaced);
        self.inbound.post(py, StreamCommand::AwaitWritable);
    }

    /// Sends the response that has come.
    fn answer(&self, py: Python<'_>, value: Py<PyAny>) {
        if self.is_gone.load(Ordering::Relaxed) {
            return;
        }
        let Ok(reply) = value.bind(py).cast::<HttpReply>() else {
            return self.hand_over(py, Ok(value));
        };
        let it = reply.get();
        self.count(it);
        if let Some(limits) = &self.limits {
            limits.get().answered(py, it.head().status(), self.since);
        }
        let status = Status::new(it.head().status()).filter(|status| !status.is_informational());
        let via = self.forwarder.rules.get().via();
        let (Some(status), Ok(fields), false) = (status, it.fields_for_client(via), it.is_tunnel())
        else {
            return self.hand_over(py, Ok(value));
        };
        self.server.get().answered();
        if let Some(us) = it.upstream_us() {
            self.inbound.post(py, StreamCommand::UpstreamTime(us));
        }
        let has_content = !self.is_head && !status.refuses_content();
        if has_content && let Some(whole) = it.take_whole(py) {
            let response = ResponseAction::Respond {
                status,
                content_type: None,
                fields,
                body: Payload::Shared(whole.into()),
            };
            self.act(py, response);
            return self.finish(py, it);
        }
        if let Some(lease) = lock(&self.lease).take() {
            it.keep(lease);
        }
        let start = ResponseAction::Start {
            status,
            content_type: None,
            fields,
        };
        self.act(py, start);
        if has_content {
            let passing = relaying(reply, self.inbound.clone());
            let _ = self.relaying.set(Arc::clone(&passing));
            return passing.has_room(py);
        }
        self.act(py, ResponseAction::End(Fields::EMPTY));
        self.finish(py, it);
    }

    /// The response is on its way, and nothing follows.
    fn finish(&self, py: Python<'_>, reply: &HttpReply) {
        reply.leave(py);
        drop(lock(&self.lease).take());
        drop(self.inbound.handle.take(self.inbound.id));
    }
}

impl Wakes for Forwarding {
    fn wake(self: Arc<Self>, py: Python<'_>) {
        match self.call.get().take_result() {
            Some(Ok(reply)) => self.answer(py, reply),
            Some(Err(error)) => self.hand_over(py, Err(error)),
            None => {}
        }
    }
}

impl Passing for Forwarding {
    fn has_room(self: Arc<Self>, py: Python<'_>) {
        if let Some(relaying) = self.relaying.get() {
            Arc::clone(relaying).has_room(py);
        }
    }

    fn gone(&self, py: Python<'_>) {
        self.is_gone.store(true, Ordering::Relaxed);
        match self.relaying.get() {
            Some(relaying) => relaying.gone(py),
            None => HttpCall::abandon(self.call.bind(py)),
        }
        let outcome = lock(&self.outcome).take();
        drop(outcome);
        let operation = lock(&self.operation).take();
        if let Some((metrics, operation)) = operation {
            metrics.get().cancelled(operation, || (String::new(), 1));
        }
        drop(lock(&self.lease).take());
    }
}

impl Underway for Forwarding {
    fn start(self: Arc<Self>, py: Python<'_>) {
        let sleeper = Sleeper::Other(Arc::<Self>::clone(&self));
        if let Err(error) = HttpCall::start_for(self.call.bind(py), sleeper) {
            self.hand_over(py, Err(error));
        }
    }

    fn is_for_python(&self) -> bool {
        lock(&self.outcome).is_some()
    }

    fn to_python<'py>(&self, request: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let py = request.py();
        let lease = lock(&self.lease).take();
        let slot = lease
            .and_then(|mut it| it.take_slot())
            .map(ForwardSlot::new);
        let outcome = lock(&self.outcome).take();
        let outcome = match outcome {
            Some(Ok(reply)) => reply,
            Some(Err(error)) => error.into_value(py).into_any(),
            None => return Err(PyRuntimeError::new_err("the request is not Python's")),
        };
        let operation = lock(&self.operation).take();
        let operation = operation.map(|(metrics, it)| ClientOperation::new(metrics, it));
        let to_python = self.forwarder.to_python.bind(py);
        to_python.call1((request, self.at, outcome, operation, slot, self.since))
    }
}
