// What the apps of Bun and Deno ask PostgreSQL, by clients that take a template for a statement.
const PAGE = 20;

function randomNumber() {
  return 1 + Math.floor(Math.random() * 10_000);
}

export function queriesBy(sql) {
  async function readOne(id) {
    const [world] = await sql`
      SELECT id, randomnumber AS "randomNumber" FROM world WHERE id = ${id}`;
    return world;
  }

  function readWorld() {
    return readOne(randomNumber());
  }

  function readWorlds(count) {
    return Promise.all(Array.from({ length: count }, () => readOne(randomNumber())));
  }

  async function updateWorlds(count) {
    const ids = new Set();
    while (ids.size < count) ids.add(randomNumber());
    // In the order of their ids, so that two requests never wait for each other.
    const worlds = await Promise.all([...ids].sort((a, b) => a - b).map(readOne));
    for (const world of worlds) world.randomNumber = randomNumber();
    // Not sql.begin: Postgres.js forgets that a connection is in a transaction when the response to
    // a query that was sent before BEGIN comes after it, and fails with UNSAFE_TRANSACTION.
    const connection = await sql.reserve();
    try {
      await Promise.all([
        connection`BEGIN`,
        ...worlds.map(
          ({ id, randomNumber }) =>
            connection`UPDATE world SET randomnumber = ${randomNumber} WHERE id = ${id}`,
        ),
        connection`COMMIT`,
      ]);
    } finally {
      connection.release();
    }
    return worlds;
  }

  async function readFortunes() {
    const found = await sql`SELECT id, message FROM fortune`;
    found.push({ id: 0, message: 'Additional fortune added at request time.' });
    return found.sort((a, b) => (a.message < b.message ? -1 : 1));
  }

  async function readItems(page) {
    const [[{ total }], items] = await Promise.all([
      sql`SELECT count(*)::int AS total FROM item`,
      sql`SELECT id, name, price, version FROM item
          ORDER BY id LIMIT ${PAGE} OFFSET ${(page - 1) * PAGE}`,
    ]);
    return { page, pages: Math.ceil(total / PAGE), total, items };
  }

  async function readItem(id) {
    const [item] = await sql`SELECT id, name, price, version FROM item WHERE id = ${id}`;
    return item;
  }

  async function createItem({ name, price }) {
    const [item] = await sql`
      INSERT INTO item (name, price) VALUES (${name}, ${price}) RETURNING id, name, price, version`;
    return item;
  }

  async function replaceItem(id, { name, price }) {
    const [item] = await sql`
      UPDATE item SET name = ${name}, price = ${price}, version = version + 1 WHERE id = ${id}
      RETURNING id, name, price, version`;
    return item;
  }

  async function deleteItem(id) {
    const deleted = await sql`DELETE FROM item WHERE id = ${id} RETURNING id`;
    return deleted.length === 1;
  }

  return {
    readWorld,
    readWorlds,
    updateWorlds,
    readFortunes,
    readItems,
    readItem,
    createItem,
    replaceItem,
    deleteItem,
  };
}
