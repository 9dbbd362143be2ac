"""A to-do list as a REST service. citius serve examples/todo.py

curl -s localhost:8000/todos -H 'content-type: application/json' -d '{"title": "write"}'
"""

from __future__ import annotations

import itertools
import time

import msgspec
from citius import App, NotFound, Request, Response


class Draft(msgspec.Struct):
    title: str
    done: bool = False


class Todo(Draft):
    id: int = 0


app = App()
todos: dict[int, Todo] = {}
ids = itertools.count(1)


@app.middleware
async def timed(request: Request, next):
    begun = time.perf_counter()
    response = await next(request)
    response.headers["server-timing"] = f"app;dur={(time.perf_counter() - begun) * 1000:.2f}"
    return response


@app.get("/todos")
def index(done: bool | None = None) -> list[Todo]:
    return [todo for todo in todos.values() if done is None or todo.done == done]


@app.post("/todos", responses={201: Todo})
def create(draft: Draft) -> Response:
    todo = Todo(draft.title, draft.done, next(ids))
    todos[todo.id] = todo
    return Response(todo, 201, {"location": f"/todos/{todo.id}"})


@app.get("/todos/{id:int}")
def show(id: int) -> Todo:
    return find(id)


@app.put("/todos/{id:int}")
def change(id: int, draft: Draft) -> Todo:
    find(id)
    todos[id] = Todo(draft.title, draft.done, id)
    return todos[id]


@app.delete("/todos/{id:int}")
def delete(id: int) -> None:
    find(id)
    del todos[id]


def find(id: int) -> Todo:
    if id not in todos:
        raise NotFound(f"there is no to-do {id}")
    return todos[id]
