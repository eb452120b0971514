// All sites in Fastify, with schemas of what comes in and goes out.
import { fileURLToPath } from 'node:url';

import view from '@fastify/view';
import ejs from 'ejs';
import Fastify from 'fastify';

import { digestOf } from '../site/digest.js';
import { HIGHEST, NAME, idOf, whole } from '../site/rules.js';
import * as database from './database.js';

const { HOST, PORT, KEEPALIVE_TIMEOUT_S } = process.env;
const app = Fastify({
  keepAliveTimeout: Number(KEEPALIVE_TIMEOUT_S) * 1000,
  ajv: { customOptions: { coerceTypes: false } }, // a price of "5" is refused
});
app.register(view, {
  engine: { ejs },
  root: fileURLToPath(new URL('../site/views', import.meta.url)),
});

// https://fastify.dev/docs/latest/Reference/Validation-and-Serialization/
function answers(schema, status = 200) {
  return { response: { [status]: schema } };
}

function object(properties) {
  return { type: 'object', properties, required: Object.keys(properties) };
}

function list(items) {
  return { type: 'array', items };
}

const text = { type: 'string' };
const whole32 = { type: 'integer' };
const world = object({ id: whole32, randomNumber: whole32 });
const item = object({ id: whole32, name: text, price: whole32, version: whole32 });
const page = object({ page: whole32, pages: whole32, total: whole32, items: list(item) });
const newItem = object({
  name: { type: 'string', pattern: NAME },
  price: { type: 'integer', minimum: 0, maximum: HIGHEST },
});

app.setNotFoundHandler((request, reply) => {
  reply.code(404).send({ error: 'not found' });
});

app.setErrorHandler((error, request, reply) => {
  if (error.statusCode < 500) return reply.code(400).send({ error: error.message });
  console.error(error);
  reply.code(500).send({ error: 'internal error' });
});

app.get('/plaintext', (request, reply) => {
  reply.type('text/plain').send('Hello, World!');
});

app.get('/json', { schema: answers(object({ message: text })) }, async () => {
  return { message: 'Hello, World!' };
});

app.get('/db', { schema: answers(world) }, () => database.readWorld());

app.get('/queries', { schema: answers(list(world)) }, (request) =>
  database.readWorlds(whole(request.query.queries, 500)),
);

app.get('/updates', { schema: answers(list(world)) }, (request) =>
  database.updateWorlds(whole(request.query.queries, 500)),
);

app.get('/fortunes', async (request, reply) =>
  reply.viewAsync('fortunes.ejs', { fortunes: await database.readFortunes() }),
);

app.get('/items', { schema: answers(page) }, (request) =>
  database.readItems(whole(request.query.page, HIGHEST)),
);

app.get('/items/:id', { schema: answers(item) }, async (request, reply) => {
  const found = await database.readItem(idOf(request.params.id));
  if (!found) return reply.callNotFound();
  const tag = `"${found.version}"`;
  reply.header('ETag', tag);
  return request.headers['if-none-match'] === tag ? reply.code(304).send() : found;
});

app.post('/items', { schema: { body: newItem, ...answers(item, 201) } }, async (request, reply) => {
  const made = await database.createItem(request.body);
  reply.code(201).header('Location', `/items/${made.id}`);
  return made;
});

app.put('/items/:id', { schema: { body: newItem, ...answers(item) } }, async (request, reply) => {
  const found = await database.replaceItem(idOf(request.params.id), request.body);
  return found ?? reply.callNotFound();
});

app.delete('/items/:id', async (request, reply) => {
  if (!(await database.deleteItem(idOf(request.params.id)))) return reply.callNotFound();
  return reply.code(204).send();
});

// Where bodies are left to the route, whatever their type.
app.register(async (uploads) => {
  uploads.removeAllContentTypeParsers();
  uploads.addContentTypeParser('*', (request, payload, done) => done(null));
  const received = object({ bytes: whole32, sha256: text });
  uploads.post('/upload', { schema: answers(received) }, (request) => digestOf(request.raw));
});

await app.listen({ host: HOST, port: Number(PORT) });
