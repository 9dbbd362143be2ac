//! Unix only: what a child process does first, forked by Python or by code in C.
//!
//! Code in C may fork without Python's hooks. The C library has hooks of its own, which hold for Python's forks too; not for
//! `vfork` and `posix_spawn`, whose children run another program, which closes what is marked so. A child has a copy of each
//! listening socket: the port would stay taken after the server's end, and clients in its queue would never get a response.
//!
//! In: sockets of this process. Out: children that have none of them. Another thread may have held any lock when the
//! process was forked, that of the memory allocator too: a child calls the kernel here, and nothing else.
//! Tests: `tests/supervisor/test_ends.py`.
#![cfg_attr(
    target_os = "linux",
    expect(
        clippy::multiple_unsafe_ops_per_block,
        reason = "a structure of zeroes and the call that sets it"
    )
)]

use std::ffi::c_int;
use std::io::{Error, Result};
use std::sync::Once;

use crate::process::count;

#[cfg(target_os = "linux")]
pub(crate) use self::linux::keep;

unsafe extern "C" {
    fn pthread_atfork(
        prepare: Option<extern "C" fn()>,
        parent: Option<extern "C" fn()>,
        child: Option<extern "C" fn()>,
    ) -> c_int;
}

static REGISTERED: Once = Once::new();

/// Have every child from now on do so.
///
/// # Errors
/// There is no memory for it.
pub(crate) fn prepare() -> Result<()> {
    let mut error = 0;
    // SAFETY: `in_child` stays where it is, for an extension module is never unloaded; it does what a child may do.
    REGISTERED.call_once(|| error = unsafe { pthread_atfork(None, None, Some(in_child)) });
    if error == 0 {
        Ok(())
    } else {
        Err(Error::from_raw_os_error(error))
    }
}

extern "C" fn in_child() {
    count();
    #[cfg(target_os = "linux")]
    linux::leave();
}

#[cfg(target_os = "linux")]
mod linux {
    use std::ffi::{c_int, c_long};
    use std::io::{Error, Result};
    use std::mem::zeroed;
    use std::ptr::null_mut;
    use std::sync::atomic::{AtomicPtr, Ordering};

    use crate::descriptor::Fd;

    /// A socket, whatever its number.
    type Identity = (libc::dev_t, libc::ino_t);

    /// Those that children must not have. Replaced as a whole, and never freed: a child may look at it at any moment. It changes
    /// as often as servers are started in a process.
    static KEPT: AtomicPtr<Vec<Identity>> = AtomicPtr::new(null_mut());

    /// Without `/proc`, which a sandbox may hide, all numbers are tried, up to this one.
    const FDS_MAX: libc::rlim_t = 1 << 16;

    /// Have children close these sockets, with all their copies.
    ///
    /// # Errors
    /// A number stands for nothing.
    pub(crate) fn keep(fds: &[Fd]) -> Result<()> {
        let mut kept = kept().to_vec();
        for &fd in fds {
            let found = identity(fd).ok_or_else(Error::last_os_error)?;
            if !kept.contains(&found) {
                kept.push(found);
            }
        }
        KEPT.store(Box::into_raw(Box::new(kept)), Ordering::Release);
        Ok(())
    }

    fn kept() -> &'static [Identity] {
        let kept = KEPT.load(Ordering::Acquire);
        if kept.is_null() {
            return &[];
        }
        // SAFETY: it was made by `keep` of a `Box`, and is neither freed nor changed.
        unsafe { &*kept }
    }

    /// In the child: it has none of them any more.
    pub(super) fn leave() {
        let kept = kept();
        if kept.is_empty() {
            return;
        }
        // SAFETY: the path ends with a zero, and the call returns a number.
        let null = unsafe { libc::open(c"/dev/null".as_ptr(), libc::O_RDWR | libc::O_CLOEXEC) };
        if !each_listed(|fd| leave_one(fd, null, kept)) {
            // SAFETY: the structure is plain numbers, which the call sets.
            let limit = unsafe {
                let mut limit: libc::rlimit = zeroed();
                libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit);
                limit.rlim_cur.min(FDS_MAX)
            };
            for fd in 0..c_int::try_from(limit).unwrap_or(c_int::MAX) {
                leave_one(fd, null, kept);
            }
        }
        // SAFETY: it is this function's own, or -1, which the kernel refuses.
        unsafe { libc::close(null) };
        // Children of this child have nothing to leave.
        KEPT.store(null_mut(), Ordering::Release);
    }

    fn leave_one(fd: c_int, null: c_int, kept: &[Identity]) {
        if fd == null || !identity(fd).is_some_and(|found| kept.contains(&found)) {
            return;
        }
        // Its owner may be a reactor, which still has the number: it stands for nothing of interest from now on.
        // SAFETY: both are numbers, and what owns this one never uses it: a reactor serves in the process that made it (I22).
        unsafe {
            if null < 0 || libc::dup3(null, fd, libc::O_CLOEXEC) < 0 {
                libc::close(fd);
            }
        }
    }

    /// What a number stands for, if that is a socket.
    fn identity(fd: c_int) -> Option<Identity> {
        // SAFETY: the structure is plain numbers, which the call sets.
        let found = unsafe {
            let mut found: libc::stat = zeroed();
            (libc::fstat(fd, &raw mut found) == 0).then_some(found)
        }?;
        let is_socket = found.st_mode & libc::S_IFMT == libc::S_IFSOCK;
        is_socket.then_some((found.st_dev, found.st_ino))
    }

    /// Calls `act` with the number of each open file. `false`: the kernel does not tell them.
    fn each_listed(mut act: impl FnMut(c_int)) -> bool {
        const ENTRY: usize = 19; // where the name begins: inode, offset, length, type
        let flags = libc::O_RDONLY | libc::O_DIRECTORY | libc::O_CLOEXEC;
        // SAFETY: the path ends with a zero, and the call returns a number.
        let directory = unsafe { libc::open(c"/proc/self/fd".as_ptr(), flags) };
        if directory < 0 {
            return false;
        }
        let mut buffer = [0_u8; 4096];
        let is_complete = loop {
            // SAFETY: the kernel writes at most as many bytes as the buffer has.
            let n_bytes: c_long = unsafe {
                libc::syscall(
                    libc::SYS_getdents64,
                    directory,
                    buffer.as_mut_ptr(),
                    buffer.len(),
                )
            };
            let Ok(n_bytes @ 1..) = usize::try_from(n_bytes) else {
                break n_bytes == 0;
            };
            let mut entries = &buffer[..n_bytes.min(buffer.len())];
            while let [.., _] = entries
                && let Some(&[low, high]) = entries.get(16..18)
            {
                let length = usize::from(u16::from_ne_bytes([low, high])).max(1);
                let entry = &entries[..length.min(entries.len())];
                if let Some(fd) = number(entry.get(ENTRY..).unwrap_or_default())
                    && fd != directory
                {
                    act(fd);
                }
                entries = &entries[entry.len()..];
            }
        };
        // SAFETY: it is this function's own.
        unsafe { libc::close(directory) };
        is_complete
    }

    /// The number that a name is; `None` for `.` and `..`.
    fn number(name: &[u8]) -> Option<c_int> {
        let mut value: Option<c_int> = None;
        for byte in name.iter().take_while(|byte| **byte != 0) {
            let digit = c_int::from(byte.checked_sub(b'0').filter(|digit| *digit < 10)?);
            value = Some(value.unwrap_or(0).checked_mul(10)?.checked_add(digit)?);
        }
        value
    }
}
