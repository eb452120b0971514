//! What one request came to.

use std::time::Duration;

use sha2::Sha256;

use super::trouble::Trouble;
use crate::engine::http2::dialog::Kept;

/// What happened, and when.
#[derive(Debug, Default)]
pub struct Seen {
    pub connected: Duration,
    /// Whole TLS handshakes end here.
    pub handshaken: Option<Duration>,
    pub first_byte: Option<Duration>,
    pub done: Duration,
    /// There was a connection over which the request could be sent.
    pub is_connected: bool,
    /// Version and cipher of TLS.
    pub tls: Option<String>,
    pub response: Kept,
    /// It came over HTTP/3.
    pub is_http3: bool,
    pub status: u16,
    /// Of gRPC, where it is a number.
    pub grpc_status: Option<u16>,
    /// Of the response, whole or not.
    pub came_bytes: u64,
    /// Checksum of the whole body, where it is computed.
    pub hash: Option<Box<Sha256>>,
    /// What is wrong with a whole response whatever was expected: gRPC says it.
    pub fault: Option<String>,
    /// Why it isn't a whole response.
    pub trouble: Option<Trouble>,
}
