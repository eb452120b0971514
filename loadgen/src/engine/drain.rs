//! After the window: answers in flight are awaited, so that connections stay usable and no work
//! is left over in the server.

use rustix::event::epoll::Event;

use super::clock::now_ns;
use super::conn::{Role, State};
use super::reactor::ConnId;
use super::slot::Slot;

impl Slot<'_> {
    pub fn drain(&mut self, end_ns: u64, events: &mut Vec<Event>) {
        self.settle(end_ns);
        // Events of the window's last wait, not handled yet.
        self.handle(events);
        let until_ns = now_ns() + self.plan.timeout_ns;
        while self.in_flight > 0 && self.now_ns < until_ns {
            self.turn(until_ns, events);
            self.handle(events);
        }
        self.close_unfinished();
    }

    /// Everything in flight is unanswered; what was not sent is counted, if it was due.
    fn settle(&mut self, end_ns: u64) {
        self.draining = true;
        self.timers.clear();
        let mut unsent = Vec::from_iter(self.held.take());
        for id in self.conns.iter().flatten() {
            let conn = &mut self.reactor.conns[*id];
            match (conn.role, conn.state) {
                (Role::Slow, _) => {
                    self.beside.slow.unanswered += u64::from(conn.state == State::Busy);
                    conn.ask = None;
                    conn.close();
                }
                (_, State::Busy) => {
                    self.in_flight += 1;
                    if let Some(due_ns) = conn.ask.and_then(|ask| ask.due_ns) {
                        self.recorder.waited.record(end_ns.saturating_sub(due_ns));
                    }
                }
                (_, State::Resting) => {
                    unsent.extend(conn.ask.take());
                    conn.state = State::Closed;
                }
                (_, State::Closed | State::Connecting | State::Idle) => {
                    unsent.extend(conn.ask.take());
                }
            }
        }
        self.recorder.unanswered = self.in_flight as u64;
        let busy = |id: &&ConnId| self.reactor.conns[**id].state == State::Busy;
        self.beside.idle.unanswered = self.idle_conns.iter().filter(busy).count() as u64;
        for due_ns in unsent.into_iter().filter_map(|ask| ask.due_ns) {
            if due_ns < end_ns {
                self.recorder.unsent += 1;
                self.recorder.waited.record(end_ns - due_ns);
            }
        }
    }

    fn close_unfinished(&mut self) {
        for id in self.conns.iter().flatten().chain(&self.idle_conns) {
            let conn = &mut self.reactor.conns[*id];
            if matches!(conn.state, State::Busy | State::Connecting | State::Resting) {
                conn.ask = None;
                conn.close();
            }
        }
    }
}
