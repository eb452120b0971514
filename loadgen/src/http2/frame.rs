//! Frames (RFC 9113 sections 4.1 and 6): their heads, and those that we send.

use super::code::Fault;

/// What a client begins with (section 3.4).
pub const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
pub const HEAD_BYTES: usize = 9;
/// What every side takes in one frame (section 4.2); we take no more.
pub const PAYLOAD_BYTES: usize = 16_384;
/// Ids of streams have 31 bits.
pub const LAST_STREAM: u32 = (1 << 31) - 1;

pub const DATA: u8 = 0;
pub const HEADERS: u8 = 1;
pub const PRIORITY: u8 = 2;
pub const RST_STREAM: u8 = 3;
pub const SETTINGS: u8 = 4;
pub const PUSH_PROMISE: u8 = 5;
pub const PING: u8 = 6;
pub const GOAWAY: u8 = 7;
pub const WINDOW_UPDATE: u8 = 8;
pub const CONTINUATION: u8 = 9;

pub const END_STREAM: u8 = 0x1;
pub const ACK: u8 = 0x1;
pub const END_HEADERS: u8 = 0x4;
pub const PADDED: u8 = 0x8;
const WITH_PRIORITY: u8 = 0x20;
/// A stream, and a weight.
pub const PRIORITY_BYTES: usize = 5;
pub const SETTING_BYTES: usize = 6;

pub const HEADER_TABLE_SIZE: u16 = 1;
pub const ENABLE_PUSH: u16 = 2;
pub const MAX_CONCURRENT_STREAMS: u16 = 3;
pub const INITIAL_WINDOW_SIZE: u16 = 4;
pub const MAX_FRAME_SIZE: u16 = 5;

#[derive(Debug, Clone, Copy)]
pub struct Head {
    pub length: usize,
    pub kind: u8,
    pub flags: u8,
    /// 0 where the frame is about the connection.
    pub stream: u32,
}

impl Head {
    /// None where it isn't there in full.
    #[inline]
    pub fn read(bytes: &[u8]) -> Option<Head> {
        let [high, middle, low, kind, flags, stream @ ..] = *bytes.first_chunk::<HEAD_BYTES>()?;
        let length = u32::from_be_bytes([0, high, middle, low]) as usize;
        Some(Head { length, kind, flags, stream: u32::from_be_bytes(stream) & LAST_STREAM })
    }

    pub fn has(&self, flag: u8) -> bool {
        self.flags & flag != 0
    }

    /// How much of a payload is padding, apart from the byte in front that says so; None where that
    /// byte is lacking.
    pub fn padding(&self, payload: &[u8]) -> Option<usize> {
        match self.has(PADDED) {
            true => payload.first().map(|bytes| usize::from(*bytes)),
            false => Some(0),
        }
    }

    /// The header block in the payload of a HEADERS frame, without padding and priority.
    pub fn block<'a>(&self, payload: &'a [u8]) -> Result<&'a [u8], Fault> {
        let priority = if self.has(WITH_PRIORITY) { PRIORITY_BYTES } else { 0 };
        let begin = usize::from(self.has(PADDED)) + priority;
        let end = self.padding(payload).and_then(|padding| payload.len().checked_sub(padding));
        let block = end.and_then(|end| payload.get(begin..end));
        block.ok_or(Fault::protocol("a HEADERS frame is shorter than its padding"))
    }
}

/// Whether this is how a server of HTTP/2 begins (RFC 9113 section 3.4).
pub fn begins_http2(bytes: &[u8]) -> bool {
    Head::read(bytes).is_some_and(|head| {
        let is_settings = head.kind == SETTINGS && head.length.is_multiple_of(SETTING_BYTES);
        (is_settings || head.kind == GOAWAY) && head.stream == 0 && head.length <= PAYLOAD_BYTES
    })
}

/// What a SETTINGS frame says, by name.
pub fn settings(payload: &[u8]) -> impl Iterator<Item = (u16, u32)> {
    payload.as_chunks::<SETTING_BYTES>().0.iter().map(|[high, low, value @ ..]| {
        (u16::from_be_bytes([*high, *low]), u32::from_be_bytes(*value))
    })
}

/// Appends a frame.
#[inline]
pub fn write(out: &mut Vec<u8>, kind: u8, flags: u8, stream: u32, payload: &[u8]) {
    let [_, high, middle, low] = (payload.len() as u32).to_be_bytes();
    let [first, second, third, fourth] = stream.to_be_bytes();
    out.extend_from_slice(&[high, middle, low, kind, flags, first, second, third, fourth]);
    out.extend_from_slice(payload);
}

/// Appends a frame that says a number.
pub fn write_number(out: &mut Vec<u8>, kind: u8, stream: u32, number: u32) {
    write(out, kind, 0, stream, &number.to_be_bytes());
}

/// Appends a header list, in as many frames as it takes.
pub fn write_block(out: &mut Vec<u8>, stream: u32, block: &[u8], ends: bool, most_bytes: usize) {
    let (mut kind, mut flags) = (HEADERS, if ends { END_STREAM } else { 0 });
    let mut rest = block;
    while rest.len() > most_bytes {
        let (piece, after) = rest.split_at(most_bytes);
        write(out, kind, flags, stream, piece);
        (kind, flags, rest) = (CONTINUATION, 0, after);
    }
    write(out, kind, flags | END_HEADERS, stream, rest);
}

pub fn write_settings(out: &mut Vec<u8>, settings: &[(u16, u32)]) {
    let bytes = |(name, value): &(u16, u32)| {
        let ([high, low], [first, second, third, fourth]) =
            (name.to_be_bytes(), value.to_be_bytes());
        [high, low, first, second, third, fourth]
    };
    let payload = Vec::from_iter(settings.iter().flat_map(bytes));
    write(out, SETTINGS, 0, 0, &payload);
}

/// We have no streams of the server's, so that the last one is none.
pub fn write_go_away(out: &mut Vec<u8>, code: u32) {
    let [first, second, third, fourth] = code.to_be_bytes();
    write(out, GOAWAY, 0, 0, &[0, 0, 0, 0, first, second, third, fourth]);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_blocks_go_on() {
        let mut out = Vec::new();
        write_block(&mut out, 5, b"abcde", true, 2);
        let mut frames = Vec::new();
        let mut rest = out.as_slice();
        while let Some(head) = Head::read(rest) {
            let (payload, after) = rest[HEAD_BYTES..].split_at(head.length);
            frames.push((head.kind, head.flags, head.stream, payload));
            rest = after;
        }
        assert_eq!(
            frames,
            [
                (HEADERS, END_STREAM, 5, &b"ab"[..]),
                (CONTINUATION, 0, 5, b"cd"),
                (CONTINUATION, END_HEADERS, 5, b"e")
            ]
        );
    }

    #[test]
    fn padding_and_priority_are_no_header_fields() {
        let head = |flags| Head { length: 9, kind: HEADERS, flags, stream: 1 };
        assert_eq!(head(0).block(b"abc"), Ok(&b"abc"[..]));
        assert_eq!(head(PADDED).block(b"\x02abcde"), Ok(&b"abc"[..]));
        assert_eq!(head(PADDED | WITH_PRIORITY).block(b"\x0112345ab"), Ok(&b"a"[..]));
        for (flags, payload) in
            [(PADDED, &b"\x03ab"[..]), (WITH_PRIORITY, b"1234"), (PADDED, b""), (PADDED, b"\xff")]
        {
            assert!(head(flags).block(payload).is_err(), "{flags} {payload:?}");
        }
    }
}
