//! A reactor as connections to other servers know it: what watches their sockets and carries their bytes.

use std::sync::Arc;

use citius_reactor::UpstreamId;
use pyo3::prelude::*;

use crate::descriptor::{Fd, socket_of};
use crate::reactor_handle::ReactorHandle;
use crate::support::os_error;
use crate::upstreams::{Carried, UpstreamCommand};

/// What a reactor is to Python besides: its own class extends this one.
#[pyclass(frozen, subclass, module = "citius._core")]
pub struct Carrier {
    handle: Arc<ReactorHandle>,
    perform: Perform,
}

/// Has the reactor do something now, or at the end of the turn that is running.
pub(crate) type Perform = fn(&Bound<'_, Carrier>, UpstreamCommand);

impl Carrier {
    /// The reactor of this handle, which does things by `perform`.
    pub fn new(handle: Arc<ReactorHandle>, perform: Perform) -> Self {
        Self { handle, perform }
    }

    /// Watches the connection to another server, from the end of the turn on.
    pub(crate) fn attach(
        slf: &Bound<'_, Self>,
        protocol: Arc<dyn Carried>,
        fd: Fd,
    ) -> PyResult<(Arc<ReactorHandle>, UpstreamId)> {
        let this = slf.get();
        let socket = socket_of(fd).map_err(|error| os_error("socket", &error))?;
        let id = this.handle.upstreams.enter(protocol);
        (this.perform)(slf, UpstreamCommand::Attach(id, socket));
        Ok((Arc::clone(&this.handle), id))
    }

    /// Forgets it, from the end of the turn on.
    pub(crate) fn detach(slf: &Bound<'_, Self>, id: UpstreamId) {
        let this = slf.get();
        if let Some(protocol) = this.handle.upstreams.remove(id) {
            (this.perform)(slf, UpstreamCommand::Detach(id, protocol));
        }
    }
}
