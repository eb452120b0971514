//! Connections as users: they log in before the slot, and go through flows step by step.

use std::collections::VecDeque;

use super::{SlotDriver, Timer};
use crate::engine::flight::{Flight, Traced};
use crate::engine::pool::ConnId;
use crate::engine::schedule::PlannedRequest;
use crate::engine::users::{Begun, Login, Place, User};
use crate::order::Think;

/// Users of a thread who log in at a time. Checking passwords takes servers long on purpose: many
/// at once would time out.
const AT_A_TIME: usize = 4;

impl SlotDriver<'_> {
    /// The user on a connection, as the present order has it.
    pub(super) fn user_of(&mut self, id: ConnId) -> Option<&mut User> {
        let sessions = self.plan.sessions.as_ref()?;
        let conn = &mut self.conns.pool[id];
        let number = self.conns.first + conn.number;
        let user = &mut conn.exchange.user;
        if !user.as_ref().is_some_and(|user| user.stays(number, sessions)) {
            // Slow and idle connections are no users of their own.
            let row = if conn.number < self.conns.of_load { number } else { self.conns.first };
            *user = Some(Box::new(User::new(number, row, sessions)));
        }
        user.as_deref_mut()
    }

    fn id_of(&self, lane: usize) -> ConnId {
        self.conns.by_origin[0][self.number_of(lane)]
    }

    /// Has all users log in who haven't.
    pub fn begin_login(&mut self) {
        let mut waiting = VecDeque::new();
        if self.plan.sessions.as_ref().is_some_and(|sessions| !sessions.login.is_empty()) {
            for lane in 0..self.lanes.count {
                let id = self.id_of(lane);
                if self.user_of(id).is_some_and(|user| !user.logged_in) {
                    waiting.push_back(lane);
                }
            }
        }
        self.login = Some(Login { waiting, ..Login::default() });
        self.let_in();
    }

    /// Some users are on their way in; the error says why one was not let in.
    pub fn goes_on_logging_in(&mut self) -> Result<bool, String> {
        let timeout_ns = self.plan.timeout_ns;
        let is_unreachable = self
            .conns
            .unreachable_since_ns
            .is_some_and(|since_ns| self.clock.now_ns - since_ns >= timeout_ns);
        let samples = &self.records.load.counts.seen.failure_samples;
        let Some(login) = &self.login else { return Ok(false) };
        match &login.failure {
            Some(why) => Err(why.clone()),
            None if is_unreachable || self.conns.hopeless => {
                Err(samples.iter().next().cloned().unwrap_or_default())
            }
            None => Ok(login.under_way > 0 || !login.waiting.is_empty()),
        }
    }

    /// The load may begin. What the login took is nothing of it, but connections stay.
    pub fn end_login(&mut self) {
        self.login = None;
        let before = std::mem::take(&mut self.records.load);
        self.records.load.counts.seen.connections.opened = before.counts.seen.connections.opened;
        self.records.load.counts.handshakes = before.counts.handshakes;
        self.records.load.times.connect = before.times.connect;
        self.records.load.times.handshake = before.times.handshake;
    }

    pub(super) fn is_logging_in(&self) -> bool {
        self.login.is_some()
    }

    fn let_in(&mut self) {
        loop {
            let Some(login) = self.login.as_mut().filter(|login| login.failure.is_none()) else {
                return;
            };
            if login.under_way >= AT_A_TIME {
                return;
            }
            let Some(lane) = login.waiting.pop_front() else { return };
            login.under_way += 1;
            let id = self.id_of(lane);
            let Some(sessions) = &self.plan.sessions else { return };
            if let Some(user) = &mut self.conns.pool[id].exchange.user {
                user.begin_login(sessions, self.lanes.scheduler.rng());
            }
            self.set_timer(self.clock.now_ns, Timer::Free(lane));
        }
    }

    /// What the user of a lane asks next, where it is in the middle of something.
    pub(super) fn next_step(&self, lane: usize) -> Option<usize> {
        self.plan.sessions.as_ref()?;
        self.conns.pool[self.id_of(lane)].exchange.user.as_ref()?.next()
    }

    pub(super) fn begin_flow(&mut self, lane: usize, planned: PlannedRequest) {
        let Some(sessions) = &self.plan.sessions else { return };
        let number = self.number_of(lane);
        let id = self.conns.by_origin[self.plan.requests[planned.request].origin][number];
        let is_in_window = self.records.is_in_window(&planned);
        self.user_of(id);
        if let Some(user) = &mut self.conns.pool[id].exchange.user {
            user.begin_flow(planned.request, sessions, self.lanes.scheduler.rng());
            if let Place::In(begun) = &mut user.place {
                begun.is_in_window = is_in_window;
            }
        }
    }

    /// The pause before the lane of a connection goes on.
    pub(super) fn pause_after(&self, id: ConnId) -> Option<Think> {
        let of_load = self.plan.order.load.think.filter(|_| !self.is_logging_in());
        let user = self.conns.pool[id].exchange.user.as_ref();
        let Some(next) = user.and_then(|user| user.next()) else { return of_load };
        self.plan.requests[next - 1].think.or(of_load)
    }

    /// A user got its answer, or none; `why`: it is not what was expected.
    pub(super) fn step_ended(
        &mut self,
        id: ConnId,
        flight: &Flight,
        why: Option<String>,
        done_ns: u64,
    ) {
        let Some(sessions) = &self.plan.sessions else { return };
        if sessions.trace {
            self.trace(id, flight, why.clone());
        }
        let Some(user) = &mut self.conns.pool[id].exchange.user else { return };
        match std::mem::take(&mut user.place) {
            Place::Free => {}
            Place::Login(step) if why.is_none() && step + 1 < sessions.login.end => {
                user.place = Place::Login(step + 1);
            }
            Place::Login(step) => {
                user.logged_in = why.is_none();
                let (number, nth) = (user.number + 1, step - sessions.login.start + 1);
                let steps = sessions.login.len();
                if let Some(login) = &mut self.login {
                    login.under_way -= 1;
                    if let Some(why) = why {
                        let text = format!("login of user {number}, step {nth} of {steps}: {why}");
                        login.failure.get_or_insert(text);
                    }
                }
                self.let_in();
            }
            Place::In(begun) => self.flow_goes_on(id, begun, flight, why.is_none(), done_ns),
        }
    }

    fn flow_goes_on(
        &mut self,
        id: ConnId,
        mut begun: Begun,
        flight: &Flight,
        is_valid: bool,
        done_ns: u64,
    ) {
        let is_first = begun.step == begun.flow.steps.start;
        begun.spent_ns += done_ns.saturating_sub(flight.times_from_ns());
        begun.step += 1;
        if is_valid && begun.step < begun.flow.steps.end {
            // Its first request is resolved, but the flow is part of the result.
            self.lanes.due_unanswered += usize::from(is_first && begun.is_in_window);
            if let Some(user) = &mut self.conns.pool[id].exchange.user {
                user.place = Place::In(begun);
            }
            return;
        }
        self.lanes.due_unanswered -= usize::from(!is_first && begun.is_in_window);
        let Some(endpoint) = begun.flow.endpoint else { return };
        if self.plan.is_open() && !begun.is_in_window {
            return;
        }
        let whole = self.records.load.times.endpoints.at(endpoint);
        match is_valid {
            true => whole.answered.record(begun.spent_ns),
            false => whole.failed += 1,
        }
    }

    fn trace(&mut self, id: ConnId, flight: &Flight, failure: Option<String>) {
        let exchange = &self.conns.pool[id].exchange;
        let status = exchange.response.status;
        let head = if status > 0 { exchange.response.kept_head.clone() } else { Vec::new() };
        let body = exchange.user.as_ref().map_or_else(Vec::new, |user| user.body().to_vec());
        let request = flight.planned.request;
        let captured = match (&self.plan.sessions, &exchange.user) {
            (Some(sessions), Some(user)) if failure.is_none() => {
                let script = self.plan.requests[request].script.iter();
                let taken = script.flat_map(|script| script.captured());
                let named =
                    |value: usize| (sessions.sources.names[value].clone(), user.value(value));
                taken.map(named).collect()
            }
            _ => Vec::new(),
        };
        self.records.traced.push(Traced { request, status, head, body, captured, failure });
    }
}
