//! WebSocket (RFC 6455) on the wire: the handshake that switches to it, frames, and the messages that
//! they make, read by a pure state machine.

pub mod farewell;
pub mod frame;
pub mod handshake;
pub mod messages;
