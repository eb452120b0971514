"""What applications of Node run in, and what makes and fills their databases."""

from pathlib import Path

import pytest

from e2e.own import make_repository
from systems.layouts.laid_out import Case, Files, check, laid_out
from systems.layouts.test_node_layouts import LISTENS, NPM, PRODUCTION, package
from webdyno.systems.layouts import find_app
from webdyno.systems.layouts.settings import with_env_file
from webdyno.systems.repository import repository_of

KNEX = "module.exports = {\n  development: {client: 'sqlite3'},\n"
DEVELOPMENT = "NODE_ENV=development"
CASES = {
    "several ports, of which one is HTTP's": Case(
        {
            "package.json": package("node s.js", "express"),
            "s.js": "listen(process.env.HTTP_PORT)\nws(process.env.MCP_WS_PORT)\n",
        },
        f"HTTP_PORT=$PORT {PRODUCTION} node s.js",
        NPM,
    ),
    "another variable, whose value is called PORT": Case(
        {
            "package.json": package("node s.js", "koa"),
            ".env.example": "APP_PORT=app_port\nPGADMIN_PORT=pgadmin_port\n",
            "s.js": "const PORT = process.env.APP_PORT || 3000\na.listen(PORT)\n",
        },
        f"APP_PORT=$PORT {PRODUCTION} node s.js",
        NPM,
        says=("its sources read the port from APP_PORT",),
    ),
    "a knexfile without production": Case(
        {
            "package.json": package("node s.js", "knex"),
            "s.js": LISTENS,
            "knexfile.js": KNEX + "  /* production: {client: 'pg'} */\n}\n",
        },
        f"{DEVELOPMENT} node s.js",
        f"{NPM} && npx knex migrate:latest",
        says=("knexfile.js has nothing for production", "its database is a file"),
    ),
    "a database that wants TLS in production": Case(
        {
            "package.json": package("node s.js", "pg", "sequelize"),
            "s.js": f"{LISTENS}connect(process.env.DATABASE_URL)\n",
            "config/database.json": '{\n"development": {"use_env_variable": "DATABASE_URL"},\n'
            '"production": {\n"dialectOptions": {"ssl": {"require": true}}\n}\n}\n',
        },
        f"{DEVELOPMENT} node s.js",
        NPM,
        says=("config/database.json wants TLS of its database in production",),
    ),
    "migrations of Sequelize's in src, and TLS of its database but in development": Case(
        {
            "package.json": package("node s.js", "pg", "sequelize", "sequelize-cli"),
            "s.js": f"{LISTENS}connect(process.env.DATABASE_URL)\n",
            "src/config/config.js": "development: {},\ntest: {ssl: {}},\nproduction: {ssl: {}},\n",
            ".sequelizerc": "",
            "src/migrations/1.js": "",
        },
        f"{DEVELOPMENT} node s.js",
        NPM,
        says=("src/config/config.js wants TLS of its database in production",),
        others={"setup": "npx sequelize-cli db:migrate"},
    ),
    "a program that migrates when it starts": Case(
        {
            "package.json": package("node s.js", "drizzle-orm", "drizzle-kit", "pg"),
            "s.js": LISTENS + "connect(process.env.DATABASE_URL)\n",
            "db.js": "import { migrate } from 'drizzle-orm/node-postgres/migrator'\n",
            "drizzle.config.ts": "",
        },
        f"{PRODUCTION} node s.js",
        NPM,
        others={"setup": None},
    ),
    "a dump that names an owner": Case(
        {
            "package.json": package("node s.js", "pg"),
            "s.js": LISTENS + "connect(process.env.DATABASE_URL)\n",
            "db_schema.sql": "CREATE TABLE a (b int);\nALTER TABLE a OWNER TO auth;\n",
        },
        f"{PRODUCTION} node s.js",
        NPM,
        others={
            "setup": "sed -E '/^[ \\t]*(ALTER .* OWNER TO|GRANT|REVOKE) .*;[ \\t\\r]*$/Id' "
            "db_schema.sql | psql -qX -v ON_ERROR_STOP=1 >/dev/null"
        },
    ),
    "a member of a workspace with migrations and an example of variables": Case(
        {
            "package.json": {"workspaces": ["apps/*"]},
            "apps/api/package.json": package(
                "node s.js", "pg", name="api", scripts={"migrate": "node m.js"}
            ),
            "apps/api/s.js": LISTENS + "connect(process.env.DATABASE_URL)\n",
            "apps/api/.env.example": "A=1\n",
        },
        f"{PRODUCTION} npm run --silent start --workspace api",
        f"cp -n apps/api/.env.example apps/api/.env && {NPM}",
        others={"setup": "npm run --silent migrate --workspace api"},
    ),
    "a module that isn't there, and one that the build makes": Case(
        {
            "package.json": package(
                "nodemon main", "koa", main="./dist/s.js", scripts={"build": "tsc"}
            ),
            "src/s.ts": LISTENS,
        },
        f"{PRODUCTION} node dist/s.js",
        f"{NPM} && npm run build",
    ),
    "a front that asks another application": Case(
        {
            "package.json": package("node s.js", "express"),
            "s.js": LISTENS + "fetch(env.PUBLIC_API_URL)\n",
            ".env.example": "PUBLIC_API_URL=http://localhost:4000\n",
        },
        f"{PRODUCTION} node s.js",
        NPM,
        says=("its sources ask PUBLIC_API_URL, http://localhost:4000 in .env.example",),
    ),
    "a lock file of npm's that is out of date": Case(
        {
            "package.json": package("node s.js", "express"),
            "s.js": LISTENS,
            "package-lock.json": {"packages": {"": {"dependencies": {"express": "^0"}}}},
        },
        f"{PRODUCTION} node s.js",
        NPM,
    ),
    "what Nest compiles from more than one folder": Case(
        {
            "package.json": package(
                "node dist/main", "@nestjs/core", scripts={"build": "nest build"}
            ),
            "src/main.ts": LISTENS,
            "libs/auth.ts": "",
            "tsconfig.json": "{}",
        },
        f"{PRODUCTION} node dist/src/main",
        f"{NPM} && npm run build",
        says=("more than src is compiled",),
    ),
    "variables that Compose's file sets, and nothing else": Case(
        {
            "package.json": package("node s.js", "express"),
            "s.js": LISTENS + "f(process.env.EMAIL, process.env.A || 1, process.env.DEBUG_SQL)\n"
            "g(process.env.TOKEN_OF_OTHERS, process.env.SYNC === 'true')\n",
            "docker-compose.yml": "services:\n  web:\n    build: .\n    environment:\n"
            "      - EMAIL=a@b.c\n      - A=2\n      - DEBUG_SQL=1\n      - SYNC=true\n"
            "      - TOKEN_OF_OTHERS=${MINE}\n  db:\n    image: mysql\n",
        },
        f"{PRODUCTION} node s.js",
        NPM,
        says=("its variables have the values of docker-compose.yml",),
        others={"environment": {"EMAIL": "a@b.c", "SYNC": "true"}},
    ),
    "a newer Node": Case(
        {
            "package.json": package("node s.js", "express", engines={"node": "^99.1"}),
            "s.js": LISTENS,
        },
        f"{PRODUCTION} node s.js",
        NPM,
        says=("package.json wants Node 99, and node is",),
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_databases_and_variables_of_node(tmp_path: Path, name: str) -> None:
    check(tmp_path, CASES[name])


def test_a_bundle_gets_what_the_example_says(tmp_path: Path) -> None:
    files: Files = {
        "package.json": package(
            "node build", "@sveltejs/adapter-node", "dotenv", scripts={"build": "vite build"}
        ),
        ".env.example": "DATABASE_FILE=./db.db\nPORT=3000\n",
    }
    make_repository(laid_out(tmp_path, files))
    repository, app = repository_of(tmp_path), find_app(tmp_path)
    assert repository
    assert app
    found = with_env_file(app, tmp_path, repository)
    assert found.environment == {"DATABASE_FILE": "./db.db"}
    assert found.build == f"cp -n .env.example .env && {NPM} && npm run build"
