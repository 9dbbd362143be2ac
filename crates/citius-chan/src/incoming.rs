//! Content that is read while it comes: bytes in, pieces out, and who is to be woken.
//!
//! Nothing here waits or wakes. The lock is never held while foreign code can run: what is replaced is returned.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Names and values of the fields of a trailer section.
pub type Trailers = Vec<(Vec<u8>, Vec<u8>)>;

/// Bytes of content that wait for a reader; with more the connection is not read, or the stream's window is not opened again.
pub const WAITING_BYTES_MAX: usize = 256 * 1024;

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
pub struct Piece(Vec<u8>);

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

/// Content between a connection and its reader: `S` is what waits for it, `F` why the rest may not come.
pub struct Incoming<S, F>(Mutex<State<S, F>>);

struct State<S, F> {
    pieces: VecDeque<Vec<u8>>,
    waiting_bytes: usize,
    end: Option<Result<(), F>>,
    /// The server sends no more in a tunnel that it still takes bytes from, and the reader does not know yet.
    output_end: bool,
    trailers: Trailers,
    sleeper: Option<S>,
    /// Since when the reader waits.
    waits_since_ms: Option<u64>,
    /// No code reads it any more.
    is_left: bool,
}

impl<S, F> Default for Incoming<S, F> {
    fn default() -> Self {
        Self(Mutex::new(State {
            pieces: VecDeque::new(),
            waiting_bytes: 0,
            end: None,
            output_end: false,
            trailers: Trailers::new(),
            sleeper: None,
            waits_since_ms: None,
            is_left: false,
        }))
    }
}

impl<S, F> State<S, F> {
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
pub struct Taken {
    /// Its bytes.
    pub piece: Piece,
    /// No more was read of the connection, and now there is room.
    pub reopens: bool,
}

/// What a reader finds.
pub enum Found<F> {
    /// Some of it.
    Data(Taken),
    /// That was all.
    End,
    /// No more comes in a tunnel into which bytes still go; told once.
    OutputEnd,
    /// The rest will not come.
    Failed(F),
    /// Nothing has come since.
    Nothing,
}

impl<S, F: Clone> Incoming<S, F> {
    fn lock(&self) -> MutexGuard<'_, State<S, F>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a piece; returns what is to be woken.
    pub fn push(&self, data: &[u8]) -> Option<S> {
        let mut state = self.lock();
        if !state.is_left {
            state.append(data);
        }
        state.waits_since_ms = None;
        state.sleeper.take()
    }

    /// There is no more.
    pub fn end(&self, trailers: Trailers) -> Option<S> {
        let mut state = self.lock();
        state.trailers = trailers;
        state.end.get_or_insert(Ok(()));
        state.waits_since_ms = None;
        state.sleeper.take()
    }

    /// There is no more in a tunnel into which bytes still go.
    pub fn end_output(&self) -> Option<S> {
        let mut state = self.lock();
        state.output_end = true;
        state.sleeper.take()
    }

    /// The rest will not come.
    pub fn fail(&self, failure: F) -> Option<S> {
        let mut state = self.lock();
        state.end.get_or_insert(Err(failure));
        state.waits_since_ms = None;
        state.sleeper.take()
    }

    /// What has come next.
    pub fn take(&self) -> Found<F> {
        let mut state = self.lock();
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
    pub fn take_whole(&self) -> Option<Vec<u8>> {
        let mut state = self.lock();
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
    ///
    /// # Errors
    /// Something has come: the sleeper is given back.
    pub fn wait(&self, sleeper: S, now_ms: u64) -> Result<Option<S>, S> {
        let mut state = self.lock();
        if !state.pieces.is_empty() || state.end.is_some() || state.output_end {
            return Err(sleeper);
        }
        state.waits_since_ms.get_or_insert(now_ms);
        Ok(state.sleeper.replace(sleeper))
    }

    /// Since when a reader waits.
    pub fn waits_since_ms(&self) -> Option<u64> {
        self.lock().waits_since_ms
    }

    /// The reader waits no longer.
    pub fn stop_waiting(&self) -> Option<S> {
        let mut state = self.lock();
        state.waits_since_ms = None;
        state.sleeper.take()
    }

    /// Whether so much waits that the connection is not read.
    pub fn is_full(&self) -> bool {
        self.lock().is_full()
    }

    /// Whether nothing follows what has come.
    pub fn is_over(&self) -> bool {
        self.lock().end.is_some()
    }

    /// The fields that have followed it.
    pub fn trailers(&self) -> Trailers {
        self.lock().trailers.clone()
    }

    /// No code reads it any more.
    pub fn leave(&self) -> Option<S> {
        let mut state = self.lock();
        state.is_left = true;
        state.pieces = VecDeque::new();
        state.waiting_bytes = 0;
        state.waits_since_ms = None;
        state.sleeper.take()
    }
}

#[cfg(test)]
mod tests {
    use super::{
        Found, LARGE_BYTES, PIECE_BYTES, PIECES_KEPT_MAX, Piece, SPARE, Taken, Trailers,
        WAITING_BYTES_MAX,
    };

    type Incoming = super::Incoming<(), ()>;

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
                assert!(incoming.end(Trailers::new()).is_none());
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
