//! Requests of the load are logged when they have ended, where that is asked for.

use std::sync::mpsc::Sender;

use super::SlotDriver;
use crate::engine::flight::{Answer, Flight};
use crate::engine::log::{Fate, RequestLog};
use crate::engine::pool::{ConnId, Role};
use crate::engine::windows::ThreadReport;
use crate::record::Failure;

/// What has neither been answered nor failed when the load ends.
const UNANSWERED: &str = "unanswered";
/// A stream that was under way then.
const UNFINISHED: &str = "unfinished";

impl SlotDriver<'_> {
    pub fn begin_log(&mut self, start_ns: u64, reports: &Sender<ThreadReport>) {
        let first = self.conns.first;
        let log = |every| RequestLog::new(every, start_ns, first, reports.clone());
        self.records.log = self.plan.log_every.map(log);
    }

    /// Logs a request that was answered; `fault`: not validly.
    #[inline]
    pub(super) fn log_answer(
        &mut self,
        id: ConnId,
        flight: &Flight,
        answer: &Answer,
        fault: Option<Failure>,
    ) {
        if self.records.log.is_some() {
            let fate = Fate {
                status: answer.status,
                head_bytes: answer.head_bytes,
                body_bytes: answer.body_bytes,
                first_byte_ns: Some(answer.first_byte_ns),
                end_ns: answer.done_ns,
                failure: fault.map(Failure::name),
            };
            self.log_ended(id, flight, fate);
        }
    }

    /// Logs a request that got no answer with valid framing.
    pub(super) fn log_failure(&mut self, id: ConnId, flight: &Flight, failure: Failure) {
        let fate = Fate::without_answer(self.clock.now_ns, failure.name());
        self.log_ended(id, flight, fate);
    }

    /// Logs a stream that was left.
    pub(super) fn log_left(&mut self, id: ConnId, flight: &Flight) {
        self.log_ended(id, flight, Fate::without_answer(self.clock.now_ns, UNFINISHED));
    }

    /// Logs what was never answered, and hands over the rest.
    pub(super) fn end_log(&mut self) {
        let Some(mut log) = self.records.log.take() else { return };
        let fate = Fate::without_answer(self.clock.now_ns, UNANSWERED);
        for id in self.conns.ids_of_load() {
            let conn = &self.conns.pool[id];
            conn.unresolved().for_each(|flight| log.ended(flight, conn.number, fate));
        }
        log.hand_over();
    }

    fn log_ended(&mut self, id: ConnId, flight: &Flight, fate: Fate) {
        let conn = &self.conns.pool[id];
        if let Some(log) = self.records.log.as_mut().filter(|_| conn.role == Role::Load) {
            log.ended(flight, conn.number, fate);
        }
    }
}
