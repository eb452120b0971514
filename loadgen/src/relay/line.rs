//! One direction of a cable: packets leave in the order in which they came, a delay later.

use std::collections::VecDeque;

use super::Cable;

/// More than this many bytes aren't kept under way: what comes then is lost, as in a full router.
const MOST_BYTES: usize = 256 << 20;

#[derive(Debug)]
pub struct Line {
    cable: Cable,
    /// When each is due at the far end, and its bytes.
    under_way: VecDeque<(u64, Box<[u8]>)>,
    bytes: usize,
}

impl Line {
    pub fn new(cable: Cable) -> Line {
        Line { cable, under_way: VecDeque::new(), bytes: 0 }
    }

    /// Sends a packet on its way, unless it gets lost.
    pub fn put(&mut self, packet: &[u8], now_ns: u64) {
        if fastrand::f64() < self.cable.loss || self.bytes + packet.len() > MOST_BYTES {
            return;
        }
        self.bytes += packet.len();
        self.under_way.push_back((now_ns + self.cable.delay_ns, packet.into()));
    }

    /// Gives the next packet that has arrived by now.
    pub fn take(&mut self, now_ns: u64) -> Option<Box<[u8]>> {
        if self.next_due_ns()? > now_ns {
            return None;
        }
        let (_, packet) = self.under_way.pop_front()?;
        self.bytes -= packet.len();
        Some(packet)
    }

    pub fn next_due_ns(&self) -> Option<u64> {
        self.under_way.front().map(|(due_ns, _)| *due_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_arrive_in_order_and_not_early() {
        let mut line = Line::new(Cable { delay_ns: 100, loss: 0.0 });
        assert_eq!(line.next_due_ns(), None);
        line.put(b"one", 0);
        line.put(b"two", 50);
        assert_eq!(line.next_due_ns(), Some(100));
        assert_eq!(line.take(99), None);
        assert_eq!(line.take(149).as_deref(), Some(&b"one"[..]));
        assert_eq!(line.take(149), None);
        assert_eq!(line.take(150).as_deref(), Some(&b"two"[..]));
        assert_eq!((line.take(1_000), line.bytes), (None, 0));
    }

    #[test]
    fn the_share_that_gets_lost_is_as_asked() {
        fastrand::seed(7);
        let mut line = Line::new(Cable { delay_ns: 0, loss: 0.25 });
        (0..100_000).for_each(|_| line.put(b"x", 0));
        let arrived = line.under_way.len();
        // Six standard deviations either way.
        assert!((74_000..76_000).contains(&arrived), "{arrived}");
    }

    #[test]
    fn a_full_cable_loses_what_comes_on_top() {
        let mut line = Line::new(Cable { delay_ns: 1, loss: 0.0 });
        let packet = vec![0; MOST_BYTES / 4];
        (0..5).for_each(|_| line.put(&packet, 0));
        assert_eq!(line.under_way.len(), 4);
    }
}
