"""Paths that sources say whole: of routers that are mounted, without what a guard stands before."""

from pathlib import Path

import pytest

from systems.layouts.laid_out import Files, laid_out
from webdyno.systems.layouts import find_app, untried_paths
from webdyno.systems.layouts.mounted import mounted_paths

PATHS: dict[str, tuple[Files, list[str] | None]] = {
    "Express with routers in files of their own": (
        {
            "src/app.ts": "import items from './routes/item.routes';\n"
            "import { users } from './routes/users';\nimport { auth } from './auth';\n"
            "const app = express();\napp.use('/api/items', items);\n"
            "app.use('/api/users', auth, users);\napp.get('/health', (q, r) => r.json({}));\n",
            "src/routes/item.routes.ts": "const router = Router();\nrouter.get('/', list);\n"
            "router.get('/new', verifyToken, make);\nexport default router;\n",
            "src/routes/users.ts": "export const users = Router();\nusers.get('/', all);\n",
            "src/routes/unused.ts": "const r = express.Router();\nr.get('/lost', all);\n",
        },
        ["/health", "/api/items"],
    ),
    "FastAPI with routers in routers": (
        {
            "app/main.py": "from fastapi import FastAPI\nfrom app.api import api\n"
            'app = FastAPI()\napp.include_router(api, prefix="/v1")\n',
            "app/api.py": "from fastapi import APIRouter\n"
            "from app.routers import items, own, users\n"
            "api = APIRouter()\napi.include_router(items.router)\napi.include_router(own.router)\n"
            'api.include_router(users.router, prefix="/users")\n',
            "app/routers/__init__.py": "",
            "app/tests.py": 'app.get("/gated")\n',
            "app/routers/own.py": "router = APIRouter(dependencies=[Depends(current_user)])\n\n\n"
            '@router.get("/own")\ndef own():\n    return []\n',
            "app/routers/items.py": 'router = APIRouter(prefix="/items", tags=["items"])\n\n\n'
            '@router.get("/")\ndef items(db: Session = Depends(get_db)):\n    return []\n',
            "app/routers/users.py": "router = APIRouter()\n\n\n"
            '@router.get("/all")\ndef users(user: User = Depends(get_current_user)):\n    ...\n',
        },
        ["/v1/items/"],
    ),
    "Flask with blueprints": (
        {
            "app/__init__.py": "from app.views import shop, admin_bp\napp = Flask(__name__)\n"
            'app.register_blueprint(shop, url_prefix="/shop")\napp.register_blueprint(admin_bp)\n',
            "app/views.py": 'shop = Blueprint("shop", __name__)\n'
            'admin_bp = Blueprint("admin", __name__, url_prefix="/admin")\n\n\n'
            '@shop.route("/items")\ndef items():\n    return ""\n\n\n'
            '@admin_bp.route("/stats")\n@login_required\ndef stats():\n    return ""\n',
        },
        ["/shop/items"],
    ),
    "Gin with groups, and a function that gets one": (
        {
            "main.go": 'r := gin.Default()\nr.GET("/ping", ping)\napi := r.Group("/api")\n'
            'api.GET("/items", items)\nown := api.Group("/own", AuthMiddleware())\n'
            'own.GET("/x", x)\nregister(api)\n',
            "users.go": 'func register(g *gin.RouterGroup) {\n\tg.GET("/users", users)\n}\n',
        },
        ["/ping", "/api/items"],
    ),
    "net/http": (
        {
            "main.go": 'func routes(m *http.ServeMux) {\nm.HandleFunc("GET /{$}", h)\n'
            'm.HandleFunc("/items", h)\nm.Handle("/static/", http.FileServer(d))\n}\n'
        },
        ["/", "/items"],
    ),
    "Laravel": (
        {
            "artisan": "",
            "routes/web.php": "Route::get('/', f);\nRoute::get('/home', f)->middleware('auth');\n"
            "Route::prefix('x')->group(function () {\n    Route::get('/y', f);\n});\n",
            "routes/api.php": "Route::get('/posts', f);\n"
            "Route::middleware('auth:sanctum')->get('/user', f);\n",
        },
        ["/", "/api/posts"],
    ),
    "parts of Hono that nothing known mounts": (
        {
            "src/index.ts": "const app = new Hono();\napp.get('/health', f);\nsetUp(app);\n",
            "src/items.ts": "const items = new Hono();\nitems.get('/all', f);\n",
        },
        ["/health"],
    ),
    "another language": ({"app.rb": "get '/x' do\n"}, None),
}


@pytest.mark.parametrize("name", PATHS)
def test_paths_are_known_whole_or_not_at_all(tmp_path: Path, name: str) -> None:
    files, paths = PATHS[name]
    assert mounted_paths(laid_out(tmp_path, files)) == paths


def test_where_a_guard_is_before_all_few_paths_are_for_everybody(tmp_path: Path) -> None:
    files: Files = {
        "package.json": {"scripts": {"start": "node main.js"}},
        "main.js": "app.listen(process.env.PORT)\n",
        "a.ts": "@Controller('items')\nexport class A {\n  @Get()\n  all() {}\n}\n",
        "b.ts": "@Controller()\nexport class B {\n  @Get('health')\n  get() {}\n}\n",
    }
    app = find_app(laid_out(tmp_path, files))
    assert app
    assert untried_paths(app, tmp_path) == ["/items", "/health"]
    laid_out(tmp_path, {"m.ts": "providers: [{ provide: APP_GUARD, useClass: Login }]\n"})
    assert untried_paths(app, tmp_path) == ["/health"]


def test_a_path_with_whatever_behind_it_is_not_written(tmp_path: Path) -> None:
    files: Files = {
        "go.mod": "module m\n",
        "main.go": "package main\n"
        'func main() {\nr := chi.NewRouter()\nr.Get("/docs/*", a)\nr.Get("/items", b)\n'
        "http.ListenAndServe(p, r)\n}\n",
    }
    app = find_app(laid_out(tmp_path, files))
    assert app
    assert untried_paths(app, tmp_path) == ["/items"]


def test_pages_of_phoenix_are_live_and_some_want_a_login(tmp_path: Path) -> None:
    router = 'get "/health", A, :b\nlive "/", HomeLive\nlive "/store", StoreLive\n'
    files: Files = {
        "mix.exs": "app: :shop,\n{:phoenix, x}\n",
        "lib/shop_web/router.ex": f"pipe_through :browser\n{router}",
    }
    app = find_app(laid_out(tmp_path, files))
    assert app
    assert untried_paths(app, tmp_path) == ["/health", "/", "/store"]
    guarded = f"pipe_through [:browser, :require_authenticated_user]\n{router}"
    laid_out(tmp_path, {"lib/shop_web/router.ex": guarded})
    assert untried_paths(app, tmp_path) == ["/health", "/"]
