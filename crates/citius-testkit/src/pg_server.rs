//! A model of a server of PostgreSQL: which names it knows, what it executes, and what it says of that.
//!
//! It stands for what the client relies on: after an error the rest of the request is skipped, a name is prepared once, a portal
//! lives as long as its transaction. It breaks off where a client breaks what a server relies on.

use std::collections::BTreeMap;

use crate::pg_calls::INT4;
use crate::pg_messages::{
    Request, complete, failure, message, prepared, ready, row, row_description, take_request,
};

/// The server process of one session.
#[derive(Default)]
pub struct Server {
    input: Vec<u8>,
    /// What the client has not got yet.
    pub output: Vec<u8>,
    names: BTreeMap<String, String>,
    portals: BTreeMap<String, Portal>,
    transaction: Transaction,
    place: Place,
    /// Names have been lost that no text of the client's has deallocated.
    has_lost_names: bool,
    /// The error of the next thing that can fail.
    pub next_error: Option<(&'static str, &'static str)>,
    /// What was executed: the argument, and the text of the statement.
    pub executed: Vec<(i32, String)>,
    /// How much of it is that of requests before the one that is read now, which an error undoes.
    n_before: usize,
}

#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Transaction {
    #[default]
    No,
    Open,
    Failed,
}

/// What the next message of the client is read as.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Place {
    /// The first of a request.
    #[default]
    Start,
    /// A further one.
    Within,
    /// One of a request that has failed.
    Skipped,
    /// Data of a COPY.
    Data,
}

struct Portal {
    text: String,
    value: i32,
    /// Rows that were not fetched.
    left: i32,
}

/// Rows of a statement that is fetched from in portions; of any other it is one.
pub const PORTAL_ROWS: i32 = 5;

impl Server {
    /// Takes bytes of the client.
    pub fn hear(&mut self, bytes: &[u8]) {
        self.input.extend_from_slice(bytes);
    }

    /// Loses all names, as a pooler does that changes the server process between two transactions.
    pub fn lose_names(&mut self) {
        if (self.place, self.transaction) == (Place::Start, Transaction::No) {
            self.has_lost_names = true;
            self.names.clear();
        }
    }

    /// A cancel request comes: a COPY whose data does not come ends; whether there is one.
    pub fn cancel(&mut self) -> bool {
        let was_copying = self.place == Place::Data;
        if was_copying {
            self.fail("57014", "canceling statement due to user request");
            self.end();
        }
        was_copying
    }

    /// Does what one message of the client asks for; `false` if there is none.
    ///
    /// # Panics
    /// The client has broken what a server relies on.
    pub fn step(&mut self) -> bool {
        let Some(request) = take_request(&mut self.input) else {
            return false;
        };
        let is_data = matches!(
            request,
            Request::CopyData(_) | Request::CopyDone | Request::CopyFail(_)
        );
        assert_eq!(
            is_data,
            self.place == Place::Data,
            "{request} in place of data, or the reverse"
        );
        if self.place == Place::Start {
            self.place = Place::Within;
        }
        match request {
            Request::Sync => self.end(),
            Request::Query(text) => self.query(&text),
            Request::CopyData(_) => {}
            Request::CopyDone => {
                self.say(&complete("COPY 0"));
                self.end();
            }
            Request::CopyFail(_) => {
                self.fail("57014", "COPY from stdin failed");
                self.end();
            }
            _ if self.place == Place::Skipped => {}
            request => {
                if let Err((code, text)) = self.execute(request) {
                    self.fail(code, &text);
                    self.place = Place::Skipped;
                }
            }
        }
        true
    }

    fn say(&mut self, bytes: &[u8]) {
        self.output.extend_from_slice(bytes);
    }

    fn fail(&mut self, code: &str, text: &str) {
        self.say(&failure(code, text));
        self.executed.truncate(self.n_before);
        if self.transaction == Transaction::Open {
            self.transaction = Transaction::Failed;
        }
    }

    fn end(&mut self) {
        self.place = Place::Start;
        self.n_before = self.executed.len();
        if self.transaction == Transaction::No {
            self.portals.clear();
        }
        let status = match self.transaction {
            Transaction::No => b'I',
            Transaction::Open => b'T',
            Transaction::Failed => b'E',
        };
        self.say(&ready(status));
    }

    /// # Errors
    /// That which the next thing is to fail with.
    fn may_fail(&mut self) -> Result<(), (&'static str, String)> {
        match self.next_error.take() {
            Some((code, text)) => Err((code, text.into())),
            None if self.transaction == Transaction::Failed => {
                Err(("25P02", "current transaction is aborted".into()))
            }
            None => Ok(()),
        }
    }

    fn query(&mut self, text: &str) {
        let word = text.split(' ').next().unwrap_or_default();
        let is_end = matches!(word, "COMMIT" | "ROLLBACK");
        if is_end {
            self.transaction = Transaction::No;
        } else if let Err((code, text)) = self.may_fail() {
            self.fail(code, &text);
            return self.end();
        }
        match word {
            "BEGIN" => self.transaction = Transaction::Open,
            "COPY" if text.contains("STDIN") => {
                self.place = Place::Data;
                return self.say(&message(b'G', &[0, 0, 0]));
            }
            "COPY" => {
                let data = [message(b'd', b"1\n"), message(b'd', b"2\n")].concat();
                self.say(&[message(b'H', &[0, 0, 0]), data, message(b'c', b"")].concat());
            }
            _ => {}
        }
        self.say(&complete(word));
        self.end();
    }

    fn execute(&mut self, request: Request) -> Result<(), (&'static str, String)> {
        match request {
            Request::Parse { name, text } => {
                self.may_fail()?;
                if !name.is_empty() && self.names.contains_key(&name) {
                    assert!(self.has_lost_names, "{name} is prepared again");
                    let text = format!("prepared statement \"{name}\" already exists");
                    return Err(("42P05", text));
                }
                self.names.insert(name, text);
                self.say(&message(b'1', b""));
            }
            Request::Describe(b'S', name) => {
                self.may_fail()?;
                let text = self.names.get(&name).expect("it was prepared just now");
                let (parameters, columns) = shape_of(text);
                let described = prepared(parameters, columns);
                // Without `ParseComplete`, which has been said.
                self.say(&described[5..]);
            }
            Request::Describe(_, portal) => {
                let (_, columns) = shape_of(&self.portals[&portal].text);
                self.say(&row_description(columns));
            }
            Request::Bind {
                portal,
                name,
                parameters,
            } => self.bind(portal, &name, &parameters)?,
            Request::Execute(portal, rows_max) => self.fetch(&portal, rows_max)?,
            Request::Close(kind, name) => {
                if kind == b'S' {
                    self.names.remove(&name);
                } else {
                    self.portals.remove(&name);
                }
                self.say(&message(b'3', b""));
            }
            request => panic!("{request}"),
        }
        Ok(())
    }

    fn bind(
        &mut self,
        portal: String,
        name: &str,
        parameters: &[Option<Vec<u8>>],
    ) -> Result<(), (&'static str, String)> {
        let Some(text) = self.names.get(name).cloned() else {
            assert!(self.has_lost_names, "{name} is not known");
            let text = format!("prepared statement \"{name}\" does not exist");
            return Err(("26000", text));
        };
        self.may_fail()?;
        let first = parameters.first().cloned().flatten();
        let value = first.and_then(|bytes| bytes.try_into().ok());
        let left = if portal.is_empty() { 1 } else { PORTAL_ROWS };
        let value = value.map_or(0, i32::from_be_bytes);
        self.portals.insert(portal, Portal { text, value, left });
        self.say(&message(b'2', b""));
        Ok(())
    }

    fn fetch(&mut self, name: &str, rows_max: u32) -> Result<(), (&'static str, String)> {
        self.may_fail()?;
        let Some(portal) = self.portals.get_mut(name) else {
            return Err(("34000", format!("portal \"{name}\" does not exist")));
        };
        let (text, value) = (portal.text.clone(), portal.value);
        self.executed.push((value, text.clone()));
        if !text.contains("$1") {
            if text == "DISCARD ALL" {
                self.names.clear();
            }
            self.say(&complete("DONE"));
            return Ok(());
        }
        let most = i32::try_from(rows_max).unwrap_or(0);
        let count = if most == 0 {
            portal.left
        } else {
            portal.left.min(most)
        };
        portal.left -= count;
        let is_whole = most == 0 || count < most;
        for _ in 0..count {
            self.say(&row(value));
        }
        if is_whole {
            self.say(&complete(&format!("SELECT {count}")));
        } else {
            self.say(&message(b's', b""));
        }
        Ok(())
    }
}

/// Types of parameters, and columns, of a statement.
fn shape_of(text: &str) -> (&'static [u32], &'static [(&'static str, u32)]) {
    if text.contains("$1") {
        (&[INT4], &[("a", INT4)])
    } else {
        (&[], &[])
    }
}
