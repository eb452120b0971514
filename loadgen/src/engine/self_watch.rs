//! A thread watches itself: what it costs, and when it was kept from running.

use std::mem::MaybeUninit;

use derive_more::{Add, AddAssign, Sub, Sum};
use serde::{Deserialize, Serialize, Serializer};

use super::poll::LONGEST_WAIT_NS;
use crate::clock::now_ns;
use crate::record::rounded;

/// A thread reads the clock at every request, and after waits. Of a window of a second this is as
/// much as two percent, which is what the lab takes for no difference.
const STALL_NS: u64 = 2 * LONGEST_WAIT_NS;

/// A thread's clock. Between two readings that are far apart the thread was stalled: it was stopped,
/// had no CPU, or its machine was paused. Servers had no load then, so such a time measures nothing.
#[derive(Debug, Default)]
pub struct ThreadClock {
    /// The clock as it was read last.
    pub now_ns: u64,
    /// How long the thread has spun: polled again and again instead of waiting.
    pub spun_ns: u64,
    /// When this thread was stalled: from, to.
    stalls: Vec<(u64, u64)>,
}

impl ThreadClock {
    /// A slot begins.
    pub fn begin(&mut self, now_ns: u64) {
        *self = ThreadClock { now_ns, ..ThreadClock::default() };
    }

    /// Reads the clock.
    #[inline]
    pub fn read(&mut self) -> u64 {
        self.set(now_ns());
        self.now_ns
    }

    #[inline]
    fn set(&mut self, now_ns: u64) {
        if now_ns > self.now_ns + STALL_NS && self.now_ns > 0 {
            self.stalls.push((self.now_ns, now_ns));
        }
        self.now_ns = now_ns;
    }

    /// How long this thread was stalled in a stretch of time; what lies before its end is
    /// forgotten.
    pub fn stalled_ns(&mut self, begin_ns: u64, end_ns: u64) -> u64 {
        let within =
            |(from, to): &(u64, u64)| (*to).min(end_ns).saturating_sub((*from).max(begin_ns));
        let sum_ns = self.stalls.iter().map(within).sum();
        self.stalls.retain(|(_, to)| *to > end_ns);
        sum_ns
    }
}

/// What a thread costs, in seconds: CPU time, and time spent waiting for a CPU.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize, Add, AddAssign, Sub, Sum)]
pub struct Usage {
    #[serde(serialize_with = "microseconds")]
    pub cpu_user_s: f64,
    #[serde(serialize_with = "microseconds")]
    pub cpu_sys_s: f64,
    /// Runnable, but not running; 0 where the kernel doesn't report it.
    #[serde(serialize_with = "microseconds")]
    pub run_queue_s: f64,
    /// Of the CPU time: spent polling again and again instead of waiting.
    #[serde(serialize_with = "microseconds")]
    pub spun_s: f64,
}

impl Usage {
    /// Since the thread began.
    pub fn of_this_thread() -> Usage {
        let mut usage = MaybeUninit::<libc::rusage>::zeroed();
        // SAFETY: the kernel writes one `rusage` through the valid pointer; all-zero is valid too.
        let usage = unsafe {
            libc::getrusage(libc::RUSAGE_THREAD, usage.as_mut_ptr());
            usage.assume_init()
        };
        let seconds = |t: libc::timeval| t.tv_sec as f64 + t.tv_usec as f64 / 1e6;
        Usage {
            cpu_user_s: seconds(usage.ru_utime),
            cpu_sys_s: seconds(usage.ru_stime),
            run_queue_s: run_queue_s().unwrap_or(0.0),
            spun_s: 0.0,
        }
    }

    pub fn cpu_s(&self) -> f64 {
        self.cpu_user_s + self.cpu_sys_s
    }

    /// CPU time spent on work.
    pub fn busy_s(&self) -> f64 {
        (self.cpu_s() - self.spun_s).max(0.0)
    }
}

/// The second field of schedstat (Documentation/scheduler/sched-stats.rst), in nanoseconds.
fn run_queue_s() -> Option<f64> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    let ns: f64 = text.split(' ').nth(1)?.parse().ok()?;
    Some(ns / 1e9)
}

/// No clock of the kernel has more digits.
fn microseconds<S: Serializer>(seconds: &f64, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_f64(rounded(*seconds, 6))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stalls_belong_to_the_windows_they_lie_in() {
        const MS: u64 = 1_000_000;
        let mut clock = ThreadClock::default();
        clock.begin(100 * MS);
        for at in [110, 120, 139, 300, 310] {
            clock.set(at * MS);
        }
        assert_eq!(clock.stalled_ns(100 * MS, 200 * MS), 61 * MS);
        assert_eq!(clock.stalled_ns(200 * MS, 300 * MS), 100 * MS);
        assert_eq!(clock.stalled_ns(300 * MS, 400 * MS), 0);
    }
}
