"""What Conduit keeps, in SQLite: users, articles, comments, and who follows and likes what.

Each method is one short transaction, which SQLite does in microseconds; so handlers call them on the event
loop's thread. A database behind a network would be asked by `async def` methods of the same names.
"""

from __future__ import annotations

import sqlite3
from datetime import UTC, datetime
from typing import Any

SCHEMA = """
PRAGMA foreign_keys = ON;
CREATE TABLE IF NOT EXISTS users (
    id INTEGER PRIMARY KEY, email TEXT NOT NULL UNIQUE, username TEXT NOT NULL UNIQUE,
    password TEXT NOT NULL, bio TEXT, image TEXT
);
CREATE TABLE IF NOT EXISTS follows (
    follower INTEGER NOT NULL REFERENCES users ON DELETE CASCADE,
    followed INTEGER NOT NULL REFERENCES users ON DELETE CASCADE,
    PRIMARY KEY (follower, followed)
);
CREATE TABLE IF NOT EXISTS articles (
    id INTEGER PRIMARY KEY, slug TEXT NOT NULL UNIQUE, title TEXT NOT NULL, description TEXT NOT NULL,
    body TEXT NOT NULL, created_at TEXT NOT NULL, updated_at TEXT NOT NULL,
    author INTEGER NOT NULL REFERENCES users ON DELETE CASCADE
);
CREATE TABLE IF NOT EXISTS tags (
    article INTEGER NOT NULL REFERENCES articles ON DELETE CASCADE, name TEXT NOT NULL,
    PRIMARY KEY (article, name)
);
CREATE TABLE IF NOT EXISTS favorites (
    user INTEGER NOT NULL REFERENCES users ON DELETE CASCADE,
    article INTEGER NOT NULL REFERENCES articles ON DELETE CASCADE,
    PRIMARY KEY (user, article)
);
CREATE TABLE IF NOT EXISTS comments (
    id INTEGER PRIMARY KEY, body TEXT NOT NULL, created_at TEXT NOT NULL, updated_at TEXT NOT NULL,
    article INTEGER NOT NULL REFERENCES articles ON DELETE CASCADE,
    author INTEGER NOT NULL REFERENCES users ON DELETE CASCADE
);
"""

# Articles as one user sees them; the one parameter in front is that user.
ARTICLES = """
SELECT articles.*, users.username, users.bio, users.image,
    EXISTS (SELECT 1 FROM follows WHERE follower = :me AND followed = users.id) AS following,
    EXISTS (SELECT 1 FROM favorites WHERE user = :me AND article = articles.id) AS favorited,
    (SELECT count(*) FROM favorites WHERE article = articles.id) AS favorites_count,
    (SELECT group_concat(name, char(0)) FROM tags WHERE article = articles.id ORDER BY name) AS tags
FROM articles JOIN users ON users.id = articles.author
"""
FILTERS = """
WHERE (:tag IS NULL OR EXISTS (SELECT 1 FROM tags WHERE article = articles.id AND name = :tag))
AND (:author IS NULL OR users.username = :author)
AND (:favorited IS NULL OR EXISTS (
    SELECT 1 FROM favorites JOIN users AS fans ON fans.id = favorites.user
    WHERE favorites.article = articles.id AND fans.username = :favorited))
AND (NOT :feed OR EXISTS (SELECT 1 FROM follows WHERE follower = :me AND followed = users.id))
"""

Row = dict[str, Any]


class Taken(Exception):
    """Another row has this value; the argument is the column's name."""


def column_of(error: sqlite3.IntegrityError) -> str:
    """``email`` of ``UNIQUE constraint failed: users.email``."""
    return str(error).rpartition(".")[2]


class Store:
    """The database.

    Args:
        path: A file; ``:memory:`` for one that is gone with the process.
    """

    def __init__(self, path: str) -> None:
        # Passwords are hashed in threads, which write then; SQLite itself takes one call at a time.
        self._db = sqlite3.connect(path, check_same_thread=False, isolation_level=None)
        self._db.row_factory = lambda cursor, row: {
            column[0]: value for column, value in zip(cursor.description, row, strict=True)
        }
        self._db.executescript(SCHEMA)

    def close(self) -> None:
        """Close the database."""
        self._db.close()

    def _one(self, sql: str, **values: Any) -> Row | None:
        return self._db.execute(sql, values).fetchone()

    def _all(self, sql: str, **values: Any) -> list[Row]:
        return self._db.execute(sql, values).fetchall()

    # --- users ----------------------------------------------------------------------------------

    def add_user(self, email: str, username: str, password: str) -> Row:
        """Add a user.

        Raises:
            Taken: The address or the name is another user's.
        """
        try:
            user = self._one(
                "INSERT INTO users (email, username, password) VALUES (:email, :username, :password)"
                " RETURNING *", email=email, username=username, password=password,
            )  # fmt: skip
        except sqlite3.IntegrityError as error:
            raise Taken(column_of(error)) from None
        assert user is not None
        return user

    def user(self, **key: Any) -> Row | None:
        """The user with this `id`, `email` or `username`."""
        [(name, value)] = key.items()
        assert name in ("id", "email", "username")
        return self._one(f"SELECT * FROM users WHERE {name} = :value", value=value)

    def change_user(self, user: Row) -> None:
        """Store what has changed of a user.

        Raises:
            Taken: The address or the name is another user's.
        """
        try:
            self._one(
                "UPDATE users SET email = :email, username = :username, password = :password,"
                " bio = :bio, image = :image WHERE id = :id", **user,
            )  # fmt: skip
        except sqlite3.IntegrityError as error:
            raise Taken(column_of(error)) from None

    def follows(self, me: int | None, other: int) -> bool:
        """Whether one user follows another."""
        sql = "SELECT 1 FROM follows WHERE follower = :me AND followed = :other"
        return self._one(sql, me=me, other=other) is not None

    def follow(self, me: int, other: int, wanted: bool) -> None:
        """Follow a user, or no longer."""
        sql = (
            "INSERT OR IGNORE INTO follows VALUES (:me, :other)"
            if wanted
            else "DELETE FROM follows WHERE follower = :me AND followed = :other"
        )
        self._one(sql, me=me, other=other)

    # --- articles -------------------------------------------------------------------------------

    def articles(
        self, me: int | None, *, tag: str | None = None, author: str | None = None,
        favorited: str | None = None, feed: bool = False, limit: int = 20, offset: int = 0,
    ) -> tuple[list[Row], int]:  # fmt: skip
        """A page of articles, newest first, and how many there are."""
        values = {"me": me, "tag": tag, "author": author, "favorited": favorited, "feed": feed}
        page = " ORDER BY articles.id DESC LIMIT :limit OFFSET :offset"
        found = self._all(ARTICLES + FILTERS + page, **values, limit=limit, offset=offset)
        count = self._one(
            "SELECT count(*) AS n FROM articles JOIN users ON users.id = articles.author" + FILTERS,
            **values,
        )
        assert count is not None
        return found, count["n"]

    def article(self, slug: str, me: int | None) -> Row | None:
        """One article."""
        return self._one(ARTICLES + "WHERE slug = :slug", slug=slug, me=me)

    def add_article(
        self, author: int, slug: str, title: str, description: str, body: str, tags: list[str]
    ) -> None:
        """Add an article.

        Raises:
            Taken: There is one with this slug.
        """
        try:
            made = self._one(
                "INSERT INTO articles (slug, title, description, body, created_at, updated_at, author)"
                " VALUES (:slug, :title, :description, :body, :now, :now, :author) RETURNING id",
                slug=slug, title=title, description=description, body=body, author=author, now=now(),
            )  # fmt: skip
        except sqlite3.IntegrityError as error:
            raise Taken(column_of(error)) from None
        assert made is not None
        self.change_tags(made["id"], tags)

    def change_tags(self, id: int, tags: list[str]) -> None:
        """Give an article these tags."""
        self._db.execute("DELETE FROM tags WHERE article = ?", (id,))
        self._db.executemany(
            "INSERT OR IGNORE INTO tags VALUES (?, ?)", [(id, tag) for tag in tags]
        )

    def change_article(self, id: int, slug: str, title: str, description: str, body: str) -> None:
        """Store what has changed of an article.

        Raises:
            Taken: There is another one with this slug.
        """
        try:
            self._one(
                "UPDATE articles SET slug = :slug, title = :title, description = :description,"
                " body = :body, updated_at = :now WHERE id = :id",
                id=id, slug=slug, title=title, description=description, body=body, now=now(),
            )  # fmt: skip
        except sqlite3.IntegrityError as error:
            raise Taken(column_of(error)) from None

    def remove_article(self, id: int) -> None:
        """Remove an article and its comments."""
        self._one("DELETE FROM articles WHERE id = :id", id=id)

    def favorite(self, me: int, article: int, wanted: bool) -> None:
        """Like an article, or no longer."""
        sql = (
            "INSERT OR IGNORE INTO favorites VALUES (:me, :article)"
            if wanted
            else "DELETE FROM favorites WHERE user = :me AND article = :article"
        )
        self._one(sql, me=me, article=article)

    def tags(self) -> list[str]:
        """All tags, those of most articles first."""
        rows = self._all("SELECT name FROM tags GROUP BY name ORDER BY count(*) DESC, name")
        return [row["name"] for row in rows]

    # --- comments -------------------------------------------------------------------------------

    def comments(self, article: int, me: int | None, id: int | None = None) -> list[Row]:
        """The comments on an article, or one of them."""
        return self._all(
            "SELECT comments.*, users.username, users.bio, users.image,"
            " EXISTS (SELECT 1 FROM follows WHERE follower = :me AND followed = users.id) AS following"
            " FROM comments JOIN users ON users.id = comments.author"
            " WHERE article = :article AND (:id IS NULL OR comments.id = :id) ORDER BY comments.id",
            article=article, me=me, id=id,
        )  # fmt: skip

    def add_comment(self, article: int, author: int, body: str) -> int:
        """Add a comment; returns its number."""
        made = self._one(
            "INSERT INTO comments (body, created_at, updated_at, article, author)"
            " VALUES (:body, :now, :now, :article, :author) RETURNING id",
            article=article, author=author, body=body, now=now(),
        )  # fmt: skip
        assert made is not None
        return made["id"]

    def remove_comment(self, id: int) -> None:
        """Remove a comment."""
        self._one("DELETE FROM comments WHERE id = :id", id=id)


def now() -> str:
    """The time as the API has it."""
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
