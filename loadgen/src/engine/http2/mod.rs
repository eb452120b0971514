//! HTTP/2 on a connection of the pool: several requests on their way at a time.

pub mod connection;
pub mod dialog;
mod ids;
pub mod stream;

use std::collections::VecDeque;

use super::flight::Flight;
use connection::Http2Connection;

#[derive(Default)]
pub struct Http2 {
    /// Once the wire is connected.
    pub connection: Option<Http2Connection>,
    /// Requests that wait for the connection, or for a stream of it.
    pub waiting: VecDeque<Flight>,
}
