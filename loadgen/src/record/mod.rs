//! What is counted and timed: one [`Recorder`] per thread and window, merged afterwards.

mod failure;
mod recorder;
mod timing;

pub use failure::{Failure, FailureCounts};
pub use recorder::{MAX_STATUS, Recorder, Samples};
pub use timing::{Step, Timing};
