//! A WebSocket server that sends each message back, and little else, so that it keeps up with any
//! client: one thread, short messages. `GET /status` says how many connections and messages there
//! were. It writes its port, and ends when its standard input closes. `bench/peers.py` uses it.

use std::error::Error;
use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};

use loadgen::websocket::handshake::accept;
use rustix::event::epoll::{self, EventData, EventFlags};

const LISTENER: u64 = u64::MAX;
const PARENT: u64 = u64::MAX - 1;
const KEY: &str = "Sec-WebSocket-Key: ";
/// Bytes of the head of a short frame that is masked.
const HEAD_BYTES: usize = 6;
const PING: u8 = 0x89;
const PONG: u8 = 0x8a;
const CLOSE: u8 = 0x88;

struct Connection {
    socket: TcpStream,
    is_switched: bool,
    came: Vec<u8>,
}

#[derive(Default)]
struct Counts {
    accepted: u64,
    messages: u64,
}

impl Connection {
    /// Reads what is there and answers it; false where the connection is over.
    fn go_on(&mut self, counts: &mut Counts) -> bool {
        let mut buffer = [0; 64 * 1024];
        match self.socket.read(&mut buffer) {
            Ok(0) => return false,
            Ok(count) => self.came.extend_from_slice(&buffer[..count]),
            Err(error) => return error.kind() == ErrorKind::WouldBlock,
        }
        let answer = if self.is_switched { self.echoes(counts) } else { self.switch(counts) };
        // What is sent is far shorter than a socket's buffer.
        answer.is_some_and(|bytes| self.socket.write_all(&bytes).is_ok())
    }

    fn switch(&mut self, counts: &Counts) -> Option<Vec<u8>> {
        if !self.came.ends_with(b"\r\n\r\n") {
            return Some(Vec::new());
        }
        let head = String::from_utf8(std::mem::take(&mut self.came)).ok()?;
        let Some(key) = head.lines().find_map(|line| line.strip_prefix(KEY)) else {
            let Counts { accepted, messages } = counts;
            let body = format!("{{\"accepted\": {accepted}, \"messages\": {messages}}}");
            let length = body.len();
            return Some(
                format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n{body}").into(),
            );
        };
        self.is_switched = true;
        let accept = accept(key.trim());
        Some(
            format!(
                "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
                 Sec-WebSocket-Accept: {accept}\r\n\r\n"
            )
            .into(),
        )
    }

    /// The answer to all frames that are whole; None at the last.
    fn echoes(&mut self, counts: &mut Counts) -> Option<Vec<u8>> {
        let (mut answer, mut rest) = (Vec::new(), &self.came[..]);
        while let [first, length, k0, k1, k2, k3, ..] = *rest {
            let whole = HEAD_BYTES + usize::from(length & 0x7f);
            let Some(frame) = rest.get(..whole) else { break };
            match first {
                CLOSE => return None,
                PING => answer.push(PONG),
                _ => {
                    counts.messages += 1;
                    answer.push(first);
                }
            }
            answer.push(length & 0x7f);
            let key = [k0, k1, k2, k3];
            answer.extend(
                frame[HEAD_BYTES..].iter().zip(key.iter().cycle()).map(|(byte, key)| byte ^ key),
            );
            rest = &rest[whole..];
        }
        let left = rest.len();
        self.came.drain(..self.came.len() - left);
        Some(answer)
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    listener.set_nonblocking(true)?;
    println!("{}", listener.local_addr()?.port());
    let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
    epoll::add(&epoll, &listener, EventData::new_u64(LISTENER), EventFlags::IN)?;
    epoll::add(&epoll, std::io::stdin(), EventData::new_u64(PARENT), EventFlags::IN)
        .map_err(|error| format!("standard input must be a pipe or a terminal: {error}"))?;
    let mut connections: Vec<Option<Connection>> = Vec::new();
    let mut counts = Counts::default();
    let mut events = Vec::with_capacity(256);
    loop {
        epoll::wait(&epoll, rustix::buffer::spare_capacity(&mut events), None)?;
        for event in events.drain(..) {
            match event.data.u64() {
                PARENT => return Ok(()),
                LISTENER => {
                    let Ok((socket, _)) = listener.accept() else { continue };
                    socket.set_nonblocking(true)?;
                    socket.set_nodelay(true)?;
                    let data = EventData::new_u64(connections.len() as u64);
                    epoll::add(&epoll, &socket, data, EventFlags::IN)?;
                    counts.accepted += 1;
                    connections.push(Some(Connection {
                        socket,
                        is_switched: false,
                        came: Vec::new(),
                    }));
                }
                number => {
                    let place = &mut connections[number as usize];
                    if !place.as_mut().is_some_and(|connection| connection.go_on(&mut counts)) {
                        *place = None;
                    }
                }
            }
        }
    }
}
