//! The reactor as an event loop sees it: a descriptor to wait for, and a turn to call. Where the loop owns the sockets there is no
//! descriptor, and `remote.rs` carries their bytes.
//!
//! The reactor is behind a lock that is only tried, never waited for (I13): what a handler, a signal handler or another thread
//! requests during a turn is done when the turn ends. Tests: `tests/server/`.

use std::net::{IpAddr, SocketAddr};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, TryLockError};
use std::time::Duration;

use citius_base::deferrals::Deferrals;
use citius_base::descriptor::{Fd, socket_of};
use citius_base::fork::end_child;
use citius_base::host_loop::HostLoop;
use citius_base::interpreter;
use citius_base::reactor_handle::{Callbacks, Observed, ReactorHandle};
use citius_base::report::LEVEL_ERROR;
use citius_base::support::{call_back, clear_exception, guarded, os_error};
use citius_base::sync::{Flag, lock};
use citius_base::task::Tasks;
use citius_base::upstream::Carrier;
use citius_base::upstreams::UpstreamCommand;
use citius_http::Origin;
use citius_http::origin::{Client, Scheme};
use citius_reactor::{
    ConnectionId, ListenerProtocol, ListenerTraits, Mailbox, Options, Peer, Service, exact_us,
};
use citius_static::Mounts;
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};

use crate::balancer::Balancer;
use crate::deferred::call_deferred;
use crate::gateway::turn::Turn;
use crate::gateway::{Dispatch, Gateway};
use crate::quic::place_of;
use crate::remote::PyHost;
use crate::request::Request;
use crate::settings::{Settings, protocols_from};

/// One thread's poller, its connections and its gateway.
#[pyclass(frozen, extends = Carrier, module = "citius._core", weakref)]
pub(crate) struct Reactor {
    core: Mutex<Core>,
    commands: Mutex<Vec<Command>>,
    handle: Arc<ReactorHandle>,
    mailbox: Arc<Mailbox>,
    /// `None`: an event loop owns the sockets.
    descriptor: Option<Fd>,
    stopped: Flag,
    /// The event loop goes on in the place of `run`.
    left: Flag,
    on_drained: Mutex<Option<Py<PyAny>>>,
    /// Called after turns that have news of connections in memory.
    on_memory: Option<Py<PyAny>>,
    connections: AtomicUsize,
    /// Counted after each turn while it drains, for other threads.
    requests_open: AtomicUsize,
    requests_total: AtomicU64,
}

/// What a turn borrows as a whole.
pub(crate) struct Core {
    reactor: citius_reactor::Reactor,
    tasks: Tasks,
    gateway: Gateway,
    mounts: Mounts,
}

impl Core {
    /// The protocol of a listening socket: RPC or HTTP, with or without TLS; `http` names the versions.
    fn protocol(
        &self,
        rpc: bool,
        tls: Option<bool>,
        http: Option<&str>,
    ) -> PyResult<ListenerProtocol> {
        Ok(match (rpc, tls, http) {
            (true, Some(true), _) => ListenerProtocol::SecuredRpc,
            (true, _, _) => ListenerProtocol::Rpc,
            (false, None, None) => ListenerProtocol::Http,
            (false, tls, http) => {
                let ours = self.reactor.protocols();
                let protocols = http.map_or(Ok(ours), |http| protocols_from(http, ours.upgrade));
                ListenerProtocol::HttpAs {
                    protocols: protocols?,
                    is_secured: tls.unwrap_or_else(|| self.reactor.is_secured()),
                }
            }
        })
    }

    /// Calls `work` with the service of a turn, and leaves the task that it was in. Tasks whose coroutines have ended since the
    /// last turn, or in this one, are settled.
    #[inline]
    fn serve(
        &mut self,
        py: Python<'_>,
        handle: &Arc<ReactorHandle>,
        work: impl FnOnce(&mut citius_reactor::Reactor, &mut Dispatch<'_, '_>),
    ) {
        self.tasks.settle(py);
        let turn = Turn {
            py,
            handle,
            tasks: &mut self.tasks,
        };
        let mut service = Dispatch {
            turn,
            gateway: &mut self.gateway,
            mounts: &mut self.mounts,
        };
        work(&mut self.reactor, &mut service);
        service.turn.tasks.leave(py);
        service.turn.tasks.settle(py);
    }
}

/// How long `run` may overlook a signal that comes at the wrong moment.
const POLL_TIMEOUT: Duration = Duration::from_secs(1);

/// How often a turn is tried while another thread looks at the reactor; more mean that this very thread is in a turn.
const LOOKS_MAX: usize = 1000;

/// What is done when the turn ends.
enum Command {
    Drain,
    Close,
    Upstream(UpstreamCommand),
}

#[pymethods]
impl Reactor {
    #[new]
    #[pyo3(signature = (gateway, **settings))]
    fn new(
        py: Python<'_>,
        gateway: &Bound<'_, PyAny>,
        settings: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<PyClassInitializer<Self>> {
        let none = PyDict::new(py);
        let mut settings = Settings::of(settings.unwrap_or(&none))?;
        let limits = settings.limits(py)?;
        citius_native::pool::set_limits(&limits);
        let mounts = settings.mounts(py)?;
        let (event_loop, make_loop) = (settings.event_loop.take(), settings.make_loop.take());
        let (gateway, callbacks) = Gateway::of(gateway, event_loop.as_ref())?;
        let callbacks = Callbacks {
            log: settings.log.take(),
            ..callbacks
        };
        let observer = settings.observer(gateway.labels())?;
        let observed = Observed::by(observer.as_deref());
        let (makes_room, balancer) = (settings.makes_room, settings.balancer.take());
        let (on_memory, host) = (settings.on_memory.take(), settings.host.take());
        let tls = settings.tls.take();
        let options = settings.options(limits.clone(), observer)?;
        let mut reactor = new_reactor(py, options, on_memory.is_some(), host)?;
        accept_as(&mut reactor, &gateway, makes_room, balancer.as_ref())?;
        if let Some(tls) = tls {
            reactor.secure(tls.get().take()?);
        }
        let mailbox = reactor.mailbox();
        let event_loop = Arc::new(HostLoop::new(event_loop, make_loop));
        let tasks = Tasks::new(py, Arc::clone(&event_loop), Some(Arc::clone(&mailbox)))?;
        let handle = Arc::new(ReactorHandle::new(
            Arc::clone(&mailbox),
            reactor.files(),
            limits,
            callbacks,
            event_loop,
            Deferrals::new(tasks.base()),
            observed,
        ));
        Ok(as_carrier(Self {
            descriptor: descriptor_of(&reactor, &handle),
            core: Mutex::new(Core {
                reactor,
                tasks,
                gateway,
                mounts,
            }),
            commands: Mutex::default(),
            handle,
            mailbox,
            stopped: Flag::default(),
            left: Flag::default(),
            on_drained: Mutex::default(),
            on_memory,
            connections: AtomicUsize::new(0),
            requests_open: AtomicUsize::new(0),
            requests_total: AtomicU64::new(0),
        }))
    }

    #[pyo3(signature = (fd, *, rpc = false, tls = None, http = None, proxied = false, redirect_port = 0))]
    fn listen(
        &self,
        fd: Fd,
        rpc: bool,
        tls: Option<bool>,
        http: Option<&str>,
        proxied: bool,
        redirect_port: u16,
    ) -> PyResult<()> {
        let socket = socket_of(fd).map_err(|error| os_error("socket", &error))?;
        let mut core = self.try_core().ok_or_else(busy)?;
        let speaks = core.protocol(rpc, tls, http)?;
        let traits = ListenerTraits {
            is_proxied: proxied,
            redirect_port,
        };
        let listens = core.reactor.listen_as(socket, speaks, traits);
        listens.map_err(|error| os_error("listening socket", &error.into()))
    }

    #[pyo3(signature = (fd, *, secret, slot, generation, receive_bytes, qlog_dir = None))]
    fn listen_datagrams(
        &self,
        fd: Fd,
        secret: [u8; 32],
        slot: u16,
        generation: u8,
        receive_bytes: usize,
        qlog_dir: Option<PathBuf>,
    ) -> PyResult<usize> {
        let socket = socket_of(fd).map_err(|error| os_error("socket", &error))?;
        let mut core = self.try_core().ok_or_else(busy)?;
        let place = place_of(&secret, slot, generation, qlog_dir);
        let listens = core.reactor.listen_datagrams(socket, place, receive_bytes);
        listens.map_err(|reason| PyValueError::new_err(format!("HTTP/3: {reason}")))
    }

    #[pyo3(signature = (*, own, back, older))]
    fn join_workers(&self, own: Fd, back: (Fd, Fd), older: Vec<(u16, u8, Fd)>) -> PyResult<()> {
        let socket = |fd| socket_of(fd).map_err(|error| os_error("socket", &error));
        let older = older.into_iter().map(|(slot, generation, fd)| {
            let origin = citius_quic::Origin { slot, generation };
            Ok((origin, socket(fd)?))
        });
        let older = older.collect::<PyResult<Vec<_>>>()?;
        let back = (socket(back.0)?, socket(back.1)?);
        let mut core = self.try_core().ok_or_else(busy)?;
        let joined = core.reactor.join_workers(socket(own)?, back, older);
        joined.map_err(|reason| PyValueError::new_err(format!("HTTP/3: {reason}")))
    }

    #[pyo3(signature = (*, rpc = false, tls = None, http = None, proxied = false, redirect_port = 0))]
    fn listen_remote(
        &self,
        rpc: bool,
        tls: Option<bool>,
        http: Option<&str>,
        proxied: bool,
        redirect_port: u16,
    ) -> PyResult<usize> {
        let mut core = self.try_core().ok_or_else(busy)?;
        let speaks = core.protocol(rpc, tls, http)?;
        let traits = ListenerTraits {
            is_proxied: proxied,
            redirect_port,
        };
        Ok(core.reactor.listen_remote(speaks, traits))
    }

    fn fileno(&self) -> PyResult<Fd> {
        self.descriptor.ok_or_else(|| {
            PyRuntimeError::new_err("a reactor whose sockets an event loop owns has no descriptor")
        })
    }

    fn turn(slf: &Bound<'_, Self>) {
        let this = slf.get();
        this.set_home(slf);
        if let Some(mut core) = this.try_core() {
            this.run_turn(slf.py(), &mut core);
        }
        this.after_turn(slf.py());
    }

    #[pyo3(signature = (on_heartbeat = None, interval_s = 1.0))]
    fn run(
        slf: &Bound<'_, Self>,
        on_heartbeat: Option<&Bound<'_, PyAny>>,
        interval_s: f64,
    ) -> PyResult<()> {
        let (py, this) = (slf.py(), slf.get());
        this.fileno()?;
        this.set_home(slf);
        let _stand_by = this.handle.event_loop.stand_by(py);
        let interval = Duration::try_from_secs_f64(interval_s)
            .map_err(|error| PyValueError::new_err(error.to_string()))?;
        let mut heartbeat_at = Duration::ZERO;
        while !this.stopped.is_set() && !this.left.is_set() {
            let mut timeout = POLL_TIMEOUT;
            if let Some(on_heartbeat) = on_heartbeat {
                let now = Duration::from_micros(exact_us());
                if now >= heartbeat_at {
                    heartbeat_at = now + interval;
                    on_heartbeat.call0()?;
                }
                timeout = timeout.min(heartbeat_at.saturating_sub(now));
            }
            {
                let mut core = this.try_core().ok_or_else(busy)?;
                let reactor = &mut core.reactor;
                // EINTR: a signal came, and its handler runs in `check_signals`. One that comes just before
                // the poll is heard when it times out.
                let _ = py.detach(|| reactor.poll(Some(timeout)));
                this.run_turn(py, &mut core);
            }
            this.after_turn(py);
            py.check_signals()?;
        }
        // Another thread may close it.
        this.handle.clear_home();
        Ok(())
    }

    fn loop_made(&self, event_loop: Py<PyAny>) {
        self.handle.event_loop.set(event_loop);
        self.leave();
    }

    fn leave(&self) {
        self.left.set();
        self.mailbox.wake();
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
        match self.core_at_home() {
            Some(core) => core.reactor.requests_open(),
            None => self.requests_open.load(Ordering::Relaxed),
        }
    }

    #[getter]
    fn routes_open(&self) -> String {
        self.core_at_home()
            .map_or_else(String::new, |core| core.reactor.routes_open())
    }

    #[getter]
    fn requests_total(&self) -> u64 {
        self.requests_total.load(Ordering::Relaxed)
    }

    /// The turn of a reactor with `on_memory`: by another method, so that one without it does not ask.
    fn memory_turn(slf: &Bound<'_, Self>) {
        Self::turn(slf);
        slf.get().tell_memory_news(slf.py());
    }

    #[pyo3(signature = (client = None, scheme = None, root_path = None))]
    fn memory_open(
        &self,
        client: Option<(String, u16)>,
        scheme: Option<&str>,
        root_path: Option<&str>,
    ) -> PyResult<u64> {
        let peer = peer_of(client);
        let address = peer.address();
        let origin = scheme.map(|scheme| {
            Box::new(Origin {
                client: Some(address.map_or(Client::Hidden, Client::Address)),
                scheme: Some(match scheme {
                    "https" | "wss" => Scheme::Https,
                    _ => Scheme::Http,
                }),
                prefix: root_path.filter(|path| !path.is_empty()).map(Box::from),
                ..Origin::default()
            })
        });
        let mut core = self.try_core().ok_or_else(busy)?;
        let id = core.reactor.open_memory(peer, origin);
        Ok(memory_number(id))
    }

    fn memory_feed(slf: &Bound<'_, Self>, connection: u64, data: &[u8]) -> PyResult<usize> {
        let this = slf.get();
        if !data.is_empty() {
            this.feed(slf, connection, data)?;
        }
        let mut core = this.try_core().ok_or_else(busy)?;
        Ok(core.reactor.unread_memory(memory_id(connection)))
    }

    fn memory_of(&self, request: &Request) -> Option<u64> {
        Arc::ptr_eq(&self.handle, &request.handle).then(|| memory_number(request.id.connection))
    }

    fn memory_news(&self) -> PyResult<Vec<u64>> {
        let news = self.try_core().ok_or_else(busy)?.reactor.memory_news();
        Ok(news.into_iter().map(memory_number).collect())
    }

    fn memory_eof(slf: &Bound<'_, Self>, connection: u64) -> PyResult<()> {
        slf.get().feed(slf, connection, b"")
    }

    fn remote_accept(
        slf: &Bound<'_, Self>,
        listener: usize,
        peer: Option<(String, u16)>,
        local: Option<(String, u16)>,
    ) -> PyResult<Option<u64>> {
        let mut id = None;
        slf.get().turn_after(slf, |reactor, service| {
            id = reactor.accept_remote(listener, peer_of(peer), peer_of(local), service);
        })?;
        Ok(id.map(memory_number))
    }

    fn remote_feed(slf: &Bound<'_, Self>, connection: u64, data: &[u8]) -> PyResult<usize> {
        let (this, id) = (slf.get(), memory_id(connection));
        this.turn_after(slf, |reactor, _| reactor.put_memory(id, data))?;
        let mut core = this.soon_core(slf.py()).ok_or_else(busy)?;
        Ok(core.reactor.unread_memory(id))
    }

    fn remote_lose(slf: &Bound<'_, Self>, connection: u64) -> PyResult<()> {
        slf.get().turn_after(slf, |reactor, _| {
            reactor.lose_remote(memory_id(connection));
        })
    }

    fn remote_news(&self, py: Python<'_>) -> PyResult<Vec<(u64, bool)>> {
        let news = self.soon_core(py).ok_or_else(busy)?.reactor.remote_news();
        let numbered = |(id, has_ended)| (memory_number(id), has_ended);
        Ok(news.into_iter().map(numbered).collect())
    }

    fn remote_take<'py>(
        &self,
        py: Python<'py>,
        connection: u64,
    ) -> PyResult<(Bound<'py, PyBytes>, u8, usize)> {
        let mut core = self.soon_core(py).ok_or_else(busy)?;
        let outgoing = core.reactor.take_remote(memory_id(connection));
        let bytes = PyBytes::new(py, &outgoing.bytes);
        Ok((bytes, outgoing.then as u8, outgoing.unread_bytes))
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
    fn try_core(&self) -> Option<MutexGuard<'_, Core>> {
        match self.core.try_lock() {
            Ok(core) => Some(core),
            // A panic inside a turn has cost its connection; the tables are whole.
            Err(TryLockError::Poisoned(core)) => Some(core.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    /// The reactor, waiting for another thread that looks at it: what a loop brings must not be lost.
    fn soon_core(&self, py: Python<'_>) -> Option<MutexGuard<'_, Core>> {
        for _ in 0..LOOKS_MAX {
            if let Some(core) = self.try_core() {
                return Some(core);
            }
            py.detach(std::thread::yield_now);
        }
        None
    }

    /// Remembers how to call the next turn from this thread.
    fn set_home(&self, slf: &Bound<'_, Self>) {
        self.handle.set_home(|| {
            citius_native::local::set_home(&self.handle);
            let event_loop = self.handle.event_loop.get()?.bind(slf.py());
            let call_soon = event_loop.getattr("call_soon").ok()?.unbind();
            let turn = if self.on_memory.is_some() {
                "memory_turn"
            } else {
                "turn"
            };
            Some((call_soon, slf.getattr(turn).ok()?.unbind()))
        });
    }

    fn run_turn(&self, py: Python<'_>, core: &mut Core) {
        self.run_turn_after(py, core, |_, _| ());
    }

    /// Serves everything that is ready, after something that has come by another way.
    #[inline]
    fn run_turn_after(
        &self,
        py: Python<'_>,
        core: &mut Core,
        before: impl FnOnce(&mut citius_reactor::Reactor, &mut Dispatch<'_, '_>),
    ) {
        end_child(py, &self.handle);
        self.handle.turn.fetch_add(1, Ordering::Relaxed);
        let _serving = citius_native::thread::Serving::begin();
        self.handle.deferred.open();
        let outcome = catch_unwind(AssertUnwindSafe(|| {
            core.serve(py, &self.handle, |reactor, service| {
                before(reactor, service);
                reactor.turn(service);
                self.handle.report_noted_failures(py);
                // Taken first: a guard would live as long as the loop, in which Python code runs.
                let commands = std::mem::take(&mut *lock(&self.commands));
                for command in commands {
                    match command {
                        Command::Drain => reactor.drain(service),
                        Command::Close => reactor.close(service),
                        Command::Upstream(command) => do_upstream(reactor, service, command),
                    }
                }
            });
        }));
        let Core { reactor, tasks, .. } = core;
        if outcome.is_err() {
            reactor.recover();
            clear_exception(py);
            let _ = guarded(py, || tasks.leave(py));
            self.handle.log(
                py,
                LEVEL_ERROR,
                "a defect of the server's ended a turn early",
            );
        }
        call_deferred(py, &self.handle, tasks);
        self.connections
            .store(reactor.connections(), Ordering::Relaxed);
        self.requests_total
            .store(reactor.requests_total(), Ordering::Relaxed);
        if reactor.is_draining() {
            self.requests_open
                .store(reactor.requests_open(), Ordering::Relaxed);
        }
        if reactor.is_drained() {
            tasks.close(py);
            citius_native::local::close(interpreter::gil::attached(py), &*self.handle);
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
        self.handle.clear_home();
        let callback = lock(&self.on_drained).take();
        call_back(py, callback);
    }

    /// The reactor, if nothing else uses it and this thread may: what a turn calls belongs on the thread that turns it.
    fn core_at_home(&self) -> Option<std::sync::MutexGuard<'_, Core>> {
        if self.handle.is_at_home_elsewhere() {
            return None;
        }
        self.try_core()
    }

    /// Does something now, or at the end of the turn that is running; in another thread than the reactor's, in its next turn.
    fn command(&self, py: Python<'_>, command: Command) {
        lock(&self.commands).push(command);
        let Some(mut core) = self.core_at_home() else {
            return self.mailbox.wake();
        };
        self.run_turn(py, &mut core);
        drop(core);
        self.after_turn(py);
        self.tell_memory_news(py);
    }

    /// Does it now, or at the end of the turn that is running. No turn is begun for it: this may be a task's step, in
    /// which no request's task can be entered.
    fn upstream_command(&self, py: Python<'_>, command: UpstreamCommand) {
        lock(&self.commands).push(Command::Upstream(command));
        let Some(mut core) = self.core_at_home() else {
            return self.mailbox.wake();
        };
        let mine: Vec<_> = lock(&self.commands)
            .extract_if(.., |command| matches!(command, Command::Upstream(_)))
            .collect();
        core.serve(py, &self.handle, |reactor, service| {
            for command in mine {
                if let Command::Upstream(command) = command {
                    do_upstream(reactor, service, command);
                }
            }
        });
    }

    /// A turn for what the loop that owns the sockets has brought, and what follows from it for them.
    fn turn_after(
        &self,
        slf: &Bound<'_, Self>,
        before: impl FnOnce(&mut citius_reactor::Reactor, &mut Dispatch<'_, '_>),
    ) -> PyResult<()> {
        self.set_home(slf);
        let py = slf.py();
        let mut core = self.soon_core(py).ok_or_else(busy)?;
        self.run_turn_after(py, &mut core, before);
        drop(core);
        self.after_turn(py);
        self.tell_memory_news(py);
        Ok(())
    }

    /// Calls the owner of connections in memory if there is something new about them.
    fn tell_memory_news(&self, py: Python<'_>) {
        let has_news = self
            .try_core()
            .is_some_and(|core| core.reactor.has_memory_news());
        if has_news {
            let callback = self.on_memory.as_ref();
            call_back(py, callback.map(|callback| callback.clone_ref(py)));
        }
    }

    fn feed(&self, slf: &Bound<'_, Self>, connection: u64, data: &[u8]) -> PyResult<()> {
        self.set_home(slf);
        let py = slf.py();
        {
            let mut core = self.try_core().ok_or_else(busy)?;
            self.handle.turn.fetch_add(1, Ordering::Relaxed);
            self.handle.deferred.open();
            core.serve(py, &self.handle, |reactor, service| {
                reactor.feed_memory(memory_id(connection), data, service);
            });
            call_deferred(py, &self.handle, &mut core.tasks);
        }
        self.after_turn(py);
        Ok(())
    }
}

/// One that polls the kernel, or that `host` turns.
fn new_reactor(
    py: Python<'_>,
    options: Options,
    tells_memories: bool,
    host: Option<Py<PyAny>>,
) -> PyResult<citius_reactor::Reactor> {
    let made = match host {
        None => citius_reactor::Reactor::new(options),
        Some(host) => citius_reactor::Reactor::hosted(options, Arc::new(PyHost::new(py, &host)?)),
    };
    let mut reactor = made.map_err(|error| os_error("epoll set", &error.into()))?;
    if tells_memories {
        reactor.tell_memories();
    }
    Ok(reactor)
}

/// Sets from whom it accepts connections: with room for new ones at `connections_max`, and shared with other reactors.
fn accept_as(
    reactor: &mut citius_reactor::Reactor,
    gateway: &Gateway,
    makes_room: bool,
    balancer: Option<&Py<Balancer>>,
) -> PyResult<()> {
    if gateway.offers_webtransport() {
        reactor.offer_webtransport();
    }
    if let Some(path) = gateway.rpc_path() {
        reactor.offer_rpc(path);
    }
    if makes_room {
        reactor.make_room();
    }
    if let Some(balancer) = balancer {
        let shared = reactor.share(&balancer.get().shared);
        shared.map_err(|error| os_error("alarm", &error.into()))?;
    }
    Ok(())
}

/// The descriptor by which a loop watches the reactor. Without one a thread watches outgoing connections.
fn descriptor_of(reactor: &citius_reactor::Reactor, handle: &ReactorHandle) -> Option<Fd> {
    let found = raw_descriptor(reactor);
    if found.is_none() {
        handle.outgoing.watch_by_thread();
    }
    found
}

#[cfg(target_os = "linux")]
fn raw_descriptor(reactor: &citius_reactor::Reactor) -> Option<Fd> {
    use std::os::fd::AsRawFd;

    reactor
        .descriptor()
        .map(|descriptor| descriptor.as_raw_fd())
}

/// No other system has one.
#[cfg(not(target_os = "linux"))]
fn raw_descriptor(_reactor: &citius_reactor::Reactor) -> Option<Fd> {
    None
}

/// Who is at the other end, by what Python's sockets say.
fn peer_of(address: Option<(String, u16)>) -> Peer {
    let address = address.and_then(|(host, port)| {
        let host: IpAddr = host.parse().ok()?;
        Some(SocketAddr::new(host, port))
    });
    address.map_or(Peer::Local, Peer::internet)
}

/// A reactor that carries the bytes of connections to other servers.
fn as_carrier(reactor: Reactor) -> PyClassInitializer<Reactor> {
    let carrier = Carrier::new(Arc::clone(&reactor.handle), upstream_command);
    PyClassInitializer::from(carrier).add_subclass(reactor)
}

/// Does what a connection to another server asks of the reactor that carries it.
fn upstream_command(carrier: &Bound<'_, Carrier>, command: UpstreamCommand) {
    let Ok(reactor) = carrier.cast::<Reactor>() else {
        return; // no other class extends it
    };
    let this = reactor.get();
    if matches!(command, UpstreamCommand::Attach(..)) {
        this.set_home(reactor);
    }
    this.upstream_command(carrier.py(), command);
}

fn do_upstream(
    reactor: &mut citius_reactor::Reactor,
    service: &mut Dispatch<'_, '_>,
    command: UpstreamCommand,
) {
    match command {
        UpstreamCommand::Attach(id, socket) => {
            match reactor.attach_upstream(id, socket) {
                // What was to be sent before the reactor knew of it.
                Ok(()) => reactor.send_to_upstream(id, false, service),
                Err(error) => service.upstream_closed(id, Some(error)),
            }
        }
        UpstreamCommand::Detach(id, protocol) => {
            let unsent = reactor.detach_upstream(id);
            protocol.put_back(service.turn.py, &unsent);
        }
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

/// The number of a connection in memory, as Python knows it.
fn memory_number(id: ConnectionId) -> u64 {
    u64::from(id.generation) << 32 | u64::from(id.index)
}

fn busy() -> PyErr {
    PyRuntimeError::new_err("the reactor is in the middle of a turn")
}
