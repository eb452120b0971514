//! HTTP/2 frame by frame (RFC 9113), so that a server can say what no library would.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::time::Duration;

pub const NO_ERROR: u32 = 0;
pub const CANCEL: u32 = 8;
pub const REFUSED_STREAM: u32 = 7;
pub const ENHANCE_YOUR_CALM: u32 = 11;
pub const MAX_CONCURRENT_STREAMS: u16 = 3;

const DATA: u8 = 0;
const HEADERS: u8 = 1;
const RST_STREAM: u8 = 3;
const SETTINGS: u8 = 4;
const GOAWAY: u8 = 7;
const END_STREAM: u8 = 1;
const END_HEADERS: u8 = 4;
const ACK: u8 = 1;

/// A server's side of a connection.
pub struct Frames<S> {
    stream: S,
}

impl Frames<TcpStream> {
    /// Closes after all that was sent: unread bytes would make a reset of it.
    pub fn close(mut self) {
        let _ = self.stream.shutdown(Shutdown::Write);
        while self.take_in().is_some() {}
    }

    /// Another request comes within a few milliseconds.
    pub fn another_comes(&mut self) -> bool {
        self.stream.set_read_timeout(Some(Duration::from_millis(3))).expect("a timeout");
        let mut comes = false;
        while !comes && matches!(self.stream.peek(&mut [0]), Ok(1)) {
            comes = matches!(self.take_in(), Some(Some(_)));
        }
        self.stream.set_read_timeout(None).expect("a timeout");
        comes
    }
}

impl<S: Read + Write> Frames<S> {
    /// Reads the client's preface and sends the server's settings; `None` if nothing came.
    pub fn begin(mut stream: S, settings: &[(u16, u32)]) -> Option<Frames<S>> {
        let mut preface = [0; 24];
        stream.read_exact(&mut preface).ok()?;
        assert!(preface.starts_with(b"PRI * HTTP/2.0"));
        let mut frames = Frames { stream };
        let mut payload = Vec::new();
        for (name, value) in settings {
            payload.extend_from_slice(&name.to_be_bytes());
            payload.extend_from_slice(&value.to_be_bytes());
        }
        frames.frame(SETTINGS, 0, 0, &payload);
        Some(frames)
    }

    /// The stream of the next request without a body; `None` when the client closed.
    pub fn request(&mut self) -> Option<u32> {
        loop {
            if let Some(id) = self.take_in()? {
                return Some(id);
            }
        }
    }

    /// Takes in one frame, and tells its stream if it begins a request.
    fn take_in(&mut self) -> Option<Option<u32>> {
        let mut head = [0; 9];
        self.stream.read_exact(&mut head).ok()?;
        let length = u32::from_be_bytes([0, head[0], head[1], head[2]]);
        let mut payload = vec![0; length as usize];
        self.stream.read_exact(&mut payload).ok()?;
        match head[3] {
            HEADERS => return Some(Some(u32::from_be_bytes([head[5], head[6], head[7], head[8]]))),
            SETTINGS if head[4] & ACK == 0 => self.frame(SETTINGS, ACK, 0, &[]),
            _ => {}
        }
        Some(None)
    }

    /// A whole answer.
    pub fn answer(&mut self, id: u32, body: &[u8]) {
        self.head(id, 200, None, body.is_empty());
        if !body.is_empty() {
            self.data(id, body, true);
        }
    }

    /// Header fields (HPACK: literals with literal names), for a head or for trailers.
    pub fn fields(&mut self, id: u32, fields: &[(&str, &str)], end: bool) {
        let mut block = Vec::new();
        for (name, value) in fields {
            block.extend_from_slice(&[0, name.len() as u8]);
            block.extend_from_slice(name.as_bytes());
            block.push(value.len() as u8);
            block.extend_from_slice(value.as_bytes());
        }
        self.frame(HEADERS, END_HEADERS | if end { END_STREAM } else { 0 }, id, &block);
    }

    /// Answers every request alike until the client closes.
    pub fn answer_all(&mut self, body: &[u8]) {
        while let Some(id) = self.request() {
            self.answer(id, body);
        }
    }

    /// The head of an answer (HPACK, RFC 7541: literals with indexed names).
    pub fn head(&mut self, id: u32, status: u16, length: Option<usize>, end: bool) {
        let mut block = vec![0x08, 3];
        block.extend_from_slice(status.to_string().as_bytes());
        if let Some(length) = length {
            let digits = length.to_string();
            block.extend_from_slice(&[0x0f, 28 - 15, digits.len() as u8]);
            block.extend_from_slice(digits.as_bytes());
        }
        self.frame(HEADERS, END_HEADERS | if end { END_STREAM } else { 0 }, id, &block);
    }

    pub fn data(&mut self, id: u32, bytes: &[u8], end: bool) {
        self.frame(DATA, if end { END_STREAM } else { 0 }, id, bytes);
    }

    pub fn reset(&mut self, id: u32, code: u32) {
        self.frame(RST_STREAM, 0, id, &code.to_be_bytes());
    }

    pub fn go_away(&mut self, last: u32, code: u32) {
        let payload = [last.to_be_bytes(), code.to_be_bytes()].concat();
        self.frame(GOAWAY, 0, 0, &payload);
    }

    /// Writes; the client may be gone, which is its right.
    pub fn frame(&mut self, kind: u8, flags: u8, id: u32, payload: &[u8]) {
        let length = (payload.len() as u32).to_be_bytes();
        let mut bytes = vec![length[1], length[2], length[3], kind, flags];
        bytes.extend_from_slice(&id.to_be_bytes());
        bytes.extend_from_slice(payload);
        let _ = self.stream.write_all(&bytes).and_then(|()| self.stream.flush());
    }
}
