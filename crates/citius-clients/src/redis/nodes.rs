//! The servers of a client, their connections, and the calls that wait for one.
//!
//! A server has two lanes: connections that calls share, of which a call goes to the least busy, and connections that do one
//! call at a time, because the server may keep it waiting. Python makes and ends connections.

use std::collections::VecDeque;

use pyo3::PyClass;
use pyo3::prelude::*;
use pyo3::pyclass::boolean_struct::True;

/// A connection, as what shares calls `Q` out among several knows it.
pub(crate) trait Shares<Q>: PyClass<Frozen = True> + Sync {
    /// Calls that are under way.
    fn load(&self) -> usize;

    /// Whether it has something that has not left: what is added leaves with it.
    fn is_unsent(&self) -> bool;

    /// Whether a call is under way on it.
    fn has(&self, call: &Bound<'_, Q>) -> bool;
}

/// Connections of one kind to one server.
pub(crate) struct Lane<C, Q> {
    pub(crate) connections: Vec<Py<C>>,
    /// The one that got the last call.
    latest: usize,
    pub(crate) queue: VecDeque<Py<Q>>,
}

/// A server.
pub(crate) struct Node<C, Q> {
    /// `host:port`; of a cluster's only.
    pub(crate) address: String,
    pub(crate) shared: Lane<C, Q>,
    pub(crate) blocking: Lane<C, Q>,
}

/// Where a call waits or goes: the number of the server, and whether it may be kept waiting there.
pub(crate) type Place = (usize, bool);

/// A call that no node of a cluster could serve.
pub(crate) struct Parked<Q> {
    pub(crate) call: Py<Q>,
    /// What the node has said that was asked last.
    pub(crate) error: Box<[u8]>,
}

/// All servers of a client.
pub(crate) struct Nodes<C, Q> {
    pub(crate) list: Vec<Node<C, Q>>,
    /// Of a cluster: the server of each slot.
    slots: Option<Box<[u16]>>,
    /// Calls that are sent again in a moment.
    pub(crate) parked: VecDeque<Parked<Q>>,
    /// All connections that have logged in, those that callers have for themselves too.
    pub(crate) open: Vec<Py<C>>,
    pub(crate) is_closed: bool,
}

/// No server is known for a slot.
const NOWHERE: u16 = u16::MAX;

impl<C, Q> Default for Lane<C, Q> {
    fn default() -> Self {
        Self {
            connections: Vec::new(),
            latest: 0,
            queue: VecDeque::new(),
        }
    }
}

impl<C, Q> Default for Node<C, Q> {
    fn default() -> Self {
        Self {
            address: String::new(),
            shared: Lane::default(),
            blocking: Lane::default(),
        }
    }
}

impl<C, Q> Default for Nodes<C, Q> {
    fn default() -> Self {
        Self {
            list: Vec::new(),
            slots: None,
            parked: VecDeque::new(),
            open: Vec::new(),
            is_closed: false,
        }
    }
}

impl<C: Shares<Q>, Q> Lane<C, Q> {
    /// The connection for the next shared call: one that has something to send already, so that it leaves in the same
    /// write; else the least busy.
    #[inline]
    pub(crate) fn pick(&mut self, py: Python<'_>) -> Option<Py<C>> {
        match self.connections.as_slice() {
            [] => None,
            [only] => Some(only.clone_ref(py)),
            several => {
                let latest = several.get(self.latest);
                if let Some(latest) = latest
                    && latest.get().is_unsent()
                    && latest.get().load() < SAME_WRITE_MAX
                {
                    return Some(latest.clone_ref(py));
                }
                let loads = several.iter().map(|it| it.get().load()).enumerate();
                let (at, _) = loads.min_by_key(|&(_, load)| load)?;
                self.latest = at;
                Some(several[at].clone_ref(py))
            }
        }
    }

    /// The call that has waited longest, and a connection for it.
    pub(crate) fn next(
        &mut self,
        py: Python<'_>,
        is_blocking: bool,
        load_max: usize,
    ) -> Option<(Py<C>, Py<Q>)> {
        if self.queue.is_empty() {
            return None;
        }
        let connection = if is_blocking {
            self.pick_idle(py)
        } else {
            self.pick(py)
        };
        let connection = connection.filter(|it| it.get().load() < load_max)?;
        Some((connection, self.queue.pop_front()?))
    }

    /// A connection on which nothing is under way.
    pub(crate) fn pick_idle(&self, py: Python<'_>) -> Option<Py<C>> {
        let idle = self.connections.iter().find(|it| it.get().load() == 0)?;
        Some(idle.clone_ref(py))
    }

    pub(crate) fn remove(&mut self, connection: &Py<C>) -> bool {
        let at = self.connections.iter().position(|it| it.is(connection));
        if let Some(at) = at {
            self.connections.swap_remove(at);
            self.latest = 0;
        }
        at.is_some()
    }
}

/// Calls of one turn that go to the same connection while others are less busy, to leave in one write.
const SAME_WRITE_MAX: usize = 64;

impl<C: Shares<Q>, Q> Nodes<C, Q> {
    pub(crate) fn lane(&mut self, place: Place) -> Option<&mut Lane<C, Q>> {
        let node = self.list.get_mut(place.0)?;
        Some(if place.1 {
            &mut node.blocking
        } else {
            &mut node.shared
        })
    }

    pub(crate) fn lanes(&mut self) -> impl Iterator<Item = &mut Lane<C, Q>> {
        let nodes = self.list.iter_mut();
        nodes.flat_map(|node| [&mut node.shared, &mut node.blocking])
    }

    /// Takes a call out of the queue that it is in.
    pub(crate) fn take_queued(&mut self, call: &Bound<'_, Q>) -> Option<Py<Q>> {
        let is_it = |queued: &Py<Q>| queued.is(call);
        if let Some(at) = self.parked.iter().position(|one| is_it(&one.call)) {
            return self.parked.remove(at).map(|one| one.call);
        }
        self.lanes().find_map(|lane| {
            let at = lane.queue.iter().position(is_it)?;
            lane.queue.remove(at)
        })
    }

    /// The connection on which a call is under way.
    pub(crate) fn connection_of(&mut self, py: Python<'_>, call: &Bound<'_, Q>) -> Option<Py<C>> {
        self.lanes().find_map(|lane| {
            let found = lane.connections.iter().find(|it| it.get().has(call))?;
            Some(found.clone_ref(py))
        })
    }

    /// Whether keys have servers of their own.
    pub(crate) fn is_cluster(&self) -> bool {
        self.slots.is_some()
    }

    /// The server that has a key; for a command without one, any. `None` if it is not known.
    #[inline]
    pub(crate) fn route(&self, key: impl FnOnce() -> Option<u16>) -> Option<usize> {
        let Some(slots) = &self.slots else {
            return Some(0);
        };
        let Some(slot) = key() else {
            return self.any();
        };
        let node = *slots.get(usize::from(slot))?;
        (node != NOWHERE).then_some(usize::from(node))
    }

    /// A server that has a connection, the least busy.
    fn any(&self) -> Option<usize> {
        let load = |node: &Node<C, Q>| {
            let loads = node.shared.connections.iter().map(|it| it.get().load());
            loads.min()
        };
        let nodes = self.list.iter().enumerate();
        let loaded = nodes.filter_map(|(at, node)| Some((load(node)?, at)));
        loaded.min().map(|(_, at)| at)
    }

    /// The number of the server at an address.
    pub(crate) fn find_or_add(&mut self, address: &str) -> usize {
        if let Some(at) = self.list.iter().position(|node| node.address == address) {
            return at;
        }
        self.list.push(Node {
            address: address.to_owned(),
            ..Node::default()
        });
        self.list.len() - 1
    }

    /// Whether a server has connections that calls share.
    pub(crate) fn is_connected(&self, node: usize) -> bool {
        let node = self.list.get(node);
        node.is_some_and(|node| !node.shared.connections.is_empty())
    }

    /// The servers that have slots, each once; empty without a cluster.
    pub(crate) fn masters(&self) -> Vec<usize> {
        let mut masters: Vec<usize> = Vec::new();
        let mut latest = NOWHERE;
        for &owner in self.slots.as_deref().unwrap_or_default() {
            if owner != latest && owner != NOWHERE && !masters.contains(&usize::from(owner)) {
                masters.push(usize::from(owner));
            }
            latest = owner;
        }
        masters
    }

    /// Has a slot belong to a server.
    pub(crate) fn set_slot(&mut self, slot: u16, node: usize) {
        let owner = u16::try_from(node).unwrap_or(NOWHERE);
        if let Some(slots) = &mut self.slots
            && let Some(slot) = slots.get_mut(usize::from(slot))
        {
            *slot = owner;
        }
    }

    /// Has slots belong to servers: the first one, the last one, and the server's number.
    pub(crate) fn set_slots(&mut self, ranges: &[(u16, u16, usize)]) {
        let mut slots = vec![NOWHERE; usize::from(citius_redis::SLOTS)].into_boxed_slice();
        for &(first, last, node) in ranges {
            let owner = u16::try_from(node).unwrap_or(NOWHERE);
            if let Some(range) = slots.get_mut(usize::from(first)..=usize::from(last)) {
                range.fill(owner);
            }
        }
        self.slots = Some(slots);
    }

    /// Calls that wait for a connection, or to be sent again.
    pub(crate) fn queued(&self) -> usize {
        let nodes = self.list.iter();
        let queued = nodes.map(|node| node.shared.queue.len() + node.blocking.queue.len());
        queued.sum::<usize>() + self.parked.len()
    }
}
