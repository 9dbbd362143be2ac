"""The shop on Litestar."""

from typing import Annotated

from litestar import Litestar, Request, delete, get, post, put
from litestar.di import Provide
from litestar.dto import DTOConfig, MsgspecDTO
from litestar.exceptions import NotAuthorizedException, NotFoundException
from litestar.pagination import OffsetPagination
from litestar.params import Parameter
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
    cost: float
    stock: int
    tags: list[str]
    seller: str


class PublicProduct(MsgspecDTO[Product]):
    config = DTOConfig(exclude={"cost"})


store = Store(Product)


async def find_seller(request: Request) -> str:
    key = request.headers.get("X-API-Key")
    if key not in SELLERS:
        raise NotAuthorizedException("the key is not known")
    return SELLERS[key]


@get("/products", return_dto=PublicProduct)
async def products(
    category: Category,
    offset: Annotated[int, Parameter(ge=0)] = 0,
    limit: Annotated[int, Parameter(ge=1, le=100)] = 20,
) -> OffsetPagination[Product]:
    items, total = store.page(category, offset, limit)
    return OffsetPagination(items=items, limit=limit, offset=offset, total=total)


@get("/products/{id:int}", return_dto=PublicProduct)
async def product(id: int) -> Product:
    found = store.get(id)
    if found is None:
        raise NotFoundException(f"there is no product {id}")
    return found


@post("/products", dependencies={"seller": Provide(find_seller)}, return_dto=PublicProduct)
async def create(data: Draft, seller: str) -> Product:
    made = Product(id=store.next_id(), seller=seller, **asdict(data))
    store.put(made.id, made.category, made)
    return made


@put("/products/{id:int}", dependencies={"seller": Provide(find_seller)}, return_dto=PublicProduct)
async def update(id: int, data: Draft, seller: str) -> Product:
    if store.get(id) is None:
        raise NotFoundException(f"there is no product {id}")
    changed = Product(id=id, seller=seller, **asdict(data))
    store.put(id, changed.category, changed)
    return changed


@delete("/products/{id:int}", dependencies={"seller": Provide(find_seller)})
async def remove(id: int, seller: str) -> None:
    store.remove(id)


app = Litestar([products, product, create, update, remove])
