// Items by requests and responses of the Fetch standard, which the servers of Bun and Deno have.
import { HIGHEST, faultOf, whole } from './rules.js';

export function notFound() {
  return Response.json({ error: 'not found' }, { status: 404 });
}

// What is made of an item that a client sent, unless there is something wrong with it.
async function withSentItem(request, use) {
  const item = await request.json().catch(() => null);
  const fault = faultOf(item);
  return fault ? Response.json({ error: fault }, { status: 400 }) : use(item);
}

export function itemsIn(database) {
  async function list(page) {
    return Response.json(await database.readItems(whole(page, HIGHEST)));
  }

  function create(request) {
    return withSentItem(request, async (sent) => {
      const item = await database.createItem(sent);
      return Response.json(item, { status: 201, headers: { Location: `/items/${item.id}` } });
    });
  }

  async function read(id, request) {
    const item = await database.readItem(id);
    if (!item) return notFound();
    const headers = { ETag: `"${item.version}"` };
    if (request.headers.get('If-None-Match') === headers.ETag) {
      return new Response(null, { status: 304, headers });
    }
    return Response.json(item, { headers });
  }

  function replace(id, request) {
    return withSentItem(request, async (sent) => {
      const item = await database.replaceItem(id, sent);
      return item ? Response.json(item) : notFound();
    });
  }

  async function remove(id) {
    return (await database.deleteItem(id)) ? new Response(null, { status: 204 }) : notFound();
  }

  return { list, create, read, replace, remove };
}
