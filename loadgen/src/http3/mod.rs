//! HTTP/3 (RFC 9114) on the wire, as far as it needs no connection: requests made ready once, frames
//! read by a state machine, header fields decoded. QUIC itself is a library's.

pub mod code;
pub mod frame;
pub mod qpack;
pub mod reader;
pub mod request;
pub mod settings;
pub mod trouble;
