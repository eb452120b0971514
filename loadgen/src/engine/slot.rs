//! The life of a slot on one thread.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::event::epoll::{Event, EventFlags};

use super::clock::now_ns;
use super::conn::State;
use super::plan::Plan;
use super::reactor::{ConnId, Happened, Reactor};
use super::usage::Usage;
use crate::http1::response::HeadCache;
use crate::record::Recorder;
use crate::schedule::{Choice, Share};

/// Why a slot ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EndedBy {
    Duration,
    Count,
    Interrupt,
    /// Only a count could end it, and the server could not be reached for the whole timeout.
    Unreachable,
}

/// What a thread is given for a slot.
#[derive(Debug)]
pub struct Part {
    pub share: Share,
    pub choice: Choice,
    /// Connections of this thread.
    pub lanes: usize,
}

/// What a thread brings back.
#[derive(Debug)]
pub struct Outcome {
    pub recorder: Recorder,
    pub ended_by: EndedBy,
    pub start_ns: u64,
    pub end_ns: u64,
    pub drained_ns: u64,
    pub usage: Usage,
}

/// What a thread remembers of one request during a slot.
#[derive(Debug, Default)]
pub(super) struct Memory {
    pub head: HeadCache,
    pub asked: u32,
}

#[derive(Debug)]
pub(super) struct Slot<'a> {
    pub plan: &'a Plan,
    pub reactor: &'a mut Reactor,
    pub recorder: Recorder,
    pub share: Share,
    pub choice: Choice,
    /// Connections by target and lane.
    pub conns: Vec<Vec<ConnId>>,
    pub memory: Vec<Memory>,
    /// Connections that rest, by when they try again.
    pub resting: BinaryHeap<Reverse<(u64, ConnId)>>,
    /// No request times out before.
    pub check_timeouts_ns: u64,
    /// The clock as it was read last.
    pub now_ns: u64,
    /// Lanes that still have something to do.
    pub active: usize,
    /// Since when no connection could be made.
    pub unreachable_since_ns: Option<u64>,
    pub draining: bool,
    /// While draining: requests still awaited.
    pub in_flight: usize,
}

impl<'a> Slot<'a> {
    pub fn new(plan: &'a Plan, reactor: &'a mut Reactor, part: Part) -> Self {
        let targets = plan.targets.iter().enumerate();
        let conns: Vec<Vec<ConnId>> =
            targets.map(|(i, address)| reactor.claim(address, i, part.lanes)).collect();
        if plan.requests_per_connection != u32::MAX {
            conns.iter().flatten().for_each(|id| reactor.conns[*id].close());
        }
        Slot {
            plan,
            reactor,
            recorder: Recorder::empty(),
            share: part.share,
            choice: part.choice,
            conns,
            memory: plan.requests.iter().map(|_| Memory::default()).collect(),
            resting: BinaryHeap::new(),
            check_timeouts_ns: 0,
            now_ns: 0,
            active: part.lanes,
            unreachable_since_ns: None,
            draining: false,
            in_flight: 0,
        }
    }

    /// Runs the window and the drain after it.
    pub fn run(
        mut self,
        start_ns: u64,
        events: &mut Vec<Event>,
        interrupt: &AtomicBool,
    ) -> Outcome {
        let before = Usage::of_this_thread();
        let end_ns = start_ns.saturating_add(self.plan.duration_ns);
        self.now_ns = start_ns;
        self.check_timeouts_ns = start_ns + self.plan.timeout_ns;
        for lane in 0..self.conns.first().map_or(0, Vec::len) {
            self.free(lane);
        }
        let ended_by = loop {
            if self.active == 0 {
                break EndedBy::Count;
            }
            if self.gave_up() {
                break EndedBy::Unreachable;
            }
            self.turn(end_ns, events);
            if self.now_ns >= end_ns {
                break EndedBy::Duration;
            }
            if interrupt.load(Ordering::Relaxed) {
                break EndedBy::Interrupt;
            }
            self.handle(events);
        };
        let end_ns = if ended_by == EndedBy::Duration { end_ns } else { self.now_ns };
        let usage = Usage::of_this_thread().since(&before);
        self.drain(events);
        Outcome { recorder: self.recorder, ended_by, start_ns, end_ns, drained_ns: now_ns(), usage }
    }

    /// Waits for events until `until_ns` or the next timer, whichever is first.
    pub fn turn(&mut self, until_ns: u64, events: &mut Vec<Event>) {
        let rest_ns = self.resting.peek().map_or(u64::MAX, |Reverse((at, _))| *at);
        let wake_ns = until_ns.min(self.check_timeouts_ns).min(rest_ns);
        // The hour keeps the kernel's arithmetic far from its end.
        let timeout_ns = wake_ns.saturating_sub(self.now_ns).min(3_600_000_000_000);
        self.reactor.wait(events, timeout_ns);
        self.now_ns = now_ns();
    }

    pub fn handle(&mut self, events: &[Event]) {
        // An answer that one read brings was there when the wait ended.
        let seen_ns = self.now_ns;
        for event in events {
            if let Some(happened) = self.reactor.happened(event) {
                self.on_event(happened, seen_ns);
            }
        }
        while let Some(Reverse((at, id))) = self.resting.peek().copied() {
            if at > self.now_ns {
                break;
            }
            self.resting.pop();
            if self.reactor.conns[id].state == State::Resting {
                self.connect(id);
            }
        }
        if self.now_ns >= self.check_timeouts_ns {
            self.check_timeouts();
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
                    self.closed_by_server(id);
                    self.reactor.conns[id].close();
                }
            }
            State::Closed | State::Resting => {}
        }
    }

    /// Finds requests and connects older than the timeout, and when the next one can be.
    fn check_timeouts(&mut self) {
        let now = self.now_ns;
        let mut oldest = now;
        let mut late = Vec::new();
        for id in self.conns.iter().flatten() {
            let conn = &self.reactor.conns[*id];
            if matches!(conn.state, State::Busy | State::Connecting) {
                if now.saturating_sub(conn.since_ns) >= self.plan.timeout_ns {
                    late.push(*id);
                } else {
                    oldest = oldest.min(conn.since_ns);
                }
            }
        }
        // Looking at every connection more often than once a millisecond would be load itself.
        self.check_timeouts_ns = (oldest + self.plan.timeout_ns).max(now + 1_000_000);
        for id in late {
            self.timed_out(id);
        }
    }

    fn gave_up(&self) -> bool {
        let patience_ns = self.plan.timeout_ns;
        self.plan.duration_ns == u64::MAX
            && self.unreachable_since_ns.is_some_and(|since| self.now_ns - since >= patience_ns)
    }
}
