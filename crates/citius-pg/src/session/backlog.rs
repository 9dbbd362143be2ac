//! Calls that are added, wait and are sent in their order.

use alloc::boxed::Box;

use super::call::{Call, Host, Misfit, Scope, Unfit};
use super::changes::refuse_stream;
use super::prepared::Readiness;
use super::state::{Ended, Execution, FoundBy, Request, Session};
use crate::change::Change;

impl<C: Call> Session<C> {
    /// Takes a call; what it needs is sent, or it waits for that. `is_held`: a cancel request is under way.
    pub fn add(&mut self, host: C::Host<'_>, call: C, is_held: bool, ended: &mut Ended<C>) {
        if let Err(error) = self.prepare_ahead(host, &call) {
            return ended.push((call, Err(error)));
        }
        if call.standing().scope() == Scope::Lookup {
            // Calls before it wait for what it finds.
            self.backlog.push_front(call);
        } else {
            self.backlog.push_back(call);
        }
        self.pump(host, is_held, ended);
    }

    /// Begins to prepare the statement of a call, if that cannot depend on what waits before it.
    fn prepare_ahead(&mut self, host: C::Host<'_>, call: &C) -> Result<(), C::Error> {
        let Some(id) = call.id(host)? else {
            return Ok(());
        };
        let change = id.change();
        if change != Change::Nothing {
            refuse_stream::<C>(host, call.text(host)?, change)?;
            self.admit(host, call, change, host.pool().is_pooled())?;
        }
        let key = (id, self.path.number());
        if self.is_copying
            || self.is_full(0)
            || self.statements.contains_key(&key)
            || !call.standing().is_free() && self.waits_for_path(host)
        {
            return Ok(());
        }
        self.prepare(host, key, call.text(host)?)
    }

    /// Sends calls in their order, up to the first whose statement is not prepared. None is sent while a cancel request
    /// is under way, because it could hit them: `is_held`.
    pub fn pump(&mut self, host: C::Host<'_>, is_held: bool, ended: &mut Ended<C>) {
        if self.is_closed {
            return;
        }
        self.send_backlog(host, is_held, ended);
        self.keep_within_bounds();
    }

    fn send_backlog(&mut self, host: C::Host<'_>, is_held: bool, ended: &mut Ended<C>) {
        if !self.is_copying {
            for name in self.forgotten.drain(..) {
                self.protocol.forget(&name);
            }
            for portal in self.closing.drain(..) {
                self.protocol.close_portal(&portal);
            }
        }
        while !(self.is_copying || is_held || self.is_resetting)
            && let Some(call) = self.backlog.pop_front()
        {
            if call.is_over() {
                // No code is told of it.
                let result = C::finish(host, None, None, 0);
                ended.push((call, result));
                continue;
            }
            let statement = match self.statement_of(host, &call) {
                Ok(Readiness::Ready(statement)) => statement,
                Ok(Readiness::Pending) => return self.backlog.push_front(call),
                Err(error) => {
                    ended.push((call, Err(error)));
                    continue;
                }
            };
            match self.send(host, &call, statement.as_ref()) {
                Ok(()) => self.execute(host, call, statement),
                Err(unfit) => match self.again(host, &call, statement.as_ref(), unfit) {
                    None => self.backlog.push_front(call),
                    Some(error) => ended.push((call, Err(error))),
                },
            }
        }
    }

    /// A call has been sent.
    #[inline]
    fn execute(&mut self, host: C::Host<'_>, call: C, statement: Option<FoundBy<C>>) {
        let is_code = self.note_sent(host, &call, statement.as_ref());
        let is_reset = is_code || host.pool().resets && call.standing().is_free();
        let rows = statement.is_some().then(|| call.rows(host));
        self.requests
            .push_back(Request::Execute(Box::new(Execution {
                call,
                statement,
                rows,
                count: 0,
                error: None,
                is_to_repeat: false,
            })));
        if is_reset {
            self.reset();
        }
    }

    /// What a call whose arguments do not fit ends with; `None`: it is tried again, because the types may be others by now.
    #[cold]
    fn again(
        &mut self,
        host: C::Host<'_>,
        call: &C,
        statement: Option<&FoundBy<C>>,
        unfit: Unfit<C::Error>,
    ) -> Option<C::Error> {
        let Some((key, known)) = statement else {
            return Some(unfit.error);
        };
        if known.is_worth_a_look(host.now_ms()) {
            return None;
        }
        // What is too large for a number of the old type clients can send at will: that is worth another look from time to
        // time.
        let is_of_other_types = match unfit.misfit {
            Misfit::Type => true,
            Misfit::Range => known.table().set_stale_if_old(host.now_ms()),
            Misfit::Other => false,
        };
        if is_of_other_types && !call.standing().was_stale_before() {
            // It is prepared anew, once.
            self.forget_one(*key);
            return None;
        }
        Some(unfit.error)
    }
}
