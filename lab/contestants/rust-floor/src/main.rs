//! The floor: what a request costs when the server does next to nothing for it.
//!
//! Turns every blank line in the read buffer into one prebuilt answer, chosen by a prefix of the
//! request target, and writes all answers of one read with one write. It does not validate, does
//! not read bodies and keeps no routes, so no honest server can be cheaper: its figure is the
//! kernel's and the loopback's share, and the ceiling the load generator is calibrated against.
//!
//! Invariants: one thread, one epoll set, one listener per worker; a connection with unwritten
//! bytes is not read from, so output per connection is bounded by one read's worth of answers.
//! Answers exist for `/` and `/transfer-data`; everything else is 404.
#![forbid(unsafe_code)]

use std::fmt::Write as _;
use std::os::fd::OwnedFd;
use std::process::ExitCode;
use std::{env, io, thread};

use memchr::memmem::{self, Finder};
use rustix::buffer::spare_capacity;
use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};
use rustix::io::{Errno, read, write};
use rustix::net::{
    AddressFamily, SocketFlags, SocketType, accept_with, bind, listen, socket_with, sockopt,
};

fn main() -> ExitCode {
    let (port, workers) = match arguments() {
        Ok(pair) => pair,
        Err(message) => {
            eprintln!("rust-floor: {message}");
            return ExitCode::from(2);
        }
    };
    let threads: Vec<_> = (0..workers)
        .map(|_| thread::spawn(move || Floor::open(port).and_then(Floor::serve)))
        .collect();
    for thread in threads {
        if let Err(error) = thread.join().expect("a panic aborts the process") {
            eprintln!("rust-floor: 127.0.0.1:{port}: {error}");
            return ExitCode::FAILURE;
        }
    }
    ExitCode::SUCCESS
}

fn arguments() -> Result<(u16, usize), String> {
    let (mut port, mut workers) = (8000, 1);
    let mut words = env::args().skip(1);
    while let Some(word) = words.next() {
        let value = words.next().unwrap_or_default();
        let fault = || format!("{word} expects a number, got {value:?}");
        match word.as_str() {
            "--port" => port = value.parse().map_err(|_| fault())?,
            "--workers" => workers = value.parse().map_err(|_| fault())?,
            _ => {
                return Err(format!(
                    "unknown option {word}; there are --port and --workers"
                ));
            }
        }
    }
    Ok((port, workers.max(1)))
}

/// One worker: an epoll set, its listener and the connections accepted from it.
struct Floor {
    epoll: OwnedFd,
    listener: OwnedFd,
    connections: Vec<Option<Connection>>,
    vacant: Vec<usize>,
    answers: Answers,
    blank_line: Finder<'static>,
    input: Vec<u8>,
    output: Vec<u8>,
}

struct Connection {
    socket: OwnedFd,
    /// The head begun by an earlier read; empty unless a request was cut.
    head_begun: Vec<u8>,
    /// Bytes the socket did not take; while there are any, nothing is read.
    unwritten: Vec<u8>,
    /// Whether the epoll set watches for room to write instead of bytes to read.
    blocked: bool,
    /// Set when the peer asked for `Connection: close`; acted on once all is written.
    closing: bool,
}

impl Floor {
    fn open(port: u16) -> io::Result<Self> {
        let listener = socket_with(
            AddressFamily::INET,
            SocketType::STREAM,
            SocketFlags::NONBLOCK | SocketFlags::CLOEXEC,
            None,
        )?;
        sockopt::set_socket_reuseaddr(&listener, true)?;
        sockopt::set_socket_reuseport(&listener, true)?;
        bind(
            &listener,
            &std::net::SocketAddr::from(([127, 0, 0, 1], port)),
        )?;
        listen(&listener, BACKLOG)?;
        let epoll = epoll::create(CreateFlags::CLOEXEC)?;
        epoll::add(
            &epoll,
            &listener,
            EventData::new_u64(LISTENER),
            EventFlags::IN,
        )?;
        Ok(Self {
            epoll,
            listener,
            connections: Vec::new(),
            vacant: Vec::new(),
            answers: Answers::new(),
            blank_line: Finder::new(b"\r\n\r\n"),
            input: vec![0; READ_BYTES],
            output: Vec::with_capacity(READ_BYTES),
        })
    }

    fn serve(mut self) -> io::Result<()> {
        let mut events = Vec::with_capacity(EVENTS_PER_WAIT);
        loop {
            match epoll::wait(&self.epoll, spare_capacity(&mut events), None) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
            for event in events.drain(..) {
                match event.data.u64() {
                    LISTENER => self.accept(),
                    token => self.turn(usize::try_from(token).expect("an index into a Vec")),
                }
            }
        }
    }

    /// Accepts all that queue; an error of one peer does not affect the others.
    fn accept(&mut self) {
        while let Ok(socket) =
            accept_with(&self.listener, SocketFlags::NONBLOCK | SocketFlags::CLOEXEC)
        {
            let _ = sockopt::set_tcp_nodelay(&socket, true);
            let index = self.vacant.pop().unwrap_or_else(|| {
                self.connections.push(None);
                self.connections.len() - 1
            });
            let data = EventData::new_u64(index as u64);
            if epoll::add(&self.epoll, &socket, data, EventFlags::IN).is_ok() {
                self.connections[index] = Some(Connection {
                    socket,
                    head_begun: Vec::new(),
                    unwritten: Vec::new(),
                    blocked: false,
                    closing: false,
                });
            } else {
                self.vacant.push(index);
            }
        }
    }

    fn turn(&mut self, index: usize) {
        let Some(connection) = self.connections[index].as_mut() else {
            return;
        };
        let open = if connection.unwritten.is_empty() {
            match read(&connection.socket, self.input.as_mut_slice()) {
                Ok(0) => false,
                Ok(n_read) => {
                    self.output.clear();
                    connection.answer(
                        &self.input[..n_read],
                        &self.answers,
                        &self.blank_line,
                        &mut self.output,
                    ) && connection.write_out(&self.output, &self.epoll, index)
                }
                Err(Errno::AGAIN | Errno::INTR) => true,
                Err(_) => false,
            }
        } else {
            let unwritten = std::mem::take(&mut connection.unwritten);
            connection.write_out(&unwritten, &self.epoll, index)
        };
        if !open {
            // Dropping the socket closes it, and closing takes it out of the epoll set.
            self.connections[index] = None;
            self.vacant.push(index);
        }
    }
}

impl Connection {
    /// Appends one answer per complete head in `input`; false when a head outgrows `HEAD_BYTES`.
    fn answer(
        &mut self,
        input: &[u8],
        answers: &Answers,
        blank_line: &Finder<'_>,
        output: &mut Vec<u8>,
    ) -> bool {
        let joined;
        let bytes = if self.head_begun.is_empty() {
            input
        } else {
            self.head_begun.extend_from_slice(input);
            joined = std::mem::take(&mut self.head_begun);
            &joined
        };
        let mut start = 0;
        while let Some(length) = blank_line.find(&bytes[start..]) {
            let head = &bytes[start..start + length];
            output.extend_from_slice(answers.choose(head));
            start += length + 4;
        }
        self.closing |= memmem::find(&bytes[..start], b"Connection: close\r\n").is_some();
        self.head_begun.extend_from_slice(&bytes[start..]);
        self.head_begun.len() <= HEAD_BYTES
    }

    /// Writes `bytes`, keeping what the socket refuses; false when the connection is over.
    fn write_out(&mut self, bytes: &[u8], epoll: &OwnedFd, index: usize) -> bool {
        if bytes.is_empty() {
            return true;
        }
        let n_written = match write(&self.socket, bytes) {
            Ok(n_written) => n_written,
            Err(Errno::AGAIN | Errno::INTR) => 0,
            Err(_) => return false,
        };
        self.unwritten = bytes[n_written..].to_vec();
        let blocked = !self.unwritten.is_empty();
        if blocked != self.blocked {
            self.blocked = blocked;
            let wanted = if blocked {
                EventFlags::OUT
            } else {
                EventFlags::IN
            };
            let data = EventData::new_u64(index as u64);
            if epoll::modify(epoll, &self.socket, data, wanted).is_err() {
                return false;
            }
        }
        blocked || !self.closing
    }
}

/// The prebuilt answers, head and body in one piece.
struct Answers {
    hello: Vec<u8>,
    transfer_data: Vec<u8>,
    not_found: Vec<u8>,
}

impl Answers {
    fn new() -> Self {
        let plain = "text/plain; charset=utf-8";
        Self {
            hello: answer("200 OK", plain, "Welcome!\n"),
            transfer_data: answer("200 OK", "application/json", &records()),
            not_found: answer(
                "404 Not Found",
                plain,
                "the floor answers / and /transfer-data\n",
            ),
        }
    }

    fn choose(&self, head: &[u8]) -> &[u8] {
        if head.starts_with(b"GET / ") {
            &self.hello
        } else if head.starts_with(b"GET /transfer-data ") {
            &self.transfer_data
        } else {
            &self.not_found
        }
    }
}

fn answer(status: &str, content_type: &str, body: &str) -> Vec<u8> {
    format!(
        "HTTP/1.1 {status}\r\nContent-Type: {content_type}\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    )
    .into_bytes()
}

/// The JSON array of the 1000 records, compact separators.
fn records() -> String {
    let mut text = String::from("[");
    for id in 0..1000 {
        let comma = if id == 0 { "" } else { "," };
        let created_at = 1_569_882_498.911_789_7 + f64::from(id) * 0.000_003_1;
        write!(
            text,
            "{comma}{{\"id\":{id},\"name\":\"My name\",\
             \"description\":\"Some words on here so it looks full\",\
             \"type\":\"U\",\"count\":33,\"created_at\":{created_at}}}"
        )
        .expect("writing to a String does not fail");
    }
    text + "]"
}

/// Epoll token of the listener; connection indices never reach it.
const LISTENER: u64 = u64::MAX;
/// Connections the kernel queues before accept: more than any scenario opens at once.
const BACKLOG: i32 = 8192;
/// One read: room for several hundred pipelined requests.
const READ_BYTES: usize = 64 * 1024;
/// A head longer than this closes the connection.
const HEAD_BYTES: usize = 32 * 1024;
const EVENTS_PER_WAIT: usize = 1024;
