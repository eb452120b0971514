//! What threads recorded in windows comes together here.
//!
//! A window is marked when the client was saturated in it: a thread ran, or waited for a CPU, for
//! more than 85 % of the time, or requests were sent late (send delay) by more than 5 % of the response
//! time and by more than [`SEND_DELAY_FLOOR_US`] beyond the budget (all p99). It is marked, too, when a
//! thread was stalled.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::self_watch::Usage;
use super::windows::{Phase, ThreadWindow};
use crate::clock::ns_to_seconds;
use crate::order::bounds::MOST_WINDOWS;
use crate::record::{Counts, Histogram, Recorder, rounded};

const BUSY_LIMIT: f64 = 0.85;
const SEND_DELAY_LIMIT: f64 = 0.05;
/// To wake a thread that sleeps takes 50 to 200 µs on virtual CPUs, whatever the load is; a fast
/// server answers in as much. Such a delay is the same for all servers and below what anybody acts
/// upon, so it says nothing about the client's strength. A client that can't keep up falls behind
/// by milliseconds at once.
const SEND_DELAY_FLOOR_US: f64 = 500.0;
/// Shorter windows show how the load settles; whether the client was saturated takes longer to say.
const JUDGED_S: f64 = 0.1;
/// Of a window. It moves the window's rate by as much.
const STALLED_LIMIT: f64 = 0.02;

/// A window of all threads, in short: a row of the result.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Window {
    /// Before the window that the result is about.
    pub ramp_up: bool,
    /// Seconds after the start.
    pub at_s: f64,
    pub length_s: f64,
    pub sent: u64,
    pub completed: u64,
    pub failed: u64,
    pub latency_p50_us: f64,
    pub latency_p99_us: f64,
    pub latency_max_us: f64,
    pub send_delay_p99_us: f64,
    /// CPU time of all threads.
    pub cpu_s: f64,
    /// Share of time on a CPU or waiting for one, of the busiest thread.
    pub busiest_thread: f64,
    /// The client was saturated.
    pub client_limited: bool,
    /// The longest time that a thread was stalled.
    pub stalled_s: f64,
    /// So long that the window measures nothing.
    pub stalled: bool,
}

/// How the load goes, when a window is over.
#[derive(Debug)]
pub struct Progress<'a> {
    pub window: &'a Window,
    /// Its latencies.
    pub latency: &'a Histogram,
    /// Counts since the load began.
    pub so_far: &'a Counts,
}

/// Sums up windows as soon as all threads have handed them over, so that memory stays bounded.
#[derive(Debug, Default)]
pub struct WindowMerger {
    threads: usize,
    /// Open loop: so late requests may be sent.
    delay_budget_ns: Option<u64>,
    exclude_client_limited: bool,
    pending: BTreeMap<u64, Vec<ThreadWindow>>,
    sum: SlotSum,
    excluded: Recorder,
    /// Of the window that was closed last.
    latency: Histogram,
    kept_s: f64,
    excluded_s: f64,
    start_ns: u64,
}

/// The windows of a slot together.
#[derive(Debug, Default)]
pub struct SlotSum {
    /// Of the slot's window: all counts, and times without the windows that were left out.
    pub recorder: Recorder,
    pub throughput_rps: f64,
    /// Seconds that rate and times are about.
    pub counted_s: f64,
    pub excluded_windows: usize,
    /// Counts of ramp-up, window and all that followed.
    pub whole: Counts,
    pub windows: Vec<Window>,
    /// Per thread, in the window of the slot.
    pub usage: Vec<Usage>,
}

impl WindowMerger {
    pub fn new(threads: usize, delay_budget_ns: Option<u64>, exclude_client_limited: bool) -> Self {
        WindowMerger {
            threads,
            delay_budget_ns,
            exclude_client_limited,
            sum: SlotSum { usage: vec![Usage::default(); threads], ..SlotSum::default() },
            start_ns: u64::MAX,
            ..WindowMerger::default()
        }
    }

    /// Takes a part; reports progress when a window is complete and one to show.
    pub fn add(&mut self, part: ThreadWindow) -> Option<Progress<'_>> {
        if part.phase == Phase::Window {
            self.sum.usage[part.thread] += part.usage;
        }
        self.start_ns = self.start_ns.min(part.begin_ns);
        let begin_ns = part.begin_ns;
        let parts = self.pending.entry(begin_ns).or_default();
        parts.push(part);
        if parts.len() < self.threads {
            return None;
        }
        let parts = self.pending.remove(&begin_ns)?;
        self.close(parts)
    }

    /// Closes windows in which some threads had ended already, and sums up. Where no window could
    /// be kept, all are.
    pub fn finish(mut self) -> SlotSum {
        for parts in std::mem::take(&mut self.pending).into_values() {
            self.close(parts);
        }
        let excluded = std::mem::take(&mut self.excluded);
        let (mut completed, mut length_s) =
            (self.sum.recorder.counts.requests.completed, self.kept_s);
        self.sum.recorder.counts += excluded.counts;
        if length_s == 0.0 {
            self.sum.recorder.times += excluded.times;
            (completed, length_s) = (self.sum.recorder.counts.requests.completed, self.excluded_s);
            self.sum.excluded_windows = 0;
        }
        self.sum.counted_s = length_s.max(1e-9);
        self.sum.throughput_rps = completed as f64 / self.sum.counted_s;
        self.sum
    }

    fn close(&mut self, mut parts: Vec<ThreadWindow>) -> Option<Progress<'_>> {
        let mut recorder = Recorder::default();
        parts.iter_mut().for_each(|part| recorder += std::mem::take(&mut *part.recorder));
        self.sum.whole += recorder.counts.clone();
        let phase = parts.first()?.phase;
        if phase == Phase::Tail {
            self.sum.recorder.times += recorder.times;
            return None;
        }
        self.latency = recorder.times.latency(self.delay_budget_ns.is_some());
        let window = self.window(phase, &parts, &recorder);
        if phase == Phase::Window {
            let bound = window.client_limited && self.exclude_client_limited;
            if window.stalled || bound {
                self.excluded += recorder;
                self.excluded_s += window.length_s;
                self.sum.excluded_windows += 1;
            } else {
                self.sum.recorder += recorder;
                self.kept_s += window.length_s;
            }
        }
        if self.sum.windows.len() >= MOST_WINDOWS as usize {
            return None;
        }
        self.sum.windows.push(window);
        Some(Progress {
            window: self.sum.windows.last()?,
            latency: &self.latency,
            so_far: &self.sum.whole,
        })
    }

    fn window(&self, phase: Phase, parts: &[ThreadWindow], recorder: &Recorder) -> Window {
        let begin_ns = parts.iter().map(|part| part.begin_ns).min().unwrap_or(0);
        let end_ns = parts.iter().map(|part| part.end_ns).max().unwrap_or(0);
        let length_s = ns_to_seconds(end_ns.saturating_sub(begin_ns));
        let busy = |part: &ThreadWindow| {
            (part.usage.busy_s() + part.usage.run_queue_s)
                / ns_to_seconds(part.end_ns.saturating_sub(part.begin_ns)).max(1e-6)
        };
        let busiest = parts.iter().map(busy).fold(0.0, f64::max);
        let stalled_s = ns_to_seconds(parts.iter().map(|part| part.stalled_ns).max().unwrap_or(0));
        let (response, counts) = (&self.latency, &recorder.counts);
        let latency_p99_us = response.quantile_us(0.99);
        let send_delay_p99_us = recorder.times.send_delay.quantile_us(0.99);
        let is_late = self.delay_budget_ns.is_some_and(|budget_ns| {
            let allowed_us = budget_ns as f64 / 1e3 + SEND_DELAY_FLOOR_US;
            send_delay_p99_us > allowed_us.max(SEND_DELAY_LIMIT * latency_p99_us)
        });
        Window {
            ramp_up: phase == Phase::RampUp,
            at_s: rounded(ns_to_seconds(begin_ns.saturating_sub(self.start_ns)), 6),
            length_s,
            sent: counts.requests.sent,
            completed: counts.requests.completed,
            failed: counts.seen.failures.total(),
            latency_p50_us: response.quantile_us(0.5),
            latency_p99_us,
            latency_max_us: response.max_us(),
            send_delay_p99_us,
            cpu_s: rounded(parts.iter().map(|part| part.usage.cpu_s()).sum(), 6),
            busiest_thread: rounded(busiest, 4),
            client_limited: length_s >= JUDGED_S && (busiest > BUSY_LIMIT || is_late),
            stalled_s,
            stalled: stalled_s > STALLED_LIMIT * length_s,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND_NS: u64 = 1_000_000_000;

    /// A window of a second with as many answers, each with that send delay and latency.
    fn part(
        nth: u64,
        thread: usize,
        completed: u64,
        delay_us: u64,
        response_us: u64,
    ) -> ThreadWindow {
        let mut recorder = Recorder::default();
        recorder.counts.requests.completed = completed;
        for _ in 0..completed {
            recorder.times.send_delay.record(delay_us * 1000);
            recorder.times.answered(1, response_us * 1000, response_us * 1000, Some(1));
        }
        ThreadWindow {
            phase: Phase::Window,
            thread,
            begin_ns: (nth + 1) * SECOND_NS,
            end_ns: (nth + 2) * SECOND_NS,
            recorder: Box::new(recorder),
            usage: Usage::default(),
            stalled_ns: 0,
        }
    }

    #[test]
    fn a_short_lag_does_not_bind_a_client_however_fast_the_server_is() {
        for (delay_us, budget_ns, response_us, bound) in [
            (300, 0, 400, false),
            (700, 0, 800, true),
            (700, 300_000, 800, false),
            (700, 0, 20_000, false),
            (1500, 0, 20_000, true),
            (1400, 1_000_000, 20_000, false),
        ] {
            let mut merger = WindowMerger::new(1, Some(budget_ns), false);
            let progress = merger.add(part(0, 0, 10, delay_us, response_us)).expect("a window");
            assert_eq!(progress.window.client_limited, bound, "{delay_us} {response_us}");
        }
    }

    #[test]
    fn windows_in_which_a_thread_was_stalled_are_left_out() {
        let mut merger = WindowMerger::new(2, None, false);
        for nth in 0..3 {
            for thread in 0..2 {
                let mut part = part(nth, thread, 100, 0, 10);
                part.stalled_ns = if nth == 1 && thread == 1 { SECOND_NS / 2 } else { 1_000_000 };
                merger.add(part);
            }
        }
        let sum = merger.finish();
        assert_eq!((sum.recorder.counts.requests.completed, sum.excluded_windows), (600, 1));
        assert_eq!((sum.throughput_rps, sum.recorder.times.service_time().count()), (200.0, 400));
        assert_eq!(sum.whole.requests.completed, 600);
    }

    #[test]
    fn where_no_window_is_good_all_are_kept() {
        let mut merger = WindowMerger::new(1, None, false);
        merger.add(ThreadWindow { stalled_ns: SECOND_NS / 2, ..part(0, 0, 100, 0, 10) });
        let sum = merger.finish();
        assert_eq!((sum.throughput_rps, sum.excluded_windows), (100.0, 0));
        assert_eq!(sum.recorder.times.service_time().count(), 100);
    }
}
