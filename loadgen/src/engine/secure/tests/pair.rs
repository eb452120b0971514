//! Both ends of a connection over TLS.

use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::sync::Arc;

use rustls::crypto::CryptoProvider;
use rustls::crypto::ring;
use rustls::pki_types::{PrivateKeyDer, ServerName};
use rustls::{
    ClientConfig, Error, RootCertStore, ServerConfig, ServerConnection, SupportedProtocolVersion,
};

use crate::engine::secure::Secure;
use crate::engine::socket::Got;

const NAME: &str = "server.test";
pub const ALPN: &[u8] = b"http/1.1";

/// Both sides' configurations.
pub struct Sides {
    client: Arc<ClientConfig>,
    server: Arc<ServerConfig>,
}

impl Sides {
    pub fn new(version: &'static SupportedProtocolVersion) -> Sides {
        Sides::with(version, ring::default_provider(), true)
    }

    pub fn with(
        version: &'static SupportedProtocolVersion,
        provider: CryptoProvider,
        is_trusted: bool,
    ) -> Sides {
        let provider = Arc::new(provider);
        let made = |name: &str| rcgen::generate_simple_self_signed(vec![name.to_owned()]);
        let (issued, other) = (made(NAME).expect("a key"), made(NAME).expect("a key"));
        let mut roots = RootCertStore::empty();
        let trusted = if is_trusted { &issued } else { &other };
        roots.add(trusted.cert.der().clone()).expect("a certificate");
        let mut client = ClientConfig::builder_with_provider(Arc::clone(&provider))
            .with_protocol_versions(&[version])
            .expect("a version")
            .with_root_certificates(roots)
            .with_no_client_auth();
        client.alpn_protocols = vec![ALPN.to_vec()];
        let key = PrivateKeyDer::try_from(issued.signing_key.serialize_der()).expect("a key");
        let mut server = ServerConfig::builder_with_provider(provider)
            .with_protocol_versions(&[version])
            .expect("a version")
            .with_no_client_auth()
            .with_single_cert(vec![issued.cert.der().clone()], key)
            .expect("a certificate");
        server.alpn_protocols = vec![ALPN.to_vec()];
        server.enable_secret_extraction = true;
        Sides { client: Arc::new(client), server: Arc::new(server) }
    }
}

/// A connection, seen from both ends.
pub struct Pair {
    pub client: Secure,
    pub fd: OwnedFd,
    pub server: ServerConnection,
    pub socket: UnixStream,
    /// What the server was sent.
    pub received: Vec<u8>,
}

impl Pair {
    /// Nothing was sent yet.
    pub fn new(sides: &Sides) -> Pair {
        let (fd, socket) = UnixStream::pair().expect("sockets");
        fd.set_nonblocking(true).expect("a socket");
        socket.set_nonblocking(true).expect("a socket");
        let name = ServerName::try_from(NAME).expect("a name");
        let mut server = ServerConnection::new(Arc::clone(&sides.server)).expect("a server");
        server.set_buffer_limit(None);
        Pair {
            client: Secure::new(Arc::clone(&sides.client), name).expect("a client"),
            fd: fd.into(),
            server,
            socket,
            received: Vec::new(),
        }
    }

    /// After the handshake; the client has seen what may follow it, such as tickets.
    pub fn open(sides: &Sides) -> Pair {
        let mut pair = Pair::new(sides);
        while !pair.client.handshake(&pair.fd).expect("a handshake") {
            pair.serve().expect("a sound client");
            let bytes = pair.outgoing();
            assert!(!bytes.is_empty(), "both sides wait");
            pair.deliver(&bytes);
        }
        pair.serve().expect("a sound client");
        let bytes = pair.outgoing();
        pair.deliver(&bytes);
        assert_eq!(pair.read(&mut [0; 100]).expect("no data"), Got::Nothing);
        pair
    }

    /// The server takes what came.
    pub fn serve(&mut self) -> Result<(), Error> {
        loop {
            match self.server.read_tls(&mut self.socket) {
                Ok(0) => return Ok(()),
                Ok(_) => {
                    self.server.process_new_packets()?;
                    // It ends with an error, as more may come.
                    let _ = self.server.reader().read_to_end(&mut self.received);
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) => panic!("{error}"),
            }
        }
    }

    /// What the server has to send.
    pub fn outgoing(&mut self) -> Vec<u8> {
        let mut bytes = Vec::new();
        while self.server.wants_write() {
            self.server.write_tls(&mut bytes).expect("memory");
        }
        bytes
    }

    /// An answer, encrypted.
    pub fn answer(&mut self, data: &[u8]) -> Vec<u8> {
        self.server.writer().write_all(data).expect("no limit");
        self.outgoing()
    }

    pub fn deliver(&mut self, bytes: &[u8]) {
        self.socket.write_all(bytes).expect("room");
    }

    pub fn read(&mut self, buffer: &mut [u8]) -> io::Result<Got> {
        self.client.read(&self.fd, buffer, false)
    }

    pub fn write(&mut self, bytes: &[u8]) -> usize {
        self.client.write(&self.fd, bytes).expect("an open connection")
    }

    pub fn assert_works(&mut self) {
        self.received.clear();
        assert_eq!(self.write(b"ping"), 4);
        self.serve().expect("a sound client");
        assert_eq!(self.received, b"ping");
        let bytes = self.answer(b"pong");
        self.deliver(&bytes);
        let mut buffer = [0; 9];
        let got = self.read(&mut buffer).expect("a sound server");
        assert_eq!(got, Got::Bytes { count: 4, drained: true });
        assert_eq!(&buffer[..4], b"pong");
    }
}
