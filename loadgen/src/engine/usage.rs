//! What a thread costs: CPU time and time spent waiting for a CPU.

use std::mem::MaybeUninit;

use derive_more::{Add, AddAssign, Sub, Sum};
use serde::{Deserialize, Serialize, Serializer};

use crate::record::rounded;

/// Seconds.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize, Add, AddAssign, Sub, Sum)]
pub struct Usage {
    #[serde(serialize_with = "microseconds")]
    pub cpu_user_s: f64,
    #[serde(serialize_with = "microseconds")]
    pub cpu_sys_s: f64,
    /// Runnable, but not running; 0 where the kernel doesn't tell.
    #[serde(serialize_with = "microseconds")]
    pub run_queue_s: f64,
    /// Of the CPU time: spent asking again and again for what there was not yet.
    #[serde(serialize_with = "microseconds")]
    pub spun_s: f64,
}

impl Usage {
    /// Since the thread began.
    pub fn of_this_thread() -> Usage {
        let mut usage = MaybeUninit::<libc::rusage>::zeroed();
        // SAFETY: the kernel writes one `rusage` through the valid pointer; all-zero is valid too.
        let usage = unsafe {
            libc::getrusage(libc::RUSAGE_THREAD, usage.as_mut_ptr());
            usage.assume_init()
        };
        let seconds = |t: libc::timeval| t.tv_sec as f64 + t.tv_usec as f64 / 1e6;
        Usage {
            cpu_user_s: seconds(usage.ru_utime),
            cpu_sys_s: seconds(usage.ru_stime),
            run_queue_s: run_queue_s().unwrap_or(0.0),
            spun_s: 0.0,
        }
    }

    pub fn cpu_s(&self) -> f64 {
        self.cpu_user_s + self.cpu_sys_s
    }

    /// CPU time spent on work.
    pub fn busy_s(&self) -> f64 {
        (self.cpu_s() - self.spun_s).max(0.0)
    }
}

/// The second field of schedstat (Documentation/scheduler/sched-stats.rst), in nanoseconds.
fn run_queue_s() -> Option<f64> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    let ns: f64 = text.split(' ').nth(1)?.parse().ok()?;
    Some(ns / 1e9)
}

/// No clock of the kernel has more digits.
fn microseconds<S: Serializer>(seconds: &f64, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_f64(rounded(*seconds, 6))
}
