// Greets by gRPC, in WORKERS processes that share the port.
import cluster from 'node:cluster';
import { readFileSync } from 'node:fs';
import { ReflectionService } from '@grpc/reflection';
import { HealthImplementation } from 'grpc-health-check';
import grpc from '@grpc/grpc-js';
import loader from '@grpc/proto-loader';

const { CERT, HOST, KEY, PORT, WORKERS } = process.env;
const workers = Number(WORKERS);

if (workers > 1 && cluster.isPrimary) {
  for (let number = 0; number < workers; number++) cluster.fork();
  cluster.on('exit', (worker, code, signal) => {
    console.error(`worker ${worker.process.pid} ended: ${signal || code}`);
    process.exit(1);
  });
  process.on('SIGTERM', () => process.exit(0));
} else {
  const definition = loader.loadSync(new URL('greeter.proto', import.meta.url).pathname);
  const { helloworld } = grpc.loadPackageDefinition(definition);
  const server = new grpc.Server();
  server.addService(helloworld.Greeter.service, {
    sayHello(call, answer) {
      answer(null, { message: `Hello ${call.request.name}` });
    },
  });
  new HealthImplementation({ '': 'SERVING' }).addToServer(server);
  new ReflectionService(definition).addToServer(server);
  const credentials = CERT
    ? grpc.ServerCredentials.createSsl(null, [
        { private_key: readFileSync(KEY), cert_chain: readFileSync(CERT) },
      ])
    : grpc.ServerCredentials.createInsecure();
  server.bindAsync(`${HOST}:${PORT}`, credentials, (error) => {
    if (error) throw error;
  });
}
