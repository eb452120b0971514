#!/bin/sh
# Flask under gunicorn: a Git repository of three revisions, in FOLDER or ./flask-app.
set -eu
. "$(dirname -- "$0")/revisions.sh"
begin "${1-}" flask-app

cat >requirements.txt <<'EOF'
flask==3.1.2
gunicorn==23.0.0
EOF
cat >Procfile <<'EOF'
web: gunicorn app:app --bind 127.0.0.1:$PORT --workers 1
EOF
cat >app.py <<'EOF'
"""A small shop."""

from flask import Flask, jsonify

app = Flask(__name__)
ITEMS = [{"id": number, "name": f"item {number}"} for number in range(50)]


@app.get("/")
def home():
    return jsonify(shop="open")


@app.get("/items")
def items():
    return jsonify(ITEMS)


@app.get("/search")
def search():
    return jsonify([item for item in ITEMS if "7" in item["name"]])
EOF
printf '%s\n' .venv/ __pycache__/ >.gitignore
echo "A small shop: /, /items, /search." >README.md
revision start "A small shop"
documented

cat >>app.py <<'EOF'


def rank():
    """Take 300 µs of CPU time."""
    end = time.thread_time() + 300e-6
    while time.thread_time() < end:
        pass
EOF
sed -i -e 's/^from flask/import time\n\nfrom flask/' -e '/^def search/a\    rank()' app.py
revision slower "Search: ranked results"
ready
