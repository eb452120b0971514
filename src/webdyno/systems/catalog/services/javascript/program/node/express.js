// All sites in Express.
import { fileURLToPath } from 'node:url';

import express from 'express';

import { digestOf } from '../site/digest.js';
import { HIGHEST, faultOf, idOf, whole } from '../site/rules.js';
import * as database from './database.js';

const { HOST, PORT, KEEPALIVE_TIMEOUT_S } = process.env;
const app = express();
// https://expressjs.com/en/advanced/best-practice-security.html#reduce-fingerprinting
app.disable('x-powered-by');
app.set('view engine', 'ejs');
app.set('views', fileURLToPath(new URL('../site/views', import.meta.url)));

app.get('/plaintext', (request, response) => {
  response.type('text/plain').send('Hello, World!');
});

app.get('/json', (request, response) => {
  response.json({ message: 'Hello, World!' });
});

app.get('/db', async (request, response) => {
  response.json(await database.readWorld());
});

app.get('/queries', async (request, response) => {
  response.json(await database.readWorlds(whole(request.query.queries, 500)));
});

app.get('/updates', async (request, response) => {
  response.json(await database.updateWorlds(whole(request.query.queries, 500)));
});

app.get('/fortunes', async (request, response) => {
  response.render('fortunes', { fortunes: await database.readFortunes() });
});

app.post('/upload', async (request, response) => {
  response.json(await digestOf(request));
});

const items = express.Router();
app.use('/items', express.json(), items);

items.param('id', (request, response, next, id) => {
  request.id = idOf(id);
  next();
});

function checkItem(request, response, next) {
  const fault = faultOf(request.body ?? null);
  if (fault) response.status(400).json({ error: fault });
  else next();
}

function sendFound(response, item) {
  if (item) response.json(item);
  else response.status(404).json({ error: 'not found' });
}

items.get('/', async (request, response) => {
  response.json(await database.readItems(whole(request.query.page, HIGHEST)));
});

items.get('/:id', async (request, response) => {
  const item = await database.readItem(request.id);
  if (item) response.set('ETag', `"${item.version}"`); // Express compares it with the client's
  sendFound(response, item);
});

items.post('/', checkItem, async (request, response) => {
  const item = await database.createItem(request.body);
  response.status(201).location(`/items/${item.id}`).json(item);
});

items.put('/:id', checkItem, async (request, response) => {
  sendFound(response, await database.replaceItem(request.id, request.body));
});

items.delete('/:id', async (request, response) => {
  if (await database.deleteItem(request.id)) response.status(204).end();
  else sendFound(response);
});

app.use((request, response) => sendFound(response));

app.use((error, request, response, next) => {
  const status = error.status ?? 500;
  if (status === 500) console.error(error);
  response.status(status).json({ error: status === 500 ? 'internal error' : error.message });
});

const server = app.listen(Number(PORT), HOST, (error) => {
  if (error) throw error;
});
server.keepAliveTimeout = Number(KEEPALIVE_TIMEOUT_S) * 1000;
