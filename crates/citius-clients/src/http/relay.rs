//! Content of another server's response that goes to a client as it comes.
//!
//! In: an [`HttpReply`] whose head has been handed over. Out: commands for the client's stream. A [`Relaying`] is what waits for the
//! content once the head is sent: for content or, when the client's queue is full, for room; meanwhile the content waits in
//! [`Incoming`](citius_chan::Incoming), with more of which the other server's connection is not read.
//! Tests: `tests/http/gateway/`.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use bytes::Bytes;
use citius_base::passing::{Inbound, Passing, Relay, Source};
use citius_base::progress::{Sleeper, Wakes};
use citius_base::report::{LEVEL_WARNING, Subject, subject_of};
use citius_chan::{Found, WAITING_BYTES_MAX};
use citius_http::{Fields, Payload};
use citius_reactor::{ResponseAction, StreamCommand, coarse_ms};
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;

use super::errors::Failure;
use super::forward::client_trailers;
use super::reply::HttpReply;

/// The content of a reply, as the body of a `Response`.
#[pyfunction]
pub(super) fn relay(reply: Py<HttpReply>) -> Relay {
    Relay::new(Arc::new(Relayed(reply)))
}

/// A response whose content is to be passed on.
struct Relayed(Py<HttpReply>);

impl Source for Relayed {
    fn is_tunnel(&self) -> bool {
        self.0.get().is_tunnel()
    }

    fn upstream_us(&self) -> Option<u64> {
        self.0.get().upstream_us()
    }

    fn take_whole(&self, py: Python<'_>) -> Option<Vec<u8>> {
        self.0.get().take_whole(py)
    }

    fn leave(&self, py: Python<'_>) {
        self.0.get().leave(py);
    }

    fn passing(&self, py: Python<'_>, inbound: Inbound) -> Arc<dyn Passing> {
        relaying(self.0.bind(py), inbound)
    }

    fn begin(&self, py: Python<'_>, passing: Arc<dyn Passing>) {
        self.0.get().open_tunnel(py);
        passing.has_room(py);
    }

    fn pieces(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        let pieces = py.import("citius.http.gateway.pieces")?.getattr("pieces")?;
        Ok(pieces.call1((self.0.clone_ref(py),))?.unbind())
    }

    fn traverse(&self, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.0)
    }
}

/// What passes the content of a reply on, once it is told that the client has room.
pub(super) fn relaying(reply: &Bound<'_, HttpReply>, inbound: Inbound) -> Arc<dyn Passing> {
    Arc::new(Relaying {
        inbound,
        reply: reply.clone().unbind(),
        sent_bytes: AtomicUsize::new(0),
        ends_output: AtomicBool::new(false),
        is_over: AtomicBool::new(false),
    })
}

/// A response whose head was sent, and whose content follows.
struct Relaying {
    inbound: Inbound,
    reply: Py<HttpReply>,
    /// Bytes since there was room last.
    sent_bytes: AtomicUsize,
    /// The client is told that no more comes in its tunnel when all that was sent has left.
    ends_output: AtomicBool,
    is_over: AtomicBool,
}

impl Relaying {
    /// Passes on what there is, and waits for more.
    fn run(self: &Arc<Self>, py: Python<'_>) {
        let Some(streamed) = &self.reply.get().streamed else {
            return;
        };
        while !self.is_over.load(Ordering::Relaxed) {
            match streamed.incoming.take() {
                Found::Data(data) => {
                    let size = data.piece.as_ref().len();
                    let payload = Payload::Shared(Bytes::from_owner(data.piece));
                    self.act(py, ResponseAction::Data(payload));
                    streamed.note_read(py, size, data.reopens);
                    if self.count(size) {
                        return self.inbound.post(py, StreamCommand::AwaitWritable);
                    }
                }
                Found::End => {
                    let trailers = client_trailers(&streamed.incoming.trailers());
                    self.finish(py, ResponseAction::End(trailers));
                }
                Found::OutputEnd => {
                    self.ends_output.store(true, Ordering::Relaxed);
                    return self.inbound.post(py, StreamCommand::AwaitWritable);
                }
                // What a tunnel carries knows by itself whether it is complete.
                Found::Failed(_) if streamed.is_tunnel() => {
                    self.finish(py, ResponseAction::End(Fields::EMPTY));
                }
                Found::Failed(failure) => self.cut(py, &failure),
                Found::Nothing => {
                    let sleeper = Sleeper::Other(Arc::<Self>::clone(self));
                    if let Ok(before) = streamed.incoming.wait(sleeper, coarse_ms()) {
                        drop(before);
                        return streamed.note_reader(py);
                    }
                }
            }
        }
    }

    /// Counts bytes that are sent; whether no more is sent before there is room.
    fn count(&self, bytes: usize) -> bool {
        let before = self.sent_bytes.fetch_add(bytes, Ordering::Relaxed);
        before + bytes >= WAITING_BYTES_MAX
    }

    fn act(&self, py: Python<'_>, action: ResponseAction) {
        self.inbound.post(py, StreamCommand::Act(action));
    }

    /// The rest will not come.
    #[cold]
    fn cut(&self, py: Python<'_>, failure: &Failure) {
        let what = format!(
            " was cut: {}: {}",
            self.reply.get().origin(),
            failure.message()
        );
        let Inbound { handle, id, .. } = &self.inbound;
        subject_of(py, handle, *id)
            .unwrap_or_else(|| Subject::named(format!("request {}", id.stream)))
            .log(py, handle, LEVEL_WARNING, &what);
        self.finish(py, ResponseAction::Abort);
    }

    fn finish(&self, py: Python<'_>, action: ResponseAction) {
        self.is_over.store(true, Ordering::Relaxed);
        self.act(py, action);
        drop(self.inbound.handle.take(self.inbound.id));
        self.reply.get().leave(py);
    }
}

impl Wakes for Relaying {
    fn wake(self: Arc<Self>, py: Python<'_>) {
        self.run(py);
    }
}

impl Passing for Relaying {
    fn has_room(self: Arc<Self>, py: Python<'_>) {
        self.sent_bytes.store(0, Ordering::Relaxed);
        if self.ends_output.swap(false, Ordering::Relaxed) {
            self.inbound.post(py, StreamCommand::EndOutput);
        }
        self.run(py);
    }

    fn gone(&self, py: Python<'_>) {
        self.is_over.store(true, Ordering::Relaxed);
        self.reply.get().leave(py);
    }
}
