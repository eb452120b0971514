// All sites in Koa.
import { readFileSync } from 'node:fs';
import { json as readJson } from 'node:stream/consumers';

import Router from '@koa/router';
import ejs from 'ejs';
import Koa from 'koa';

import { digestOf } from '../site/digest.js';
import { HIGHEST, faultOf, idOf, whole } from '../site/rules.js';
import * as database from './database.js';

const { HOST, PORT, KEEPALIVE_TIMEOUT_S } = process.env;
const fortunesPage = ejs.compile(
  readFileSync(new URL('../site/views/fortunes.ejs', import.meta.url), 'utf8'),
);
const app = new Koa();
const router = new Router();

app.use(async (ctx, next) => {
  try {
    await next();
    if (ctx.status === 404 && !ctx.body) ctx.throw(404, 'not found');
  } catch (error) {
    ctx.status = error.status ?? 500;
    if (ctx.status === 500) console.error(error);
    ctx.body = { error: ctx.status === 500 ? 'internal error' : error.message };
  }
});

router.get('/plaintext', (ctx) => {
  ctx.body = 'Hello, World!';
});

router.get('/json', (ctx) => {
  ctx.body = { message: 'Hello, World!' };
});

router.get('/db', async (ctx) => {
  ctx.body = await database.readWorld();
});

router.get('/queries', async (ctx) => {
  ctx.body = await database.readWorlds(whole(ctx.query.queries, 500));
});

router.get('/updates', async (ctx) => {
  ctx.body = await database.updateWorlds(whole(ctx.query.queries, 500));
});

router.get('/fortunes', async (ctx) => {
  ctx.type = 'html';
  ctx.body = fortunesPage({ fortunes: await database.readFortunes() });
});

router.post('/upload', async (ctx) => {
  ctx.body = await digestOf(ctx.req);
});

async function sentItem(ctx) {
  const item = await readJson(ctx.req).catch(() => null);
  const fault = faultOf(item);
  if (fault) ctx.throw(400, fault);
  return item;
}

function found(ctx, item) {
  if (!item) ctx.throw(404, 'not found');
  return item;
}

router.get('/items', async (ctx) => {
  ctx.body = await database.readItems(whole(ctx.query.page, HIGHEST));
});

router.get('/items/:id', async (ctx) => {
  const item = found(ctx, await database.readItem(idOf(ctx.params.id)));
  ctx.body = item;
  ctx.set('ETag', `"${item.version}"`);
  if (ctx.fresh) ctx.status = 304;
});

router.post('/items', async (ctx) => {
  const item = await database.createItem(await sentItem(ctx));
  ctx.status = 201;
  ctx.set('Location', `/items/${item.id}`);
  ctx.body = item;
});

router.put('/items/:id', async (ctx) => {
  ctx.body = found(ctx, await database.replaceItem(idOf(ctx.params.id), await sentItem(ctx)));
});

router.delete('/items/:id', async (ctx) => {
  found(ctx, await database.deleteItem(idOf(ctx.params.id)));
  ctx.status = 204;
});

app.use(router.routes());

const server = app.listen(Number(PORT), HOST);
server.keepAliveTimeout = Number(KEEPALIVE_TIMEOUT_S) * 1000;
