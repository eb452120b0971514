//! The null server: it answers every request alike, as cheaply as it can. What a client reaches
//! against it is the client's own limit (or the link's).

mod connection;

use std::io;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::{AsFd, AsRawFd};

use rustix::event::epoll;
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, SocketFlags, SocketType, accept_with, bind, listen, socket_with, sockopt,
};
use rustix::thread::{CpuSet, sched_setaffinity};

pub use connection::Answer;
use connection::{Connection, Progress};

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
    buffer: Vec<u8>,
}

impl<'a> Server<'a> {
    fn new(listener: &'a TcpListener, answer: &'a Answer) -> io::Result<Self> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        let key = epoll::EventData::new_u64(listener.as_raw_fd() as u64);
        epoll::add(&epoll, listener, key, epoll::EventFlags::IN)?;
        Ok(Server { listener, answer, epoll, connections: Vec::new(), buffer: vec![0; READ_BYTES] })
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
                    self.go_on(key);
                }
            }
        }
    }

    fn accept(&mut self) -> io::Result<()> {
        while let Ok(socket) =
            accept_with(self.listener, SocketFlags::CLOEXEC | SocketFlags::NONBLOCK)
        {
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
            self.go_on(key);
        }
        Ok(())
    }

    fn go_on(&mut self, key: usize) {
        let Some(place) = self.connections.get_mut(key) else { return };
        let Some(connection) = place else { return };
        if connection.go_on(self.answer, &mut self.buffer) == Progress::Over {
            *place = None;
        }
    }
}
