//! Reactors of one process that accept from the same sockets: a new connection goes to the one with the fewest.
//!
//! The kernel gives a connection to the thread that asks first, and the first of several idle ones has taken a whole burst
//! before the others are awake; connections that are kept alive would stay there. So a reactor that accepts while another
//! has fewer offers it the connection: it waits in the [`Balancer`] until that one's next turn.
//!
//! A reactor may be busy, with a handler that takes long, and a connection must not wait for it while others are idle. So an
//! offer is for a time: then an alarm in the pollers of all members wakes those that are idle, and the first of them takes the
//! connection. Nothing more is offered to the late one until it has turned. Invariant (I28): a connection that was accepted is in one
//! table, or waits in the balancer at the place of a member that has a wake-up coming, and the alarm is set for it. Tests:
//! `tests/balancer.rs`, `tests/hosts/test_reactor_threads.py`.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::clock::exact_ns;
use crate::id::Peer;
use crate::mailbox::Mailbox;
use crate::poller::Poller;
use crate::system::{Alarm, Result, Socket};

/// The reactors that share their new connections; [`Reactor::share`](crate::Reactor::share) makes one a member.
#[derive(Debug)]
pub struct Balancer {
    patience_ns: u64,
    state: Mutex<State>,
    /// Connections in all queues, so that a reactor sees without the lock that none waits.
    waiting: AtomicUsize,
}

#[derive(Debug)]
struct State {
    /// By number; `None`: it has left.
    members: Vec<Option<Member>>,
    /// Rings in the pollers of all members when a connection has waited for too long.
    alarm: Alarm,
}

#[derive(Debug)]
struct Member {
    /// Connections in its table.
    connections: Arc<AtomicUsize>,
    /// Connections that wait for its next turn, the first one first.
    offered: VecDeque<Offered>,
    /// It has let a connection wait for too long, and has not turned since.
    is_late: Arc<AtomicBool>,
    /// It accepts nothing for a while, for want of descriptors or memory.
    is_paused: bool,
    mailbox: Arc<Mailbox>,
}

impl Member {
    fn load(&self) -> usize {
        self.connections.load(Ordering::Relaxed) + self.offered.len()
    }
}

/// A connection that was accepted and waits for a reactor.
#[derive(Debug)]
pub(crate) struct Offered {
    /// The number of the listener, which is the same with all members.
    pub(crate) listener: usize,
    pub(crate) socket: Socket,
    pub(crate) peer: Peer,
    /// Time of the monotonic clock in nanoseconds from which any member may take it.
    late_at: u64,
}

/// A reactor's part in a balancer; what waits for it when it is dropped is closed.
#[derive(Debug)]
pub(crate) struct Membership {
    balancer: Arc<Balancer>,
    number: usize,
    /// That of the member.
    is_late: Arc<AtomicBool>,
}

impl Balancer {
    /// Without members.
    ///
    /// # Arguments
    /// `patience`: how long a connection waits for a reactor that is busy.
    ///
    /// # Errors
    /// The kernel refuses a timer; systems other than Linux have none.
    pub fn new(patience: Duration) -> Result<Self> {
        Ok(Self {
            patience_ns: u64::try_from(patience.as_nanos()).unwrap_or(u64::MAX),
            state: Mutex::new(State {
                members: Vec::new(),
                alarm: Alarm::new()?,
            }),
            waiting: AtomicUsize::new(0),
        })
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // Nothing that is done under the lock can panic half-way.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Updates what depends on the queues: the number of waiting connections, and the alarm for the first of them.
    fn note(&self, state: &mut State) {
        let members = state.members.iter().flatten();
        let waiting = members.clone().map(|one| one.offered.len()).sum();
        self.waiting.store(waiting, Ordering::Release);
        let first = members.filter_map(|one| one.offered.front());
        if let Some(late_at) = first.map(|offered| offered.late_at).min() {
            // It is not disarmed: ringing in vain once costs less than a call for each burst.
            state.alarm.arm(late_at);
        }
    }
}

impl Membership {
    /// Makes a reactor a member: where it polls, what counts its connections, and how it is woken.
    ///
    /// # Errors
    /// The poller does not take the alarm.
    pub(crate) fn new(
        balancer: &Arc<Balancer>,
        poller: &Poller,
        connections: Arc<AtomicUsize>,
        mailbox: Arc<Mailbox>,
    ) -> Result<Self> {
        let is_late = Arc::new(AtomicBool::new(false));
        let mut state = balancer.lock();
        poller.add_shared_alarm(&state.alarm)?;
        state.members.push(Some(Member {
            connections,
            offered: VecDeque::new(),
            is_late: Arc::clone(&is_late),
            is_paused: false,
            mailbox,
        }));
        Ok(Self {
            balancer: Arc::clone(balancer),
            number: state.members.len() - 1,
            is_late,
        })
    }

    /// Offers a connection to the member with the fewest; returned if that is this one.
    pub(crate) fn offer(
        &self,
        listener: usize,
        socket: Socket,
        peer: Peer,
    ) -> Option<(Socket, Peer)> {
        let mut state = self.balancer.lock();
        let Some(Some(own)) = state.members.get(self.number) else {
            return Some((socket, peer));
        };
        let own = own.load();
        let open = state.members.iter_mut().flatten();
        let least = open
            .filter(|one| !one.is_paused && !one.is_late.load(Ordering::Relaxed))
            .min_by_key(|one| one.load());
        let Some(least) = least.filter(|one| one.load() < own) else {
            return Some((socket, peer));
        };
        least.offered.push_back(Offered {
            listener,
            socket,
            peer,
            late_at: exact_ns().saturating_add(self.balancer.patience_ns),
        });
        // Those before it have woken the member.
        if least.offered.len() == 1 {
            least.mailbox.wake();
        }
        self.balancer.note(&mut state);
        None
    }

    /// Takes the first connection that was offered to this reactor, which is therefore not late.
    pub(crate) fn take(&self) -> Option<Offered> {
        self.is_late.store(false, Ordering::Relaxed);
        let mut state = self.balancer.lock();
        let member = state.members.get_mut(self.number)?.as_mut()?;
        let first = member.offered.pop_front();
        self.balancer.note(&mut state);
        first
    }

    /// Takes the first connection whose time is over, from the queue of any member, and sets the alarm for the next one.
    pub(crate) fn take_late(&self) -> Option<Offered> {
        let now = exact_ns();
        let mut state = self.balancer.lock();
        state.alarm.fired();
        let found = state.members.iter_mut().flatten().find_map(|member| {
            if member.offered.front()?.late_at > now {
                return None;
            }
            member.is_late.store(true, Ordering::Relaxed);
            member.offered.pop_front()
        });
        self.balancer.note(&mut state);
        found
    }

    /// Whether `take` has anything to do; without the lock.
    #[inline]
    pub(crate) fn is_wanted(&self) -> bool {
        self.balancer.waiting.load(Ordering::Acquire) > 0 || self.is_late.load(Ordering::Relaxed)
    }

    /// Takes no offers for a while, or takes them again.
    pub(crate) fn pause(&self, is_paused: bool) {
        let mut state = self.balancer.lock();
        if let Some(Some(member)) = state.members.get_mut(self.number) {
            member.is_paused = is_paused;
        }
    }

    /// Takes no more offers, and takes what waits in the queues of all members: the others are about to stop too, and may be
    /// too busy to take what waits for them.
    pub(crate) fn leave(self) -> Vec<Offered> {
        let mut state = self.balancer.lock();
        let waiting = state.members.iter_mut().flatten();
        let found = waiting
            .flat_map(|member| member.offered.drain(..))
            .collect();
        if let Some(member) = state.members.get_mut(self.number) {
            *member = None;
        }
        self.balancer.note(&mut state);
        found
    }
}

impl Drop for Membership {
    fn drop(&mut self) {
        let mut state = self.balancer.lock();
        let member = state.members.get_mut(self.number).and_then(Option::take);
        for offered in member.into_iter().flat_map(|member| member.offered) {
            // A process that a handler has forked may hold it open.
            offered.socket.shut_down();
        }
        self.balancer.note(&mut state);
    }
}
