"""The shop on FastAPI."""

from typing import Annotated

from fastapi import Depends, FastAPI, HTTPException, Query
from fastapi.security import APIKeyHeader
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
    stock: int
    tags: list[str]
    seller: str


class StoredProduct(Product):
    cost: float


class Page(BaseModel):
    items: list[Product]
    limit: int
    offset: int
    total: int


app = FastAPI()
store = Store(StoredProduct)
api_key = APIKeyHeader(name="X-API-Key", auto_error=False)


async def find_seller(key: Annotated[str | None, Depends(api_key)]) -> str:
    if key not in SELLERS:
        raise HTTPException(401, "the key is not known")
    return SELLERS[key]


Seller = Annotated[str, Depends(find_seller)]


@app.get("/products")
async def products(
    category: Category,
    offset: Annotated[int, Query(ge=0)] = 0,
    limit: Annotated[int, Query(ge=1, le=100)] = 20,
) -> Page:
    items, total = store.page(category, offset, limit)
    return Page(items=items, limit=limit, offset=offset, total=total)


@app.get("/products/{id}")
async def product(id: int) -> Product:
    found = store.get(id)
    if found is None:
        raise HTTPException(404, f"there is no product {id}")
    return found


@app.post("/products", status_code=201)
async def create(draft: Draft, seller: Seller) -> Product:
    made = StoredProduct(id=store.next_id(), seller=seller, **draft.model_dump())
    store.put(made.id, made.category, made)
    return made


@app.put("/products/{id}")
async def update(id: int, draft: Draft, seller: Seller) -> Product:
    if store.get(id) is None:
        raise HTTPException(404, f"there is no product {id}")
    changed = StoredProduct(id=id, seller=seller, **draft.model_dump())
    store.put(id, changed.category, changed)
    return changed


@app.delete("/products/{id}", status_code=204)
async def delete(id: int, _seller: Seller) -> None:
    store.remove(id)
