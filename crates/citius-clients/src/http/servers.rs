//! Servers that serve the same: what is known of each, and which one gets the next request.
//!
//! One that is left alone gets none while there are others. Requests that Python passes on and those that it does not see are
//! given to servers by the same count and the same knowledge. Tests: `tests/http/gateway/test_upstreams.py`.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};

use citius_base::passing::request_of;
use citius_http::Head;
use citius_reactor::coarse_ms;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use smallvec::SmallVec;

use super::limits::{ForwardLimit, OriginLimits, Slot};

/// What is known of one server.
#[pyclass(frozen, module = "citius._core")]
#[derive(Default)]
pub(crate) struct ForwardServer {
    /// Under way.
    requests: AtomicU32,
    /// Requests in a row without a response.
    failed: AtomicU32,
    /// Left alone until then.
    out_until_ms: AtomicU64,
    /// Its checks fail.
    is_down: AtomicBool,
    is_draining: AtomicBool,
}

impl ForwardServer {
    fn is_usable_at(&self, now_ms: u64) -> bool {
        !self.is_down.load(Ordering::Relaxed) && now_ms >= self.out_until_ms.load(Ordering::Relaxed)
    }
}

#[pymethods]
impl ForwardServer {
    #[new]
    fn new() -> Self {
        Self::default()
    }

    /// A request goes to it.
    fn begin(&self) {
        self.requests.fetch_add(1, Ordering::Relaxed);
    }

    /// One has ended.
    fn end(&self) {
        self.requests.fetch_sub(1, Ordering::Relaxed);
    }

    /// It has responded.
    pub(super) fn answered(&self) {
        if self.failed.load(Ordering::Relaxed) > 0 {
            self.failed.store(0, Ordering::Relaxed);
            self.out_until_ms.store(0, Ordering::Relaxed);
        }
    }

    /// It has not: how often in a row.
    fn unanswered(&self) -> u32 {
        self.failed.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// Gives it no requests for so long; whether it got some before.
    fn leave_alone(&self, ms: u64) -> bool {
        let now_ms = coarse_ms();
        let until_ms = now_ms.saturating_add(ms);
        self.out_until_ms.swap(until_ms, Ordering::Relaxed) <= now_ms
    }

    #[getter]
    fn requests(&self) -> u32 {
        self.requests.load(Ordering::Relaxed)
    }

    /// Whether nothing speaks against it.
    #[getter]
    fn is_usable(&self) -> bool {
        self.is_usable_at(coarse_ms())
    }

    #[getter]
    fn is_up(&self) -> bool {
        !self.is_down.load(Ordering::Relaxed)
    }

    #[setter]
    fn set_is_up(&self, is_up: bool) {
        self.is_down.store(!is_up, Ordering::Relaxed);
    }

    #[getter]
    fn is_draining(&self) -> bool {
        self.is_draining.load(Ordering::Relaxed)
    }

    #[setter]
    fn set_is_draining(&self, is_draining: bool) {
        self.is_draining.store(is_draining, Ordering::Relaxed);
    }
}

/// How a server is chosen.
enum Balance {
    RoundRobin,
    LeastRequests,
    Hash(Key),
}

/// What of a request is hashed.
enum Key {
    /// Path and query, as sent.
    Target,
    /// The first value of a field; requests without it are given to servers in turn.
    Field(Vec<u8>),
    /// What Python makes of it.
    Python,
}

/// Of the bytes by FNV-1a, which is the same in every process and version.
fn hash_of(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, &byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

/// Every bit of the result depends on every bit of `x` (the last step of `SplitMix64`).
fn mixed(x: u64) -> u64 {
    let x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

/// Several servers.
#[pyclass(frozen, module = "citius._core")]
pub(crate) struct ForwardServers {
    servers: Vec<Py<ForwardServer>>,
    balance: Balance,
    /// Hashes of the servers' names, for [`Balance::Hash`].
    hashes: Vec<u64>,
    /// Counts choices.
    next: AtomicUsize,
}

/// The places of servers.
type Places = SmallVec<[usize; 8]>;

impl Key {
    fn of<'a>(&self, head: &'a Head) -> Option<&'a [u8]> {
        match self {
            Self::Target => Some(head.slice(head.target)),
            Self::Field(name) => head.field(name),
            Self::Python => None,
        }
    }
}

impl ForwardServers {
    pub(super) fn server(&self, at: usize) -> Option<&Py<ForwardServer>> {
        self.servers.get(at)
    }

    /// Those that may get a request: all that do not drain, if something speaks against each.
    fn usable_without(&self, without: &[usize]) -> Places {
        let now_ms = coarse_ms();
        let rest = self.servers.iter().enumerate();
        let rest = rest.filter(|(at, it)| !it.get().is_draining() && !without.contains(at));
        let usable: Places = rest
            .clone()
            .filter(|(_, it)| it.get().is_usable_at(now_ms))
            .map(|(at, _)| at)
            .collect();
        if usable.is_empty() {
            return rest.map(|(at, _)| at).collect();
        }
        usable
    }

    /// The server whose turn it is; [`note_choice`](Self::note_choice) says that it was taken.
    pub(super) fn look_without(&self, head: Option<&Head>, without: &[usize]) -> Option<usize> {
        if self.servers.len() == 1 {
            let is_left = without.is_empty() && !self.servers[0].get().is_draining();
            return is_left.then_some(0);
        }
        let usable = self.usable_without(without);
        if usable.len() <= 1 {
            return usable.first().copied();
        }
        if let Balance::Hash(key) = &self.balance
            && let Some(key) = head.and_then(|head| key.of(head))
        {
            return self.highest(usable, key);
        }
        let at = self.next.load(Ordering::Relaxed) % usable.len();
        if !matches!(self.balance, Balance::LeastRequests) {
            return Some(usable[at]);
        }
        let (before, from) = usable.split_at(at);
        let in_turn = from.iter().chain(before).copied();
        in_turn.min_by_key(|&at| self.servers[at].get().requests())
    }

    /// Rendezvous hashing: without a server only its own keys move.
    fn highest(&self, usable: Places, key: &[u8]) -> Option<usize> {
        let key = hash_of(key);
        let weight = |at: usize| mixed(key ^ self.hashes.get(at).copied().unwrap_or(0));
        usable.into_iter().max_by_key(|&at| weight(at))
    }

    /// Whether it takes Python to choose.
    pub(super) fn is_for_python(&self) -> bool {
        matches!(self.balance, Balance::Hash(Key::Python))
    }

    pub(super) fn note_choice(&self) {
        self.next.fetch_add(1, Ordering::Relaxed);
    }
}

#[pymethods]
impl ForwardServers {
    #[new]
    #[pyo3(signature = (servers, balance = "round_robin", *, names = Vec::new(), key = None))]
    #[expect(
        clippy::needless_pass_by_value,
        reason = "arguments of a Python method are owned"
    )]
    fn new(
        servers: Vec<Py<ForwardServer>>,
        balance: &str,
        names: Vec<String>,
        key: Option<&str>,
    ) -> PyResult<Self> {
        let balance = match balance {
            "round_robin" => Balance::RoundRobin,
            "least_requests" => Balance::LeastRequests,
            "hash" => Balance::Hash(match key {
                None => Key::Python,
                Some(":path") => Key::Target,
                Some(name) => Key::Field(name.as_bytes().to_vec()),
            }),
            other => {
                return Err(PyValueError::new_err(format!(
                    "balance is round_robin, least_requests or hash, got {other:?}"
                )));
            }
        };
        Ok(Self {
            servers,
            balance,
            hashes: names
                .iter()
                .map(|name| mixed(hash_of(name.as_bytes())))
                .collect(),
            next: AtomicUsize::new(0),
        })
    }

    /// The place of the server for a request that is at none of `without`.
    #[pyo3(signature = (without = Vec::new(), request = None))]
    #[expect(
        clippy::needless_pass_by_value,
        reason = "arguments of a Python method are owned"
    )]
    fn choose(
        &self,
        without: Vec<usize>,
        request: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Option<usize>> {
        let request = request.map(request_of).transpose()?;
        let head = request.map(|it| it.as_client().head);
        let at = self.look_without(head, &without);
        self.note_choice();
        Ok(at)
    }

    /// The same for a request that has this key.
    #[expect(
        clippy::needless_pass_by_value,
        reason = "arguments of a Python method are owned"
    )]
    fn choose_hashed(&self, key: &[u8], without: Vec<usize>) -> Option<usize> {
        self.highest(self.usable_without(&without), key)
    }
}

/// A request that is under way at a server, until this is dropped.
pub(crate) struct Lease {
    server: Py<ForwardServer>,
    limit: Py<ForwardLimit>,
    slot: Option<Slot>,
}

impl Lease {
    /// `None` if its origin gets no more requests.
    pub(super) fn of(
        py: Python<'_>,
        server: &Py<ForwardServer>,
        limit: &Py<ForwardLimit>,
        limits: Option<&Py<OriginLimits>>,
    ) -> Option<Self> {
        let slot = match limits {
            None => None,
            Some(limits) => OriginLimits::slot(limits, py).ok()?,
        };
        server.get().begin();
        limit.get().begin();
        Some(Self {
            server: server.clone_ref(py),
            limit: limit.clone_ref(py),
            slot,
        })
    }

    /// What Python goes on with.
    pub(super) fn take_slot(&mut self) -> Option<Slot> {
        self.slot.take()
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        self.server.get().end();
        self.limit.get().end();
    }
}
