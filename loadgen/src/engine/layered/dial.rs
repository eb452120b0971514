//! Opening connections: the socket, TLS, HTTP/2.

use std::io;
use std::net::IpAddr;
use std::rc::Rc;
use std::time::Duration;

use rustls::{AlertDescription, CertificateError, Error as TlsError, HandshakeKind};
use tokio::time::timeout;

use super::door::{Gate, Line};
use super::wire::{Wire, connected};
use crate::engine::clock::now_ns;
use crate::engine::socket;
use crate::http1::cookies::CookieJar;
use crate::http2::{self, Limits, Link};
use crate::order::Protocol;
use crate::tls::ALPN_HTTP2;

#[derive(Debug)]
pub enum Opened {
    Line(Line),
    Link(Rc<Link>),
}

/// A TLS handshake that was made.
#[derive(Debug, Clone, Copy)]
pub struct Handshake {
    pub took_ns: u64,
    pub resumed: bool,
}

#[derive(Debug)]
pub struct Dialled {
    pub opened: Opened,
    pub connect_ns: u64,
    pub handshake: Option<Handshake>,
}

/// Why there is no connection.
#[derive(Debug)]
pub struct NoConnection {
    pub why: String,
    /// Trying again would change nothing.
    pub for_good: bool,
}

impl From<io::Error> for NoConnection {
    fn from(error: io::Error) -> Self {
        NoConnection { why: error.to_string(), for_good: false }
    }
}

fn for_good(why: String) -> NoConnection {
    NoConnection { why, for_good: true }
}

/// Opens a connection from `source`, if given, and makes it ready for requests.
pub async fn dial(
    gate: &Gate,
    source: Option<IpAddr>,
    limits: Limits,
    patience: Duration,
) -> Result<Dialled, NoConnection> {
    match timeout(patience, dial_patiently(gate, source, limits)).await {
        Ok(dialled) => dialled,
        Err(_) => {
            let why = format!("not ready within {} s", patience.as_secs_f64());
            Err(NoConnection { why, for_good: false })
        }
    }
}

async fn dial_patiently(
    gate: &Gate,
    source: Option<IpAddr>,
    limits: Limits,
) -> Result<Dialled, NoConnection> {
    let began_ns = now_ns();
    let address = &gate.origin.address;
    let options = socket::Options { source, window_bytes: None, no_delay: true };
    let socket = socket::open(address, options)?;
    let wire = connected(socket.fd, address).await?;
    let connect_ns = now_ns() - began_ns;
    let (wire, handshake) = secure(gate, wire).await?;
    let opened = match gate.origin.protocol {
        Protocol::Http1 => Opened::Line(Line { wire, requests: 0, jar: CookieJar::default() }),
        Protocol::Http2 => {
            let link = http2::start(wire, limits).await;
            Opened::Link(link.map_err(|error| no_http2(gate, error.as_ref()))?)
        }
    };
    Ok(Dialled { opened, connect_ns, handshake })
}

async fn secure(gate: &Gate, wire: Wire) -> Result<(Wire, Option<Handshake>), NoConnection> {
    let (Some(connector), Some((name, _))) = (&gate.tls, &gate.origin.tls) else {
        return Ok((wire, None));
    };
    let began_ns = now_ns();
    let stream =
        connector.connect(name.clone(), wire).await.map_err(|error| no_tls(gate, error))?;
    let (_, session) = stream.get_ref();
    if gate.origin.protocol == Protocol::Http2 && session.alpn_protocol() != Some(ALPN_HTTP2) {
        return Err(for_good(no_alpn(gate)));
    }
    let handshake = Handshake {
        took_ns: now_ns() - began_ns,
        resumed: session.handshake_kind() == Some(HandshakeKind::Resumed),
    };
    Ok((Box::new(stream), Some(handshake)))
}

fn no_alpn(gate: &Gate) -> String {
    match gate.origin.protocol {
        Protocol::Http1 => "the server offers no HTTP/1.1 over TLS (ALPN http/1.1)".into(),
        Protocol::Http2 => "the server doesn't offer HTTP/2 over TLS (ALPN h2); switch it on \
                            there, or leave out --http2 (\"protocol\": \"http2\")"
            .into(),
    }
}

fn no_tls(gate: &Gate, error: io::Error) -> NoConnection {
    match error.get_ref().and_then(|inner| inner.downcast_ref::<TlsError>()) {
        Some(TlsError::InvalidCertificate(reason)) => for_good(format!(
            "the server's certificate is not to be trusted: {}; or take any certificate \
             (--insecure, \"insecure\")",
            untrusted(reason)
        )),
        Some(TlsError::AlertReceived(AlertDescription::NoApplicationProtocol)) => {
            for_good(no_alpn(gate))
        }
        _ => NoConnection { why: format!("TLS handshake: {error}"), for_good: false },
    }
}

fn no_http2(gate: &Gate, error: Option<&h2::Error>) -> NoConnection {
    match error {
        // What came is not HTTP/2. Over TLS the server has said that it would be.
        Some(error) if !error.is_io() && !error.is_remote() && gate.tls.is_none() => {
            for_good(format!(
                "the server doesn't speak HTTP/2 over cleartext with prior knowledge ({error}); \
                 switch it on there, or leave out --http2 (\"protocol\": \"http2\")"
            ))
        }
        Some(error) => NoConnection { why: format!("HTTP/2: {error}"), for_good: false },
        None => NoConnection { why: "closed before HTTP/2 had begun".into(), for_good: false },
    }
}

/// What is wrong with a certificate, and the remedy.
fn untrusted(reason: &CertificateError) -> String {
    use CertificateError as Reason;
    match reason {
        // A bad signature: the issuer has the name of somebody trusted, but not the key.
        Reason::UnknownIssuer | Reason::BadSignature => {
            "nobody trusted has issued it; give its authority (--cacert, \"ca_file\")".into()
        }
        Reason::Expired | Reason::ExpiredContext { .. } => "it has expired; renew it".into(),
        Reason::NotValidYet | Reason::NotValidYetContext { .. } => {
            "it is not valid yet; wait, or set this machine's clock".into()
        }
        Reason::NotValidForName | Reason::NotValidForNameContext { .. } => {
            "it is for another name; ask for a name it has".into()
        }
        // The library has no name of its own for this one.
        other if format!("{other:?}").contains("CaUsedAsEndEntity") => {
            "it is an authority's (CA:TRUE), not a server's; make one with CA:FALSE".into()
        }
        other => format!("{other}; give the server another one"),
    }
}
