//! The workloads with a database on axum and sqlx: `db-axum-sqlx --port PORT --workers THREADS`.
#![forbid(unsafe_code)]

mod app;

use std::{env, error::Error};

use axum::serve::ListenerExt as _;
use tokio::net::TcpListener;

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
    let routes = app::routes(app::pool(&env::var("DATABASE_URL")?).await?);
    let listener = TcpListener::bind(("127.0.0.1", port))
        .await?
        .tap_io(|stream| {
            let _ = stream.set_nodelay(true);
        });
    Ok(axum::serve(listener, routes).await?)
}
