//! Temporary files for what requests bring, written by a thread of their own: a disk may keep a write waiting.
//!
//! In: bytes, from a turn. Out: files without names, which are gone when they are closed. Each write that is done becomes
//! [`StreamCommand::Want`] for as many bytes of the request's body as it has taken, so that what waits for the disk is
//! bounded by the window; when no write of the request is under way, [`StreamCommand::AwaitWritable`] follows. The bytes of all files that
//! are being written are limited, and so is their number: to a quarter of the descriptors of the process ([`Slot`]). The thread starts when it is first needed. Tests: `tests/server/test_uploads.py`.

use std::fs::File;
use std::io::{Error, ErrorKind, Result, Write};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::id::StreamId;
use crate::mailbox::{Mailbox, StreamCommand};
use crate::system::descriptors_max;

/// Writes the temporary files of one reactor.
#[derive(Debug)]
pub struct Spooler {
    mailbox: Arc<Mailbox>,
    jobs: Mutex<Option<Sender<Job>>>,
    /// Bytes of all files that are being written.
    total: Arc<AtomicU64>,
    bytes_max: u64,
    /// Files of all reactors.
    files_max: u64,
}

/// One temporary file that is being written.
#[derive(Debug)]
pub struct Spool {
    shared: Arc<Shared>,
    size: u64,
    total: Arc<AtomicU64>,
    slot: Arc<Slot>,
}

/// Temporary files of all reactors that are open.
static FILES: AtomicU64 = AtomicU64::new(0);

/// Counts a temporary file as long as its descriptor is open: the owner of the file keeps this beside it.
#[derive(Debug)]
pub struct Slot(());

impl Slot {
    fn new() -> Arc<Self> {
        FILES.fetch_add(1, Ordering::Relaxed);
        Arc::new(Self(()))
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        FILES.fetch_sub(1, Ordering::Relaxed);
    }
}

/// The writes of one request that are under way.
#[derive(Clone, Debug, Default)]
pub struct Pending(Arc<AtomicU64>);

#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
    has_failed: AtomicBool,
}

impl Drop for Shared {
    fn drop(&mut self) {
        if let State::Open(file) = std::mem::take(&mut *lock(&self.state)) {
            close(file);
        }
    }
}

/// Closes a file that may be the last to hold a large content, in a thread: giving that back takes the system long.
pub fn close(file: File) {
    let thread = std::thread::Builder::new().name("citius-close".to_owned());
    // Without a thread it is closed here, with the function that was not called.
    drop(thread.spawn(move || drop(file)));
}

#[derive(Debug, Default)]
enum State {
    #[default]
    Unopened,
    Open(File),
    Failed(Error),
}

struct Job {
    shared: Arc<Shared>,
    bytes: Vec<u8>,
    wanted: u64,
    pending: Pending,
    id: StreamId,
}

impl Spooler {
    /// One that posts to this mailbox.
    pub fn new(mailbox: Arc<Mailbox>, bytes_max: u64) -> Self {
        Self {
            mailbox,
            jobs: Mutex::default(),
            total: Arc::default(),
            bytes_max,
            files_max: (descriptors_max() / 4).max(1),
        }
    }

    /// A new file, which exists when it is first written.
    pub fn open(&self) -> Spool {
        Spool {
            shared: Arc::default(),
            size: 0,
            total: Arc::clone(&self.total),
            slot: Slot::new(),
        }
    }

    /// Whether there may be one file more.
    pub fn has_slot(&self) -> bool {
        FILES.load(Ordering::Relaxed) < self.files_max
    }

    /// Bytes that all files may have together.
    pub fn bytes_max(&self) -> u64 {
        self.bytes_max
    }

    /// Whether there is room for so many bytes more.
    pub fn has_room(&self, bytes: u64) -> bool {
        self.total.load(Ordering::Relaxed).saturating_add(bytes) <= self.bytes_max
    }

    /// Has `bytes` appended to a file of the request `id`; when that is done, so many bytes of its body are `wanted`.
    ///
    /// # Errors
    /// There is no thread to write them.
    pub fn write(
        &self,
        spool: &mut Spool,
        bytes: Vec<u8>,
        wanted: u64,
        pending: &Pending,
        id: StreamId,
    ) -> Result<()> {
        let count = bytes.len() as u64;
        let mut jobs = lock(&self.jobs);
        let sender = match &mut *jobs {
            Some(sender) => sender,
            none => none.insert(self.start()?),
        };
        self.total.fetch_add(count, Ordering::Relaxed);
        spool.size += count;
        pending.0.fetch_add(count, Ordering::AcqRel);
        let job = Job {
            shared: Arc::clone(&spool.shared),
            bytes,
            wanted,
            pending: pending.clone(),
            id,
        };
        // The thread ends after its sender.
        sender.send(job).map_err(|_| ErrorKind::BrokenPipe.into())
    }

    fn start(&self) -> Result<Sender<Job>> {
        let (sender, jobs) = channel();
        let mailbox = Arc::clone(&self.mailbox);
        let directory = std::env::temp_dir();
        std::thread::Builder::new()
            .name("citius-spool".to_owned())
            .spawn(move || work(&jobs, &mailbox, &directory))?;
        Ok(sender)
    }
}

impl Spool {
    /// The file, once no write of the request is pending; empty if nothing was written.
    ///
    /// # Errors
    /// Why it could not be written.
    pub fn into_file(self) -> Result<File> {
        match std::mem::take(&mut *lock(&self.shared.state)) {
            State::Open(file) => Ok(file),
            State::Failed(error) => Err(error),
            State::Unopened => tempfile::tempfile(),
        }
    }

    /// What counts the file, to be kept with it.
    pub fn slot(&self) -> Arc<Slot> {
        Arc::clone(&self.slot)
    }

    /// Why it could not be written, if it could not.
    pub fn failure(&self) -> Option<Error> {
        if !self.shared.has_failed.load(Ordering::Acquire) {
            return None;
        }
        match &*lock(&self.shared.state) {
            State::Failed(error) => Some(error.raw_os_error().map_or_else(
                || Error::new(error.kind(), error.to_string()),
                Error::from_raw_os_error,
            )),
            State::Open(_) | State::Unopened => None,
        }
    }

    /// Bytes that were handed in.
    pub fn size(&self) -> u64 {
        self.size
    }
}

impl Drop for Spool {
    fn drop(&mut self) {
        self.total.fetch_sub(self.size, Ordering::Relaxed);
    }
}

impl Pending {
    /// Whether all that was handed in is written.
    pub fn is_empty(&self) -> bool {
        self.0.load(Ordering::Acquire) == 0
    }
}

/// Does jobs until the spooler is gone.
fn work(jobs: &Receiver<Job>, mailbox: &Mailbox, directory: &Path) {
    for job in jobs {
        let count = job.bytes.len() as u64;
        job.shared.append(&job.bytes, directory);
        // Before the reactor can know of it: the file goes with its last owner.
        drop((job.bytes, job.shared));
        let left = job.pending.0.fetch_sub(count, Ordering::AcqRel) - count;
        let mut must_wake = false;
        if job.wanted > 0 {
            must_wake |= mailbox.post(job.id, StreamCommand::Want(job.wanted));
        }
        if left == 0 {
            must_wake |= mailbox.post(job.id, StreamCommand::AwaitWritable);
        }
        if must_wake {
            mailbox.wake();
        }
    }
}

impl Shared {
    fn append(&self, bytes: &[u8], directory: &Path) {
        let mut state = lock(&self.state);
        if matches!(*state, State::Unopened) {
            *state = match tempfile::tempfile_in(directory) {
                Ok(file) => State::Open(file),
                Err(error) => State::Failed(error),
            };
        }
        if let State::Open(file) = &mut *state
            && let Err(error) = file.write_all(bytes)
        {
            *state = State::Failed(error);
        }
        if matches!(*state, State::Failed(_)) {
            self.has_failed.store(true, Ordering::Release);
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // What the locks guard is whole after each statement.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
