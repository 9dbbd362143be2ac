//! `citius.http`: requests to other servers, over the protocols of `citius-h1` and `citius-h2`.
//!
//! A [`call`] is what a coroutine awaits: when it is first looked at, the [`pool`] hands it to a [`connection`] or has it wait for one.
//! The connection encodes and parses by its half of HTTP/1.1 or HTTP/2, in [`wire`]. The response becomes a [`reply`] in the turn
//! that brings it, which then steps the coroutine. All requests of a turn leave in one write per connection. Names, sockets,
//! proxies and timers are Python (`citius/http/transport/`).
//!
//! Any thread may hand over a call; one thread reads. Locks are never held while Python code can run. Tests: `tests/http/`.

use pyo3::prelude::*;

mod call;
mod connection;
mod direct;
mod errors;
mod forward;
mod head;
mod limits;
mod origin;
mod pool;
mod relay;
mod reply;
mod request;
mod servers;
mod upload;
mod wire;

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<origin::HttpOrigin>()?;
    module.add_class::<pool::HttpPool>()?;
    module.add_class::<connection::HttpConnection>()?;
    module.add_class::<call::HttpCall>()?;
    module.add_class::<reply::HttpReply>()?;
    module.add_class::<reply::HttpRead>()?;
    module.add_class::<upload::HttpUpload>()?;
    module.add_class::<upload::HttpSending>()?;
    module.add_class::<forward::ForwardRules>()?;
    module.add_class::<limits::ForwardLimit>()?;
    module.add_class::<limits::OriginSlots>()?;
    module.add_class::<limits::CircuitGate>()?;
    module.add_class::<limits::OriginLimits>()?;
    module.add_class::<limits::ForwardSlot>()?;
    module.add_class::<servers::ForwardServer>()?;
    module.add_class::<servers::ForwardServers>()?;
    module.add_function(wrap_pyfunction!(direct::direct_forward, module)?)?;
    module.add_function(wrap_pyfunction!(relay::relay, module)?)?;
    Ok(())
}
