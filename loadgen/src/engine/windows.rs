//! Threads hand over what they recorded window by window; here it comes together.
//!
//! A window is marked when the client was the limit in it: a thread ran, or waited for a CPU,
//! for more than 85 % of the time, or requests were sent late by more than 5 % of the response time (both p99).

use std::collections::BTreeMap;

use super::clock::ns_to_seconds;
use super::slot::EndedBy;
use super::usage::Usage;
use crate::record::{Beside, Recorder, Timing};

const BUSY_LIMIT: f64 = 0.85;
const LAG_LIMIT: f64 = 0.05;

/// What a thread tells during a slot.
#[derive(Debug)]
pub enum Report {
    Window(WindowPart),
    Done(Box<Done>),
}

/// One thread's part of a window.
#[derive(Debug)]
pub struct WindowPart {
    pub index: u64,
    pub thread: usize,
    pub start_ns: u64,
    pub end_ns: u64,
    pub recorder: Box<Recorder>,
    pub usage: Usage,
}

/// The window a thread is in.
#[derive(Debug)]
pub struct Current {
    thread: usize,
    index: u64,
    begin_ns: u64,
    pub end_ns: u64,
    /// Of the slot.
    start_ns: u64,
    length_ns: u64,
    usage: Usage,
}

impl Current {
    pub fn first(thread: usize, start_ns: u64, length_ns: u64) -> Self {
        Current {
            thread,
            index: 0,
            begin_ns: start_ns,
            end_ns: start_ns.saturating_add(length_ns),
            start_ns,
            length_ns,
            usage: Usage::of_this_thread(),
        }
    }

    /// Hands over what was recorded, and goes on with an empty recorder in the next window.
    pub fn hand_over(&mut self, recorder: &mut Recorder, now_ns: u64) -> WindowPart {
        let usage = Usage::of_this_thread();
        let part = self.last(recorder, now_ns, usage);
        self.index = (now_ns - self.start_ns) / self.length_ns;
        self.begin_ns = now_ns;
        self.end_ns = self.start_ns + (self.index + 1) * self.length_ns;
        self.usage = usage;
        part
    }

    /// What was recorded in a window that ended at `end_ns`, when `usage` was read.
    pub fn last(&self, recorder: &mut Recorder, end_ns: u64, usage: Usage) -> WindowPart {
        WindowPart {
            index: self.index,
            thread: self.thread,
            start_ns: self.begin_ns,
            end_ns,
            recorder: Box::new(std::mem::replace(recorder, Recorder::empty())),
            usage: usage.since(&self.usage),
        }
    }
}

/// A thread's end of a slot.
#[derive(Debug)]
pub struct Done {
    pub ended_by: EndedBy,
    pub start_ns: u64,
    pub end_ns: u64,
    pub drained_ns: u64,
    pub beside: Beside,
}

/// A window of all threads, in short.
#[derive(Debug, Clone)]
pub struct Window {
    /// Seconds after the start.
    pub at_s: f64,
    pub length_s: f64,
    pub sent: u64,
    pub completed: u64,
    pub failed: u64,
    pub response_p50_us: f64,
    pub response_p99_us: f64,
    pub response_max_us: f64,
    pub send_lag_p99_us: f64,
    /// Share of time on a CPU or waiting for one, of the busiest thread.
    pub busiest: f64,
    /// The client was the limit.
    pub client_bound: bool,
}

/// Sums up windows as soon as all threads have handed them over, so that memory stays bounded.
#[derive(Debug)]
pub struct Collector {
    threads: usize,
    open: bool,
    leave_out: bool,
    pending: BTreeMap<u64, Vec<WindowPart>>,
    /// Counts of the whole slot; times of the windows that are kept.
    pub total: Recorder,
    pub kept_completed: u64,
    pub kept_s: f64,
    pub windows: Vec<Window>,
    /// Per thread.
    pub usage: Vec<Usage>,
    start_ns: u64,
}

impl Collector {
    pub fn new(threads: usize, open: bool, leave_out: bool) -> Self {
        Collector {
            threads,
            open,
            leave_out,
            pending: BTreeMap::new(),
            total: Recorder::empty(),
            kept_completed: 0,
            kept_s: 0.0,
            windows: Vec::new(),
            usage: vec![Usage::default(); threads],
            start_ns: u64::MAX,
        }
    }

    /// Takes a part; gives the window when it is complete.
    pub fn add(&mut self, part: WindowPart) -> Option<&Window> {
        self.usage[part.thread].add(&part.usage);
        self.start_ns = self.start_ns.min(part.start_ns);
        let index = part.index;
        let parts = self.pending.entry(index).or_default();
        parts.push(part);
        if parts.len() < self.threads {
            return None;
        }
        let parts = self.pending.remove(&index)?;
        Some(self.close(parts))
    }

    /// Closes windows in which some threads had ended already.
    pub fn finish(&mut self) {
        for parts in std::mem::take(&mut self.pending).into_values() {
            self.close(parts);
        }
    }

    fn close(&mut self, parts: Vec<WindowPart>) -> &Window {
        let mut recorder = Recorder::empty();
        parts.iter().for_each(|part| recorder.add(&part.recorder));
        let start_ns = parts.iter().map(|part| part.start_ns).min().unwrap_or(0);
        let end_ns = parts.iter().map(|part| part.end_ns).max().unwrap_or(0);
        let busy = |part: &WindowPart| {
            (part.usage.cpu_s() + part.usage.run_queue_s)
                / ns_to_seconds(part.end_ns.saturating_sub(part.start_ns)).max(1e-6)
        };
        let response = recorder.response_time(self.open);
        let mut window = Window {
            at_s: ns_to_seconds(start_ns.saturating_sub(self.start_ns)),
            length_s: ns_to_seconds(end_ns.saturating_sub(start_ns)),
            sent: recorder.sent,
            completed: recorder.completed,
            failed: recorder.failures.total(),
            response_p50_us: response.quantile_us(0.5),
            response_p99_us: response.quantile_us(0.99),
            response_max_us: response.max_us(),
            send_lag_p99_us: recorder.lag.quantile_us(0.99),
            busiest: parts.iter().map(busy).fold(0.0, f64::max),
            client_bound: false,
        };
        let lags = self.open && window.send_lag_p99_us > LAG_LIMIT * window.response_p99_us;
        window.client_bound = window.busiest > BUSY_LIMIT || lags;
        if window.client_bound && self.leave_out {
            self.total.add_counts(&recorder);
        } else {
            self.total.add(&recorder);
            self.kept_completed += recorder.completed;
            self.kept_s += window.length_s;
        }
        self.windows.push(window);
        &self.windows[self.windows.len() - 1]
    }

    /// Response times of the windows kept, and of what was never sent.
    pub fn response_time(&self, unsent: &Timing) -> Timing {
        let mut response = self.total.response_time(self.open);
        response.add(unsent);
        response
    }
}
