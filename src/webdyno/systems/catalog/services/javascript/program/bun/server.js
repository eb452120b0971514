// All sites with Bun's own server and its routes.
import ejs from 'ejs';

import { itemsIn, notFound } from '../site/items.js';
import { idOf, whole } from '../site/rules.js';
import { database } from './database.js';

const { HOST, PORT, WORKERS, KEEPALIVE_TIMEOUT_S } = process.env;
const items = itemsIn(database);
const fortunesPage = ejs.compile(
  await Bun.file(`${import.meta.dir}/../site/views/fortunes.ejs`).text(),
);

function queryOf(request, name) {
  return new URL(request.url).searchParams.get(name);
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
      GET: (request) => items.list(queryOf(request, 'page')),
      POST: items.create,
    },
    '/items/:id': {
      GET: (request) => items.read(idOf(request.params.id), request),
      PUT: (request) => items.replace(idOf(request.params.id), request),
      DELETE: (request) => items.remove(idOf(request.params.id)),
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
