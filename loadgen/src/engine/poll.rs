//! Waiting for sockets and for the time.

use std::io;
use std::os::fd::{AsFd, OwnedFd};

use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};
use rustix::io::Errno;

use crate::clock::{MILLISECOND_NS, timespec};

const EVENTS: usize = 256;
/// A thread looks up so often, whatever it waits for, so that it sees a gap in its own clock, or
/// that somebody wants it to end.
pub const LONGEST_WAIT_NS: u64 = 10 * MILLISECOND_NS;

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
    pub fn wait(&self, events: &mut Vec<Event>, wait_ns: u64) -> io::Result<()> {
        events.clear();
        let timeout = timespec(cautious(wait_ns));
        match epoll::wait(&self.0, rustix::buffer::spare_capacity(events), Some(&timeout)) {
            Ok(_) | Err(Errno::INTR) => Ok(()),
            Err(Errno::NOSYS) => Err(io::Error::other("the kernel is older than Linux 5.11")),
            Err(error) => Err(error.into()),
        }
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
