//! Rust's HTTP/2 client (the `h2` crate, which hyper, reqwest and tonic stand on) against a reactor with sockets.

use std::collections::HashMap;
use std::net::TcpListener;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use bytes::Bytes;
use citius_http::{Action, Fault, Fields, Head, Limits, Payload, ResponseHead, Status};
use citius_reactor::{ConnectionId, ListenerProtocol, Reactor, Reply, Service, StreamId};

/// Sends every body back as it comes, with its length in a trailer; `/large` is a megabyte.
#[derive(Default)]
struct Echo {
    received: HashMap<StreamId, usize>,
    broken: Vec<Fault>,
}
use support::options;

mod support;

const LARGE: &[u8] = &[b'x'; 1 << 20];

impl Service for Echo {
    fn request(&mut self, head: Box<Head>, ended: bool, reply: &mut Reply<'_>) {
        let response = ResponseHead {
            status: Status::OK,
            content_type: None,
            fields: &Fields::EMPTY,
        };
        let sent = if head.path() == b"/large" {
            reply.send(Action::Respond(
                response,
                Payload::Shared(Bytes::from_static(LARGE)),
            ))
        } else if ended {
            reply.send(Action::Respond(response, Payload::Copied(head.path())))
        } else {
            self.received.insert(reply.id(), 0);
            reply.want(u64::MAX);
            reply.send(Action::Start(response))
        };
        sent.expect("a valid response");
        reply.recycle(head);
    }

    fn data(&mut self, bytes: &[u8], reply: &mut Reply<'_>) {
        *self.received.entry(reply.id()).or_default() += bytes.len();
        reply
            .send(Action::Data(Payload::Copied(bytes)))
            .expect("a body was begun");
    }

    fn end(&mut self, _trailers: Fields, reply: &mut Reply<'_>) {
        let length = self.received.remove(&reply.id()).unwrap_or_default();
        let mut trailers = Fields::default();
        trailers
            .push(b"x-length", length.to_string().as_bytes())
            .expect("a valid field");
        reply
            .send(Action::End {
                trailers: &trailers,
            })
            .expect("a body was begun");
    }

    fn broken(&mut self, _id: StreamId, fault: Fault) {
        self.broken.push(fault);
    }
    fn writable(&mut self, _reply: &mut Reply<'_>) {}
    fn disconnected(&mut self, _connection: ConnectionId) {}
    fn refused(&mut self, _id: StreamId, fault: Fault) {
        panic!("{}", fault.text());
    }
    fn file_failed(&mut self, _connection: ConnectionId, message: &str) {
        panic!("{message}");
    }
    fn panicked(&mut self, _connection: ConnectionId) {
        panic!("a defect");
    }
}

/// A reactor in a thread of its own, until it is told to stop.
struct Served {
    port: u16,
    stop: Arc<AtomicBool>,
    thread: JoinHandle<Echo>,
}

impl Served {
    fn start() -> Self {
        let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a free port");
        listener.set_nonblocking(true).expect("a socket");
        let port = listener.local_addr().expect("it is bound").port();
        let stop = Arc::new(AtomicBool::new(false));
        let stops = Arc::clone(&stop);
        let thread = std::thread::spawn(move || {
            let mut reactor = Reactor::new(options(Limits::default())).expect("an epoll set");
            reactor
                .listen(OwnedFd::from(listener).into(), ListenerProtocol::Http)
                .expect("it listens");
            let mut service = Echo::default();
            while !stops.load(Ordering::Relaxed) {
                let _ = reactor.poll(Some(Duration::from_millis(10)));
                reactor.turn(&mut service);
            }
            service
        });
        Self { port, stop, thread }
    }

    fn stop(self) -> Echo {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.join().expect("no panic")
    }
}

/// All of a body, its window opened as it comes, and the length that its trailers tell.
async fn collect(mut body: h2::RecvStream) -> Result<(usize, Option<String>), h2::Error> {
    let mut length = 0;
    while let Some(piece) = body.data().await {
        let piece = piece?;
        length += piece.len();
        body.flow_control().release_capacity(piece.len())?;
    }
    let trailers = body.trailers().await?;
    let told = trailers.and_then(|fields| Some(fields.get("x-length")?.to_str().ok()?.to_owned()));
    Ok((length, told))
}

/// Sends as much of `rest` as the windows allow, until it is out.
async fn upload(mut stream: h2::SendStream<Bytes>, mut rest: Bytes) -> Result<(), h2::Error> {
    while !rest.is_empty() {
        stream.reserve_capacity(rest.len());
        let room = std::future::poll_fn(|cx| stream.poll_capacity(cx)).await;
        let room = room.expect("the stream is open")?;
        let piece = rest.split_to(room.min(rest.len()));
        stream.send_data(piece, rest.is_empty())?;
    }
    Ok(())
}

#[test]
fn the_h2_crate_is_served_on_many_streams_at_once() {
    let served = Served::start();
    let uri = |path: &str| format!("http://127.0.0.1:{}{path}", served.port);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_io()
        .build()
        .expect("a runtime");
    runtime.block_on(async {
        let socket = tokio::net::TcpStream::connect(("127.0.0.1", served.port)).await;
        let (client, connection) = h2::client::handshake(socket.expect("it listens"))
            .await
            .expect("settings");
        let connection = tokio::spawn(connection);
        let mut exchanges = tokio::task::JoinSet::new();
        for number in 0..100usize {
            let mut client = client.clone().ready().await.expect("room for a stream");
            let size = number * 3001;
            let request = http::Request::post(uri("/echo")).body(()).expect("valid");
            let (response, stream) = client.send_request(request, false).expect("open");
            exchanges.spawn(async move {
                let body = Bytes::from(vec![b'y'; size.max(1)]);
                let length = body.len();
                let sent = tokio::spawn(upload(stream, body));
                let response = response.await.expect("a response");
                assert_eq!(response.status(), 200);
                let (came, told) = collect(response.into_body()).await.expect("a body");
                sent.await.expect("no panic").expect("all of it");
                assert_eq!((came, told), (length, Some(length.to_string())));
            });
        }
        while let Some(done) = exchanges.join_next().await {
            done.expect("no panic");
        }
        let mut client = client.ready().await.expect("room for a stream");
        let request = http::Request::get(uri("/large")).body(()).expect("valid");
        let (response, _) = client.send_request(request, true).expect("open");
        let response = response.await.expect("a response");
        assert_eq!(
            collect(response.into_body()).await.expect("a body"),
            (LARGE.len(), None)
        );
        let request = http::Request::post(uri("/echo")).body(()).expect("valid");
        let (_, mut stream) = client.send_request(request, false).expect("open");
        stream.send_reset(h2::Reason::CANCEL);
        drop((client, stream));
        connection.await.expect("no panic").expect("a clean end");
    });
    let service = served.stop();
    assert!(service.received.is_empty() || service.broken == [Fault::StreamReset]);
}
