"""What an application needs and nothing provides is named."""

from pathlib import Path

import pytest

from systems.layouts.laid_out import Files, laid_out
from webdyno.systems.layouts import find_app

GO = 'package main\nfunc main() { os.Getenv("PORT"); http.ListenAndServe(a) }\n'
GO_SQL: Files = {
    "go.mod": "module m\nrequire github.com/lib/pq v1\n",
    "main.go": GO + 'os.Getenv("DATABASE_URL")\n',
    "items.go": 'package main\nconst all = "SELECT a FROM item WHERE b = $1"\n',
}
PYTHON: Files = {
    "requirements.txt": "fastapi\nuvicorn\nredis\n",
    "main.py": "from fastapi import FastAPI\napp = FastAPI()\n",
}
PHP: Files = {"index.php": "<?php\nrequire 'config.php';\n"}
NAMED: dict[str, tuple[Files, str]] = {
    "tables that are asked and that nothing makes": (GO_SQL, "nothing was found that makes its"),
    "tables that one of several files may make": (
        {
            **GO_SQL,
            "schema/a.sql": "CREATE TABLE item (a int);",
            "schema/b.sql": "CREATE TABLE b (a int);",
        },
        "as from schema/a.sql, schema/b.sql",
    ),
    "Redis at a fixed address": (
        {**PYTHON, "cache.py": "import redis\n\nr = redis.Redis(host='localhost')\n"},
        "it connects to Redis in cache.py:3",
    ),
    "settings of which a sample is there": (
        {**PHP, "config-sample.php": "<?php\n"},
        "it reads config.php, which isn't in Git: config-sample.php shows it",
    ),
    "settings whose sample ends so": (
        {**PHP, "config.php.dist": "<?php\n"},
        "`cp config.php.dist config.php` in build makes it",
    ),
    "what Go takes into its program": (
        {
            "go.mod": "module m\n",
            "main.go": f"{GO}\n//go:embed all:web/dist\nvar d embed.FS\n",
            "Dockerfile": "FROM node\nRUN npm ci && npm run build\nFROM go\nRUN go build\n",
        },
        "main.go:4 embeds web/dist, which isn't in Git: build has to make it first, as Dockerfile",
    ),
    "a step of the build that hosters run": (
        {
            **PYTHON,
            "build.sh": "pip install -r requirements.txt\ncd web && npm ci && npm run build\n",
        },
        "build.sh also runs `npm run build`",
    ),
    "a database of the JVM's that the catalog lacks": (
        {
            "build.gradle": "plugins { id 'org.springframework.boot' }\n",
            "src/main/resources/application.properties": "spring.datasource.url="
            "jdbc:oracle:thin:@10.0.0.1:1521:XE\n",
        },
        "(jdbc:oracle), which webdyno doesn't start",
    ),
    "tables that the JVM's mapper is to find": (
        {
            "build.gradle": "plugins { id 'org.springframework.boot' }\n",
            "src/main/resources/application.properties": "spring.datasource.url="
            "jdbc:mysql://a/b\nspring.jpa.hibernate.ddl-auto=none\n",
            "src/main/java/A.java": "@Entity\nclass A {}\n",
        },
        "nothing was found that makes its tables",
    ),
    "words of an image that are a path in it": (
        {"go.mod": "module m\n", "main.go": GO, "Dockerfile": 'CMD ["/m", "-c", "/etc/m.yml"]\n'},
        "Dockerfile starts it with `-c /etc/m.yml`",
    ),
    "seeders of Laravel's that only developers can run": (
        {
            "composer.json": {"require": {"laravel/framework": "11"}},
            "public/index.php": "",
            ".env.example": "DB_CONNECTION=mysql\n",
            "database/seeders/DatabaseSeeder.php": "$this->call([ItemSeeder::class]);",
            "database/seeders/ItemSeeder.php": "Item::factory()->count(9)->create();",
        },
        "its tables stay empty: its seeders need fakerphp/faker",
    ),
    "packages of a folder that a script leads to": (
        {
            "package.json": {"scripts": {"start": "node server/index.js"}},
            "server/package.json": {"dependencies": {"express": "5"}},
            "server/index.js": "app.listen(process.env.PORT)\n",
        },
        "it starts what is in server, whose packages build doesn't install",
    ),
    "another file than the image's": (
        {
            "package.json": {"scripts": {"start": "node index.js"}},
            "index.js": "app.listen(process.env.PORT)\n",
            "Dockerfile": 'CMD ["node", "dist/main.js"]\n',
        },
        "Dockerfile starts dist/main, and here another file is started",
    ),
    "queries that sqlx checks as it is built": (
        {
            "Cargo.toml": '[package]\nname = "m"\n[dependencies]\nsqlx = "1"\n',
            "Cargo.lock": "",
            "src/main.rs": 'fn main() { axum::serve(env::var("PORT")); sqlx::query!("SELECT 1"); }',
        },
        "`cargo sqlx prepare` keeps what it needs in .sqlx",
    ),
    "libraries of C++": (
        {
            "CMakeLists.txt": "project(m)\nadd_executable(m main.cc)\n",
            "main.cc": 'app().addListener("127.0.0.1", std::stoi(std::getenv("PORT"))).run();\n',
            "vcpkg.json": "{}",
        },
        "vcpkg.json names its libraries",
    ),
    "a configuration of viper's": (
        {
            "go.mod": "module m\nrequire github.com/spf13/viper v1\n",
            "main.go": f'{GO}\nfunc c() {{ viper.SetConfigName("config") }}\n',
            "config.example.yaml": "port: 1\n",
        },
        "it reads config.yaml, which isn't in Git: config.example.yaml shows it",
    ),
    "a database of PHP's at a fixed address": (
        {**PHP, "config.php": '<?php\n$servername = "localhost";\n$c = new mysqli($servername);\n'},
        "its address stands in config.php:2",
    ),
    "a file that isn't there": (
        {"package.json": {"scripts": {"start": "node server.js"}}, "app.js": "process.env.PORT"},
        "it starts server.js, which isn't there",
    ),
    "a file of a script that a manager runs": (
        {
            "package.json": {"scripts": {"start": "ts-node ./src/index.ts"}},
            "main.ts": "app.listen(process.env.PORT)\n",
        },
        "it starts src/index.ts, which isn't there",
    ),
    "an extension of PostgreSQL's": (
        {
            **PYTHON,
            "requirements.txt": "fastapi\nuvicorn\nasyncpg\npgvector\n",
            "db.py": 'url = os.environ["DATABASE_URL"]\n',
        },
        "its database wants an extension (pgvector)",
    ),
    "what lies outside of the repository": (
        {"go.mod": "module m\nreplace x => ../x\n", "main.go": GO},
        "go.mod wants ../x, which isn't there",
    ),
    "a server that nobody starts": (
        {**PYTHON, "requirements.txt": "fastapi\nneo4j\n"},
        "it needs Neo4j, which webdyno doesn't start",
    ),
    "scripts for development alone": (
        {"package.json": {"scripts": {"start": "ts-node-dev src/server.ts"}}},
        "its script start, `ts-node-dev src/server.ts`, is for development",
    ),
    "flags of Go's that a program ends without": (
        {
            "go.mod": "module m\n",
            "main.go": GO + 'func c() error {\n\tflags.StringVar(&conf.port, "port", "8275", "")\n'
            '\tflags.StringVar(&conf.root, "fs_root", "", "")\n'
            '\tlog := flag.String("log", "", "")\n\tusers := flag.String("users_path", "", "")\n'
            "\tif !filepath.IsAbs(conf.root) {\n\t\treturn err\n\t}\n"
            '\tif *users == "" {\n\t\tflag.Usage()\n\t\tos.Exit(2)\n\t}\n}\n',
        },
        "it ends without -fs_root, -users_path, which main.go reads",
    ),
    "what a script clones": (
        {
            "config.ru": "run App\n",
            "app.rb": "set :port, ENV['PORT']\n\nset :content, File.join(__dir__, 'prose')\n",
            "bin/prepare": "URL='https://example.org/x.git'\nDIR='prose'\n"
            'git clone "$URL" "$DIR"\n',
        },
        "bin/prepare gets prose, which isn't in Git, and app.rb:3 names it",
    ),
    "what a Makefile downloads": (
        {
            **PYTHON,
            "model.py": "m = load('data/model.onnx')\n",
            "Makefile": "get:\n\tcurl -sL https://example.org/m -o data/model.onnx\n",
        },
        "Makefile gets data/model.onnx",
    ),
    "a port that is written into Node's sources": (
        {
            "package.json": {"scripts": {"start": "node s.js"}},
            "s.js": "policy(process.env.NEXT_PUBLIC_PORT)\nserver.listen(3000)\n",
        },
        "no call that listens reads PORT",
    ),
    "a port next to another program that Go runs": (
        {"go.mod": "module m\n", "main.go": "package main\nfunc main() { cmd.Run(); app.Run() }\n"},
        "nothing here mentions PORT",
    ),
    "tables that a file makes for another database": (
        {**GO_SQL, "schema.sql": "CREATE TABLE item (a INT AUTO_INCREMENT PRIMARY KEY);"},
        "nothing was found that makes its tables",
    ),
    "an extension that a migration makes": (
        {**GO_SQL, "migrations/1.up.sql": "CREATE EXTENSION IF NOT EXISTS postgis;\n"},
        "its database wants an extension (postgis)",
    ),
    "packages of PHP's that no list names": (
        {"public/index.php": "<?php\nrequire __DIR__.'/../vendor/autoload.php';\n"},
        "public/index.php wants vendor, by a composer.json, which isn't there",
    ),
    "a database that variables lead to, and that the catalog lacks": (
        {
            "composer.json": {"require": {"symfony/framework-bundle": "7"}},
            "public/index.php": "",
            ".env": 'DATABASE_URL="sqlsrv://@localhost/pubs"\n',
        },
        "it needs Microsoft SQL Server, which webdyno doesn't start",
    ),
    "Redis of a client that is imported by its name": (
        {
            "package.json": {"scripts": {"start": "node s.js"}, "dependencies": {"redis": "5"}},
            "s.js": "import { createClient } from 'redis'\nlisten(process.env.PORT)\n"
            "const c = createClient()\n",
        },
        "it connects to Redis in s.js:3",
    ),
    "Redis behind a cache of Django's": (
        {
            **PYTHON,
            "requirements.txt": "fastapi\nuvicorn\ndjango-redis\n",
            "cache.py": "CACHES = {'LOCATION': 'redis://127.0.0.1:6379/1'}\n",
        },
        "it connects to Redis in cache.py:1",
    ),
    "a placeholder of Symfony's": (
        {
            "composer.json": {"require": {"symfony/framework-bundle": "7"}},
            "public/index.php": "",
            "config/services.yaml": "parameters:\n    env(B_B): x\n    a: '%env(int:A_URL)%'\n"
            "    b: '%env(B_B)%'\n    c: '%env(default::C_C)%'\n    # d: '%env(D_D)%'\n"
            "when@test:\n    e: '%env(E_E)%'\n",
        },
        "its settings want A_URL: ",
    ),
    "variables that sources read as if they were there": (
        {
            "package.json": {"scripts": {"start": "node s.js"}},
            "s.js": "listen(process.env.PORT)\nmail(process.env.MAIL_KEY, process.env.MAIL_FROM)\n"
            "const a = process.env.A_A || 1\nif (process.env.B_B) use(process.env.B_B)\n",
            ".env.example": "MAIL_KEY=\nMAIL_FROM=me@example.org\n",
        },
        "its sources read MAIL_KEY, and nothing gives them",
    ),
    "an address that has to be https in production": (
        {
            "package.json": {"scripts": {"start": "node s.js"}},
            "s.js": "listen(process.env.PORT)\nif (mode !== 'production') return\n"
            "if (!url.startsWith('https://')) missing.push('API_URL (must start with https://)')\n",
            ".env.example": "API_URL=http://localhost:3000\n",
        },
        "in production it wants https:// in API_URL",
    ),
    "files that a library of Go's has stored elsewhere": (
        {
            "go.mod": "module m\nrequire github.com/minio/minio-go/v7 v7.0.1\n",
            "main.go": f'{GO}minio.New(os.Getenv("MINIO_ENDPOINT"))\n',
        },
        "it needs MinIO, which webdyno doesn't start",
    ),
    "a database of Doctrine's that no address leads to": (
        {
            "composer.json": {
                "require": {"symfony/framework-bundle": "8", "doctrine/doctrine-bundle": "3"}
            },
            "public/index.php": "",
            ".env": "DATABASE_HOST=localhost\n",
        },
        "Doctrine asks a database, and .env has no address of one",
    ),
    "settings of .NET's that development alone has": (
        {
            "Shop.csproj": '<Project Sdk="Microsoft.NET.Sdk.Web">',
            "Program.cs": 'GetSection("Mail"); GetSection("Limits"); GetSection("Logging");',
            "appsettings.json": '{ // of all\n"Limits": {}}',
            "appsettings.Development.json": '{"Mail": {"Key": "a"}, "Limits": {}, "Logging": {}}',
        },
        "appsettings.Development.json alone has Mail, which its sources name",
    ),
    "an application for desktops": (
        {
            "package.json": {
                "main": "out/main.js",
                "scripts": {"start": "electron-vite preview", "build": "electron-vite build"},
                "devDependencies": {"electron": "31"},
            },
            "src/renderer/index.html": "<p>",
        },
        "it has electron: it is for a desktop or a phone",
    ),
}


@pytest.mark.parametrize("name", NAMED)
def test_what_nothing_provides_is_named(tmp_path: Path, name: str) -> None:
    files, part = NAMED[name]
    found = find_app(laid_out(tmp_path, files))
    assert found
    assert any(part in doubt for doubt in found.doubts), found.doubts
    assert not (name == "an application for desktops" and found.is_whole)


PROVIDED: dict[str, Files] = {
    "tables that a function makes which is handed on": {
        "requirements.txt": "fastapi\nuvicorn\nasyncpg\nsqlalchemy\n",
        "main.py": "from fastapi import FastAPI\napp = FastAPI()\nos.environ['DATABASE_URL']\n"
        "Base = declarative_base()\nconnection.run_sync(Base.metadata.create_all)\n",
    },
    "tables that the program makes": {
        **GO_SQL,
        "db.go": 'package main\nconst s = "CREATE TABLE IF NOT EXISTS item (a int)"\n',
    },
    "settings that are there": {**PHP, "config-sample.php": "", "config.php": "<?php\n"},
    "Redis by its variable": {
        **PYTHON,
        "cache.py": 'import redis\nr = redis.from_url(os.environ["REDIS_URL"])\n',
    },
    "what a front reads that isn't built": {
        "package.json": {"scripts": {"start": "node s.js"}},
        "s.js": "listen(process.env.PORT)\n",
        "site/package.json": {"scripts": {"build": "vite build"}},
        "site/api.ts": "get(import.meta.env.VITE_API_URL)\n",
    },
    "an address in what sources write for people": {
        "package.json": {"scripts": {"start": "node s.js"}},
        "s.js": "listen(process.env.PORT)\nif (mode !== 'production') say('POST https://a.b')\n"
        "say(import.meta.env.BASE_URL)\n",
    },
    "a module that is read first": {
        "package.json": {"scripts": {"start": "node -r dotenv/config s.js"}},
        "s.js": "listen(process.env.PORT)\n",
    },
    "a flag that need not be given": {
        "go.mod": "module m\n",
        "main.go": GO + 'var log = flag.String("log", "", "")\n',
        "cmd/tool/main.go": "package main\nfunc main() {\n"
        '\tto := flag.String("to", "", "")\n\tif *to == "" {\n\t\tlog.Fatal("to")\n\t}\n}\n',
    },
    "what a script downloads is there, or nothing names it": {
        **PYTHON,
        "model.py": "m = load('data/model.onnx')\n",
        "data/model.onnx": "",
        "get.sh": "curl -o data/model.onnx https://x\ncurl -o tool.gz https://x\n"
        "git clone https://example.org/x.git\n",
    },
    "what Go takes into its program is there": {
        "go.mod": "module m\n",
        "main.go": f"{GO}\n//go:embed web/dist\nvar d embed.FS\n",
        "web/dist/index.html": "",
    },
}


@pytest.mark.parametrize("name", PROVIDED)
def test_what_is_there_is_not_named(tmp_path: Path, name: str) -> None:
    found = find_app(laid_out(tmp_path, PROVIDED[name]))
    assert found
    assert not [each for each in found.doubts if "PHP's own server" not in each]
