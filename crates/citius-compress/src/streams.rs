//! What becomes of an application's actions: per connection, request by request.
//!
//! A streamed response is compressed in steps of [`STEP_BYTES`]. What goes beyond one, most often a file,
//! waits here with all that follows it; [`Streams::go_on`] takes the next step, when the connection has
//! room. So neither a turn nor the memory of a connection grows with what an application sends at once.

use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use bytes::Bytes;
use citius_http::coding::{Accepted, Coding};
use citius_http::{
    Action, Declared, Fault, Fields, FileRange, Head, Limits, Method, Payload, ResponseHead,
};

use crate::encoder::{Encoder, Levels};
use crate::policy::{Policy, coded_fields, is_of_coded};

/// Bytes of one response that are compressed in one go: about two milliseconds.
const STEP_BYTES: usize = 128 * 1024;

/// The compression of one reactor.
#[derive(Clone, Debug)]
pub struct Compressor {
    policy: Arc<Policy>,
    limits: Limits,
    /// Streams that are being compressed.
    n_streams: Arc<AtomicU32>,
}

/// The requests of one connection whose responses may be compressed.
#[derive(Debug, Default)]
pub struct Streams(Vec<Entry>);

#[derive(Debug)]
struct Entry {
    stream: u32,
    /// What the client would like best.
    coding: Option<Coding>,
    levels: Levels,
    head_only: bool,
    running: Option<Running>,
}

/// A streamed response.
struct Running {
    encoder: Encoder,
    /// Counts what the application sends: the protocol below sees the coded length only.
    due: Declared,
    /// What it has sent and the encoder has not been given yet.
    rest: VecDeque<Rest>,
    /// The trailers that follow that.
    end: Option<Fields>,
    _place: Place,
}

enum Rest {
    Bytes(Bytes),
    File(FileRange),
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

    /// The next bytes of a file: a bounded number, and at least one.
    ///
    /// # Errors
    /// They cannot be read: the response is cut.
    fn read(&mut self, range: &FileRange) -> std::io::Result<Vec<u8>>;
}

impl Compressor {
    /// Compression as `policy` says, as much as `limits` allow.
    pub fn new(policy: Policy, limits: Limits) -> Self {
        Self {
            policy: Arc::new(policy),
            limits,
            n_streams: Arc::default(),
        }
    }

    /// A request has come: remembers what its client accepts.
    pub fn begin(&self, streams: &mut Streams, stream: u32, head: &Head) {
        streams.0.push(Entry {
            stream,
            coding: Accepted::of(head).choose(self.policy.codings.iter().copied()),
            levels: self.policy.levels,
            head_only: head.method == Method::Head,
            running: None,
        });
    }

    /// Does what the application wants for `stream`, compressed if that is worth it.
    ///
    /// # Errors
    /// Those of `sink`; [`Fault::ResponseLength`] if a streamed body is not as long as announced.
    pub fn send(
        &self,
        streams: &mut Streams,
        stream: u32,
        action: Action<'_>,
        sink: &mut impl Sink,
    ) -> Result<(), Fault> {
        let Some(at) = streams.0.iter().position(|entry| entry.stream == stream) else {
            return sink.send(action);
        };
        match action {
            Action::Inform(_) => sink.send(action),
            Action::Abort | Action::Switch { .. } => {
                streams.0.swap_remove(at);
                sink.send(action)
            }
            Action::Respond(response, payload) => {
                let entry = streams.0.swap_remove(at);
                self.respond(&entry, response, payload, sink)
            }
            Action::Start(response) => {
                let Some(entry) = streams.0.get_mut(at) else {
                    return sink.send(action);
                };
                let outcome = self.start(entry, response, sink);
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
            Action::End { trailers } => {
                if let Some(Running { rest, end, .. }) = &mut streams.0[at].running
                    && !rest.is_empty()
                {
                    *end = Some(trailers.clone());
                    return Ok(());
                }
                match streams.0.swap_remove(at).running {
                    Some(running) => running.end(trailers, sink),
                    None => sink.send(action),
                }
            }
        }
    }

    fn respond(
        &self,
        entry: &Entry,
        response: ResponseHead<'_>,
        payload: Payload<'_>,
        sink: &mut impl Sink,
    ) -> Result<(), Fault> {
        let bytes: &[u8] = match &payload {
            Payload::Copied(bytes) => bytes,
            Payload::Shared(bytes) => bytes,
            // The kernel sends files with `sendfile`, which is faster than compressing them.
            Payload::File(_) => return sink.send(Action::Respond(response, payload)),
        };
        if is_of_coded(&response) {
            let fields = coded_fields(response.fields, None)?;
            let fields = &fields;
            return sink.send(Action::Respond(
                ResponseHead { fields, ..response },
                payload,
            ));
        }
        let length = bytes.len() as u64;
        let is_announced = response.fields.content_length.is_none_or(|n| n == length);
        if length < u64::from(self.limits.compress_bytes_min)
            || length > u64::from(self.limits.compress_bytes_max)
            || !is_announced
            || !self.policy.may_code(&response)
        {
            return sink.send(Action::Respond(response, payload));
        }
        let coded = entry.coding.and_then(|coding| {
            let mut encoder = Encoder::new(coding, entry.levels, Some(bytes.len())).ok()?;
            encoder.write(bytes).ok()?;
            let coded = encoder.finish().ok()?;
            (coded.len() < bytes.len()).then_some((coding, coded))
        });
        let fields = coded_fields(response.fields, coded.as_ref().map(|(coding, _)| *coding))?;
        let response = ResponseHead {
            fields: &fields,
            ..response
        };
        let payload = coded.map_or(payload, |(_, coded)| Payload::Shared(Bytes::from(coded)));
        sink.send(Action::Respond(response, payload))
    }

    fn start(
        &self,
        entry: &mut Entry,
        response: ResponseHead<'_>,
        sink: &mut impl Sink,
    ) -> Result<(), Fault> {
        if is_of_coded(&response) {
            let fields = coded_fields(response.fields, None)?;
            let fields = &fields;
            return sink.send(Action::Start(ResponseHead { fields, ..response }));
        }
        let announced = response.fields.content_length;
        let is_short = announced.is_some_and(|n| n < u64::from(self.limits.compress_bytes_min));
        if is_short || !self.policy.may_code(&response) {
            return sink.send(Action::Start(response));
        }
        // A response to HEAD has the fields that the response to GET would have.
        let place = Place::take(&self.n_streams, self.limits.compress_streams_max);
        let coding = entry.coding.filter(|_| place.is_some());
        let encoder = coding.and_then(|coding| Encoder::new(coding, entry.levels, None).ok());
        let fields = coded_fields(response.fields, encoder.as_ref().and(coding))?;
        if let (Some(encoder), Some(place), false) = (encoder, place, entry.head_only) {
            entry.running = Some(Running {
                encoder,
                due: Declared::new(announced),
                rest: VecDeque::new(),
                end: None,
                _place: place,
            });
        }
        sink.send(Action::Start(ResponseHead {
            fields: &fields,
            ..response
        }))
    }
}

impl Streams {
    /// The response to `stream` goes out as it is.
    pub fn forget(&mut self, stream: u32) {
        self.0.retain(|entry| entry.stream != stream);
    }

    /// The response to `stream` is compressed at these levels instead of the policy's.
    pub fn set_levels(&mut self, stream: u32, levels: &[(Coding, u8)]) {
        for entry in self.0.iter_mut().filter(|entry| entry.stream == stream) {
            for (coding, level) in levels {
                entry.levels.set(*coding, *level);
            }
        }
    }

    /// Removes the entries of streams that are not open any more.
    pub fn retain(&mut self, is_open: impl Fn(u32) -> bool) {
        self.0.retain(|entry| is_open(entry.stream));
    }

    /// Takes the next step of a response that is [unfinished](Self::is_unfinished).
    ///
    /// # Errors
    /// As for [`Compressor::send`].
    pub fn go_on(&mut self, stream: u32, sink: &mut impl Sink) -> Result<(), Fault> {
        let Some(at) = self.0.iter().position(|entry| entry.stream == stream) else {
            return Ok(());
        };
        let Some(running) = &mut self.0[at].running else {
            return Ok(());
        };
        let outcome = running.step(sink);
        let end = match (&outcome, running.rest.is_empty()) {
            (Ok(()), true) => running.end.take(),
            _ => None,
        };
        match (outcome, end) {
            (Ok(()), None) => Ok(()),
            (Ok(()), Some(trailers)) => match self.0.swap_remove(at).running {
                Some(running) => running.end(&trailers, sink),
                None => Ok(()),
            },
            (Err(fault), _) => {
                self.0.swap_remove(at);
                Err(fault)
            }
        }
    }

    /// Whether something of the response to `stream` waits here for its turn.
    pub fn is_unfinished(&self, stream: u32) -> bool {
        self.unfinished().any(|other| other == stream)
    }

    /// Those of which something does.
    pub fn unfinished(&self) -> impl Iterator<Item = u32> {
        let waits = |entry: &&Entry| entry.running.as_ref().is_some_and(|r| !r.rest.is_empty());
        self.0.iter().filter(waits).map(|entry| entry.stream)
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
    /// Sends a piece in full: a streaming application expects each piece to arrive.
    fn data(&mut self, payload: &Payload<'_>, sink: &mut impl Sink) -> Result<(), Fault> {
        let n_bytes = payload.len();
        if n_bytes == 0 {
            return Ok(());
        }
        if let Err(fault) = self.due.count(n_bytes) {
            return cut(sink, fault);
        }
        let bytes: &[u8] = match payload {
            Payload::Copied(bytes) => bytes,
            Payload::Shared(bytes) => bytes,
            Payload::File(_) => &[],
        };
        if !self.rest.is_empty() || bytes.is_empty() || bytes.len() > STEP_BYTES {
            let is_first = self.rest.is_empty();
            self.rest.push_back(match payload {
                Payload::Copied(bytes) => Rest::Bytes(Bytes::copy_from_slice(bytes)),
                Payload::Shared(bytes) => Rest::Bytes(bytes.clone()),
                Payload::File(range) => Rest::File(range.clone()),
            });
            return if is_first { self.step(sink) } else { Ok(()) };
        }
        let written = self.encoder.write(bytes);
        match written.and_then(|()| self.encoder.flush()) {
            Ok(()) => self.send(sink),
            Err(_) => cut(sink, Fault::HandlerFailed),
        }
    }

    /// Compresses as much of what waits as is done in one go.
    fn step(&mut self, sink: &mut impl Sink) -> Result<(), Fault> {
        let mut done = 0;
        while done < STEP_BYTES
            && let Some(rest) = self.rest.front_mut()
        {
            let (piece, is_over) = match rest {
                Rest::Bytes(bytes) => {
                    let piece = bytes.split_to(bytes.len().min(STEP_BYTES - done));
                    (Ok(piece), bytes.is_empty())
                }
                Rest::File(range) => {
                    let piece = sink.read(range);
                    range.advance(piece.as_ref().map_or(0, Vec::len) as u64);
                    (piece.map(Bytes::from), range.is_empty())
                }
            };
            let written = piece.and_then(|piece| {
                done += piece.len();
                self.encoder.write(&piece)?;
                if is_over {
                    self.encoder.flush()
                } else {
                    Ok(())
                }
            });
            if written.is_err() {
                return cut(sink, Fault::HandlerFailed);
            }
            if is_over {
                self.rest.pop_front();
            }
        }
        self.send(sink)
    }

    fn send(&mut self, sink: &mut impl Sink) -> Result<(), Fault> {
        let coded = Bytes::from(self.encoder.take());
        sink.send(Action::Data(Payload::Shared(coded)))
    }

    fn end(self, trailers: &Fields, sink: &mut impl Sink) -> Result<(), Fault> {
        if let Err(fault) = self.due.complete() {
            return cut(sink, fault);
        }
        match self.encoder.finish() {
            Ok(coded) => sink
                .send(Action::Data(Payload::Shared(Bytes::from(coded))))
                .and_then(|()| sink.send(Action::End { trailers })),
            Err(_) => cut(sink, Fault::HandlerFailed),
        }
    }
}

/// The response cannot go on.
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

#[cfg(test)]
mod tests {
    use std::io::Read;

    use citius_http::Status;
    use citius_http::coding::Coding;

    use super::*;

    /// A connection, and a file whose bytes are their places.
    #[derive(Default)]
    struct Wire {
        body: Vec<u8>,
        is_over: bool,
        /// Bytes read since the test last looked.
        read_bytes: usize,
        fails_at: Option<u64>,
    }

    fn content(offset: u64, count: usize) -> Vec<u8> {
        (offset..)
            .take(count)
            .map(|n| (n / 3).to_le_bytes()[0])
            .collect()
    }

    impl Sink for Wire {
        fn send(&mut self, action: Action<'_>) -> Result<(), Fault> {
            match action {
                Action::Data(Payload::Shared(bytes)) => self.body.extend_from_slice(&bytes),
                Action::Start(_) => {}
                Action::End { .. } | Action::Abort => self.is_over = true,
                action => panic!("unexpected: {action:?}"),
            }
            Ok(())
        }

        fn read(&mut self, range: &FileRange) -> std::io::Result<Vec<u8>> {
            if self.fails_at.is_some_and(|at| range.offset() >= at) {
                return Err(std::io::Error::other("the file has become shorter"));
            }
            let count = range.len().min(50_000) as usize;
            self.read_bytes += count;
            Ok(content(range.offset(), count))
        }
    }

    fn begun(wire: &mut Wire) -> (Compressor, Streams) {
        let policy = Policy {
            codings: vec![Coding::Gzip],
            levels: Levels::default(),
            types: Vec::new(),
        };
        let compressor = Compressor::new(policy, Limits::default());
        let mut streams = Streams(vec![Entry {
            stream: 7,
            coding: Some(Coding::Gzip),
            levels: Levels::default(),
            head_only: false,
            running: None,
        }]);
        let start = Action::Start(ResponseHead {
            status: Status::OK,
            content_type: Some(b"text/plain"),
            fields: &Fields::EMPTY,
        });
        compressor.send(&mut streams, 7, start, wire).unwrap();
        (compressor, streams)
    }

    fn file(length: u64) -> Payload<'static> {
        Payload::File(FileRange::new(Arc::new(()), 0, length))
    }

    #[test]
    fn much_at_once_goes_step_by_step_and_what_follows_waits() {
        let mut wire = Wire::default();
        let (compressor, mut streams) = begun(&mut wire);
        let large = content(1_000_000, 500_000);
        let trailers = Fields::EMPTY;
        for action in [
            Action::Data(Payload::Copied(b"first ")),
            Action::Data(file(1_000_000)),
            Action::Data(Payload::Copied(&large)),
            Action::Data(Payload::Copied(b"last")),
            Action::End {
                trailers: &trailers,
            },
        ] {
            compressor.send(&mut streams, 7, action, &mut wire).unwrap();
        }
        assert_eq!(streams.unfinished().collect::<Vec<_>>(), [7]);
        let mut steps = 0;
        while streams.is_unfinished(7) {
            assert!(!wire.is_over);
            assert!(std::mem::take(&mut wire.read_bytes) < STEP_BYTES + 50_000);
            streams.go_on(7, &mut wire).unwrap();
            steps += 1;
        }
        assert!(wire.is_over && streams.is_empty());
        assert!(steps >= 1_500_000 / (STEP_BYTES + 50_000), "{steps}");
        let mut plain = Vec::new();
        let mut decoder = flate2::read::GzDecoder::new(&wire.body[..]);
        decoder.read_to_end(&mut plain).unwrap();
        let expected = [b"first ", &content(0, 1_500_000)[..], b"last"].concat();
        assert!(plain == expected);
    }

    #[test]
    fn a_304_varies_as_its_200_does() {
        struct Heads(Vec<Vec<u8>>);
        impl Sink for Heads {
            fn send(&mut self, action: Action<'_>) -> Result<(), Fault> {
                if let Action::Respond(head, _) | Action::Start(head) = action {
                    self.0.push(head.fields.lines().to_vec());
                }
                Ok(())
            }

            fn read(&mut self, _: &FileRange) -> std::io::Result<Vec<u8>> {
                unreachable!("there is no file")
            }
        }
        let (compressor, _) = begun(&mut Wire::default());
        for (name, value, expected) in [
            (
                "vary",
                "origin",
                "vary: origin\r\nvary: accept-encoding\r\n",
            ),
            ("vary", "accept-encoding", "vary: accept-encoding\r\n"),
            (
                "cache-control",
                "no-transform",
                "cache-control: no-transform\r\n",
            ),
        ] {
            let mut fields = Fields::default();
            fields.push(name.as_bytes(), value.as_bytes()).unwrap();
            let head = || ResponseHead {
                status: Status::from_const(304),
                content_type: None,
                fields: &fields,
            };
            for coding in [Some(Coding::Gzip), None] {
                let mut sent = Heads(Vec::new());
                for action in [
                    Action::Start(head()),
                    Action::Respond(head(), Payload::Copied(b"")),
                ] {
                    let mut streams = Streams(vec![Entry {
                        stream: 7,
                        coding,
                        levels: Levels::default(),
                        head_only: false,
                        running: None,
                    }]);
                    compressor.send(&mut streams, 7, action, &mut sent).unwrap();
                }
                assert_eq!(sent.0, [expected.as_bytes(); 2]);
            }
        }
    }

    #[test]
    fn a_file_that_ends_too_early_cuts_the_answer() {
        let mut wire = Wire {
            fails_at: Some(300_000),
            ..Wire::default()
        };
        let (compressor, mut streams) = begun(&mut wire);
        let action = Action::Data(file(1_000_000));
        let mut outcome = compressor.send(&mut streams, 7, action, &mut wire);
        while outcome.is_ok() && streams.is_unfinished(7) {
            outcome = streams.go_on(7, &mut wire);
        }
        assert_eq!(outcome, Err(Fault::HandlerFailed));
        assert!(wire.is_over && streams.is_empty());
    }

    #[test]
    fn an_aborted_answer_leaves_nothing_waiting() {
        let mut wire = Wire::default();
        let (compressor, mut streams) = begun(&mut wire);
        for action in [Action::Data(file(1_000_000)), Action::Abort] {
            compressor.send(&mut streams, 7, action, &mut wire).unwrap();
        }
        assert!(wire.is_over && streams.is_empty());
        assert_eq!(compressor.n_streams.load(Ordering::Relaxed), 0);
    }
}
