//! What people and programs get to see.

pub mod csv;
pub mod hdr;
pub mod live;
pub mod result;
pub mod table;
pub mod threshold;
pub mod trace;
