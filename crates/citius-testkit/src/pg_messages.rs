//! Messages of PostgreSQL's protocol 3 as a server writes and reads them; shares no code with the client.

use std::fmt;

/// A message of a server.
pub fn message(tag: u8, body: &[u8]) -> Vec<u8> {
    let mut bytes = vec![tag];
    bytes.extend(u32::try_from(body.len() + 4).unwrap_or(4).to_be_bytes());
    bytes.extend(body);
    bytes
}

/// What opens a session that asks for no password: it has process 7 and key 9.
pub fn opening() -> Vec<u8> {
    let key = message(b'K', &[0, 0, 0, 7, 0, 0, 0, 9]);
    [message(b'R', &[0; 4]), key, ready(b'I')].concat()
}

/// `ReadyForQuery`, in no transaction (`I`), in one (`T`), or in one that has failed (`E`).
pub fn ready(status: u8) -> Vec<u8> {
    message(b'Z', &[status])
}

/// A statement is prepared that has parameters and columns of these types.
pub fn prepared(parameters: &[u32], columns: &[(&str, u32)]) -> Vec<u8> {
    let mut types = count(parameters.len());
    for type_oid in parameters {
        types.extend(type_oid.to_be_bytes());
    }
    [
        message(b'1', b""),
        message(b't', &types),
        row_description(columns),
    ]
    .concat()
}

/// Columns of these names and types; `NoData` without any.
pub fn row_description(columns: &[(&str, u32)]) -> Vec<u8> {
    if columns.is_empty() {
        return message(b'n', b"");
    }
    let mut body = count(columns.len());
    for (name, type_oid) in columns {
        body.extend(name.as_bytes());
        body.extend([0; 7]);
        body.extend(type_oid.to_be_bytes());
        body.extend([0; 8]);
    }
    message(b'T', &body)
}

/// `BindComplete`, rows of one `int4` each, and their number.
pub fn rows(values: &[i32]) -> Vec<u8> {
    let rows = values.iter().flat_map(|value| row(*value));
    let tag = complete(&format!("SELECT {}", values.len()));
    [message(b'2', b""), rows.collect(), tag].concat()
}

/// A row of one `int4`.
pub fn row(value: i32) -> Vec<u8> {
    let mut body = vec![0, 1, 0, 0, 0, 4];
    body.extend(value.to_be_bytes());
    message(b'D', &body)
}

/// `CommandComplete`.
pub fn complete(tag: &str) -> Vec<u8> {
    message(b'C', &[tag.as_bytes(), b"\0"].concat())
}

/// An error.
pub fn failure(code: &str, text: &str) -> Vec<u8> {
    error("ERROR", code, text)
}

/// An error of a severity.
pub fn error(severity: &str, code: &str, text: &str) -> Vec<u8> {
    let body = format!("S{severity}\0V{severity}\0C{code}\0M{text}\0\0");
    message(b'E', body.as_bytes())
}

fn count(count: usize) -> Vec<u8> {
    u16::try_from(count).unwrap_or(0).to_be_bytes().to_vec()
}

/// A message of a client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Request {
    /// A statement gets a name.
    Parse {
        /// Its name.
        name: String,
        /// Its text.
        text: String,
    },
    /// A statement (`S`) or portal (`P`) is asked for its description.
    Describe(u8, String),
    /// Parameters for a statement.
    Bind {
        /// The portal that it makes.
        portal: String,
        /// The name of the statement.
        name: String,
        /// The values; `None` for NULL.
        parameters: Vec<Option<Vec<u8>>>,
    },
    /// So many rows of a portal; 0 for all.
    Execute(String, u32),
    /// A statement (`S`) or portal (`P`) is forgotten.
    Close(u8, String),
    /// The end of a request.
    Sync,
    /// The simple protocol.
    Query(String),
    /// Data of a COPY.
    CopyData(Vec<u8>),
    /// Its end.
    CopyDone,
    /// Its end, with a reason why it is to fail.
    CopyFail(String),
    /// The end of the session.
    Terminate,
}

impl fmt::Display for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Parse { name, text } => write!(f, "Parse {name}: {text}"),
            Self::Describe(kind, name) => write!(f, "Describe {}{name}", char::from(*kind)),
            Self::Bind {
                portal,
                name,
                parameters,
            } => {
                let portal = if portal.is_empty() {
                    ""
                } else {
                    " in a portal"
                };
                write!(f, "Bind {name} of {}{portal}", parameters.len())
            }
            Self::Execute(_, rows_max) => write!(f, "Execute {rows_max}"),
            Self::Close(kind, name) => write!(f, "Close {}{name}", char::from(*kind)),
            Self::Sync => f.write_str("Sync"),
            Self::Query(text) => write!(f, "Query {}", text.split(' ').next().unwrap_or("")),
            Self::CopyData(data) => write!(f, "CopyData {}", String::from_utf8_lossy(data)),
            Self::CopyDone => f.write_str("CopyDone"),
            Self::CopyFail(why) => write!(f, "CopyFail {why}"),
            Self::Terminate => f.write_str("Terminate"),
        }
    }
}

/// Takes a whole message of a client from the front of `bytes`.
///
/// # Panics
/// It is none that a client may send.
pub fn take_request(bytes: &mut Vec<u8>) -> Option<Request> {
    let length = bytes.get(1..5)?.try_into().expect("four bytes");
    let end = usize::try_from(u32::from_be_bytes(length)).expect("32 bits fit") + 1;
    if bytes.len() < end {
        return None;
    }
    let message: Vec<u8> = bytes.drain(..end).collect();
    let mut body = Body(&message[5..]);
    Some(match message[0] {
        b'P' => Request::Parse {
            name: body.text(),
            text: body.text(),
        },
        b'D' => Request::Describe(body.byte(), body.text()),
        b'B' => body.bind(),
        b'E' => Request::Execute(body.text(), body.number()),
        b'C' => Request::Close(body.byte(), body.text()),
        b'S' => Request::Sync,
        b'Q' => Request::Query(body.text()),
        b'd' => Request::CopyData(body.0.to_vec()),
        b'c' => Request::CopyDone,
        b'f' => Request::CopyFail(body.text()),
        b'X' => Request::Terminate,
        tag => panic!("no client sends {:?}", char::from(tag)),
    })
}

struct Body<'a>(&'a [u8]);

impl Body<'_> {
    fn take(&mut self, count: usize) -> Vec<u8> {
        let (taken, rest) = self.0.split_at_checked(count).expect("a whole message");
        self.0 = rest;
        taken.to_vec()
    }

    fn byte(&mut self) -> u8 {
        self.take(1)[0]
    }

    fn short(&mut self) -> usize {
        let bytes = self.take(2).try_into().expect("two bytes");
        usize::from(u16::from_be_bytes(bytes))
    }

    fn number(&mut self) -> u32 {
        u32::from_be_bytes(self.take(4).try_into().expect("four bytes"))
    }

    fn text(&mut self) -> String {
        let end = self.0.iter().position(|&byte| byte == 0).expect("its end");
        let text = String::from_utf8(self.take(end)).expect("UTF-8");
        self.byte();
        text
    }

    fn bind(&mut self) -> Request {
        let (portal, name) = (self.text(), self.text());
        let formats = self.short();
        self.take(2 * formats);
        let values = self.short();
        let value = |body: &mut Self| match body.number() {
            u32::MAX => None,
            length => Some(body.take(usize::try_from(length).expect("32 bits fit"))),
        };
        Request::Bind {
            portal,
            name,
            parameters: (0..values).map(|_| value(self)).collect(),
        }
    }
}
