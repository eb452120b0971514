//! Requests are sent one after the other, and each response is kept whole: to be looked at, or shown.

mod http1;
mod http2;
mod http3;
mod patience;
mod seen;
mod shared;
mod trouble;
mod websocket;

use std::io;
use std::sync::Arc;
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::engine::Plan;
use crate::engine::http2::dialog::Kept;
use crate::engine::plan::Origin;
use crate::engine::reasons;
use crate::engine::secure::Secure;
use crate::engine::wire::{Options, Wire};
use crate::http1::response::Response;
use crate::order::Protocol;
use crate::target::Address;
use crate::tls::ALPN_HTTP2;
use patience::Patience;
pub use seen::Seen;
pub use trouble::{Kind, Trouble};

/// Between looks for who accepts a connection.
const POLL: Duration = Duration::from_millis(2);
/// QUIC has no other version, and its library names no cipher.
const TLS_OF_QUIC: &str = "TLSv1.3";

/// How much of a body is kept, how long it may be, and whether its checksum is computed.
#[derive(Debug, Clone, Copy)]
pub struct Room {
    pub kept_bytes: usize,
    pub most_bytes: u64,
    pub hashes: bool,
}

/// Sends a plan's requests over one connection for as long as it stays open; over HTTP/2 and 3 each
/// has its own.
pub struct Asker<'a> {
    plan: &'a Plan,
    room: Room,
    /// So long it is tried again where nobody accepts a connection.
    pub accepts_within: Duration,
    open: Option<Open>,
}

/// A connection on which another request can be sent.
struct Open {
    origin: usize,
    wire: Wire,
    requests: u32,
    /// Messages of a WebSocket are read with it.
    websocket: Option<Response>,
    /// As [`Seen::tls`].
    tls: Option<String>,
}

impl Asker<'_> {
    pub fn new(plan: &Plan, room: Room) -> Asker<'_> {
        Asker { plan, room, accepts_within: Duration::ZERO, open: None }
    }

    /// Sends the request of a number, and waits for the response; nothing is sent twice.
    pub fn ask(&mut self, number: usize) -> Seen {
        let began = Instant::now();
        loop {
            let seen = self.try_once(number);
            let is_refused = seen.trouble.as_ref().is_some_and(|it| it.kind == Kind::Connect);
            if !is_refused || began.elapsed() >= self.accepts_within {
                return seen;
            }
            sleep(POLL);
        }
    }

    fn try_once(&mut self, number: usize) -> Seen {
        let patience = Patience::of(Duration::from_nanos(self.plan.timeout_ns));
        let response = Kept::up_to(self.room.kept_bytes);
        let hash = self.room.hashes.then(Box::default);
        let mut seen = Seen { response, hash, ..Seen::default() };
        seen.trouble = self.exchange(number, &patience, &mut seen).err();
        seen.done = patience.spent();
        seen
    }

    fn exchange(
        &mut self,
        number: usize,
        patience: &Patience,
        seen: &mut Seen,
    ) -> Result<(), Trouble> {
        let request = &self.plan.requests[number];
        let origin = &self.plan.origins[request.origin];
        if let (Protocol::Http3, Some(tls)) = (origin.protocol, &self.plan.tls) {
            let connection = http3::begin(origin, tls, self.room, patience)?;
            seen.is_connected = true;
            seen.connected = patience.spent();
            seen.handshaken = Some(seen.connected);
            seen.tls = Some(TLS_OF_QUIC.into());
            seen.is_http3 = true;
            return shared::ask(request, self.room, patience, connection, seen);
        }
        let mut open = match self.open.take().filter(|open| open.origin == request.origin) {
            Some(open) => open,
            None => self.open(request.origin, patience, seen)?,
        };
        seen.is_connected = true;
        seen.tls.clone_from(&open.tls);
        open.requests += 1;
        if origin.protocol == Protocol::Http2 {
            let connection = http2::begin(origin, open.wire, self.room, patience)?;
            return shared::ask(request, self.room, patience, connection, seen);
        }
        let last = open.requests >= self.plan.requests_per_connection;
        if let (Some(head), None) = (&origin.handshake, &open.websocket) {
            open.websocket =
                Some(websocket::open(head, &mut open.wire, self.room, patience, seen)?);
        }
        let mut sender = match &mut open.websocket {
            Some(messages) if self.plan.order.load.broadcast => {
                websocket::await_pong(&mut open.wire, messages, patience)?;
                Some(self.open_sender(request.origin, patience)?)
            }
            _ => None,
        };
        let wire = &mut open.wire;
        let stays = match &mut open.websocket {
            Some(messages) => {
                let sender = sender.as_mut();
                websocket::ask(request, wire, sender, messages, self.room, patience, seen)?
            }
            None => http1::ask(request, last, wire, self.room, patience, seen)?,
        };
        self.open = (stays && !last).then_some(open);
        Ok(())
    }

    /// Opens the connection that sends what another one receives.
    fn open_sender(&self, number: usize, patience: &Patience) -> Result<Wire, Trouble> {
        let mut seen = Seen::default();
        let mut wire = self.open(number, patience, &mut seen)?.wire;
        if let Some(head) = &self.plan.origins[number].handshake {
            websocket::open(head, &mut wire, self.room, patience, &mut seen)?;
        }
        Ok(wire)
    }

    fn open(&self, number: usize, patience: &Patience, seen: &mut Seen) -> Result<Open, Trouble> {
        let origin = &self.plan.origins[number];
        let mut wire = connect(origin, patience).map_err(|why| Kind::Connect.with(why))?;
        seen.connected = patience.spent();
        if let (Some(config), Some((name, _))) = (&self.plan.tls, &origin.tls) {
            let tls = Secure::new(Arc::new(config.clone()), name.clone());
            wire.secure(tls.map_err(|error| Kind::Tls.with(error.to_string()))?);
            shake_hands(&mut wire, origin, patience)?;
            seen.handshaken = Some(patience.spent());
        }
        let tls = wire.version_and_cipher();
        Ok(Open { origin: number, wire, requests: 0, websocket: None, tls })
    }
}

/// Tries the addresses in turn, as the engine does.
fn connect(origin: &Origin, patience: &Patience) -> Result<Wire, String> {
    let mut refusal = String::new();
    for address in &origin.addresses {
        match connect_to(address, patience) {
            Ok(wire) => return Ok(wire),
            Err(error) => refusal = reasons::not_connected(&error),
        }
    }
    Err(refusal)
}

fn connect_to(address: &Address, patience: &Patience) -> io::Result<Wire> {
    let options = Options { no_delay: true, ..Options::default() };
    let (wire, is_connected) = Wire::open(address, options)?;
    if !is_connected && !patience.wait(&wire, true)? {
        let why = format!("no connection within {} s (--timeout)", patience.timeout_s());
        return Err(io::Error::new(io::ErrorKind::TimedOut, why));
    }
    wire.connected()?;
    if wire.has_met_itself() {
        return Err(io::ErrorKind::ConnectionRefused.into());
    }
    Ok(wire)
}

fn shake_hands(wire: &mut Wire, origin: &Origin, patience: &Patience) -> Result<(), Trouble> {
    while !wire.handshake().map_err(|error| Trouble::of_handshake(origin, &error))? {
        let room = !wire.is_flushed();
        if !patience.wait(wire, room).map_err(|error| Kind::Tls.with(error.to_string()))? {
            let seconds = patience.timeout_s();
            return Err(Kind::Late.with(format!("no TLS handshake within {seconds} s (--timeout)")));
        }
    }
    let alpn = wire.agreed().and_then(|(alpn, _)| alpn);
    match origin.protocol == Protocol::Http2 && alpn != Some(ALPN_HTTP2) {
        true => Err(Kind::Tls.with(reasons::no_alpn(origin).0)),
        false => Ok(()),
    }
}
