// All sites with Deno's own server: https://docs.deno.com/runtime/reference/cli/serve/
import ejs from 'ejs';

import { digestOf } from '../site/digest.js';
import { itemsIn, notFound } from '../site/items.js';
import { idOf, whole } from '../site/rules.js';
import { database } from './database.js';

const items = itemsIn(database);
const fortunesPage = ejs.compile(
  await Deno.readTextFile(new URL('../site/views/fortunes.ejs', import.meta.url)),
);

const routes = {
  'GET /plaintext': () =>
    new Response('Hello, World!', { headers: { 'Content-Type': 'text/plain' } }),
  'GET /json': () => Response.json({ message: 'Hello, World!' }),
  'GET /db': async () => Response.json(await database.readWorld()),
  'GET /queries': async (request, query) =>
    Response.json(await database.readWorlds(whole(query.get('queries'), 500))),
  'GET /updates': async (request, query) =>
    Response.json(await database.updateWorlds(whole(query.get('queries'), 500))),
  'GET /fortunes': async () =>
    new Response(fortunesPage({ fortunes: await database.readFortunes() }), {
      headers: { 'Content-Type': 'text/html; charset=utf-8' },
    }),
  'GET /items': (request, query) => items.list(query.get('page')),
  'POST /items': items.create,
  'POST /upload': async (request) => Response.json(await digestOf(request.body ?? [])),
};

const itemRoutes = { GET: items.read, PUT: items.replace, DELETE: items.remove };

// Else open connections to the database would keep it running.
Deno.addSignalListener('SIGTERM', () => Deno.exit(0));

export default {
  fetch(request) {
    const { pathname, searchParams } = new URL(request.url);
    const route = routes[`${request.method} ${pathname}`];
    if (route) return route(request, searchParams);
    const itemRoute = pathname.startsWith('/items/') && itemRoutes[request.method];
    return itemRoute ? itemRoute(idOf(pathname.slice('/items/'.length)), request) : notFound();
  },
};
