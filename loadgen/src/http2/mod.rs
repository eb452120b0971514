//! HTTP/2 (RFC 9113) on the wire, as far as it needs no connection: requests compressed once, frames
//! read by a state machine, header fields decoded.

pub mod code;
pub mod fields;
pub mod frame;
pub mod hpack;
pub mod huffman;
pub mod reader;
pub mod request;
pub mod trouble;
pub mod window;
