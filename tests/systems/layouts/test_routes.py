"""What can be asked of an application, by its sources, an OpenAPI document, or a page's links."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from systems.layouts.laid_out import laid_out
from webdyno.systems.layouts.app import FoundApp
from webdyno.systems.layouts.routes import (
    known_routes,
    links_of,
    prefixes_of_sources,
    routes_of_openapi,
    routes_of_sources,
)

SOURCES = {
    "app.py": '@app.get("/items/{item_id}")\n@app.route("/u/<int:n>")\n@app.post("/items")\n',
    "s.js": "app.get('/a/:id', f)\nrouter.delete('/a/:id', f)\nx.get('https://e.org/')\n",
    "m.go": 'HandleFunc("GET /{$}", f)\nHandleFunc("PUT /go/{id}", f)\ne.GET("/echo", f)\n',
    "m.rs": '.route("/rs/:slug", get(f))\n#[get("/actix")]\n',
    "src/main/java/org/samples/C.java": '@GetMapping("/boot")\n@PostMapping("/boot")\n'
    '@RequestMapping(value = "/all")\n',
    "web.php": "Route::get('/php', f);\n",
    "r.ex": 'get "/ex", C, :x\n',
    "P.cs": 'app.MapGet("/cs", f);\n',
}
ASKED = {
    *("/items/1", "/u/1", "/a/1", "/", "/echo", "/actix", "/boot", "/all", "/php", "/ex", "/cs"),
}
EXCLUDED = {
    "POST /items": "writes",
    "DELETE /a/:id": "writes",
    "PUT /go/{id}": "writes",
    "POST /boot": "writes",
    "GET /rs/:slug": "no example for slug",
}


def test_routes_of_sources_are_filled_or_excluded(tmp_path: Path) -> None:
    routes = routes_of_sources(laid_out(tmp_path, SOURCES))
    assert {it.filled for it in routes if it.filled} == ASKED
    assert {it.label: it.lacks for it in routes if not it.filled} == EXCLUDED


BELOW = {
    "src/main.ts": "import { NestFactory } from '@nestjs/core'\napp.setGlobalPrefix('api')\n",
    "src/items.controller.ts": "import { Controller, Get, Post } from '@nestjs/common'\n"
    "@ApiTags('x')\n@Controller('items')\nexport class Items {\n  @Get()\n  list() {}\n"
    "  @Get(':id')\n  one() {}\n  @Post()\n  add() {}\n}\n"
    "@Controller({ path: 'parts', version: '1' })\n@UseGuards(Own)\nexport class Parts {\n"
    "  @Get('newest')\n  newest() {}\n}\n",
    "src/own.controller.ts": "import { Controller, Get } from '@nestjs/common'\n"
    "@Controller(PATHS.own)\nexport class Own {\n  @Get('unknown')\n  one() {}\n}\n"
    "@Controller('known')\nexport class Known {\n  @Get(PATHS.one)\n  one() {}\n"
    "  @Get(`${name}/x`)\n  two() {}\n  @Get('two')\n  three() {}\n}\n",
    "src/app.controller.ts": "import { Controller, Get } from '@nestjs/common'\n"
    "@Controller()\nexport class App {\n  @Get()\n  home() {}\n}\n",
    "src/main/java/shop/Orders.java": '@RestController\n@RequestMapping("/orders/")\n'
    'public class Orders {\n  @GetMapping\n  List all() {}\n  @GetMapping(value = "/{id}")\n'
    '  Order one() {}\n  @DeleteMapping("/{id}") void end() {}\n}\n',
    "src/main/resources/application.yml": "server:\n  servlet:\n    context-path: /shop\n",
    "routes/api.php": "Route::get('/books', f);\n",
    "src/Controller/Posts.php": "#[Route('/blog')]\n#[IsGranted('X')]\nfinal class Posts {\n"
    "  #[Route('/', name: 'posts', methods: ['GET'])]\n  #[Cache(1)]\n  function list() {}\n"
    "  #[Route('/{page<\\d+>}/{slug:post}')]\n  function one() {}\n"
    "  #[Route('/new', methods: ['POST'])]\n  function add() {}\n}\n",
    "routes/web.php": "Route::get('/pages', f);\n",
}


def test_routes_of_classes_and_files_with_a_path_of_their_own_are_whole(tmp_path: Path) -> None:
    routes = routes_of_sources(laid_out(tmp_path, BELOW))
    assert {it.label for it in routes} == {
        *("GET /api/items", "GET /api/items/:id", "POST /api/items", "GET /api/parts/newest"),
        *("GET /api", "GET /api/known/two", "GET /shop/orders", "GET /shop/orders/{id}"),
        "DELETE /shop/orders/{id}",
        *("GET /api/books", "GET /pages"),
        *("GET /blog", "GET /blog/{page}/{slug}", "POST /blog/new"),
    }


def test_laravel_may_have_its_api_elsewhere(tmp_path: Path) -> None:
    said = {
        "bootstrap/app.php": "->withRouting(apiPrefix: 'v1')",
        "routes/api.php": BELOW["routes/api.php"],
    }
    assert [it.path for it in routes_of_sources(laid_out(tmp_path, said))] == ["/v1/books"]


@pytest.mark.parametrize(
    ("said", "prefixes"),
    [
        ('r.Route("/api", func(r chi.Router) {', ["/api"]),
        ("app.use('/api/v1', router)", ["/api/v1"]),
        ('app.register_blueprint(shop, url_prefix="/shop/")', ["/shop"]),
        ('@RequestMapping(path = "/orders")', ["/orders"]),
        ('v1 := r.Group("/api"); v1.Group("/v1")', ["/api", "/v1", "/api/v1", "/v1/api"]),
        ('app.use(express.static("/public"))', []),
    ],
)
def test_what_groups_of_routes_stand_below_is_found(
    tmp_path: Path, said: str, prefixes: list[str]
) -> None:
    assert prefixes_of_sources(laid_out(tmp_path, {"main.go": said})) == prefixes


DOCUMENT: dict[str, Any] = {
    "openapi": "3.1.0",
    "servers": [{"url": "https://example.org/v2/"}],
    "components": {
        "parameters": {"id": {"name": "id", "in": "path", "schema": {"type": "integer"}}}
    },
    "paths": {
        "/items/{id}": {
            "parameters": [{"$ref": "#/components/parameters/id"}],
            "get": {},
            "delete": {},
        },
        "/by/{kind}": {
            "get": {"parameters": [{"name": "kind", "in": "path", "schema": {"enum": ["a b"]}}]}
        },
        "/find": {
            "get": {
                "parameters": [
                    {"name": "q", "in": "query", "required": True, "example": "tea & more"},
                    {"name": "page", "in": "query", "schema": {"default": 1}},
                ]
            }
        },
        "/tagged": {"get": {"parameters": [{"name": "X-Tag", "in": "header", "required": True}]}},
        "/slug/{slug}": {"get": {}},
        "/me": {"get": {"security": [{"bearer": []}]}},
        "/open": {"get": {"security": []}},
    },
}


def test_routes_of_openapi_take_examples_and_say_what_they_lack(tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs/openapi.json").write_text(json.dumps(DOCUMENT))
    by, routes = known_routes(FoundApp("x"), tmp_path)
    assert by == "docs/openapi.json"
    assert [it.filled for it in routes if it.filled and not it.lacks] == [
        *("/v2/items/1", "/v2/by/a%20b", "/v2/find?q=tea%20%26%20more", "/v2/open"),
    ]
    assert {it.label: it.lacks for it in routes if it.lacks} == {
        "DELETE /v2/items/{id}": "writes",
        "GET /v2/tagged": "no example for X-Tag",
        "GET /v2/slug/{slug}": "no example for slug",
        "GET /v2/me": "needs a login",
    }


def test_a_document_of_swagger_in_yaml_is_read() -> None:
    text = "swagger: '2.0'\nbasePath: /api\npaths:\n  /x:\n    get: {}\n"
    assert [it.filled for it in routes_of_openapi(text)] == ["/api/x"]


PAGE = b"""<a href="/a?x=1&amp;y=2">a</a> <a href="b">b</a> <a href='https://other.org/c'>c</a>
<a href="/logout">d</a> <a href="#top">e</a> <a href="mailto:x@y">f</a> <a href="/p/">g</a>
<a href="/del" data-method="delete">h</a> <a>i</a> <a href="/a b">j</a> <a href="/a?x=1&y=2">k</a>
"""


def test_links_of_the_same_server_that_change_nothing_are_taken() -> None:
    assert links_of(PAGE, "/p/") == ["/a?x=1&y=2", "/p/b", "/a%20b"]
    assert links_of(b'<a href="/x">x</a><![x[y', "/") == ["/x"]  # which Python's parser gives up at


@pytest.mark.parametrize("ending", ["json", "yaml"])
@given(st.data())
def test_any_document_is_read_without_a_fault(ending: str, data: st.DataObject) -> None:
    leaves = st.none() | st.integers() | st.text(max_size=5)
    names = st.sampled_from([*("openapi", "paths", "/a/{b}", "get", "parameters", "schema", "in")])
    tree = st.recursive(
        leaves, lambda it: st.lists(it, max_size=3) | st.dictionaries(names, it), max_leaves=15
    )
    text = json.dumps({"openapi": "3", "paths": {"/x": data.draw(tree)}, "servers": None})
    routes_of_openapi(text if ending == "json" else f"# {data.draw(st.text())!r}\n{text}")


@given(st.binary())
def test_any_page_is_read_without_a_fault(page: bytes) -> None:
    links_of(page, "/")


def test_resources_of_jax_rs_are_below_their_class_and_the_configuration(tmp_path: Path) -> None:
    files = {
        "src/main/java/shop/Books.java": '@Path("/books")\n@Produces(A.B)\npublic class Books {\n'
        "  @GET\n  List all() {}\n  @GET\n  @Produces(A.B)\n"
        '  @Path("/newest")\n  List newest() {}\n'
        '  @Path("/{name}/pages")\n  @GET List pages() {}\n  @POST\n  void add() {}\n}\n',
        "src/main/resources/application.properties": "quarkus.resteasy.path=/api\n",
    }
    routes = routes_of_sources(laid_out(tmp_path, files))
    assert [route.label for route in routes] == [
        *("GET /api/books", "GET /api/books/newest", "GET /api/books/{name}/pages"),
        "POST /api/books",
    ]
