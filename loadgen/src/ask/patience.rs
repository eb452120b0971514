//! How long a request may take as a whole, and waiting for that long.

use std::io;
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

/// How long it may take.
pub struct Patience {
    began: Instant,
    timeout: Duration,
}

impl Patience {
    /// It begins now.
    pub fn of(timeout: Duration) -> Patience {
        Patience { began: Instant::now(), timeout }
    }

    /// How long it took so far.
    pub fn spent(&self) -> Duration {
        self.began.elapsed()
    }

    pub fn is_over(&self) -> bool {
        self.spent() >= self.timeout
    }

    pub fn timeout_s(&self) -> f64 {
        self.timeout.as_secs_f64()
    }

    /// Waits for something to read or, with `room`, for room to write; false where the time is up.
    pub fn wait(&self, socket: &impl AsFd, room: bool) -> io::Result<bool> {
        self.wait_at_most(socket, room, self.timeout)
    }

    /// The same, but not for longer than that.
    pub fn wait_at_most(
        &self,
        socket: &impl AsFd,
        room: bool,
        longest: Duration,
    ) -> io::Result<bool> {
        let flags = PollFlags::IN | if room { PollFlags::OUT } else { PollFlags::empty() };
        loop {
            let left = self.timeout.saturating_sub(self.spent()).min(longest);
            let left = Timespec::try_from(left).map_err(io::Error::other)?;
            match poll(&mut [PollFd::new(socket, flags)], Some(&left)) {
                Ok(ready) => return Ok(ready > 0 || !self.is_over()),
                Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }
}
