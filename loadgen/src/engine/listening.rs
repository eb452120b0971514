//! What a WebSocket hears and says besides messages.

use rustix::net::RecvFlags;

use super::exchange::Exchange;
use super::socket::Got;
use super::wire::Wire;
use crate::http1::response::HeadCache;

/// Nobody needs more pings than these bring while nothing is asked.
const MOST_UNASKED_READS: usize = 64;

impl Exchange {
    /// Pongs leave, between messages; true where none waits.
    pub fn send_pongs(&mut self, wire: &mut Wire) -> bool {
        let Some(messages) = &mut self.response.messages else { return true };
        // What is broken shows when reading.
        messages.send_pongs(|bytes| wire.write(bytes).unwrap_or(0))
    }

    /// Hears what comes while no message is awaited. False where it is of no use any more:
    /// the server ended it, or sent a message that nobody asked for.
    pub fn listen(&mut self, wire: &mut Wire) -> bool {
        let mut buffer = [0; 1024];
        for _ in 0..MOST_UNASKED_READS {
            let count = match wire.read(&mut buffer, RecvFlags::empty()) {
                Ok(Got::Nothing) => return true,
                Ok(Got::Bytes { count, .. }) => count,
                Ok(Got::End { .. }) | Err(_) => return false,
            };
            let heard = self.response.feed(&buffer[..count], &mut HeadCache::default(), |_| {});
            if heard.is_err() || self.response.farewell().is_some() {
                return false;
            }
            self.send_pongs(wire);
        }
        false
    }

    /// Passes over what came to a connection that only sends messages, its own among them. False where
    /// it is of no use any more.
    pub fn pass_over(&mut self, bytes: &[u8]) -> bool {
        if let Some(messages) = &mut self.response.messages {
            messages.passes_unasked = true;
        }
        let heard = self.response.feed(bytes, &mut HeadCache::default(), |_| {});
        heard.is_ok() && self.response.farewell().is_none()
    }

    /// Our end of it, where nothing is under way.
    pub fn say_farewell(&mut self, wire: &mut Wire) {
        let Some(messages) = &self.response.messages else { return };
        let is_quiet = self.response.is_done() || messages.farewell().is_some();
        if let Some(bytes) = messages.own_farewell().filter(|_| is_quiet) {
            let _ = wire.write(&bytes);
        }
    }
}
