//! A message over WebSocket, and the one that answers it.

use super::Room;
use super::http1::{receive, send};
use super::patience::Patience;
use super::seen::Seen;
use super::trouble::{Kind, Trouble};
use crate::engine::plan::Ready;
use crate::engine::reasons;
use crate::engine::upgrade::{ASKED, switch};
use crate::engine::wire::Wire;
use crate::http1::head::SWITCHING;
use crate::http1::response::Response;
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

/// Sends a message and reads the one that follows; true where the connection stays open.
pub fn ask(
    request: &Ready,
    wire: &mut Wire,
    response: &mut Response,
    room: Room,
    patience: &Patience,
    seen: &mut Seen,
) -> Result<bool, Trouble> {
    seen.response.fields.clone_from(&response.kept_head);
    (seen.first_byte, seen.came_bytes) = (None, 0);
    send(request.rendered.bytes(false), wire, patience)?;
    response.reset(ASKED, false);
    seen.status = response.status;
    receive(wire, room, patience, response, seen)?;
    Ok(response.keep_alive)
}
