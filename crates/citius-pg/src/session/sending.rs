//! A call as messages.

use alloc::string::ToString;
use alloc::sync::Arc;

use super::call::{Call, Misfit, Trouble, Unfit, Work};
use super::state::{FoundBy, Session, StatementOf};
use crate::change::{change_of, is_copy};
use crate::connection::Connection;
use crate::fault::Fault;
use crate::left::Left;

type Sent<C> = Result<(), Unfit<<C as Call>::Error>>;

impl<C: Call> Session<C> {
    /// Sends a call, or nothing of it: what is left of one that cannot be sent would be the next one's.
    pub(super) fn send(
        &mut self,
        host: C::Host<'_>,
        call: &C,
        statement: Option<&FoundBy<C>>,
    ) -> Sent<C> {
        let before = self.protocol.output().len();
        let sent = self.write(host, call, statement);
        if sent.is_err() {
            self.protocol.take_back(before);
        }
        sent
    }

    #[inline]
    fn write(&mut self, host: C::Host<'_>, call: &C, statement: Option<&FoundBy<C>>) -> Sent<C> {
        match (call.work(), statement) {
            (Work::Resume(portal), _) => {
                let protocol = &mut self.protocol;
                let sent = protocol.resume_portal(portal.name(), portal.rows_max());
                sent.map_err(|fault| unsendable::<C>(host, &fault))
            }
            (Work::Copy, _) => self.write_copy(host, call),
            (Work::Each(count), Some((_, statement))) => {
                self.write_each(host, call, count, statement)
            }
            (work, Some(found)) => self.write_one(host, call, &work, found),
            (_, None) => {
                let text = call.text(host).map_err(other)?;
                let sent = self.protocol.script(text);
                sent.map_err(|fault| unsendable::<C>(host, &fault))
            }
        }
    }

    /// One execution of a statement.
    #[inline]
    fn write_one(
        &mut self,
        host: C::Host<'_>,
        call: &C,
        work: &Work<'_, C::Codec, C::Made>,
        (key, statement): &FoundBy<C>,
    ) -> Sent<C> {
        let is_encoded = matches!(work, Work::Encoded);
        if statement.has_composites && !is_encoded {
            guard(&mut self.protocol, call, statement);
        }
        let parameters = &mut self.parameters;
        let (description, parameters) = call.encode(host, statement, 0, parameters)?;
        if statement.name.is_empty() {
            prepare_nameless(&mut self.protocol, host, call, statement)?;
        }
        let sent = if let Work::Open(portal) = work {
            portal.set_statement(*key, statement);
            let (portal, rows_max) = (portal.name(), portal.rows_max());
            self.protocol
                .open_portal(portal, rows_max, &statement.name, description, parameters)
        } else {
            self.protocol
                .execute(&statement.name, description, parameters)
        };
        sent.map_err(|fault| unsendable::<C>(host, &fault))
    }

    /// One statement with each row of parameters.
    fn write_each(
        &mut self,
        host: C::Host<'_>,
        call: &C,
        count: usize,
        statement: &Arc<StatementOf<C>>,
    ) -> Sent<C> {
        for at in 0..count {
            if at == 0 && statement.has_composites {
                guard(&mut self.protocol, call, statement);
            }
            // The guard of the first one has no name, either, and is what an empty one means behind it.
            if statement.name.is_empty() && (at == 0 || at == 1 && statement.has_composites) {
                prepare_nameless(&mut self.protocol, host, call, statement)?;
            }
            let parameters = &mut self.parameters;
            let (description, parameters) = call.encode(host, statement, at, parameters)?;
            let sent = self
                .protocol
                .execute_next(&statement.name, description, parameters);
            sent.map_err(|fault| unsendable::<C>(host, &fault))?;
        }
        self.protocol.end_executions(count);
        Ok(())
    }

    fn write_copy(&mut self, host: C::Host<'_>, call: &C) -> Sent<C> {
        let text = call.text(host).map_err(other)?;
        if !is_copy(text) {
            let why = "expected one COPY statement: COPY … FROM STDIN, or COPY … TO STDOUT";
            return Err(other(C::error(host, Trouble::Unsendable(why))));
        }
        self.left = self.left.max(Left::by_copy(change_of(text)));
        let sent = self.protocol.copy(text);
        self.is_copying = sent.is_ok();
        sent.map_err(|fault| unsendable::<C>(host, &fault))
    }
}

/// Has the next execution fail if composite types are not what they were.
#[cold]
fn guard<C: Call>(protocol: &mut Connection, call: &C, statement: &StatementOf<C>) {
    if let Some(guard) = statement.guard(call.standing().reads_names) {
        protocol.guard_next(guard);
    }
}

/// The text of a statement without a name, before it is bound.
fn prepare_nameless<C: Call>(
    protocol: &mut Connection,
    host: C::Host<'_>,
    call: &C,
    statement: &StatementOf<C>,
) -> Sent<C> {
    let text = call.text(host).map_err(other)?;
    let sent = protocol.prepare_for_next(text, statement.description());
    sent.map_err(|fault| unsendable::<C>(host, &fault))
}

#[cold]
fn unsendable<C: Call>(host: C::Host<'_>, fault: &Fault) -> Unfit<C::Error> {
    other(C::error(host, Trouble::Unsendable(&fault.to_string())))
}

#[cold]
fn other<Error>(error: Error) -> Unfit<Error> {
    let misfit = Misfit::Other;
    Unfit { error, misfit }
}
