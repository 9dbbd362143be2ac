"""The workloads with a database on Django, its ORM and its templates."""

from __future__ import annotations

import os
from random import random, sample
from typing import Any
from urllib.parse import urlsplit

import django
from django.conf import settings
from django.core.wsgi import get_wsgi_application
from django.db import models
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.template import Context, Engine
from django.urls import path

database = urlsplit(os.environ["DATABASE_URL"])
settings.configure(
    ALLOWED_HOSTS=["*"],
    DATABASES={
        "default": {
            "ENGINE": "django.db.backends.postgresql",
            "HOST": database.hostname,
            "PORT": database.port,
            "USER": database.username,
            "PASSWORD": database.password,
            "NAME": database.path[1:],
            # A thread keeps its connection, and statements that return are prepared on the server.
            "CONN_MAX_AGE": None,
            "OPTIONS": {"server_side_binding": True},
        }
    },
    DEFAULT_AUTO_FIELD="django.db.models.AutoField",
    ROOT_URLCONF=__name__,
    SECRET_KEY="-",
    MIDDLEWARE=[
        "django.middleware.security.SecurityMiddleware",
        "django.middleware.common.CommonMiddleware",
        "django.middleware.clickjacking.XFrameOptionsMiddleware",
    ],
)
django.setup()


class Numbered(models.Model):
    id = models.IntegerField(primary_key=True)
    randomnumber = models.IntegerField()

    class Meta:
        abstract = True

    def as_dict(self) -> dict[str, int]:
        return {"id": self.id, "randomNumber": self.randomnumber}


class World(Numbered):
    class Meta:
        app_label = "data"
        db_table = "world"


class Changing(Numbered):
    class Meta:
        app_label = "data"
        db_table = "changing"


class Item(models.Model):
    id = models.IntegerField(primary_key=True)
    name = models.TextField()
    category = models.TextField()
    price = models.IntegerField()
    quantity = models.IntegerField()
    active = models.BooleanField()
    tags = models.JSONField()
    rating_score = models.IntegerField()
    rating_count = models.IntegerField()

    class Meta:
        app_label = "data"
        db_table = "items"

    def as_dict(self) -> dict[str, Any]:
        return {
            "id": self.id,
            "name": self.name,
            "category": self.category,
            "price": self.price,
            "quantity": self.quantity,
            "active": self.active,
            "tags": self.tags,
            "rating": {"score": self.rating_score, "count": self.rating_count},
        }


class Fortune(models.Model):
    id = models.IntegerField(primary_key=True)
    message = models.TextField()

    class Meta:
        app_label = "data"
        db_table = "fortune"


PAGE = Engine().from_string(
    "<!DOCTYPE html><html><head><title>Fortunes</title></head><body><table>"
    "<tr><th>id</th><th>message</th></tr>"
    "{% for fortune in fortunes %}<tr><td>{{ fortune.id }}</td><td>{{ fortune.message }}</td></tr>{% endfor %}"
    "</table></body></html>"
)


def db_one(request: HttpRequest) -> JsonResponse:
    return JsonResponse(World.objects.get(id=int(request.GET["id"])).as_dict())


def db_queries(request: HttpRequest) -> JsonResponse:
    ids = (int(random() * 10000) + 1 for _ in range(int(request.GET["n"])))
    return JsonResponse([World.objects.get(id=id).as_dict() for id in ids], safe=False)


def db_updates(request: HttpRequest) -> JsonResponse:
    # In the order of their ids, so that no two requests wait for each other.
    ids = sorted(sample(range(1, 10001), int(request.GET["n"])))
    rows = [Changing.objects.get(id=id) for id in ids]
    for row in rows:
        row.randomnumber = int(random() * 10000) + 1
    Changing.objects.bulk_update(rows, ["randomnumber"])
    return JsonResponse([row.as_dict() for row in rows], safe=False)


def fortunes(request: HttpRequest) -> HttpResponse:
    rows = [*Fortune.objects.all(), Fortune(0, "Additional fortune added at request time.")]
    rows.sort(key=lambda row: row.message)
    return HttpResponse(PAGE.render(Context({"fortunes": rows})))


def orm(request: HttpRequest) -> JsonResponse:
    low, high, limit = (int(request.GET[name]) for name in ("min", "max", "limit"))
    rows = Item.objects.filter(price__range=(low, high))[:limit]
    items = [row.as_dict() for row in rows]
    return JsonResponse({"items": items, "count": len(items)})


urlpatterns = [
    path("db", db_one),
    path("queries", db_queries),
    path("updates", db_updates),
    path("fortunes", fortunes),
    path("orm", orm),
]
app = get_wsgi_application()
