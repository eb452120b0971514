//! Lanes: the users of a slot. A free one takes what is to be asked next and has it sent.

use super::ahead::pace_ns;
use super::conn::{Role, State};
use super::reactor::ConnId;
use super::slot::{Slot, Supply};
use super::turn::Timer;
use crate::order::{Think, ThinkDistribution, Unit};
use crate::schedule::{Ask, exponential};

impl Slot<'_> {
    /// Sets all lanes in motion.
    pub fn begin(&mut self) {
        let all_lanes = self.conns.first().map_or(0, Vec::len);
        for lane in 0..all_lanes {
            let opened = if self.is_open() { 0 } else { lane };
            self.at(self.start_ns + pace_ns(opened), Timer::Free(lane));
        }
    }

    pub fn is_open(&self) -> bool {
        matches!(self.supply, Supply::Timetable(_))
    }

    /// A lane has nothing in flight since `since_ns`.
    pub fn free(&mut self, lane: usize, since_ns: u64) {
        if lane >= self.lanes {
            let ask = Ask { request: self.slow_choice.pick(), due_ns: None, ready_ns: since_ns };
            return self.start(lane, ask);
        }
        match &mut self.supply {
            Supply::Stock(share) => {
                if share.take_one() {
                    let request = self.choice.pick(None);
                    self.start(lane, Ask { request, due_ns: None, ready_ns: since_ns });
                } else {
                    self.active -= 1;
                }
            }
            Supply::Timetable(_) => {
                if let Some(request) = self.next_of_session(lane) {
                    self.start(lane, Ask { request, due_ns: None, ready_ns: since_ns });
                } else {
                    self.free_lanes.push(lane);
                    self.take(since_ns);
                    self.dispatch();
                }
            }
        }
    }

    /// A connection's request is over: its lane goes on at once, or after a pause; an idle one
    /// rests, or is opened again.
    pub fn finish(&mut self, id: ConnId, done_ns: u64) {
        let conn = &self.reactor.conns[id];
        let lane = conn.lane as usize;
        if conn.role == Role::Idle {
            if conn.state == State::Closed {
                self.reopen_idle(id);
            }
            return;
        }
        if self.draining {
            self.in_flight -= usize::from(lane < self.lanes);
            return;
        }
        match self.plan.order.load.think {
            Some(think) if lane < self.lanes => {
                let pause_ns = self.pause_ns(&think);
                self.at(done_ns + pause_ns, Timer::Free(lane));
            }
            _ => self.free(lane, done_ns),
        }
    }

    fn pause_ns(&mut self, think: &Think) -> u64 {
        let factor = match think.distribution {
            ThinkDistribution::Constant => 1.0,
            ThinkDistribution::Exponential => exponential(&mut self.rng),
        };
        (think.mean_s * factor * 1e9) as u64
    }

    /// Where whole connections are due, the requests of one follow each other.
    fn next_of_session(&mut self, lane: usize) -> Option<usize> {
        let arrivals = self.plan.order.load.arrivals.as_ref()?;
        let goes_on = arrivals.unit == Unit::Connection
            && self.conns.iter().any(|ids| {
                let conn = &self.reactor.conns[ids[lane]];
                conn.state == State::Idle && conn.requests > 0
            });
        goes_on.then(|| self.choice.pick(None))
    }

    /// Takes a place in the timetable for a free lane.
    fn take(&mut self, free_since_ns: u64) {
        let Supply::Timetable(table) = &self.supply else { return };
        if self.held.is_some() || self.free_lanes.is_empty() {
            return;
        }
        match table.take(self.now_ns - self.start_ns) {
            Some(due) => {
                let due_ns = self.start_ns + due.at_ns;
                let request = self.choice.pick(Some(due.number));
                let ready_ns = due_ns.max(free_since_ns);
                self.held = Some(Ask { request, due_ns: Some(due_ns), ready_ns });
            }
            // After the last request every lane ends when it gets free.
            None => {
                self.active -= self.free_lanes.len();
                self.free_lanes.clear();
            }
        }
    }

    /// Sends what is due, as long as lanes are free.
    pub fn dispatch(&mut self) {
        while let Some(ask) = self.held
            && ask.due_ns.is_none_or(|due| due <= self.now_ns)
            && let Some(lane) = self.free_lanes.pop()
        {
            self.held = None;
            self.start(lane, ask);
            // The next lane has been free at least since this request was due.
            self.take(ask.ready_ns);
        }
    }

    fn start(&mut self, lane: usize, ask: Ask) {
        let id = self.conns[self.plan.requests[ask.request].target][lane];
        if ask.due_ns.is_some() {
            self.recorder.lag.record(self.now_ns.saturating_sub(ask.ready_ns));
        }
        let conn = &mut self.reactor.conns[id];
        conn.ask = Some(ask);
        match conn.state {
            State::Idle => self.send(id),
            State::Closed if conn.strikes > 0 => self.rest(id),
            State::Closed => self.connect(id),
            // It is being opened ahead, and sends when it is ready.
            State::Connecting | State::Resting | State::Busy => {}
        }
    }

    /// The server closed a connection on which nothing was in flight, or sent what nobody asked for.
    pub fn lost_idle(&mut self, id: ConnId) {
        let conn = &mut self.reactor.conns[id];
        let role = conn.role;
        conn.close();
        match role {
            Role::Load => self.count_server_closed(id),
            Role::Slow => {}
            Role::Idle => {
                self.beside.idle.server_closed += 1;
                self.reopen_idle(id);
            }
        }
    }

    /// Each time later than before, so that opening what a server won't keep is no load itself.
    fn reopen_idle(&mut self, id: ConnId) {
        if !self.draining {
            self.reactor.conns[id].strikes += 1;
            self.rest(id);
        }
    }
}
