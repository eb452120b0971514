//! The null server: it answers every request alike, as cheaply as it can. What a client reaches
//! against it is the client's own limit (or the link's).

use std::fs::File;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::{AsFd, AsRawFd};

use memchr::memmem;
use rustix::event::epoll;
use rustix::fs::{MemfdFlags, memfd_create, sendfile};
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, SocketFlags, SocketType, accept_with, bind, listen, socket_with, sockopt,
};
use rustix::thread::{CpuSet, sched_setaffinity};

const BACKLOG: i32 = 4096;
const EVENTS: usize = 256;
const READ_BYTES: usize = 16 * 1024;

/// Opens a listening socket that shares its port with those of the other threads.
pub fn listener(address: SocketAddr) -> io::Result<TcpListener> {
    let family = if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = socket_with(family, SocketType::STREAM, flags, None)?;
    sockopt::set_socket_reuseaddr(&socket, true)?;
    sockopt::set_socket_reuseport(&socket, true)?;
    sockopt::set_tcp_nodelay(&socket, true)?; // accepted connections take it over
    bind(&socket, &address)?;
    listen(&socket, BACKLOG)?;
    Ok(socket.into())
}

/// Serves on this thread, pinned to a CPU if one is given; returns only when that fails.
pub fn serve(listener: &TcpListener, cpu: Option<usize>, answer: &Answer) -> io::Result<()> {
    if let Some(cpu) = cpu {
        let mut set = CpuSet::new();
        set.set(cpu);
        sched_setaffinity(None, &set)?;
    }
    Server::new(listener, answer)?.run()
}

struct Server<'a> {
    listener: &'a TcpListener,
    answer: &'a Answer,
    epoll: std::os::fd::OwnedFd,
    /// By descriptor.
    connections: Vec<Option<Connection>>,
    /// No file may be opened any more: nothing is accepted until a connection ends.
    is_full: bool,
    buffer: Vec<u8>,
}

impl<'a> Server<'a> {
    fn new(listener: &'a TcpListener, answer: &'a Answer) -> io::Result<Self> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        let (connections, buffer) = (Vec::new(), vec![0; READ_BYTES]);
        let server = Server { listener, answer, epoll, connections, is_full: false, buffer };
        server.listen()?;
        Ok(server)
    }

    fn listen(&self) -> io::Result<()> {
        let key = epoll::EventData::new_u64(self.listener.as_raw_fd() as u64);
        Ok(epoll::add(&self.epoll, self.listener, key, epoll::EventFlags::IN)?)
    }

    fn run(&mut self) -> io::Result<()> {
        let mut events = Vec::with_capacity(EVENTS);
        loop {
            events.clear();
            let spare = rustix::buffer::spare_capacity(&mut events);
            match epoll::wait(&self.epoll, spare, None) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
            for event in &events {
                let key = event.data.u64() as usize;
                if key == self.listener.as_raw_fd() as usize {
                    self.accept()?;
                } else {
                    self.go_on(key)?;
                }
            }
        }
    }

    fn accept(&mut self) -> io::Result<()> {
        loop {
            let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
            let socket = match accept_with(self.listener, flags) {
                Ok(socket) => socket,
                Err(Errno::MFILE | Errno::NFILE) => {
                    self.is_full = true;
                    return Ok(epoll::delete(&self.epoll, self.listener)?);
                }
                Err(_) => return Ok(()),
            };
            let stream = TcpStream::from(socket);
            let key = stream.as_raw_fd() as usize;
            let flags = epoll::EventFlags::IN | epoll::EventFlags::OUT | epoll::EventFlags::ET;
            let data = epoll::EventData::new_u64(key as u64);
            epoll::add(&self.epoll, stream.as_fd(), data, flags)?;
            if self.connections.len() <= key {
                self.connections.resize_with(key + 1, || None);
            }
            self.connections[key] = Some(Connection::new(stream));
            // The request has often come along with the connection.
            self.go_on(key)?;
        }
    }

    fn go_on(&mut self, key: usize) -> io::Result<()> {
        let Some(place) = self.connections.get_mut(key) else { return Ok(()) };
        let Some(connection) = place else { return Ok(()) };
        if connection.go_on(self.answer, &mut self.buffer) == Progress::Over {
            *place = None;
            if std::mem::take(&mut self.is_full) {
                return self.listen();
            }
        }
        Ok(())
    }
}

const HEAD_END: &[u8] = b"\r\n\r\n";

/// Answers from this length on go out by `sendfile`, which copies nothing.
const LARGE_BYTES: usize = 16 * 1024;

/// What every request gets.
#[derive(Debug)]
pub struct Answer {
    bytes: Vec<u8>,
    /// Of these, what HEAD gets.
    head_bytes: usize,
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
        let head_bytes = bytes.len();
        bytes.resize(bytes.len() + body_bytes, b'0');
        let file = if bytes.len() >= LARGE_BYTES {
            let mut file = File::from(memfd_create("answer", MemfdFlags::CLOEXEC)?);
            file.write_all(&bytes)?;
            Some(file)
        } else {
            None
        };
        Ok(Answer { bytes, head_bytes, file })
    }
}

#[derive(Debug, PartialEq, Eq)]
enum Progress {
    Waiting,
    Over,
}

/// A client has one request under way at a time: what it asks next comes after the answer.
#[derive(Debug)]
struct Connection {
    stream: TcpStream,
    /// The head of a request that isn't a plain GET in one piece, until its end has come.
    head: Vec<u8>,
    /// Of its body, what hasn't come.
    body_left: usize,
    asks_head: bool,
    /// Bytes of the answer under way that are sent; nothing when a request is waited for.
    sent_bytes: Option<usize>,
    close: bool,
}

impl Connection {
    fn new(stream: TcpStream) -> Connection {
        Connection {
            stream,
            head: Vec::new(),
            body_left: 0,
            asks_head: false,
            sent_bytes: None,
            close: false,
        }
    }

    /// Reads and writes as far as it goes now.
    fn go_on(&mut self, answer: &Answer, buffer: &mut [u8]) -> Progress {
        self.advance(answer, buffer).unwrap_or_else(|error| {
            if error.kind() == io::ErrorKind::WouldBlock {
                Progress::Waiting
            } else {
                Progress::Over
            }
        })
    }

    fn advance(&mut self, answer: &Answer, buffer: &mut [u8]) -> io::Result<Progress> {
        while self.sent_bytes.is_none() {
            let bytes = self.stream.read(buffer)?;
            if bytes == 0 {
                return Ok(Progress::Over);
            }
            self.take_in(&buffer[..bytes]);
        }
        let end = if self.asks_head { answer.head_bytes } else { answer.bytes.len() };
        while let Some(sent_bytes) = self.sent_bytes.filter(|&sent| sent < end) {
            self.sent_bytes = Some(sent_bytes + self.send(answer, sent_bytes, end)?);
        }
        if self.close && self.sent_bytes.is_some() {
            return Ok(Progress::Over);
        }
        self.sent_bytes = None;
        Ok(Progress::Waiting)
    }

    fn take_in(&mut self, bytes: &[u8]) {
        let begins = self.head.is_empty() && self.body_left == 0;
        if begins && bytes.starts_with(b"GET ") && bytes.ends_with(HEAD_END) {
            (self.close, self.asks_head) = (asks_to_close(bytes), false);
            self.sent_bytes = Some(0);
            return;
        }
        if self.body_left > 0 {
            self.body_left = self.body_left.saturating_sub(bytes.len());
        } else {
            self.head.extend_from_slice(bytes);
            let Some(at) = memmem::find(&self.head, HEAD_END) else { return };
            let end = at + HEAD_END.len();
            let head = &self.head[..end];
            (self.close, self.asks_head) = (asks_to_close(head), head.starts_with(b"HEAD "));
            self.body_left = content_length(head).saturating_sub(self.head.len() - end);
            self.head.clear();
        }
        self.sent_bytes = (self.body_left == 0).then_some(0);
    }

    fn send(&mut self, answer: &Answer, from: usize, end: usize) -> io::Result<usize> {
        match &answer.file {
            None => self.stream.write(&answer.bytes[from..end]),
            Some(file) => {
                let mut offset = from as u64;
                let left = end - from;
                Ok(sendfile(&self.stream, file, Some(&mut offset), left)?)
            }
        }
    }
}

fn asks_to_close(head: &[u8]) -> bool {
    memmem::find(head, b"\r\nConnection: close\r\n").is_some()
}

fn content_length(head: &[u8]) -> usize {
    let name = b"content-length:";
    let lines = head.split(|byte| *byte == b'\n');
    let mut named = lines.filter(|line| {
        line.get(..name.len()).is_some_and(|begin| begin.eq_ignore_ascii_case(name))
    });
    let value = named.next().map(|line| line[name.len()..].trim_ascii());
    value.and_then(|digits| str::from_utf8(digits).ok()?.parse().ok()).unwrap_or(0)
}
