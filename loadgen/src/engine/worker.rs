//! A thread of the engine: it keeps its connections and runs slots one after the other.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::{Receiver, Sender, SyncSender, sync_channel};
use std::sync::{Arc, Barrier, OnceLock};
use std::thread::{self, JoinHandle};

use rustix::event::{EventfdFlags, eventfd};
use rustix::thread::{CpuSet, sched_setaffinity, set_current_timer_slack};

use super::clock::now_ns;
use super::layered::{Layered, Layers};
use super::plan::Plan;
use super::reactor::Reactor;
use super::slot::{Part, Slot};
use super::windows::Report;

/// One slot's work for one thread.
#[derive(Debug)]
pub struct Job {
    pub plan: Arc<Plan>,
    pub part: Part,
    /// Connections to other servers than this slot's stay open.
    pub keeps_others: bool,
    /// All threads begin together.
    pub start: Arc<Start>,
    pub reports: Sender<Report>,
}

/// Where threads wait for each other, and the time at which they all begin.
#[derive(Debug)]
pub struct Start {
    barrier: Barrier,
    at_ns: OnceLock<u64>,
}

impl Start {
    pub fn of(threads: usize) -> Self {
        Start { barrier: Barrier::new(threads), at_ns: OnceLock::new() }
    }

    /// Until all threads are here.
    pub fn wait(&self) {
        self.barrier.wait();
    }

    pub fn together(&self) -> u64 {
        self.barrier.wait();
        *self.at_ns.get_or_init(now_ns)
    }
}

#[derive(Debug)]
pub struct Worker {
    jobs: SyncSender<Job>,
    thread: Option<JoinHandle<()>>,
    /// Written to when the thread is to look up from its wait.
    waker: Arc<OwnedFd>,
}

impl Worker {
    /// Starts a thread, pinned to `cpu` if one is given.
    pub fn start(cpu: Option<usize>, interrupt: Arc<AtomicBool>) -> io::Result<Worker> {
        let waker = Arc::new(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?);
        let reactor = Reactor::new(waker.as_fd())?;
        let (jobs, inbox) = sync_channel::<Job>(1);
        let name = cpu.map_or("load".into(), |cpu| format!("load-cpu{cpu}"));
        let own_waker = Arc::clone(&waker);
        let thread = thread::Builder::new().name(name).spawn(move || {
            settle(cpu);
            work(reactor, &inbox, &own_waker, &interrupt);
        })?;
        Ok(Worker { jobs, thread: Some(thread), waker })
    }

    pub fn waker(&self) -> Arc<OwnedFd> {
        Arc::clone(&self.waker)
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

fn work(mut reactor: Reactor, inbox: &Receiver<Job>, waker: &Arc<OwnedFd>, interrupt: &AtomicBool) {
    let mut events = Reactor::events();
    let mut layered = None;
    while let Ok(job) = inbox.recv() {
        let plan = Arc::clone(&job.plan);
        if let Some(layers) = &plan.layers {
            let outcome = layered_slot(&mut layered, waker, job, layers, interrupt);
            if let Err(error) = outcome {
                eprintln!("loadgen: a thread of the engine could not go on: {error}");
                return;
            }
            continue;
        }
        reactor.close_dead(&mut events);
        if !job.keeps_others {
            reactor.close_others(&plan.targets);
            job.start.wait();
        }
        let mut slot = Slot::new(&job.plan, &mut reactor, job.part);
        slot.open_ahead(&mut events, interrupt);
        slot.run(job.start.together(), &mut events, interrupt, &job.reports);
    }
}

/// Most runs need no more than plain HTTP/1.1, so what is for the others is made when needed.
fn layered_slot(
    layered: &mut Option<Layered>,
    waker: &Arc<OwnedFd>,
    job: Job,
    layers: &Layers,
    interrupt: &AtomicBool,
) -> io::Result<()> {
    let layered = match layered {
        Some(made) => made,
        None => layered.insert(Layered::new(Arc::clone(waker))?),
    };
    layered.run(job, layers, interrupt)
}
