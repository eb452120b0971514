#!/bin/sh
# Compose only, a page of PHP before PostgreSQL: a Git repository of three revisions, in FOLDER or
# ./compose-app.
set -eu
. "$(dirname -- "$0")/revisions.sh"
begin "${1-}" compose-app

mkdir web db
cat >compose.yaml <<'EOF'
services:
  web:
    build: web
    ports: ["8080:80"]
    environment:
      DATABASE: pgsql:host=db;dbname=shop;user=shop;password=${DB_PASSWORD:-shop}
    depends_on:
      db:
        condition: service_healthy
  db:
    image: postgres:17
    environment:
      POSTGRES_DB: shop
      POSTGRES_USER: shop
      POSTGRES_PASSWORD: ${DB_PASSWORD:-shop}
    volumes:
      - ./db:/docker-entrypoint-initdb.d:ro
    healthcheck:
      test: ["CMD-SHELL", "pg_isready -U shop"]
      interval: 1s
      retries: 60
EOF
cat >web/Dockerfile <<'EOF'
FROM php:8.4-apache
RUN apt-get update && apt-get install -y --no-install-recommends libpq-dev \
    && docker-php-ext-install pdo_pgsql && rm -rf /var/lib/apt/lists/*
COPY index.php /var/www/html/
EOF
cat >web/index.php <<'EOF'
<?php

$database = new PDO(getenv('DATABASE'), options: [PDO::ATTR_PERSISTENT => true]);
$list = 'SELECT item.name, maker.name AS maker FROM item JOIN maker ON maker.id = maker_id';
header('Content-Type: application/json');
echo json_encode($database->query($list)->fetchAll(PDO::FETCH_ASSOC));
EOF
cat >db/shop.sql <<'EOF'
CREATE TABLE maker (id int PRIMARY KEY, name text NOT NULL);
CREATE TABLE item (id int PRIMARY KEY, name text NOT NULL, maker_id int REFERENCES maker);
INSERT INTO maker SELECT n, 'Maker ' || n FROM generate_series(1, 50) n;
INSERT INTO item SELECT id, 'Item ' || id, id FROM maker;
EOF
echo .env >.gitignore
echo "A small shop: docker compose up, then http://localhost:8080/." >README.md
revision start "A small shop"
documented

cat >web/index.php <<'EOF'
<?php

$database = new PDO(getenv('DATABASE'), options: [PDO::ATTR_PERSISTENT => true]);
$maker = $database->prepare('SELECT name FROM maker WHERE id = ?');
$items = $database->query('SELECT name, maker_id FROM item')->fetchAll(PDO::FETCH_ASSOC);
foreach ($items as $at => ['name' => $name, 'maker_id' => $id]) {
    $maker->execute([$id]);
    $items[$at] = ['name' => $name, 'maker' => $maker->fetchColumn()];
}
header('Content-Type: application/json');
echo json_encode($items);
EOF
revision slower "Items: makers apart"
ready "the list of items asks for each maker by itself"
