#!/bin/sh
# Express on Node.js: a Git repository of three revisions, in FOLDER or ./express-app.
set -eu
. "$(dirname -- "$0")/revisions.sh"
begin "${1-}" express-app

cat >package.json <<'EOF'
{
  "name": "shop",
  "version": "1.0.0",
  "private": true,
  "scripts": { "start": "node server.js" },
  "dependencies": { "express": "4.21.2" }
}
EOF
cat >server.js <<'EOF'
// A small shop.
const express = require('express')

const app = express()
const ITEMS = Array.from({ length: 50 }, (_, number) => ({ id: number, name: `item ${number}` }))

app.get('/', (request, response) => response.json({ shop: 'open' }))
app.get('/items', (request, response) => response.json(ITEMS))
app.get('/search', (request, response) => {
  response.json(ITEMS.filter((item) => item.name.includes('7')))
})

app.listen(Number(process.env.PORT), '127.0.0.1')
EOF
echo node_modules/ >.gitignore
echo "A small shop: /, /items, /search." >README.md
revision start "A small shop"
documented

cat >>server.js <<'EOF'

// Takes 300 µs of CPU time.
function rank() {
  const begin = process.cpuUsage()
  let used
  do {
    used = process.cpuUsage(begin)
  } while (used.user + used.system < 300)
}
EOF
sed -i "/^app.get('\/search'/a\  rank()" server.js
revision slower "Search: ranked results"
ready
