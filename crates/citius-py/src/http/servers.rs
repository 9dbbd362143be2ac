//! Servers that serve the same: what is known of each, and which one gets the next request.
//!
//! One that is left alone gets none while there are others. Requests that Python passes on and those that it does not see are
//! given to servers by the same count and the same knowledge. Tests: `tests/http/gateway/test_upstreams.py`.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};

use citius_reactor::coarse_ms;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use smallvec::SmallVec;

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
#[derive(Clone, Copy, PartialEq, Eq)]
enum Balance {
    RoundRobin,
    LeastRequests,
}

/// Several servers.
#[pyclass(frozen, module = "citius._core")]
pub(crate) struct ForwardServers {
    servers: Vec<Py<ForwardServer>>,
    balance: Balance,
    /// Counts choices.
    next: AtomicUsize,
}

/// The places of servers.
type Places = SmallVec<[usize; 8]>;

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
    pub(super) fn look_without(&self, without: &[usize]) -> Option<usize> {
        if self.servers.len() == 1 {
            let is_left = without.is_empty() && !self.servers[0].get().is_draining();
            return is_left.then_some(0);
        }
        let usable = self.usable_without(without);
        if usable.len() <= 1 {
            return usable.first().copied();
        }
        let at = self.next.load(Ordering::Relaxed) % usable.len();
        if self.balance == Balance::RoundRobin {
            return Some(usable[at]);
        }
        let (before, from) = usable.split_at(at);
        let in_turn = from.iter().chain(before).copied();
        in_turn.min_by_key(|&at| self.servers[at].get().requests())
    }

    pub(super) fn note_choice(&self) {
        self.next.fetch_add(1, Ordering::Relaxed);
    }
}

#[pymethods]
impl ForwardServers {
    #[new]
    #[pyo3(signature = (servers, balance = "round_robin"))]
    fn new(servers: Vec<Py<ForwardServer>>, balance: &str) -> PyResult<Self> {
        let balance = match balance {
            "round_robin" => Balance::RoundRobin,
            "least_requests" => Balance::LeastRequests,
            other => {
                return Err(PyValueError::new_err(format!(
                    "balance is round_robin or least_requests, got {other:?}"
                )));
            }
        };
        Ok(Self {
            servers,
            balance,
            next: AtomicUsize::new(0),
        })
    }

    /// The place of the server for a request that is at none of `without`.
    #[pyo3(signature = (without = Vec::new()))]
    #[expect(
        clippy::needless_pass_by_value,
        reason = "arguments of a Python method are owned"
    )]
    fn choose(&self, without: Vec<usize>) -> Option<usize> {
        let at = self.look_without(&without);
        self.note_choice();
        at
    }

    /// The places of those among which a request has the choice.
    #[pyo3(signature = (without = Vec::new()))]
    #[expect(
        clippy::needless_pass_by_value,
        reason = "arguments of a Python method are owned"
    )]
    fn usable(&self, without: Vec<usize>) -> Vec<usize> {
        self.usable_without(&without).to_vec()
    }
}

/// A request that is under way at a server, until this is dropped.
pub(crate) struct Lease(Py<ForwardServer>);

impl Lease {
    pub(super) fn of(py: Python<'_>, server: &Py<ForwardServer>) -> Self {
        server.get().begin();
        Self(server.clone_ref(py))
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        self.0.get().end();
    }
}
