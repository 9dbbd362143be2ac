//! How far a call is, from its making to its result: of several threads one has it started, the result is taken once, and what
//! waits for it is woken.
//!
//! Nothing here waits or wakes. The lock is never held while foreign code can run: what a caller passes is called outside of it,
//! and what is replaced is returned or dropped outside of it. `tests/loom.rs` runs this file through the interleavings of a
//! thread that finishes a call and one that looks for its result.

use std::sync::PoisonError;

use crate::sync::{Mutex, MutexGuard};

/// A call's place between its making and its end: `R` is its result, `S` what waits for it, `M` what is measured of it.
#[derive(Debug)]
pub struct Progress<R, S, M>(Mutex<Stage<R, S, M>>);

/// Where a call is.
#[derive(Debug)]
pub enum Stage<R, S, M> {
    /// It was made.
    New,
    /// Part of a transaction that has not ended.
    Held,
    /// Something else has it and will finish it.
    Started(Underway<S, M>),
    /// Its result is there.
    Done(R),
    /// The result has been taken, or no code waits for it any more.
    Over,
}

/// What a call that was started has.
#[derive(Debug)]
pub struct Underway<S, M> {
    /// What to wake when the result is there.
    pub sleeper: Option<S>,
    /// What is measured of it, if anything is.
    pub operation: Option<Box<M>>,
}

/// What a look has found; `T` is what its caller waits by.
#[derive(Debug)]
pub enum Looked<R, T> {
    /// The result, which no one else gets.
    Result(R),
    /// There is none: the sleeper that was made is woken when there is.
    Waits(T),
    /// It has been taken.
    Over,
}

/// What a call's stage says.
enum Found<R> {
    ToBeStarted,
    Waiting,
    Result(R),
    Over,
}

impl<S, M> Default for Underway<S, M> {
    fn default() -> Self {
        Self {
            sleeper: None,
            operation: None,
        }
    }
}

impl<R, S, M> Default for Progress<R, S, M> {
    fn default() -> Self {
        Self(Mutex::new(Stage::New))
    }
}

impl<R, S, M> Progress<R, S, M> {
    fn lock(&self) -> MutexGuard<'_, Stage<R, S, M>> {
        // A stage is whole after each statement.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// No code waits for it.
    pub fn is_over(&self) -> bool {
        matches!(*self.lock(), Stage::Over | Stage::Done(_))
    }

    /// Something has it and will finish it.
    pub fn is_started(&self) -> bool {
        matches!(*self.lock(), Stage::Started(_))
    }

    /// Starts it, if it is new; whether it was. `None`: it is held.
    pub fn start(&self) -> Option<bool> {
        let mut stage = self.lock();
        match *stage {
            Stage::New => *stage = Stage::Started(Underway::default()),
            Stage::Held => return None,
            _ => return Some(false),
        }
        Some(true)
    }

    /// Starts one that is new, with what is to be woken when the result is there.
    pub fn start_for(&self, sleeper: S) {
        drop(self.replace(Stage::Started(Underway {
            sleeper: Some(sleeper),
            operation: None,
        })));
    }

    /// Changes the stage, and returns the one before.
    pub fn replace(&self, stage: Stage<R, S, M>) -> Stage<R, S, M> {
        std::mem::replace(&mut *self.lock(), stage)
    }

    /// Notes what is measured of one that has been started.
    pub fn set_operation(&self, operation: Box<M>) {
        if let Stage::Started(underway) = &mut *self.lock() {
            underway.operation = Some(operation);
        }
    }

    /// What is measured of it, which is then measured elsewhere.
    pub fn take_operation(&self) -> Option<Box<M>> {
        match &mut *self.lock() {
            Stage::Started(underway) => underway.operation.take(),
            _ => None,
        }
    }

    /// Keeps the result, has `measure` count it, and returns what is to be woken.
    pub fn finish(&self, result: R, measure: impl FnOnce(M, &R)) -> Option<S> {
        let mut stage = self.lock();
        if let Stage::Started(Underway { operation, .. }) = &mut *stage
            && let Some(operation) = operation.take()
        {
            drop(stage);
            measure(*operation, &result);
            stage = self.lock();
        }
        match &mut *stage {
            Stage::Started(underway) => {
                // One that came while the operation was measured is among those to be woken, too.
                let sleeper = underway.sleeper.take();
                *stage = Stage::Done(result);
                sleeper
            }
            Stage::New | Stage::Held => {
                *stage = Stage::Done(result);
                None
            }
            Stage::Done(_) | Stage::Over => {
                drop(stage);
                drop(result);
                None
            }
        }
    }

    fn find(&self) -> Found<R> {
        let mut stage = self.lock();
        match &*stage {
            Stage::New | Stage::Held => return Found::ToBeStarted,
            Stage::Started(_) => return Found::Waiting,
            Stage::Over => return Found::Over,
            Stage::Done(_) => {}
        }
        match std::mem::replace(&mut *stage, Stage::Over) {
            Stage::Done(result) => Found::Result(result),
            _ => Found::Over,
        }
    }

    /// The result, if it is there.
    pub fn take_result(&self) -> Option<R> {
        match self.find() {
            Found::Result(result) => Some(result),
            _ => None,
        }
    }

    /// The result, or what `sleep` has made to wait for it. `start` is called for one that was not started, until it is.
    ///
    /// # Errors
    /// That of `start` or `sleep`.
    pub fn look<T, E>(
        &self,
        mut start: impl FnMut() -> Result<(), E>,
        mut sleep: impl FnMut() -> Result<(S, T), E>,
    ) -> Result<Looked<R, T>, E> {
        loop {
            match self.find() {
                Found::ToBeStarted => start()?,
                Found::Result(result) => return Ok(Looked::Result(result)),
                Found::Over => return Ok(Looked::Over),
                Found::Waiting => {
                    let (sleeper, token) = sleep()?;
                    let replaced = match &mut *self.lock() {
                        Stage::Started(underway) => underway.sleeper.replace(sleeper),
                        // The result has come meanwhile.
                        _ => continue,
                    };
                    drop(replaced);
                    return Ok(Looked::Waits(token));
                }
            }
        }
    }

    /// What `see` makes of the stage. `None`: a thread uses the call right now.
    pub fn peek<T>(&self, see: impl FnOnce(&Stage<R, S, M>) -> T) -> Option<T> {
        self.0.try_lock().ok().map(|stage| see(&stage))
    }
}
