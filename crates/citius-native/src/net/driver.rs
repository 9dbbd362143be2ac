//! Who says that a socket is ready: the reactor of the goroutine that opened it, or, elsewhere, a thread that waits for all of them.

use std::any::Any;
use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use citius_goroutine::Local;
use citius_reactor::{OutgoingPoller, OutgoingReady, OutgoingSocket};

use super::blocking::{raise, signal, wait};
use super::error::{NetError, Reason, Result};
use super::pool::Idle;
use crate::chan::receive_either;
use crate::local;
use crate::lock::lock;
use crate::outgoing::WatchedSockets;
use crate::wait::Until;
use crate::{Channel, thread};

/// What is ready of one socket. Each signal stays until it is received; one without a reason is possible.
pub(crate) struct Signals {
    readable: Channel,
    writable: Channel,
}

impl Signals {
    fn new() -> Self {
        Self {
            readable: signal(),
            writable: signal(),
        }
    }

    pub(crate) fn wait_readable(&self, until: Until, what: &str) -> Result<()> {
        wait(&self.readable, until, what)
    }

    pub(crate) fn wait_writable(&self, until: Until, what: &str) -> Result<()> {
        wait(&self.writable, until, what)
    }

    pub(crate) fn wait_either(&self, until: Until, what: &str) -> Result<()> {
        let received = receive_either(&self.readable, &self.writable, until);
        received.map_err(|code| NetError::waiting(code, what))
    }

    fn close(&self) {
        // They are closed once: what closes them has taken them out of the table.
        let _ = (self.readable.close(), self.writable.close());
    }
}

/// Sockets of one reactor, or those of all threads that are none's.
pub(crate) struct Driver {
    poller: Arc<OutgoingPoller>,
    next: AtomicU64,
    table: Mutex<HashMap<u64, Arc<Signals>>>,
    is_closed: AtomicBool,
    /// The process it was made in.
    generation: u32,
    /// Connections that the next call may use.
    pub(crate) idle: Idle,
}

impl Driver {
    fn new() -> Result<Arc<Self>> {
        let poller = OutgoingPoller::new()
            .map_err(|error| NetError::system(error, "no poller for outgoing connections"))?;
        Ok(Arc::new(Self {
            poller: Arc::new(poller),
            next: AtomicU64::new(1),
            table: Mutex::default(),
            is_closed: AtomicBool::new(false),
            generation: thread::generation(),
            idle: Idle::default(),
        }))
    }

    /// That of the caller.
    pub(crate) fn here() -> Result<Arc<Self>> {
        if citius_goroutine::is_inside()
            && Local::here().is_some()
            && let Some(handle) = local::home()
            && !handle.outgoing().is_by_thread()
        {
            let found = handle
                .outgoing()
                .sockets()
                .map(|sockets| sockets as Arc<dyn Any + Send + Sync>);
            if let Some(driver) = found.and_then(|found| found.downcast().ok()) {
                return Ok(driver);
            }
            let driver = Self::new()?;
            handle
                .outgoing()
                .watch(Arc::clone(&driver) as _, Arc::clone(&driver.poller));
            // The turn that is running, or the next one, watches it.
            if handle.mailbox().call_service() {
                handle.mailbox().wake();
            }
            return Ok(driver);
        }
        Self::of_threads()
    }

    /// The one whose sockets a thread waits for.
    fn of_threads() -> Result<Arc<Self>> {
        static DRIVER: Mutex<Option<Arc<Driver>>> = Mutex::new(None);
        let mut place = lock(&DRIVER);
        if let Some(driver) = &*place
            && driver.generation == thread::generation()
        {
            return Ok(Arc::clone(driver));
        }
        let driver = Self::new()?;
        let theirs = Arc::clone(&driver);
        std::thread::Builder::new()
            .name("citius-outgoing".into())
            .spawn(move || {
                // It lasts as long as the process.
                loop {
                    let _ = catch_unwind(AssertUnwindSafe(|| theirs.collect(true)));
                }
            })
            .map_err(|error| {
                NetError::new(
                    Reason::System,
                    format!("no thread for outgoing connections: {error}"),
                )
            })?;
        // In a child the one before is the parent's: its descriptors are shared with it, and stay open.
        std::mem::forget(place.replace(Arc::clone(&driver)));
        Ok(driver)
    }

    pub(crate) fn add(&self, socket: &OutgoingSocket) -> Result<(u64, Arc<Signals>)> {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let signals = Arc::new(Signals::new());
        lock(&self.table).insert(number, Arc::clone(&signals));
        if self.is_closed.load(Ordering::Acquire) {
            self.close();
        }
        let added = self.poller.add(socket, number);
        added.map_err(|error| {
            lock(&self.table).remove(&number);
            NetError::system(error, "the connection cannot be watched")
        })?;
        Ok((number, signals))
    }

    pub(crate) fn remove(&self, socket: &OutgoingSocket, number: u64) {
        self.poller.remove(socket);
        let signals = lock(&self.table).remove(&number);
        drop(signals);
    }

    /// Raises the signals of what is ready.
    pub(crate) fn collect(&self, waits: bool) {
        let mut ready: Vec<OutgoingReady> = Vec::new();
        if self.poller.collect(&mut ready, waits).is_err() {
            return;
        }
        for one in ready {
            let signals = lock(&self.table).get(&one.number).map(Arc::clone);
            let Some(signals) = signals else { continue };
            if one.is_readable {
                raise(&signals.readable);
            }
            if one.is_writable {
                raise(&signals.writable);
            }
        }
    }

    /// Its reactor ends: nothing says any more that a socket is ready.
    pub(crate) fn close(&self) {
        self.is_closed.store(true, Ordering::Release);
        let all: Vec<_> = lock(&self.table).drain().collect();
        for (_, signals) in all {
            signals.close();
        }
        self.idle.clear();
    }
}

impl WatchedSockets for Driver {
    fn collect(&self) {
        self.collect(false);
    }

    fn close(&self) {
        self.close();
    }
}
