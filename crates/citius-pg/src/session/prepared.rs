//! Which statements are prepared, under which names, and which of them the server forgets.

use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;

use super::call::{Call, Host, Trouble, Work};
use super::pool::PoolState;
use super::state::{Ended, FoundBy, Prepared, Request, Session, StatementOf};
use super::statement::{Key, Origin, Statement};
use crate::footprint::{NAMED_TEXT_BYTES_MAX, SERVER_BYTES_MAX, STATEMENTS_MAX};
use crate::type_table::TypeTable;

/// Whether a call can be sent.
pub(super) enum Readiness<C: Call> {
    Ready(Option<FoundBy<C>>),
    Pending,
}

impl<C: Call> Session<C> {
    /// Has a statement prepared under the name that it has for this session.
    pub(super) fn prepare(
        &mut self,
        host: C::Host<'_>,
        key: Key,
        text: &str,
    ) -> Result<(), C::Error> {
        let origin = Origin {
            name: name_of(host.pool(), key, text),
            text_bytes: text.len(),
            schema: host.pool().schema(),
            names: self.names.now(),
        };
        let bytes = origin.footprint(None);
        if self.is_full(bytes) {
            self.make_room(bytes);
        }
        let prepared = self.protocol.prepare(&origin.name, text);
        prepared.map_err(|fault| C::error(host, Trouble::Fault(&fault)))?;
        self.server_bytes += bytes;
        self.statements.insert(key, Prepared::Pending);
        self.requests.push_back(Request::Prepare(key, origin));
        Ok(())
    }

    /// The statement of a call; it is prepared if that has not begun.
    pub(super) fn statement_of(
        &mut self,
        host: C::Host<'_>,
        call: &C,
    ) -> Result<Readiness<C>, C::Error> {
        if let Work::Resume(portal) = call.work() {
            return Ok(Readiness::Ready(portal.statement()));
        }
        let Some(id) = call.id(host)? else {
            return Ok(Readiness::Ready(None));
        };
        let key = (id, self.path.number());
        match self.statements.get(&key) {
            Some(Prepared::Ready(statement)) if self.is_valid(host, statement) => {
                statement.set_used();
                return Ok(Readiness::Ready(Some((key, Arc::clone(statement)))));
            }
            Some(Prepared::Pending | Prepared::Untyped(_)) => return Ok(Readiness::Pending),
            Some(Prepared::Ready(_)) => self.forget_one(key),
            None => {}
        }
        self.prepare(host, key, call.text(host)?)?;
        Ok(Readiness::Pending)
    }

    /// Whether a statement can be executed as it was prepared.
    #[inline]
    fn is_valid(&self, host: C::Host<'_>, statement: &StatementOf<C>) -> bool {
        let pool = host.pool();
        (statement.name.is_empty() || !pool.is_nameless())
            && statement.schema == pool.schema()
            && !self.names.are_lost(statement.names)
            && !(statement.has_composites && statement.table().is_stale())
    }

    /// Whether one more statement, of so many bytes, is too much for the server.
    pub(super) fn is_full(&self, bytes: usize) -> bool {
        self.statements.len() >= STATEMENTS_MAX || self.server_bytes + bytes > SERVER_BYTES_MAX
    }

    /// Has the server forget statements that were not used since this was last done; all, if that is not enough.
    fn make_room(&mut self, bytes: usize) {
        self.forget_if(|statement| !statement.take_used());
        let is_full = self.statements.len() >= STATEMENTS_MAX / 2
            || self.server_bytes + bytes > SERVER_BYTES_MAX / 2;
        if is_full {
            self.forget_statements();
        }
    }

    /// Makes room if statements are wider than they were taken to be; those that have been sent stay until they are done.
    #[inline]
    pub(super) fn keep_within_bounds(&mut self) {
        if self.server_bytes > SERVER_BYTES_MAX && !self.is_copying {
            self.make_room(0);
        }
    }

    /// Has the server forget all statements that are not under way: they are prepared anew when they come again.
    pub fn forget_statements(&mut self) {
        self.forget_if(|_| true);
    }

    /// Has the server forget a name. The data of a COPY is not interrupted for that: the server would refuse it.
    pub(super) fn forget_name(&mut self, name: &str) {
        if name.is_empty() {
            return;
        }
        if self.is_copying {
            self.forgotten.push(name.into());
        } else {
            self.protocol.forget(name);
        }
    }

    fn forget_if(&mut self, is_wanted: impl Fn(&StatementOf<C>) -> bool) {
        let (mut names, server_bytes) = (Vec::new(), &mut self.server_bytes);
        self.statements.retain(|_, prepared| match prepared {
            // A portal ends with its statement.
            Prepared::Ready(statement)
                if Arc::strong_count(statement) == 1 && is_wanted(statement) =>
            {
                names.push(statement.name.clone());
                *server_bytes = server_bytes.saturating_sub(statement.footprint);
                false
            }
            Prepared::Ready(_) | Prepared::Untyped(_) | Prepared::Pending => true,
        });
        for name in &names {
            self.forget_name(name);
        }
    }

    /// Has a statement prepared anew when it comes again.
    pub(super) fn forget_one(&mut self, key: Key) {
        if let Some(Prepared::Ready(statement)) = self.statements.remove(&key) {
            self.forget_name(&statement.name);
            self.server_bytes = self.server_bytes.saturating_sub(statement.footprint);
        }
    }

    /// Notes what has been found out of types; returns those of which nothing has been.
    pub fn know_types(&mut self, table: &Arc<TypeTable<C::Codec>>) -> Vec<u32> {
        let mut unknown_types = Vec::new();
        for prepared in self.statements.values_mut() {
            if let Prepared::Untyped(described) = prepared {
                let unknown = described.1.unknown_types(table.types());
                if !unknown.is_empty() {
                    unknown_types.extend(unknown);
                    continue;
                }
                let (origin, description) = core::mem::take(&mut **described);
                let statement = Statement::new(origin, description, Arc::clone(table));
                *prepared = Prepared::Ready(Arc::new(statement));
            }
        }
        unknown_types
    }

    /// It could not be found out what types are: statements that have waited for it fail, and are described again when they
    /// come again.
    pub fn fail_types(&mut self, host: C::Host<'_>, error: impl Fn() -> C::Error) -> Ended<C> {
        let (mut names, mut failed) = (Vec::new(), Vec::new());
        let server_bytes = &mut self.server_bytes;
        self.statements.retain(|key, prepared| match prepared {
            Prepared::Untyped(described) => {
                let (origin, description) = &**described;
                names.push(origin.name.clone());
                *server_bytes = server_bytes.saturating_sub(origin.footprint(Some(description)));
                failed.push(key.0);
                false
            }
            _ => true,
        });
        for name in &names {
            self.forget_name(name);
        }
        let mut ended = Ended::<C>::new();
        for call in core::mem::take(&mut self.backlog) {
            let id = call.id(host).ok().flatten();
            if id.is_some_and(|id| failed.contains(&id)) {
                ended.push((call, Err(error())));
            } else {
                self.backlog.push_back(call);
            }
        }
        ended
    }

    /// The server has described a statement.
    pub(super) fn described(
        &mut self,
        host: C::Host<'_>,
        description: crate::Description,
        unknown_types: &mut Vec<u32>,
    ) {
        let Some(Request::Prepare(key, origin)) = self.requests.front() else {
            return;
        };
        let (table, origin) = (host.types(), origin.clone());
        // It is known now how wide it is.
        self.server_bytes = (self.server_bytes + origin.footprint(Some(&description)))
            .saturating_sub(origin.footprint(None));
        let unknown = description.unknown_types(table.types());
        let prepared = if unknown.is_empty() {
            Prepared::Ready(Arc::new(Statement::new(origin, description, table)))
        } else {
            unknown_types.extend(unknown);
            Prepared::Untyped(Box::new((origin, description)))
        };
        self.statements.insert(*key, prepared);
    }
}

fn name_of(pool: &PoolState, (id, path): Key, text: &str) -> String {
    if pool.is_nameless() || text.len() > NAMED_TEXT_BYTES_MAX {
        return String::new();
    }
    match path {
        0 => format!("{}{id}", pool.prefix),
        path => format!("{}{id}_{path:x}", pool.prefix),
    }
}
