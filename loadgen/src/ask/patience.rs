//! How long a request may take as a whole, and waiting for that long.

use std::io;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

use crate::engine::wire::Wire;

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
    pub fn wait(&self, wire: &Wire, room: bool) -> io::Result<bool> {
        let flags = PollFlags::IN | if room { PollFlags::OUT } else { PollFlags::empty() };
        loop {
            let left = Timespec::try_from(self.timeout.saturating_sub(self.spent()));
            let left = left.map_err(io::Error::other)?;
            match poll(&mut [PollFd::new(wire, flags)], Some(&left)) {
                Ok(ready) => return Ok(ready > 0),
                Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }
}
