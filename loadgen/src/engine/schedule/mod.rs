//! When the next request is due, which one it is, and whose.

mod budget;
mod choice;
mod due_times;
mod lanes;
mod own;
mod profile;
mod shared;
mod timetable;

pub use due_times::{Due, DueTimes};
pub use lanes::{LaneScheduler, OwnNext, PlannedRequest};
pub use shared::{SharedSchedule, ThreadShare};
pub use timetable::Timetable;
