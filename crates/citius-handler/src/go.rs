//! Goroutines and everything that waits.

use std::cell::UnsafeCell;
use std::ffi::{CStr, c_int, c_void};
use std::fmt;
use std::marker::PhantomData;
use std::mem::{ManuallyDrop, MaybeUninit};
use std::ops::{Deref, DerefMut};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};
use std::time::Duration;

use crate::{Status, raw};

/// The server's table.
static TABLE: AtomicPtr<raw::Api> = AtomicPtr::new(ptr::null_mut());

/// Takes the table; for [`export!`](crate::export).
#[doc(hidden)]
pub fn set_table(table: *const raw::Api) {
    TABLE.store(table.cast_mut(), Ordering::Release);
}

/// The table, of a server that has everything that waits.
pub(crate) fn table() -> Result<&'static raw::Api, Error> {
    // SAFETY: the server's table is static.
    let table = unsafe { TABLE.load(Ordering::Acquire).as_ref() };
    match table {
        Some(table) if table.version >= 2 && table.size >= size_of::<raw::Api>() => Ok(table),
        Some(_) => Err(Error::Misuse(
            "this server has no goroutines: update citius".into(),
        )),
        None => Err(Error::Misuse(
            "there is no table of the server: load the library by citius.load_handlers".into(),
        )),
    }
}

/// Why nothing was done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Error {
    /// The channel is closed.
    Closed,
    /// The client has left, or the context was cancelled.
    Cancelled,
    /// The time of the wait is over, or the deadline of the context has come.
    TimedOut,
    /// There are as many goroutines as `--goroutines-max` permits.
    Unavailable,
    /// Nothing may wait here, or an argument does not fit.
    Misuse(String),
}

impl fmt::Display for Error {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Closed => formatter.write_str("the channel is closed"),
            Self::Cancelled => formatter.write_str("cancelled"),
            Self::TimedOut => formatter.write_str("the time is over"),
            Self::Unavailable => {
                formatter.write_str("there are as many goroutines as --goroutines-max permits")
            }
            Self::Misuse(what) => formatter.write_str(what),
        }
    }
}

impl std::error::Error for Error {}

impl From<Error> for Status {
    /// What a handler returns that lets an error through.
    fn from(error: Error) -> Self {
        match error {
            Error::Cancelled => Self(499),
            Error::TimedOut => Self(504),
            Error::Unavailable => Self(503),
            Error::Closed | Error::Misuse(_) => Self::FAILED,
        }
    }
}

const CLOSED: c_int = 1;
const MISUSE: c_int = 2;
const CANCELLED: c_int = 499;
const UNAVAILABLE: c_int = 503;
const TIMEOUT: c_int = 504;
const FOREVER: i64 = -1;

fn check(table: &raw::Api, code: c_int) -> Result<(), Error> {
    match code {
        0 => Ok(()),
        CLOSED => Err(Error::Closed),
        CANCELLED => Err(Error::Cancelled),
        UNAVAILABLE => Err(Error::Unavailable),
        TIMEOUT => Err(Error::TimedOut),
        MISUSE => Err(Error::Misuse(mistake(table))),
        code => Err(Error::Misuse(format!("the server returned {code}"))),
    }
}

fn mistake(table: &raw::Api) -> String {
    // SAFETY: the server's own function.
    let text = unsafe { (table.runtime.mistake)() };
    if text.is_null() {
        return "a mistake".into();
    }
    // SAFETY: the server's texts are static and end in a zero byte.
    let text = unsafe { CStr::from_ptr(text) };
    text.to_string_lossy().into_owned()
}

/// The table for a wait. None may begin while a panic unwinds: other goroutines would run in the middle of it.
pub(crate) fn table_for_wait() -> Result<&'static raw::Api, Error> {
    if std::thread::panicking() {
        return Err(Error::Misuse("it waits while it panics".into()));
    }
    table()
}

pub(crate) fn timeout_ns(timeout: Option<Duration>) -> i64 {
    timeout.map_or(FOREVER, |timeout| {
        i64::try_from(timeout.as_nanos()).unwrap_or(i64::MAX)
    })
}

/// Starts a goroutine: on the reactor or the pool of the caller's goroutine, or else on the pool. It inherits the context of its
/// starter. A panic ends it, with a line on standard error.
///
/// # Errors
/// [`Error::Unavailable`]
pub fn go<F: FnOnce() + Send + 'static>(function: F) -> Result<(), Error> {
    unsafe extern "C" fn run<F: FnOnce()>(argument: *mut c_void) {
        // SAFETY: the box that was given below, once.
        let function = unsafe { Box::from_raw(argument.cast::<F>()) };
        // The hook of panics has written what there is to say.
        let _ = catch_unwind(AssertUnwindSafe(function));
    }

    let table = table()?;
    let argument = Box::into_raw(Box::new(function));
    // SAFETY: the function takes what it is given.
    let code = unsafe { (table.runtime.go)(Some(run::<F>), argument.cast()) };
    check(table, code).inspect_err(|_| {
        // SAFETY: the server has not taken it.
        drop(unsafe { Box::from_raw(argument) });
    })
}

/// Lets other goroutines run that are ready.
///
/// # Errors
/// [`Error::Misuse`]
pub fn yield_now() -> Result<(), Error> {
    let table = table_for_wait()?;
    // SAFETY: the server's own function.
    check(table, unsafe { (table.runtime.yield_now)() })
}

/// Nanoseconds on the monotonic clock.
///
/// # Errors
/// [`Error::Misuse`]: there is no server.
pub fn now_ns() -> Result<i64, Error> {
    // SAFETY: the server's own function.
    Ok(unsafe { (table()?.runtime.now)() })
}

/// Waits.
///
/// # Errors
/// [`Error::Cancelled`], [`Error::TimedOut`] (the deadline of the context comes first), [`Error::Misuse`]
pub fn sleep(time: Duration) -> Result<(), Error> {
    let table = table_for_wait()?;
    let at = now_ns()?.saturating_add(timeout_ns(Some(time)));
    // SAFETY: the server's own function.
    check(table, unsafe { (table.runtime.sleep_until)(at) })
}

/// Whether the caller runs in a goroutine.
pub fn in_goroutine() -> bool {
    // SAFETY: the server's own function.
    table().is_ok_and(|table| unsafe { (table.runtime.in_goroutine)() } != 0)
}

// --- channels -------------------------------------------------------------------------------------

/// A channel of `T`; clones are the same channel.
///
/// Values of a type of its own stay within the library. A channel that other languages use too is made by Python, by
/// `citius.go.chan(type=int)` or `float` (here `i64` and `f64`; `bool` is `u8`), named by `citius.go.share` and found by
/// [`Chan::find`].
pub struct Chan<T> {
    pointer: *const raw::Chan,
    values: PhantomData<T>,
}

// SAFETY: the server's channels may be used by any thread, and values are sent from one to another.
unsafe impl<T: Send> Send for Chan<T> {}
// SAFETY: the server locks what several threads use of a channel, and lends no reference to a value in it.
unsafe impl<T: Send> Sync for Chan<T> {}

/// A type whose values are plain bytes, as Python and other languages see them.
///
/// # Safety
/// Every pattern of bytes is a value, there is no padding, and values own nothing.
pub unsafe trait Plain: Copy {}

// SAFETY: numbers are.
unsafe impl Plain for i64 {}
// SAFETY: every pattern of bytes is a number, and there is no padding.
unsafe impl Plain for f64 {}
// SAFETY: every pattern of bytes is a number, and there is no padding.
unsafe impl Plain for i32 {}
// SAFETY: every pattern of bytes is a number, and there is no padding.
unsafe impl Plain for u8 {}
// SAFETY: there are no bytes.
unsafe impl Plain for () {}

impl<T: Send + 'static> Chan<T> {
    /// A channel with a buffer of `capacity` values.
    ///
    /// # Errors
    /// [`Error::Misuse`]: there is no server.
    pub fn new(capacity: usize) -> Result<Self, Error> {
        unsafe extern "C" fn drop_value<T>(value: *mut c_void) {
            // SAFETY: the bytes of a value that was sent and never received.
            drop(unsafe { value.cast::<T>().read_unaligned() });
        }

        let drop: Option<unsafe extern "C" fn(*mut c_void)> =
            std::mem::needs_drop::<T>().then_some(drop_value::<T>);
        // SAFETY: the server's own function; values may be dropped on any thread, since they are `Send`.
        let pointer = unsafe { (table()?.runtime.chan_make)(0, size_of::<T>(), capacity, drop) };
        Ok(Self {
            pointer,
            values: PhantomData,
        })
    }

    /// Sends a value. Waits for a receiver, or for room in the buffer.
    ///
    /// # Errors
    /// Why it was not sent, and the value.
    pub fn send(&self, value: T) -> Result<(), (Error, T)> {
        self.send_within(value, None)
    }

    /// Sends a value, waiting at most for `timeout`; `None`: without end.
    ///
    /// # Errors
    /// As [`send`](Self::send).
    pub fn send_within(&self, value: T, timeout: Option<Duration>) -> Result<(), (Error, T)> {
        let table = match table_for_wait() {
            Ok(table) => table,
            Err(error) => return Err((error, value)),
        };
        let value = ManuallyDrop::new(value);
        // SAFETY: the bytes of a value, which is the channel's if the result is 0.
        let code = unsafe {
            (table.runtime.chan_send)(
                self.pointer,
                (&raw const value).cast(),
                size_of::<T>(),
                timeout_ns(timeout),
            )
        };
        check(table, code).map_err(|error| (error, ManuallyDrop::into_inner(value)))
    }

    /// Receives a value; `None` from a channel that is closed and empty. Waits.
    ///
    /// # Errors
    /// Why there is none.
    pub fn recv(&self) -> Result<Option<T>, Error> {
        self.recv_within(None)
    }

    /// Receives a value, waiting at most for `timeout`; `None`: without end.
    ///
    /// # Errors
    /// As [`recv`](Self::recv).
    pub fn recv_within(&self, timeout: Option<Duration>) -> Result<Option<T>, Error> {
        let table = table_for_wait()?;
        let mut value = MaybeUninit::<T>::uninit();
        // SAFETY: a place for a value.
        let code = unsafe {
            (table.runtime.chan_receive)(
                self.pointer,
                value.as_mut_ptr().cast(),
                size_of::<T>(),
                timeout_ns(timeout),
            )
        };
        match check(table, code) {
            // SAFETY: the bytes of a value that was sent, which is no other's.
            Ok(()) => Ok(Some(unsafe { value.assume_init() })),
            Err(Error::Closed) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Says that nothing will be sent any more.
    ///
    /// # Errors
    /// [`Error::Closed`] the second time.
    pub fn close(&self) -> Result<(), Error> {
        let table = table()?;
        // SAFETY: the server's own function.
        check(table, unsafe { (table.runtime.chan_close)(self.pointer) })
    }

    /// Values in the buffer.
    pub fn len(&self) -> usize {
        // SAFETY: the server's own function.
        table().map_or(0, |table| unsafe {
            (table.runtime.chan_count)(self.pointer, 0)
        })
    }

    /// Whether the buffer is empty.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl<T: Plain + Send + 'static> Chan<T> {
    /// The channel that Python has given this name (`citius.go.share`); `None` if there is none whose values have the size of `T`.
    pub fn find(name: &str) -> Option<Self> {
        let table = table().ok()?;
        // SAFETY: the name is readable for its length.
        let pointer = unsafe { (table.runtime.chan_find)(name.as_ptr().cast(), name.len()) };
        if pointer.is_null() {
            return None;
        }
        let found = Self {
            pointer,
            values: PhantomData,
        };
        // SAFETY: the server's own function.
        let size = unsafe { (table.runtime.chan_count)(pointer, 2) };
        (size == size_of::<T>()).then_some(found)
    }
}

impl<T> Clone for Chan<T> {
    fn clone(&self) -> Self {
        if let Ok(table) = table() {
            // SAFETY: a channel that lives.
            unsafe { (table.runtime.chan_retain)(self.pointer) };
        }
        Self {
            pointer: self.pointer,
            values: PhantomData,
        }
    }
}

impl<T> Drop for Chan<T> {
    fn drop(&mut self) {
        if let Ok(table) = table() {
            // SAFETY: the reference is not used after this.
            unsafe { (table.runtime.chan_release)(self.pointer) };
        }
    }
}

impl<T> fmt::Debug for Chan<T> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Chan({:p})", self.pointer)
    }
}

// --- select ---------------------------------------------------------------------------------------

/// A value that a select is to send, or the place for one that it receives.
#[derive(Debug)]
pub struct Slot<T> {
    memory: MaybeUninit<T>,
    is_full: bool,
}

impl<T> Slot<T> {
    /// A place for a value.
    pub fn empty() -> Self {
        Self {
            memory: MaybeUninit::uninit(),
            is_full: false,
        }
    }

    /// A value to be sent.
    pub fn with(value: T) -> Self {
        Self {
            memory: MaybeUninit::new(value),
            is_full: true,
        }
    }

    /// Takes the value.
    pub fn take(&mut self) -> Option<T> {
        let is_full = std::mem::replace(&mut self.is_full, false);
        // SAFETY: it is full, and not any more.
        is_full.then(|| unsafe { self.memory.assume_init_read() })
    }
}

impl<T> Drop for Slot<T> {
    fn drop(&mut self) {
        drop(self.take());
    }
}

/// One operation of a select.
#[derive(Debug)]
pub struct Case<'a> {
    chan: *const raw::Chan,
    value: *mut c_void,
    size: usize,
    is_send: bool,
    is_full: &'a mut bool,
}

impl<'a> Case<'a> {
    /// Receives from `chan` into `place`, which is empty if the channel was closed. A value in it is dropped.
    pub fn receive<T: Send + 'static>(chan: &'a Chan<T>, place: &'a mut Slot<T>) -> Self {
        drop(place.take());
        Self {
            chan: chan.pointer,
            value: place.memory.as_mut_ptr().cast(),
            size: size_of::<T>(),
            is_send: false,
            is_full: &mut place.is_full,
        }
    }

    /// Sends the value in `slot`; a slot without one makes a case that is never chosen.
    pub fn send<T: Send + 'static>(chan: &'a Chan<T>, slot: &'a mut Slot<T>) -> Self {
        Self {
            chan: if slot.is_full {
                chan.pointer
            } else {
                ptr::null_mut()
            },
            value: slot.memory.as_mut_ptr().cast(),
            size: size_of::<T>(),
            is_send: true,
            is_full: &mut slot.is_full,
        }
    }
}

/// Does one of the cases that are ready, each with the same probability; its index. Waits at most for `timeout` (zero: not at all;
/// `None`: without end).
///
/// # Errors
/// [`Error::TimedOut`]: none was ready in time. [`Error::Closed`]: the case would have sent on a closed channel.
pub fn select(cases: &mut [Case<'_>], timeout: Option<Duration>) -> Result<usize, Error> {
    let table = table_for_wait()?;
    let mut natives: Vec<raw::Case> = cases
        .iter()
        .map(|case| raw::Case {
            chan: case.chan,
            value: case.value,
            size: case.size,
            operation: i32::from(case.is_send),
            ok: 0,
        })
        .collect();
    // SAFETY: each case has a channel that lives and a slot of its size.
    let chosen =
        unsafe { (table.runtime.select)(natives.as_mut_ptr(), natives.len(), timeout_ns(timeout)) };
    let Ok(index) = usize::try_from(chosen) else {
        return Err(check(table, -chosen).err().unwrap_or(Error::Closed));
    };
    let case = &mut cases[index];
    // A value that was sent is the channel's, one that was received the slot's.
    *case.is_full = !case.is_send && natives[index].ok != 0;
    Ok(index)
}

// --- wait groups, locks, contexts -------------------------------------------------------------------

/// Waits until as many things are done as were added; clones are the same group.
#[derive(Debug)]
pub struct WaitGroup(*const raw::WaitGroup);

// SAFETY: the server's wait groups may be used by any thread.
unsafe impl Send for WaitGroup {}
// SAFETY: the server counts with atomic numbers.
unsafe impl Sync for WaitGroup {}

impl WaitGroup {
    /// One that nothing was added to.
    ///
    /// # Errors
    /// [`Error::Misuse`]: there is no server.
    pub fn new() -> Result<Self, Error> {
        // SAFETY: the server's own function.
        Ok(Self(unsafe { (table()?.runtime.wait_group_make)() }))
    }

    /// Adds to the count.
    ///
    /// # Errors
    /// [`Error::Misuse`]: it would be below zero.
    pub fn add(&self, count: i64) -> Result<(), Error> {
        let table = table()?;
        // SAFETY: a group that lives.
        check(table, unsafe {
            (table.runtime.wait_group_add)(self.0, count)
        })
    }

    /// One thing is done.
    ///
    /// # Errors
    /// As [`add`](Self::add).
    pub fn done(&self) -> Result<(), Error> {
        self.add(-1)
    }

    /// Waits until all are done.
    ///
    /// # Errors
    /// As [`sleep`].
    pub fn wait(&self) -> Result<(), Error> {
        let table = table_for_wait()?;
        // SAFETY: a group that lives.
        check(table, unsafe { (table.runtime.wait_group_wait)(self.0) })
    }
}

impl Clone for WaitGroup {
    fn clone(&self) -> Self {
        if let Ok(table) = table() {
            // SAFETY: a group that lives.
            unsafe { (table.runtime.wait_group_retain)(self.0) };
        }
        Self(self.0)
    }
}

impl Drop for WaitGroup {
    fn drop(&mut self) {
        if let Ok(table) = table() {
            // SAFETY: the reference is not used after this.
            unsafe { (table.runtime.wait_group_release)(self.0) };
        }
    }
}

/// A lock around a value, whose guard may be kept over waits: a goroutine that has to wait for it parks.
#[derive(Debug)]
pub struct Mutex<T> {
    state: UnsafeCell<*mut c_void>,
    value: UnsafeCell<T>,
}

// SAFETY: one guard at a time gives access to the value.
unsafe impl<T: Send> Send for Mutex<T> {}
// SAFETY: one guard at a time gives access to the value, on whichever thread.
unsafe impl<T: Send> Sync for Mutex<T> {}

impl<T> Mutex<T> {
    /// An unlocked one.
    pub const fn new(value: T) -> Self {
        Self {
            state: UnsafeCell::new(ptr::null_mut()),
            value: UnsafeCell::new(value),
        }
    }

    /// Locks it. Waits.
    ///
    /// # Errors
    /// As [`sleep`].
    pub fn lock(&self) -> Result<MutexGuard<'_, T>, Error> {
        let table = table_for_wait()?;
        // SAFETY: only the server's functions access the state.
        let code = unsafe { (table.runtime.mutex_lock)(self.state.get(), FOREVER) };
        check(table, code).map(|()| MutexGuard {
            mutex: self,
            value: PhantomData,
        })
    }
}

impl<T> Drop for Mutex<T> {
    fn drop(&mut self) {
        if let Ok(table) = table() {
            // SAFETY: nothing uses it any more.
            unsafe { (table.runtime.mutex_destroy)(self.state.get()) };
        }
    }
}

/// The value of a mutex, which is locked until this is dropped.
#[derive(Debug)]
pub struct MutexGuard<'a, T> {
    mutex: &'a Mutex<T>,
    /// What follows from the reference alone would let threads share a guard whose value they must not share.
    value: PhantomData<*mut T>,
}

// SAFETY: goroutines may change their thread while they hold one; the guard is the only way to the value.
unsafe impl<T: Send> Send for MutexGuard<'_, T> {}
// SAFETY: a shared guard gives a shared value.
unsafe impl<T: Sync> Sync for MutexGuard<'_, T> {}

impl<T> Deref for MutexGuard<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        // SAFETY: there is one guard at a time.
        unsafe { &*self.mutex.value.get() }
    }
}

impl<T> DerefMut for MutexGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: there is one guard at a time.
        unsafe { &mut *self.mutex.value.get() }
    }
}

impl<T> Drop for MutexGuard<'_, T> {
    fn drop(&mut self) {
        if let Ok(table) = table() {
            // SAFETY: it is locked by this guard.
            unsafe { (table.runtime.mutex_unlock)(self.mutex.state.get()) };
        }
    }
}

/// A reason to stop waiting, as Go's; clones are the same context.
#[derive(Debug)]
pub struct Context(*const raw::Context);

// SAFETY: the server's contexts may be used by any thread.
unsafe impl Send for Context {}
// SAFETY: the server locks what several threads use of a context.
unsafe impl Sync for Context {}

impl Context {
    /// The context of this goroutine; `None` is the one that never ends.
    pub fn current() -> Option<Self> {
        // SAFETY: the server's own function.
        let pointer = unsafe { (table().ok()?.runtime.context_current)() };
        (!pointer.is_null()).then_some(Self(pointer))
    }

    /// A context that ends with `parent`, and when `time` has passed (`None`: by [`cancel`](Self::cancel) only).
    ///
    /// # Errors
    /// [`Error::Misuse`]: there is no server.
    pub fn new(parent: Option<&Self>, time: Option<Duration>) -> Result<Self, Error> {
        let table = table()?;
        let deadline = match time {
            Some(time) => now_ns()?.saturating_add(timeout_ns(Some(time))),
            None => FOREVER,
        };
        let parent = parent.map_or(ptr::null(), |parent| parent.0);
        // SAFETY: a context that lives, or null.
        Ok(Self(unsafe {
            (table.runtime.context_make)(parent, deadline)
        }))
    }

    /// Ends it, and all contexts that were made of it.
    pub fn cancel(&self) {
        if let Ok(table) = table() {
            // SAFETY: a context that lives.
            unsafe { (table.runtime.context_cancel)(self.0) };
        }
    }

    /// Whether it has ended: [`Error::Cancelled`] or [`Error::TimedOut`].
    ///
    /// # Errors
    /// See above.
    pub fn check(&self) -> Result<(), Error> {
        let table = table()?;
        // SAFETY: a context that lives.
        check(table, unsafe { (table.runtime.context_error)(self.0) })
    }

    /// A channel that is closed when it ends.
    ///
    /// # Errors
    /// [`Error::Misuse`]: there is no server.
    pub fn done(&self) -> Result<Chan<()>, Error> {
        // SAFETY: a context that lives.
        let pointer = unsafe { (table()?.runtime.context_done)(self.0) };
        Ok(Chan {
            pointer,
            values: PhantomData,
        })
    }

    /// Makes `context` the one that the waits of this goroutine observe; `None`: they are not ended.
    ///
    /// # Errors
    /// [`Error::Misuse`]: outside of goroutines.
    pub fn enter(context: Option<&Self>) -> Result<(), Error> {
        let table = table()?;
        let pointer = context.map_or(ptr::null(), |context| context.0);
        // SAFETY: a context that lives, or null.
        check(table, unsafe { (table.runtime.context_use)(pointer) })
    }
}

impl Clone for Context {
    fn clone(&self) -> Self {
        if let Ok(table) = table() {
            // SAFETY: a context that lives.
            unsafe { (table.runtime.context_retain)(self.0) };
        }
        Self(self.0)
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        if let Ok(table) = table() {
            // SAFETY: the reference is not used after this.
            unsafe { (table.runtime.context_release)(self.0) };
        }
    }
}
