//! What goes on beside the load, apart from its counts and times.

use super::Recorder;

#[derive(Debug, Clone)]
pub struct Beside {
    pub slow: Recorder,
    pub idle: Recorder,
    /// Idle connections that were answered and open at the end.
    pub idle_held: u64,
}

impl Beside {
    pub fn empty() -> Self {
        Beside { slow: Recorder::empty(), idle: Recorder::empty(), idle_held: 0 }
    }

    pub fn add(&mut self, other: &Beside) {
        self.slow.add(&other.slow);
        self.idle.add(&other.idle);
        self.idle_held += other.idle_held;
    }
}
