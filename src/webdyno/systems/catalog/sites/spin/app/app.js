'use strict';
// The same work as root/index.php does.

module.exports = (request, response) => {
  const turns = Number(process.env.TURNS); // read for each request, as PHP does
  let left = turns;
  while (left > 0) {
    left--;
  }
  response.setHeader('Content-Type', 'text/plain;charset=UTF-8');
  response.end(`${String(turns).padStart(9)} turns\n`);
};
