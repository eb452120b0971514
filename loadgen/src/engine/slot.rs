//! The life of a slot on one thread.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Sender;

use rustix::event::epoll::Event;

use super::answers::slow_read_bytes;
use super::clock::now_ns;
use super::conn::{Role, State};
use super::plan::Plan;
use super::reactor::{ConnId, Reactor};
use super::turn::Timer;
use super::usage::Usage;
use super::windows::{Current, Done, Report};
use crate::http1::response::HeadCache;
use crate::record::{Beside, Recorder};
use crate::schedule::{Alias, Ask, Choice, Share, Timetable};

/// Why a slot ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EndedBy {
    Duration,
    Count,
    Interrupt,
    /// Only a count could end it, and the server could not be reached for the whole timeout; or
    /// the server can't be reached as asked: its certificate is wrong, it has no HTTP/2.
    Unreachable,
}

/// Where a thread's requests come from.
#[derive(Debug)]
pub enum Supply {
    /// Closed loop: as fast as answers come, from a common stock.
    Stock(Share),
    /// Open loop: from the common timetable.
    Timetable(Arc<Timetable>),
}

/// What a thread is given for a slot.
#[derive(Debug)]
pub struct Part {
    pub supply: Supply,
    pub choice: Choice,
    pub slow_choice: Alias,
    /// Connections of this thread, by what they are for.
    pub lanes: usize,
    pub slow: usize,
    pub idle: usize,
    pub thread: usize,
    pub seed: u64,
}

/// What a thread remembers of one request during a slot.
#[derive(Debug, Default)]
pub struct Memory {
    pub head: HeadCache,
    /// A short answer came in several segments, so that reading such a one sends an ACK.
    pub in_pieces: bool,
    pub asked: u32,
}

#[derive(Debug)]
pub(super) struct Slot<'a> {
    pub plan: &'a Plan,
    pub reactor: &'a mut Reactor,
    /// Of the load.
    pub recorder: Recorder,
    pub beside: Beside,
    pub supply: Supply,
    pub choice: Choice,
    pub slow_choice: Alias,
    pub rng: fastrand::Rng,
    /// Connections by target and lane; the lanes of slow readers follow those of the load.
    pub conns: Vec<Vec<ConnId>>,
    /// Connections that ask once and are then held open.
    pub idle_conns: Vec<ConnId>,
    pub memory: Vec<Memory>,
    pub timers: BinaryHeap<Reverse<(u64, Timer)>>,
    /// No request times out before.
    pub check_timeouts_ns: u64,
    /// The clock as it was read last.
    pub now_ns: u64,
    pub start_ns: u64,
    /// Lanes of the load, and those of them that still have something to do.
    pub lanes: usize,
    pub active: usize,
    /// Open loop: lanes with nothing to do, and the request taken for the last of them.
    pub free_lanes: Vec<usize>,
    pub held: Option<Ask>,
    /// Since when no connection could be made for the load.
    pub unreachable_since_ns: Option<u64>,
    /// Connects so far, to take source addresses in turn.
    pub connects: usize,
    pub draining: bool,
    /// While draining: requests still awaited.
    pub in_flight: usize,
    thread: usize,
}

impl<'a> Slot<'a> {
    pub fn new(plan: &'a Plan, reactor: &'a mut Reactor, part: Part) -> Self {
        let all = [(Role::Load, part.lanes), (Role::Slow, part.slow), (Role::Idle, part.idle)];
        let mut conns = Vec::with_capacity(plan.targets.len());
        let mut idle_conns = Vec::new();
        for (target, address) in plan.targets.iter().enumerate() {
            // Idle connections are held to the first target.
            let roles = if target == 0 { &all[..] } else { &all[..2] };
            let mut ids = reactor.claim(address, target, roles);
            if target == 0 {
                idle_conns = ids.split_off(part.lanes + part.slow);
            }
            conns.push(ids);
        }
        if plan.requests_per_connection != u32::MAX {
            conns.iter().flatten().for_each(|id| reactor.conns[*id].close());
        }
        let slow_read_bytes = slow_read_bytes(plan);
        conns.iter().flatten().for_each(|id| reactor.conns[*id].slow_read_bytes = slow_read_bytes);
        Slot {
            plan,
            reactor,
            recorder: Recorder::empty(),
            beside: Beside::empty(),
            supply: part.supply,
            choice: part.choice,
            slow_choice: part.slow_choice,
            rng: fastrand::Rng::with_seed(part.seed),
            conns,
            idle_conns,
            memory: plan.requests.iter().map(|_| Memory::default()).collect(),
            timers: BinaryHeap::new(),
            check_timeouts_ns: 0,
            now_ns: 0,
            start_ns: 0,
            lanes: part.lanes,
            active: part.lanes,
            free_lanes: Vec::new(),
            held: None,
            unreachable_since_ns: None,
            connects: 0,
            draining: false,
            in_flight: 0,
            thread: part.thread,
        }
    }

    /// Runs the window and the drain after it.
    pub fn run(
        mut self,
        start_ns: u64,
        events: &mut Vec<Event>,
        interrupt: &AtomicBool,
        reports: &Sender<Report>,
    ) {
        let end_ns = start_ns.saturating_add(self.plan.duration_ns);
        self.start_ns = start_ns;
        self.now_ns = start_ns;
        self.check_timeouts_ns = start_ns + self.plan.timeout_ns;
        let mut window = Current::first(self.thread, start_ns, self.plan.window_ns);
        self.begin();
        let ended_by = loop {
            if self.active == 0 {
                break EndedBy::Count;
            }
            if self.gave_up() {
                break EndedBy::Unreachable;
            }
            self.turn(end_ns.min(window.end_ns), events);
            if self.now_ns >= end_ns {
                break EndedBy::Duration;
            }
            if interrupt.load(Ordering::Relaxed) {
                break EndedBy::Interrupt;
            }
            self.handle(events);
            if self.now_ns >= window.end_ns && self.now_ns < end_ns {
                let part = window.hand_over(&mut self.recorder, self.now_ns);
                // The engine listens until it has heard of the end.
                let _ = reports.send(Report::Window(part));
            }
        };
        let end_ns = if ended_by == EndedBy::Duration { end_ns } else { self.now_ns };
        let usage = Usage::of_this_thread();
        self.drain(end_ns, events);
        let drained_ns = now_ns();
        let held = |id: &&ConnId| self.reactor.conns[**id].state == State::Idle;
        self.beside.idle_held = self.idle_conns.iter().filter(held).count() as u64;
        let last = window.last(&mut self.recorder, end_ns, usage);
        let beside = self.beside;
        let _ = reports.send(Report::Window(last));
        let done = Done { ended_by, start_ns, end_ns, drained_ns, beside };
        let _ = reports.send(Report::Done(Box::new(done)));
    }

    fn gave_up(&self) -> bool {
        let patience_ns = self.plan.timeout_ns;
        self.plan.duration_ns == u64::MAX
            && self.unreachable_since_ns.is_some_and(|since| self.now_ns - since >= patience_ns)
    }
}
