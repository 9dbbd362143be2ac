//! How native code waits: a goroutine parks, a thread that is no server's blocks, and every other place is a mistake.

use std::ffi::c_int;
use std::sync::Arc;

use citius_chan::{Begun, Completion, Record};
use citius_goroutine::{Current, Nanos, clear_timer, set_timer};

use super::clock::now;
use super::codes;
use super::context::Ended;
use super::current_call::CurrentCall;
use super::green::{self, Green};
use super::interpreter::{Place, interpreter};
use super::mistake::Mistake;
use crate::channel::{Outcome, Resident, Ticket, Value};
use crate::thread;

/// How long to wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Until {
    /// Without end.
    Forever,
    /// Not at all.
    Now,
    /// Until this moment.
    At(Nanos),
}

impl Until {
    /// From a number of nanoseconds, of which a negative one is without end.
    #[inline]
    pub fn within(timeout_ns: i64) -> Self {
        match u64::try_from(timeout_ns) {
            Err(_) => Self::Forever,
            Ok(0) => Self::Now,
            Ok(ns) => Self::At(now().saturating_add(ns)),
        }
    }

    /// What the first of `count` attempts has of this time, and at most five seconds if others follow.
    pub(crate) fn share(self, count: u32) -> Self {
        let time = match self {
            Self::At(at) if count > 1 => at.saturating_sub(now()) / Nanos::from(count),
            Self::Forever if count > 1 => Nanos::MAX,
            _ => return self,
        };
        Self::At(now().saturating_add(time.min(SHARE_MAX)))
    }

    pub(crate) fn is_over(self) -> bool {
        match self {
            Self::Forever => false,
            Self::Now => true,
            Self::At(at) => now() >= at,
        }
    }
}

const SHARE_MAX: Nanos = 5_000_000_000;

/// Why a wait has ended without an outcome.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Interrupted {
    TimedOut,
    /// The context of the goroutine has ended.
    Ended(Ended),
    /// A signal handler of Python has raised in the main thread.
    Raised,
    /// Nothing may wait here.
    Misuse(Mistake),
}

/// An operation that may have to wait.
pub(crate) trait Wait {
    /// Does it; otherwise queues the ticket, if there is one.
    fn attempt(
        &mut self,
        ticket: Option<&Arc<Ticket>>,
        resident: Option<&Resident>,
    ) -> Option<Outcome>;

    /// Takes the ticket out of all queues.
    fn forget(&self, ticket: &Arc<Ticket>, resident: Option<&Resident>);

    /// Whether the ticket is in several queues, of which one has completed it.
    fn is_select(&self) -> bool {
        false
    }
}

/// An operation on one channel.
pub(crate) trait Lone: Wait {
    /// Where its value is: that which it sends, or has received.
    fn place(&mut self) -> &mut Option<Value>;

    /// Does it on a channel of the resident's thread, or waits with a record; `None` elsewhere.
    fn begin(&mut self, resident: &Resident) -> Option<Begun>;

    /// See [`citius_chan::Channel::fetch`].
    fn fetch(&mut self, record: Record, resident: &Resident) -> Option<Completion>;

    /// See [`citius_chan::Channel::give_up`].
    fn give_up(&mut self, record: Record, resident: &Resident) -> Option<Completion>;
}

/// In a reactor's turn, but in no goroutine.
const IN_TURN: Mistake = c"it waits on the reactor's thread, which would stop all requests: add serial=True to its route (or \
     pool=True), or wait in a goroutine that citius_go starts";
/// On the thread of an event loop.
const ON_LOOP: Mistake = c"it waits on the thread of an event loop, which would stop the loop: wait in a goroutine that citius_go starts, in a \
     thread, or use citius.go with `await`";
const ON_HUB: Mistake = c"it waits on the thread of gevent's hub without switching greenlets: use citius.go from Python, or wait in a goroutine \
     that citius_go starts";

/// Stack that a wait needs. It is asked for before anything is locked.
pub(crate) const STACK_BYTES: usize = 4096;

/// Does an operation, waiting for it if it must.
#[inline]
pub(crate) fn perform<W: Wait>(operation: &mut W, until: Until) -> Result<Outcome, Interrupted> {
    green::with_current_and_stack(STACK_BYTES, |green, current| {
        in_goroutine(green, current, operation, until)
    })
    .unwrap_or_else(|| outside(operation, until))
}

/// Does an operation on one channel, which has its value itself, waiting for it if it must.
#[inline]
pub(crate) fn perform_lone<L: Lone>(
    operation: &mut L,
    until: Until,
) -> Result<Completion, Interrupted> {
    let result = green::with_current_and_stack(STACK_BYTES, |green, current| {
        if until != Until::Now
            && let Some(resident) = green.resident()
            && let Some(begun) = operation.begin(resident)
        {
            return match begun {
                Begun::Done(completion) => Ok(completion),
                Begun::Waits(record) => {
                    at_home(green, current, operation, until, (record, resident))
                }
            };
        }
        shared(green, current, operation, until)
    });
    match result {
        Some(result) => result,
        None => outside_lone(operation, until),
    }
}

/// Waits on a channel of the thread.
#[inline]
fn at_home<L: Lone>(
    green: &Green,
    current: Current<'_>,
    operation: &mut L,
    until: Until,
    (record, resident): (Record, &Resident),
) -> Result<Completion, Interrupted> {
    let mut wait = Recorded {
        operation,
        record,
        resident,
        completion: None,
    };
    let interrupted = wait_for(green, current, &mut wait, until);
    match (wait.completion, interrupted) {
        (Some(completion), _) => Ok(completion),
        (None, interrupted) => Err(interrupted.unwrap_or(Interrupted::TimedOut)),
    }
}

/// On a channel that is not confined to the thread.
#[inline(never)]
fn shared<L: Lone>(
    green: &Green,
    current: Current<'_>,
    operation: &mut L,
    until: Until,
) -> Result<Completion, Interrupted> {
    let outcome = in_goroutine(green, current, operation, until)?;
    Ok(Completion::of(outcome.event, operation.place()))
}

#[inline(never)]
fn outside_lone<L: Lone>(operation: &mut L, until: Until) -> Result<Completion, Interrupted> {
    let outcome = outside(operation, until)?;
    Ok(Completion::of(outcome.event, operation.place()))
}

#[inline]
fn in_goroutine<W: Wait>(
    green: &Green,
    current: Current<'_>,
    operation: &mut W,
    until: Until,
) -> Result<Outcome, Interrupted> {
    match until {
        Until::Now => operation
            .attempt(None, green.resident())
            .ok_or(Interrupted::TimedOut),
        Until::Forever | Until::At(_) => with_ticket(green, current, operation, until),
    }
}

/// In no goroutine.
#[inline]
fn outside<W: Wait>(operation: &mut W, until: Until) -> Result<Outcome, Interrupted> {
    match until {
        Until::Now => operation.attempt(None, None).ok_or(Interrupted::TimedOut),
        Until::Forever | Until::At(_) => elsewhere(operation, until),
    }
}

#[inline(never)]
fn with_ticket<W: Wait>(
    green: &Green,
    current: Current<'_>,
    operation: &mut W,
    until: Until,
) -> Result<Outcome, Interrupted> {
    let resident = green.resident();
    let mut ticket = green.ticket();
    if let Some(outcome) = operation.attempt(Some(&ticket), resident) {
        green.keep(ticket);
        return Ok(outcome);
    }
    let interrupted = wait_for(green, current, &mut ticket, until);
    if interrupted.is_some() || operation.is_select() {
        operation.forget(&ticket, resident);
    }
    match (green.conclude(ticket), interrupted) {
        (Some(outcome), _) => Ok(outcome),
        (None, Some(interrupted)) => Err(interrupted),
        (None, None) => Err(Interrupted::TimedOut),
    }
}

/// A wait that has begun.
trait Pending {
    /// Whether it has come to its end.
    fn is_over(&mut self) -> bool;

    /// Gives it up; `false`: it has come to its end.
    fn give_up(&mut self) -> bool;
}

impl Pending for Arc<Ticket> {
    #[inline]
    fn is_over(&mut self) -> bool {
        self.is_done()
    }

    fn give_up(&mut self) -> bool {
        let is_given_up = self.claim();
        if !is_given_up {
            spin(self);
        }
        is_given_up
    }
}

/// A wait for which the channel keeps a record.
struct Recorded<'a, L> {
    operation: &'a mut L,
    record: Record,
    resident: &'a Resident,
    completion: Option<Completion>,
}

impl<L: Lone> Pending for Recorded<'_, L> {
    #[inline]
    fn is_over(&mut self) -> bool {
        self.completion = self.operation.fetch(self.record, self.resident);
        self.completion.is_some()
    }

    fn give_up(&mut self) -> bool {
        self.completion = self.operation.give_up(self.record, self.resident);
        self.completion.is_none()
    }
}

/// Parks until the wait is over. `Some`: it is given up.
#[inline]
fn wait_for(
    green: &Green,
    current: Current<'_>,
    pending: &mut impl Pending,
    until: Until,
) -> Option<Interrupted> {
    let call = match CurrentCall::leave_to_wait() {
        Ok(call) => call,
        Err(mistake) => {
            return pending.give_up().then_some(Interrupted::Misuse(mistake));
        }
    };
    let context = green.context_guard();
    let limit = match until {
        Until::At(at) => at,
        Until::Forever | Until::Now => Nanos::MAX,
    };
    let deadline = context.as_ref().and_then(|context| context.deadline());
    let at = deadline.map_or(limit, |deadline| deadline.min(limit));
    if at != Nanos::MAX {
        set_timer(at);
    }
    let mut is_first = true;
    let interrupted = loop {
        // It has only just been found to have to wait.
        if !is_first && pending.is_over() {
            break None;
        }
        is_first = false;
        let interrupted = match context.as_ref().and_then(|context| context.ended()) {
            Some(ended) => Some(Interrupted::Ended(ended)),
            None if at != Nanos::MAX && now() >= limit => Some(Interrupted::TimedOut),
            None => None,
        };
        if interrupted.is_some() {
            break if pending.give_up() { interrupted } else { None };
        }
        green::park(current);
    };
    if at != Nanos::MAX {
        clear_timer();
    }
    // The thread is in no call when it continues a goroutine: each has left its own.
    if call.is_one() {
        call.return_to();
    }
    interrupted
}

/// Another thread has claimed the ticket and is about to complete it.
#[cold]
fn spin(ticket: &Ticket) {
    while !ticket.is_done() {
        std::hint::spin_loop();
    }
}

#[cold]
fn elsewhere<W: Wait>(operation: &mut W, until: Until) -> Result<Outcome, Interrupted> {
    if let Some(outcome) = operation.attempt(None, None) {
        return Ok(outcome);
    }
    if let Some(mistake) = refusal() {
        return Err(Interrupted::Misuse(mistake));
    }
    let ticket = thread::ticket();
    if let Some(outcome) = operation.attempt(Some(&ticket), None) {
        return Ok(outcome);
    }
    let end = match until {
        Until::At(at) => Some(thread::in_ns(at.saturating_sub(now()))),
        Until::Forever | Until::Now => None,
    };
    let woken = thread::wait_natively(&ticket, end);
    let interrupted = match woken {
        thread::Woken::Done => None,
        thread::Woken::TimedOut => Some(Interrupted::TimedOut),
        thread::Woken::Raised => Some(Interrupted::Raised),
    };
    // The last moment may have brought something.
    let is_given_up = interrupted.is_some() && ticket.claim();
    if !is_given_up {
        spin(&ticket);
    }
    if is_given_up || operation.is_select() {
        operation.forget(&ticket, None);
    }
    ticket
        .take()
        .ok_or(interrupted.unwrap_or(Interrupted::TimedOut))
}

/// Why the caller must not wait, if it must not: for what has to be known before something is sent.
pub fn refusal_here() -> Option<Mistake> {
    green::with_current_and_stack(STACK_BYTES, |_, _| super::gil::refusal()).unwrap_or_else(refusal)
}

/// Why this thread must not block.
fn refusal() -> Option<Mistake> {
    if thread::is_serving() {
        return Some(IN_TURN);
    }
    // Of threads without the GIL only the main thread and those that were a server's are likely to run a loop of Python's.
    let may_run_loop =
        interpreter().is_attached() || thread::is_main_thread() || super::local::home().is_some();
    if !may_run_loop {
        return None;
    }
    interpreter().place().map(|place| match place {
        Place::Loop => ON_LOOP,
        Place::Hub => ON_HUB,
    })
}

/// What never happens.
pub(crate) struct Never;

impl Wait for Never {
    fn attempt(
        &mut self,
        _ticket: Option<&Arc<Ticket>>,
        _resident: Option<&Resident>,
    ) -> Option<Outcome> {
        None
    }

    fn forget(&self, _ticket: &Arc<Ticket>, _resident: Option<&Resident>) {}
}

/// Lets others run amid work that finds something to do again and again, and ends it where a wait would end.
///
/// # Errors
/// The code that says why.
pub(crate) fn give_way(until: Until) -> Result<(), c_int> {
    let is_goroutine = green::with_current(|_| ()).is_some();
    if is_goroutine && green::yield_now().is_err() {
        // Nothing may run in between, so the work goes on.
        return Ok(());
    }
    let ended = green::with_current(|green| green.context_guard().as_ref()?.ended()).flatten();
    if let Some(ended) = ended {
        return Err(codes::interrupted(Interrupted::Ended(ended)));
    }
    match until {
        Until::At(_) if until.is_over() => Err(codes::TIMEOUT),
        _ => Ok(()),
    }
}

/// Waits until `at`.
pub(crate) fn sleep(at: Nanos) -> Result<(), Interrupted> {
    match perform(&mut Never, Until::At(at)) {
        Err(Interrupted::TimedOut) | Ok(_) => Ok(()),
        Err(interrupted) => Err(interrupted),
    }
}
