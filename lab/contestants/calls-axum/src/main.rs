//! A profile from another service on axum and hyper-util: `calls-axum --port PORT --workers THREADS`.
#![forbid(unsafe_code)]

use std::{env, error::Error, sync::Arc};

use axum::{
    Json, Router,
    extract::{Path, State},
    http::{StatusCode, Uri},
    response::{IntoResponse, Response},
    routing::get,
    serve::ListenerExt as _,
};
use bytes::Bytes;
use http_body_util::{BodyExt as _, Empty};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::{
    client::legacy::{Client, connect::HttpConnector},
    rt::TokioExecutor,
};
use serde::{Deserialize, Serialize};
use tokio::net::TcpListener;

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

/// A service: where it is, and the client of it.
#[derive(Clone)]
struct Service {
    base: Arc<str>,
    client: Client<HttpsConnector<HttpConnector>, Empty<Bytes>>,
}

fn main() -> Result<(), Box<dyn Error>> {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(option("--workers", 1).into())
        .enable_all()
        .build()?
        .block_on(serve(option("--port", 8000)))
}

/// The number that follows `name` on the command line.
fn option(name: &str, default: u16) -> u16 {
    let word = env::args().skip_while(|word| word != name).nth(1);
    word.map_or(default, |value| {
        value
            .parse()
            .unwrap_or_else(|_| panic!("{name} expects a number, got {value:?}"))
    })
}

async fn serve(port: u16) -> Result<(), Box<dyn Error>> {
    let route = |name| Ok::<_, Box<dyn Error>>(get(call).with_state(service(name)?));
    let routes = Router::new()
        .route("/call/{id}", route("UPSTREAM_URL")?)
        .route("/call-tls/{id}", route("UPSTREAM_TLS_URL")?)
        .route("/call-h2/{id}", route("UPSTREAM_H2_URL")?);
    let listener = TcpListener::bind(("127.0.0.1", port))
        .await?
        .tap_io(|stream| {
            let _ = stream.set_nodelay(true);
        });
    Ok(axum::serve(listener, routes).await?)
}

fn service(name: &str) -> Result<Service, Box<dyn Error>> {
    let mut tcp = HttpConnector::new();
    tcp.set_nodelay(true);
    tcp.enforce_http(false);
    let connector = HttpsConnectorBuilder::new()
        .with_native_roots()?
        .https_or_http()
        .enable_all_versions()
        .wrap_connector(tcp);
    Ok(Service {
        base: env::var(name)?.into(),
        client: Client::builder(TokioExecutor::new()).build(connector),
    })
}

/// Anything that went wrong, as a response.
struct Failure(Box<dyn Error + Send + Sync>);

impl<E: Into<Box<dyn Error + Send + Sync>>> From<E> for Failure {
    fn from(error: E) -> Self {
        Self(error.into())
    }
}

impl IntoResponse for Failure {
    fn into_response(self) -> Response {
        (StatusCode::BAD_GATEWAY, self.0.to_string()).into_response()
    }
}

async fn call(
    State(service): State<Service>,
    Path(id): Path<u32>,
) -> Result<Json<Profile>, Failure> {
    let uri: Uri = format!("{}/profiles/{id}", service.base).parse()?;
    let response = service.client.get(uri).await?;
    let body = response.into_body().collect().await?.to_bytes();
    Ok(Json(serde_json::from_slice(&body)?))
}
