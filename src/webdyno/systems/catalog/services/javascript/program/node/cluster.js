// Starts WORKERS processes that share the port, each with the app that is named: cluster.js express.
// https://nodejs.org/api/cluster.html
import cluster from 'node:cluster';

const workers = Number(process.env.WORKERS);

if (workers > 1 && cluster.isPrimary) {
  for (let number = 0; number < workers; number++) cluster.fork();
  cluster.on('exit', (worker, code, signal) => {
    console.error(`worker ${worker.process.pid} ended: ${signal || code}`);
    process.exit(1);
  });
  process.on('SIGTERM', () => process.exit(0));
} else {
  await import(`./${process.argv[2]}.js`);
}
