//! Landlock and fewer capabilities for every thread of the process. The kernel restricts the calling thread; glibc has the same task
//! for `setuid` and solves it in the same way: a signal whose handler makes the calls, sent to each thread. A thread that has not
//! confirmed it within [`WAIT`] ends the start. (Linux 7.0 has `LANDLOCK_RESTRICT_SELF_TSYNC`; one way for all kernels is
//! one way to test.)
//!
//! The signal is one that the C library keeps for itself and lets no thread block.

use std::collections::BTreeSet;
use std::io::{Error, Result};
use std::mem::{MaybeUninit, zeroed};
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::PathBuf;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicI32, AtomicUsize, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// How long threads may take, all together.
const WAIT: Duration = Duration::from_secs(5);
/// Threads that can be confined.
const THREADS_MAX: usize = 4096;
/// `SIGSETXID` of glibc and `SIGCANCEL` of musl, which both leave out of every mask.
const SIGNAL: libc::c_int = 33;

static RULESET: AtomicI32 = AtomicI32::new(-1);
static CONFINED: [AtomicI32; THREADS_MAX] = [const { AtomicI32::new(0) }; THREADS_MAX];
static COUNT: AtomicUsize = AtomicUsize::new(0);
/// The error of a thread that could not be confined.
static FAILURE: AtomicI32 = AtomicI32::new(0);

/// What root, or who has capabilities, keeps of them: files of other users, where the rules allow them, and low ports. By the others
/// a worker would reach its supervisor: `CAP_SYS_ADMIN` opens the memory that they share by `/proc/self/map_files`, and who
/// truncates it ends all that use it. Numbers are those of `linux/capability.h`.
const CAPABILITIES: u32 = 1 << 0 // CAP_CHOWN
    | 1 << 1 // CAP_DAC_OVERRIDE
    | 1 << 2 // CAP_DAC_READ_SEARCH
    | 1 << 3 // CAP_FOWNER
    | 1 << 4 // CAP_FSETID
    | 1 << 10; // CAP_NET_BIND_SERVICE

/// The version of Landlock that the kernel has; 0: none.
pub(crate) fn landlock_version() -> u32 {
    const VERSION: libc::c_uint = 1;
    // SAFETY: with this flag the call reads nothing and returns a number.
    let version = unsafe {
        libc::syscall(
            libc::SYS_landlock_create_ruleset,
            null_mut::<u8>(),
            0_usize,
            VERSION,
        )
    };
    u32::try_from(version).unwrap_or(0)
}

/// Confine all threads, the calling one last.
pub(crate) fn restrict_all(ruleset: &OwnedFd) -> Result<()> {
    RULESET.store(ruleset.as_raw_fd(), Ordering::SeqCst);
    COUNT.store(0, Ordering::SeqCst);
    FAILURE.store(0, Ordering::SeqCst);
    let handler = Handler::install()?;
    let done = signal_others();
    drop(handler);
    done?;
    match restrict_this() {
        0 => Ok(()),
        error => Err(Error::from_raw_os_error(error)),
    }
}

/// The numbers of the process's threads.
pub(crate) fn threads() -> Result<BTreeSet<libc::pid_t>> {
    let mut found = BTreeSet::new();
    for entry in std::fs::read_dir("/proc/self/task")? {
        let name = entry?.file_name();
        found.extend(name.to_str().and_then(|name| name.parse::<i32>().ok()));
    }
    Ok(found)
}

/// Where the kernel tells about a thread.
pub(crate) fn directory(thread: libc::pid_t) -> PathBuf {
    PathBuf::from(format!("/proc/self/task/{thread}"))
}

/// Its name in messages.
pub(crate) fn name(thread: libc::pid_t) -> String {
    let name = std::fs::read_to_string(directory(thread).join("comm")).unwrap_or_default();
    format!("{thread} ({})", name.trim_end())
}

#[expect(
    clippy::disallowed_methods,
    reason = "before the reactor's first turn: there is no clock and no timer yet"
)]
fn signal_others() -> Result<()> {
    // SAFETY: both return a number.
    let (process, this) = unsafe { (libc::getpid(), libc::gettid()) };
    let until = Instant::now() + WAIT;
    let mut signalled = BTreeSet::new();
    // A thread that was not confined yet may have started one while the directory was read: two readings have to agree.
    let mut clean = 0;
    while clean < 2 {
        let confined: BTreeSet<_> = CONFINED
            .iter()
            .take(COUNT.load(Ordering::SeqCst))
            .map(|thread| thread.load(Ordering::SeqCst))
            .collect();
        let mut missing = threads()?;
        missing.retain(|thread| *thread != this && !confined.contains(thread));
        match FAILURE.load(Ordering::SeqCst) {
            0 => {}
            error => return Err(Error::from_raw_os_error(error)),
        }
        clean = if missing.is_empty() { clean + 1 } else { 0 };
        for thread in &missing {
            if signalled.insert(*thread) {
                // SAFETY: it sends a signal whose handler is installed. A thread that has ended meanwhile is no error.
                unsafe { libc::syscall(libc::SYS_tgkill, process, *thread, SIGNAL) };
            }
        }
        if clean == 0 {
            if Instant::now() > until {
                let names: Vec<_> = missing.iter().map(|thread| name(*thread)).collect();
                let text = format!("threads that could not be confined: {}", names.join(", "));
                return Err(Error::other(text));
            }
            sleep(Duration::from_micros(500));
        }
    }
    Ok(())
}

/// Makes the calls in the thread that runs it. Returns the error number, or 0.
fn restrict_this() -> libc::c_int {
    // SAFETY: the first two calls take numbers; the others read and write structures of the kernel's layout, which live as long.
    // They are async-signal-safe, for they are system calls.
    unsafe {
        let none: libc::c_ulong = 0;
        let one: libc::c_ulong = 1;
        if libc::prctl(libc::PR_SET_NO_NEW_PRIVS, one, none, none, none) != 0 {
            return *libc::__errno_location();
        }
        let ruleset = RULESET.load(Ordering::SeqCst);
        if libc::syscall(libc::SYS_landlock_restrict_self, ruleset, 0) != 0 {
            return *libc::__errno_location();
        }
        let this = CapabilityHeader {
            version: CAPABILITY_VERSION,
            thread: 0,
        };
        let mut sets = [CapabilitySets::default(); 2];
        if libc::syscall(libc::SYS_capget, &raw const this, sets.as_mut_ptr()) != 0 {
            return *libc::__errno_location();
        }
        let [low, high] = sets;
        let kept = [low.kept(CAPABILITIES), high.kept(0)];
        // Where there is nothing to give up, a filter of the service may have refused the call.
        if kept != sets && libc::syscall(libc::SYS_capset, &raw const this, kept.as_ptr()) != 0 {
            return *libc::__errno_location();
        }
    }
    0
}

/// `_LINUX_CAPABILITY_VERSION_3`: each set in two words.
const CAPABILITY_VERSION: u32 = 0x2008_0522;

#[repr(C)]
struct CapabilityHeader {
    version: u32,
    /// 0: the calling one.
    thread: libc::c_int,
}

/// One word of each set.
#[derive(Clone, Copy, Default, PartialEq)]
#[repr(C)]
struct CapabilitySets {
    effective: u32,
    permitted: u32,
    inheritable: u32,
}

impl CapabilitySets {
    const fn kept(self, capabilities: u32) -> Self {
        Self {
            effective: self.effective & capabilities,
            permitted: self.permitted & capabilities,
            inheritable: 0,
        }
    }
}

extern "C" fn on_signal(_: libc::c_int, info: *mut libc::siginfo_t, _: *mut libc::c_void) {
    // SAFETY: the kernel passes a valid record, and the pointer to this thread's `errno` is valid. No lock is taken and no
    // memory is allocated here.
    unsafe {
        if (*info).si_code != libc::SI_TKILL || (*info).si_pid() != libc::getpid() {
            return;
        }
        let errno = libc::__errno_location();
        let before = *errno;
        match restrict_this() {
            0 => confirm(libc::gettid()),
            error => FAILURE.store(error, Ordering::SeqCst),
        }
        *errno = before;
    }
}

/// Counted first: a place that is not written yet is no thread's, and its thread is waited for.
fn confirm(this: libc::pid_t) {
    match CONFINED.get(COUNT.fetch_add(1, Ordering::SeqCst)) {
        Some(place) => place.store(this, Ordering::SeqCst),
        None => FAILURE.store(libc::EAGAIN, Ordering::SeqCst),
    }
}

/// What the kernel keeps of a signal's handler: handler, flags, the address of the code that returns, and the mask. It is
/// read and written as it is.
type KernelAction = [u64; 4];

/// The handler, until this is dropped.
struct Handler {
    before: KernelAction,
}

impl Handler {
    /// The C library refuses to set a handler for its own signal, and the kernel needs to know the code that returns from a
    /// handler. So it is set for another signal, read back from the kernel, and set for this one.
    fn install() -> Result<Self> {
        let other = libc::SIGRTMAX();
        // SAFETY: the structures are those that the calls take, and live as long.
        unsafe {
            let mut action: libc::sigaction = zeroed();
            action.sa_sigaction = on_signal as *const () as usize;
            action.sa_flags = libc::SA_SIGINFO | libc::SA_RESTART | libc::SA_ONSTACK;
            libc::sigfillset(&raw mut action.sa_mask);
            let mut other_before = MaybeUninit::<libc::sigaction>::uninit();
            if libc::sigaction(other, &raw const action, other_before.as_mut_ptr()) != 0 {
                return Err(Error::last_os_error());
            }
            let made = kernel_action(other, None);
            libc::sigaction(other, other_before.as_ptr(), null_mut());
            let before = kernel_action(SIGNAL, Some(&made?))?;
            Ok(Self { before })
        }
    }
}

impl Drop for Handler {
    fn drop(&mut self) {
        let _ = kernel_action(SIGNAL, Some(&self.before));
    }
}

/// Sets a handler, if there is one to set, and returns the one before.
fn kernel_action(signal: libc::c_int, new: Option<&KernelAction>) -> Result<KernelAction> {
    let mut before = KernelAction::default();
    let new = new.map_or(std::ptr::null(), std::ptr::from_ref);
    // SAFETY: the kernel reads and writes four words of 64 bits (x86-64 and aarch64); a mask has eight bytes.
    let done = unsafe {
        libc::syscall(
            libc::SYS_rt_sigaction,
            signal,
            new,
            &raw mut before,
            8_usize,
        )
    };
    if done == 0 {
        Ok(before)
    } else {
        Err(Error::last_os_error())
    }
}
