"""Strawberry: queries, variables, mutations, errors and its own page, as an ASGI application."""

import asyncio

import strawberry
from strawberry.asgi import GraphQL


@strawberry.type
class Book:
    title: str
    pages: int

    @strawberry.field
    async def reading_minutes(self) -> int:
        await asyncio.sleep(0)
        return self.pages * 2


books = [Book(title="Moby-Dick", pages=635), Book(title="Emma", pages=474)]


@strawberry.type
class Query:
    @strawberry.field
    def books(self, at_least: int = 0) -> list[Book]:
        return [book for book in books if book.pages >= at_least]

    @strawberry.field
    def broken(self) -> int:
        raise ValueError("no such number")


@strawberry.type
class Mutation:
    @strawberry.mutation
    async def add(self, title: str, pages: int) -> Book:
        book = Book(title=title, pages=pages)
        books.append(book)
        return book


app = GraphQL(strawberry.Schema(Query, Mutation))
