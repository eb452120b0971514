//! What lies between HTTP and the socket: TLS, HTTP/2.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::{Order, Unit};

/// The version of HTTP that is spoken.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Protocol {
    #[default]
    Http1,
    /// Over TLS agreed upon by ALPN, over cleartext with prior knowledge (RFC 9113 section 3.3).
    Http2,
}

/// How TLS is done for URLs that begin with `https://`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tls {
    /// Certificates to trust, as PEM; those of the system when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ca_file: Option<PathBuf>,
    /// Take any certificate.
    #[serde(default)]
    pub insecure: bool,
    /// New connections resume the sessions of earlier ones.
    #[serde(default = "yes")]
    pub resumption: bool,
}

impl Default for Tls {
    fn default() -> Self {
        Tls { ca_file: None, insecure: false, resumption: true }
    }
}

fn yes() -> bool {
    true
}

const MOST_STREAMS: u32 = 100_000;

/// What an order must keep; messages name the field and the remedy.
pub fn check(order: &Order) -> Result<(), String> {
    let load = &order.load;
    let secure = order.requests.iter().any(|request| request.url.starts_with("https://"));
    let http2 = load.protocol == Protocol::Http2;
    let streams = load.streams.unwrap_or(1);
    if load.streams.is_some() && !http2 {
        return Err("streams: only HTTP/2 has them; set \"protocol\": \"http2\" (--http2)".into());
    }
    if !(1..=MOST_STREAMS).contains(&streams) {
        return Err(format!("streams: {streams} is not between 1 and {MOST_STREAMS}"));
    }
    let by_connection = load.arrivals.as_ref().is_some_and(|a| a.unit == Unit::Connection);
    if by_connection && streams > 1 {
        return Err("streams: where whole connections are due, their requests follow each other; \
                    leave streams out"
            .into());
    }
    if load.tls.is_some() && !secure {
        return Err("tls: no URL begins with https://, so there is no TLS (--cacert, --insecure, \
                    --tls-resumption); leave it out"
            .into());
    }
    if load.tls.as_ref().is_some_and(|tls| tls.insecure && tls.ca_file.is_some()) {
        return Err("tls: whoever takes any certificate needs no ca_file; leave one out".into());
    }
    if load.cookies && http2 {
        return Err("cookies: they are kept over HTTP/1.1 only; leave out cookies (--cookies) or \
                    HTTP/2"
            .into());
    }
    let beside = load.slow_readers.is_some() || load.idle_connections > 0;
    if beside && (secure || http2) {
        return Err("slow_readers: they and idle_connections are there for plain HTTP/1.1 only; \
                    leave them out, or TLS and HTTP/2"
            .into());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::parse;

    fn message(url: &str, load: &str) -> String {
        let order = format!(
            r#"{{"requests": [{{"url": "{url}"}}], "count": 1,
                "load": {{"connections": 1, {load}}}}}"#
        );
        parse(&order).map_or_else(|error| error.message, |_| String::new())
    }

    #[test]
    fn refuses_what_cannot_go_together() {
        let (plain, secure) = ("http://127.0.0.1:1/", "https://127.0.0.1:1/");
        let connections = r#""loop": "open", "arrivals": {"unit": "connection", "stages":
            [{"rate_per_s": 1}]}, "keepalive": 2, "protocol": "http2", "streams": 2"#;
        for (url, load, wanted) in [
            (plain, r#""loop": "closed", "streams": 2"#, "load.streams: only HTTP/2"),
            (plain, r#""loop": "closed", "protocol": "http2", "streams": 0"#, "load.streams: 0"),
            (plain, connections, "load.streams: where whole connections"),
            (plain, r#""loop": "closed", "tls": {}"#, "load.tls: no URL"),
            (secure, r#""loop": "closed", "tls": {"insecure": true, "ca_file": "x"}"#, "load.tls"),
            (secure, r#""loop": "closed", "idle_connections": 1"#, "load.slow_readers"),
            (plain, r#""loop": "closed", "protocol": "http2", "cookies": true"#, "load.cookies"),
            (plain, r#""loop": "closed", "protocol": "http3""#, "load.protocol"),
        ] {
            let message = message(url, load);
            assert!(message.contains(wanted), "{load}: {message}");
        }
        assert_eq!(message(plain, r#""loop": "closed", "protocol": "http2", "streams": 9"#), "");
        assert_eq!(message(secure, r#""loop": "closed", "tls": {"resumption": false}"#), "");
    }
}
