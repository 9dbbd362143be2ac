//! New connections that reactors offer each other ([`Balancer`]): from an accepting reactor to the one with the fewest, and from
//! one that lets them wait to one that is idle.
//!
//! In: accepted sockets, wake-ups, the balancer's alarm. Out: connections of this reactor, or offers to others. Tests:
//! `tests/balancer.rs`.

use std::sync::Arc;

use crate::balancer::{Balancer, Membership, Offered};
use crate::id::Peer;
use crate::reactor::Reactor;
use crate::service::Service;
use crate::system::{Result, Socket};

impl Reactor {
    /// Shares new connections with the other members of `balancer`. All listen at the same sockets, in one order.
    ///
    /// # Errors
    /// The poller has no memory for the balancer's alarm, or watches none.
    pub fn share(&mut self, balancer: &Arc<Balancer>) -> Result<()> {
        let (connections, mailbox) = (self.table.counter(), self.mailbox());
        let membership = Membership::new(balancer, &self.poller, connections, mailbox)?;
        self.membership = Some(membership);
        Ok(())
    }

    /// Offers a connection to a reactor that has fewer; returned if there is none.
    pub(crate) fn offer(
        &self,
        listener: usize,
        socket: Socket,
        peer: Peer,
    ) -> Option<(Socket, Peer)> {
        match &self.membership {
            Some(membership) => membership.offer(listener, socket, peer),
            None => Some((socket, peer)),
        }
    }

    /// Takes up what others have offered, as far as the turn has time.
    pub(crate) fn take_offers<S: Service>(&mut self, service: &mut S) {
        if self.membership.as_ref().is_some_and(Membership::is_wanted) {
            self.take_while_there_is_time(Membership::take, service);
        }
    }

    /// The alarm has rung: takes up what others have left waiting.
    pub(crate) fn take_late_offers<S: Service>(&mut self, service: &mut S) {
        if self.membership.is_some() {
            self.take_while_there_is_time(Membership::take_late, service);
        }
    }

    /// What is left over is for the next turn: of this reactor, or of one that the alarm finds idle.
    fn take_while_there_is_time<S: Service>(
        &mut self,
        take: fn(&Membership) -> Option<Offered>,
        service: &mut S,
    ) {
        while let Some(offered) = self.membership.as_ref().and_then(take) {
            if !self.take_up_offered(offered, service) {
                return;
            }
            if self.is_over_time() {
                self.mailbox.wake();
                return;
            }
        }
    }

    /// Leaves the balancer, and takes up what waits there.
    pub(crate) fn leave_balancer<S: Service>(&mut self, service: &mut S) {
        for offered in self
            .membership
            .take()
            .map_or_else(Vec::new, Membership::leave)
        {
            self.take_up_offered(offered, service);
        }
    }

    /// Whether more can be taken: one that the poller has no memory for is closed, as if it had just been accepted.
    fn take_up_offered<S: Service>(&mut self, offered: Offered, service: &mut S) -> bool {
        match self.take_up(offered.listener, offered.socket, offered.peer, service) {
            Ok(Some(id)) => {
                self.look_for_slow(id, service);
                true
            }
            Ok(None) => true,
            Err(_) => false,
        }
    }
}
