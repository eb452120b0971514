"""All sites in Litestar."""

import hashlib
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Annotated, Any

from litestar import Litestar, MediaType, Request, Response, delete, get, post, put
from litestar.contrib.jinja import JinjaTemplateEngine
from litestar.datastructures import State
from litestar.exceptions import (
    ClientException,
    HTTPException,
    NotFoundException,
    SerializationException,
)
from litestar.params import Parameter
from litestar.response import Template
from litestar.template.config import TemplateConfig
from msgspec import Struct

import database
from rules import HIGHEST, fault_of, whole

Queries = Annotated[str | None, Parameter(query="queries")]
PageNumber = Annotated[str | None, Parameter(query="page")]


class Message(Struct):
    message: str


@get("/plaintext", media_type=MediaType.TEXT)
async def plaintext() -> str:
    return "Hello, World!"


@get("/json")
async def json_message() -> Message:
    return Message("Hello, World!")


@get("/db")
async def db(state: State) -> dict[str, int]:
    return await database.read_world(state.pool)


@get("/queries")
async def queries(state: State, number: Queries = None) -> list[dict[str, int]]:
    return await database.read_worlds(state.pool, whole(number, 500))


@get("/updates")
async def updates(state: State, number: Queries = None) -> list[dict[str, int]]:
    return await database.update_worlds(state.pool, whole(number, 500))


@get("/fortunes")
async def fortunes(state: State) -> Template:
    found = await database.read_fortunes(state.pool)
    return Template("fortunes.html", context={"fortunes": found})


@get("/items")
async def items(state: State, number: PageNumber = None) -> dict[str, Any]:
    return await database.read_items(state.pool, whole(number, HIGHEST))


@post("/items")
async def create_item(state: State, request: Request) -> Response[dict[str, Any]]:
    new = await sent_item(request)
    made = await database.create_item(state.pool, new["name"], new["price"])
    return Response(made, headers={"Location": f"/items/{made['id']}"})


@get("/items/{item_id:int}")
async def item(state: State, request: Request, item_id: int) -> Response[dict[str, Any] | None]:
    found = await database.read_item(state.pool, known(item_id)) or missing()
    headers = {"ETag": f'"{found["version"]}"'}
    if request.headers.get("If-None-Match") == headers["ETag"]:
        return Response(None, status_code=304, headers=headers)
    return Response(found, headers=headers)


@put("/items/{item_id:int}")
async def replace_item(state: State, request: Request, item_id: int) -> dict[str, Any]:
    new = await sent_item(request)
    made = await database.replace_item(state.pool, known(item_id), new["name"], new["price"])
    return made or missing()


@delete("/items/{item_id:int}")
async def delete_item(state: State, item_id: int) -> None:
    if not await database.delete_item(state.pool, known(item_id)):
        missing()


@post("/upload", status_code=200)
async def upload(request: Request) -> dict[str, Any]:
    digest, size = hashlib.sha256(), 0
    async for chunk in request.stream():
        digest.update(chunk)
        size += len(chunk)
    return {"bytes": size, "sha256": digest.hexdigest()}


async def sent_item(request: Request) -> dict[str, Any]:
    """Read an item as it is: a model would take a price that is text for a number."""
    try:
        new = await request.json()
    except SerializationException:
        raise ClientException("no JSON") from None
    if fault := fault_of(new):
        raise ClientException(fault)
    return new


def missing():
    raise NotFoundException


def known(item_id: int) -> int:
    return item_id if item_id <= HIGHEST else missing()


def refused(_: Request, exception: HTTPException) -> Response[dict[str, str]]:
    what = "not found" if exception.status_code == 404 else exception.detail
    return Response({"error": what}, status_code=exception.status_code)


@asynccontextmanager
async def with_pool(app: Litestar):
    async with database.lifespan(app) as held:
        app.state.pool = held["pool"]
        yield


app = Litestar(
    [
        *(plaintext, json_message, db, queries, updates, fortunes, upload),
        *(items, create_item, item, replace_item, delete_item),
    ],
    exception_handlers={HTTPException: refused},
    lifespan=[with_pool],
    openapi_config=None,
    request_max_body_size=None,
    template_config=TemplateConfig(
        directory=Path(__file__).parent / "templates", engine=JinjaTemplateEngine
    ),
)
