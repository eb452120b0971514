//! Sending requests.

use sha2::{Digest, Sha256};

use super::clock::now_ns;
use super::conn::{Role, Sending, State};
use super::reactor::ConnId;
use super::slot::Slot;
use crate::check::CHECKSUM_EVERY;

impl Slot<'_> {
    /// Sends a connection's request, if it has one, over its open socket.
    pub fn send(&mut self, id: ConnId) {
        if self.reactor.conns[id].ask.is_none() {
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
                self.count_server_closed(id);
                let conn = &mut self.reactor.conns[id];
                conn.close();
                conn.strikes += 1;
                self.rest(id);
            }
        }
    }

    /// Makes a connection ready for the request it is to send.
    pub fn prepare(&mut self, id: ConnId) {
        let conn = &mut self.reactor.conns[id];
        let Some(ask) = conn.ask else { return };
        let request = &self.plan.requests[ask.request];
        let memory = &mut self.memory[ask.request];
        conn.written = 0;
        conn.first_byte_ns = 0;
        let idle = conn.role == Role::Idle;
        conn.last = !idle && conn.requests + 1 >= self.plan.requests_per_connection;
        let cookies = self.plan.order.load.cookies;
        conn.response.reset(request.is_head, cookies);
        if cookies {
            conn.render_cookies(request);
        }
        if request.expectation.wants_checksum() {
            let wanted = memory.asked.is_multiple_of(CHECKSUM_EVERY);
            conn.hash = wanted.then(|| Box::new(Sha256::new()));
            // Which of the load's answers are checksummed is not for idle connections to change.
            memory.asked = memory.asked.wrapping_add(u32::from(!idle));
        }
    }

    pub fn write(&mut self, id: ConnId) -> Sending {
        let conn = &mut self.reactor.conns[id];
        match conn.ask {
            Some(ask) => conn.send(&self.plan.requests[ask.request]),
            None => Sending::All,
        }
    }

    pub fn count_sent(&mut self, id: ConnId, sent_ns: u64) {
        let conn = &mut self.reactor.conns[id];
        if conn.ask.is_none() {
            conn.state = State::Idle;
            return;
        }
        conn.state = State::Busy;
        conn.since_ns = sent_ns;
        let reused = conn.requests > 0;
        conn.requests += 1;
        let book = self.book(id);
        book.sent += 1;
        book.reused += u64::from(reused);
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
}
