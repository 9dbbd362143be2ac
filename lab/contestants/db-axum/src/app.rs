//! Handlers: each takes one of eight connections from the pool; statements are prepared once per connection.

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
use deadpool_postgres::{Client, Manager, ManagerConfig, Pool, RecyclingMethod, Transaction};
use futures_util::future::try_join_all;
use serde::{Deserialize, Serialize};
use tokio_postgres::{NoTls, Statement};

const WORLD: &str = "SELECT id, randomnumber FROM world WHERE id = $1";
const ITEMS: &str = "SELECT id, name, category, price, quantity, active, tags, rating_score, rating_count \
                     FROM items WHERE price BETWEEN $1 AND $2 LIMIT $3";
const READ: &str = "SELECT id, randomnumber FROM changing WHERE id = $1";
const WRITE: &str = "UPDATE changing SET randomnumber = $2 WHERE id = $1";
const FORTUNES: &str = "SELECT id, message FROM fortune";

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct World {
    id: i32,
    random_number: i32,
}

#[derive(Serialize)]
struct Rating {
    score: i32,
    count: i32,
}

#[derive(Serialize)]
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

#[derive(Serialize)]
struct Page {
    count: usize,
    items: Vec<Item>,
}

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

/// A pool of eight connections to the database at `url`.
pub fn pool(url: &str) -> Result<Pool, Box<dyn Error>> {
    let recycling_method = RecyclingMethod::Fast;
    let manager = Manager::from_config(url.parse()?, NoTls, ManagerConfig { recycling_method });
    Ok(Pool::builder(manager).max_size(8).build()?)
}

pub fn routes(pool: Pool) -> Router {
    Router::new()
        .route("/db", get(db_one))
        .route("/async-db", get(db_rows))
        .route("/queries", get(db_queries))
        .route("/updates", get(db_updates))
        .route("/fortunes", get(fortunes))
        .with_state(pool)
}

async fn world(client: &Client, id: i32) -> Result<World, Failure> {
    let statement = client.prepare_cached(WORLD).await?;
    let row = client.query_one(&statement, &[&id]).await?;
    Ok(World {
        id: row.get(0),
        random_number: row.get(1),
    })
}

#[derive(Deserialize)]
struct Id {
    id: i32,
}

async fn db_one(State(pool): State<Pool>, Query(asked): Query<Id>) -> Result<Json<World>, Failure> {
    Ok(Json(world(&pool.get().await?, asked.id).await?))
}

#[derive(Deserialize)]
struct Range {
    min: i32,
    max: i32,
    limit: i64,
}

async fn db_rows(
    State(pool): State<Pool>,
    Query(asked): Query<Range>,
) -> Result<Json<Page>, Failure> {
    let client = pool.get().await?;
    let statement = client.prepare_cached(ITEMS).await?;
    let rows = client
        .query(&statement, &[&asked.min, &asked.max, &asked.limit])
        .await?;
    let items = rows.iter().map(item).collect::<Result<Vec<_>, _>>()?;
    let count = items.len();
    Ok(Json(Page { count, items }))
}

fn item(row: &tokio_postgres::Row) -> Result<Item, Failure> {
    let tags: tokio_postgres::types::Json<Vec<String>> = row.try_get(6)?;
    Ok(Item {
        id: row.try_get(0)?,
        name: row.try_get(1)?,
        category: row.try_get(2)?,
        price: row.try_get(3)?,
        quantity: row.try_get(4)?,
        active: row.try_get(5)?,
        tags: tags.0,
        rating: Rating {
            score: row.try_get(7)?,
            count: row.try_get(8)?,
        },
    })
}

#[derive(Deserialize)]
struct Count {
    n: usize,
}

/// The statements are sent one behind the other without waiting; each is a statement of its own.
async fn db_queries(
    State(pool): State<Pool>,
    Query(asked): Query<Count>,
) -> Result<Json<Vec<World>>, Failure> {
    let client = pool.get().await?;
    let rows = (0..asked.n).map(|_| world(&client, fastrand::i32(1..=10_000)));
    Ok(Json(try_join_all(rows).await?))
}

/// In the order of the ids, so that no two requests wait for each other; the writes are one transaction.
async fn db_updates(
    State(pool): State<Pool>,
    Query(asked): Query<Count>,
) -> Result<Json<Vec<World>>, Failure> {
    let mut ids = BTreeSet::new();
    while ids.len() < asked.n {
        ids.insert(fastrand::i32(1..=10_000));
    }
    let mut client = pool.get().await?;
    let read = client.prepare_cached(READ).await?;
    let write = client.prepare_cached(WRITE).await?;
    let reads = ids.iter().map(|id| read_one(&client, &read, id));
    let mut rows = try_join_all(reads).await?;
    let transaction = client.transaction().await?;
    for row in &mut rows {
        row.random_number = fastrand::i32(1..=10_000);
    }
    let writes = rows.iter().map(|row| write_one(&transaction, &write, row));
    try_join_all(writes).await?;
    transaction.commit().await?;
    Ok(Json(rows))
}

async fn read_one(client: &Client, statement: &Statement, id: &i32) -> Result<World, Failure> {
    let row = client.query_one(statement, &[id]).await?;
    Ok(World {
        id: row.get(0),
        random_number: row.get(1),
    })
}

async fn write_one(
    transaction: &Transaction<'_>,
    statement: &Statement,
    row: &World,
) -> Result<u64, Failure> {
    Ok(transaction
        .execute(statement, &[&row.id, &row.random_number])
        .await?)
}

async fn fortunes(State(pool): State<Pool>) -> Result<Html<String>, Failure> {
    let client = pool.get().await?;
    let statement = client.prepare_cached(FORTUNES).await?;
    let rows = client.query(&statement, &[]).await?;
    let mut fortunes = rows
        .iter()
        .map(|row| Fortune {
            id: row.get(0),
            message: row.get(1),
        })
        .collect::<Vec<_>>();
    fortunes.push(Fortune {
        id: 0,
        message: "Additional fortune added at request time.".into(),
    });
    fortunes.sort_by(|a, b| a.message.cmp(&b.message));
    Ok(Html(Fortunes { fortunes }.render()?))
}
