//! Failures in words, for people: the cause, and the remedy where there is one.

use std::io;

use memchr::memmem;
use rustls::{AlertDescription, CertificateError, Error as TlsError};

use super::flight::Flight;
use super::plan::{Origin, Ready};
use crate::http2::trouble::{ConnectionEnd, Lost};
use crate::order::Protocol;
use crate::record::Failure;

const SHOWN_BYTES: usize = 60;
/// Of an answer to a user: enough to recognise an error page.
const MOST_ANSWER_BYTES: usize = 200;

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

/// Appends the beginning of what was read, printable.
pub fn with_bytes(text: String, read: &[u8]) -> String {
    if read.is_empty() {
        return text;
    }
    let shown = &read[..read.len().min(SHOWN_BYTES)];
    format!("{text}; read: {}", shown.escape_ascii())
}

/// Says which step went wrong, and what a user was answered: the body's beginning, of which nothing
/// may have been kept.
pub fn with_answer(text: String, request: &Ready, status: u16, body: &[u8], read: &[u8]) -> String {
    let body = match memmem::find(read, b"\r\n\r\n") {
        Some(end) if body.is_empty() => &read[end + 4..],
        _ => body,
    };
    let shown = body[..body.len().min(MOST_ANSWER_BYTES)].escape_ascii();
    format!("{} {text}; it answered {status}, beginning with: {shown}", request.method)
}

/// What it is called that a request can't be sent: failed connections aren't among those of sent
/// requests.
pub fn unsent(flight: &Flight) -> Failure {
    if flight.is_counted() { Failure::Reset } else { Failure::Connect }
}

/// A connection broke while an answer was read.
pub fn lost(error: &io::Error) -> (Failure, String) {
    match tls_error(error) {
        // With TLS 1.3 a client learns of it after its own handshake.
        Some(TlsError::AlertReceived(AlertDescription::CertificateRequired)) => {
            (Failure::Reset, NO_CERTIFICATE.into())
        }
        Some(TlsError::AlertReceived(alert)) => {
            (Failure::Reset, format!("the server ended the connection by a TLS alert: {alert:?}"))
        }
        Some(error) => (Failure::Malformed, format!("the response is not TLS: {error}")),
        None => (Failure::Reset, format!("connection lost: {error}")),
    }
}

const NO_CERTIFICATE: &str =
    "the server wants a certificate of its clients; give one that it trusts (--cert, --key)";

fn tls_error(error: &io::Error) -> Option<&TlsError> {
    error.get_ref()?.downcast_ref()
}

/// Why there is no TLS; true when trying again would change nothing.
pub fn no_tls(origin: &Origin, error: &io::Error) -> (String, bool) {
    match tls_error(error) {
        Some(TlsError::InvalidCertificate(reason)) => {
            let why = untrusted(reason);
            let remedy = "or take any certificate (--insecure, \"insecure\")";
            (format!("the server's certificate is not to be trusted: {why}; {remedy}"), true)
        }
        Some(TlsError::AlertReceived(AlertDescription::NoApplicationProtocol)) => no_alpn(origin),
        Some(TlsError::AlertReceived(AlertDescription::CertificateRequired)) => {
            (NO_CERTIFICATE.into(), true)
        }
        Some(TlsError::AlertReceived(AlertDescription::ProtocolVersion)) => {
            ("the server doesn't speak this version of TLS (--tls-version)".into(), true)
        }
        _ => (format!("TLS handshake: {error}"), false),
    }
}

/// The server doesn't speak over TLS what it was asked to.
pub fn no_alpn(origin: &Origin) -> (String, bool) {
    let why = match origin.protocol {
        Protocol::Http1 => "the server offers no HTTP/1.1 over TLS (ALPN http/1.1)",
        Protocol::Http2 => {
            "the server doesn't offer HTTP/2 over TLS (ALPN h2); switch it on there, or leave out \
             --http2 (\"protocol\": \"http2\")"
        }
    };
    (why.into(), true)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_alert_is_an_end_and_damage_is_malformed() {
        let read = |error| lost(&io::Error::new(io::ErrorKind::InvalidData, error));
        let (failure, why) = read(TlsError::AlertReceived(AlertDescription::HandshakeFailure));
        assert_eq!(failure, Failure::Reset);
        assert!(why.ends_with("a TLS alert: HandshakeFailure"), "{why}");
        let (failure, why) = read(TlsError::DecryptError);
        assert_eq!(failure, Failure::Malformed);
        assert!(why.starts_with("the response is not TLS: "), "{why}");
        assert_eq!(lost(&io::ErrorKind::BrokenPipe.into()).0, Failure::Reset);
    }
}
