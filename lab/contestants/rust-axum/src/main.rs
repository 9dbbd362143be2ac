//! The contract on axum: a multi-thread tokio runtime with as many worker threads as asked for.
#![forbid(unsafe_code)]

use std::borrow::Cow;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use std::{env, io};

use axum::Router;
use axum::extract::{Query, State};
use axum::http::Uri;
use axum::http::header::CONTENT_TYPE;
use axum::response::IntoResponse;
use axum::routing::get;
use axum::serve::ListenerExt as _;
use axum_server::accept::NoDelayAcceptor;
use axum_server::tls_rustls::{RustlsAcceptor, RustlsConfig};
use bytes::Bytes;
use serde::Deserialize;
use tokio::net::TcpListener;
use work::Data;

fn main() -> io::Result<()> {
    let option = |name: &str, default: u16| -> u16 {
        word(name).map_or(default, |value| {
            value
                .parse()
                .unwrap_or_else(|_| panic!("{name} expects a number, got {value:?}"))
        })
    };
    let (port, workers) = (option("--port", 8000), option("--workers", 1));
    // More than one is article 001's second configuration.
    let threads = workers * option("--threads-per-worker", 1);
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(threads.into())
        .enable_all()
        .build()?
        .block_on(serve(port))
}

/// What follows `name` on the command line.
fn word(name: &str) -> Option<String> {
    env::args().skip_while(|word| word != name).nth(1)
}

async fn serve(port: u16) -> io::Result<()> {
    if let (Some(cert), Some(key)) = (word("--cert"), word("--key")) {
        return serve_tls(port, &cert, &key).await;
    }
    let listener = TcpListener::bind(("127.0.0.1", port))
        .await?
        .tap_io(|stream| {
            let _ = stream.set_nodelay(true);
        });
    axum::serve(listener, routes()).await
}

/// The same over TLS, HTTP/2 where the client offers it.
async fn serve_tls(port: u16, cert: &str, key: &str) -> io::Result<()> {
    rustls::crypto::ring::default_provider()
        .install_default()
        .expect("no other provider is installed");
    let tls = RustlsConfig::from_pem_file(cert, key).await?;
    axum_server::bind(SocketAddr::from(([127, 0, 0, 1], port)))
        .acceptor(RustlsAcceptor::new(tls).acceptor(NoDelayAcceptor::new()))
        .serve(routes().into_make_service())
        .await
}

/// The records, and the array as shared bytes so that sending it copies nothing in user space.
struct Service {
    data: Data,
    json_array: Bytes,
}

fn routes() -> Router {
    let mut data = Data::new();
    let json_array = Bytes::from(std::mem::take(&mut data.json_array));
    Router::new()
        .route("/", get(async || "Welcome!\n"))
        .route("/parse-msgpack", get(parse_msgpack))
        .route("/encode-json", get(encode_json))
        .route("/transfer-data", get(transfer_data))
        .route("/million-loop", get(million_loop))
        .route("/async", get(sleep))
        .route("/fibonacci", get(fibonacci))
        .route("/classify/", get(classify))
        .route("/classify/{*rest}", get(classify))
        .with_state(Arc::new(Service { data, json_array }))
}

#[derive(Deserialize)]
struct Texts {
    texts: Option<String>,
}

async fn parse_msgpack(
    State(service): State<Arc<Service>>,
    Query(Texts { texts }): Query<Texts>,
) -> String {
    service.data.parse_msgpack(texts.as_deref() == Some("varied"))
}

async fn encode_json(State(service): State<Arc<Service>>) -> String {
    service.data.encode_json()
}

async fn transfer_data(State(service): State<Arc<Service>>) -> impl IntoResponse {
    (
        [(CONTENT_TYPE, "application/json")],
        service.json_array.clone(),
    )
}

#[derive(Deserialize)]
struct Seed {
    seed: Option<i64>,
}

async fn million_loop(Query(Seed { seed }): Query<Seed>) -> String {
    work::million_loop(seed.unwrap_or(1)).to_string()
}

#[derive(Deserialize)]
struct First {
    first: Option<u32>,
}

async fn fibonacci(Query(First { first }): Query<First>) -> Cow<'static, str> {
    work::fibonacci_answer(first)
}

async fn sleep() -> &'static str {
    tokio::time::sleep(Duration::from_millis(2)).await;
    "OK"
}

async fn classify(uri: Uri) -> String {
    work::classify(uri.path())
}
