//! What is counted and timed: one [`Recorder`] per thread and window, merged afterwards.

mod beside;
mod failure;
mod layers;
mod recorder;
mod timing;

pub use beside::Beside;
pub use failure::{Failure, FailureCounts};
pub use layers::Layers;
pub use recorder::{MAX_STATUS, Recorder, Samples};
pub use timing::{Step, Timing};
