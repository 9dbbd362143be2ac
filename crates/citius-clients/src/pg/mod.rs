//! `citius.pg`: sessions with PostgreSQL, over the protocol of `citius-pg`.
//!
//! A [`call`] is what a coroutine awaits: it is handed to a [`connection`] by the [`pool`] when it is first looked at, and
//! its rows become Python objects ([`decode`]) in the turn that brings them, which then steps the coroutine. Connecting,
//! logging in again and transactions are Python (`citius/pg/`).

use pyo3::prelude::*;

pub(crate) mod call;
pub(crate) mod connection;
mod decode;
mod encode;
mod errors;
mod left;
pub(crate) mod native;
pub(crate) mod pool;
mod portions;
mod rows;
mod session;
mod turns;
mod types;

pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<pool::PgPool>()?;
    module.add_class::<connection::PgConnection>()?;
    module.add_class::<call::PgBlock>()?;
    module.add_class::<call::PgCall>()?;
    module.add_class::<portions::PgPortal>()?;
    module.add_class::<types::PgTypes>()?;
    module.add_function(wrap_pyfunction!(left::pg_reset_of, module)?)?;
    Ok(())
}
