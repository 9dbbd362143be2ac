//! The handler of SIGSEGV and SIGBUS that ends a coroutine whose stack has overflowed.
//!
//! It runs on a signal stack of its own, which each thread that resumes a coroutine gets. A fault in the guard of the coroutine that
//! runs ends this coroutine: all its frames are dropped at once, without unwinding, and [`crate::Progress::Overflowed`] is what its
//! resumer sees. Every other fault goes to the handler that was there before.
//!
//! Code that holds a lock must not be cut off: nothing would release it. So a fault in the code of an allocator, of this library or of
//! one named by [`protect`] opens the guard up to the page in question and continues; then the next fault outside of such code, the
//! next call of [`crate::require_stack`] or the end of the guard ends the coroutine. The guard has 16 pages for that.

use std::cell::Cell;
use std::ffi::{c_int, c_void};
use std::mem::MaybeUninit;
use std::ptr;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::coroutine::{End, Running, running};
use crate::mapping::open_guard;
use crate::stack::GUARD_BYTES;

/// Bytes of the stack of the handler: its own frames are small, the kernel's depends on the registers of the processor.
const HANDLER_STACK_BYTES: usize = 64 * 1024;
const PAGE_BYTES: usize = 4096;

/// Executable segments of libraries whose code is not cut off, as (start, end).
static PROTECTED: [[AtomicUsize; 2]; PROTECTED_MAX] =
    [const { [AtomicUsize::new(0), AtomicUsize::new(0)] }; PROTECTED_MAX];
const PROTECTED_MAX: usize = 16;

/// The handlers that were there before, of SIGSEGV and SIGBUS.
static PREVIOUS: OnceLock<[libc::sigaction; 2]> = OnceLock::new();

thread_local! {
    static IS_PREPARED: Cell<bool> = const { Cell::new(false) };
}

/// Installs the handler, once for the process. It is also called by the first coroutine that is resumed.
pub fn install() {
    static ONCE: std::sync::Once = std::sync::Once::new();
    ONCE.call_once(|| {
        protect(libc::malloc as *const () as usize);
        protect(libc::dl_iterate_phdr as *const () as usize);
        protect(install as *const () as usize);
        let previous = [libc::SIGSEGV, libc::SIGBUS].map(current_action);
        let _ = PREVIOUS.set(previous);
        for signal in [libc::SIGSEGV, libc::SIGBUS] {
            set_action(signal);
        }
    });
}

fn current_action(signal: c_int) -> libc::sigaction {
    let mut action = MaybeUninit::zeroed();
    // SAFETY: it only writes the action.
    unsafe { libc::sigaction(signal, ptr::null(), action.as_mut_ptr()) };
    // SAFETY: zeros are one, and the call above has written another.
    unsafe { action.assume_init() }
}

fn set_action(signal: c_int) {
    let mut action = current_action(signal);
    action.sa_sigaction = on_fault as *const () as usize;
    // Not masked while it runs: a fault within it is to be seen.
    action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK | libc::SA_NODEFER;
    // SAFETY: the set is this action's.
    unsafe { libc::sigemptyset(&raw mut action.sa_mask) };
    // SAFETY: the handler calls nothing but what a signal handler may.
    unsafe { libc::sigaction(signal, &raw const action, ptr::null_mut()) };
}

/// Code of the library that `address` lies in is not cut off by an overflow. At most 16 libraries; further ones are ignored.
pub fn protect(address: usize) {
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
    for place in &PROTECTED {
        let known = place[0].load(Ordering::Relaxed);
        if known == start {
            return;
        }
        if known == 0 {
            place[1].store(end, Ordering::Relaxed);
            place[0].store(start, Ordering::Release);
            return;
        }
    }
}

fn is_protected(code: usize) -> bool {
    PROTECTED.iter().any(|place| {
        let start = place[0].load(Ordering::Acquire);
        start != 0 && (start..place[1].load(Ordering::Relaxed)).contains(&code)
    })
}

/// Gives this thread a signal stack, if it has none.
#[inline]
pub(crate) fn prepare_thread() {
    if !IS_PREPARED.get() {
        make_signal_stack();
    }
}

#[cold]
fn make_signal_stack() {
    IS_PREPARED.set(true);
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
    // SAFETY: as above.
    let context_of_thread = unsafe { &mut *context.cast::<libc::ucontext_t>() };
    let registers = Registers::of(context_of_thread);
    // SAFETY: what is current lives, for `resume` has not returned.
    if let Some(running) = unsafe { running().as_ref() }
        && running.is_guard(address, registers.stack_pointer)
    {
        if is_protected(registers.code) && open_for(running, address) {
            return;
        }
        running.open_from.set(running.low - GUARD_BYTES);
        // SAFETY: the frames that this drops are never returned to, and the registers are set below.
        let regs = unsafe { running.trap.setup_trap_handler(|| End::Overflowed) };
        Registers::set(context_of_thread, regs);
        return;
    }
    // SAFETY: as this was called.
    unsafe { chain(signal, info, context) };
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

/// Passes a signal on to the handler that was there before.
unsafe fn chain(signal: c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
    let index = usize::from(signal == libc::SIGBUS);
    let previous = PREVIOUS.get().map(|actions| &actions[index]);
    let handler = previous.map_or(libc::SIG_DFL, |action| action.sa_sigaction);
    if handler == libc::SIG_DFL || handler == libc::SIG_IGN {
        // The instruction faults again when this returns, and then the process ends as it would have.
        // SAFETY: nothing is borrowed.
        unsafe { libc::signal(signal, libc::SIG_DFL) };
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
        // SAFETY: as above.
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
