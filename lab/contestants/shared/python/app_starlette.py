"""A service on Starlette: CORS, compression, sessions and the hosts that it answers for."""

from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.cors import CORSMiddleware
from starlette.middleware.gzip import GZipMiddleware
from starlette.middleware.sessions import SessionMiddleware
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.responses import JSONResponse
from starlette.routing import Route


async def greet(request):
    times = int(request.query_params["times"])
    return JSONResponse({"hello": [request.path_params["name"]] * times})


app = Starlette(
    routes=[Route("/greet/{name}", greet)],
    middleware=[
        Middleware(TrustedHostMiddleware, allowed_hosts=["127.0.0.1"]),
        Middleware(CORSMiddleware, allow_origins=["https://shop.example"]),
        Middleware(SessionMiddleware, secret_key="-"),
        Middleware(GZipMiddleware, minimum_size=1000),
    ],
)
