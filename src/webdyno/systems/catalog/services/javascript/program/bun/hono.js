// All sites in Hono, on Bun.
import { Hono } from 'hono';
import { etag } from 'hono/etag';
import { html } from 'hono/html';
import { HTTPException } from 'hono/http-exception';

import { appIn } from '../site/hono.js';
import { database } from './database.js';

const { HOST, PORT, WORKERS, KEEPALIVE_TIMEOUT_S } = process.env;
const { fetch } = appIn({ Hono, HTTPException, etag, html }, database);

Bun.serve({
  hostname: HOST,
  port: PORT,
  reusePort: Number(WORKERS) > 1,
  idleTimeout: Number(KEEPALIVE_TIMEOUT_S),
  development: false,
  fetch,
});
