//! What people and programs get to see.

pub mod csv;
pub mod hdr;
pub mod live;
pub mod merge;
pub mod prometheus;
pub mod request_log;
pub mod result;
pub mod table;
pub mod times;
pub mod trace;
pub mod words;
