//! A TLS server in a thread per connection.

use std::io::Write;
use std::net::TcpStream;
use std::sync::Arc;

use rustls::crypto::ring;
use rustls::server::WebPkiClientVerifier;
use rustls::{
    ConfigBuilder, RootCertStore, ServerConfig, ServerConnection, StreamOwned, WantsVerifier,
};
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
        Secure::with_chain(authority, issued, 1, alpn, script)
    }

    /// Shows its certificate so many times.
    pub fn with_chain(
        authority: Authority,
        issued: Issued,
        times: usize,
        alpn: &[&str],
        script: impl Fn(Session) + Send + Sync + 'static,
    ) -> Secure {
        let config = plain().with_no_client_auth();
        let config = config.with_single_cert(vec![issued.certificate; times], issued.key);
        Secure::configured(authority, config.expect("a certificate"), alpn, script)
    }

    /// Wants a certificate of its clients that the authority issued.
    pub fn wanting_certificates(script: impl Fn(Session) + Send + Sync + 'static) -> Secure {
        let authority = Authority::new();
        let issued = authority.issue("127.0.0.1");
        let mut roots = RootCertStore::empty();
        roots.add(authority.certificate()).expect("an authority");
        let provider = Arc::new(ring::default_provider());
        let wanted = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider);
        let config = plain()
            .with_client_cert_verifier(wanted.build().expect("a verifier"))
            .with_single_cert(vec![issued.certificate], issued.key);
        Secure::configured(authority, config.expect("a certificate"), &[], script)
    }

    fn configured(
        authority: Authority,
        mut config: ServerConfig,
        alpn: &[&str],
        script: impl Fn(Session) + Send + Sync + 'static,
    ) -> Secure {
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

fn plain() -> ConfigBuilder<ServerConfig, WantsVerifier> {
    ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .expect("versions")
}
