//! Monotonic time in nanoseconds.

use std::cell::Cell;

use rustix::time::{ClockId, Timespec, clock_gettime};

pub const SECOND_NS: u64 = 1_000_000_000;
pub const MILLISECOND_NS: u64 = 1_000_000;
/// Longer than what arrives lies unread.
const UNSURE_NS: u64 = 100 * MILLISECOND_NS;

pub fn now_ns() -> u64 {
    nanoseconds(clock_gettime(ClockId::Monotonic))
}

/// When a time by the real-time clock was. The zero of that clock moves: only its distance to the
/// present means something, and nothing just after the clock was set.
pub fn when_it_was(real: Timespec) -> Option<u64> {
    let (real_now_ns, now_ns) = (nanoseconds(clock_gettime(ClockId::Realtime)), now_ns());
    let mut zero = ZERO.get();
    let is_sure = zero.is_sure(real_now_ns, now_ns);
    ZERO.set(zero);
    let age_ns = real_now_ns.saturating_sub(nanoseconds(real));
    is_sure.then(|| now_ns.saturating_sub(age_ns))
}

thread_local! {
    static ZERO: Cell<Zero> = const { Cell::new(Zero { at_ns: None, sure_from_ns: 0 }) };
}

/// Where the zero of the real-time clock lies on the monotonic one.
#[derive(Debug, Clone, Copy)]
struct Zero {
    at_ns: Option<i64>,
    sure_from_ns: u64,
}

impl Zero {
    /// Whether the clock wasn't set lately, as far as this thread has seen: what it reads may have
    /// arrived before.
    fn is_sure(&mut self, real_now_ns: u64, now_ns: u64) -> bool {
        let at_ns = real_now_ns.wrapping_sub(now_ns).cast_signed();
        let step_ns = self.at_ns.map_or(0, |before_ns| before_ns.abs_diff(at_ns));
        if step_ns > MILLISECOND_NS {
            self.sure_from_ns = now_ns + UNSURE_NS;
        }
        self.at_ns = Some(at_ns);
        now_ns >= self.sure_from_ns
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_that_was_set_says_nothing_for_a_while() {
        let mut zero = Zero { at_ns: None, sure_from_ns: 0 };
        let day_ns = 86_400 * SECOND_NS;
        assert!(zero.is_sure(day_ns, 1000));
        // It is slewed all the time.
        assert!(zero.is_sure(day_ns + SECOND_NS + 500_000, SECOND_NS + 1000));
        for step in [2 * day_ns, day_ns] {
            let at = step - day_ns + 2 * SECOND_NS;
            assert!(!zero.is_sure(step + at, at), "{step}");
            assert!(!zero.is_sure(step + at + UNSURE_NS / 2, at + UNSURE_NS / 2), "{step}");
            assert!(zero.is_sure(step + at + UNSURE_NS, at + UNSURE_NS), "{step}");
        }
    }
}
