"""The shop on Citius."""

from typing import Annotated

from citius import App, Depends, Header, NotFound, Query, Unauthorized
from msgspec import Meta, Struct
from msgspec.structs import asdict
from shop_store import SELLERS, Category, Store


class Draft(Struct):
    name: Annotated[str, Meta(min_length=1, max_length=80)]
    category: Category
    price: Annotated[float, Meta(gt=0)]
    cost: Annotated[float, Meta(ge=0)]
    stock: Annotated[int, Meta(ge=0)] = 0
    tags: list[str] = []


class Product(Struct):
    id: int
    name: str
    category: Category
    price: float
    stock: int
    tags: list[str]
    seller: str


class StoredProduct(Product):
    cost: float


class Page(Struct):
    items: list[Product]
    limit: int
    offset: int
    total: int


app = App()
store = Store(StoredProduct)


def find_seller(key: Annotated[str, Header(alias="X-API-Key")] = "") -> str:
    if key not in SELLERS:
        raise Unauthorized("the key is not known")
    return SELLERS[key]


Seller = Annotated[str, Depends(find_seller)]


@app.get("/products")
def products(
    category: Category,
    offset: Annotated[int, Query(ge=0)] = 0,
    limit: Annotated[int, Query(ge=1, le=100)] = 20,
) -> Page:
    items, total = store.page(category, offset, limit)
    return Page(items, limit, offset, total)


@app.get("/products/{id:int}")
def product(id: int) -> Product:
    found = store.get(id)
    if found is None:
        raise NotFound(f"there is no product {id}")
    return found


@app.post("/products", status_code=201)
def create(draft: Draft, seller: Seller) -> Product:
    made = StoredProduct(id=store.next_id(), seller=seller, **asdict(draft))
    store.put(made.id, made.category, made)
    return made


@app.put("/products/{id:int}")
def update(id: int, draft: Draft, seller: Seller) -> Product:
    if store.get(id) is None:
        raise NotFound(f"there is no product {id}")
    changed = StoredProduct(id=id, seller=seller, **asdict(draft))
    store.put(id, changed.category, changed)
    return changed


@app.delete("/products/{id:int}", status_code=204)
def delete(id: int, seller: Seller) -> None:
    store.remove(id)
