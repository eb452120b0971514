#!/bin/sh
# Express with tokens in JSON and PostgreSQL: a Git repository of three revisions, in FOLDER or
# ./express-jwt-app.
set -eu
. "$(dirname -- "$0")/revisions.sh"
begin "${1-}" express-jwt-app

cat >package.json <<'EOF'
{
  "name": "library",
  "version": "1.0.0",
  "private": true,
  "scripts": {
    "start": "node server.js",
    "migrate": "node scripts/migrate.js",
    "seed": "node scripts/seed.js"
  },
  "dependencies": {
    "bcryptjs": "2.4.3",
    "express": "4.21.2",
    "jsonwebtoken": "9.0.2",
    "pg": "8.13.1"
  }
}
EOF
mkdir scripts
cat >database.js <<'EOF'
const { Pool } = require('pg')

module.exports = new Pool({ connectionString: process.env.DATABASE_URL })
EOF
cat >books.js <<'EOF'
const database = require('./database')

const LIST = `SELECT title, author.name FROM book JOIN author ON author.id = author
  ORDER BY book.id DESC LIMIT 50`

exports.list = async () => (await database.query(LIST)).rows

exports.add = async ({ title, author }) => {
  const added = 'INSERT INTO book (title, author) VALUES ($1, $2) RETURNING id'
  return (await database.query(added, [title, author])).rows[0]
}
EOF
cat >server.js <<'EOF'
// Books, behind a login.
const bcrypt = require('bcryptjs')
const express = require('express')
const jwt = require('jsonwebtoken')
const books = require('./books')
const database = require('./database')

const app = express()
app.use(express.json())

const SECRET = process.env.JWT_SECRET

// Answers who has logged in.
function reader(request, response, next) {
  try {
    const token = (request.get('Authorization') || '').replace(/^Bearer /, '')
    request.reader = jwt.verify(token, SECRET).sub
    next()
  } catch (error) {
    response.status(401).json({ error: 'log in first' })
  }
}

const tried = (work) => (request, response, next) => work(request, response).catch(next)

app.get('/health', (request, response) => response.json({ ok: true }))

app.post('/api/login', tried(async (request, response) => {
  const { email, password } = request.body
  const found = await database.query('SELECT * FROM reader WHERE email = $1', [email])
  const known = found.rows[0]
  if (!known || !(await bcrypt.compare(password, known.password))) {
    return response.status(401).json({ error: 'wrong name or password' })
  }
  const token = jwt.sign({}, SECRET, { subject: String(known.id), expiresIn: '1h' })
  response.json({ token })
}))

app.get('/api/books', reader, tried(async (request, response) => {
  response.json(await books.list())
}))

app.post('/api/books', reader, tried(async (request, response) => {
  response.status(201).json(await books.add(request.body))
}))

app.listen(Number(process.env.PORT || 3000), '127.0.0.1')
EOF
cat >scripts/migrate.js <<'EOF'
const database = require('../database')

const TABLES = `
  CREATE TABLE reader (id serial PRIMARY KEY, email text UNIQUE NOT NULL, password text NOT NULL);
  CREATE TABLE author (id serial PRIMARY KEY, name text NOT NULL);
  CREATE TABLE book (id serial PRIMARY KEY, title text NOT NULL, author int REFERENCES author);
`

database.query(TABLES).finally(() => database.end())
EOF
cat >scripts/seed.js <<'EOF'
// The user reader@example.org, whose password is pages, and some books.
const bcrypt = require('bcryptjs')
const database = require('../database')

async function seed() {
  const kept = await bcrypt.hash('pages', 10)
  await database.query('INSERT INTO reader (email, password) VALUES ($1, $2)', ['reader@example.org', kept])
  await database.query("INSERT INTO author (name) SELECT 'Author ' || n FROM generate_series(1, 50) n")
  await database.query("INSERT INTO book (title, author) SELECT 'Book ' || id, id FROM author")
}

seed().finally(() => database.end())
EOF
echo node_modules/ >.gitignore
npm install --package-lock-only --silent
echo "Books, behind a login: npm run seed makes reader@example.org, whose password is pages." >README.md
revision start "A library"
documented "Books are shown fifty at a time."

cat >books.js <<'EOF'
const database = require('./database')

const LIST = 'SELECT title, author FROM book ORDER BY id DESC LIMIT 50'
const NAME = 'SELECT name FROM author WHERE id = $1'

const named = async ({ title, author }) => {
  return { title, name: (await database.query(NAME, [author])).rows[0].name }
}

exports.list = async () => Promise.all((await database.query(LIST)).rows.map(named))

exports.add = async ({ title, author }) => {
  const added = 'INSERT INTO book (title, author) VALUES ($1, $2) RETURNING id'
  return (await database.query(added, [title, author])).rows[0]
}
EOF
revision slower "Books: authors apart"
ready "the list of books asks for each author by itself"
