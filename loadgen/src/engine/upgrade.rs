//! A connection becomes a WebSocket: the request to switch, and the server's answer to it.

use rustix::net::RecvFlags;

use super::exchange::Scratch;
use super::reasons;
use super::socket::Got;
use super::wire::Wire;
use crate::http1::head::{Asked, SWITCHING};
use crate::http1::response::{HeadCache, Response};
use crate::websocket::handshake;
use crate::websocket::messages::Messages;

/// What is known of the answer before its head.
pub const ASKED: Asked = Asked { head: false, upgrade: true };

#[derive(Debug)]
pub struct Upgrade {
    request: Vec<u8>,
    written: usize,
    /// What the server has to prove.
    accept: String,
    pub began_ns: u64,
}

impl Upgrade {
    /// One that begins at a time, by that request but for its key.
    pub fn new(head: &str, began_ns: u64) -> Upgrade {
        let (request, accept) = handshake::request(head);
        Upgrade { request, written: 0, accept, began_ns }
    }

    /// Goes on as far as it can; true when it is done. Else says why there is no WebSocket, and
    /// whether trying again would change nothing.
    pub fn go_on(
        &mut self,
        wire: &mut Wire,
        response: &mut Response,
        scratch: &mut Scratch,
    ) -> Result<bool, (String, bool)> {
        let lost = |error| (format!("WebSocket handshake: {}", reasons::lost(&error).1), false);
        if self.written == 0 {
            response.reset(ASKED, true);
        }
        while self.written < self.request.len() || !wire.flush().map_err(lost)? {
            match wire.write(&self.request[self.written..]).map_err(lost)? {
                0 => return Ok(false),
                count => self.written += count,
            }
        }
        loop {
            let is_first = !response.has_begun();
            let came = match wire.read(scratch.room(), RecvFlags::empty()).map_err(lost)? {
                Got::Nothing => return Ok(false),
                Got::Bytes { count, .. } => scratch.filled(count),
                Got::End { .. } => {
                    return Err(("closed during the WebSocket handshake".into(), false));
                }
            };
            let shown = if is_first { came } else { &[] };
            let refused = |why: String| (reasons::no_websocket(&why, shown), true);
            let used = response
                .feed(came, &mut HeadCache::default(), |_| {})
                .map_err(|malformed| refused(malformed.to_string()))?;
            match response.status {
                0 => {}
                SWITCHING => {
                    let switched = switch(response, &self.accept, &came[used..]);
                    return switched.map(|()| true).map_err(refused);
                }
                status => {
                    let (why, _) = refused(format!("status {status} instead of 101"));
                    let text = reasons::with_redirect(why, &response.kept_head);
                    return Err((text, is_for_good(status)));
                }
            }
        }
    }
}

/// Messages follow, where the server's head proves that it read the key; `rest` came behind it.
pub fn switch(response: &mut Response, accept: &str, rest: &[u8]) -> Result<(), String> {
    handshake::check(&response.kept_head, accept)?;
    response.switch(Messages::new(handshake::mask()));
    let fed = response.feed(rest, &mut HeadCache::default(), |_| {});
    fed.map(|_| ()).map_err(|fault| fault.to_string())
}

/// A server that has too much to do may answer otherwise later.
fn is_for_good(status: u16) -> bool {
    status < 500 && status != 429
}
