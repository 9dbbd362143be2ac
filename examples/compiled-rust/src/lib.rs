//! Handlers in Rust for app.py; see README.md for how to build them.

use std::fmt::Write as _;
use std::sync::atomic::{AtomicI64, Ordering};

use citius_handler::{Outcome, Request, Response, Status};

/// What all requests have been worth; several threads may add to it at once.
static TOTAL: AtomicI64 = AtomicI64::new(0);

/// `POST /add/{amount}`
fn add(request: &Request<'_>, response: &mut Response<'_>) -> Outcome {
    let amount = request.param_integer(0)?;
    let total = TOTAL.fetch_add(amount, Ordering::Relaxed) + amount;
    response.content_type(b"application/json")?;
    response.write_integer(total)
}

/// `GET /agent`
fn agent(request: &Request<'_>, response: &mut Response<'_>) -> Outcome {
    let agent = request.header("user-agent").ok_or(Status::NOT_FOUND)?;
    response.content_type(b"text/plain; charset=utf-8")?;
    response.header(b"vary", b"user-agent")?;
    let text = String::from_utf8_lossy(agent);
    writeln!(response, "{} characters", text.chars().count()).map_err(|_| Status::FAILED)
}

/// `GET /panic`: answered with 500, and the server goes on.
fn mishap(_: &Request<'_>, _: &mut Response<'_>) -> Outcome {
    panic!("on purpose");
}

citius_handler::export!(add, agent, mishap);
