//! The load engine: threads that each keep their own epoll instance, connections and histograms.
//!
//! In the steady state a request costs one `recv` and one `send`: sockets are watched
//! edge-triggered and once, a read that came back short is not repeated, requests are rendered
//! before the slot, and threads share nothing they write to.

mod ahead;
mod answers;
pub mod clock;
mod conn;
mod connect;
mod drain;
mod failures;
mod lanes;
mod layered;
mod limits;
pub mod plan;
mod reactor;
mod receiving;
mod sending;
mod slot;
mod socket;
mod sources;
mod supplies;
mod turn;
mod usage;
mod windows;
mod worker;

use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::channel;

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

pub use plan::Plan;
pub use slot::EndedBy;
pub use usage::Usage;
pub use windows::Window;

use crate::record::{Beside, Recorder, Timing};
use crate::schedule::Leftover;
use supplies::Supplies;
use windows::{Collector, Report};
use worker::{Job, Start, Worker};

/// Which threads to start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Threads {
    /// One on each of these CPUs, pinned.
    OnCpus(Vec<usize>),
    /// This many, wherever the kernel puts them.
    Anywhere(usize),
}

/// A slot's outcome, all threads together.
#[derive(Debug)]
pub struct Measured {
    /// Counts of the whole slot.
    pub recorder: Recorder,
    pub beside: Beside,
    pub response_time: Timing,
    /// Of the timetable: what nobody sent.
    pub leftover: Leftover,
    pub ended_by: EndedBy,
    pub measured_s: f64,
    pub drain_s: f64,
    /// Completed in windows that were not left out, and how long those were together.
    pub kept_completed: u64,
    pub kept_s: f64,
    pub windows: Vec<Window>,
    /// Per thread.
    pub usage: Vec<Usage>,
}

#[derive(Debug)]
pub struct Engine {
    workers: Vec<Worker>,
}

impl Engine {
    /// Starts the threads; `interrupt` ends a slot early once [`Self::wakers`] were written to.
    pub fn start(threads: &Threads, interrupt: &Arc<AtomicBool>) -> io::Result<Engine> {
        let cpus: Vec<Option<usize>> = match threads {
            Threads::OnCpus(cpus) => {
                stay_on(cpus)?;
                cpus.iter().map(|cpu| Some(*cpu)).collect()
            }
            Threads::Anywhere(count) => vec![None; *count],
        };
        let start = |cpu: Option<usize>| Worker::start(cpu, Arc::clone(interrupt));
        Ok(Engine { workers: cpus.into_iter().map(start).collect::<io::Result<_>>()? })
    }

    /// Event file descriptors that wake the threads.
    pub fn wakers(&self) -> Vec<Arc<OwnedFd>> {
        self.workers.iter().map(Worker::waker).collect()
    }

    /// Runs one slot to its end; `on_window` sees each window when it is over.
    pub fn run(
        &mut self,
        plan: &Arc<Plan>,
        on_window: &mut dyn FnMut(&Window),
    ) -> io::Result<Measured> {
        let keeps_others = limits::check(plan).map_err(io::Error::other)?;
        let connections = plan.order.load.connections as usize;
        // A thread without a connection would have nothing to do.
        let threads = self.workers.len().min(connections);
        let supplies = Supplies::new(plan, threads);
        let start = Arc::new(Start::of(threads));
        let (reports, inbox) = channel();
        for (thread, worker) in self.workers[..threads].iter().enumerate() {
            let part = supplies.part(plan, thread);
            let (start, reports) = (Arc::clone(&start), reports.clone());
            worker.begin(Job { plan: Arc::clone(plan), part, keeps_others, start, reports });
        }
        drop(reports);
        let leave_out = plan.order.leave_out_client_bound;
        let mut collector = Collector::new(threads, plan.is_open(), leave_out);
        let mut ends = Vec::new();
        for report in inbox {
            match report {
                Report::Done(done) => ends.push(*done),
                Report::Window(part) => {
                    if let Some(window) = collector.add(part) {
                        on_window(window);
                    }
                }
            }
        }
        if ends.len() < threads {
            return Err(io::Error::other("a thread of the engine died"));
        }
        collector.finish();
        Ok(supplies.close(collector, ends))
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
