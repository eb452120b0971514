//! Waiting for sockets and for the time.

use std::io;
use std::os::fd::{AsFd, OwnedFd};

use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};
use rustix::io::Errno;
use rustix::thread::clock_nanosleep_absolute;
use rustix::time::ClockId;

use crate::clock::{MILLISECOND_NS, timespec};

const EVENTS: usize = 256;
/// A thread looks up so often, whatever it waits for, so that it sees a gap in its own clock, or
/// that somebody wants it to end.
pub const LONGEST_WAIT_NS: u64 = 10 * MILLISECOND_NS;

/// To be woken up takes about as long, and a wait that is shorter costs more than to ask again and
/// again until it is over.
pub const SPIN_NS: u64 = 12_000;

/// Until when a thread may look away from its sockets that woke at `woke_ns` and is to send at
/// `due_ns`: for a quantum, so that one sleep serves many answers and requests, and at most for
/// two, so that no server waits long for room in a socket. What is due much later is waited for
/// with open eyes.
pub fn away_until_ns(woke_ns: u64, due_ns: u64, quantum_ns: u64) -> Option<u64> {
    let soon = due_ns <= woke_ns + 2 * quantum_ns;
    soon.then(|| due_ns.max(woke_ns + quantum_ns))
}

#[derive(Debug)]
pub struct Poll(OwnedFd);

impl Poll {
    pub fn new() -> io::Result<Poll> {
        let poll = Poll(epoll::create(CreateFlags::CLOEXEC)?);
        // Kernels before 5.11 have no `epoll_pwait2`, and it is better to say so at once.
        poll.wait(&mut Self::events(), 0)?;
        Ok(poll)
    }

    /// An empty buffer for [`Self::wait`].
    pub fn events() -> Vec<Event> {
        Vec::with_capacity(EVENTS)
    }

    /// Waits for about as long as that at most, never longer, and fills `events`.
    #[inline(always)]
    pub fn wait(&self, events: &mut Vec<Event>, wait_ns: u64) -> io::Result<()> {
        events.clear();
        let timeout = timespec(cautious(wait_ns));
        match epoll::wait(&self.0, rustix::buffer::spare_capacity(events), Some(&timeout)) {
            Ok(_) | Err(Errno::INTR) => Ok(()),
            Err(Errno::NOSYS) => Err(io::Error::other("the kernel is older than Linux 5.11")),
            Err(error) => Err(error.into()),
        }
    }

    /// Sleeps for as long, whatever happens, and fills `events` with what did.
    pub fn look_away(&self, events: &mut Vec<Event>, now_ns: u64, wait_ns: u64) -> io::Result<()> {
        if wait_ns > 0 {
            let until = timespec(now_ns + wait_ns.min(LONGEST_WAIT_NS));
            // Whoever is woken early looks early.
            let _ = clock_nanosleep_absolute(ClockId::Monotonic, &until);
        }
        self.wait(events, 0)
    }

    /// Asks for events of a socket, once for its life: arriving bytes and the end of them,
    /// and room for writing only where that is awaited.
    pub fn watch(&self, socket: impl AsFd, key: EventData, room: bool) -> Result<(), Errno> {
        epoll::add(&self.0, socket, key, flags(room))
    }

    /// Also asks for room to write.
    pub fn watch_room(&self, socket: impl AsFd, key: EventData) -> Result<(), Errno> {
        epoll::modify(&self.0, socket, key, flags(true))
    }
}

fn flags(room: bool) -> EventFlags {
    let mut flags = EventFlags::IN | EventFlags::RDHUP | EventFlags::ET;
    flags.set(EventFlags::OUT, room);
    flags
}

/// The kernel ends a wait late by up to a thousandth of it, a two-hundredth for a nice process
/// (`select_estimate_accuracy` in fs/select.c), whatever the thread's timer slack is. So a long wait
/// ends early enough for a short one to follow it, which is late by a few microseconds at most.
fn cautious(wait_ns: u64) -> u64 {
    match wait_ns.min(LONGEST_WAIT_NS) {
        short if short <= MILLISECOND_NS => short,
        long => long - long / 100,
    }
}

#[cfg(test)]
pub mod tests {
    use std::collections::VecDeque;

    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    /// One that can't wait: what it waits on is no epoll instance.
    pub fn broken() -> Poll {
        Poll(std::fs::File::open("/dev/null").expect("there everywhere").into())
    }

    #[test]
    fn an_error_is_no_end_of_waiting() {
        assert!(broken().wait(&mut Poll::events(), 0).is_err());
        assert!(Poll::new().expect("epoll").wait(&mut Poll::events(), 0).is_ok());
    }

    proptest! {
        /// Requests that are due after such gaps, sent by a thread that is never late itself.
        #[test]
        fn nothing_is_sent_early_or_later_than_the_quantum(
            gaps_ns in vec(0..1_000_000_u64, 1..200), quantum_ns in 1..1_000_000_u64,
        ) {
            let mut due_ns = 0;
            let mut dues = VecDeque::from_iter(gaps_ns.iter().map(|gap_ns| {
                due_ns += gap_ns;
                due_ns
            }));
            let mut woke_ns = 0;
            while let Some(due_ns) = dues.front().copied() {
                let before_ns = woke_ns;
                woke_ns = match away_until_ns(woke_ns, due_ns, quantum_ns) {
                    Some(until_ns) => {
                        prop_assert!(until_ns - before_ns >= quantum_ns);
                        prop_assert!(until_ns - before_ns <= 2 * quantum_ns);
                        until_ns
                    }
                    None => due_ns,
                };
                prop_assert!(woke_ns >= due_ns && woke_ns - due_ns <= quantum_ns);
                while dues.front().is_some_and(|due_ns| *due_ns <= woke_ns) {
                    dues.pop_front();
                }
            }
        }
    }

    #[test]
    fn waits_get_shorter_towards_their_end() {
        let (mut left_ns, mut waits) = (8_000_000, Vec::new());
        while left_ns > 0 {
            let wait_ns = cautious(left_ns);
            waits.push(wait_ns);
            // As late as the kernel may be.
            left_ns = left_ns.saturating_sub(wait_ns + wait_ns / 200);
        }
        assert_eq!(waits.len(), 2);
        assert!(waits[1] / 1000 < 100, "{waits:?}");
    }
}
