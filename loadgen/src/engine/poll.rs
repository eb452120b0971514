//! Waiting for sockets and for the time.

use std::cell::Cell;
use std::io;
use std::os::fd::{AsFd, OwnedFd};

use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};
use rustix::io::Errno;
use rustix::thread::clock_nanosleep_absolute;
use rustix::time::{
    ClockId, Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create,
    timerfd_settime,
};

use crate::clock::{MILLISECOND_NS, now_ns, timespec};

const EVENTS: usize = 256;
/// No wait is longer, so that a thread notices a stall of its own, or that it is to end.
pub const LONGEST_WAIT_NS: u64 = 10 * MILLISECOND_NS;

/// Waits that are tried to see how late they end, each about as long as those of a busy timetable.
const TRIALS: usize = 64;
const TRIAL_NS: u64 = 100_000;
/// To poll for longer than this costs more than it gains.
const MOST_SPIN_NS: u64 = 12_000;

/// For how long to poll at the end of a wait, so that it ends in time: as late as nine of ten waits
/// end here.
pub fn measured_spin_ns() -> u64 {
    let mut late_ns = (0..TRIALS).map(|_| wait_is_late_ns()).collect::<Vec<_>>();
    late_ns.sort_unstable();
    late_ns[TRIALS * 9 / 10].min(MOST_SPIN_NS)
}

fn wait_is_late_ns() -> u64 {
    let until_ns = now_ns() + TRIAL_NS;
    // Waking up early, by a signal, is not late.
    let _ = clock_nanosleep_absolute(ClockId::Monotonic, &timespec(until_ns));
    now_ns().saturating_sub(until_ns)
}

/// Until when a thread may sleep, whatever its sockets bring, that woke at `woke_ns` and is to send
/// at `due_ns`: for the send-delay budget, so that one sleep serves many answers and requests. Where the
/// next request is due later than answers may lie unread, sockets are polled meanwhile (None), so
/// that no server waits long for room in one.
pub fn sleep_until_ns(
    woke_ns: u64,
    due_ns: u64,
    delay_budget_ns: u64,
    unread_ns: u64,
) -> Option<u64> {
    let soon = due_ns <= woke_ns + unread_ns;
    soon.then(|| due_ns.max(woke_ns + delay_budget_ns))
}

/// Of the timer's event; no connection has this key.
const TIMER: u64 = u64::MAX;

#[derive(Debug)]
pub struct Poll {
    epoll: OwnedFd,
    /// It outlasts a wait that an answer ends: to set a timer again for the same moment costs as
    /// much as to be woken by it where each change of the clock's alarm leaves a virtual machine.
    timer: OwnedFd,
    rings_ns: Cell<u64>,
}

impl Poll {
    pub fn new() -> io::Result<Poll> {
        let epoll = epoll::create(CreateFlags::CLOEXEC)?;
        let timer = timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::CLOEXEC)?;
        epoll::add(&epoll, &timer, EventData::new_u64(TIMER), EventFlags::IN | EventFlags::ET)?;
        let poll = Poll { epoll, timer, rings_ns: Cell::new(0) };
        // Kernels before 5.11 have no `epoll_pwait2`, and it is better to say so at once.
        poll.check_now(&mut Self::events())?;
        Ok(poll)
    }

    /// An empty buffer for [`Self::wait`].
    pub fn events() -> Vec<Event> {
        Vec::with_capacity(EVENTS)
    }

    /// Fills `events` with what has happened.
    #[inline(always)]
    pub fn check_now(&self, events: &mut Vec<Event>) -> io::Result<()> {
        self.fill(events, Some(&timespec(0)))
    }

    /// Waits until something happens or about until that time, never longer, and fills `events`.
    #[inline(always)]
    pub fn wait(&self, events: &mut Vec<Event>, now_ns: u64, until_ns: u64) -> io::Result<()> {
        if until_ns <= now_ns {
            return self.check_now(events);
        }
        let until_ns = until_ns.min(now_ns + LONGEST_WAIT_NS);
        if !(now_ns + 1..=until_ns).contains(&self.rings_ns.get()) {
            let once = Itimerspec { it_interval: timespec(0), it_value: timespec(until_ns) };
            timerfd_settime(&self.timer, TimerfdTimerFlags::ABSTIME, &once)?;
            self.rings_ns.set(until_ns);
        }
        self.fill(events, None)
    }

    /// Sleeps until that time, whatever happens, and fills `events` with what did.
    pub fn sleep_until(
        &self,
        events: &mut Vec<Event>,
        now_ns: u64,
        until_ns: u64,
    ) -> io::Result<()> {
        if until_ns > now_ns {
            let until = timespec(until_ns.min(now_ns + LONGEST_WAIT_NS));
            // Waking up early, by a signal, does no harm: the caller sleeps again.
            let _ = clock_nanosleep_absolute(ClockId::Monotonic, &until);
        }
        self.check_now(events)
    }

    #[inline(always)]
    fn fill(&self, events: &mut Vec<Event>, timeout: Option<&Timespec>) -> io::Result<()> {
        events.clear();
        match epoll::wait(&self.epoll, rustix::buffer::spare_capacity(events), timeout) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(Errno::NOSYS) => {
                return Err(io::Error::other("the kernel is older than Linux 5.11"));
            }
            Err(error) => return Err(error.into()),
        }
        if let Some(rang) = events.iter().position(|event| event.data.u64() == TIMER) {
            events.remove(rang);
        }
        Ok(())
    }

    /// Asks for events of a socket, once for its life: arriving bytes and the end of them,
    /// and room for writing only where that is awaited.
    pub fn watch(&self, socket: impl AsFd, key: EventData, room: bool) -> Result<(), Errno> {
        epoll::add(&self.epoll, socket, key, flags(room))
    }

    /// Also asks for room to write.
    pub fn watch_room(&self, socket: impl AsFd, key: EventData) -> Result<(), Errno> {
        epoll::modify(&self.epoll, socket, key, flags(true))
    }
}

fn flags(room: bool) -> EventFlags {
    let mut flags = EventFlags::IN | EventFlags::RDHUP | EventFlags::ET;
    flags.set(EventFlags::OUT, room);
    flags
}

#[cfg(test)]
pub mod tests {
    use std::collections::VecDeque;

    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    /// One that can't wait: what it waits on is no epoll instance.
    pub fn broken() -> Poll {
        let epoll = std::fs::File::open("/dev/null").expect("there everywhere").into();
        Poll { epoll, ..Poll::new().expect("epoll") }
    }

    #[test]
    fn an_error_is_no_end_of_waiting() {
        assert!(broken().check_now(&mut Poll::events()).is_err());
        assert!(Poll::new().expect("epoll").check_now(&mut Poll::events()).is_ok());
    }

    #[test]
    fn the_timer_rings_in_time_whatever_was_waited_for_before() {
        let poll = Poll::new().expect("epoll");
        let mut events = Poll::events();
        for wait_ms in [3, 1, 5, 0, 2] {
            let until_ns = now_ns() + wait_ms * MILLISECOND_NS;
            while now_ns() < until_ns {
                poll.wait(&mut events, now_ns(), until_ns).expect("epoll");
                assert!(events.is_empty());
                assert!(poll.rings_ns.get() <= until_ns);
            }
        }
    }

    #[test]
    fn the_end_of_a_wait_is_polled_for_as_long_as_waits_end_late() {
        assert!((1..=MOST_SPIN_NS).contains(&measured_spin_ns()));
    }

    proptest! {
        /// Requests that are due after such gaps, sent by a thread that is never late itself.
        #[test]
        fn nothing_is_sent_early_or_later_than_the_budget(
            gaps_ns in vec(0..1_000_000_u64, 1..200), delay_budget_ns in 0..1_000_000_u64,
        ) {
            let unread_ns = if delay_budget_ns == 0 { MILLISECOND_NS } else { 2 * delay_budget_ns };
            let mut due_ns = 0;
            let mut dues = VecDeque::from_iter(gaps_ns.iter().map(|gap_ns| {
                due_ns += gap_ns;
                due_ns
            }));
            let mut woke_ns = 0;
            while let Some(due_ns) = dues.front().copied() {
                let before_ns = woke_ns;
                woke_ns = match sleep_until_ns(woke_ns, due_ns, delay_budget_ns, unread_ns) {
                    Some(until_ns) => {
                        prop_assert!(until_ns - before_ns >= delay_budget_ns);
                        prop_assert!(until_ns - before_ns <= unread_ns);
                        until_ns
                    }
                    None => due_ns,
                };
                prop_assert!(woke_ns >= due_ns && woke_ns - due_ns <= delay_budget_ns);
                while dues.front().is_some_and(|due_ns| *due_ns <= woke_ns) {
                    dues.pop_front();
                }
            }
        }
    }
}
