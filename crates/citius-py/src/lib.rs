//! The extension module `citius._core`: the gateways, with requests and responses, and the classes and functions of the crates
//! below that know Python, [`citius_base`] and [`citius_clients`].
//!
//! It parses nothing and touches no socket: bytes stop at `citius-reactor`. What runs once per request is here, what runs once
//! per process is Python. Reading order: [`host`] (how an event loop calls the reactor), [`gateway`] (how an application is
//! called), [`citius_base::task`] (how a coroutine is stepped), [`respond`] (how its result is sent),
//! [`citius_base::reactor_handle`] (how late responses come back). Tests: `tests/`.
//!
//! Locks: a `Mutex` here is never held while Python code can run, so a thread that holds the GIL never waits for one
//! ([`citius_base::sync`]). Nothing needs a GIL: all classes are `frozen`, so the compiler requires that threads may share them. `unsafe`
//! code relies on objects that no other thread has yet (`records`), and on reference counts that other threads can only make
//! larger ([`citius_base::reuse`]); the versions of dictionaries need a GIL and are not used without one.
#![allow(
    unsafe_code,
    reason = "items of dictionaries, members of records, shared memory and interpreters have no safe binding (items.rs, records.rs, observe.rs, \
              below); native handlers are called by address (gateway/compiled/)"
)]

use citius_http::FAST_PATHS;
use pyo3::exceptions::PyImportError;
use pyo3::ffi;
use pyo3::prelude::*;

mod balancer;
mod buckets;
mod completion;
mod declared;
mod deferred;
mod file;
mod file_body;
mod form;
mod functions;
mod gateway;
mod guarded;
mod held_calls;
mod host;
mod items;
mod negotiate;
mod numbers;
mod observe;
mod outbox;
mod parameters;
mod quic;
mod records;
mod remote;
mod request;
mod request_context;
mod respond;
mod response;
mod route;
mod rpc;
mod rpc_quic;
mod rpc_unary;
#[cfg(target_os = "linux")]
mod sandbox;
mod server_events;
mod settings;
mod static_directory;
mod stream;
mod tls;
mod urlencoded;

/// The module `citius._core`.
#[pymodule(gil_used = false)]
fn _core(module: &Bound<'_, PyModule>) -> PyResult<()> {
    refuse_subinterpreters()?;
    citius_base::register(module)?;
    citius_clients::register(module)?;
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add("FAST_PATHS", FAST_PATHS)?;
    module.add("METRICS", observe::metrics(module.py())?)?;
    module.add("LIMITS", settings::limit_defaults(module.py())?)?;
    module.add_function(wrap_pyfunction!(urlencoded::parse_urlencoded, module)?)?;
    module.add_function(wrap_pyfunction!(form::parse_form, module)?)?;
    module.add_function(wrap_pyfunction!(numbers::read_integer, module)?)?;
    module.add_function(wrap_pyfunction!(numbers::read_real, module)?)?;
    module.add_function(wrap_pyfunction!(parameters::parse_parameters, module)?)?;
    module.add_function(wrap_pyfunction!(parameters::prefers_msgpack, module)?)?;
    module.add_class::<form::TemporaryFile>()?;
    module.add_class::<request::Request>()?;
    request::prepare(completion::complete_late);
    module.add_class::<held_calls::HeldCalls>()?;
    module.add_class::<response::Response>()?;
    module.add_class::<stream::Stream>()?;
    module.add_class::<balancer::Balancer>()?;
    module.add_class::<gateway::native::Native>()?;
    module.add_class::<gateway::asgi::Asgi>()?;
    module.add_class::<gateway::ws::WebSocket>()?;
    module.add_class::<gateway::wt::WebTransport>()?;
    module.add_class::<gateway::ws::room::Room>()?;
    module.add_class::<gateway::wsgi::Wsgi>()?;
    module.add_class::<gateway::wsgi::WsgiInput>()?;
    module.add_class::<gateway::wsgi::FileWrapper>()?;
    module.add_class::<gateway::wsgi::WsgiJob>()?;
    gateway::compiled::object::register(module)?;
    module.add_class::<records::RecordDecoder>()?;
    module.add_class::<declared::DeclaredResponse>()?;
    module.add_class::<host::Reactor>()?;
    rpc_quic::add_calls(module)?;
    module.add_class::<file_body::FileBody>()?;
    module.add_class::<static_directory::StaticDirectory>()?;
    buckets::add_to(module)?;
    module.add_class::<guarded::GuardedCall>()?;
    module.add_class::<observe::SharedMetrics>()?;
    module.add_class::<observe::Observer>()?;
    module.add_class::<tls::Tls>()?;
    module.add_class::<tls::TlsInfo>()?;
    module.add_class::<tls::TlsTickets>()?;
    module.add_function(wrap_pyfunction!(tls::development_certificate, module)?)?;
    module.add_function(wrap_pyfunction!(tls::self_signed_certificate, module)?)?;
    module.add_function(wrap_pyfunction!(quic::steering_program, module)?)?;
    #[cfg(target_os = "linux")]
    sandbox::register(module)?;
    Ok(())
}

/// Objects that are kept between requests belong to one interpreter. Python refuses others by itself only where they
/// are isolated, from version 3.12 on.
fn refuse_subinterpreters() -> PyResult<()> {
    // SAFETY: a module is being imported, so this thread is attached to an interpreter.
    let interpreter = unsafe { ffi::PyInterpreterState_Get() };
    // SAFETY: the interpreter that this thread is attached to exists.
    let id = unsafe { ffi::PyInterpreterState_GetID(interpreter) };
    if id == 0 {
        return Ok(());
    }
    Err(PyImportError::new_err(
        "citius._core cannot be imported in a sub-interpreter; import it in the main interpreter \
         (mod_wsgi: WSGIApplicationGroup %{GLOBAL})",
    ))
}
