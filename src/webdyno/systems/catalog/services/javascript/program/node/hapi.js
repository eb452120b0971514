// All sites in hapi.
import { readFileSync } from 'node:fs';

import Boom from '@hapi/boom';
import Hapi from '@hapi/hapi';
import ejs from 'ejs';

import { digestOf } from '../site/digest.js';
import { HIGHEST, faultOf, idOf, whole } from '../site/rules.js';
import * as database from './database.js';

const { HOST, PORT, KEEPALIVE_TIMEOUT_S } = process.env;
const fortunesPage = ejs.compile(
  readFileSync(new URL('../site/views/fortunes.ejs', import.meta.url), 'utf8'),
);
const server = Hapi.server({ host: HOST, port: Number(PORT), compression: false });
server.listener.keepAliveTimeout = Number(KEEPALIVE_TIMEOUT_S) * 1000;

server.ext('onPreResponse', ({ response }, h) => {
  if (!response.isBoom) return h.continue;
  const { statusCode } = response.output;
  if (statusCode === 500) console.error(response);
  const error = { 404: 'not found', 500: 'internal error' }[statusCode] ?? response.message;
  return h.response({ error }).code(statusCode);
});

const found = (item) => {
  if (!item) throw Boom.notFound();
  return item;
};

const sentItem = (request) => {
  const fault = faultOf(request.payload);
  if (fault) throw Boom.badRequest(fault);
  return request.payload;
};

server.route([
  {
    method: 'GET',
    path: '/plaintext',
    handler: (request, h) => h.response('Hello, World!').type('text/plain'),
  },
  { method: 'GET', path: '/json', handler: () => ({ message: 'Hello, World!' }) },
  { method: 'GET', path: '/db', handler: () => database.readWorld() },
  {
    method: 'GET',
    path: '/queries',
    handler: (request) => database.readWorlds(whole(request.query.queries, 500)),
  },
  {
    method: 'GET',
    path: '/updates',
    handler: (request) => database.updateWorlds(whole(request.query.queries, 500)),
  },
  {
    method: 'GET',
    path: '/fortunes',
    handler: async () => fortunesPage({ fortunes: await database.readFortunes() }),
  },
  {
    method: 'POST',
    path: '/upload',
    options: { payload: { output: 'stream', parse: false, maxBytes: 2 ** 30 } },
    handler: (request) => digestOf(request.payload),
  },
  {
    method: 'GET',
    path: '/items',
    handler: (request) => database.readItems(whole(request.query.page, HIGHEST)),
  },
  {
    method: 'GET',
    path: '/items/{id}',
    handler: async (request, h) => {
      const item = found(await database.readItem(idOf(request.params.id)));
      return h.response(item).etag(String(item.version)); // hapi compares it with the client's
    },
  },
  {
    method: 'POST',
    path: '/items',
    options: { payload: { override: 'application/json' } },
    handler: async (request, h) => {
      const item = await database.createItem(sentItem(request));
      return h.response(item).created(`/items/${item.id}`);
    },
  },
  {
    method: 'PUT',
    path: '/items/{id}',
    options: { payload: { override: 'application/json' } },
    handler: async (request) =>
      found(await database.replaceItem(idOf(request.params.id), sentItem(request))),
  },
  {
    method: 'DELETE',
    path: '/items/{id}',
    handler: async (request, h) => {
      found(await database.deleteItem(idOf(request.params.id)));
      return h.response().code(204);
    },
  },
]);

await server.start();
