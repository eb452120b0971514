// What the server asks PostgreSQL, by Bun's own client: https://bun.com/docs/runtime/sql
import { SQL } from 'bun';

import { queriesBy } from '../site/queries.js';

export const database = queriesBy(
  new SQL(process.env.DATABASE_URL ?? 'postgresql://', { max: Number(process.env.DB_POOL) }),
);
