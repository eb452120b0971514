//! The load engine: threads that each keep their own epoll instance, connections and histograms.
//!
//! In the steady state a request costs one `recv` and one `send`: sockets are watched
//! edge-triggered and once, a read that came back short is not repeated, requests are rendered
//! before the slot, and threads share nothing they write to.

mod answers;
pub mod clock;
mod conn;
mod drain;
mod lanes;
pub mod plan;
mod reactor;
mod slot;
mod socket;
mod usage;
mod worker;

use std::io;
use std::os::fd::OwnedFd;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Barrier};

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

pub use plan::Plan;
pub use slot::EndedBy;
pub use usage::Usage;

use crate::record::Recorder;
use crate::schedule::{Choice, Quota};
use clock::ns_to_seconds;
use slot::{Outcome, Part};
use worker::{Job, Worker};

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
    pub recorder: Recorder,
    pub ended_by: EndedBy,
    pub measured_s: f64,
    pub drain_s: f64,
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

    /// Runs one slot to its end.
    pub fn run(&mut self, plan: Plan) -> io::Result<Measured> {
        let plan = Arc::new(plan);
        let connections = plan.order.load.connections as usize;
        // A thread without a connection would have nothing to do.
        let threads = self.workers.len().min(connections);
        let quota = Quota::new(plan.order.count, threads);
        let start = Arc::new(Barrier::new(threads));
        let weights: Vec<f64> = plan.order.requests.iter().map(|r| r.weight).collect();
        let workers = &self.workers[..threads];
        for (index, worker) in workers.iter().enumerate() {
            let seed = plan.order.seed.wrapping_add(index as u64);
            let part = Part {
                share: quota.share(),
                choice: Choice::weighted(&weights, seed),
                lanes: connections / threads + usize::from(index < connections % threads),
            };
            worker.begin(Job { plan: Arc::clone(&plan), part, start: Arc::clone(&start) });
        }
        let outcomes: Option<Vec<Outcome>> = workers.iter().map(Worker::finish).collect();
        let outcomes = outcomes.ok_or_else(|| io::Error::other("a thread of the engine died"))?;
        Ok(merge(&outcomes))
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

fn merge(outcomes: &[Outcome]) -> Measured {
    let mut recorder = Recorder::empty();
    outcomes.iter().for_each(|outcome| recorder.add(&outcome.recorder));
    let earliest = outcomes.iter().map(|o| o.start_ns).min().unwrap_or(0);
    let latest = outcomes.iter().map(|o| o.end_ns).max().unwrap_or(0);
    let drained = outcomes.iter().map(|o| o.drained_ns).max().unwrap_or(0);
    let ended = |by: EndedBy| outcomes.iter().any(|o| o.ended_by == by);
    let unusual = [EndedBy::Interrupt, EndedBy::Unreachable, EndedBy::Duration];
    Measured {
        recorder,
        ended_by: unusual.into_iter().find(|by| ended(*by)).unwrap_or(EndedBy::Count),
        measured_s: ns_to_seconds(latest - earliest),
        drain_s: ns_to_seconds(drained.saturating_sub(latest)),
        usage: outcomes.iter().map(|o| o.usage).collect(),
    }
}
