//! Frames (RFC 6455 section 5.2): heads of those that servers send, and ours, which are masked.

use thiserror::Error;

/// What a frame carries: some of a message, or something about the connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Continuation,
    Text,
    Binary,
    Close,
    Ping,
    Pong,
}

const KINDS: [(u8, Kind); 6] = [
    (0x0, Kind::Continuation),
    (0x1, Kind::Text),
    (0x2, Kind::Binary),
    (0x8, Kind::Close),
    (0x9, Kind::Ping),
    (0xa, Kind::Pong),
];

const LAST: u8 = 0x80;
const RESERVED: u8 = 0x70;
const OPCODE: u8 = 0x0f;
const MASKED: u8 = 0x80;
/// Lengths that say how many bytes of length follow.
const TWO_BYTES: u8 = 126;
const EIGHT_BYTES: u8 = 127;

/// The payload of a frame that is about the connection has no more bytes.
pub const MOST_CONTROL_BYTES: usize = 125;

/// Why what came is not WebSocket.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum Fault {
    #[error("a frame has reserved bits, though no extension was agreed upon")]
    Reserved,
    #[error("a frame is of no known kind")]
    Kind,
    #[error("the server masked a frame")]
    Masked,
    #[error("a frame's length is not written in the shortest way, or too large")]
    Length,
    #[error("a Close, Ping or Pong is in parts, or longer than {MOST_CONTROL_BYTES} bytes")]
    Control,
    #[error("a message goes on that had not begun")]
    Continuation,
    #[error("a message begins within another one")]
    Within,
    #[error("a Close has half a code, or one that may not be sent")]
    Close,
    #[error("a message came that nobody had asked for")]
    Unasked,
}

/// The head of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Head {
    pub kind: Kind,
    /// The message ends with it.
    pub is_last: bool,
    pub payload_bytes: u64,
    /// Bytes of the head itself.
    pub len: usize,
}

impl Kind {
    /// It is about the connection, and may come within a message.
    pub fn is_control(self) -> bool {
        matches!(self, Kind::Close | Kind::Ping | Kind::Pong)
    }

    fn opcode(self) -> u8 {
        KINDS.iter().find(|(_, kind)| *kind == self).map_or(0, |(opcode, _)| *opcode)
    }
}

/// Parses a head at the start of `input`; `None` when it is not complete yet. A wrong one is known
/// by its first wrong byte, however it comes.
pub fn parse(input: &[u8]) -> Result<Option<Head>, Fault> {
    let Some(first) = input.first() else { return Ok(None) };
    if first & RESERVED != 0 {
        return Err(Fault::Reserved);
    }
    let opcode = first & OPCODE;
    let known = KINDS.iter().find(|(known, _)| *known == opcode);
    let (_, kind) = *known.ok_or(Fault::Kind)?;
    let is_last = first & LAST != 0;
    if kind.is_control() && !is_last {
        return Err(Fault::Control);
    }
    let Some(second) = input.get(1) else { return Ok(None) };
    if second & MASKED != 0 {
        return Err(Fault::Masked);
    }
    if kind.is_control() && *second >= TWO_BYTES {
        return Err(Fault::Control);
    }
    let (payload_bytes, len) = match *second {
        TWO_BYTES => match input.get(2..4).and_then(|bytes| bytes.try_into().ok()) {
            Some(bytes) => (u64::from(u16::from_be_bytes(bytes)), 4),
            None => return Ok(None),
        },
        EIGHT_BYTES => match input.get(2..10).and_then(|bytes| bytes.try_into().ok()) {
            Some(bytes) => (u64::from_be_bytes(bytes), 10),
            None => return Ok(None),
        },
        short => (short.into(), 2),
    };
    let range = match len {
        2 => 0..=125,
        4 => 126..=u64::from(u16::MAX),
        _ => u64::from(u16::MAX) + 1..=i64::MAX as u64,
    };
    if !range.contains(&payload_bytes) {
        return Err(Fault::Length);
    }
    Ok(Some(Head { kind, is_last, payload_bytes, len }))
}

/// A whole frame as a client sends it. The key keeps those who choose the payload, but not what is
/// sent, from choosing bytes on the wire (section 10.3).
pub fn masked(kind: Kind, payload: &[u8], key: [u8; 4]) -> Vec<u8> {
    let mut frame = vec![LAST | kind.opcode()];
    match payload.len() {
        short @ 0..=125 => frame.push(MASKED | short as u8),
        medium @ 126..=0xffff => {
            frame.push(MASKED | TWO_BYTES);
            frame.extend_from_slice(&(medium as u16).to_be_bytes());
        }
        long => {
            frame.push(MASKED | EIGHT_BYTES);
            frame.extend_from_slice(&(long as u64).to_be_bytes());
        }
    }
    frame.extend_from_slice(&key);
    frame.extend(payload.iter().zip(key.iter().cycle()).map(|(byte, key)| byte ^ key));
    frame
}
