//! What a coroutine may do, on every kind of guard.
#![allow(
    unsafe_code,
    reason = "a recursion without an end, and code that is no library's, have to be made"
)]

use std::cell::{Cell, RefCell};
use std::hint::black_box;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use std::sync::{PoisonError, RwLock};

use citius_coroutine::{
    Coroutine, MigratingCoroutine, Progress, StackError, Stacks, is_inside, on_thread_stack,
    remaining_bytes, require_stack, suspend, with_current,
};

const STACK_BYTES: usize = 64 * 1024;

/// Held by tests that need mapped guards, and alone by the one that takes all that the process may have.
static MAPPED_GUARDS: RwLock<()> = RwLock::new(());

fn both_guards(test: impl Fn(&Stacks)) {
    let _shared = MAPPED_GUARDS.read().unwrap_or_else(PoisonError::into_inner);
    for force_mapped in [false, true] {
        test(&Stacks::with_guards(STACK_BYTES, 64, force_mapped));
    }
}

fn coroutine(stacks: &Stacks, code: impl FnOnce() + 'static) -> Coroutine {
    Coroutine::new(stacks.take().expect("a stack"), code)
}

#[test]
fn it_suspends_in_the_middle_and_returns() {
    both_guards(|stacks| {
        let seen = Rc::new(RefCell::new(Vec::new()));
        let log = Rc::clone(&seen);
        let mut coroutine = coroutine(stacks, move || {
            for n in 0..3 {
                log.borrow_mut().push(n);
                suspend();
            }
        });
        assert!(!is_inside());
        for n in 0..3 {
            assert!(matches!(coroutine.resume(), Progress::Suspended));
            assert_eq!(seen.borrow().len(), n + 1);
        }
        assert!(matches!(coroutine.resume(), Progress::Returned));
        stacks.give(coroutine.into_stack());
        assert_eq!(stacks.in_use(), 0);
    });
}

#[test]
fn its_code_knows_it_without_a_look_at_the_thread() {
    let stacks = Stacks::new(STACK_BYTES, 1);
    with_current(|current| assert!(current.is_none()));
    let mut coroutine = coroutine(&stacks, || {
        with_current(|current| {
            let current = current.expect("in a coroutine");
            assert!(current.is_pinned());
            assert_eq!(current.word(), 7);
            current.require_stack(4096);
            current.suspend();
            assert_eq!(current.word(), 8);
            let away = on_thread_stack(|| {
                catch_unwind(AssertUnwindSafe(|| {
                    current.suspend();
                }))
            });
            assert!(away.is_err(), "it must not suspend itself on another stack");
            current.suspend();
        });
    });
    coroutine.set_word(7);
    assert!(matches!(coroutine.resume(), Progress::Suspended));
    assert_eq!(coroutine.word(), 7);
    // It is the same one wherever its owner puts it.
    let mut moved = Box::new(coroutine);
    moved.set_word(8);
    assert!(matches!(moved.resume(), Progress::Suspended));
    assert!(matches!(moved.resume(), Progress::Returned));
    stacks.give(moved.into_stack());
}

#[test]
fn a_panic_is_handed_to_the_resumer() {
    let stacks = Stacks::new(STACK_BYTES, 1);
    let mut coroutine = coroutine(&stacks, || {
        suspend();
        panic!("on purpose");
    });
    assert!(matches!(coroutine.resume(), Progress::Suspended));
    let Progress::Panicked(payload) = coroutine.resume() else {
        panic!("it does not panic");
    };
    assert_eq!(payload.downcast_ref::<&str>(), Some(&"on purpose"));
    stacks.give(coroutine.into_stack());
}

#[test]
fn coroutines_are_resumed_within_coroutines() {
    let stacks = Stacks::new(STACK_BYTES, 2);
    let inner_stacks = stacks.clone();
    let mut outer = coroutine(&stacks, move || {
        let mut inner = coroutine(&inner_stacks, || {
            suspend();
            suspend();
        });
        assert!(matches!(inner.resume(), Progress::Suspended));
        suspend();
        assert!(matches!(inner.resume(), Progress::Suspended));
        assert!(matches!(inner.resume(), Progress::Returned));
        inner_stacks.give(inner.into_stack());
    });
    assert!(matches!(outer.resume(), Progress::Suspended));
    assert!(matches!(outer.resume(), Progress::Returned));
    stacks.give(outer.into_stack());
    assert_eq!(stacks.in_use(), 0);
}

#[test]
fn an_abandoned_one_leaks_what_it_owns() {
    struct Owned(Rc<Cell<bool>>);
    impl Drop for Owned {
        fn drop(&mut self) {
            self.0.set(true);
        }
    }
    let stacks = Stacks::new(STACK_BYTES, 1);
    let is_dropped = Rc::new(Cell::new(false));
    let owned = Owned(Rc::clone(&is_dropped));
    let mut coroutine = coroutine(&stacks, move || {
        let _owned = owned;
        suspend();
    });
    assert!(matches!(coroutine.resume(), Progress::Suspended));
    stacks.give(coroutine.abandon());
    assert!(!is_dropped.get());
    assert_eq!(stacks.in_use(), 0);
}

#[inline(never)]
fn recurse(depth: usize) -> usize {
    let mut block = [0_u8; 512];
    black_box(&mut block);
    if depth == 0 {
        return usize::from(block[0]);
    }
    black_box(recurse(black_box(depth - 1))) + usize::from(block[1])
}

/// Until the stack has grown down to `address`.
#[inline(never)]
fn recurse_to(address: usize) {
    let mut block = [0_u8; 512];
    black_box(&mut block);
    if &raw const block as usize > address {
        recurse_to(address);
    }
    black_box(&mut block);
}

#[test]
fn an_overflow_ends_the_coroutine_only() {
    both_guards(|stacks| {
        for _ in 0..2 {
            let mut deep = coroutine(stacks, || {
                suspend();
                black_box(recurse(usize::MAX));
            });
            let mut other = coroutine(stacks, || {
                suspend();
                assert_eq!(recurse(50), 0);
            });
            assert!(matches!(deep.resume(), Progress::Suspended));
            assert!(matches!(other.resume(), Progress::Suspended));
            assert!(matches!(deep.resume(), Progress::Overflowed));
            assert!(matches!(other.resume(), Progress::Returned));
            stacks.give_hot(deep.into_stack());
            stacks.give_hot(other.into_stack());
        }
        assert_eq!(stacks.in_use(), 0);
    });
}

/// Code that belongs to no library, as that of a compiler at run time: a function that calls itself for ever.
fn foreign_recursion() -> extern "C" fn() {
    #[cfg(target_arch = "x86_64")]
    let code: &[u8] = &[0xe8, 0xfb, 0xff, 0xff, 0xff]; // call itself
    #[cfg(target_arch = "aarch64")]
    let code: &[u8] = &[0xfd, 0x7b, 0xbf, 0xa9, 0xff, 0xff, 0xff, 0x97]; // stp x29, x30, [sp, #-16]!; bl itself
    // SAFETY: a new mapping; its pointer is checked below.
    let memory = unsafe {
        libc::mmap(
            std::ptr::null_mut(),
            4096,
            libc::PROT_READ | libc::PROT_WRITE | libc::PROT_EXEC,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
            -1,
            0,
        )
    };
    assert_ne!(memory, libc::MAP_FAILED);
    // SAFETY: the mapping is larger than the code.
    unsafe { std::ptr::copy_nonoverlapping(code.as_ptr(), memory.cast(), code.len()) };
    // SAFETY: it is the code of such a function.
    unsafe { std::mem::transmute(memory) }
}

#[test]
fn code_of_no_library_is_cut_off_at_the_first_page_of_the_guard() {
    both_guards(|stacks| {
        let function = foreign_recursion();
        let mut deep = coroutine(stacks, move || function());
        assert!(matches!(deep.resume(), Progress::Overflowed));
        stacks.give(deep.into_stack());
    });
}

#[test]
fn code_that_is_protected_uses_a_part_of_the_guard_and_ends_at_the_next_check() {
    both_guards(|stacks| {
        let mut deep = coroutine(stacks, || {
            let left = remaining_bytes().expect("in a coroutine");
            // This code is protected, because the library is linked into it. Some pages into the guard, and back.
            let here = 0_u8;
            recurse_to(&raw const here as usize - left - 4 * 4096);
            suspend();
            require_stack(0);
            unreachable!("the guard is open");
        });
        assert!(matches!(deep.resume(), Progress::Suspended));
        assert!(matches!(deep.resume(), Progress::Overflowed));
        stacks.give_hot(deep.into_stack());
        // The guard is closed again.
        let function = foreign_recursion();
        let mut next = coroutine(stacks, move || function());
        assert!(matches!(next.resume(), Progress::Overflowed));
        stacks.give(next.into_stack());
    });
}

#[test]
fn what_needs_more_stack_than_is_left_does_not_begin() {
    let stacks = Stacks::new(STACK_BYTES, 1);
    let mut coroutine = coroutine(&stacks, || {
        require_stack(16 * 1024);
        suspend();
        require_stack(STACK_BYTES);
        unreachable!("there is no room");
    });
    assert!(matches!(coroutine.resume(), Progress::Suspended));
    assert!(matches!(coroutine.resume(), Progress::Overflowed));
    stacks.give(coroutine.into_stack());
    require_stack(usize::MAX / 2); // not in a coroutine
}

#[test]
fn work_that_needs_a_large_stack_runs_on_that_of_the_thread() {
    let stacks = Stacks::new(STACK_BYTES, 1);
    let mut coroutine = coroutine(&stacks, || {
        suspend();
        let sum = on_thread_stack(|| {
            assert!(!is_inside());
            recurse(400) + 7
        });
        assert_eq!(sum, 7);
        assert!(is_inside());
        let caught = std::panic::catch_unwind(|| on_thread_stack(|| panic!("there")));
        assert!(caught.is_err());
        assert!(is_inside());
        suspend();
    });
    for _ in 0..2 {
        assert!(matches!(coroutine.resume(), Progress::Suspended));
    }
    assert!(matches!(coroutine.resume(), Progress::Returned));
    stacks.give(coroutine.into_stack());
    assert_eq!(on_thread_stack(|| 3), 3);
}

#[test]
fn a_pool_has_a_limit() {
    let stacks = Stacks::new(STACK_BYTES, 2);
    let (one, two) = (stacks.take().expect("one"), stacks.take().expect("two"));
    assert_eq!(stacks.take().err(), Some(StackError::Limit(2)));
    stacks.give(one);
    stacks.give(two);
    assert!(stacks.take().is_ok());
}

#[test]
fn mapped_guards_are_counted() {
    let _alone = MAPPED_GUARDS
        .write()
        .unwrap_or_else(PoisonError::into_inner);
    let stacks = Stacks::with_guards(16 * 1024, usize::MAX, true);
    let mut taken = Vec::new();
    let error = loop {
        match stacks.take() {
            Ok(stack) => taken.push(stack),
            Err(error) => break error,
        }
    };
    assert!(
        matches!(error, StackError::TooManyMappings { .. }),
        "{error}"
    );
    assert!(taken.len() > 1000, "{}", taken.len());
    // There is room for everything else.
    let other: Vec<_> = (0..500).map(|n| vec![0_u8; 200_000 + n]).collect();
    assert_eq!(other.len(), 500);
    for stack in taken {
        stacks.give(stack);
    }
}

#[test]
fn a_migrating_one_goes_on_on_another_thread() {
    let stacks = Stacks::new(STACK_BYTES, 1);
    let (sender, receiver) = std::sync::mpsc::channel();
    let code = move || {
        for _ in 0..2 {
            sender.send(std::thread::current().id()).expect("received");
            suspend();
        }
    };
    // SAFETY: nothing of the thread is kept over the suspension.
    let mut coroutine = unsafe { MigratingCoroutine::new(stacks.take().expect("a stack"), code) };
    assert!(matches!(coroutine.resume(), Progress::Suspended));
    let coroutine = std::thread::spawn(move || {
        let mut coroutine = coroutine;
        assert!(matches!(coroutine.resume(), Progress::Suspended));
        coroutine
    })
    .join()
    .expect("no panic");
    let (one, two) = (receiver.recv().expect("one"), receiver.recv().expect("two"));
    assert_ne!(one, two);
    stacks.give(coroutine.abandon());
}
