//! The way of a request, from top to bottom: a lane is free and takes it on, it gets a connection,
//! is sent, answered, judged and recorded, and its lane is free again. All protocols go this way;
//! HTTP/2 and 3 only have several requests on their way on one connection, and requests of a
//! WebSocket are messages. Here is what drives a thread: events, timers, and requests that take too
//! long.

mod answering;
mod broadcasting;
mod edges;
mod logging;
mod opening;
mod quic;
mod sending;
mod sharing;
mod state;
mod using;

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use rustix::event::epoll::{Event, EventFlags};

use super::exchange::{Memory, READ_BYTES, Scratch};
use super::plan::Plan;
use super::poll::{Poll, sleep_until_ns};
use super::pool::{ConnId, Pool, Role, State, is_hangup};
use super::reasons;
use super::schedule::{LaneScheduler, ThreadShare};
use super::self_watch::ThreadClock;
use super::shared::Shared;
use super::users::Login;
use crate::clock::MILLISECOND_NS;
use crate::record::Failure;
use state::{Broadcast, ConnectionState, LaneState, Records};

/// Answers must not wait until thousands of connections are opened, each of which can take
/// milliseconds when the kernel has to search for a free port.
const TIMERS_AT_ONCE: usize = 64;
const TIMERS_WITHIN_NS: u64 = MILLISECOND_NS;
/// How often a slow reader reads.
const SLOW_READS_PER_S: u32 = 10;

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
    /// QUIC may have something to do: to acknowledge, or to send again.
    Quic(ConnId),
}

/// All that a thread does in a slot, driven by events and by the clock.
pub struct SlotDriver<'a> {
    plan: &'a Plan,
    poll: &'a Poll,
    scratch: &'a mut Scratch,
    /// Of each request.
    memory: Vec<Memory>,
    slow_read_bytes: usize,
    pub clock: ThreadClock,
    /// When the last wait ended.
    pub woke_ns: u64,
    timers: BinaryHeap<Reverse<(u64, Timer)>>,
    /// No request times out before.
    check_timeouts_ns: u64,
    pub lanes: LaneState,
    pub conns: ConnectionState<'a>,
    pub records: Records,
    /// Users log in: before the slot begins.
    login: Option<Login>,
    broadcast: Option<Broadcast>,
}

impl<'a> SlotDriver<'a> {
    pub fn new(
        plan: &'a Plan,
        pool: &'a mut Pool,
        poll: &'a Poll,
        scratch: &'a mut Scratch,
        share: ThreadShare,
    ) -> Self {
        let conns = ConnectionState::new(plan, pool, &share);
        let broadcast = conns.sender.map(Broadcast::by);
        let lanes = share.connections * plan.streams;
        SlotDriver {
            plan,
            poll,
            scratch,
            memory: plan.requests.iter().map(|_| Memory::default()).collect(),
            slow_read_bytes: slow_read_bytes(plan),
            clock: ThreadClock::default(),
            woke_ns: 0,
            timers: BinaryHeap::new(),
            check_timeouts_ns: 0,
            lanes: LaneState::new(LaneScheduler::new(share, lanes), lanes),
            conns,
            records: Records::new(),
            login: None,
            broadcast,
        }
    }
}

impl SlotDriver<'_> {
    /// When something is to be done, at the latest.
    pub fn next_ns(&self) -> u64 {
        if !self.conns.again.is_empty() {
            return 0;
        }
        let timer_ns = self.timers.peek().map_or(u64::MAX, |Reverse((at_ns, _))| *at_ns);
        // What is due already waits for a lane, and so for an event.
        let due_ns =
            self.lanes.scheduler.held_due_ns().filter(|due_ns| *due_ns > self.clock.now_ns);
        let due_ns = due_ns.unwrap_or(u64::MAX);
        self.check_timeouts_ns.min(timer_ns).min(due_ns)
    }

    /// Where the kernel keeps when answers arrive: until when events may wait, all of them, because a
    /// lane is free for what is due next, and nothing but whole answers is to come.
    pub fn sleeps_until_ns(&mut self) -> Option<u64> {
        if self.plan.unread_ns == 0 || !self.conns.again.is_empty() {
            return None;
        }
        let mut needs_polling = std::mem::take(&mut self.conns.needs_polling);
        needs_polling.retain(|id| {
            let stays = self.must_keep_polling(*id);
            self.conns.pool[*id].needs_polling = stays;
            stays
        });
        self.conns.needs_polling = needs_polling;
        // What is due already waits for a lane.
        let due_ns =
            self.lanes.scheduler.held_due_ns().filter(|due_ns| *due_ns > self.clock.now_ns)?;
        let (delay_budget_ns, unread_ns) = (self.plan.delay_budget_ns, self.plan.unread_ns);
        let until_ns = sleep_until_ns(self.woke_ns, due_ns, delay_budget_ns, unread_ns)?;
        let timer_ns = self.timers.peek().map_or(u64::MAX, |Reverse((at_ns, _))| *at_ns);
        let nothing = self.conns.needs_polling.is_empty();
        nothing.then(|| until_ns.min(timer_ns).min(self.check_timeouts_ns))
    }

    fn keep_polling(&mut self, id: ConnId) {
        if self.plan.unread_ns > 0
            && !std::mem::replace(&mut self.conns.pool[id].needs_polling, true)
        {
            self.conns.needs_polling.push(id);
        }
    }

    /// A connection is being opened, or some of its request or of its answer is lacking.
    fn must_keep_polling(&self, id: ConnId) -> bool {
        let conn = &self.conns.pool[id];
        match (conn.state, &conn.flight, &conn.wire, conn.shared.as_deref()) {
            (State::Connecting | State::Opening, ..) => true,
            (State::Idle, .., Some(Shared { connection: Some(connection), .. })) => {
                connection.is_unfinished()
            }
            (State::Busy, Some(flight), Some(wire), _) if conn.role != Role::Slow => {
                let request = &self.plan.requests[flight.planned.request];
                conn.exchange.response.has_begun() || !conn.exchange.is_sent(wire, request)
            }
            _ => false,
        }
    }

    /// Handles what has happened, and what the clock says.
    pub fn handle(&mut self, events: &mut Vec<Event>) {
        // What the first read of a socket brings was there when the wait ended.
        let seen_ns = self.clock.now_ns;
        let again = std::mem::take(&mut self.conns.again);
        for event in again.into_iter().chain(events.drain(..)) {
            if let Some(id) = self.conns.pool.connection_of(&event) {
                self.on_event(id, event.flags, seen_ns);
            }
            self.send_between();
            self.send_frames();
        }
        self.run_timers();
        self.send_due();
        self.send_frames();
        if self.clock.now_ns >= self.check_timeouts_ns {
            self.check_timeouts();
        }
    }

    fn on_event(&mut self, id: ConnId, flags: EventFlags, seen_ns: u64) {
        let conn = &mut self.conns.pool[id];
        match conn.state {
            State::Connecting => self.on_connected(id, seen_ns),
            State::Opening => self.go_on_opening(id, flags),
            State::Busy => {
                if let (Some(flight), Some(wire)) = (&conn.flight, &mut conn.wire)
                    && flags.contains(EventFlags::OUT)
                {
                    conn.exchange.go_on_sending(wire, &self.plan.requests[flight.planned.request]);
                }
                self.on_readable(id, flags, seen_ns);
            }
            State::Idle if conn.role == Role::Sender => self.hear_sender(id, flags),
            State::Idle => {
                if let Some(connection) = conn.shared_connection() {
                    connection.arrived(is_hangup(flags));
                    self.move_frames(id, seen_ns);
                } else if !conn.is_quiet(flags) {
                    // Nobody asked for what came, or the server closed: it is of no use.
                    self.lost_idle(id);
                }
            }
            State::Closed | State::Resting => {}
        }
    }

    fn set_timer(&mut self, at_ns: u64, timer: Timer) {
        self.timers.push(Reverse((at_ns, timer)));
    }

    fn run_timers(&mut self) {
        let due_ns = self.clock.now_ns;
        let mut end_ns = u64::MAX;
        for _ in 0..TIMERS_AT_ONCE {
            let Some(Reverse((at_ns, timer))) = self.timers.peek().copied() else { return };
            if at_ns > due_ns || self.clock.now_ns > end_ns {
                return;
            }
            self.timers.pop();
            match timer {
                Timer::Free(lane) => self.free(lane, self.clock.now_ns),
                // It was free before.
                Timer::Due(lane) => self.free(lane, at_ns),
                Timer::Connect(id) => {
                    if matches!(self.conns.pool[id].state, State::Resting | State::Closed) {
                        self.connect(id);
                    }
                }
                Timer::Quic(id) => self.on_time_of_quic(id, at_ns),
                Timer::Read(id) => {
                    self.conns.pool[id].paused = false;
                    if self.conns.pool[id].state == State::Busy {
                        self.on_readable(id, EventFlags::IN, self.clock.now_ns);
                    }
                }
            }
            self.send_due();
            // Connecting and sending return the time.
            end_ns = end_ns.min(self.clock.now_ns + TIMERS_WITHIN_NS);
        }
    }

    /// Ends requests and connects older than the timeout, and finds when the next one can be.
    fn check_timeouts(&mut self) {
        let now_ns = self.clock.now_ns;
        let mut oldest_ns = now_ns;
        let mut late = Vec::new();
        let beside = self.conns.idle.iter().chain(&self.conns.sender);
        for id in self.conns.by_origin.iter().flatten().chain(beside) {
            match self.waits_since_ns(*id) {
                Some(since) if now_ns.saturating_sub(since) >= self.plan.timeout_ns => {
                    late.push(*id);
                }
                Some(since) => oldest_ns = oldest_ns.min(since),
                None => {}
            }
        }
        for id in late {
            // What came while this thread was busy with other connections is no timeout.
            if matches!(self.conns.pool[id].state, State::Idle | State::Busy) {
                let seen_ns = self.clock.read();
                self.on_event(id, EventFlags::IN, seen_ns);
            }
            let since_ns = self.waits_since_ns(id);
            if since_ns.is_some_and(|since| now_ns.saturating_sub(since) >= self.plan.timeout_ns) {
                self.timed_out(id, now_ns - self.plan.timeout_ns);
            }
            // Of streams some may have been sent a little later.
            oldest_ns = oldest_ns.min(self.waits_since_ns(id).unwrap_or(oldest_ns));
        }
        // Looking at every connection more often than once a millisecond would be load itself.
        self.check_timeouts_ns = (oldest_ns + self.plan.timeout_ns).max(now_ns + MILLISECOND_NS);
    }

    /// Since when a connection waits for the server, if it does.
    fn waits_since_ns(&self, id: ConnId) -> Option<u64> {
        let conn = &self.conns.pool[id];
        match conn.state {
            State::Connecting | State::Opening => Some(conn.began_ns),
            // Slow readers wait on purpose.
            _ if conn.role == Role::Slow => None,
            _ => conn.waits_since_ns(),
        }
    }

    /// A connect, or what was sent by `sent_ns`, took longer than the timeout.
    fn timed_out(&mut self, id: ConnId, sent_ns: u64) {
        let seconds = self.plan.order.load.timeout_s;
        let conn = &mut self.conns.pool[id];
        if matches!(conn.state, State::Connecting | State::Opening) {
            return self.not_connected(id, &format!("not ready within {seconds} s"));
        }
        if conn.shared.is_none() {
            let bytes = conn.exchange.response.bytes();
            return self.lost(id, Failure::Timeout, &reasons::late(seconds, bytes));
        }
        let connection = self.conns.pool[id].shared_connection();
        let late = connection.map(|connection| connection.take_late(sent_ns)).unwrap_or_default();
        for stream in late {
            let flight = stream.flight;
            if let Some(connection) = self.conns.pool[id].shared_connection()
                && connection.answered_ns() < flight.sent_ns
            {
                // A connection on which nobody was answered meanwhile may be dead.
                connection.retire();
            }
            self.failed(id, &flight, Failure::Timeout, &reasons::late(seconds, stream.bytes()));
            self.finish(id, flight.lane, self.clock.now_ns);
        }
        let connection = self.conns.pool[id].shared_connection();
        let allowed = connection.map_or(0, |connection| connection.allowed());
        let why =
            format!("no stream was free within {seconds} s ({allowed} at a time are allowed)");
        for flight in self.conns.pool[id].take_waiting(|flight| flight.waits_since_ns <= sent_ns) {
            self.failed(id, &flight, reasons::unsent(&flight), &why);
            self.finish(id, flight.lane, self.clock.now_ns);
        }
        self.conns.unsent.push(id);
    }
}

/// What a slow reader takes at a time.
fn slow_read_bytes(plan: &Plan) -> usize {
    let rate = plan.order.load.slow_readers.map_or(0, |slow| slow.bytes_per_s);
    (rate.div_ceil(SLOW_READS_PER_S) as usize).min(READ_BYTES)
}

#[cfg(test)]
mod tests {
    use crate::engine::driver::SlotDriver;
    use crate::engine::exchange::Scratch;
    use crate::engine::plan::Plan;
    use crate::engine::poll::Poll;
    use crate::engine::pool::Pool;
    use crate::engine::schedule::SharedSchedule;

    /// Each is looked at in every turn, and an answer may come in thousands of pieces.
    #[test]
    fn a_connection_is_polled_once() {
        let order = serde_json::json!({
            "requests": [{"url": "http://127.0.0.1:1/"}], "duration_s": 1.0,
            "load": {"loop": "open", "connections": 2, "send_delay_budget_s": 0.001,
                     "arrivals": {"stages": [{"rate_per_s": 1.0}]}},
        });
        let plan = Plan::new(serde_json::from_value(order).expect("an order")).expect("a plan");
        let share = SharedSchedule::new(&plan, 1).expect("a schedule").share_of(&plan, 0);
        let (mut pool, mut scratch) = (Pool::default(), Scratch::new());
        let poll = Poll::new().expect("a poll");
        let mut driver = SlotDriver::new(&plan, &mut pool, &poll, &mut scratch, share);
        let id = driver.conns.by_origin[0][1];
        for _ in 0..3 {
            driver.keep_polling(id);
            driver.keep_polling(id);
            assert_eq!(driver.conns.needs_polling, [id]);
            // It has nothing to do, so it is dropped and may come again.
            driver.sleeps_until_ns();
            assert!(driver.conns.needs_polling.is_empty());
        }
    }
}
