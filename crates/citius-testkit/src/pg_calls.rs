//! Calls of a session of PostgreSQL without Python: texts, numbers as arguments, rows of one number; and a client of them.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use citius_pg::{
    Call, Description, Ended, Heard, Host, Login, Misfit, Over, Parameters, PoolState, Portal, Row,
    Scope, Session, Standing, Statement, StatementId, Trouble, TypeTable, Unfit, Work,
};

use crate::pg_messages::{opening, take_request};

/// `int4`.
pub const INT4: u32 = 23;

/// A call.
#[derive(Clone)]
pub struct FakeCall(Arc<Inner>);

struct Inner {
    text: String,
    kind: Kind,
    standing: Standing,
    is_over: AtomicBool,
}

enum Kind {
    Statement(Vec<Argument>),
    Encoded(Parameters),
    Each(Vec<Vec<Argument>>),
    Script,
    Open(Arc<Portal<(), ()>>, Vec<Argument>),
    Resume(Arc<Portal<(), ()>>),
    Copy,
}

/// An argument: it fits a parameter of its type.
#[derive(Clone, Copy, Debug)]
pub struct Argument {
    /// The type.
    pub type_oid: u32,
    /// The value.
    pub value: i32,
}

impl From<i32> for Argument {
    fn from(value: i32) -> Self {
        let type_oid = INT4;
        Self { type_oid, value }
    }
}

/// A number that is too large for its type.
pub const TOO_LARGE: i32 = i32::MAX;

/// What has come of a call: the numbers in its rows, and the count.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// The first value of each row.
    pub rows: Vec<i32>,
    /// Rows that were returned or changed.
    pub count: u64,
}

impl FakeCall {
    fn new(text: &str, kind: Kind, scope: Scope) -> Self {
        Self(Arc::new(Inner {
            text: text.into(),
            kind,
            standing: Standing::new(scope, false),
            is_over: AtomicBool::new(false),
        }))
    }

    /// A statement of the pool.
    pub fn free(text: &str, arguments: &[Argument]) -> Self {
        Self::new(text, Kind::Statement(arguments.into()), Scope::Pool)
    }

    /// A statement of the session, or of a block, or one that looks types up.
    pub fn scoped(scope: Scope, text: &str, arguments: &[Argument]) -> Self {
        Self::new(text, Kind::Statement(arguments.into()), scope)
    }

    /// A statement of the pool whose one argument is encoded.
    pub fn encoded(text: &str, value: i32) -> Self {
        let mut parameters = Parameters::default();
        parameters.push_binary(&value.to_be_bytes());
        Self::new(text, Kind::Encoded(parameters), Scope::Pool)
    }

    /// A statement of the pool with each of these arguments.
    pub fn each(text: &str, values: &[i32]) -> Self {
        let arguments: Vec<Argument> = values.iter().map(|&value| value.into()).collect();
        Self::each_of(text, &arguments)
    }

    /// The same with arguments of any type.
    pub fn each_of(text: &str, arguments: &[Argument]) -> Self {
        let rows = arguments.iter().map(|&argument| vec![argument]);
        Self::new(text, Kind::Each(rows.collect()), Scope::Pool)
    }

    /// A script of the session.
    pub fn script(text: &str) -> Self {
        Self::new(text, Kind::Script, Scope::Session)
    }

    /// The first portion of a statement.
    pub fn open(portal: &Arc<Portal<(), ()>>, text: &str, arguments: &[Argument]) -> Self {
        let kind = Kind::Open(Arc::clone(portal), arguments.into());
        Self::new(text, kind, Scope::Block)
    }

    /// The next portion.
    pub fn resume(portal: &Arc<Portal<(), ()>>) -> Self {
        Self::new("", Kind::Resume(Arc::clone(portal)), Scope::Session)
    }

    /// A COPY on the session.
    pub fn copy(text: &str) -> Self {
        Self::new(text, Kind::Copy, Scope::Session)
    }

    /// No code waits for it any more.
    pub fn abandon(&self) {
        self.0.is_over.store(true, Ordering::Relaxed);
    }

    /// Whether both are the same.
    pub fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

/// A pool.
pub struct FakePool {
    state: PoolState,
    types: RefCell<Arc<TypeTable<()>>>,
    ids: RefCell<BTreeMap<String, StatementId>>,
    now_ms: Cell<u64>,
}

impl FakePool {
    /// One whose statements have names that begin with `s`, or none; `resets`: sessions are reset behind each statement.
    pub fn new(has_names: bool, resets: bool) -> Self {
        Self {
            state: PoolState::new("s".into(), has_names, resets),
            types: RefCell::new(Arc::new(TypeTable::new(0))),
            ids: RefCell::default(),
            now_ms: Cell::new(0),
        }
    }

    /// Has time pass.
    pub fn wait_ms(&self, ms: u64) {
        self.now_ms.set(self.now_ms.get() + ms);
    }

    /// Learns something about types.
    pub fn learn(&self, learn: impl FnOnce(&mut TypeTable<()>)) {
        let mut table = FakeHost(self).types().copy();
        learn(&mut table);
        self.types.replace(Arc::new(table));
    }
}

/// A pool as its sessions have it.
#[derive(Clone, Copy)]
pub struct FakeHost<'a>(pub &'a FakePool);

impl Host<()> for FakeHost<'_> {
    fn pool(&self) -> &PoolState {
        &self.0.state
    }

    fn types(&self) -> Arc<TypeTable<()>> {
        let mut types = self.0.types.borrow_mut();
        if let Some(fresh) = types.refreshed(self.now_ms()) {
            *types = Arc::new(fresh);
        }
        Arc::clone(&types)
    }

    fn now_ms(&self) -> u64 {
        self.0.now_ms.get()
    }
}

impl Call for FakeCall {
    type Host<'a> = FakeHost<'a>;
    type Codec = ();
    type Made = ();
    type Rows = Vec<i32>;
    type Reply = Outcome;
    type Error = String;

    fn work(&self) -> Work<'_, (), ()> {
        match &self.0.kind {
            Kind::Statement(_) => Work::Statement,
            Kind::Encoded(_) => Work::Encoded,
            Kind::Each(rows) => Work::Each(rows.len()),
            Kind::Script => Work::Script,
            Kind::Open(portal, _) => Work::Open(portal),
            Kind::Resume(portal) => Work::Resume(portal),
            Kind::Copy => Work::Copy,
        }
    }

    fn standing(&self) -> &Standing {
        &self.0.standing
    }

    fn is_over(&self) -> bool {
        self.0.is_over.load(Ordering::Relaxed)
    }

    fn id(&self, host: FakeHost<'_>) -> Result<Option<StatementId>, String> {
        if let Work::Script | Work::Resume(_) | Work::Copy = self.work() {
            return Ok(None);
        }
        let mut ids = host.0.ids.borrow_mut();
        let next = u32::try_from(ids.len()).expect("a few texts");
        let text = &self.0.text;
        let id = ids
            .entry(text.clone())
            .or_insert_with(|| StatementId::new(next, text));
        Ok(Some(*id))
    }

    fn text<'a>(&'a self, _host: FakeHost<'_>) -> Result<&'a str, String> {
        Ok(&self.0.text)
    }

    fn encode<'a>(
        &'a self,
        _host: FakeHost<'_>,
        statement: &'a Statement<(), ()>,
        row: usize,
        parameters: &'a mut Parameters,
    ) -> Result<(&'a Description, &'a Parameters), Unfit<String>> {
        let arguments = match &self.0.kind {
            Kind::Statement(arguments) | Kind::Open(_, arguments) => arguments,
            Kind::Each(rows) => &rows[row],
            Kind::Encoded(parameters) => return Ok((statement.description(), parameters)),
            Kind::Script | Kind::Resume(_) | Kind::Copy => panic!("it has no arguments"),
        };
        let unfit = |misfit| {
            let error = format!("unfit: {misfit:?}");
            Unfit { error, misfit }
        };
        parameters.clear();
        let types = &statement.description().parameters;
        if !types.iter().eq(arguments.iter().map(|it| &it.type_oid)) {
            return Err(unfit(Misfit::Type));
        }
        for argument in arguments {
            if argument.value == TOO_LARGE {
                return Err(unfit(Misfit::Range));
            }
            parameters.push_binary(&argument.value.to_be_bytes());
        }
        Ok((statement.description(), parameters))
    }

    fn rows(&self, _host: FakeHost<'_>) -> Vec<i32> {
        Vec::new()
    }

    fn row(
        _host: FakeHost<'_>,
        rows: &mut Vec<i32>,
        statement: &Statement<(), ()>,
        row: Row<'_>,
    ) -> Result<(), String> {
        if row.len() != statement.description().columns.len() {
            return Err("a row of another length".into());
        }
        let value = row.values().next().and_then(Result::ok).flatten();
        let number = value.and_then(|bytes| bytes.try_into().ok());
        rows.push(i32::from_be_bytes(number.ok_or("no number")?));
        Ok(())
    }

    fn finish(
        _host: FakeHost<'_>,
        rows: Option<Vec<i32>>,
        _statement: Option<&Statement<(), ()>>,
        count: u64,
    ) -> Result<Outcome, String> {
        let rows = rows.unwrap_or_default();
        Ok(Outcome { rows, count })
    }

    fn share(&self, _host: FakeHost<'_>) -> Self {
        self.clone()
    }

    fn error(_host: FakeHost<'_>, trouble: Trouble<'_>) -> String {
        match trouble {
            Trouble::Refused { word, .. } => format!("refused: {word}"),
            Trouble::Unsendable(why) => format!("unsendable: {why}"),
            Trouble::Fault(fault) => format!("fault: {fault}"),
            Trouble::Server(error) => format!("server: {}", error.code),
        }
    }
}

/// A client with one session, and what has come of its calls.
pub struct Client {
    /// Its pool.
    pub pool: FakePool,
    /// The session.
    pub session: Session<FakeCall>,
    /// A cancel request is under way, or its effect may be.
    pub is_cancelling: bool,
    /// Calls are held back for it.
    pub is_held: bool,
    /// Calls that have ended, with their results.
    pub ended: Ended<FakeCall>,
    /// Calls that are to be done once more.
    pub repeated: Vec<FakeCall>,
    /// Types of which it has to be found out what they are.
    pub unknown_types: Vec<u32>,
    /// Data of a COPY; `None` each time that the server wants some.
    pub copied: Vec<Option<Vec<u8>>>,
    /// How often it was told that names get lost.
    pub n_names_lost: usize,
    /// What has ended the session.
    pub over: Option<Over>,
    /// Bytes of a message that is not there in full.
    held: Vec<u8>,
    /// Bytes that were sent, of which no whole message is there.
    sent: Vec<u8>,
}

impl Client {
    /// One whose session is open.
    ///
    /// # Panics
    /// It does not open.
    pub fn open(pool: FakePool) -> Self {
        let login = Login {
            user: "u".into(),
            ..Login::default()
        };
        let mut client = Self {
            pool,
            session: Session::new(login).expect("no zero bytes"),
            is_cancelling: false,
            is_held: false,
            ended: Vec::new(),
            repeated: Vec::new(),
            unknown_types: Vec::new(),
            copied: Vec::new(),
            n_names_lost: 0,
            over: None,
            held: Vec::new(),
            sent: Vec::new(),
        };
        client.session.output().clear();
        client.hear(&opening());
        assert_eq!(client.session.key(), Some((7, 9)));
        client
    }

    /// Adds a call.
    pub fn add(&mut self, call: &FakeCall) {
        let host = FakeHost(&self.pool);
        let call = call.clone();
        self.session.add(host, call, self.is_held, &mut self.ended);
    }

    /// Sends what has waited for something other than the server.
    pub fn pump(&mut self) {
        let host = FakeHost(&self.pool);
        self.session.pump(host, self.is_held, &mut self.ended);
    }

    /// Bytes come from the server.
    pub fn hear(&mut self, bytes: &[u8]) {
        let host = FakeHost(&self.pool);
        let mut heard = Heard::new(self.is_cancelling);
        self.held.extend_from_slice(bytes);
        let (session, ended) = (&mut self.session, &mut self.ended);
        let left = session.receive(host, &self.held, &mut heard, ended);
        self.held.drain(..self.held.len() - left);
        session.pump(host, self.is_held, ended);
        self.repeated.append(&mut heard.repeated);
        self.unknown_types.append(&mut heard.unknown_types);
        self.copied.extend(heard.copied.map(|(_, data)| data));
        self.n_names_lost += usize::from(heard.are_names_lost);
        self.over = heard.over.or(self.over.take());
    }

    /// The messages that were sent since this was last asked, each in a few words.
    pub fn sent(&mut self) -> Vec<String> {
        self.sent.extend(self.session.output().split());
        let requests = std::iter::from_fn(|| take_request(&mut self.sent));
        requests.map(|request| request.to_string()).collect()
    }

    /// The bytes that are to be sent.
    pub fn take_output(&mut self) -> Vec<u8> {
        self.session.output().split().to_vec()
    }

    /// The result of a call, which has ended once.
    ///
    /// # Errors
    /// It has failed.
    ///
    /// # Panics
    /// It has not.
    pub fn result_of(&mut self, call: &FakeCall) -> Result<Outcome, String> {
        let at = self.ended.iter().position(|(ended, _)| ended.is(call));
        let (_, result) = self.ended.remove(at.expect("it has ended"));
        assert!(!self.ended.iter().any(|(ended, _)| ended.is(call)));
        result
    }
}
