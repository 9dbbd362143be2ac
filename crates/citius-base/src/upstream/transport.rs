//! Who carries the bytes of a connection to another server: the reactor that serves, or Python on any event loop; and TLS.
//!
//! The protocol above writes into a buffer of its own, and says that there is something ([`Transport::note_unsent`]); the carrier
//! takes it when it writes ([`Transport::seal`]). Any thread may say so; one thread, that of the carrier, reads and writes.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;

use crate::reactor_handle::ReactorHandle;
use crate::sync::lock;

use super::carrier::Carrier;
use super::tls::{Opened, Secured};
use crate::upstreams::Carried;

/// What carries the bytes of one connection.
pub(crate) struct Transport {
    carrier: Mutex<CarriedBy>,
    is_unsent: AtomicBool,
    /// What came back from a carrier, sealed if there is TLS: it leaves first.
    returned: Mutex<Vec<u8>>,
    has_returned: AtomicBool,
    secured: Option<Mutex<Secured>>,
}

enum CarriedBy {
    /// Python: this is called when there is something to send, in whatever thread that is.
    Loop(Py<PyAny>),
    /// The reactor that serves.
    Reactor(Arc<ReactorHandle>, u32),
}

impl Transport {
    /// Python carries the bytes: `wake` is called when there is something to send.
    pub(crate) fn new(wake: Py<PyAny>, secured: Option<Mutex<Secured>>) -> Self {
        Self {
            carrier: Mutex::new(CarriedBy::Loop(wake)),
            is_unsent: AtomicBool::new(false),
            returned: Mutex::default(),
            has_returned: AtomicBool::new(false),
            secured,
        }
    }

    /// Whether something waits that has not left: what is added leaves with it.
    pub(crate) fn is_unsent(&self) -> bool {
        self.is_unsent.load(Ordering::Relaxed)
    }

    /// Has the carrier take what is to be sent.
    #[inline]
    pub(crate) fn note_unsent(&self, py: Python<'_>) {
        if self.is_unsent.swap(true, Ordering::AcqRel) {
            return;
        }
        let wake = match &*lock(&self.carrier) {
            CarriedBy::Loop(wake) => Some(wake.clone_ref(py)),
            CarriedBy::Reactor(handle, id) => {
                handle.upstreams.note_unsent(*id);
                if handle.mailbox.expect_turn() {
                    handle.wake(py);
                }
                None
            }
        };
        if let Some(wake) = wake
            && let Err(error) = wake.call0(py)
        {
            error.write_unraisable(py, None);
        }
    }

    /// Before the carrier takes what is to be sent: what is added from now on is noted anew.
    pub(crate) fn begin_taking(&self) {
        self.is_unsent.store(false, Ordering::Release);
    }

    /// Appends what is to be sent for `plaintext`.
    pub(crate) fn seal(&self, plaintext: &[u8], bytes: &mut Vec<u8>) {
        if self.has_returned.swap(false, Ordering::AcqRel) {
            bytes.append(&mut lock(&self.returned));
        }
        match &self.secured {
            None => bytes.extend_from_slice(plaintext),
            Some(secured) => lock(secured).seal(plaintext, bytes),
        }
    }

    /// Appends what says that nothing follows; without TLS nothing does but the end of the socket's sending side.
    pub(crate) fn seal_end(&self, bytes: &mut Vec<u8>) {
        if let Some(secured) = &self.secured {
            lock(secured).seal_end(bytes);
        }
    }

    /// Takes back what was not sent; it goes before what the protocol above sends next.
    pub(crate) fn put_back(&self, bytes: &[u8]) {
        lock(&self.returned).splice(..0, bytes.iter().copied());
        self.has_returned.store(true, Ordering::Release);
    }

    /// What has come, as plaintext; `None` without TLS.
    pub(crate) fn open(&self, py: Python<'_>, bytes: &[u8]) -> Option<Opened> {
        let opened = lock(self.secured.as_ref()?).open(bytes);
        if opened.has_output {
            self.note_unsent(py);
        }
        Some(opened)
    }

    /// Whether an end now is one that TLS has not announced.
    pub(crate) fn is_cut(&self) -> bool {
        let secured = self.secured.as_ref();
        secured.is_some_and(|secured| !lock(secured).is_ended())
    }

    /// Whether there is something to be sent, whatever the protocol above has.
    pub(crate) fn has_output(&self) -> bool {
        let secured = self.secured.as_ref();
        self.has_returned.load(Ordering::Acquire)
            || secured.is_some_and(|secured| lock(secured).wants_write())
    }

    /// Has a reactor carry the bytes of the socket `fd`.
    pub(crate) fn attach(
        &self,
        protocol: Arc<dyn Carried>,
        reactor: &Bound<'_, Carrier>,
        fd: i32,
    ) -> PyResult<()> {
        let (handle, id) = Carrier::attach(reactor, protocol, fd)?;
        let replaced = std::mem::replace(&mut *lock(&self.carrier), CarriedBy::Reactor(handle, id));
        drop(replaced);
        if self.is_unsent.swap(false, Ordering::AcqRel) {
            self.note_unsent(reactor.py());
        }
        Ok(())
    }

    /// Has Python carry the bytes again; it takes what is to be sent by itself.
    pub(crate) fn detach(&self, reactor: &Bound<'_, Carrier>, wake: Py<PyAny>) {
        let replaced = std::mem::replace(&mut *lock(&self.carrier), CarriedBy::Loop(wake));
        if let CarriedBy::Reactor(_, id) = &replaced {
            Carrier::detach(reactor, *id);
        }
        drop(replaced);
        self.is_unsent.store(false, Ordering::Release);
    }

    pub(crate) fn traverse(&self, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
        // A lock that is taken means that the connection is in use: no garbage.
        match self.carrier.try_lock().as_deref() {
            Ok(CarriedBy::Loop(wake)) => visit.call(wake),
            _ => Ok(()),
        }
    }
}
