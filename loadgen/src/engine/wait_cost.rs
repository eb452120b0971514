//! What it costs a thread to wait on its CPU, found by trying: where an idle CPU leaves the virtual
//! machine it is many times what it is elsewhere.

use std::io;

use super::poll::Poll;
use crate::clock::{now_ns, thread_cpu_ns};

/// Waits that are tried, each about as long as those of a busy timetable.
const TRIALS: usize = 64;
const TRIAL_NS: u64 = 100_000;
/// What is above this comes from others who wanted the CPU.
const MOST_NS: u64 = 30_000;

#[derive(Debug, Clone, Copy)]
pub struct WaitCost {
    /// So much later than requested half of all waits end.
    late_ns: u64,
    /// The CPU time of one.
    cpu_ns: u64,
}

impl WaitCost {
    pub fn measure() -> io::Result<WaitCost> {
        let poll = Poll::new()?;
        let mut events = Poll::events();
        let mut late_ns = [0; TRIALS];
        let cpu_before_ns = thread_cpu_ns();
        for late_ns in &mut late_ns {
            let begun_ns = now_ns();
            poll.wait(&mut events, begun_ns, begun_ns + TRIAL_NS)?;
            *late_ns = now_ns().saturating_sub(begun_ns + TRIAL_NS);
        }
        let cpu_ns = (thread_cpu_ns() - cpu_before_ns) / TRIALS as u64;
        late_ns.sort_unstable();
        Ok(WaitCost { late_ns: late_ns[TRIALS / 2].min(MOST_NS), cpu_ns: cpu_ns.min(MOST_NS) })
    }

    /// Until when a thread waits that is to send at `wake_ns`. The rest it spends asking again and
    /// again, and all of it where that takes no more CPU time than a wait.
    pub fn wait_until_ns(self, now_ns: u64, wake_ns: u64) -> u64 {
        let until_ns = wake_ns.saturating_sub(self.late_ns);
        if wake_ns > now_ns + self.cpu_ns { until_ns } else { now_ns }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_waits_are_spent_asking() {
        let cost = WaitCost { late_ns: 5, cpu_ns: 20 };
        assert_eq!(cost.wait_until_ns(100, 120), 100);
        assert_eq!(cost.wait_until_ns(100, 121), 116);
        // What is due already isn't waited for.
        assert_eq!(cost.wait_until_ns(100, 90), 100);
        // A wait that ends late and costs little: asking is exact.
        let cost = WaitCost { late_ns: 20, cpu_ns: 5 };
        assert!(cost.wait_until_ns(100, 110) <= 100);
    }

    #[test]
    fn a_wait_costs_something() {
        let cost = WaitCost::measure().expect("epoll");
        assert!((1..=MOST_NS).contains(&cost.cpu_ns), "{cost:?}");
        assert!(cost.late_ns <= MOST_NS, "{cost:?}");
    }
}
