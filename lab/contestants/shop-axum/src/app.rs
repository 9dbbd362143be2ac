//! The shop on axum.

use std::sync::{Arc, RwLock};

use axum::extract::{FromRequestParts, Json, Path, Query, State};
use axum::http::StatusCode;
use axum::http::request::Parts;
use axum::response::IntoResponse;
use axum::routing::get;
use axum::{Router, response};
use serde::{Deserialize, Serialize};
use validator::Validate;

use crate::store::{self, Category, Store};

#[derive(Deserialize, Validate)]
struct Draft {
    #[validate(length(min = 1, max = 80))]
    name: String,
    category: Category,
    #[validate(range(exclusive_min = 0.0))]
    price: f64,
    #[validate(range(min = 0.0))]
    cost: f64,
    #[serde(default)]
    stock: u32,
    #[serde(default)]
    tags: Vec<String>,
}

#[derive(Clone, Serialize)]
struct Product {
    id: u32,
    name: String,
    category: Category,
    price: f64,
    #[serde(skip)]
    #[expect(dead_code, reason = "the shop keeps it to itself")]
    cost: f64,
    stock: u32,
    tags: Vec<String>,
    seller: String,
}

#[derive(Serialize)]
struct Page {
    items: Vec<Product>,
    limit: usize,
    offset: usize,
    total: usize,
}

#[derive(Deserialize, Validate)]
struct Selection {
    category: Category,
    #[serde(default)]
    offset: usize,
    #[serde(default = "limit_default")]
    #[validate(range(min = 1, max = 100))]
    limit: usize,
}

fn limit_default() -> usize {
    20
}

struct Failure(StatusCode, String);

impl IntoResponse for Failure {
    fn into_response(self) -> response::Response {
        let body = Json(Detail { detail: self.1 });
        (self.0, body).into_response()
    }
}

#[derive(Serialize)]
struct Detail {
    detail: String,
}

impl From<validator::ValidationErrors> for Failure {
    fn from(errors: validator::ValidationErrors) -> Self {
        Self(StatusCode::UNPROCESSABLE_ENTITY, errors.to_string())
    }
}

struct Seller(String);

impl<S: Sync> FromRequestParts<S> for Seller {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Failure> {
        let key = parts.headers.get("x-api-key");
        key.and_then(|key| store::seller(key.to_str().ok()?))
            .map(Seller)
            .ok_or_else(|| Failure(StatusCode::UNAUTHORIZED, "the key is not known".to_owned()))
    }
}

type Shop = State<Arc<RwLock<Store<Product>>>>;

pub fn routes() -> Router {
    let store = Store::new(|fields| Product {
        id: fields.id,
        name: fields.name,
        category: fields.category,
        price: fields.price,
        cost: fields.cost,
        stock: fields.stock,
        tags: fields.tags,
        seller: fields.seller,
    });
    Router::new()
        .route("/products", get(products).post(create))
        .route("/products/{id}", get(product).put(update).delete(delete))
        .with_state(Arc::new(RwLock::new(store)))
}

fn missing(id: u32) -> Failure {
    Failure(StatusCode::NOT_FOUND, format!("there is no product {id}"))
}

fn make(id: u32, seller: Seller, draft: Draft) -> Product {
    Product {
        id,
        name: draft.name,
        category: draft.category,
        price: draft.price,
        cost: draft.cost,
        stock: draft.stock,
        tags: draft.tags,
        seller: seller.0,
    }
}

async fn products(
    State(store): Shop,
    Query(Selection {
        category,
        offset,
        limit,
    }): Query<Selection>,
) -> Result<Json<Page>, Failure> {
    Selection {
        category,
        offset,
        limit,
    }
    .validate()?;
    let (items, total) = store
        .read()
        .expect("no panic")
        .page(category, offset, limit);
    Ok(Json(Page {
        items,
        limit,
        offset,
        total,
    }))
}

async fn product(State(store): Shop, Path(id): Path<u32>) -> Result<Json<Product>, Failure> {
    let store = store.read().expect("no panic");
    Ok(Json(store.get(id).ok_or_else(|| missing(id))?.clone()))
}

async fn create(
    State(store): Shop,
    seller: Seller,
    Json(draft): Json<Draft>,
) -> Result<(StatusCode, Json<Product>), Failure> {
    draft.validate()?;
    let mut store = store.write().expect("no panic");
    let made = make(store.next_id(), seller, draft);
    store.put(made.id, made.category, made.clone());
    Ok((StatusCode::CREATED, Json(made)))
}

async fn update(
    State(store): Shop,
    Path(id): Path<u32>,
    seller: Seller,
    Json(draft): Json<Draft>,
) -> Result<Json<Product>, Failure> {
    draft.validate()?;
    let mut store = store.write().expect("no panic");
    store.get(id).ok_or_else(|| missing(id))?;
    let changed = make(id, seller, draft);
    store.put(id, changed.category, changed.clone());
    Ok(Json(changed))
}

async fn delete(State(store): Shop, Path(id): Path<u32>, _: Seller) -> StatusCode {
    store.write().expect("no panic").remove(id);
    StatusCode::NO_CONTENT
}
