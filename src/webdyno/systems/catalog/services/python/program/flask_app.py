"""All sites in Flask, with psycopg and a pool of connections."""

import hashlib
import os
import random

from flask import Flask, Response, abort, render_template, request
from psycopg.rows import dict_row
from psycopg_pool import ConnectionPool

from rules import HIGHEST, fault_of, whole

WORLD = 'SELECT id, randomnumber AS "randomNumber" FROM world WHERE id = %s'
ITEM = "SELECT id, name, price, version FROM item"
PAGE = 20

app = Flask(__name__)
if "DATABASE_URL" in os.environ:
    pool = ConnectionPool(
        os.environ["DATABASE_URL"],
        min_size=1,
        max_size=int(os.environ["DB_POOL"]),
        kwargs={"autocommit": True, "row_factory": dict_row},
        open=True,
    )


@app.errorhandler(400)
def bad_request(error):
    return {"error": error.description}, 400


@app.errorhandler(404)
def not_found(error):
    return {"error": "not found"}, 404


@app.get("/plaintext")
def plaintext():
    return Response("Hello, World!", mimetype="text/plain")


@app.get("/json")
def json():
    return {"message": "Hello, World!"}


@app.get("/db")
def db():
    with pool.connection() as connection:
        return connection.execute(WORLD, [random.randint(1, 10_000)]).fetchone()


@app.get("/queries")
def queries():
    count = whole(request.args.get("queries"), 500)
    with pool.connection() as connection:
        return read(connection, [random.randint(1, 10_000) for _ in range(count)])


@app.get("/updates")
def updates():
    count = whole(request.args.get("queries"), 500)
    with pool.connection() as connection:
        worlds = read(connection, random.sample(range(1, 10_001), count))
        for world in worlds:
            world["randomNumber"] = random.randint(1, 10_000)
        # In the order of their ids, so that two requests never wait for each other.
        changes = sorted((world["id"], world["randomNumber"]) for world in worlds)
        with connection.transaction(), connection.cursor() as cursor:
            cursor.executemany(
                "UPDATE world SET randomnumber = %s WHERE id = %s",
                [(number, id_) for id_, number in changes],
            )
    return worlds


def read(connection, ids):
    with connection.cursor() as cursor:
        cursor.executemany(WORLD, [(id_,) for id_ in ids], returning=True)
        return [cursor.fetchone() for _ in cursor.results()]


@app.get("/fortunes")
def fortunes():
    with pool.connection() as connection:
        found = connection.execute("SELECT id, message FROM fortune").fetchall()
    found.append({"id": 0, "message": "Additional fortune added at request time."})
    found.sort(key=lambda fortune: fortune["message"])
    return render_template("fortunes.html", fortunes=found)


@app.get("/items")
def items():
    page = whole(request.args.get("page"), HIGHEST)
    with pool.connection() as connection:
        total = connection.execute("SELECT count(*) AS total FROM item").fetchone()["total"]
        found = connection.execute(
            f"{ITEM} ORDER BY id LIMIT %s OFFSET %s", [PAGE, (page - 1) * PAGE]
        ).fetchall()
    return {"page": page, "pages": -(-total // PAGE), "total": total, "items": found}


@app.get("/items/<int:item_id>")
def item(item_id):
    with pool.connection() as connection:
        found = connection.execute(f"{ITEM} WHERE id = %s", [item_id]).fetchone() or abort(404)
    response = app.json.response(found)
    response.set_etag(str(found["version"]))
    return response.make_conditional(request)


@app.post("/items")
def create_item():
    new = sent_item()
    with pool.connection() as connection:
        made = connection.execute(
            "INSERT INTO item (name, price) VALUES (%s, %s) RETURNING id, name, price, version",
            [new["name"], new["price"]],
        ).fetchone()
    return made, 201, {"Location": f"/items/{made['id']}"}


@app.put("/items/<int:item_id>")
def replace_item(item_id):
    new = sent_item()
    with pool.connection() as connection:
        return connection.execute(
            "UPDATE item SET name = %s, price = %s, version = version + 1 WHERE id = %s "
            "RETURNING id, name, price, version",
            [new["name"], new["price"], item_id],
        ).fetchone() or abort(404)


@app.delete("/items/<int:item_id>")
def delete_item(item_id):
    with pool.connection() as connection:
        if not connection.execute("DELETE FROM item WHERE id = %s", [item_id]).rowcount:
            abort(404)
    return "", 204


def sent_item():
    new = request.get_json(force=True)
    if fault := fault_of(new):
        abort(400, fault)
    return new


@app.post("/upload")
def upload():
    digest, size = hashlib.sha256(), 0
    while chunk := request.stream.read(65_536):
        digest.update(chunk)
        size += len(chunk)
    return {"bytes": size, "sha256": digest.hexdigest()}
