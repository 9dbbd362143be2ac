//! The floor of HTTP/3: what a request costs on quinn when nothing is read of it.
//!
//! Whatever comes on a bidirectional stream, the greeting goes back when the stream ends.
#![forbid(unsafe_code)]

use std::env;
use std::error::Error;
use std::net::SocketAddr;
use std::sync::Arc;

use bytes::Bytes;
use quinn::crypto::rustls::QuicServerConfig;
use quinn::{Endpoint, Incoming, RecvStream, SendStream, ServerConfig};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};

type Outcome = Result<(), Box<dyn Error + Send + Sync>>;

/// HEADERS with `:status: 200`, `content-type: text/plain` and `content-length: 9`; DATA with the greeting.
const RESPONSE: &[u8] = b"\x01\x07\x00\x00\xd9\xf5\x54\x019\x00\x09Welcome!\n";
/// A control stream with settings that allow nothing.
const CONTROL: &[u8] = b"\x00\x04\x00";
const REQUEST_BYTES_MAX: usize = 1 << 20;

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
    let chain = CertificateDer::pem_file_iter(cert)?.collect::<Result<_, _>>()?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut tls = rustls::ServerConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS13])?
        .with_no_client_auth()
        .with_single_cert(chain, PrivateKeyDer::from_pem_file(key)?)?;
    tls.alpn_protocols = vec![b"h3".to_vec()];
    let config = ServerConfig::with_crypto(Arc::new(QuicServerConfig::try_from(tls)?));
    let endpoint = Endpoint::server(config, SocketAddr::from(([127, 0, 0, 1], port)))?;
    while let Some(incoming) = endpoint.accept().await {
        tokio::spawn(connection(incoming));
    }
    Ok(())
}

/// Answers until the client leaves, which is an error of every call.
async fn connection(incoming: Incoming) -> Outcome {
    let connection = incoming.await?;
    let mut control = connection.open_uni().await?;
    control.write_all(CONTROL).await?;
    loop {
        tokio::spawn(answer(connection.accept_bi().await?));
    }
}

async fn answer((mut sending, mut receiving): (SendStream, RecvStream)) -> Outcome {
    receiving.read_to_end(REQUEST_BYTES_MAX).await?;
    sending.write_chunk(Bytes::from_static(RESPONSE)).await?;
    sending.finish()?;
    Ok(())
}
