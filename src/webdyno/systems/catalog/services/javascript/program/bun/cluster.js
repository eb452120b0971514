// Starts WORKERS processes that share the port, each with the app that is named: cluster.js server.
// https://bun.com/docs/guides/http/cluster
const workers = Number(process.env.WORKERS);
const app = `./${process.argv[2]}.js`;

if (workers === 1) {
  await import(app);
} else {
  const started = Array.from({ length: workers }, () =>
    Bun.spawn([process.execPath, `${import.meta.dir}/${app}`], {
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
