// What the server asks PostgreSQL: https://docs.deno.com/examples/postgres/
import postgres from 'postgres';

import { queriesBy } from '../site/queries.js';

export const database = queriesBy(
  postgres(Deno.env.get('DATABASE_URL'), { max: Number(Deno.env.get('DB_POOL')) }),
);
