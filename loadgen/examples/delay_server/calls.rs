//! Calls of gRPC over HTTP/2, each answered by one message.

use std::collections::VecDeque;

use loadgen::http2::frame::{self, DATA, END_HEADERS, END_STREAM, HEAD_BYTES, HEADERS, Head};

/// Settings, those of the client acknowledged, and room for any number of requests.
pub const BEGIN: &[u8] = b"\0\0\0\x04\0\0\0\0\0\
    \0\0\0\x04\x01\0\0\0\0\
    \0\0\x04\x08\0\0\0\0\0\x7f\0\0\0";

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
        while let Some(head) = Head::read(&self.frames[at..]) {
            let end = at + HEAD_BYTES + head.length;
            if self.frames.len() < end {
                break;
            }
            if matches!(head.kind, DATA | HEADERS) && head.has(END_STREAM) {
                self.streams.push_back(head.stream);
                ended += 1;
            }
            at = end;
        }
        self.frames.drain(..at);
        ended
    }

    /// The answer to the call that waits longest.
    pub fn answer(&mut self) -> Vec<u8> {
        let stream = self.streams.pop_front().unwrap_or_default();
        let mut answer = Vec::new();
        frame::write(&mut answer, HEADERS, END_HEADERS, stream, HEAD);
        frame::write(&mut answer, DATA, 0, stream, MESSAGE);
        frame::write(&mut answer, HEADERS, END_HEADERS | END_STREAM, stream, TRAILERS);
        answer
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_are_counted_however_they_are_cut() {
        let mut said = Vec::new();
        for stream in [1, 3] {
            frame::write(&mut said, HEADERS, END_HEADERS, stream, b"x");
            frame::write(&mut said, DATA, END_STREAM, stream, b"yz");
        }
        for cut in 0..=said.len() {
            let mut calls = Calls::default();
            let (first, second) = said.split_at(cut);
            assert_eq!(calls.ended(first) + calls.ended(second), 2, "{cut}");
            assert_eq!((calls.answer()[8], calls.answer()[8]), (1, 3));
        }
    }
}
