//! What a thread records of a slot.

use std::ops::Range;

use crate::engine::flight::{Flight, Traced};
use crate::engine::log::RequestLog;
use crate::engine::pool::Role;
use crate::engine::schedule::PlannedRequest;
use crate::events::EventStream;
use crate::record::{Beside, Recorder};

pub struct Records {
    /// Of the load, in the present window.
    pub load: Recorder,
    pub beside: Beside,
    /// Times are recorded of requests whose times begin in here: in an open loop, the window.
    pub window_ns: Range<u64>,
    /// Answers to what was sent before this are late: the window is over.
    pub over_since_ns: Option<u64>,
    /// All answers, where they are reported whole.
    pub traced: Vec<Traced>,
    /// Where requests are logged.
    pub log: Option<RequestLog>,
}

impl Records {
    pub fn new() -> Records {
        Records {
            load: Recorder::default(),
            beside: Beside::default(),
            window_ns: 0..u64::MAX,
            over_since_ns: None,
            traced: Vec::new(),
            log: None,
        }
    }

    /// Where requests over connections of a role are recorded.
    pub fn of(&mut self, role: Role) -> &mut Recorder {
        match role {
            Role::Load => &mut self.load,
            Role::Slow => &mut self.beside.slow,
            Role::Idle => &mut self.beside.idle,
        }
    }

    /// A request was due in the window.
    pub fn is_in_window(&self, planned: &PlannedRequest) -> bool {
        planned.due_ns.is_some_and(|due_ns| self.window_ns.contains(&due_ns))
    }

    /// When the times of a request begin, if they are recorded.
    #[inline]
    pub fn times_from_ns(&self, flight: &Flight) -> Option<u64> {
        let from_ns = flight.times_from_ns();
        self.window_ns.contains(&from_ns).then_some(from_ns)
    }

    /// Times the events of an answer that are there by now, where it is a stream of them;
    /// `is_whole`: the answer has ended, and an event may with it.
    #[inline]
    pub fn time_events(
        &mut self,
        events: &mut Option<Box<EventStream>>,
        flight: &Flight,
        role: Role,
        done_ns: u64,
        is_whole: bool,
    ) {
        let Some(events) = events else { return };
        if is_whole {
            events.finish();
        }
        if let Some(from_ns) = self.times_from_ns(flight) {
            self.of(role).times.events.take(events, from_ns, done_ns);
        }
    }

    /// The client has got round to a request: until here it is its send delay.
    pub fn record_send_delay(&mut self, flight: &mut Flight, now_ns: u64) {
        let ready_ns = std::mem::take(&mut flight.planned.ready_ns);
        if ready_ns > 0 && self.is_in_window(&flight.planned) {
            self.load.times.send_delay.record(now_ns.saturating_sub(ready_ns));
        }
    }

    /// Open loop: a request that was due then has no answer by `end_ns`. Where it was due in the
    /// window, which is given, it enters the times with how long it has waited.
    pub fn record_unanswered(&mut self, due_ns: u64, end_ns: u64) -> bool {
        let is_in_window = self.window_ns.contains(&due_ns);
        if is_in_window {
            self.load.times.waited.record(end_ns.saturating_sub(due_ns));
        }
        is_in_window
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_begin_when_a_request_was_due_or_sent() {
        let mut records = Records::new();
        let undue = Flight { first_sent_ns: 12, ..Flight::new(0, PlannedRequest::undue(0), 11) };
        let due = |due_ns| {
            let planned = PlannedRequest { due_ns: Some(due_ns), ..undue.planned };
            Flight { planned, ..undue }
        };
        // Closed loop.
        assert_eq!(records.times_from_ns(&undue), Some(12));
        records.window_ns = 10..20;
        let flights = [undue, due(9), due(10), due(20)];
        let from_ns = flights.map(|flight| records.times_from_ns(&flight));
        assert_eq!(from_ns, [Some(12), None, Some(10), None]);
        let in_window = flights.map(|flight| records.is_in_window(&flight.planned));
        assert_eq!(in_window, [false, false, true, false]);
    }
}
