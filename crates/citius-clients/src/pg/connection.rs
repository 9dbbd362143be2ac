//! One session: which calls are under way, and where its bytes go.
//!
//! The session is taken out of its lock while it works, because reading rows makes Python objects, which may run any code. What is
//! to be done with it meanwhile waits at its [`Place`] and is done when it is back; a call that any session may have goes to the
//! pool's queue. What is asked of it is answered without it.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use citius_base::upstream::{Carrier, Place, Protocol, TlsArguments, Upstream};
use citius_pg::{
    Change, ChannelBinding, Connection, Description, Event, Fault, Guard, Left, Login,
    NAMED_TEXT_BYTES_MAX, Names, Parameters, Path, RESET, RESET_NAMES, SERVER_BYTES_MAX,
    STATEMENTS_MAX, ServerError, TransactionStatus, cancel_request, change_of, is_copy,
    is_from_client, is_temporary,
};
use citius_reactor::Inbox;
use pyo3::IntoPyObjectExt;
use pyo3::exceptions::{PyOverflowError, PyTypeError, PyValueError};
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyTuple};

use super::call::{PgCall, Work};
use super::encode::{check_count, encode, in_row};
use super::errors::{error_of, protocol_error, server_error};
use super::pool::{PgPool, change_of_id};
use super::rows::{Key, Origin, Rows, Statement};
use super::types::TypeTable;

/// A session with a server.
#[pyclass(frozen, module = "citius._core", name = "PgConnection")]
pub(crate) struct PgConnection {
    pool: Py<PgPool>,
    place: Place<Session, Self>,
    upstream: Upstream,
    /// Requests under way or about to be.
    load: AtomicUsize,
    /// Where it is: [`TransactionStatus`].
    status: AtomicU8,
    /// A cancel request is under way, or its effect may be.
    is_cancelling: AtomicBool,
    /// Calls are held back, so that a cancel request does not hit them.
    is_held: AtomicBool,
    /// How often something has come.
    heard: AtomicU32,
    /// What cancels it, from when it is open on.
    key: OnceLock<(i32, i32)>,
    /// What has ended it.
    end: OnceLock<String>,
}

struct Session {
    protocol: Connection,
    inbox: Inbox,
    requests: VecDeque<Request>,
    statements: HashMap<Key, Prepared>,
    path: Path,
    names: Names,
    status: TransactionStatus,
    /// Calls that wait for their statement to be prepared, or behind one that does.
    backlog: VecDeque<Py<PgCall>>,
    /// Calls whose statement could not be prepared. They end with `ReadyForQuery`, which has the transaction's status: code
    /// that handles the error reads it.
    failing: Ended,
    parameters: Parameters,
    fatal: Option<Box<ServerError>>,
    /// A COPY is under way: the server would take any request for its data.
    is_copying: bool,
    /// Portals to be closed with the next request.
    closing: Vec<String>,
    /// What `statements` take of the server's memory, about.
    server_bytes: usize,
    left: Left,
    /// A reset is under way: what comes behind it is held back, because a cancel request may hit it.
    is_resetting: bool,
    is_closed: bool,
}

enum Request {
    /// The statement and what it is prepared as.
    Prepare(Key, Origin),
    Execute(Box<Execution>),
    /// What follows code that may have changed the session.
    Reset,
}

enum Prepared {
    Pending,
    /// It has types of which it is not known yet what they are.
    Untyped(Box<(Origin, Description)>),
    Ready(Arc<Statement>),
}

struct Execution {
    call: Py<PgCall>,
    statement: Option<(Key, Arc<Statement>)>,
    rows: Option<Rows>,
    count: u64,
    error: Option<PyErr>,
    /// A cancel request that was for the call before it has hit it.
    is_to_repeat: bool,
}

/// Whether a call can be sent.
enum Readiness {
    Ready(Option<(Key, Arc<Statement>)>),
    Pending,
}

/// Calls that have ended, to be told when the session is in place again.
type Ended = Vec<(Py<PgCall>, PyResult<Py<PyAny>>)>;

/// User, password, database, further parameters, and the mode of channel binding.
type LoginArguments = (
    String,
    Option<String>,
    String,
    Vec<(String, String)>,
    String,
);

impl Session {
    /// Takes a call; what it needs is sent, or it waits for that.
    fn add(
        &mut self,
        py: Python<'_>,
        pool: &PgPool,
        call: Py<PgCall>,
        is_held: bool,
        ended: &mut Ended,
    ) {
        if let Some(sql) = call.get().work.statement() {
            let prepared = pool.statement_id(sql.bind(py)).and_then(|id| {
                let change = change_of_id(id);
                if change != Change::Nothing {
                    refuse_stream(py, sql.bind(py).to_str()?, change)?;
                    self.admit(py, &call, change, pool.is_nameless())?;
                }
                let key = (id, self.path.number());
                if self.is_copying
                    || self.is_full(0)
                    || self.statements.contains_key(&key)
                    || !call.get().is_free() && self.waits_for_path(pool, py)
                {
                    return Ok(());
                }
                self.prepare(py, pool, key, sql.bind(py))
            });
            if let Err(error) = prepared {
                return ended.push((call, Err(error)));
            }
        }
        if call.get().is_lookup() {
            // Calls before it wait for what it finds.
            self.backlog.push_front(call);
        } else {
            self.backlog.push_back(call);
        }
        self.pump(py, pool, is_held, ended);
    }

    /// Whether a statement that waits says where names are looked up by those behind it.
    fn waits_for_path(&self, pool: &PgPool, py: Python<'_>) -> bool {
        self.backlog.iter().any(|call| {
            let sql = call.get().work.statement();
            let id = sql.and_then(|sql| pool.statement_id(sql.bind(py)).ok());
            id.is_some_and(|id| {
                matches!(
                    change_of_id(id),
                    Change::Path | Change::SessionPath | Change::Savepoint
                )
            })
        })
    }

    /// Refuses a statement that changes the session for the calls of others, or the transaction of its block. Behind a
    /// pooler that changes the server process, what a block has left there is beyond the reach of its reset.
    #[cold]
    fn admit(
        &mut self,
        py: Python<'_>,
        call: &Py<PgCall>,
        change: Change,
        is_pooled: bool,
    ) -> PyResult<()> {
        let (is_free, is_of_block) = (call.get().is_free(), call.get().is_of_block());
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
            return Err(error_of(py, "refused", (word, is_of_block)));
        }
        // What code of the pool's own calls leaves is reset behind it.
        if !is_free {
            self.left = self.left.max(Left::by(change));
        }
        Ok(())
    }

    /// Notes what has been found out of types; returns those of which nothing has been.
    fn know_types(&mut self, table: &Arc<TypeTable>) -> Vec<u32> {
        let mut unknown_types = Vec::new();
        for prepared in self.statements.values_mut() {
            if let Prepared::Untyped(described) = prepared {
                let unknown = described.1.unknown_types(&table.types);
                if !unknown.is_empty() {
                    unknown_types.extend(unknown);
                    continue;
                }
                let (origin, description) = std::mem::take(&mut **described);
                let statement = Statement::new(origin, description, Arc::clone(table));
                *prepared = Prepared::Ready(Arc::new(statement));
            }
        }
        unknown_types
    }

    fn prepare(
        &mut self,
        py: Python<'_>,
        pool: &PgPool,
        key: Key,
        sql: &Bound<'_, pyo3::types::PyString>,
    ) -> PyResult<()> {
        let text = sql.to_str()?;
        let name = name_of(pool, key, text);
        let origin = Origin {
            name,
            text_bytes: text.len(),
            schema: pool.schema(),
            names: self.names.now(),
        };
        let bytes = origin.footprint(None);
        if self.is_full(bytes) {
            self.make_room(bytes);
        }
        let prepared = self.protocol.prepare(&origin.name, text);
        prepared.map_err(|fault| protocol_error(py, &fault))?;
        self.server_bytes += bytes;
        self.statements.insert(key, Prepared::Pending);
        self.requests.push_back(Request::Prepare(key, origin));
        Ok(())
    }

    /// Whether one more statement, of so many bytes, is too much for the server.
    fn is_full(&self, bytes: usize) -> bool {
        self.statements.len() >= STATEMENTS_MAX || self.server_bytes + bytes > SERVER_BYTES_MAX
    }

    /// Has the server forget statements that were not used since this was last done; all, if that is not enough.
    fn make_room(&mut self, bytes: usize) {
        self.forget_if(|statement| !statement.is_used.swap(false, Ordering::Relaxed));
        let is_full = self.statements.len() >= STATEMENTS_MAX / 2
            || self.server_bytes + bytes > SERVER_BYTES_MAX / 2;
        if is_full {
            self.forget_statements();
        }
    }

    /// Has the server forget all statements that are not under way.
    fn forget_statements(&mut self) {
        self.forget_if(|_| true);
    }

    fn forget_if(&mut self, is_wanted: impl Fn(&Statement) -> bool) {
        let (protocol, server_bytes) = (&mut self.protocol, &mut self.server_bytes);
        self.statements.retain(|_, prepared| match prepared {
            // A portal ends with its statement.
            Prepared::Ready(statement)
                if Arc::strong_count(statement) == 1 && is_wanted(statement) =>
            {
                if !statement.name.is_empty() {
                    protocol.forget(&statement.name);
                }
                *server_bytes = server_bytes.saturating_sub(statement.footprint);
                false
            }
            Prepared::Ready(_) | Prepared::Untyped(_) | Prepared::Pending => true,
        });
    }

    /// Sends calls in their order, up to the first whose statement is not prepared. None is sent while a cancel request
    /// is under way, because it could hit them: `is_held`.
    fn pump(&mut self, py: Python<'_>, pool: &PgPool, is_held: bool, ended: &mut Ended) {
        self.send_backlog(py, pool, is_held, ended);
        // Statements that are wider than they were taken to be; those that have been sent stay until they are done.
        if self.server_bytes > SERVER_BYTES_MAX && !self.is_copying {
            self.make_room(0);
        }
    }

    fn send_backlog(&mut self, py: Python<'_>, pool: &PgPool, is_held: bool, ended: &mut Ended) {
        if !self.is_copying {
            for portal in self.closing.drain(..) {
                self.protocol.close_portal(&portal);
            }
        }
        while !(self.is_copying || is_held || self.is_resetting)
            && let Some(call) = self.backlog.pop_front()
        {
            if call.get().is_over() {
                ended.push((call, Ok(py.None())));
                continue;
            }
            let statement = match self.statement_of(py, pool, &call) {
                Ok(Readiness::Ready(statement)) => statement,
                Ok(Readiness::Pending) => return self.backlog.push_front(call),
                Err(error) => {
                    ended.push((call, Err(error)));
                    continue;
                }
            };
            match self.send(py, &call, statement.as_ref()) {
                Ok(()) => {
                    let is_code = self.note_sent(py, &call, statement.as_ref());
                    let is_reset = is_code || pool.resets && call.get().is_free();
                    let rows = statement
                        .is_some()
                        .then(|| Rows::new(py, &call.get().shape));
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
                Err(_) if is_worth_a_look(statement.as_ref()) => self.backlog.push_front(call),
                Err(error) => {
                    if let Some((key, known)) = &statement
                        && is_of_other_types(py, &error, known)
                        && !call.get().was_stale_before()
                    {
                        // The types of its parameters may be others by now: it is prepared anew, once.
                        self.forget_one(*key);
                        self.backlog.push_front(call);
                        continue;
                    }
                    ended.push((call, Err(error)));
                }
            }
        }
    }

    /// Has the server undo what a call may have changed of the session.
    fn reset(&mut self) {
        if self
            .protocol
            .script(&format!("{RESET_NAMES}{RESET}"))
            .is_ok()
        {
            self.requests.push_back(Request::Reset);
            self.is_resetting = true;
        }
    }

    /// A reset has ended. Behind one that has failed nothing is sent: the session ends, and others execute what waits.
    fn end_reset(&mut self) {
        let is_reset = |request: &Request| matches!(request, Request::Reset);
        self.is_resetting = self.fatal.is_some() || self.requests.iter().any(is_reset);
    }

    /// Notes what a call that is sent changes of the session; whether the session is to be reset behind it.
    fn note_sent(
        &mut self,
        py: Python<'_>,
        call: &Py<PgCall>,
        statement: Option<&(Key, Arc<Statement>)>,
    ) -> bool {
        let work = &call.get().work;
        let Some(((id, _), _)) = statement else {
            if let Work::Script(sql) = work {
                self.path.follow(sql.bind(py).to_str().unwrap_or_default());
            }
            return false;
        };
        self.names.note(change_of_id(*id));
        match change_of_id(*id) {
            Change::Code => return call.get().is_free(),
            // `DISCARD ALL` resets the path, too.
            Change::Names => {
                let is_in_transaction = self.status != TransactionStatus::Idle;
                self.path
                    .set(Change::SessionPath, *id, None, is_in_transaction);
            }
            change @ (Change::Path | Change::SessionPath) if !call.get().is_free() => {
                let parameters =
                    matches!(work, Work::Statement(..)).then(|| self.parameters.values());
                // What is made on the path of temporary tables stays with the session.
                if parameters.is_none_or(is_temporary) {
                    self.left = self.left.max(Left::Changes);
                }
                let is_in_transaction =
                    self.status != TransactionStatus::Idle || !self.requests.is_empty();
                self.path.set(change, *id, parameters, is_in_transaction);
            }
            Change::Transaction | Change::Savepoint => {
                if let Some(sql) = work.statement() {
                    self.path.follow(sql.bind(py).to_str().unwrap_or_default());
                }
            }
            _ => {}
        }
        false
    }

    /// The statement of a call; it is prepared if that has not begun.
    fn statement_of(
        &mut self,
        py: Python<'_>,
        pool: &PgPool,
        call: &Py<PgCall>,
    ) -> PyResult<Readiness> {
        if let Work::Resume(portal) = &call.get().work {
            return Ok(Readiness::Ready(portal.statement()));
        }
        let Some(sql) = call.get().work.statement() else {
            return Ok(Readiness::Ready(None));
        };
        let key = (pool.statement_id(sql.bind(py))?, self.path.number());
        match self.statements.get(&key) {
            Some(Prepared::Ready(statement))
                if (statement.name.is_empty() || !pool.is_nameless())
                    && statement.schema == pool.schema()
                    && !self.names.are_lost(statement.names)
                    && !(statement.has_composites && statement.table.is_stale()) =>
            {
                statement.is_used.store(true, Ordering::Relaxed);
                Ok(Readiness::Ready(Some((key, Arc::clone(statement)))))
            }
            Some(Prepared::Pending | Prepared::Untyped(_)) => Ok(Readiness::Pending),
            Some(Prepared::Ready(_)) => {
                self.forget_one(key);
                self.prepare(py, pool, key, sql.bind(py))?;
                Ok(Readiness::Pending)
            }
            None => {
                self.prepare(py, pool, key, sql.bind(py))?;
                Ok(Readiness::Pending)
            }
        }
    }

    /// Has a statement prepared anew when it comes again.
    fn forget_one(&mut self, key: Key) {
        if let Some(Prepared::Ready(statement)) = self.statements.remove(&key) {
            if !statement.name.is_empty() {
                self.protocol.forget(&statement.name);
            }
            self.server_bytes = self.server_bytes.saturating_sub(statement.footprint);
        }
    }

    /// Sends a call, or nothing of it: what is left of one that cannot be sent would be the next one's.
    fn send(
        &mut self,
        py: Python<'_>,
        call: &Py<PgCall>,
        statement: Option<&(Key, Arc<Statement>)>,
    ) -> PyResult<()> {
        let before = self.protocol.output().len();
        let sent = self.write(py, call, statement);
        if sent.is_err() {
            self.protocol.take_back(before);
        }
        sent
    }

    fn write(
        &mut self,
        py: Python<'_>,
        call: &Py<PgCall>,
        statement: Option<&(Key, Arc<Statement>)>,
    ) -> PyResult<()> {
        let work = &call.get().work;
        if let Some((_, statement)) = statement {
            self.begin_writing(py, call.get(), statement)?;
        }
        let sent = match (work, statement) {
            (Work::Each(_, rows), Some((_, statement))) => {
                return self.write_each(py, work, rows, statement);
            }
            (Work::Statement(..), Some((_, statement))) => {
                self.protocol
                    .execute(&statement.name, &statement.description, &self.parameters)
            }
            (Work::Native(_, parameters), Some((_, statement))) => {
                self.protocol
                    .execute(&statement.name, statement.as_text(), parameters)
            }
            (Work::Open(portal, ..), Some((key, statement))) => {
                portal.set_statement(*key, statement);
                self.protocol.open_portal(
                    &portal.name,
                    portal.rows_max,
                    &statement.name,
                    &statement.description,
                    &self.parameters,
                )
            }
            (Work::Resume(portal), _) => self.protocol.resume_portal(&portal.name, portal.rows_max),
            (Work::Copy(sql, _), _) => {
                let sql = sql.bind(py).to_str()?;
                if !is_copy(sql) {
                    return Err(PyValueError::new_err(
                        "expected one COPY statement: COPY … FROM STDIN, or COPY … TO STDOUT",
                    ));
                }
                self.left = self.left.max(Left::by_copy(change_of(sql)));
                let sent = self.protocol.copy(sql);
                self.is_copying = sent.is_ok();
                sent
            }
            (
                Work::Script(sql)
                | Work::Statement(sql, _)
                | Work::Native(sql, _)
                | Work::Each(sql, _)
                | Work::Open(_, sql, _),
                _,
            ) => self.protocol.script(sql.bind(py).to_str()?),
        };
        sent.map_err(|fault| PyValueError::new_err(fault.to_string()))
    }

    /// What comes before the execution of a statement: its parameters, and its text if it has no name.
    fn begin_writing(
        &mut self,
        py: Python<'_>,
        call: &PgCall,
        statement: &Statement,
    ) -> PyResult<()> {
        let (work, description) = (&call.work, &statement.description);
        if statement.has_composites
            && !matches!(work, Work::Native(..))
            && let Some(guard) = statement.guard(&call.shape)
        {
            self.protocol.guard_next(guard);
        }
        match work {
            Work::Statement(_, arguments) | Work::Open(_, _, arguments) => {
                let (arguments, table) = (arguments.bind(py), &statement.table);
                encode(arguments, description, table, &mut self.parameters)?;
            }
            Work::Native(_, parameters) => check_count(parameters.len(), description)?,
            _ => {}
        }
        self.prepare_nameless(py, work, statement)
    }

    /// The text of a statement without a name, before it is bound.
    fn prepare_nameless(
        &mut self,
        py: Python<'_>,
        work: &Work,
        statement: &Statement,
    ) -> PyResult<()> {
        if let Some(sql) = work.statement()
            && statement.name.is_empty()
        {
            let sql = sql.bind(py).to_str()?;
            let sent = self.protocol.prepare_for_next(sql, &statement.description);
            sent.map_err(|fault| PyValueError::new_err(fault.to_string()))?;
        }
        Ok(())
    }

    /// One statement with each of these parameters.
    fn write_each(
        &mut self,
        py: Python<'_>,
        work: &Work,
        rows: &[Py<PyTuple>],
        statement: &Statement,
    ) -> PyResult<()> {
        let description = &statement.description;
        for (at, row) in rows.iter().enumerate() {
            if at == 1 && statement.has_composites {
                // The guard of the first one has no name, either, and is what an empty one means now.
                self.prepare_nameless(py, work, statement)?;
            }
            let parameters = &mut self.parameters;
            encode(row.bind(py), description, &statement.table, parameters)
                .map_err(|error| in_row(py, at, &error))?;
            self.protocol
                .execute_next(&statement.name, description, parameters)
                .map_err(|fault| PyValueError::new_err(fault.to_string()))?;
        }
        self.protocol.end_executions(rows.len());
        Ok(())
    }

    /// Takes an event; a fault ends the session.
    fn take(&mut self, py: Python<'_>, event: Event<'_>, heard: &mut Heard<'_>, ended: &mut Ended) {
        match event {
            Event::Row(row) => {
                let Some(Request::Execute(execution)) = self.requests.front_mut() else {
                    return;
                };
                execution.row(py, row);
            }
            Event::Complete(count) => {
                if let Some(Request::Execute(execution)) = self.requests.front_mut() {
                    execution.complete(count);
                }
            }
            Event::CopyIn => self.copied(py, None, heard),
            Event::CopyData(data) => self.copied(py, Some(data), heard),
            Event::Done(status) => {
                heard.status = Some(status);
                self.status = status;
                ended.append(&mut self.failing);
                match self.requests.pop_front() {
                    Some(Request::Execute(execution)) if execution.is_to_repeat => {
                        heard.repeated.push(execution.call);
                    }
                    Some(Request::Execute(execution)) => {
                        if let Work::Copy(..) = &execution.call.get().work {
                            self.is_copying = false;
                        }
                        ended.push(execution.finish(py));
                    }
                    Some(Request::Reset) => self.end_reset(),
                    _ => {}
                }
            }
            Event::Prepared(description) => {
                if let Some(Request::Prepare(key, origin)) = self.requests.front() {
                    let (table, origin) = (heard.pool.types(), origin.clone());
                    // It is known now how wide it is.
                    self.server_bytes = (self.server_bytes + origin.footprint(Some(&description)))
                        .saturating_sub(origin.footprint(None));
                    let unknown = description.unknown_types(&table.types);
                    let prepared = if unknown.is_empty() {
                        Prepared::Ready(Arc::new(Statement::new(origin, description, table)))
                    } else {
                        heard.unknown_types.extend(unknown);
                        Prepared::Untyped(Box::new((origin, description)))
                    };
                    self.statements.insert(*key, prepared);
                }
            }
            Event::Failed(error) => self.fail(py, error, heard),
            Event::Open => heard.is_open = true,
            Event::Notice(notice) => heard.notices.push(*notice),
            Event::Parameter(name, value) => heard.parameters.push((name, value)),
            Event::Notification(process, channel, payload) => {
                heard.notifications.push((channel, payload, process));
            }
            Event::Columns(columns) => self.compare(py, &columns, heard),
            Event::Suspended => {}
        }
    }

    /// What a statement without a name returns is read as what comes before it says, where that can be read: it has been
    /// executed.
    fn compare(&mut self, py: Python<'_>, columns: &Description, heard: &Heard<'_>) {
        if let Some(Request::Execute(execution)) = self.requests.front_mut()
            && let Some((key, statement)) = &mut execution.statement
            && !statement.description.has_columns_of(columns)
        {
            if let Some(Prepared::Ready(known)) = self.statements.remove(key) {
                self.server_bytes = self.server_bytes.saturating_sub(known.footprint);
            }
            // Those of cursors are read later, and compiled code has asked for other formats.
            let is_plain = matches!(execution.call.get().work, Work::Statement(..));
            let found = is_plain.then(|| statement.with_columns(columns, heard.pool.types()));
            if let Some(found) = found.flatten() {
                let found = Arc::new(found);
                self.server_bytes += found.footprint;
                self.statements
                    .insert(*key, Prepared::Ready(Arc::clone(&found)));
                *statement = found;
            } else {
                execution.error = Some(protocol_error(py, &Fault::ColumnsChanged));
            }
        }
    }

    /// Data of a COPY, or without it the server's wish for some.
    fn copied(&self, py: Python<'_>, data: Option<&[u8]>, heard: &mut Heard<'_>) {
        let Some(Request::Execute(execution)) = self.requests.front() else {
            return;
        };
        let call = execution.call.get();
        let Work::Copy(_, sink) = &call.work else {
            return;
        };
        if call.is_over() {
            return;
        }
        let (_, copied) = heard
            .copied
            .get_or_insert_with(|| (sink.clone_ref(py), data.map(|_| Vec::new())));
        if let (Some(copied), Some(data)) = (copied, data) {
            copied.extend_from_slice(data);
        }
    }

    fn fail(&mut self, py: Python<'_>, error: Box<ServerError>, heard: &mut Heard<'_>) {
        // What a reset should have undone others would have.
        let is_of_reset = matches!(self.requests.front(), Some(Request::Reset));
        if is_of_reset && error.code == "57014" && heard.is_cancelling {
            return self.reset();
        }
        if is_of_reset || matches!(error.severity.as_str(), "FATAL" | "PANIC") {
            heard.is_fatal = true;
            self.fatal = Some(error);
        } else {
            self.fail_request(py, &error, heard);
        }
    }

    fn fail_request(&mut self, py: Python<'_>, error: &ServerError, heard: &mut Heard<'_>) {
        let mut stale = None;
        match self.requests.front_mut() {
            Some(Request::Execute(execution)) => {
                let call = execution.call.get();
                // Nothing has been executed: the name was looked for first. One that is not ours is the statement's own.
                let is_unknown = error.code == "26000"
                    && execution.statement.as_ref().is_some_and(|(_, statement)| {
                        !statement.name.is_empty() && error.message.contains(&statement.name)
                    });
                let statement = execution.statement.as_ref();
                if is_unknown && !statement.is_some_and(|(_, it)| self.names.lose(it.names)) {
                    heard.pool.lose_names(py);
                }
                let has_changed = has_changed(error, statement, call);
                let old = statement.filter(|_| is_of_a_plan(error));
                if let Some((_, statement)) = old
                    && is_of_the_schema(error)
                {
                    heard.pool.change_schema(statement.schema);
                }
                stale = old.map(|(key, statement)| (*key, Arc::clone(statement)));
                // What was executed of a call that is a transaction of its own has been undone.
                let is_stale = old.is_some() && !call.was_stale_before();
                execution.is_to_repeat = (is_unknown
                    || is_stale
                    || has_changed
                    || error.code == "57014" && heard.is_cancelling)
                    && call.is_free()
                    && !call.is_over();
                execution.error = Some(server_error(py, error));
            }
            Some(Request::Prepare(key, origin)) => {
                let (key, origin) = (*key, std::mem::take(origin));
                self.fail_prepare(py, key, &origin, error, heard);
            }
            Some(Request::Reset) | None => {}
        }
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
        py: Python<'_>,
        key: Key,
        origin: &Origin,
        error: &ServerError,
        heard: &Heard<'_>,
    ) {
        self.statements.remove(&key);
        let name = &origin.name;
        self.server_bytes = self.server_bytes.saturating_sub(origin.footprint(None));
        let is_known = error.code == "42P05" && !name.is_empty();
        if is_known {
            heard.pool.lose_names(py);
        }
        // It may be there: Parse can have succeeded and Describe failed. Closing what is not is no error.
        self.protocol.forget(name);
        // A cancel request that was for the call before it: those that may be prepared anew are.
        let is_stray = is_known || error.code == "57014" && heard.is_cancelling;
        // All that wait for this statement; the others keep their order.
        let waiting = std::mem::take(&mut self.backlog);
        for call in waiting {
            let statement = call.get().work.statement();
            let is_its = statement.is_some_and(|sql| heard.id_of(py, sql) == Some(key.0));
            if is_its && !(is_stray && call.get().is_free()) {
                self.failing.push((call, Err(server_error(py, error))));
            } else {
                self.backlog.push_back(call);
            }
        }
    }
}

/// Refuses a COPY whose data the server would wait for: it would take the statements of others, which follow, for them.
#[cold]
fn refuse_stream(py: Python<'_>, sql: &str, change: Change) -> PyResult<()> {
    if change == Change::Stream || is_from_client(sql) {
        return Err(error_of(py, "refused", ("stream", false)));
    }
    Ok(())
}

/// Whether a parameter may not fit because the column has another type by now. What is too large for a number of the old one
/// clients can send at will: that is worth another look from time to time.
#[cold]
fn is_of_other_types(py: Python<'_>, error: &PyErr, known: &Statement) -> bool {
    error.is_instance_of::<PyTypeError>(py)
        || error.is_instance_of::<PyOverflowError>(py) && known.table.set_stale_if_old()
}

/// Whether parameters may not have fitted because a composite type was changed: the statement is described anew then.
#[cold]
fn is_worth_a_look(statement: Option<&(Key, Arc<Statement>)>) -> bool {
    statement.is_some_and(|(_, it)| {
        let mut composites = BTreeSet::new();
        for &type_oid in &it.description.parameters {
            let types = &it.table.types;
            types.add_composites_in(type_oid, &mut composites);
        }
        !composites.is_empty() && it.table.set_stale_if_old()
    })
}

/// Whether types are not what the statement was prepared for. Nothing has been executed: Bind comes first, then the guard.
fn has_changed(
    error: &ServerError,
    statement: Option<&(Key, Arc<Statement>)>,
    call: &PgCall,
) -> bool {
    let Some((_, known)) = statement.filter(|_| error.code == "22P02") else {
        return false;
    };
    let is_guard = Guard::has_failed(error);
    if is_guard {
        known.table.set_stale();
    }
    (is_guard || is_worth_a_look(statement)) && !call.has_lost_enough()
}

/// Whether an error may be one of what was found out when the statement was prepared: of its plan, its types or its name.
fn is_of_a_plan(error: &ServerError) -> bool {
    let code = error.code.as_str();
    matches!(code, "0A000" | "26000" | "08P01" | "XX000")
        || code.starts_with("42") && code != "42501"
}

/// Whether it says that plans of other statements are not what they were, either.
fn is_of_the_schema(error: &ServerError) -> bool {
    let message = error.message.as_str();
    error.code == "0A000" && message.contains("cached plan")
        || error.code == "XX000" && message.contains("cache lookup failed")
}

fn name_of(pool: &PgPool, (id, path): Key, text: &str) -> String {
    if pool.is_nameless() || text.len() > NAMED_TEXT_BYTES_MAX {
        return String::new();
    }
    match path {
        0 => format!("{}{id}", pool.prefix),
        path => format!("{}{id}_{path:x}", pool.prefix),
    }
}

impl Execution {
    fn complete(&mut self, count: u64) {
        match &self.call.get().work {
            Work::Each(..) => self.count += count,
            Work::Open(portal, ..) | Work::Resume(portal) => {
                self.count = count;
                portal.end();
            }
            // Of a script the count is that of its last statement.
            _ => self.count = count,
        }
    }

    #[inline]
    fn row(&mut self, py: Python<'_>, row: citius_pg::Row<'_>) {
        let (Some((_, statement)), Some(rows)) = (&self.statement, &mut self.rows) else {
            return;
        };
        if self.error.is_some() || self.call.get().is_over() {
            return;
        }
        if let Err(error) = rows.push(py, statement, row) {
            self.error = Some(error);
        }
    }

    fn finish(self, py: Python<'_>) -> (Py<PgCall>, PyResult<Py<PyAny>>) {
        let result = match (self.error, self.rows) {
            (Some(error), _) => Err(error),
            (None, Some(rows)) => {
                let statement = self.statement.as_ref().map(|(_, statement)| &**statement);
                rows.finish(py, statement, self.count)
            }
            (None, None) => self.count.into_py_any(py),
        };
        (self.call, result)
    }
}

/// What the listener is told when the session is in place again.
struct Heard<'a> {
    pool: &'a PgPool,
    /// A cancel request is under way to this session.
    is_cancelling: bool,
    /// Calls that have to be done once more.
    repeated: Vec<Py<PgCall>>,
    is_open: bool,
    is_fatal: bool,
    status: Option<TransactionStatus>,
    notices: Vec<ServerError>,
    parameters: Vec<(String, String)>,
    notifications: Vec<(String, String, i32)>,
    /// Types of which it has to be found out what they are.
    unknown_types: Vec<u32>,
    /// Who gets the data of a COPY, and what has come of it; `None`: the server wants some.
    copied: Option<(Py<PyAny>, Option<Vec<u8>>)>,
    fault: Option<Fault>,
}

impl<'a> Heard<'a> {
    fn new(pool: &'a PgPool, is_cancelling: bool) -> Self {
        Self {
            pool,
            is_cancelling,
            repeated: Vec::new(),
            is_open: false,
            is_fatal: false,
            status: None,
            notices: Vec::new(),
            parameters: Vec::new(),
            notifications: Vec::new(),
            unknown_types: Vec::new(),
            copied: None,
            fault: None,
        }
    }

    /// Hands the data of a COPY on, before its end is told.
    fn tell_copied(&mut self, py: Python<'_>) {
        let Some((sink, data)) = self.copied.take() else {
            return;
        };
        let data = data.map(|data| PyBytes::new(py, &data));
        if let Err(error) = sink.call1(py, (data,)) {
            error.write_unraisable(py, None);
        }
    }

    fn id_of(&self, py: Python<'_>, sql: &Py<pyo3::types::PyString>) -> Option<u32> {
        self.pool.statement_id(sql.bind(py)).ok()
    }
}

impl PgConnection {
    pub(crate) fn load(&self) -> usize {
        self.load.load(Ordering::Relaxed)
    }

    /// Whether it has something that has not left: what is added leaves with it.
    pub(crate) fn is_unsent(&self) -> bool {
        self.upstream.is_unsent()
    }

    fn is_held(&self) -> bool {
        self.is_held.load(Ordering::Relaxed)
    }

    /// Does something with the session that runs no Python code; while it works, when it is back.
    fn with(&self, act: impl FnOnce(&mut Session) + Send + 'static) {
        self.place.with(act, |act| {
            Box::new(|slf, mut session| {
                act(&mut session);
                slf.get().put(slf.py(), session);
                slf.get().place.do_late(slf);
            })
        });
    }

    /// Does something with the session now, or when it is back; `act` puts it back.
    fn when_free(
        slf: &Bound<'_, Self>,
        act: impl FnOnce(&Bound<'_, Self>, Box<Session>) + Copy + Send + 'static,
    ) {
        if let Some(session) = slf.get().place.take(|| Box::new(act)) {
            act(slf, session);
        }
    }

    /// Puts the session back, and has the carrier take what it has to send.
    fn put(&self, py: Python<'_>, mut session: Box<Session>) {
        let has_output = !session.protocol.output().is_empty();
        self.place.put(session);
        if has_output {
            self.note_unsent(py);
        }
    }

    /// Sends calls that have waited for something other than the server.
    fn pump_held(slf: &Bound<'_, Self>) {
        Self::when_free(slf, |slf, mut session| {
            let (py, this) = (slf.py(), slf.get());
            let mut ended = Ended::new();
            if !session.is_closed {
                session.pump(py, this.pool.get(), this.is_held(), &mut ended);
            }
            this.put(py, session);
            this.tell_ended(py, ended, false);
            this.place.do_late(slf);
        });
    }

    /// Takes a call that any session may have; gives it back while it works or is closed.
    pub(crate) fn submit(slf: &Bound<'_, Self>, call: Py<PgCall>) -> Result<(), Py<PgCall>> {
        match slf.get().place.take_if(|session| !session.is_closed) {
            Some(session) => {
                Self::add(slf, session, call);
                Ok(())
            }
            None => Err(call),
        }
    }

    /// Takes a call that belongs to this session; it waits while the session works.
    pub(crate) fn submit_or_fail(slf: &Bound<'_, Self>, call: Py<PgCall>) -> PyResult<()> {
        let (py, this) = (slf.py(), slf.get());
        let session = this.place.take(|| {
            let call = call.clone_ref(py);
            Box::new(move |slf, session| Self::submit_late(slf, session, &call))
        });
        session.map_or(Ok(()), |session| Self::add_or_fail(slf, session, call))
    }

    /// Takes a call of this session that has waited.
    fn submit_late(slf: &Bound<'_, Self>, session: Box<Session>, call: &Py<PgCall>) {
        let py = slf.py();
        let submitted = Self::add_or_fail(slf, session, call.clone_ref(py));
        if let Err(error) = submitted
            && let Some(sleeper) = call.get().finish(py, Err(error))
        {
            sleeper.wake(py, false);
        }
    }

    fn add_or_fail(slf: &Bound<'_, Self>, session: Box<Session>, call: Py<PgCall>) -> PyResult<()> {
        let this = slf.get();
        if session.is_closed {
            this.place.put(session);
            this.place.do_late(slf);
            let end = this.end.get().map_or("", String::as_str);
            let why = format!("the session is closed: {end}");
            return Err(error_of(slf.py(), "connection_lost", why));
        }
        Self::add(slf, session, call);
        Ok(())
    }

    fn add(slf: &Bound<'_, Self>, mut session: Box<Session>, call: Py<PgCall>) {
        let (py, this) = (slf.py(), slf.get());
        this.load.fetch_add(1, Ordering::Relaxed);
        let mut ended = Ended::new();
        session.add(py, this.pool.get(), call, this.is_held(), &mut ended);
        this.put(py, session);
        this.tell_ended(py, ended, false);
        this.place.do_late(slf);
    }

    fn read(slf: &Bound<'_, Self>, mut session: Box<Session>, bytes: &[u8], may_step: bool) {
        let (py, this) = (slf.py(), slf.get());
        if session.is_closed {
            this.place.put(session);
            return this.place.do_late(slf);
        }
        let (mut heard, mut ended) = (
            Heard::new(this.pool.get(), this.is_cancelling.load(Ordering::Relaxed)),
            Ended::new(),
        );
        let mut inbox = std::mem::take(&mut session.inbox);
        inbox.receive(bytes, |bytes| {
            read(py, &mut session, bytes, &mut heard, &mut ended)
        });
        session.inbox = inbox;
        session.pump(py, this.pool.get(), this.is_held(), &mut ended);
        if heard.is_open
            && let Some(key) = session.protocol.key()
        {
            let _ = this.key.set(key);
        }
        this.put(py, session);
        if let Some(status) = heard.status {
            this.status.store(status as u8, Ordering::Relaxed);
        }
        // Each goes to the front of the queue, so the last one goes first.
        for call in std::mem::take(&mut heard.repeated).into_iter().rev() {
            this.load.fetch_sub(1, Ordering::Relaxed);
            PgPool::queue_first(this.pool.bind(py), call);
        }
        heard.tell_copied(py);
        this.tell_ended(py, ended, may_step);
        Self::tell_heard(slf, heard);
        PgPool::pump(this.pool.bind(py));
        this.place.do_late(slf);
    }

    fn fail_types_of(slf: &Bound<'_, Self>, mut session: Box<Session>, error: &Bound<'_, PyAny>) {
        let (py, this) = (slf.py(), slf.get());
        let mut failed = Vec::new();
        let mut bytes = 0;
        let protocol = &mut session.protocol;
        session.statements.retain(|id, prepared| match prepared {
            Prepared::Untyped(described) => {
                if !described.0.name.is_empty() {
                    protocol.forget(&described.0.name);
                }
                bytes += described.0.footprint(Some(&described.1));
                failed.push(id.0);
                false
            }
            _ => true,
        });
        session.server_bytes = session.server_bytes.saturating_sub(bytes);
        let mut ended = Ended::new();
        for call in std::mem::take(&mut session.backlog) {
            let sql = call.get().work.statement();
            let id = sql.and_then(|sql| this.pool.get().statement_id(sql.bind(py)).ok());
            if id.is_some_and(|id| failed.contains(&id)) {
                ended.push((call, Err(PyErr::from_value(error.clone()))));
            } else {
                session.backlog.push_back(call);
            }
        }
        this.put(py, session);
        this.tell_ended(py, ended, false);
        Self::pump_held(slf);
    }

    fn tell_heard(slf: &Bound<'_, Self>, heard: Heard<'_>) {
        let (py, this) = (slf.py(), slf.get());
        for (name, value) in heard.parameters {
            this.upstream.tell(py, "parameter", (name, value));
        }
        for notice in &heard.notices {
            this.upstream
                .tell(py, "notice", server_error(py, notice).into_value(py));
        }
        for notification in heard.notifications {
            this.upstream.tell(py, "notification", notification);
        }
        if !heard.unknown_types.is_empty() {
            this.upstream.tell(py, "types", heard.unknown_types);
        }
        if heard.is_open {
            this.upstream.tell(py, "open", py.None());
        }
        if let Some(fault) = &heard.fault {
            let error = protocol_error(py, fault);
            Self::end(slf, &error);
        } else if heard.is_fatal {
            Self::lose(slf, "the server has ended the session");
        }
    }

    /// The connection has ended.
    fn lose(slf: &Bound<'_, Self>, why: &str) {
        let why = why.to_owned();
        let session = slf.get().place.take(|| {
            let why = why.clone();
            Box::new(move |slf, session| Self::lose_session(slf, session, &why))
        });
        if let Some(session) = session {
            Self::lose_session(slf, session, &why);
        }
    }

    fn lose_session(slf: &Bound<'_, Self>, mut session: Box<Session>, why: &str) {
        let py = slf.py();
        let fatal = session.fatal.take();
        slf.get().place.put(session);
        let error = match fatal {
            Some(fatal) => server_error(py, &fatal),
            None => error_of(py, "connection_lost", why),
        };
        Self::end(slf, &error);
    }

    /// Ends the session: requests under way fail, and requests that were not sent go back to the pool.
    fn end(slf: &Bound<'_, Self>, error: &PyErr) {
        let (py, this) = (slf.py(), slf.get());
        let session = this.place.take(|| {
            let error = error.clone_ref(py);
            Box::new(move |slf, session| Self::end_session(slf, session, &error))
        });
        if let Some(session) = session {
            Self::end_session(slf, session, error);
        }
    }

    fn end_session(slf: &Bound<'_, Self>, mut session: Box<Session>, error: &PyErr) {
        let (py, this) = (slf.py(), slf.get());
        let why = error.value(py).to_string();
        let was_closed = std::mem::replace(&mut session.is_closed, true);
        let _ = this.end.set(why.clone());
        let requests = std::mem::take(&mut session.requests);
        let backlog = std::mem::take(&mut session.backlog);
        let mut ended = std::mem::take(&mut session.failing);
        this.place.put(session);
        if was_closed {
            return this.place.do_late(slf);
        }
        // First, so that no call comes back here.
        this.upstream
            .tell(py, "closed", error.value(py).clone().unbind());
        let preparing = match requests.front() {
            Some(Request::Prepare((id, _), _)) => Some(*id),
            _ => None,
        };
        for request in requests {
            if let Request::Execute(execution) = request {
                let lost = error_of(
                    py,
                    "lost_during_statement",
                    error.value(py).clone().unbind(),
                );
                ended.push((execution.call, Err(lost)));
            }
        }
        let lost = error_of(py, "connection_lost", why.as_str());
        // Each goes to the front of the queue, so the last one goes first.
        for call in backlog.into_iter().rev() {
            let sql = call.get().work.statement();
            let id = sql.and_then(|sql| this.pool.get().statement_id(sql.bind(py)).ok());
            // A statement whose preparation ends one session after the other is not tried for ever.
            let is_given_up = id.is_some() && id == preparing && call.get().has_lost_enough();
            if call.get().is_free() && !is_given_up {
                PgPool::queue_first(this.pool.bind(py), call);
            } else {
                // What has ended one session after the other is told as it is.
                let why = if is_given_up { error } else { &lost };
                ended.push((call, Err(why.clone_ref(py))));
            }
        }
        this.tell_ended(py, ended, false);
        this.load.store(0, Ordering::Relaxed);
        PgPool::pump(this.pool.bind(py));
        this.place.do_late(slf);
    }

    /// Sends more of the COPY that is under way; without one nothing.
    fn speak(&self, py: Python<'_>, act: impl FnOnce(&mut Connection) + Send + 'static) {
        self.with(|session| {
            if session.is_copying && !session.is_closed {
                act(&mut session.protocol);
            }
        });
        self.note_unsent(py);
    }

    /// Has a portal closed with the next request.
    pub(crate) fn close_portal(&self, name: &str) {
        let name = name.to_owned();
        self.with(|session| session.closing.push(name));
    }

    fn note_unsent(&self, py: Python<'_>) {
        self.upstream.note_unsent(py);
    }

    fn tell_ended(&self, py: Python<'_>, ended: Ended, may_step: bool) {
        for (call, result) in ended {
            self.load.fetch_sub(1, Ordering::Relaxed);
            if let Some(sleeper) = call.get().finish(py, result) {
                sleeper.wake(py, may_step);
            }
        }
    }
}

/// Takes all whole messages; returns how many bytes are left.
fn read(
    py: Python<'_>,
    session: &mut Session,
    bytes: &[u8],
    heard: &mut Heard<'_>,
    ended: &mut Ended,
) -> usize {
    let mut input = bytes;
    loop {
        match session.protocol.receive(&mut input) {
            Ok(Some(event)) => session.take(py, event, heard, ended),
            Ok(None) => return input.len(),
            Err(fault) => {
                heard.fault = Some(fault);
                return 0;
            }
        }
    }
}

impl Protocol for PgConnection {
    fn upstream(&self) -> &Upstream {
        &self.upstream
    }

    #[inline]
    fn received(slf: &Bound<'_, Self>, plaintext: &[u8], may_step: bool) {
        let this = slf.get();
        let heard = this.heard.load(Ordering::Relaxed);
        this.heard.store(heard.wrapping_add(1), Ordering::Relaxed);
        let session = this.place.take(|| {
            let bytes = plaintext.to_vec();
            Box::new(move |slf, session| Self::read(slf, session, &bytes, false))
        });
        if let Some(session) = session {
            Self::read(slf, session, plaintext, may_step);
        }
    }

    fn secured(slf: &Bound<'_, Self>, server_end_point: Vec<u8>) {
        slf.get()
            .with(|session| session.protocol.set_server_end_point(server_end_point));
    }

    fn ended(slf: &Bound<'_, Self>, why: &str) {
        Self::lose(slf, why);
    }

    fn tls_failed(slf: &Bound<'_, Self>, why: String) {
        Self::end(slf, &error_of(slf.py(), "tls_failed", why));
    }

    fn take_output(&self, _py: Python<'_>, take: impl FnOnce(&[u8])) {
        // While it works it says later what it has to send.
        self.place.look(|session| {
            let output = session.protocol.output();
            take(output);
            output.clear();
        });
    }

    fn has_output(&self) -> bool {
        let has_output = |session: &mut Session| !session.protocol.output().is_empty();
        self.place.look(has_output).unwrap_or(false)
    }
}

#[pymethods]
impl PgConnection {
    #[new]
    #[pyo3(signature = (pool, login, listener, wake, tls = None))]
    fn new(
        py: Python<'_>,
        pool: Py<PgPool>,
        login: LoginArguments,
        listener: Py<PyAny>,
        wake: Py<PyAny>,
        tls: Option<TlsArguments<'_>>,
    ) -> PyResult<Self> {
        let (user, password, database, parameters, channel_binding) = login;
        let login = Login {
            user,
            password,
            database,
            parameters,
            channel_binding: match channel_binding.as_str() {
                "disable" => ChannelBinding::Off,
                "require" => ChannelBinding::Required,
                _ => ChannelBinding::Preferred,
            },
        };
        let protocol = Connection::new(login).map_err(|fault| protocol_error(py, &fault))?;
        let session = Session {
            protocol,
            inbox: Inbox::default(),
            requests: VecDeque::new(),
            statements: HashMap::new(),
            path: Path::default(),
            names: Names::default(),
            status: TransactionStatus::Idle,
            backlog: VecDeque::new(),
            failing: Ended::new(),
            parameters: Parameters::default(),
            fatal: None,
            is_copying: false,
            closing: Vec::new(),
            server_bytes: 0,
            left: Left::Nothing,
            is_resetting: false,
            is_closed: false,
        };
        Ok(Self {
            pool,
            upstream: Upstream::new(listener, wake, tls)?,
            place: Place::new(session),
            load: AtomicUsize::new(0),
            status: AtomicU8::new(0),
            is_cancelling: AtomicBool::new(false),
            is_held: AtomicBool::new(false),
            heard: AtomicU32::new(0),
            key: OnceLock::new(),
            end: OnceLock::new(),
        })
    }

    /// Bytes have come, on the event loop's own thread and within no task's step.
    #[pyo3(name = "receive")]
    fn receive_now(slf: &Bound<'_, Self>, data: &[u8]) {
        Upstream::receive(slf, data, true);
    }

    /// The connection has ended.
    #[pyo3(name = "end")]
    fn end_now(slf: &Bound<'_, Self>, why: &str) {
        Self::lose(slf, why);
    }

    /// What is to be sent.
    #[pyo3(name = "take_output")]
    fn take_output_now<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        let mut bytes = Vec::new();
        Upstream::take_output(py, self, &mut bytes);
        PyBytes::new(py, &bytes)
    }

    /// Says goodbye to the server; nothing may be sent after that.
    fn terminate(&self, py: Python<'_>) {
        self.with(|session| session.protocol.terminate());
        self.note_unsent(py);
    }

    /// Sends data of a COPY.
    fn copy_data(&self, py: Python<'_>, data: &[u8]) {
        let data = data.to_vec();
        self.speak(py, move |protocol| protocol.copy_data(&data));
    }

    /// Ends the data of a COPY; with a reason the server refuses it.
    #[pyo3(signature = (why = None))]
    fn end_copy(&self, py: Python<'_>, why: Option<String>) {
        self.speak(py, |protocol| match why {
            None => protocol.copy_done(),
            Some(why) => protocol.copy_fail(&why),
        });
    }

    /// Has a reactor carry the bytes.
    fn attach(slf: &Bound<'_, Self>, reactor: &Bound<'_, Carrier>, fd: i32) -> PyResult<()> {
        Upstream::attach(slf, reactor, fd)
    }

    /// Has Python carry the bytes again: `wake` is called when there is something to send.
    fn detach(slf: &Bound<'_, Self>, reactor: &Bound<'_, Carrier>, wake: Py<PyAny>) {
        Upstream::detach(slf, reactor, wake);
    }

    /// What can be found out of some unknown types is known: statements that have waited for it are sent. Those that
    /// have others still are looked up again.
    fn know_types(slf: &Bound<'_, Self>) {
        Self::when_free(slf, |slf, mut session| {
            let (py, this) = (slf.py(), slf.get());
            let unknown_types = session.know_types(&this.pool.get().types());
            this.put(py, session);
            if !unknown_types.is_empty() {
                this.upstream.tell(py, "types", unknown_types);
            }
            Self::pump_held(slf);
        });
    }

    /// It could not be found out what types are: statements that have waited for it fail, and are described again when
    /// they come again.
    fn fail_types(slf: &Bound<'_, Self>, error: &Bound<'_, PyAny>) {
        let session = slf.get().place.take(|| {
            let error = error.clone().unbind();
            Box::new(move |slf, session| Self::fail_types_of(slf, session, error.bind(slf.py())))
        });
        if let Some(session) = session {
            Self::fail_types_of(slf, session, error);
        }
    }

    /// Has statements prepared anew when they come again, because what they are about has been changed.
    #[pyo3(name = "forget_statements")]
    fn forget_all(&self) {
        self.with(Session::forget_statements);
    }

    /// The message of a connection that cancels what this session does; `None` before the session is open.
    fn cancel_request<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyBytes>> {
        let key = self.key.get();
        key.map(|&(process, secret)| PyBytes::new(py, &cancel_request(process, secret)))
    }

    /// What is to be executed before another block has it, because something may be left of the one that had it; empty if that
    /// does not undo it.
    fn take_changes(&self) -> Option<String> {
        let take = |session: &mut Session| {
            session.path = Path::default();
            std::mem::take(&mut session.left)
        };
        // While the session works it is not known what is left: all is reset.
        self.place.look(take).unwrap_or(Left::Names).reset()
    }

    /// Has it reset before another block has it, whatever this one does.
    fn set_changed(&self) {
        self.with(|session| session.left = session.left.max(Left::Names));
    }

    /// A number that changes whenever something comes.
    #[getter]
    fn heard(&self) -> u32 {
        self.heard.load(Ordering::Relaxed)
    }

    /// Whether the server works for a call that no code waits for any more. While the session works it is not known;
    /// [`has_abandoned`](Self::has_abandoned) says that it has to be asked again.
    fn is_blocked(&self) -> bool {
        let is_blocked = |session: &mut Session| match session.requests.front() {
            Some(Request::Execute(it)) => it.call.get().is_over(),
            // What waits for a statement to be prepared, as behind the lock of a table.
            Some(Request::Prepare(..)) => {
                let mut waiting = session.backlog.iter();
                waiting.len() > 0 && waiting.all(|call| call.get().is_over())
            }
            Some(Request::Reset) | None => false,
        };
        self.place.look(is_blocked).unwrap_or(false)
    }

    /// Whether there is such a call anywhere in the pipeline, or may be: the server comes to it yet.
    fn has_abandoned(&self) -> bool {
        let is_over =
            |request: &Request| matches!(request, Request::Execute(it) if it.call.get().is_over());
        let has_abandoned = |session: &mut Session| {
            session.requests.iter().any(is_over)
                || session.backlog.iter().any(|call| call.get().is_over())
        };
        self.place.look(has_abandoned).unwrap_or(true)
    }

    /// Requests under way.
    #[getter(load)]
    fn load_now(&self) -> usize {
        self.load()
    }

    /// 0: in no transaction, 1: in one, 2: in one that has failed.
    #[getter]
    fn status(&self) -> u8 {
        self.status.load(Ordering::Relaxed)
    }

    /// Says whether a cancel request to this session may have an effect yet, and whether calls are held back for it.
    fn set_cancelling(slf: &Bound<'_, Self>, is_cancelling: bool, is_held: bool) {
        slf.get()
            .is_cancelling
            .store(is_cancelling, Ordering::Relaxed);
        slf.get().is_held.store(is_held, Ordering::Relaxed);
        if !is_held {
            Self::pump_held(slf);
        }
    }

    /// Process identifier of the session's server process.
    #[getter]
    fn process(&self) -> Option<i32> {
        self.key.get().map(|key| key.0)
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.pool)?;
        self.upstream.traverse(&visit)
    }
}
