//! What a client says on a connection: heads of HTTP/1.1, messages of a WebSocket, or calls of gRPC.

use std::borrow::Cow;

use super::calls::{BEGIN, Calls};
use loadgen::http2::frame::PREFACE;
use loadgen::websocket::handshake;

const ANSWER: &[u8] =
    b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 13\r\n\r\nHello, World!";
const MESSAGE: &[u8] = b"\x81\x0dHello, World!";
const END: &[u8] = b"\r\n\r\n";
const KEY: &str = "Sec-WebSocket-Key: ";
/// Bytes of the head of a short frame that is masked.
const FRAME_HEAD_BYTES: usize = 6;

pub struct Spoken {
    /// How many bytes of the empty line that ends a head have been seen.
    end_seen: usize,
    /// The first head, which may ask for a WebSocket.
    first: Option<Vec<u8>>,
    /// Frames that haven't come in full; None where it is no WebSocket.
    frames: Option<Vec<u8>>,
    /// Where HTTP/2 is spoken.
    calls: Option<Calls>,
    /// What switches to WebSocket, or begins HTTP/2, and is to be sent at once.
    switch: Option<Vec<u8>>,
}

impl Spoken {
    pub fn new() -> Spoken {
        Spoken { end_seen: 0, first: Some(Vec::new()), frames: None, calls: None, switch: None }
    }

    /// Counts the requests that end in these bytes.
    pub fn ended(&mut self, bytes: &[u8]) -> u64 {
        if self.frames.is_some() {
            return self.messages_ended(bytes);
        }
        if let Some(calls) = &mut self.calls {
            return calls.ended(bytes);
        }
        if let Some(rest) = self.first.as_ref().and(bytes.strip_prefix(PREFACE)) {
            self.switch = Some(BEGIN.to_vec());
            return self.calls.insert(Calls::default()).ended(rest);
        }
        let ended = self.heads_ended(bytes);
        let Some(first) = &mut self.first else { return ended };
        first.extend_from_slice(bytes);
        if ended > 0
            && let Some(first) = self.first.take()
            && let Some(key) =
                String::from_utf8_lossy(&first).lines().find_map(|line| line.strip_prefix(KEY))
        {
            self.switch = Some(switching(key).into_bytes());
            self.frames = Some(Vec::new());
            return ended - 1;
        }
        ended
    }

    /// The answer to a handshake, once.
    pub fn take_switch(&mut self) -> Option<Vec<u8>> {
        self.switch.take()
    }

    pub fn answer(&mut self) -> Cow<'static, [u8]> {
        match &mut self.calls {
            Some(calls) => calls.answer().into(),
            None if self.frames.is_some() => MESSAGE.into(),
            None => ANSWER.into(),
        }
    }

    fn heads_ended(&mut self, bytes: &[u8]) -> u64 {
        let mut ended = 0;
        for &byte in bytes {
            self.end_seen = match byte {
                _ if byte == END[self.end_seen] => self.end_seen + 1,
                b'\r' => 1,
                _ => 0,
            };
            if self.end_seen == END.len() {
                self.end_seen = 0;
                ended += 1;
            }
        }
        ended
    }

    /// Messages are short, and what is no text is about the connection.
    fn messages_ended(&mut self, bytes: &[u8]) -> u64 {
        let Some(frames) = &mut self.frames else { return 0 };
        frames.extend_from_slice(bytes);
        let mut ended = 0;
        while let [first, length, ..] = frames[..] {
            let whole = FRAME_HEAD_BYTES + usize::from(length & 0x7f);
            if frames.len() < whole {
                break;
            }
            frames.drain(..whole);
            ended += u64::from(first == MESSAGE[0]);
        }
        ended
    }
}

fn switching(key: &str) -> String {
    format!(
        "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
         Sec-WebSocket-Accept: {}\r\n\r\n",
        handshake::accept(key)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heads_are_counted_however_they_are_cut() {
        let heads = b"GET / HTTP/1.1\r\nHost: a\r\n\r\nGET /\r HTTP/1.1\r\nHost: \r\r\n\r\n";
        for cut in 0..=heads.len() {
            let mut spoken = Spoken::new();
            let (first, second) = heads.split_at(cut);
            assert_eq!(spoken.ended(first) + spoken.ended(second), 2, "{cut}");
        }
    }

    #[test]
    fn messages_are_counted_however_they_are_cut() {
        let frame = [&[0x81, 0x82, 1, 2, 3, 4][..], b"hi"].concat();
        let head = format!("GET / HTTP/1.1\r\n{KEY}a\r\n\r\n");
        let said = [head.as_bytes(), &frame, &frame].concat();
        // A client waits for the answer to its handshake.
        for cut in head.len()..=said.len() {
            let mut spoken = Spoken::new();
            assert_eq!(
                (spoken.ended(&said[..head.len()]), spoken.take_switch().is_some()),
                (0, true)
            );
            let (first, second) = (&said[head.len()..cut], &said[cut..]);
            assert_eq!(spoken.ended(first) + spoken.ended(second), 2, "{cut}");
        }
    }
}
