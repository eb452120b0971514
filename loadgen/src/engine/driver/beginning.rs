//! The beginning of a slot: connections are opened ahead, then all lanes set in motion.

use std::ops::Range;

use super::{SlotDriver, Timer};
use crate::clock::MILLISECOND_NS;
use crate::engine::pool::{ConnId, State};

/// Connections that are opened at once; the others follow at a pace that listen queues can take.
const OPENED_AT_ONCE: usize = 64;
const OPENED_PER_MS: usize = 32;

impl SlotDriver<'_> {
    /// Opens idle connections and, in an open loop, those that serve many requests.
    pub fn open_ahead(&mut self) {
        self.clock.read();
        self.check_timeouts_ns = self.clock.now_ns + self.plan.timeout_ns;
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
            + self.records.beside.idle.counts.seen.failures.total()
            > 0
            || self.wanted_ahead().iter().all(|id| self.conns.pool[*id].state == State::Idle)
    }

    fn wanted_ahead(&self) -> Vec<ConnId> {
        let serve_many =
            self.lanes.scheduler.is_open() && self.plan.requests_per_connection == u32::MAX;
        let load = if serve_many { &self.conns.by_origin[0][..self.conns.of_load] } else { &[] };
        load.iter().chain(&self.conns.idle).copied().collect()
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
}

/// When the connection that is opened as the `nth` begins.
fn pace_ns(nth: usize) -> u64 {
    nth.saturating_sub(OPENED_AT_ONCE) as u64 / OPENED_PER_MS as u64 * MILLISECOND_NS
}
