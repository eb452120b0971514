//! `loadgen run --once`: one request and its response, shown whole.

use std::fmt::Write as _;
use std::time::Duration;

use crate::ask::{Asker, Room, Seen};
use crate::calls::Calls;
use crate::engine::Plan;
use crate::engine::http2::dialog::Kept;
use crate::engine::plan::Ready;
use crate::engine::reasons;
use crate::http2::hpack::Decoder;
use crate::http3::request as http3;
use crate::output::words::printable;

/// More of a body is of no use on a terminal.
const ROOM: Room = Room { kept_bytes: 64 * 1024, most_bytes: u64::MAX, hashes: true };

/// Sends the plan's first request. Gives what to print, and whether the response was valid.
pub fn show(plan: &Plan, calls: &Calls) -> Result<(String, bool), String> {
    let request = &plan.requests[0];
    let mut seen = Asker::new(plan, ROOM).ask(0);
    let why = seen.trouble.take().map(|trouble| trouble.why).or(seen.fault.take());
    if !seen.is_connected {
        return Err(format!("{}: {}", plan.origins[request.origin], why.unwrap_or_default()));
    }
    let mut text = lines("> ", &asked(plan, request));
    let response = &seen.response;
    text.push_str(&lines("< ", &[&response.fields[..], &response.trailers].concat()));
    text.push_str(&match calls.json(0, &response.body) {
        Some(Ok(json)) => format!("{json:#}\n"),
        _ => shown_body(response),
    });
    let wrong = why.or_else(|| {
        let (status, body_bytes) = (seen.status, seen.response.body_bytes);
        let failure = request.expect.judge(status, body_bytes, seen.hash.as_deref().cloned())?;
        let text = reasons::mismatch(failure, request, status, body_bytes);
        Some(reasons::with_redirect(text, &seen.response.fields))
    });
    let _ = writeln!(text, "\n{}", times(&seen));
    let _ = match &wrong {
        None => writeln!(text, "valid"),
        Some(why) => writeln!(text, "not valid: {why}"),
    };
    Ok((printable(&text), wrong.is_none()))
}

/// What a connection of the load would send; of HTTP/2 and 3 its fields, one a line; of a WebSocket the
/// handshake but for its key, and the message; of a call its message as JSON.
fn asked(plan: &Plan, request: &Ready) -> Vec<u8> {
    if let Some(handshake) = &plan.origins[request.origin].handshake {
        let body = plan.order.requests[0].body.as_deref().unwrap_or_default();
        let shown = String::from_utf8_lossy(body);
        return format!("{handshake}\n{shown}").into_bytes();
    }
    if let Some(frames) = &request.frames {
        return http3::shown(frames);
    }
    let Some(message) = &request.message else {
        return request.rendered.bytes(plan.requests_per_connection == 1).to_vec();
    };
    let asked = &plan.order.requests[0];
    let body = match &asked.json {
        Some(json) => format!("{json:#}").into_bytes(),
        None => message.body.to_vec(),
    };
    let mut lines = Vec::new();
    let add = |name: &[u8], value: &[u8]| {
        lines.extend_from_slice(&[name, b": ", value, b"\n"].concat());
    };
    // It is one of our own.
    let _ = Decoder::default().decode(&message.block, add);
    lines.extend_from_slice(&[b"\n", &body[..]].concat());
    lines
}

/// Marks each line of a head.
fn lines(mark: &str, bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    text.trim_end().lines().fold(String::new(), |mut all, line| {
        let _ = writeln!(all, "{mark}{line}");
        all
    }) + "\n"
}

/// The body where it is text, and else what it is.
fn shown_body(response: &Kept) -> String {
    let Kept { body, body_bytes, .. } = response;
    // A letter of several bytes may have been cut in two.
    let text = match std::str::from_utf8(body) {
        Ok(text) => Some(text),
        Err(error) if error.error_len().is_none() => {
            std::str::from_utf8(&body[..error.valid_up_to()]).ok()
        }
        Err(_) => None,
    };
    match text {
        Some(text) if (body.len() as u64) < *body_bytes => {
            format!("{text}\n… {body_bytes} bytes in all\n")
        }
        Some(text) => format!("{}\n", text.trim_end_matches('\n')),
        None => format!("{body_bytes} bytes that are no text\n"),
    }
}

fn times(seen: &Seen) -> String {
    let ms = |time: Duration| format!("{:.3} ms", time.as_secs_f64() * 1e3);
    let mut parts = vec![format!("connected after {}", ms(seen.connected))];
    parts.extend(seen.handshaken.map(|time| format!("TLS after {}", ms(time))));
    parts.extend(seen.first_byte.map(|time| format!("first byte after {}", ms(time))));
    parts.push(format!("whole after {}", ms(seen.done)));
    parts.join(", ")
}
