//! Finished requests as spans, for an exporter of traces: a bounded list that is taken as a whole.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use citius_http::Version;

use crate::line::Facts;
use crate::trace::TraceContext;

/// One request, from its head to the end of its response.
#[derive(Debug)]
pub struct Span {
    pub(crate) facts: Box<Facts>,
    /// Microseconds since 1970.
    pub started_us: u64,
    /// How long it took.
    pub duration_us: u64,
    /// The status of the response.
    pub status: u16,
    /// Bytes of its body.
    pub bytes: u64,
    /// The label of its class; empty for none.
    pub route: Box<str>,
    /// How the remote procedure call ended that it is.
    pub rpc_code: Option<&'static str>,
    /// The rule that was broken.
    pub fault: Option<&'static str>,
}

impl Span {
    /// The method as sent.
    pub fn method(&self) -> &[u8] {
        self.facts.method()
    }

    /// Path and query as sent.
    pub fn path_and_query(&self) -> (&[u8], &[u8]) {
        self.facts.path_and_query()
    }

    /// Where it stands in its trace.
    pub fn trace(&self) -> Option<&TraceContext> {
        self.facts.trace.as_ref()
    }

    /// Who asked.
    pub fn client(&self) -> Option<SocketAddr> {
        self.facts.client
    }

    /// How it came.
    pub fn version(&self) -> Version {
        self.facts.version
    }

    /// Whether its scheme is `https`.
    pub fn is_secure(&self) -> bool {
        self.facts.is_secure
    }

    /// Whether its media type is one of gRPC's.
    pub fn is_grpc(&self) -> bool {
        self.facts.is_grpc
    }

    /// The `User-Agent`; it is the last of the fields kept.
    pub fn user_agent(&self) -> Option<&[u8]> {
        self.facts
            .slice(self.facts.fields.last().copied().flatten())
    }
}

/// Spans that wait to be exported; more are dropped and counted.
pub const SPANS_MAX: usize = 8192;

/// The list, shared by the reactor's thread and the exporter's.
#[derive(Debug)]
pub struct Spans<T = Span> {
    waiting: Mutex<Vec<T>>,
    dropped: AtomicU64,
}

impl<T> Default for Spans<T> {
    fn default() -> Self {
        Self {
            waiting: Mutex::default(),
            dropped: AtomicU64::new(0),
        }
    }
}

impl<T> Spans<T> {
    /// Adds one, if there is room.
    pub fn push(&self, span: T) {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        if waiting.len() < SPANS_MAX {
            waiting.push(span);
        } else {
            self.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Takes all that wait.
    pub fn take(&self) -> Vec<T> {
        std::mem::take(&mut *self.waiting.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// How many found no room.
    pub fn dropped(&self) -> u64 {
        self.dropped.load(Ordering::Relaxed)
    }
}
