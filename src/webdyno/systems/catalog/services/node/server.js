'use strict';
// An HTTP server of Node's own parts: the site's app.js answers; a site without one gets its files.
const cluster = require('node:cluster');
const fs = require('node:fs');
const http = require('node:http');
const path = require('node:path');

const { HOST, PORT, PROCESSES, KEEPALIVE_TIMEOUT_S, SITE_ROOT, SITE_APP } = process.env;

const TYPES = {
  '.css': 'text/css',
  '.gif': 'image/gif',
  '.html': 'text/html',
  '.ico': 'image/x-icon',
  '.jpg': 'image/jpeg',
  '.js': 'application/javascript',
  '.json': 'application/json',
  '.png': 'image/png',
  '.svg': 'image/svg+xml',
  '.txt': 'text/plain',
  '.xml': 'text/xml',
};

function sendFile(request, response) {
  const asked = decodeURIComponent(request.url.split('?')[0]);
  const file = path.join(SITE_ROOT, path.normalize('/' + asked));
  fs.stat(file, (error, found) => {
    if (error || !found.isFile()) {
      response.writeHead(404, { 'Content-Type': 'text/plain' });
      response.end('not found\n');
      return;
    }
    response.writeHead(200, {
      'Content-Type': TYPES[path.extname(file)] || 'application/octet-stream',
      'Content-Length': found.size,
      'Last-Modified': found.mtime.toUTCString(),
    });
    fs.createReadStream(file).on('error', () => response.destroy()).pipe(response);
  });
}

module.exports = { sendFile }; // for sites of which some pages are made and some are files

function serve() {
  const answer = fs.existsSync(SITE_APP) ? require(SITE_APP) : sendFile;
  const server = http.createServer(answer);
  server.keepAliveTimeout = Number(KEEPALIVE_TIMEOUT_S) * 1000;
  server.maxRequestsPerSocket = 0;
  server.listen({ host: HOST, port: Number(PORT), backlog: 511 });
}

if (Number(PROCESSES) > 1 && cluster.isPrimary) {
  for (let number = 0; number < Number(PROCESSES); number++) cluster.fork();
  cluster.on('exit', (worker, code, signal) => {
    console.error(`worker ${worker.process.pid} ended: ${signal || code}`);
    process.exit(1);
  });
  process.on('SIGTERM', () => process.exit(0));
} else {
  serve();
}
