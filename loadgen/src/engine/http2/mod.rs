//! HTTP/2 on a connection of the pool: several requests on their way at a time.

pub mod connection;
pub mod dialog;
mod ids;
pub mod stream;
