//! A TLS server in a thread per connection.

use std::io::Write;
use std::net::TcpStream;
use std::sync::Arc;

use rustls::crypto::ring;
use rustls::{ServerConfig, ServerConnection, StreamOwned};
use serde_json::{Value, json};

use super::certificates::{Authority, Issued};
use crate::support::{Client, Server};

pub struct Secure {
    pub server: Server,
    pub authority: Authority,
}

/// A connection as the server sees it.
pub type Session = Client<StreamOwned<ServerConnection, TcpStream>>;

impl Session {
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
            script(Client { stream, number: client.number });
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
