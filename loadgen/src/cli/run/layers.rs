//! Flags about TLS and HTTP/2.

use std::path::PathBuf;

use crate::order::{Protocol, Tls};

#[derive(Debug, clap::Args)]
#[command(next_help_heading = "TLS and HTTP/2")]
pub struct LayerArgs {
    /// Speak HTTP/2: over TLS agreed upon by ALPN, else with prior knowledge [default: HTTP/1.1]
    #[arg(long)]
    pub http2: bool,
    /// Requests at a time on each HTTP/2 connection [default: 1]
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u32).range(1..))]
    pub streams: Option<u32>,
    /// Certificates to trust for https:// URLs, as PEM [default: those of the system]
    #[arg(long, value_name = "FILE")]
    pub cacert: Option<PathBuf>,
    /// Take any certificate [default: refuse what is not to be trusted]
    #[arg(long)]
    pub insecure: bool,
    /// New connections resume TLS sessions of earlier ones: on or off [default: on]
    #[arg(long, value_name = "HOW", value_parser = on_or_off)]
    pub tls_resumption: Option<bool>,
}

impl LayerArgs {
    pub fn protocol(&self) -> Protocol {
        if self.http2 { Protocol::Http2 } else { Protocol::Http1 }
    }

    pub fn tls(&self) -> Option<Tls> {
        let given = self.cacert.is_some() || self.insecure || self.tls_resumption.is_some();
        given.then(|| Tls {
            ca_file: self.cacert.clone(),
            insecure: self.insecure,
            resumption: self.tls_resumption.unwrap_or(true),
        })
    }
}

fn on_or_off(text: &str) -> Result<bool, String> {
    match text {
        "on" => Ok(true),
        "off" => Ok(false),
        _ => Err("is neither on nor off".into()),
    }
}
