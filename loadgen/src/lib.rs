//! The load engine of webdyno: an exact and cheap HTTP load generator.
//!
//! `loadgen run URL` is for people, `loadgen serve` for programs: one JSON order per line on
//! standard input, one JSON result per line on standard output, connections open in between.
//! What an order says is in [`order`], what is counted in [`record`], how it is sent in [`engine`].

pub mod arrival;
pub mod check;
pub mod cli;
pub mod clock;
pub mod engine;
pub mod events;
mod grpc;
pub mod http1;
pub mod http2;
pub mod order;
pub mod output;
pub mod record;
pub mod schedule;
pub mod session;
pub mod target;
pub mod tls;
pub mod units;
