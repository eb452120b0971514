//! WebSocket: frames, messages, and servers that keep to the rules or don't.

mod broadcast;
mod hostile;
mod load;
mod reading;

pub use reading::hear;
