//! The end of a session, and what becomes of its calls.

use alloc::vec::Vec;

use super::call::Call;
use super::state::{Ended, Request, Session};

/// The calls of a session that has ended.
pub struct Lost<C: Call> {
    /// Those whose statement could not be prepared, which is known.
    pub failing: Ended<C>,
    /// Those of which it is not known whether they were executed.
    pub underway: Vec<C>,
    /// Those that were not sent, the last one first.
    pub unsent: Vec<(C, Unsent)>,
}

/// What becomes of a call that was not sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unsent {
    /// Another session executes it.
    Queued,
    /// It fails with the session, to which it belongs.
    Lost,
    /// It fails with what has ended the session: the preparation of its statement has ended one after the other.
    GivenUp,
}

impl<C: Call> Session<C> {
    /// Ends the session; `None` if it has ended before.
    pub fn close(&mut self, host: C::Host<'_>) -> Option<Lost<C>> {
        if core::mem::replace(&mut self.is_closed, true) {
            return None;
        }
        let preparing = match self.requests.front() {
            Some(Request::Prepare((id, _), _)) => Some(*id),
            _ => None,
        };
        let requests = core::mem::take(&mut self.requests).into_iter();
        let underway = requests.filter_map(|request| match request {
            Request::Execute(execution) => Some(execution.call),
            Request::Prepare(..) | Request::Reset => None,
        });
        let backlog = core::mem::take(&mut self.backlog).into_iter().rev();
        let unsent = backlog.map(|call| {
            let id = call.id(host).ok().flatten();
            // A statement whose preparation ends one session after the other is not tried for ever.
            let is_given_up = id.is_some() && id == preparing && call.standing().has_lost_enough();
            let what = match () {
                () if is_given_up => Unsent::GivenUp,
                () if call.standing().is_free() => Unsent::Queued,
                () => Unsent::Lost,
            };
            (call, what)
        });
        Some(Lost {
            failing: core::mem::take(&mut self.failing),
            underway: underway.collect(),
            unsent: unsent.collect(),
        })
    }
}
