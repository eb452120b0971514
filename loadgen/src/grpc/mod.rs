//! gRPC: what calls say over HTTP/2, in messages with a prefix each, and what came of them.

pub mod answer;
pub mod messages;
pub mod proto;
pub mod reply;
pub mod status;
