//! When the events of streamed answers came.

use derive_more::AddAssign;

use super::histogram::Histogram;
use crate::events::EventStream;

#[derive(Debug, Clone, Default, AddAssign)]
pub struct EventTimes {
    /// From when a request was due, or sent in a closed loop, to its answer's first event.
    pub first: Histogram,
    /// From an event to the next one of the same answer; 0 for those that came together.
    pub gap: Histogram,
    /// Valid responses, and their events.
    pub responses: u64,
    pub of_responses: u64,
}

impl EventTimes {
    /// Takes the times of what ended within the last read.
    pub fn take(&mut self, events: &mut EventStream, from_ns: u64, now_ns: u64) {
        for _ in 0..std::mem::take(&mut events.fresh) {
            if events.count == 0 {
                self.first.record(now_ns.saturating_sub(from_ns));
            } else {
                self.gap.record(now_ns.saturating_sub(events.last_ns));
            }
            events.count += 1;
            events.last_ns = now_ns;
        }
    }

    pub fn answered(&mut self, events: &EventStream) {
        self.responses += 1;
        self.of_responses += events.count;
    }
}
