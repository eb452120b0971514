//! The life of a request, from top to bottom: a lane is free and takes it on, it gets a connection,
//! is sent, answered, judged and recorded, and its lane is free again. All protocols go this way;
//! HTTP/2 only has several requests on their way on one connection.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ops::Range;
use std::sync::Arc;

use rustix::event::epoll::{Event, EventFlags};
use rustix::net::RecvFlags;
use rustls::{ClientConfig, ClientConnection};

use super::asks::{Asks, Part};
use super::exchange::{Memory, READ_BYTES, Received, Scratch, Sending};
use super::flight::{Answer, Flight};
use super::link::{Link, LinkEnd, Outcome};
use super::plan::Plan;
use super::poll::{Poll, away_until_ns};
use super::pool::{ConnId, Multi, Pool, Role, State, is_hangup};
use super::reasons;
use super::sight::Sight;
use super::wire::{Options, SMALL_WINDOW_BYTES, Wire};
use crate::clock::{MILLISECOND_NS, SECOND_NS};
use crate::http2::Trouble;
use crate::order::{Protocol, Unit};
use crate::record::{Beside, Failure, Fewest, Recorder};
use crate::schedule::Ask;
use crate::tls;

/// An idle connection asks once, the first request: the first origin is that one's, and a server
/// may accept only connections that have asked (`TCP_DEFER_ACCEPT`, tcp(7)).
const IDLE_ASKS: usize = 0;
/// How often a slow reader reads.
const SLOW_READS_PER_S: u32 = 10;
/// A connection that always has more to read gives way to the others after so many reads.
const READS_AT_ONCE: usize = 4;
/// Rests between failed connections double up to about 100 ms.
const MOST_DOUBLINGS: u32 = 7;
/// Connections that are opened at once; the others follow at a pace that listen queues can take.
const OPENED_AT_ONCE: usize = 64;
const OPENED_PER_MS: usize = 32;
/// Answers must not wait until thousands of connections are opened, each of which can take
/// milliseconds when the kernel has to search for a free port.
const TIMERS_AT_ONCE: usize = 64;
const TIMERS_WITHIN_NS: u64 = MILLISECOND_NS;

/// What is to be done at a given time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Timer {
    /// A lane begins, or its pause is over.
    Free(usize),
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
    pub sight: Sight,
    /// Of the load, in the present window.
    pub recorder: Recorder,
    pub beside: Beside,
    pub asks: Asks,
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
    attended: Vec<ConnId>,
    /// When the last wait ended.
    pub woke_ns: u64,
    /// HTTP/2 connections with something to send.
    unsent: Vec<ConnId>,
    /// By origin.
    tls: Vec<Option<Arc<ClientConfig>>>,
    slow_read_bytes: usize,
    /// Open loop: of requests that are due in this time, times are recorded; and how many of
    /// them are on their way.
    told_ns: Range<u64>,
    owed: usize,
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
    pub awaited: usize,
}

impl<'a> Life<'a> {
    pub fn new(
        plan: &'a Plan,
        pool: &'a mut Pool,
        poll: &'a Poll,
        scratch: &'a mut Scratch,
        part: Part,
    ) -> Self {
        let load = [(Role::Load, part.connections), (Role::Slow, part.slow)];
        // Idle connections are held to the first origin.
        let all = [load[0], load[1], (Role::Idle, part.idle)];
        pool.begin_slot();
        let claim =
            |(index, origin)| pool.claim(origin, index, if index == 0 { &all } else { &load });
        let mut conns: Vec<_> = plan.origins.iter().enumerate().map(claim).collect();
        let idle = conns[0].split_off(part.connections + part.slow);
        if plan.requests_per_connection != u32::MAX {
            conns.iter().flatten().for_each(|id| pool[*id].close());
        }
        let tls = plan.origins.iter().map(|origin| pool.tls(origin, plan.tls.as_ref())).collect();
        let (connections, lanes) = (part.connections, part.connections * plan.streams);
        Life {
            plan,
            pool,
            poll,
            scratch,
            sight: Sight::default(),
            recorder: Recorder::default(),
            beside: Beside::default(),
            asks: Asks::new(part, lanes),
            conns,
            idle,
            connections,
            lanes,
            memory: plan.requests.iter().map(|_| Memory::default()).collect(),
            timers: BinaryHeap::new(),
            again: Vec::new(),
            attended: Vec::new(),
            woke_ns: 0,
            unsent: Vec::new(),
            tls,
            slow_read_bytes: slow_read_bytes(plan),
            told_ns: 0..u64::MAX,
            owed: 0,
            over_since_ns: None,
            check_timeouts_ns: 0,
            unreachable_since_ns: None,
            reached: false,
            hopeless: false,
            connects: 0,
            draining: false,
            awaited: 0,
        }
    }

    // Beginning and end.

    /// Opens idle connections and, in an open loop, those that serve many requests.
    pub fn open_ahead(&mut self) {
        self.sight.look();
        self.check_timeouts_ns = self.sight.now_ns + self.plan.timeout_ns;
        for (nth, id) in self.wanted_ahead().into_iter().enumerate() {
            if self.pool[id].state == State::Closed {
                self.at(self.sight.now_ns + pace_ns(nth), Timer::Connect(id));
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
        let serve_many = self.asks.is_open() && self.plan.requests_per_connection == u32::MAX;
        let load = if serve_many { &self.conns[0][..self.connections] } else { &[] };
        load.iter().chain(&self.idle).copied().collect()
    }

    /// Sets all lanes in motion.
    pub fn begin(&mut self, start_ns: u64) {
        self.sight.begin(start_ns);
        let last = self.plan.lead_in_ns.saturating_add(self.plan.duration_ns);
        let last = last.saturating_add(self.plan.tail_ns());
        self.asks.begin(start_ns, start_ns.saturating_add(last));
        let told = self.plan.told_ns();
        self.told_ns = start_ns.saturating_add(told.start)..start_ns.saturating_add(told.end);
        self.check_timeouts_ns = start_ns + self.plan.timeout_ns;
        let slow = self.conns[0].len() - self.connections;
        for lane in 0..self.lanes + slow {
            let opened = if self.asks.is_open() { 0 } else { self.number_of(lane) };
            self.at(start_ns + pace_ns(opened), Timer::Free(lane));
        }
    }

    /// Everything due before `end_ns` has been answered, or has failed.
    pub fn has_told_all(&self, end_ns: u64) -> bool {
        self.owed == 0 && self.asks.is_taken_until(end_ns)
    }

    /// The server can't be reached: as asked, or for the whole timeout where only a count could
    /// end the slot.
    pub fn gave_up(&self) -> bool {
        let since = self.unreachable_since_ns;
        let patience_ns = self.plan.timeout_ns;
        let endless = self.plan.duration_ns == u64::MAX;
        self.hopeless
            || endless && since.is_some_and(|since| self.sight.now_ns - since >= patience_ns)
    }

    /// How many requests of the load are on their way.
    pub fn in_flight(&self) -> usize {
        let of_load = self.conns.iter().flat_map(|ids| &ids[..self.connections]);
        of_load.map(|id| self.pool[*id].in_flight().count()).sum()
    }

    /// From here on valid answers to what was sent before are late.
    pub fn window_is_over(&mut self) {
        self.over_since_ns = Some(self.sight.now_ns);
        self.recorder.counts.requests.unanswered = self.in_flight() as u64;
    }

    /// Nothing more is asked. What is due and not sent by now, or not answered, enters the times
    /// with how long it has waited.
    pub fn settle(&mut self, end_ns: u64) {
        self.draining = true;
        self.timers.clear();
        let mut unsent = Vec::from_iter(self.asks.end());
        let mut unanswered = Vec::new();
        for id in self.conns.iter().flatten() {
            let conn = &mut self.pool[*id];
            if conn.role == Role::Slow {
                self.beside.slow.counts.requests.unanswered += u64::from(conn.state == State::Busy);
                conn.flight = None;
                conn.close();
                continue;
            }
            unanswered.extend(conn.in_flight().map(|flight| flight.ask));
            let waiting = conn.multi.iter_mut().flat_map(|multi| multi.waiting.drain(..));
            let waiting: Vec<Flight> =
                waiting.chain(conn.flight.take_if(|flight| flight.sent_ns == 0)).collect();
            for flight in waiting {
                // What was to be asked again had been counted as sent.
                self.recorder.counts.requests.unanswered += u64::from(flight.counted);
                unsent.push(flight.ask);
            }
            if conn.state == State::Resting {
                conn.state = State::Closed;
            }
        }
        self.awaited = unanswered.len();
        if self.over_since_ns.is_none() {
            self.over_since_ns = Some(self.sight.now_ns);
            self.recorder.counts.requests.unanswered += unanswered.len() as u64;
        }
        let is_told = |ask: &Ask| ask.due_ns.filter(|due_ns| self.told_ns.contains(due_ns));
        for due_ns in unanswered.iter().filter_map(is_told) {
            self.recorder.times.waited.record(end_ns.saturating_sub(due_ns));
        }
        for due_ns in unsent.iter().filter_map(is_told).filter(|due_ns| *due_ns < end_ns) {
            self.recorder.counts.requests.unsent += 1;
            self.recorder.times.waited.record(end_ns - due_ns);
        }
        let busy = |id: &&ConnId| self.pool[**id].state == State::Busy;
        self.beside.idle.counts.requests.unanswered = self.idle.iter().filter(busy).count() as u64;
    }

    /// Closes the connections on which something is not finished; tells how many idle ones are
    /// held.
    pub fn close_unfinished(&mut self) -> u64 {
        for id in self.conns.iter().flatten().chain(&self.idle) {
            let conn = &mut self.pool[*id];
            let settled = matches!(conn.state, State::Idle | State::Closed);
            if !settled || conn.in_flight().next().is_some() {
                conn.flight = None;
                conn.close();
            }
        }
        let held = |id: &&ConnId| self.pool[**id].state == State::Idle;
        self.idle.iter().filter(held).count() as u64
    }

    // What drives it.

    /// When something is to be done, at the latest.
    pub fn next_ns(&self) -> u64 {
        if !self.again.is_empty() {
            return 0;
        }
        let timer_ns = self.timers.peek().map_or(u64::MAX, |Reverse((at_ns, _))| *at_ns);
        // What is due already waits for a lane, and so for an event.
        let due_ns = self.asks.held_due_ns().filter(|due_ns| *due_ns > self.sight.now_ns);
        let due_ns = due_ns.unwrap_or(u64::MAX);
        self.check_timeouts_ns.min(timer_ns).min(due_ns)
    }

    /// With a budget for the send lag: until when events may wait, all of them, because a lane is
    /// free for what is due next, and nothing but whole answers is to come.
    pub fn looks_away_until_ns(&mut self) -> Option<u64> {
        if self.plan.quantum_ns == 0 || !self.again.is_empty() {
            return None;
        }
        let mut attended = std::mem::take(&mut self.attended);
        attended.retain(|id| self.is_our_turn(*id));
        self.attended = attended;
        // What is due already waits for a lane.
        let due_ns = self.asks.held_due_ns().filter(|due_ns| *due_ns > self.sight.now_ns)?;
        let until_ns = away_until_ns(self.woke_ns, due_ns, self.plan.quantum_ns)?;
        let timer_ns = self.timers.peek().map_or(u64::MAX, |Reverse((at_ns, _))| *at_ns);
        let nothing = self.attended.is_empty();
        nothing.then(|| until_ns.min(timer_ns).min(self.check_timeouts_ns))
    }

    fn attend(&mut self, id: ConnId) {
        if self.plan.quantum_ns > 0 {
            self.attended.push(id);
        }
    }

    /// A connection is being opened, or some of its request or of its answer is lacking.
    fn is_our_turn(&self, id: ConnId) -> bool {
        let conn = &self.pool[id];
        match (conn.state, &conn.flight, &conn.wire, conn.multi.as_deref()) {
            (State::Connecting | State::Opening, ..) => true,
            (State::Idle, .., Some(Multi { link: Some(link), .. })) => link.is_reading(),
            (State::Busy, Some(flight), Some(wire), _) if conn.role != Role::Slow => {
                let request = &self.plan.requests[flight.ask.request];
                conn.exchange.response.has_begun() || !conn.exchange.is_sent(wire, request)
            }
            _ => false,
        }
    }

    /// Handles what has happened, and what the clock says.
    pub fn handle(&mut self, events: &mut Vec<Event>) {
        // An answer that one read brings was there when the wait ended.
        let seen_ns = self.sight.now_ns;
        let again = std::mem::take(&mut self.again);
        for event in again.into_iter().chain(events.drain(..)) {
            if let Some(id) = self.pool.happened(&event) {
                self.on_event(id, event.flags, seen_ns);
            }
            self.send_due();
            self.send_frames();
        }
        self.run_timers();
        self.send_due();
        self.send_frames();
        if self.sight.now_ns >= self.check_timeouts_ns {
            self.check_timeouts();
        }
    }

    fn on_event(&mut self, id: ConnId, flags: EventFlags, seen_ns: u64) {
        let conn = &mut self.pool[id];
        match conn.state {
            State::Connecting => self.on_connected(id, seen_ns),
            State::Opening => self.go_on_opening(id, flags),
            State::Busy => {
                if let (Some(flight), Some(wire)) = (&conn.flight, &mut conn.wire)
                    && flags.contains(EventFlags::OUT)
                {
                    conn.exchange.go_on_sending(wire, &self.plan.requests[flight.ask.request]);
                }
                self.on_readable(id, flags, seen_ns);
            }
            State::Idle => {
                if let Some(link) = conn.link() {
                    link.arrived(is_hangup(flags));
                    self.move_frames(id, seen_ns);
                } else if !conn.is_quiet(flags) {
                    // Nobody asked for what came, or the server closed: it is of no use.
                    self.lost_idle(id);
                }
            }
            State::Closed | State::Resting => {}
        }
    }

    fn at(&mut self, at_ns: u64, timer: Timer) {
        self.timers.push(Reverse((at_ns, timer)));
    }

    fn run_timers(&mut self) {
        let due_ns = self.sight.now_ns;
        let mut end_ns = u64::MAX;
        for _ in 0..TIMERS_AT_ONCE {
            let Some(Reverse((at_ns, timer))) = self.timers.peek().copied() else { return };
            if at_ns > due_ns || self.sight.now_ns > end_ns {
                return;
            }
            self.timers.pop();
            match timer {
                Timer::Free(lane) => self.free(lane, self.sight.now_ns),
                Timer::Connect(id) => {
                    if matches!(self.pool[id].state, State::Resting | State::Closed) {
                        self.connect(id);
                    }
                }
                Timer::Read(id) => {
                    self.pool[id].paused = false;
                    if self.pool[id].state == State::Busy {
                        self.on_readable(id, EventFlags::IN, self.sight.now_ns);
                    }
                }
            }
            self.send_due();
            // Connecting and sending tell the time.
            end_ns = end_ns.min(self.sight.now_ns + TIMERS_WITHIN_NS);
        }
    }

    // A lane is free and takes a request on.

    /// A lane has nothing in flight since `since_ns`.
    fn free(&mut self, lane: usize, since_ns: u64) {
        if lane >= self.lanes {
            let ask = self.asks.next_slow();
            self.start(lane, ask);
        } else if !self.asks.is_open() {
            if let Some(ask) = self.asks.next_of_stock() {
                self.start(lane, ask);
            }
        } else if self.session_goes_on(lane) {
            let ask = self.asks.next_undue();
            self.start(lane, ask);
        } else {
            let number = self.number_of(lane);
            let was_lost = self.conns.iter().any(|ids| self.pool[ids[number]].strikes > 0);
            self.asks.wait(lane, was_lost);
            self.take(since_ns);
            self.dispatch();
        }
    }

    /// Where whole connections are due, the requests of one follow each other.
    fn session_goes_on(&self, lane: usize) -> bool {
        let arrivals = self.plan.order.load.arrivals.as_ref();
        arrivals.is_some_and(|arrivals| arrivals.unit == Unit::Connection)
            && self.conns.iter().any(|ids| {
                let conn = &self.pool[ids[lane]];
                let multi = conn.multi.as_ref().and_then(|multi| multi.link.as_ref());
                conn.state == State::Idle && conn.requests > 0 && multi.is_none_or(Link::is_usable)
            })
    }

    fn take(&mut self, free_since_ns: u64) {
        let held = self.asks.held_due_ns();
        self.asks.take(self.sight.now_ns, free_since_ns);
        let taken = self.asks.held_due_ns().filter(|_| held.is_none());
        self.owed += usize::from(taken.is_some_and(|due_ns| self.told_ns.contains(&due_ns)));
    }

    /// Open loop: what is due must not wait until all events are handled.
    fn send_due(&mut self) {
        if self.asks.held_due_ns().is_some() {
            self.sight.look();
            self.dispatch();
        }
    }

    /// HTTP/2: sends what was handed to connections.
    fn send_frames(&mut self) {
        while let Some(id) = self.unsent.pop() {
            self.move_frames(id, self.sight.now_ns);
        }
    }

    /// Sends what is due, as long as lanes are free.
    fn dispatch(&mut self) {
        loop {
            let (pool, ids, connections) = (&mut *self.pool, &self.conns[0], self.connections);
            let has_room = |lane: &usize| match pool[ids[lane % connections]].multi.as_deref_mut() {
                Some(Multi { link: Some(link), waiting }) => {
                    link.has_room() && link.in_flight + waiting.len() < link.allowed
                }
                _ => true,
            };
            let Some((lane, ask)) = self.asks.next_due(self.sight.now_ns, has_room) else { return };
            self.start(lane, ask);
            // The next lane has been free at least since this request was due.
            self.take(ask.ready_ns);
        }
    }

    /// The number of a lane's connection; the streams of one connection are lanes far apart, so
    /// that the first ones spread.
    fn number_of(&self, lane: usize) -> usize {
        match lane {
            first if first < self.connections => first,
            lane if lane < self.lanes => lane % self.connections,
            slow => slow - self.lanes + self.connections,
        }
    }

    fn start(&mut self, lane: usize, ask: Ask) {
        let number = self.number_of(lane);
        let id = self.conns[self.plan.requests[ask.request].origin][number];
        let conn = &mut self.pool[id];
        match &mut conn.multi {
            Some(multi) => multi.waiting.push_back(Flight::new(lane, ask)),
            None => conn.flight = Some(Flight::new(lane, ask)),
        }
        match conn.state {
            State::Idle => self.send(id),
            State::Closed => self.reopen(id),
            // It sends when it is ready.
            State::Resting | State::Connecting | State::Opening | State::Busy => {}
        }
    }

    // It gets a connection.

    /// Connects, after a while if that failed before, so that a server that closes at once isn't
    /// hammered.
    fn reopen(&mut self, id: ConnId) {
        let conn = &mut self.pool[id];
        if conn.rests_until_ns <= self.sight.now_ns {
            return self.connect(id);
        }
        conn.state = State::Resting;
        let until_ns = conn.rests_until_ns;
        self.at(until_ns, Timer::Connect(id));
    }

    /// A connection was of no use: the next one is opened later, and later again after that.
    fn strike(&mut self, id: ConnId) {
        let conn = &mut self.pool[id];
        let doublings = conn.strikes.min(MOST_DOUBLINGS);
        conn.strikes += 1;
        let rest_ns = (MILLISECOND_NS << doublings).min(100 * MILLISECOND_NS);
        conn.rests_until_ns = self.sight.now_ns + rest_ns;
    }

    fn connect(&mut self, id: ConnId) {
        let began_ns = self.sight.look();
        let sources = &self.plan.sources;
        let source = (!sources.is_empty()).then(|| sources[self.connects % sources.len()]);
        self.connects += 1;
        let conn = &mut self.pool[id];
        conn.began_ns = began_ns;
        if conn.role == Role::Idle {
            let ask = Ask { request: IDLE_ASKS, due_ns: None, ready_ns: 0 };
            conn.flight = Some(Flight::new(conn.number, ask));
        }
        let waiting = conn.multi.iter_mut().flat_map(|multi| &mut multi.waiting);
        for flight in waiting.chain(&mut conn.flight) {
            turned_to(flight, began_ns, &self.told_ns, &mut self.recorder);
        }
        let options = Options {
            source,
            window_bytes: (conn.role == Role::Slow).then_some(SMALL_WINDOW_BYTES),
            no_delay: self.plan.no_delay,
            stamped: self.plan.origins[conn.origin].stamped,
        };
        let origin = &self.plan.origins[conn.origin];
        match Wire::open(&origin.addresses[conn.address], options) {
            Err(error) => self.not_connected(id, &error.to_string()),
            Ok((wire, connected)) => {
                conn.wire = Some(wire);
                conn.state = State::Connecting;
                match origin.tls.is_none() && origin.protocol == Protocol::Http1 {
                    true => self.send_at_once(id, connected),
                    false => self.watch(id, true),
                }
            }
        }
    }

    /// On loopback a connection is mostly there at once, so sending is tried without waiting for
    /// the event: that saves one wake-up per connection.
    fn send_at_once(&mut self, id: ConnId, connected: bool) {
        if self.pool[id].flight.is_none() && !connected {
            return self.watch(id, true);
        }
        self.prepare(id);
        let sent_ns = self.sight.look();
        match self.write(id) {
            Sending::Nothing if !connected => self.watch(id, true),
            Sending::Broken(error) => self.not_connected(id, &error.to_string()),
            outcome => {
                self.pool[id].connected_ns = sent_ns;
                self.established(id);
                self.sent(id, sent_ns);
                self.watch(id, !matches!(outcome, Sending::All));
            }
        }
    }

    fn watch(&mut self, id: ConnId, room: bool) {
        self.attend(id);
        let key = self.pool.key(id);
        let conn = &mut self.pool[id];
        conn.watches_room = room;
        let Some(wire) = &conn.wire else { return };
        if let Err(error) = self.poll.watch(wire, key, room) {
            self.no_connection(id, &format!("cannot watch the socket: {error}"));
        }
    }

    fn on_connected(&mut self, id: ConnId, seen_ns: u64) {
        let conn = &mut self.pool[id];
        let Some(wire) = &mut conn.wire else { return };
        if let Err(error) = wire.connected() {
            return self.not_connected(id, &error.to_string());
        }
        conn.connected_ns = seen_ns;
        let tls = self.plan.origins[conn.origin].tls.as_ref().zip(self.tls[conn.origin].as_ref());
        if let Some(((name, _), config)) = tls {
            match ClientConnection::new(Arc::clone(config), name.clone()) {
                Ok(tls) => wire.secure(tls),
                Err(error) => return self.no_connection(id, &format!("TLS: {error}")),
            }
        }
        conn.state = State::Opening;
        self.go_on_opening(id, EventFlags::empty());
    }

    /// TLS is agreed upon, then HTTP/2 begun.
    fn go_on_opening(&mut self, id: ConnId, flags: EventFlags) {
        let conn = &mut self.pool[id];
        let origin = &self.plan.origins[conn.origin];
        if let Some(wire) = &mut conn.wire {
            match wire.handshake() {
                Ok(false) => return,
                Ok(true) => {}
                Err(error) => return self.refused(id, reasons::no_tls(origin, &error)),
            }
            if let Some((alpn, resumed)) = wire.agreed() {
                let took_ns = self.sight.look() - conn.connected_ns;
                if origin.protocol == Protocol::Http2 && alpn != Some(tls::ALPN_HTTP2) {
                    return self.refused(id, reasons::no_alpn(origin));
                }
                conn.handshake = Some((took_ns, resumed));
            }
        }
        let Some(multi) = &mut conn.multi else {
            self.established(id);
            return self.send(id);
        };
        if let Some(wire) = conn.wire.take() {
            multi.link = Some(Link::begin(wire));
        }
        let Some(link) = &mut multi.link else { return };
        link.arrived(is_hangup(flags));
        let more = link.move_frames();
        if !link.is_usable() {
            let end = multi.link.take().and_then(Link::into_end);
            return self.refused(id, reasons::no_http2(origin, end));
        }
        if link.allowed > 0 {
            // Without a limit the library says the largest number there is.
            let allowed = u32::try_from(link.allowed).unwrap_or(u32::MAX);
            self.recorder.counts.http2.streams_allowed += Fewest(Some(allowed));
            conn.state = State::Idle;
            self.established(id);
            self.send(id);
        }
        if more {
            self.handle_again(id, flags);
        }
    }

    /// A connection is ready for requests.
    fn established(&mut self, id: ConnId) {
        let conn = &mut self.pool[id];
        conn.failed_addresses = 0;
        let (connect_ns, role) = (conn.connected_ns - conn.began_ns, conn.role);
        let handshake = conn.handshake.take();
        let book = book_of(role, &mut self.recorder, &mut self.beside);
        book.counts.seen.connections.opened += 1;
        book.times.connect.record(connect_ns);
        if let Some((took_ns, resumed)) = handshake {
            book.times.handshake.record(took_ns);
            book.counts.handshakes.resumed += u64::from(resumed);
            book.counts.handshakes.full += u64::from(!resumed);
        }
        self.reached = true;
        if role != Role::Idle {
            self.unreachable_since_ns = None;
        }
    }

    /// An address could not be connected to: the next one is tried.
    fn not_connected(&mut self, id: ConnId, why: &str) {
        let conn = &mut self.pool[id];
        let addresses = self.plan.origins[conn.origin].addresses.len();
        conn.address = (conn.address + 1) % addresses;
        conn.failed_addresses += 1;
        if conn.failed_addresses < addresses {
            conn.close();
            return self.connect(id);
        }
        conn.failed_addresses = 0;
        self.no_connection(id, why);
    }

    /// The server would not have it; where that is for good, the slot is without hope.
    fn refused(&mut self, id: ConnId, (why, for_good): (String, bool)) {
        self.hopeless |= for_good && !self.reached;
        self.no_connection(id, &why);
    }

    fn no_connection(&mut self, id: ConnId, why: &str) {
        let conn = &mut self.pool[id];
        let text = format!("connect to {}: {why}", self.plan.origins[conn.origin]);
        conn.close();
        let book = book_of(conn.role, &mut self.recorder, &mut self.beside);
        book.counts.seen.failures.count(Failure::Connect);
        book.counts.seen.failure_samples.keep(text);
        if conn.role != Role::Idle {
            self.unreachable_since_ns.get_or_insert(self.sight.now_ns);
        }
        self.strike(id);
        if !self.draining {
            self.reopen(id);
        }
    }

    // It is sent.

    /// Sends a connection's request, if it has one.
    fn send(&mut self, id: ConnId) {
        let conn = &mut self.pool[id];
        if let Some(multi) = &mut conn.multi {
            if !multi.waiting.is_empty() {
                self.unsent.push(id);
            }
            return;
        }
        if conn.flight.is_none() {
            conn.state = State::Idle;
            return;
        }
        self.prepare(id);
        let sent_ns = self.sight.look();
        match self.write(id) {
            Sending::All => self.sent(id, sent_ns),
            Sending::Some | Sending::Nothing => {
                self.sent(id, sent_ns);
                self.watch_room(id);
            }
            // Closed by the server before we wrote: not a sent request; open a new connection.
            Sending::Broken(_) => {
                self.server_closed(id);
                self.pool[id].close();
                self.strike(id);
                self.reopen(id);
            }
        }
    }

    /// Makes a connection ready for the request it is to send.
    fn prepare(&mut self, id: ConnId) {
        let conn = &mut self.pool[id];
        let Some(flight) = conn.flight else { return };
        let request = &self.plan.requests[flight.ask.request];
        let is_idle = conn.role == Role::Idle;
        let hash = self.memory[flight.ask.request].next_hash(request, !is_idle);
        let last = !is_idle && conn.requests + 1 >= self.plan.requests_per_connection;
        conn.exchange.begin(request, hash, last, self.plan.order.load.cookies);
    }

    #[inline(always)]
    fn write(&mut self, id: ConnId) -> Sending {
        let conn = &mut self.pool[id];
        match (&conn.flight, &mut conn.wire) {
            (Some(flight), Some(wire)) => {
                conn.exchange.send(wire, &self.plan.requests[flight.ask.request])
            }
            _ => Sending::All,
        }
    }

    fn sent(&mut self, id: ConnId, sent_ns: u64) {
        let conn = &mut self.pool[id];
        let Some(flight) = &mut conn.flight else {
            conn.state = State::Idle;
            return;
        };
        turned_to(flight, sent_ns, &self.told_ns, &mut self.recorder);
        (flight.sent_ns, flight.counted) = (sent_ns, true);
        conn.state = State::Busy;
        let reused = conn.requests > 0;
        conn.requests += 1;
        let book = book_of(conn.role, &mut self.recorder, &mut self.beside);
        book.counts.requests.sent += 1;
        book.counts.seen.connections.reused_requests += u64::from(reused);
    }

    fn watch_room(&mut self, id: ConnId) {
        self.attend(id);
        let key = self.pool.key(id);
        let conn = &mut self.pool[id];
        if let Some(wire) = &conn.wire
            && !std::mem::replace(&mut conn.watches_room, true)
        {
            // It is watched already, so this takes no memory of the kernel's that could lack.
            let _ = self.poll.watch_room(wire, key);
        }
    }

    /// HTTP/2: hands over what waits, as far as there are streams for it.
    fn submit(&mut self, id: ConnId) {
        let conn = &mut self.pool[id];
        let Some(Multi { link: Some(link), waiting }) = conn.multi.as_deref_mut() else { return };
        while !waiting.is_empty() && link.has_room() {
            let sent_ns = self.sight.look();
            let Some(mut flight) = waiting.pop_front() else { return };
            let asked_before = flight.counted;
            let request = &self.plan.requests[flight.ask.request];
            let Some(message) = &request.message else { return };
            turned_to(&mut flight, sent_ns, &self.told_ns, &mut self.recorder);
            (flight.sent_ns, flight.counted) = (sent_ns, true);
            let hash = self.memory[flight.ask.request].next_hash(request, true);
            let number = flight.lane / self.connections;
            if !link.send(number, flight, message, request.is_head, hash) {
                let unsent = Flight { sent_ns: 0, counted: asked_before, ..flight };
                return waiting.push_front(unsent);
            }
            self.recorder.counts.requests.sent += u64::from(!asked_before);
            self.recorder.counts.seen.connections.reused_requests +=
                u64::from(!asked_before && conn.requests > 0);
            conn.requests += 1;
            if conn.requests >= self.plan.requests_per_connection {
                link.retire();
            }
        }
    }

    // It is answered.

    /// Reads until the socket is empty or the answer complete, but not for ever.
    fn on_readable(&mut self, id: ConnId, flags: EventFlags, seen_ns: u64) {
        let conn = &mut self.pool[id];
        let slow = conn.role == Role::Slow;
        if slow && conn.paused {
            return;
        }
        let hangup = is_hangup(flags) && !slow;
        let defers = self.plan.asks_at_once && !hangup;
        let mut done_ns = seen_ns;
        for _ in 0..READS_AT_ONCE {
            let conn = &mut self.pool[id];
            let (Some(flight), Some(wire)) = (&conn.flight, &mut conn.wire) else { return };
            if done_ns < flight.sent_ns {
                done_ns = self.sight.look();
            }
            let memory = &mut self.memory[flight.ask.request];
            let exchange = &mut conn.exchange;
            let received = if slow {
                let room = self.slow_read_bytes;
                exchange.receive_up_to(room, RecvFlags::empty(), wire, self.scratch, memory)
            } else {
                exchange.receive(wire, self.scratch, memory, defers)
            };
            if wire.arrived_ns > 0 {
                done_ns = wire.arrived_ns.max(flight.sent_ns);
            }
            if exchange.first_byte_ns == 0 && exchange.response.has_begun() {
                exchange.first_byte_ns = done_ns;
            }
            match received {
                Received::Nothing => return,
                Received::Part { .. } if slow => return self.pause(id),
                Received::Part { drained } if drained && !hangup => return self.attend(id),
                // More may have come since the wait ended.
                Received::Part { .. } => done_ns = self.sight.look(),
                Received::Answer => return self.on_answer(id, done_ns, hangup),
                Received::Malformed(malformed) => {
                    return self.lost(id, Failure::Malformed, &malformed.to_string());
                }
                Received::Closed { cut } => return self.on_closed(id, done_ns, cut),
                Received::Lost(error) => {
                    let (failure, why) = reasons::lost(&error);
                    self.server_closed(id);
                    return self.lost(id, failure, &why);
                }
            }
        }
        self.handle_again(id, flags);
    }

    /// More is there, but it is the others' turn.
    fn handle_again(&mut self, id: ConnId, flags: EventFlags) {
        self.again.push(Event { flags, data: self.pool.key(id) });
    }

    fn pause(&mut self, id: ConnId) {
        self.pool[id].paused = true;
        let pause_ns = SECOND_NS / u64::from(SLOW_READS_PER_S);
        self.at(self.sight.now_ns + pause_ns, Timer::Read(id));
    }

    /// The server ended the connection while we wait for an answer.
    fn on_closed(&mut self, id: ConnId, done_ns: u64, cut: bool) {
        let response = &mut self.pool[id].exchange.response;
        if !cut && response.end_of_stream() {
            return self.on_answer(id, done_ns, true);
        }
        let begun = response.has_begun();
        self.server_closed(id);
        if begun {
            self.lost(id, Failure::Truncated, "closed in the middle of the answer");
        } else {
            self.lost(id, Failure::Reset, "closed without an answer");
        }
    }

    fn on_answer(&mut self, id: ConnId, done_ns: u64, hangup: bool) {
        let conn = &mut self.pool[id];
        let (Some(flight), Some(wire)) = (conn.flight.take(), &conn.wire) else { return };
        let request = &self.plan.requests[flight.ask.request];
        let exchange = &mut conn.exchange;
        let stays = exchange.response.keep_alive
            && !hangup
            && !exchange.last
            && exchange.is_sent(wire, request);
        let answer = Answer {
            status: exchange.response.status,
            head_bytes: exchange.response.head_bytes,
            body_bytes: exchange.response.body_bytes,
            hash: exchange.end(&mut self.memory[flight.ask.request], done_ns),
            // Of the first segment it may not be known when it arrived, but of the last.
            first_byte_ns: exchange.first_byte_ns.min(done_ns),
            done_ns,
        };
        if conn.role != Role::Idle {
            conn.strikes = 0;
        }
        self.answered(id, &flight, answer);
        if stays {
            self.pool[id].state = State::Idle;
        } else {
            self.server_closed(id);
            // Closing a socket with unread bytes would reset the connection.
            self.discard(id);
            self.pool[id].close();
        }
        self.finish(id, flight.lane, done_ns);
        self.discard(id);
    }

    /// Takes out of the kernel what was left there until the next request was sent.
    fn discard(&mut self, id: ConnId) {
        let conn = &mut self.pool[id];
        if let Some(wire) = &mut conn.wire {
            conn.exchange.discard(wire, self.scratch);
        }
    }

    /// HTTP/2: moves frames both ways until nothing more moves, but not for ever.
    fn move_frames(&mut self, id: ConnId, seen_ns: u64) {
        let mut done_ns = seen_ns;
        for _ in 0..READS_AT_ONCE {
            let Some(link) = self.pool[id].link() else { return };
            let more = link.move_frames();
            if link.arrived_ns() > 0 {
                done_ns = link.arrived_ns();
            }
            while let Some((flight, outcome)) =
                self.pool[id].link().and_then(|link| link.next_ended(done_ns))
            {
                self.on_outcome(id, flight, outcome, done_ns);
            }
            self.submit(id);
            let Some(link) = self.pool[id].link() else { return };
            if !more && !link.dirty {
                self.attend(id);
                return self.end_link(id);
            }
            done_ns = self.sight.look();
        }
        self.handle_again(id, EventFlags::IN);
    }

    fn on_outcome(&mut self, id: ConnId, mut flight: Flight, outcome: Outcome, done_ns: u64) {
        let answers = self.pool[id].link().is_some_and(|link| link.answered_ns > 0);
        match outcome {
            Outcome::Answered(answer) => {
                self.pool[id].strikes = 0;
                self.answered(id, &flight, answer);
            }
            // Where nothing is ever answered, this could go on for ever.
            Outcome::Trouble(Trouble::Unprocessed, _) if answers && !self.draining => {
                self.recorder.counts.http2.asked_again += 1;
                flight.sent_ns = 0;
                let waiting = self.pool[id].multi.as_mut().map(|multi| &mut multi.waiting);
                return waiting.into_iter().for_each(|waiting| waiting.push_back(flight));
            }
            Outcome::Trouble(trouble, why) => {
                let http2 = &mut self.recorder.counts.http2;
                http2.refused_streams += u64::from(trouble == Trouble::Refused);
                http2.reset_streams += u64::from(trouble == Trouble::Reset);
                self.failed(id, &flight, trouble.failure(), &why);
            }
        }
        self.finish(id, flight.lane, done_ns);
    }

    /// HTTP/2: closes a connection that takes no more requests and has none in flight.
    fn end_link(&mut self, id: ConnId) {
        let conn = &mut self.pool[id];
        let Some(multi) = &mut conn.multi else { return };
        let Some(link) = multi.link.take_if(|link| !link.is_usable() && link.in_flight == 0) else {
            return;
        };
        let (waits, answers) = (!multi.waiting.is_empty(), link.answered_ns > 0);
        let end = link.into_end();
        conn.close();
        let server_ended = !matches!(end, Some(LinkEnd::Retired));
        self.recorder.counts.server_closed += u64::from(server_ended);
        if matches!(end, Some(LinkEnd::GoAway)) {
            self.recorder.counts.http2.go_aways += 1;
        }
        if server_ended && !answers || matches!(end, Some(LinkEnd::Lost(Some(_)))) {
            self.strike(id);
        }
        if waits && !self.draining {
            self.reopen(id);
        }
    }

    // It is judged and recorded, and its lane is free again.

    fn answered(&mut self, id: ConnId, flight: &Flight, answer: Answer) {
        self.resolve(flight);
        let role = self.pool[id].role;
        let request = &self.plan.requests[flight.ask.request];
        let book = book_of(role, &mut self.recorder, &mut self.beside);
        book.counts.seen.by_status.count(answer.status);
        book.counts.seen.bytes.head += answer.head_bytes;
        book.counts.seen.bytes.body += answer.body_bytes;
        let Answer { status, body_bytes, .. } = answer;
        let hash = answer.hash.map(|hash| *hash);
        if let Some(failure) = request.expect.judge(status, body_bytes, hash) {
            book.counts.seen.failures.count(failure);
            if let Some(endpoint) = request.endpoint {
                book.times.endpoints.at(endpoint).failed += 1;
            }
            if !book.counts.seen.failure_samples.is_full() {
                let text = reasons::mismatch(failure, request, status, body_bytes);
                let in_scratch = self.pool[id].multi.is_none();
                let read = if in_scratch { self.scratch.last_read() } else { &[] };
                book.counts.seen.failure_samples.keep(reasons::with_bytes(text, read));
            }
            return;
        }
        book.counts.requests.completed += 1;
        if self.over_since_ns.is_some_and(|over_ns| flight.sent_ns <= over_ns) {
            book.counts.requests.drained += 1;
        }
        let sent_ns = flight.sent_ns;
        let from_ns = self.plan.is_open().then(|| flight.ask.due_ns.unwrap_or(sent_ns));
        if from_ns.is_none_or(|from_ns| self.told_ns.contains(&from_ns)) {
            book.times.answered(sent_ns, answer.first_byte_ns, answer.done_ns, from_ns);
            if let Some(endpoint) = request.endpoint {
                let response_ns = answer.done_ns.saturating_sub(from_ns.unwrap_or(sent_ns));
                book.times.endpoints.at(endpoint).answered.record(response_ns);
            }
        }
    }

    /// A request got no answer with valid framing.
    fn failed(&mut self, id: ConnId, flight: &Flight, failure: Failure, why: &str) {
        self.resolve(flight);
        let role = self.pool[id].role;
        let book = book_of(role, &mut self.recorder, &mut self.beside);
        book.counts.seen.failures.count(failure);
        if let Some(endpoint) = self.plan.requests[flight.ask.request].endpoint {
            book.times.endpoints.at(endpoint).failed += 1;
        }
        if failure == Failure::Timeout {
            let from_ns = flight.ask.due_ns.unwrap_or(flight.sent_ns);
            if !self.plan.is_open() || self.told_ns.contains(&from_ns) {
                book.times.waited.record(self.sight.now_ns.saturating_sub(from_ns));
            }
        }
        if !book.counts.seen.failure_samples.is_full() {
            let text = format!("{}: {why}", self.plan.requests[flight.ask.request].url);
            let read: &[u8] = match failure {
                Failure::Malformed if self.pool[id].multi.is_none() => self.scratch.last_read(),
                _ => &[],
            };
            book.counts.seen.failure_samples.keep(reasons::with_bytes(text, read));
        }
    }

    fn resolve(&mut self, flight: &Flight) {
        let is_told = flight.ask.due_ns.is_some_and(|due_ns| self.told_ns.contains(&due_ns));
        self.owed -= usize::from(is_told);
    }

    /// HTTP/1.1: the request in flight failed, and its connection with it.
    fn lost(&mut self, id: ConnId, failure: Failure, why: &str) {
        let conn = &mut self.pool[id];
        let Some(flight) = conn.flight.take() else { return };
        conn.close();
        if conn.role != Role::Idle {
            self.strike(id);
        }
        self.failed(id, &flight, failure, why);
        self.finish(id, flight.lane, self.sight.now_ns);
    }

    /// Counts a connection that the server closed though we wanted to use it again.
    fn server_closed(&mut self, id: ConnId) {
        let conn = &self.pool[id];
        let book = book_of(conn.role, &mut self.recorder, &mut self.beside);
        book.counts.server_closed += u64::from(!conn.exchange.last);
    }

    /// A request is over: its lane goes on at once, or after a pause; an idle connection rests, or
    /// is opened again.
    fn finish(&mut self, id: ConnId, lane: usize, done_ns: u64) {
        let conn = &self.pool[id];
        if conn.role == Role::Idle {
            if conn.state == State::Closed {
                self.reopen_idle(id);
            }
            return;
        }
        if self.draining {
            self.awaited = self.awaited.saturating_sub(1);
            return;
        }
        match self.plan.order.load.think {
            Some(think) if lane < self.lanes => {
                let pause_ns = self.asks.pause_ns(&think);
                self.at(done_ns + pause_ns, Timer::Free(lane));
            }
            _ => self.free(lane, done_ns),
        }
    }

    /// The server closed a connection on which nothing was in flight, or sent what nobody asked
    /// for.
    fn lost_idle(&mut self, id: ConnId) {
        let conn = &mut self.pool[id];
        let role = conn.role;
        if role != Role::Slow {
            let book = book_of(role, &mut self.recorder, &mut self.beside);
            book.counts.server_closed += 1;
        }
        conn.close();
        if role == Role::Idle {
            self.reopen_idle(id);
        }
    }

    /// Each time later than before, so that opening what a server won't keep is no load itself.
    fn reopen_idle(&mut self, id: ConnId) {
        if !self.draining {
            self.strike(id);
            self.reopen(id);
        }
    }

    // Or it takes too long.

    /// Ends requests and connects older than the timeout, and finds when the next one can be.
    fn check_timeouts(&mut self) {
        let now_ns = self.sight.now_ns;
        let mut oldest_ns = now_ns;
        let mut late = Vec::new();
        for id in self.conns.iter().flatten().chain(&self.idle) {
            match self.waits_since_ns(*id) {
                Some(since) if now_ns.saturating_sub(since) >= self.plan.timeout_ns => {
                    late.push(*id);
                }
                Some(since) => oldest_ns = oldest_ns.min(since),
                None => {}
            }
        }
        // Looking at every connection more often than once a millisecond would be load itself.
        self.check_timeouts_ns = (oldest_ns + self.plan.timeout_ns).max(now_ns + MILLISECOND_NS);
        for id in late {
            // What came while this thread was busy with other connections is no timeout.
            if matches!(self.pool[id].state, State::Idle | State::Busy) {
                let seen_ns = self.sight.look();
                self.on_event(id, EventFlags::IN, seen_ns);
            }
            let since_ns = self.waits_since_ns(id);
            if since_ns.is_some_and(|since| now_ns.saturating_sub(since) >= self.plan.timeout_ns) {
                self.timed_out(id, now_ns - self.plan.timeout_ns);
            }
        }
    }

    /// Since when a connection waits for the server, if it does.
    fn waits_since_ns(&self, id: ConnId) -> Option<u64> {
        let conn = &self.pool[id];
        match conn.state {
            State::Connecting | State::Opening => Some(conn.began_ns),
            // Slow readers wait on purpose.
            _ if conn.role == Role::Slow => None,
            _ => conn.in_flight().map(|flight| flight.sent_ns).min(),
        }
    }

    /// A connect, or what was sent by `sent_ns`, took longer than the timeout.
    fn timed_out(&mut self, id: ConnId, sent_ns: u64) {
        let seconds = self.plan.order.load.timeout_s;
        let conn = &mut self.pool[id];
        if matches!(conn.state, State::Connecting | State::Opening) {
            return self.not_connected(id, &format!("not ready within {seconds} s"));
        }
        if conn.multi.is_none() {
            let response = &conn.exchange.response;
            let bytes = response.head_bytes + response.body_bytes;
            let why = format!("no full answer within {seconds} s ({bytes} bytes came)");
            return self.lost(id, Failure::Timeout, &why);
        }
        let why = format!("no full answer within {seconds} s");
        while let Some(flight) = self.pool[id].link().and_then(|link| link.next_late(sent_ns)) {
            if let Some(link) = self.pool[id].link()
                && link.answered_ns < flight.sent_ns
            {
                // A connection on which nobody was answered meanwhile may be dead.
                link.retire();
            }
            self.failed(id, &flight, Failure::Timeout, &why);
            self.finish(id, flight.lane, self.sight.now_ns);
        }
        self.unsent.push(id);
    }
}

/// Where requests over connections of a role are recorded.
fn book_of<'a>(role: Role, load: &'a mut Recorder, beside: &'a mut Beside) -> &'a mut Recorder {
    match role {
        Role::Load => load,
        Role::Slow => &mut beside.slow,
        Role::Idle => &mut beside.idle,
    }
}

/// The client has got round to a request: until here it is its lag.
fn turned_to(flight: &mut Flight, now_ns: u64, told_ns: &Range<u64>, recorder: &mut Recorder) {
    let ready_ns = std::mem::take(&mut flight.ask.ready_ns);
    if ready_ns > 0 && flight.ask.due_ns.is_some_and(|due_ns| told_ns.contains(&due_ns)) {
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
