//! Tasks whose coroutines have suspended and ended, for the requests that come.
//!
//! In: such a task, at the end of its coroutine. Out: the same one as a spare, if it is then like a fresh one (I18); otherwise it
//! ends. It is looked at when its step is over, since references that the step has are no other code's: behind the step where
//! the turn makes it, in the next turn where the event loop does. Tests: `tests/eager/test_isolation.py`.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use citius_http::FAST_PATHS;
use citius_reactor::Mailbox;
use pyo3::prelude::*;

use super::SpareTask;
use crate::reuse::Reuse;
use crate::sync::lock;

/// How many tasks wait for requests at most, besides the spare. The tasks of more requests at once are made anew.
const PARKED_MAX: usize = 64;

/// Tasks without a request.
pub(super) struct Parked {
    /// Says whether a turn comes. Without it no task is kept.
    mailbox: Option<Arc<Mailbox>>,
    /// There are tasks to look at: a turn asks twice.
    is_unsettled: AtomicBool,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// The loop is about to close.
    is_closed: bool,
    /// Whose coroutines have ended; not looked at yet.
    ended: Vec<SpareTask>,
    /// Which were fresh when they were put here.
    fresh: Vec<SpareTask>,
}

impl Parked {
    pub(super) fn new(mailbox: Option<Arc<Mailbox>>) -> Self {
        Self {
            mailbox,
            is_unsettled: AtomicBool::new(false),
            state: Mutex::default(),
        }
    }

    /// Keeps a task whose coroutine has ended. `false`: it ends.
    pub(super) fn keep(&self, task: Option<SpareTask>) -> bool {
        let is_settled_soon = self.mailbox.as_ref().is_some_and(|it| it.is_expected());
        let Some(task) = task.filter(|task| FAST_PATHS && is_settled_soon && task.memory.is_some())
        else {
            return false;
        };
        let mut state = lock(&self.state);
        let is_kept = !state.is_closed && state.ended.len() + state.fresh.len() < PARKED_MAX;
        if is_kept {
            state.ended.push(task);
            self.is_unsettled.store(true, Ordering::Relaxed);
        }
        is_kept
    }

    /// Looks at the tasks whose coroutines have ended; those that are not fresh end. No task is the current one.
    #[inline]
    pub(super) fn settle(&self, py: Python<'_>) {
        if self.is_unsettled.load(Ordering::Relaxed) {
            self.settle_all(py);
        }
    }

    fn settle_all(&self, py: Python<'_>) {
        self.is_unsettled.store(false, Ordering::Relaxed);
        let mut ended = std::mem::take(&mut lock(&self.state).ended);
        for mut task in ended.drain(..) {
            let is_fresh = task.is_fresh(py, 0);
            let mut state = lock(&self.state);
            if is_fresh && !state.is_closed {
                state.fresh.push(task);
            } else {
                drop(state);
                task.driver.get().retire(py);
            }
        }
        // Its memory is for the next ones.
        let mut state = lock(&self.state);
        if state.ended.is_empty() {
            state.ended = ended;
        }
    }

    /// One that is fresh still: code may have found it meanwhile.
    pub(super) fn take(&self, py: Python<'_>) -> Option<SpareTask> {
        loop {
            let mut task = lock(&self.state).fresh.pop()?;
            if task.is_fresh(py, 0) {
                return Some(task);
            }
            task.driver.get().retire(py);
        }
    }

    /// All end, and no more are kept.
    pub(super) fn close(&self, py: Python<'_>) {
        let tasks = {
            let mut state = lock(&self.state);
            state.is_closed = true;
            let ended = std::mem::take(&mut state.ended);
            ended
                .into_iter()
                .chain(std::mem::take(&mut state.fresh))
                .collect::<Vec<_>>()
        };
        for task in tasks {
            task.driver.get().retire(py);
        }
    }
}
