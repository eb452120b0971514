//! Lanes: the users of a slot. A free one takes what is to be asked next, gets a connection for it
//! and sends.

use std::cmp::Reverse;

use rustix::io::Errno;
use rustix::net::sockopt;
use sha2::{Digest, Sha256};

use super::clock::now_ns;
use super::conn::{Sending, State};
use super::reactor::ConnId;
use super::slot::Slot;
use super::socket;
use crate::check::CHECKSUM_EVERY;
use crate::record::Failure;
use crate::schedule::{Ask, Next};

const MILLISECOND_NS: u64 = 1_000_000;
/// Rests between failed connections double up to about 100 ms.
const MOST_DOUBLINGS: u32 = 7;

impl Slot<'_> {
    /// A lane has nothing in flight: it takes the next request, if there is one.
    pub fn free(&mut self, lane: usize) {
        if self.draining {
            self.in_flight -= 1;
            return;
        }
        match self.next() {
            Next::Now(ask) => self.start(lane, ask),
            Next::Exhausted => self.active -= 1,
        }
    }

    fn next(&mut self) -> Next {
        if self.share.take_one() {
            Next::Now(Ask { request: self.choice.pick(), due_ns: None })
        } else {
            Next::Exhausted
        }
    }

    fn start(&mut self, lane: usize, ask: Ask) {
        let id = self.conns[self.plan.requests[ask.request].target][lane];
        let conn = &mut self.reactor.conns[id];
        conn.ask = Some(ask);
        match conn.state {
            State::Idle => self.send(id),
            State::Closed if conn.strikes > 0 => self.rest(id),
            State::Closed => self.connect(id),
            // A connection another request of this lane left behind; it sends when it is ready.
            State::Connecting | State::Resting | State::Busy => {}
        }
    }

    /// Waits a while before connecting again, so that a server that closes at once isn't hammered.
    fn rest(&mut self, id: ConnId) {
        let conn = &mut self.reactor.conns[id];
        conn.state = State::Resting;
        let doublings = conn.strikes.saturating_sub(1).min(MOST_DOUBLINGS);
        let rest_ns = (MILLISECOND_NS << doublings).min(100 * MILLISECOND_NS);
        self.resting.push(Reverse((self.now_ns + rest_ns, id)));
    }

    pub fn connect(&mut self, id: ConnId) {
        self.now_ns = now_ns();
        let conn = &mut self.reactor.conns[id];
        conn.since_ns = self.now_ns;
        match socket::open(&self.plan.targets[conn.target]) {
            Err(error) => self.connect_failed(id, &error.to_string()),
            Ok(opened) => {
                conn.fd = Some(opened.fd);
                conn.state = State::Connecting;
                self.after_connect(id, opened.connected);
            }
        }
    }

    /// On loopback a connection is mostly there at once, so sending is tried without waiting for
    /// the event: that saves one wake-up per connection.
    fn after_connect(&mut self, id: ConnId, connected: bool) {
        let began_ns = self.reactor.conns[id].since_ns;
        self.prepare(id);
        let sent_ns = now_ns();
        let outcome = self.write(id);
        if outcome == Sending::Nothing && !connected {
            self.watch(id, true);
            return;
        }
        if let Sending::Broken(error) = outcome {
            self.connect_failed(id, &error.to_string());
            return;
        }
        self.established(began_ns, sent_ns);
        self.count_sent(id, sent_ns);
        self.watch(id, outcome != Sending::All);
    }

    pub fn on_connected(&mut self, id: ConnId, seen_ns: u64) {
        let conn = &self.reactor.conns[id];
        let began_ns = conn.since_ns;
        let outcome = conn.fd.as_ref().map_or(Ok(Ok(())), sockopt::socket_error);
        match outcome.and_then(|pending| pending) {
            Err(error) => self.connect_failed(id, &error.to_string()),
            Ok(()) => {
                self.established(began_ns, seen_ns);
                self.send(id);
            }
        }
    }

    fn established(&mut self, began_ns: u64, done_ns: u64) {
        self.recorder.opened += 1;
        self.recorder.connect.record(done_ns.saturating_sub(began_ns));
        self.unreachable_since_ns = None;
    }

    pub fn connect_failed(&mut self, id: ConnId, why: &str) {
        if !self.draining {
            self.recorder.fail(Failure::Connect);
            let address = &self.plan.targets[self.reactor.conns[id].target];
            self.recorder.samples.keep(format!("connect to {address}: {why}"));
        }
        self.unreachable_since_ns.get_or_insert(self.now_ns);
        let conn = &mut self.reactor.conns[id];
        conn.close();
        conn.strikes += 1;
        self.rest(id);
    }

    /// Sends a connection's request over its open socket.
    fn send(&mut self, id: ConnId) {
        if self.draining {
            self.reactor.conns[id].state = State::Idle;
            return;
        }
        self.prepare(id);
        self.now_ns = now_ns();
        let sent_ns = self.now_ns;
        match self.write(id) {
            Sending::All => self.count_sent(id, sent_ns),
            Sending::Some | Sending::Nothing => {
                self.count_sent(id, sent_ns);
                self.watch_room(id);
            }
            // Closed by the server before we wrote: not a sent request; open a new connection.
            Sending::Broken(_) => {
                self.closed_by_server(id);
                let conn = &mut self.reactor.conns[id];
                conn.close();
                conn.strikes += 1;
                self.rest(id);
            }
        }
    }

    /// Makes a connection ready for the request it is to send.
    fn prepare(&mut self, id: ConnId) {
        let conn = &mut self.reactor.conns[id];
        let Some(ask) = conn.ask else { return };
        let request = &self.plan.requests[ask.request];
        let memory = &mut self.memory[ask.request];
        conn.written = 0;
        conn.first_byte_ns = 0;
        conn.response.reset(request.is_head);
        conn.last = conn.requests + 1 >= self.plan.requests_per_connection;
        if request.expectation.wants_checksum() {
            let wanted = memory.asked.is_multiple_of(CHECKSUM_EVERY);
            conn.hash = wanted.then(|| Box::new(Sha256::new()));
            memory.asked = memory.asked.wrapping_add(1);
        }
    }

    fn write(&mut self, id: ConnId) -> Sending {
        let conn = &mut self.reactor.conns[id];
        match conn.ask {
            Some(ask) => conn.send(&self.plan.requests[ask.request]),
            None => Sending::All,
        }
    }

    fn count_sent(&mut self, id: ConnId, sent_ns: u64) {
        let conn = &mut self.reactor.conns[id];
        conn.state = State::Busy;
        conn.since_ns = sent_ns;
        self.recorder.sent += 1;
        self.recorder.reused += u64::from(conn.requests > 0);
        conn.requests += 1;
    }

    pub fn go_on_sending(&mut self, id: ConnId) {
        let conn = &mut self.reactor.conns[id];
        let Some(ask) = conn.ask else { return };
        let request = &self.plan.requests[ask.request];
        if !conn.is_sent(request) {
            // A broken pipe shows when reading, where an early answer may still wait.
            let _ = conn.send(request);
        }
    }

    fn watch(&mut self, id: ConnId, room: bool) {
        if let Err(error) = self.reactor.watch(id, room) {
            self.unwatchable(id, error);
        }
    }

    fn watch_room(&mut self, id: ConnId) {
        if let Err(error) = self.reactor.watch_room(id) {
            self.unwatchable(id, error);
        }
    }

    /// The kernel has no memory to watch this socket: without events only the timeout ends it.
    fn unwatchable(&mut self, id: ConnId, error: Errno) {
        let address = &self.plan.targets[self.reactor.conns[id].target];
        self.recorder.samples.keep(format!("cannot watch a socket to {address}: {error}"));
    }
}
