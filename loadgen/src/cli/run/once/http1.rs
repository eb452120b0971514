//! The request over HTTP/1.1.

use rustix::net::RecvFlags;
use sha2::Digest;

use super::patience::Patience;
use super::seen::Seen;
use crate::engine::Plan;
use crate::engine::plan::Ready;
use crate::engine::reasons;
use crate::engine::socket::Got;
use crate::engine::wire::Wire;
use crate::http1::response::{HeadCache, Response};

const READ_BYTES: usize = 64 * 1024;

/// What a connection of the load would send.
pub fn bytes<'a>(plan: &Plan, request: &'a Ready) -> &'a [u8] {
    request.rendered.bytes(plan.requests_per_connection == 1)
}

/// Sends it, and reads until the response is whole; an error says why it isn't.
pub fn ask(
    plan: &Plan,
    request: &Ready,
    mut wire: Wire,
    patience: &Patience,
    seen: &mut Seen,
) -> Result<(), String> {
    send(bytes(plan, request), &mut wire, patience)?;
    let mut response = Response::default();
    response.reset(request.asked, true);
    let outcome = receive(&mut wire, patience, &mut response, seen);
    seen.status = response.status;
    seen.response.fields = response.kept_head;
    outcome
}

fn send(bytes: &[u8], wire: &mut Wire, patience: &Patience) -> Result<(), String> {
    let broken = |error| format!("while the request was sent: {error}");
    let mut written = 0;
    while written < bytes.len() || !wire.flush().map_err(broken)? {
        let count = wire.write(&bytes[written..]).map_err(broken)?;
        written += count;
        if count == 0 && !patience.wait(wire, true).map_err(broken)? {
            let seconds = patience.timeout_s();
            return Err(format!("the request couldn't be sent within {seconds} s (--timeout)"));
        }
    }
    Ok(())
}

fn receive(
    wire: &mut Wire,
    patience: &Patience,
    response: &mut Response,
    seen: &mut Seen,
) -> Result<(), String> {
    let mut buffer = vec![0; READ_BYTES];
    let mut cache = HeadCache::default();
    while !response.is_done() {
        let late = |response: &Response| reasons::late(patience.timeout_s(), response.bytes());
        let count = match wire.read(&mut buffer, RecvFlags::empty()) {
            Ok(Got::Bytes { count, .. }) => count,
            Ok(Got::Nothing) => match patience.wait(wire, false) {
                Ok(true) => continue,
                Ok(false) => return Err(late(response)),
                Err(error) => return Err(error.to_string()),
            },
            // Of servers that end without close_notify what was read counts.
            Ok(Got::End { .. }) if response.end_of_stream() => return Ok(()),
            Ok(Got::End { .. }) => {
                return Err("the server closed the connection before the end".into());
            }
            Err(error) => return Err(reasons::lost(&error).1),
        };
        seen.first_byte.get_or_insert_with(|| patience.spent());
        let (kept, hash) = (&mut seen.response, &mut seen.hash);
        let used = response.feed(&buffer[..count], &mut cache, |data| {
            kept.take(data);
            hash.update(data);
        });
        let used = used.map_err(|malformed| {
            reasons::with_bytes(format!("malformed: {malformed}"), &buffer[..count])
        })?;
        if used < count && !response.is_upgraded() {
            return Err("malformed: more bytes than the response has".into());
        }
        // A response may always have more.
        if !response.is_done() && patience.is_over() {
            return Err(late(response));
        }
    }
    Ok(())
}
