//! A gateway on axum and hyper-util: `gateway-axum --port PORT --workers THREADS`.
#![forbid(unsafe_code)]

use std::{env, error::Error, net::SocketAddr};

use axum::{
    Router,
    body::Body,
    extract::{ConnectInfo, Request, State},
    http::{
        HeaderMap, HeaderName, HeaderValue, StatusCode, Uri,
        header::{
            CONNECTION, HOST, PROXY_AUTHENTICATE, PROXY_AUTHORIZATION, TE, TRAILER,
            TRANSFER_ENCODING, UPGRADE,
        },
        uri::{Authority, Scheme},
    },
    response::{IntoResponse, Response},
    serve::ListenerExt as _,
};
use hyper_util::{
    client::legacy::{Client, connect::HttpConnector},
    rt::TokioExecutor,
};
use tokio::net::TcpListener;

const HOP_BY_HOP: [HeaderName; 7] = [
    CONNECTION,
    PROXY_AUTHENTICATE,
    PROXY_AUTHORIZATION,
    TE,
    TRAILER,
    TRANSFER_ENCODING,
    UPGRADE,
];
const FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");

#[derive(Clone)]
struct Origin {
    authority: Authority,
    client: Client<HttpConnector, Body>,
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
    let base: Uri = env::var("ORIGIN_URL")?.parse()?;
    let mut tcp = HttpConnector::new();
    tcp.set_nodelay(true);
    let origin = Origin {
        authority: base.authority().ok_or("ORIGIN_URL has no host")?.clone(),
        client: Client::builder(TokioExecutor::new()).build(tcp),
    };
    let routes = Router::new().fallback(forward).with_state(origin);
    let listener = TcpListener::bind(("127.0.0.1", port))
        .await?
        .tap_io(|stream| {
            let _ = stream.set_nodelay(true);
        });
    let service = routes.into_make_service_with_connect_info::<SocketAddr>();
    Ok(axum::serve(listener, service).await?)
}

async fn forward(
    State(origin): State<Origin>,
    ConnectInfo(peer): ConnectInfo<SocketAddr>,
    mut request: Request,
) -> Response {
    let mut parts = std::mem::take(request.uri_mut()).into_parts();
    parts.scheme = Some(Scheme::HTTP);
    parts.authority = Some(origin.authority);
    let Ok(uri) = Uri::from_parts(parts) else {
        return StatusCode::BAD_REQUEST.into_response();
    };
    *request.uri_mut() = uri;
    let fields = request.headers_mut();
    remove_hop_by_hop(fields);
    fields.remove(HOST); // the client writes that of the URI
    if let Ok(peer) = HeaderValue::from_str(&peer.ip().to_string()) {
        fields.append(FORWARDED_FOR, peer);
    }
    match origin.client.request(request).await {
        Ok(mut response) => {
            remove_hop_by_hop(response.headers_mut());
            response.into_response()
        }
        Err(error) => (StatusCode::BAD_GATEWAY, error.to_string()).into_response(),
    }
}

/// Removes the fields of one connection, and those that `Connection` names (RFC 9110, section 7.6.1).
fn remove_hop_by_hop(fields: &mut HeaderMap) {
    let named: Vec<HeaderName> = fields
        .get_all(CONNECTION)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .filter_map(|name| name.trim().parse().ok())
        .collect();
    for name in named.iter().chain(&HOP_BY_HOP) {
        fields.remove(name);
    }
}
