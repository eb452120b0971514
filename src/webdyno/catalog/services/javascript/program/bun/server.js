// All sites with Bun's own server and its routes.
import ejs from 'ejs';

import { HIGHEST, faultOf, idOf, whole } from '../site/rules.js';
import { database } from './database.js';

const { HOST, PORT, WORKERS, KEEPALIVE_TIMEOUT_S } = process.env;
const fortunesPage = ejs.compile(
  await Bun.file(`${import.meta.dir}/../site/views/fortunes.ejs`).text(),
);

function queryOf(request, name) {
  return new URL(request.url).searchParams.get(name);
}

function notFound() {
  return Response.json({ error: 'not found' }, { status: 404 });
}

// What is made of an item that a client sent, unless there is something wrong with it.
async function withSentItem(request, use) {
  const item = await request.json().catch(() => null);
  const fault = faultOf(item);
  return fault ? Response.json({ error: fault }, { status: 400 }) : use(item);
}

Bun.serve({
  hostname: HOST,
  port: PORT,
  reusePort: Number(WORKERS) > 1,
  idleTimeout: Number(KEEPALIVE_TIMEOUT_S),
  development: false,
  routes: {
    '/plaintext': { GET: () => new Response('Hello, World!') },
    '/json': { GET: () => Response.json({ message: 'Hello, World!' }) },
    '/db': { GET: async () => Response.json(await database.readWorld()) },
    '/queries': {
      GET: async (request) =>
        Response.json(await database.readWorlds(whole(queryOf(request, 'queries'), 500))),
    },
    '/updates': {
      GET: async (request) =>
        Response.json(await database.updateWorlds(whole(queryOf(request, 'queries'), 500))),
    },
    '/fortunes': {
      GET: async () =>
        new Response(fortunesPage({ fortunes: await database.readFortunes() }), {
          headers: { 'Content-Type': 'text/html; charset=utf-8' },
        }),
    },
    '/items': {
      GET: async (request) =>
        Response.json(await database.readItems(whole(queryOf(request, 'page'), HIGHEST))),
      POST: (request) =>
        withSentItem(request, async (sent) => {
          const item = await database.createItem(sent);
          return Response.json(item, { status: 201, headers: { Location: `/items/${item.id}` } });
        }),
    },
    '/items/:id': {
      GET: async (request) => {
        const item = await database.readItem(idOf(request.params.id));
        if (!item) return notFound();
        const headers = { ETag: `"${item.version}"` };
        if (request.headers.get('If-None-Match') === headers.ETag) {
          return new Response(null, { status: 304, headers });
        }
        return Response.json(item, { headers });
      },
      PUT: (request) =>
        withSentItem(request, async (sent) => {
          const item = await database.replaceItem(idOf(request.params.id), sent);
          return item ? Response.json(item) : notFound();
        }),
      DELETE: async (request) => {
        const isDeleted = await database.deleteItem(idOf(request.params.id));
        return isDeleted ? new Response(null, { status: 204 }) : notFound();
      },
    },
    '/upload': {
      POST: async (request) => {
        const hash = new Bun.CryptoHasher('sha256');
        let bytes = 0;
        for await (const chunk of request.body ?? []) {
          hash.update(chunk);
          bytes += chunk.length;
        }
        return Response.json({ bytes, sha256: hash.digest('hex') });
      },
    },
  },
  fetch: notFound,
  error(error) {
    console.error(error);
    return Response.json({ error: 'internal error' }, { status: 500 });
  },
});
