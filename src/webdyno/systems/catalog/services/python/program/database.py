"""What the apps here ask PostgreSQL, by asyncpg and a pool of connections."""

import os
import random
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from typing import Any

import asyncpg

WORLD = 'SELECT id, randomnumber AS "randomNumber" FROM world WHERE id = $1'
ITEM = "SELECT id, name, price, version FROM item"
PAGE = 20


@asynccontextmanager
async def lifespan(app: Any) -> AsyncIterator[dict[str, Any]]:
    """Have a pool as long as the app runs, if there is a database."""
    if "DATABASE_URL" not in os.environ:
        yield {"pool": None}
        return
    size = int(os.environ["DB_POOL"])
    async with asyncpg.create_pool(
        os.environ["DATABASE_URL"], min_size=size, max_size=size
    ) as pool:
        yield {"pool": pool}


def random_number() -> int:
    return random.randint(1, 10_000)


async def read_world(pool) -> dict[str, int]:
    return dict(await pool.fetchrow(WORLD, random_number()))


async def read_worlds(pool, count: int) -> list[dict[str, int]]:
    async with pool.acquire() as connection:
        return await _read(connection, [random_number() for _ in range(count)])


async def update_worlds(pool, count: int) -> list[dict[str, int]]:
    async with pool.acquire() as connection:
        # In the order of their ids, so that two requests never wait for each other.
        ids = sorted(random.sample(range(1, 10_001), count))
        worlds = await _read(connection, ids)
        for world in worlds:
            world["randomNumber"] = random_number()
        await connection.executemany(
            "UPDATE world SET randomnumber = $2 WHERE id = $1",
            [(world["id"], world["randomNumber"]) for world in worlds],
        )
    return worlds


async def _read(connection, ids: Iterable[int]) -> list[dict[str, int]]:
    rows = await connection.fetchmany(WORLD, [(id_,) for id_ in ids])
    return [dict(row) for row in rows]


async def read_fortunes(pool) -> list[dict[str, Any]]:
    """Give all fortunes and one more, in the order of their texts."""
    found = [dict(row) for row in await pool.fetch("SELECT id, message FROM fortune")]
    found.append({"id": 0, "message": "Additional fortune added at request time."})
    found.sort(key=lambda fortune: fortune["message"])
    return found


async def read_items(pool, page: int) -> dict[str, Any]:
    async with pool.acquire() as connection:
        total = await connection.fetchval("SELECT count(*) FROM item")
        rows = await connection.fetch(
            f"{ITEM} ORDER BY id LIMIT $1 OFFSET $2", PAGE, (page - 1) * PAGE
        )
    items = [dict(row) for row in rows]
    return {"page": page, "pages": -(-total // PAGE), "total": total, "items": items}


async def read_item(pool, id_: int) -> dict[str, Any] | None:
    row = await pool.fetchrow(f"{ITEM} WHERE id = $1", id_)
    return row and dict(row)


async def create_item(pool, name: str, price: int) -> dict[str, Any]:
    row = await pool.fetchrow(
        "INSERT INTO item (name, price) VALUES ($1, $2) RETURNING id, name, price, version",
        name,
        price,
    )
    return dict(row)


async def replace_item(pool, id_: int, name: str, price: int) -> dict[str, Any] | None:
    row = await pool.fetchrow(
        "UPDATE item SET name = $2, price = $3, version = version + 1 WHERE id = $1 "
        "RETURNING id, name, price, version",
        id_,
        name,
        price,
    )
    return row and dict(row)


async def delete_item(pool, id_: int) -> bool:
    return await pool.execute("DELETE FROM item WHERE id = $1", id_) == "DELETE 1"
