//! Server-sent events on axum: `events-axum --port PORT --workers THREADS`.
#![forbid(unsafe_code)]

use std::convert::Infallible;
use std::sync::{Arc, Mutex};
use std::{env, io};

use axum::Router;
use axum::extract::{Query, State};
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::routing::{get, post};
use axum::serve::ListenerExt as _;
use futures_util::{Stream, StreamExt as _, stream};
use serde::Deserialize;
use tokio::net::TcpListener;
use tokio::sync::{broadcast, mpsc};
use tokio_stream::wrappers::{BroadcastStream, UnboundedReceiverStream};

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

/// The streams that wait for events of their own, and those that all get the same.
struct Streams {
    own: Mutex<Vec<mpsc::UnboundedSender<String>>>,
    all: broadcast::Sender<String>,
}

async fn serve(port: u16) -> io::Result<()> {
    let (all, _) = broadcast::channel(1024);
    let streams = Arc::new(Streams {
        own: Mutex::default(),
        all,
    });
    let routes = Router::new()
        .route("/sse", get(sse))
        .route("/own", get(own))
        .route("/all", get(all_alike))
        .route("/own", post(send_own))
        .route("/all", post(send_all))
        .with_state(streams);
    let listener = TcpListener::bind(("127.0.0.1", port))
        .await?
        .tap_io(|stream| {
            let _ = stream.set_nodelay(true);
        });
    axum::serve(listener, routes).await
}

#[derive(Deserialize)]
struct Count {
    n: usize,
}

fn event(data: &str) -> Result<Event, Infallible> {
    Ok(Event::default().data(data))
}

/// So many events, as fast as the client reads.
async fn sse(Query(Count { n }): Query<Count>) -> Sse<impl Stream<Item = Result<Event, Infallible>>> {
    Sse::new(stream::iter(0..n).map(|number| event(&text(number)))).keep_alive(KeepAlive::default())
}

/// 58 bytes: an event of 66 with its field name and the lines' ends.
fn text(number: usize) -> String {
    format!("{number:08} The quick brown fox jumps over the lazy dog again")
}

async fn own(
    State(streams): State<Arc<Streams>>,
) -> Sse<impl Stream<Item = Result<Event, Infallible>>> {
    let (sender, receiver) = mpsc::unbounded_channel();
    streams.own.lock().expect("no panic").push(sender);
    let events = UnboundedReceiverStream::new(receiver).map(|data: String| event(&data));
    Sse::new(events).keep_alive(KeepAlive::default())
}

async fn all_alike(
    State(streams): State<Arc<Streams>>,
) -> Sse<impl Stream<Item = Result<Event, Infallible>>> {
    let events = BroadcastStream::new(streams.all.subscribe())
        .filter_map(async |data| data.ok().map(|data| event(&data)));
    Sse::new(events).keep_alive(KeepAlive::default())
}

/// An event for each stream, another one for each.
async fn send_own(State(streams): State<Arc<Streams>>) -> String {
    let mut own = streams.own.lock().expect("no panic");
    own.retain(|one| !one.is_closed());
    for (number, one) in own.iter().enumerate() {
        let _ = one.send(text(number));
    }
    own.len().to_string()
}

/// One event for all streams.
async fn send_all(State(streams): State<Arc<Streams>>) -> String {
    streams.all.send(text(0)).unwrap_or(0).to_string()
}
