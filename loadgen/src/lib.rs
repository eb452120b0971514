//! The load engine of webdyno: an exact and cheap HTTP load generator.
//!
//! `loadgen run URL` is for people, `loadgen serve` for programs: one JSON order per line on
//! standard input, one JSON result per line on standard output, connections open in between.
//! What an order says is in [`order`], what is counted in [`record`], how it is sent in [`engine`].
//!
//! The words, and what they are called elsewhere:
//!
//! | word | meaning |
//! | --- | --- |
//! | order, result | a job and its report, as JSON |
//! | slot | a stretch of load, from the first request to the last answer |
//! | ramp-up, window, tail, drain | its parts: ramp-up, what the result is about, load that goes on until all that was due is answered, answers that are awaited |
//! | part of a window | a row of the result, as long as `window_s` |
//! | plan | an order made ready: addresses resolved, requests rendered |
//! | origin | a server: addresses, protocol, TLS; only connections to one can be shared |
//! | lane | a user of a slot: one request at a time; with HTTP/2 and 3 a stream of a connection |
//! | planned request | which request a lane is to send, and when it is due |
//! | schedule | where planned requests come from: a budget (closed loop), the timetable (open loop), or own timetables of lanes |
//! | due | when a request is to be sent; backlog: those that wait |
//! | choice | which of the order's requests is next: by weight, Zipf's law, a sequence |
//! | flight | a planned request that a lane has taken on |
//! | exchange | a request and its answer on a connection of HTTP/1.1; HTTP/2 and 3 have streams, a WebSocket messages |
//! | wire | a socket, with TLS or without |
//! | shared connection | one of HTTP/2 or 3, which has several requests on their way |
//! | pool | a thread's connections, kept between slots; epoch: of the slot that uses them |
//! | slot driver | what a thread does in a slot, with the state of its lanes and connections, and its records |
//! | send delay | how late a request was sent, its own fault |
//! | in window | due within it: what the result is about |

pub mod ask;
pub mod calls;
pub mod cli;
pub mod clock;
pub mod engine;
pub mod events;
pub mod expect;
mod given;
pub mod grpc;
pub mod http1;
pub mod http2;
pub mod http3;
mod named;
pub mod order;
pub mod output;
pub mod record;
pub mod session;
mod shown;
pub mod target;
pub mod tls;
pub mod websocket;
