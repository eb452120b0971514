//! Why there is no HTTP/3, in words.

use std::io;

use quinn_proto::ConnectionError;
use rustls::{AlertDescription, Error as TlsError};

use super::tls::no_tls;
use crate::engine::plan::Origin;
use crate::http3::code;
use crate::http3::trouble::Lost;

/// Nobody answers there: HTTP/3 has ports of its own, those of UDP.
pub fn nobody_at_udp(error: &io::Error) -> io::Error {
    match error.kind() {
        io::ErrorKind::ConnectionRefused => {
            let why = "connection refused: nobody listens there on UDP; switch HTTP/3 on there, or \
                       leave it out (--http3, \"protocol\": \"http3\")";
            io::Error::new(io::ErrorKind::ConnectionRefused, why)
        }
        kind => io::Error::new(kind, error.to_string()),
    }
}

/// What is wrong with TLS, where that is why a connection was lost; `distrust`: the certificate.
pub fn tls_trouble(lost: &Lost, distrust: Option<TlsError>) -> Option<io::Error> {
    let error = match lost {
        Lost::Quic(ConnectionError::TransportError(_)) => distrust?,
        Lost::Quic(ConnectionError::ConnectionClosed(close)) => {
            TlsError::AlertReceived(AlertDescription::from(code::alert(close.error_code.into())?))
        }
        _ => return None,
    };
    Some(io::Error::new(io::ErrorKind::InvalidData, error))
}

/// Why a connection isn't made; true when trying again would change nothing.
pub fn no_http3(origin: &Origin, lost: &Lost, distrust: Option<TlsError>) -> (String, bool) {
    if let Some(error) = tls_trouble(lost, distrust) {
        return no_tls(origin, &error);
    }
    let is_for_good = matches!(lost, Lost::Quic(ConnectionError::VersionMismatch));
    let why = lost.words().unwrap_or_else(|| lost.broken_rule());
    (format!("QUIC handshake: {why}"), is_for_good)
}
