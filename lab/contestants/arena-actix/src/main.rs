//! HttpArena's profiles on actix-web, in the rules of its `production` entries: the framework's own extractors,
//! compression, file service and TLS, JSON made for each response, a pool of deadpool for PostgreSQL.
#![forbid(unsafe_code)]

use std::sync::Arc;
use std::time::Duration;
use std::{env, fs, io};

use actix_files::Files;
use actix_web::middleware::Compress;
use actix_web::rt::System;
use actix_web::rt::time::sleep;
use actix_web::web::{Bytes, Data, Json, Path, Payload, Query, get, post, resource};
use actix_web::{App, Error, HttpRequest, HttpResponse, HttpServer, error};
use actix_ws::Message;
use deadpool_postgres::{Config, Pool, PoolConfig, Runtime};
use futures_util::StreamExt as _;
use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use serde::{Deserialize, Serialize};
use tokio_postgres::{NoTls, Row, types};

#[derive(Clone, Serialize, Deserialize)]
struct Rating {
    score: i32,
    count: i32,
}

#[derive(Clone, Serialize, Deserialize)]
struct Item {
    id: i32,
    name: String,
    category: String,
    price: i32,
    quantity: i32,
    active: bool,
    tags: Vec<String>,
    rating: Rating,
}

/// An item with its total; borrowed, so that only the total is new.
#[derive(Serialize)]
struct Sold<'a> {
    #[serde(flatten)]
    item: &'a Item,
    total: i64,
}

impl<'a> Sold<'a> {
    fn of(item: &'a Item, factor: i64) -> Self {
        let total = i64::from(item.price) * i64::from(item.quantity) * factor;
        Self { item, total }
    }
}

#[derive(Serialize)]
struct Listing<T> {
    items: Vec<T>,
    count: usize,
}

struct Service {
    items: Vec<Item>,
    /// `None` where no database was named.
    pool: Option<Pool>,
}

fn main() -> io::Result<()> {
    let option = |name: &str| env::args().skip_while(|word| word != name).nth(1);
    let number = |name: &str| option(name).map(|text| text.parse().expect("a number"));
    let port: u16 = number("--port").unwrap_or(8000);
    let workers = number("--workers").unwrap_or(1);
    let tls = option("--cert").zip(option("--key")).map(|(cert, key)| tls(&cert, &key));
    let is_h2c = env::args().any(|word| word == "--h2c");
    System::new().block_on(serve(port, workers.into(), tls, is_h2c))
}

async fn serve(port: u16, workers: usize, tls: Option<ServerConfig>, is_h2c: bool) -> io::Result<()> {
    let text = fs::read_to_string(env::var("DATASET_PATH").expect("a data set"))?;
    let service = Data::from(Arc::new(Service {
        items: serde_json::from_str(&text)?,
        pool: env::var("DATABASE_URL").ok().map(|url| pool(url, workers)),
    }));
    let files = env::var("STATIC_DIR").expect("a folder");
    let server = HttpServer::new(move || {
        App::new()
            .app_data(service.clone())
            .route("/baseline11", get().to(add))
            .route("/baseline11", post().to(add_body))
            .route("/baseline2", get().to(add))
            .route("/pipeline", get().to(async || text_of("ok".into())))
            // Files are not compressed as they are read: their length would differ from response to response.
            .service(resource("/json/{count}").wrap(Compress::default()).route(get().to(listing)))
            .route("/upload", post().to(upload))
            .route("/async-db", get().to(between))
            .route("/delay/{ms}", get().to(delay))
            .route("/ws", get().to(echo))
            .service(Files::new("/static", &files))
    })
    .workers(workers);
    let address = ("127.0.0.1", port);
    match tls {
        Some(config) => server.bind_rustls_0_23(address, config)?,
        None if is_h2c => server.bind_auto_h2c(address)?,
        None => server.bind(address)?,
    }
    .run()
    .await
}

fn tls(cert: &str, key: &str) -> ServerConfig {
    let chain = CertificateDer::pem_file_iter(cert).expect("a file").map(|one| one.expect("PEM"));
    let key = PrivateKeyDer::from_pem_file(key).expect("a key");
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("the provider's own versions")
        .with_no_client_auth()
        .with_single_cert(chain.collect(), key)
        .expect("a key that fits")
}

fn pool(url: String, workers: usize) -> Pool {
    let size: usize = env::var("DATABASE_MAX_CONN").map_or(4, |text| text.parse().expect("a number"));
    let mut config = Config::new();
    config.url = Some(url);
    config.pool = Some(PoolConfig::new((size / workers).max(1) * workers));
    config.create_pool(Some(Runtime::Tokio1), NoTls).expect("a URL of a database")
}

fn text_of(body: String) -> HttpResponse {
    HttpResponse::Ok().content_type("text/plain").body(body)
}

async fn delay(ms: Path<u64>) -> HttpResponse {
    sleep(Duration::from_millis(*ms)).await;
    text_of(ms.to_string())
}

#[derive(Deserialize)]
struct Pair {
    a: i64,
    b: i64,
}

async fn add(Query(Pair { a, b }): Query<Pair>) -> HttpResponse {
    text_of((a + b).to_string())
}

async fn add_body(Query(Pair { a, b }): Query<Pair>, body: String) -> Result<HttpResponse, Error> {
    let more: i64 = body.trim().parse().map_err(error::ErrorBadRequest)?;
    Ok(text_of((a + b + more).to_string()))
}

#[derive(Deserialize)]
struct Factor {
    m: i64,
}

async fn listing(service: Data<Service>, count: Path<usize>, Query(Factor { m }): Query<Factor>) -> HttpResponse {
    let count = (*count).min(service.items.len());
    let items: Vec<_> = service.items[..count].iter().map(|item| Sold::of(item, m)).collect();
    HttpResponse::Ok().json(Listing { items, count })
}

async fn upload(mut body: Payload) -> Result<HttpResponse, Error> {
    let mut total = 0;
    while let Some(piece) = body.next().await {
        let piece: Bytes = piece?;
        total += piece.len();
    }
    Ok(text_of(total.to_string()))
}

#[derive(Deserialize)]
struct Range {
    min: i32,
    max: i32,
    limit: i64,
}

const BETWEEN: &str = "SELECT id, name, category, price, quantity, active, tags, rating_score, rating_count \
                       FROM items WHERE price BETWEEN $1 AND $2 LIMIT $3";

async fn between(service: Data<Service>, Query(range): Query<Range>) -> Result<Json<Listing<Item>>, Error> {
    let pool = service.pool.as_ref().ok_or_else(|| error::ErrorNotFound("no database"))?;
    let connection = pool.get().await.map_err(error::ErrorInternalServerError)?;
    let statement = connection.prepare_cached(BETWEEN).await.map_err(error::ErrorInternalServerError)?;
    let limit = range.limit.clamp(1, 50);
    let rows = connection
        .query(&statement, &[&range.min, &range.max, &limit])
        .await
        .map_err(error::ErrorInternalServerError)?;
    let items: Vec<_> = rows.iter().map(item_of).collect();
    let count = items.len();
    Ok(Json(Listing { items, count }))
}

fn item_of(row: &Row) -> Item {
    let types::Json(tags) = row.get(6);
    Item {
        id: row.get(0),
        name: row.get(1),
        category: row.get(2),
        price: row.get(3),
        quantity: row.get(4),
        active: row.get(5),
        tags,
        rating: Rating { score: row.get(7), count: row.get(8) },
    }
}

async fn echo(request: HttpRequest, body: Payload) -> Result<HttpResponse, Error> {
    let (response, mut session, mut messages) = actix_ws::handle(&request, body)?;
    actix_web::rt::spawn(async move {
        while let Some(Ok(message)) = messages.next().await {
            let sent = match message {
                Message::Text(text) => session.text(text).await,
                Message::Binary(bytes) => session.binary(bytes).await,
                Message::Ping(bytes) => session.pong(&bytes).await,
                Message::Close(reason) => return drop(session.close(reason).await),
                _ => Ok(()),
            };
            if sent.is_err() {
                return;
            }
        }
    });
    Ok(response)
}
