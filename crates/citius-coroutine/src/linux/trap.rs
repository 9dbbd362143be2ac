//! The handler of SIGSEGV and SIGBUS that ends a coroutine whose stack has overflowed.
//!
//! It runs on a signal stack of its own, which each thread that resumes a coroutine gets. A fault in the guard of the coroutine that
//! runs ends this coroutine: all its frames are dropped at once, without unwinding, and [`crate::Progress::Overflowed`] is what its
//! resumer sees. Every other fault goes to the handler that was there before.
//!
//! Code that holds a lock must not be cut off: nothing would release it. So a fault in the code of an allocator, of this library or of
//! one named by [`protect`] opens the guard up to the page in question and continues, and the coroutine ends as soon as the
//! processor leaves such code: on x86-64 it runs it instruction by instruction until then (some hundred of them, a millisecond).
//! On other processors it ends at the next fault outside of such code, at the next call of [`crate::require_stack`], or at the end of
//! the guard, which has 16 pages for that.

use std::cell::Cell;
use std::ffi::{c_int, c_void};
use std::mem::MaybeUninit;
use std::ptr;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use super::coroutine::{End, Running, running};
use super::mapping::open_guard;
use crate::{GUARD_BYTES, Protection};

/// Bytes of the stack of the handler: its own frames are small, the kernel's depends on the registers of the processor.
const HANDLER_STACK_BYTES: usize = 64 * 1024;
const PAGE_BYTES: usize = 4096;

/// The executable segment of a library whose code is not cut off.
struct Segment {
    start: AtomicUsize,
    end: AtomicUsize,
    /// Not even at the end of the guard.
    is_vital: AtomicBool,
}

static PROTECTED: [Segment; PROTECTED_MAX] = [const {
    Segment {
        start: AtomicUsize::new(0),
        end: AtomicUsize::new(0),
        is_vital: AtomicBool::new(false),
    }
}; PROTECTED_MAX];
const PROTECTED_MAX: usize = 16;

/// The handlers that were there before, of SIGSEGV, SIGBUS and SIGTRAP.
static PREVIOUS: OnceLock<[libc::sigaction; 3]> = OnceLock::new();

thread_local! {
    /// The coroutine that is run instruction by instruction.
    static STEPPED: Cell<*const Running> = const { Cell::new(std::ptr::null()) };
}

/// Installs the handler, once for the process. It is also called by the first coroutine that is resumed.
pub fn install() {
    static ONCE: std::sync::Once = std::sync::Once::new();
    ONCE.call_once(|| {
        protect(libc::malloc as *const () as usize, Protection::Lasting);
        protect(
            libc::dl_iterate_phdr as *const () as usize,
            Protection::Lasting,
        );
        protect(install as *const () as usize, Protection::Lasting);
        let signals = [libc::SIGSEGV, libc::SIGBUS, libc::SIGTRAP];
        let _ = PREVIOUS.set(signals.map(current_action));
        set_action(libc::SIGSEGV, on_fault as *const () as usize);
        set_action(libc::SIGBUS, on_fault as *const () as usize);
    });
}

fn current_action(signal: c_int) -> libc::sigaction {
    let mut action = MaybeUninit::zeroed();
    // SAFETY: it only writes the action.
    unsafe { libc::sigaction(signal, ptr::null(), action.as_mut_ptr()) };
    // SAFETY: zeros are one, and the call above has written another.
    unsafe { action.assume_init() }
}

fn set_action(signal: c_int, handler: usize) {
    let mut action = current_action(signal);
    action.sa_sigaction = handler;
    // Not masked while it runs: a fault within it is to be seen.
    action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK | libc::SA_NODEFER;
    // SAFETY: the set is this action's.
    unsafe { libc::sigemptyset(&raw mut action.sa_mask) };
    // SAFETY: the handler calls nothing but what a signal handler may.
    unsafe { libc::sigaction(signal, &raw const action, ptr::null_mut()) };
}

/// Code of the library that `address` lies in is not cut off by an overflow. At most 16 libraries; further ones are ignored.
pub fn protect(address: usize, protection: Protection) {
    struct Search {
        address: usize,
        found: Option<(usize, usize)>,
    }

    unsafe extern "C" fn look(
        info: *mut libc::dl_phdr_info,
        _size: usize,
        data: *mut c_void,
    ) -> c_int {
        // SAFETY: what `dl_iterate_phdr` passes.
        let info = unsafe { &*info };
        // SAFETY: what was passed to it below.
        let search = unsafe { &mut *data.cast::<Search>() };
        // SAFETY: there are so many headers.
        let headers =
            unsafe { std::slice::from_raw_parts(info.dlpi_phdr, usize::from(info.dlpi_phnum)) };
        for header in headers {
            if header.p_type != libc::PT_LOAD || header.p_flags & libc::PF_X == 0 {
                continue;
            }
            #[expect(clippy::cast_possible_truncation, reason = "addresses of this process")]
            let (start, bytes) = (
                (info.dlpi_addr + header.p_vaddr) as usize,
                header.p_memsz as usize,
            );
            if (start..start + bytes).contains(&search.address) {
                search.found = Some((start, start + bytes));
                return 1;
            }
        }
        0
    }

    let mut search = Search {
        address,
        found: None,
    };
    // SAFETY: the callback gets the search and nothing else.
    unsafe { libc::dl_iterate_phdr(Some(look), (&raw mut search).cast()) };
    let Some((start, end)) = search.found else {
        return;
    };
    for segment in &PROTECTED {
        let known = segment.start.load(Ordering::Relaxed);
        if known == start {
            return;
        }
        if known == 0 {
            segment.end.store(end, Ordering::Relaxed);
            let is_vital = protection == Protection::Vital;
            segment.is_vital.store(is_vital, Ordering::Relaxed);
            segment.start.store(start, Ordering::Release);
            return;
        }
    }
}

fn protection_of(code: usize) -> Option<Protection> {
    let segment = PROTECTED.iter().find(|segment| {
        let start = segment.start.load(Ordering::Acquire);
        start != 0 && (start..segment.end.load(Ordering::Relaxed)).contains(&code)
    })?;
    Some(if segment.is_vital.load(Ordering::Relaxed) {
        Protection::Vital
    } else {
        Protection::Lasting
    })
}

/// Gives this thread a signal stack, if it has none.
#[cold]
pub(crate) fn prepare_thread() {
    install();
    let mut current = MaybeUninit::<libc::stack_t>::zeroed();
    // SAFETY: it only writes what there is.
    unsafe { libc::sigaltstack(ptr::null(), current.as_mut_ptr()) };
    // SAFETY: zeros are one, and the call above has written another.
    let current = unsafe { current.assume_init() };
    if current.ss_flags & libc::SS_DISABLE == 0 {
        return;
    }
    // It is kept until the thread ends, and then for good: there are few threads that resume coroutines.
    let memory = Box::leak(vec![0_u8; HANDLER_STACK_BYTES].into_boxed_slice());
    let stack = libc::stack_t {
        ss_sp: memory.as_mut_ptr().cast(),
        ss_flags: 0,
        ss_size: memory.len(),
    };
    // SAFETY: the memory is this thread's alone for good.
    unsafe { libc::sigaltstack(&raw const stack, ptr::null_mut()) };
}

unsafe extern "C" fn on_fault(signal: c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
    // SAFETY: what the kernel passes.
    let about = unsafe { &*info };
    // SAFETY: both signals have an address.
    let address = unsafe { about.si_addr() } as usize;
    // SAFETY: what the kernel passes.
    let thread = unsafe { &mut *context.cast::<libc::ucontext_t>() };
    let registers = Registers::of(thread);
    // SAFETY: what is current lives, for `resume` has not returned.
    let Some(running) = (unsafe { running().as_ref() }) else {
        // SAFETY: what the kernel has passed to this handler goes on to the one before it, unchanged.
        return unsafe { chain(signal, info, context) };
    };
    if !running.is_guard(address, registers.stack_pointer) {
        // SAFETY: what the kernel has passed to this handler goes on to the one before it, unchanged.
        return unsafe { chain(signal, info, context) };
    }
    match protection_of(registers.code) {
        Some(_) if open_for(running, address) => begin_steps(running, thread),
        Some(Protection::Vital) => {
            say(
                "citius: the stack of a goroutine is used up by code that cannot be cut off; raise --goroutine-stack-bytes\n",
            );
            // SAFETY: what the kernel has passed to this handler goes on to the one before it, unchanged.
            unsafe { chain(signal, info, context) };
        }
        Some(Protection::Lasting) | None => end(running, thread),
    }
}

/// Has the interrupted coroutine end when the handler returns.
fn end(running: &Running, thread: &mut libc::ucontext_t) {
    running.open_from.set(running.low - GUARD_BYTES);
    end_steps(thread);
    // SAFETY: the frames that this drops are never returned to, and the registers are set below.
    let registers = unsafe { running.trap.setup_trap_handler(|| End::Overflowed) };
    Registers::set(thread, registers);
}

/// Opens the guard down to the page of `address`; `false`: there is none left.
fn open_for(running: &Running, address: usize) -> bool {
    let (bottom, open_from) = (running.low - GUARD_BYTES, running.open_from.get());
    // The last page stays: whatever comes to it is cut off.
    let low = (address & !(PAGE_BYTES - 1)).max(bottom);
    if address == 0
        || low < bottom + PAGE_BYTES
        || !open_guard(low, open_from - low, running.guard_kind)
    {
        return false;
    }
    running.open_from.set(low);
    true
}

/// Writes to standard error, in a signal handler.
fn say(text: &str) {
    // SAFETY: the text is readable for its length.
    let _ = unsafe { libc::write(libc::STDERR_FILENO, text.as_ptr().cast(), text.len()) };
}

/// The flag of x86-64 that interrupts the processor after each instruction.
#[cfg(target_arch = "x86_64")]
const TRAP_FLAG: i64 = 0x100;

/// Has the processor stop after each instruction, for `on_step` to look where it is.
#[cfg(target_arch = "x86_64")]
fn begin_steps(running: &Running, thread: &mut libc::ucontext_t) {
    STEPPED.set(running);
    // From the first overflow on; another thread may be about to do the same, which is as well.
    set_action(libc::SIGTRAP, on_step as *const () as usize);
    thread.uc_mcontext.gregs[Registers::FLAGS] |= TRAP_FLAG;
}

#[cfg(target_arch = "x86_64")]
fn end_steps(thread: &mut libc::ucontext_t) {
    thread.uc_mcontext.gregs[Registers::FLAGS] &= !TRAP_FLAG;
    STEPPED.set(ptr::null());
}

#[cfg(not(target_arch = "x86_64"))]
fn begin_steps(_running: &Running, _thread: &mut libc::ucontext_t) {}

#[cfg(not(target_arch = "x86_64"))]
fn end_steps(_thread: &mut libc::ucontext_t) {}

#[cfg(target_arch = "x86_64")]
unsafe extern "C" fn on_step(signal: c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
    let stepped = STEPPED.get();
    if stepped.is_null() {
        // SAFETY: what the kernel has passed to this handler goes on to the one before it, unchanged.
        return unsafe { chain(signal, info, context) };
    }
    // SAFETY: what the kernel passes.
    let thread = unsafe { &mut *context.cast::<libc::ucontext_t>() };
    let current = running();
    if !ptr::eq(current, stepped) {
        // It has ended by itself, or has left its stack.
        return end_steps(thread);
    }
    if protection_of(Registers::of(thread).code).is_some() {
        return;
    }
    // SAFETY: it is the current one, which lives.
    end(unsafe { &*current }, thread);
}

/// Passes a signal on to the handler that was there before.
unsafe fn chain(signal: c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
    let index = match signal {
        libc::SIGSEGV => 0,
        libc::SIGBUS => 1,
        _ => 2,
    };
    let previous = PREVIOUS.get().map(|actions| &actions[index]);
    let handler = previous.map_or(libc::SIG_DFL, |action| action.sa_sigaction);
    if handler == libc::SIG_DFL || handler == libc::SIG_IGN {
        // The instruction faults again when this returns, and then the process ends as it would have.
        // SAFETY: nothing is borrowed.
        unsafe { libc::signal(signal, libc::SIG_DFL) };
        if signal == libc::SIGTRAP {
            // A trap does not come again by itself.
            // SAFETY: a call of the system that takes a number.
            unsafe { libc::raise(signal) };
        }
        return;
    }
    let takes_info = previous.is_some_and(|action| action.sa_flags & libc::SA_SIGINFO != 0);
    if takes_info {
        // SAFETY: the flag says that the handler is of this type.
        let handler = unsafe {
            std::mem::transmute::<
                usize,
                unsafe extern "C" fn(c_int, *mut libc::siginfo_t, *mut c_void),
            >(handler)
        };
        // SAFETY: it gets what the kernel would have passed to it.
        unsafe { handler(signal, info, context) };
    } else {
        // SAFETY: without the flag it is of this type.
        let handler = unsafe { std::mem::transmute::<usize, unsafe extern "C" fn(c_int)>(handler) };
        // SAFETY: it was installed by another part of the process for this signal, whose number it gets.
        unsafe { handler(signal) };
    }
}

/// What of an interrupted thread's registers is looked at.
struct Registers {
    code: usize,
    stack_pointer: usize,
}

#[cfg(target_arch = "x86_64")]
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_possible_wrap,
    reason = "registers are 64 bits wide, whatever their C type"
)]
impl Registers {
    const FLAGS: usize = libc::REG_EFL as usize;

    fn of(context: &libc::ucontext_t) -> Self {
        let registers = &context.uc_mcontext.gregs;
        Self {
            code: registers[libc::REG_RIP as usize] as usize,
            stack_pointer: registers[libc::REG_RSP as usize] as usize,
        }
    }

    fn set(context: &mut libc::ucontext_t, to: corosensei::trap::TrapHandlerRegs) {
        let registers = &mut context.uc_mcontext.gregs;
        let corosensei::trap::TrapHandlerRegs {
            rip,
            rsp,
            rbp,
            rdi,
            rsi,
        } = to;
        registers[libc::REG_RIP as usize] = rip as i64;
        registers[libc::REG_RSP as usize] = rsp as i64;
        registers[libc::REG_RBP as usize] = rbp as i64;
        registers[libc::REG_RDI as usize] = rdi as i64;
        registers[libc::REG_RSI as usize] = rsi as i64;
    }
}

#[cfg(target_arch = "aarch64")]
#[expect(
    clippy::cast_possible_truncation,
    reason = "registers are 64 bits wide, whatever their C type"
)]
impl Registers {
    fn of(context: &libc::ucontext_t) -> Self {
        Self {
            code: context.uc_mcontext.pc as usize,
            stack_pointer: context.uc_mcontext.sp as usize,
        }
    }

    fn set(context: &mut libc::ucontext_t, to: corosensei::trap::TrapHandlerRegs) {
        let corosensei::trap::TrapHandlerRegs {
            pc,
            sp,
            x0,
            x1,
            x29,
            lr,
        } = to;
        let registers = &mut context.uc_mcontext;
        registers.pc = pc;
        registers.sp = sp;
        registers.regs[0] = x0;
        registers.regs[1] = x1;
        registers.regs[29] = x29;
        registers.regs[30] = lr;
    }
}
