//! Monotonic time in nanoseconds.

use rustix::time::{ClockId, Timespec, clock_gettime};

pub const SECOND_NS: u64 = 1_000_000_000;
pub const MILLISECOND_NS: u64 = 1_000_000;

pub fn now_ns() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec as u64 * SECOND_NS + now.tv_nsec as u64
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
