"""All sites in Falcon, as an ASGI application."""

import hashlib
from pathlib import Path

import falcon.asgi
import jinja2

import database
from rules import HIGHEST, fault_of, whole

templates = jinja2.Environment(
    loader=jinja2.FileSystemLoader(Path(__file__).parent / "templates"), autoescape=True
)


class Pool:
    """Opens the pool when the application starts, and closes it at its end."""

    def __init__(self):
        self._open = database.lifespan(None)
        self.it = None

    async def process_startup(self, scope, event):
        self.it = (await self._open.__aenter__())["pool"]

    async def process_shutdown(self, scope, event):
        await self._open.__aexit__(None, None, None)


pool = Pool()


class Plaintext:
    async def on_get(self, request, response):
        response.content_type = falcon.MEDIA_TEXT
        response.text = "Hello, World!"


class Json:
    async def on_get(self, request, response):
        response.media = {"message": "Hello, World!"}


class World:
    async def on_get(self, request, response):
        response.media = await database.read_world(pool.it)


class Worlds:
    async def on_get(self, request, response):
        response.media = await database.read_worlds(pool.it, count_of(request))


class Updates:
    async def on_get(self, request, response):
        response.media = await database.update_worlds(pool.it, count_of(request))


class Fortunes:
    async def on_get(self, request, response):
        found = await database.read_fortunes(pool.it)
        response.content_type = "text/html; charset=utf-8"
        response.text = templates.get_template("fortunes.html").render(fortunes=found)


class Items:
    async def on_get(self, request, response):
        page = whole(request.get_param("page"), HIGHEST)
        response.media = await database.read_items(pool.it, page)

    async def on_post(self, request, response):
        new = await sent_item(request)
        item = await database.create_item(pool.it, new["name"], new["price"])
        response.status = falcon.HTTP_201
        response.location = f"/items/{item['id']}"
        response.media = item


class Item:
    async def on_get(self, request, response, item_id):
        item = await database.read_item(pool.it, known(item_id)) or missing()
        response.etag = str(item["version"])
        if request.get_header("If-None-Match") == f'"{item["version"]}"':
            response.status = falcon.HTTP_304
        else:
            response.media = item

    async def on_put(self, request, response, item_id):
        new = await sent_item(request)
        item = await database.replace_item(pool.it, known(item_id), new["name"], new["price"])
        response.media = item or missing()

    async def on_delete(self, request, response, item_id):
        if not await database.delete_item(pool.it, known(item_id)):
            missing()
        response.status = falcon.HTTP_204


class Upload:
    async def on_post(self, request, response):
        digest, size = hashlib.sha256(), 0
        async for chunk in request.stream:
            digest.update(chunk)
            size += len(chunk)
        response.media = {"bytes": size, "sha256": digest.hexdigest()}


def count_of(request):
    return whole(request.get_param("queries"), 500)


def missing():
    raise falcon.HTTPNotFound


def known(item_id):
    return item_id if item_id <= HIGHEST else missing()


async def sent_item(request):
    try:
        new = await request.get_media()
    except (falcon.MediaNotFoundError, falcon.MediaMalformedError):
        raise falcon.HTTPBadRequest(title="no JSON") from None
    if fault := fault_of(new):
        raise falcon.HTTPBadRequest(title=fault)
    return new


async def refused(request, response, error, params):
    response.status = error.status
    what = "not found" if error.status_code == 404 else error.title
    response.media = {"error": what}


app = falcon.asgi.App(middleware=[pool])
app.add_error_handler(falcon.HTTPError, refused)
app.add_route("/plaintext", Plaintext())
app.add_route("/json", Json())
app.add_route("/db", World())
app.add_route("/queries", Worlds())
app.add_route("/updates", Updates())
app.add_route("/fortunes", Fortunes())
app.add_route("/items", Items())
app.add_route("/items/{item_id:int}", Item())
app.add_route("/upload", Upload())
