// All sites in Elysia, on Bun.
import ejs from 'ejs';
import { Elysia } from 'elysia';

import { digestOf } from '../site/digest.js';
import { itemsIn, notFound } from '../site/items.js';
import { idOf, whole } from '../site/rules.js';
import { database } from './database.js';

const { HOST, PORT, WORKERS, KEEPALIVE_TIMEOUT_S } = process.env;
const items = itemsIn(database);
const fortunesPage = ejs.compile(
  await Bun.file(`${import.meta.dir}/../site/views/fortunes.ejs`).text(),
);

new Elysia()
  .onError(({ code, error }) => {
    if (code === 'NOT_FOUND') return notFound();
    console.error(error);
    return Response.json({ error: 'internal error' }, { status: 500 });
  })
  .get('/plaintext', () => 'Hello, World!')
  .get('/json', () => ({ message: 'Hello, World!' }))
  .get('/db', () => database.readWorld())
  .get('/queries', async ({ query }) =>
    Response.json(await database.readWorlds(whole(query.queries, 500))),
  )
  .get('/updates', async ({ query }) =>
    Response.json(await database.updateWorlds(whole(query.queries, 500))),
  )
  .get('/fortunes', async ({ set }) => {
    set.headers['content-type'] = 'text/html; charset=utf-8';
    return fortunesPage({ fortunes: await database.readFortunes() });
  })
  .get('/items', ({ query }) => items.list(query.page))
  .post('/items', ({ request }) => items.create(request), { parse: 'none' })
  .get('/items/:id', ({ params, request }) => items.read(idOf(params.id), request))
  .put('/items/:id', ({ params, request }) => items.replace(idOf(params.id), request), {
    parse: 'none',
  })
  .delete('/items/:id', ({ params }) => items.remove(idOf(params.id)))
  .post('/upload', ({ request }) => digestOf(request.body ?? []), { parse: 'none' })
  .listen({
    hostname: HOST,
    port: Number(PORT),
    reusePort: Number(WORKERS) > 1,
    idleTimeout: Number(KEEPALIVE_TIMEOUT_S),
    development: false,
  });
