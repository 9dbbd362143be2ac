//! The contract on actix-web, the Rust server of article 000.
#![forbid(unsafe_code)]

use std::time::Duration;
use std::{env, io};

use actix_web::rt::{System, time};
use actix_web::web::{self, Bytes, Query};
use actix_web::{App, HttpRequest, HttpResponse, HttpServer};
use serde::Deserialize;
use work::Data;

fn main() -> io::Result<()> {
    let option = |name: &str, default: u16| -> u16 {
        let mut words = env::args().skip_while(|word| word != name).skip(1);
        words.next().map_or(default, |value| {
            value
                .parse()
                .unwrap_or_else(|_| panic!("{name} expects a number, got {value:?}"))
        })
    };
    let (port, workers) = (option("--port", 8000), option("--workers", 1));
    System::new().block_on(serve(port, workers.into()))
}

/// The records, and the array as shared bytes so that sending it copies nothing in user space.
struct Service {
    data: Data,
    json_array: Bytes,
}

async fn serve(port: u16, workers: usize) -> io::Result<()> {
    let mut data = Data::new();
    let json_array = Bytes::from(std::mem::take(&mut data.json_array));
    let service = web::Data::new(Service { data, json_array });
    HttpServer::new(move || {
        App::new()
            .app_data(service.clone())
            .route("/", web::get().to(async || text("Welcome!\n")))
            .route("/parse-msgpack", web::get().to(parse_msgpack))
            .route("/encode-json", web::get().to(encode_json))
            .route("/transfer-data", web::get().to(transfer_data))
            .route("/million-loop", web::get().to(million_loop))
            .route("/async", web::get().to(sleep))
            .route("/fibonacci", web::get().to(fibonacci))
            .route("/classify/{rest:.*}", web::get().to(classify))
    })
    .workers(workers)
    .bind(("127.0.0.1", port))?
    .run()
    .await
}

fn text(body: impl Into<Bytes>) -> HttpResponse {
    HttpResponse::Ok()
        .content_type("text/plain; charset=utf-8")
        .body(body.into())
}

#[derive(Deserialize)]
struct Texts {
    texts: Option<String>,
}

async fn parse_msgpack(
    service: web::Data<Service>,
    Query(Texts { texts }): Query<Texts>,
) -> HttpResponse {
    text(service.data.parse_msgpack(texts.as_deref() == Some("varied")))
}

async fn encode_json(service: web::Data<Service>) -> HttpResponse {
    text(service.data.encode_json())
}

async fn transfer_data(service: web::Data<Service>) -> HttpResponse {
    HttpResponse::Ok()
        .content_type("application/json")
        .body(service.json_array.clone())
}

#[derive(Deserialize)]
struct First {
    first: Option<u32>,
}

async fn fibonacci(Query(First { first }): Query<First>) -> HttpResponse {
    text(work::fibonacci_answer(first).into_owned())
}

#[derive(Deserialize)]
struct Seed {
    seed: Option<i64>,
}

async fn million_loop(Query(Seed { seed }): Query<Seed>) -> HttpResponse {
    text(work::million_loop(seed.unwrap_or(1)).to_string())
}

async fn sleep() -> HttpResponse {
    time::sleep(Duration::from_millis(2)).await;
    text("OK")
}

async fn classify(request: HttpRequest) -> HttpResponse {
    text(work::classify(request.path()))
}
