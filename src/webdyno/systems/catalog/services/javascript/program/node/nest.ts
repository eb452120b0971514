// All sites in NestJS, on Express, its default platform.
import 'reflect-metadata';
import { fileURLToPath } from 'node:url';

import * as nest from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import type { NestExpressApplication } from '@nestjs/platform-express';
import type { Request, Response } from 'express';

import { digestOf } from '../site/digest.js';
import { HIGHEST, faultOf, idOf, whole } from '../site/rules.js';
import * as database from './database.js';

const { HOST, PORT, KEEPALIVE_TIMEOUT_S } = process.env;

type Item = { id: number; name: string; price: number; version: number };
type NewItem = { name: string; price: number };

@nest.Injectable()
class Id implements nest.PipeTransform<string, number> {
  transform(text: string) {
    return idOf(text);
  }
}

@nest.Injectable()
class SentItem implements nest.PipeTransform<unknown, NewItem> {
  transform(item: unknown) {
    const fault = faultOf(item ?? null);
    if (fault) throw new nest.BadRequestException({ error: fault });
    return item as NewItem;
  }
}

function found(item: Item | undefined): Item {
  if (!item) throw new nest.NotFoundException({ error: 'not found' });
  return item;
}

@nest.Controller()
class Sites {
  @nest.Get('plaintext')
  @nest.Header('Content-Type', 'text/plain')
  plaintext() {
    return 'Hello, World!';
  }

  @nest.Get('json')
  json() {
    return { message: 'Hello, World!' };
  }

  @nest.Get('db')
  db() {
    return database.readWorld();
  }

  @nest.Get('queries')
  queries(@nest.Query('queries') count: string) {
    return database.readWorlds(whole(count, 500));
  }

  @nest.Get('updates')
  updates(@nest.Query('queries') count: string) {
    return database.updateWorlds(whole(count, 500));
  }

  @nest.Get('fortunes')
  @nest.Render('fortunes')
  async fortunes() {
    return { fortunes: await database.readFortunes() };
  }

  @nest.Post('upload')
  @nest.HttpCode(200)
  upload(@nest.Req() request: Request) {
    return digestOf(request);
  }
}

@nest.Controller('items')
class Items {
  @nest.Get()
  list(@nest.Query('page') page: string) {
    return database.readItems(whole(page, HIGHEST));
  }

  @nest.Get(':id')
  async read(
    @nest.Param('id', Id) id: number,
    @nest.Res({ passthrough: true }) response: Response,
  ) {
    const item = found(await database.readItem(id));
    response.set('ETag', `"${item.version}"`); // Express compares it with the client's
    return item;
  }

  @nest.Post()
  async create(
    @nest.Body(SentItem) sent: NewItem,
    @nest.Res({ passthrough: true }) response: Response,
  ) {
    const item = await database.createItem(sent);
    response.location(`/items/${item.id}`);
    return item;
  }

  @nest.Put(':id')
  async replace(@nest.Param('id', Id) id: number, @nest.Body(SentItem) sent: NewItem) {
    return found(await database.replaceItem(id, sent));
  }

  @nest.Delete(':id')
  @nest.HttpCode(204)
  async remove(@nest.Param('id', Id) id: number) {
    if (!(await database.deleteItem(id))) throw new nest.NotFoundException({ error: 'not found' });
  }
}

@nest.Module({ controllers: [Sites, Items] })
class App {}

const app = await NestFactory.create<NestExpressApplication>(App, { logger: ['error', 'warn'] });
// https://expressjs.com/en/advanced/best-practice-security.html#reduce-fingerprinting
app.disable('x-powered-by');
app.setBaseViewsDir(fileURLToPath(new URL('../site/views', import.meta.url)));
app.setViewEngine('ejs');
app.getHttpServer().keepAliveTimeout = Number(KEEPALIVE_TIMEOUT_S) * 1000;
await app.listen(Number(PORT), HOST!);
