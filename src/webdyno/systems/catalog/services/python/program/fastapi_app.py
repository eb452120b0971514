"""All sites in FastAPI, with models of what comes in and goes out."""

import hashlib
from pathlib import Path
from typing import Annotated

from fastapi import Depends, FastAPI, HTTPException, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, PlainTextResponse
from fastapi.templating import Jinja2Templates
from pydantic import BaseModel, Field

import database
from rules import HIGHEST, whole

app = FastAPI(lifespan=database.lifespan)
templates = Jinja2Templates(directory=Path(__file__).parent / "templates")


class Message(BaseModel):
    message: str


class World(BaseModel):
    id: int
    randomNumber: int


class NewItem(BaseModel):
    name: Annotated[str, Field(pattern=r"^[^\x00]{1,100}$")]
    price: Annotated[int, Field(strict=True, ge=0, le=HIGHEST)]


class Item(BaseModel):
    id: int
    name: str
    price: int
    version: int


class Page(BaseModel):
    page: int
    pages: int
    total: int
    items: list[Item]


class Received(BaseModel):
    bytes: int
    sha256: str


def pool_of(request: Request):
    return request.state.pool


def count_of(queries: str | None = None) -> int:
    return whole(queries, 500)


def id_of(item_id: int) -> int:
    return item_id if item_id <= HIGHEST else missing()


def missing():
    raise HTTPException(404)


Pool = Annotated[object, Depends(pool_of)]
Count = Annotated[int, Depends(count_of)]
Id = Annotated[int, Depends(id_of)]


@app.exception_handler(404)
async def not_found(request: Request, exception: HTTPException):
    return JSONResponse({"error": "not found"}, 404)


@app.exception_handler(RequestValidationError)
async def refused(request: Request, exception: RequestValidationError):
    fault = exception.errors()[0]
    where = ".".join(map(str, fault["loc"][1:]))
    return JSONResponse({"error": f"{where}: {fault['msg']}"}, 400)


@app.get("/plaintext", response_class=PlainTextResponse)
async def plaintext():
    return "Hello, World!"


@app.get("/json")
async def json() -> Message:
    return Message(message="Hello, World!")


@app.get("/db")
async def db(pool: Pool) -> World:
    return await database.read_world(pool)


@app.get("/queries")
async def queries(pool: Pool, count: Count) -> list[World]:
    return await database.read_worlds(pool, count)


@app.get("/updates")
async def updates(pool: Pool, count: Count) -> list[World]:
    return await database.update_worlds(pool, count)


@app.get("/fortunes")
async def fortunes(request: Request, pool: Pool):
    found = await database.read_fortunes(pool)
    return templates.TemplateResponse(request, "fortunes.html", {"fortunes": found})


@app.get("/items")
async def items(pool: Pool, page: str | None = None) -> Page:
    return await database.read_items(pool, whole(page, HIGHEST))


@app.get("/items/{item_id:int}", response_model=Item)
async def item(request: Request, response: Response, pool: Pool, id_: Id):
    found = await database.read_item(pool, id_) or missing()
    response.headers["ETag"] = f'"{found["version"]}"'
    if request.headers.get("If-None-Match") == response.headers["ETag"]:
        return Response(status_code=304, headers=response.headers)
    return found


@app.post("/items", status_code=201)
async def create_item(response: Response, pool: Pool, new: NewItem) -> Item:
    made = await database.create_item(pool, new.name, new.price)
    response.headers["Location"] = f"/items/{made['id']}"
    return made


@app.put("/items/{item_id:int}")
async def replace_item(pool: Pool, id_: Id, new: NewItem) -> Item:
    return await database.replace_item(pool, id_, new.name, new.price) or missing()


@app.delete("/items/{item_id:int}", status_code=204)
async def delete_item(pool: Pool, id_: Id) -> None:
    if not await database.delete_item(pool, id_):
        missing()


@app.post("/upload")
async def upload(request: Request) -> Received:
    digest, size = hashlib.sha256(), 0
    async for chunk in request.stream():
        digest.update(chunk)
        size += len(chunk)
    return Received(bytes=size, sha256=digest.hexdigest())
