//! A request gets a connection.

use std::io;
use std::sync::Arc;

use rustix::event::epoll::EventFlags;

use super::quic::dial;
use super::{SlotDriver, Timer};
use crate::clock::MILLISECOND_NS;
use crate::engine::exchange::Sending;
use crate::engine::flight::Flight;
use crate::engine::http2::connection::Http2Connection;
use crate::engine::limits;
use crate::engine::pool::{ConnId, Role, State, is_hangup};
use crate::engine::reasons;
use crate::engine::schedule::PlannedRequest;
use crate::engine::secure::Secure;
use crate::engine::shared::SharedConnection;
use crate::engine::upgrade::Upgrade;
use crate::engine::wire::{Options, SMALL_WINDOW_BYTES, Wire};
use crate::order::Protocol;
use crate::record::{Failure, Fewest};
use crate::target::Address;
use crate::tls;

/// An idle connection asks once, the first request: the first origin is that one's, and a server
/// may accept only connections that have asked (`TCP_DEFER_ACCEPT`, tcp(7)).
const IDLE_ASKS: usize = 0;
const MET_ITSELF: &str = "nobody listens there, and the kernel gave us the same port";
/// Rests between failed connections double up to about 100 ms.
const MOST_DOUBLINGS: u32 = 7;

/// A Unix socket's queue is full: there is no event for room in it (connect(2)).
fn is_full(address: &Address, error: &io::Error) -> bool {
    matches!(address, Address::Unix(..)) && error.kind() == io::ErrorKind::WouldBlock
}

impl SlotDriver<'_> {
    /// Connects, after a while if that failed before, so that a server that closes at once isn't
    /// hammered.
    pub(super) fn reopen(&mut self, id: ConnId) {
        let conn = &mut self.conns.pool[id];
        if conn.rests_until_ns <= self.clock.now_ns {
            return self.connect(id);
        }
        conn.state = State::Resting;
        let until_ns = conn.rests_until_ns;
        self.set_timer(until_ns, Timer::Connect(id));
    }

    /// A connection was of no use: the next one is opened later, and later again after that.
    pub(super) fn back_off(&mut self, id: ConnId) {
        let conn = &mut self.conns.pool[id];
        let doublings = conn.failures_in_a_row.min(MOST_DOUBLINGS);
        conn.failures_in_a_row += 1;
        let rest_ns = (MILLISECOND_NS << doublings).min(100 * MILLISECOND_NS);
        conn.rests_until_ns = self.clock.now_ns + rest_ns;
    }

    pub(super) fn connect(&mut self, id: ConnId) {
        let began_ns = self.clock.read();
        let sources = &self.plan.sources;
        let conn = &mut self.conns.pool[id];
        let origin = &self.plan.origins[conn.origin];
        let number = self.conns.first + conn.number;
        let address =
            &origin.addresses[*conn.address.get_or_insert_with(|| origin.turn_of(number))];
        let in_turn =
            (0..sources.len()).map(|nth| sources[(self.conns.connects + nth) % sources.len()]);
        let source = in_turn.into_iter().find(|source| limits::suits(source, address));
        self.conns.connects += 1;
        if !std::mem::take(&mut conn.queues) {
            conn.began_ns = began_ns;
        }
        if conn.role == Role::Idle {
            let planned = PlannedRequest::undue(IDLE_ASKS);
            conn.flight = Some(Flight::new(conn.number, planned, began_ns));
        }
        let waiting = conn.shared.iter_mut().flat_map(|shared| &mut shared.waiting);
        for flight in waiting.chain(&mut conn.flight) {
            self.records.record_send_delay(flight, began_ns);
        }
        if let Some(dialer) = &self.conns.dialers[conn.origin] {
            let opened = dial(dialer, origin, address, source, self.plan.streams);
            return self.begin_quic(id, opened);
        }
        let options = Options {
            source,
            window_bytes: (conn.role == Role::Slow).then_some(SMALL_WINDOW_BYTES),
            no_delay: self.plan.no_delay,
            stamped: origin.stamped,
        };
        match Wire::open(address, options) {
            Err(error) if is_full(address, &error) => self.queue(id),
            Err(error) => self.unreached(id, &error),
            Ok((wire, connected)) => {
                conn.wire = Some(wire);
                conn.state = State::Connecting;
                match origin.tls.is_none() && origin.protocol == Protocol::Http1 {
                    true => self.send_at_once(id, connected),
                    false => self.watch(id, true),
                }
            }
        }
    }

    /// The server hasn't accepted what came before: the same is tried again, until the timeout.
    fn queue(&mut self, id: ConnId) {
        let conn = &mut self.conns.pool[id];
        if self.clock.now_ns - conn.began_ns >= self.plan.timeout_ns {
            let seconds = self.plan.order.load.timeout_s;
            return self.not_connected(id, &format!("its queue was full for {seconds} s"));
        }
        (conn.state, conn.queues) = (State::Resting, true);
        self.set_timer(self.clock.now_ns + MILLISECOND_NS, Timer::Connect(id));
    }

    /// On loopback a connection is mostly there at once, so sending is tried without waiting for
    /// the event: that saves one wake-up per connection.
    fn send_at_once(&mut self, id: ConnId, connected: bool) {
        if self.conns.pool[id].flight.is_none() && !connected {
            return self.watch(id, true);
        }
        self.prepare(id);
        let sent_ns = self.clock.read();
        match self.write(id) {
            Sending::Nothing if !connected => self.watch(id, true),
            Sending::Broken(error) => self.unreached(id, &error),
            _ if self.met_itself(id) => self.not_connected(id, MET_ITSELF),
            outcome => {
                self.conns.pool[id].connected_ns = sent_ns;
                self.established(id);
                self.sent(id, sent_ns);
                self.watch(id, !matches!(outcome, Sending::All));
            }
        }
    }

    fn met_itself(&self, id: ConnId) -> bool {
        let conn = &self.conns.pool[id];
        let tried = conn.address.unwrap_or(0);
        let port = match &self.plan.origins[conn.origin].addresses[tried] {
            Address::Tcp(address) => address.port(),
            Address::Unix(..) => return false,
        };
        self.plan.local_ports.as_ref().is_some_and(|ports| ports.contains(&port))
            && conn.wire.as_ref().is_some_and(Wire::has_met_itself)
    }

    fn watch(&mut self, id: ConnId, room: bool) {
        self.keep_polling(id);
        let key = self.conns.pool.key(id);
        let conn = &mut self.conns.pool[id];
        conn.watches_room = room;
        let Some(wire) = &conn.wire else { return };
        if let Err(error) = self.poll.watch(wire, key, room) {
            self.no_connection(id, &format!("cannot watch the socket: {error}"));
        }
    }

    pub(super) fn on_connected(&mut self, id: ConnId, seen_ns: u64) {
        let conn = &mut self.conns.pool[id];
        let Some(wire) = &mut conn.wire else { return };
        if let Err(error) = wire.connected() {
            return self.unreached(id, &error);
        }
        if self.met_itself(id) {
            return self.not_connected(id, MET_ITSELF);
        }
        let conn = &mut self.conns.pool[id];
        let Some(wire) = &mut conn.wire else { return };
        conn.connected_ns = seen_ns;
        let tls =
            self.plan.origins[conn.origin].tls.as_ref().zip(self.conns.tls[conn.origin].as_ref());
        if let Some(((name, _), config)) = tls {
            match Secure::new(Arc::clone(config), name.clone()) {
                Ok(tls) => wire.secure(tls),
                Err(error) => return self.no_connection(id, &format!("TLS: {error}")),
            }
        }
        conn.state = State::Opening;
        self.go_on_opening(id, EventFlags::empty());
    }

    /// TLS is agreed upon, then HTTP/2 begun, or a WebSocket opened.
    pub(super) fn go_on_opening(&mut self, id: ConnId, flags: EventFlags) {
        let conn = &mut self.conns.pool[id];
        if conn.exchange.response.messages.is_some() {
            return self.await_pong(id);
        }
        if conn.http3_connection().is_some() {
            return self.go_on_with_quic(id);
        }
        if conn.upgrade.is_some() {
            return self.go_on_switching(id);
        }
        let origin = &self.plan.origins[conn.origin];
        if let Some(wire) = &mut conn.wire {
            match wire.handshake() {
                Ok(false) => return,
                Ok(true) => {}
                Err(error) => return self.refused(id, reasons::no_tls(origin, &error)),
            }
            if let Some((alpn, resumed)) = wire.agreed() {
                let took_ns = self.clock.read() - conn.connected_ns;
                if origin.protocol == Protocol::Http2 && alpn != Some(tls::ALPN_HTTP2) {
                    return self.refused(id, reasons::no_alpn(origin));
                }
                conn.handshake = Some((took_ns, resumed));
            }
        }
        if origin.handshake.is_some() {
            return self.go_on_switching(id);
        }
        let Some(shared) = &mut conn.shared else {
            self.established(id);
            return self.send(id);
        };
        if let Some(wire) = conn.wire.take() {
            shared.connection = Some(SharedConnection::Http2(Http2Connection::begin(wire)));
        }
        let Some(connection) = &mut shared.connection else { return };
        connection.arrived(is_hangup(flags));
        let more = connection.move_frames();
        if !connection.is_usable() {
            let end = shared.connection.take().and_then(SharedConnection::into_end);
            return self.refused(id, reasons::no_http2(origin, end));
        }
        if connection.allowed() > 0 {
            // Without a limit it is the largest number there is.
            let allowed = u32::try_from(connection.allowed()).unwrap_or(u32::MAX);
            self.records.load.counts.streams.allowed += Fewest(Some(allowed));
            conn.state = State::Idle;
            self.established(id);
            self.send(id);
        }
        if more {
            self.handle_again(id, flags);
        }
    }

    /// A WebSocket is opened.
    fn go_on_switching(&mut self, id: ConnId) {
        let now_ns = self.clock.read();
        let conn = &mut self.conns.pool[id];
        let origin = &self.plan.origins[conn.origin];
        let (Some(head), Some(wire)) = (&origin.handshake, &mut conn.wire) else { return };
        let upgrade = conn.upgrade.get_or_insert_with(|| Box::new(Upgrade::new(head, now_ns)));
        match upgrade.go_on(wire, &mut conn.exchange.response, self.scratch) {
            Ok(false) => {}
            Ok(true) => {
                let took_ns = self.clock.read() - upgrade.began_ns;
                let role = conn.role;
                conn.upgrade = None;
                self.records.of(role).times.upgrade.record(took_ns);
                match self.broadcast {
                    Some(_) => self.ping(id),
                    None => self.opened(id),
                }
            }
            Err(refusal) => self.refused(id, refusal),
        }
    }

    /// A connection is ready, and what waits for it leaves.
    pub(super) fn opened(&mut self, id: ConnId) {
        self.established(id);
        self.send(id);
    }

    /// A connection is ready for requests.
    pub(super) fn established(&mut self, id: ConnId) {
        let conn = &mut self.conns.pool[id];
        conn.failed_addresses = 0;
        let (connect_ns, role) = (conn.connected_ns - conn.began_ns, conn.role);
        let handshake = conn.handshake.take();
        let recorder = self.records.of(role);
        recorder.counts.seen.connections.opened += 1;
        recorder.times.connect.record(connect_ns);
        if let Some((took_ns, resumed)) = handshake {
            recorder.times.handshake.record(took_ns);
            recorder.counts.handshakes.resumed += u64::from(resumed);
            recorder.counts.handshakes.full += u64::from(!resumed);
        }
        self.conns.reached = true;
        if role != Role::Idle {
            self.conns.unreachable_since_ns = None;
        }
    }

    /// Connecting failed, by the error of the system.
    pub(super) fn unreached(&mut self, id: ConnId, error: &io::Error) {
        let recorder = self.records.of(self.conns.pool[id].role);
        recorder.counts.seen.connections.without_port += u64::from(reasons::is_without_port(error));
        self.not_connected(id, &reasons::not_connected(error));
    }

    /// An address could not be connected to: the next one is tried.
    pub(super) fn not_connected(&mut self, id: ConnId, why: &str) {
        let conn = &mut self.conns.pool[id];
        let addresses = self.plan.origins[conn.origin].addresses.len();
        conn.address = conn.address.map(|tried| (tried + 1) % addresses);
        conn.failed_addresses += 1;
        if conn.failed_addresses < addresses {
            conn.close();
            return self.connect(id);
        }
        conn.failed_addresses = 0;
        self.no_connection(id, why);
    }

    /// The server would not have it; where that is for good, the slot is without hope.
    pub(super) fn refused(&mut self, id: ConnId, (why, for_good): (String, bool)) {
        self.conns.hopeless |= for_good && !self.conns.reached;
        self.no_connection(id, &why);
    }

    pub(super) fn no_connection(&mut self, id: ConnId, why: &str) {
        let conn = &mut self.conns.pool[id];
        let text = format!("connect to {}: {why}", self.plan.origins[conn.origin]);
        conn.close();
        let role = conn.role;
        self.back_off(id);
        // A user goes on with the others of several targets, and asks nothing again when all is over.
        let gives_up =
            role != Role::Idle && (self.lanes.draining || self.conns.by_origin.len() > 1);
        let given_up = self.conns.pool[id].take_waiting(|_| gives_up);
        if role != Role::Idle {
            self.conns.unreachable_since_ns.get_or_insert(self.clock.now_ns);
        }
        if given_up.is_empty() {
            let recorder = self.records.of(role);
            recorder.counts.seen.failures.count(Failure::Connect);
            recorder.counts.seen.failure_samples.keep(text);
            if !self.lanes.draining {
                self.reopen(id);
            }
            return;
        }
        for flight in given_up {
            self.failed(id, &flight, reasons::unsent(&flight), &text);
            match self.lanes.draining {
                true => self.lanes.drain_one(),
                false => self.set_timer(self.clock.now_ns, Timer::Free(flight.lane)),
            }
        }
    }
}
