//! The load engine: threads that each keep their own epoll instance, connections and histograms.
//!
//! In the steady state a request costs one `recv` and one `send`: sockets are watched
//! edge-triggered and once, a read that came back short is not repeated, requests are rendered
//! before the slot, and threads share nothing they write to. `driver` has the way of a request.

mod driver;
mod exchange;
pub mod flight;
pub mod http2;
pub mod http3;
pub mod limits;
mod listening;
mod log;
pub mod plan;
mod poll;
mod pool;
pub mod reasons;
pub mod receive_time;
pub mod schedule;
pub mod secure;
mod self_watch;
pub mod shared;
mod slot;
pub mod socket;
mod start;
pub mod upgrade;
mod users;
mod window_merger;
mod windows;
pub mod wire;
mod worker;

use std::io;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::{Receiver, channel};

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

pub use flight::{Logged, Traced};
pub use plan::Plan;
pub use self_watch::Usage;
pub use window_merger::{Progress, Window};
pub use windows::EndedBy;

use crate::clock::ns_to_seconds;
use crate::record::{Histogram, OtherConnections};
use schedule::SharedSchedule;
use start::Start;
use window_merger::{SlotSum, WindowMerger};
use windows::{ThreadEnd, ThreadReport};
use worker::{Job, Worker};

/// Who follows a slot while it runs.
pub trait Watcher {
    /// A window is over. False ends the load.
    fn on_window(&mut self, progress: &Progress) -> bool;

    /// Requests have ended, where the plan has them logged.
    fn on_requests(&mut self, ended: &[Logged]);
}

/// Nobody does.
impl Watcher for () {
    fn on_window(&mut self, _: &Progress) -> bool {
        true
    }

    fn on_requests(&mut self, _: &[Logged]) {}
}

/// A slot's outcome, all threads together.
#[derive(Debug)]
pub struct Measured {
    pub sum: SlotSum,
    pub others: OtherConnections,
    pub latency: Histogram,
    pub ended_by: EndedBy,
    pub measured_s: f64,
    pub tail_s: f64,
    pub drain_s: f64,
    /// Of ramp-up, window and all that followed.
    pub whole_s: f64,
}

#[derive(Debug)]
pub struct Engine {
    workers: Vec<Worker>,
}

impl Engine {
    /// Starts a pinned thread on each of `cpus` or, where none are given, so many threads wherever
    /// the kernel puts them; `interrupt` ends a slot early.
    pub fn start(
        cpus: Option<&[usize]>,
        threads: usize,
        interrupt: &Arc<AtomicBool>,
    ) -> io::Result<Engine> {
        let start = |cpu: Option<usize>| Worker::start(cpu, threads == 1, Arc::clone(interrupt));
        let workers: io::Result<_> = match cpus {
            None => (0..threads).map(|_| start(None)).collect(),
            Some(cpus) => {
                stay_on(cpus).and_then(|()| cpus.iter().map(|cpu| start(Some(*cpu))).collect())
            }
        };
        Ok(Engine { workers: workers? })
    }

    /// Runs one slot to its end.
    pub fn run(&mut self, plan: &Arc<Plan>, watcher: &mut dyn Watcher) -> io::Result<Measured> {
        let begun = self.begin(plan, false)?;
        let threads = begun.threads;
        let delay_budget_ns = plan.is_open().then_some(plan.delay_budget_ns);
        let leave_out = plan.order.exclude_client_limited;
        let mut merger = WindowMerger::new(threads, delay_budget_ns, leave_out);
        let mut ends = Vec::new();
        let mut broken: Option<io::Error> = None;
        for report in begun.inbox {
            match report {
                ThreadReport::Ended(end) => ends.push(*end),
                ThreadReport::Traced(_) => {}
                ThreadReport::Logged(ended) => watcher.on_requests(&ended),
                // The others go on, and who asks for the next slot before would wait for them.
                ThreadReport::Broken(error) => drop(broken.get_or_insert(error)),
                ThreadReport::Window(part) => {
                    if merger.add(part).is_some_and(|progress| !watcher.on_window(&progress)) {
                        begun.start.call_off();
                    }
                }
            }
        }
        if let Some(error) = broken {
            return Err(error);
        }
        if ends.len() < threads {
            return Err(io::Error::other("a thread of the engine died"));
        }
        Ok(measured(plan, &begun.schedule, merger, ends))
    }

    /// Has users log in, and keeps them for the next slots.
    pub fn log_in(&mut self, plan: &Arc<Plan>) -> io::Result<()> {
        let mut outcome = Ok(());
        for report in self.begin(plan, true)?.inbox {
            if let ThreadReport::Broken(error) = report
                && outcome.is_ok()
            {
                outcome = Err(error);
            }
        }
        outcome
    }

    /// Runs a slot for its answers, which are given whole; a login that fails is among them.
    pub fn trace(&mut self, plan: &Arc<Plan>) -> io::Result<Vec<Traced>> {
        let (mut traced, mut broken) = (Vec::new(), None);
        for report in self.begin(plan, false)?.inbox {
            match report {
                ThreadReport::Traced(more) => traced.extend(more),
                ThreadReport::Broken(error) => broken = Some(error),
                ThreadReport::Ended(_) | ThreadReport::Window(_) | ThreadReport::Logged(_) => {}
            }
        }
        match broken {
            Some(error) if traced.is_empty() => Err(error),
            _ => Ok(traced),
        }
    }

    fn begin(&mut self, plan: &Arc<Plan>, only_login: bool) -> io::Result<Begun> {
        let load = &plan.order.load;
        let addresses: Vec<_> = plan.origins.iter().map(|o| o.addresses.as_slice()).collect();
        let keeps_others =
            limits::check(load, &addresses, &plan.sources).map_err(io::Error::other)?;
        // A thread without a connection would have nothing to do, and of a broadcast one thread has to
        // know who has received it.
        let most = if load.broadcast { 1 } else { load.connections as usize };
        let threads = self.workers.len().min(most);
        let schedule = SharedSchedule::new(plan, threads).map_err(io::Error::other)?;
        let start = Arc::new(Start::of(threads));
        let (reports, inbox) = channel();
        for (thread, worker) in self.workers[..threads].iter().enumerate() {
            worker.begin(Job {
                plan: Arc::clone(plan),
                share: schedule.share_of(plan, thread),
                keeps_others,
                only_login,
                start: Arc::clone(&start),
                reports: reports.clone(),
            });
        }
        Ok(Begun { schedule, inbox, threads, start })
    }
}

/// A slot that all threads are at.
struct Begun {
    schedule: SharedSchedule,
    inbox: Receiver<ThreadReport>,
    threads: usize,
    start: Arc<Start>,
}

/// Puts together what the threads brought back.
fn measured(
    plan: &Plan,
    schedule: &SharedSchedule,
    merger: WindowMerger,
    ends: Vec<ThreadEnd>,
) -> Measured {
    let latest = |of: fn(&ThreadEnd) -> u64| ends.iter().map(of).max().unwrap_or(0);
    let start_ns = ends.iter().map(|end| end.start_ns).min().unwrap_or(0);
    let (over_ns, settled_ns) = (latest(|end| end.over_ns), latest(|end| end.settled_ns));
    let drained_ns = latest(|end| end.drained_ns);
    let ended = |by: &EndedBy| ends.iter().any(|end| end.ended_by == *by);
    let unusual = [
        EndedBy::Interrupt,
        EndedBy::Unreachable,
        EndedBy::Limit,
        EndedBy::Late,
        EndedBy::Duration,
    ];
    let ended_by = unusual.into_iter().find(ended).unwrap_or(EndedBy::Count);
    let (mut sum, mut others) = (merger.finish(), OtherConnections::default());
    for end in ends {
        others += end.others;
        sum.whole += end.drain.counts;
        if !plan.is_open() {
            // Who would stop waiting with the window would see no standstill at its end.
            sum.recorder.times.waited += end.drain.times.waited;
        }
    }
    sum.recorder.counts.requests.drained = sum.whole.requests.drained;
    sum.recorder.counts.requests.unfinished = sum.whole.requests.unfinished;
    sum.recorder.counts.requests.unsent = sum.whole.requests.unsent;
    sum.recorder += schedule.leftover(settled_ns - start_ns);
    let window_ns = start_ns.saturating_add(plan.ramp_up_ns);
    Measured {
        latency: sum.recorder.times.latency(plan.is_open()),
        sum,
        others,
        ended_by,
        measured_s: ns_to_seconds(over_ns.saturating_sub(window_ns)),
        tail_s: ns_to_seconds(settled_ns.saturating_sub(over_ns)),
        drain_s: ns_to_seconds(drained_ns.saturating_sub(over_ns)),
        whole_s: ns_to_seconds(drained_ns.saturating_sub(start_ns)),
    }
}

/// Keeps the thread that reads orders off the CPUs of the servers.
fn stay_on(cpus: &[usize]) -> io::Result<()> {
    let allowed = sched_getaffinity(None)?;
    let mut set = CpuSet::new();
    for cpu in cpus {
        if *cpu >= CpuSet::MAX_CPU || !allowed.is_set(*cpu) {
            let message = format!("CPU {cpu} is not one this process may use (see `taskset -p`)");
            return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
        }
        set.set(*cpu);
    }
    Ok(sched_setaffinity(None, &set)?)
}
