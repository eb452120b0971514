"""Layouts that containers run: Dockerfiles and Compose files."""

from pathlib import Path

import pytest

from systems.layouts.laid_out import Case, check

CASES = {
    "a library with a Dockerfile": Case(
        {"go.mod": "module m\n", "Dockerfile": "FROM x\nCMD serve\n"},
        says=("--start serve",),
        others={"image": "."},
    ),
    "Dockerfile of several stages": Case(
        {
            "Containerfile": 'FROM a AS built\nCMD make\nfrom b\nCMD ["x"]\n'
            'entrypoint ["./server", \\\n "--port"]\nCMD ["80"]\n'
        },
        says=("--start './server --port $PORT'",),
        others={"image": "."},
    ),
    "Dockerfile with a line of shell": Case(
        {"Dockerfile": 'FROM x\nENTRYPOINT exec ./server\nCMD ["80"]\n'},
        says=("--start 'exec ./server'",),
        others={"image": "."},
    ),
    "Dockerfile whose words are a line of shell": Case(
        {"Dockerfile": 'FROM x\nCMD ["/bin/sh", "-c", "make up && exec ./server"]\n'},
        says=("--start 'make up && exec ./server'",),
        others={"image": "."},
    ),
    "Dockerfile that a Compose file builds as what is asked": Case(
        {
            "app.dockerfile": "",
            "Dockerfile": "FROM x\nCMD sh start.sh\n",
            "start.sh": "flask db upgrade\nexec gunicorn app\n",
            "compose.yaml": "services: {db: {image: x}, worker: {build: .}, "
            'web: {build: {context: ., dockerfile: Dockerfile}, ports: ["80:80"]}}',
        },
        others={"image": "compose.yaml#web"},
        says=("what runs next to the image of Dockerfile", "at each start: flask db upgrade"),
    ),
    "Dockerfile that a Compose file doesn't build": Case(
        {"Dockerfile": "FROM x\n", "compose.yaml": 'services: {web: {image: x, ports: ["80"]}}'},
        says=("compose.yaml aren't read",),
        others={"image": "."},
    ),
    "Compose files next to a Dockerfile": Case(
        {"Dockerfile": "FROM x\n", "compose.prod.yaml": "services: {}", "compose.yaml": ""},
        says=("compose.prod.yaml, compose.yaml aren't read",),
        others={"image": "."},
    ),
    "Compose file with one open service": Case(
        {"compose.yml": 'services: {data: {image: x}, web: {build: ., ports: ["80:80"]}}'},
        others={"image": "compose.yml#web", "ready_within_s": 120},
    ),
    "Dockerfile of what stands behind the service that is asked": Case(
        {
            "Dockerfile": "FROM php:fpm\n",
            "compose.yaml": "services: {app: {build: .}, db: {image: mysql, ports: ['3306:3306']}, "
            "web: {image: nginx, ports: ['8080:80']}}",
        },
        others={"image": "compose.yaml#web"},
        says=("what runs next to the image of Dockerfile",),
    ),
    "Compose file whose other open services are databases, and tools for them": Case(
        {
            "compose.yaml": "services: {db: {build: db, ports: ['3307:3306']}, "
            "admin: {image: 'dpage/pgadmin4:9', ports: ['80']}, "
            "cache: {image: 'redis:7-alpine', ports: [{target: 6379}]}, "
            "web: {build: web, ports: ['127.0.0.1:8080:80/tcp']}}",
            "web/index.php": "",
            "web/Dockerfile": "FROM php\n",
        },
        others={"image": "compose.yaml#web"},
    ),
    "Compose file with nothing but what a program in a folder needs": Case(
        {
            "compose.yaml": "services: {db: {image: 'postgres:17', ports: ['5432:5432']}, "
            "login: {image: quay.io/keycloak/keycloak, ports: ['8081:8080']}}",
            "server/package.json": {"scripts": {"start": "node s.js"}},
            "server/s.js": "listen(process.env.PORT)",
        },
        "NODE_ENV=production node s.js",
        others={"dir": "server"},
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_a_layout_is_known(tmp_path: Path, name: str) -> None:
    check(tmp_path, CASES[name])
