//! Threads record window by window, and hand over what they recorded when one is over.

use serde::{Deserialize, Serialize};

use super::flight::{Logged, Traced};
use super::plan::Plan;
use super::self_watch::{ThreadClock, Usage};
use crate::clock::ns_to_seconds;
use crate::record::{OtherConnections, Recorder};

/// Why a slot ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum EndedBy {
    Duration,
    /// Enough of what was due in the window was late: see [`crate::order::AbortRule`].
    Late,
    Count,
    Interrupt,
    /// Who followed the load had seen enough.
    Limit,
    /// Only a count could end it, and the server could not be reached for the whole timeout; or
    /// the server can't be reached as asked: its certificate is wrong, it has no HTTP/2.
    Unreachable,
}

/// Parts of a slot, in this order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    RampUp,
    /// What the result is about.
    Window,
    /// Open loop after a ramp-up: the load goes on until all that was due before is answered, or
    /// enough of it is late.
    Tail,
}

/// What a thread reports during a slot.
#[derive(Debug)]
pub enum ThreadReport {
    Window(ThreadWindow),
    Ended(Box<ThreadEnd>),
    /// All answers, where they are reported whole.
    Traced(Vec<Traced>),
    /// Some requests, where they are logged.
    Logged(Vec<Logged>),
    Broken(std::io::Error),
}

/// One thread's part of a window.
#[derive(Debug)]
pub struct ThreadWindow {
    pub phase: Phase,
    pub thread: usize,
    pub begin_ns: u64,
    pub end_ns: u64,
    pub recorder: Box<Recorder>,
    pub usage: Usage,
    pub stalled_ns: u64,
}

/// The window a thread is in. All threads have the same edges.
#[derive(Debug)]
pub struct WindowEdges {
    pub phase: Phase,
    pub end_ns: u64,
    begin_ns: u64,
    thread: usize,
    part_ns: u64,
    window_ns: u64,
    pub over_ns: u64,
    last_ns: u64,
    usage: Usage,
}

impl WindowEdges {
    pub fn first(thread: usize, start_ns: u64, plan: &Plan) -> Self {
        let window_ns = start_ns.saturating_add(plan.ramp_up_ns);
        let over_ns = window_ns.saturating_add(plan.duration_ns);
        let mut edges = WindowEdges {
            phase: Phase::RampUp,
            end_ns: start_ns,
            begin_ns: start_ns,
            thread,
            part_ns: plan.part_ns,
            window_ns,
            over_ns,
            last_ns: over_ns.saturating_add(plan.tail_ns()),
            usage: Usage::of_this_thread(),
        };
        edges.go_on();
        edges
    }

    /// When this is over, so is the slot.
    pub fn is_last(&self) -> bool {
        self.end_ns == self.last_ns
    }

    /// Hands over what was recorded until `end_ns`, and goes on with an empty recorder.
    pub fn hand_over(
        &mut self,
        recorder: &mut Recorder,
        clock: &mut ThreadClock,
        end_ns: u64,
    ) -> ThreadReport {
        let usage = Usage::of_this_thread();
        let part = ThreadWindow {
            phase: self.phase,
            thread: self.thread,
            begin_ns: self.begin_ns,
            end_ns,
            recorder: Box::new(std::mem::take(recorder)),
            usage: Usage {
                spun_s: ns_to_seconds(std::mem::take(&mut clock.spun_ns)),
                ..usage - self.usage
            },
            stalled_ns: clock.stalled_ns(self.begin_ns, end_ns),
        };
        self.usage = usage;
        self.go_on();
        ThreadReport::Window(part)
    }

    fn go_on(&mut self) {
        self.begin_ns = self.end_ns;
        let next_ns = self.begin_ns.saturating_add(self.part_ns);
        (self.phase, self.end_ns) = match self.begin_ns {
            early if early < self.window_ns => (Phase::RampUp, next_ns.min(self.window_ns)),
            within if within < self.over_ns => (Phase::Window, next_ns.min(self.over_ns)),
            _ => (Phase::Tail, self.last_ns),
        };
    }
}

/// A thread's end of a slot.
#[derive(Debug)]
pub struct ThreadEnd {
    pub ended_by: EndedBy,
    pub start_ns: u64,
    /// When its window ended, when it asked for nothing more, when all was answered.
    pub over_ns: u64,
    pub settled_ns: u64,
    pub drained_ns: u64,
    pub others: OtherConnections,
    /// After all windows.
    pub drain: Recorder,
}
