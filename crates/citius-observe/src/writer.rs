//! The way of finished lines to their file: a queue with a bound, and a thread that writes.
//!
//! The reactor's thread never waits for a disk or for the reader of a pipe. It hands over what a turn has
//! produced in one piece; if the queue has no room for it, because the thread is stuck in a write, the
//! piece is dropped and its lines are counted. The thread wakes up for the first piece and then looks
//! every few milliseconds while there is more, so that a busy reactor makes no system calls for it.
//!
//! What is written at once are whole lines: into a file in one call, into a pipe in calls that POSIX
//! keeps apart from those of other processes ([`PIPE_BYTES`]).

use std::fmt::Display;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::sink::Sink;
use crate::system::{is_stream, write};

/// Bytes that may wait for the file; more are dropped.
pub const QUEUE_BYTES_MAX: usize = 1024 * 1024;
/// Bytes of one turn that are handed over before it ends.
pub const BATCH_BYTES_MAX: usize = 64 * 1024;
/// Bytes of one write to a pipe that are not mixed with others' (`PIPE_BUF`).
const PIPE_BYTES: usize = 4096;
/// How long the thread collects lines before it writes again.
const PAUSE: Duration = Duration::from_millis(10);

const _: () = assert!(
    BATCH_BYTES_MAX < QUEUE_BYTES_MAX,
    "a turn fits an empty queue"
);

/// The near end of the queue.
#[derive(Debug)]
pub struct Lines {
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
    /// The thread waits here for lines; `close` waits here for the thread.
    changed: Condvar,
    dropped: AtomicU64,
}

#[derive(Debug, Default)]
struct State {
    pending: Vec<u8>,
    /// The thread sleeps until it is notified.
    is_asleep: bool,
    is_closing: bool,
    is_finished: bool,
    error: Option<String>,
}

impl Lines {
    /// Starts the thread.
    ///
    /// # Errors
    /// There is no thread to be had.
    pub fn open(sink: Sink) -> io::Result<Self> {
        let shared = Arc::new(Shared::default());
        let far = Arc::clone(&shared);
        std::thread::Builder::new()
            .name("citius-log".into())
            .spawn(move || far.write_all(&sink))?;
        Ok(Self { shared })
    }

    /// Hands over whole lines, `n_lines` of them, and empties `batch`.
    pub fn push(&self, batch: &mut Vec<u8>, n_lines: u64) {
        let mut state = self.shared.lock();
        if state.is_finished || state.pending.len() + batch.len() > QUEUE_BYTES_MAX {
            drop(state);
            self.shared.dropped.fetch_add(n_lines, Ordering::Relaxed);
            return batch.clear();
        }
        if state.pending.is_empty() {
            std::mem::swap(&mut state.pending, batch);
        } else {
            state.pending.append(batch);
        }
        let wakes = std::mem::take(&mut state.is_asleep);
        drop(state);
        if wakes {
            self.shared.changed.notify_all();
        }
    }

    /// Lines that never reached the file.
    pub fn dropped(&self) -> u64 {
        self.shared.dropped.load(Ordering::Relaxed)
    }

    /// What went wrong last, told once.
    pub fn take_error(&self) -> Option<String> {
        self.shared.lock().error.take()
    }

    /// Ends the thread when everything is written; `false` if that took longer than `patience`.
    pub fn close(&self, patience: Duration) -> bool {
        let mut state = self.shared.lock();
        state.is_closing = true;
        state.is_asleep = false;
        self.shared.changed.notify_all();
        let (state, _) = self
            .shared
            .changed
            .wait_timeout_while(state, patience, |state| !state.is_finished)
            .unwrap_or_else(PoisonError::into_inner);
        state.is_finished
    }
}

impl Drop for Lines {
    fn drop(&mut self) {
        // The thread ends by itself; waiting for a sink that may be stuck could take forever.
        self.close(Duration::ZERO);
    }
}

impl Shared {
    /// What is guarded is whole after every statement, so a poisoned lock is used as it is.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The thread.
    fn write_all(&self, sink: &Sink) {
        let mut lines = Vec::new();
        let mut is_torn = false;
        while self.wait(&mut lines) {
            self.write(sink, &lines, &mut is_torn);
        }
        self.lock().is_finished = true;
        self.changed.notify_all();
    }

    /// Waits for lines and takes them; `false` when there will be none.
    fn wait(&self, lines: &mut Vec<u8>) -> bool {
        let had_lines = !lines.is_empty();
        lines.clear();
        let mut state = self.lock();
        if had_lines && !state.is_closing {
            // More lines will follow: collect them instead of waking up for each.
            let waited = self.changed.wait_timeout(state, PAUSE);
            (state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        }
        while state.pending.is_empty() {
            if state.is_closing {
                return false;
            }
            state.is_asleep = true;
            state = self
                .changed
                .wait_while(state, |state| state.is_asleep)
                .unwrap_or_else(PoisonError::into_inner);
        }
        std::mem::swap(&mut state.pending, lines);
        true
    }

    /// Writes lines; `is_torn` says that the last one that was begun has no end yet, as on a disk that was full.
    fn write(&self, sink: &Sink, lines: &[u8], is_torn: &mut bool) {
        let must_end = || self.lock().is_closing;
        if *is_torn {
            if let Err(error) = write(sink, &mut &b"\n"[..], must_end) {
                return self.lose(lines, &error);
            }
            *is_torn = false;
        }
        let piece_bytes = if is_stream(sink) {
            PIPE_BYTES
        } else {
            usize::MAX
        };
        let mut rest = lines;
        while !rest.is_empty() {
            let (piece, behind) = rest.split_at(whole_lines(rest, piece_bytes));
            let mut left = piece;
            if let Err(error) = write(sink, &mut left, must_end) {
                let (written, lost) = rest.split_at(piece.len() - left.len());
                *is_torn = written.last().is_some_and(|&byte| byte != b'\n');
                return self.lose(lost, &error);
            }
            rest = behind;
        }
    }

    fn lose(&self, lines: &[u8], error: &impl Display) {
        let lost = lines.split(|&byte| byte == b'\n').count() - 1;
        self.dropped.fetch_add(lost as u64, Ordering::Relaxed);
        self.lock().error = Some(format!("cannot write the access log: {error}"));
    }
}

/// Bytes of the lines that fit into `most`; of the first line if not even that fits.
fn whole_lines(lines: &[u8], most: usize) -> usize {
    let end = |&byte: &u8| byte == b'\n';
    if lines.len() <= most {
        return lines.len();
    }
    let fitting = lines[..most].iter().rposition(end);
    fitting
        .or_else(|| lines.iter().position(end))
        .map_or(lines.len(), |at| at + 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read as _;
    use std::os::unix::net::UnixStream;

    const PATIENCE: Duration = Duration::from_secs(10);

    #[test]
    fn everything_that_was_pushed_is_written_before_the_end() {
        let (mut reader, writer) = io::pipe().unwrap();
        let lines = Lines::open(Sink::Open(std::os::fd::OwnedFd::from(writer).into())).unwrap();
        for n in 0..1000 {
            lines.push(&mut format!("line {n}\n").into_bytes(), 1);
        }
        assert!(lines.close(PATIENCE));
        drop(lines);
        let mut text = String::new();
        reader.read_to_string(&mut text).unwrap();
        assert_eq!(text.lines().count(), 1000);
        assert!(text.ends_with("line 999\n"));
    }

    #[test]
    fn a_reader_that_reads_nothing_costs_lines_and_no_time() {
        let (mut reader, writer) = io::pipe().unwrap();
        let lines = Lines::open(Sink::Open(std::os::fd::OwnedFd::from(writer).into())).unwrap();
        let line = [b'x'; 1023].as_slice();
        for _ in 0..4096 {
            lines.push(&mut [line, b"\n"].concat(), 1);
        }
        let dropped = lines.dropped();
        assert!((2000..4096).contains(&dropped), "{dropped}");
        assert!(!lines.close(Duration::from_millis(1)));
        let mut kept = vec![0; 1024 * (4096 - usize::try_from(dropped).unwrap())];
        reader.read_exact(&mut kept).unwrap();
        assert!(kept.chunks(1024).all(|line| line.ends_with(b"x\n")));
        assert!(lines.close(PATIENCE));
    }

    #[test]
    fn a_reader_that_has_gone_is_told_about() {
        let (reader, writer) = io::pipe().unwrap();
        drop(reader);
        let lines = Lines::open(Sink::Open(std::os::fd::OwnedFd::from(writer).into())).unwrap();
        lines.push(&mut b"one\ntwo\n".to_vec(), 2);
        assert!(lines.close(PATIENCE));
        assert_eq!(lines.dropped(), 2);
        assert!(lines.take_error().unwrap().contains("cannot write"));
        assert_eq!(lines.take_error(), None);
    }

    #[test]
    fn a_line_that_was_broken_off_gets_its_end_before_the_next() {
        // scale S13: half a line on a full disk, and the next one behind it.
        let (mut reader, writer) = UnixStream::pair().unwrap();
        writer.set_nonblocking(true).unwrap();
        let sink = Sink::Open(std::os::fd::OwnedFd::from(writer).into());
        let shared = Shared::default();
        shared.lock().is_closing = true; // it gives up on a full descriptor
        let (long, mut is_torn) = (vec![b'x'; 4 * 1024 * 1024], false);
        shared.write(&sink, &[&long, &b"\nlost\n"[..]].concat(), &mut is_torn);
        assert!(is_torn);
        assert_eq!(shared.dropped.load(Ordering::Relaxed), 2);
        let mut drained = Vec::new();
        reader.set_nonblocking(true).unwrap();
        let _full = reader.read_to_end(&mut drained);
        shared.write(&sink, b"next\n", &mut is_torn);
        assert!(!is_torn);
        drained.clear();
        let _empty = reader.read_to_end(&mut drained);
        assert_eq!(drained, b"\nnext\n");
    }

    #[test]
    fn pieces_are_whole_lines() {
        assert_eq!(whole_lines(b"ab\ncd\nef\n", 7), 6);
        assert_eq!(whole_lines(b"ab\ncd\n", 100), 6);
        assert_eq!(whole_lines(b"abcdefgh\ni\n", 4), 9);
        assert_eq!(whole_lines(b"abc", 2), 3);
    }
}
