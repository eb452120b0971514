//! Monotonic time in nanoseconds.

use rustix::time::{ClockId, Timespec, clock_gettime};

pub const SECOND_NS: u64 = 1_000_000_000;
pub const MILLISECOND_NS: u64 = 1_000_000;

pub fn now_ns() -> u64 {
    nanoseconds(clock_gettime(ClockId::Monotonic))
}

/// When a time by the real-time clock was. The zero of that clock moves: only its distance to the
/// present means something.
pub fn when_it_was(real: Timespec) -> u64 {
    let age_ns = nanoseconds(clock_gettime(ClockId::Realtime)).saturating_sub(nanoseconds(real));
    now_ns().saturating_sub(age_ns)
}

fn nanoseconds(time: Timespec) -> u64 {
    time.tv_sec as u64 * SECOND_NS + time.tv_nsec as u64
}

pub fn seconds_to_ns(seconds: f64) -> u64 {
    (seconds * SECOND_NS as f64).round() as u64
}

pub fn ns_to_seconds(ns: u64) -> f64 {
    ns as f64 / SECOND_NS as f64
}

pub fn timespec(ns: u64) -> Timespec {
    Timespec { tv_sec: (ns / SECOND_NS) as i64, tv_nsec: (ns % SECOND_NS) as i64 }
}
