//! What the runtime of compiled handlers ([`citius_native`]) asks of Python, and what compiled code asks of clients that are Python's.
//!
//! Reading order: [`interpreter`] (the GIL, objects, event loops), [`gil`] (where Python counts who has taken it), [`engines`] (Redis
//! and PostgreSQL). Tests: `tests/goroutines/`.

pub(crate) mod engines;
pub(crate) mod gil;
pub(crate) mod interpreter;
pub(crate) mod object;
pub(crate) mod report;
