//! Streams that are under way when the load is over: they are left, as nobody knows when they end.

use super::SlotDriver;
use crate::engine::flight::Flight;
use crate::engine::pool::{ConnId, Role};
use crate::engine::users::Place;

impl SlotDriver<'_> {
    /// The duration is over: from here on streams are left.
    pub fn leave_streams(&mut self) {
        self.lanes.leaves_streams = self.plan.leaves_streams;
        for id in self.conns.ids_of_load().collect::<Vec<_>>() {
            self.leave_streams_of(id);
        }
    }

    /// Leaves a connection's streams, once that is time; true where it had any.
    pub(super) fn leave_streams_of(&mut self, id: ConnId) -> bool {
        if !self.lanes.leaves_streams || self.conns.pool[id].role != Role::Load {
            return false;
        }
        let (conn, memory) = (&mut self.conns.pool[id], &self.memory);
        // Of a request that was answered in this load it is known that its responses end.
        let never_ends = |flight: &Flight| !memory[flight.planned.request].is_answered;
        let is_stream = conn.http2.is_none() && conn.exchange.response.is_stream();
        if is_stream && let Some(flight) = conn.flight.take_if(|flight| never_ends(flight)) {
            conn.close();
            self.left(id, &flight);
            return true;
        }
        let Some(connection) = conn.http2_connection() else { return false };
        let streams = connection.take_streams(never_ends);
        streams.iter().for_each(|stream| self.left(id, &stream.flight));
        if !streams.is_empty() {
            self.conns.unsent.push(id);
        }
        !streams.is_empty()
    }

    fn left(&mut self, id: ConnId, flight: &Flight) {
        self.count_as_resolved(flight);
        self.log_left(id, flight);
        self.records.load.counts.requests.unfinished += 1;
        if let Some(user) = &mut self.conns.pool[id].exchange.user
            && let Place::In(begun) = std::mem::take(&mut user.place)
        {
            let is_first = begun.step == begun.flow.steps.start;
            self.lanes.due_unanswered -= usize::from(!is_first && begun.is_in_window);
        }
        self.finish(id, flight.lane, self.clock.now_ns);
    }
}
