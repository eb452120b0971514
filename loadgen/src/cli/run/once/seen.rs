//! What one request came to.

use std::time::Duration;

use sha2::Sha256;

use crate::engine::http2::dialog::Kept;

/// What happened, and when.
#[derive(Debug, Default)]
pub struct Seen {
    pub connected: Duration,
    /// Whole TLS handshakes end here.
    pub handshaken: Option<Duration>,
    pub first_byte: Option<Duration>,
    pub done: Duration,
    pub response: Kept,
    pub status: u16,
    /// Checksum of the whole body.
    pub hash: Sha256,
    /// Why it isn't a whole response, or not a valid one.
    pub trouble: Option<String>,
}
