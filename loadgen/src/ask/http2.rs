//! HTTP/2 begins on a connection for one request.

use super::Room;
use super::patience::Patience;
use super::shared::{moves, waits};
use super::trouble::{Kind, Trouble};
use crate::engine::http2::connection::Http2Connection;
use crate::engine::http2::dialog::Kept;
use crate::engine::plan::Origin;
use crate::engine::reasons;
use crate::engine::shared::SharedConnection;
use crate::engine::wire::Wire;
use crate::http2::trouble::{ConnectionEnd, Lost};

/// Waits until the server has said how many streams there may be.
pub fn begin(
    origin: &Origin,
    wire: Wire,
    room: Room,
    patience: &Patience,
) -> Result<SharedConnection, Trouble> {
    let begun = Http2Connection::begin(wire).keeping(Kept::up_to(room.kept_bytes));
    let mut connection = SharedConnection::Http2(begun);
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
        if !waits(more, &mut connection, patience)? {
            let seconds = patience.timeout_s();
            return Err(
                Kind::Late.with(format!("HTTP/2 didn't begin within {seconds} s (--timeout)"))
            );
        }
    }
}
