// What the apps here ask PostgreSQL, by a pool of connections and statements that are prepared once.
import pg from 'pg';

const pool = new pg.Pool({
  connectionString: process.env.DATABASE_URL,
  max: Number(process.env.DB_POOL),
  pipeline: true, // https://node-postgres.com/features/pipelining
});

const PAGE = 20;
const ITEM = 'SELECT id, name, price, version FROM item';

function statement(name, text) {
  return (values) => ({ name, text, values });
}

const WORLD = statement(
  'world',
  'SELECT id, randomnumber AS "randomNumber" FROM world WHERE id = $1',
);
const SET_WORLD = statement('set-world', 'UPDATE world SET randomnumber = $2 WHERE id = $1');
const FORTUNES = statement('fortunes', 'SELECT id, message FROM fortune');
const COUNT = statement('count', 'SELECT count(*)::int AS total FROM item');
const ITEMS = statement('items', `${ITEM} ORDER BY id LIMIT $1 OFFSET $2`);
const ONE_ITEM = statement('item', `${ITEM} WHERE id = $1`);
const NEW_ITEM = statement(
  'new-item',
  'INSERT INTO item (name, price) VALUES ($1, $2) RETURNING id, name, price, version',
);
const SET_ITEM = statement(
  'set-item',
  'UPDATE item SET name = $2, price = $3, version = version + 1 WHERE id = $1 ' +
    'RETURNING id, name, price, version',
);
const NO_ITEM = statement('no-item', 'DELETE FROM item WHERE id = $1');

function randomNumber() {
  return 1 + Math.floor(Math.random() * 10_000);
}

async function withClient(use) {
  const client = await pool.connect();
  try {
    return await use(client);
  } finally {
    client.release();
  }
}

async function first(question) {
  return (await pool.query(question)).rows[0];
}

function read(client, ids) {
  return Promise.all(ids.map(async (id) => (await client.query(WORLD([id]))).rows[0]));
}

export function readWorld() {
  return first(WORLD([randomNumber()]));
}

export function readWorlds(count) {
  return withClient((client) => read(client, Array.from({ length: count }, randomNumber)));
}

export function updateWorlds(count) {
  const ids = new Set();
  while (ids.size < count) ids.add(randomNumber());
  return withClient(async (client) => {
    // In the order of their ids, so that two requests never wait for each other.
    const worlds = await read(client, [...ids].sort((a, b) => a - b));
    for (const world of worlds) world.randomNumber = randomNumber();
    await Promise.all([
      client.query('BEGIN'),
      ...worlds.map((world) => client.query(SET_WORLD([world.id, world.randomNumber]))),
      client.query('COMMIT'),
    ]);
    return worlds;
  });
}

export async function readFortunes() {
  const { rows } = await pool.query(FORTUNES());
  rows.push({ id: 0, message: 'Additional fortune added at request time.' });
  return rows.sort((a, b) => (a.message < b.message ? -1 : 1));
}

export function readItems(page) {
  return withClient(async (client) => {
    const [counted, items] = await Promise.all([
      client.query(COUNT()),
      client.query(ITEMS([PAGE, (page - 1) * PAGE])),
    ]);
    const { total } = counted.rows[0];
    return { page, pages: Math.ceil(total / PAGE), total, items: items.rows };
  });
}

export function readItem(id) {
  return first(ONE_ITEM([id]));
}

export function createItem({ name, price }) {
  return first(NEW_ITEM([name, price]));
}

export function replaceItem(id, { name, price }) {
  return first(SET_ITEM([id, name, price]));
}

export async function deleteItem(id) {
  return (await pool.query(NO_ITEM([id]))).rowCount === 1;
}
