"""All sites in Starlette."""

import hashlib
from pathlib import Path

from starlette.applications import Starlette
from starlette.endpoints import HTTPEndpoint
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route
from starlette.templating import Jinja2Templates

import database
from rules import HIGHEST, fault_of, whole

templates = Jinja2Templates(directory=Path(__file__).parent / "templates")


async def plaintext(request):
    return PlainTextResponse("Hello, World!")


async def json_message(request):
    return JSONResponse({"message": "Hello, World!"})


async def db(request):
    return JSONResponse(await database.read_world(request.state.pool))


async def queries(request):
    count = whole(request.query_params.get("queries"), 500)
    return JSONResponse(await database.read_worlds(request.state.pool, count))


async def updates(request):
    count = whole(request.query_params.get("queries"), 500)
    return JSONResponse(await database.update_worlds(request.state.pool, count))


async def fortunes(request):
    found = await database.read_fortunes(request.state.pool)
    return templates.TemplateResponse(request, "fortunes.html", {"fortunes": found})


class Items(HTTPEndpoint):
    async def get(self, request):
        page = whole(request.query_params.get("page"), HIGHEST)
        return JSONResponse(await database.read_items(request.state.pool, page))

    async def post(self, request):
        new = await sent_item(request)
        item = await database.create_item(request.state.pool, new["name"], new["price"])
        return JSONResponse(item, 201, {"Location": f"/items/{item['id']}"})


class Item(HTTPEndpoint):
    async def get(self, request):
        item = await database.read_item(request.state.pool, id_of(request))
        if item is None:
            raise HTTPException(404)
        headers = {"ETag": f'"{item["version"]}"'}
        if request.headers.get("If-None-Match") == headers["ETag"]:
            return Response(status_code=304, headers=headers)
        return JSONResponse(item, headers=headers)

    async def put(self, request):
        new = await sent_item(request)
        item = await database.replace_item(
            request.state.pool, id_of(request), new["name"], new["price"]
        )
        if item is None:
            raise HTTPException(404)
        return JSONResponse(item)

    async def delete(self, request):
        if not await database.delete_item(request.state.pool, id_of(request)):
            raise HTTPException(404)
        return Response(status_code=204)


def id_of(request):
    if (id_ := request.path_params["id"]) > HIGHEST:
        raise HTTPException(404)
    return id_


async def sent_item(request):
    try:
        new = await request.json()
    except ValueError:
        raise HTTPException(400, "no JSON") from None
    if fault := fault_of(new):
        raise HTTPException(400, fault)
    return new


async def upload(request):
    digest, size = hashlib.sha256(), 0
    async for chunk in request.stream():
        digest.update(chunk)
        size += len(chunk)
    return JSONResponse({"bytes": size, "sha256": digest.hexdigest()})


async def refused(request, exception):
    what = "not found" if exception.status_code == 404 else exception.detail
    return JSONResponse({"error": what}, exception.status_code)


app = Starlette(
    routes=[
        Route("/plaintext", plaintext),
        Route("/json", json_message),
        Route("/db", db),
        Route("/queries", queries),
        Route("/updates", updates),
        Route("/fortunes", fortunes),
        Route("/items", Items),
        Route("/items/{id:int}", Item),
        Route("/upload", upload, methods=["POST"]),
    ],
    exception_handlers={HTTPException: refused},
    lifespan=database.lifespan,
)
