//! One connection: its start, and the requests that are under way.

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::string::String;
use alloc::vec::Vec;

use bytes::{BufMut, BytesMut};
use postgres_protocol::message::backend::{self, Message};
use postgres_protocol::message::frontend;

use crate::authentication::{Login, Proof};
use crate::bind::{EXECUTE, EXECUTE_SYNC, Parameters};
use crate::description::Description;
use crate::fault::{Fault, ServerError};
use crate::guard::Guard;
use crate::row::Row;

/// The longest message that is taken; a server's own limit for a value is 1 GiB.
pub const MESSAGE_BYTES_MAX: usize = 256 * 1024 * 1024;

/// The longest message that is taken before the server has taken the login: anyone may be speaking. libpq takes 30,000 bytes.
const EARLY_MESSAGE_BYTES_MAX: usize = 64 * 1024;

/// What has come.
#[derive(Debug)]
pub enum Event<'a> {
    /// The session is open, and requests may be made.
    Open,
    /// The statement that was to be prepared is.
    Prepared(Description),
    /// Rows of a script, or of a statement without a name, follow and look like this.
    Columns(Description),
    /// A row of the request that has waited longest.
    Row(Row<'a>),
    /// All rows of a statement have come; so many were returned or changed.
    Complete(u64),
    /// As many rows as were asked for have come; the portal has more.
    Suspended,
    /// The server waits for the data of a COPY.
    CopyIn,
    /// Data of a COPY, cut where the server likes.
    CopyData(&'a [u8]),
    /// The request that has waited longest has failed, or without one the session.
    Failed(Box<ServerError>),
    /// The request that has waited longest is over.
    Done(TransactionStatus),
    /// A remark of the server's.
    Notice(Box<ServerError>),
    /// A parameter of the session has this value.
    Parameter(String, String),
    /// A session has said `NOTIFY`: its process, the channel and the payload.
    Notification(i32, String, String),
}

/// What a session is in the middle of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TransactionStatus {
    /// Nothing.
    Idle,
    /// A transaction.
    Open,
    /// A transaction in which a statement has failed.
    Failed,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Request {
    Prepare,
    Execute,
    /// An execution whose guard's result comes first.
    Guarded,
    Script,
    Copy,
}

/// A request whose end has not come.
#[derive(Debug)]
struct Underway {
    request: Request,
    /// Results that have to come before its end; after an error none, because the server skips the others.
    left: usize,
}

/// The client's side of a session.
#[derive(Debug)]
pub struct Connection {
    login: Login,
    proof: Proof,
    is_open: bool,
    /// Process and secret key: what a cancel request needs.
    key: Option<(i32, i32)>,
    requests: VecDeque<Underway>,
    /// What has come of a description.
    description: Description,
    /// What is executed between the next Bind and its Execute.
    guard: Option<Guard>,
    /// The request that is being written has a guard in it.
    is_guarded: bool,
    output: BytesMut,
}

const UNEXPECTED: Fault = Fault::Protocol("a message that nothing has asked for");

impl Connection {
    /// A connection whose first message is in [`output`](Self::output).
    ///
    /// # Errors
    /// The login has zero bytes in it.
    pub fn new(login: Login) -> Result<Self, Fault> {
        let mut output = BytesMut::new();
        login.write_startup(&mut output)?;
        Ok(Self {
            login,
            proof: Proof::default(),
            is_open: false,
            key: None,
            requests: VecDeque::new(),
            description: Description::default(),
            guard: None,
            is_guarded: false,
            output,
        })
    }

    /// What is to be sent.
    pub fn output(&mut self) -> &mut BytesMut {
        &mut self.output
    }

    /// Says that the bytes travel over TLS, and what the server's certificate hashes to (`tls-server-end-point`).
    pub fn set_server_end_point(&mut self, hash: Vec<u8>) {
        self.proof.server_end_point = Some(hash);
    }

    /// Process and secret key of the session, once they are known.
    pub fn key(&self) -> Option<(i32, i32)> {
        self.key
    }

    /// Requests that are under way.
    pub fn requests(&self) -> usize {
        self.requests.len()
    }

    /// Prepares a statement under a name.
    ///
    /// # Errors
    /// The name or the text has a zero byte in it; nothing is sent.
    pub fn prepare(&mut self, name: &str, sql: &str) -> Result<(), Fault> {
        if name.contains('\0') || sql.contains('\0') {
            return Err(Fault::Protocol("a zero byte in the text of a statement"));
        }
        let text = |_| Fault::MessageTooLong;
        frontend::parse(name, sql, [], &mut self.output).map_err(text)?;
        frontend::describe(b'S', name, &mut self.output).map_err(text)?;
        frontend::sync(&mut self.output);
        self.begin(Request::Prepare, 1);
        Ok(())
    }

    /// Executes a prepared statement.
    ///
    /// # Errors
    /// The parameters are too many or too long; nothing is sent.
    pub fn execute(
        &mut self,
        name: &str,
        description: &Description,
        parameters: &Parameters,
    ) -> Result<(), Fault> {
        self.bind("", name, description, parameters)?;
        self.output.put_slice(EXECUTE_SYNC);
        self.begin(Request::Execute, 1);
        Ok(())
    }

    /// Has the next execution fail if the types of a guard are not what they were; the statement is not executed then.
    pub fn guard_next(&mut self, guard: &Guard) {
        self.guard = Some(guard.clone());
    }

    /// Takes back what was written of a request since the output had this length.
    pub fn take_back(&mut self, length: usize) {
        self.output.truncate(length);
        self.guard = None;
        self.is_guarded = false;
    }

    /// Executes a prepared statement as a part of the request that [`end_executions`](Self::end_executions) makes: the first
    /// that fails undoes those before it and skips those behind it.
    ///
    /// # Errors
    /// The parameters are too many or too long; nothing is sent.
    pub fn execute_next(
        &mut self,
        name: &str,
        description: &Description,
        parameters: &Parameters,
    ) -> Result<(), Fault> {
        self.bind("", name, description, parameters)?;
        self.output.put_slice(EXECUTE);
        Ok(())
    }

    /// Makes one request of the executions since the last request, which are so many.
    pub fn end_executions(&mut self, count: usize) {
        frontend::sync(&mut self.output);
        self.begin(Request::Execute, count);
    }

    /// Prepares a statement without a name for the request that is made next, in the same transaction: for connections
    /// that lead to another server process after each.
    ///
    /// # Errors
    /// The text has a zero byte in it; nothing is sent.
    pub fn prepare_for_next(&mut self, sql: &str, description: &Description) -> Result<(), Fault> {
        let parameters = description.parameters.iter().copied();
        frontend::parse("", sql, parameters, &mut self.output)
            .map_err(|_| Fault::Protocol("a zero byte in the text of a statement"))
    }

    /// Executes a prepared statement in a portal of its own, up to so many rows; the portal lives as long as the
    /// transaction, so there has to be one.
    ///
    /// # Errors
    /// The parameters are too many or too long; nothing is sent.
    pub fn open_portal(
        &mut self,
        portal: &str,
        rows_max: u32,
        name: &str,
        description: &Description,
        parameters: &Parameters,
    ) -> Result<(), Fault> {
        self.bind(portal, name, description, parameters)?;
        self.resume_portal(portal, rows_max)
    }

    /// Binds a statement. Of one without a name, which was prepared just now, it asks what its rows look like: they may
    /// differ from the description.
    #[inline]
    fn bind(
        &mut self,
        portal: &str,
        name: &str,
        description: &Description,
        parameters: &Parameters,
    ) -> Result<(), Fault> {
        parameters.bind(portal, name, description, &mut self.output)?;
        if name.is_empty() {
            frontend::describe(b'P', portal, &mut self.output)
                .map_err(|_| Fault::Protocol("a zero byte in the name of a portal"))?;
        }
        if let Some(guard) = self.guard.take() {
            self.output.put_slice(guard.messages());
            self.is_guarded = true;
        }
        Ok(())
    }

    /// Goes on in a portal, for so many rows.
    ///
    /// # Errors
    /// The name has a zero byte in it.
    pub fn resume_portal(&mut self, portal: &str, rows_max: u32) -> Result<(), Fault> {
        let rows_max = i32::try_from(rows_max).unwrap_or(i32::MAX);
        frontend::execute(portal, rows_max, &mut self.output)
            .map_err(|_| Fault::Protocol("a zero byte in the name of a portal"))?;
        frontend::sync(&mut self.output);
        self.begin(Request::Execute, 1);
        Ok(())
    }

    /// Closes a portal, together with the next request.
    pub fn close_portal(&mut self, portal: &str) {
        // A name of ours has no zero byte.
        let _ = frontend::close(b'P', portal, &mut self.output);
    }

    /// Executes a COPY with the client. No request may be made until it is done: the server would take it for data.
    ///
    /// # Errors
    /// The text has a zero byte in it; nothing is sent.
    pub fn copy(&mut self, sql: &str) -> Result<(), Fault> {
        self.query(sql, Request::Copy)
    }

    /// Sends data of a COPY, after [`Event::CopyIn`].
    pub fn copy_data(&mut self, data: &[u8]) {
        // Pieces, because a message has at most 2 GiB.
        for piece in data.chunks(COPY_MESSAGE_BYTES) {
            self.output.reserve(piece.len() + 5);
            self.output.put_u8(b'd');
            self.output
                .put_u32(u32::try_from(piece.len() + 4).unwrap_or(u32::MAX));
            self.output.put_slice(piece);
        }
    }

    /// Ends the data of a COPY.
    pub fn copy_done(&mut self) {
        frontend::copy_done(&mut self.output);
    }

    /// Has the server refuse the COPY.
    pub fn copy_fail(&mut self, why: &str) {
        let why = why.replace('\0', "?");
        let _ = frontend::copy_fail(&why, &mut self.output);
    }

    /// Forgets a prepared statement, together with the next request: no response is waited for.
    pub fn forget(&mut self, name: &str) {
        // A name of ours has no zero byte.
        let _ = frontend::close(b'S', name, &mut self.output);
    }

    /// Executes statements without parameters by the simple protocol; its values come as text.
    ///
    /// # Errors
    /// The text has a zero byte in it; nothing is sent.
    pub fn script(&mut self, sql: &str) -> Result<(), Fault> {
        self.query(sql, Request::Script)
    }

    fn query(&mut self, sql: &str, request: Request) -> Result<(), Fault> {
        if sql.contains('\0') {
            return Err(Fault::Protocol("a zero byte in the text of a statement"));
        }
        frontend::query(sql, &mut self.output).map_err(|_| Fault::MessageTooLong)?;
        self.begin(request, 1);
        Ok(())
    }

    fn begin(&mut self, mut request: Request, left: usize) {
        if core::mem::take(&mut self.is_guarded) {
            request = Request::Guarded;
        }
        self.requests.push_back(Underway { request, left });
    }

    /// Says goodbye.
    pub fn terminate(&mut self) {
        frontend::terminate(&mut self.output);
    }

    /// The next event of `input`, which is advanced behind it; `None` if there is no whole message.
    ///
    /// # Errors
    /// The server breaks the protocol. Nothing more may be read.
    #[inline]
    pub fn receive<'a>(&mut self, input: &mut &'a [u8]) -> Result<Option<Event<'a>>, Fault> {
        while let Some((tag, body)) = take_message(input)? {
            if let Some(event) = self.take(tag, body)? {
                return Ok(Some(event));
            }
        }
        self.refuse_early(announced(input))?;
        Ok(None)
    }

    #[inline]
    fn take<'a>(&mut self, tag: u8, body: &'a [u8]) -> Result<Option<Event<'a>>, Fault> {
        let request = self.requests.front_mut();
        Ok(match (tag, request.map(|it| (it.request, &mut it.left))) {
            (b'D', Some((Request::Execute, left))) if *left > 0 => Some(Event::Row(Row::of(body)?)),
            (b'D', Some((Request::Script | Request::Copy, _))) => Some(Event::Row(Row::of(body)?)),
            // BindComplete, ParseComplete
            (b'2', Some((Request::Execute | Request::Guarded, _))) | (b'1', Some(_)) => None,
            // CloseComplete
            (b'3', _) if self.is_open => None,
            // CommandComplete, EmptyQueryResponse, PortalSuspended
            (b'C' | b'I' | b's', Some((Request::Execute, left))) if *left > 0 => {
                *left -= 1;
                Some(result_of(tag, body))
            }
            // A script has as many as it has statements.
            (b'C' | b'I', Some((Request::Script | Request::Copy, left))) => {
                *left = 0;
                Some(result_of(tag, body))
            }
            (b'd', Some((Request::Copy, _))) => Some(Event::CopyData(body)),
            (b'Z', _) => Some(self.end(body)?),
            (b'D' | b'C', Some((Request::Guarded, _))) => {
                if let (b'C', Some(underway)) = (tag, self.requests.front_mut()) {
                    underway.request = Request::Execute;
                }
                None
            }
            _ => return self.take_rare(tag, body),
        })
    }

    /// `ReadyForQuery`.
    #[inline]
    fn end<'a>(&mut self, body: &[u8]) -> Result<Event<'a>, Fault> {
        let status = match body {
            b"I" => TransactionStatus::Idle,
            b"T" => TransactionStatus::Open,
            b"E" => TransactionStatus::Failed,
            _ => return Err(Fault::Protocol("a malformed ReadyForQuery")),
        };
        match self.requests.pop_front() {
            Some(Underway { left: 0, .. }) => return Ok(Event::Done(status)),
            // The end of another request, it seems: what comes next would be taken for what it is not.
            Some(_) => return Err(Fault::Protocol("the end of a request without its result")),
            None => {}
        }
        if self.is_open || !self.proof.is_done {
            return Err(UNEXPECTED);
        }
        self.is_open = true;
        Ok(Event::Open)
    }

    /// Messages that come once per connection or statement.
    #[cold]
    fn take_rare<'a>(&mut self, tag: u8, body: &[u8]) -> Result<Option<Event<'a>>, Fault> {
        self.refuse_early(body.len() + 4)?;
        let message = parse(tag, body)?;
        let request = self.requests.front().map(|it| it.request);
        Ok(Some(match message {
            Message::ErrorResponse(body) => {
                let error = ServerError::of(&mut body.fields())?;
                if let Some(underway) = self.requests.front_mut() {
                    underway.left = 0;
                }
                Event::Failed(Box::new(error))
            }
            Message::NoticeResponse(body) => {
                Event::Notice(Box::new(ServerError::of(&mut body.fields())?))
            }
            Message::ParameterStatus(body) => {
                Event::Parameter(text(body.name())?, text(body.value())?)
            }
            Message::NotificationResponse(body) => {
                let (channel, payload) = (text(body.channel())?, text(body.message())?);
                Event::Notification(body.process_id(), channel, payload)
            }
            message @ (Message::ParameterDescription(_)
            | Message::RowDescription(_)
            | Message::NoData) => return self.take_description(&message),
            Message::BackendKeyData(body) if !self.is_open => {
                self.key = Some((body.process_id(), body.secret_key()));
                return Ok(None);
            }
            Message::CopyInResponse(_) if request == Some(Request::Copy) => Event::CopyIn,
            // What is pipelined behind it would be taken for its data.
            Message::CopyInResponse(_) => return Err(Fault::Copy),
            Message::CopyOutResponse(_) | Message::CopyData(_) | Message::CopyDone
                if request.is_some() =>
            {
                return Ok(None);
            }
            message if !self.is_open && !self.proof.is_done && tag == b'R' => {
                self.proof.step(&self.login, &message, &mut self.output)?;
                return Ok(None);
            }
            _ => return Err(UNEXPECTED),
        }))
    }

    /// Refuses a message of so many bytes that is too long for its time.
    fn refuse_early(&self, bytes: usize) -> Result<(), Fault> {
        if !self.proof.is_done && bytes > EARLY_MESSAGE_BYTES_MAX {
            return Err(Fault::Protocol("a long message before the login"));
        }
        Ok(())
    }

    /// What a statement, or what is executed, looks like.
    fn take_description<'a>(&mut self, message: &Message) -> Result<Option<Event<'a>>, Fault> {
        let underway = self.requests.front_mut().ok_or(UNEXPECTED)?;
        Ok(Some(match (message, underway.request) {
            (Message::ParameterDescription(body), Request::Prepare) => {
                self.description.set_parameters(body)?;
                return Ok(None);
            }
            (Message::RowDescription(_) | Message::NoData, Request::Prepare) => {
                underway.left = 0;
                if let Message::RowDescription(body) = message {
                    self.description.set_columns(body)?;
                }
                Event::Prepared(core::mem::take(&mut self.description))
            }
            (Message::NoData, Request::Execute | Request::Guarded) => return Ok(None),
            (Message::RowDescription(body), request) => {
                let mut columns = Description::default();
                columns.set_columns(body)?;
                Event::Columns(match request {
                    Request::Execute | Request::Guarded => columns,
                    _ => columns.without_binary(),
                })
            }
            _ => return Err(UNEXPECTED),
        }))
    }
}

/// What `CommandComplete`, `EmptyQueryResponse` or `PortalSuspended` say.
#[inline]
fn result_of<'a>(tag: u8, body: &[u8]) -> Event<'a> {
    match tag {
        b'C' => Event::Complete(count_of(body)),
        b'I' => Event::Complete(0),
        _ => Event::Suspended,
    }
}

/// Takes a whole message from the front: its tag and its body.
#[inline]
fn take_message<'a>(input: &mut &'a [u8]) -> Result<Option<(u8, &'a [u8])>, Fault> {
    let Some((&[tag, a, b, c, d], rest)) = input.split_first_chunk() else {
        return Ok(None);
    };
    let len = u32::from_be_bytes([a, b, c, d]) as usize;
    if len > MESSAGE_BYTES_MAX {
        // No letter: what speaks is no PostgreSQL, or it is out of step.
        let is_known = tag.is_ascii_alphanumeric();
        return Err(if is_known {
            Fault::MessageTooLong
        } else {
            UNEXPECTED
        });
    }
    let len = len
        .checked_sub(4)
        .ok_or(Fault::Protocol("a message without a length"))?;
    let Some((body, rest)) = rest.split_at_checked(len) else {
        return Ok(None);
    };
    *input = rest;
    Ok(Some((tag, body)))
}

/// How long the message at the front says it is; 0 if that has not come.
fn announced(input: &[u8]) -> usize {
    match input {
        &[_, a, b, c, d, ..] => u32::from_be_bytes([a, b, c, d]) as usize,
        _ => 0,
    }
}

/// Has the library read a message.
fn parse(tag: u8, body: &[u8]) -> Result<Message, Fault> {
    let mut message = BytesMut::with_capacity(body.len() + 5);
    message.put_u8(tag);
    // A body that was taken is shorter than 256 MiB.
    message.put_u32(u32::try_from(body.len() + 4).unwrap_or(u32::MAX));
    message.put_slice(body);
    match backend::Message::parse(&mut message) {
        Ok(Some(message)) => Ok(message),
        Ok(None) | Err(_) => Err(Fault::Protocol("a malformed message")),
    }
}

fn text<E>(text: Result<&str, E>) -> Result<String, Fault> {
    text.map(Into::into)
        .map_err(|_| Fault::Protocol("text that is not UTF-8"))
}

/// The number at the end of a command tag: `SELECT 20`, `INSERT 0 1`; 0 without one.
#[inline]
fn count_of(body: &[u8]) -> u64 {
    let tag = body.strip_suffix(b"\0").unwrap_or(body);
    let number = tag.rsplit(|&byte| byte == b' ').next().unwrap_or_default();
    let digit = |sum: u64, byte: &u8| {
        let digit = char::from(*byte).to_digit(10)?;
        sum.checked_mul(10)?.checked_add(digit.into())
    };
    number.iter().try_fold(0, digit).unwrap_or(0)
}

/// Bytes of data in one message of a COPY.
const COPY_MESSAGE_BYTES: usize = 64 * 1024 * 1024;

/// The only message of a connection that is made to cancel what a session does.
pub fn cancel_request(process: i32, secret: i32) -> [u8; 16] {
    let mut message = BytesMut::with_capacity(16);
    frontend::cancel_request(process, secret, &mut message);
    let mut bytes = [0; 16];
    bytes.copy_from_slice(&message);
    bytes
}
