// All sites in Hono, on Node.
import { serve } from '@hono/node-server';
import { Hono } from 'hono';
import { etag } from 'hono/etag';
import { html } from 'hono/html';
import { HTTPException } from 'hono/http-exception';

import { appIn } from '../site/hono.js';
import * as database from './database.js';

const { HOST, PORT, KEEPALIVE_TIMEOUT_S } = process.env;
const { fetch } = appIn({ Hono, HTTPException, etag, html }, database);

const server = serve({ fetch, hostname: HOST, port: Number(PORT) });
server.keepAliveTimeout = Number(KEEPALIVE_TIMEOUT_S) * 1000;
