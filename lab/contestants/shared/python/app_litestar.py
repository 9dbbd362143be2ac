"""A service on Litestar: CORS, compression, and headers for browsers."""

from litestar import Litestar, get
from litestar.config.compression import CompressionConfig
from litestar.config.cors import CORSConfig


@get("/greet/{name:str}")
async def greet(name: str, times: int) -> dict[str, list[str]]:
    return {"hello": [name] * times}


app = Litestar(
    [greet],
    cors_config=CORSConfig(allow_origins=["https://shop.example"]),
    compression_config=CompressionConfig(backend="gzip", minimum_size=1000),
    response_headers={"X-Content-Type-Options": "nosniff", "X-Frame-Options": "DENY"},
)
