//! What sees every request twice: when its head is complete, and when its response is.
//!
//! In between there is a [`Note`], kept by the connection. Every note ends in [`Observer::finish`], with
//! the response or with the fact that the client has disconnected, so that the counts add up.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, OnceLock};

use citius_http::{Fault, Fields, Head, Method, RefusedHead, origin};
use citius_route::{Captures, Found, Pattern, PatternError, Router};

use crate::format::Format;
use crate::line::{self, Facts, Outcome, Stamps};
use crate::rng::Rng;
use crate::rpc;
use crate::slot::{CLASSES_MAX, Counter, Gauge, METHODS, MetricsSlot, method_index};
use crate::span::{Span, Spans};
use crate::trace::{self, TraceContext};
use crate::writer::{BATCH_BYTES_MAX, Lines};

/// The address of the client; `None` for a Unix socket.
pub type Client = Option<SocketAddr>;

/// What an observer does.
pub struct Options {
    /// Where it counts.
    pub slot: MetricsSlot,
    /// Where lines go, and what they say.
    pub log: Option<(Arc<Lines>, Format)>,
    /// The share of responses below 400 that get a line.
    pub log_share: f64,
    /// Seconds that local time is ahead of UTC; changes twice a year in many places.
    pub utc_offset_s: Arc<AtomicI64>,
    /// The name of the field that carries a request's id, in lower case.
    pub request_id: Option<String>,
    /// Whether requests get a place in a trace.
    pub traces: bool,
    /// The share of traces beginning here that are sampled.
    pub trace_share: f64,
    /// Where finished requests go as spans.
    pub spans: Option<Arc<Spans>>,
    /// Path under which health is told on the main port.
    pub health: Option<String>,
}

/// A request whose response is not complete.
#[derive(Debug)]
pub struct Note {
    /// Its number on the connection.
    pub stream: u32,
    /// What it is counted under.
    pub class: u16,
    /// The status of its response, once that has begun.
    pub status: u16,
    /// The head of a streamed response has been sent.
    pub has_begun: bool,
    /// Bytes of the response's body so far.
    pub bytes: u64,
    /// The method is HEAD: the response is sent without a body, also if the application gives one.
    pub head_only: bool,
    /// The code of a remote procedure call, once it is known.
    pub rpc_code: Option<u8>,
    /// How long another server took to which it was passed on, once that is known.
    pub upstream_us: Option<u64>,
    method: Method,
    started_us: u64,
    facts: Option<Box<Facts>>,
}

impl Note {
    /// One that is only counted as open.
    pub fn bare(stream: u32, head_only: bool) -> Self {
        Self {
            stream,
            class: 0,
            status: 0,
            has_begun: false,
            bytes: 0,
            head_only,
            rpc_code: None,
            upstream_us: None,
            method: Method::Get,
            started_us: 0,
            facts: None,
        }
    }
}

/// How a request ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// Its response is complete.
    Complete,
    /// A rule was broken, by the peer or by the application.
    Broken(Fault),
    /// The application broke the response off.
    Aborted,
    /// The client has left.
    Cancelled,
    /// The server stops, and its drain did not wait for the response.
    Stopped,
}

/// What a request is counted as when its client left before a response began: nginx's number, never sent.
const CLIENT_LEFT: u16 = 499;
/// Bytes of a request id that is taken over.
const REQUEST_ID_BYTES_MAX: usize = 128;
/// Facts kept for their memory.
const FACTS_KEPT_MAX: usize = 64;
/// Bytes of facts above which their memory goes back to the allocator.
const FACTS_BYTES_MAX: usize = 4096;

/// One reactor's observer.
pub struct Observer {
    slot: MetricsSlot,
    log: Option<Log>,
    request_id: Option<Box<[u8]>>,
    traces: bool,
    trace_share: u64,
    spans: Option<Arc<Spans>>,
    health: Option<Box<[u8]>>,
    patterns: Router<u16>,
    has_patterns: bool,
    /// Labels by class; the first is that of requests without one.
    labels: Vec<Box<str>>,
    /// The classes that are remote procedures.
    procedures: Vec<u16>,
    rng: Rng,
    #[expect(
        clippy::vec_box,
        reason = "facts change owners by pointer; their memory is what is kept"
    )]
    spare: Vec<Box<Facts>>,
    /// Names of the fields that facts keep.
    wanted: Vec<Box<[u8]>>,
    keeps_facts: bool,
    /// Microseconds from the monotonic clock to that of the wall.
    wall_offset_us: u64,
}

struct Log {
    lines: Arc<Lines>,
    format: Format,
    share: u64,
    stamps: Stamps,
    utc_offset_s: Arc<AtomicI64>,
    batch: Vec<u8>,
    n_lines: u64,
}

impl std::fmt::Debug for Observer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Observer").finish_non_exhaustive()
    }
}

impl Observer {
    /// An observer that has seen nothing.
    pub fn new(options: Options) -> Self {
        let mut wanted: Vec<Box<[u8]>> = Vec::new();
        if let Some((_, format)) = &options.log {
            wanted.clone_from(&format.fields);
        }
        if options.spans.is_some() {
            // Where a span looks for it.
            wanted.push(Box::from(&b"user-agent"[..]));
        }
        let traces = options.traces || options.spans.is_some();
        Self {
            keeps_facts: options.log.is_some() || options.request_id.is_some() || traces,
            slot: options.slot,
            log: options.log.map(|(lines, format)| Log {
                lines,
                format,
                share: threshold(options.log_share),
                stamps: Stamps::new(0),
                utc_offset_s: options.utc_offset_s,
                batch: Vec::new(),
                n_lines: 0,
            }),
            request_id: options.request_id.map(|name| name.into_bytes().into()),
            traces,
            trace_share: threshold(options.trace_share),
            spans: options.spans,
            health: options.health.map(|path| path.into_bytes().into()),
            patterns: Router::default(),
            has_patterns: false,
            labels: vec![Box::from("")],
            procedures: Vec::new(),
            rng: Rng::new(),
            spare: Vec::new(),
            wanted,
            wall_offset_us: 0,
        }
    }

    /// Where it counts.
    pub fn slot(&self) -> MetricsSlot {
        self.slot
    }

    /// The class with this label, a new one if there is room.
    pub fn class_of(&mut self, label: &str) -> u16 {
        let known = self.labels.iter().position(|known| **known == *label);
        let place = known.unwrap_or_else(|| {
            if self.labels.len() == CLASSES_MAX {
                return 0;
            }
            self.labels.push(label.into());
            self.labels.len() - 1
        });
        let class = u16::try_from(place).unwrap_or(0);
        self.slot.label(class, label);
        class
    }

    /// Says that a class is a remote procedure, whose calls are counted by their codes, too.
    pub fn mark_procedure(&mut self, class: u16) {
        if class != 0 && !self.procedures.contains(&class) {
            self.procedures.push(class);
        }
    }

    /// The code of a call, and that it is counted; `None` for what is no call.
    #[inline]
    fn count_call(&self, note: &Note, status: u16) -> Option<&'static str> {
        if self.procedures.is_empty() || !self.procedures.contains(&note.class) {
            return None;
        }
        let code = match note.rpc_code {
            Some(code) => rpc::known(code),
            None => rpc::of_status(status),
        };
        self.slot.add_call(note.class, code);
        rpc::RPC_CODES.get(usize::from(code)).copied()
    }

    /// Counts requests under `pattern` together, unless the gateway knows better.
    ///
    /// # Errors
    /// The pattern is malformed, or the same as an earlier one.
    pub fn add_pattern(&mut self, pattern: &str) -> Result<(), PatternError> {
        let class = self.class_of(pattern);
        self.has_patterns = true;
        self.patterns.insert("*", &Pattern::parse(pattern)?, class)
    }

    /// Reads the clocks of a turn, both in microseconds.
    #[inline]
    pub fn tick(&mut self, monotonic_us: u64, wall_us: u64) {
        self.wall_offset_us = wall_us.wrapping_sub(monotonic_us);
        if let Some(log) = &mut self.log {
            let offset_s = log.utc_offset_s.load(Ordering::Relaxed);
            log.stamps.set_offset(offset_s);
        }
    }

    /// A request has come. Puts its id and its place in a trace among the fields of `head`; takes over those
    /// of a sender who `is_trusted`.
    #[inline]
    pub fn begin(
        &mut self,
        stream: u32,
        head: &mut Head,
        peer: Client,
        is_trusted: bool,
        now_us: u64,
    ) -> Note {
        let facts = if self.keeps_facts {
            Some(self.learn(head, peer, is_trusted))
        } else {
            None
        };
        let class = if self.has_patterns {
            match self.patterns.find("*", head.path(), &mut Captures::new()) {
                Found::Route(&class) => class,
                _ => 0,
            }
        } else {
            0
        };
        Note {
            stream,
            class,
            status: 0,
            has_begun: false,
            bytes: 0,
            head_only: head.method == Method::Head,
            rpc_code: None,
            upstream_us: None,
            method: head.method,
            started_us: now_us,
            facts,
        }
    }

    /// Keeps what a line or a span will say.
    fn learn(&mut self, head: &mut Head, peer: Client, is_trusted: bool) -> Box<Facts> {
        let mut facts = self.spare.pop().unwrap_or_default();
        facts.client = match head.origin.as_ref().and_then(|origin| origin.client) {
            None => peer,
            Some(origin::Client::Hidden) => None,
            Some(origin::Client::Address(address)) => Some(address),
        };
        facts.version = head.version;
        facts.bytes.extend_from_slice(head.slice(head.method_span));
        facts.method_end = facts.bytes.len();
        facts.bytes.extend_from_slice(head.slice(head.target));
        facts.target_end = facts.bytes.len();
        for name in &self.wanted {
            let value = head.field(name).and_then(|value| facts.keep(value));
            facts.fields.push(value);
        }
        if let Some(name) = &self.request_id {
            let given = head.field(name).filter(|_| is_trusted);
            facts.request_id = match given {
                Some(id) if is_request_id(id) => facts.keep(id),
                _ => {
                    let id = [self.rng.hex16(), self.rng.hex16()].concat();
                    facts.keep(&id)
                }
            };
            let id = facts.slice(facts.request_id).unwrap_or_default();
            head.set_field(name, id);
        }
        if self.traces {
            let context = self.place(head, is_trusted);
            head.set_field(b"traceparent", &context.traceparent());
            facts.trace = Some(context);
            facts.is_secure = head.scheme() == origin::Scheme::Https;
            facts.is_grpc = head
                .field(b"content-type")
                .is_some_and(|media| media.starts_with(b"application/grpc"));
        }
        facts
    }

    /// The place of a request in a trace; drops a state that does not belong to it.
    fn place(&mut self, head: &mut Head, is_trusted: bool) -> TraceContext {
        let n_parents = head
            .fields()
            .filter(|(name, _)| is_named(name, b"traceparent"))
            .count();
        // One that is repeated has two readings.
        let given = (is_trusted && n_parents == 1)
            .then(|| head.field(b"traceparent"))
            .flatten();
        let mut context = TraceContext::of(given, &mut self.rng);
        if context.parent_id.is_none() && self.rng.next_u64() > self.trace_share {
            context.flags = 0;
        }
        let states: Vec<&[u8]> = head
            .fields()
            .filter(|(name, _)| is_named(name, b"tracestate"))
            .map(|(_, value)| value)
            .collect();
        let is_state = context.parent_id.is_some() && trace::is_tracestate(&states.join(&b','));
        if !states.is_empty() && !is_state {
            head.drop_field(b"tracestate");
        }
        context
    }

    /// The field in which requests carry their ids, in lower case.
    pub fn request_id_field(&self) -> Option<&[u8]> {
        self.request_id.as_deref()
    }

    /// Whether lines say how long other servers took.
    pub fn tells_upstream_time(&self) -> bool {
        let log = self.log.as_ref();
        log.is_some_and(|log| log.format.tells_upstream_time())
    }

    /// Whether responses carry fields of ours.
    #[inline]
    pub fn adds_fields(&self) -> bool {
        self.request_id.is_some() || self.traces
    }

    /// The fields of a response with ours among them, unless the application has said the same.
    pub fn add_fields(&self, note: &Note, fields: &Fields) -> Fields {
        let mut fields = fields.clone();
        let Some(facts) = &note.facts else {
            return fields;
        };
        let mut add = |name: &[u8], value: &[u8]| {
            if !fields.iter().any(|(known, _)| known == name) {
                // Both are checked: a token, and visible characters.
                let _ = fields.push(name, value);
            }
        };
        if let (Some(name), Some(id)) = (&self.request_id, facts.slice(facts.request_id)) {
            add(name, id);
        }
        if let Some(context) = &facts.trace {
            add(b"traceresponse", &context.traceparent());
        }
        fields
    }

    /// Whether a request with this path asks for health: `Some(true)` if for readiness.
    #[inline]
    pub fn asks_for_health(&self, path: &[u8]) -> Option<bool> {
        match path.strip_prefix(&**self.health.as_ref()?)? {
            b"/live" => Some(false),
            b"/ready" => Some(true),
            _ => None,
        }
    }

    /// Whether this worker takes requests, its checks pass and it has descriptors for new connections.
    pub fn is_ready(&self) -> bool {
        self.slot.gauge(Gauge::State) == 1
            && self.slot.gauge(Gauge::Checks) != 2
            && self.slot.gauge(Gauge::DescriptorsMissing) == 0
    }

    /// The method and the route of an open request; its path where it has no route that is known here.
    #[cold]
    pub fn describe(&self, note: &Note) -> String {
        let label = self.labels.get(usize::from(note.class));
        let route = match (label, &note.facts) {
            (Some(label), _) if !label.is_empty() => label.to_string(),
            (_, Some(facts)) => String::from_utf8_lossy(facts.path_and_query().0)
                .escape_debug()
                .to_string(),
            _ => return "others".to_owned(),
        };
        format!("{} {route}", METHODS[method_index(note.method)])
    }

    /// Counts how a request ended; returns its status, one of ours if no response began, and what went wrong.
    fn count_ending(&self, note: &Note, ending: Ending) -> (u16, Option<&'static str>) {
        let status_or = |other: u16| if note.status == 0 { other } else { note.status };
        match ending {
            Ending::Complete => (note.status, None),
            Ending::Broken(fault) => {
                self.slot.add_fault(fault);
                (status_or(fault.status().code()), Some(fault_name(fault)))
            }
            Ending::Aborted => (status_or(500), Some("aborted")),
            Ending::Cancelled => {
                self.slot.add(Counter::RequestsCancelled, 1);
                (status_or(CLIENT_LEFT), Some("client_left"))
            }
            Ending::Stopped => (status_or(503), Some("server_stopped")),
        }
    }

    /// The end of a request.
    pub fn finish(&mut self, note: Note, ending: Ending, now_us: u64) {
        let (status, fault) = self.count_ending(&note, ending);
        let duration_us = now_us.saturating_sub(note.started_us);
        self.slot
            .add_response(note.class, note.method, status, duration_us);
        // What was cut off has begun with a status that no longer holds.
        let told = match ending {
            Ending::Cancelled => CLIENT_LEFT,
            Ending::Stopped => 503,
            Ending::Broken(_) | Ending::Aborted if status < 400 => 500,
            Ending::Complete | Ending::Broken(_) | Ending::Aborted => status,
        };
        let rpc_code = self.count_call(&note, told);
        let Some(facts) = note.facts else { return };
        let label = self.labels.get(usize::from(note.class));
        let outcome = Outcome {
            status,
            bytes: note.bytes,
            duration_us,
            route: label.map_or("", |label| label),
            rpc_code,
            upstream_us: note.upstream_us,
            fault,
        };
        if let Some(log) = &mut self.log
            && (status >= 400
                || fault.is_some()
                || log.share == u64::MAX
                || self.rng.next_u64() < log.share)
        {
            log.add(&facts, outcome, now_us.wrapping_add(self.wall_offset_us));
        }
        if let Some(spans) = &self.spans
            && facts.trace.is_some_and(|context| context.flags & 1 == 1)
        {
            return spans.push(Span {
                facts,
                started_us: note.started_us.wrapping_add(self.wall_offset_us),
                duration_us,
                status,
                bytes: outcome.bytes,
                route: outcome.route.into(),
                rpc_code,
                fault,
            });
        }
        self.forget(facts);
    }

    /// A response to something that never became a request.
    #[cold]
    pub fn refuse(&mut self, client: Client, refused: &RefusedHead, now_us: u64) {
        let fault = refused.fault;
        self.slot.add_fault(fault);
        self.slot.add_code(fault.status().code());
        if let Some(log) = &mut self.log {
            let facts = Facts {
                client,
                ..Facts::of_refused(refused)
            };
            let outcome = Outcome {
                status: fault.status().code(),
                bytes: refused.response_bytes,
                duration_us: 0,
                route: "",
                rpc_code: None,
                upstream_us: None,
                fault: Some(fault_name(fault)),
            };
            log.add(&facts, outcome, now_us.wrapping_add(self.wall_offset_us));
        }
    }

    /// The end of a turn: hands over its lines and shows its gauges.
    #[inline]
    pub fn end_turn(&mut self, connections_open: usize, requests_open: u32) {
        self.slot
            .set(Gauge::ConnectionsOpen, connections_open as u64);
        self.slot.set(Gauge::RequestsOpen, u64::from(requests_open));
        if let Some(log) = &mut self.log
            && log.n_lines > 0
        {
            log.hand_over();
        }
    }

    #[inline]
    fn forget(&mut self, mut facts: Box<Facts>) {
        if self.spare.len() < FACTS_KEPT_MAX && facts.bytes.capacity() <= FACTS_BYTES_MAX {
            facts.clear();
            self.spare.push(facts);
        }
    }
}

impl Log {
    fn add(&mut self, facts: &Facts, outcome: Outcome<'_>, wall_us: u64) {
        self.stamps.tell(wall_us / 1000);
        line::render(&mut self.batch, &self.format, &self.stamps, facts, outcome);
        self.n_lines += 1;
        if self.batch.len() > BATCH_BYTES_MAX / 2 {
            self.hand_over();
        }
    }

    fn hand_over(&mut self) {
        self.lines
            .push(&mut self.batch, std::mem::take(&mut self.n_lines));
    }
}

/// The number below which a random number falls with this probability.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    clippy::cast_sign_loss,
    reason = "a share needs no more precision, and the conversion saturates"
)]
fn threshold(share: f64) -> u64 {
    if share >= 1.0 {
        u64::MAX
    } else {
        (share.max(0.0) * u64::MAX as f64) as u64
    }
}

/// The name of a fault in metrics and lines: `head_too_long`.
pub fn fault_name(fault: Fault) -> &'static str {
    static NAMES: OnceLock<Vec<String>> = OnceLock::new();
    let names = NAMES.get_or_init(|| {
        let snake = |fault: &Fault| {
            let mut name = String::new();
            for c in format!("{fault:?}").chars() {
                if c.is_ascii_uppercase() && !name.is_empty() {
                    name.push('_');
                }
                name.push(c.to_ascii_lowercase());
            }
            name
        };
        Fault::ALL.iter().map(snake).collect()
    });
    names.get(fault as usize).map_or("", String::as_str)
}

fn is_request_id(id: &[u8]) -> bool {
    (1..=REQUEST_ID_BYTES_MAX).contains(&id.len()) && id.iter().all(u8::is_ascii_graphic)
}

fn is_named(name: &[u8], wanted: &[u8]) -> bool {
    name.eq_ignore_ascii_case(wanted)
}
