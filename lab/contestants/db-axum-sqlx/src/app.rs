//! Handlers: sqlx takes one of eight connections for each statement and prepares it once per connection.

use std::collections::BTreeSet;
use std::error::Error;

use askama::Template;
use axum::{
    Json, Router,
    extract::{Query, State},
    http::StatusCode,
    response::{Html, IntoResponse, Response},
    routing::get,
};
use serde::{Deserialize, Serialize};
use sqlx::{FromRow, PgExecutor, PgPool, postgres::PgPoolOptions, types::Json as JsonColumn};

const WORLD: &str = "SELECT id, randomnumber FROM world WHERE id = $1";
const ITEMS: &str = "SELECT id, name, category, price, quantity, active, tags, rating_score, rating_count \
                     FROM items WHERE price BETWEEN $1 AND $2 LIMIT $3";
const READ: &str = "SELECT id, randomnumber FROM changing WHERE id = $1";
const WRITE: &str = "UPDATE changing SET randomnumber = $2 WHERE id = $1";
const FORTUNES: &str = "SELECT id, message FROM fortune";

#[derive(FromRow, Serialize)]
struct World {
    id: i32,
    #[sqlx(rename = "randomnumber")]
    #[serde(rename = "randomNumber")]
    random_number: i32,
}

#[derive(FromRow, Serialize)]
struct Rating {
    #[sqlx(rename = "rating_score")]
    score: i32,
    #[sqlx(rename = "rating_count")]
    count: i32,
}

#[derive(FromRow, Serialize)]
struct Item {
    id: i32,
    name: String,
    category: String,
    price: i32,
    quantity: i32,
    active: bool,
    tags: JsonColumn<Vec<String>>,
    #[sqlx(flatten)]
    rating: Rating,
}

#[derive(Serialize)]
struct Page {
    count: usize,
    items: Vec<Item>,
}

#[derive(FromRow)]
struct Fortune {
    id: i32,
    message: String,
}

#[derive(Template)]
#[template(path = "fortunes.html")]
struct Fortunes {
    fortunes: Vec<Fortune>,
}

/// Anything that went wrong, as a response.
struct Failure(Box<dyn Error + Send + Sync>);

impl<E: Into<Box<dyn Error + Send + Sync>>> From<E> for Failure {
    fn from(error: E) -> Self {
        Self(error.into())
    }
}

impl IntoResponse for Failure {
    fn into_response(self) -> Response {
        (StatusCode::INTERNAL_SERVER_ERROR, self.0.to_string()).into_response()
    }
}

/// A pool of eight connections to the database at `url`; a connection is not asked whether it lives before each use.
pub async fn pool(url: &str) -> Result<PgPool, sqlx::Error> {
    PgPoolOptions::new()
        .min_connections(8)
        .max_connections(8)
        .test_before_acquire(false)
        .connect(url)
        .await
}

pub fn routes(pool: PgPool) -> Router {
    Router::new()
        .route("/db", get(db_one))
        .route("/async-db", get(db_rows))
        .route("/queries", get(db_queries))
        .route("/updates", get(db_updates))
        .route("/fortunes", get(fortunes))
        .with_state(pool)
}

async fn read(executor: impl PgExecutor<'_>, sql: &'static str, id: i32) -> sqlx::Result<World> {
    sqlx::query_as(sql).bind(id).fetch_one(executor).await
}

#[derive(Deserialize)]
struct Id {
    id: i32,
}

async fn db_one(
    State(pool): State<PgPool>,
    Query(asked): Query<Id>,
) -> Result<Json<World>, Failure> {
    Ok(Json(read(&pool, WORLD, asked.id).await?))
}

#[derive(Deserialize)]
struct Range {
    min: i32,
    max: i32,
    limit: i64,
}

async fn db_rows(
    State(pool): State<PgPool>,
    Query(asked): Query<Range>,
) -> Result<Json<Page>, Failure> {
    let items = sqlx::query_as(ITEMS)
        .bind(asked.min)
        .bind(asked.max)
        .bind(asked.limit)
        .fetch_all(&pool)
        .await?;
    let count = items.len();
    Ok(Json(Page { count, items }))
}

#[derive(Deserialize)]
struct Count {
    n: usize,
}

/// sqlx does not pipeline: a connection answers one statement before the next is sent.
async fn db_queries(
    State(pool): State<PgPool>,
    Query(asked): Query<Count>,
) -> Result<Json<Vec<World>>, Failure> {
    let mut connection = pool.acquire().await?;
    let mut rows = Vec::with_capacity(asked.n);
    for _ in 0..asked.n {
        rows.push(read(&mut *connection, WORLD, fastrand::i32(1..=10_000)).await?);
    }
    Ok(Json(rows))
}

/// In the order of the ids, so that no two requests wait for each other; the writes are one transaction.
async fn db_updates(
    State(pool): State<PgPool>,
    Query(asked): Query<Count>,
) -> Result<Json<Vec<World>>, Failure> {
    let mut ids = BTreeSet::new();
    while ids.len() < asked.n {
        ids.insert(fastrand::i32(1..=10_000));
    }
    let mut connection = pool.acquire().await?;
    let mut rows = Vec::with_capacity(asked.n);
    for id in ids {
        rows.push(read(&mut *connection, READ, id).await?);
    }
    let mut transaction = sqlx::Connection::begin(&mut *connection).await?;
    for row in &mut rows {
        row.random_number = fastrand::i32(1..=10_000);
        sqlx::query(WRITE)
            .bind(row.id)
            .bind(row.random_number)
            .execute(&mut *transaction)
            .await?;
    }
    transaction.commit().await?;
    Ok(Json(rows))
}

async fn fortunes(State(pool): State<PgPool>) -> Result<Html<String>, Failure> {
    let mut fortunes: Vec<Fortune> = sqlx::query_as(FORTUNES).fetch_all(&pool).await?;
    fortunes.push(Fortune {
        id: 0,
        message: "Additional fortune added at request time.".into(),
    });
    fortunes.sort_by(|a, b| a.message.cmp(&b.message));
    Ok(Html(Fortunes { fortunes }.render()?))
}
