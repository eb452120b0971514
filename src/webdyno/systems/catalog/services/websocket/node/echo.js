// Sends each message of a WebSocket back, or to all who listen, in WORKERS processes that share
// the port.
import cluster from 'node:cluster';
import { createServer } from 'node:http';
import WebSocket, { WebSocketServer } from 'ws';

const workers = Number(process.env.WORKERS);

if (workers > 1 && cluster.isPrimary) {
  cluster.setupPrimary({ serialization: 'advanced' });
  for (let number = 0; number < workers; number++) cluster.fork();
  // What one process is to send to all, the others send as well.
  cluster.on('message', (from, sent) => {
    for (const worker of Object.values(cluster.workers)) if (worker !== from) worker.send(sent);
  });
  cluster.on('exit', (worker, code, signal) => {
    console.error(`worker ${worker.process.pid} ended: ${signal || code}`);
    process.exit(1);
  });
  process.on('SIGTERM', () => process.exit(0));
} else {
  const echo = serve((socket, message, binary) => socket.send(message, { binary }));
  const broadcast = serve((_, message, binary) => {
    sendToAll({ message, binary });
    process.send?.({ message, binary });
  });
  const servers = { '/echo': echo, '/broadcast': broadcast };
  process.on('message', sendToAll);

  function serve(onMessage) {
    return new WebSocketServer({ noServer: true }).on('connection', (socket) => {
      socket.on('error', console.error);
      socket.on('message', (message, binary) => onMessage(socket, message, binary));
    });
  }

  function sendToAll({ message, binary }) {
    for (const socket of broadcast.clients) {
      if (socket.readyState === WebSocket.OPEN) socket.send(message, { binary });
    }
  }

  const server = createServer((request, response) => {
    response.writeHead(request.url === '/plaintext' ? 200 : 404, { 'Content-Type': 'text/plain' });
    response.end(request.url === '/plaintext' ? 'Hello, World!' : '');
  });
  server.on('upgrade', (request, socket, head) => {
    const chosen = servers[request.url];
    if (!chosen) return socket.destroy();
    chosen.handleUpgrade(request, socket, head, (opened) => chosen.emit('connection', opened));
  });
  server.listen(Number(process.env.PORT), process.env.HOST);
}
