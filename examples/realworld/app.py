"""The back end of RealWorld ("Conduit"): `citius serve examples/realworld/app.py`.

Users with tokens, profiles, articles, comments, tags, favourites and feeds, as that project specifies them.
`REALWORLD_DB` names the database (in memory without it), `REALWORLD_SECRET` signs the tokens.
"""

from __future__ import annotations

import os
import re
import secrets
import sys
import time
from datetime import datetime
from typing import Annotated

import jwt
import msgspec
from argon2 import PasswordHasher
from argon2.exceptions import VerifyMismatchError
from citius import (
    App,
    Depends,
    Forbidden,
    HTTPError,
    NotFound,
    OpenAPI,
    Path,
    Query,
    Request,
    Response,
    Router,
    Unauthorized,
    json_response,
)
from citius.web.security import APIKey, Principal
from msgspec import UNSET, UnsetType, structs

sys.path.insert(0, os.path.dirname(__file__))

from store import Row, Store, Taken

SECRET = os.environ.get("REALWORLD_SECRET") or secrets.token_hex(32)
TOKEN_S = 7 * 24 * 3600


class Out(msgspec.Struct, rename="camel"):
    """What the API sends and takes, in camel case."""


Instant = Annotated[datetime, msgspec.Meta(tz=True)]


class User(Out):
    email: str
    token: str
    username: str
    bio: str | None
    image: str | None


class Profile(Out):
    username: str
    bio: str | None
    image: str | None
    following: bool


class Summary(Out):
    """An article as lists show it."""

    slug: str
    title: str
    description: str
    tag_list: list[str]
    created_at: Instant
    updated_at: Instant
    favorited: bool
    favorites_count: int
    author: Profile


class Article(Summary):
    body: str


class Comment(Out):
    id: int
    created_at: Instant
    updated_at: Instant
    body: str
    author: Profile


Text = Annotated[str, msgspec.Meta(min_length=1, max_length=10_000)]
Username = Annotated[str, msgspec.Meta(min_length=1, max_length=200)]
Password = Annotated[Text, msgspec.Meta(extra_json_schema={"format": "password"})]
Email = Annotated[str, msgspec.Meta(pattern=r"^[^@\s]+@[^@\s]+$", max_length=320)]


# In paths, whose length is limited.
Slug = Annotated[str, Path(max_length=200)]
Name = Annotated[str, Path(max_length=200)]


class NewUser(Out):
    email: Email
    username: Username
    password: Password


class Login(Out):
    email: str
    password: Annotated[str, msgspec.Meta(extra_json_schema={"format": "password"})]


class UserChange(Out):
    """What is not sent stays; ``null`` empties what may be empty."""

    email: Email | UnsetType = UNSET
    username: Username | UnsetType = UNSET
    password: Text | UnsetType = UNSET
    bio: str | UnsetType | None = UNSET
    image: str | UnsetType | None = UNSET


class NewArticle(Out):
    title: Text
    description: Text
    body: Text
    tag_list: list[Text] = []


class ArticleChange(Out):
    title: Text | UnsetType = UNSET
    description: Text | UnsetType = UNSET
    body: Text | UnsetType = UNSET
    tag_list: list[Text] | UnsetType = UNSET


class NewComment(Out):
    body: Text


class UserIn(Out):
    user: NewUser


class LoginIn(Out):
    user: Login


class UserChangeIn(Out):
    user: UserChange


class ArticleIn(Out):
    article: NewArticle


class ArticleChangeIn(Out):
    article: ArticleChange


class CommentIn(Out):
    comment: NewComment


class UserOut(Out):
    user: User


class ProfileOut(Out):
    profile: Profile


class ArticleOut(Out):
    article: Article


class ArticlesOut(Out):
    articles: list[Summary]
    articles_count: int


class CommentOut(Out):
    comment: Comment


class CommentsOut(Out):
    comments: list[Comment]


class TagsOut(Out):
    tags: list[str]


class Errors(Out):
    """What the specification wants of every error: texts by what they are about."""

    errors: dict[str, list[str]]


# --- what handlers depend on -------------------------------------------------------------------------


def open_store():
    """The database, as long as the application serves."""
    store = Store(os.environ.get("REALWORLD_DB", ":memory:"))
    yield store
    store.close()


Kept = Annotated[Store, Depends(open_store, scope="app")]


def principal_of(credentials: str) -> Principal | None:
    """The user of ``Token …``; ``None`` for a token that is no good."""
    kind, _, token = credentials.partition(" ")
    if kind not in ("Token", "Bearer"):
        return None
    try:
        claims = jwt.decode(
            token, SECRET, algorithms=["HS256"], options={"require": ["exp", "sub"]}
        )
    except jwt.PyJWTError:
        return None
    return Principal(claims["sub"])


token_scheme = APIKey(principal_of, field="authorization", name="Token")


def member(store: Kept, found: Annotated[Principal, Depends(token_scheme)]) -> Row:
    """The user whose token the request has."""
    user = store.user(id=int(found.id))
    if user is None:
        raise Unauthorized
    return user


Member = Annotated[Row, Depends(member)]


def reader(request: Request, store: Kept) -> Row | None:
    """The same, where a token is optional; a wrong one is refused."""
    if request.header("authorization") is None:
        return None
    return member(store, token_scheme(request))


Reader = Annotated[Row | None, Depends(reader)]


def id_of(user: Row | None) -> int | None:
    return None if user is None else user["id"]


# Argon2id. It is slow on purpose: passwords are hashed and verified in threads.
HASHER = PasswordHasher()
NO_PASSWORD = HASHER.hash(secrets.token_hex())


def is_password(password: str, kept: str) -> bool:
    try:
        return HASHER.verify(kept, password)
    except VerifyMismatchError:
        return False


def user_out(user: Row) -> UserOut:
    claims = {"sub": str(user["id"]), "exp": int(time.time()) + TOKEN_S}
    token = jwt.encode(claims, SECRET, algorithm="HS256")
    return UserOut(User(user["email"], token, user["username"], user["bio"], user["image"]))


def profile_of(row: Row, following: bool) -> Profile:
    return Profile(row["username"], row["bio"], row["image"], following)


def article_of(row: Row) -> Article:
    return Article(
        slug=row["slug"], title=row["title"], description=row["description"], body=row["body"],
        tag_list=row["tags"].split("\0") if row["tags"] else [],
        created_at=datetime.fromisoformat(row["created_at"]),
        updated_at=datetime.fromisoformat(row["updated_at"]), favorited=bool(row["favorited"]),
        favorites_count=row["favorites_count"], author=profile_of(row, bool(row["following"])),
    )  # fmt: skip


def comment_of(row: Row) -> Comment:
    author = profile_of(row, bool(row["following"]))
    created_at = datetime.fromisoformat(row["created_at"])
    return Comment(
        row["id"], created_at, datetime.fromisoformat(row["updated_at"]), row["body"], author
    )


def slug_of(title: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", title.lower())[:200].strip("-") or secrets.token_hex(4)


def found(store: Store, slug: str, user: Row | None) -> Row:
    article = store.article(slug, id_of(user))
    if article is None:
        raise NotFound("there is no such article")
    return article


def own(article: Row, user: Row) -> Row:
    if article["author"] != user["id"]:
        raise Forbidden("it is not yours")
    return article


# --- errors as the specification has them --------------------------------------------------------------

TOKEN = {401: Errors, 422: Errors}
FOUND = {404: Errors, 422: Errors}
OWN = {401: Errors, 403: Errors, 404: Errors, 422: Errors}
TAKEN = {409: Errors, 422: Errors}
BODY = {400: Errors, 415: Errors, 422: Errors}


def errors_of(error: HTTPError) -> dict[str, list[str]]:
    """Texts by parameter or field."""
    found: dict[str, list[str]] = {}
    for one in error.errors:
        found.setdefault(one["pointer"].rpartition("/")[2], []).append(one["detail"])
    about = {401: "token", 403: "resource", 404: "resource"}.get(error.status_code, "request")
    return found or {about: [error.detail or "is not valid"]}


# --- users and profiles ------------------------------------------------------------------------------

users = Router(tags=["User and Authentication"])


@users.post("/users", status_code=201, responses=BODY | TAKEN, blocking=True)
def register(store: Kept, data: UserIn) -> UserOut:
    new = data.user
    return user_out(store.add_user(new.email, new.username, HASHER.hash(new.password)))


@users.post("/users/login", responses=BODY | TOKEN, blocking=True)
def login(store: Kept, data: LoginIn) -> UserOut:
    user = store.user(email=data.user.email)
    # A user that is not there takes as long as a wrong password.
    kept = NO_PASSWORD if user is None else user["password"]
    if not is_password(data.user.password, kept) or user is None:
        raise Unauthorized("email or password is wrong")
    if HASHER.check_needs_rehash(kept):  # made with the parameters of an earlier version
        store.change_user({**user, "password": HASHER.hash(data.user.password)})
    return user_out(user)


@users.get("/user", responses=TOKEN)
def current_user(user: Member) -> UserOut:
    return user_out(user)


@users.put("/user", responses=BODY | TOKEN | TAKEN, blocking=True)
def change_user(store: Kept, user: Member, data: UserChangeIn) -> UserOut:
    changed = {k: v for k, v in structs.asdict(data.user).items() if v is not UNSET}
    if "password" in changed:
        changed["password"] = HASHER.hash(changed["password"])
    store.change_user({**user, **changed})
    return user_out({**user, **changed})


def profile_out(
    store: Store, username: str, user: Row | None, follow: bool | None = None
) -> ProfileOut:
    other = store.user(username=username)
    if other is None:
        raise NotFound("there is no such user")
    if follow is not None and user is not None:
        store.follow(user["id"], other["id"], follow)
    return ProfileOut(profile_of(other, store.follows(id_of(user), other["id"])))


@users.get("/profiles/{username}", responses=TOKEN | FOUND)
def profile(store: Kept, username: Name, user: Reader) -> ProfileOut:
    return profile_out(store, username, user)


@users.post("/profiles/{username}/follow", responses=TOKEN | FOUND)
def follow(store: Kept, username: Name, user: Member) -> ProfileOut:
    return profile_out(store, username, user, True)


@users.delete("/profiles/{username}/follow", responses=TOKEN | FOUND)
def unfollow(store: Kept, username: Name, user: Member) -> ProfileOut:
    return profile_out(store, username, user, False)


# --- articles ----------------------------------------------------------------------------------------

articles = Router(prefix="/articles", tags=["Articles"])
Limit = Annotated[int, Query(ge=1, le=100)]
Offset = Annotated[int, Query(ge=0)]


def page_of(page: tuple[list[Row], int]) -> ArticlesOut:
    rows, count = page
    return ArticlesOut([article_of(row) for row in rows], count)


@articles.get("/", responses=TOKEN)
def all_articles(
    store: Kept, user: Reader, tag: str | None = None, author: str | None = None,
    favorited: str | None = None, limit: Limit = 20, offset: Offset = 0,
) -> ArticlesOut:  # fmt: skip
    return page_of(
        store.articles(
            id_of(user), tag=tag, author=author, favorited=favorited, limit=limit, offset=offset
        )
    )


@articles.get("/feed", responses=TOKEN)
def feed(store: Kept, user: Member, limit: Limit = 20, offset: Offset = 0) -> ArticlesOut:
    return page_of(store.articles(user["id"], feed=True, limit=limit, offset=offset))


@articles.post("/", status_code=201, responses=BODY | TOKEN | TAKEN)
def add_article(store: Kept, user: Member, data: ArticleIn) -> ArticleOut:
    new = data.article
    slug = slug_of(new.title)
    store.add_article(user["id"], slug, new.title, new.description, new.body, new.tag_list)
    return ArticleOut(article_of(found(store, slug, user)))


@articles.get("/{slug}", responses=TOKEN | FOUND)
def one_article(store: Kept, slug: Slug, user: Reader) -> ArticleOut:
    return ArticleOut(article_of(found(store, slug, user)))


@articles.put("/{slug}", responses=BODY | OWN | TAKEN)
def change_article(store: Kept, slug: Slug, user: Member, data: ArticleChangeIn) -> ArticleOut:
    article, change = own(found(store, slug, user), user), data.article
    changed = {**article, **{k: v for k, v in structs.asdict(change).items() if v is not UNSET}}
    if change.title is not UNSET:
        slug = slug_of(changed["title"])
    store.change_article(
        article["id"], slug, changed["title"], changed["description"], changed["body"]
    )
    if change.tag_list is not UNSET:
        store.change_tags(article["id"], change.tag_list)
    return ArticleOut(article_of(found(store, slug, user)))


@articles.delete("/{slug}", responses=OWN)
def remove_article(store: Kept, slug: Slug, user: Member) -> None:
    store.remove_article(own(found(store, slug, user), user)["id"])


@articles.post("/{slug}/favorite", responses=TOKEN | FOUND)
def favorite(store: Kept, slug: Slug, user: Member) -> ArticleOut:
    store.favorite(user["id"], found(store, slug, user)["id"], True)
    return ArticleOut(article_of(found(store, slug, user)))


@articles.delete("/{slug}/favorite", responses=TOKEN | FOUND)
def unfavorite(store: Kept, slug: Slug, user: Member) -> ArticleOut:
    store.favorite(user["id"], found(store, slug, user)["id"], False)
    return ArticleOut(article_of(found(store, slug, user)))


@articles.get("/{slug}/comments", responses=TOKEN | FOUND)
def comments(store: Kept, slug: Slug, user: Reader) -> CommentsOut:
    rows = store.comments(found(store, slug, user)["id"], id_of(user))
    return CommentsOut([comment_of(row) for row in rows])


@articles.post("/{slug}/comments", status_code=201, responses=BODY | TOKEN | FOUND)
def add_comment(store: Kept, slug: Slug, user: Member, data: CommentIn) -> CommentOut:
    article = found(store, slug, user)["id"]
    made = store.add_comment(article, user["id"], data.comment.body)
    return CommentOut(comment_of(store.comments(article, user["id"], made)[0]))


@articles.delete("/{slug}/comments/{id:int}", responses=OWN)
def remove_comment(store: Kept, slug: Slug, id: int, user: Member) -> None:
    rows = store.comments(found(store, slug, user)["id"], user["id"], id)
    if not rows:
        raise NotFound("there is no such comment")
    store.remove_comment(own(rows[0], user)["id"])


api = Router(prefix="/api")
api.include(users)
api.include(articles)


@api.get("/tags", tags=["Tags"])
def tags(store: Kept) -> TagsOut:
    return TagsOut(store.tags())


app = App(openapi=OpenAPI(title="RealWorld Conduit API", version="1.0.0"))
app.include(api)


@app.exception_handler(HTTPError)
def refused(request: Request, error: HTTPError) -> Response:
    return json_response(Errors(errors_of(error)), error.status_code, headers=error.headers)


@app.exception_handler(Taken)
def taken(request: Request, error: Taken) -> Response:
    return json_response(Errors({error.args[0]: ["has already been taken"]}), 409)
