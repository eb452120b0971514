// Starts WORKERS processes that share the port: https://bun.com/docs/guides/http/cluster
const workers = Number(process.env.WORKERS);

if (workers === 1) {
  await import('./server.js');
} else {
  const started = Array.from({ length: workers }, () =>
    Bun.spawn([process.execPath, `${import.meta.dir}/server.js`], {
      stdio: ['ignore', 'inherit', 'inherit'],
    }),
  );
  const stop = () => started.forEach((worker) => worker.kill());
  process.on('SIGTERM', () => {
    stop();
    process.exit(0);
  });
  await Promise.race(started.map((worker) => worker.exited));
  stop();
  process.exit(1);
}
