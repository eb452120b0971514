//! A WebSocket as the server sees it.

use std::io::{Read, Write};

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use loadgen::websocket::frame::Kind;
use serde_json::{Value, json};
use sha1::{Digest, Sha1};

use crate::support::{Client, order};

/// First bytes of frames that are whole messages, or about the connection.
pub const TEXT: u8 = 0x81;
pub const BINARY: u8 = 0x82;
pub const CLOSE: u8 = 0x88;
pub const PING: u8 = 0x89;
pub const PONG: u8 = 0x8a;

pub struct Socket<S> {
    client: Client<S>,
}

impl<S: Read + Write> Socket<S> {
    /// Reads the handshake and switches; `None` when the client closed.
    pub fn begin(mut client: Client<S>) -> Option<Socket<S>> {
        let request = client.request()?;
        client.write(accepting(&request).as_bytes());
        Some(Socket { client })
    }

    /// One whose handshake is done.
    pub fn begun(client: Client<S>) -> Socket<S> {
        Socket { client }
    }

    /// The next frame of the client, unmasked; `None` when it closed.
    pub fn frame(&mut self) -> Option<(u8, Vec<u8>)> {
        let [first, second] = self.read()?;
        assert!(second & 0x80 != 0, "what a client sends is masked");
        let length = match second & 0x7f {
            126 => u16::from_be_bytes(self.read()?).into(),
            127 => u64::from_be_bytes(self.read()?),
            short => short.into(),
        };
        let key: [u8; 4] = self.read()?;
        let mut payload = vec![0; length as usize];
        self.client.stream.read_exact(&mut payload).ok()?;
        payload.iter_mut().zip(key.iter().cycle()).for_each(|(byte, key)| *byte ^= key);
        Some((first, payload))
    }

    fn read<const N: usize>(&mut self) -> Option<[u8; N]> {
        let mut bytes = [0; N];
        self.client.stream.read_exact(&mut bytes).ok().map(|()| bytes)
    }

    /// The next message; `None` when the client said farewell, or closed. Pings are answered.
    pub fn message(&mut self) -> Option<Vec<u8>> {
        loop {
            match self.frame()? {
                (TEXT | BINARY, payload) => return Some(payload),
                (CLOSE, _) => return None,
                (PING, payload) => self.send(PONG, &payload),
                _ => {}
            }
        }
    }

    pub fn send(&mut self, first: u8, payload: &[u8]) {
        self.write(&frame(first, payload));
    }

    pub fn write(&mut self, bytes: &[u8]) {
        self.client.write(bytes);
    }

    pub fn echo_all(&mut self) {
        while let Some(message) = self.message() {
            self.send(TEXT, &message);
        }
    }
}

impl Socket<std::net::TcpStream> {
    pub fn reset(self) {
        self.client.reset();
    }

    pub fn stream(&self) -> &std::net::TcpStream {
        &self.client.stream
    }
}

/// The answer to a handshake.
pub fn accepting(request: &str) -> String {
    let key = request.lines().find_map(|line| line.strip_prefix("Sec-WebSocket-Key: "));
    let key = key.expect("a key").trim();
    let accept = Sha1::digest(format!("{key}258EAFA5-E914-47DA-95CA-C5AB0DC85B11"));
    format!(
        "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
         Sec-WebSocket-Accept: {}\r\n\r\n",
        BASE64_STANDARD.encode(accept)
    )
}

/// A frame of a server.
pub fn frame(first: u8, payload: &[u8]) -> Vec<u8> {
    let mut frame = vec![first];
    match payload.len() {
        short @ 0..=125 => frame.push(short as u8),
        medium @ 126..=0xffff => {
            frame.push(126);
            frame.extend_from_slice(&(medium as u16).to_be_bytes());
        }
        long => {
            frame.push(127);
            frame.extend_from_slice(&(long as u64).to_be_bytes());
        }
    }
    frame.extend_from_slice(payload);
    frame
}

/// An order of so many messages to a server.
pub fn messages(address: std::net::SocketAddr, count: u64, more: Value) -> Value {
    let mut order = order(&format!("ws://{address}/chat"), count, more);
    order["load"]["protocol"] = json!("websocket");
    if order["requests"][0].get("body").is_none() {
        order["requests"][0]["body"] = json!("hello");
    }
    order
}

/// Kinds by the first byte of their frames, the last of a message.
pub const KINDS: [(u8, Kind); 5] = [
    (TEXT, Kind::Text),
    (BINARY, Kind::Binary),
    (CLOSE, Kind::Close),
    (PING, Kind::Ping),
    (PONG, Kind::Pong),
];
