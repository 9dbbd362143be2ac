//! Messages of WebTransport on wtransport, which is quinn's QUIC: a multi-thread tokio runtime with as many worker threads as
//! asked for.
#![forbid(unsafe_code)]

use std::env;
use std::error::Error;
use std::net::SocketAddr;

use tokio::io::AsyncReadExt as _;
use wtransport::endpoint::IncomingSession;
use wtransport::{Connection, Endpoint, Identity, RecvStream, SendStream, ServerConfig};

type Outcome = Result<(), Box<dyn Error + Send + Sync>>;

fn main() -> Outcome {
    let workers = word("--workers").unwrap_or("1".into()).parse()?;
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(workers)
        .enable_all()
        .build()?
        .block_on(serve())
}

/// What follows `name` on the command line.
fn word(name: &str) -> Option<String> {
    env::args().skip_while(|word| word != name).nth(1)
}

async fn serve() -> Outcome {
    let port = word("--port").unwrap_or("8000".into()).parse()?;
    let (Some(cert), Some(key)) = (word("--cert"), word("--key")) else {
        return Err("QUIC is encrypted always: --cert and --key are needed".into());
    };
    let config = ServerConfig::builder()
        .with_bind_address(SocketAddr::from(([127, 0, 0, 1], port)))
        .with_identity(Identity::load_pemfiles(cert, key).await?)
        .build();
    let endpoint = Endpoint::server(config)?;
    loop {
        tokio::spawn(session(endpoint.accept().await));
    }
}

/// Sends what comes back until the client leaves, which is an error of every call.
async fn session(incoming: IncomingSession) -> Outcome {
    let request = incoming.await?;
    if request.path() != "/echo" {
        request.not_found().await;
        return Ok(());
    }
    let connection = request.accept().await?;
    tokio::spawn(datagrams(connection.clone()));
    loop {
        tokio::spawn(stream(connection.accept_bi().await?));
    }
}

async fn datagrams(connection: Connection) -> Outcome {
    loop {
        let datagram = connection.receive_datagram().await?;
        connection.send_datagram(datagram.payload())?;
    }
}

async fn stream((mut sending, mut receiving): (SendStream, RecvStream)) -> Outcome {
    let mut message = Vec::with_capacity(1024);
    receiving.read_to_end(&mut message).await?;
    sending.write_all(&message).await?;
    sending.finish().await?;
    Ok(())
}
