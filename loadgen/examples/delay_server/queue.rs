//! Which answer is written next.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// How many answers are written before new requests are looked for, whose answers may be more urgent.
pub const AT_ONCE: usize = 16;

/// An answer to be written: from when, until when, in which order of arrival, and to whom.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Due {
    /// Until when it is in time. The first field, because the most urgent answer comes first.
    pub latest_ns: u64,
    pub at_ns: u64,
    pub count: u64,
    pub place: usize,
    pub serial: u64,
}

/// No answer leaves it before it is due, and of those that are due the most urgent one leaves first.
///
/// After a freeze hundreds are due at once, and writing them takes longer than the youngest may be
/// late. Whoever waited long can wait until they are written.
#[derive(Default)]
pub struct Queue {
    /// Not due when last looked at, with the time when it is.
    waiting: BinaryHeap<Reverse<(u64, Due)>>,
    due: BinaryHeap<Reverse<Due>>,
}

impl Queue {
    pub fn push(&mut self, due: Due) {
        self.waiting.push(Reverse((due.at_ns, due)));
    }

    /// Takes the most urgent of the answers that are due.
    pub fn pop(&mut self, now_ns: u64) -> Option<Due> {
        while let Some(first) = self.waiting.peek_mut().filter(|first| first.0.0 <= now_ns) {
            let Reverse((_, due)) = std::collections::binary_heap::PeekMut::pop(first);
            self.due.push(Reverse(due));
        }
        self.due.pop().map(|Reverse(due)| due)
    }

    /// Whether an answer was due when `pop` last looked, and still waits.
    pub fn is_due(&self) -> bool {
        !self.due.is_empty()
    }

    /// When the next one of those that weren't due is.
    pub fn next_at_ns(&self) -> Option<u64> {
        self.waiting.peek().map(|Reverse((at_ns, _))| *at_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::delays::{Allowance, Delays, ns};

    fn due(at_ns: u64, latest_ns: u64) -> Due {
        Due { latest_ns, at_ns, count: 0, place: 0, serial: 0 }
    }

    #[test]
    fn nothing_leaves_before_it_is_due_and_the_urgent_leave_first() {
        let mut queue = Queue::default();
        for each in [due(10, 90), due(10, 40), due(20, 30), due(50, 60)] {
            queue.push(each);
        }
        assert_eq!(queue.pop(9), None);
        assert!(!queue.is_due());
        assert_eq!(queue.next_at_ns(), Some(10));
        assert_eq!(queue.pop(10), Some(due(10, 40)));
        assert_eq!(queue.pop(20), Some(due(20, 30)));
        assert!(queue.is_due(), "one still waits");
        assert_eq!(queue.next_at_ns(), Some(50));
        assert_eq!(queue.pop(49), Some(due(10, 90)));
        assert_eq!(queue.pop(49), None);
        assert_eq!(queue.next_at_ns(), Some(50));
    }

    #[test]
    fn all_answers_after_a_freeze_are_in_time() {
        const EACH_TAKES_NS: u64 = 10_000;
        let frozen = Delays::Frozen {
            base_ms: 1.0,
            freeze_at_ms: 500.0,
            freeze_ms: 200.0,
            period_ms: 1000.0,
        };
        let allowance = Allowance { late_ms: 0.5, late_share: 0.01 };
        let mut queue = Queue::default();
        for count in 0..250 {
            let arrived_ns = ns(499.0 + count as f64);
            let at_ns = frozen.answer_at_ns(arrived_ns, count);
            let latest_ns = allowance.latest_ns(arrived_ns, at_ns);
            queue.push(Due { latest_ns, at_ns, count, place: 0, serial: 0 });
        }
        let mut now_ns = ns(700.0);
        for _ in 0..200 {
            let written = queue.pop(now_ns).expect("more that are due");
            assert!(now_ns <= written.latest_ns, "{written:?} at {now_ns}");
            now_ns += EACH_TAKES_NS;
        }
    }
}
