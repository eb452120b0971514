//! Calls of gRPC over HTTP/2, each answered by one message.

use std::collections::VecDeque;

pub const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
/// Settings, those of the client acknowledged, and room for any number of requests.
pub const BEGIN: &[u8] = b"\0\0\0\x04\0\0\0\0\0\
    \0\0\0\x04\x01\0\0\0\0\
    \0\0\x04\x08\0\0\0\0\0\x7f\0\0\0";

const DATA: u8 = 0;
const HEADERS: u8 = 1;
const END_STREAM: u8 = 1;
const END_HEADERS: u8 = 4;
const FRAME_HEAD_BYTES: usize = 9;
/// Status 200, and the content's type (RFC 7541).
const HEAD: &[u8] = b"\x88\x0f\x10\x10application/grpc";
const MESSAGE: &[u8] = b"\0\0\0\0\x0dHello, World!";
const TRAILERS: &[u8] = b"\0\x0bgrpc-status\x010";

/// Those of one connection that wait for their answers.
#[derive(Default)]
pub struct Calls {
    /// Frames that haven't come in full.
    frames: Vec<u8>,
    streams: VecDeque<u32>,
}

impl Calls {
    /// Counts the requests that end in these bytes.
    pub fn ended(&mut self, bytes: &[u8]) -> u64 {
        self.frames.extend_from_slice(bytes);
        let (mut at, mut ended) = (0, 0);
        while let Some([a, b, c, kind, flags, stream @ ..]) =
            self.frames[at..].first_chunk::<FRAME_HEAD_BYTES>()
        {
            let payload = u32::from_be_bytes([0, *a, *b, *c]) as usize;
            if self.frames.len() < at + FRAME_HEAD_BYTES + payload {
                break;
            }
            if matches!(*kind, DATA | HEADERS) && flags & END_STREAM != 0 {
                self.streams.push_back(u32::from_be_bytes(*stream));
                ended += 1;
            }
            at += FRAME_HEAD_BYTES + payload;
        }
        self.frames.drain(..at);
        ended
    }

    /// The answer to the call that waits longest.
    pub fn answer(&mut self) -> Vec<u8> {
        let stream = self.streams.pop_front().unwrap_or_default();
        [
            frame(HEADERS, END_HEADERS, stream, HEAD),
            frame(DATA, 0, stream, MESSAGE),
            frame(HEADERS, END_HEADERS | END_STREAM, stream, TRAILERS),
        ]
        .concat()
    }
}

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = (payload.len() as u32).to_be_bytes();
    [&length[1..], &[kind, flags], &stream.to_be_bytes(), payload].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_are_counted_however_they_are_cut() {
        let call = |stream| {
            [frame(HEADERS, END_HEADERS, stream, b"x"), frame(DATA, END_STREAM, stream, b"yz")]
        };
        let said = [call(1), call(3)].concat().concat();
        for cut in 0..=said.len() {
            let mut calls = Calls::default();
            let (first, second) = said.split_at(cut);
            assert_eq!(calls.ended(first) + calls.ended(second), 2, "{cut}");
            assert_eq!((calls.answer()[8], calls.answer()[8]), (1, 3));
        }
    }
}
