//! A connection to another server, plain or under TLS.
//!
//! One goroutine may read while another one writes. Nothing is locked while one of them waits.

use std::mem::MaybeUninit;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use citius_goroutine::on_thread_stack;
use citius_reactor::{Errno, OutgoingSocket};
use citius_tls::ClientSession;

use super::blocking;
use super::driver::{Driver, Signals};
use super::error::{NetError, Reason, Result};
use super::tls::{self, TlsRules};
use crate::codes;
use crate::lock::lock;
use crate::thread;
use crate::wait::{self, Until};

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
    /// A handshake or a message has not left in full.
    is_midway: AtomicBool,
    /// Bytes that were moved since others were let run.
    moved: AtomicUsize,
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
/// Bytes that are moved before others run: half a millisecond of copying.
pub(crate) const SHARE_BYTES: usize = 1024 * 1024;
/// Stack that reading and writing need, besides that of a wait.
const STACK_BYTES: usize = 8 * 1024;

impl Stream {
    /// Connects, to the first address of the host that takes the connection.
    pub(crate) fn connect(target: &Target, until: Until) -> Result<Self> {
        citius_goroutine::require_stack(STACK_BYTES);
        let addresses = addresses(&target.host, target.port, until)?;
        Self::connect_first(&addresses, target, until)
    }

    /// Connects to the first of these addresses that takes the connection. One that says nothing leaves time for the next.
    pub(super) fn connect_first(
        addresses: &[SocketAddr],
        target: &Target,
        until: Until,
    ) -> Result<Self> {
        let mut failure = None;
        let mut left = u32::try_from(addresses.len()).unwrap_or(u32::MAX);
        for address in addresses {
            let share = until.share(left);
            left = left.saturating_sub(1);
            match Self::connect_to(*address, target, share, until) {
                Ok(stream) => return Ok(stream),
                Err(error) if error.code == codes::UNREACHABLE => failure = Some(error),
                // Its share is over, and not the time.
                Err(error) if error.code == codes::TIMEOUT && !until.is_over() => {
                    failure = Some(error);
                }
                Err(error) => return Err(error),
            }
        }
        Err(failure.unwrap_or_else(|| no_address(&target.host)))
    }

    /// Connects to one address, by `share`, and secures the connection, by `until`.
    fn connect_to(
        address: SocketAddr,
        target: &Target,
        share: Until,
        until: Until,
    ) -> Result<Self> {
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
            is_midway: AtomicBool::new(true),
            moved: AtomicUsize::new(0),
            generation: thread::generation(),
        };
        stream.signals.wait_writable(share, &what())?;
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
        stream.set_midway(false);
        Ok(stream)
    }

    fn shake_hands(&self, what: &str, until: Until) -> Result<()> {
        let Some(tls) = &self.tls else { return Ok(()) };
        loop {
            lock(tls).seal(&[]);
            self.flush(&[], until)?;
            if !lock(tls).session.is_handshaking() {
                return Ok(());
            }
            match self.receive_sealed(tls)? {
                Some(0) => {
                    return Err(NetError::new(
                        Reason::Tls,
                        format!("{what}: the server has ended the connection in the TLS handshake"),
                    ));
                }
                Some(_) => {}
                None => self.signals.wait_readable(until, "reading")?,
            }
        }
    }

    /// Reads what there is to the end of `bytes`, as far as it has room, waiting for the first byte. 0: the server sends no more.
    pub(crate) fn append(&self, bytes: &mut Vec<u8>, until: Until) -> Result<usize> {
        let read = append(bytes, |room| self.read(room, until).map(Some))?;
        Ok(read.unwrap_or(0))
    }

    /// [`append`](Self::append) without waiting for a byte; `None`: there is nothing to read yet.
    pub(crate) fn append_now(&self, bytes: &mut Vec<u8>, until: Until) -> Result<Option<usize>> {
        self.give_way(until)?;
        let read = append(bytes, |room| self.read_now(room))?;
        self.note_moved(read.unwrap_or(0));
        Ok(read)
    }

    /// Reads to memory that need not hold values; the result says how many bytes of it do then, from the first on.
    pub(crate) fn read(&self, buffer: &mut [MaybeUninit<u8>], until: Until) -> Result<usize> {
        citius_goroutine::require_stack(STACK_BYTES);
        let _reading = self.alone(&self.is_reading, "read from")?;
        if buffer.is_empty() {
            return Ok(0);
        }
        self.give_way(until)?;
        loop {
            if let Some(read) = self.read_now(buffer)? {
                self.note_moved(read);
                return Ok(read);
            }
            self.signals.wait_readable(until, "reading")?;
        }
    }

    fn read_now(&self, buffer: &mut [MaybeUninit<u8>]) -> Result<Option<usize>> {
        let Some(tls) = &self.tls else {
            return self.receive(buffer);
        };
        loop {
            {
                let mut tls = lock(tls);
                let read = tls.take_plaintext(buffer);
                if read > 0 || tls.session.is_ended() {
                    return Ok(Some(read));
                }
            }
            match self.receive_sealed(tls)? {
                Some(0) => {
                    return Err(NetError::new(
                        Reason::Ended,
                        "the connection was cut: TLS has not announced its end",
                    ));
                }
                Some(_) => {}
                None => return Ok(None),
            }
        }
    }

    /// Writes all of `bytes`.
    pub(crate) fn write(&self, bytes: &[u8], until: Until) -> Result<()> {
        citius_goroutine::require_stack(STACK_BYTES);
        let _writing = self.alone(&self.is_writing, "write to")?;
        self.set_midway(true);
        for piece in bytes.chunks(SHARE_BYTES) {
            self.give_way(until)?;
            self.flush(piece, until)?;
            self.note_moved(piece.len());
        }
        self.set_midway(false);
        Ok(())
    }

    fn flush(&self, mut bytes: &[u8], until: Until) -> Result<()> {
        while !self.push(&mut bytes)? {
            self.signals.wait_writable(until, "writing")?;
        }
        Ok(())
    }

    /// Writes as much as there is room for, and takes it off the front of `bytes`. `true`: all of it has left.
    pub(crate) fn push(&self, bytes: &mut &[u8]) -> Result<bool> {
        let Some(tls) = &self.tls else {
            return self.send(bytes);
        };
        let mut tls = lock(tls);
        loop {
            let unsent = &mut tls.unsent;
            let mut left = unsent.as_slice();
            let outcome = self.send(&mut left);
            let sent = unsent.len() - left.len();
            unsent.drain(..sent);
            if !outcome? || bytes.is_empty() {
                return Ok(tls.unsent.is_empty());
            }
            let (piece, rest) = bytes.split_at(bytes.len().min(SEAL_BYTES));
            tls.seal(piece);
            *bytes = rest;
        }
    }

    /// Says whether what is written now is a part of a message. Where one is cut, TLS announces no end.
    pub(crate) fn set_midway(&self, is_midway: bool) {
        self.is_midway.store(is_midway, Ordering::Relaxed);
    }

    pub(crate) fn note_moved(&self, bytes: usize) {
        self.moved.fetch_add(bytes, Ordering::Relaxed);
    }

    /// A peer that is fast enough makes no one wait: after a share of its bytes others run, and the deadline counts.
    pub(crate) fn give_way(&self, until: Until) -> Result<()> {
        if self.moved.load(Ordering::Relaxed) < SHARE_BYTES {
            return Ok(());
        }
        self.moved.store(0, Ordering::Relaxed);
        wait::give_way(until).map_err(|code| NetError::waiting(code, "reading and writing"))
    }

    /// Waits until something can be read or written, perhaps without a reason.
    pub(crate) fn wait(&self, until: Until) -> Result<()> {
        self.signals.wait_either(until, "reading and writing")
    }

    /// Whether it can take another request: the server has neither ended it nor sent anything.
    pub(crate) fn is_quiet(&self) -> bool {
        let is_quiet_within = self.tls.as_ref().is_none_or(|tls| {
            let tls = lock(tls);
            !tls.has_plaintext() && !tls.session.is_ended()
        });
        self.generation == thread::generation() && is_quiet_within && self.socket.is_quiet()
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

    fn receive(&self, buffer: &mut [MaybeUninit<u8>]) -> Result<Option<usize>> {
        match self.socket.read(buffer) {
            Ok(read) => Ok(Some(read)),
            Err(Errno::AGAIN) => Ok(None),
            Err(error) => Err(NetError::system(error, "reading")),
        }
    }

    /// Sends as much as there is room for; `true`: all of it.
    fn send(&self, bytes: &mut &[u8]) -> Result<bool> {
        while !bytes.is_empty() {
            match self.socket.write(bytes) {
                Ok(sent) => *bytes = &bytes[sent..],
                Err(Errno::AGAIN) => return Ok(false),
                Err(error) => return Err(NetError::system(error, "writing")),
            }
        }
        Ok(true)
    }

    /// Receives ciphertext. 0: nothing more comes.
    fn receive_sealed(&self, tls: &Mutex<Tls>) -> Result<Option<usize>> {
        let mut ciphertext = Vec::with_capacity(READ_BYTES);
        let read = append(&mut ciphertext, |room| self.receive(room))?;
        let mut tls = lock(tls);
        let opened = tls.open(&ciphertext);
        // An alert or a key update, sent as far as there is room; the next write sends the rest.
        self.try_send_sealed(&mut tls);
        opened.map(|()| read)
    }

    fn try_send_sealed(&self, tls: &mut Tls) {
        if let Ok(sent) = self.socket.write(&tls.unsent) {
            tls.unsent.drain(..sent);
        }
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        if self.generation != thread::generation() {
            // The set is the parent's, and so is what is to be told to the server.
            return;
        }
        if let Some(tls) = &self.tls
            && !self.is_midway.load(Ordering::Relaxed)
        {
            let mut tls = lock(tls);
            tls.end();
            self.try_send_sealed(&mut tls);
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

    /// Says that nothing more will come.
    fn end(&mut self) {
        let Self {
            session, unsent, ..
        } = self;
        on_thread_stack(|| {
            session.end();
            session.transmit(unsent);
        });
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
    read: impl FnOnce(&mut [MaybeUninit<u8>]) -> Result<Option<usize>>,
) -> Result<Option<usize>> {
    let read = read(bytes.spare_capacity_mut())?;
    // SAFETY: it is a function of this file that says how many bytes it has written there.
    unsafe { bytes.set_len(bytes.len() + read.unwrap_or(0)) };
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
