//! What becomes of an application's actions: per connection, request by request.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use bytes::Bytes;
use citius_http::coding::{Accepted, Coding};
use citius_http::{Action, Answer, Fault, Fields, Head, Limits, Method, Payload};

use crate::encoder::Encoder;
use crate::policy::{Policy, coded_fields};

/// The compression of one reactor.
#[derive(Clone, Debug)]
pub struct Compressor {
    policy: Arc<Policy>,
    /// Streams that are being compressed.
    n_streams: Arc<AtomicU32>,
}

/// The requests of one connection whose answers may be compressed.
#[derive(Debug, Default)]
pub struct Streams(Vec<Entry>);

#[derive(Debug)]
struct Entry {
    stream: u32,
    /// What the client would like best.
    coding: Option<Coding>,
    head_only: bool,
    running: Option<Running>,
}

/// A streamed answer.
struct Running {
    encoder: Encoder,
    /// Bytes that the application has announced and not sent yet.
    due: Option<u64>,
    _place: Place,
}

impl fmt::Debug for Running {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Running").finish_non_exhaustive()
    }
}

/// Where actions go on to.
pub trait Sink {
    /// Does what the application wants.
    ///
    /// # Errors
    /// A fault to blame the application for.
    fn send(&mut self, action: Action<'_>) -> Result<(), Fault>;

    /// The bytes of a payload that is not in memory; a piece of them at a time goes to `take`.
    ///
    /// # Errors
    /// They cannot be read: the answer is cut.
    fn read(
        &mut self,
        payload: &Payload<'_>,
        take: &mut dyn FnMut(&[u8]) -> std::io::Result<()>,
    ) -> std::io::Result<()>;
}

impl Compressor {
    /// Compression as `policy` says.
    pub fn new(policy: Policy) -> Self {
        Self {
            policy: Arc::new(policy),
            n_streams: Arc::default(),
        }
    }

    /// A request has come: remembers what its client accepts.
    pub fn begin(&self, streams: &mut Streams, stream: u32, head: &Head) {
        streams.0.push(Entry {
            stream,
            coding: Accepted::of(head).choose(self.policy.codings.iter().copied()),
            head_only: head.method == Method::Head,
            running: None,
        });
    }

    /// Does what the application wants for `stream`, compressed if that is worth it.
    ///
    /// # Errors
    /// Those of `sink`; [`Fault::AnswerLength`] if a streamed body is not as long as announced.
    pub fn send(
        &self,
        streams: &mut Streams,
        stream: u32,
        action: Action<'_>,
        limits: &Limits,
        sink: &mut impl Sink,
    ) -> Result<(), Fault> {
        let Some(at) = streams.0.iter().position(|entry| entry.stream == stream) else {
            return sink.send(action);
        };
        match action {
            Action::Inform(_) => sink.send(action),
            Action::Abort => {
                streams.0.swap_remove(at);
                sink.send(action)
            }
            Action::Respond(answer, payload) => {
                let entry = streams.0.swap_remove(at);
                self.respond(&entry, answer, payload, limits, sink)
            }
            Action::Start(answer) => {
                let Some(entry) = streams.0.get_mut(at) else {
                    return sink.send(action);
                };
                let outcome = self.start(entry, answer, limits, sink);
                if outcome.is_err() || entry.running.is_none() {
                    streams.0.swap_remove(at);
                }
                outcome
            }
            Action::Data(ref payload) => {
                let running = streams.0.get_mut(at).and_then(|e| e.running.as_mut());
                let Some(running) = running else {
                    return sink.send(action);
                };
                let outcome = running.data(payload, sink);
                if outcome.is_err() {
                    streams.0.swap_remove(at);
                }
                outcome
            }
            Action::End { trailers } => match streams.0.swap_remove(at).running {
                Some(running) => running.end(trailers, sink),
                None => sink.send(action),
            },
        }
    }

    fn respond(
        &self,
        entry: &Entry,
        answer: Answer<'_>,
        payload: Payload<'_>,
        limits: &Limits,
        sink: &mut impl Sink,
    ) -> Result<(), Fault> {
        let bytes: &[u8] = match &payload {
            Payload::Copied(bytes) => bytes,
            Payload::Shared(bytes) => bytes,
            // The kernel sends it, faster than anybody could compress it.
            Payload::File(_) => return sink.send(Action::Respond(answer, payload)),
        };
        let length = bytes.len() as u64;
        let is_announced = answer.fields.content_length.is_none_or(|n| n == length);
        if length < u64::from(limits.compress_bytes_min)
            || length > u64::from(limits.compress_bytes_max)
            || !is_announced
            || !self.policy.may_code(&answer)
        {
            return sink.send(Action::Respond(answer, payload));
        }
        let coded = entry.coding.and_then(|coding| {
            let mut encoder = Encoder::new(coding, Some(bytes.len())).ok()?;
            encoder.write(bytes).ok()?;
            let coded = encoder.finish().ok()?;
            (coded.len() < bytes.len()).then_some((coding, coded))
        });
        let fields = coded_fields(answer.fields, coded.as_ref().map(|(coding, _)| *coding))?;
        let answer = Answer {
            fields: &fields,
            ..answer
        };
        let payload = coded.map_or(payload, |(_, coded)| Payload::Shared(Bytes::from(coded)));
        sink.send(Action::Respond(answer, payload))
    }

    fn start(
        &self,
        entry: &mut Entry,
        answer: Answer<'_>,
        limits: &Limits,
        sink: &mut impl Sink,
    ) -> Result<(), Fault> {
        let announced = answer.fields.content_length;
        let is_short = announced.is_some_and(|n| n < u64::from(limits.compress_bytes_min));
        if is_short || !self.policy.may_code(&answer) {
            return sink.send(Action::Start(answer));
        }
        // Whoever asks for the head alone learns what the whole would look like.
        let place = Place::take(&self.n_streams, limits.compress_streams_max);
        let coding = entry.coding.filter(|_| place.is_some());
        let encoder = coding.and_then(|coding| Encoder::new(coding, None).ok());
        let fields = coded_fields(answer.fields, encoder.as_ref().and(coding))?;
        if let (Some(encoder), Some(place), false) = (encoder, place, entry.head_only) {
            entry.running = Some(Running {
                encoder,
                due: announced,
                _place: place,
            });
        }
        sink.send(Action::Start(Answer {
            fields: &fields,
            ..answer
        }))
    }
}

impl Streams {
    /// The answer to `stream` goes out as it is.
    pub fn forget(&mut self, stream: u32) {
        self.0.retain(|entry| entry.stream != stream);
    }

    /// Forgets what nobody will answer any more.
    pub fn retain(&mut self, is_open: impl Fn(u32) -> bool) {
        self.0.retain(|entry| is_open(entry.stream));
    }

    /// Number of requests.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl Running {
    /// Sends a piece in full: whoever streams means it to arrive.
    fn data(&mut self, payload: &Payload<'_>, sink: &mut impl Sink) -> Result<(), Fault> {
        let n_bytes = payload.len();
        if n_bytes == 0 {
            return Ok(());
        }
        if let Some(due) = &mut self.due {
            let Some(left) = due.checked_sub(n_bytes) else {
                return cut(sink, Fault::AnswerLength);
            };
            *due = left;
        }
        let encoder = &mut self.encoder;
        let written = match payload {
            Payload::Copied(bytes) => encoder.write(bytes),
            Payload::Shared(bytes) => encoder.write(bytes),
            Payload::File(_) => sink.read(payload, &mut |bytes| encoder.write(bytes)),
        };
        match written.and_then(|()| self.encoder.flush()) {
            Ok(coded) => sink.send(Action::Data(Payload::Shared(Bytes::from(coded)))),
            Err(_) => cut(sink, Fault::HandlerFailed),
        }
    }

    fn end(self, trailers: &Fields, sink: &mut impl Sink) -> Result<(), Fault> {
        if self.due.is_some_and(|due| due > 0) {
            return cut(sink, Fault::AnswerLength);
        }
        match self.encoder.finish() {
            Ok(coded) => sink
                .send(Action::Data(Payload::Shared(Bytes::from(coded))))
                .and_then(|()| sink.send(Action::End { trailers })),
            Err(_) => cut(sink, Fault::HandlerFailed),
        }
    }
}

/// The answer cannot go on.
fn cut(sink: &mut impl Sink, fault: Fault) -> Result<(), Fault> {
    sink.send(Action::Abort)?;
    Err(fault)
}

/// One of the streams that are counted.
struct Place(Arc<AtomicU32>);

impl Place {
    fn take(count: &Arc<AtomicU32>, most: u32) -> Option<Self> {
        let more = |n: u32| (n < most).then_some(n + 1);
        count
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, more)
            .ok()?;
        Some(Self(Arc::clone(count)))
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}
