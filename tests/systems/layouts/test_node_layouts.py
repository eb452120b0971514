"""Layouts of Node, and of Deno."""

from pathlib import Path
from typing import Any

import pytest

from systems.layouts.laid_out import Case, Files, check, choices, laid_out
from webdyno.systems.layouts import find_app

NPM = "npm install --no-audit --no-fund --loglevel=error"
LISTENS = "app.get('/a', f)\napp.get('/b/:id', f)\napp.listen(process.env.PORT)\n"
PRODUCTION = "NODE_ENV=production"


def package(start: str = "", *needs: str, **keys: Any) -> dict[str, Any]:  # noqa: ANN401 (JSON)
    scripts = {"start": start, **keys.pop("scripts", {})}
    return {"dependencies": dict.fromkeys(needs, "1"), "scripts": scripts, **keys}


CASES = {
    "Express": Case(
        {"package.json": package("node s.js", "express"), "s.js": LISTENS},
        f"{PRODUCTION} node s.js",
        NPM,
    ),
    "npm with a lock file": Case(
        {
            "package.json": package("node s.js", "express"),
            "s.js": LISTENS,
            "package-lock.json": "{}",
        },
        f"{PRODUCTION} node s.js",
        "npm ci --no-audit --no-fund --loglevel=error",
    ),
    "tests by a browser, which nobody needs here": Case(
        {"package.json": package("node s.js", "express", "cypress"), "s.js": LISTENS},
        f"{PRODUCTION} node s.js",
        f"CYPRESS_INSTALL_BINARY=0 {NPM}",
    ),
    "a script that sets a variable before a program of a package": Case(
        {
            "package.json": package("NODE_ENV=production ts-node -r x src/s.ts", "express"),
            "src/s.ts": LISTENS,
        },
        "NODE_ENV=production node_modules/.bin/ts-node -r x src/s.ts",
        NPM,
    ),
    "Node and Deno": Case(
        {"package.json": package("node s.js", "express"), "s.js": LISTENS, "deno.json": "{}"},
        f"{PRODUCTION} node s.js",
        NPM,
    ),
    "a build for production alone": Case(
        {
            "package.json": package("node s.js", "express", scripts={"build:prod": "tsc"}),
            "s.js": LISTENS,
        },
        f"{PRODUCTION} node s.js",
        f"{NPM} && npm run build:prod",
    ),
    "a limit of requests": Case(
        {
            "package.json": package("node s.js", "express"),
            "s.js": f"{LISTENS}process.env.RATE_LIMIT_MAX; process.env.RATE_LIMIT_WINDOW_MS\n",
        },
        f"{PRODUCTION} node s.js",
        NPM,
        says=("its sources read RATE_LIMIT_MAX: a limit that no load reaches is given",),
        others={"environment": {"RATE_LIMIT_MAX": "1000000000"}},
    ),
    "a script that builds at each start": Case(
        {
            "package.json": package(
                "npm run build && node s.js", "express", scripts={"build": "tsc"}
            ),
            "s.js": LISTENS,
        },
        f"{PRODUCTION} node s.js",
        f"{NPM} && npm run build",
    ),
    "a script that builds before it starts": Case(
        {
            "package.json": package("node s.js", "express", scripts={"prestart": "tsc"}),
            "s.js": LISTENS,
        },
        f"{PRODUCTION} node s.js",
        f"{NPM} && npm run prestart --silent",
    ),
    "what a script for development makes before": Case(
        {
            "package.json": package("nodemon s.js", "express", scripts={"prestart": "node gen.js"}),
            "s.js": LISTENS,
        },
        f"{PRODUCTION} node s.js",
        f"{NPM} && npm run prestart --silent",
    ),
    "a build that is made before each start, too": Case(
        {
            "package.json": package(
                "node s.js", "express", scripts={"build": "tsc", "prestart": "npm run build"}
            ),
            "s.js": LISTENS,
        },
        f"{PRODUCTION} node s.js",
        f"{NPM} && npm run build",
    ),
    "what Express' generator makes": Case(
        {
            "package.json": package("node ./bin/www", "express"),
            "bin/www": "var port = process.env.PORT\n",
        },
        f"{PRODUCTION} node ./bin/www",
        NPM,
        others={"doubts": ()},
    ),
    "nodemon": Case(
        {"package.json": package("nodemon src/s.js", "express"), "src/s.js": LISTENS},
        f"{PRODUCTION} node src/s.js",
        NPM,
        says=("`nodemon src/s.js` is for development: not taken",),
    ),
    "Express with PostgreSQL": Case(
        {
            "package.json": package("node s.js", "pg"),
            "s.js": f"connect(process.env.DATABASE_URL)\n{LISTENS}",
        },
        f"{PRODUCTION} node s.js",
        NPM,
        others={"services": {"db": "postgresql"}},
    ),
    "Express with PostgreSQL, filled by a file of SQL": Case(
        {
            "package.json": package("node s.js", "pg"),
            "s.js": f"connect(process.env.DATABASE_URL)\n{LISTENS}",
            "db/init.sql": "CREATE TABLE x (n int)",
        },
        f"{PRODUCTION} node s.js",
        NPM,
        others={"setup": "psql -qX -v ON_ERROR_STOP=1 -f db/init.sql >/dev/null"},
    ),
    "no script": Case(
        {"package.json": {"main": "app.js"}, "app.js": LISTENS}, f"{PRODUCTION} node app.js"
    ),
    "Nest": Case(
        {
            "package.json": package(
                "nest start", scripts={"build": "nest build", "start:prod": "node dist/main"}
            ),
            "yarn.lock": "",
            "src/main.ts": LISTENS,
        },
        f"{PRODUCTION} node dist/main",
        "yarn run build",
        says=("its script start:prod starts it",),
    ),
    "a port in the script": Case(
        {"package.json": package("next start -p 4000", "next", scripts={"build": "next build"})},
        "node_modules/.bin/next start -p $PORT",
        f"{NPM} && npm run build",
        others={"heeds_port": True},
    ),
    "Vite, whose start is for development": Case(
        {
            "package.json": package(
                "vite", "vite", scripts={"build": "vite build", "serve": "vite preview"}
            ),
            "index.html": "",
        },
        "python3 -m http.server $PORT --bind 127.0.0.1 --directory dist",
        f"{NPM} && npm run build",
        says=("vite makes pages alone",),
        others={"connections": 4},
    ),
    "Vite preview alone": Case(
        {"package.json": {"scripts": {"preview": "vite preview", "build": "vite build"}}},
        "node_modules/.bin/vite preview --port $PORT --host 127.0.0.1",
        "npm run build",
    ),
    "SvelteKit": Case(
        {
            "package.json": {
                "scripts": {"dev": "vite dev", "build": "vite build"},
                "devDependencies": {"@sveltejs/adapter-node": "5", "vite": "7"},
            },
            "pnpm-lock.yaml": "",
        },
        f"{PRODUCTION} node build",
        "pnpm install --prefer-frozen-lockfile && pnpm run build",
        others={"heeds_port": True},
    ),
    "SvelteKit with a script that previews": Case(
        {
            "package.json": {
                "scripts": {"build": "vite build", "preview": "vite preview"},
                "devDependencies": {"@sveltejs/adapter-node": "5", "vite": "7"},
            },
        },
        f"{PRODUCTION} node build",
        f"{NPM} && npm run build",
        others={"heeds_port": True, "notes": (), "doubts": ()},
    ),
    "Nuxt": Case(
        {
            "package.json": package(
                "", "nuxt", scripts={"build": "nuxt build", "preview": "nuxt preview"}
            )
        },
        f"{PRODUCTION} node .output/server/index.mjs",
        f"{NPM} && npm run build",
        others={"doubts": ()},
    ),
    "Hono on Bun": Case(
        {
            "package.json": {
                "scripts": {"dev": "bun run --hot src/index.ts"},
                "dependencies": {"hono": "4"},
            },
            "bun.lock": "",
            "src/index.ts": "const app = new Hono()\nexport default app\n",
        },
        f"{PRODUCTION} bun src/index.ts",
        "bun install",
        others={"heeds_port": True, "doubts": ()},
    ),
    "Elysia, with a fixed port": Case(
        {
            "package.json": {
                "scripts": {"dev": "bun run --watch src/index.ts"},
                "dependencies": {"elysia": "1"},
            },
            "bun.lock": "",
            "src/index.ts": 'import { Elysia } from "elysia"\nnew Elysia().listen(3000)\n',
        },
        f"{PRODUCTION} bun src/index.ts",
        "bun install",
        says=("it binds port 3000 in src/index.ts:2",),
    ),
    "Hono on Node, with a fixed port": Case(
        {
            "package.json": package("node dist/index.js", "hono", scripts={"build": "tsc"}),
            "src/index.ts": "serve({\n  fetch: app.fetch,\n  port: 3000\n})\n",
        },
        f"{PRODUCTION} node dist/index.js",
        f"{NPM} && npm run build",
        says=("it binds port 3000 in src/index.ts:3",),
    ),
    "tsx that watches": Case(
        {
            "package.json": {"scripts": {"dev": "tsx watch src/s.ts"}},
            "src/s.ts": LISTENS,
        },
        f"{PRODUCTION} node_modules/.bin/tsx src/s.ts",
    ),
    "another variable": Case(
        {
            "package.json": package("node s.js", "koa"),
            "s.js": "connect(process.env.DB_PORT); a.listen(process.env.APP_PORT)\n",
        },
        f"APP_PORT=$PORT {PRODUCTION} node s.js",
        NPM,
        says=("its sources read the port from APP_PORT",),
    ),
    "a port that nobody heeds": Case(
        {"package.json": package("node s.js", "koa"), "s.js": "app.listen(3000)\n"},
        f"{PRODUCTION} node s.js",
        NPM,
        says=("no call that listens reads", "it binds port 3000 in s.js:1: both variants are up"),
    ),
    "Next in a pnpm workspace": Case(
        {
            "package.json": {
                "packageManager": "pnpm@10.18.0",
                "scripts": {"build": "turbo run build", "start": "pnpm --filter web start"},
                "devDependencies": {"turbo": "2"},
            },
            "pnpm-workspace.yaml": 'packages:\n  - "apps/*"\n',
            "apps/web/package.json": '{"name": "web", "scripts": {"start": "next start"}}',
            "apps/web/app/page.tsx": "",
            "apps/web/app/(shop)/items/route.ts": "",
            "apps/web/app/items/[id]/page.tsx": "",
            "apps/web/pages/about/index.tsx": "",
            "apps/web/pages/_app.tsx": "",
        },
        f"{PRODUCTION} pnpm --filter web start",
        "pnpm install --prefer-frozen-lockfile && pnpm run build",
        ("/", "/about", "/items"),
        ("Next writes an id of the build into its pages",),
        others={"heeds_port": True},
    ),
    "a Procfile of two commands": Case(
        {
            "Procfile": "web: yarn warm && node dist/main.js\n",
            "package.json": {"scripts": {"build": "tsc", "warm": "node w.js"}},
            "yarn.lock": "",
            "src/main.ts": "app.listen(process.env.PORT)\n",
        },
        "export NODE_ENV=production && yarn warm && node dist/main.js",
        "yarn run build",
    ),
    "a yarn workspace with one package that starts": Case(
        {
            "package.json": '{"workspaces": ["packages/*"]}',
            "yarn.lock": "",
            "packages/api/package.json": {
                "name": "api",
                "scripts": {"start": "node .", "build": "tsc"},
            },
            "packages/lib/package.json": '{"name": "lib"}',
            "packages/api/index.js": LISTENS,
        },
        f"{PRODUCTION} yarn workspace api run start",
        "yarn install && yarn workspace api run build",
    ),
    "a workspace whose other packages are libraries and a tool": Case(
        {
            "package.json": '{"workspaces": ["*"], "scripts": {"build": "turbo build"}}',
            "web/package.json": package("next start", "next", name="web"),
            "ui/package.json": package("", "next", name="ui", scripts={"build": "tsup"}),
            "embed/package.json": package("", "vite", name="e", scripts={"build": "vite build"}),
            "cli/package.json": package("tsx src", name="cli", bin={"cli": "x"}),
        },
        "npm run --silent start --workspace web",
        f"{NPM} && npm run build",
        others={"heeds_port": True},
    ),
    "a server of Nx, which only develops, with a Dockerfile": Case(
        {
            "package.json": package("nx serve", "express", scripts={"build": "nx build"}),
            "Dockerfile": "FROM x\n",
        },
        others={"image": "."},
    ),
    "npm workspaces, of which one has a file that listens": Case(
        {
            "package.json": '{"workspaces": {"packages": ["a", "b"]}}',
            "a/package.json": '{"name": "a", "scripts": {"dev": "nodemon server.js"}}',
            "a/server.js": LISTENS,
            "b/package.json": "{}",
        },
        f"cd a && exec env {PRODUCTION} node server.js",
        NPM,
    ),
    "bun": Case(
        {
            "package.json": '{"scripts": {"start": "tsx x.ts"}, "devDependencies": {"tsx": "4"}}',
            "bun.lock": "",
            "x.ts": LISTENS,
        },
        f"{PRODUCTION} bun run start",
        "bun install",
    ),
    "Deno with a task": Case(
        {"deno.json": '{"tasks": {"dev": "deno -A --watch x.ts", "start": "deno -A x.ts"}}'},
        "DENO_SERVE_ADDRESS=tcp:127.0.0.1:$PORT deno task start",
        others={"heeds_port": True},
    ),
    "Deno with a module": Case(
        {"deno.jsonc": "// x\n{}", "main.ts": "export default { fetch() {} }\n"},
        "deno serve --allow-all --host 127.0.0.1 --port $PORT main.ts",
        "deno install --entrypoint main.ts",
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_a_layout_of_node_is_known(tmp_path: Path, name: str) -> None:
    check(tmp_path, CASES[name])


def test_of_several_packages_you_choose(tmp_path: Path) -> None:
    files: Files = {
        "package.json": '{"workspaces": ["apps/*"]}',
        **{f"apps/{it}/package.json": package("node .", name=it) for it in ("api", "web")},
    }
    assert list(choices(tmp_path, files)) == ["api", "web"]


@pytest.mark.parametrize("command", ["bin/make.js", {"make": "./bin/make.js"}])
def test_a_tool_is_no_server(tmp_path: Path, command: object) -> None:
    """A generator's template is one, which lies below it."""
    files: Files = {
        "package.json": package("node bin/make.js", "inquirer", bin=command),
        "bin/make.js": "ask('What shall it be called?')",
        "lib/shop/package.json": package("node x.js"),
    }
    found = find_app(laid_out(tmp_path, files))
    assert found
    assert (found.dir, found.start) == ("lib/shop", f"{PRODUCTION} node x.js")
    (tmp_path / "bin/make.js").write_text("http.createServer(f).listen(process.env.PORT)")
    served = find_app(tmp_path)
    assert served
    assert served.start == f"{PRODUCTION} node bin/make.js"


def test_a_manager_that_is_not_here_comes_by_npx(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("shutil.which", lambda _: None)
    case = Case(
        {
            "package.json": package("tsx x.ts", "tsx", packageManager="pnpm@10.1.0+sha512.ab"),
            "x.ts": LISTENS,
        },
        f"{PRODUCTION} npx --yes pnpm@10.1.0 run start",
        "npx --yes pnpm@10.1.0 install --prefer-frozen-lockfile",
        says=("pnpm isn't installed here: npx gets it",),
    )
    check(tmp_path, case)
