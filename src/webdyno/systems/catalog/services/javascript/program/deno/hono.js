// All sites in Hono, on Deno.
import { Hono } from 'hono';
import { etag } from 'hono/etag';
import { html } from 'hono/html';
import { HTTPException } from 'hono/http-exception';

import { appIn } from '../site/hono.js';
import { database } from './database.js';

const { fetch } = appIn({ Hono, HTTPException, etag, html }, database);

// Else open connections to the database would keep it running.
Deno.addSignalListener('SIGTERM', () => Deno.exit(0));

export default { fetch };
