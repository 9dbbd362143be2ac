//! What a handler in a goroutine and the reactor tell each other of one exchange: pieces of the body, room to write.
//!
//! The goroutine waits for a token on a channel that each event puts there, so that its waits end with its context as all others do.
//! What it sends goes through the mailbox. Tests: `tests/goroutines/test_streams.py`.

use std::ffi::c_int;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use citius_base::reactor_handle::ReactorHandle;
use citius_base::sync::{Flag, lock};
use citius_http::{Fields, Payload, Status};
use citius_native::chan::receive_value;
use citius_native::wait::Until;
use citius_native::{Channel, Element, Format, Packed, Value};
use citius_reactor::{ResponseAction, StreamCommand, StreamId};

/// One exchange.
pub(crate) struct ClientStream {
    handle: Arc<ReactorHandle>,
    id: StreamId,
    /// Has a token if there has been an event since the goroutine looked last.
    events: Channel,
    body: Mutex<Body>,
    /// Bytes sent since there was room last.
    unsent_bytes: AtomicUsize,
    is_writable: Flag,
}

#[derive(Default)]
struct Body {
    bytes: Vec<u8>,
    /// Of `bytes`, so many have been read.
    read: usize,
    has_ended: bool,
}

impl ClientStream {
    /// `body`: what has come of it, which is all if `has_ended`.
    pub(super) fn new(handle: &Arc<ReactorHandle>, id: StreamId, has_ended: bool) -> Arc<Self> {
        Arc::new(Self {
            handle: Arc::clone(handle),
            id,
            events: Channel::new(1, Element::fixed(0, Format::Unit)),
            body: Mutex::new(Body {
                has_ended,
                ..Body::default()
            }),
            unsent_bytes: AtomicUsize::new(0),
            is_writable: Flag::default(),
        })
    }

    fn notify(&self) {
        // One that is there already says the same.
        let _ = self.events.try_send(Value::Packed(Packed::default()));
    }

    /// A piece of the body has come.
    pub(crate) fn push(&self, bytes: &[u8]) {
        lock(&self.body).bytes.extend_from_slice(bytes);
        self.notify();
    }

    /// The body is complete.
    pub(crate) fn end(&self) {
        lock(&self.body).has_ended = true;
        self.notify();
    }

    /// There is room to write.
    pub(crate) fn has_room(&self) {
        self.unsent_bytes.store(0, Ordering::Release);
        self.is_writable.set();
        self.notify();
    }

    fn post(&self, command: StreamCommand) {
        if self.handle.mailbox.post(self.id, command) {
            self.handle.mailbox.wake();
        }
    }

    /// Copies the next bytes of the body to `place`, and waits for them; how many, 0 at its end.
    pub(crate) fn read(&self, place: &mut [u8]) -> Result<usize, c_int> {
        loop {
            {
                let mut body = lock(&self.body);
                let left = body.bytes.len() - body.read;
                let count = left.min(place.len());
                if count > 0 {
                    let from = body.read;
                    place[..count].copy_from_slice(&body.bytes[from..from + count]);
                    body.read += count;
                    let is_all = body.read == body.bytes.len();
                    if is_all {
                        body.bytes.clear();
                        body.read = 0;
                    }
                    let is_open = !body.has_ended;
                    drop(body);
                    if is_open {
                        self.post(StreamCommand::Want(count as u64));
                    }
                    return Ok(count);
                }
                if body.has_ended || place.is_empty() {
                    return Ok(0);
                }
            }
            receive_value(&self.events, Until::Forever)?;
        }
    }

    /// Begins the response.
    pub(crate) fn start(&self, status: Status, content_type: Option<Bytes>, fields: Fields) {
        self.post(StreamCommand::Act(ResponseAction::Start {
            status,
            content_type,
            fields,
        }));
    }

    /// Sends a piece of it, and waits for room if the client is slow.
    pub(crate) fn send(&self, bytes: Bytes) -> Result<(), c_int> {
        let size = bytes.len();
        if size == 0 {
            return Ok(());
        }
        self.post(StreamCommand::Act(ResponseAction::Data(Payload::Shared(
            bytes,
        ))));
        let unsent = self.unsent_bytes.fetch_add(size, Ordering::AcqRel) + size;
        if unsent < self.handle.limits.write_queue_bytes_max as usize {
            return Ok(());
        }
        self.is_writable.clear();
        self.post(StreamCommand::AwaitWritable);
        while !self.is_writable.is_set() {
            receive_value(&self.events, Until::Forever)?;
        }
        Ok(())
    }
}
