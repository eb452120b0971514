//! A slot on one thread: connections are opened, the load goes on through ramp-up and window, and
//! what is then on its way is awaited.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Sender;

use rustix::event::epoll::Event;

use super::driver::SlotDriver;
use super::plan::Plan;
use super::poll::Poll;
use super::start::Start;
use super::windows::{EndedBy, Phase, ThreadEnd, ThreadReport, WindowEdges};
use crate::clock::{MILLISECOND_NS, seconds_to_ns};

pub struct Slot<'a> {
    pub plan: &'a Plan,
    pub driver: SlotDriver<'a>,
    pub poll: &'a Poll,
    pub events: Vec<Event>,
    pub interrupt: &'a AtomicBool,
    pub thread: usize,
    /// At the end of a wait for a request's time, this long is spent polling again and again.
    pub spin_ns: u64,
}

impl Slot<'_> {
    /// Opens the connections that are to be there when the slot begins.
    pub fn open_ahead(&mut self) -> io::Result<()> {
        self.driver.open_ahead();
        let until_ns = self.driver.clock.now_ns + self.plan.timeout_ns;
        while !self.driver.is_opened_ahead()
            && self.driver.clock.now_ns < until_ns
            && !self.is_interrupted()
        {
            self.poll_once(until_ns)?;
            self.driver.handle(&mut self.events);
        }
        Ok(())
    }

    /// Has the users log in who haven't.
    pub fn log_in(&mut self, start: &Start) -> io::Result<()> {
        if self.plan.sessions.is_none() {
            return Ok(());
        }
        self.driver.begin_login();
        while self.driver.goes_on_logging_in().map_err(io::Error::other)? {
            if self.is_interrupted() || start.is_off() {
                return Err(io::Error::other("the login was interrupted"));
            }
            self.poll_once(self.driver.clock.now_ns + self.plan.timeout_ns)?;
            self.driver.handle(&mut self.events);
        }
        self.driver.end_login();
        Ok(())
    }

    pub fn run(
        &mut self,
        start: &Start,
        start_ns: u64,
        reports: &Sender<ThreadReport>,
    ) -> io::Result<()> {
        let mut window = WindowEdges::first(self.thread, start_ns, self.plan);
        self.driver.begin_log(start_ns, reports);
        self.driver.begin(start_ns);
        let ended_by = self.load(&mut window, start, reports)?;
        start.mark_done(self.thread);
        let settled_ns = self.driver.clock.now_ns.min(window.end_ns);
        self.driver.settle(settled_ns, ended_by);
        let over_ns = settled_ns.min(window.over_ns);
        let last =
            window.hand_over(&mut self.driver.records.load, &mut self.driver.clock, settled_ns);
        let mut others = std::mem::take(&mut self.driver.records.others);
        let is_late = ended_by == EndedBy::Late;
        self.drain(if is_late { self.late_after_ns() } else { self.plan.timeout_ns })?;
        others.idle_held = self.driver.close_unfinished();
        let drained_ns = self.driver.clock.read();
        let drain = std::mem::take(&mut self.driver.records.load);
        let end = ThreadEnd { ended_by, start_ns, over_ns, settled_ns, drained_ns, others, drain };
        // The engine listens until it has heard of the end.
        let _ = reports.send(last);
        let _ = reports.send(ThreadReport::Ended(Box::new(end)));
        Ok(())
    }

    /// The load, until something ends it.
    fn load(
        &mut self,
        window: &mut WindowEdges,
        start: &Start,
        reports: &Sender<ThreadReport>,
    ) -> io::Result<EndedBy> {
        // What has no answer so long after the window is late. It is counted once: later there would
        // be less of it.
        let mut count_late_ns = window.over_ns.saturating_add(self.late_after_ns());
        let mut ended_by = EndedBy::Duration;
        loop {
            if window.phase == Phase::Tail {
                if self.driver.clock.now_ns >= count_late_ns {
                    count_late_ns = u64::MAX;
                    if self.is_abort_due() {
                        ended_by = EndedBy::Late;
                        start.mark_done(self.thread);
                    }
                }
                if self.driver.lanes.scheduler.is_over()
                    || self.driver.lanes.have_resolved_all(window.over_ns)
                {
                    start.mark_done(self.thread);
                }
                if start.all_done() {
                    return Ok(ended_by);
                }
            } else if self.driver.lanes.scheduler.is_over() {
                return Ok(EndedBy::Count);
            }
            if self.driver.conns.gave_up(self.plan, self.driver.clock.now_ns) {
                return Ok(EndedBy::Unreachable);
            }
            self.poll_once(window.end_ns.min(count_late_ns))?;
            while self.driver.clock.now_ns >= window.end_ns {
                if window.is_last() {
                    return Ok(EndedBy::Duration);
                }
                self.next_window(window, reports);
            }
            if self.is_interrupted() {
                return Ok(EndedBy::Interrupt);
            }
            if start.is_off() {
                return Ok(EndedBy::Limit);
            }
            self.driver.handle(&mut self.events);
        }
    }

    /// After the window, when late requests are counted; never, where that isn't in the order.
    fn late_after_ns(&self) -> u64 {
        self.plan.order.abort_rule.map_or(u64::MAX, |enough| seconds_to_ns(enough.after_s))
    }

    fn is_abort_due(&self) -> bool {
        let now_ns = self.driver.clock.now_ns;
        let enough = self.plan.order.abort_rule;
        enough.is_some_and(|enough| self.driver.lanes.lack_more_than(enough.share, now_ns))
    }

    fn next_window(&mut self, window: &mut WindowEdges, reports: &Sender<ThreadReport>) {
        let (before, end_ns) = (window.phase, window.end_ns);
        if end_ns == window.over_ns {
            self.driver.window_is_over();
        }
        let part = window.hand_over(&mut self.driver.records.load, &mut self.driver.clock, end_ns);
        // The engine listens until it has heard of the end.
        let _ = reports.send(part);
        if window.phase == Phase::Tail {
            // What follows them is none of the window's.
            self.driver.leave_streams();
        }
        if before == Phase::RampUp && window.phase == Phase::Window {
            let carried = self.driver.conns.unresolved().count() as u64;
            self.driver.records.load.counts.requests.carried = carried;
        }
    }

    /// Answers on their way are awaited, so that connections stay usable and no work is left over in
    /// the server; but not by somebody who wants to end.
    fn drain(&mut self, longest_ns: u64) -> io::Result<()> {
        // Events of the last wait, not handled yet.
        self.driver.handle(&mut self.events);
        // What was sent last is to time out, too, and timeouts are looked for once a millisecond.
        let until_ns =
            self.driver.clock.read().saturating_add(longest_ns.saturating_add(2 * MILLISECOND_NS));
        while self.driver.lanes.left_to_drain > 0
            && self.driver.clock.now_ns < until_ns
            && !self.is_interrupted()
        {
            self.poll_once(until_ns)?;
            self.driver.handle(&mut self.events);
        }
        Ok(())
    }

    /// Waits until `until_ns` or whatever is to be end before: for events or, where these may wait,
    /// for the time alone.
    #[inline(always)]
    fn poll_once(&mut self, until_ns: u64) -> io::Result<()> {
        let sleep_ns = self.driver.sleeps_until_ns();
        let wake_ns = until_ns.min(sleep_ns.unwrap_or_else(|| self.driver.next_ns()));
        if self.plan.is_open() {
            self.driver.clock.read();
        }
        let begun_ns = self.driver.clock.now_ns;
        let wait_until_ns = wake_ns.saturating_sub(self.spin_ns);
        match sleep_ns {
            Some(_) => self.poll.sleep_until(&mut self.events, begun_ns, wait_until_ns)?,
            None => self.poll.wait(&mut self.events, begun_ns, wait_until_ns)?,
        }
        self.driver.woke_ns = self.driver.clock.read();
        let waits = wait_until_ns > begun_ns;
        self.driver.records.load.counts.wake_ups += u64::from(waits);
        if !waits && wake_ns > begun_ns && self.events.is_empty() {
            self.driver.clock.spun_ns += self.driver.woke_ns - begun_ns;
        }
        Ok(())
    }

    fn is_interrupted(&self) -> bool {
        self.interrupt.load(Ordering::Relaxed)
    }
}
