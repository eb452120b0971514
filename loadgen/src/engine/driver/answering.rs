//! A request is answered, judged and recorded, and its lane is free again.

use rustix::event::epoll::{Event, EventFlags};
use rustix::net::RecvFlags;

use super::{SLOW_READS_PER_S, SlotDriver, Timer};
use crate::clock::SECOND_NS;
use crate::engine::exchange::Received;
use crate::engine::flight::{Answer, Flight};
use crate::engine::pool::{ConnId, Role, State, is_hangup};
use crate::engine::reasons;
use crate::record::Failure;
use crate::websocket::farewell::Farewell;
use crate::websocket::frame::Fault;

/// A connection that always has more to read gives way to the others after so many reads.
pub(super) const READS_AT_ONCE: usize = 4;

impl SlotDriver<'_> {
    /// Reads until the socket is empty or the answer complete, but not for ever.
    pub(super) fn on_readable(&mut self, id: ConnId, flags: EventFlags, seen_ns: u64) {
        let conn = &mut self.conns.pool[id];
        let slow = conn.role == Role::Slow;
        if slow && conn.paused {
            return;
        }
        let hangup = is_hangup(flags) && !slow;
        let asks_at_once = self.lanes.scheduler.asks_at_once(self.clock.now_ns);
        let defers = self.plan.has_no_pauses && asks_at_once && !hangup && self.broadcast.is_none();
        let mut done_ns = seen_ns;
        for _ in 0..READS_AT_ONCE {
            let conn = &mut self.conns.pool[id];
            let (Some(flight), Some(wire)) = (&conn.flight, &mut conn.wire) else { return };
            if done_ns < flight.sent_ns {
                done_ns = self.clock.read();
            }
            let request = &self.plan.requests[flight.planned.request];
            let memory = &mut self.memory[flight.planned.request];
            let exchange = &mut conn.exchange;
            let received = if slow {
                let room = self.slow_read_bytes;
                exchange.receive_up_to(room, RecvFlags::empty(), wire, self.scratch, memory)
            } else {
                exchange.receive(wire, self.scratch, memory, request, defers)
            };
            if wire.arrived_ns > 0 {
                done_ns = wire.arrived_ns.max(flight.sent_ns);
            }
            if exchange.first_byte_ns == 0 && exchange.response.has_begun() {
                exchange.first_byte_ns = done_ns;
            }
            self.records.time_events(&mut exchange.events, flight, conn.role, done_ns, false);
            match received {
                Received::Nothing => return,
                Received::Part { .. } if slow => return self.pause(id),
                Received::Part { drained } if drained && !hangup => {
                    self.keep_polling(id);
                    self.leave_streams_of(id);
                    return;
                }
                Received::Part { .. } if self.leave_streams_of(id) => return,
                // More may have come since the wait ended.
                Received::Part { .. } => done_ns = self.clock.read(),
                Received::Answer => return self.on_answer(id, done_ns, hangup),
                Received::Malformed(malformed) => {
                    return self.lost(id, Failure::Malformed, &malformed.to_string());
                }
                Received::Closed { cut } => return self.on_closed(id, done_ns, cut),
                Received::Lost(error) => {
                    let (failure, why) = reasons::lost(&error);
                    self.server_closed(id);
                    if failure == Failure::Reset && self.is_retried(id) {
                        return;
                    }
                    return self.lost(id, failure, &why);
                }
            }
        }
        self.handle_again(id, flags);
    }

    /// More is there, but it is the others' turn.
    pub(super) fn handle_again(&mut self, id: ConnId, flags: EventFlags) {
        self.conns.again.push(Event { flags, data: self.conns.pool.key(id) });
    }

    fn pause(&mut self, id: ConnId) {
        self.conns.pool[id].paused = true;
        let pause_ns = SECOND_NS / u64::from(SLOW_READS_PER_S);
        self.set_timer(self.clock.now_ns + pause_ns, Timer::Read(id));
    }

    /// The server ended the connection while we wait for an answer.
    fn on_closed(&mut self, id: ConnId, done_ns: u64, cut: bool) {
        let response = &mut self.conns.pool[id].exchange.response;
        if !cut && response.end_of_stream() {
            return self.on_answer(id, done_ns, true);
        }
        let begun = response.has_begun();
        let farewell = response.farewell().map(Farewell::to_string);
        self.server_closed(id);
        let why = |usual: &str| farewell.unwrap_or_else(|| usual.into());
        if begun {
            self.lost(id, Failure::Truncated, &why("closed in the middle of the answer"));
        } else if !self.is_retried(id) {
            self.lost(id, Failure::Reset, &why("closed without an answer"));
        }
    }

    /// HTTP/1.1: a server may close a kept connection just as it is used again. A request that was
    /// lost so is asked once more over another one, where that does no harm (RFC 9110 section 9.2.2).
    fn is_retried(&mut self, id: ConnId) -> bool {
        let conn = &mut self.conns.pool[id];
        let may =
            conn.role == Role::Load && conn.has_answered && !conn.exchange.response.has_begun();
        let Some(flight) = conn.flight.as_mut().filter(|flight| may && !flight.retried) else {
            return false;
        };
        if !self.plan.requests[flight.planned.request].is_idempotent {
            return false;
        }
        *flight = Flight { retried: true, ..flight.again(self.clock.now_ns) };
        self.records.load.counts.requests.retried += 1;
        conn.close();
        self.reopen(id);
        true
    }

    fn on_answer(&mut self, id: ConnId, done_ns: u64, hangup: bool) {
        let conn = &mut self.conns.pool[id];
        let (Some(flight), Some(wire)) = (conn.flight.take(), &conn.wire) else { return };
        let request = &self.plan.requests[flight.planned.request];
        let exchange = &mut conn.exchange;
        let stays = exchange.response.keep_alive
            && !hangup
            && !exchange.last
            && exchange.is_sent(wire, request);
        let (hash, missing) =
            exchange.end(&mut self.memory[flight.planned.request], request, wire, done_ns);
        let answer = Answer {
            status: exchange.response.status,
            head_bytes: exchange.response.head_bytes,
            body_bytes: exchange.response.body_bytes,
            hash,
            fault: missing.map(|missing| (Failure::Body, missing)),
            grpc_status: None,
            events: exchange.events.take(),
            // Of the first segment it may not be known when it arrived, but of the last.
            first_byte_ns: exchange.first_byte_ns.min(done_ns),
            done_ns,
        };
        if conn.role != Role::Idle {
            conn.failures_in_a_row = 0;
        }
        conn.has_answered = true;
        let why = self.answered(id, &flight, answer);
        self.step_ended(id, &flight, why, done_ns);
        if stays {
            self.conns.pool[id].state = State::Idle;
        } else {
            self.server_closed(id);
            // Closing a socket with unread bytes would reset the connection.
            self.discard(id);
            self.conns.pool[id].close();
        }
        self.finish(id, flight.lane, done_ns);
        self.discard(id);
    }

    /// Takes out of the kernel what was left there until the next request was sent.
    fn discard(&mut self, id: ConnId) {
        let conn = &mut self.conns.pool[id];
        if let Some(wire) = &mut conn.wire {
            conn.exchange.discard(wire, self.scratch);
        }
    }

    /// Judges and records an answer; says what is wrong with it.
    pub(super) fn answered(
        &mut self,
        id: ConnId,
        flight: &Flight,
        mut answer: Answer,
    ) -> Option<String> {
        self.count_as_resolved(flight);
        let role = self.conns.pool[id].role;
        self.records.time_events(&mut answer.events, flight, role, answer.done_ns, true);
        let request = &self.plan.requests[flight.planned.request];
        let Answer { status, body_bytes, .. } = answer;
        let hash = answer.hash.take().map(|hash| *hash);
        let judged = request.expect.judge(status, body_bytes, hash);
        let fault = judged.or(answer.fault.as_ref().map(|(failure, _)| *failure));
        self.log_answer(id, flight, &answer, fault);
        let times_from_ns = self.records.times_from_ns(flight);
        let sent_ns = flight.first_sent_ns;
        let is_drained = self.records.over_since_ns.is_some_and(|over_ns| sent_ns <= over_ns);
        let recorder = self.records.of(role);
        recorder.counts.seen.by_status.count(status);
        if let Some(status) = answer.grpc_status {
            recorder.counts.seen.grpc_by_status.count(status);
        }
        recorder.counts.seen.bytes.head += answer.head_bytes;
        recorder.counts.seen.bytes.body += body_bytes;
        if let Some(failure) = fault {
            recorder.counts.seen.failures.count(failure);
            if let Some(endpoint) = request.endpoint {
                recorder.times.endpoints.at(endpoint).failed += 1;
            }
            let is_user = request.script.is_some();
            if recorder.counts.seen.failure_samples.is_full() && !is_user {
                return None;
            }
            let text = match (judged, &answer.fault) {
                (None, Some((_, why))) => format!("{}: {why}", request.url),
                _ => reasons::mismatch(failure, request, status, body_bytes),
            };
            let in_scratch = self.conns.pool[id].shared.is_none();
            let read = if in_scratch { self.scratch.beginning() } else { &[] };
            let text = if (300..400).contains(&status) {
                reasons::with_redirect(text, read)
            } else {
                text
            };
            let text = match self.conns.pool[id].exchange.user.as_ref().filter(|_| is_user) {
                Some(user) => reasons::with_answer(text, request, &answer, user.body()),
                None => reasons::with_bytes(text, read),
            };
            self.records.of(role).counts.seen.failure_samples.keep(text.clone());
            return Some(text);
        }
        recorder.counts.requests.completed += 1;
        self.memory[flight.planned.request].is_answered = true;
        recorder.counts.requests.drained += u64::from(is_drained);
        if let Some(from_ns) = times_from_ns {
            if let Some(events) = &answer.events {
                let goodput = self.plan.order.goodput.as_ref();
                recorder.times.events.answered(events, from_ns, answer.done_ns, goodput);
            }
            let open_from_ns = self.plan.is_open().then_some(from_ns);
            recorder.times.answered(sent_ns, answer.first_byte_ns, answer.done_ns, open_from_ns);
            if let Some(endpoint) = request.endpoint {
                let response_ns = answer.done_ns.saturating_sub(from_ns);
                recorder.times.endpoints.at(endpoint).answered.record(response_ns);
            }
        }
        None
    }

    /// A request got no answer with valid framing.
    pub(super) fn failed(&mut self, id: ConnId, flight: &Flight, failure: Failure, why: &str) {
        self.count_as_resolved(flight);
        self.log_failure(id, flight, failure);
        let role = self.conns.pool[id].role;
        let times_from_ns = self.records.times_from_ns(flight);
        let waited_from_ns = times_from_ns.filter(|_| failure == Failure::Timeout);
        let recorder = self.records.of(role);
        recorder.counts.seen.failures.count(failure);
        if let Some(endpoint) = self.plan.requests[flight.planned.request].endpoint {
            recorder.times.endpoints.at(endpoint).failed += 1;
        }
        if let Some(from_ns) = waited_from_ns {
            recorder.times.waited.record(self.clock.now_ns.saturating_sub(from_ns));
        }
        if !recorder.counts.seen.failure_samples.is_full() {
            let text = format!("{}: {why}", self.plan.requests[flight.planned.request].url);
            let read: &[u8] = match failure {
                Failure::Malformed if self.conns.pool[id].shared.is_none() => {
                    self.scratch.beginning()
                }
                _ => &[],
            };
            recorder.counts.seen.failure_samples.keep(reasons::with_bytes(text, read));
        }
    }

    pub(super) fn count_as_resolved(&mut self, flight: &Flight) {
        let is_in_window = self.records.is_in_window(&flight.planned);
        self.lanes.due_unanswered -= usize::from(is_in_window);
    }

    /// HTTP/1.1: the request in flight failed, and its connection with it.
    pub(super) fn lost(&mut self, id: ConnId, failure: Failure, why: &str) {
        let conn = &mut self.conns.pool[id];
        let Some(flight) = conn.flight.take() else { return };
        conn.close();
        if conn.role != Role::Idle {
            self.back_off(id);
        }
        self.failed(id, &flight, failure, why);
        let text = format!("{}: {why}", self.plan.requests[flight.planned.request].url);
        self.step_ended(id, &flight, Some(text), self.clock.now_ns);
        self.finish(id, flight.lane, self.clock.now_ns);
    }

    /// Counts a connection that the server closed though we wanted to use it again.
    pub(super) fn server_closed(&mut self, id: ConnId) {
        let conn = &self.conns.pool[id];
        let recorder = self.records.of(conn.role);
        recorder.counts.server_closed += u64::from(!conn.exchange.last);
        if let Some(farewell) = conn.exchange.response.farewell() {
            recorder.counts.seen.by_close_code.count(farewell.code);
        }
    }

    /// A request is over: its lane goes on at once, or after a pause; an idle connection rests, or
    /// is opened again.
    pub(super) fn finish(&mut self, id: ConnId, lane: usize, done_ns: u64) {
        let conn = &self.conns.pool[id];
        if conn.role == Role::Idle {
            if conn.state == State::Closed {
                self.reopen_idle(id);
            }
            return;
        }
        if self.lanes.draining {
            self.lanes.drain_one();
            return;
        }
        match self.pause_after(id) {
            Some(think) if lane < self.lanes.count => {
                let pause_ns = self.lanes.scheduler.pause_ns(&think);
                self.set_timer(done_ns + pause_ns, Timer::Free(lane));
            }
            _ => self.free(lane, done_ns),
        }
    }

    /// The server closed a connection on which nothing was in flight, or sent what nobody asked
    /// for.
    pub(super) fn lost_idle(&mut self, id: ConnId) {
        let role = self.conns.pool[id].role;
        if role != Role::Slow {
            self.server_closed(id);
        }
        let conn = &self.conns.pool[id];
        if conn.exchange.response.was_unasked() {
            let text = format!("{}: {}", self.plan.origins[conn.origin], Fault::Unasked);
            self.records.of(role).counts.seen.failure_samples.keep(text);
        }
        self.conns.pool[id].close();
        if role == Role::Idle || self.misses_broadcast(id) {
            self.reopen_idle(id);
        }
    }

    /// Each time later than before, so that opening what a server won't keep is no load itself.
    fn reopen_idle(&mut self, id: ConnId) {
        if !self.lanes.draining {
            self.back_off(id);
            self.reopen(id);
        }
    }
}
