//! The end of a slot: what has no answer is counted, and what is unfinished is closed.

use super::SlotDriver;
use crate::clock::SECOND_NS;
use crate::engine::pool::{ConnId, Role, State};
use crate::engine::windows::EndedBy;

impl SlotDriver<'_> {
    /// From here on valid answers to what was sent before are late.
    pub fn window_is_over(&mut self) {
        self.records.over_since_ns = Some(self.clock.now_ns);
        self.records.load.counts.requests.unanswered = self.conns.unresolved().count() as u64;
    }

    /// Nothing more is asked. What is due and not sent by now, or not answered, enters the times
    /// with how long it has waited.
    pub fn settle(&mut self, end_ns: u64, ended_by: EndedBy) {
        self.lanes.draining = true;
        if self.records.over_since_ns.is_none() {
            self.records.over_since_ns = Some(self.clock.now_ns);
            self.records.load.counts.requests.unanswered = self.conns.unresolved().count() as u64;
        }
        if ended_by != EndedBy::Count {
            self.leave_streams();
        }
        self.explain_nothing_sent();
        self.timers.clear();
        let mut unsent = Vec::from_iter(self.lanes.scheduler.end());
        let mut unanswered = Vec::new();
        let mut retried = Vec::new();
        for id in self.conns.by_origin.iter().flatten() {
            let conn = &mut self.conns.pool[*id];
            if conn.role == Role::Slow {
                self.records.beside.slow.counts.requests.unanswered +=
                    u64::from(conn.state == State::Busy);
                conn.flight = None;
                conn.close();
                continue;
            }
            let waiting = conn.take_waiting(|flight| !flight.is_counted());
            unsent.extend(waiting.iter().map(|flight| flight.planned));
            let before = unanswered.len();
            unanswered.extend(conn.unresolved().map(|flight| flight.planned));
            if conn.state == State::Resting {
                conn.state = State::Closed;
                if unanswered.len() > before {
                    retried.push(*id);
                }
            }
        }
        self.lanes.left_to_drain = unanswered.len();
        for due_ns in unanswered.iter().filter_map(|planned| planned.due_ns) {
            self.records.record_unanswered(due_ns, end_ns);
        }
        let unsent = unsent.iter().filter_map(|planned| planned.due_ns);
        let overdue = self.lanes.scheduler.overdue(end_ns);
        for due_ns in unsent.chain(overdue).filter(|due_ns| *due_ns < end_ns) {
            let counts = self.records.record_unanswered(due_ns, end_ns);
            self.records.load.counts.requests.unsent += u64::from(counts);
        }
        let busy = |id: &&ConnId| self.conns.pool[**id].state == State::Busy;
        self.records.beside.idle.counts.requests.unanswered =
            self.conns.idle.iter().filter(busy).count() as u64;
        retried.into_iter().for_each(|id| self.reopen(id));
    }

    /// Where no connection got ready: says what they waited for when the load ended.
    fn explain_nothing_sent(&mut self) {
        let states = || self.conns.ids_of_load().map(|id| (id, self.conns.pool[id].state));
        let is_open = |state| matches!(state, State::Idle | State::Busy);
        let is_under_way = |state| matches!(state, State::Connecting | State::Opening);
        let waiting = states().find(|(_, state)| is_under_way(*state));
        let Some((id, _)) =
            waiting.filter(|_| !self.conns.reached && !states().any(|(_, state)| is_open(state)))
        else {
            return;
        };
        let conn = &self.conns.pool[id];
        let origin = &self.plan.origins[conn.origin];
        let begins = conn.http2.as_ref().is_some_and(|http2| http2.connection.is_some());
        let what = match conn.state {
            State::Connecting => "the server had not accepted the connection",
            _ if begins => "the server had not begun HTTP/2",
            _ => "the TLS handshake was under way",
        };
        let waited_s = self.clock.now_ns.saturating_sub(conn.began_ns) as f64 / SECOND_NS as f64;
        let text = format!(
            "connect to {origin}: {what} when the load ended, after {waited_s:.1} s; load for longer"
        );
        self.records.load.counts.seen.failure_samples.keep(text);
    }

    /// Nothing is to be asked; connections stay.
    pub fn leave(&mut self) {
        self.settle(self.clock.now_ns, EndedBy::Count);
        self.close_unfinished();
    }

    /// Closes the connections on which something is not finished; tells how many idle ones are
    /// held. In a closed loop what was never answered enters the times with how long it has waited;
    /// in an open one it has done so when the slot was settled.
    pub fn close_unfinished(&mut self) -> u64 {
        if !self.plan.is_open() {
            for flight in self.conns.unresolved() {
                let waited_ns = self.clock.now_ns.saturating_sub(flight.first_sent_ns);
                self.records.load.times.waited.record(waited_ns);
            }
        }
        self.end_log();
        for id in self.conns.by_origin.iter().flatten().chain(&self.conns.idle) {
            let conn = &mut self.conns.pool[*id];
            let settled = matches!(conn.state, State::Idle | State::Closed);
            if !settled || conn.unresolved().next().is_some() {
                conn.take_waiting(|_| true);
                conn.flight = None;
                conn.close();
            }
        }
        let held = |id: &&ConnId| self.conns.pool[**id].state == State::Idle;
        self.conns.idle.iter().filter(held).count() as u64
    }
}
