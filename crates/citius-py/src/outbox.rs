//! The queue of what an application sends in one exchange, and the coroutines that wait there.
//!
//! While the application is stepped within a turn, items are queued, and sent when the step ends; at any other time they are
//! posted to the reactor. The same holds for requests to the reactor: for more of the body, and for a call when more can be
//! written. Tests: `tests/asgi`, `tests/server/test_websocket.py`, `tests/abuse/test_backpressure.py`.

use std::sync::Arc;

use citius_base::awaitable::{Poll, PollAwaitable, impl_awaitable};
use citius_base::reactor_handle::ReactorHandle;
use citius_base::waiter::Waiter;
use citius_reactor::{Reply, StreamCommand, StreamId};
use pyo3::prelude::*;
use smallvec::SmallVec;

pub(crate) type Waiters = SmallVec<[Py<Waiter>; 1]>;

/// Behind the lock of an exchange; no method runs Python code.
pub(crate) struct Outbox<T> {
    /// The application's step is on the stack, and so is the reply.
    is_in_step: bool,
    items: SmallVec<[T; 1]>,
    /// Bytes of the request's body to be asked for when the step ends.
    wanted_bytes: u64,
    /// Bytes queued since more could be written last.
    unsent_bytes: u64,
    awaits_writable: bool,
    receivers: Waiters,
    senders: Waiters,
}

impl<T> Default for Outbox<T> {
    fn default() -> Self {
        Self {
            is_in_step: false,
            items: SmallVec::new(),
            wanted_bytes: 0,
            unsent_bytes: 0,
            awaits_writable: false,
            receivers: SmallVec::new(),
            senders: SmallVec::new(),
        }
    }
}

impl<T> Outbox<T> {
    /// The application is stepped within a turn from here on.
    #[inline]
    pub(crate) fn begin_step(&mut self) {
        self.is_in_step = true;
    }

    /// Later items are posted. Returns the requests to the reactor that follow the queued items.
    #[inline]
    pub(crate) fn end_step(&mut self) -> DeferredRequests {
        self.is_in_step = false;
        DeferredRequests {
            wanted_bytes: std::mem::take(&mut self.wanted_bytes),
            awaits_writable: self.awaits_writable,
        }
    }

    #[inline]
    pub(crate) fn is_in_step(&self) -> bool {
        self.is_in_step
    }

    #[inline]
    pub(crate) fn push(&mut self, items: T) {
        self.items.push(items);
    }

    #[inline]
    pub(crate) fn has_items(&self) -> bool {
        !self.items.is_empty()
    }

    /// What is queued.
    #[inline]
    pub(crate) fn take_items(&mut self) -> SmallVec<[T; 1]> {
        std::mem::take(&mut self.items)
    }

    #[inline]
    pub(crate) fn count(&mut self, bytes: u64) {
        self.unsent_bytes += bytes;
    }

    /// Whether the next item has to wait.
    #[inline]
    pub(crate) fn is_full(&self, handle: &ReactorHandle) -> bool {
        self.unsent_bytes >= u64::from(handle.limits.write_queue_bytes_max)
    }

    /// More can be written.
    pub(crate) fn on_writable(&mut self) {
        self.unsent_bytes = 0;
        self.awaits_writable = false;
    }

    pub(crate) fn take_receivers(&mut self) -> Waiters {
        std::mem::take(&mut self.receivers)
    }

    /// Those who wait to send, unless they have to wait longer.
    pub(crate) fn take_senders(&mut self, is_over: bool) -> Waiters {
        if self.awaits_writable && !is_over {
            return Waiters::new();
        }
        std::mem::take(&mut self.senders)
    }
}

/// What an application has asked of the reactor while it was stepped.
#[derive(Clone, Copy)]
pub(crate) struct DeferredRequests {
    wanted_bytes: u64,
    awaits_writable: bool,
}

impl DeferredRequests {
    #[inline]
    pub(crate) fn send(self, reply: &mut Reply<'_>) {
        if self.wanted_bytes > 0 {
            reply.want(self.wanted_bytes);
        }
        if self.awaits_writable {
            reply.await_writable();
        }
    }
}

/// An exchange in which an application speaks by messages.
pub(crate) trait OutboxOwner {
    type Item;

    fn handle(&self) -> &Arc<ReactorHandle>;

    /// The stream, which there is until the exchange is over.
    fn stream_id(&self) -> StreamId;

    /// Looks at or changes the outbox, behind the lock.
    fn outbox<R>(&self, act: impl FnOnce(&mut Outbox<Self::Item>) -> R) -> R;

    /// Nothing more reaches the client.
    fn is_over(&self) -> bool;

    /// Asks for more of the request's body: now, or when the step ends.
    fn want(&self, py: Python<'_>, bytes: u64) {
        let is_kept = self.outbox(|outbox| {
            outbox.wanted_bytes += if outbox.is_in_step { bytes } else { 0 };
            outbox.is_in_step
        });
        if !is_kept {
            self.handle()
                .post(py, self.stream_id(), StreamCommand::Want(bytes));
        }
    }

    /// Asks to be told when more can be written: now, or when the items of the step have left.
    fn await_writable(&self, py: Python<'_>) {
        let asks = self.outbox(|outbox| {
            !std::mem::replace(&mut outbox.awaits_writable, true) && !outbox.is_in_step
        });
        if asks {
            self.handle()
                .post(py, self.stream_id(), StreamCommand::AwaitWritable);
        }
    }

    /// Whether the next message has to wait.
    fn is_full(&self) -> bool {
        !self.is_over() && self.outbox(|outbox| outbox.is_full(self.handle()))
    }

    /// Something to wait for before the next message is sent; `None`: it need not wait.
    fn await_capacity(&self, py: Python<'_>) -> PyResult<Option<Py<Waiter>>> {
        if !self.is_full() {
            return Ok(None);
        }
        let waiter = Waiter::new(py, self.handle())?;
        self.outbox(|outbox| outbox.senders.push(waiter.clone_ref(py)));
        self.await_writable(py);
        Ok(Some(waiter))
    }

    /// Something to wait for until there may be something to receive.
    fn await_message(&self, py: Python<'_>) -> PyResult<Py<Waiter>> {
        let waiter = Waiter::new(py, self.handle())?;
        // Those that were given up, by a timeout mostly, are forgotten, outside of the lock.
        let mut receivers = self.outbox(Outbox::take_receivers);
        receivers.retain(|waiter| !waiter.get().is_done());
        receivers.push(waiter.clone_ref(py));
        self.outbox(|outbox| outbox.receivers = receivers);
        Ok(waiter)
    }
}

/// What can be waited for before the next message is sent.
pub(crate) trait Capacity: Send + Sync {
    fn wait(&self, py: Python<'_>) -> PyResult<Option<Py<Waiter>>>;
}

/// Returned by a `send` whose bytes are queued and which has to wait before the next.
#[pyclass(frozen, module = "citius._core", name = "_AwaitCapacity")]
pub(crate) struct AwaitCapacity(Box<dyn Capacity>);

impl AwaitCapacity {
    pub(crate) fn of(
        py: Python<'_>,
        capacity: impl Capacity + 'static,
    ) -> PyResult<Bound<'_, PyAny>> {
        Ok(Bound::new(py, Self(Box::new(capacity)))?.into_any())
    }
}

impl PollAwaitable for AwaitCapacity {
    fn poll(&self, py: Python<'_>) -> PyResult<Poll> {
        let waiter = self.0.wait(py)?;
        Ok(waiter.map_or_else(|| Poll::Ready(py.None()), Waiter::pending))
    }
}

impl_awaitable!(AwaitCapacity);
