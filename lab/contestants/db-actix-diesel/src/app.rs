//! A page of items by Diesel: a connection of the pool for each request.

use actix_web::{Responder, error::ErrorInternalServerError, get, web};
use diesel::prelude::*;
use diesel_async::{
    AsyncPgConnection, RunQueryDsl,
    pooled_connection::{
        AsyncDieselConnectionManager, ManagerConfig, RecyclingMethod, deadpool::BuildError,
        deadpool::Pool,
    },
};
use serde::{Deserialize, Serialize};

diesel::table! {
    items (id) {
        id -> Integer,
        name -> Text,
        category -> Text,
        price -> Integer,
        quantity -> Integer,
        active -> Bool,
        tags -> Jsonb,
        rating_score -> Integer,
        rating_count -> Integer,
    }
}

#[derive(HasQuery, Serialize)]
#[diesel(table_name = items)]
struct Rating {
    #[diesel(column_name = rating_score)]
    score: i32,
    #[diesel(column_name = rating_count)]
    count: i32,
}

#[derive(HasQuery, Serialize)]
#[diesel(table_name = items)]
struct Item {
    id: i32,
    name: String,
    category: String,
    price: i32,
    quantity: i32,
    active: bool,
    tags: serde_json::Value,
    #[diesel(embed)]
    rating: Rating,
}

#[derive(Serialize)]
struct Page {
    count: usize,
    items: Vec<Item>,
}

#[derive(Deserialize)]
struct Range {
    min: i32,
    max: i32,
    limit: i64,
}

/// A pool of eight connections to the database at `url`; a connection is not asked whether it lives before each use.
pub fn pool(url: &str) -> Result<Pool<AsyncPgConnection>, BuildError> {
    let mut config = ManagerConfig::default();
    config.recycling_method = RecyclingMethod::Fast;
    let manager = AsyncDieselConnectionManager::new_with_config(url, config);
    Pool::builder(manager).max_size(8).build()
}

#[get("/orm")]
pub async fn orm(
    pool: web::Data<Pool<AsyncPgConnection>>,
    asked: web::Query<Range>,
) -> actix_web::Result<impl Responder> {
    let mut connection = pool.get().await.map_err(ErrorInternalServerError)?;
    let items = Item::query()
        .filter(items::price.between(asked.min, asked.max))
        .limit(asked.limit)
        .load(&mut connection)
        .await
        .map_err(ErrorInternalServerError)?;
    let count = items.len();
    Ok(web::Json(Page { count, items }))
}
