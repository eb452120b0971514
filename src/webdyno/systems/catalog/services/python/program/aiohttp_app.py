"""All sites in aiohttp."""

import hashlib
from pathlib import Path

import jinja2
from aiohttp import web

import database
from rules import HIGHEST, fault_of, whole

POOL = web.AppKey("pool", object)
MOST_BYTES = 2**30
routes = web.RouteTableDef()
templates = jinja2.Environment(
    loader=jinja2.FileSystemLoader(Path(__file__).parent / "templates"), autoescape=True
)


def pool_of(request):
    return request.app[POOL]


def count_of(request):
    return whole(request.query.get("queries"), 500)


@routes.get("/plaintext")
async def plaintext(request):
    return web.Response(text="Hello, World!")


@routes.get("/json")
async def json_message(request):
    return web.json_response({"message": "Hello, World!"})


@routes.get("/db")
async def db(request):
    return web.json_response(await database.read_world(pool_of(request)))


@routes.get("/queries")
async def queries(request):
    return web.json_response(await database.read_worlds(pool_of(request), count_of(request)))


@routes.get("/updates")
async def updates(request):
    return web.json_response(await database.update_worlds(pool_of(request), count_of(request)))


@routes.get("/fortunes")
async def fortunes(request):
    found = await database.read_fortunes(pool_of(request))
    page = templates.get_template("fortunes.html").render(fortunes=found)
    return web.Response(text=page, content_type="text/html", charset="utf-8")


@routes.get("/items")
async def items(request):
    page = whole(request.query.get("page"), HIGHEST)
    return web.json_response(await database.read_items(pool_of(request), page))


@routes.post("/items")
async def create_item(request):
    new = await sent_item(request)
    made = await database.create_item(pool_of(request), new["name"], new["price"])
    return web.json_response(made, status=201, headers={"Location": f"/items/{made['id']}"})


@routes.get(r"/items/{id:\d+}")
async def item(request):
    found = await database.read_item(pool_of(request), id_of(request)) or missing()
    headers = {"ETag": f'"{found["version"]}"'}
    if request.headers.get("If-None-Match") == headers["ETag"]:
        return web.Response(status=304, headers=headers)
    return web.json_response(found, headers=headers)


@routes.put(r"/items/{id:\d+}")
async def replace_item(request):
    new = await sent_item(request)
    id_ = id_of(request)
    made = await database.replace_item(pool_of(request), id_, new["name"], new["price"])
    return web.json_response(made or missing())


@routes.delete(r"/items/{id:\d+}")
async def delete_item(request):
    if not await database.delete_item(pool_of(request), id_of(request)):
        missing()
    return web.Response(status=204)


@routes.post("/upload")
async def upload(request):
    digest, size = hashlib.sha256(), 0
    async for chunk in request.content.iter_any():
        digest.update(chunk)
        size += len(chunk)
    return web.json_response({"bytes": size, "sha256": digest.hexdigest()})


def missing():
    raise web.HTTPNotFound


def id_of(request):
    id_ = int(request.match_info["id"])
    return id_ if id_ <= HIGHEST else missing()


async def sent_item(request):
    try:
        new = await request.json()
    except ValueError:
        new, fault = None, "no JSON"
    else:
        fault = fault_of(new)
    if fault:
        raise web.HTTPBadRequest(reason=fault)
    return new


@web.middleware
async def refusals(request, handler):
    try:
        return await handler(request)
    except web.HTTPException as refused:
        what = "not found" if refused.status == 404 else refused.reason
        return web.json_response({"error": what}, status=refused.status)


async def pool(app):
    async with database.lifespan(app) as state:
        app[POOL] = state["pool"]
        yield


app = web.Application(middlewares=[refusals], client_max_size=MOST_BYTES)
app.add_routes(routes)
app.cleanup_ctx.append(pool)
