//! What an error of the server's means for the request that it is of: prepare again, look again, repeat, or fail.

use alloc::boxed::Box;
use alloc::sync::Arc;

use super::call::{Call, Host, Trouble};
use super::state::{FoundBy, Heard, Over, Prepared, Request, Session};
use super::statement::{Key, Origin};
use crate::fault::ServerError;
use crate::guard::Guard;

/// `query_canceled`.
const CANCELED: &str = "57014";
/// `invalid_sql_statement_name`: there is no prepared statement of this name.
const UNKNOWN_NAME: &str = "26000";
/// `duplicate_prepared_statement`.
const KNOWN_NAME: &str = "42P05";
/// `invalid_text_representation`: of a parameter, or of a guard.
const INVALID_TEXT: &str = "22P02";

impl<C: Call> Session<C> {
    pub(super) fn fail(
        &mut self,
        host: C::Host<'_>,
        error: Box<ServerError>,
        heard: &mut Heard<C>,
    ) {
        // What a reset should have undone others would have.
        let is_of_reset = matches!(self.requests.front(), Some(Request::Reset));
        if is_of_reset && error.code == CANCELED && heard.is_cancelling {
            return self.reset();
        }
        if is_of_reset || matches!(error.severity.as_str(), "FATAL" | "PANIC") {
            heard.over = Some(Over::Fatal);
            self.fatal = Some(error);
            return;
        }
        match self.requests.front_mut() {
            Some(Request::Execute(_)) => self.fail_execution(host, &error, heard),
            Some(Request::Prepare(key, origin)) => {
                let (key, origin) = (*key, core::mem::take(origin));
                self.fail_prepare(host, key, &origin, &error, heard);
            }
            Some(Request::Reset) | None => {}
        }
    }

    fn fail_execution(&mut self, host: C::Host<'_>, error: &ServerError, heard: &mut Heard<C>) {
        let Some(Request::Execute(execution)) = self.requests.front_mut() else {
            return;
        };
        let (call, statement) = (&execution.call, execution.statement.as_ref());
        let is_unknown = is_unknown_name::<C>(error, statement);
        if is_unknown && !statement.is_some_and(|(_, it)| self.names.lose(it.names)) {
            heard.are_names_lost |= host.pool().lose_names();
        }
        let has_changed = has_changed(host, error, statement, call);
        let old = statement.filter(|_| is_of_a_plan(error));
        if let Some((_, statement)) = old
            && is_of_the_schema(error)
        {
            host.pool().change_schema(statement.schema);
        }
        let stale = old.map(|(key, statement)| (*key, Arc::clone(statement)));
        // What was executed of a call that is a transaction of its own has been undone.
        let is_stale = old.is_some() && !call.standing().was_stale_before();
        let is_canceled = error.code == CANCELED && heard.is_cancelling;
        execution.is_to_repeat = (is_unknown || is_stale || has_changed || is_canceled)
            && call.standing().is_free()
            && !call.is_over();
        execution.error = Some(C::error(host, Trouble::Server(error)));
        // One that is prepared anew already is another one.
        if let Some((key, statement)) = stale
            && let Some(Prepared::Ready(known)) = self.statements.get(&key)
            && Arc::ptr_eq(known, &statement)
        {
            self.forget_one(key);
        }
    }

    /// A statement could not be prepared: so fail all that wait for it, and the others keep their order.
    fn fail_prepare(
        &mut self,
        host: C::Host<'_>,
        key: Key,
        origin: &Origin,
        error: &ServerError,
        heard: &mut Heard<C>,
    ) {
        self.statements.remove(&key);
        self.server_bytes = self.server_bytes.saturating_sub(origin.footprint(None));
        let is_known = error.code == KNOWN_NAME && !origin.name.is_empty();
        if is_known {
            heard.are_names_lost |= host.pool().lose_names();
        }
        // It may be there: Parse can have succeeded and Describe failed. Closing what is not is no error.
        self.forget_name(&origin.name);
        // A cancel request that was for the call before it: those that may be prepared anew are.
        let is_stray = is_known || error.code == CANCELED && heard.is_cancelling;
        for call in core::mem::take(&mut self.backlog) {
            let is_its = call.id(host).ok().flatten() == Some(key.0);
            if is_its && !(is_stray && call.standing().is_free()) {
                let error = C::error(host, Trouble::Server(error));
                self.failing.push((call, Err(error)));
            } else {
                self.backlog.push_back(call);
            }
        }
    }
}

/// Whether the server does not know the name of a statement. Nothing has been executed then: the name was looked for first.
/// One that is not ours is the statement's own.
fn is_unknown_name<C: Call>(error: &ServerError, statement: Option<&FoundBy<C>>) -> bool {
    let is_named_in_it =
        |(_, it): &FoundBy<C>| !it.name.is_empty() && error.message.contains(&it.name);
    error.code == UNKNOWN_NAME && statement.is_some_and(is_named_in_it)
}

/// Whether types are not what the statement was prepared for. Nothing has been executed: Bind comes first, then the guard.
fn has_changed<C: Call>(
    host: C::Host<'_>,
    error: &ServerError,
    statement: Option<&FoundBy<C>>,
    call: &C,
) -> bool {
    let Some((_, known)) = statement.filter(|_| error.code == INVALID_TEXT) else {
        return false;
    };
    let is_guard = Guard::has_failed(error);
    if is_guard {
        known.table().set_stale();
    }
    (is_guard || known.is_worth_a_look(host.now_ms())) && !call.standing().has_lost_enough()
}

/// Whether an error may be one of what was found out when the statement was prepared: of its plan, its types or its name.
fn is_of_a_plan(error: &ServerError) -> bool {
    let code = error.code.as_str();
    matches!(code, "0A000" | UNKNOWN_NAME | "08P01" | "XX000")
        || code.starts_with("42") && code != "42501"
}

/// Whether it says that plans of other statements are not what they were, either.
fn is_of_the_schema(error: &ServerError) -> bool {
    let message = error.message.as_str();
    error.code == "0A000" && message.contains("cached plan")
        || error.code == "XX000" && message.contains("cache lookup failed")
}
