//! HTTP/2 (RFC 9113) as far as it needs no connection: the engine moves the frames, which are the
//! `h2` library's.

pub mod request;
pub mod trouble;
