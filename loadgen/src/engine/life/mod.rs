//! The life of a request, from top to bottom: a lane is free and takes it on, it gets a connection,
//! is sent, answered, judged and recorded, and its lane is free again. All protocols go this way;
//! HTTP/2 only has several requests on their way on one connection.

mod answering;
mod driving;
mod http2;
mod logging;
mod opening;
mod sending;
mod using;

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ops::Range;
use std::sync::Arc;

use rustix::event::epoll::Event;
use rustls::ClientConfig;

use super::exchange::{Memory, READ_BYTES, Scratch};
use super::flight::{Flight, Traced};
use super::log::RequestLog;
use super::plan::Plan;
use super::poll::Poll;
use super::pool::{ConnId, Pool, Role, State};
use super::schedule::{LaneScheduler, PlannedRequest, ThreadShare};
use super::self_watch::ThreadClock;
use super::users::{Login, Place};
use crate::clock::MILLISECOND_NS;
use crate::record::{Beside, Recorder};

/// How often a slow reader reads.
const SLOW_READS_PER_S: u32 = 10;
/// Connections that are opened at once; the others follow at a pace that listen queues can take.
const OPENED_AT_ONCE: usize = 64;
const OPENED_PER_MS: usize = 32;

/// What is to be done at a given time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Timer {
    /// A lane begins, or its pause is over.
    Free(usize),
    /// Something is due on a lane that has a timetable of its own.
    Due(usize),
    Connect(ConnId),
    /// A slow reader reads on.
    Read(ConnId),
}

/// All that a thread does in a slot, driven by events and by the clock.
pub struct Life<'a> {
    plan: &'a Plan,
    pool: &'a mut Pool,
    poll: &'a Poll,
    scratch: &'a mut Scratch,
    pub clock: ThreadClock,
    /// Of the load, in the present window.
    pub recorder: Recorder,
    pub beside: Beside,
    pub scheduler: LaneScheduler,
    /// Connections by origin and number; those of slow readers follow those of the load.
    conns: Vec<Vec<ConnId>>,
    idle: Vec<ConnId>,
    /// Connections of the load, and the users that share them.
    connections: usize,
    lanes: usize,
    memory: Vec<Memory>,
    timers: BinaryHeap<Reverse<(u64, Timer)>>,
    /// What has not been handled to its end: other connections had to have their turn.
    again: Vec<Event>,
    /// Connections on which the next step is ours, and the server may wait for it.
    needs_polling: Vec<ConnId>,
    /// When the last wait ended.
    pub woke_ns: u64,
    /// HTTP/2 connections with something to send.
    unsent: Vec<ConnId>,
    /// By origin.
    tls: Vec<Option<Arc<ClientConfig>>>,
    slow_read_bytes: usize,
    /// Open loop: of requests that are due in this time, times are recorded; and how many of
    /// them are on their way.
    window_ns: Range<u64>,
    due_unanswered: usize,
    /// Answers to what was sent before this are late: the window is over.
    over_since_ns: Option<u64>,
    /// No request times out before.
    check_timeouts_ns: u64,
    /// Since when no connection could be made for the load.
    unreachable_since_ns: Option<u64>,
    reached: bool,
    /// The server can't be reached as asked, and trying again would change nothing.
    hopeless: bool,
    /// Connects so far, to take source addresses in turn.
    connects: usize,
    /// Nothing more is asked.
    draining: bool,
    /// While draining: requests still awaited.
    pub left_to_drain: usize,
    /// Users log in: before the slot begins.
    login: Option<Login>,
    /// All answers, where they are reported whole.
    pub traced: Vec<Traced>,
    /// Where requests are logged.
    log: Option<RequestLog>,
    /// Number of this thread's first connection, and user, among all.
    first_connection: usize,
}

impl<'a> Life<'a> {
    pub fn new(
        plan: &'a Plan,
        pool: &'a mut Pool,
        poll: &'a Poll,
        scratch: &'a mut Scratch,
        share: ThreadShare,
    ) -> Self {
        let load = [(Role::Load, share.connections), (Role::Slow, share.slow)];
        // Idle connections are held to the first origin.
        let all = [load[0], load[1], (Role::Idle, share.idle)];
        pool.begin_slot();
        let claim =
            |(index, origin)| pool.claim(origin, index, if index == 0 { &all } else { &load });
        let mut conns: Vec<_> = plan.origins.iter().enumerate().map(claim).collect();
        let idle = conns[0].split_off(share.connections + share.slow);
        if plan.requests_per_connection != u32::MAX {
            conns.iter().flatten().for_each(|id| pool[*id].close());
        }
        let tls = plan.origins.iter().map(|origin| pool.tls(origin, plan.tls.as_ref())).collect();
        let (connections, lanes) = (share.connections, share.connections * plan.streams);
        for id in conns.iter().flatten() {
            // What the last slot left in the middle.
            if let Some(user) = &mut pool[*id].exchange.user {
                user.place = Place::Free;
            }
        }
        Life {
            plan,
            pool,
            poll,
            scratch,
            clock: ThreadClock::default(),
            first_connection: share.first_connection,
            login: None,
            traced: Vec::new(),
            log: None,
            recorder: Recorder::default(),
            beside: Beside::default(),
            scheduler: LaneScheduler::new(share, lanes),
            conns,
            idle,
            connections,
            lanes,
            memory: plan.requests.iter().map(|_| Memory::default()).collect(),
            timers: BinaryHeap::new(),
            again: Vec::new(),
            needs_polling: Vec::new(),
            woke_ns: 0,
            unsent: Vec::new(),
            tls,
            slow_read_bytes: slow_read_bytes(plan),
            window_ns: 0..u64::MAX,
            due_unanswered: 0,
            over_since_ns: None,
            check_timeouts_ns: 0,
            unreachable_since_ns: None,
            reached: false,
            hopeless: false,
            connects: 0,
            draining: false,
            left_to_drain: 0,
        }
    }

    /// Opens idle connections and, in an open loop, those that serve many requests.
    pub fn open_ahead(&mut self) {
        self.clock.read();
        self.check_timeouts_ns = self.clock.now_ns + self.plan.timeout_ns;
        for (nth, id) in self.wanted_ahead().into_iter().enumerate() {
            if self.pool[id].state == State::Closed {
                self.set_timer(self.clock.now_ns + pace_ns(nth), Timer::Connect(id));
            }
        }
    }

    /// All that was to be opened ahead is, or something failed: what is missing is then opened
    /// within the slot.
    pub fn is_opened_ahead(&self) -> bool {
        self.recorder.counts.seen.failures.total() + self.beside.idle.counts.seen.failures.total()
            > 0
            || self.wanted_ahead().iter().all(|id| self.pool[*id].state == State::Idle)
    }

    fn wanted_ahead(&self) -> Vec<ConnId> {
        let serve_many = self.scheduler.is_open() && self.plan.requests_per_connection == u32::MAX;
        let load = if serve_many { &self.conns[0][..self.connections] } else { &[] };
        load.iter().chain(&self.idle).copied().collect()
    }

    /// Sets all lanes in motion.
    pub fn begin(&mut self, start_ns: u64) {
        self.clock.begin(start_ns);
        let last = self.plan.lead_in_ns.saturating_add(self.plan.duration_ns);
        let last = last.saturating_add(self.plan.tail_ns());
        self.scheduler.begin(start_ns, start_ns.saturating_add(last));
        let window = self.plan.window_ns();
        self.window_ns = start_ns.saturating_add(window.start)..start_ns.saturating_add(window.end);
        self.check_timeouts_ns = start_ns + self.plan.timeout_ns;
        let slow = self.conns[0].len() - self.connections;
        for lane in 0..self.lanes + slow {
            let after_ns = if self.scheduler.is_open() { 0 } else { self.begins_after_ns(lane) };
            self.set_timer(start_ns + after_ns, Timer::Free(lane));
        }
    }

    /// Closed loop: when a lane begins, after the others.
    fn begins_after_ns(&self, lane: usize) -> u64 {
        let number = self.number_of(lane);
        let before = self.first_connection + number;
        let share = before as f64 / f64::from(self.plan.order.load.connections);
        pace_ns(number).max((self.plan.ramp_ns as f64 * share.min(1.0)) as u64)
    }

    /// Everything due before `end_ns` has been answered, or has failed.
    pub fn has_resolved_all(&self, end_ns: u64) -> bool {
        self.due_unanswered == 0 && self.scheduler.is_taken_until(end_ns)
    }

    /// More than this share of what was due in the window has no answer yet, as far as this thread
    /// can tell: it doesn't know what others have on their way.
    pub fn more_is_missing_than(&self, share: f64) -> bool {
        self.scheduler.in_window(self.clock.now_ns).is_some_and(|it| {
            (self.due_unanswered as u64 + it.waiting) as f64 > share * it.due as f64
        })
    }

    /// The server can't be reached: as asked, or for the whole timeout where only a count could
    /// end the slot.
    pub fn gave_up(&mut self) -> bool {
        let since = self.unreachable_since_ns.filter(|_| self.plan.duration_ns == u64::MAX);
        if since.is_some_and(|since| self.clock.now_ns - since >= self.plan.timeout_ns) {
            // Other connections, or other targets, may be fine.
            let is_open = |id: &ConnId| matches!(self.pool[*id].state, State::Idle | State::Busy);
            if !self.conns.iter().flatten().any(is_open) {
                return true;
            }
            self.unreachable_since_ns = None;
        }
        self.hopeless
    }

    /// How many requests of the load are on their way, or wait to be asked again.
    pub fn unresolved(&self) -> usize {
        let of_load = self.conns.iter().flat_map(|ids| &ids[..self.connections]);
        of_load.map(|id| self.pool[*id].unresolved().count()).sum()
    }

    /// From here on valid answers to what was sent before are late.
    pub fn window_is_over(&mut self) {
        self.over_since_ns = Some(self.clock.now_ns);
        self.recorder.counts.requests.unanswered = self.unresolved() as u64;
    }

    /// Nothing more is asked. What is due and not sent by now, or not answered, enters the times
    /// with how long it has waited.
    pub fn settle(&mut self, end_ns: u64) {
        self.draining = true;
        self.timers.clear();
        let mut unsent = Vec::from_iter(self.scheduler.end());
        let mut unanswered = Vec::new();
        let mut asked_again = Vec::new();
        for id in self.conns.iter().flatten() {
            let conn = &mut self.pool[*id];
            if conn.role == Role::Slow {
                self.beside.slow.counts.requests.unanswered += u64::from(conn.state == State::Busy);
                conn.flight = None;
                conn.close();
                continue;
            }
            unsent.extend(
                conn.take_waiting(|flight| !flight.is_counted())
                    .iter()
                    .map(|flight| flight.planned),
            );
            let before = unanswered.len();
            unanswered.extend(conn.unresolved().map(|flight| flight.planned));
            if conn.state == State::Resting {
                conn.state = State::Closed;
                if unanswered.len() > before {
                    asked_again.push(*id);
                }
            }
        }
        self.left_to_drain = unanswered.len();
        if self.over_since_ns.is_none() {
            self.over_since_ns = Some(self.clock.now_ns);
            self.recorder.counts.requests.unanswered += unanswered.len() as u64;
        }
        let is_in_window = |planned: &PlannedRequest| {
            planned.due_ns.filter(|due_ns| self.window_ns.contains(due_ns))
        };
        for due_ns in unanswered.iter().filter_map(is_in_window) {
            self.recorder.times.waited.record(end_ns.saturating_sub(due_ns));
        }
        for due_ns in unsent.iter().filter_map(is_in_window).filter(|due_ns| *due_ns < end_ns) {
            self.recorder.counts.requests.unsent += 1;
            self.recorder.times.waited.record(end_ns - due_ns);
        }
        for due_ns in
            self.scheduler.overdue(end_ns).filter(|due_ns| self.window_ns.contains(due_ns))
        {
            self.recorder.counts.requests.unsent += 1;
            self.recorder.times.waited.record(end_ns - due_ns);
        }
        let busy = |id: &&ConnId| self.pool[**id].state == State::Busy;
        self.beside.idle.counts.requests.unanswered = self.idle.iter().filter(busy).count() as u64;
        asked_again.into_iter().for_each(|id| self.reopen(id));
    }

    /// Nothing is to be asked; connections stay.
    pub fn leave(&mut self) {
        self.settle(self.clock.now_ns);
        self.close_unfinished();
    }

    /// Closes the connections on which something is not finished; tells how many idle ones are
    /// held. In a closed loop what was never answered enters the times with how long it has waited;
    /// in an open one it has done so when the slot was settled.
    pub fn close_unfinished(&mut self) -> u64 {
        if !self.plan.is_open() {
            for id in self.conns.iter().flat_map(|ids| &ids[..self.connections]) {
                for flight in self.pool[*id].unresolved() {
                    let waited_ns = self.clock.now_ns.saturating_sub(flight.first_sent_ns);
                    self.recorder.times.waited.record(waited_ns);
                }
            }
        }
        self.end_log();
        for id in self.conns.iter().flatten().chain(&self.idle) {
            let conn = &mut self.pool[*id];
            let settled = matches!(conn.state, State::Idle | State::Closed);
            if !settled || conn.unresolved().next().is_some() {
                conn.take_waiting(|_| true);
                conn.flight = None;
                conn.close();
            }
        }
        let held = |id: &&ConnId| self.pool[**id].state == State::Idle;
        self.idle.iter().filter(held).count() as u64
    }
}

/// Where requests over connections of a role are recorded.
fn recorder_for<'a>(
    role: Role,
    load: &'a mut Recorder,
    beside: &'a mut Beside,
) -> &'a mut Recorder {
    match role {
        Role::Load => load,
        Role::Slow => &mut beside.slow,
        Role::Idle => &mut beside.idle,
    }
}

/// The client has got round to a request: until here it is its lag.
fn record_lag(flight: &mut Flight, now_ns: u64, window_ns: &Range<u64>, recorder: &mut Recorder) {
    let ready_ns = std::mem::take(&mut flight.planned.ready_ns);
    if ready_ns > 0 && flight.planned.due_ns.is_some_and(|due_ns| window_ns.contains(&due_ns)) {
        recorder.times.lag.record(now_ns.saturating_sub(ready_ns));
    }
}

/// When the connection that is opened as the `nth` begins.
fn pace_ns(nth: usize) -> u64 {
    nth.saturating_sub(OPENED_AT_ONCE) as u64 / OPENED_PER_MS as u64 * MILLISECOND_NS
}

/// What a slow reader takes at a time.
fn slow_read_bytes(plan: &Plan) -> usize {
    let rate = plan.order.load.slow_readers.map_or(0, |slow| slow.bytes_per_s);
    (rate.div_ceil(SLOW_READS_PER_S) as usize).min(READ_BYTES)
}
