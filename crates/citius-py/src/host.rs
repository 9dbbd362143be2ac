//! The reactor as a loop sees it: a descriptor to wait for and a turn to call.
//!
//! The reactor is behind a lock that is only ever *tried*: while a turn runs, whatever else is asked of
//! the reactor, by a handler, a signal handler or another thread, is noted and done when the turn ends.

use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, TryLockError};

use citius_http::coding::Coding;
use citius_http::{Fields, Limits};
use citius_reactor::{
    CompressionLevels, CompressionPolicy, ConnectionId, ForwardedNames, ListenerProtocol, Mailbox,
    Network, Options, Protocols, Proxies, exact_us,
};
use citius_static::{Mount, MountOptions, Mounts};
use pyo3::exceptions::{PyOSError, PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};

use crate::fork::end_child;
use crate::gateway::{Gateway, Turn};
use crate::go::place::Serving;
use crate::link::{Callbacks, Flag, LEVEL_ERROR, Link, call_back, lock};
use crate::support::{clear_exception, guarded};
use crate::task::Tasks;

/// One thread's epoll set, its connections and its gateway.
#[pyclass(frozen, module = "citius._core", weakref)]
pub(crate) struct Reactor {
    core: Mutex<Core>,
    commands: Mutex<Vec<Command>>,
    link: Arc<Link>,
    mailbox: Arc<Mailbox>,
    event_loop: Option<Py<PyAny>>,
    descriptor: RawFd,
    stopped: Flag,
    on_drained: Mutex<Option<Py<PyAny>>>,
    connections: AtomicUsize,
    requests_open: AtomicUsize,
    requests_total: AtomicU64,
}

/// What a turn borrows as a whole.
struct Core {
    reactor: citius_reactor::Reactor,
    tasks: Tasks,
    gateway: Gateway,
    mounts: Mounts,
}

/// How long `run` may overlook a signal that comes at the wrong moment.
const POLL_TIMEOUT: citius_reactor::Timespec = citius_reactor::Timespec {
    tv_sec: 1,
    tv_nsec: 0,
};

/// How often `run` shows that it is alive; the poll's timeout is as long.
const HEARTBEAT_INTERVAL_US: u64 = 1_000_000;

/// What is done when the turn ends.
enum Command {
    Drain,
    Close,
}

/// Names and defaults of all limits.
pub(crate) fn limit_defaults(py: Python<'_>) -> PyResult<Bound<'_, PyDict>> {
    let (defaults, values) = (PyDict::new(py), Limits::default());
    for name in Limits::NAMES {
        defaults.set_item(name, values.value_of(name))?;
    }
    Ok(defaults)
}

fn limits_from(overrides: Option<&Bound<'_, PyAny>>) -> PyResult<Limits> {
    let mut limits = Limits::default();
    let Some(overrides) = overrides else {
        return Ok(limits);
    };
    // An operator who sets this one alone means all bodies.
    if let Ok(bytes_max) = overrides.get_item("body_bytes_max") {
        limits.body_streamed_bytes_max = bytes_max.extract()?;
    }
    for item in overrides.call_method0("items")?.try_iter()? {
        let (name, value): (String, u64) = item?.extract()?;
        limits.set(&name, value).ok_or_else(|| {
            PyValueError::new_err(if Limits::NAMES.contains(&name.as_str()) {
                format!("limit {name} is too large: {value}")
            } else {
                format!(
                    "there is no limit {name:?}; the limits are {}",
                    Limits::NAMES.join(", ")
                )
            })
        })?;
    }
    Ok(limits)
}

/// What is compressed; nothing without a coding.
fn compression_from(
    wanted: Vec<(String, Option<u8>)>,
    types: Vec<String>,
) -> PyResult<Option<CompressionPolicy>> {
    if wanted.is_empty() {
        return Ok(None);
    }
    let (mut codings, mut levels) = (Vec::new(), CompressionLevels::default());
    for (name, level) in wanted {
        let coding = coding_from(&name)?;
        codings.push(coding);
        if let Some(level) = level {
            levels.set(coding, level);
        }
    }
    Ok(Some(CompressionPolicy {
        codings,
        levels,
        types,
    }))
}

/// A coding by the name that HTTP has for it.
pub(crate) fn coding_from(name: &str) -> PyResult<Coding> {
    Coding::from_token(name.as_bytes()).ok_or_else(|| {
        PyValueError::new_err(format!(
            "expected the coding br, zstd or gzip, got {name:?}"
        ))
    })
}

/// Which versions of HTTP are spoken.
fn protocols_from(http: &str, upgrade: bool) -> PyResult<Protocols> {
    let (http1, http2) = match http {
        "auto" => (true, true),
        "1" => (true, false),
        "2" => (false, true),
        _ => {
            return Err(PyValueError::new_err(format!(
                "http: expected auto, 1 or 2, got {http:?}"
            )));
        }
    };
    Ok(Protocols {
        http1,
        http2,
        upgrade,
    })
}

/// Whom to believe, and what.
fn proxies_from(trusted: Vec<String>, forwarded: Vec<String>) -> PyResult<Proxies> {
    let mut proxies = Proxies::default();
    for text in trusted {
        let network = Network::parse(&text).ok_or_else(|| {
            PyValueError::new_err(format!(
                "expected an address, a network such as 10.0.0.0/8, unix or *, got {text:?}"
            ))
        })?;
        proxies.networks.push(network);
    }
    for name in forwarded {
        if !proxies.names.add(&name.to_ascii_lowercase()) {
            return Err(PyValueError::new_err(format!(
                "{name:?} is no header of proxies; there are {}",
                ForwardedNames::ALL.join(", ")
            )));
        }
    }
    Ok(proxies)
}

/// A static mount of what has the attributes of `citius.web.static.Mount`.
fn mount_from(mount: &Bound<'_, PyAny>) -> PyResult<Mount> {
    let options = MountOptions {
        prefix: mount.getattr("prefix")?.extract()?,
        directory: mount.getattr("directory")?.extract()?,
        index: mount.getattr("index")?.extract()?,
        cache_control: mount.getattr("cache_control")?.extract()?,
        dotfiles: mount.getattr("dotfiles")?.extract()?,
        symlinks: mount.getattr("symlinks")?.extract()?,
        precompressed: mount.getattr("precompressed")?.extract()?,
        falls_through: mount.getattr("falls_through")?.extract()?,
    };
    Mount::new(options).map_err(PyValueError::new_err)
}

/// The value of the `server` field.
fn server_from(name: Option<String>) -> PyResult<Option<String>> {
    match &name {
        Some(text) if !text.bytes().all(citius_http::fields::is_value_byte) => Err(
            PyValueError::new_err("server_header has a control character"),
        ),
        _ => Ok(name),
    }
}

/// Fields of every answer; what frames a message or is about the connection is not among them.
fn standing_from(headers: Vec<(String, String)>) -> PyResult<Fields> {
    let mut fields = Fields::default();
    for (name, value) in headers {
        let before = fields.lines().len();
        fields
            .push(name.as_bytes(), value.as_bytes())
            .map_err(|fault| PyValueError::new_err(format!("{name}: {}", fault.text())))?;
        if fields.lines().len() == before {
            return Err(PyValueError::new_err(format!(
                "{name} is for the server to say, as each answer needs it"
            )));
        }
    }
    Ok(fields)
}

#[pymethods]
impl Reactor {
    #[new]
    #[pyo3(signature = (gateway, *, limits = None, server_header = Some("citius".to_owned()), date_header = true,
                        headers = Vec::new(), r#loop = None, observer = None, log = None, mounts = Vec::new(),
                        compress = Vec::new(), compress_types = Vec::new(), trusted = Vec::new(),
                        forwarded = Vec::new(), http = "auto", h2c_upgrade = true, tls = None,
                        makes_room = false))]
    #[expect(
        clippy::too_many_arguments,
        reason = "keyword arguments of a Python constructor"
    )]
    fn new(
        py: Python<'_>,
        gateway: &Bound<'_, PyAny>,
        limits: Option<&Bound<'_, PyAny>>,
        server_header: Option<String>,
        date_header: bool,
        headers: Vec<(String, String)>,
        r#loop: Option<Py<PyAny>>,
        observer: Option<&Bound<'_, crate::observe::Observer>>,
        log: Option<Py<PyAny>>,
        mounts: Vec<Py<PyAny>>,
        compress: Vec<(String, Option<u8>)>,
        compress_types: Vec<String>,
        trusted: Vec<String>,
        forwarded: Vec<String>,
        http: &str,
        h2c_upgrade: bool,
        tls: Option<&Bound<'_, crate::tls::Tls>>,
        makes_room: bool,
    ) -> PyResult<Self> {
        let mounts = mounts
            .into_iter()
            .map(|mount| mount_from(mount.bind(py)))
            .collect::<PyResult<_>>()?;
        let limits = limits_from(limits)?;
        let (gateway, callbacks) = Gateway::of(gateway, r#loop.as_ref())?;
        let observer = observer
            .map(|observer| observer.get().start(gateway.labels()))
            .transpose()?;
        let request_id_field = observer
            .as_ref()
            .and_then(|observer| observer.request_id_field().map(Box::from));
        let options = Options {
            limits: limits.clone(),
            server: server_from(server_header)?,
            date: date_header,
            default_fields: standing_from(headers)?,
            observer,
            compression: compression_from(compress, compress_types)?,
            proxies: proxies_from(trusted, forwarded)?,
            protocols: protocols_from(http, h2c_upgrade)?,
        };
        let mut reactor = citius_reactor::Reactor::new(options)
            .map_err(|error| os_error("epoll set", &error.into()))?;
        if makes_room {
            reactor.make_room();
        }
        if let Some(tls) = tls {
            reactor.secure(tls.get().take()?);
        }
        let callbacks = Callbacks { log, ..callbacks };
        let mailbox = reactor.mailbox();
        let event_loop = r#loop.as_ref().map(|event_loop| event_loop.clone_ref(py));
        let link = Link::new(
            Arc::clone(&mailbox),
            reactor.files(),
            limits,
            callbacks,
            event_loop,
            request_id_field,
        );
        let link = Arc::new(link);
        let tasks = Tasks::new(
            py,
            r#loop.as_ref().map(|event_loop| event_loop.clone_ref(py)),
        )?;
        let descriptor = reactor.descriptor().as_raw_fd();
        Ok(Self {
            core: Mutex::new(Core {
                reactor,
                tasks,
                gateway,
                mounts: Mounts::new(mounts),
            }),
            commands: Mutex::default(),
            link,
            mailbox,
            event_loop: r#loop,
            descriptor,
            stopped: Flag::default(),
            on_drained: Mutex::default(),
            connections: AtomicUsize::new(0),
            requests_open: AtomicUsize::new(0),
            requests_total: AtomicU64::new(0),
        })
    }

    #[pyo3(signature = (fd, *, rpc = false, tls = None, http = None))]
    fn listen(&self, fd: RawFd, rpc: bool, tls: Option<bool>, http: Option<&str>) -> PyResult<()> {
        let socket = duplicate(fd).map_err(|error| os_error("socket", &error))?;
        let mut core = self.try_core().ok_or_else(busy)?;
        let speaks = match (rpc, tls, http) {
            (true, Some(true), _) => ListenerProtocol::SecuredRpc,
            (true, _, _) => ListenerProtocol::Rpc,
            (false, None, None) => ListenerProtocol::Http,
            (false, tls, http) => {
                let ours = core.reactor.protocols();
                let protocols = http.map_or(Ok(ours), |http| protocols_from(http, ours.upgrade));
                ListenerProtocol::HttpAs {
                    protocols: protocols?,
                    is_secured: tls.unwrap_or_else(|| core.reactor.is_secured()),
                }
            }
        };
        let listens = core.reactor.listen(socket, speaks);
        listens.map_err(|error| os_error("listening socket", &error.into()))
    }

    fn fileno(&self) -> RawFd {
        self.descriptor
    }

    fn turn(slf: &Bound<'_, Self>) {
        let this = slf.get();
        this.settle_home(slf);
        if let Some(mut core) = this.try_core() {
            this.run_turn(slf.py(), &mut core);
        }
        this.after_turn(slf.py());
    }

    #[pyo3(signature = (on_heartbeat = None))]
    fn run(slf: &Bound<'_, Self>, on_heartbeat: Option<&Bound<'_, PyAny>>) -> PyResult<()> {
        let (py, this) = (slf.py(), slf.get());
        this.settle_home(slf);
        let mut heartbeat_at_us = 0;
        while !this.stopped.is_set() {
            if let Some(on_heartbeat) = on_heartbeat {
                let now_us = exact_us();
                if now_us - heartbeat_at_us >= HEARTBEAT_INTERVAL_US {
                    heartbeat_at_us = now_us;
                    on_heartbeat.call0()?;
                }
            }
            {
                let mut core = this.try_core().ok_or_else(busy)?;
                let reactor = &mut core.reactor;
                // EINTR: a signal came, and its handler runs in `check_signals`. One that comes just before
                // the poll is heard when it times out.
                let _ = py.detach(|| reactor.poll(Some(&POLL_TIMEOUT)));
                this.run_turn(py, &mut core);
            }
            this.after_turn(py);
            py.check_signals()?;
        }
        Ok(())
    }

    fn stop(&self) {
        self.stopped.set();
        self.mailbox.wake();
    }

    #[pyo3(signature = (on_drained = None))]
    fn drain(&self, py: Python<'_>, on_drained: Option<Py<PyAny>>) {
        if on_drained.is_some() {
            let replaced = std::mem::replace(&mut *lock(&self.on_drained), on_drained);
            drop(replaced);
        }
        self.command(py, Command::Drain);
    }

    fn close(&self, py: Python<'_>) {
        self.command(py, Command::Close);
    }

    #[getter]
    fn connections(&self) -> usize {
        self.connections.load(Ordering::Relaxed)
    }

    #[getter]
    fn requests_open(&self) -> usize {
        match self.try_core() {
            Some(core) => core.reactor.requests_open(),
            None => self.requests_open.load(Ordering::Relaxed),
        }
    }

    #[getter]
    fn routes_open(&self) -> String {
        self.try_core()
            .map_or_else(String::new, |core| core.reactor.routes_open())
    }

    #[getter]
    fn requests_total(&self) -> u64 {
        self.requests_total.load(Ordering::Relaxed)
    }

    fn memory_open(&self) -> PyResult<u64> {
        let id = self.try_core().ok_or_else(busy)?.reactor.open_memory();
        Ok(u64::from(id.generation) << 32 | u64::from(id.index))
    }

    fn memory_feed(slf: &Bound<'_, Self>, connection: u64, data: &[u8]) -> PyResult<()> {
        if data.is_empty() {
            Ok(())
        } else {
            slf.get().feed(slf, connection, data)
        }
    }

    fn memory_eof(slf: &Bound<'_, Self>, connection: u64) -> PyResult<()> {
        slf.get().feed(slf, connection, b"")
    }

    fn memory_take<'py>(
        &self,
        py: Python<'py>,
        connection: u64,
    ) -> PyResult<(Bound<'py, PyBytes>, bool)> {
        let mut core = self.try_core().ok_or_else(busy)?;
        let taken = core.reactor.take_memory(memory_id(connection));
        Ok((
            PyBytes::new(py, taken.as_deref().unwrap_or_default()),
            taken.is_none(),
        ))
    }
}

impl Reactor {
    fn try_core(&self) -> Option<std::sync::MutexGuard<'_, Core>> {
        match self.core.try_lock() {
            Ok(core) => Some(core),
            // A panic inside a turn has cost its connection; the tables are whole.
            Err(TryLockError::Poisoned(core)) => Some(core.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    /// Remembers how to call the next turn from this thread.
    fn settle_home(&self, slf: &Bound<'_, Self>) {
        self.link.settle_home(|| {
            let event_loop = self.event_loop.as_ref()?.bind(slf.py());
            let call_soon = event_loop.getattr("call_soon").ok()?.unbind();
            Some((call_soon, slf.getattr("turn").ok()?.unbind()))
        });
    }

    fn run_turn(&self, py: Python<'_>, core: &mut Core) {
        let Core {
            reactor,
            tasks,
            gateway,
            mounts,
        } = core;
        end_child(py, &self.link);
        self.link.turn.fetch_add(1, Ordering::Relaxed);
        let _serving = Serving::begin();
        let outcome = catch_unwind(AssertUnwindSafe(|| {
            let mut service = Turn {
                py,
                gateway,
                link: &self.link,
                tasks,
                mounts,
            };
            reactor.turn(&mut service);
            self.link.tell_notes(py);
            // Taken first: a guard would live as long as the loop, in which Python code runs.
            let commands = std::mem::take(&mut *lock(&self.commands));
            for command in commands {
                match command {
                    Command::Drain => reactor.drain(&mut service),
                    Command::Close => reactor.close(&mut service),
                }
            }
            service.tasks.leave(py);
        }));
        if outcome.is_err() {
            reactor.recover();
            clear_exception(py);
            let _ = guarded(py, || tasks.leave(py));
            self.link.log(
                py,
                LEVEL_ERROR,
                "a defect of the server's ended a turn early",
            );
        }
        self.connections
            .store(reactor.connections(), Ordering::Relaxed);
        self.requests_total
            .store(reactor.requests_total(), Ordering::Relaxed);
        if reactor.is_drained() {
            tasks.close(py);
        }
    }

    /// What may call into Python freely, because no turn is running.
    fn after_turn(&self, py: Python<'_>) {
        let is_drained = self
            .try_core()
            .is_some_and(|core| core.reactor.is_drained());
        if !is_drained {
            return;
        }
        self.link.leave_home();
        let callback = lock(&self.on_drained).take();
        call_back(py, callback);
    }

    /// Does something now, or at the end of the turn that is running.
    fn command(&self, py: Python<'_>, command: Command) {
        lock(&self.commands).push(command);
        let Some(mut core) = self.try_core() else {
            return self.mailbox.wake();
        };
        self.run_turn(py, &mut core);
        drop(core);
        self.after_turn(py);
    }

    fn feed(&self, slf: &Bound<'_, Self>, connection: u64, data: &[u8]) -> PyResult<()> {
        self.settle_home(slf);
        let py = slf.py();
        {
            let mut core = self.try_core().ok_or_else(busy)?;
            self.link.turn.fetch_add(1, Ordering::Relaxed);
            let Core {
                reactor,
                tasks,
                gateway,
                mounts,
            } = &mut *core;
            let mut service = Turn {
                py,
                gateway,
                link: &self.link,
                tasks,
                mounts,
            };
            reactor.feed_memory(memory_id(connection), data, &mut service);
            service.tasks.leave(py);
        }
        self.after_turn(py);
        Ok(())
    }
}

#[expect(
    clippy::cast_possible_truncation,
    reason = "the two halves of what memory_open returned"
)]
fn memory_id(connection: u64) -> ConnectionId {
    ConnectionId {
        index: connection as u32,
        generation: (connection >> 32) as u32,
    }
}

/// A descriptor of our own for what the Python number `fd` stands for.
pub(crate) fn duplicate(fd: RawFd) -> std::io::Result<OwnedFd> {
    if fd < 0 {
        return Err(std::io::Error::from_raw_os_error(EBADF));
    }
    // SAFETY: the caller says that `fd` is open; it is only borrowed for the call that duplicates it,
    // and a wrong number is refused by the kernel.
    let borrowed = unsafe { BorrowedFd::borrow_raw(fd) };
    borrowed.try_clone_to_owned()
}

/// What the kernel says of a number that is no descriptor.
const EBADF: i32 = 9;

fn busy() -> PyErr {
    PyRuntimeError::new_err("the reactor is in the middle of a turn")
}

fn os_error(what: &str, error: &std::io::Error) -> PyErr {
    match error.raw_os_error() {
        Some(number) => PyOSError::new_err((number, format!("{what}: {error}"))),
        None => PyOSError::new_err(format!("{what}: {error}")),
    }
}
