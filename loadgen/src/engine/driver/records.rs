//! What a thread records of a slot.

use std::ops::Range;

use crate::engine::flight::{Flight, Traced};
use crate::engine::log::RequestLog;
use crate::engine::pool::Role;
use crate::engine::schedule::PlannedRequest;
use crate::record::{Beside, Recorder};

pub struct Records {
    /// Of the load, in the present window.
    pub load: Recorder,
    pub beside: Beside,
    /// Open loop: of requests that are due in this time, times are recorded.
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

    /// The client has got round to a request: until here it is its lag.
    pub fn record_lag(&mut self, flight: &mut Flight, now_ns: u64) {
        let ready_ns = std::mem::take(&mut flight.planned.ready_ns);
        if ready_ns > 0 && self.is_in_window(&flight.planned) {
            self.load.times.lag.record(now_ns.saturating_sub(ready_ns));
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
