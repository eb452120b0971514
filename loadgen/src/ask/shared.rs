//! A request as the only one on its connection of HTTP/2 or 3.

use std::time::Duration;

use super::Room;
use super::patience::Patience;
use super::seen::Seen;
use super::trouble::{Kind, Trouble};
use crate::clock::now_ns;
use crate::engine::flight::{Answer, Flight};
use crate::engine::http2::stream::{Outcome, Reading};
use crate::engine::plan::Ready;
use crate::engine::reasons;
use crate::engine::schedule::PlannedRequest;
use crate::engine::shared::SharedConnection;

/// Sends it, and reads until the response is whole.
pub fn ask(
    request: &Ready,
    room: Room,
    patience: &Patience,
    mut connection: SharedConnection,
    seen: &mut Seen,
) -> Result<(), Trouble> {
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

/// Gives the answer; None where it isn't whole in time.
fn converse(
    request: &Ready,
    room: Room,
    patience: &Patience,
    connection: &mut SharedConnection,
    seen: &mut Seen,
) -> Result<Option<Answer>, Trouble> {
    let sent_ns = now_ns();
    let undue = Flight::new(0, PlannedRequest::undue(0), sent_ns);
    let flight = Flight { sent_ns, first_sent_ns: sent_ns, ..undue };
    let reading = Reading { hash: seen.hash.take(), events: None, reply: request.reply };
    connection.send(0, flight, request, reading);
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
pub fn moves(connection: &mut SharedConnection) -> bool {
    connection.arrived(false);
    connection.move_frames() || connection.is_dirty()
}

/// Waits until more can be moved; false where that can't be, or the time is up.
pub fn waits(
    more: bool,
    connection: &mut SharedConnection,
    patience: &Patience,
) -> Result<bool, Trouble> {
    if more {
        return Ok(!patience.is_over());
    }
    let broken = |error: std::io::Error| Kind::Closed.with(error.to_string());
    match connection {
        SharedConnection::Http2(connection) => match connection.wire() {
            Some(wire) => patience.wait(wire, connection.is_stuck()).map_err(broken),
            None => Ok(false),
        },
        SharedConnection::Http3(connection) => {
            let until_ns = connection.next_ns();
            let longest = Duration::from_nanos(until_ns.saturating_sub(now_ns()));
            let room = connection.is_stuck();
            patience.wait_at_most(&**connection, room, longest).map_err(broken)
        }
    }
}
