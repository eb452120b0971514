//! `loadgen run --once`: one request and its response, shown whole.

use std::fmt::Write as _;
use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustls::{ClientConnection, StreamOwned};
use sha2::{Digest, Sha256};

use crate::engine::Plan;
use crate::engine::plan::{Origin, Ready};
use crate::engine::reasons;
use crate::http1::response::{HeadCache, Response};
use crate::target::Address;

/// More of a body is of no use on a terminal.
const MOST_SHOWN_BYTES: usize = 64 * 1024;

/// What happened, and when.
#[derive(Debug, Default)]
struct Seen {
    connected: Duration,
    /// Whole TLS handshakes end here.
    handshaken: Option<Duration>,
    first_byte: Option<Duration>,
    done: Duration,
    head: Vec<u8>,
    body: Vec<u8>,
    response: Response,
    /// Why it isn't a whole response.
    trouble: Option<String>,
}

/// Sends the plan's first request. Gives what to print, and whether the response was valid.
pub fn show(plan: &Plan) -> Result<(String, bool), String> {
    let request = &plan.requests[0];
    let seen = exchange(plan, request)?;
    let mut text = lines("> ", bytes(plan, request));
    text.push_str(&lines("< ", &seen.head));
    text.push_str(&shown_body(&seen));
    let wrong = seen.trouble.clone().or_else(|| {
        let Response { status, body_bytes, .. } = seen.response;
        let hash = Sha256::new().chain_update(&seen.body);
        let failure = request.expect.judge(status, body_bytes, Some(hash))?;
        let text = reasons::mismatch(failure, request, status, body_bytes);
        Some(reasons::with_redirect(text, &seen.head))
    });
    let _ = writeln!(text, "\n{}", times(&seen));
    let _ = match &wrong {
        None => writeln!(text, "valid"),
        Some(why) => writeln!(text, "not valid: {why}"),
    };
    Ok((text, wrong.is_none()))
}

/// What a connection of the load would send.
fn bytes<'a>(plan: &Plan, request: &'a Ready) -> &'a [u8] {
    request.rendered.bytes(plan.requests_per_connection == 1)
}

fn exchange(plan: &Plan, request: &Ready) -> Result<Seen, String> {
    let origin = &plan.origins[request.origin];
    let timeout = Duration::from_nanos(plan.timeout_ns);
    let began = Instant::now();
    let mut seen = Seen::default();
    let mut stream = connect(origin, timeout).map_err(|error| format!("{origin}: {error}"))?;
    seen.connected = began.elapsed();
    if let (Some(config), Some((name, _))) = (&plan.tls, &origin.tls) {
        let connection = ClientConnection::new(Arc::new(config.clone()), name.clone())
            .map_err(|error| format!("{origin}: {error}"))?;
        let mut secure = StreamOwned::new(connection, stream);
        while secure.conn.is_handshaking() {
            let handshake = secure.conn.complete_io(&mut secure.sock);
            handshake.map_err(|error| reasons::no_tls(origin, &error).0)?;
        }
        seen.handshaken = Some(began.elapsed());
        stream = Box::new(secure);
    }
    stream
        .write_all(bytes(plan, request))
        .and_then(|()| stream.flush())
        .map_err(|error| format!("{origin}: while the request was sent: {error}"))?;
    seen.trouble = receive(&mut *stream, request, began, &mut seen).err();
    seen.done = began.elapsed();
    Ok(seen)
}

/// Both directions of a connection.
trait Duplex: Read + Write {}

impl<T: Read + Write> Duplex for T {}

/// Tries the addresses in turn, as the engine does.
fn connect(origin: &Origin, timeout: Duration) -> io::Result<Box<dyn Duplex>> {
    let mut refusal = io::Error::from(io::ErrorKind::NotFound);
    for address in &origin.addresses {
        let connected = match address {
            Address::Tcp(address) => {
                TcpStream::connect_timeout(address, timeout).and_then(|stream| {
                    stream.set_read_timeout(Some(timeout))?;
                    Ok(Box::new(stream) as Box<dyn Duplex>)
                })
            }
            Address::Unix(path) => UnixStream::connect(path).and_then(|stream| {
                stream.set_read_timeout(Some(timeout))?;
                Ok(Box::new(stream) as Box<dyn Duplex>)
            }),
        };
        match connected {
            Ok(stream) => return Ok(stream),
            Err(error) => refusal = error,
        }
    }
    Err(refusal)
}

/// Reads until the response is whole; an error says why it isn't.
fn receive(
    stream: &mut dyn Duplex,
    request: &Ready,
    began: Instant,
    seen: &mut Seen,
) -> Result<(), String> {
    let mut buffer = vec![0; 64 * 1024];
    let mut cache = HeadCache::default();
    seen.response.reset(request.asked, true);
    while !seen.response.is_done() {
        let read = stream.read(&mut buffer);
        let count = match read {
            Ok(0) if seen.response.end_of_stream() => return Ok(()),
            Ok(0) => return Err("the server closed the connection before the end".into()),
            Ok(count) => count,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                return Err("nothing came within the timeout (--timeout)".into());
            }
            // Servers that end without close_notify: what was read counts.
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
                if seen.response.end_of_stream() {
                    return Ok(());
                }
                return Err("the server closed the connection before the end".into());
            }
            Err(error) => return Err(reasons::lost(&error).1),
        };
        seen.first_byte.get_or_insert_with(|| began.elapsed());
        let body = &mut seen.body;
        let sink = |data: &[u8]| body.extend_from_slice(data);
        let used = seen.response.feed(&buffer[..count], &mut cache, sink);
        seen.head.clone_from(&seen.response.kept_head);
        let used = used.map_err(|malformed| {
            reasons::with_bytes(format!("malformed: {malformed}"), &buffer[..count])
        })?;
        if used < count && !seen.response.is_upgraded() {
            return Err("malformed: more bytes than the response has".into());
        }
    }
    Ok(())
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
fn shown_body(seen: &Seen) -> String {
    let body = &seen.body;
    let shown = &body[..body.len().min(MOST_SHOWN_BYTES)];
    // A letter of several bytes may have been cut in two.
    let text = match std::str::from_utf8(shown) {
        Ok(text) => Some(text),
        Err(error) if error.error_len().is_none() => {
            std::str::from_utf8(&shown[..error.valid_up_to()]).ok()
        }
        Err(_) => None,
    };
    match text {
        Some(text) if shown.len() < body.len() => {
            format!("{text}\n… {} bytes in all\n", body.len())
        }
        Some(text) => format!("{}\n", text.trim_end_matches('\n')),
        None => format!("{} bytes that are no text\n", body.len()),
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
