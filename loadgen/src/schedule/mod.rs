//! When the next request is due, and which one it is.

mod choice;
mod own;
mod places;
mod profile;
mod quota;
mod timetable;

pub use choice::{Choice, zipf_weights};
pub use own::OwnTimetables;
pub use places::{Due, Places};
pub use profile::length_s;
pub use quota::Quota;
pub use timetable::{InWindow, Timetable};

/// A request somebody is to send.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ask {
    /// Index into the plan's requests.
    pub request: usize,
    /// When the timetable of an open loop had it.
    pub due_ns: Option<u64>,
    /// When it could have been sent, since it was due and its lane free; 0 once it was turned to,
    /// and where nothing is ever due.
    pub ready_ns: u64,
}
