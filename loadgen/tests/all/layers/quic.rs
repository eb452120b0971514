//! A server over QUIC, made from the library's other side: each connection has a script in a thread of
//! its own, which does what a test says, stream by stream.

mod desk;

use std::collections::HashMap;
use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::Instant;

use bytes::Bytes;
use loadgen::http3::{frame, qpack};
use quinn_proto::crypto::rustls::QuicServerConfig;
use quinn_proto::{
    Connection, ConnectionHandle, Dir, Endpoint, EndpointConfig, ServerConfig, StreamId,
    TransportConfig, VarInt,
};
use serde_json::{Value, json};

use self::desk::{Desk, Served};
use super::certificates::{Authority, Issued};

/// What a script has its connection do.
type Command = Box<dyn FnOnce(&mut Served, Instant) + Send>;

enum Order {
    Do(ConnectionHandle, Command),
    /// It is forgotten, so that whatever comes for it is answered by a stateless reset.
    Forget(ConnectionHandle),
}

/// One connection as its script sees it.
pub struct Session {
    pub number: usize,
    handle: ConnectionHandle,
    orders: Sender<Order>,
    /// A datagram to it wakes the server up.
    wake: UdpSocket,
    requests: Receiver<StreamId>,
}

impl Session {
    /// The next request whose end has come; `None` when the client closed.
    pub fn request(&mut self) -> Option<StreamId> {
        self.requests.recv().ok()
    }

    fn order(&self, order: Order) {
        // The server may be gone.
        let _ = self.orders.send(order);
        let _ = self.wake.send(&[0]);
    }

    pub fn act(&self, command: impl FnOnce(&mut Connection, Instant) + Send + 'static) {
        self.command(move |served, now| command(&mut served.quic, now));
    }

    fn command(&self, command: impl FnOnce(&mut Served, Instant) + Send + 'static) {
        self.order(Order::Do(self.handle, Box::new(command)));
    }

    pub fn forget(&self) {
        self.order(Order::Forget(self.handle));
    }

    /// Opens a stream that says this; `ends`: and nothing more.
    pub fn open(&self, bytes: &[u8], ends: bool) {
        let bytes = bytes.to_vec();
        self.act(move |quic, _| {
            let Some(id) = quic.streams().open(Dir::Uni) else { return };
            let _ = quic.send_stream(id).write(&bytes);
            if ends {
                let _ = quic.send_stream(id).finish();
            }
        });
    }

    pub fn write(&self, id: StreamId, bytes: &[u8], ends: bool) {
        let bytes = bytes.to_vec();
        self.command(move |served, _| {
            let unsent = served.unsent.entry(id).or_default();
            unsent.bytes.extend_from_slice(&bytes);
            unsent.ends |= ends;
        });
    }

    pub fn answer(&self, id: StreamId, status: u16, body: &[u8]) {
        self.write(id, &[head(status, Some(body.len())), data(body)].concat(), true);
    }

    pub fn reset(&self, id: StreamId, code: u32) {
        self.command(move |served, _| {
            served.send();
            served.unsent.remove(&id);
            let _ = served.quic.send_stream(id).reset(VarInt::from_u32(code));
        });
    }

    pub fn close(&self, code: u32) {
        let reason = Bytes::from_static(b"as the test says");
        self.act(move |quic, now| quic.close(now, VarInt::from_u32(code), reason));
    }

    pub fn answer_all(&mut self, body: &[u8]) {
        while let Some(id) = self.request() {
            self.answer(id, 200, body);
        }
    }
}

/// The head of an answer.
pub fn head(status: u16, length: Option<usize>) -> Vec<u8> {
    let mut section = qpack::PREFIX.to_vec();
    qpack::encode(":status", &status.to_string(), &mut section);
    if let Some(length) = length {
        qpack::encode("content-length", &length.to_string(), &mut section);
    }
    framed(frame::HEADERS, &section)
}

pub fn data(body: &[u8]) -> Vec<u8> {
    if body.is_empty() { Vec::new() } else { framed(frame::DATA, body) }
}

pub fn framed(kind: u64, payload: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    frame::write(&mut bytes, kind, payload);
    bytes
}

/// What a server's control stream begins with: no settings.
pub const CONTROL: &[u8] = &[0, 4, 0];

/// How a server begins.
#[derive(Clone, Copy)]
pub struct Begins {
    pub alpn: &'static str,
    /// Requests that it allows at a time.
    pub streams: u32,
    /// Of its control stream.
    pub control: &'static [u8],
}

impl Default for Begins {
    fn default() -> Begins {
        Begins { alpn: "h3", streams: 100, control: CONTROL }
    }
}

pub struct Quic {
    pub address: SocketAddr,
    pub authority: Authority,
    pub connections: Arc<AtomicUsize>,
    stop: Arc<AtomicBool>,
}

impl Quic {
    pub fn start(script: impl Fn(Session) + Send + Sync + 'static) -> Quic {
        Quic::beginning(Begins::default(), script)
    }

    pub fn beginning(begins: Begins, script: impl Fn(Session) + Send + Sync + 'static) -> Quic {
        let authority = Authority::new();
        let issued = authority.issue("127.0.0.1");
        Quic::with(authority, &issued, begins, script)
    }

    pub fn with(
        authority: Authority,
        issued: &Issued,
        begins: Begins,
        script: impl Fn(Session) + Send + Sync + 'static,
    ) -> Quic {
        let socket = UdpSocket::bind("127.0.0.1:0").expect("a port");
        let address = socket.local_addr().expect("an address");
        let connections = Arc::new(AtomicUsize::new(0));
        let stop = Arc::new(AtomicBool::new(false));
        let endpoint = Endpoint::new(
            Arc::new(EndpointConfig::default()),
            Some(Arc::new(config(issued, begins))),
            true,
            None,
        );
        let (orders, inbox) = channel();
        let desk = Desk {
            endpoint,
            socket,
            begins,
            script: Arc::new(script),
            sessions: HashMap::new(),
            count: Arc::clone(&connections),
            orders,
            inbox,
        };
        let ended = Arc::clone(&stop);
        thread::spawn(move || desk.serve(&ended));
        Quic { address, authority, connections, stop }
    }

    pub fn url(&self) -> String {
        format!("https://{}/", self.address)
    }

    /// The load of an order that trusts this server.
    pub fn load(&self, more: Value) -> Value {
        let mut load = json!({"protocol": "http3", "tls": {"ca_file": self.authority.file()}});
        for (key, value) in more.as_object().into_iter().flatten() {
            load[key] = value.clone();
        }
        json!({"load": load})
    }
}

impl Drop for Quic {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
    }
}

fn config(issued: &Issued, begins: Begins) -> ServerConfig {
    let mut tls = rustls::ServerConfig::builder_with_provider(Arc::new(
        rustls::crypto::ring::default_provider(),
    ))
    .with_protocol_versions(&[&rustls::version::TLS13])
    .expect("TLS 1.3")
    .with_no_client_auth()
    .with_single_cert(vec![issued.certificate.clone()], issued.key.clone_key())
    .expect("a certificate");
    tls.alpn_protocols = vec![begins.alpn.as_bytes().to_vec()];
    let crypto = QuicServerConfig::try_from(tls).expect("a suite");
    let mut transport = TransportConfig::default();
    transport.max_concurrent_bidi_streams(VarInt::from_u32(begins.streams));
    let mut config = ServerConfig::with_crypto(Arc::new(crypto));
    config.transport_config(Arc::new(transport));
    config
}
