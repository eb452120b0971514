//! What TLS and HTTP/2 add to the record.

use super::Timing;

#[derive(Debug, Clone)]
pub struct Layers {
    /// Times of TLS handshakes, from the connection's establishment on.
    pub handshake: Timing,
    pub full_handshakes: u64,
    pub resumed_handshakes: u64,
    /// HTTP/2: connections whose end the server announced.
    pub go_aways: u64,
    /// Requests asked again, because the server said that it had not seen them.
    pub asked_again: u64,
    pub refused_streams: u64,
    /// Streams the server reset for other reasons.
    pub reset_streams: u64,
    /// The fewest streams at a time that a server allowed.
    pub streams_allowed: Option<u64>,
}

impl Default for Layers {
    fn default() -> Self {
        Layers {
            handshake: Timing::empty(),
            full_handshakes: 0,
            resumed_handshakes: 0,
            go_aways: 0,
            asked_again: 0,
            refused_streams: 0,
            reset_streams: 0,
            streams_allowed: None,
        }
    }
}

impl Layers {
    /// Adds everything but times.
    pub fn add_counts(&mut self, other: &Layers) {
        self.full_handshakes += other.full_handshakes;
        self.resumed_handshakes += other.resumed_handshakes;
        self.go_aways += other.go_aways;
        self.asked_again += other.asked_again;
        self.refused_streams += other.refused_streams;
        self.reset_streams += other.reset_streams;
        if let Some(allowed) = other.streams_allowed {
            self.allow(allowed);
        }
    }

    /// A server allows so many streams at a time.
    pub fn allow(&mut self, streams: u64) {
        self.streams_allowed =
            Some(self.streams_allowed.map_or(streams, |known| known.min(streams)));
    }
}
