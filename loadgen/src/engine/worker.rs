//! A thread of the engine: it keeps its connections and runs slots one after the other.

use std::io;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::{Receiver, Sender, SyncSender, sync_channel};
use std::thread::{self, JoinHandle};

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity, set_current_timer_slack};

use super::driver::SlotDriver;
use super::exchange::Scratch;
use super::plan::Plan;
use super::poll::{Poll, measured_spin_ns};
use super::pool::Pool;
use super::schedule::ThreadShare;
use super::slot::Slot;
use super::start::Start;
use super::windows::ThreadReport;

/// One slot's work for one thread.
#[derive(Debug)]
pub struct Job {
    pub plan: Arc<Plan>,
    pub share: ThreadShare,
    /// Connections to other servers than this slot's stay open.
    pub keeps_others: bool,
    /// Users log in, and nothing more is asked.
    pub only_login: bool,
    /// All threads begin together.
    pub start: Arc<Start>,
    pub reports: Sender<ThreadReport>,
}

#[derive(Debug)]
pub struct Worker {
    jobs: SyncSender<Job>,
    thread: Option<JoinHandle<()>>,
}

impl Worker {
    /// Starts a thread, pinned to `cpu` if one is given; `only`: there are no others.
    pub fn start(cpu: Option<usize>, only: bool, interrupt: Arc<AtomicBool>) -> io::Result<Worker> {
        let poll = Poll::new()?;
        let (jobs, inbox) = sync_channel::<Job>(1);
        let name = cpu.map_or("load".into(), |cpu| format!("load-cpu{cpu}"));
        let thread = thread::Builder::new().name(name).spawn(move || {
            settle(cpu);
            let alone = others_have_cpus() && (cpu.is_some() || only && has_one_cpu());
            work(&poll, &inbox, alone, &interrupt);
        })?;
        Ok(Worker { jobs, thread: Some(thread) })
    }

    pub fn begin(&self, job: Job) {
        // The thread receives as long as this worker exists.
        let _ = self.jobs.send(job);
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        let (closed, _) = sync_channel(1);
        self.jobs = closed;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Pins this thread and makes its timers exact; both only sharpen results, so failing is no error.
fn settle(cpu: Option<usize>) {
    if let Some(cpu) = cpu {
        let mut set = CpuSet::new();
        set.set(cpu);
        let _ = sched_setaffinity(None, &set);
    }
    let _ = set_current_timer_slack(std::num::NonZeroU64::new(1));
}

fn has_one_cpu() -> bool {
    sched_getaffinity(None).is_ok_and(|set| set.count() == 1)
}

fn others_have_cpus() -> bool {
    // SAFETY: it only gives a number.
    let online = unsafe { libc::sysconf(libc::_SC_NPROCESSORS_ONLN) };
    online > 1
}

fn work(poll: &Poll, inbox: &Receiver<Job>, alone: bool, interrupt: &AtomicBool) {
    let (mut pool, mut scratch) = (Pool::default(), Scratch::new());
    let mut measured_ns = None;
    while let Ok(job) = inbox.recv() {
        let reports = job.reports.clone();
        // Polling takes the CPU: only for requests that leave exactly when due, and from nobody else.
        let spins = alone && job.plan.is_open() && job.plan.delay_budget_ns == 0;
        // Measured once, so that all variants of a run are loaded alike.
        let spin_ns = if spins { *measured_ns.get_or_insert_with(measured_spin_ns) } else { 0 };
        if let Err(error) = run(job, &mut pool, &mut scratch, poll, spin_ns, interrupt) {
            let _ = reports.send(ThreadReport::Broken(error));
        }
    }
}

fn run(
    job: Job,
    pool: &mut Pool,
    scratch: &mut Scratch,
    poll: &Poll,
    spin_ns: u64,
    interrupt: &AtomicBool,
) -> io::Result<()> {
    let Job { plan, share, start, reports, .. } = job;
    let mut events = Poll::events();
    // What servers closed since the last slot.
    pool.begin_slot();
    while poll.check_now(&mut events).is_ok() && !events.is_empty() {
        events.drain(..).for_each(|event| {
            pool.connection_of(&event);
        });
    }
    if !job.keeps_others {
        pool.close_others(&plan.origins);
        start.wait();
    }
    let thread = share.thread;
    let driver = SlotDriver::new(&plan, pool, poll, scratch, share);
    let mut slot = Slot { plan: &plan, driver, poll, events, interrupt, thread, spin_ns };
    let outcome = begin_and_run(&mut slot, &start, job.only_login, &reports);
    // The engine listens until it has heard of the end.
    let _ = reports.send(ThreadReport::Traced(std::mem::take(&mut slot.driver.records.traced)));
    outcome
}

fn begin_and_run(
    slot: &mut Slot,
    start: &Start,
    only_login: bool,
    reports: &Sender<ThreadReport>,
) -> io::Result<()> {
    let opened = slot.open_ahead().and_then(|()| slot.log_in(start));
    if opened.is_err() {
        start.call_off();
    }
    // Whatever happened, the others must not wait for ever.
    let start_ns = start.together();
    opened?;
    if only_login || start.is_off() {
        slot.driver.leave();
        return Ok(());
    }
    slot.run(start, start_ns, reports)
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use super::*;
    use crate::engine::poll::tests::broken;
    use crate::engine::schedule::SharedSchedule;

    #[test]
    fn what_cannot_wait_ends_the_slot() {
        let order = serde_json::json!({
            "requests": [{"url": "http://127.0.0.1:1/"}], "duration_s": 0.05,
            "load": {"loop": "closed", "connections": 1},
        });
        let order = serde_json::from_value(order).expect("an order");
        let plan = Arc::new(Plan::new(order).expect("a plan"));
        let share = SharedSchedule::new(&plan, 1).expect("a schedule").share_of(&plan, 0);
        let ((reports, received), (jobs, inbox)) = (channel(), channel());
        let start = Arc::new(Start::of(1));
        jobs.send(Job { plan, share, keeps_others: true, only_login: false, start, reports })
            .expect("an inbox");
        drop(jobs);
        work(&broken(), &inbox, false, &AtomicBool::new(false));
        let broken: Vec<_> =
            received.iter().filter(|report| matches!(report, ThreadReport::Broken(_))).collect();
        assert_eq!(broken.len(), 1);
    }
}
