//! HTTP/1.1 on the wire: requests rendered once, answers read by a pure state machine.

pub mod chunked;
pub mod cookies;
pub mod head;
pub mod request;
pub mod response;
