//! Reactors of one process that accept from the same sockets: a new connection goes to the one with the fewest.
//!
//! The kernel gives a connection to the thread that asks first, and the first of several idle ones has taken a whole burst
//! before the others are awake; connections that are kept alive would stay there. So a reactor that accepts while another
//! has fewer offers it the connection: it waits in the [`Balancer`] until that one's next turn.
//!
//! A reactor may be busy, with a handler that takes long, and a connection must not wait for it while others are idle. One that
//! has waited for [`OFFER_MS`] goes back to the reactor that comes first, and nothing more is offered to the late one until it
//! has turned. Invariant (I28): a connection that was accepted is in one table, or waits in the balancer at the place of a
//! member that has a wake-up coming. Tests: `tests/balancer.rs`, `tests/hosts/test_reactor_threads.py`.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use citius_http::Millis;

use crate::id::Peer;
use crate::mailbox::Mailbox;
use crate::system::Socket;

/// Milliseconds for which a connection waits for the reactor that it was offered to. Two ticks of the coarse clock: one may be
/// nearly over.
pub(crate) const OFFER_MS: Millis = 8;

/// The reactors that share their new connections; [`Reactor::share`] makes one a member.
#[derive(Debug, Default)]
pub struct Balancer {
    /// By number; `None`: it has left.
    members: Mutex<Vec<Option<Member>>>,
}

#[derive(Debug)]
struct Member {
    /// Connections in its table.
    connections: Arc<AtomicUsize>,
    /// Connections that wait for its next turn.
    offered: VecDeque<Offered>,
    /// It has let a connection wait for too long, and has not turned since.
    is_late: bool,
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
    pub(crate) since: Millis,
}

/// A reactor's part in a balancer; what waits for it when it is dropped is closed.
#[derive(Debug)]
pub(crate) struct Membership {
    pub(crate) balancer: Arc<Balancer>,
    number: usize,
    /// A timer will look after connections that wait.
    pub(crate) is_watching: bool,
}

impl Balancer {
    fn lock(&self) -> MutexGuard<'_, Vec<Option<Member>>> {
        // Nothing that is done under the lock can panic half-way.
        self.members.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The first connection that has waited for too long, whoever it waits for.
    pub(crate) fn take_late(&self, now: Millis) -> Option<Offered> {
        self.lock().iter_mut().flatten().find_map(|member| {
            let first = member.offered.front()?;
            if first.since + OFFER_MS > now {
                return None;
            }
            member.is_late = true;
            member.offered.pop_front()
        })
    }

    pub(crate) fn has_offers(&self) -> bool {
        let members = self.lock();
        members.iter().flatten().any(|one| !one.offered.is_empty())
    }
}

impl Membership {
    /// Makes a reactor a member: what counts its connections, and how it is woken.
    pub(crate) fn new(
        balancer: &Arc<Balancer>,
        connections: Arc<AtomicUsize>,
        mailbox: Arc<Mailbox>,
    ) -> Self {
        let mut members = balancer.lock();
        members.push(Some(Member {
            connections,
            offered: VecDeque::new(),
            is_late: false,
            mailbox,
        }));
        Self {
            balancer: Arc::clone(balancer),
            number: members.len() - 1,
            is_watching: false,
        }
    }

    /// Offers a connection to the member with the fewest; returned if that is this one.
    pub(crate) fn offer(&self, offered: Offered) -> Option<Offered> {
        let mut members = self.balancer.lock();
        let Some(Some(own)) = members.get(self.number) else {
            return Some(offered);
        };
        let own = own.load();
        let others = members.iter_mut().flatten().filter(|one| !one.is_late);
        let Some(least) = others.min_by_key(|one| one.load()) else {
            return Some(offered);
        };
        if least.load() >= own {
            return Some(offered);
        }
        least.offered.push_back(offered);
        // Those before it have woken the member.
        if least.offered.len() == 1 {
            least.mailbox.wake();
        }
        None
    }

    /// The first connection that waits for this reactor, which turns.
    pub(crate) fn take(&self) -> Option<Offered> {
        let mut members = self.balancer.lock();
        let member = members.get_mut(self.number)?.as_mut()?;
        member.is_late = false;
        member.offered.pop_front()
    }

    /// Takes no more offers; returns what waits.
    pub(crate) fn leave(&self) -> VecDeque<Offered> {
        let mut members = self.balancer.lock();
        let member = members.get_mut(self.number).and_then(Option::take);
        member.map(|member| member.offered).unwrap_or_default()
    }
}

impl Drop for Membership {
    fn drop(&mut self) {
        self.leave();
    }
}
