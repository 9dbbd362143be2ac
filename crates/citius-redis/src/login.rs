//! What a connection says before its first command: who it is, and how it wants to be served.

use alloc::collections::VecDeque;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use crate::command::append_command;

/// A connection's user, database and manner.
#[derive(Clone, Default)]
pub struct Login {
    /// A user of the server's access control list; without one `default`.
    pub user: Option<String>,
    /// Without one the connection does not log in.
    pub password: Option<String>,
    /// What `CLIENT LIST` calls the connection; empty for no name.
    pub name: String,
    /// The number of the database.
    pub database: u32,
    /// Which keys the server tells changes of.
    pub tracking: Tracking,
    /// Whether commands follow that subscribe, whose only replies are errors.
    pub subscribes: bool,
    /// Name and version of the library, for `CLIENT LIST` of servers that know of it.
    pub library: (&'static str, &'static str),
}

/// Which keys the server tells changes of (`CLIENT TRACKING`).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Tracking {
    /// None.
    #[default]
    Off,
    /// Those that this connection has read.
    Read,
    /// All that begin with one of these.
    Prefixes(Vec<Vec<u8>>),
}

impl fmt::Debug for Login {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Login")
            .field("user", &self.user)
            .field("database", &self.database)
            .finish_non_exhaustive()
    }
}

/// A command of the login whose reply is still to come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    Hello,
    /// An error is none: older servers do not know it.
    Optional,
    Required,
}

impl Login {
    /// Appends all commands of the login, and returns what their replies are to be taken for.
    pub(crate) fn write(&self, output: &mut Vec<u8>) -> VecDeque<Step> {
        let mut steps = VecDeque::new();
        let mut say = |words: &[&[u8]], step| {
            append_command(output, words);
            steps.push_back(step);
        };
        let mut hello: Vec<&[u8]> = alloc::vec![b"HELLO", b"3"];
        if let Some(password) = &self.password {
            let user = self.user.as_deref().unwrap_or("default");
            hello.extend([b"AUTH".as_slice(), user.as_bytes(), password.as_bytes()]);
        }
        if !self.name.is_empty() {
            hello.extend([b"SETNAME".as_slice(), self.name.as_bytes()]);
        }
        say(&hello, Step::Hello);
        for (attribute, value) in [("LIB-NAME", self.library.0), ("LIB-VER", self.library.1)] {
            let words: [&[u8]; 4] = [
                b"CLIENT",
                b"SETINFO",
                attribute.as_bytes(),
                value.as_bytes(),
            ];
            say(&words, Step::Optional);
        }
        if self.database != 0 {
            let mut number = itoa::Buffer::new();
            let number = number.format(self.database).as_bytes();
            say(&[b"SELECT", number], Step::Required);
        }
        match &self.tracking {
            Tracking::Off => {}
            Tracking::Read => say(&[b"CLIENT", b"TRACKING", b"ON"], Step::Required),
            Tracking::Prefixes(prefixes) => {
                let mut words: Vec<&[u8]> = alloc::vec![b"CLIENT", b"TRACKING", b"ON", b"BCAST"];
                for prefix in prefixes {
                    words.extend([b"PREFIX".as_slice(), prefix]);
                }
                say(&words, Step::Required);
            }
        }
        steps
    }
}
