//! A connection to another server, plain or under TLS.
//!
//! One goroutine may read while another one writes. Nothing is locked while one of them waits.

use std::mem::MaybeUninit;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use citius_goroutine::on_thread_stack;
use citius_reactor::{Errno, OutgoingSocket};
use citius_tls::ClientSession;

use super::blocking;
use super::driver::{Driver, Signals};
use super::error::{NetError, Reason, Result};
use super::tls::{self, TlsRules};
use crate::lock::lock;
use crate::thread;
use crate::wait::Until;

/// Where to connect to.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Target {
    pub(crate) host: String,
    pub(crate) port: u16,
    pub(crate) tls: Option<TlsRules>,
}

/// A connection.
pub struct Stream {
    driver: Arc<Driver>,
    socket: OutgoingSocket,
    number: u64,
    signals: Arc<Signals>,
    tls: Option<Mutex<Tls>>,
    is_reading: AtomicBool,
    is_writing: AtomicBool,
    /// The process it was made in.
    generation: u32,
}

struct Tls {
    session: ClientSession,
    /// Plaintext that was not read yet.
    plaintext: Vec<u8>,
    read: usize,
    /// Ciphertext that was not sent yet.
    unsent: Vec<u8>,
}

/// Bytes that are read at once.
const READ_BYTES: usize = 16 * 1024;
/// Plaintext that is sealed at once, so that a long message is not in memory twice.
const SEAL_BYTES: usize = 64 * 1024;
/// Stack that reading and writing need, besides that of a wait.
const STACK_BYTES: usize = 8 * 1024;

impl Stream {
    /// Connects, to the first address of the host that takes the connection.
    pub(crate) fn connect(target: &Target, until: Until) -> Result<Self> {
        citius_goroutine::require_stack(STACK_BYTES);
        let mut failure = None;
        for address in addresses(&target.host, target.port, until)? {
            match Self::connect_to(address, target, until) {
                Ok(stream) => return Ok(stream),
                // There is no time for another address.
                Err(error) if error.code != crate::codes::UNREACHABLE => return Err(error),
                Err(error) => failure = Some(error),
            }
        }
        Err(failure.unwrap_or_else(|| no_address(&target.host)))
    }

    fn connect_to(address: SocketAddr, target: &Target, until: Until) -> Result<Self> {
        let what = || format!("connecting to {} port {}", target.host, target.port);
        let socket = OutgoingSocket::connect(address);
        let socket = socket.map_err(|error| NetError::system(error, &what()))?;
        let driver = Driver::here()?;
        let (number, signals) = driver.add(&socket)?;
        let mut stream = Self {
            driver,
            socket,
            number,
            signals,
            tls: None,
            is_reading: AtomicBool::new(false),
            is_writing: AtomicBool::new(false),
            generation: thread::generation(),
        };
        stream.signals.wait_writable(until, &what())?;
        let connected = stream.socket.connected();
        connected.map_err(|error| NetError::system(error, &what()))?;
        if let Some(rules) = &target.tls {
            let client = tls::client(rules, until)?;
            let name = rules.server_name.as_deref().unwrap_or(&target.host);
            let session = on_thread_stack(|| client.session(name));
            let session = session.map_err(|reason| NetError::new(Reason::Tls, reason))?;
            stream.tls = Some(Mutex::new(Tls {
                session,
                plaintext: Vec::new(),
                read: 0,
                unsent: Vec::new(),
            }));
            stream.shake_hands(&what(), until)?;
        }
        Ok(stream)
    }

    fn shake_hands(&self, what: &str, until: Until) -> Result<()> {
        let Some(tls) = &self.tls else { return Ok(()) };
        loop {
            lock(tls).seal(&[]);
            self.flush_sealed(tls, until)?;
            if !lock(tls).session.is_handshaking() {
                return Ok(());
            }
            if self.receive_sealed(tls, until)? == 0 {
                return Err(NetError::new(
                    Reason::Tls,
                    format!("{what}: the server has ended the connection in the TLS handshake"),
                ));
            }
        }
    }

    /// Reads what there is to the end of `bytes`, as far as it has room, waiting for the first byte. 0: the server sends no more.
    pub(crate) fn append(&self, bytes: &mut Vec<u8>, until: Until) -> Result<usize> {
        append(bytes, |room| self.read(room, until))
    }

    /// Reads to memory that need not hold values; the result says how many bytes of it do then, from the first on.
    pub(crate) fn read(&self, buffer: &mut [MaybeUninit<u8>], until: Until) -> Result<usize> {
        citius_goroutine::require_stack(STACK_BYTES);
        let _reading = self.alone(&self.is_reading, "read from")?;
        if buffer.is_empty() {
            return Ok(0);
        }
        let Some(tls) = &self.tls else {
            return self.receive(buffer, until);
        };
        loop {
            let read = lock(tls).take_plaintext(buffer);
            if read > 0 {
                return Ok(read);
            }
            if self.receive_sealed(tls, until)? == 0 {
                return Ok(0);
            }
        }
    }

    /// Writes all of `bytes`.
    pub(crate) fn write(&self, bytes: &[u8], until: Until) -> Result<()> {
        citius_goroutine::require_stack(STACK_BYTES);
        let _writing = self.alone(&self.is_writing, "write to")?;
        let Some(tls) = &self.tls else {
            let mut sent = 0;
            while sent < bytes.len() {
                sent += self.send(&bytes[sent..], until)?;
            }
            return Ok(());
        };
        for piece in bytes.chunks(SEAL_BYTES) {
            lock(tls).seal(piece);
            self.flush_sealed(tls, until)?;
        }
        Ok(())
    }

    /// Whether it can take another request: the server has neither ended it nor sent anything.
    pub(crate) fn is_quiet(&self) -> bool {
        let has_plaintext = self
            .tls
            .as_ref()
            .is_some_and(|tls| lock(tls).has_plaintext());
        self.generation == thread::generation() && !has_plaintext && self.socket.is_quiet()
    }

    fn alone<'a>(&self, flag: &'a AtomicBool, what: &str) -> Result<Alone<'a>> {
        if self.generation != thread::generation() {
            return Err(NetError::misuse(
                "the connection was made before the fork, in the parent process",
            ));
        }
        if flag.swap(true, Ordering::AcqRel) {
            return Err(NetError::misuse(format!(
                "two goroutines {what} one connection at a time"
            )));
        }
        Ok(Alone(flag))
    }

    fn receive(&self, buffer: &mut [MaybeUninit<u8>], until: Until) -> Result<usize> {
        loop {
            match self.socket.read(buffer) {
                Ok(read) => return Ok(read),
                Err(Errno::AGAIN) => self.signals.wait_readable(until, "reading")?,
                Err(error) => return Err(NetError::system(error, "reading")),
            }
        }
    }

    fn send(&self, bytes: &[u8], until: Until) -> Result<usize> {
        loop {
            match self.socket.write(bytes) {
                Ok(sent) => return Ok(sent),
                Err(Errno::AGAIN) => self.signals.wait_writable(until, "writing")?,
                Err(error) => return Err(NetError::system(error, "writing")),
            }
        }
    }

    /// Receives ciphertext. 0: nothing more comes.
    fn receive_sealed(&self, tls: &Mutex<Tls>, until: Until) -> Result<usize> {
        let mut ciphertext = Vec::with_capacity(READ_BYTES);
        let read = append(&mut ciphertext, |room| self.receive(room, until))?;
        let opened = lock(tls).open(&ciphertext);
        // An alert or a key update, sent as far as there is room; the next write sends the rest.
        self.try_send_sealed(tls);
        opened.map(|()| read)
    }

    fn try_send_sealed(&self, tls: &Mutex<Tls>) {
        let mut tls = lock(tls);
        if let Ok(sent) = self.socket.write(&tls.unsent) {
            tls.unsent.drain(..sent);
        }
    }

    fn flush_sealed(&self, tls: &Mutex<Tls>, until: Until) -> Result<()> {
        loop {
            let outcome = {
                let mut tls = lock(tls);
                if tls.unsent.is_empty() {
                    return Ok(());
                }
                let outcome = self.socket.write(&tls.unsent);
                if let Ok(sent) = outcome {
                    tls.unsent.drain(..sent);
                }
                outcome
            };
            match outcome {
                Ok(_) => {}
                Err(Errno::AGAIN) => self.signals.wait_writable(until, "writing")?,
                Err(error) => return Err(NetError::system(error, "writing")),
            }
        }
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        if self.generation != thread::generation() {
            // The set is the parent's, and so is what is to be told to the server.
            return;
        }
        self.driver.remove(&self.socket, self.number);
    }
}

/// The flag of a direction that is in use.
struct Alone<'a>(&'a AtomicBool);

impl Drop for Alone<'_> {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Release);
    }
}

impl Tls {
    fn has_plaintext(&self) -> bool {
        self.read < self.plaintext.len()
    }

    fn take_plaintext(&mut self, buffer: &mut [MaybeUninit<u8>]) -> usize {
        let left = &self.plaintext[self.read..];
        let count = left.len().min(buffer.len());
        for (place, byte) in buffer.iter_mut().zip(left) {
            place.write(*byte);
        }
        self.read += count;
        if self.read == self.plaintext.len() {
            self.plaintext.clear();
            self.read = 0;
        }
        count
    }

    /// The cryptography needs more stack than goroutines have.
    fn open(&mut self, ciphertext: &[u8]) -> Result<()> {
        let Self {
            session,
            plaintext,
            unsent,
            ..
        } = self;
        let opened = on_thread_stack(|| {
            let opened = session.receive(ciphertext, plaintext);
            session.transmit(unsent);
            opened
        });
        opened.map_err(|reason| NetError::new(Reason::Tls, reason))
    }

    fn seal(&mut self, plaintext: &[u8]) {
        let Self {
            session, unsent, ..
        } = self;
        on_thread_stack(|| {
            session.send(plaintext);
            session.transmit(unsent);
        });
    }
}

/// Has `read` write to the room behind the end of `bytes`, which grows by what it has written.
fn append(
    bytes: &mut Vec<u8>,
    read: impl FnOnce(&mut [MaybeUninit<u8>]) -> Result<usize>,
) -> Result<usize> {
    let read = read(bytes.spare_capacity_mut())?;
    // SAFETY: it is a function of this file that says how many bytes it has written there.
    unsafe { bytes.set_len(bytes.len() + read) };
    Ok(read)
}

fn no_address(host: &str) -> NetError {
    NetError::new(Reason::Name, format!("the host {host:?} has no address"))
}

/// The addresses of a host. A name is looked up by another thread: the system has no other way than to block.
fn addresses(host: &str, port: u16, until: Until) -> Result<Vec<SocketAddr>> {
    if let Ok(address) = host.parse::<IpAddr>() {
        return Ok(vec![SocketAddr::new(address, port)]);
    }
    let name = host.to_owned();
    let what = format!("looking {host:?} up");
    let found = blocking::run(&what, until, move || {
        let addresses = (name.as_str(), port).to_socket_addrs();
        addresses.map(Iterator::collect::<Vec<_>>)
    })?;
    match found {
        Ok(addresses) if addresses.is_empty() => Err(no_address(host)),
        Ok(addresses) => Ok(addresses),
        Err(error) => Err(NetError::new(
            Reason::Name,
            format!("the host {host:?} has no address: {error}"),
        )),
    }
}
