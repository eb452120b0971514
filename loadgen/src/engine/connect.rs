//! Getting connections, and losing them.

use rustix::io::Errno;
use rustix::net::sockopt;

use super::clock::now_ns;
use super::conn::{Role, Sending, State};
use super::reactor::ConnId;
use super::slot::Slot;
use super::socket;
use super::turn::Timer;
use crate::record::{Beside, Failure, Recorder};
use crate::schedule::Ask;

/// An idle connection asks once, the first request: the first target is that one's, and a server
/// may accept only connections that have asked (`TCP_DEFER_ACCEPT`, tcp(7)).
const IDLE_ASKS: usize = 0;
const MILLISECOND_NS: u64 = 1_000_000;
/// Rests between failed connections double up to about 100 ms.
const MOST_DOUBLINGS: u32 = 7;

/// How long to rest after so many failures in a row.
pub fn rest_ns(strikes: u32) -> u64 {
    let doublings = strikes.saturating_sub(1).min(MOST_DOUBLINGS);
    (MILLISECOND_NS << doublings).min(100 * MILLISECOND_NS)
}

/// Where requests over connections of a role are recorded.
pub fn book_of<'a>(role: Role, load: &'a mut Recorder, beside: &'a mut Beside) -> &'a mut Recorder {
    match role {
        Role::Load => load,
        Role::Slow => &mut beside.slow,
        Role::Idle => &mut beside.idle,
    }
}

impl Slot<'_> {
    /// Where a connection's requests are recorded.
    pub fn book(&mut self, id: ConnId) -> &mut Recorder {
        book_of(self.reactor.conns[id].role, &mut self.recorder, &mut self.beside)
    }

    /// Waits a while before connecting again, so that a server that closes at once isn't hammered.
    pub fn rest(&mut self, id: ConnId) {
        let conn = &mut self.reactor.conns[id];
        conn.state = State::Resting;
        let rest_ns = rest_ns(conn.strikes);
        self.at(self.now_ns + rest_ns, Timer::Connect(id));
    }

    pub fn connect(&mut self, id: ConnId) {
        self.now_ns = now_ns();
        let sources = &self.plan.sources;
        let source = (!sources.is_empty()).then(|| sources[self.connects % sources.len()]);
        self.connects += 1;
        let conn = &mut self.reactor.conns[id];
        conn.since_ns = self.now_ns;
        if conn.role == Role::Idle {
            conn.ask = Some(Ask { request: IDLE_ASKS, due_ns: None, ready_ns: self.now_ns });
        }
        let options = socket::Options {
            source,
            window_bytes: (conn.role == Role::Slow).then_some(socket::SMALL_WINDOW_BYTES),
            no_delay: self.plan.no_delay,
        };
        match socket::open(&self.plan.targets[conn.target], options) {
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
        let conn = &self.reactor.conns[id];
        let began_ns = conn.since_ns;
        if conn.ask.is_none() && !connected {
            return self.watch(id, true);
        }
        self.prepare(id);
        let sent_ns = now_ns();
        match self.write(id) {
            Sending::Nothing if !connected => self.watch(id, true),
            Sending::Broken(error) => self.connect_failed(id, &error.to_string()),
            outcome => {
                self.established(id, began_ns, sent_ns);
                self.count_sent(id, sent_ns);
                self.watch(id, outcome != Sending::All);
            }
        }
    }

    pub fn on_connected(&mut self, id: ConnId, seen_ns: u64) {
        let conn = &self.reactor.conns[id];
        let began_ns = conn.since_ns;
        let outcome = conn.fd.as_ref().map_or(Ok(Ok(())), sockopt::socket_error);
        match outcome.and_then(|pending| pending) {
            Err(error) => self.connect_failed(id, &error.to_string()),
            Ok(()) => {
                self.established(id, began_ns, seen_ns);
                self.send(id);
            }
        }
    }

    fn established(&mut self, id: ConnId, began_ns: u64, done_ns: u64) {
        let book = self.book(id);
        book.opened += 1;
        book.connect.record(done_ns.saturating_sub(began_ns));
        if self.reactor.conns[id].role != Role::Idle {
            self.unreachable_since_ns = None;
        }
    }

    pub fn connect_failed(&mut self, id: ConnId, why: &str) {
        if !self.draining {
            let address = &self.plan.targets[self.reactor.conns[id].target];
            let text = format!("connect to {address}: {why}");
            let book = self.book(id);
            book.fail(Failure::Connect);
            book.samples.keep(text);
        }
        let conn = &mut self.reactor.conns[id];
        if conn.role != Role::Idle {
            self.unreachable_since_ns.get_or_insert(self.now_ns);
        }
        conn.close();
        conn.strikes += 1;
        self.rest(id);
    }

    /// Counts a connection that the server closed though we wanted to use it again.
    pub fn count_server_closed(&mut self, id: ConnId) {
        if !self.reactor.conns[id].last && !self.draining {
            self.book(id).server_closed += 1;
        }
    }

    fn watch(&mut self, id: ConnId, room: bool) {
        if let Err(error) = self.reactor.watch(id, room) {
            self.unwatchable(id, error);
        }
    }

    pub fn watch_room(&mut self, id: ConnId) {
        if let Err(error) = self.reactor.watch_room(id) {
            self.unwatchable(id, error);
        }
    }

    /// The kernel has no memory to watch this socket: without events only the timeout ends it.
    fn unwatchable(&mut self, id: ConnId, error: Errno) {
        let address = &self.plan.targets[self.reactor.conns[id].target];
        let text = format!("cannot watch a socket to {address}: {error}");
        self.book(id).samples.keep(text);
    }
}
