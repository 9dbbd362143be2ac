//! Calls whose keys are elsewhere: where they are sent next, and when they are given up.
//!
//! A redirection is followed at once, to the node that it names. A node that cannot say where the keys of a command are, because some
//! have moved and others have not, leaves nothing but to send the command again in a moment; so do nodes that send it to one another.
//! A command of several keys gets both by turns while its slot moves: `ASK` from the node that has none of them, `TRYAGAIN` from the
//! other one. Only the time of the call ends that. Tests: `tests/redis/test_migrating.py`.

use citius_base::sync::lock;
use citius_observe::ClientCounter;
use citius_reactor::coarse_ms;
use citius_redis::Redirect;
use pyo3::prelude::*;

use super::call::{RedisCall, Work};
use super::client::Nodes;
use super::client::RedisClient;
use super::errors::{not_served, server_error};
use super::nodes::Parked;
use super::reply::{Blobs, Shape, Then};

/// How long after such an error a call is sent again.
const PAUSE_MS: u64 = 50;

impl RedisClient {
    /// Follows what a node of a cluster says about where a key is.
    pub(super) fn follow(
        slf: &Bound<'_, Self>,
        node: usize,
        call: Py<RedisCall>,
        redirect: Redirect<'_>,
        error: &[u8],
    ) {
        let (py, this) = (slf.py(), slf.get());
        if redirect == Redirect::Again || !call.get().may_follow() {
            return Self::park(slf, call, error);
        }
        call.get().set_asking(matches!(redirect, Redirect::Ask(..)));
        let target = this.note_redirect(py, node, redirect).unwrap_or(node);
        Self::send_again(slf, target, call);
    }

    /// The server that a node says a key is at; `None` if it cannot say.
    pub(super) fn note_redirect(
        &self,
        py: Python<'_>,
        node: usize,
        redirect: Redirect<'_>,
    ) -> Option<usize> {
        match redirect {
            Redirect::Moved(slot, address) => Some(self.note(py, node, address, Some(slot))),
            Redirect::Ask(_, address) => Some(self.note(py, node, address, None)),
            Redirect::Again => None,
        }
    }

    /// The server that another one has named, which will be connected; of a slot that has moved it is the owner.
    fn note(&self, py: Python<'_>, node: usize, address: &str, moved: Option<u16>) -> usize {
        let (target, is_connected) = {
            let mut nodes = lock(&self.nodes);
            let address = full_address(&nodes, node, address);
            let target = nodes.find_or_add(&address);
            if let Some(slot) = moved {
                nodes.set_slot(slot, target);
            }
            (target, nodes.is_connected(target))
        };
        if !is_connected {
            self.tell(py, "node", target);
        }
        if moved.is_some() {
            self.tell(py, "moved", target);
        }
        target
    }

    /// Sends a call again in a moment, because of an error that passes; fails it with that error if its time is up by then.
    fn park(slf: &Bound<'_, Self>, call: Py<RedisCall>, error: &[u8]) {
        let (py, this) = (slf.py(), slf.get());
        if !call.get().has_time_until(coarse_ms() + PAUSE_MS) {
            return Self::give_up(slf, &call, error);
        }
        call.get().forget_redirects();
        let parked = Parked {
            call,
            error: error.into(),
        };
        lock(&this.nodes).parked.push_back(parked);
        let error = server_error(py, error).into_value(py);
        this.tell(py, "parked", (error, PAUSE_MS));
    }

    /// Fails a call that no node has served in time.
    pub(super) fn give_up(slf: &Bound<'_, Self>, call: &Py<RedisCall>, error: &[u8]) {
        if let Some(metrics) = slf.get().metrics() {
            metrics.count(ClientCounter::Refused);
        }
        Self::finish(slf, call, Err(not_served(slf.py(), error)), false);
    }

    /// The call for a connection in place of the one that `call` had, whose node has refused what it was for with `error`.
    ///
    /// It is to the node that the error leads to, or comes in a moment; `None` if the error leads nowhere.
    ///
    /// # Errors
    /// The time of the first call is up.
    pub(super) fn acquire_after(
        slf: &Bound<'_, Self>,
        call: &RedisCall,
        node: usize,
        error: &[u8],
    ) -> PyResult<Option<Py<RedisCall>>> {
        let (py, this) = (slf.py(), slf.get());
        let (Work::Acquire(key), Some(redirect)) = (&call.work, Redirect::of(error)) else {
            return Ok(None);
        };
        if !lock(&this.nodes).is_cluster() {
            return Ok(None);
        }
        let mut next = RedisCall::new(
            slf.clone().unbind(),
            None,
            Work::Acquire(key.clone()),
            Shape {
                blobs: Blobs::Bytes,
                then: Then::Value,
            },
        );
        next.go_on_from(call);
        let may_follow = redirect != Redirect::Again && next.may_follow();
        if may_follow {
            next.node = this.note_redirect(py, node, redirect);
            next.set_asking(matches!(redirect, Redirect::Ask(..)));
            return Py::new(py, next).map(Some);
        }
        if !next.has_time_until(coarse_ms() + PAUSE_MS) {
            return Err(not_served(py, error));
        }
        let next = Py::new(py, next)?;
        next.get().begin();
        this.arm(py);
        Self::park(slf, next.clone_ref(py), error);
        Ok(Some(next))
    }
}

/// An address as a node gives it: one without a host is on the host of that node, and so is, until the slots are read
/// anew, one of which the node does not know the name (`?`).
fn full_address(nodes: &Nodes, node: usize, address: &str) -> String {
    let own = nodes
        .list
        .get(node)
        .map_or("", |node| node.address.as_str());
    let port = address.strip_prefix('?').unwrap_or(address);
    match (port.strip_prefix(':'), own.rsplit_once(':')) {
        (Some(port), Some((host, _))) => format!("{host}:{port}"),
        _ => address.to_owned(),
    }
}
