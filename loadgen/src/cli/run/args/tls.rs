//! Flags of what lies between HTTP and the socket.

use std::path::PathBuf;

use clap::builder::BoolishValueParser;

use crate::order::{Tls, TlsVersion};

#[derive(Debug, clap::Args)]
pub struct TlsFlags {
    /// Speak HTTP/2: over TLS agreed upon by ALPN, else with prior knowledge [default: HTTP/1.1]
    #[arg(long, group = "shared")]
    pub http2: bool,
    /// Speak HTTP/3, over QUIC and TLS 1.3 [default: HTTP/1.1]
    #[arg(long, group = "shared")]
    pub http3: bool,
    /// Requests at a time on each connection of HTTP/2 or 3 [default: 1]
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u32).range(1..))]
    pub streams: Option<u32>,
    /// Certificates to trust for https:// URLs, as PEM [default: those of the system]
    #[arg(long, value_name = "FILE")]
    pub cacert: Option<PathBuf>,
    /// Whether a server's certificate has to be valid: on or off, which takes any [default: on]
    #[arg(long, value_name = "HOW", value_parser = BoolishValueParser::new())]
    pub tls_verify: Option<bool>,
    /// Certificate to show a server that wants one, as PEM [default: none]
    #[arg(short = 'E', long, value_name = "FILE", requires = "key")]
    pub cert: Option<PathBuf>,
    /// Private key of --cert, as PEM [default: none]
    #[arg(long, value_name = "FILE", requires = "cert")]
    pub key: Option<PathBuf>,
    /// The only version of TLS to speak [default: the highest that both sides know]
    #[arg(long, value_name = "VERSION", value_enum)]
    pub tls_version: Option<TlsVersion>,
    /// New connections resume TLS sessions of earlier ones: on or off [default: on]
    #[arg(long, value_name = "HOW", value_parser = BoolishValueParser::new())]
    pub tls_resumption: Option<bool>,
}

impl TlsFlags {
    /// What of an order they are, where any is given.
    pub fn order(&self) -> Option<Tls> {
        let tls = Tls {
            ca_file: self.cacert.clone(),
            verify: self.tls_verify.unwrap_or(true),
            certificate_file: self.cert.clone(),
            key_file: self.key.clone(),
            version: self.tls_version,
            resumption: self.tls_resumption.unwrap_or(true),
        };
        let given =
            self.tls_resumption.is_some() || self.tls_verify.is_some() || tls != Tls::default();
        given.then_some(tls)
    }
}
