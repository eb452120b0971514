//! Servers that speak TLS, HTTP/2, HTTP/3 and WebSocket, and do what a test says.

pub mod certificates;
pub mod frames;
pub mod nginx;
pub mod quic;
pub mod secure;
pub mod websocket;

use serde_json::{Value, json};

/// What an order over HTTP/2 has more.
pub fn http2(connections: u32, streams: u32) -> Value {
    json!({"load": {"protocol": "http2", "connections": connections, "streams": streams}})
}
