//! A worker's connections, and what is read from them and written to them.

use std::collections::HashMap;
use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::os::fd::OwnedFd;
use std::sync::{Mutex, MutexGuard, PoisonError};

use rustix::event::epoll::{self, EventData, EventFlags};
use rustix::io::Errno;

const END_OF_HEAD: &[u8] = b"\r\n\r\n";

struct Connection {
    socket: TcpStream,
    head: Vec<u8>,
}

/// A worker's connections; the accepting thread adds to them.
pub struct Desk {
    pub epoll: OwnedFd,
    connections: Mutex<HashMap<u64, Connection>>,
}

impl Desk {
    pub fn new() -> Result<Self, Errno> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        Ok(Self { epoll, connections: Mutex::default() })
    }

    fn open(&self) -> MutexGuard<'_, HashMap<u64, Connection>> {
        self.connections.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn take(&self, name: u64, socket: TcpStream) -> io::Result<()> {
        socket.set_nonblocking(true)?;
        socket.set_nodelay(true)?;
        let mut connections = self.open();
        epoll::add(&self.epoll, &socket, EventData::new_u64(name), EventFlags::IN)?;
        connections.insert(name, Connection { socket, head: Vec::new() });
        Ok(())
    }

    /// Reads what has come; says whether a request is complete.
    pub fn read(&self, name: u64) -> bool {
        let mut connections = self.open();
        let Some(connection) = connections.get_mut(&name) else { return false };
        let mut bytes = [0; 4096];
        match connection.socket.read(&mut bytes) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => false,
            Ok(0) | Err(_) => {
                connections.remove(&name);
                false
            }
            Ok(got) => {
                connection.head.extend_from_slice(&bytes[..got]);
                let complete = connection.head.ends_with(END_OF_HEAD);
                if complete {
                    connection.head.clear();
                }
                complete
            }
        }
    }

    pub fn answer(&self, name: u64, bytes: &[u8]) {
        let mut connections = self.open();
        if let Some(connection) = connections.get_mut(&name)
            && connection.socket.write_all(bytes).is_err()
        {
            connections.remove(&name);
        }
    }
}
