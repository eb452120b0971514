// All sites with Node's own HTTP server.
import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { json as readJson } from 'node:stream/consumers';

import ejs from 'ejs';

import { digestOf } from '../site/digest.js';
import { HIGHEST, faultOf, idOf, whole } from '../site/rules.js';
import * as database from './database.js';

const { HOST, PORT, KEEPALIVE_TIMEOUT_S } = process.env;
const fortunesPage = ejs.compile(
  readFileSync(new URL('../site/views/fortunes.ejs', import.meta.url), 'utf8'),
);

function send(response, status, type, text, headers = {}) {
  response.writeHead(status, {
    ...headers,
    'Content-Type': type,
    'Content-Length': Buffer.byteLength(text),
  });
  response.end(text);
}

function sendJson(response, value, status = 200, headers = {}) {
  send(response, status, 'application/json', JSON.stringify(value), headers);
}

function sendEmpty(response, status, headers = {}) {
  response.writeHead(status, headers);
  response.end();
}

function notFound(response) {
  sendJson(response, { error: 'not found' }, 404);
}

async function sentItem(request, response) {
  const item = await readJson(request).catch(() => null);
  const fault = faultOf(item);
  if (!fault) return item;
  sendJson(response, { error: fault }, 400);
}

const routes = {
  'GET /plaintext': (request, response) => send(response, 200, 'text/plain', 'Hello, World!'),
  'GET /json': (request, response) => sendJson(response, { message: 'Hello, World!' }),
  'GET /db': async (request, response) => sendJson(response, await database.readWorld()),
  'GET /queries': async (request, response, query) =>
    sendJson(response, await database.readWorlds(whole(query.get('queries'), 500))),
  'GET /updates': async (request, response, query) =>
    sendJson(response, await database.updateWorlds(whole(query.get('queries'), 500))),
  'GET /fortunes': async (request, response) => {
    const page = fortunesPage({ fortunes: await database.readFortunes() });
    send(response, 200, 'text/html; charset=utf-8', page);
  },
  'GET /items': async (request, response, query) =>
    sendJson(response, await database.readItems(whole(query.get('page'), HIGHEST))),
  'POST /items': async (request, response) => {
    const sent = await sentItem(request, response);
    if (!sent) return;
    const item = await database.createItem(sent);
    sendJson(response, item, 201, { Location: `/items/${item.id}` });
  },
  'POST /upload': async (request, response) => sendJson(response, await digestOf(request)),
};

const itemRoutes = {
  GET: async (id, request, response) => {
    const item = await database.readItem(id);
    if (!item) return notFound(response);
    const headers = { ETag: `"${item.version}"` };
    if (request.headers['if-none-match'] === headers.ETag) sendEmpty(response, 304, headers);
    else sendJson(response, item, 200, headers);
  },
  PUT: async (id, request, response) => {
    const sent = await sentItem(request, response);
    if (!sent) return;
    const item = await database.replaceItem(id, sent);
    if (item) sendJson(response, item);
    else notFound(response);
  },
  DELETE: async (id, request, response) => {
    if (await database.deleteItem(id)) sendEmpty(response, 204);
    else notFound(response);
  },
};

async function answer(request, response) {
  const [path, query] = request.url.split('?', 2);
  const route = routes[`${request.method} ${path}`];
  if (route) return route(request, response, new URLSearchParams(query));
  const itemRoute = path.startsWith('/items/') && itemRoutes[request.method];
  if (itemRoute) return itemRoute(idOf(path.slice('/items/'.length)), request, response);
  notFound(response);
}

const server = createServer((request, response) => {
  answer(request, response).catch((error) => {
    console.error(error);
    if (response.headersSent) response.destroy();
    else sendJson(response, { error: 'internal error' }, 500);
  });
});
server.keepAliveTimeout = Number(KEEPALIVE_TIMEOUT_S) * 1000;
server.listen({ host: HOST, port: Number(PORT) });
