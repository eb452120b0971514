//! What a user keeps from answer to answer, and how it gets into requests.

pub mod capture;
pub mod html;
pub mod json;
mod references;
pub mod script;
mod tags;
pub mod template;
pub mod values;
