//! The content of a response that is read while it comes.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::sync::Mutex;

use citius_base::progress::Sleeper;
use citius_base::sync::lock;

use super::errors::Failure;
use super::head::Pairs;

/// Bytes of content that wait for a reader; with more the connection is not read, or the stream's window is not opened again.
pub(crate) const WAITING_BYTES_MAX: usize = 256 * 1024;

/// Bytes from which on a piece is put into memory that is kept.
const LARGE_BYTES: usize = PIECE_BYTES / 2;

/// Bytes of a piece that is kept: what one read of a connection gives at most.
const PIECE_BYTES: usize = 64 * 1024;

/// Pieces that a thread keeps.
const PIECES_KEPT_MAX: usize = 16;

thread_local! {
    /// Memory of pieces that have been sent. The allocator would give it back to the kernel after each turn, and the kernel would clear
    /// each of its pages for the next turn: with that, to pass a megabyte on took 1 312 us of CPU time instead of 824.
    static SPARE: RefCell<Vec<Vec<u8>>> = const { RefCell::new(Vec::new()) };
}

/// Memory for a large piece.
fn spare() -> Vec<u8> {
    let kept = SPARE.try_with(|spare| spare.borrow_mut().pop());
    kept.ok()
        .flatten()
        .unwrap_or_else(|| Vec::with_capacity(PIECE_BYTES))
}

/// Bytes that a reader has taken together. When they are dropped, their memory serves another piece.
pub(crate) struct Piece(Vec<u8>);

impl AsRef<[u8]> for Piece {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

impl Drop for Piece {
    fn drop(&mut self) {
        if self.0.capacity() != PIECE_BYTES {
            return;
        }
        let mut memory = std::mem::take(&mut self.0);
        memory.clear();
        // A thread that ends keeps nothing.
        let _ = SPARE.try_with(|spare| {
            let mut spare = spare.borrow_mut();
            if spare.len() < PIECES_KEPT_MAX {
                spare.push(memory);
            }
        });
    }
}

/// Content between a connection and its reader.
#[derive(Default)]
pub(crate) struct Incoming(Mutex<State>);

#[derive(Default)]
struct State {
    pieces: VecDeque<Vec<u8>>,
    waiting_bytes: usize,
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

impl State {
    fn is_full(&self) -> bool {
        self.waiting_bytes >= WAITING_BYTES_MAX
    }

    /// Small pieces are put together; those of a whole read stay apart, so that none is moved when it grows.
    fn append(&mut self, data: &[u8]) {
        self.waiting_bytes += data.len();
        match self.pieces.back_mut() {
            Some(last) if last.len() + data.len() <= PIECE_BYTES => last.extend_from_slice(data),
            _ if data.len() >= LARGE_BYTES => {
                let mut piece = spare();
                piece.extend_from_slice(data);
                self.pieces.push_back(piece);
            }
            _ => self.pieces.push_back(data.to_vec()),
        }
    }
}

/// Content that has been taken.
pub(crate) struct Taken {
    pub(crate) piece: Piece,
    /// No more was read of the connection, and now there is room.
    pub(crate) reopens: bool,
}

/// What a reader finds.
pub(crate) enum Found {
    Data(Taken),
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
            state.append(data);
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
        if let Some(piece) = state.pieces.pop_front() {
            let was_full = state.is_full();
            state.waiting_bytes -= piece.len();
            let reopens = was_full && !state.is_full();
            let piece = Piece(piece);
            return Found::Data(Taken { piece, reopens });
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
        is_whole.then(|| {
            let bytes = std::mem::take(&mut state.waiting_bytes);
            let mut whole = state.pieces.pop_front().unwrap_or_default();
            whole.reserve_exact(bytes - whole.len());
            for piece in state.pieces.drain(..).map(Piece) {
                whole.extend_from_slice(piece.as_ref());
            }
            whole
        })
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
        lock(&self.0).is_full()
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
        state.pieces = VecDeque::new();
        state.waiting_bytes = 0;
        state.waits_since_ms = None;
        state.sleeper.take()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn take(incoming: &Incoming) -> Taken {
        match incoming.take() {
            Found::Data(taken) => taken,
            _ => panic!("nothing has come"),
        }
    }

    fn pass(incoming: &Incoming, size: usize) -> Piece {
        assert!(incoming.push(&vec![b'a'; size]).is_none());
        take(incoming).piece
    }

    #[test]
    fn memory_of_a_large_piece_serves_the_next() {
        let incoming = Incoming::default();
        let first = pass(&incoming, PIECE_BYTES);
        let at = first.as_ref().as_ptr();
        drop(first);
        let second = pass(&incoming, LARGE_BYTES);
        assert_eq!(
            (second.as_ref().as_ptr(), second.as_ref().len()),
            (at, LARGE_BYTES)
        );
        let third = pass(&incoming, PIECE_BYTES);
        assert_ne!(third.as_ref().as_ptr(), at, "the second is not dropped yet");
    }

    #[test]
    fn what_is_kept_is_bounded_and_of_one_size() {
        let incoming = Incoming::default();
        drop(pass(&incoming, LARGE_BYTES - 1));
        drop(pass(&incoming, PIECE_BYTES + 1));
        assert!(SPARE.with_borrow(Vec::is_empty));
        let pieces: Vec<_> = (0..2 * PIECES_KEPT_MAX)
            .map(|_| pass(&incoming, PIECE_BYTES))
            .collect();
        drop(pieces);
        let kept: Vec<_> =
            SPARE.with_borrow(|spare| spare.iter().map(|it| (it.len(), it.capacity())).collect());
        assert_eq!(kept, vec![(0, PIECE_BYTES); PIECES_KEPT_MAX]);
    }

    #[test]
    fn bytes_keep_their_order_and_each_way_of_taking_them_gives_all() {
        let sizes = [
            1,
            20,
            LARGE_BYTES - 1,
            LARGE_BYTES,
            3,
            PIECE_BYTES,
            7,
            40_000,
            PIECE_BYTES - 1,
            1,
        ];
        for at_once in [false, true] {
            let incoming = Incoming::default();
            let (mut sent, mut got) = (Vec::new(), Vec::new());
            for (at, size) in sizes.into_iter().enumerate() {
                let data: Vec<u8> = (0..=u8::MAX).cycle().skip(at).take(size).collect();
                assert!(incoming.push(&data).is_none());
                sent.extend_from_slice(&data);
                if !at_once && at % 3 == 2 {
                    got.extend_from_slice(take(&incoming).piece.as_ref());
                }
            }
            if at_once {
                assert!(incoming.end(Pairs::new()).is_none());
                got = incoming.take_whole().unwrap_or_default();
            }
            while let Found::Data(taken) = incoming.take() {
                got.extend_from_slice(taken.piece.as_ref());
            }
            assert!(got == sent, "{at_once}");
        }
    }

    #[test]
    fn the_connection_is_read_again_once_there_is_room() {
        let incoming = Incoming::default();
        let pieces = WAITING_BYTES_MAX / PIECE_BYTES;
        for _ in 0..2 {
            for _ in 0..=pieces {
                assert!(incoming.push(&vec![b'a'; PIECE_BYTES]).is_none());
            }
            assert!(incoming.is_full());
            let told: Vec<_> = (0..=pieces).map(|_| take(&incoming).reopens).collect();
            assert_eq!(told.iter().filter(|&&it| it).count(), 1);
            assert!(told[1], "one piece more than there may be had come");
            assert!(!incoming.is_full());
        }
    }
}
