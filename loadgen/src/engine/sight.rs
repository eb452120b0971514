//! What a thread sees of the time. Where it sees nothing for long, it stood still: it was stopped,
//! had no CPU, or its machine was paused. Servers had no load then, so such a time measures nothing.

use super::poll::LONGEST_WAIT_NS;
use crate::clock::now_ns;

/// A thread looks at the clock at every request, and after waits. Of a window of a second this is
/// as much as two percent, which is what the lab takes for no difference.
const STILL_NS: u64 = 2 * LONGEST_WAIT_NS;

#[derive(Debug, Default)]
pub struct Sight {
    /// The clock as it was read last.
    pub now_ns: u64,
    /// How long it has asked again and again for what there was not yet.
    pub spun_ns: u64,
    /// When this thread stood still: from, to.
    gaps: Vec<(u64, u64)>,
}

impl Sight {
    /// Begins anew.
    pub fn begin(&mut self, now_ns: u64) {
        *self = Sight { now_ns, ..Sight::default() };
    }

    /// Reads the clock.
    #[inline]
    pub fn look(&mut self) -> u64 {
        self.see(now_ns());
        self.now_ns
    }

    #[inline]
    fn see(&mut self, now_ns: u64) {
        if now_ns > self.now_ns + STILL_NS && self.now_ns > 0 {
            self.gaps.push((self.now_ns, now_ns));
        }
        self.now_ns = now_ns;
    }

    /// How long this thread stood still in a stretch of time; what lies before its end is
    /// forgotten.
    pub fn stood_still_ns(&mut self, begin_ns: u64, end_ns: u64) -> u64 {
        let within =
            |(from, to): &(u64, u64)| (*to).min(end_ns).saturating_sub((*from).max(begin_ns));
        let still_ns = self.gaps.iter().map(within).sum();
        self.gaps.retain(|(_, to)| *to > end_ns);
        still_ns
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gaps_are_told_of_the_windows_they_lie_in() {
        const MS: u64 = 1_000_000;
        let mut sight = Sight::default();
        sight.begin(100 * MS);
        for at in [110, 120, 139, 300, 310] {
            sight.see(at * MS);
        }
        assert_eq!(sight.stood_still_ns(100 * MS, 200 * MS), 61 * MS);
        assert_eq!(sight.stood_still_ns(200 * MS, 300 * MS), 100 * MS);
        assert_eq!(sight.stood_still_ns(300 * MS, 400 * MS), 0);
    }
}
