//! HTTP/2 in the words of HTTP/1.1: requests made ready once, and what goes wrong with them. The
//! frames are the `h2` library's; the engine moves them.

pub mod message;
pub mod trouble;
