//! The request over HTTP/1.1.

use rustix::net::RecvFlags;
use sha2::Digest;

use super::Room;
use super::patience::Patience;
use super::seen::Seen;
use super::trouble::{Kind, Trouble};
use crate::engine::plan::Ready;
use crate::engine::reasons;
use crate::engine::socket::Got;
use crate::engine::wire::Wire;
use crate::http1::response::{HeadCache, Response};

const READ_BYTES: usize = 64 * 1024;

/// Sends it, `last` on its connection, and reads until the response is whole; true where the
/// connection stays open.
pub fn ask(
    request: &Ready,
    last: bool,
    wire: &mut Wire,
    room: Room,
    patience: &Patience,
    seen: &mut Seen,
) -> Result<bool, Trouble> {
    send(request.rendered.bytes(last), wire, patience)?;
    let mut response = Response::default();
    response.reset(request.asked, true);
    let outcome = receive(wire, room, patience, &mut response, seen);
    seen.status = response.status;
    seen.response.fields = response.kept_head;
    outcome.map(|_| response.keep_alive)
}

pub fn send(bytes: &[u8], wire: &mut Wire, patience: &Patience) -> Result<(), Trouble> {
    let broken = |error| Kind::Untaken.with(format!("while the request was sent: {error}"));
    let mut written = 0;
    while written < bytes.len() || !wire.flush().map_err(broken)? {
        let count = wire.write(&bytes[written..]).map_err(broken)?;
        written += count;
        if count == 0 && !patience.wait(wire, true).map_err(broken)? {
            let seconds = patience.timeout_s();
            let why = format!("the request couldn't be sent within {seconds} s (--timeout)");
            return Err(Kind::Late.with(why));
        }
    }
    Ok(())
}

/// Reads until the response is whole; with what followed it, of another protocol.
pub fn receive(
    wire: &mut Wire,
    room: Room,
    patience: &Patience,
    response: &mut Response,
    seen: &mut Seen,
) -> Result<Vec<u8>, Trouble> {
    let mut buffer = vec![0; READ_BYTES];
    let mut cache = HeadCache::default();
    while !response.is_done() {
        let late = |bytes| Kind::Late.with(reasons::late(patience.timeout_s(), bytes));
        let count = match wire.read(&mut buffer, RecvFlags::empty()) {
            Ok(Got::Bytes { count, .. }) => count,
            Ok(Got::Nothing) => match patience.wait(wire, false) {
                Ok(true) => continue,
                Ok(false) => return Err(late(seen.came_bytes)),
                Err(error) => return Err(Trouble::of_lost(&error, response.has_begun())),
            },
            // Of servers that end without close_notify what was read counts.
            Ok(Got::End { .. }) if response.end_of_stream() => break,
            Ok(Got::End { .. }) => {
                let kind = if response.has_begun() { Kind::Cut } else { Kind::Closed };
                return Err(kind.with("the server closed the connection before the end"));
            }
            Err(error) => return Err(Trouble::of_lost(&error, response.has_begun())),
        };
        seen.came_bytes += count as u64;
        seen.first_byte.get_or_insert_with(|| patience.spent());
        let (kept, hash) = (&mut seen.response, &mut seen.hash);
        let used = response.feed(&buffer[..count], &mut cache, |data| {
            kept.take(data);
            if let Some(hash) = hash {
                hash.update(data);
            }
        });
        let used = used.map_err(|malformed| {
            let is_first = seen.came_bytes == count as u64;
            let shown = if is_first { &buffer[..count] } else { &[] };
            Kind::Malformed.with(reasons::with_bytes(malformed.to_string(), shown))
        })?;
        if response.is_upgraded() {
            return Ok(buffer[used..count].to_vec());
        }
        if used < count {
            return Err(Kind::Malformed.with("more bytes than the response has"));
        }
        if let Some(farewell) = response.farewell().filter(|_| !response.is_done()) {
            let kind = if response.has_begun() { Kind::Cut } else { Kind::Closed };
            return Err(kind.with(farewell.to_string()));
        }
        if let Some(messages) = &mut response.messages {
            messages.send_pongs(|bytes| wire.write(bytes).unwrap_or(0));
        }
        if response.body_bytes > room.most_bytes {
            return Err(Kind::Long.with("the response is too long"));
        }
        // A response may always have more.
        if !response.is_done() && patience.is_over() {
            return Err(late(seen.came_bytes));
        }
    }
    Ok(Vec::new())
}
