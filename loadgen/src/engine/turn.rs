//! One turn of a slot: wait, handle events, then what the clock says.

use std::cmp::Reverse;

use rustix::event::epoll::{Event, EventFlags};

use super::clock::now_ns;
use super::conn::{Role, State};
use super::reactor::{ConnId, Happened};
use super::slot::Slot;

/// What is to be done at a given time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Timer {
    /// A lane begins, or its pause is over.
    Free(usize),
    /// Try to connect.
    Connect(ConnId),
    /// A slow reader reads on.
    Read(ConnId),
}

const MILLISECOND_NS: u64 = 1_000_000;
/// Answers must not wait until thousands of connections are opened, each of which can take
/// milliseconds when the kernel has to search for a free port.
const TIMERS_PER_TURN: usize = 64;
const TIMERS_WITHIN_NS: u64 = MILLISECOND_NS;
/// Far from the end of the kernel's arithmetic.
const LONGEST_WAIT_NS: u64 = 3_600_000_000_000;

impl Slot<'_> {
    pub fn at(&mut self, at_ns: u64, timer: Timer) {
        self.timers.push(Reverse((at_ns, timer)));
    }

    /// Waits for events until `until_ns` or whatever is to be done before.
    pub fn turn(&mut self, until_ns: u64, events: &mut Vec<Event>) {
        let timer_ns = self.timers.peek().map_or(u64::MAX, |Reverse((at, _))| *at);
        let due_ns = self.held.and_then(|ask| ask.due_ns).unwrap_or(u64::MAX);
        let wake_ns = until_ns.min(self.check_timeouts_ns).min(timer_ns).min(due_ns);
        if due_ns != u64::MAX {
            self.now_ns = now_ns();
        }
        let timeout_ns = wake_ns.saturating_sub(self.now_ns).min(LONGEST_WAIT_NS);
        self.reactor.wait(events, timeout_ns);
        self.now_ns = now_ns();
    }

    pub fn handle(&mut self, events: &mut Vec<Event>) {
        // An answer that one read brings was there when the wait ended.
        let seen_ns = self.now_ns;
        for event in events.drain(..) {
            if let Some(happened) = self.reactor.happened(&event) {
                self.on_event(happened, seen_ns);
            }
            self.send_due();
        }
        self.run_timers();
        self.send_due();
        if self.now_ns >= self.check_timeouts_ns {
            self.check_timeouts();
        }
    }

    fn run_timers(&mut self) {
        let due_ns = self.now_ns;
        let mut end_ns = u64::MAX;
        for _ in 0..TIMERS_PER_TURN {
            let Some(Reverse((at_ns, timer))) = self.timers.peek().copied() else { return };
            if at_ns > due_ns || self.now_ns > end_ns {
                return;
            }
            self.timers.pop();
            self.on_timer(timer);
            self.send_due();
            // Connecting and sending tell the time.
            end_ns = end_ns.min(self.now_ns + TIMERS_WITHIN_NS);
        }
    }

    /// Open loop: what is due must not wait until all events are handled.
    fn send_due(&mut self) {
        if self.held.is_some() {
            self.now_ns = now_ns();
            self.dispatch();
        }
    }

    fn on_event(&mut self, happened: Happened, seen_ns: u64) {
        let id = happened.id;
        match self.reactor.conns[id].state {
            State::Connecting => self.on_connected(id, seen_ns),
            State::Busy => {
                if happened.flags.contains(EventFlags::OUT) {
                    self.go_on_sending(id);
                }
                self.on_readable(happened, seen_ns);
            }
            // Nobody asked for what came, or the server closed: this connection is of no use.
            State::Idle => {
                if !happened.flags.difference(EventFlags::OUT).is_empty() {
                    self.lost_idle(id);
                }
            }
            State::Closed | State::Resting => {}
        }
    }

    fn on_timer(&mut self, timer: Timer) {
        match timer {
            Timer::Connect(id) => {
                if matches!(self.reactor.conns[id].state, State::Resting | State::Closed) {
                    self.connect(id);
                }
            }
            Timer::Free(lane) => self.free(lane, self.now_ns),
            Timer::Read(id) => {
                let conn = &mut self.reactor.conns[id];
                conn.paused = false;
                if conn.state == State::Busy {
                    let happened = Happened { id, flags: EventFlags::IN };
                    self.on_readable(happened, self.now_ns);
                }
            }
        }
    }

    /// Ends requests and connects older than the timeout, and finds when the next one can be.
    fn check_timeouts(&mut self) {
        let now = self.now_ns;
        let mut oldest = now;
        let mut late = Vec::new();
        for id in self.conns.iter().flatten().chain(&self.idle_conns) {
            match self.waits_since_ns(*id) {
                Some(since) if now.saturating_sub(since) >= self.plan.timeout_ns => late.push(*id),
                Some(since) => oldest = oldest.min(since),
                None => {}
            }
        }
        // Looking at every connection more often than once a millisecond would be load itself.
        self.check_timeouts_ns = (oldest + self.plan.timeout_ns).max(now + MILLISECOND_NS);
        for id in late {
            self.read_late(id);
            let waits = self.waits_since_ns(id);
            if waits.is_some_and(|since| now.saturating_sub(since) >= self.plan.timeout_ns) {
                self.timed_out(id);
            }
        }
    }

    /// Since when a connection waits for the server, if it does.
    fn waits_since_ns(&self, id: ConnId) -> Option<u64> {
        let conn = &self.reactor.conns[id];
        match conn.state {
            State::Connecting => Some(conn.since_ns),
            // Slow readers wait on purpose.
            State::Busy => (conn.role != Role::Slow).then_some(conn.since_ns),
            State::Closed | State::Resting | State::Idle => None,
        }
    }

    /// Reads what came while this thread was busy with other connections: that is no timeout.
    fn read_late(&mut self, id: ConnId) {
        if self.reactor.conns[id].state == State::Busy {
            self.on_readable(Happened { id, flags: EventFlags::IN }, now_ns());
        }
    }
}
