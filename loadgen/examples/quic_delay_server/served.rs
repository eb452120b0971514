//! A connection of the server.

use std::error::Error;
use std::net::UdpSocket;
use std::sync::Arc;

use loadgen::clock::now_ns;
use loadgen::engine::http3::dialer::instant;
use loadgen::http3::{frame, qpack};
use quinn_proto::crypto::rustls::QuicServerConfig;
use quinn_proto::{
    Connection, Dir, Event, ServerConfig, StreamEvent, StreamId, TransportConfig, VarInt,
};
use rustls::pki_types::PrivateKeyDer;

const BODY: &[u8] = b"Hello, World!";
/// What a server's control stream begins with: no settings.
const CONTROL: &[u8] = &[0, 4, 0];
const STREAMS: u32 = 1000;

pub struct Served {
    pub quic: Connection,
}

impl Served {
    /// Requests that came in full; None where the connection is over.
    pub fn requests(&mut self) -> Option<Vec<StreamId>> {
        let mut whole = Vec::new();
        while let Some(event) = self.quic.poll() {
            match event {
                Event::Connected => {
                    if let Some(control) = self.quic.streams().open(Dir::Uni) {
                        let _ = self.quic.send_stream(control).write(CONTROL);
                    }
                }
                Event::ConnectionLost { .. } => return None,
                Event::Stream(StreamEvent::Opened { dir }) => {
                    while let Some(id) = self.quic.streams().accept(dir) {
                        whole.extend(self.is_whole(id).then_some(id));
                    }
                }
                Event::Stream(StreamEvent::Readable { id }) => {
                    whole.extend(self.is_whole(id).then_some(id));
                }
                _ => {}
            }
        }
        Some(whole)
    }

    /// Reads what came of a request, of which only the end matters.
    fn is_whole(&mut self, id: StreamId) -> bool {
        let mut incoming = self.quic.recv_stream(id);
        let Ok(mut chunks) = incoming.read(true) else { return false };
        loop {
            match chunks.next(usize::MAX) {
                Ok(Some(_)) => {}
                Ok(None) => return id.dir() == Dir::Bi,
                Err(_) => return false,
            }
        }
    }

    pub fn answer(&mut self, stream: u64) {
        let Ok(id) = VarInt::from_u64(stream) else { return };
        let mut out = self.quic.send_stream(id.into());
        let _ = out.write(&answer());
        let _ = out.finish();
    }

    /// Sends what there is to be sent.
    pub fn send(&mut self, socket: &UdpSocket, outgoing: &mut Vec<u8>) {
        let now = instant(now_ns());
        outgoing.clear();
        while let Some(transmit) = self.quic.poll_transmit(now, 1, outgoing) {
            // What doesn't fit is lost, and sent again.
            let _ = socket.send_to(&outgoing[..transmit.size], transmit.destination);
            outgoing.clear();
        }
    }
}

fn answer() -> Vec<u8> {
    let mut section = qpack::PREFIX.to_vec();
    qpack::encode(":status", "200", &mut section);
    qpack::encode("content-type", "text/plain", &mut section);
    qpack::encode("content-length", &BODY.len().to_string(), &mut section);
    let mut frames = Vec::new();
    frame::write(&mut frames, frame::HEADERS, &section);
    frame::write(&mut frames, frame::DATA, BODY);
    frames
}

/// How it serves, with a certificate of its own.
pub fn config() -> Result<ServerConfig, Box<dyn Error>> {
    let issued = rcgen::generate_simple_self_signed(vec!["127.0.0.1".into()])?;
    let key = PrivateKeyDer::try_from(issued.signing_key.serialize_der())?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut tls = rustls::ServerConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS13])?
        .with_no_client_auth()
        .with_single_cert(vec![issued.cert.der().clone()], key)?;
    tls.alpn_protocols = vec![b"h3".to_vec()];
    let mut transport = TransportConfig::default();
    transport.max_concurrent_bidi_streams(VarInt::from_u32(STREAMS)).max_idle_timeout(None);
    let mut config = ServerConfig::with_crypto(Arc::new(QuicServerConfig::try_from(tls)?));
    config.transport_config(Arc::new(transport));
    Ok(config)
}
