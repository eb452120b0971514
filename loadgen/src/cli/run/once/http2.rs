//! The request over HTTP/2.

use super::patience::Patience;
use super::seen::Seen;
use crate::clock::now_ns;
use crate::engine::flight::{Answer, Flight};
use crate::engine::http2::connection::Http2Connection;
use crate::engine::http2::stream::Outcome;
use crate::engine::plan::{Origin, Ready};
use crate::engine::reasons;
use crate::engine::schedule::PlannedRequest;
use crate::engine::wire::Wire;

/// Sends it, and reads until the response is whole; an error says why it isn't.
pub fn ask(
    request: &Ready,
    origin: &Origin,
    wire: Wire,
    patience: &Patience,
    seen: &mut Seen,
) -> Result<(), String> {
    let mut connection = begin(origin, wire, patience)?;
    let outcome = converse(request, patience, &mut connection, seen);
    seen.response = connection.into_kept().unwrap_or_default();
    match outcome? {
        Some(answer) => {
            seen.status = answer.status;
            seen.hash = answer.hash.map(|hash| *hash).unwrap_or_default();
            answer.fault.map_or(Ok(()), |(_, why)| Err(why))
        }
        None => {
            let bytes = seen.response.fields.len() as u64 + seen.response.body_bytes;
            Err(reasons::late(patience.timeout_s(), bytes))
        }
    }
}

/// Waits until the server has said how many streams there may be.
fn begin(origin: &Origin, wire: Wire, patience: &Patience) -> Result<Http2Connection, String> {
    let mut connection = Http2Connection::begin(wire).keeping();
    loop {
        let more = moves(&mut connection);
        if !connection.is_usable() {
            return Err(reasons::no_http2(origin, connection.into_end()).0);
        }
        if connection.allowed() > 0 {
            return Ok(connection);
        }
        if !waits(more, &connection, patience)? {
            let seconds = patience.timeout_s();
            return Err(format!("HTTP/2 didn't begin within {seconds} s (--timeout)"));
        }
    }
}

/// Gives the answer; None where it isn't whole in time.
fn converse(
    request: &Ready,
    patience: &Patience,
    connection: &mut Http2Connection,
    seen: &mut Seen,
) -> Result<Option<Answer>, String> {
    let Some(message) = &request.message else { return Ok(None) };
    let sent_ns = now_ns();
    let undue = Flight::new(0, PlannedRequest::undue(0), sent_ns);
    let flight = Flight { sent_ns, first_sent_ns: sent_ns, ..undue };
    connection.send(0, flight, message, request.asked.head, Some(Box::default()));
    loop {
        let more = moves(connection);
        if connection.has_begun() {
            seen.first_byte.get_or_insert_with(|| patience.spent());
        }
        match connection.next_ended(now_ns()) {
            Some((_, Outcome::Answered(answer))) => return Ok(Some(answer)),
            Some((_, Outcome::Trouble(_, why))) => return Err(why),
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
fn waits(more: bool, connection: &Http2Connection, patience: &Patience) -> Result<bool, String> {
    match connection.wire() {
        Some(_) if more => Ok(!patience.is_over()),
        Some(wire) => patience.wait(wire, connection.is_stuck()).map_err(|error| error.to_string()),
        None => Ok(false),
    }
}
