"""The course, the admin, and a form that a browser fills in. Views are `def` for WSGI; under ASGI those that
stream or wait are `async def` (`shop.urls` asks `SHOP_ASYNC`)."""

import os

from django.contrib import admin
from django.contrib.staticfiles.urls import staticfiles_urlpatterns
from django.urls import path
from wares import views

IS_ASYNC = os.environ.get("SHOP_ASYNC") == "1"

urlpatterns = [
    path("admin/", admin.site.urls),
    path("hello", views.async_hello if IS_ASYNC else views.hello),
    path("greet/<str:name>", views.greet),
    path("show", views.show),
    path("echo", views.echo),
    path("form", views.form),
    path("upload", views.upload),
    path("stream", views.async_stream if IS_ASYNC else views.stream),
    path("endless", views.async_endless if IS_ASYNC else views.endless),
    path("fail-later", views.async_fail_later if IS_ASYNC else views.fail_later),
    path("left", views.left),
    path("fail", views.fail),
    path("cookies", views.cookies),
    path("redirect", views.redirected),
    path("nothing", views.nothing),
    path("file", views.file),
    path("count", views.count),
    path("wares/", views.wares),
    *staticfiles_urlpatterns(),
]
