//! The workload `orm` on actix-web and Diesel: `db-actix-diesel --port PORT --workers THREADS`.
#![forbid(unsafe_code)]

mod app;

use std::{env, error::Error};

use actix_web::{App, HttpServer, web};

#[actix_web::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let pool = app::pool(&env::var("DATABASE_URL")?)?;
    HttpServer::new(move || {
        App::new()
            .app_data(web::Data::new(pool.clone()))
            .service(app::orm)
    })
    .workers(option("--workers", 1).into())
    .backlog(2048)
    .bind(("127.0.0.1", option("--port", 8000)))?
    .run()
    .await?;
    Ok(())
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
