//! The content of a response that is read while it comes.

use std::sync::Mutex;

use crate::progress::Sleeper;
use crate::sync::lock;

use super::errors::Failure;
use super::head::Pairs;

/// Bytes of content that wait for a reader; with more the connection is not read, or the stream's window is not opened again.
pub(crate) const WAITING_BYTES_MAX: usize = 256 * 1024;

/// Content between a connection and its reader.
#[derive(Default)]
pub(crate) struct Incoming(Mutex<State>);

#[derive(Default)]
struct State {
    pieces: Vec<u8>,
    end: Option<Result<(), Failure>>,
    /// The server sends no more in a tunnel that it still takes bytes from, and the reader does not know yet.
    output_end: bool,
    trailers: Pairs,
    sleeper: Option<Sleeper>,
    /// Since when the reader waits.
    waits_since_ms: Option<u64>,
    /// No code reads it any more.
    is_left: bool,
}

/// What a reader finds.
pub(crate) enum Found {
    Data(Vec<u8>),
    End,
    /// No more comes in a tunnel into which bytes still go; told once.
    OutputEnd,
    Failed(Failure),
    Nothing,
}

impl Incoming {
    /// Takes a piece; returns what is to be woken.
    pub(crate) fn push(&self, data: &[u8]) -> Option<Sleeper> {
        let mut state = lock(&self.0);
        if !state.is_left {
            state.pieces.extend_from_slice(data);
        }
        state.waits_since_ms = None;
        state.sleeper.take()
    }

    /// There is no more.
    pub(crate) fn end(&self, trailers: Pairs) -> Option<Sleeper> {
        let mut state = lock(&self.0);
        state.trailers = trailers;
        state.end.get_or_insert(Ok(()));
        state.waits_since_ms = None;
        state.sleeper.take()
    }

    /// There is no more in a tunnel into which bytes still go.
    pub(crate) fn end_output(&self) -> Option<Sleeper> {
        let mut state = lock(&self.0);
        state.output_end = true;
        state.sleeper.take()
    }

    /// The rest will not come.
    pub(crate) fn fail(&self, failure: Failure) -> Option<Sleeper> {
        let mut state = lock(&self.0);
        state.end.get_or_insert(Err(failure));
        state.waits_since_ms = None;
        state.sleeper.take()
    }

    pub(crate) fn take(&self) -> Found {
        let mut state = lock(&self.0);
        if !state.pieces.is_empty() {
            return Found::Data(std::mem::take(&mut state.pieces));
        }
        match &state.end {
            Some(Ok(())) => Found::End,
            Some(Err(failure)) => Found::Failed(failure.clone()),
            None if state.output_end => {
                state.output_end = false;
                Found::OutputEnd
            }
            None => Found::Nothing,
        }
    }

    /// All of it, if it is complete and nothing follows; it is over then.
    pub(crate) fn take_whole(&self) -> Option<Vec<u8>> {
        let mut state = lock(&self.0);
        let is_whole = matches!(state.end, Some(Ok(()))) && state.trailers.is_empty();
        is_whole.then(|| std::mem::take(&mut state.pieces))
    }

    /// Notes the sleeper to wake, unless something has come meanwhile; the one before is returned, to be dropped outside of locks.
    pub(crate) fn wait(&self, sleeper: Sleeper, now_ms: u64) -> Result<Option<Sleeper>, Sleeper> {
        let mut state = lock(&self.0);
        if !state.pieces.is_empty() || state.end.is_some() || state.output_end {
            return Err(sleeper);
        }
        state.waits_since_ms.get_or_insert(now_ms);
        Ok(state.sleeper.replace(sleeper))
    }

    /// Since when a reader waits.
    pub(crate) fn waits_since_ms(&self) -> Option<u64> {
        lock(&self.0).waits_since_ms
    }

    pub(crate) fn stop_waiting(&self) -> Option<Sleeper> {
        let mut state = lock(&self.0);
        state.waits_since_ms = None;
        state.sleeper.take()
    }

    pub(crate) fn is_full(&self) -> bool {
        lock(&self.0).pieces.len() >= WAITING_BYTES_MAX
    }

    pub(crate) fn is_over(&self) -> bool {
        lock(&self.0).end.is_some()
    }

    pub(crate) fn trailers(&self) -> Pairs {
        lock(&self.0).trailers.clone()
    }

    /// No code reads it any more.
    pub(crate) fn leave(&self) -> Option<Sleeper> {
        let mut state = lock(&self.0);
        state.is_left = true;
        state.pieces = Vec::new();
        state.waits_since_ms = None;
        state.sleeper.take()
    }
}
