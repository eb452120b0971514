//! Where the threads of a slot wait for each other.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Barrier, OnceLock};

use crate::clock::now_ns;

/// All threads begin together, and the load goes on until none needs it any more.
#[derive(Debug)]
pub struct Start {
    barrier: Barrier,
    at_ns: OnceLock<u64>,
    /// By thread: it has all that it needs for its result.
    done: Vec<AtomicBool>,
    /// Something keeps one of them from beginning, or all from going on.
    is_off: AtomicBool,
}

impl Start {
    pub fn of(threads: usize) -> Self {
        let done = (0..threads).map(|_| AtomicBool::new(false)).collect();
        let barrier = Barrier::new(threads);
        Start { barrier, at_ns: OnceLock::new(), done, is_off: AtomicBool::new(false) }
    }

    /// Until all threads are here.
    pub fn wait(&self) {
        self.barrier.wait();
    }

    /// The same, and the time at which they all begin.
    pub fn together(&self) -> u64 {
        self.barrier.wait();
        *self.at_ns.get_or_init(now_ns)
    }

    /// Nobody is to begin, or to go on.
    pub fn call_off(&self) {
        self.is_off.store(true, Ordering::Relaxed);
    }

    pub fn is_off(&self) -> bool {
        self.is_off.load(Ordering::Relaxed)
    }

    pub fn mark_done(&self, thread: usize) {
        self.done[thread].store(true, Ordering::Relaxed);
    }

    pub fn all_done(&self) -> bool {
        self.done.iter().all(|done| done.load(Ordering::Relaxed))
    }
}
