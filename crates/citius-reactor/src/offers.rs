//! New connections that reactors offer each other ([`Balancer`]): from an accepting reactor to the one with the fewest, and back
//! from one that lets them wait.
//!
//! In: accepted sockets, wake-ups, a timer. Out: connections of this reactor, or offers to others. Tests: `tests/balancer.rs`.

use std::sync::Arc;

use crate::balancer::{Balancer, Membership, OFFER_MS, Offered};
use crate::clock::coarse_ms;
use crate::id::{ConnectionId, Peer};
use crate::reactor::{Reactor, TIMER_OFFERS};
use crate::readiness::INDEX_LISTENER;
use crate::service::Service;
use crate::system::Socket;

impl Reactor {
    /// Shares new connections with the other members of `balancer`. All listen at the same sockets, in one order.
    pub fn share(&mut self, balancer: &Arc<Balancer>) {
        let membership = Membership::new(balancer, self.table.counter(), self.mailbox());
        self.membership = Some(membership);
    }

    /// Offers a connection to a reactor that has fewer; returned if there is none.
    pub(crate) fn offer(
        &mut self,
        listener: usize,
        socket: Socket,
        peer: Peer,
    ) -> Option<(Socket, Peer)> {
        let Some(membership) = &mut self.membership else {
            return Some((socket, peer));
        };
        let since = coarse_ms();
        let offered = Offered {
            listener,
            socket,
            peer,
            since,
        };
        if let Some(kept) = membership.offer(offered) {
            return Some((kept.socket, kept.peer));
        }
        if !std::mem::replace(&mut membership.is_watching, true) {
            self.timers.push(since + OFFER_MS, OFFERS);
        }
        None
    }

    /// Takes up what others have offered, as far as the turn has time.
    pub(crate) fn take_offers<S: Service>(&mut self, service: &mut S) {
        while let Some(offered) = self.membership.as_ref().and_then(Membership::take) {
            self.take_up_offered(offered, service);
            if self.is_over_time() {
                // The rest comes with the next turn, of this reactor or of one that is idle.
                self.mailbox.wake();
                return;
            }
        }
    }

    /// Takes up what others have left waiting.
    pub(crate) fn take_late_offers<S: Service>(&mut self, service: &mut S) {
        let Some(membership) = &self.membership else {
            return;
        };
        let balancer = Arc::clone(&membership.balancer);
        let now = self.tools.clock.now;
        self.begin_timing();
        while let Some(offered) = balancer.take_late(now) {
            self.take_up_offered(offered, service);
            if self.is_over_time() {
                break;
            }
        }
        let has_offers = balancer.has_offers();
        if has_offers {
            self.timers.push(now + OFFER_MS, OFFERS);
        }
        if let Some(membership) = &mut self.membership {
            membership.is_watching = has_offers;
        }
    }

    /// Leaves the balancer, and takes up what waits for this reactor.
    pub(crate) fn leave_balancer<S: Service>(&mut self, service: &mut S) {
        if let Some(membership) = self.membership.take() {
            for offered in membership.leave() {
                self.take_up_offered(offered, service);
            }
        }
    }

    fn take_up_offered<S: Service>(&mut self, offered: Offered, service: &mut S) {
        // One that the poller has no memory for is closed, as if it had just been accepted.
        if let Ok(Some(id)) = self.take_up(offered.listener, offered.socket, offered.peer, service)
        {
            self.look_for_slow(id, service);
        }
    }
}

/// The timer that looks after offers.
const OFFERS: ConnectionId = ConnectionId {
    index: INDEX_LISTENER,
    generation: TIMER_OFFERS,
};
