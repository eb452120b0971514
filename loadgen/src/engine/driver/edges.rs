//! The edges of a slot. At its beginning connections are opened ahead, then all lanes set in motion.
//! At its end streams that are under way are left, as nobody knows when they end; what has no answer
//! is counted, and what is unfinished is closed.

use std::cmp::Reverse;
use std::ops::Range;

use super::{SlotDriver, Timer};
use crate::clock::{MILLISECOND_NS, SECOND_NS};
use crate::engine::flight::Flight;
use crate::engine::pool::{ConnId, Role, State};
use crate::engine::users::Place;
use crate::engine::windows::EndedBy;
use crate::order::Protocol;

/// Connections that are opened at once; the others follow at a pace that listen queues can take.
const OPENED_AT_ONCE: usize = 64;
const OPENED_PER_MS: usize = 32;

impl SlotDriver<'_> {
    /// Opens idle connections, those of a broadcast and, in an open loop, those that serve many requests.
    pub fn open_ahead(&mut self) {
        self.clock.read();
        self.check_timeouts_ns = self.clock.now_ns + self.plan.timeout_ns;
        for id in self.conns.ids_of_load().collect::<Vec<_>>() {
            self.look_after(id);
        }
        for (nth, id) in self.wanted_ahead().into_iter().enumerate() {
            if self.conns.pool[id].state == State::Closed {
                self.set_timer(self.clock.now_ns + pace_ns(nth), Timer::Connect(id));
            }
        }
    }

    /// All that was to be opened ahead is, or something failed: what is missing is then opened
    /// within the slot.
    pub fn is_opened_ahead(&self) -> bool {
        self.records.load.counts.seen.failures.total()
            + self.records.others.idle.counts.seen.failures.total()
            > 0
            || self.wanted_ahead().iter().all(|id| self.conns.pool[*id].state == State::Idle)
    }

    fn wanted_ahead(&self) -> Vec<ConnId> {
        let serve_many =
            self.lanes.scheduler.is_open() && self.plan.requests_per_connection == u32::MAX;
        let opens = serve_many || self.broadcast.is_some();
        let load = if opens { &self.conns.by_origin[0][..self.conns.of_load] } else { &[] };
        load.iter().chain(&self.conns.idle).chain(&self.conns.sender).copied().collect()
    }

    /// Sets all lanes in motion.
    pub fn begin(&mut self, start_ns: u64) {
        self.clock.begin(start_ns);
        let last = self.plan.ramp_up_ns.saturating_add(self.plan.duration_ns);
        let last = last.saturating_add(self.plan.tail_ns());
        self.lanes.scheduler.begin(start_ns, start_ns.saturating_add(last));
        if self.plan.is_open() {
            let Range { start, end } = self.plan.window_ns();
            self.records.window_ns = start_ns.saturating_add(start)..start_ns.saturating_add(end);
        }
        self.check_timeouts_ns = start_ns + self.plan.timeout_ns;
        let slow = self.conns.by_origin[0].len() - self.conns.of_load;
        for lane in 0..self.lanes.count + slow {
            let after_ns =
                if self.lanes.scheduler.is_open() { 0 } else { self.begins_after_ns(lane) };
            self.set_timer(start_ns + after_ns, Timer::Free(lane));
        }
    }

    /// Closed loop: when a lane begins, after the others.
    fn begins_after_ns(&self, lane: usize) -> u64 {
        let number = self.number_of(lane);
        let before = self.conns.first + number;
        let share = before as f64 / f64::from(self.plan.order.load.connections);
        pace_ns(number).max((self.plan.ramp_ns as f64 * share.min(1.0)) as u64)
    }

    /// The duration is over: from here on streams are left.
    pub fn leave_streams(&mut self) {
        self.lanes.leaves_streams = self.plan.leaves_streams;
        for id in self.conns.ids_of_load().collect::<Vec<_>>() {
            self.leave_streams_of(id);
        }
    }

    /// Leaves a connection's streams, once that is time; true where it had any.
    pub(super) fn leave_streams_of(&mut self, id: ConnId) -> bool {
        if !self.lanes.leaves_streams || self.conns.pool[id].role != Role::Load {
            return false;
        }
        let (conn, memory) = (&mut self.conns.pool[id], &self.memory);
        // Of a request that was answered in this load it is known that its responses end.
        let never_ends = |flight: &Flight| !memory[flight.planned.request].is_answered;
        let is_stream = conn.shared.is_none() && conn.exchange.response.is_stream();
        if is_stream && let Some(flight) = conn.flight.take_if(|flight| never_ends(flight)) {
            conn.close();
            self.left(id, &flight);
            return true;
        }
        let Some(connection) = conn.shared_connection() else { return false };
        let streams = connection.take_streams(never_ends);
        streams.iter().for_each(|stream| self.left(id, &stream.flight));
        if !streams.is_empty() {
            self.conns.unsent.push(id);
        }
        !streams.is_empty()
    }

    fn left(&mut self, id: ConnId, flight: &Flight) {
        self.count_as_resolved(flight);
        self.log_left(id, flight);
        self.records.load.counts.requests.unfinished += 1;
        if let Some(user) = &mut self.conns.pool[id].exchange.user
            && let Place::In(begun) = std::mem::take(&mut user.place)
        {
            let is_first = begun.step == begun.flow.steps.start;
            self.lanes.due_unanswered -= usize::from(!is_first && begun.is_in_window);
        }
        self.finish(id, flight.lane, self.clock.now_ns);
    }

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
        // QUIC goes on as long as answers are awaited.
        self.timers.retain(|Reverse((_, timer))| matches!(timer, Timer::Quic(_)));
        let mut unsent = Vec::from_iter(self.lanes.scheduler.end());
        let mut unanswered = Vec::new();
        let mut retried = Vec::new();
        for id in self.conns.by_origin.iter().flatten() {
            let conn = &mut self.conns.pool[*id];
            if conn.role == Role::Slow {
                self.records.others.slow.counts.requests.unanswered +=
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
        self.records.others.idle.counts.requests.unanswered =
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
        let begins = conn.shared.as_ref().is_some_and(|shared| shared.connection.is_some());
        let what = match conn.state {
            State::Connecting => "the server had not accepted the connection",
            _ if origin.protocol == Protocol::Http3 => "the QUIC handshake was under way",
            _ if begins => "the server had not begun HTTP/2",
            _ if conn.upgrade.is_some() => "the server had not answered the WebSocket handshake",
            _ if self.broadcast.is_some() => "the server had not answered a ping",
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

    /// Closes the connections on which something is not finished; returns how many idle ones are
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
            if let Some(connection) = conn.http3_connection() {
                connection.rest();
            }
        }
        self.end_broadcast();
        let held = |id: &&ConnId| self.conns.pool[**id].state == State::Idle;
        self.conns.idle.iter().filter(held).count() as u64
    }
}

/// When the connection that is opened as the `nth` begins.
fn pace_ns(nth: usize) -> u64 {
    nth.saturating_sub(OPENED_AT_ONCE) as u64 / OPENED_PER_MS as u64 * MILLISECOND_NS
}
