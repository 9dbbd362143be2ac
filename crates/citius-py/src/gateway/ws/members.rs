//! Who is in a room, and what each member keeps of it, to leave at its end. Tests: `tests/gateway/`, `tests/server/`.

use std::collections::BTreeSet;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, Weak};

use citius_base::reactor_handle::ReactorHandle;
use citius_base::sync::lock;
use citius_reactor::StreamId;

/// Who is in a room, by the reactor that serves them.
#[derive(Default)]
pub(crate) struct Members {
    /// Mostly one reactor's.
    pub(crate) places: Mutex<Vec<Place>>,
    /// Messages that a member was too slow for.
    pub(crate) missed: Arc<AtomicU64>,
}

pub(crate) struct Place {
    pub(crate) handle: Arc<ReactorHandle>,
    pub(crate) ids: BTreeSet<StreamId>,
}

/// What a socket keeps of a room it is in.
pub(crate) struct Membership(Weak<Members>);

impl Membership {
    /// Whether both are of one room.
    pub(crate) fn is(&self, other: &Self) -> bool {
        self.0.ptr_eq(&other.0)
    }

    /// The socket is over.
    pub(crate) fn end(&self, handle: &Arc<ReactorHandle>, id: StreamId) {
        if let Some(members) = self.0.upgrade() {
            members.remove(handle, id);
        }
    }
}

impl Members {
    /// What one of them keeps of it.
    pub(crate) fn membership(self: &Arc<Self>) -> Membership {
        Membership(Arc::downgrade(self))
    }

    pub(crate) fn insert(&self, handle: &Arc<ReactorHandle>, id: StreamId) -> bool {
        let mut places = lock(&self.places);
        if let Some(place) = places
            .iter_mut()
            .find(|place| Arc::ptr_eq(&place.handle, handle))
        {
            return place.ids.insert(id);
        }
        places.push(Place {
            handle: Arc::clone(handle),
            ids: BTreeSet::from([id]),
        });
        true
    }

    pub(crate) fn remove(&self, handle: &Arc<ReactorHandle>, id: StreamId) -> bool {
        let mut places = lock(&self.places);
        let mut its = places
            .iter_mut()
            .filter(|place| Arc::ptr_eq(&place.handle, handle));
        let was_there = its.any(|place| place.ids.remove(&id));
        places.retain(|place| !place.ids.is_empty());
        was_there
    }
}
