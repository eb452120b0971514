//! What people and programs get to see.

pub mod result;
pub mod table;
