//! The request over HTTP/2, as the only one on its connection.

use super::Room;
use super::patience::Patience;
use super::seen::Seen;
use super::trouble::{Kind, Trouble};
use crate::clock::now_ns;
use crate::engine::flight::{Answer, Flight};
use crate::engine::http2::connection::Http2Connection;
use crate::engine::http2::dialog::Kept;
use crate::engine::http2::stream::{Outcome, Reading};
use crate::engine::plan::{Origin, Ready};
use crate::engine::reasons;
use crate::engine::schedule::PlannedRequest;
use crate::engine::wire::Wire;
use crate::http2::trouble::{ConnectionEnd, Lost};

/// Sends it, and reads until the response is whole.
pub fn ask(
    request: &Ready,
    origin: &Origin,
    wire: Wire,
    room: Room,
    patience: &Patience,
    seen: &mut Seen,
) -> Result<(), Trouble> {
    let mut connection = begin(origin, wire, room, patience)?;
    let outcome = converse(request, room, patience, &mut connection, seen);
    seen.response = connection.into_kept().unwrap_or_default();
    seen.came_bytes = seen.response.fields.len() as u64 + seen.response.body_bytes;
    match outcome? {
        Some(answer) => {
            seen.status = answer.status;
            seen.hash = answer.hash;
            seen.grpc_status = answer.grpc_status;
            seen.fault = answer.fault.map(|(_, why)| why);
            Ok(())
        }
        None => Err(Kind::Late.with(reasons::late(patience.timeout_s(), seen.came_bytes))),
    }
}

/// Waits until the server has said how many streams there may be.
fn begin(
    origin: &Origin,
    wire: Wire,
    room: Room,
    patience: &Patience,
) -> Result<Http2Connection, Trouble> {
    let mut connection = Http2Connection::begin(wire).keeping(Kept::up_to(room.kept_bytes));
    loop {
        let more = moves(&mut connection);
        if !connection.is_usable() {
            let end = connection.into_end();
            let is_other = matches!(end, Some(ConnectionEnd::Lost(Lost::Fault(_))));
            let kind = if is_other { Kind::Malformed } else { Kind::Closed };
            return Err(kind.with(reasons::no_http2(origin, end).0));
        }
        if connection.allowed() > 0 {
            return Ok(connection);
        }
        if !waits(more, &connection, patience)? {
            let seconds = patience.timeout_s();
            return Err(
                Kind::Late.with(format!("HTTP/2 didn't begin within {seconds} s (--timeout)"))
            );
        }
    }
}

/// Gives the answer; None where it isn't whole in time.
fn converse(
    request: &Ready,
    room: Room,
    patience: &Patience,
    connection: &mut Http2Connection,
    seen: &mut Seen,
) -> Result<Option<Answer>, Trouble> {
    let Some(message) = &request.message else { return Ok(None) };
    let sent_ns = now_ns();
    let undue = Flight::new(0, PlannedRequest::undue(0), sent_ns);
    let flight = Flight { sent_ns, first_sent_ns: sent_ns, ..undue };
    let reading = Reading { hash: seen.hash.take(), events: None, reply: request.reply };
    connection.send(0, flight, message, request.asked.head, reading);
    loop {
        let more = moves(connection);
        let kept = connection.kept();
        if kept.is_some_and(|kept| !kept.fields.is_empty()) {
            seen.first_byte.get_or_insert_with(|| patience.spent());
        }
        if kept.is_some_and(|kept| kept.body_bytes > room.most_bytes) {
            return Err(Kind::Long.with("the response is too long"));
        }
        match connection.next_ended(now_ns()) {
            Some((_, Outcome::Answered(answer))) => return Ok(Some(answer)),
            Some((_, Outcome::Trouble(trouble, why))) => {
                return Err(Trouble::of_stream(trouble, why));
            }
            None if waits(more, connection, patience)? => {}
            None => return Ok(None),
        }
    }
}

/// Moves frames both ways once; true where there may be more to move.
fn moves(connection: &mut Http2Connection) -> bool {
    connection.arrived(false);
    connection.move_frames() || connection.is_dirty()
}

/// Waits until more can be moved; false where that can't be, or the time is up.
fn waits(more: bool, connection: &Http2Connection, patience: &Patience) -> Result<bool, Trouble> {
    match connection.wire() {
        Some(_) if more => Ok(!patience.is_over()),
        Some(wire) => patience
            .wait(wire, connection.is_stuck())
            .map_err(|error| Kind::Closed.with(error.to_string())),
        None => Ok(false),
    }
}
