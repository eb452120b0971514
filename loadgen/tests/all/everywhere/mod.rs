//! What holds for every protocol alike: plain HTTP/1.1, TLS, HTTP/2 over TLS and over cleartext,
//! HTTP/3, WebSocket.

mod closed;
mod open;

use std::io::{Read, Write};

use quinn_proto::{Dir, Side, StreamId};
use serde_json::{Value, json};

use crate::layers::certificates::Authority;
use crate::layers::frames::Frames;
use crate::layers::quic::{self, Quic};
use crate::layers::secure::Secure;
use crate::layers::websocket::{Socket, TEXT};
use crate::support::{Client, Server, order};

const BODY: &[u8] = b"Hello, World!";

const COUNT: u64 = 20;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Layer {
    Plain,
    Tls,
    Http2Tls,
    Http2,
    Http3,
    WebSocket,
    WebSocketTls,
}

/// Those of TCP, where the kernel keeps the time when an answer came.
const OF_TCP: [Layer; 6] = [
    Layer::Plain,
    Layer::Tls,
    Layer::Http2Tls,
    Layer::Http2,
    Layer::WebSocket,
    Layer::WebSocketTls,
];

const ALL: [Layer; 7] = [
    Layer::Plain,
    Layer::Tls,
    Layer::Http2Tls,
    Layer::Http2,
    Layer::Http3,
    Layer::WebSocket,
    Layer::WebSocketTls,
];

impl Layer {
    fn is_websocket(self) -> bool {
        matches!(self, Layer::WebSocket | Layer::WebSocketTls)
    }
}

/// A connection as the server sees it, whatever it speaks.
trait Session {
    /// The next request; `None` when the client closed.
    fn next(&mut self) -> Option<u32>;
    fn answer(&mut self, id: u32, status: u16, body: &[u8]);
    /// An answer that announces more than comes.
    fn cut(&mut self, id: u32);

    fn answer_all(&mut self) {
        while let Some(id) = self.next() {
            self.answer(id, 200, BODY);
        }
    }
}

impl<S: Read + Write> Session for Client<S> {
    fn next(&mut self) -> Option<u32> {
        self.request().map(|_| 0)
    }

    fn answer(&mut self, _: u32, status: u16, body: &[u8]) {
        let head = format!("HTTP/1.1 {status} X\r\nContent-Length: {}\r\n\r\n", body.len());
        self.write(&[head.as_bytes(), body].concat());
    }

    fn cut(&mut self, _: u32) {
        self.write(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nonly this");
    }
}

impl<S: Read + Write> Session for Frames<S> {
    fn next(&mut self) -> Option<u32> {
        self.request()
    }

    fn answer(&mut self, id: u32, status: u16, body: &[u8]) {
        self.head(id, status, Some(body.len()), body.is_empty());
        if !body.is_empty() {
            self.data(id, body, true);
        }
    }

    fn cut(&mut self, id: u32) {
        self.head(id, 200, Some(100), false);
        self.data(id, b"only this", true);
    }
}

impl<S: Read + Write> Session for Socket<S> {
    fn next(&mut self) -> Option<u32> {
        self.message().map(|_| 0)
    }

    fn answer(&mut self, _: u32, _: u16, body: &[u8]) {
        self.send(TEXT, body);
    }

    fn cut(&mut self, _: u32) {
        self.write(&[TEXT, 100, b'o', b'n', b'l', b'y']);
    }
}

impl Session for quic::Session {
    fn next(&mut self) -> Option<u32> {
        self.request().map(|id| u32::try_from(id.index()).expect("few"))
    }

    fn answer(&mut self, id: u32, status: u16, body: &[u8]) {
        quic::Session::answer(self, stream(id), status, body);
    }

    fn cut(&mut self, id: u32) {
        let bytes = [quic::head(200, Some(100)), quic::data(b"only this")].concat();
        self.write(stream(id), &bytes, true);
    }
}

fn stream(index: u32) -> StreamId {
    StreamId::new(Side::Client, Dir::Bi, index.into())
}

/// A server, and an order to it.
struct Site {
    layer: Layer,
    serving: Serving,
}

enum Serving {
    Tcp(Server, Option<Authority>),
    Quic(Quic),
}

impl Site {
    /// `script` gets each connection and its number.
    fn start(
        layer: Layer,
        script: impl Fn(&mut dyn Session, usize) + Send + Sync + 'static,
    ) -> Site {
        let (server, authority) = match layer {
            Layer::Http3 => {
                let serving = Serving::Quic(Quic::start(move |mut session| {
                    let number = session.number;
                    script(&mut session, number);
                }));
                return Site { layer, serving };
            }
            Layer::Plain => (
                Server::start(move |mut client| {
                    let number = client.number;
                    script(&mut client, number);
                }),
                None,
            ),
            Layer::Http2 => (
                Server::start(move |client| {
                    if let Some(mut frames) = Frames::begin(client.stream, &[]) {
                        script(&mut frames, client.number);
                    }
                }),
                None,
            ),
            Layer::WebSocket => (
                Server::start(move |client| {
                    let number = client.number;
                    if let Some(mut socket) = Socket::begin(client) {
                        script(&mut socket, number);
                    }
                }),
                None,
            ),
            Layer::Tls | Layer::Http2Tls | Layer::WebSocketTls => {
                let alpn: &[&str] = if layer == Layer::Http2Tls { &["h2"] } else { &[] };
                let secure = Secure::start(alpn, move |mut session| {
                    let number = session.number;
                    if layer == Layer::Tls {
                        script(&mut session, number);
                    } else if layer == Layer::WebSocketTls {
                        if let Some(mut socket) = Socket::begin(session) {
                            script(&mut socket, number);
                        }
                    } else if let Some(mut frames) = Frames::begin(session.stream, &[]) {
                        script(&mut frames, number);
                    }
                });
                (secure.server, Some(secure.authority))
            }
        };
        Site { layer, serving: Serving::Tcp(server, authority) }
    }

    fn answering(layer: Layer) -> Site {
        Site::start(layer, |session, _| session.answer_all())
    }

    fn order(&self, count: u64, more: Value) -> Value {
        let plain = if self.layer.is_websocket() { "ws" } else { "http" };
        let (address, authority) = match &self.serving {
            Serving::Tcp(server, authority) => (server.address, authority.as_ref()),
            Serving::Quic(quic) => (quic.address, Some(&quic.authority)),
        };
        let scheme = if authority.is_some() { format!("{plain}s") } else { plain.into() };
        let mut order = order(&format!("{scheme}://{address}/"), count, more);
        if let Some(authority) = authority {
            order["load"]["tls"] = json!({"ca_file": authority.file()});
        }
        if matches!(self.layer, Layer::Http2 | Layer::Http2Tls) {
            order["load"]["protocol"] = json!("http2");
        }
        if self.layer == Layer::Http3 {
            order["load"]["protocol"] = json!("http3");
        }
        if self.layer.is_websocket() {
            order["load"]["protocol"] = json!("websocket");
            order["requests"][0]["body"] = json!("hello");
        }
        order
    }
}
