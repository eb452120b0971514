"""The sites of today in Starlette, on PostgreSQL by asyncpg."""

import hashlib
import os
from contextlib import asynccontextmanager
from pathlib import Path
from random import randint

import asyncpg
from starlette.applications import Starlette
from starlette.responses import HTMLResponse, JSONResponse, PlainTextResponse, Response
from starlette.routing import Route
from starlette.templating import Jinja2Templates

PAGE = 20
MOST_ROWS = 500
LONGEST_NAME = 100
READ = "SELECT id, randomnumber FROM world WHERE id = $1"
WRITE = "UPDATE world SET randomnumber = $1 WHERE id = $2"
ITEM = "SELECT id, name, price, version FROM item"

templates = Jinja2Templates(Path(__file__).parent / "templates")


@asynccontextmanager
async def lifespan(app):
    if "DATABASE_URL" not in os.environ:
        yield
        return
    most = int(os.environ["DB_POOL"])
    async with asyncpg.create_pool(os.environ["DATABASE_URL"], min_size=1, max_size=most) as pool:
        app.state.pool = pool
        yield


async def plaintext(request):
    return PlainTextResponse("Hello, World!")


async def as_json(request):
    return JSONResponse({"message": "Hello, World!"})


def world(row):
    return {"id": row["id"], "randomNumber": row["randomnumber"]}


def wanted(request):
    try:
        number = int(request.query_params.get("queries", 1))
    except ValueError:
        return 1
    return min(max(number, 1), MOST_ROWS)


async def db(request):
    row = await request.app.state.pool.fetchrow(READ, randint(1, 10_000))
    return JSONResponse(world(row))


async def read_rows(connection, count):
    return [world(await connection.fetchrow(READ, randint(1, 10_000))) for _ in range(count)]


async def queries(request):
    async with request.app.state.pool.acquire() as connection:
        return JSONResponse(await read_rows(connection, wanted(request)))


async def updates(request):
    async with request.app.state.pool.acquire() as connection:
        rows = await read_rows(connection, wanted(request))
        for row in rows:
            row["randomNumber"] = randint(1, 10_000)
        last = {row["id"]: row["randomNumber"] for row in rows}
        for row in rows:
            row["randomNumber"] = last[row["id"]]
        await connection.executemany(WRITE, [(last[number], number) for number in sorted(last)])
    return JSONResponse(rows)


async def fortunes(request):
    rows = await request.app.state.pool.fetch("SELECT id, message FROM fortune")
    said = [(row["id"], row["message"]) for row in rows]
    said.append((0, "Additional fortune added at request time."))
    said.sort(key=lambda fortune: fortune[1])
    page = templates.get_template("fortunes.html").render(fortunes=said)
    return HTMLResponse(page)


def not_found():
    return JSONResponse({"error": "not found"}, 404)


async def list_items(request):
    try:
        page = max(int(request.query_params.get("page", 1)), 1)
    except ValueError:
        page = 1
    async with request.app.state.pool.acquire() as connection:
        total = await connection.fetchval("SELECT count(*) FROM item")
        rows = await connection.fetch(
            f"{ITEM} ORDER BY id LIMIT $1 OFFSET $2", PAGE, (page - 1) * PAGE
        )
    pages = -(-total // PAGE)
    items = [dict(row) for row in rows]
    return JSONResponse({"page": page, "pages": pages, "total": total, "items": items})


async def get_item(request):
    row = await request.app.state.pool.fetchrow(f"{ITEM} WHERE id = $1", request.path_params["id"])
    if row is None:
        return not_found()
    tag = f'"{row["version"]}"'
    if request.headers.get("if-none-match") == tag:
        return Response(status_code=304, headers={"ETag": tag})
    return JSONResponse(dict(row), headers={"ETag": tag})


async def given_item(request):
    """Give name and price of the body, or what is wrong with it."""
    try:
        given = await request.json()
        name, price = given["name"], given["price"]
    except (ValueError, KeyError, TypeError):
        return None, "a JSON object with name and price is needed"
    if not isinstance(name, str) or not 1 <= len(name) <= LONGEST_NAME:
        return None, f"name has from 1 to {LONGEST_NAME} characters"
    if type(price) is not int or not 0 <= price < 2**31:
        return None, "price is a whole number, 0 or more"
    return (name, price), None


async def create_item(request):
    item, fault = await given_item(request)
    if fault:
        return JSONResponse({"error": fault}, 400)
    row = await request.app.state.pool.fetchrow(
        "INSERT INTO item (name, price) VALUES ($1, $2) RETURNING id, name, price, version", *item
    )
    return JSONResponse(dict(row), 201, headers={"Location": f"/items/{row['id']}"})


async def change_item(request):
    item, fault = await given_item(request)
    if fault:
        return JSONResponse({"error": fault}, 400)
    row = await request.app.state.pool.fetchrow(
        "UPDATE item SET name = $1, price = $2, version = version + 1 WHERE id = $3"
        " RETURNING id, name, price, version",
        *item,
        request.path_params["id"],
    )
    return JSONResponse(dict(row)) if row else not_found()


async def delete_item(request):
    done = await request.app.state.pool.execute(
        "DELETE FROM item WHERE id = $1", request.path_params["id"]
    )
    return not_found() if done == "DELETE 0" else Response(status_code=204)


async def upload(request):
    digest, length = hashlib.sha256(), 0
    async for part in request.stream():
        digest.update(part)
        length += len(part)
    return JSONResponse({"bytes": length, "sha256": digest.hexdigest()})


app = Starlette(
    routes=[
        Route("/plaintext", plaintext),
        Route("/json", as_json),
        Route("/db", db),
        Route("/queries", queries),
        Route("/updates", updates),
        Route("/fortunes", fortunes),
        Route("/items", list_items, methods=["GET"]),
        Route("/items", create_item, methods=["POST"]),
        Route("/items/{id:int}", get_item, methods=["GET"]),
        Route("/items/{id:int}", change_item, methods=["PUT"]),
        Route("/items/{id:int}", delete_item, methods=["DELETE"]),
        Route("/upload", upload, methods=["POST"]),
    ],
    lifespan=lifespan,
)
