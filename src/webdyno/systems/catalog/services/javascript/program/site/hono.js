// All sites in Hono, on any runtime, which has its own copy of Hono and its own database client.
import { digestOf } from './digest.js';
import { HIGHEST, faultOf, idOf, whole } from './rules.js';

export function appIn({ Hono, HTTPException, etag, html }, database) {
  const app = new Hono();

  app.notFound((c) => c.json({ error: 'not found' }, 404));

  app.onError((error, c) => {
    if (error instanceof HTTPException) return c.json({ error: error.message }, error.status);
    console.error(error);
    return c.json({ error: 'internal error' }, 500);
  });

  app.get('/plaintext', (c) => c.text('Hello, World!'));

  app.get('/json', (c) => c.json({ message: 'Hello, World!' }));

  app.get('/db', async (c) => c.json(await database.readWorld()));

  app.get('/queries', async (c) =>
    c.json(await database.readWorlds(whole(c.req.query('queries'), 500))),
  );

  app.get('/updates', async (c) =>
    c.json(await database.updateWorlds(whole(c.req.query('queries'), 500))),
  );

  app.get('/fortunes', async (c) => c.html(fortunesPage(await database.readFortunes())));

  function fortunesPage(fortunes) {
    return html`<!DOCTYPE html>
<html>
<head><title>Fortunes</title></head>
<body>
<table>
<tr><th>id</th><th>message</th></tr>
${fortunes.map(({ id, message }) => html`<tr><td>${id}</td><td>${message}</td></tr>
`)}</table>
</body>
</html>
`;
  }

  app.get('/items', async (c) =>
    c.json(await database.readItems(whole(c.req.query('page'), HIGHEST))),
  );

  app.get('/items/:id', etag(), async (c) => {
    const item = await database.readItem(idOf(c.req.param('id')));
    if (!item) return c.notFound();
    c.header('ETag', `"${item.version}"`); // which the middleware compares with the client's
    return c.json(item);
  });

  async function sentItem(c) {
    const item = await c.req.json().catch(() => null);
    const fault = faultOf(item);
    if (fault) throw new HTTPException(400, { message: fault });
    return item;
  }

  app.post('/items', async (c) => {
    const item = await database.createItem(await sentItem(c));
    return c.json(item, 201, { Location: `/items/${item.id}` });
  });

  app.put('/items/:id', async (c) => {
    const item = await database.replaceItem(idOf(c.req.param('id')), await sentItem(c));
    return item ? c.json(item) : c.notFound();
  });

  app.delete('/items/:id', async (c) => {
    const isDeleted = await database.deleteItem(idOf(c.req.param('id')));
    return isDeleted ? c.body(null, 204) : c.notFound();
  });

  app.post('/upload', async (c) => c.json(await digestOf(c.req.raw.body ?? [])));

  return app;
}
