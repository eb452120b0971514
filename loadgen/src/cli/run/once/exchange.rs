//! One request is sent and its response waited for, all of it until the timeout.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use super::http1;
use super::http2;
use super::patience::Patience;
use super::seen::Seen;
use crate::engine::Plan;
use crate::engine::plan::{Origin, Ready};
use crate::engine::reasons;
use crate::engine::secure::Secure;
use crate::engine::wire::{Options, Wire};
use crate::order::Protocol;
use crate::target::Address;
use crate::tls::ALPN_HTTP2;

/// Gives what came, also where it isn't all; an error says why nothing was asked.
pub fn exchange(plan: &Plan, request: &Ready) -> Result<Seen, String> {
    let origin = &plan.origins[request.origin];
    let timeout = Duration::from_nanos(plan.timeout_ns);
    let patience = Patience::of(timeout);
    let mut seen = Seen::default();
    let mut wire = connect(origin, &patience).map_err(|why| format!("{origin}: {why}"))?;
    seen.connected = patience.spent();
    if let (Some(config), Some((name, _))) = (&plan.tls, &origin.tls) {
        let tls = Secure::new(Arc::new(config.clone()), name.clone());
        wire.secure(tls.map_err(|error| format!("{origin}: {error}"))?);
        shake_hands(&mut wire, origin, &patience)?;
        seen.handshaken = Some(patience.spent());
    }
    let trouble = match origin.protocol {
        Protocol::Http1 => http1::ask(plan, request, wire, &patience, &mut seen),
        Protocol::Http2 => http2::ask(request, origin, wire, &patience, &mut seen),
    };
    seen.trouble = trouble.err();
    seen.done = patience.spent();
    Ok(seen)
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
    let (wire, is_connected) = Wire::open(address, Options::default())?;
    if !is_connected && !patience.wait(&wire, true)? {
        let why = format!("no connection within {} s (--timeout)", patience.timeout_s());
        return Err(io::Error::new(io::ErrorKind::TimedOut, why));
    }
    wire.connected()?;
    Ok(wire)
}

fn shake_hands(wire: &mut Wire, origin: &Origin, patience: &Patience) -> Result<(), String> {
    while !wire.handshake().map_err(|error| reasons::no_tls(origin, &error).0)? {
        let room = !wire.is_flushed();
        if !patience.wait(wire, room).map_err(|error| error.to_string())? {
            let seconds = patience.timeout_s();
            return Err(format!("{origin}: no TLS handshake within {seconds} s (--timeout)"));
        }
    }
    let alpn = wire.agreed().and_then(|(alpn, _)| alpn);
    match origin.protocol == Protocol::Http2 && alpn != Some(ALPN_HTTP2) {
        true => Err(reasons::no_alpn(origin).0),
        false => Ok(()),
    }
}
