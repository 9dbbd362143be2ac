//! Memory for stacks from the kernel: slabs of stacks with a guard below each.
//!
//! A guard is installed by `MADV_GUARD_INSTALL` (Linux 6.13), which does not split the mapping, so that a process can have as many
//! stacks as it has memory. An older kernel has `PROT_NONE` pages, of which each adds two mappings to the `vm.max_map_count`
//! (65 530 by default) that a process may have: there the number of stacks is limited, and more are refused.

use std::io;
use std::ptr;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::error::StackError;

const MADV_GUARD_INSTALL: libc::c_int = 102;
const MADV_GUARD_REMOVE: libc::c_int = 103;

/// How guards are made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum GuardKind {
    /// Marks in the page table.
    Marked,
    /// Mappings of their own.
    Mapped,
}

/// Guards of the kind `Mapped` in this process.
static MAPPED_GUARDS: AtomicUsize = AtomicUsize::new(0);

/// What the kernel permits if it cannot be asked.
const MAP_COUNT_MAX_DEFAULT: usize = 65_530;

/// Guards that may be mappings: a quarter of the process's mappings is left for everything else, and each guard splits one
/// mapping into three.
fn mapped_guards_max() -> usize {
    static LIMIT: OnceLock<usize> = OnceLock::new();
    *LIMIT.get_or_init(|| map_count_max() / 8 * 3)
}

/// `vm.max_map_count`.
pub(crate) fn map_count_max() -> usize {
    std::fs::read_to_string("/proc/sys/vm/max_map_count")
        .ok()
        .and_then(|text| text.trim().parse().ok())
        .unwrap_or(MAP_COUNT_MAX_DEFAULT)
}

/// Slabs that debuggers find; those beyond are as good as others.
const LISTED_MAX: usize = 4096;

/// The slabs of this process, for `scripts/gdb_goroutines.py`: start, bytes of one stack with its guard, count; 0 stacks: a place
/// that is free.
#[used]
#[unsafe(no_mangle)]
static CITIUS_COROUTINE_SLABS: [[AtomicUsize; 3]; LISTED_MAX] =
    [const { [const { AtomicUsize::new(0) }; 3] }; LISTED_MAX];

fn list(slab: &Slab) {
    for [start, stride, count] in &CITIUS_COROUTINE_SLABS {
        // It is taken by the one whose count it is first.
        if count
            .compare_exchange(0, slab.count, Ordering::AcqRel, Ordering::Relaxed)
            .is_ok()
        {
            stride.store(slab.stride, Ordering::Relaxed);
            start.store(slab.start, Ordering::Release);
            return;
        }
    }
}

fn unlist(slab: &Slab) {
    let listed = CITIUS_COROUTINE_SLABS
        .iter()
        .find(|[start, ..]| start.load(Ordering::Acquire) == slab.start);
    if let Some([start, _, count]) = listed {
        start.store(0, Ordering::Relaxed);
        count.store(0, Ordering::Release);
    }
}

/// Consecutive stacks of one mapping.
#[derive(Debug)]
pub(crate) struct Slab {
    start: usize,
    /// Bytes of one stack with its guard.
    stride: usize,
    guard_bytes: usize,
    count: usize,
    kind: GuardKind,
}

impl Slab {
    pub(crate) fn new(
        count: usize,
        guard_bytes: usize,
        stack_bytes: usize,
        force_mapped: bool,
    ) -> Result<Self, StackError> {
        let stride = guard_bytes + stack_bytes;
        let bytes = stride
            .checked_mul(count)
            .ok_or(StackError::NoMemory(libc::ENOMEM))?;
        let start = map(bytes)?;
        let mut slab = Self {
            start,
            stride,
            guard_bytes,
            count,
            kind: GuardKind::Marked,
        };
        // A huge page would make each stack's first touch cost two megabytes.
        advise(start, bytes, libc::MADV_NOHUGEPAGE);
        slab.kind = slab.install_guards(force_mapped)?;
        list(&slab);
        Ok(slab)
    }

    fn install_guards(&self, force_mapped: bool) -> Result<GuardKind, StackError> {
        if !force_mapped && install_mark(self.start, self.guard_bytes) {
            for slot in 1..self.count {
                if !install_mark(self.start + slot * self.stride, self.guard_bytes) {
                    return Err(last_error());
                }
            }
            return Ok(GuardKind::Marked);
        }
        let before = MAPPED_GUARDS.fetch_add(self.count, Ordering::Relaxed);
        if before + self.count > mapped_guards_max() {
            MAPPED_GUARDS.fetch_sub(self.count, Ordering::Relaxed);
            return Err(StackError::TooManyMappings {
                map_count_max: map_count_max(),
            });
        }
        for slot in 0..self.count {
            protect(
                self.start + slot * self.stride,
                self.guard_bytes,
                libc::PROT_NONE,
            )?;
        }
        Ok(GuardKind::Mapped)
    }

    pub(crate) fn kind(&self) -> GuardKind {
        self.kind
    }

    /// The highest address of each stack.
    pub(crate) fn bases(&self) -> impl Iterator<Item = usize> + '_ {
        (1..=self.count).map(|slot| self.start + slot * self.stride)
    }

    /// Gives the memory back. No stack of it is in use.
    pub(crate) fn unmap(self) {
        unlist(&self);
        if self.kind == GuardKind::Mapped {
            MAPPED_GUARDS.fetch_sub(self.count, Ordering::Relaxed);
        }
        // SAFETY: the mapping is this slab's alone, and the caller vouches that no stack of it is in use.
        unsafe { libc::munmap(self.start as *mut libc::c_void, self.stride * self.count) };
    }
}

/// Makes the pages of a guard from `low` on usable memory, in a signal handler.
pub(crate) fn open_guard(low: usize, bytes: usize, kind: GuardKind) -> bool {
    match kind {
        // SAFETY: the range is part of a guard of a slab, which nothing else uses.
        GuardKind::Marked => unsafe {
            libc::madvise(low as *mut libc::c_void, bytes, MADV_GUARD_REMOVE) == 0
        },
        GuardKind::Mapped => protect(low, bytes, libc::PROT_READ | libc::PROT_WRITE).is_ok(),
    }
}

/// Makes a guard again of pages that were opened.
pub(crate) fn close_guard(low: usize, bytes: usize, kind: GuardKind) -> bool {
    match kind {
        GuardKind::Marked => install_mark(low, bytes),
        GuardKind::Mapped => {
            discard(low, bytes);
            protect(low, bytes, libc::PROT_NONE).is_ok()
        }
    }
}

/// Gives the pages of a range back to the kernel; they are zero when they are touched again.
pub(crate) fn discard(low: usize, bytes: usize) {
    advise(low, bytes, libc::MADV_DONTNEED);
}

fn advise(low: usize, bytes: usize, advice: libc::c_int) {
    // A refusal costs memory and nothing else.
    // SAFETY: the range is part of a slab, and no stack in it that is in use is among what is discarded.
    unsafe { libc::madvise(low as *mut libc::c_void, bytes, advice) };
}

fn install_mark(low: usize, bytes: usize) -> bool {
    // SAFETY: the range is a guard of a slab, which nothing uses.
    unsafe { libc::madvise(low as *mut libc::c_void, bytes, MADV_GUARD_INSTALL) == 0 }
}

fn map(bytes: usize) -> Result<usize, StackError> {
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE | libc::MAP_STACK;
    // SAFETY: a new mapping where the kernel likes.
    let start = unsafe {
        libc::mmap(
            ptr::null_mut(),
            bytes,
            libc::PROT_READ | libc::PROT_WRITE,
            flags,
            -1,
            0,
        )
    };
    if start == libc::MAP_FAILED {
        return Err(last_error());
    }
    Ok(start as usize)
}

fn protect(low: usize, bytes: usize, protection: libc::c_int) -> Result<(), StackError> {
    // SAFETY: the range is a guard of a slab.
    if unsafe { libc::mprotect(low as *mut libc::c_void, bytes, protection) } == 0 {
        return Ok(());
    }
    Err(last_error())
}

fn last_error() -> StackError {
    StackError::NoMemory(io::Error::last_os_error().raw_os_error().unwrap_or(0))
}
