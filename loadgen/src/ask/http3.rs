//! HTTP/3 begins on a connection for one request.

use std::io;
use std::sync::Arc;

use rustls::ClientConfig;

use super::Room;
use super::patience::Patience;
use super::shared::{moves, waits};
use super::trouble::{Kind, Trouble};
use crate::engine::http2::dialog::Kept;
use crate::engine::http3::connection::Http3Connection;
use crate::engine::http3::dialer::Dialer;
use crate::engine::plan::Origin;
use crate::engine::reasons;
use crate::engine::shared::SharedConnection;
use crate::http3::trouble::Lost;
use crate::target::Address;

/// Shakes hands with the first of the origin's addresses where somebody listens.
pub fn begin(
    origin: &Origin,
    tls: &ClientConfig,
    room: Room,
    patience: &Patience,
) -> Result<SharedConnection, Trouble> {
    let dialer = Dialer::new(Arc::new(tls.clone())).map_err(|why| Kind::Tls.with(why))?;
    let mut refusal = String::new();
    for address in &origin.addresses {
        let opened = match (address, &origin.tls) {
            (Address::Tcp(address), Some((name, _))) => {
                Http3Connection::open(&dialer, *address, None, name, 1)
            }
            _ => Err(io::ErrorKind::Unsupported.into()),
        };
        let outcome = match opened {
            Ok(connection) => {
                let connection = connection.keeping(Kept::up_to(room.kept_bytes));
                let mut connection = SharedConnection::Http3(Box::new(connection));
                shake_hands(origin, &mut connection, patience)?.map(|()| connection)
            }
            Err(error) => Err(error),
        };
        match outcome {
            Ok(connection) => return Ok(connection),
            Err(error) => refusal = reasons::not_connected(&error),
        }
    }
    Err(Kind::Connect.with(refusal))
}

/// The inner error: nobody listens there.
fn shake_hands(
    origin: &Origin,
    shared: &mut SharedConnection,
    patience: &Patience,
) -> Result<io::Result<()>, Trouble> {
    loop {
        let more = moves(shared);
        let Some(connection) = shared.http3() else { return Ok(Ok(())) };
        if connection.is_open() {
            return Ok(Ok(()));
        }
        match connection.take_lost() {
            None => {}
            Some((Lost::Broken(error), _)) => return Ok(Err(reasons::nobody_at_udp(&error))),
            Some((lost, distrust)) => {
                return Err(match reasons::tls_trouble(&lost, distrust) {
                    Some(error) => Trouble::of_handshake(origin, &error),
                    None => Kind::Tls.with(reasons::no_http3(origin, &lost, None).0),
                });
            }
        }
        if !connection.is_usable() {
            return Err(Kind::Closed.with("closed before HTTP/3 had begun"));
        }
        if !waits(more, shared, patience)? {
            let seconds = patience.timeout_s();
            let why = format!(
                "no QUIC handshake within {seconds} s (--timeout): perhaps nobody speaks HTTP/3 there"
            );
            return Err(Kind::Late.with(why));
        }
    }
}
