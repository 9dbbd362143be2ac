"""examples/realworld: what that project's collection asserts in outline, and what it does not ask."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from argon2 import PasswordHasher
from citius.testing import Client

FOLDER = Path(__file__).parents[2] / "examples/realworld"
Headers = dict[str, str]


@pytest.fixture
def client(monkeypatch: pytest.MonkeyPatch) -> Iterator[Client]:
    monkeypatch.syspath_prepend(str(FOLDER))
    monkeypatch.setenv("REALWORLD_DB", ":memory:")
    spec = importlib.util.spec_from_file_location("realworld_app", FOLDER / "app.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "realworld_app", module)
    spec.loader.exec_module(module)
    with Client(module.app) as made:
        yield made


def register(client: Client, name: str) -> Headers:
    user = {"email": f"{name}@mail.test", "username": name, "password": "secret"}
    response = client.post("/api/users", json={"user": user})
    assert response.status_code == 201
    return {"authorization": f"Token {response.json()['user']['token']}"}


def write(client: Client, who: Headers, title: str, *tags: str) -> Any:
    article = {"title": title, "description": "d", "body": "b", "tagList": tags}
    response = client.post("/api/articles", json={"article": article}, headers=who)
    assert response.status_code == 201
    return response.json()["article"]


def test_users(client: Client) -> None:
    ada = register(client, "ada")
    again = {"user": {"email": "ada@mail.test", "username": "x", "password": "x"}}
    taken = client.post("/api/users", json=again)
    assert (taken.status_code, taken.json()) == (
        409,
        {"errors": {"email": ["has already been taken"]}},
    )
    wrong = client.post("/api/users", json={"user": {"email": "no", "username": ""}})
    assert wrong.status_code == 422
    assert sorted(wrong.json()["errors"]) == ["email", "password", "username"]
    good = {"user": {"email": "ada@mail.test", "password": "secret"}}
    assert client.post("/api/users/login", json=good).json()["user"]["username"] == "ada"
    for user in ({"email": "ada@mail.test", "password": "x"}, {"email": "no", "password": "x"}):
        assert client.post("/api/users/login", json={"user": user}).status_code == 401
    change = {"user": {"bio": "countess", "password": "other"}}
    assert client.put("/api/user", json=change, headers=ada).json()["user"]["bio"] == "countess"
    assert client.post("/api/users/login", json=good).status_code == 401
    assert client.get("/api/user", headers=ada).json()["user"]["email"] == "ada@mail.test"
    for header in ("Token x", "Token e30.e30.", "Basic YTpi"):
        assert client.get("/api/user", headers={"authorization": header}).status_code == 401
    missing = client.get("/api/user")
    assert (missing.status_code, list(missing.json()["errors"])) == (401, ["token"])
    assert client.get("/api/articles", headers={"authorization": "Token x"}).status_code == 401


def test_passwords_are_kept_as_argon2id_and_renewed(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = sys.modules["realworld_app"]
    monkeypatch.setattr(app, "HASHER", PasswordHasher(time_cost=1, memory_cost=1024))
    register(client, "ada")
    store = next(iter(app.app.app_dependencies.by_call.values())).value.value
    assert store.user(email="ada@mail.test")["password"].startswith("$argon2id$v=19$m=1024,t=1,")
    monkeypatch.setattr(app, "HASHER", PasswordHasher())
    good = {"user": {"email": "ada@mail.test", "password": "secret"}}
    assert client.post("/api/users/login", json=good).status_code == 200
    assert store.user(email="ada@mail.test")["password"].startswith("$argon2id$v=19$m=65536,t=3,")
    assert client.post("/api/users/login", json=good).status_code == 200


def test_profiles_and_feeds(client: Client) -> None:
    ada, bob = register(client, "ada"), register(client, "bob")
    write(client, bob, "By Bob")
    assert client.get("/api/articles/feed", headers=ada).json()["articlesCount"] == 0
    followed = client.post("/api/profiles/bob/follow", headers=ada).json()["profile"]
    assert followed == {"username": "bob", "bio": None, "image": None, "following": True}
    assert client.get("/api/articles/feed", headers=ada).json()["articlesCount"] == 1
    assert client.get("/api/profiles/bob").json()["profile"]["following"] is False
    client.delete("/api/profiles/bob/follow", headers=ada)
    assert client.get("/api/profiles/bob", headers=ada).json()["profile"]["following"] is False
    assert client.get("/api/profiles/none").status_code == 404


def test_articles_pages_and_filters(client: Client) -> None:
    ada, bob = register(client, "ada"), register(client, "bob")
    for number in range(5):
        write(client, ada, f"Article {number}", "even" if number % 2 == 0 else "odd")
    client.post("/api/articles/article-3/favorite", headers=bob)

    def titles(**params: str) -> tuple[list[str], int]:
        found = client.get("/api/articles", params=params).json()
        return [one["title"] for one in found["articles"]], found["articlesCount"]

    assert "body" not in client.get("/api/articles").json()["articles"][0]
    assert titles(limit="2", offset="1") == (["Article 3", "Article 2"], 5)
    assert titles(tag="odd") == (["Article 3", "Article 1"], 2)
    assert titles(favorited="bob") == (["Article 3"], 1)
    assert titles(author="bob") == ([], 0)
    assert client.get("/api/articles", params={"limit": "1000"}).status_code == 422
    assert sorted(client.get("/api/tags").json()["tags"]) == ["even", "odd"]
    liked = client.get("/api/articles/article-3", headers=bob).json()["article"]
    assert (liked["favorited"], liked["favoritesCount"]) == (True, 1)


def test_only_the_author_changes_an_article_and_a_comment(client: Client) -> None:
    ada, bob = register(client, "ada"), register(client, "bob")
    write(client, ada, "How to train")
    path = "/api/articles/how-to-train"
    comment = {"comment": {"body": "thanks"}}
    made = client.post(f"{path}/comments", json=comment, headers=bob).json()["comment"]
    assert client.delete(f"{path}/comments/{made['id']}", headers=ada).status_code == 403
    assert client.put(path, json={"article": {"body": "x"}}, headers=bob).status_code == 403
    assert client.delete(path, headers=bob).status_code == 403
    changed = client.put(path, json={"article": {"title": "Now"}}, headers=ada).json()["article"]
    assert changed["slug"] == "now"
    tagged = client.put("/api/articles/now", json={"article": {"tagList": ["a", "b"]}}, headers=ada)
    assert tagged.json()["article"]["tagList"] == ["a", "b"]
    assert tagged.json()["article"]["title"] == "Now"
    assert len(client.get("/api/articles/now/comments").json()["comments"]) == 1
    assert client.delete(f"/api/articles/now/comments/{made['id']}", headers=bob).status_code == 204
    assert client.delete("/api/articles/now", headers=ada).status_code == 204
    assert client.get("/api/articles/now").status_code == 404


def test_a_search_cannot_leave_its_statement(client: Client) -> None:
    ada = register(client, "ada")
    write(client, ada, "One", "tag")
    found = client.get("/api/articles", params={"tag": "' OR 1=1 --"}).json()
    assert found["articlesCount"] == 0
