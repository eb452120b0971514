// Sends each message of a WebSocket back, in WORKERS processes that share the port.
import cluster from 'node:cluster';
import { createServer } from 'node:http';
import { WebSocketServer } from 'ws';

const workers = Number(process.env.WORKERS);

if (workers > 1 && cluster.isPrimary) {
  for (let number = 0; number < workers; number++) cluster.fork();
  cluster.on('exit', (worker, code, signal) => {
    console.error(`worker ${worker.process.pid} ended: ${signal || code}`);
    process.exit(1);
  });
  process.on('SIGTERM', () => process.exit(0));
} else {
  const server = createServer((request, response) => {
    response.writeHead(request.url === '/plaintext' ? 200 : 404, { 'Content-Type': 'text/plain' });
    response.end(request.url === '/plaintext' ? 'Hello, World!' : '');
  });
  new WebSocketServer({ server, path: '/echo' }).on('connection', (socket) => {
    socket.on('error', console.error);
    socket.on('message', (message, binary) => socket.send(message, { binary }));
  });
  server.listen(Number(process.env.PORT), process.env.HOST);
}
