//! HTTP/3: a connection is begun over UDP, and looked after when QUIC wants to do something though
//! nothing came: to acknowledge, or to send again what was lost.

use std::cmp::Reverse;
use std::io;
use std::net::IpAddr;

use rustix::event::epoll::EventFlags;

use super::answering::READS_AT_ONCE;
use super::{SlotDriver, Timer};
use crate::engine::http3::connection::Http3Connection;
use crate::engine::http3::dialer::Dialer;
use crate::engine::plan::Origin;
use crate::engine::pool::{ConnId, State};
use crate::engine::reasons;
use crate::engine::shared::SharedConnection;
use crate::http3::trouble::Lost;
use crate::record::Fewest;
use crate::target::Address;

/// Begins a connection for so many requests at a time.
pub(super) fn dial(
    dialer: &Dialer,
    origin: &Origin,
    address: &Address,
    source: Option<IpAddr>,
    streams: usize,
) -> io::Result<Http3Connection> {
    let (Address::Tcp(address), Some((name, _))) = (address, &origin.tls) else {
        return Err(io::ErrorKind::Unsupported.into());
    };
    Http3Connection::open(dialer, *address, source, name, streams)
}

impl SlotDriver<'_> {
    pub(super) fn begin_quic(&mut self, id: ConnId, opened: io::Result<Http3Connection>) {
        let connection = match opened {
            Ok(connection) => connection,
            Err(error) => return self.unreached(id, &error),
        };
        let key = self.conns.pool.key(id);
        if let Err(error) = self.poll.watch(&connection, key, false) {
            return self.no_connection(id, &format!("cannot watch the socket: {error}"));
        }
        let conn = &mut self.conns.pool[id];
        conn.state = State::Opening;
        if let Some(shared) = &mut conn.shared {
            shared.connection = Some(SharedConnection::Http3(Box::new(connection)));
        }
        self.go_on_with_quic(id);
    }

    /// The handshake goes on.
    pub(super) fn go_on_with_quic(&mut self, id: ConnId) {
        let conn = &mut self.conns.pool[id];
        let (origin, began_ns) = (&self.plan.origins[conn.origin], conn.began_ns);
        let Some(connection) = conn.http3_connection() else { return };
        connection.arrived();
        let mut goes_on = true;
        for _ in 0..READS_AT_ONCE {
            goes_on = connection.move_frames() || connection.is_dirty();
            if !goes_on {
                break;
            }
        }
        if let Some((lost, distrust)) = connection.take_lost() {
            return match lost {
                Lost::Broken(error) => self.unreached(id, &reasons::nobody_at_udp(&error)),
                lost => self.refused(id, reasons::no_http3(origin, &lost, distrust)),
            };
        }
        if !connection.is_usable() {
            return self.refused(id, ("closed before HTTP/3 had begun".into(), false));
        }
        if !connection.is_open() {
            if goes_on {
                self.handle_again(id, EventFlags::IN);
            }
            return self.look_after(id);
        }
        let (resumed, allowed) = (connection.was_resumed(), connection.allowed());
        if allowed < self.plan.streams {
            let allowed = u32::try_from(allowed).unwrap_or(u32::MAX);
            self.records.load.counts.streams.allowed += Fewest(Some(allowed));
        }
        // To connect and to agree on TLS is one (RFC 9001 section 4).
        let ready_ns = self.clock.read();
        conn.connected_ns = ready_ns;
        conn.handshake = Some((ready_ns - began_ns, resumed));
        conn.state = State::Idle;
        self.established(id);
        self.look_after(id);
        self.send(id);
        if goes_on {
            self.handle_again(id, EventFlags::IN);
        }
    }

    /// Has a look at a connection when QUIC wants to do something.
    pub(super) fn look_after(&mut self, id: ConnId) {
        let conn = &mut self.conns.pool[id];
        let watches_room = conn.watches_room;
        let Some(connection) = conn.http3_connection() else { return };
        // What is arranged already comes earlier, and then it is looked at again.
        let next_ns = connection.next_ns();
        if next_ns < connection.looked_after_ns {
            connection.looked_after_ns = next_ns;
            self.timers.push(Reverse((next_ns, Timer::Quic(id))));
        }
        if connection.is_stuck() && !watches_room {
            conn.watches_room = true;
            self.watch_room_of_quic(id);
        }
    }

    fn watch_room_of_quic(&mut self, id: ConnId) {
        let key = self.conns.pool.key(id);
        if let Some(connection) = self.conns.pool[id].http3_connection() {
            // It is watched already, so this takes no memory of the kernel's that could lack.
            let _ = self.poll.watch_room(&*connection, key);
        }
    }

    pub(super) fn on_time_of_quic(&mut self, id: ConnId, at_ns: u64) {
        let (now_ns, conn) = (self.clock.now_ns, &mut self.conns.pool[id]);
        let state = conn.state;
        let Some(connection) = conn.http3_connection() else { return };
        // Another one was arranged since, for an earlier time or for another connection: each would
        // arrange the next one, and they would be more and more.
        if at_ns != connection.looked_after_ns {
            return;
        }
        connection.looked_after_ns = u64::MAX;
        match connection.next_ns() <= now_ns {
            false => self.look_after(id),
            true if state == State::Opening => self.go_on_opening(id, EventFlags::empty()),
            true => self.move_frames(id, now_ns),
        }
    }
}
