//! Starts the shop: `shop-axum --port PORT --workers THREADS`.
#![forbid(unsafe_code)]

mod app;
mod store;

use std::{env, io};

use axum::serve::ListenerExt as _;
use tokio::net::TcpListener;

fn main() -> io::Result<()> {
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

async fn serve(port: u16) -> io::Result<()> {
    let listener = TcpListener::bind(("127.0.0.1", port))
        .await?
        .tap_io(|stream| {
            let _ = stream.set_nodelay(true);
        });
    axum::serve(listener, app::routes()).await
}
