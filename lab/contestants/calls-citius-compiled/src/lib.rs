//! A profile from another service by `citius_http_call`.

use std::{env, sync::LazyLock};

use citius_handler::{HttpRequest, Outcome, Request, Response, Status};
use serde::{Deserialize, Serialize};

static UPSTREAM_URL: LazyLock<String> = LazyLock::new(|| variable("UPSTREAM_URL"));
static UPSTREAM_TLS_URL: LazyLock<String> = LazyLock::new(|| variable("UPSTREAM_TLS_URL"));

fn variable(name: &str) -> String {
    env::var(name).unwrap_or_default()
}

#[derive(Deserialize, Serialize)]
struct Profile {
    id: u32,
    name: String,
    email: String,
    street: String,
    city: String,
    is_active: bool,
    score: f64,
}

fn profile(base: &str, request: &Request<'_>, response: &mut Response<'_>) -> Outcome {
    let id = request.param_integer(0)?;
    let reply = HttpRequest::get(&format!("{base}/profiles/{id}")).send()?;
    let profile: Profile =
        serde_json::from_slice(reply.body()).map_err(|_| Status::FAILED)?;
    response.content_type(b"application/json")?;
    let json = serde_json::to_vec(&profile).map_err(|_| Status::FAILED)?;
    response.write(&json)
}

fn call(request: &Request<'_>, response: &mut Response<'_>) -> Outcome {
    profile(&UPSTREAM_URL, request, response)
}

fn call_tls(request: &Request<'_>, response: &mut Response<'_>) -> Outcome {
    profile(&UPSTREAM_TLS_URL, request, response)
}

citius_handler::export!(call, call_tls);
