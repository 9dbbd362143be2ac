//! A record from Redis on axum and the crate redis: `redis-axum --port PORT --workers THREADS`.
#![forbid(unsafe_code)]

use std::{env, error::Error};

use axum::{
    Json, Router,
    extract::{Path, State},
    http::StatusCode,
    response::{IntoResponse, Response},
    routing::get,
    serve::ListenerExt as _,
};
use redis::{AsyncCommands, aio::ConnectionManager};
use tokio::net::TcpListener;
use work::Record;

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
    let client = redis::Client::open(env::var("REDIS_URL")?)?;
    let routes = Router::new()
        .route("/cached/{id}", get(cached))
        .with_state(client.get_connection_manager().await?);
    let listener = TcpListener::bind(("127.0.0.1", port))
        .await?
        .tap_io(|stream| {
            let _ = stream.set_nodelay(true);
        });
    Ok(axum::serve(listener, routes).await?)
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
        (StatusCode::INTERNAL_SERVER_ERROR, self.0.to_string()).into_response()
    }
}

async fn cached(
    State(mut redis): State<ConnectionManager>,
    Path(id): Path<u32>,
) -> Result<Json<Option<Record>>, Failure> {
    let packed: Option<Vec<u8>> = redis.get(format!("record:{id}")).await?;
    let record = packed.map(|packed| rmp_serde::from_slice(&packed));
    Ok(Json(record.transpose()?))
}
