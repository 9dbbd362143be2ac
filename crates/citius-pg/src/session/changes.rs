//! What calls change of the session, and what undoes it for the next user.

use alloc::format;
use alloc::string::String;

use super::call::{Call, Scope, Trouble, Work};
use super::path::Path;
use super::state::{FoundBy, Request, Session};
use crate::change::{Change, RESET, RESET_NAMES, is_from_client, is_temporary};
use crate::connection::TransactionStatus;
use crate::left::Left;

impl<C: Call> Session<C> {
    /// Refuses a statement that changes the session for the calls of others, or the transaction of its block. Behind a
    /// pooler that changes the server process (`is_pooled`), what a block has left there is beyond the reach of its reset.
    #[cold]
    pub(super) fn admit(
        &mut self,
        host: C::Host<'_>,
        call: &C,
        change: Change,
        is_pooled: bool,
    ) -> Result<(), C::Error> {
        let scope = call.standing().scope();
        let (is_free, is_of_block) = (scope == Scope::Pool, scope == Scope::Block);
        let is_refused = match change {
            Change::Nothing | Change::Code | Change::Path | Change::Stream => false,
            Change::Transaction | Change::Names => is_free || is_of_block,
            Change::Savepoint => is_free,
            Change::Session | Change::SessionPath | Change::Prepare | Change::Lasting => {
                is_free || is_pooled
            }
        };
        if is_refused {
            let word = match change {
                Change::Transaction => "transaction",
                Change::Savepoint => "savepoint",
                Change::Names => "names",
                _ if !is_free => "pooled",
                _ => "session",
            };
            return Err(C::error(host, Trouble::Refused { word, is_of_block }));
        }
        // What code of the pool's own calls leaves is reset behind it.
        if !is_free {
            self.left = self.left.max(Left::by(change));
        }
        Ok(())
    }

    /// Whether a statement that waits says where names are looked up by those behind it.
    pub(super) fn waits_for_path(&self, host: C::Host<'_>) -> bool {
        self.backlog.iter().any(|call| {
            let id = call.id(host).ok().flatten();
            id.is_some_and(|id| {
                matches!(
                    id.change(),
                    Change::Path | Change::SessionPath | Change::Savepoint
                )
            })
        })
    }

    /// Notes what a call that is sent changes of the session; whether the session is to be reset behind it.
    #[inline]
    pub(super) fn note_sent(
        &mut self,
        host: C::Host<'_>,
        call: &C,
        statement: Option<&FoundBy<C>>,
    ) -> bool {
        match statement.map(|((id, _), _)| id.change()) {
            Some(Change::Nothing) => false,
            None if !matches!(call.work(), Work::Script) => false,
            _ => self.note_change(host, call, statement),
        }
    }

    fn note_change(&mut self, host: C::Host<'_>, call: &C, statement: Option<&FoundBy<C>>) -> bool {
        let Some(((id, _), _)) = statement else {
            self.path.follow(call.text(host).unwrap_or_default());
            return false;
        };
        let is_free = call.standing().is_free();
        self.names.note(id.change());
        match id.change() {
            Change::Code => return is_free,
            // `DISCARD ALL` resets the path, too.
            Change::Names => {
                let is_in_transaction = self.status != TransactionStatus::Idle;
                self.path
                    .set(Change::SessionPath, id.bits(), None, is_in_transaction);
            }
            change @ (Change::Path | Change::SessionPath) if !is_free => {
                let parameters =
                    matches!(call.work(), Work::Statement).then(|| self.parameters.values());
                // What is made on the path of temporary tables stays with the session.
                if parameters.is_none_or(is_temporary) {
                    self.left = self.left.max(Left::Changes);
                }
                let is_in_transaction =
                    self.status != TransactionStatus::Idle || !self.requests.is_empty();
                self.path
                    .set(change, id.bits(), parameters, is_in_transaction);
            }
            // A portion after the first has no text, and its statement is none of these.
            Change::Transaction | Change::Savepoint if !matches!(call.work(), Work::Resume(_)) => {
                self.path.follow(call.text(host).unwrap_or_default());
            }
            _ => {}
        }
        false
    }

    /// Has the server undo what a call may have changed of the session.
    pub(super) fn reset(&mut self) {
        let script = format!("{RESET_NAMES}{RESET}");
        if self.protocol.script(&script).is_ok() {
            self.requests.push_back(Request::Reset);
            self.is_resetting = true;
        }
    }

    /// A reset has ended. Behind one that has failed nothing is sent: the session ends, and others execute what waits.
    pub(super) fn end_reset(&mut self) {
        let is_reset = |request: &Request<C>| matches!(request, Request::Reset);
        self.is_resetting = self.fatal.is_some() || self.requests.iter().any(is_reset);
    }

    /// What is to be executed before another block has it, because something may be left of the one that had it; empty if
    /// nothing undoes that.
    pub fn take_changes(&mut self) -> Option<String> {
        self.path = Path::default();
        core::mem::take(&mut self.left).reset()
    }

    /// Has it reset before another block has it, whatever this one does.
    pub fn set_changed(&mut self) {
        self.left = self.left.max(Left::Names);
    }
}

/// Refuses a COPY whose data the server would wait for: it would take the statements of others, which follow, for them.
#[cold]
pub(super) fn refuse_stream<C: Call>(
    host: C::Host<'_>,
    text: &str,
    change: Change,
) -> Result<(), C::Error> {
    if change == Change::Stream || is_from_client(text) {
        let (word, is_of_block) = ("stream", false);
        return Err(C::error(host, Trouble::Refused { word, is_of_block }));
    }
    Ok(())
}
