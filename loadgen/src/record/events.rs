//! When the events of streamed answers came.

use derive_more::AddAssign;

use super::histogram::Histogram;
use crate::events::EventStream;
use crate::order::{Goodput, Took};

#[derive(Debug, Clone, Default, AddAssign)]
pub struct EventTimes {
    /// From when a request was due, or sent in a closed loop, to its answer's first event.
    pub first: Histogram,
    /// From an event to the next one of the same answer; 0 for those that came together.
    pub gap: Histogram,
    /// Mean time from an event to the next, of each valid response that has several.
    pub per_event: Histogram,
    /// Valid responses, and their events.
    pub responses: u64,
    pub of_responses: u64,
    /// Valid responses that kept the limits of a goodput.
    pub good: u64,
}

impl EventTimes {
    /// Takes the times of what ended within the last read.
    pub fn take(&mut self, events: &mut EventStream, from_ns: u64, now_ns: u64) {
        for _ in 0..std::mem::take(&mut events.fresh) {
            if events.count == 0 {
                self.first.record(now_ns.saturating_sub(from_ns));
                events.first_ns = now_ns;
            } else {
                self.gap.record(now_ns.saturating_sub(events.last_ns));
            }
            events.count += 1;
            events.last_ns = now_ns;
        }
    }

    /// Events that came, of whatever responses.
    pub fn count(&self) -> u64 {
        self.first.count() + self.gap.count()
    }

    pub fn answered(
        &mut self,
        events: &EventStream,
        from_ns: u64,
        done_ns: u64,
        goodput: Option<&Goodput>,
    ) {
        self.responses += 1;
        self.of_responses += events.count;
        let took = Took {
            first_event_ns: (events.count > 0).then(|| events.first_ns.saturating_sub(from_ns)),
            per_event_ns: events.per_event_ns(),
            latency_ns: done_ns.saturating_sub(from_ns),
        };
        if let Some(per_event_ns) = took.per_event_ns {
            self.per_event.record(per_event_ns);
        }
        self.good += u64::from(goodput.is_some_and(|goodput| goodput.is_kept_by(took)));
    }
}
