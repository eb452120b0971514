//! A TLS server in a thread per connection.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::Arc;

use rustls::crypto::ring;
use rustls::{ServerConfig, ServerConnection, StreamOwned};
use serde_json::{Value, json};

use super::certificates::{Authority, Issued};
use crate::support::Server;

pub struct Secure {
    pub server: Server,
    pub authority: Authority,
}

/// A connection as the server sees it.
pub struct Session {
    pub stream: StreamOwned<ServerConnection, TcpStream>,
    /// 0 for the first connection.
    pub number: usize,
}

impl Session {
    /// Reads one request without a body; `None` when the client closed.
    pub fn request(&mut self) -> Option<String> {
        let mut text = Vec::new();
        let mut byte = [0];
        while !text.ends_with(b"\r\n\r\n") {
            match self.stream.read(&mut byte) {
                Ok(1) => text.push(byte[0]),
                _ => return None,
            }
        }
        Some(String::from_utf8_lossy(&text).into_owned())
    }

    /// Writes; the client may be gone, which is its right.
    pub fn write(&mut self, bytes: &[u8]) {
        let _ = self.stream.write_all(bytes).and_then(|()| self.stream.flush());
    }

    pub fn answer_all(&mut self, bytes: &[u8]) {
        while self.request().is_some() {
            self.write(bytes);
        }
    }

    /// Announces the end, as TLS wants it.
    pub fn close(mut self) {
        self.stream.conn.send_close_notify();
        let _ = self.stream.flush();
    }
}

impl Secure {
    /// Serves each connection with a certificate for 127.0.0.1.
    pub fn start(alpn: &[&str], script: impl Fn(Session) + Send + Sync + 'static) -> Secure {
        let authority = Authority::new();
        let issued = authority.issue("127.0.0.1");
        Secure::with(authority, issued, alpn, script)
    }

    pub fn with(
        authority: Authority,
        issued: Issued,
        alpn: &[&str],
        script: impl Fn(Session) + Send + Sync + 'static,
    ) -> Secure {
        let mut config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .expect("versions")
            .with_no_client_auth()
            .with_single_cert(vec![issued.certificate], issued.key)
            .expect("a certificate");
        config.alpn_protocols = alpn.iter().map(|name| name.as_bytes().to_vec()).collect();
        let config = Arc::new(config);
        let server = Server::start(move |client| {
            let connection = ServerConnection::new(config.clone()).expect("a connection");
            let stream = StreamOwned::new(connection, client.stream);
            script(Session { stream, number: client.number });
        });
        Secure { server, authority }
    }

    pub fn url(&self) -> String {
        format!("https://{}/", self.server.address)
    }

    /// What an order to this server has more: whom to trust, and `load`.
    pub fn trusting(&self, load: Value) -> Value {
        let mut more = json!({"load": load});
        more["load"]["tls"]["ca_file"] = json!(self.authority.file());
        more
    }
}
