//! What every connection to another server has, whatever is spoken on it: a carrier of its bytes, TLS, and a listener that is told
//! of it. A protocol is what implements [`Protocol`]; it sees plaintext.

use std::sync::Arc;

use pyo3::IntoPyObjectExt;
use pyo3::PyClass;
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::pyclass::boolean_struct::True;

use super::carrier::Carrier;
use super::tls::{ClientTls, Secured};
use super::transport::Transport;
use crate::upstreams::Carried;

/// The rules of TLS and the name of the server.
pub type TlsArguments<'py> = (Bound<'py, ClientTls>, String);

/// A connection to another server, below its protocol.
pub struct Upstream {
    transport: Transport,
    /// Told what happens: `(kind, value)`.
    listener: Py<PyAny>,
}

/// Why a connection has ended that the server has closed in order.
pub const CLOSED: &str = "the server has closed the connection";

/// What a connection speaks.
pub trait Protocol: PyClass<Frozen = True> + Sync {
    /// What is below the protocol.
    fn upstream(&self) -> &Upstream;

    /// Plaintext has come. `may_step`: coroutines may be stepped here and now.
    fn received(slf: &Bound<'_, Self>, plaintext: &[u8], may_step: bool);

    /// The TLS handshake is done: the hash of the server's certificate (RFC 5929 §4).
    fn secured(_slf: &Bound<'_, Self>, _server_end_point: Vec<u8>) {}

    /// The connection has ended.
    fn ended(slf: &Bound<'_, Self>, why: &str);

    /// The server sends no more. `true`: something may still go to it, and the connection stays until that has left.
    fn finished(_slf: &Bound<'_, Self>) -> bool {
        false
    }

    /// TLS has failed, which ends the connection.
    fn tls_failed(slf: &Bound<'_, Self>, why: String);

    /// TLS is there: the protocol that the server has chosen (RFC 7301).
    fn handshaken(_slf: &Bound<'_, Self>, _protocol: Option<Vec<u8>>) {}

    /// Hands over what is to be sent; from then on it counts as sent.
    fn take_output(&self, py: Python<'_>, take: impl FnOnce(&[u8]));

    /// What it has handed over is on its way, without a lock held.
    fn output_taken(&self, _py: Python<'_>) {}

    /// Whether what has come is to be read before something is sent, because it may say that the server takes nothing more.
    fn looks_first(&self) -> bool {
        false
    }

    /// Whether more bytes are wanted now; [`Upstream::note_unsent`] says that it has changed.
    fn wants_input(&self) -> bool {
        true
    }

    /// Whether there is something to be sent.
    fn has_output(&self) -> bool;

    /// Whether all was handed over, and nothing will follow: the server is told so, and may go on sending.
    fn has_sent_all(&self) -> bool {
        false
    }
}

impl Upstream {
    /// Python carries the bytes at first: `wake` is called when there is something to send.
    pub fn new(
        listener: Py<PyAny>,
        wake: Py<PyAny>,
        tls: Option<TlsArguments<'_>>,
    ) -> PyResult<Self> {
        let secured = tls.map(|(tls, server_name)| Secured::new(&tls, &server_name));
        Ok(Self {
            transport: Transport::new(wake, secured.transpose()?),
            listener,
        })
    }

    /// Bytes have come.
    #[inline]
    pub fn receive<P: Protocol>(slf: &Bound<'_, P>, bytes: &[u8], may_step: bool) {
        let transport = &slf.get().upstream().transport;
        let Some(opened) = transport.open(slf.py(), bytes) else {
            return P::received(slf, bytes, may_step);
        };
        if let Some(secured) = opened.secured {
            if let Some(hash) = secured.server_end_point {
                P::secured(slf, hash);
            }
            P::handshaken(slf, secured.protocol);
        }
        if !opened.plaintext.is_empty() {
            P::received(slf, &opened.plaintext, may_step);
        }
        if let Some(failure) = opened.failure {
            P::tls_failed(slf, failure);
        }
        if opened.is_ended && !P::finished(slf) {
            P::ended(slf, CLOSED);
        }
    }

    /// Appends what is to be sent; whether nothing follows it.
    pub fn take_output<P: Protocol>(py: Python<'_>, connection: &P, bytes: &mut Vec<u8>) -> bool {
        let transport = &connection.upstream().transport;
        transport.begin_taking();
        let mut is_taken = false;
        connection.take_output(py, |output| {
            is_taken = true;
            transport.seal(output, bytes);
        });
        if !is_taken {
            // The protocol is at work and says later what it has to send; TLS may have something.
            transport.seal(&[], bytes);
        }
        let is_last = connection.has_sent_all();
        if is_last {
            transport.seal_end(bytes);
        }
        connection.output_taken(py);
        is_last
    }

    /// Takes back what the carrier has not sent; it leaves first.
    pub(crate) fn put_back(&self, py: Python<'_>, bytes: &[u8]) {
        if !bytes.is_empty() {
            self.transport.put_back(bytes);
            self.note_unsent(py);
        }
    }

    /// Has the carrier take what is to be sent.
    #[inline]
    pub fn note_unsent(&self, py: Python<'_>) {
        self.transport.note_unsent(py);
    }

    /// Whether an end now is one that TLS has not announced.
    pub fn is_cut(&self) -> bool {
        self.transport.is_cut()
    }

    /// Whether something waits that has not left: what is added leaves with it.
    pub fn is_unsent(&self) -> bool {
        self.transport.is_unsent()
    }

    /// Has a reactor carry the bytes of the socket `fd`.
    pub fn attach<P: Protocol>(
        slf: &Bound<'_, P>,
        reactor: &Bound<'_, Carrier>,
        fd: i32,
    ) -> PyResult<()> {
        let carried = Arc::new(Carrying(slf.clone().unbind()));
        slf.get().upstream().transport.attach(carried, reactor, fd)
    }

    /// Has Python carry the bytes again: `wake` is called when there is something to send, and at once if there is.
    pub fn detach<P: Protocol>(slf: &Bound<'_, P>, reactor: &Bound<'_, Carrier>, wake: Py<PyAny>) {
        let connection = slf.get();
        let transport = &connection.upstream().transport;
        transport.detach(reactor, wake);
        if connection.has_output() || transport.has_output() {
            transport.note_unsent(slf.py());
        }
    }

    /// Tells the listener.
    pub fn tell(&self, py: Python<'_>, kind: &str, value: impl for<'py> IntoPyObject<'py>) {
        let told = value
            .into_py_any(py)
            .and_then(|value| self.listener.call1(py, (kind, value)));
        if let Err(error) = told {
            error.write_unraisable(py, None);
        }
    }

    /// Visits the Python objects in it.
    pub fn traverse(&self, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.listener)?;
        self.transport.traverse(visit)
    }
}

/// A connection as the reactor knows it.
struct Carrying<P>(Py<P>);

impl<P: Protocol> Carried for Carrying<P> {
    fn on_bytes(&self, py: Python<'_>, bytes: &[u8], may_step: bool) {
        Upstream::receive(self.0.bind(py), bytes, may_step);
    }

    fn on_end(&self, py: Python<'_>, why: &str) {
        P::ended(self.0.bind(py), why);
    }

    fn on_finished(&self, py: Python<'_>) -> bool {
        P::finished(self.0.bind(py))
    }

    fn take_output(&self, py: Python<'_>, bytes: &mut Vec<u8>) -> bool {
        Upstream::take_output(py, self.0.get(), bytes)
    }

    fn looks_first(&self) -> bool {
        self.0.get().looks_first()
    }

    fn wants_input(&self) -> bool {
        self.0.get().wants_input()
    }

    fn put_back(&self, py: Python<'_>, bytes: &[u8]) {
        self.0.get().upstream().put_back(py, bytes);
    }
}
