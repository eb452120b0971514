//! HTTP/3 on a connection of the pool: QUIC by a library that does no input and output of its own, so
//! that packets are moved by the engine's loop like the bytes of other connections.

pub mod connection;
pub mod dialer;
mod dialog;
mod server_streams;
pub mod socket;
