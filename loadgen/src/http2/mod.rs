//! HTTP/2 through the `h2` library: requests made ready once, connections that many requests share.

mod link;
mod message;
mod trouble;

pub use link::{Limits, Link, LinkEnd, Permit, start};
pub use message::Message;
pub use trouble::Trouble;
