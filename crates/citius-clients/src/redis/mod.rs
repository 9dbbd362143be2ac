//! `citius.redis`: connections to Redis, over the protocol of `citius-redis`.
//!
//! A [`call`] is what a coroutine awaits: when it is first looked at, the [`client`] hands its command to a [`connection`]. Its
//! reply becomes Python objects ([`reply`]) in the turn that brings it, which then steps the coroutine. All commands of a turn
//! leave in one write. Connecting, connecting again, subscriptions and the topology of a cluster are Python (`citius/redis/`).
//!
//! Any thread may hand over a command; one thread reads. What that thread needs and what the others need is behind two locks,
//! neither of which is held while Python code can run. Tests: `tests/redis/`.

use pyo3::prelude::*;

mod arguments;
pub(crate) mod call;
pub(crate) mod client;
mod connection;
mod dispatch;
mod errors;
mod incoming;
mod kept;
mod nodes;
mod redirect;
mod reply;
mod spread;

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<client::RedisClient>()?;
    module.add_class::<connection::RedisConnection>()?;
    module.add_class::<call::RedisCall>()?;
    Ok(())
}
