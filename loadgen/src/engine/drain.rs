//! After the window: answers in flight are awaited, so that connections stay usable and no work
//! is left over in the server.

use rustix::event::epoll::Event;

use super::clock::now_ns;
use super::conn::State;
use super::slot::Slot;

impl Slot<'_> {
    pub fn drain(&mut self, events: &mut Vec<Event>) {
        // Events of the window's last wait, not handled yet.
        self.draining = true;
        self.resting.clear();
        self.settle();
        self.handle(events);
        let until_ns = now_ns() + self.plan.timeout_ns;
        while self.in_flight > 0 && self.now_ns < until_ns {
            self.turn(until_ns, events);
            self.handle(events);
        }
        self.close_unfinished();
    }

    /// Everything in flight is unanswered; what was not sent is forgotten.
    fn settle(&mut self) {
        for id in self.conns.iter().flatten() {
            let conn = &mut self.reactor.conns[*id];
            match conn.state {
                State::Busy => self.in_flight += 1,
                State::Resting => conn.state = State::Closed,
                State::Closed | State::Connecting | State::Idle => {}
            }
            if conn.state != State::Busy {
                conn.ask = None;
            }
        }
        self.recorder.unanswered = self.in_flight as u64;
    }

    fn close_unfinished(&mut self) {
        for id in self.conns.iter().flatten() {
            let conn = &mut self.reactor.conns[*id];
            if matches!(conn.state, State::Busy | State::Connecting | State::Resting) {
                conn.ask = None;
                conn.close();
            }
        }
    }
}
