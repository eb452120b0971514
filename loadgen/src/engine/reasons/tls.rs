//! What goes wrong with TLS, in words.

use std::io;

use rustls::{AlertDescription as Alert, CertificateError, Error as TlsError, InvalidMessage};

use crate::engine::plan::Origin;
use crate::order::Protocol;
use crate::record::Failure;
use crate::tls::is_authority;

/// A connection broke while an answer was read.
pub fn lost(error: &io::Error) -> (Failure, String) {
    match tls_error(error) {
        // With TLS 1.3 a client learns of it after its own handshake.
        Some(TlsError::AlertReceived(alert)) => {
            let why = alert_words(*alert);
            (Failure::Reset, format!("the server ended the connection by a TLS alert: {why}"))
        }
        Some(error) => (Failure::Malformed, format!("the response is not TLS: {}", words(error))),
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
            let remedy = "or take any certificate (--tls-verify off, \"verify\": false)";
            (format!("the server's certificate is not to be trusted: {why}; {remedy}"), true)
        }
        Some(TlsError::AlertReceived(Alert::NoApplicationProtocol)) => no_alpn(origin),
        Some(TlsError::AlertReceived(alert)) => {
            let is_for_good = matches!(alert, Alert::CertificateRequired | Alert::ProtocolVersion);
            (format!("the server refuses the TLS handshake: {}", alert_words(*alert)), is_for_good)
        }
        Some(error) => (format!("TLS handshake: {}", words(error)), false),
        None => (format!("TLS handshake: {error}"), false),
    }
}

/// The library's own texts have names of its code.
fn words(error: &TlsError) -> String {
    let text = match error {
        TlsError::InvalidMessage(
            InvalidMessage::HandshakePayloadTooLarge | InvalidMessage::CertificatePayloadTooLarge,
        ) => {
            "the server's certificates are longer than 64 KB together, the most that is taken; \
             leave out of its chain what nobody needs"
        }
        TlsError::InvalidMessage(_) => {
            "what came isn't TLS; where the server speaks none there, ask for http://"
        }
        TlsError::InappropriateMessage { .. }
        | TlsError::InappropriateHandshakeMessage { .. }
        | TlsError::PeerMisbehaved(_) => "the server breaks a rule of TLS",
        TlsError::PeerIncompatible(_) => {
            "server and client have no version, cipher or key exchange of TLS in common"
        }
        TlsError::DecryptError => "a record can't be decrypted",
        TlsError::PeerSentOversizedRecord => "a record is longer than TLS allows",
        TlsError::NoCertificatesPresented => "the server shows no certificate",
        TlsError::InvalidCertificate(reason) => return untrusted(reason),
        TlsError::AlertReceived(alert) => return alert_words(*alert),
        other => return other.to_string(),
    };
    text.into()
}

/// What the server says by an alert, by the name that RFC 8446 section 6 has for it.
fn alert_words(alert: Alert) -> String {
    let text = match alert {
        Alert::CertificateRequired => NO_CERTIFICATE,
        Alert::ProtocolVersion => "the server doesn't speak this version of TLS (--tls-version)",
        Alert::HandshakeFailure | Alert::InsufficientSecurity => {
            "it accepts no version, cipher or key exchange that was offered, or wants a \
             certificate of its clients (handshake_failure)"
        }
        Alert::BadCertificate
        | Alert::UnsupportedCertificate
        | Alert::CertificateRevoked
        | Alert::CertificateExpired
        | Alert::CertificateUnknown
        | Alert::UnknownCA
        | Alert::AccessDenied => {
            "it doesn't accept the client's certificate; give one that it trusts (--cert, --key)"
        }
        Alert::UnrecognisedName => "it serves no host of this name (unrecognized_name)",
        Alert::InternalError => "it has an internal error (internal_error)",
        other => return format!("alert {}", u8::from(other)),
    };
    text.into()
}

/// The server doesn't speak over TLS what it was asked to.
pub fn no_alpn(origin: &Origin) -> (String, bool) {
    let why = match origin.protocol {
        Protocol::Http1 | Protocol::WebSocket => {
            "the server offers no HTTP/1.1 over TLS (ALPN http/1.1)"
        }
        Protocol::Http2 => {
            "the server doesn't offer HTTP/2 over TLS (ALPN h2); switch it on there, or leave out \
             --http2 (\"protocol\": \"http2\")"
        }
        Protocol::Http3 => {
            "the server speaks something else over QUIC (no ALPN h3); switch HTTP/3 on there, or \
             leave it out (--http3, \"protocol\": \"http3\")"
        }
    };
    (why.into(), true)
}

/// Why a server's certificate is not to be trusted, where that is what is wrong.
pub fn distrust(error: &io::Error) -> Option<&'static str> {
    match tls_error(error) {
        Some(TlsError::InvalidCertificate(reason)) => Some(distrusted(reason).0),
        _ => None,
    }
}

fn untrusted(reason: &CertificateError) -> String {
    let (why, remedy) = distrusted(reason);
    format!("{why}; {remedy}")
}

/// What is wrong with a certificate, and the remedy.
fn distrusted(reason: &CertificateError) -> (&'static str, &'static str) {
    use CertificateError as Reason;
    const ANOTHER: &str = "give the server another one";
    match reason {
        // A bad signature: the issuer has the name of somebody trusted, but not the key.
        Reason::UnknownIssuer | Reason::BadSignature => {
            ("nobody trusted has issued it", "give its authority (--cacert, \"ca_file\")")
        }
        Reason::Expired | Reason::ExpiredContext { .. } => ("it has expired", "renew it"),
        Reason::NotValidYet | Reason::NotValidYetContext { .. } => {
            ("it is not valid yet", "wait, or set this machine's clock")
        }
        Reason::NotValidForName | Reason::NotValidForNameContext { .. } => {
            ("it is for another name", "ask for a name it has")
        }
        other if is_authority(other) => (
            "it is an authority's (CA:TRUE), not a server's",
            "trust it itself (--cacert, \"ca_file\"), or make one with CA:FALSE",
        ),
        Reason::BadEncoding => ("it is damaged", ANOTHER),
        Reason::InvalidPurpose | Reason::InvalidPurposeContext { .. } => {
            ("it isn't for servers (extended key usage)", ANOTHER)
        }
        Reason::UnhandledCriticalExtension => {
            ("it has a critical extension that nobody knows here", ANOTHER)
        }
        Reason::UnsupportedSignatureAlgorithmContext { .. }
        | Reason::UnsupportedSignatureAlgorithmForPublicKeyContext { .. } => {
            ("it is signed in a way that isn't safe any more, such as by SHA-1", ANOTHER)
        }
        _ => ("it isn't valid", ANOTHER),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_alert_is_an_end_and_damage_is_malformed() {
        let read = |error| lost(&io::Error::new(io::ErrorKind::InvalidData, error));
        let (failure, why) = read(TlsError::AlertReceived(Alert::HandshakeFailure));
        assert_eq!(failure, Failure::Reset);
        assert!(why.contains("a TLS alert: ") && why.contains("(handshake_failure)"), "{why}");
        let (failure, why) = read(TlsError::DecryptError);
        assert_eq!(failure, Failure::Malformed);
        assert!(why.starts_with("the response is not TLS: "), "{why}");
        assert_eq!(lost(&io::ErrorKind::BrokenPipe.into()).0, Failure::Reset);
    }
}
