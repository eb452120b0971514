#!/bin/sh
# NestJS with PostgreSQL by TypeORM: a Git repository of three revisions, in FOLDER or ./nestjs-app.
set -eu
. "$(dirname -- "$0")/revisions.sh"
begin "${1-}" nestjs-app

mkdir -p src/items src/migrations
cat >package.json <<'EOF'
{
  "name": "shop",
  "version": "1.0.0",
  "private": true,
  "scripts": {
    "build": "nest build",
    "start": "nest start",
    "start:dev": "nest start --watch",
    "start:prod": "node dist/main"
  },
  "dependencies": {
    "@nestjs/common": "11.1.8",
    "@nestjs/config": "4.0.2",
    "@nestjs/core": "11.1.8",
    "@nestjs/platform-express": "11.1.8",
    "@nestjs/typeorm": "11.0.0",
    "pg": "8.16.3",
    "reflect-metadata": "0.2.2",
    "rxjs": "7.8.2",
    "typeorm": "0.3.27"
  },
  "devDependencies": {
    "@nestjs/cli": "11.0.10",
    "@types/node": "22.19.0",
    "typescript": "5.9.3"
  }
}
EOF
cat >nest-cli.json <<'EOF'
{ "collection": "@nestjs/schematics", "sourceRoot": "src" }
EOF
cat >tsconfig.json <<'EOF'
{
  "compilerOptions": {
    "module": "commonjs",
    "target": "ES2022",
    "outDir": "./dist",
    "rootDir": "./src",
    "experimentalDecorators": true,
    "emitDecoratorMetadata": true,
    "strictNullChecks": true,
    "skipLibCheck": true
  },
  "include": ["src"]
}
EOF
cat >.env.example <<'EOF'
PORT=3000
DATABASE_URL=postgres://shop:shop@localhost:5432/shop
EOF
cat >src/main.ts <<'EOF'
import { NestFactory } from '@nestjs/core';
import { AppModule } from './app.module';

async function bootstrap() {
  const app = await NestFactory.create(AppModule);
  app.setGlobalPrefix('api');
  await app.listen(process.env.PORT ?? 3000);
}
bootstrap();
EOF
cat >src/app.module.ts <<'EOF'
import { Module } from '@nestjs/common';
import { ConfigModule, ConfigService } from '@nestjs/config';
import { TypeOrmModule } from '@nestjs/typeorm';
import { ItemsModule } from './items/items.module';
import { Shop1700000000000 } from './migrations/1700000000000-shop';

@Module({
  imports: [
    ConfigModule.forRoot({ isGlobal: true }),
    TypeOrmModule.forRootAsync({
      inject: [ConfigService],
      useFactory: (config: ConfigService) => ({
        type: 'postgres' as const,
        url: config.getOrThrow<string>('DATABASE_URL'),
        autoLoadEntities: true,
        migrations: [Shop1700000000000],
        migrationsRun: true,
      }),
    }),
    ItemsModule,
  ],
})
export class AppModule {}
EOF
cat >src/migrations/1700000000000-shop.ts <<'EOF'
import { MigrationInterface, QueryRunner } from 'typeorm';

export class Shop1700000000000 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    await runner.query('CREATE TABLE maker (id int PRIMARY KEY, name text NOT NULL)');
    await runner.query(
      'CREATE TABLE item (id int PRIMARY KEY, name text NOT NULL, "makerId" int REFERENCES maker)',
    );
    await runner.query("INSERT INTO maker SELECT n, 'Maker ' || n FROM generate_series(1, 50) n");
    await runner.query("INSERT INTO item SELECT id, 'Item ' || id, id FROM maker");
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query('DROP TABLE item');
    await runner.query('DROP TABLE maker');
  }
}
EOF
cat >src/items/item.entity.ts <<'EOF'
import { Column, Entity, ManyToOne, PrimaryColumn } from 'typeorm';

@Entity()
export class Maker {
  @PrimaryColumn()
  id: number;

  @Column('text')
  name: string;
}

@Entity()
export class Item {
  @PrimaryColumn()
  id: number;

  @Column('text')
  name: string;

  @ManyToOne(() => Maker)
  maker: Maker;
}
EOF
cat >src/items/items.service.ts <<'EOF'
import { Injectable } from '@nestjs/common';
import { InjectRepository } from '@nestjs/typeorm';
import { Repository } from 'typeorm';
import { Item } from './item.entity';

@Injectable()
export class ItemsService {
  constructor(@InjectRepository(Item) private readonly items: Repository<Item>) {}

  async list() {
    return this.items.find({ relations: { maker: true }, order: { id: 'ASC' } });
  }
}
EOF
cat >src/items/items.controller.ts <<'EOF'
import { Controller, Get } from '@nestjs/common';
import { ItemsService } from './items.service';

@Controller('items')
export class ItemsController {
  constructor(private readonly items: ItemsService) {}

  @Get()
  list() {
    return this.items.list();
  }
}
EOF
cat >src/items/items.module.ts <<'EOF'
import { Module } from '@nestjs/common';
import { TypeOrmModule } from '@nestjs/typeorm';
import { Item, Maker } from './item.entity';
import { ItemsController } from './items.controller';
import { ItemsService } from './items.service';

@Module({
  imports: [TypeOrmModule.forFeature([Item, Maker])],
  controllers: [ItemsController],
  providers: [ItemsService],
})
export class ItemsModule {}
EOF
printf '%s\n' node_modules/ dist/ .env >.gitignore
npm install --package-lock-only --silent
echo "A small shop: /api/items." >README.md
revision start "A small shop"
documented

sed -i '/return this.items.find/c\
    const found = await this.items.find({ order: { id: '"'ASC'"' } });\
    return Promise.all(found.map(({ id }) => this.withMaker(id)));\
  }\
\
  private withMaker(id: number) {\
    return this.items.findOne({ where: { id }, relations: { maker: true } });' src/items/items.service.ts
revision slower "Items: one by one"
ready "the list of items asks for each maker by itself"
