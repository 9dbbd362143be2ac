//! How applications are called: one module for each interface, with the functions `request`, `data`, `end` and `writable`.
//!
//! In: the events of a [`Service`]. Out: calls of the gateway that was fixed when the reactor was made, by a `match` that the
//! compiler sees through. What all interfaces share is in [`Dispatch`]: static files, limits, log messages. What a gateway
//! keeps of an open exchange is its [`Role`](citius_base::exchange::Role). Tests: `tests/gateway/`, `tests/asgi/`, `tests/wsgi/`.

use std::sync::Arc;

use citius_base::exchange::Exchange;
use citius_base::fork::end_child;
use citius_base::interpreter;
use citius_base::reactor_handle::Callbacks;
use citius_base::report::{self, LEVEL_DEBUG, LEVEL_ERROR, LEVEL_INFO, LEVEL_WARNING, Subject};
use citius_base::support::{clear_exception, guarded};
use citius_http::{
    Action, Fault, Fields, Head, Method, Millis, Payload, ProcedureCall, RefusedHead, ResponseHead,
};
use citius_reactor::ws::{Close, Kind, Opening};
use citius_reactor::{
    ConnectionId, Errno, Handed, Notice, Peer, Reply, ResponseAction, Service, SessionEvent,
    StreamCommand, StreamId, TlsNotice, UpstreamId,
};
use citius_static::Mounts;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;

use self::body_limit::{BodyLimit, CUT, REFUSED, UNREAD};
use self::turn::Turn;
use crate::request_context::RequestContext;

pub(crate) mod asgi;
pub(crate) mod body_limit;
pub(crate) mod compiled;
pub(crate) mod native;
mod response_headers;
pub(crate) mod rpc;
pub(crate) mod turn;
pub(crate) mod ws;
pub(crate) mod wsgi;
pub(crate) mod wt;

/// Everything a reactor needs to know of its application.
#[expect(
    clippy::large_enum_variant,
    reason = "a reactor has one, and native routes are looked up without another pointer"
)]
pub(crate) enum Gateway {
    Native(native::Routes),
    Asgi(asgi::Plan),
    Wsgi(Py<wsgi::Wsgi>),
}

impl Gateway {
    /// The gateway that `object` describes, and what Python code it calls besides handlers.
    pub(crate) fn of(
        object: &Bound<'_, PyAny>,
        event_loop: Option<&Py<PyAny>>,
    ) -> PyResult<(Self, Callbacks)> {
        let py = object.py();
        if let Ok(native) = object.cast::<native::Native>() {
            let native = native.get();
            let callbacks = Callbacks {
                app: native.app.clone_ref(py),
                on_error: Some(native.on_error.clone_ref(py)),
                submit: native.submit.as_ref().map(|submit| submit.clone_ref(py)),
                ..Callbacks::none(py)
            };
            return Ok((Self::Native(native.routes()), callbacks));
        }
        if let Ok(asgi) = object.cast::<asgi::Asgi>() {
            let plan = asgi.get().plan(py, event_loop)?;
            let callbacks = Callbacks::of_application(py, &plan.app);
            return Ok((Self::Asgi(plan), callbacks));
        }
        if let Ok(wsgi) = object.cast::<wsgi::Wsgi>() {
            let callbacks = Callbacks::of_application(py, &wsgi.get().app);
            return Ok((Self::Wsgi(wsgi.clone().unbind()), callbacks));
        }
        Err(PyTypeError::new_err(format!(
            "expected a gateway (Native, Asgi or Wsgi), got {}",
            object.get_type().name()?
        )))
    }
}

impl Gateway {
    /// What requests are counted and logged under, in the order of the classes they are given, and the classes
    /// that are remote procedures.
    pub(crate) fn labels(&self) -> (&[String], &[u16]) {
        match self {
            Self::Native(routes) => routes.labels(),
            // Their routes are known to the application only.
            Self::Asgi(_) | Self::Wsgi(_) => (&[], &[]),
        }
    }

    /// Whether clients are told that they may ask for WebTransport sessions.
    pub(crate) fn offers_webtransport(&self) -> bool {
        match self {
            Self::Native(routes) => routes.has_sessions(),
            Self::Asgi(plan) => plan.offers_webtransport,
            Self::Wsgi(_) => false,
        }
    }

    /// Where calls on connections of QUIC without HTTP/3 go, if they are offered.
    pub(crate) fn rpc_path(&self) -> Option<&str> {
        match self {
            Self::Native(routes) => routes.rpc_path(),
            Self::Asgi(_) | Self::Wsgi(_) => None,
        }
    }
}

/// The service of one turn.
pub(crate) struct Dispatch<'a, 'py> {
    pub(crate) turn: Turn<'a, 'py>,
    pub(crate) gateway: &'a Gateway,
    pub(crate) mounts: &'a mut Mounts,
}

impl Service for Dispatch<'_, '_> {
    // By its size alone the compiler takes it out of the loop of a turn: 22 instructions of each request.
    #[expect(
        clippy::inline_always,
        reason = "the figure above; `make check-instructions` fails without"
    )]
    #[inline(always)]
    fn request(&mut self, head: Box<Head>, ended: bool, reply: &mut Reply<'_>) {
        self.turn.handle.return_heads(reply);
        let head = if self.mounts.is_empty() {
            head
        } else {
            match self.respond_with_file(head, reply) {
                Some(head) => head,
                None => return,
            }
        };
        if head.method == Method::Connect && !self.may_connect(&head, ended) {
            return Self::refuse_connect(head, reply);
        }
        self.in_application(|turn, gateway| match gateway {
            Gateway::Native(routes) => native::request(turn, routes, head, ended, reply),
            Gateway::Asgi(plan) => asgi::request(turn, plan, head, ended, reply),
            Gateway::Wsgi(gateway) => wsgi::request(turn, gateway, head, ended, reply),
        });
    }

    #[inline]
    fn call(&mut self, call: ProcedureCall<'_>, reply: &mut Reply<'_>) {
        self.in_application(|turn, gateway| match gateway {
            Gateway::Native(routes) => rpc::call(turn, routes.procedures(), &call, reply),
            // They have no procedures, and no listener takes calls for them.
            Gateway::Asgi(_) | Gateway::Wsgi(_) => rpc::answer_unknown(&call, reply),
        });
    }

    fn data(&mut self, bytes: &[u8], reply: &mut Reply<'_>) {
        self.in_application(|turn, gateway| match gateway {
            Gateway::Native(_) => native::data(turn, bytes, reply),
            Gateway::Asgi(_) => asgi::data(turn, bytes, reply),
            Gateway::Wsgi(gateway) => wsgi::data(turn, gateway, bytes, reply),
        });
    }

    fn end(&mut self, trailers: Fields, reply: &mut Reply<'_>) {
        self.in_application(|turn, gateway| match gateway {
            Gateway::Native(_) => native::end(turn, trailers, reply),
            Gateway::Asgi(plan) => asgi::end(turn, plan, trailers, reply),
            Gateway::Wsgi(gateway) => wsgi::end(turn, gateway, reply),
        });
    }

    fn body_refused(&mut self, id: StreamId, _fault: Fault) {
        let (py, handle) = (self.turn.py, self.turn.handle);
        let tell = handle.with(id, |exchange| exchange.role.refuse_body(py));
        if let Some(Some(tell)) = tell {
            let limit = handle.with(id, |exchange| self.limit_of(Some(exchange)));
            let limit = limit.unwrap_or_else(|| self.limit_of(None));
            let subject = report::subject_of(py, handle, id);
            let subject = subject.unwrap_or_else(|| self.subject(id, None));
            limit.report(py, handle, &subject, UNREAD);
            self.turn.tasks.enter_shared(py);
            tell(py);
        } else if let Some(exchange) = handle.take(id) {
            self.report_long_body(id, Some(&exchange), CUT);
            self.turn.tasks.enter_shared(py);
            exchange.disconnect(py);
            handle.post(py, id, StreamCommand::Act(ResponseAction::Abort));
        }
    }

    fn broken(&mut self, id: StreamId, fault: Fault) {
        let exchange = self.turn.handle.take(id);
        if fault == Fault::BodyTooLong {
            self.report_long_body(id, exchange.as_ref(), REFUSED);
        } else {
            let (py, handle) = (self.turn.py, self.turn.handle);
            report::cut(py, handle, fault, || self.subject(id, exchange.as_ref()));
        }
        if let Some(exchange) = exchange {
            self.turn.tasks.enter_shared(self.turn.py);
            exchange.disconnect(self.turn.py);
        }
    }

    fn message(&mut self, kind: Kind, bytes: &[u8], reply: &mut Reply<'_>) -> bool {
        self.in_application(|turn, _| ws::message(turn, kind, bytes, reply))
    }

    fn closed(
        &mut self,
        close: Close,
        fault: Option<citius_reactor::ws::Fault>,
        reply: &mut Reply<'_>,
    ) {
        ws::closed(&mut self.turn, close, fault, reply);
    }

    fn session(&mut self, event: SessionEvent<'_>, reply: &mut Reply<'_>) {
        self.in_application(|turn, _| wt::event(turn, event, reply));
    }

    fn writable(&mut self, reply: &mut Reply<'_>) {
        if ws::writable(&mut self.turn, reply) {
            return;
        }
        self.in_application(|turn, gateway| match gateway {
            Gateway::Native(_) => native::writable(turn, reply),
            Gateway::Asgi(plan) => asgi::writable(turn, plan, reply),
            Gateway::Wsgi(_) => wsgi::writable(turn, reply),
        });
    }

    fn upstream_received(&mut self, id: UpstreamId, bytes: &[u8]) -> bool {
        let (py, handle) = (self.turn.py, self.turn.handle);
        let Some(protocol) = handle.upstreams.get(id) else {
            return true;
        };
        let received = self.turn.tasks.let_step(py, |may_step| {
            guarded(py, || protocol.on_bytes(py, bytes, may_step))
        });
        if received.is_none() {
            let message = "a defect of the server's ended a connection to another server";
            handle.log(py, LEVEL_ERROR, message);
            self.upstream_closed(id, None);
        }
        protocol.wants_input()
    }

    fn upstream_finished(&mut self, id: UpstreamId) -> bool {
        let (py, handle) = (self.turn.py, self.turn.handle);
        let Some(protocol) = handle.upstreams.get(id) else {
            return false;
        };
        self.turn.tasks.enter_shared(py);
        guarded(py, || protocol.on_finished(py)).unwrap_or(false)
    }

    fn upstream_closed(&mut self, id: UpstreamId, error: Option<Errno>) {
        let (py, handle) = (self.turn.py, self.turn.handle);
        let Some(protocol) = handle.upstreams.remove(id) else {
            return;
        };
        self.turn.tasks.enter_shared(py);
        let why = match error {
            Some(error) => std::io::Error::from(error).to_string(),
            None => citius_base::upstream::CLOSED.into(),
        };
        let _ = guarded(py, || protocol.on_end(py, &why));
    }

    fn called(&mut self) -> Option<u64> {
        let (py, handle) = (self.turn.py, self.turn.handle);
        self.turn.tasks.enter_shared(py);
        let next = citius_native::local::run(interpreter::gil::attached(py), &**handle);
        end_child(py, handle);
        next
    }

    fn take_outgoing(&mut self) -> Option<Arc<citius_reactor::OutgoingPoller>> {
        self.turn.handle.outgoing.take_unwatched()
    }

    fn outgoing_watched(&mut self, is_watched: bool) {
        if !is_watched {
            self.turn.handle.outgoing.close();
        }
    }

    #[inline]
    fn next_unsent_upstream(&mut self) -> Option<(UpstreamId, bool)> {
        let upstreams = &self.turn.handle.upstreams;
        let id = upstreams.take_unsent()?;
        let protocol = upstreams.get(id);
        Some((id, protocol.is_some_and(|it| it.looks_first())))
    }

    fn take_upstream_output(&mut self, id: UpstreamId, bytes: &mut Vec<u8>) -> Handed {
        let Some(protocol) = self.turn.handle.upstreams.get(id) else {
            return Handed {
                hears: true,
                is_last: false,
            };
        };
        let is_last = protocol.take_output(self.turn.py, bytes);
        Handed {
            hears: protocol.wants_input(),
            is_last,
        }
    }

    fn disconnected(&mut self, connection: ConnectionId) {
        for exchange in self.turn.handle.take_all(connection) {
            self.turn.tasks.enter_shared(self.turn.py);
            exchange.lose_connection(self.turn.py);
        }
    }

    fn refused(&mut self, id: StreamId, fault: Fault) {
        report::action_refused(self.turn.py, self.turn.handle, id, fault);
    }

    fn head_refused(&mut self, peer: Peer, refused: &RefusedHead) {
        report::head_refused(self.turn.py, self.turn.handle, peer, refused);
    }

    fn slow(
        &mut self,
        connection: ConnectionId,
        stream: Option<StreamId>,
        took_ms: Millis,
        latest: Option<&Head>,
    ) {
        let (py, handle) = (self.turn.py, self.turn.handle);
        let open = stream.or_else(|| handle.last_open(connection));
        report::slow(py, handle, took_ms, || {
            open.and_then(|id| report::subject_of(py, handle, id))
                .or_else(|| self.latest_subject(latest))
                .unwrap_or_else(|| Subject::named(format!("connection {}", connection.index)))
        });
    }

    fn file_failed(&mut self, connection: ConnectionId, message: &str) {
        let message = format!("connection {}: {message}; it was cut", connection.index);
        self.turn.handle.log(self.turn.py, LEVEL_ERROR, &message);
    }

    fn panicked(&mut self, connection: ConnectionId) {
        clear_exception(self.turn.py);
        let message = format!(
            "connection {}: a defect of the server's; it was cut",
            connection.index
        );
        self.turn.handle.log(self.turn.py, LEVEL_ERROR, &message);
    }

    fn noted(&mut self, note: Notice<'_>) {
        let (level, message) = match note {
            Notice::Tls(note) => tls_notice(note),
            Notice::ProxyRefused(peer, why) => {
                let peer = report::name_of(peer);
                let message = format!("PROXY protocol: a connection from {peer} is closed: {why}");
                let (py, handle) = (self.turn.py, self.turn.handle);
                return handle.log_of_clients(py, "PROXY", LEVEL_WARNING, message);
            }
            Notice::OutOfDescriptors {
                connections,
                evicted,
                refused,
            } => (
                LEVEL_ERROR,
                format!(
                    "no descriptor is free for a new connection: {connections} connections are open, {evicted} \
                     idle ones were closed to make room, {refused} new ones were answered with 503; raise the limit \
                     of open files (ulimit -n, LimitNOFILE=), or lower --connections-max"
                ),
            ),
            Notice::DescriptorsAreFree { evicted, refused } => (
                LEVEL_INFO,
                format!(
                    "descriptors are free again; since the last notice {evicted} idle connections were closed and \
                     {refused} new ones were answered with 503"
                ),
            ),
            Notice::Draining { requests, routes } => (LEVEL_INFO, draining(requests, routes)),
            Notice::Stalled { requests, routes } => (LEVEL_INFO, stalled(requests, routes)),
        };
        self.turn.handle.log(self.turn.py, level, &message);
    }
}

/// What a drain waits for, and how not to wait.
fn draining(requests: usize, routes: &str) -> String {
    format!(
        "stopping waits for {}, as long as --drain-s says; QUIT, or CTRL+C once more, cuts them off",
        open_requests(requests, routes)
    )
}

/// Which responses no client takes.
fn stalled(requests: usize, routes: &str) -> String {
    format!(
        "a client has taken nothing for as long as --write-stall-ms says; its connection is cut, with {}",
        open_requests(requests, routes)
    )
}

fn open_requests(requests: usize, routes: &str) -> String {
    let noun = if requests == 1 { "request" } else { "requests" };
    match routes {
        "" => format!("{requests} open {noun}"),
        routes => format!("{requests} open {noun} ({routes})"),
    }
}

/// A notice about TLS, and how loud it is.
fn tls_notice(note: TlsNotice<'_>) -> (u8, String) {
    match note {
        TlsNotice::Renewed => (
            LEVEL_INFO,
            "TLS: the files have changed, and new connections use them".to_owned(),
        ),
        TlsNotice::Warning(text) => (LEVEL_WARNING, format!("TLS: {text}")),
        TlsNotice::NotRenewed(why) => (
            LEVEL_ERROR,
            format!(
                "TLS: the files have changed and cannot be used, so those from before are: {why}"
            ),
        ),
        TlsNotice::HandshakeFailed(Peer::Internet(peer), why) => {
            (LEVEL_DEBUG, format!("TLS: no handshake with {peer}: {why}"))
        }
        TlsNotice::HandshakeFailed(Peer::Local, why) => {
            (LEVEL_DEBUG, format!("TLS: no handshake: {why}"))
        }
    }
}

impl<'a, 'py> Dispatch<'a, 'py> {
    /// Does what may call application code; in a child that it has forked this does not return.
    #[inline]
    fn in_application<R>(&mut self, act: impl FnOnce(&mut Turn<'a, 'py>, &'a Gateway) -> R) -> R {
        let result = act(&mut self.turn, self.gateway);
        end_child(self.turn.py, self.turn.handle);
        result
    }

    /// Whether an extended CONNECT (RFC 8441, RFC 9220) is for something that there is.
    #[cold]
    fn may_connect(&self, head: &Head, ended: bool) -> bool {
        let is_socket =
            Opening::transport(head).is_some() && !matches!(self.gateway, Gateway::Wsgi(_));
        let is_session = !ended && citius_reactor::asks_session(head);
        is_socket || is_session && self.gateway.offers_webtransport()
    }

    #[cold]
    fn refuse_connect(head: Box<Head>, reply: &mut Reply<'_>) {
        let fault = Fault::ConnectRefused;
        let response = ResponseHead::text(fault.status());
        let text = Payload::Copied(fault.told().as_bytes());
        // Refused only when the stream is being reset already.
        let _ = reply.send(Action::Respond(response, text));
        reply.recycle(head);
    }

    /// Answers a request for a file of a static mount; gives the head back if it is none.
    #[inline(never)]
    fn respond_with_file(&mut self, head: Box<Head>, reply: &mut Reply<'_>) -> Option<Box<Head>> {
        let mut context = RequestContext::new(reply.id(), reply.peer(), self.turn.handle, head);
        let head = context.head.as_deref()?;
        let Some(served) = self.mounts.respond(head, &self.turn.handle.files, reply) else {
            return context.head;
        };
        if let Some(error) = served.error {
            let path = String::from_utf8_lossy(head.path());
            let message = format!("static file for {path}: {error}");
            self.turn.handle.log(self.turn.py, LEVEL_ERROR, &message);
        }
        if let Some(head) = context.head.take() {
            reply.recycle(head);
        }
        None
    }

    /// The request that was responded to last; `latest` is the head that the reactor got back last.
    #[cold]
    fn latest_subject(&self, latest: Option<&Head>) -> Option<Subject> {
        match self.gateway {
            Gateway::Native(routes) => self.turn.handle.with_kept_head(|kept| {
                routes.latest(self.turn.handle, kept.into_iter().chain(latest))
            }),
            Gateway::Asgi(_) | Gateway::Wsgi(_) => {
                latest.map(|head| Subject::new(self.turn.handle.names(), head, None))
            }
        }
    }

    /// A body has become longer than its limit.
    #[cold]
    fn report_long_body(&self, id: StreamId, exchange: Option<&Exchange>, what: &str) {
        let (py, handle) = (self.turn.py, self.turn.handle);
        let subject = self.subject(id, exchange);
        self.limit_of(exchange).report(py, handle, &subject, what);
    }

    /// How long the body of a request may be.
    fn limit_of(&self, exchange: Option<&Exchange>) -> BodyLimit {
        let handle = self.turn.handle;
        match (self.gateway, exchange) {
            (Gateway::Native(_), Some(exchange)) => native::body_limit(handle, exchange),
            (Gateway::Wsgi(gateway), Some(_)) => gateway.get().body_limit(&handle.limits),
            _ => BodyLimit::streamed(&handle.limits, None),
        }
    }

    /// What the log calls a request that is no longer among the open ones.
    fn subject(&self, id: StreamId, exchange: Option<&Exchange>) -> Subject {
        let (py, handle) = (self.turn.py, self.turn.handle);
        exchange
            .and_then(|exchange| exchange.subject(py, handle.names()))
            .map_or_else(
                || Subject::named(format!("request {}", id.stream)),
                |subject| subject(py),
            )
    }
}
