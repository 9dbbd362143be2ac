//! The counter of a wait group, and a channel that is closed when the counter reaches zero.

use std::sync::Mutex;

use crate::lock::lock;
use crate::{Channel, Element, Format, thread};

/// A wait group's counter, as the interpreter and native code share it.
pub struct Group {
    state: Mutex<State>,
    /// The process it was made in.
    generation: u32,
}

struct State {
    count: isize,
    /// Closed when the count is zero; there is a new one each time it leaves zero.
    gate: Option<Channel>,
}

/// The count cannot go below zero: what it is.
#[derive(Debug)]
pub struct Negative(pub isize);

impl Default for Group {
    fn default() -> Self {
        Self::new()
    }
}

impl Group {
    /// One whose count is zero.
    pub fn new() -> Self {
        Self {
            state: Mutex::new(State {
                count: 0,
                gate: None,
            }),
            generation: thread::generation(),
        }
    }

    /// Adds to the count; at zero all that wait are woken.
    ///
    /// # Errors
    /// The count would be below zero.
    pub fn add(&self, n: isize) -> Result<(), Negative> {
        let opened = {
            let mut state = lock(&self.state);
            let count = state.count.checked_add(n).filter(|count| *count >= 0);
            let Some(count) = count else {
                return Err(Negative(state.count));
            };
            state.count = count;
            if count == 0 {
                state.gate.take()
            } else {
                state.gate.get_or_insert_with(new_gate);
                None
            }
        };
        if let Some(gate) = opened {
            let _ = gate.close();
        }
        Ok(())
    }

    /// What is closed when the count is zero; `None`: it is.
    pub fn gate(&self) -> Option<Channel> {
        lock(&self.state).gate.clone()
    }

    /// What the count is.
    pub fn count(&self) -> isize {
        lock(&self.state).count
    }

    /// The process it was made in: see [`thread::generation`].
    pub fn generation(&self) -> u32 {
        self.generation
    }

    pub(crate) fn is_of_this_process(&self) -> bool {
        self.generation == thread::generation()
    }
}

/// A channel that is open until it is closed.
pub(crate) fn new_gate() -> Channel {
    Channel::new(0, Element::fixed(0, Format::Unit))
}
