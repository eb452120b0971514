//! One connection of the null server: requests in, the same answer out.

use std::fs::File;
use std::io::{self, Read, Write};
use std::net::TcpStream;

use memchr::memmem;
use rustix::fs::{MemfdFlags, memfd_create, sendfile};

const HEAD_END: &[u8] = b"\r\n\r\n";

/// Answers from this length on go out by `sendfile`, which copies nothing.
const LARGE_BYTES: usize = 16 * 1024;

/// What every request gets.
#[derive(Debug)]
pub struct Answer {
    bytes: Vec<u8>,
    /// The same in a file in memory, if it is large.
    file: Option<File>,
}

impl Answer {
    /// Makes a `200` with a body of that length.
    pub fn of(body_bytes: usize) -> io::Result<Answer> {
        let head = format!(
            "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: {body_bytes}\r\n\r\n"
        );
        let mut bytes = head.into_bytes();
        bytes.resize(bytes.len() + body_bytes, b'0');
        let file = if bytes.len() >= LARGE_BYTES {
            let mut file = File::from(memfd_create("answer", MemfdFlags::CLOEXEC)?);
            file.write_all(&bytes)?;
            Some(file)
        } else {
            None
        };
        Ok(Answer { bytes, file })
    }
}

#[derive(Debug, PartialEq, Eq)]
pub enum Progress {
    Waiting,
    Over,
}

/// A client has one request under way at a time: what it asks next comes after the answer.
#[derive(Debug)]
pub struct Connection {
    stream: TcpStream,
    /// The beginning of a request whose end hasn't come.
    unfinished: Vec<u8>,
    /// Bytes of the answer under way that are sent; nothing when a request is waited for.
    sent_bytes: Option<usize>,
    close: bool,
}

impl Connection {
    pub fn new(stream: TcpStream) -> Connection {
        Connection { stream, unfinished: Vec::new(), sent_bytes: None, close: false }
    }

    /// Reads and writes as far as it goes now.
    pub fn go_on(&mut self, answer: &Answer, buffer: &mut [u8]) -> Progress {
        self.advance(answer, buffer).unwrap_or_else(|error| {
            if error.kind() == io::ErrorKind::WouldBlock {
                Progress::Waiting
            } else {
                Progress::Over
            }
        })
    }

    fn advance(&mut self, answer: &Answer, buffer: &mut [u8]) -> io::Result<Progress> {
        if self.sent_bytes.is_none() {
            let bytes = self.stream.read(buffer)?;
            if bytes == 0 {
                return Ok(Progress::Over);
            }
            self.take_in(&buffer[..bytes]);
        }
        while let Some(sent_bytes) = self.sent_bytes.filter(|&sent| sent < answer.bytes.len()) {
            self.sent_bytes = Some(sent_bytes + self.send(answer, sent_bytes)?);
        }
        if self.close && self.sent_bytes.is_some() {
            return Ok(Progress::Over);
        }
        self.sent_bytes = None;
        Ok(Progress::Waiting)
    }

    fn take_in(&mut self, bytes: &[u8]) {
        if self.unfinished.is_empty() && bytes.ends_with(HEAD_END) {
            self.begin_answer(asks_to_close(bytes));
            return;
        }
        self.unfinished.extend_from_slice(bytes);
        if self.unfinished.ends_with(HEAD_END) {
            self.begin_answer(asks_to_close(&self.unfinished));
            self.unfinished.clear();
        }
    }

    fn begin_answer(&mut self, close: bool) {
        self.close = close;
        self.sent_bytes = Some(0);
    }

    fn send(&mut self, answer: &Answer, from: usize) -> io::Result<usize> {
        match &answer.file {
            None => self.stream.write(&answer.bytes[from..]),
            Some(file) => {
                let mut offset = from as u64;
                let left = answer.bytes.len() - from;
                Ok(sendfile(&self.stream, file, Some(&mut offset), left)?)
            }
        }
    }
}

fn asks_to_close(head: &[u8]) -> bool {
    memmem::find(head, b"\r\nConnection: close\r\n").is_some()
}
