'use strict';
// Pages that take so much CPU time, as page.php makes them; all other paths are files.
const fs = require('node:fs');
const path = require('node:path');
const { sendFile } = require.main.exports;

const LINE = 'This page is made up: it took as long as the one in the log did.\n';
const PAGES = new Map(Object.entries(
  JSON.parse(fs.readFileSync(path.join(__dirname, 'pages.json'), 'utf8'))));

function cpuMs() {
  const used = process.cpuUsage();
  return (used.user + used.system) / 1e3;
}

module.exports = (request, response) => {
  const page = PAGES.get(decodeURIComponent(request.url.split('?')[0]));
  if (page === undefined) {
    if (request.url.endsWith('/')) request.url += 'index.html';
    sendFile(request, response);
    return;
  }
  const until = cpuMs() + page.cpu_ms;
  do {
    for (let turn = 0; turn < 100; turn++);
  } while (cpuMs() < until);
  response.setHeader('Content-Type', 'text/html; charset=UTF-8');
  response.setHeader('Content-Length', page.bytes);
  response.end(LINE.repeat(Math.floor(page.bytes / LINE.length) + 1).slice(0, page.bytes));
};
