//! A message over WebSocket, and the one that answers it.

use rustix::net::RecvFlags;

use super::Room;
use super::http1::{receive, send};
use super::patience::Patience;
use super::seen::Seen;
use super::trouble::{Kind, Trouble};
use crate::engine::plan::Ready;
use crate::engine::reasons;
use crate::engine::socket::Got;
use crate::engine::upgrade::{ASKED, switch};
use crate::engine::wire::Wire;
use crate::http1::head::SWITCHING;
use crate::http1::response::{HeadCache, Response};
use crate::websocket::handshake;

/// Opens it by that request but for its key; answers are read with what is returned.
pub fn open(
    head: &str,
    wire: &mut Wire,
    room: Room,
    patience: &Patience,
    seen: &mut Seen,
) -> Result<Response, Trouble> {
    let (request, accept) = handshake::request(head);
    send(&request, wire, patience)?;
    let mut response = Response::default();
    response.reset(ASKED, true);
    let outcome = receive(wire, room, patience, &mut response, seen);
    (seen.status, seen.response.fields) = (response.status, response.kept_head.clone());
    let rest = outcome?;
    if response.status != SWITCHING {
        let why = format!("no WebSocket: status {} instead of 101", response.status);
        return Err(Kind::Malformed.with(reasons::with_redirect(why, &response.kept_head)));
    }
    let switched = switch(&mut response, &accept, &rest);
    switched.map_err(|why| Kind::Malformed.with(format!("no WebSocket: {why}")))?;
    Ok(response)
}

/// Waits until the server answers a ping: only then it has surely taken the connection in.
pub fn await_pong(
    wire: &mut Wire,
    response: &mut Response,
    patience: &Patience,
) -> Result<(), Trouble> {
    let mut buffer = [0; 1024];
    if let Some(messages) = &mut response.messages {
        messages.ping();
        messages.send_pongs(|bytes| wire.write(bytes).unwrap_or(0));
    }
    while !response.messages.as_ref().is_some_and(|messages| messages.heard_pong) {
        let count = match wire.read(&mut buffer, RecvFlags::empty()) {
            Ok(Got::Bytes { count, .. }) => count,
            Ok(Got::Nothing) => match patience.wait(wire, false) {
                Ok(true) => continue,
                Ok(false) => return Err(Kind::Late.with("the server answered no ping in time")),
                Err(error) => return Err(Trouble::of_lost(&error, false)),
            },
            Ok(Got::End { .. }) => {
                return Err(Kind::Closed.with("the server closed before it answered a ping"));
            }
            Err(error) => return Err(Trouble::of_lost(&error, false)),
        };
        let heard = response.feed(&buffer[..count], &mut HeadCache::default(), |_| {});
        heard.map_err(|malformed| Kind::Malformed.with(malformed.to_string()))?;
    }
    Ok(())
}

/// Sends a message, over `sender` where that is another connection, and reads the one that follows;
/// true where the connection stays open.
pub fn ask(
    request: &Ready,
    wire: &mut Wire,
    sender: Option<&mut Wire>,
    response: &mut Response,
    room: Room,
    patience: &Patience,
    seen: &mut Seen,
) -> Result<bool, Trouble> {
    seen.response.fields.clone_from(&response.kept_head);
    (seen.first_byte, seen.came_bytes) = (None, 0);
    send(request.rendered.bytes(false), sender.unwrap_or(&mut *wire), patience)?;
    response.reset(ASKED, false);
    seen.status = response.status;
    receive(wire, room, patience, response, seen)?;
    Ok(response.keep_alive)
}
