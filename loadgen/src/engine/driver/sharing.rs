//! HTTP/2 and 3: several requests on their way on one connection.

use rustix::event::epoll::EventFlags;

use super::SlotDriver;
use super::answering::READS_AT_ONCE;
use crate::engine::flight::Flight;
use crate::engine::http2::stream::{Outcome, Reading};
use crate::engine::pool::{ConnId, Role};
use crate::engine::shared::{Shared, SharedConnection};
use crate::events::EventStream;
use crate::http2::trouble::{ConnectionEnd, Trouble};

impl SlotDriver<'_> {
    /// Moves frames both ways until nothing more moves, but not for ever.
    pub(super) fn move_frames(&mut self, id: ConnId, seen_ns: u64) {
        let mut done_ns = seen_ns;
        for _ in 0..READS_AT_ONCE {
            let Some(connection) = self.conns.pool[id].shared_connection() else { return };
            // What was sent after the wait ended can't have been answered by then.
            if done_ns < connection.sent_ns() {
                done_ns = self.clock.read();
            }
            let more = connection.move_frames();
            if connection.arrived_ns() > 0 {
                done_ns = connection.arrived_ns();
            }
            connection.take_events(|flight, events| {
                let seen_ns = done_ns.max(flight.sent_ns);
                self.records.time_events(events, flight, Role::Load, seen_ns, false);
            });
            while let Some((flight, outcome)) = self.conns.pool[id]
                .shared_connection()
                .and_then(|connection| connection.next_ended(done_ns))
            {
                self.on_outcome(id, flight, outcome, done_ns);
            }
            self.leave_streams_of(id);
            self.submit(id);
            let Some(connection) = self.conns.pool[id].shared_connection() else { return };
            if !more && !connection.is_dirty() {
                self.keep_polling(id);
                self.look_after(id);
                return self.end_connection(id);
            }
            done_ns = self.clock.read();
        }
        self.handle_again(id, EventFlags::IN);
    }

    fn on_outcome(&mut self, id: ConnId, flight: Flight, outcome: Outcome, done_ns: u64) {
        // Where nothing is ever answered, asking again could go on for ever.
        let answers = self.conns.pool[id]
            .shared_connection()
            .is_some_and(|connection| connection.answered_ns() > 0);
        let is_idempotent = self.plan.requests[flight.planned.request].is_idempotent;
        match outcome {
            Outcome::Answered(answer) => {
                self.conns.pool[id].failures_in_a_row = 0;
                self.answered(id, &flight, answer);
            }
            Outcome::Trouble(Trouble::Unprocessed, _) if answers => {
                return self.ask_again(id, flight);
            }
            Outcome::Trouble(Trouble::Unanswered, _)
                if answers && is_idempotent && !flight.retried =>
            {
                return self.ask_again(id, Flight { retried: true, ..flight });
            }
            Outcome::Trouble(trouble, why) => {
                let streams = &mut self.records.load.counts.streams;
                streams.refused += u64::from(trouble == Trouble::Refused);
                streams.reset += u64::from(trouble == Trouble::Reset);
                self.failed(id, &flight, trouble.failure(), &why);
            }
        }
        self.finish(id, flight.lane, done_ns);
    }

    /// The request goes to the connection that is opened next.
    fn ask_again(&mut self, id: ConnId, flight: Flight) {
        self.records.load.counts.requests.retried += 1;
        self.records.load.counts.streams.retried += 1;
        let flight = flight.again(self.clock.now_ns);
        let waiting = self.conns.pool[id].shared.as_mut().map(|shared| &mut shared.waiting);
        waiting.into_iter().for_each(|waiting| waiting.push_back(flight));
    }

    /// Closes a connection that takes no more requests and has none in flight.
    fn end_connection(&mut self, id: ConnId) {
        let conn = &mut self.conns.pool[id];
        let Some(shared) = &mut conn.shared else { return };
        let is_over = |connection: &mut SharedConnection| {
            !connection.is_usable() && connection.in_flight() == 0
        };
        let Some(connection) = shared.connection.take_if(is_over) else { return };
        let (waits, answers) = (!shared.waiting.is_empty(), connection.answered_ns() > 0);
        let end = connection.into_end();
        conn.close();
        let server_ended = !matches!(end, Some(ConnectionEnd::Retired));
        self.records.load.counts.server_closed += u64::from(server_ended);
        if matches!(end, Some(ConnectionEnd::GoAway)) {
            self.records.load.counts.streams.go_aways += 1;
        }
        if server_ended && !answers || matches!(end, Some(ConnectionEnd::Lost(_))) {
            self.back_off(id);
        }
        if waits {
            self.reopen(id);
        }
    }

    /// Submits what waits, as far as there are streams for it.
    pub(super) fn submit(&mut self, id: ConnId) {
        let conn = &mut self.conns.pool[id];
        let Some(Shared { connection: Some(connection), waiting }) = conn.shared.as_deref_mut()
        else {
            return;
        };
        while !waiting.is_empty() && connection.has_room() {
            let sent_ns = self.clock.read();
            let Some(mut flight) = waiting.pop_front() else { return };
            let request = &self.plan.requests[flight.planned.request];
            self.records.record_send_delay(&mut flight, sent_ns);
            let hash = self.memory[flight.planned.request].next_hash(request, true);
            let number = flight.lane / self.conns.of_load;
            let is_first = !flight.is_counted();
            let first_sent_ns = if is_first { sent_ns } else { flight.first_sent_ns };
            let sent = Flight { sent_ns, first_sent_ns, ..flight };
            let events = request.events.map(|format| Box::new(EventStream::new(format)));
            let reading = Reading { hash, events, reply: request.reply };
            connection.send(number, sent, request, reading);
            self.records.load.counts.requests.sent += u64::from(is_first);
            self.records.load.counts.seen.connections.reused_requests +=
                u64::from(is_first && conn.requests > 0);
            conn.requests += 1;
            if conn.requests >= self.plan.requests_per_connection {
                connection.retire();
            }
        }
    }
}
