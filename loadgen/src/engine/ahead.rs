//! Before the window: connections that are to be there when it begins.

use std::sync::atomic::{AtomicBool, Ordering};

use rustix::event::epoll::Event;

use super::clock::now_ns;
use super::conn::State;
use super::reactor::ConnId;
use super::slot::Slot;
use super::turn::Timer;

/// Connections that are opened at once; the others follow at a pace that listen queues can take.
const OPENED_AT_ONCE: usize = 64;
const OPENED_PER_MS: usize = 32;
const MILLISECOND_NS: u64 = 1_000_000;

/// When the connection that is opened as the `nth` begins.
pub fn pace_ns(nth: usize) -> u64 {
    nth.saturating_sub(OPENED_AT_ONCE) as u64 / OPENED_PER_MS as u64 * MILLISECOND_NS
}

impl Slot<'_> {
    /// Opens idle connections and, in an open loop, those that serve many requests. The first
    /// failure ends this: what is missing is then opened within the window.
    pub fn open_ahead(&mut self, events: &mut Vec<Event>, interrupt: &AtomicBool) {
        self.now_ns = now_ns();
        let until_ns = self.now_ns + self.plan.timeout_ns;
        self.check_timeouts_ns = until_ns;
        let wanted = self.wanted_ahead();
        for (nth, id) in wanted.iter().enumerate() {
            self.at(self.now_ns + pace_ns(nth), Timer::Connect(*id));
        }
        let failed =
            |slot: &Self| slot.recorder.failures.total() + slot.beside.idle.failures.total() > 0;
        while wanted.iter().any(|id| !self.is_settled(*id))
            && self.now_ns < until_ns
            && !failed(self)
            && !interrupt.load(Ordering::Relaxed)
        {
            self.turn(until_ns, events);
            self.handle(events);
        }
    }

    fn wanted_ahead(&self) -> Vec<ConnId> {
        let serve_many = self.is_open() && self.plan.requests_per_connection == u32::MAX;
        let lanes = if serve_many { &self.conns[0][..self.lanes] } else { &[] };
        let ids = lanes.iter().chain(&self.idle_conns).copied();
        ids.filter(|id| self.reactor.conns[*id].state == State::Closed).collect()
    }

    fn is_settled(&self, id: ConnId) -> bool {
        self.reactor.conns[id].state == State::Idle
    }
}
