// What k6 does: each user has a connection, and sends its message again when it has come back.
import { WebSocket } from 'k6/websockets';

const { URL, USERS, SECONDS } = __ENV;

export const options = {
  scenarios: {
    echoes: { executor: 'per-vu-iterations', vus: Number(USERS), iterations: 1, gracefulStop: '10s' },
  },
};

export default function () {
  const socket = new WebSocket(URL);
  let isOver = false;
  socket.addEventListener('open', () => {
    socket.send('Hello, World!');
    setTimeout(() => { isOver = true; }, Number(SECONDS) * 1000);
  });
  socket.addEventListener('message', () => {
    if (isOver) socket.close();
    else socket.send('Hello, World!');
  });
}

export function handleSummary({ metrics }) {
  const completed = metrics.ws_msgs_received ? metrics.ws_msgs_received.values.count : 0;
  return { stdout: JSON.stringify({ completed }) };
}
