//! A number of requests that the threads of a closed loop share.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Requests taken from the common budget at a time, so that threads seldom meet there.
const HANDFUL: u64 = 64;

/// One thread's access to the common budget.
#[derive(Debug, Clone)]
pub struct RequestBudget {
    left: Option<Arc<AtomicU64>>,
    threads: u64,
    at_hand: u64,
}

impl RequestBudget {
    /// `count` requests in all, or as many as wanted; clones take from the same budget.
    pub fn new(count: Option<u64>, threads: usize) -> Self {
        let left = count.map(|count| Arc::new(AtomicU64::new(count)));
        RequestBudget { left, threads: threads as u64, at_hand: 0 }
    }

    /// Takes a handful, smaller ones near the end so that all threads end together.
    fn take(&self, left: &AtomicU64) -> u64 {
        let handful = |left: u64| (left / (4 * self.threads)).clamp(1, HANDFUL).min(left);
        let taken = |left| Some(left - handful(left));
        left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, taken).map_or(0, handful)
    }

    /// Takes one request; false when all are given out.
    pub fn take_one(&mut self) -> bool {
        let Some(left) = &self.left else { return true };
        if self.at_hand == 0 {
            self.at_hand = self.take(left);
            if self.at_hand == 0 {
                return false;
            }
        }
        self.at_hand -= 1;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gives_out_exactly_the_count() {
        for count in [1, 63, 64, 65, 1000] {
            let budget = RequestBudget::new(Some(count), 3);
            let mut shares = [budget.clone(), budget.clone(), budget];
            let mut given = 0;
            loop {
                let taken =
                    shares.iter_mut().map(RequestBudget::take_one).filter(|taken| *taken).count()
                        as u64;
                given += taken;
                if taken == 0 {
                    break;
                }
            }
            assert_eq!(given, count);
        }
    }

    #[test]
    fn no_count_means_no_end() {
        let mut share = RequestBudget::new(None, 1);
        assert!((0..1000).all(|_| share.take_one()));
    }
}
