//! When answers are due, and until when they are in time.

use clap::{Args, Subcommand};

const NS_PER_MS: f64 = 1e6;

/// When a request that arrives at some time is answered.
#[derive(Subcommand)]
pub enum Delays {
    /// Each request takes equally long
    Constant {
        /// Milliseconds per request
        #[arg(long)]
        delay_ms: f64,
    },
    /// One request in N takes long, by order of arrival
    Bimodal {
        /// Milliseconds of most requests
        #[arg(long)]
        fast_ms: f64,
        /// Milliseconds of each N-th request
        #[arg(long)]
        slow_ms: f64,
        /// N
        #[arg(long, value_parser = clap::value_parser!(u64).range(1..))]
        slow_every: u64,
    },
    /// Nothing is answered during a part of each period; what was due then is answered at its end
    Frozen {
        /// Milliseconds per request outside of freezes
        #[arg(long)]
        base_ms: f64,
        /// Milliseconds from the start of a period to the freeze
        #[arg(long)]
        freeze_at_ms: f64,
        /// Milliseconds that a freeze lasts
        #[arg(long)]
        freeze_ms: f64,
        /// Milliseconds from period to period, counted from zero of the monotonic clock
        #[arg(long)]
        period_ms: f64,
    },
}

impl Delays {
    /// When to answer the request number `count` (from 0) that arrived at `arrived_ns`.
    pub fn answer_at_ns(&self, arrived_ns: u64, count: u64) -> u64 {
        match *self {
            Self::Constant { delay_ms } => arrived_ns + ns(delay_ms),
            Self::Bimodal { slow_ms, slow_every, .. } if (count + 1).is_multiple_of(slow_every) => {
                arrived_ns + ns(slow_ms)
            }
            Self::Bimodal { fast_ms, .. } => arrived_ns + ns(fast_ms),
            Self::Frozen { base_ms, freeze_at_ms, freeze_ms, period_ms } => {
                let ready_ns = arrived_ns + ns(base_ms);
                let phase_ns = ready_ns % ns(period_ms);
                let (start_ns, end_ns) = (ns(freeze_at_ms), ns(freeze_at_ms + freeze_ms));
                if (start_ns..end_ns).contains(&phase_ns) {
                    ready_ns - phase_ns + end_ns
                } else {
                    ready_ns
                }
            }
        }
    }
}

/// How late an answer may be written; what is written later is too late.
#[derive(Args)]
pub struct Allowance {
    /// Milliseconds that each answer may be late
    #[arg(long)]
    pub late_ms: f64,
    /// What comes on top, as a share of the time from the request's arrival until its answer is due
    #[arg(long)]
    pub late_share: f64,
}

impl Allowance {
    /// Until when an answer that is due at `at_ns` is in time.
    pub fn latest_ns(&self, arrived_ns: u64, at_ns: u64) -> u64 {
        let delay_ns = at_ns - arrived_ns;
        at_ns + ns(self.late_ms) + (delay_ns as f64 * self.late_share) as u64
    }
}

pub fn ns(ms: f64) -> u64 {
    (ms * NS_PER_MS) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_answered_in_a_freeze() {
        let frozen = Delays::Frozen {
            base_ms: 1.0,
            freeze_at_ms: 500.0,
            freeze_ms: 200.0,
            period_ms: 1000.0,
        };
        let at_ms = |arrived_ms: f64| frozen.answer_at_ns(ns(arrived_ms), 0) as f64 / NS_PER_MS;
        for (arrives, answered) in [
            (0.0, 1.0),
            (498.9, 499.9),
            (499.0, 700.0),
            (650.0, 700.0),
            (699.0, 700.0),
            (3600.0, 3700.0),
        ] {
            assert_eq!(at_ms(arrives), answered, "{arrives}");
        }
    }

    #[test]
    fn each_nth_is_slow() {
        let bimodal = Delays::Bimodal { fast_ms: 1.0, slow_ms: 50.0, slow_every: 3 };
        let delays: Vec<u64> = (0..6).map(|count| bimodal.answer_at_ns(7, count) - 7).collect();
        let (fast, slow) = (ns(1.0), ns(50.0));
        assert_eq!(delays, [fast, fast, slow, fast, fast, slow]);
    }

    #[test]
    fn who_waited_longer_may_wait_a_little_longer() {
        let allowance = Allowance { late_ms: 0.5, late_share: 0.01 };
        for (delay_ms, late_ms) in [(0.0, 0.5), (1.0, 0.51), (200.0, 2.5)] {
            let at_ns = ns(7.0 + delay_ms);
            assert_eq!(allowance.latest_ns(ns(7.0), at_ns), at_ns + ns(late_ms), "{delay_ms}");
        }
    }
}
