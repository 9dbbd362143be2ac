//! One connection, as far as it reads: the login, replies in the order of the commands, what comes unasked.
//!
//! Commands are appended to a buffer of the caller's ([`append_command`](crate::append_command)); the connection is told how
//! many replies they have.

use alloc::collections::VecDeque;
use alloc::string::String;
use alloc::vec::Vec;

use crate::fault::Fault;
use crate::login::{Login, Step};
use crate::reader::{Item, Reader, Value};

/// What has come.
#[derive(Debug)]
pub enum Event<'a> {
    /// The login is done, and commands may be sent.
    Open(Server),
    /// A value of the reply to the command that has waited longest.
    Reply(Item<'a>),
    /// A command that subscribes has failed, the one that has waited longest.
    Refused(&'a [u8]),
    /// A value of what the server says unasked: a message, an invalidation.
    Push(Item<'a>),
}

/// What the server says of itself (`HELLO`).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Server {
    /// What it is: `redis`, `valkey`.
    pub name: String,
    /// Its version, such as `7.0.15`.
    pub version: String,
    /// The number of this connection there.
    pub id: i64,
    /// `standalone`, `cluster` or `sentinel`.
    pub mode: String,
    /// `master` or `replica`.
    pub role: String,
}

impl Server {
    /// Whether fields of its hashes may have times to live of their own (`HEXPIRE`): Redis from 7.4, Valkey from 9.
    pub fn has_field_ttls(&self) -> bool {
        let mut numbers = self
            .version
            .split('.')
            .map(|part| part.parse().unwrap_or(0));
        let version = (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0));
        version
            >= if self.name == "valkey" {
                (9, 0)
            } else {
                (7, 4)
            }
    }
}

/// The client's side of a connection.
#[derive(Debug)]
pub struct Connection {
    reader: Reader,
    /// Commands of the login whose replies are to come.
    login: VecDeque<Step>,
    is_open: bool,
    server: Server,
    /// The name of the value that comes next of the reply to `HELLO`; `None`: a name comes next.
    field: Option<Field>,
    /// How deep in that reply it comes.
    depth: usize,
    /// Replies of commands that are to come.
    expected: usize,
    /// A push is being read.
    is_push: bool,
    subscribes: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Field {
    Name,
    Version,
    Id,
    Mode,
    Role,
    Other,
}

impl Connection {
    /// A connection; its login is appended to `output`.
    pub fn new(login: &Login, reply_bytes_max: usize, output: &mut Vec<u8>) -> Self {
        Self {
            reader: Reader::new(reply_bytes_max),
            login: login.write(output),
            is_open: false,
            server: Server::default(),
            field: None,
            depth: 0,
            expected: 0,
            is_push: false,
            subscribes: login.subscribes,
        }
    }

    /// Says that commands have been sent that have so many replies.
    #[inline]
    pub fn expect(&mut self, replies: usize) {
        self.expected += replies;
    }

    /// The next event of `input`, which is advanced behind it; `None` if there is no whole value.
    ///
    /// # Errors
    /// The server breaks the protocol, exceeds a limit or refuses the login. Nothing more may be read.
    #[inline]
    pub fn receive<'a>(&mut self, input: &mut &'a [u8]) -> Result<Option<Event<'a>>, Fault> {
        while let Some(item) = self.reader.next(input)? {
            if self.is_push || matches!(item.value, Value::Push(_)) {
                self.is_push = !item.is_last;
                if self.is_open {
                    return Ok(Some(Event::Push(item)));
                }
                continue;
            }
            if !self.is_open {
                if let Some(server) = self.take_login(item)? {
                    return Ok(Some(Event::Open(server)));
                }
                continue;
            }
            if self.expected == 0 {
                return match item.value {
                    Value::Error(error) if self.subscribes => Ok(Some(Event::Refused(error))),
                    _ => Err(Fault::Unasked),
                };
            }
            self.expected -= usize::from(item.is_last);
            return Ok(Some(Event::Reply(item)));
        }
        Ok(None)
    }

    /// Takes a value of a reply to the login; returns what the server says of itself when the login is done.
    #[cold]
    fn take_login(&mut self, item: Item<'_>) -> Result<Option<Server>, Fault> {
        let Some(&step) = self.login.front() else {
            return Err(Fault::Unasked);
        };
        match item.value {
            Value::Error(error) if step != Step::Optional => {
                return Err(Fault::Refused(String::from_utf8_lossy(error).into_owned()));
            }
            _ if step == Step::Hello => self.take_field(item),
            _ => {}
        }
        if !item.is_last {
            return Ok(None);
        }
        self.login.pop_front();
        if !self.login.is_empty() {
            return Ok(None);
        }
        self.is_open = true;
        Ok(Some(core::mem::take(&mut self.server)))
    }

    /// Takes a name or a value of the map that `HELLO` returns.
    fn take_field(&mut self, item: Item<'_>) {
        let depth = self.depth;
        self.depth += usize::from(item.value.is_container());
        self.depth = self.depth.saturating_sub(item.ends as usize);
        if depth != 1 {
            return;
        }
        let text = match item.value {
            Value::Blob(text) | Value::Simple(text) => String::from_utf8_lossy(text).into_owned(),
            _ => String::new(),
        };
        self.field = match (self.field, item.value) {
            (None, _) => Some(Field::of(&text)),
            (Some(field), value) => {
                match (field, value) {
                    (Field::Name, _) => self.server.name = text,
                    (Field::Version, _) => self.server.version = text,
                    (Field::Mode, _) => self.server.mode = text,
                    (Field::Role, _) => self.server.role = text,
                    (Field::Id, Value::Integer(id)) => self.server.id = id,
                    _ => {}
                }
                None
            }
        };
    }
}

impl Field {
    fn of(name: &str) -> Self {
        match name {
            "server" => Self::Name,
            "version" => Self::Version,
            "id" => Self::Id,
            "mode" => Self::Mode,
            "role" => Self::Role,
            _ => Self::Other,
        }
    }
}
