//! Failures in words, for people: the cause, and the remedy where there is one.

mod quic;
mod tls;

use std::io;

use memchr::memmem;

use super::flight::{Answer, Flight};
use super::plan::{Origin, Ready};
use crate::http2::frame;
use crate::http2::trouble::{ConnectionEnd, Lost};
use crate::record::Failure;

pub use quic::{no_http3, nobody_at_udp, tls_trouble};
pub use tls::{distrust, lost, no_alpn, no_tls};

const SHOWN_BYTES: usize = 60;
/// The first byte of a TLS record that says why there is none (RFC 8446 section 5.1).
const ALERT: u8 = 21;
const SPEAK_HTTP2: &str = "ask so (--http2, load.protocol h2c)";
/// Of an answer to a user: enough to recognise an error page.
pub const MOST_ANSWER_BYTES: usize = 200;

/// What is wrong with an answer that failed so.
pub fn mismatch(failure: Failure, request: &Ready, status: u16, body_bytes: u64) -> String {
    let (url, expected) = (&request.url, &request.expect);
    match expected.body_bytes {
        _ if failure == Failure::Status => {
            format!("{url}: status {status} instead of {}", expected.status_text())
        }
        Some(wanted) if wanted != body_bytes => {
            format!("{url}: body of {body_bytes} bytes instead of {wanted}")
        }
        _ => format!("{url}: body with another SHA-256"),
    }
}

/// A response wasn't whole in time, though so much of it came.
pub fn late(timeout_s: f64, bytes: u64) -> String {
    let text = format!("no full answer within {timeout_s} s ({bytes} bytes came)");
    match bytes {
        0 => text,
        _ => format!("{text}; where responses take longer, give them time (--timeout, timeout_s)"),
    }
}

/// Appends where a redirect leads to: nobody follows it.
pub fn with_redirect(text: String, read: &[u8]) -> String {
    const FIELD: &[u8] = b"\nlocation:";
    let head = &read[..memmem::find(read, b"\r\n\r\n").unwrap_or(read.len())];
    let mut lines = head.windows(FIELD.len());
    let Some(begin) = lines.position(|part| part.eq_ignore_ascii_case(FIELD)) else { return text };
    let rest = &head[begin + FIELD.len()..];
    let target = rest[..memchr::memchr(b'\n', rest).unwrap_or(rest.len())].trim_ascii();
    let remedy = "redirects aren't followed: ask for that";
    format!("{text}: it redirects to {} ({remedy})", target.escape_ascii())
}

/// Appends the beginning of what was read, printable, or what it shows that the server speaks.
pub fn with_bytes(text: String, read: &[u8]) -> String {
    match read {
        [] => return text,
        _ if frame::begins_http2(read) => {
            return format!("{text}; the server speaks HTTP/2 there: {SPEAK_HTTP2}");
        }
        [ALERT, 3, ..] => {
            return format!("{text}; the server speaks TLS there: ask for https:// (wss://)");
        }
        _ => {}
    }
    let shown = &read[..read.len().min(SHOWN_BYTES)];
    format!("{text}; read: {}…", shown.escape_ascii())
}

/// Says which step went wrong, and what a user was answered: the beginning of the body, of which
/// nothing is kept where it was dropped unread.
pub fn with_answer(text: String, request: &Ready, answer: &Answer, kept: &[u8]) -> String {
    let body = match answer.body_bytes {
        0 => " without a body".into(),
        bytes if kept.is_empty() => format!(" with a body of {bytes} bytes"),
        _ => {
            let shown = &kept[..kept.len().min(MOST_ANSWER_BYTES)];
            let cut = if shown.len() as u64 == answer.body_bytes { "" } else { "…" };
            format!(", beginning with: {}{cut}", shown.escape_ascii())
        }
    };
    format!("{} {text}; it answered {}{body}", request.method, answer.status)
}

/// What it is called that a request can't be sent: failed connections aren't among those of sent
/// requests.
pub fn unsent(flight: &Flight) -> Failure {
    if flight.is_counted() { Failure::Reset } else { Failure::Connect }
}

/// Why HTTP/2 didn't begin; true when trying again would change nothing.
pub fn no_http2(origin: &Origin, end: Option<ConnectionEnd>) -> (String, bool) {
    match end {
        // What came is not HTTP/2. Over TLS the server has said that it would be.
        Some(ConnectionEnd::Lost(Lost::Fault(fault))) if origin.tls.is_none() => {
            let why = "the server doesn't speak HTTP/2 over cleartext with prior knowledge";
            let remedy = "switch it on there, or leave out --http2 (\"protocol\": \"http2\")";
            (format!("{why} ({}); {remedy}", fault.what), true)
        }
        Some(ConnectionEnd::Lost(Lost::Fault(fault))) => (format!("HTTP/2: {}", fault.what), false),
        Some(ConnectionEnd::Lost(Lost::Broken(error))) => (format!("HTTP/2: {error}"), false),
        _ => ("closed before HTTP/2 had begun".into(), false),
    }
}

/// Why a server's answer to a WebSocket handshake is none.
pub fn no_websocket(why: &str, read: &[u8]) -> String {
    with_bytes(format!("no WebSocket: {why}"), read)
}

/// Connecting failed for want of a local port, which is the client's limit.
pub fn is_without_port(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::AddrNotAvailable
}

/// Why there is no connection.
pub fn not_connected(error: &io::Error) -> String {
    match is_without_port(error) {
        true => NO_PORT.into(),
        false => error.to_string(),
    }
}

/// What is said of all connections together.
pub const NO_PORT: &str = "this client has no local port left for another connection: each that was closed keeps its \
     port for a minute; keep connections open (--keepalive), connect from more addresses (--source \
     127.0.0.2-127.0.0.9), or widen net.ipv4.ip_local_port_range";
