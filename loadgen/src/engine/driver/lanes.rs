//! The lanes of a thread: what they do next, and what of theirs has no answer yet.

use crate::engine::schedule::LaneScheduler;

pub struct LaneState {
    pub scheduler: LaneScheduler,
    /// Those of slow readers, of which there may be some, are numbered from here on.
    pub count: usize,
    /// Open loop: requests on their way that were due in the window.
    pub due_unanswered: usize,
    /// Nothing more is asked.
    pub draining: bool,
    /// While draining: requests that have no answer yet.
    pub left_to_drain: usize,
    /// Streams are left, as the duration is over.
    pub leaves_streams: bool,
}

impl LaneState {
    pub fn new(scheduler: LaneScheduler, count: usize) -> LaneState {
        LaneState {
            scheduler,
            count,
            due_unanswered: 0,
            draining: false,
            left_to_drain: 0,
            leaves_streams: false,
        }
    }

    /// Everything due before `end_ns` has been answered, or has failed.
    pub fn have_resolved_all(&self, end_ns: u64) -> bool {
        self.due_unanswered == 0 && self.scheduler.is_taken_until(end_ns)
    }

    /// More than this share of what was due in the window has no answer yet, as far as this thread
    /// can tell: it doesn't know what others have on their way.
    pub fn lack_more_than(&self, share: f64, now_ns: u64) -> bool {
        self.scheduler.in_window(now_ns).is_some_and(|window| {
            let lacking = self.due_unanswered as u64 + window.waiting;
            lacking as f64 > share * window.due as f64
        })
    }

    /// While draining: a request is over.
    pub fn drain_one(&mut self) {
        self.left_to_drain = self.left_to_drain.saturating_sub(1);
    }
}
