"""The shop on BlackSheep."""

from typing import Any

import orjson
from blacksheep import Application, FromJSON, FromQuery, Request, Response, created, json, no_content
from blacksheep.exceptions import BadRequest, NotFound, Unauthorized
from blacksheep.server.bindings import Binder, BoundValue
from blacksheep.settings.json import json_settings
from pydantic import BaseModel, Field
from shop_store import SELLERS, Category, Store


class Draft(BaseModel):
    name: str = Field(min_length=1, max_length=80)
    category: Category
    price: float = Field(gt=0)
    cost: float = Field(ge=0)
    stock: int = Field(0, ge=0)
    tags: list[str] = []


class Product(BaseModel):
    id: int
    name: str
    category: Category
    price: float
    cost: float = Field(exclude=True)
    stock: int
    tags: list[str]
    seller: str


class Page(BaseModel):
    items: list[Product]
    limit: int
    offset: int
    total: int


def encode(value: Any) -> str:
    return orjson.dumps(value, default=lambda model: model.model_dump()).decode()


json_settings.use(loads=orjson.loads, dumps=encode)
app = Application()
store = Store(Product)


class Seller(BoundValue[str]):
    """The seller whose key a request has."""


class SellerBinder(Binder):
    handle = Seller

    async def get_value(self, request: Request) -> str:
        key = (request.get_first_header(b"X-API-Key") or b"").decode()
        if key not in SELLERS:
            raise Unauthorized("the key is not known")
        return SELLERS[key]


@app.router.get("/products")
async def products(category: FromQuery[Category], offset: int = 0, limit: int = 20) -> Response:
    if offset < 0 or not 1 <= limit <= 100:
        raise BadRequest("offset or limit is out of range")
    items, total = store.page(category.value, offset, limit)
    return json(Page(items=items, limit=limit, offset=offset, total=total))


@app.router.get("/products/{int:id}")
async def product(id: int) -> Response:
    found = store.get(id)
    if found is None:
        raise NotFound(f"there is no product {id}")
    return json(found)


@app.router.post("/products")
async def create(seller: Seller, draft: FromJSON[Draft]) -> Response:
    made = Product(id=store.next_id(), seller=seller.value, **draft.value.model_dump())
    store.put(made.id, made.category, made)
    return created(made)


@app.router.put("/products/{int:id}")
async def update(id: int, seller: Seller, draft: FromJSON[Draft]) -> Response:
    if store.get(id) is None:
        raise NotFound(f"there is no product {id}")
    changed = Product(id=id, seller=seller.value, **draft.value.model_dump())
    store.put(id, changed.category, changed)
    return json(changed)


@app.router.delete("/products/{int:id}")
async def delete(id: int, seller: Seller) -> Response:
    store.remove(id)
    return no_content()
