//! Limits that hold for requests that Python passes on and for those that it does not see: requests of a declaration
//! ([`ForwardLimit`]), requests of an origin ([`OriginSlots`]), and its circuit breaker ([`CircuitGate`]).
//!
//! These decide where there is a free slot and a closed breaker. The queue of a limited origin, and what a failure changes in a
//! breaker, are in Python (`python/citius/http/retries.py`). Tests: `tests/http/gateway/test_direct_limits.py`, `tests/http/test_retries.py`.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

use citius_base::sync::lock;
use pyo3::prelude::*;

/// How many requests of a declaration are passed on at a time.
#[pyclass(frozen, module = "citius._core")]
pub(crate) struct ForwardLimit {
    requests: AtomicU32,
    requests_max: Option<u32>,
}

#[pymethods]
impl ForwardLimit {
    #[new]
    #[pyo3(signature = (requests_max = None))]
    fn new(requests_max: Option<u32>) -> Self {
        Self {
            requests: AtomicU32::new(0),
            requests_max,
        }
    }

    /// One more is under way.
    pub(super) fn begin(&self) {
        self.requests.fetch_add(1, Ordering::Relaxed);
    }

    /// One has ended.
    pub(super) fn end(&self) {
        self.requests.fetch_sub(1, Ordering::Relaxed);
    }

    #[getter]
    fn requests(&self) -> u32 {
        self.requests.load(Ordering::Relaxed)
    }

    /// Whether there are as many as there may be.
    #[getter]
    pub(super) fn is_reached(&self) -> bool {
        self.requests_max.is_some_and(|max| self.requests() >= max)
    }
}

/// How many requests one origin gets at once.
#[pyclass(frozen, module = "citius._core")]
pub(crate) struct OriginSlots(Mutex<Slots>);

struct Slots {
    free: u32,
    /// Requests that wait, in Python.
    waiting: u32,
}

impl Slots {
    fn take(&mut self) -> bool {
        let is_free = self.free > 0 && self.waiting == 0;
        if is_free {
            self.free -= 1;
        }
        is_free
    }
}

#[pymethods]
impl OriginSlots {
    #[new]
    fn new(count: u32) -> Self {
        Self(Mutex::new(Slots {
            free: count,
            waiting: 0,
        }))
    }

    /// Takes a slot, if one is free and no request waits for one.
    fn take(&self) -> bool {
        lock(&self.0).take()
    }

    /// Takes a slot as `take` does; without one, one more request is counted as waiting.
    fn take_or_wait(&self) -> bool {
        let mut slots = lock(&self.0);
        let is_taken = slots.take();
        if !is_taken {
            slots.waiting += 1;
        }
        is_taken
    }

    /// One request less waits: it was handed a slot, or has given up.
    fn waits_no_more(&self) {
        lock(&self.0).waiting -= 1;
    }

    /// Gives a slot back; `false` if requests wait, of which the first is to be handed the slot.
    fn give(&self) -> bool {
        let mut slots = lock(&self.0);
        let is_free = slots.waiting == 0;
        if is_free {
            slots.free += 1;
        }
        is_free
    }
}

/// What has to be known of a circuit breaker before each request, and after most.
#[pyclass(frozen, module = "citius._core")]
#[derive(Default)]
pub(crate) struct CircuitGate {
    is_open: AtomicBool,
    is_failing: AtomicBool,
    /// How often it has opened or closed.
    changes: AtomicU64,
}

#[pymethods]
impl CircuitGate {
    #[new]
    fn new() -> Self {
        Self::default()
    }

    /// `is_open`: not every request may be sent. `is_failing`: the request before has failed. `changes`: how often it has opened or closed.
    fn set(&self, is_open: bool, is_failing: bool, changes: u64) {
        self.changes.store(changes, Ordering::Relaxed);
        self.is_open.store(is_open, Ordering::Relaxed);
        self.is_failing.store(is_failing, Ordering::Relaxed);
    }
}

/// What limits requests to one origin.
#[pyclass(frozen, module = "citius._core")]
pub(crate) struct OriginLimits {
    /// The slots, and the function of Python that hands a slot over to the first request that waits.
    slots: Option<(Py<OriginSlots>, Py<PyAny>)>,
    breaker: Option<Breaker>,
}

struct Breaker {
    gate: Py<CircuitGate>,
    /// `(is_probe, status, error, since)`: what a request has come to that was sent after so many changes.
    leave: Py<PyAny>,
    /// Those that are failures.
    statuses: Vec<u16>,
}

#[pymethods]
impl OriginLimits {
    #[new]
    #[pyo3(signature = (slots = None, breaker = None))]
    fn new(
        slots: Option<(Py<OriginSlots>, Py<PyAny>)>,
        breaker: Option<(Py<CircuitGate>, Py<PyAny>, Vec<u16>)>,
    ) -> Self {
        let breaker = breaker.map(|(gate, leave, statuses)| Breaker {
            gate,
            leave,
            statuses,
        });
        Self { slots, breaker }
    }
}

impl OriginLimits {
    /// Whether requests are sent without a question to the breaker.
    pub(super) fn is_closed(&self) -> bool {
        let breaker = self.breaker.as_ref();
        !breaker.is_some_and(|it| it.gate.get().is_open.load(Ordering::Relaxed))
    }

    /// How often the breaker has opened or closed: what is sent now counts until it does again.
    pub(super) fn changes(&self) -> u64 {
        let breaker = self.breaker.as_ref();
        breaker.map_or(0, |it| it.gate.get().changes.load(Ordering::Relaxed))
    }

    /// Takes a slot, if there are such.
    pub(super) fn slot(this: &Py<Self>, py: Python<'_>) -> Result<Option<Slot>, NoneFree> {
        match &this.get().slots {
            None => Ok(None),
            Some((slots, _)) => {
                let is_taken = slots.get().take();
                if !is_taken {
                    return Err(NoneFree);
                }
                Ok(Some(Slot(this.clone_ref(py))))
            }
        }
    }

    /// A request that was sent after so many changes has got a response.
    pub(super) fn answered(&self, py: Python<'_>, status: u16, since: u64) {
        let Some(breaker) = &self.breaker else {
            return;
        };
        let is_news = breaker.gate.get().is_failing.load(Ordering::Relaxed);
        if !is_news && !breaker.statuses.contains(&status) {
            return;
        }
        if let Err(error) = breaker.leave.call1(py, (false, status, py.None(), since)) {
            error.write_unraisable(py, Some(breaker.leave.bind(py)));
        }
    }
}

/// An origin has no free slot.
pub(super) struct NoneFree;

/// A slot that was taken, until this is dropped.
pub(crate) struct Slot(Py<OriginLimits>);

impl Drop for Slot {
    fn drop(&mut self) {
        let Some((slots, hand_over)) = &self.0.get().slots else {
            return;
        };
        if slots.get().give() {
            return;
        }
        Python::attach(|py| {
            if let Err(error) = hand_over.call0(py) {
                error.write_unraisable(py, Some(hand_over.bind(py)));
            }
        });
    }
}

/// A slot that Python goes on with.
#[pyclass(frozen, module = "citius._core")]
pub(crate) struct ForwardSlot(Mutex<Option<Slot>>);

impl ForwardSlot {
    pub(super) fn new(slot: Slot) -> Self {
        Self(Mutex::new(Some(slot)))
    }
}

#[pymethods]
impl ForwardSlot {
    /// Gives it back.
    fn release(&self) {
        let slot = lock(&self.0).take();
        drop(slot);
    }
}
