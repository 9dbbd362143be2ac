//! The requests under way on one connection, each with the instants its latency is taken from.

use crate::wire::Ticket;

/// One request from the moment a connection begins to work on it until it is accounted for.
#[expect(
    clippy::struct_field_names,
    reason = "`sent_ns` is the instant of being sent"
)]
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sent {
    /// When it should have been sent; equals `sent_ns` in the closed loop.
    pub(crate) due_ns: u64,
    /// When the connection began to work on it: before `connect` if it had to be opened for this
    /// request, else before the write.
    pub(crate) sent_ns: u64,
    /// Which request of the mix.
    pub(crate) entry: u32,
    /// Whether its answer or error enters the books.
    pub(crate) counted: bool,
    pub(crate) status: u16,
    pub(crate) comparison: Comparison,
    /// Body bytes of the answer so far.
    pub(crate) n_body: u64,
}

/// Whether the body of an answer is looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Comparison {
    Off,
    SameSoFar,
    Different,
}

/// As many slots as requests may be under way at once.
///
/// Invariant: a ticket is either in `free` or names a slot that is `Some`.
#[derive(Debug)]
pub(crate) struct Flight {
    slots: Box<[Option<Sent>]>,
    free: Vec<Ticket>,
}

impl Flight {
    pub(crate) fn new(depth: Ticket) -> Self {
        Self {
            slots: vec![None; usize::from(depth)].into(),
            free: (0..depth).rev().collect(),
        }
    }

    #[inline]
    pub(crate) fn has_room(&self) -> bool {
        !self.free.is_empty()
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.free.len() == self.slots.len()
    }

    /// The caller has seen that there is room.
    #[inline]
    pub(crate) fn insert(&mut self, sent: Sent) -> Ticket {
        let ticket = self
            .free
            .pop()
            .expect("the caller has seen that there is room");
        self.slots[usize::from(ticket)] = Some(sent);
        ticket
    }

    /// The caller owns `ticket`.
    #[inline]
    pub(crate) fn of(&self, ticket: Ticket) -> &Sent {
        self.slots[usize::from(ticket)]
            .as_ref()
            .expect("the ticket is under way")
    }

    /// The caller owns `ticket`.
    #[inline]
    pub(crate) fn of_mut(&mut self, ticket: Ticket) -> &mut Sent {
        self.slots[usize::from(ticket)]
            .as_mut()
            .expect("the ticket is under way")
    }

    /// Ends the request; the ticket is free for another.
    #[inline]
    pub(crate) fn remove(&mut self, ticket: Ticket) -> Sent {
        self.free.push(ticket);
        self.slots[usize::from(ticket)]
            .take()
            .expect("the ticket is under way")
    }

    /// Ends all requests, oldest due first.
    pub(crate) fn drain(&mut self) -> Vec<(Ticket, Sent)> {
        let n_slots = Ticket::try_from(self.slots.len()).expect("made from a Ticket");
        let mut all: Vec<_> = (0..n_slots)
            .zip(self.slots.iter_mut())
            .filter_map(|(ticket, slot)| Some((ticket, slot.take()?)))
            .collect();
        all.sort_by_key(|(_, sent)| sent.due_ns);
        self.free = (0..n_slots).rev().collect();
        all
    }

    /// The earliest instant at which work on a request that is still under way began.
    pub(crate) fn oldest_ns(&self) -> Option<u64> {
        self.slots.iter().flatten().map(|sent| sent.sent_ns).min()
    }

    /// Whether any answer being read is compared with what is expected.
    #[inline]
    pub(crate) fn is_comparing(&self) -> bool {
        self.slots
            .iter()
            .flatten()
            .any(|sent| sent.comparison != Comparison::Off)
    }
}

#[cfg(test)]
mod tests {
    use super::{Comparison, Flight, Sent};

    fn sent(due_ns: u64) -> Sent {
        Sent {
            due_ns,
            sent_ns: 100 - due_ns,
            entry: 0,
            counted: true,
            status: 0,
            comparison: Comparison::Off,
            n_body: 0,
        }
    }

    #[test]
    fn tickets_are_unique_while_under_way_and_reused_after() {
        let mut flight = Flight::new(2);
        let (first, second) = (flight.insert(sent(1)), flight.insert(sent(2)));
        assert_ne!(first, second);
        assert!(!flight.has_room());
        assert_eq!(flight.remove(first).due_ns, 1);
        assert_eq!(flight.insert(sent(3)), first);
        assert_eq!((flight.of(first).due_ns, flight.of(second).due_ns), (3, 2));
    }

    #[test]
    fn draining_ends_all_in_order_of_being_due() {
        let mut flight = Flight::new(3);
        for due_ns in [5, 4, 9] {
            flight.insert(sent(due_ns));
        }
        assert_eq!(flight.oldest_ns(), Some(91));
        let dues: Vec<u64> = flight.drain().iter().map(|(_, sent)| sent.due_ns).collect();
        assert_eq!(dues, [4, 5, 9]);
        assert!(flight.is_empty() && flight.oldest_ns().is_none());
    }
}
