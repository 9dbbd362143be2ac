//! The thread loop: one thread, one epoll set, its share of connections and requests, nothing
//! shared but two counters that the progress display reads.
//!
//! A turn waits for events, serves every ready connection (read, judge, refill, write), then
//! looks at its timers: phase edges, arrivals that are due, reconnections, timeouts.
//!
//! # Which instants a latency is made of
//! * **An answer's end** is a clock read directly after the `recv` that brought its last byte.
//!   Time that readable bytes waited for this thread is in the latency: a client sees it too.
//!   Answers that one `recv` brings share that instant.
//! * **A request's beginning** is the last clock read before its `send`: the one after the `recv`
//!   that made room for it, with nothing but the judging of that `recv`'s answers in between.
//!   A latency is thus never shorter than what passed between the two system calls. If the
//!   connection must be opened for the request (`--no-keepalive`, users, the first one, and the
//!   first after a reconnect), it begins before `connect`.
//! * **Latency** runs from the instant the request was *due*, **service time** from its beginning.
//!   In the closed loop a request is due when it begins, and both are the same.
//! * **Schedule lag** is what this generator adds to an open pace: from the instant a request was
//!   due *and* a connection was free for it, until it was sent. Waiting for a free connection is
//!   the server's slowness; it is in the latency, not in the lag.
//!
//! So one clock read per readable connection, for any number of responses, and one per turn
//! without events.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use rustix::buffer::spare_capacity;
use rustix::event::{Timespec, epoll};
use rustix::io::Errno;

use crate::clock::{self, CpuTime, SECOND_NS};
use crate::connection::{Connection, Received, Stage, parse_token};
use crate::flight::{Comparison, Sent};
use crate::judge::{Exchange, Judge, Phase};
use crate::pace::{Pace, Random, Schedule};
use crate::plan::Plan;
use crate::request::Mix;
use crate::stop::{Quota, Window};
use crate::tally::{ErrorClass, Tally};
use crate::tls::{Tls, Trouble};
use crate::wire::{Setup, Wire};

/// What a running engine lets others see, on a cache line of its own.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(crate) struct Live {
    pub(crate) completed: AtomicU64,
    pub(crate) errors: AtomicU64,
}

/// One thread's part of a run.
pub(crate) struct Engine<W: Wire> {
    plan: Arc<Plan>,
    epoll: OwnedFd,
    connections: Vec<Connection<W>>,
    shared: W::Shared,
    /// Each entry of the mix as it is sent.
    prepared: Vec<W::Prepared>,
    judge: Judge,
    mix: Arc<Mix>,
    random: Random,
    schedule: Option<Schedule>,
    /// Due instants of requests that a closing peer left unanswered; they are asked again first.
    returned: VecDeque<u64>,
    quota: Quota,
    window: Window,
    /// When the current phase ends.
    edge_ns: u64,
    /// When counting ended; the window's end, unless a count or an interruption came first.
    ended_ns: u64,
    cpu_at_begin: CpuTime,
    /// Connections that can take a request, longest free first; open paces only. May hold
    /// connections that were lost since, which are passed over.
    free: VecDeque<usize>,
    /// Connections to be opened again, and when.
    retries: BinaryHeap<Reverse<(u64, usize)>>,
    /// Connections whose socket was not read to its end, to be continued in the next turn.
    unfinished: Vec<(usize, u32, epoll::EventFlags)>,
    sweep_ns: u64,
    sweep_step_ns: u64,
    input: Box<[u8]>,
    /// How much of it is offered where an answer begins.
    head_room: usize,
    /// Never touched, so it costs address space only.
    discarded: Box<[u8]>,
    output: Vec<u8>,
    /// The same, as TLS wants it.
    sealed: Vec<u8>,
    live: Arc<Live>,
    interrupted: Arc<AtomicBool>,
    on_end: Box<dyn FnMut(u64) + Send>,
    /// Connections in the stage `Open`.
    n_open: u64,
}

/// Why a connection ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Cause {
    /// It was never established.
    Connect,
    Reset,
    /// The peer closed.
    End,
    TimedOut,
    Fault,
    /// It has served its purpose.
    Done,
}

/// What an engine is given besides the plan.
pub(crate) struct Seat {
    pub(crate) thread: usize,
    pub(crate) window: Window,
    pub(crate) live: Arc<Live>,
    pub(crate) interrupted: Arc<AtomicBool>,
    /// Called once, with the instant at which this thread's counting ended.
    pub(crate) on_end: Box<dyn FnMut(u64) + Send>,
}

impl<W: Wire> Engine<W> {
    /// # Errors  The kernel refuses an epoll instance.
    pub(crate) fn new(plan: &Arc<Plan>, seat: Seat) -> Result<Self, Errno> {
        let Seat {
            thread,
            window,
            live,
            interrupted,
            on_end,
        } = seat;
        let (index, n_threads) = (thread as u64, plan.threads as u64);
        let mix = Arc::new(plan.mix.clone());
        let setup = Setup {
            keep_alive: plan.transport.keep_alive,
            is_secure: plan.security.is_some(),
            is_broadcast: plan.senders.is_some(),
        };
        let n_senders = plan.n_senders(thread);
        let requests: Vec<_> = mix.entries.iter().map(|entry| &entry.request).collect();
        let prepared = W::prepare(&requests, setup);
        let n_connections = plan.transport.share(thread, plan.threads);
        let is_open_pace = plan.pace != Pace::Closed;
        Ok(Self {
            epoll: epoll::create(epoll::CreateFlags::CLOEXEC)?,
            connections: (0..n_connections)
                .map(|index| {
                    let n_asks = plan.transport.first_requests(index, n_connections);
                    Connection::new(plan.transport.pipeline, setup, index < n_senders, n_asks)
                })
                .collect(),
            shared: W::Shared::default(),
            prepared,
            judge: Judge::new(Arc::clone(&mix), is_open_pace, plan.check_every),
            mix,
            random: Random::new(
                plan.seed
                    .wrapping_add(index)
                    .wrapping_mul(2)
                    .wrapping_add(1),
            ),
            schedule: Schedule::new(plan.pace, index, n_threads, window.start_ns, plan.seed),
            returned: VecDeque::new(),
            quota: plan.quota(thread),
            window,
            edge_ns: window.begin_ns,
            ended_ns: window.end_ns,
            cpu_at_begin: CpuTime::default(),
            free: VecDeque::new(),
            retries: BinaryHeap::new(),
            unfinished: Vec::new(),
            sweep_ns: window.start_ns,
            sweep_step_ns: (plan.timeout_ns / 10).clamp(SWEEP_NS_MIN, SWEEP_NS_MAX),
            input: vec![0; INPUT_BYTES].into(),
            head_room: INPUT_BYTES,
            discarded: vec![0; DISCARDED_BYTES].into(),
            output: Vec::with_capacity(INPUT_BYTES),
            sealed: Vec::new(),
            plan: Arc::clone(plan),
            live,
            interrupted,
            on_end,
            n_open: 0,
        })
    }

    /// Runs from the window's start until all is answered or given up.
    pub(crate) fn run(mut self) -> Tally {
        let mut events = Vec::with_capacity(EVENTS_PER_TURN);
        self.tick();
        for index in 0..self.connections.len() {
            self.revive(index);
        }
        while !self.is_over() {
            self.wait(&mut events);
            if events.is_empty() {
                self.tick();
            }
            for (index, generation, flags) in std::mem::take(&mut self.unfinished) {
                self.serve(index, generation, flags);
            }
            for event in events.drain(..) {
                let (index, generation) = parse_token(event.data.u64());
                self.serve(index, generation, event.flags);
                self.dispatch();
            }
            self.dispatch();
            self.retry();
            if self.judge.now_ns >= self.sweep_ns {
                self.sweep();
            }
            self.publish();
        }
        self.close_the_books()
    }

    /// Counting is over, and so is the wait for the answers under way.
    fn is_over(&mut self) -> bool {
        let is_spent = self.judge.is_counting()
            && self.quota.is_exhausted()
            && self.judge.n_under_way == 0
            && self.returned.is_empty();
        if is_spent || self.interrupted.load(Ordering::Relaxed) {
            self.end_counting(self.judge.now_ns);
        }
        self.judge.phase == Phase::Draining
            && (self.judge.n_under_way == 0 || self.judge.now_ns >= self.edge_ns)
    }

    fn wait(&mut self, events: &mut Vec<epoll::Event>) {
        let mut wake_ns = self.edge_ns.min(self.sweep_ns);
        if let Some(Reverse((retry_ns, _))) = self.retries.peek() {
            wake_ns = wake_ns.min(*retry_ns);
        }
        let mut now_ns = self.judge.now_ns;
        if let Some(due_ns) = self.due_ns().filter(|_| !self.free.is_empty()) {
            wake_ns = wake_ns.min(due_ns);
            // What was handled since the last clock read must not postpone an arrival.
            now_ns = clock::now_ns();
        }
        let span_ns = if self.unfinished.is_empty() {
            wake_ns.saturating_sub(now_ns)
        } else {
            0
        };
        let timeout = Timespec {
            tv_sec: (span_ns / SECOND_NS).cast_signed(),
            tv_nsec: (span_ns % SECOND_NS).cast_signed(),
        };
        match epoll::wait(&self.epoll, spare_capacity(events), Some(&timeout)) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => unreachable!("epoll_wait on an own epoll descriptor: {error}"),
        }
    }

    /// Reads the clock and crosses the edges that have passed.
    #[inline]
    fn tick(&mut self) {
        let now_ns = clock::now_ns();
        self.judge.tick(now_ns);
        if now_ns >= self.edge_ns {
            self.cross(now_ns);
        }
    }

    #[cold]
    fn cross(&mut self, now_ns: u64) {
        if self.judge.phase == Phase::WarmUp {
            self.begin_counting();
        }
        if self.judge.phase == Phase::Counting && now_ns >= self.edge_ns {
            self.end_counting(self.window.end_ns);
        }
    }

    fn begin_counting(&mut self) {
        self.edge_ns = self.window.end_ns;
        self.cpu_at_begin = CpuTime::of_thread();
        self.connections
            .iter_mut()
            .for_each(Connection::begin_counting);
        self.judge.begin_counting(self.window.begin_ns);
        self.judge.tick(self.judge.now_ns);
    }

    /// Ends the window; what is under way has `drain_ns` left.
    fn end_counting(&mut self, ended_ns: u64) {
        if self.judge.phase == Phase::Draining {
            return;
        }
        if self.judge.is_counting() {
            self.judge.tally.cpu = CpuTime::of_thread().since(self.cpu_at_begin);
            self.judge.tally.open_at_end = self.n_open;
            let counted = self.connections.iter().map(Connection::n_answers_counted);
            self.judge.tally.answers_by_connection = counted.collect();
        }
        self.ended_ns = ended_ns.max(self.window.begin_ns).min(self.window.end_ns);
        self.edge_ns = self.judge.now_ns + self.plan.drain_ns();
        self.judge.end_counting();
        (self.on_end)(self.ended_ns);
        // Nothing was asked on connections that are still being opened.
        let mut unasked = Vec::new();
        for connection in &mut self.connections {
            if matches!(connection.stage, Stage::Connecting | Stage::Securing) {
                connection.close();
                unasked.extend(connection.flight.drain());
            }
        }
        self.judge.n_under_way -= unasked.len();
        for (_, sent) in &unasked {
            self.give_back(sent);
        }
    }

    /// Handles what an event says about a connection.
    fn serve(&mut self, index: usize, generation: u32, flags: epoll::EventFlags) {
        use epoll::EventFlags as Flags;
        let connection = &self.connections[index];
        if connection.generation != generation || connection.stage == Stage::Closed {
            return;
        }
        if connection.stage == Stage::Connecting {
            self.tick();
            match self.connections[index].stage {
                Stage::Connecting if flags.intersects(Flags::ERR | Flags::HUP) => {
                    return self.fail_to_connect(index, self.connections[index].error());
                }
                Stage::Connecting if flags.contains(Flags::OUT) => self.reach(index),
                _ => return,
            }
        } else if flags.contains(Flags::OUT) && connection.has_unwritten() {
            self.flush(index);
        }
        if flags.intersects(Flags::IN | Flags::RDHUP | Flags::HUP | Flags::ERR) {
            self.read(index, flags);
        }
    }

    /// Reads a socket until it is empty, or often enough for others to have their turn.
    fn read(&mut self, index: usize, flags: epoll::EventFlags) {
        use epoll::EventFlags as Flags;
        let is_ending = flags.intersects(Flags::RDHUP | Flags::HUP | Flags::ERR);
        for _ in 0..READS_PER_TURN {
            match self.connections[index].stage {
                Stage::Open | Stage::Securing => {}
                Stage::Connecting | Stage::Closed => return,
            }
            match self.receive(index) {
                // A short read has emptied the socket, and what comes later is a new edge; but an
                // end that was announced together with the bytes is none.
                Ok(is_drained) if is_drained && !is_ending => return self.proceed(index),
                Ok(_) => {}
                Err(None) => return self.proceed(index),
                Err(Some(cause)) => return self.lose(index, cause),
            }
        }
        let generation = self.connections[index].generation;
        self.unfinished.push((index, generation, flags | Flags::IN));
        self.proceed(index);
    }

    /// One read. Says whether it emptied the socket.
    /// # Errors  There was nothing to read, or the connection ends for the cause given.
    #[inline]
    fn receive(&mut self, index: usize) -> Result<bool, Option<Cause>> {
        let connection = &mut self.connections[index];
        if connection.tls.is_some() {
            return self.receive_sealed(index);
        }
        let n_skippable = connection.wire.skippable();
        let discards = n_skippable >= DISCARD_BYTES_MIN && !connection.flight.is_comparing();
        let (received, n_room) = if discards {
            let n_room = usize::try_from(n_skippable)
                .unwrap_or(usize::MAX)
                .min(DISCARDED_BYTES);
            (connection.discard(&mut self.discarded[..n_room]), n_room)
        } else {
            let n_room = if n_skippable == 0 {
                self.head_room
            } else {
                INPUT_BYTES
            };
            (connection.receive(&mut self.input[..n_room]), n_room)
        };
        self.tick();
        let Connection {
            wire,
            flight,
            n_answers,
            ..
        } = &mut self.connections[index];
        let mut exchange = Exchange {
            judge: &mut self.judge,
            flight,
            n_answers,
        };
        match received {
            Received::Bytes(n_bytes) => {
                if exchange.judge.is_counting() {
                    exchange.judge.tally.bytes_read += n_bytes as u64;
                }
                if discards {
                    wire.skip(n_bytes as u64, &mut exchange);
                    if self.plan.transport.pipeline == 1 {
                        self.head_room = HEAD_BYTES;
                    }
                    return Ok(flight.is_empty());
                }
                let bytes = &self.input[..n_bytes];
                match wire.receive(&mut self.shared, bytes, &mut exchange) {
                    Ok(()) => {
                        let is_drained = n_bytes < n_room;
                        if !is_drained && wire.skippable() == 0 {
                            // More than a head came, and nothing of it can be dropped.
                            self.head_room = INPUT_BYTES;
                        }
                        Ok(is_drained)
                    }
                    Err(_) => Err(Some(Cause::Fault)),
                }
            }
            Received::Nothing => Err(None),
            Received::End => {
                wire.end(&mut exchange);
                Err(Some(Cause::End))
            }
            Received::Reset => Err(Some(Cause::Reset)),
        }
    }

    /// The same through TLS.
    fn receive_sealed(&mut self, index: usize) -> Result<bool, Option<Cause>> {
        let connection = &mut self.connections[index];
        let tls = connection.tls.as_ref().expect("the caller has looked");
        let n_before = tls.begin(&mut self.input);
        let received = connection.receive(&mut self.input[n_before..]);
        self.tick();
        let Connection {
            wire,
            flight,
            n_answers,
            tls: Some(tls),
            stage,
            ..
        } = &mut self.connections[index]
        else {
            // Ticking has crossed an edge, and the connection had not been opened yet.
            return Err(None);
        };
        let mut exchange = Exchange {
            judge: &mut self.judge,
            flight,
            n_answers,
        };
        let n_bytes = match received {
            Received::Bytes(n_bytes) => n_bytes,
            Received::Nothing => return Err(None),
            Received::End => {
                wire.end(&mut exchange);
                return Err(Some(Cause::End));
            }
            Received::Reset => return Err(Some(Cause::Reset)),
        };
        if exchange.judge.is_counting() {
            exchange.judge.tally.bytes_read += n_bytes as u64;
        }
        let n_read = n_before + n_bytes;
        self.sealed.clear();
        let opened = tls.receive(&mut self.input[..n_read], &mut self.sealed, |plain| {
            wire.receive(&mut self.shared, plain, &mut exchange)
        });
        let is_secured = *stage == Stage::Securing && !tls.is_handshaking();
        self.transmit_sealed(index);
        if let Err(trouble) = opened {
            if let Trouble::Tls(error) = trouble {
                self.note_tls_failure(error.to_string());
            }
            return Err(Some(Cause::Fault));
        }
        if is_secured && !self.secure(index) {
            return Err(Some(Cause::Fault));
        }
        Ok(n_read < self.input.len())
    }

    fn note_tls_failure(&mut self, failure: String) {
        self.judge.tally.tls_failure.get_or_insert(failure);
    }

    /// What follows reading: closing, more requests, or waiting for them to be due.
    #[inline]
    fn proceed(&mut self, index: usize) {
        let connection = &self.connections[index];
        if connection.stage != Stage::Open {
            return;
        }
        let is_last = !self.plan.transport.keep_alive || connection.n_asks_left == 0;
        let is_served = is_last && connection.flight.is_empty();
        if connection.wire.is_over() || is_served {
            return self.lose(index, Cause::Done);
        }
        if self.schedule.is_none() {
            return self.refill(index);
        }
        self.reply(index);
        if self.plan.loops() > 0 {
            self.go_on(index);
        } else {
            self.offer(index);
        }
    }

    /// A user's answer has come: his next request, or the end of his connection.
    fn go_on(&mut self, index: usize) {
        let connection = &mut self.connections[index];
        if !connection.flight.is_empty() || !connection.can_ask() || !connection.wire.has_room() {
            return;
        }
        if connection.n_loops_left == 1 {
            return self.lose(index, Cause::Done);
        }
        connection.n_loops_left -= 1;
        if self.judge.phase == Phase::Draining || !self.take() {
            return;
        }
        let now_ns = self.judge.now_ns;
        let ticket = self.book(index, now_ns, now_ns);
        self.output.clear();
        self.ask(index, ticket);
        self.transmit(index);
    }

    /// Closed loop: asks for as much as the pipeline holds, in one write.
    #[inline]
    fn refill(&mut self, index: usize) {
        self.output.clear();
        if W::REPLIES {
            self.connections[index].wire.reply(&mut self.output);
        }
        if self.judge.phase != Phase::Draining && self.connections[index].can_ask() {
            while self.connections[index].has_room() && self.take() {
                let now_ns = self.judge.now_ns;
                let ticket = self.book(index, now_ns, now_ns);
                self.ask(index, ticket);
            }
        }
        self.transmit(index);
    }

    /// Writes what the peer is owed besides requests.
    fn reply(&mut self, index: usize) {
        if W::REPLIES {
            self.output.clear();
            self.connections[index].wire.reply(&mut self.output);
            self.transmit(index);
        }
    }

    /// Takes a request from the quota; those of the warm-up are not in it.
    #[inline]
    fn take(&mut self) -> bool {
        if !self.judge.is_counting() {
            return true;
        }
        let taken = self.quota.take();
        self.judge.compares_all = self.quota.is_exhausted();
        taken
    }

    /// Draws a request and puts it in flight.
    #[inline]
    fn book(&mut self, index: usize, due_ns: u64, sent_ns: u64) -> u16 {
        let entry = self.mix.draw(&mut self.random);
        self.judge.n_under_way += 1;
        self.connections[index].flight.insert(Sent {
            due_ns,
            sent_ns,
            entry: u32::try_from(entry).expect("a mix has fewer entries"),
            counted: self.judge.is_counting() || !self.quota.is_limited(),
            status: 0,
            comparison: Comparison::Off,
            n_body: 0,
        })
    }

    /// Hands a request in flight to the wire.
    #[inline]
    fn ask(&mut self, index: usize, ticket: u16) {
        let connection = &mut self.connections[index];
        connection.n_asks_left -= 1;
        let Sent { due_ns, entry, .. } = *connection.flight.of(ticket);
        let prepared = &self.prepared[entry as usize];
        connection
            .wire
            .send(ticket, due_ns, prepared, &mut self.output);
        if self.judge.is_counting() {
            self.judge.tally.sent += 1;
        }
    }

    /// Writes what was asked.
    #[inline]
    fn transmit(&mut self, index: usize) {
        if self.output.is_empty() {
            return;
        }
        let connection = &mut self.connections[index];
        if let Some(tls) = &mut connection.tls {
            self.sealed.clear();
            return match tls.seal(&self.output, &mut self.sealed) {
                Ok(()) => self.transmit_sealed(index),
                Err(_) => self.settle_write(index, Err(Errno::PIPE)),
            };
        }
        let written = connection.write(&self.output);
        self.settle_write(index, written);
    }

    fn transmit_sealed(&mut self, index: usize) {
        if !self.sealed.is_empty() {
            let written = self.connections[index].write(&self.sealed);
            self.settle_write(index, written);
        }
    }

    fn flush(&mut self, index: usize) {
        let written = self.connections[index].flush();
        self.settle_write(index, written);
        if self.connections[index].can_ask() {
            self.tick();
            self.proceed(index);
        }
    }

    #[inline]
    fn settle_write(&mut self, index: usize, written: Result<usize, Errno>) {
        match written {
            Ok(n_bytes) if self.judge.is_counting() => {
                self.judge.tally.bytes_written += n_bytes as u64;
            }
            Ok(_) => {}
            // The peer has closed, but what it said before may still be unread: an answer that
            // ends the connection in good order is the usual case.
            Err(_) => {
                let flags = epoll::EventFlags::IN | epoll::EventFlags::RDHUP;
                let generation = self.connections[index].generation;
                self.unfinished.push((index, generation, flags));
            }
        }
    }

    /// When the next request of an open pace is due.
    #[inline]
    fn due_ns(&self) -> Option<u64> {
        let schedule = self.schedule.as_ref()?;
        self.returned.front().copied().or_else(|| schedule.due_ns())
    }

    /// Open paces: sends what is due, as far as there are free connections.
    #[inline]
    fn dispatch(&mut self) {
        if self.schedule.is_some() {
            while self.dispatch_one() {}
        }
    }

    /// Sends one request if one is due, may be sent, and has a connection to go to.
    fn dispatch_one(&mut self) -> bool {
        let now_ns = self.judge.now_ns;
        let Some(due_ns) = self.due_ns().filter(|due_ns| *due_ns <= now_ns) else {
            return false;
        };
        if self.judge.phase == Phase::Draining || self.quota.is_exhausted() {
            return false;
        }
        let Some(index) = self.free.pop_front() else {
            return false;
        };
        let opens = self.opens_on_demand();
        let connection = &mut self.connections[index];
        connection.is_queued = false;
        let wanted = if opens { Stage::Closed } else { Stage::Open };
        if connection.stage != wanted || !connection.has_room() {
            return true;
        }
        let free_ns = connection.free_ns;
        if self.returned.pop_front().is_none()
            && let Some(schedule) = &mut self.schedule
        {
            schedule.advance();
        }
        self.take();
        if self.judge.is_counting() {
            self.judge
                .tally
                .schedule_lag
                .record(now_ns - due_ns.max(free_ns));
        }
        if opens {
            self.connections[index].n_loops_left = self.plan.loops();
            self.open(index, Some(due_ns));
        } else {
            let ticket = self.book(index, due_ns, now_ns);
            self.output.clear();
            self.ask(index, ticket);
            self.transmit(index);
            self.offer(index);
        }
        true
    }

    /// Whether a connection is opened only when a request for it is due.
    fn opens_on_demand(&self) -> bool {
        self.schedule.is_some() && (!self.plan.transport.keep_alive || self.plan.loops() > 0)
    }

    /// Open paces: queues a connection that can take a request.
    fn offer(&mut self, index: usize) {
        let wanted = if self.opens_on_demand() {
            Stage::Closed
        } else {
            Stage::Open
        };
        let connection = &mut self.connections[index];
        let can_take = connection.stage == wanted && connection.has_room() && connection.can_ask();
        if can_take && !connection.is_queued {
            connection.is_queued = true;
            connection.free_ns = self.judge.now_ns;
            self.free.push_back(index);
        }
    }

    /// Puts a closed connection to use again.
    fn revive(&mut self, index: usize) {
        if self.judge.phase == Phase::Draining || self.connections[index].stage != Stage::Closed {
            return;
        }
        if self.connections[index].n_loops_left > 0 {
            if self.take() {
                self.open(index, Some(self.judge.now_ns));
            }
        } else if self.opens_on_demand() {
            self.offer(index);
        } else if self.schedule.is_some() || !self.connections[index].is_sender {
            self.open(index, None);
        } else if self.take() {
            self.open(index, Some(self.judge.now_ns));
        }
    }

    /// Begins to connect, for the request that is due at `due_ns` if there is one.
    fn open(&mut self, index: usize, due_ns: Option<u64>) {
        let now_ns = self.judge.now_ns;
        let reserved = due_ns.map(|due_ns| self.book(index, due_ns, now_ns));
        let connection = &mut self.connections[index];
        if connection.generation > 0 {
            let limit = self.plan.transport.requests_per_connection;
            connection.n_asks_left = limit.unwrap_or(u64::MAX);
        }
        connection.opened_ns = now_ns;
        let opened = connection.open(&self.epoll, index, &self.plan.address);
        connection.reserved = reserved;
        if let Err(error) = opened {
            self.fail_to_connect(index, error);
        }
    }

    fn fail_to_connect(&mut self, index: usize, error: Errno) {
        self.judge.tally.connect_failures.count(error);
        self.lose(index, Cause::Connect);
    }

    /// The peer has accepted the connection.
    fn reach(&mut self, index: usize) {
        let now_ns = self.judge.now_ns;
        let connection = &mut self.connections[index];
        self.judge
            .tally
            .connect
            .record(now_ns - connection.opened_ns);
        let Some(security) = &self.plan.security else {
            return self.establish(index);
        };
        connection.stage = Stage::Securing;
        connection.secured_ns = now_ns;
        self.sealed.clear();
        let begun = Tls::new(security)
            .map_err(Trouble::Tls)
            .and_then(|mut tls| {
                tls.receive(&mut [], &mut self.sealed, |_| Ok(()))?;
                Ok(tls)
            });
        match begun {
            Ok(tls) => {
                connection.tls = Some(Box::new(tls));
                self.transmit_sealed(index);
            }
            Err(trouble) => {
                self.note_tls_failure(format!("{trouble:?}"));
                self.lose(index, Cause::Fault);
            }
        }
    }

    /// TLS has shaken hands. Says whether what came of it will do.
    fn secure(&mut self, index: usize) -> bool {
        let now_ns = self.judge.now_ns;
        let connection = &self.connections[index];
        let tls = connection.tls.as_ref().expect("it has just finished");
        if let Some(objection) = tls.objection() {
            self.note_tls_failure(objection);
            return false;
        }
        let is_counting = self.judge.is_counting();
        let tally = &mut self.judge.tally;
        tally.handshake.record(now_ns - connection.secured_ns);
        tally.handshakes_resumed += u64::from(tls.is_resumed());
        if is_counting {
            tally.handshakes_in_window += 1;
            tally.resumed_in_window += u64::from(tls.is_resumed());
        }
        tally.tls_suite.get_or_insert_with(|| tls.describe());
        self.establish(index);
        true
    }

    fn establish(&mut self, index: usize) {
        let connection = &mut self.connections[index];
        connection.stage = Stage::Open;
        let opened_ns = connection.opened_ns;
        self.n_open += 1;
        let tally = &mut self.judge.tally;
        tally.connections_opened += 1;
        tally.open_max = tally.open_max.max(self.n_open);
        self.output.clear();
        connection.wire.open(&self.prepared, &mut self.output);
        if let Some(ticket) = self.connections[index].reserved.take() {
            self.ask(index, ticket);
        }
        if self.schedule.is_some() {
            self.transmit(index);
            return self.offer(index);
        }
        // The rest of the pipeline waited for the connection as well.
        while self.connections[index].has_room() && self.take() {
            let ticket = self.book(index, opened_ns, opened_ns);
            self.ask(index, ticket);
        }
        self.transmit(index);
    }

    /// Closes a connection, accounts for what was under way on it, and sees to its successor.
    fn lose(&mut self, index: usize, cause: Cause) {
        let now_ns = self.judge.now_ns;
        let timeout_ns = self.plan.timeout_ns;
        let connection = &mut self.connections[index];
        let is_over = connection.wire.is_over();
        let was_open = connection.stage == Stage::Open;
        let was_due_to_end = connection.n_asks_left == 0 && cause == Cause::Done;
        let cause = if connection.stage == Stage::Securing {
            if cause != Cause::Connect {
                self.judge.tally.connect_failures.tls += 1;
            }
            Cause::Connect
        } else {
            cause
        };
        self.n_open -= u64::from(was_open);
        connection.close();
        let lost = connection.flight.drain();
        self.judge.n_under_way -= lost.len();
        let is_unasked = lost.is_empty();
        for (ticket, sent) in lost {
            let has_begun = self.connections[index].wire.has_begun(ticket);
            let class = match cause {
                Cause::Connect => ErrorClass::Connect,
                // RFC 9112 §9.3.1: what a closing peer left unanswered may be asked again.
                Cause::Done | Cause::End | Cause::Reset if is_over => {
                    self.give_back(&sent);
                    continue;
                }
                Cause::End | Cause::Reset if has_begun => ErrorClass::Short,
                Cause::Fault if has_begun => ErrorClass::Protocol,
                Cause::TimedOut if now_ns - sent.sent_ns >= timeout_ns => ErrorClass::Timeout,
                _ => ErrorClass::Reset,
            };
            self.judge.fail(&sent, class);
        }
        match cause {
            Cause::Connect if is_unasked => self.judge.fail_unasked(ErrorClass::Connect),
            Cause::Fault if is_unasked => self.judge.fail_unasked(ErrorClass::Protocol),
            _ => {}
        }
        let is_lost = was_open && self.plan.transport.keep_alive && !was_due_to_end;
        if is_lost && self.judge.is_counting() {
            self.judge.tally.connections_lost += 1;
        }
        self.succeed(index);
    }

    /// A request that was sent and legitimately ignored is asked again, due when it was.
    fn give_back(&mut self, sent: &Sent) {
        if sent.counted {
            self.quota.give_back();
        }
        if self.schedule.is_some() {
            self.returned.push_back(sent.due_ns);
        }
    }

    /// Opens the successor of a lost connection: at once if it has answered, else after a wait
    /// that doubles with every failure in a row.
    fn succeed(&mut self, index: usize) {
        let connection = &mut self.connections[index];
        if matches!(self.plan.pace, Pace::Users { .. }) {
            // The request counts for the user, also if it failed.
            connection.n_loops_left = connection.n_loops_left.saturating_sub(1);
            if connection.n_loops_left == 0 {
                return;
            }
        }
        if connection.n_answers > 0 {
            connection.n_failures = 0;
            return self.revive(index);
        }
        let back_off_ns = (BACK_OFF_NS_MIN << connection.n_failures.min(16)).min(BACK_OFF_NS_MAX);
        connection.n_failures = connection.n_failures.saturating_add(1);
        self.retries
            .push(Reverse((self.judge.now_ns + back_off_ns, index)));
    }

    fn retry(&mut self) {
        while let Some(Reverse((retry_ns, index))) = self.retries.peek().copied()
            && retry_ns <= self.judge.now_ns
        {
            self.retries.pop();
            self.revive(index);
        }
    }

    /// Ends the connections whose oldest request has waited too long.
    fn sweep(&mut self) {
        let now_ns = self.judge.now_ns;
        self.sweep_ns = now_ns + self.sweep_step_ns;
        for index in 0..self.connections.len() {
            let connection = &self.connections[index];
            let (since_ns, is_connecting) = match connection.stage {
                Stage::Closed => continue,
                Stage::Connecting | Stage::Securing => (Some(connection.opened_ns), true),
                Stage::Open => (connection.flight.oldest_ns(), false),
            };
            if since_ns.is_none_or(|since_ns| now_ns - since_ns < self.plan.timeout_ns) {
                continue;
            }
            if is_connecting {
                self.fail_to_connect(index, Errno::TIMEDOUT);
            } else {
                self.lose(index, Cause::TimedOut);
            }
        }
    }

    fn publish(&self) {
        self.live
            .completed
            .store(self.judge.tally.completed, Ordering::Relaxed);
        self.live
            .errors
            .store(self.judge.tally.errors.total(), Ordering::Relaxed);
    }

    fn close_the_books(mut self) -> Tally {
        self.judge.tally.series.close();
        self.judge.tally.unanswered = self.judge.n_under_way as u64;
        if !self.quota.is_exhausted() {
            self.judge.tally.unsent = self.returned.len() as u64;
            if let Some(schedule) = &mut self.schedule {
                while schedule
                    .due_ns()
                    .is_some_and(|due_ns| due_ns < self.ended_ns)
                {
                    self.judge.tally.unsent += 1;
                    schedule.advance();
                }
            }
        }
        self.judge.tally
    }
}

/// One read. Room for a thousand small pipelined answers; larger does not fit the L2 cache.
const INPUT_BYTES: usize = 64 * 1024;
/// The same where bodies are being dropped: a usual head, and little of its body. Saves copying
/// 60 kB of a 134 kB answer: 22 % of its CPU time, median of ten interleaved rounds.
const HEAD_BYTES: usize = 4 * 1024;
/// Rest of a body from which on it is dropped in the kernel, unless it is compared: below, the
/// copy costs less than the second system call. Of a 134 kB answer it saves a sixth of the CPU time,
/// median of three interleaved rounds.
const DISCARD_BYTES_MIN: u64 = 16 * 1024;
const DISCARDED_BYTES: usize = 1024 * 1024;
/// Reads of one connection before the others have their turn; bounds an endless body.
const READS_PER_TURN: usize = 16;
const EVENTS_PER_TURN: usize = 1_024;
/// Timeouts are noticed a tenth too late at most.
const SWEEP_NS_MIN: u64 = 1_000_000;
/// Also the longest that Ctrl-C goes unnoticed.
const SWEEP_NS_MAX: u64 = 100_000_000;
/// First wait before a connection that never answered is opened again.
const BACK_OFF_NS_MIN: u64 = 1_000_000;
const BACK_OFF_NS_MAX: u64 = SECOND_NS;
