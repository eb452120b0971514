//! A lane is free and takes a request on, which is sent.

use super::{SlotDriver, Timer};
use crate::engine::exchange::Sending;
use crate::engine::flight::Flight;
use crate::engine::pool::{ConnId, Role, State};
use crate::engine::schedule::{OwnNext, PlannedRequest};
use crate::engine::shared::SharedConnection;
use crate::order::Unit;

impl SlotDriver<'_> {
    /// A lane has nothing in flight since `since_ns`.
    pub(super) fn free(&mut self, lane: usize, since_ns: u64) {
        if lane >= self.lanes.count {
            let planned = self.lanes.scheduler.next_slow();
            self.start(lane, planned);
        } else if let Some(step) = self.next_step(lane) {
            self.take_on(lane, PlannedRequest::undue(step));
        } else if self.is_logging_in() {
            // It is logged in, or was not let in.
        } else if let Some(next) = self.lanes.scheduler.next_own(lane, self.clock.now_ns, since_ns)
        {
            self.start_own(lane, next);
        } else if !self.lanes.scheduler.is_open() {
            if let Some(planned) = self.lanes.scheduler.next_in_budget() {
                self.start(lane, planned);
            }
        } else if self.session_goes_on(lane) {
            let planned = self.lanes.scheduler.next_undue();
            self.start(lane, planned);
        } else {
            let number = self.number_of(lane);
            let was_lost = self
                .conns
                .by_origin
                .iter()
                .any(|ids| self.conns.pool[ids[number]].failures_in_a_row > 0);
            self.lanes.scheduler.wait(lane, was_lost);
            self.take(since_ns);
            self.send_next(self.clock.now_ns);
        }
    }

    /// A lane with a timetable of its own sends what is due, or waits for that.
    fn start_own(&mut self, lane: usize, next: OwnNext) {
        match next {
            OwnNext::Send(planned) => {
                let is_in_window = self.records.is_in_window(&planned);
                self.lanes.due_unanswered += usize::from(is_in_window);
                self.start(lane, planned);
            }
            OwnNext::Wait(due_ns) => self.set_timer(due_ns, Timer::Due(lane)),
            OwnNext::End => {}
        }
    }

    /// Where whole connections are due, the requests of one follow each other.
    fn session_goes_on(&self, lane: usize) -> bool {
        let arrivals = self.plan.order.load.arrivals.as_ref();
        arrivals.is_some_and(|arrivals| arrivals.unit == Unit::Connection)
            && self.conns.by_origin.iter().any(|ids| {
                let conn = &self.conns.pool[ids[lane]];
                let shared = conn.shared.as_ref().and_then(|shared| shared.connection.as_ref());
                conn.state == State::Idle
                    && conn.requests > 0
                    && shared.is_none_or(SharedConnection::is_usable)
            })
    }

    fn take(&mut self, free_since_ns: u64) {
        let held = self.lanes.scheduler.held_due_ns();
        self.lanes.scheduler.take(self.clock.now_ns, free_since_ns);
        let taken = self.lanes.scheduler.held_due_ns().filter(|_| held.is_none());
        self.lanes.due_unanswered +=
            usize::from(taken.is_some_and(|due_ns| self.records.window_ns.contains(&due_ns)));
    }

    /// Open loop: sends what is due, as long as lanes are free.
    pub(super) fn send_due(&mut self) {
        self.send_due_since(0);
    }

    /// Between events. Where answers come in pieces, what is due waits for the next one as long as
    /// its budget lasts: the answered connection is the cheapest one to ask (see the exchange).
    pub(super) fn send_between(&mut self) {
        let held = self.lanes.scheduler.held();
        let waits = held.is_some_and(|(request, _)| self.memory[request].is_in_pieces());
        self.send_due_since(if waits { self.plan.delay_budget_ns } else { 0 });
    }

    /// Sends what was due so long ago.
    fn send_due_since(&mut self, age_ns: u64) {
        if self.lanes.scheduler.held_due_ns().is_some() {
            self.clock.read();
            // Sending returns the time.
            while self.send_next(self.clock.now_ns.saturating_sub(age_ns)) {}
        }
    }

    /// Sends what was given to shared connections.
    pub(super) fn send_frames(&mut self) {
        while let Some(id) = self.conns.unsent.pop() {
            self.move_frames(id, self.clock.now_ns);
        }
    }

    /// Sends the request that was taken if it was due by then and a lane can: the one that got
    /// free last.
    fn send_next(&mut self, due_by_ns: u64) -> bool {
        let Some((request, is_blocked)) = self.lanes.scheduler.held() else { return false };
        let origin = self.plan.requests[request].origin;
        let (pool, ids, connections) = (
            &mut *self.conns.pool,
            &self.conns.by_origin[origin][..self.conns.of_load],
            self.conns.of_load,
        );
        // There are many lanes where there are many streams, but few connections.
        if is_blocked && !ids.iter().any(|id| pool[*id].has_room()) {
            return false;
        }
        let can = |lane: &usize| pool[ids[lane % connections]].has_room();
        let next = self.lanes.scheduler.next_due(due_by_ns, self.woke_ns, can);
        let Some((lane, planned)) = next else { return false };
        self.start(lane, planned);
        // The next lane has been free at least since this request was due.
        self.take(planned.ready_ns);
        true
    }

    /// The number of a lane's connection; the streams of one connection are lanes far apart, so
    /// that the first ones spread.
    pub(super) fn number_of(&self, lane: usize) -> usize {
        match lane {
            first if first < self.conns.of_load => first,
            lane if lane < self.lanes.count => lane % self.conns.of_load,
            slow => slow - self.lanes.count + self.conns.of_load,
        }
    }

    /// A lane begins with something new.
    fn start(&mut self, lane: usize, planned: PlannedRequest) {
        if self.plan.sessions.is_some() {
            self.begin_flow(lane, planned);
        }
        self.take_on(lane, planned);
    }

    /// A lane takes a request on, which leaves at once or when its connection is ready.
    fn take_on(&mut self, lane: usize, planned: PlannedRequest) {
        let number = self.number_of(lane);
        let id = self.conns.by_origin[self.plan.requests[planned.request].origin][number];
        let flight = Flight::new(lane, planned, self.clock.now_ns);
        let conn = &mut self.conns.pool[id];
        match &mut conn.shared {
            Some(shared) => shared.waiting.push_back(flight),
            None => conn.flight = Some(flight),
        }
        match conn.state {
            State::Idle => self.send(id),
            State::Closed => self.reopen(id),
            // It sends when it is ready.
            State::Resting | State::Connecting | State::Opening | State::Busy => {}
        }
    }

    /// Sends a connection's request, if it has one.
    pub(super) fn send(&mut self, id: ConnId) {
        let conn = &mut self.conns.pool[id];
        if let Some(shared) = &mut conn.shared {
            // Once for all answers that came together.
            if !shared.waiting.is_empty() && self.conns.unsent.last() != Some(&id) {
                self.conns.unsent.push(id);
            }
            return;
        }
        if self.broadcast.is_some() {
            return self.await_broadcast(id);
        }
        if conn.flight.is_none() {
            conn.state = State::Idle;
            return;
        }
        self.prepare(id);
        let sent_ns = self.clock.read();
        match self.write(id) {
            Sending::All => self.sent(id, sent_ns),
            Sending::Some | Sending::Nothing => {
                self.sent(id, sent_ns);
                self.watch_room(id);
            }
            // Closed by the server before we wrote: not a sent request; open a new connection.
            Sending::Broken(_) => {
                self.server_closed(id);
                self.conns.pool[id].close();
                self.back_off(id);
                self.reopen(id);
            }
        }
    }

    /// Makes a connection ready for the request it is to send.
    pub(super) fn prepare(&mut self, id: ConnId) {
        let conn = &mut self.conns.pool[id];
        let Some(flight) = conn.flight else { return };
        let request = &self.plan.requests[flight.planned.request];
        let is_idle = conn.role == Role::Idle;
        let hash = self.memory[flight.planned.request].next_hash(request, !is_idle);
        let last = !is_idle && conn.requests + 1 >= self.plan.requests_per_connection;
        let traces = self.plan.sessions.as_ref().is_some_and(|sessions| sessions.trace);
        if request.script.is_some() {
            self.user_of(id);
        }
        let conn = &mut self.conns.pool[id];
        conn.exchange.begin(request, hash, last, traces);
        if let Some(wire) = conn.wire.as_ref().filter(|_| self.plan.unread_ns > 0) {
            conn.exchange.watch_pieces(wire, &self.memory[flight.planned.request]);
        }
    }

    #[inline(always)]
    pub(super) fn write(&mut self, id: ConnId) -> Sending {
        let conn = &mut self.conns.pool[id];
        match (&conn.flight, &mut conn.wire) {
            (Some(flight), Some(wire)) => {
                conn.exchange.send(wire, &self.plan.requests[flight.planned.request])
            }
            _ => Sending::All,
        }
    }

    pub(super) fn sent(&mut self, id: ConnId, sent_ns: u64) {
        let conn = &mut self.conns.pool[id];
        let Some(flight) = &mut conn.flight else {
            conn.state = State::Idle;
            return;
        };
        self.records.record_send_delay(flight, sent_ns);
        let is_first = !flight.is_counted();
        flight.sent_ns = sent_ns;
        if is_first {
            flight.first_sent_ns = sent_ns;
        }
        conn.state = State::Busy;
        let reused = is_first && conn.requests > 0;
        conn.requests += 1;
        let recorder = self.records.of(conn.role);
        recorder.counts.requests.sent += u64::from(is_first);
        recorder.counts.seen.connections.reused_requests += u64::from(reused);
    }

    pub(super) fn watch_room(&mut self, id: ConnId) {
        self.keep_polling(id);
        let key = self.conns.pool.key(id);
        let conn = &mut self.conns.pool[id];
        if let Some(wire) = &conn.wire
            && !std::mem::replace(&mut conn.watches_room, true)
        {
            // It is watched already, so this takes no memory of the kernel's that could lack.
            let _ = self.poll.watch_room(wire, key);
        }
    }
}
