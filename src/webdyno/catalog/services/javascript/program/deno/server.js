// All sites with Deno's own server: https://docs.deno.com/runtime/reference/cli/serve/
import ejs from 'ejs';

import { digestOf } from '../site/digest.js';
import { HIGHEST, faultOf, idOf, whole } from '../site/rules.js';
import { database } from './database.js';

const fortunesPage = ejs.compile(
  await Deno.readTextFile(new URL('../site/views/fortunes.ejs', import.meta.url)),
);

function notFound() {
  return Response.json({ error: 'not found' }, { status: 404 });
}

// What is made of an item that a client sent, unless there is something wrong with it.
async function withSentItem(request, use) {
  const item = await request.json().catch(() => null);
  const fault = faultOf(item);
  return fault ? Response.json({ error: fault }, { status: 400 }) : use(item);
}

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
  'GET /items': async (request, query) =>
    Response.json(await database.readItems(whole(query.get('page'), HIGHEST))),
  'POST /items': (request) =>
    withSentItem(request, async (sent) => {
      const item = await database.createItem(sent);
      return Response.json(item, { status: 201, headers: { Location: `/items/${item.id}` } });
    }),
  'POST /upload': async (request) => Response.json(await digestOf(request.body ?? [])),
};

const itemRoutes = {
  GET: async (id, request) => {
    const item = await database.readItem(id);
    if (!item) return notFound();
    const headers = { ETag: `"${item.version}"` };
    if (request.headers.get('If-None-Match') === headers.ETag) {
      return new Response(null, { status: 304, headers });
    }
    return Response.json(item, { headers });
  },
  PUT: (id, request) =>
    withSentItem(request, async (sent) => {
      const item = await database.replaceItem(id, sent);
      return item ? Response.json(item) : notFound();
    }),
  DELETE: async (id) =>
    (await database.deleteItem(id)) ? new Response(null, { status: 204 }) : notFound(),
};

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
