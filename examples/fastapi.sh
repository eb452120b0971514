#!/bin/sh
# FastAPI under uvicorn: a Git repository of three revisions, in FOLDER or ./fastapi-app.
set -eu
. "$(dirname -- "$0")/revisions.sh"
begin "${1-}" fastapi-app

cat >pyproject.toml <<'EOF'
[project]
name = "shop"
version = "1.0"
requires-python = ">=3.11"
dependencies = ["fastapi==0.121.0", "uvicorn==0.38.0"]

[tool.setuptools]
py-modules = ["main"]
EOF
cat >main.py <<'EOF'
"""A small shop."""

from fastapi import FastAPI

app = FastAPI()
ITEMS = [{"id": number, "name": f"item {number}"} for number in range(50)]


@app.get("/")
async def home():
    return {"shop": "open"}


@app.get("/items")
async def items():
    return ITEMS


@app.get("/search")
async def search():
    return [item for item in ITEMS if "7" in item["name"]]
EOF
printf '%s\n' .venv/ __pycache__/ '*.egg-info/' build/ >.gitignore
echo "A small shop: /, /items, /search." >README.md
revision start "A small shop"
documented

cat >>main.py <<'EOF'


def rank():
    """Take 300 µs of CPU time."""
    end = time.thread_time() + 300e-6
    while time.thread_time() < end:
        pass
EOF
sed -i -e 's/^from fastapi/import time\n\nfrom fastapi/' -e '/^async def search/a\    rank()' main.py
revision slower "Search: ranked results"
ready
