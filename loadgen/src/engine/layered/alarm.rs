//! An exact timer. The runtime's own timers count whole milliseconds.

use std::io;
use std::os::fd::OwnedFd;

use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, timerfd_create, timerfd_settime,
};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

use crate::engine::clock::{now_ns, timespec};

#[derive(Debug)]
pub struct Alarm(AsyncFd<OwnedFd>);

impl Alarm {
    /// To be made inside the runtime.
    pub fn new() -> io::Result<Alarm> {
        let flags = TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK;
        let fd = timerfd_create(TimerfdClockId::Monotonic, flags)?;
        // SAFETY: the timer is owned by what it is registered in, so it stays open meanwhile.
        let registered = unsafe { AsyncFd::register_with_interest(fd, Interest::READABLE) }?;
        Ok(Alarm(registered))
    }

    /// Waits until the clock says `at_ns`; one waits at a time.
    pub async fn until(&self, at_ns: u64) {
        while now_ns() < at_ns {
            let once = Itimerspec { it_interval: timespec(0), it_value: timespec(at_ns) };
            // With a valid time on a timer of our own this can't fail.
            let _ = timerfd_settime(self.0.get_ref(), TimerfdTimerFlags::ABSTIME, &once);
            let Ok(mut ready) = self.0.readable().await else { return };
            let mut expirations = [0; 8];
            let _ = ready.try_io(|fd| Ok(rustix::io::read(fd.get_ref(), &mut expirations)?));
        }
    }
}
